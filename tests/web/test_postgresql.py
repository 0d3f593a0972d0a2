"""Several processes on one PostgreSQL: whichever of them is asked, nothing is lost and nothing counts twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from tests import postgresql, processes
from tests.processes import until
from tests.web.servers import TOOL, Server, begin, turn_of
from tradeoff import Interview, load
from tradeoff.apps.cli.main import main
from tradeoff.stores import open_store
from tradeoff.studies import Study

pytestmark = pytest.mark.skipif(
    not Path("/proc/net/tcp").exists(), reason="processes are looked at as Linux shows them"
)

STUDY = "walks"
WORDS = ("dependent", "--strategy", "paper")


def tool(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return processes.run([str(TOOL), *words], cwd=folder)


def listeners(port: int) -> int:
    """Return how many sockets listen at a port of this machine."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    return sum(int(row[1].rpartition(":")[2], 16) == port and row[3] == "0A" for row in rows)


def workers(server: Server) -> list[int]:
    """Return the further processes that serve."""
    return [pid for pid in children(server.process.pid) if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def children(pid: int) -> list[int]:
    """Return the processes that a process has started, in whichever thread."""
    lists = [path.read_text(encoding="ascii") for path in Path(f"/proc/{pid}/task").glob("*/children")]
    return [int(one) for text in lists for one in text.split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def work_done(pid: int) -> int:
    """Return how long a process has worked, in ticks of the system."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def served(folder: Path, address: str, *more: str) -> Server:
    """Return a server with two processes, both of them ready."""
    words = ("study", "serve", STUDY, "--workers", "2", "--store", address, *more)
    server = Server(folder, *words)
    until(lambda: listeners(server.port) == 2 or server.process.poll() is not None, "the start of two processes")
    return server


def created(address: str, folder: Path) -> str:
    """Return the address of a database that has the study now."""
    made = tool("study", "create", STUDY, *WORDS, "--store", address, folder=folder)
    assert made.returncode == 0, made.stderr
    return address


@pytest.fixture(scope="module")
def study(postgresql_server: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    address = postgresql.new_database(postgresql_server, f"test_{uuid.uuid4().hex}")
    return created(address, tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def server(study: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that tests share, each with people of its own."""
    with served(tmp_path_factory.mktemp("server"), study) as running:
        yield running


def kept(address: str) -> dict[str, list[dict[str, Any]]]:
    with open_store(address, write=False) as store:
        return store.logs(STUDY)


def replies(events: list[dict[str, Any]]) -> list[str]:
    kinds = ("answer", "skip", "check-answer")
    return [event.get("answer", "skip") for event in events if event["event"] in kinds]


def together(*calls: Callable[[], None]) -> None:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# --- two processes, one person ---------------------------------------------------------------------------------------


def test_both_processes_serve_everybody_and_everything_is_kept_exactly_once(server: Server, study: str) -> None:
    acknowledged: dict[str, list[str]] = {}
    statuses: Counter[int] = Counter()
    (second,) = workers(server)
    before = [work_done(pid) for pid in (server.process.pid, second)]

    def asked(method: str, path: str, **sent: Any) -> dict[str, Any]:
        with server.client() as client:  # a new connection each time: the kernel chooses the process anew
            done = client.request(method, path, **sent)
        statuses[done.status_code] += 1
        assert done.status_code in (200, 201), done.text
        found: dict[str, Any] = done.json()
        return found

    def person(seed: int) -> None:
        rng = random.Random(seed)
        state = asked("POST", "/api/interviews")
        token, said = state["id"], []
        here = f"/api/interviews/{token}"
        while not state["finished"]:
            again = asked("GET", f"{here}/question")
            assert again == {key: value for key, value in state.items() if key != "id"}  # whoever is asked
            answer = rng.choice(["first", "second", "same", "skip"])
            state = asked("POST", f"{here}/answers", json={"turn": state["turn"], "answer": answer})
            said.append(answer)
        acknowledged[token] = said

    together(*(lambda seed=seed: person(seed) for seed in range(6)))  # type: ignore[misc]
    assert len(acknowledged) == 6 and set(statuses) == {200, 201}
    assert all(work_done(pid) > was for pid, was in zip((server.process.pid, second), before, strict=True))
    logs = kept(study)
    assert acknowledged.keys() <= logs.keys()
    problem = load("dependent")
    for token, said in acknowledged.items():
        assert replies(logs[token]) == said
        assert logs[token][-1]["event"] == "end" and Interview.resume(problem, logs[token]).finished
        assert sum(event["event"] == "end" for event in logs[token]) == 1


def test_what_is_sent_to_both_at_the_same_moment_counts_once(server: Server, study: str) -> None:
    with server.client() as client:
        token = client.post("/api/interviews").json()["id"]
    won: list[str] = []
    for turn in range(1, 9):
        with server.client() as client:
            if client.get(f"/api/interviews/{token}/question").json()["finished"]:  # which depends on who won
                break
        ready = threading.Barrier(6)
        done: list[tuple[int, str]] = []

        def submit(said: str, turn: int = turn, ready: threading.Barrier = ready, done: Any = done) -> None:
            with server.client() as own:
                own.get("/health")  # connected, to one of them
                ready.wait()
                sent = own.post(f"/api/interviews/{token}/answers", json={"turn": turn, "answer": said})
                done.append((sent.status_code, said))

        together(*(lambda said=said: submit(said) for said in ("first", "second", "same", "skip", "first", "second")))  # type: ignore[misc]
        assert sorted(status for status, _ in done) == [200, 409, 409, 409, 409, 409], done
        won += [said for status, said in done if status == 200]
    assert len(won) >= 3 and replies(kept(study)[token]) == won


def test_a_page_and_an_undo_are_seen_by_both_at_once(server: Server) -> None:
    with server.client() as client:
        here = begin(client)
    for step in range(1, 13):
        with server.client() as client:
            assert turn_of(client.get(here).text) == step
            path, sent = ("undo", {}) if step % 3 == 0 else ("answer", {"answer": "left"})
            done = client.post(f"{here}/{path}", data={"turn": str(step), **sent})
            assert "notice" not in done.headers["location"]  # without a notice that it came too late


def test_a_link_that_is_opened_twice_at_the_same_moment_opens_twice(server: Server, study: str) -> None:
    """The first question is asked when a link is opened: whoever comes second is shown the same one."""
    with server.client() as client:
        before = set(kept(study))
        assert client.post(f"{server.admin}/links", data={"count": "12"}).status_code == 303
    for token in kept(study).keys() - before:
        ready = threading.Barrier(4)
        shown: list[tuple[int, int]] = []

        def look(token: str = token, ready: threading.Barrier = ready, shown: Any = shown) -> None:
            with server.client() as own:
                own.get("/health")  # connected, to one of them
                ready.wait()
                page = own.get(f"/i/{token}")
                shown.append((page.status_code, turn_of(page.text) if page.status_code == 200 else 0))

        together(look, look, look, look)
        assert shown == [(200, 1)] * 4
        assert [event["event"] for event in kept(study)[token]] == ["header", "question"]


def test_metrics_are_those_of_all_processes_whichever_is_asked(server: Server) -> None:
    address = f"{server.admin}/metrics"

    def counted() -> dict[str, float]:
        with server.client() as client:  # a new connection: the kernel chooses the process
            text = client.get(address).text
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        return {name: float(amount) for name, _, amount in (line.rpartition(" ") for line in lines)}

    def settled() -> dict[str, float]:
        """Return the answers once both processes tell the same, twice: each is at most a second behind the other."""
        seen: list[float] = []
        while len(seen) < 8 or len(set(seen[-8:])) > 1:
            found = counted()
            seen.append(found["tradeoff_answers_total"])
            time.sleep(0.3)
        return found

    before = settled()
    for _ in range(4):
        with server.client() as client:
            token = client.post("/api/interviews").json()["id"]
        for turn in (1, 2, 3):
            assert answered(server, f"/api/interviews/{token}/answers", turn).status_code == 200
    after = settled()
    assert after["tradeoff_answers_total"] == before["tradeoff_answers_total"] + 12
    assert after['tradeoff_requests_total{kind="api",status="201"}'] >= 4
    assert after["tradeoff_solves_total"] >= before["tradeoff_solves_total"] > 0
    assert after["tradeoff_errors_total"] == 0 and after["tradeoff_wait_seconds_count"] > 16
    pids = [server.process.pid, *workers(server)]
    statm = [int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) for pid in pids]
    assert after["tradeoff_memory_bytes"] > 1.2 * 4096 * max(statm)  # more than that of one


# --- killed, stopped, gone -------------------------------------------------------------------------------------------


def test_processes_end_with_the_first_and_a_restart_goes_on_at_the_same_question(study: str, tmp_path: Path) -> None:
    port = ("--port", str(processes.reserved_port()))
    with served(tmp_path, study, *port) as server:
        with server.client() as client:
            here = begin(client)
            for turn in ("1", "2"):
                assert client.post(f"{here}/answer", data={"turn": turn, "answer": "right"}).status_code == 303
            before = client.get(here).text
        (second,) = workers(server)
        assert alive(second)
        server.kill()
        until(lambda: not alive(second))
        until(lambda: listeners(server.port) == 0)
    with served(tmp_path, study, *port) as again:
        for _ in range(6):
            with again.client() as client:
                assert client.get(here).text == before
        (second,) = workers(again)
        os.killpg(again.process.pid, signal.SIGINT)  # Ctrl-C, which a terminal sends to all of them
        assert again.process.wait(processes.PATIENCE) == 0
        until(lambda: not alive(second))
    assert "Traceback" not in again.output.read_text(encoding="utf-8")


def test_a_database_that_goes_away_is_said_and_when_it_is_back_answers_work_again(tmp_path: Path) -> None:
    if postgresql.programs() is None and not os.environ.get("CI"):
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    with postgresql.cluster() as database:
        address = postgresql.new_database(database.address, "study")
        created(address, tmp_path)
        with served(tmp_path, address) as server:
            with server.client() as client:
                token = client.post("/api/interviews").json()["id"]
            here = f"/api/interviews/{token}/answers"
            assert answered(server, here, 1).status_code == 200
            database.stop()
            for _ in range(4):  # to both of them
                refused = answered(server, here, 2)
                assert refused.status_code == 503 and "not saved" in refused.json()["error"]
                with server.client() as client:
                    assert client.get(f"/i/{token}").status_code == 503
                    assert client.post("/api/interviews").status_code == 503
                    assert client.get("/health").status_code == 200
            database.start()
            assert answered(server, here, 2).status_code == 200
            for turn in range(3, 9):
                assert answered(server, here, turn).status_code == 200
            assert answered(server, here, 2).status_code == 409
        logs = kept(address)
        assert list(logs) == [token] and replies(logs[token]) == ["first"] * 8
        assert "Traceback" not in server.output.read_text(encoding="utf-8")


def test_a_worker_that_dies_is_reported_and_replaced_also_while_the_database_is_away(tmp_path: Path) -> None:
    if postgresql.programs() is None and not os.environ.get("CI"):
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    with postgresql.cluster() as database:
        address = created(postgresql.new_database(database.address, "study"), tmp_path)
        with served(tmp_path, address) as server:
            said = lambda: server.output.read_text(encoding="utf-8")  # noqa: E731
            (first,) = workers(server)
            os.kill(first, signal.SIGKILL)
            until(lambda: listeners(server.port) == 2 and workers(server) not in ([], [first]))
            assert "a worker process ended (signal 9); another one is started" in said()
            database.stop()
            (second,) = workers(server)
            os.kill(second, signal.SIGKILL)
            until(lambda: "error: a worker process cannot serve" in said())
            database.start()
            until(lambda: listeners(server.port) == 2)
            with server.client() as client:
                token = client.post("/api/interviews").json()["id"]
            for turn in (1, 2, 3):
                assert answered(server, f"/api/interviews/{token}/answers", turn).status_code == 200
            (third,) = workers(server)
            assert server.stop() == 0
            until(lambda: not alive(third))
        assert "Traceback" not in said() and "SpawnProcess" not in said()


def below(pid: int) -> list[int]:
    """Return a process and all that it has started."""
    return [pid, *(one for child in children(pid) for one in below(child))]


def test_a_database_that_is_frozen_is_given_up_and_what_may_have_been_saved_is_looked_up(tmp_path: Path) -> None:
    """Its connections stay open and its system acknowledges everything: only the client can notice."""
    if postgresql.programs() is None and not os.environ.get("CI"):
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    with postgresql.cluster() as database:
        address = created(postgresql.new_database(database.address, "study"), tmp_path)
        first_line = (database.home / "data" / "postmaster.pid").read_text(encoding="ascii").splitlines()[0]
        with served(tmp_path, address) as server:
            with server.client() as client:
                token = client.post("/api/interviews").json()["id"]
            here = f"/api/interviews/{token}/answers"
            assert answered(server, here, 1).status_code == 200
            frozen = below(int(first_line))
            for pid in frozen:
                os.kill(pid, signal.SIGSTOP)
            try:
                statuses: list[int] = []

                def ask(path: str, **sent: Any) -> None:
                    with httpx.Client(base_url=server.address, timeout=processes.PATIENCE) as patient:
                        statuses.append((patient.post(path, **sent)).status_code)

                together(
                    *[lambda: ask(here, json={"turn": 2, "answer": "first"})] * 3, *[lambda: ask("/api/interviews")] * 3
                )
                assert statuses == [503] * 6
                with server.client() as client:
                    assert client.get("/health").status_code == 200
            finally:
                for pid in frozen:
                    os.kill(pid, signal.SIGCONT)
            with server.client() as client:
                until(lambda: client.get(f"/api/interviews/{token}/question").status_code == 200)
                turn = client.get(f"/api/interviews/{token}/question").json()["turn"]
            for later in range(turn, turn + 3):
                assert answered(server, here, later).status_code == 200
        log = kept(address)[token]
        assert turn in (2, 3) and replies(log) == ["first"] * (turn + 2)
        Interview.resume(load("dependent"), log)
        assert "Traceback" not in server.output.read_text(encoding="utf-8")


def answered(server: Server, path: str, turn: int) -> httpx.Response:
    with server.client() as client:
        return client.post(path, json={"turn": turn, "answer": "first"})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("postgresql://ann:geheim@127.0.0.1:1/study", "refused"),
        ("postgresql://ann:geheim@no-such-host.invalid/study", "no-such-host.invalid"),
        ("postgresql+psycopg://ann:geheim@127.0.0.1:1/study", "refused"),
        ("THERE", "does not exist"),
    ],
)
def test_a_database_that_is_not_there_is_one_line_without_the_password(
    postgresql_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if wrong == "THERE":  # a server that answers, and has no such database
        wrong = postgresql_server.replace("postgres@", "postgres:geheim@") + "/nothing"
    for words in (
        ("study", "serve", STUDY),
        ("study", "list"),
        ("study", "create", "x", "dependent"),
        ("serve", *WORDS),
    ):
        done = CliRunner().invoke(main, [*words, "--store", wrong])
        assert done.exit_code == 4, done.output
        assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("error: ") and message in done.stderr
        assert "geheim" not in done.output


def test_a_database_of_somebody_else_is_left_as_it_is(postgresql_address: str, tmp_path: Path) -> None:
    import psycopg

    with psycopg.connect(postgresql_address, autocommit=True) as connection:
        connection.execute("CREATE TABLE events (mine TEXT)")
        done = tool("study", "create", STUDY, *WORDS, "--store", postgresql_address, folder=tmp_path)
        assert done.returncode == 4 and "not ours" in done.stderr
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        assert tables == [("events",)]


def test_a_study_on_postgresql_is_listed_and_exported_while_it_is_served(
    server: Server, study: str, tmp_path: Path
) -> None:
    with server.client() as client:
        token = client.post("/api/interviews").json()["id"]
        assert answered(server, f"/api/interviews/{token}/answers", 1).status_code == 200
    links = tool("study", "list", "--links", STUDY, "--store", study, folder=tmp_path)
    assert links.stdout.splitlines()[-1] == f"/i/{token}"
    done = tool("study", "export", STUDY, "--store", study, "--out", "data", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = (tmp_path / "data" / "answers.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) - 1 == sum(len(replies(events)) for events in kept(study).values())
    with open_store(study, write=False) as store:
        assert Study.problem_of(store, STUDY).fingerprint == load("dependent").fingerprint
