"""The health page and the metrics: they count what happened, and are a secret."""

from __future__ import annotations

import asyncio
import re
from types import SimpleNamespace

import pytest

from tests.studies.test_service import new_service
from tests.web.servers import AppClient, begin, turn_of
from tradeoff.apps.web import health
from tradeoff.apps.web.app import make_app
from tradeoff.errors import StoreError
from tradeoff.stores.memory import InMemoryStore


def amounts(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r'[a-z_]+(\{([a-z]+="[^"]*",?)+\})? [0-9.e+-]+', line) for line in lines), text
    return {name: float(amount) for name, _, amount in (line.rpartition(" ") for line in lines)}


def test_metrics_count_what_happened_and_health_needs_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    store = InMemoryStore()
    service = new_service(store)
    study, client = service.study, AppClient(make_app(service))
    page = begin(client)
    for _ in range(3):
        turn = turn_of(client.get(page).text)
        assert client.post(f"{page}/answer", data={"turn": turn, "best": "1"}).status_code == 303
    assert client.post(f"{page}/answer", data={"turn": "x", "best": "1"}).status_code == 422
    found = client.get(f"/admin/{study.admin}/metrics")
    assert found.headers["content-type"].startswith("text/plain; version=")
    assert page.split("/")[-1] not in found.text and study.admin not in found.text
    counted = amounts(found.text)
    assert counted['tradeoff_requests_total{kind="answer",status="303"}'] == 3
    assert counted['tradeoff_requests_total{kind="answer",status="422"}'] == 1
    assert counted['tradeoff_requests_total{kind="page",status="200"}'] == 3
    assert counted["tradeoff_request_seconds_count"] == counted['tradeoff_request_seconds_bucket{le="+Inf"}'] == 8
    assert counted["tradeoff_waiting"] == counted["tradeoff_worker_restarts"] == 0
    assert counted["tradeoff_memory_bytes"] > 1e6
    assert client.get("/admin/guessed/metrics").status_code == 404
    assert client.get("/metrics").status_code == 404
    assert client.get("/healthz").text == "ok\nwaiting 0\nworkers 1\nrestarts 0\n"
    monkeypatch.setattr(health, "CHECK_AFTER", 0)

    def broken(*_: object) -> list[str]:
        raise StoreError("gone")

    monkeypatch.setattr(store, "names", broken)
    assert client.get("/healthz").status_code == 503
    assert client.get("/health").status_code == 404  # one page is enough
    failed = 'tradeoff_requests_total{kind="health",status="503"}'
    assert amounts(client.get(f"/admin/{study.admin}/metrics").text)[failed] == 1


def test_the_store_is_read_once_however_many_ask_how_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    now, reads = 0.0, []

    class Slow(InMemoryStore):
        broken = False

        def names(self, folder: str) -> list[str]:
            reads.append(now)
            if self.broken:
                raise StoreError("gone")
            return super().names(folder)

    store = Slow()
    monkeypatch.setattr(health, "time", SimpleNamespace(monotonic=lambda: now))

    async def run() -> None:
        nonlocal now
        check = health.StoreCheck(new_service(store))
        moments = [(0.0, False, True, 1), (0.9, True, True, 1), (1.0, True, False, 2), (2.5, False, True, 3)]
        for moment, broken, works, read in moments:
            now, store.broken = moment, broken
            assert set(await asyncio.gather(*(check.works() for _ in range(200)))) == {works}
            assert len(reads) == read

    asyncio.run(run())
