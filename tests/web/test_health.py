"""The health page and the metrics: they count what happened, and are a secret."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import httpx
import pytest

from tests.web.servers import begin, turn_of
from tradeoff import load
from tradeoff.apps.web.app import make_app
from tradeoff.errors import StoreError
from tradeoff.stores.memory import InMemoryStore
from tradeoff.studies import Sessions, Study


class Client:
    """Calls the application itself, without a server."""

    def __init__(self, app: Any) -> None:
        self.app = app

    def __getattr__(self, method: str) -> Any:
        def call(path: str, **given: Any) -> httpx.Response:
            async def go() -> httpx.Response:
                transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
                async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                    return await client.request(method.upper(), path, **given)

            return asyncio.run(go())

        return call


def amounts(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r'[a-z_]+(\{([a-z]+="[^"]*",?)+\})? [0-9.e+-]+', line) for line in lines), text
    return {name: float(amount) for name, _, amount in (line.rpartition(" ") for line in lines)}


def test_metrics_count_what_happened_and_health_needs_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, store = load("coffee"), InMemoryStore()
    study = Study.of(problem, "watched", strategy="paper")
    client: Any = Client(make_app(Sessions(study, problem, store), problem))
    page = begin(client)
    for _ in range(3):
        turn = turn_of(client.get(page).text)
        assert client.post(f"{page}/answer", data={"turn": turn, "answer": "left"}).status_code == 303
    assert client.post(f"{page}/answer", data={"turn": "x", "answer": "left"}).status_code == 422
    found = client.get(f"/admin/{study.admin}/metrics")
    assert found.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert page.split("/")[-1] not in found.text and study.admin not in found.text
    counted = amounts(found.text)
    assert counted["tradeoff_answers_total"] == 3 and counted["tradeoff_errors_total"] == 0
    assert counted['tradeoff_requests_total{kind="answer",status="303"}'] == 3
    assert counted['tradeoff_requests_total{kind="answer",status="422"}'] == 1
    assert counted["tradeoff_wait_seconds_count"] == counted['tradeoff_wait_seconds_bucket{le="+Inf"}'] == 8
    assert counted["tradeoff_memory_bytes"] > 1e6
    assert client.get("/admin/guessed/metrics").status_code == 404
    assert client.get("/metrics").status_code == 404
    assert client.get("/healthz").text == "ok\n"

    def broken(*_: object) -> list[str]:
        raise StoreError("gone")

    monkeypatch.setattr(store, "names", broken)
    assert client.get("/healthz").status_code == 503
    assert client.get("/health").status_code == 200
    assert amounts(client.get(f"/admin/{study.admin}/metrics").text)["tradeoff_errors_total"] == 1
