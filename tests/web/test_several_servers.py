"""Two servers that share only a PostgreSQL, as on two machines: participants can continue at either, at any moment."""

from __future__ import annotations

import random
import signal
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from tools.soak import actions_of

from tests import nginx, postgresql, processes
from tests.processes import until
from tests.web.servers import TOOL, Server, turn_of
from tradeoff.stores import open_store

STUDY = "walks"
REPLIES: list[Any] = [{"best": 1}, {"best": 2}, "equal", "skip"]


class Pair:
    """Two servers of one study, each with its own folder and port.

    Where nginx is installed, it stands in front of them.
    """

    def __init__(self, address: str, home: Path) -> None:
        self.address, self.home = address, home
        made = processes.run(
            [str(TOOL), "study", "create", STUDY, "dependent", "--strategy", "paper", "--store", address], cwd=home
        )
        assert made.returncode == 0, made.stderr
        self.ports = [processes.reserved_port(), processes.reserved_port()]
        self.servers: list[Server] = []
        for number in (0, 1):
            (home / str(number)).mkdir()
            self.servers.append(self.started(number))
        self.proxy: processes.Child | None = None
        if nginx.PROGRAM is not None:
            (home / "nginx").mkdir()
            self.proxy, self.front = nginx.started(home / "nginx", self.ports)

    def started(self, number: int) -> Server:
        words = ["study", "serve", STUDY, "--store", self.address, "--port", str(self.ports[number]), "--drain", "600"]
        words += ["--allowed-host", nginx.SITE]
        server = Server(self.home / str(number), *words)
        server.address = f"http://127.0.0.1:{self.ports[number]}"  # it names the site
        return server

    def restart(self, number: int) -> None:
        """Start a server that is gone, and return once nginx may come back to it."""
        self.servers[number] = self.started(number)
        if self.proxy is not None:
            time.sleep(nginx.AWAY + 1)  # it counts whole seconds

    def call(self, number: int, method: str, path: str, **sent: Any) -> httpx.Response:
        with self.servers[number].client() as client:
            return client.request(method, path, **sent)

    def anywhere(self, rng: random.Random, method: str, path: str, **given: Any) -> httpx.Response:
        """Ask nginx, which sends nobody's request to a server that is gone; without it, ask one, and else the other."""
        if self.proxy is not None:
            host = {"host": nginx.SITE, "origin": f"https://{nginx.SITE}"}
            return httpx.request(method, f"{self.front}{path}", headers=host, timeout=processes.PATIENCE, **given)
        while True:
            with suppress(httpx.TransportError):
                return self.call(rng.randrange(2), method, path, **given)

    def logs(self) -> dict[str, list[dict[str, Any]]]:
        with open_store(self.address, write=False) as store:
            return store.logs(STUDY)


@pytest.fixture(scope="module")
def pair(postgresql_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = Pair(
        postgresql.new_database(postgresql_server, f"test_{uuid.uuid4().hex}"), tmp_path_factory.mktemp("servers")
    )
    yield made
    for process in (*(server.process for server in made.servers), made.proxy):
        if process is not None:
            process.end()


def test_an_interview_goes_on_at_the_other_server_and_of_two_answers_one_wins(pair: Pair) -> None:
    begun = pair.call(0, "POST", "/api/interviews").json()
    token, here = begun["id"], f"/api/interviews/{begun['id']}"
    won: list[Any] = []
    for turn in range(1, 6):
        states = [pair.call(number, "GET", f"{here}/question").json() for number in (turn % 2, (turn + 1) % 2)]
        assert states[0] == states[1] and states[0]["turn"] == turn and not states[0]["finished"]
        done: list[tuple[int, Any]] = []
        ready = threading.Barrier(2)

        def tab(number: int, turn: int = turn, ready: threading.Barrier = ready, done: Any = done) -> None:
            said = REPLIES[number]
            with pair.servers[number].client() as client:
                client.get("/healthz")  # connected
                ready.wait()
                sent = client.post(f"{here}/answers", json={"turn": turn, "reply": said})
            done.append((sent.status_code, said))

        tabs = [threading.Thread(target=tab, args=(number,)) for number in (0, 1)]
        for one in tabs:
            one.start()
        for one in tabs:
            one.join()
        assert sorted(status for status, _ in done) == [200, 409], done  # whoever is late is told
        won += [said for status, said in done if status == 200]
    assert actions_of(pair.logs()[token]) == won
    page = f"/i/{token}"
    assert turn_of(pair.call(0, "GET", page).text) == turn_of(pair.call(1, "GET", page).text) == 6
    late = pair.call(1, "POST", f"{page}/answer", data={"turn": "5", "best": "1"})
    assert late.headers["location"].endswith("notice=answered")


def test_a_kill_and_rolling_restarts_lose_nothing_that_was_acknowledged(pair: Pair) -> None:
    sent: dict[str, dict[int, Any]] = {}  # to be found in the store, in this order
    acknowledged: dict[str, set[int]] = {}
    over, failures = threading.Event(), []

    def person(seed: int) -> None:
        rng = random.Random(seed)
        try:
            while not over.is_set():
                token = pair.anywhere(rng, "POST", "/api/interviews").json()["id"]
                said, heard = sent.setdefault(token, {}), acknowledged.setdefault(token, set())
                here = f"/api/interviews/{token}"
                state = pair.anywhere(rng, "GET", f"{here}/question").json()
                while not state["finished"] and not over.is_set():
                    turn = state["turn"]
                    reply = said.setdefault(turn, rng.choice(REPLIES))
                    done = pair.anywhere(rng, "POST", f"{here}/answers", json={"turn": turn, "reply": reply})
                    assert done.status_code in (200, 409), done.text  # 409: it was saved, but nobody heard
                    if done.status_code == 200:
                        heard.add(turn)
                    state = pair.anywhere(rng, "GET", f"{here}/question").json()
        except BaseException as error:
            failures.append(error)

    def answered(more: int) -> None:
        many = sum(map(len, acknowledged.values())) + more
        until(lambda: sum(map(len, acknowledged.values())) >= many or failures)

    people = [threading.Thread(target=person, args=(seed,)) for seed in range(3)]
    for one in people:
        one.start()
    try:
        answered(10)
        pair.servers[0].kill()
        answered(10)
        pair.restart(0)
        for number in (1, 0):
            answered(10)
            leaving = pair.servers[number]
            leaving.process.send_signal(signal.SIGTERM)
            reply = until(lambda number=number: not_ready(pair, number), "the health page of a server that leaves")
            assert reply.text == "shutting down\n"
            assert pair.call(number, "GET", "/").status_code == 200  # it goes on until
            leaving.process.send_signal(signal.SIGTERM)  # it is told again
            assert leaving.process.wait(processes.PATIENCE) == 0
            assert "Everything is saved" in leaving.output.read_text(encoding="utf-8")
            pair.restart(number)
    finally:
        over.set()
        for one in people:
            one.join()
    assert not failures
    logs = pair.logs()
    assert sum(map(len, acknowledged.values())) >= 40
    for token, said in sent.items():
        found = actions_of(logs[token])
        assert found == [said[turn] for turn in range(1, len(found) + 1)]  # each once, as it was sent
        assert len(found) >= max(acknowledged[token], default=0)
    assert all("Traceback" not in path.read_text(encoding="utf-8") for path in pair.home.glob("*/server-*.txt"))


@pytest.mark.skipif(nginx.PROGRAM is None, reason="nginx is not installed")
def test_nginx_logs_no_link(pair: Pair) -> None:
    """Neither of requests that were answered, nor of those that no server answers."""
    rng = random.Random(0)
    token = pair.anywhere(rng, "POST", "/api/interviews").json()["id"]
    paths = [
        f"/i/{token}",
        f"/i/{token}/result",
        f"/api/interviews/{token}/question",
        f"/i/{'x' * 9000}",
        f"/i/{token}%00",
    ]
    for path in paths:
        pair.anywhere(rng, "GET", path)
    for server in pair.servers:
        server.kill()
    assert {pair.anywhere(rng, method, path).status_code for method in ("GET", "POST") for path in paths} <= {
        400,
        414,
        502,
    }
    assert pair.proxy is not None
    pair.proxy.end()
    logs = {
        path.name: path.read_text(encoding="utf-8")
        for path in (pair.home / "nginx").glob("*.*")
        if path.suffix != ".conf"
    }
    assert " 200 " in logs["study.log"] and " 502 " in logs["study.log"]
    assert not [name for name, text in logs.items() if token in text or "/i/" in text or "/api/" in text]


def not_ready(pair: Pair, number: int) -> httpx.Response | None:
    reply = pair.call(number, "GET", "/healthz")
    return reply if reply.status_code == 503 else None
