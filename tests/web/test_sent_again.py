"""A request that is sent again changes nothing: also after a restart, or to another server."""

from __future__ import annotations

import asyncio
import re
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.processes import PATIENCE
from tests.studies.test_service import says, service_of
from tests.studies.test_session import COFFEE, distinct
from tests.web.servers import AppClient, application_loop, begin, turn_of
from tests.web.test_api import valid
from tradeoff.apps.web.app import make_app
from tradeoff.log import ACTIONS, read_log
from tradeoff.model import SKIP
from tradeoff.stores import Store, open_store
from tradeoff.stores.memory import InMemoryStore
from tradeoff.studies import Study
from tradeoff.studies import compute as compute_module
from tradeoff.studies.service import Context, StudyService
from tradeoff.studies.session import MOST_STATEMENTS

KEY = "3f0c4d1e-6a7b-4c8d-9e0f-112233445566"


class Servers:
    """Servers of one study and store; each ``client`` is that of a new one, which knows only what is stored."""

    def __init__(self, store: Store, **given: Any) -> None:
        self.store = store
        self.study = Study.of(COFFEE, "tasting", **{"settings": {"questions": "pairs"}, "checks": False, **given})
        self.study.save(store, COFFEE)

    @property
    def service(self) -> StudyService:
        return service_of(self.study, self.store)

    @property
    def client(self) -> Any:
        return AppClient(make_app(self.service))

    def actions(self) -> list[str]:
        logs = self.store.logs("tasting").values()
        return [event["event"] for log in logs for event in log if event["event"] in ACTIONS]


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Servers]:
    if request.param == "memory":
        yield Servers(InMemoryStore())
        return
    sqlite = f"sqlite:///{tmp_path}/a.db"
    address = sqlite if request.param == "sqlite" else request.getfixturevalue("postgresql_address")
    with open_store(address) as store:
        yield Servers(store)


def test_every_post_of_the_api_counts_once_whichever_server_gets_it_again(servers: Servers) -> None:
    def twice(path: str, sent: dict[str, Any], again: int, **headers: str) -> dict[str, Any]:
        """Send a request to a server, and the same one to another that was started since then."""
        before = len(servers.actions())
        first = servers.client.post(path, json=sent, headers=headers)
        assert first.status_code in (200, 201), first.text
        after = servers.actions()
        second = servers.client.post(path, json=sent, headers=headers)
        assert second.status_code == again, second.text
        assert servers.actions() == after and len(after) <= before + 1
        if again != 409:
            assert second.json() == first.json()
        return first.json()

    state = twice("/api/interviews", {}, 201, **{"Idempotency-Key": KEY})
    assert len(servers.store.names("tasting")) == 1
    valid("BegunData", state)
    here = f"/api/interviews/{state['id']}"
    state = twice(f"{here}/answers", {"turn": state["turn"], "reply": {"best": 1}}, 409)
    state = twice(f"{here}/answers", {"turn": state["turn"], "reply": "skip"}, 409)
    state = twice(f"{here}/statements", {"text": "price > aroma"}, 200)
    state = twice(f"{here}/statements", {"text": "aroma > crema", "turn": state["turn"]}, 200)
    state = twice(f"{here}/undo", {"turn": state["turn"]}, 409)
    state = twice(f"{here}/undo", {"number": 1}, 409)
    assert servers.actions() == ["answer", "answer", "statement", "statement", "undo", "undo"]
    again = servers.client.post(
        "/api/interviews", headers={"idempotency-key": f'"{KEY}"'}
    )  # quoted, as the RFC writes it
    assert again.json() == {"id": here.split("/")[-1], **state}  # where it is now


def test_keys_of_beginnings(servers: Servers) -> None:
    keys = [KEY, KEY.replace("-", ""), KEY[:22], KEY, None, None]
    begun = [
        servers.client.post("/api/interviews", headers={} if key is None else {"idempotency-key": key}) for key in keys
    ]
    ids = [reply.json()["id"] for reply in begun]
    assert ids[0] == ids[3] and len(set(ids)) == 5
    assert all(re.fullmatch(r"[\w-]{22}", one) and KEY[:22] not in one for one in ids)
    for wrong in ("", "1", KEY[:21], "x" * 129, "a b" * 10, "../" * 10):
        refused = servers.client.post("/api/interviews", headers={"idempotency-key": wrong})
        assert refused.status_code == 422 and "Idempotency-Key" in refused.json()["error"]
    assert len(servers.store.names("tasting")) == 5


def test_the_forms_of_the_pages_count_once(servers: Servers) -> None:
    def fields(page: str) -> dict[str, str]:
        return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))

    sent = fields(servers.client.get("/").text)
    assert sent != fields(servers.client.get("/").text)  # everybody gets an interview of their own
    pages = [servers.client.post("/start", data=sent).headers["location"] for _ in range(2)]
    page = pages[0]
    assert pages == [page] * 2 and len(servers.store.names("tasting")) == 1
    for _ in range(2):
        servers.client.post(f"{page}/answer", data={"turn": "1", "best": "1"})
    turn = turn_of(servers.client.get(page).text)
    assert turn == 2
    for _ in range(2):
        assert servers.client.post(f"{page}/undo", data={"turn": turn}).status_code == 303
    assert servers.client.post(f"{page}/undo").status_code == 422
    assert servers.actions() == ["answer", "undo"]
    other = servers.client.post("/start", data=sent).headers["location"]  # "back", and somebody else begins
    assert other != page and len(servers.store.names("tasting")) == 2


def test_links_are_made_once_for_each_page_of_the_researcher(servers: Servers) -> None:
    admin = f"/admin/{servers.study.admin}"
    for number in (1, 2):
        key = re.search(r'name="key" value="(.+?)"', servers.client.get(admin).text)
        assert key is not None
        for _ in range(2):
            servers.client.post(f"{admin}/links", data={"count": "3", "key": key.group(1)})
        assert len(servers.store.names("tasting")) == 3 * number


def test_the_api_refuses_more_statements_in_words() -> None:
    servers = Servers(InMemoryStore())
    client = servers.client
    token = client.post("/api/interviews").json()["id"]
    service = servers.service

    async def state() -> None:
        for text in distinct(MOST_STATEMENTS):
            await service.add_statement(token, text)

    asyncio.run(state())
    for text, status in (("aroma > crema", 409), (distinct(1)[0], 200)):
        done = servers.client.post(f"/api/interviews/{token}/statements", json={"text": text})
        assert done.status_code == status, done.text
    assert len(servers.actions()) == MOST_STATEMENTS


def test_a_statement_from_an_old_window_is_refused() -> None:
    servers = Servers(InMemoryStore())
    here = f"/api/interviews/{servers.client.post('/api/interviews').json()['id']}"
    servers.client.post(f"{here}/answers", json={"turn": 1, "reply": {"best": 1}})
    late = servers.client.post(f"{here}/statements", json={"text": "price > aroma", "turn": 1})
    assert late.status_code == 409 and servers.actions() == ["answer"]


@pytest.mark.parametrize(("turn", "status"), [({}, 200), ({"turn": 1}, 409)])
def test_a_statement_that_meets_another_tabs_answer_is_recorded_after_it(turn: dict[str, int], status: int) -> None:
    """Of two processes the other writes first."""

    class Shared(InMemoryStore):
        shared = True
        other: StudyService | None = None

        def append(self, folder: str, name: str, *given: Any, **named: Any) -> None:
            other, self.other = self.other, None
            if other is not None:
                asyncio.run(other.answer(name, 1, says(SKIP)))
            super().append(folder, name, *given, **named)

    store = Shared()
    servers = Servers(store)
    token = servers.client.post("/api/interviews").json()["id"]
    store.other = servers.service
    sent = servers.client.post(f"/api/interviews/{token}/statements", json={"text": "price > aroma", **turn})
    assert sent.status_code == status
    assert servers.actions() == ["answer", *["statement"] * (status == 200)]


@contextmanager
def occupied(service: StudyService) -> Iterator[None]:
    """Keep the only worker of a service busy."""
    entered, free = threading.Event(), threading.Event()

    def hold(context: Context) -> None:
        entered.set()
        assert free.wait(PATIENCE)

    holding = asyncio.run_coroutine_threadsafe(service.compute.get("hold", hold), application_loop())
    assert entered.wait(PATIENCE)
    try:
        yield
    finally:
        free.set()
        holding.result(PATIENCE)


def test_a_busy_server_says_so_and_serves_what_needs_no_computing(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Servers(InMemoryStore()).service
    client: Any = AppClient(make_app(service))
    ann, bob = begin(client), begin(client)
    token = bob.rpartition("/")[2]
    page, result = client.get(ann), client.get(f"{ann}/result")
    assert page.status_code == result.status_code == 200
    with occupied(service), monkeypatch.context() as patched:
        patched.setattr(compute_module, "MAX_WAITING", 0)
        assert client.get("/healthz").status_code == 200
        assert client.get(ann).text == page.text  # drawn before
        assert client.get(f"{ann}/result").text == result.text
        assert len(read_log(client.get(f"{bob}/log").text)) == 2
        assert client.post(f"{ann}/answer", data={"turn": "1", "best": "1"}).status_code == 303
        sent = client.post(f"/api/interviews/{token}/answers", json={"turn": 1, "reply": "equal"})
        for here in (ann, bob):  # both are recorded, though nothing was computed from them
            assert read_log(client.get(f"{here}/log").text)[-1]["event"] == "answer"
        for busy in (client.get(ann), sent, client.post("/start"), client.get(f"{bob}/result")):
            assert busy.status_code == 503 and int(busy.headers["retry-after"]) > 0 and "safe" in busy.text
    assert client.get(ann).status_code == 200
    assert client.get(f"/api/interviews/{token}/question").json()["turn"] == 2


def test_a_request_that_takes_too_long_is_told_to_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Servers(InMemoryStore()).service
    client: Any = AppClient(make_app(service))
    page = begin(client)
    paths = (page, f"{page}/result", f"/api/interviews/{page.rpartition('/')[2]}/question")
    client.post(f"{page}/answer", data={"turn": "1", "best": "1"})
    with occupied(service), monkeypatch.context() as patched:
        patched.setattr(compute_module, "REQUEST_TIMEOUT", 0.01)
        for path in paths:
            refused = client.get(path)
            assert refused.status_code == 503 and int(refused.headers["retry-after"]) > 0 and "safe" in refused.text
    assert [client.get(path).status_code for path in paths] == [200] * 3


def test_a_new_id_is_not_found_by_its_key_alone() -> None:
    one, other = Servers(InMemoryStore()), Servers(InMemoryStore())
    assert one.study.token_of("begin", KEY) != other.study.token_of("begin", KEY)  # each study has its secret
    assert one.study.token_of("begin", KEY) != one.study.token_of("begin", str(uuid.UUID(int=1)))
