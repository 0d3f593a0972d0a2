"""Every fault that must be survived, injected for real into the real server."""

from __future__ import annotations

import contextlib
import io
import json
import random
import resource
import socket
import sqlite3
import subprocess
import threading
import time
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from tools.soak import actions_of

from tests import processes
from tests.web.servers import TOOL, Server, begin, turn_of
from tradeoff import Catalogue, Interview, Objective, load, save
from tradeoff.interview import read_log
from tradeoff.presentation.sentences import CONTRADICTION
from tradeoff.stores import open_store
from tradeoff.studies import Study


def events_in(folder: Path, token: str) -> list[dict[str, Any]]:
    with open_store(f"sqlite:///{folder / 'tradeoff.db'}", write=False) as store:
        (name,) = Study.names(store)
        return store.read(name, token)


# --- killed, restarted, full, damaged --------------------------------------------------------------------------------


def test_kill_9_in_a_loop_loses_no_acknowledged_answer(tmp_path: Path) -> None:
    """People answer while the server is killed again and again; what was acknowledged is there, in order, every time."""
    acknowledged: dict[str, list[tuple[int, Any]]] = {}
    current: list[Server] = []
    stop = threading.Event()

    def person(seed: int) -> None:
        rng = random.Random(seed)
        token, turn = "", 1
        while not stop.is_set():
            try:
                with httpx.Client(base_url=current[0].address, timeout=processes.PATIENCE) as client:
                    if not token:
                        done = client.post("/api/interviews")
                        token = done.json()["id"]
                        acknowledged[token] = []
                    while not stop.is_set():
                        found = client.get(f"/api/interviews/{token}/question").json()
                        if found["finished"]:
                            token = ""  # and somebody else comes
                            break
                        turn = found["turn"]
                        said = rng.choice([{"best": 1}, {"best": 2}, "equal", "skip"])
                        sent = client.post(f"/api/interviews/{token}/answers", json={"turn": turn, "reply": said})
                        if sent.status_code == 200:
                            acknowledged[token].append((turn, said))
            except (httpx.HTTPError, KeyError, ValueError, IndexError):
                time.sleep(0.05)  # the server is gone; nothing was acknowledged

    def taken() -> int:
        return sum(len(said) for said in list(acknowledged.values()))

    def until_taken(count: int) -> None:
        processes.until(lambda: taken() >= count, "answers")

    rng = random.Random(7)
    words = ("serve", "coffee", "--strategy", "paper", "--port", str(processes.reserved_port()))
    threads = [threading.Thread(target=person, args=(seed,)) for seed in range(4)]
    try:
        for attempt in range(6):
            with Server(tmp_path, *words) as server:
                current[:] = [server]
                if attempt == 0:
                    for thread in threads:
                        thread.start()
                until_taken(taken() + rng.randrange(8, 40))
                server.kill()
    finally:
        stop.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join()

    problem = load("coffee")
    for token, said in acknowledged.items():
        events = events_in(tmp_path, token)
        kept = actions_of(events)
        assert 0 <= len(kept) - len(said) <= 6  # taken, but the server died before it could say so
        for turn, reply in said:
            assert kept[turn - 1] == reply
        Interview.resume(problem, events)  # and it goes on from there
    with closing(sqlite3.connect(tmp_path / "tradeoff.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_after_a_restart_links_are_valid_at_the_same_question(tmp_path: Path) -> None:
    with Server(tmp_path, "serve", "coffee") as server, server.client() as client:
        here = begin(client)
        client.post(f"{here}/answer", data={"turn": "1", "best": "1"})
        before, admin = client.get(here).text, server.admin
        assert server.stop() == 0
    with Server(tmp_path, "serve", "coffee") as server, server.client() as client:
        assert client.get(here).text == before
        assert server.admin == admin and client.get(admin).status_code == 200


def test_a_full_disk_is_said_and_nothing_is_half_written(tmp_path: Path) -> None:
    with Server(tmp_path, "serve", "coffee", "--strategy", "paper") as server, server.client() as client:
        here = begin(client)
        assert client.post(f"{here}/answer", data={"turn": "1", "best": "1"}).status_code == 303
        assert turn_of(client.get(here).text) == 2
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        refused = client.post(f"{here}/answer", data={"turn": "2", "best": "2"})
        assert refused.status_code == 503 and "not have been saved. Try again" in refused.text
        token = here.rpartition("/")[2]
        api = client.post(f"/api/interviews/{token}/answers", json={"turn": 2, "reply": "equal"})
        assert api.status_code == 503 and "not have been saved" in api.json()["error"]
        assert turn_of(client.get(here).text) == 2  # still the question that was not answered
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert client.post(f"{here}/answer", data={"turn": "2", "reply": "equal"}).status_code == 303
    assert actions_of(events_in(tmp_path, token)) == [{"best": 1}, "equal"]
    with closing(sqlite3.connect(tmp_path / "tradeoff.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("damage", ["text", "head", "middle", "other tables", "newer"])
def test_a_damaged_database_is_named_and_never_overwritten(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "tradeoff.db"
    if damage == "other tables":
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TABLE logs (mine TEXT)")
    elif damage == "text":
        path.write_text("these are my notes, not a database\n" * 40)
    else:
        with open_store(f"sqlite:///{path}") as store:
            for i in range(300):
                store.create("people", f"p{i}", [{"event": "header", "text": "x" * 500}])
        if damage == "newer":
            with closing(sqlite3.connect(path)) as connection, connection:
                connection.execute("UPDATE tradeoff_version SET version_num = '9999'")
        else:
            data = bytearray(path.read_bytes())
            begin_at = 16 if damage == "head" else len(data) // 2
            data[begin_at : begin_at + 4096] = bytes(random.Random(1).randbytes(4096))
            path.write_bytes(data)
    before = path.read_bytes()
    done = processes.run([str(TOOL), "serve", "coffee", "--port", "0", "--no-browser"], cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    assert "tradeoff.db" in done.stderr and len(done.stderr.splitlines()) == 1
    assert path.read_bytes() == before


def test_one_file_serves_one_server(tmp_path: Path) -> None:
    def refused(*words: str) -> subprocess.CompletedProcess[str]:
        return processes.run([str(TOOL), "serve", "coffee", "--no-browser", *words], cwd=tmp_path)

    with Server(tmp_path, "serve", "coffee", "--strategy", "paper") as server:
        second = refused("--port", "0")
        assert second.returncode == 4 and "in use" in second.stderr
        taken = refused("--port", str(server.port), "--store", "sqlite:///other.db")
        assert taken.returncode == 2 and "cannot listen" in taken.stderr
        listed = processes.run([str(TOOL), "study", "list", "--json"], cwd=tmp_path, check=True)
        assert len(json.loads(listed.stdout)) == 1  # looking is always possible
    outside = refused("--host", "0.0.0.0", "--port", "0")
    assert outside.returncode == 2 and "--allowed-host" in outside.stderr


# --- people and their windows ----------------------------------------------------------------------------------------


def test_a_double_submit_counts_once_and_says_so(coffee: Server) -> None:
    with coffee.client() as client:
        here = begin(client)
        statuses = []

        def submit(best: str) -> None:
            with coffee.client() as own:
                statuses.append(own.post(f"{here}/answer", data={"turn": "1", "best": best}).headers["location"])

        threads = [threading.Thread(target=submit, args=(best,)) for best in ("1", "1", "2", "1")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(statuses) == [here, *[f"{here}?notice=answered"] * 3]
        page = client.get(f"{here}?notice=answered").text
        assert turn_of(page) == 2 and "already been answered" in page and "undo" in page.lower()


def test_an_old_tab_does_not_answer_another_question(coffee: Server) -> None:
    with coffee.client() as client:
        here = begin(client)
        client.post(f"{here}/answer", data={"turn": "1", "best": "1"})
        client.post(f"{here}/undo", data={"turn": "2"})
        assert turn_of(client.get(here).text) == 3
        for stale in ("1", "2"):
            assert "notice" in client.post(f"{here}/answer", data={"turn": stale, "best": "1"}).headers["location"]
        assert turn_of(client.get(here).text) == 3
        nothing = client.post(f"{here}/undo", data={"turn": "3"})
        assert "notice=nothing" in nothing.headers["location"]


def answer_at_random(client: httpx.Client, rng: random.Random) -> str:
    """Return the path of somebody who has answered every question without reading it."""
    state = client.post("/api/interviews").json()
    here = f"/api/interviews/{state['id']}"
    while not state["finished"]:
        sent = {"turn": state["turn"], "reply": rng.choice([{"best": 1}, {"best": 2}, "equal"])}
        state = client.post(f"{here}/answers", json=sent).raise_for_status().json()
    return here.replace("/api/interviews", "/i")


def conflicts(client: httpx.Client, here: str) -> list[int]:
    """Return the numbers of the answers that contradict each other, by the library."""
    interview = Interview.resume(load("coffee"), read_log(client.get(f"{here}/log").text))
    return [answer.number for answer in interview.conflicts()]


def test_answers_that_contradict_each_other_are_shown_and_can_be_undone(tmp_path: Path) -> None:
    rng = random.Random(0)
    with (
        Server(tmp_path, "serve", "coffee", "--strategy", "certified", "--questions", "pairs") as server,
        server.client() as client,
    ):
        people = (answer_at_random(client, rng) for _ in range(50))
        here = next(here for here in people if len(conflicts(client, here)) > 1)
        assert client.get(here).headers["location"] == f"{here}/result"  # nothing more can be learned like that
        undone: set[int] = set()
        while len(conflict := conflicts(client, here)) > 1:  # without one of them, others may still conflict
            result = client.get(f"{here}/result").text
            assert CONTRADICTION in result
            numbers = {int(part.partition('"')[0]) for part in result.split('name="number" value="')[1:]}
            assert set(conflict) <= numbers and not undone & numbers
            assert client.post(f"{here}/undo", data={"number": str(conflict[0])}).status_code == 303
            undone.add(conflict[0])
        assert undone and CONTRADICTION not in client.get(f"{here}/result").text


def test_a_guessed_link_and_another_persons_look_the_same(coffee: Server) -> None:
    with coffee.client() as client:
        begin(client)
        pages = [client.get(path) for path in (f"/i/{'a' * 22}", "/i/1", f"/i/{'b' * 22}/result", "/nowhere", "/admin/x",
                                               f"/admin/{'c' * 22}", "/i/..%2f..%2fetc")]  # fmt: skip
        assert {page.status_code for page in pages} == {404} and len({page.text for page in pages}) == 1
        gone = [client.get(f"/api/interviews/{token}/question") for token in ("x", "y" * 22)]
        assert {page.status_code for page in gone} == {404} and len({page.text for page in gone}) == 1


HOSTILE = [
    "<script>alert(1)</script>",
    "=cmd|' /C calc'!A1",
    "\x1b[31mred\x1b[0m",
    "a\u202eb",
    '"><img src=x onerror=1>',
    "x" * 5000,
]


def test_hostile_names_are_inert_everywhere(tmp_path: Path) -> None:
    names = [name.strip() for name in HOSTILE]
    problem = Catalogue(
        [[float(i), float(len(names) - i)] for i in range(len(names))],
        [Objective("<b>price</b>", "=EUR", "min"), Objective('"><script>quality</script>', "<i>points</i>")],
        names,
        labels={"<u>label</u>": [f"<s>{i}</s>" for i in range(len(names))]},
    )
    save(problem, tmp_path / "hostile.json")
    with Server(tmp_path, "serve", "hostile.json", "--strategy", "paper") as server, server.client() as client:
        here = begin(client)
        texts = [client.get("/").text]
        for _ in range(40):
            page = client.get(here)
            if page.status_code == 303:
                break
            texts.append(page.text)
            client.post(f"{here}/answer", data={"turn": str(turn_of(page.text)), "best": "1"})
        texts += [client.get(f"{here}/result").text, client.get(server.admin).text]
        for text in texts:
            lowered = text.lower()
            assert "<script>" not in lowered and "onerror=1>" not in lowered and "<b>price" not in lowered
            assert "\x1b" not in text and "\u202e" not in text
        export = client.get(f"{server.admin}/export.zip")
    with zipfile.ZipFile(io.BytesIO(export.content)) as archive:
        archive.extractall(tmp_path / "x")
    for path in (tmp_path / "x").glob("*.csv"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert not line.startswith(("=", "+", "@"))


def test_everybody_can_take_their_own_log_away(coffee: Server) -> None:
    with coffee.client() as client:
        here = begin(client)
        client.post(f"{here}/answer", data={"turn": "1", "best": "1"})
        done = client.get(f"{here}/log")
        assert "attachment" in done.headers["content-disposition"]
        interview = Interview.resume(load("coffee"), read_log(done.text))
        assert len(interview.answers) == 1


# --- the network -----------------------------------------------------------------------------------------------------


def test_large_bodies_are_refused(coffee: Server) -> None:
    with coffee.client() as client:
        here = begin(client)
        for path in (f"{here}/answer", "/start", "/api/interviews"):
            assert client.post(path, content=b"x" * 100_000).status_code == 413
            assert client.post(path, content=(b"x" * 10_000 for _ in range(50))).status_code == 413  # no length given


def test_slow_clients_are_dropped_and_others_are_served(coffee: Server) -> None:
    beginnings = [
        b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
        f"POST /start HTTP/1.1\r\nHost: 127.0.0.1:{coffee.port}\r\nContent-Length: 900\r\n\r\nab".encode(),
    ]  # fmt: skip
    slow = []
    for i in range(200):
        connection = socket.create_connection(("127.0.0.1", coffee.port), timeout=processes.PATIENCE)
        connection.sendall(beginnings[i % 4])
        slow.append(connection)
    with coffee.client() as client:
        for _ in range(5):
            assert client.get("/healthz").status_code == 200
    for connection in slow:
        connection.settimeout(120)  # far beyond the few seconds that they have
        with contextlib.suppress(ConnectionError):  # a reset is an end as well
            while connection.recv(4096):  # a reply may come, and then the end
                pass
        connection.close()


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"origin": "http://127.0.0.1:1"},
    ],
)
def test_other_sites_cannot_send_forms(coffee: Server, headers: dict[str, str]) -> None:
    with coffee.client() as client:
        here = begin(client)
        for path in ("/start", f"{here}/answer", f"{here}/undo", "/api/interviews"):
            assert client.post(path, data={"turn": "1", "best": "1"}, headers=headers).status_code == 403
        assert turn_of(client.get(here).text) == 1


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "127.0.0.1@evil", "[::1", "localhost:x"]
)
def test_other_names_of_this_server_are_refused(coffee: Server, host: str) -> None:
    with coffee.client() as client:
        for path in ("/", "/api/openapi.json"):
            assert client.get(path, headers={"host": host}).status_code == 400
        assert client.get("/", headers={"host": f"localhost:{coffee.port}"}).status_code == 200


NONSENSE: list[dict[str, str]] = [
    {},
    {"turn": "x", "best": "1"},
    {"turn": "1", "best": "x"},
    {"turn": "1", "best": "3"},
    {"turn": "1", "reply": "both"},
    {"turn": "9" * 50, "best": "1"},
]


@pytest.mark.parametrize("data", NONSENSE)
def test_nonsense_in_a_form_changes_nothing(coffee: Server, data: dict[str, str]) -> None:
    with coffee.client() as client:
        here = begin(client)
        assert client.post(f"{here}/answer", data=data).status_code == 422
        assert client.post(f"{here}/answer", content=b"\xff\xfe", headers={"content-type": "application/x-www-form-urlencoded"}
                           ).status_code in (400, 422)  # fmt: skip
        assert client.post(f"{here}/answer", content=b"{}", headers={"content-type": "text/plain"}).status_code == 415
        chosen_nothing = client.post(f"{here}/answer", data={"turn": "1"})
        assert chosen_nothing.headers["location"] == f"{here}?notice=choose"
        assert turn_of(client.get(here).text) == 1


def test_every_page_tells_the_browser_what_it_may_do(coffee: Server) -> None:
    with coffee.client() as client:
        here = begin(client)
        for path in ("/", here, f"{here}/result", "/nowhere", "/static/style.css", coffee.admin, "/api/openapi.json"):
            headers = client.get(path).headers
            assert "default-src 'self'" in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
            assert "unsafe" not in headers["content-security-policy"]
