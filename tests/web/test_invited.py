"""Looking at a link begins nothing: mail scanners, link previews and the researcher look at links, too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.studies.test_service import new_service
from tests.studies.test_session import COFFEE
from tests.web.servers import AppClient
from tests.web.test_api import valid
from tradeoff.apps.web.app import make_app
from tradeoff.log import SteadyClock
from tradeoff.studies.export import answer_rows, participant_rows
from tradeoff.studies.service import StudyService

READING = ("/i/{}", "/i/{}/result", "/i/{}/log", "/i/{}/report", "/api/interviews/{}/question",
           "/api/interviews/{}/recommendation", "/api/interviews/{}/ranking")  # fmt: skip


def study() -> tuple[Any, StudyService]:
    service = new_service(open=False, checks=False)
    return AppClient(make_app(service)), service


@pytest.mark.parametrize("method", ["get", "head"])
def test_nothing_is_recorded_before_somebody_presses_start(method: str) -> None:
    client, service = study()
    token = service.invite()
    for path in READING:
        reply = getattr(client, method)(path.format(token))
        assert reply.status_code in (200, 303, 409), path
    [row] = participant_rows(COFFEE, service.store.logs("tasting"))
    assert row["begun"] is None and len(service.store.read("tasting", token)) == 1
    for path in READING:
        assert getattr(client, method)(path.format("a" * 22)).status_code == 404


@pytest.mark.parametrize("begin", ["/i/{}/start", "/api/interviews/{}/begin"])
def test_time_counts_from_start(begin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2026, 1, 31, tzinfo=UTC)
    monkeypatch.setattr(SteadyClock, "after", lambda clock, last: now)
    client, service = study()
    token = service.invite()
    page = f"/i/{token}"
    shown = client.get(page).text
    assert f'action="{page}/start"' in shown and 'name="turn"' not in shown
    assert client.get(f"{page}/result").headers["location"] == page
    refused = client.get(f"/api/interviews/{token}/question")
    assert refused.status_code == 409 and "/begin" in refused.json()["error"]
    now += timedelta(days=3)
    for _ in range(2):  # sent again
        assert client.post(begin.format(token)).status_code in (200, 303)
    assert 'name="turn"' in client.get(page).text
    valid("StateData", client.get(f"/api/interviews/{token}/question").json())
    now += timedelta(seconds=7)
    client.post(f"{page}/answer", data={"turn": "1", "best": "1"})
    logs = service.store.logs("tasting")
    [row], [participant] = answer_rows(COFFEE, logs), participant_rows(COFFEE, logs)
    assert row["seconds"] == 7 and participant["begun"].startswith("2026-02-03")


def test_head_records_nothing_in_the_middle_of_an_interview() -> None:
    client, service = study()
    token = service.invite()
    client.post(f"/i/{token}/start")
    client.post(f"/i/{token}/answer", data={"turn": "1", "reply": "skip"})  # the next question has not been asked
    before = service.store.read("tasting", token)
    for path in READING:
        reply = client.head(path.format(token))
        assert reply.status_code == 200 and not reply.content, path
    assert service.store.read("tasting", token) == before


@pytest.mark.parametrize("way", ["page", "api"])
def test_an_interview_that_has_not_begun_takes_no_answer(way: str) -> None:
    client, service = study()
    token = service.invite()
    if way == "page":
        done = client.post(f"/i/{token}/answer", data={"turn": "1", "best": "1"})
        assert done.status_code == 303
    else:
        done = client.post(f"/api/interviews/{token}/answers", json={"turn": 1, "reply": {"best": 1}})
        assert done.status_code == 409
    assert len(service.store.read("tasting", token)) == 1
    assert client.post("/start").status_code == client.post("/api/interviews").status_code == 403
