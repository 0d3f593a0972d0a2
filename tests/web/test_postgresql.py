"""A server on PostgreSQL whose database fails and comes back; two servers are in ``test_several_servers.py``."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from click.testing import CliRunner
from tools.soak import actions_of

from tests import postgresql, processes
from tests.processes import until
from tests.web.servers import TOOL, Server
from tests.web.test_workers import gone, workers
from tradeoff import Interview, load
from tradeoff.apps.cli.main import main
from tradeoff.stores import open_store
from tradeoff.studies import Study

STUDY = "walks"
WORDS = ("dependent", "--strategy", "paper")
REPLIES: list[Any] = [{"best": 1}, {"best": 2}, "equal", "skip"]


def tool(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return processes.run([str(TOOL), *words], cwd=folder)


def served(folder: Path, address: str, *more: str) -> Server:
    """Return a server of the study."""
    return Server(folder, "study", "serve", STUDY, "--workers", "1", "--store", address, *more)


def created(address: str, folder: Path) -> str:
    """Return the address of a database that has the study now."""
    made = tool("study", "create", STUDY, *WORDS, "--store", address, folder=folder)
    assert made.returncode == 0, made.stderr
    return address


@pytest.fixture(scope="module")
def study(postgresql_server: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    address = postgresql.new_database(postgresql_server, f"test_{uuid.uuid4().hex}")
    return created(address, tmp_path_factory.mktemp("study"))


def kept(address: str) -> dict[str, list[dict[str, Any]]]:
    with open_store(address, write=False) as store:
        return store.logs(STUDY)


def together(*calls: Callable[[], None]) -> None:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# --- killed, stopped, gone -------------------------------------------------------------------------------------------


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
            for _ in range(2):
                refused = answered(server, here, 2)
                assert refused.status_code == 503 and "not have been saved" in refused.json()["error"]
                with server.client() as client:
                    assert client.get(f"/i/{token}").status_code == 503
                    assert client.post("/api/interviews").status_code == 503
                    assert client.get("/").status_code == 200
            database.start()
            assert answered(server, here, 2).status_code == 200
            for turn in range(3, 9):
                assert answered(server, here, turn).status_code == 200
            assert answered(server, here, 2).status_code == 409
        logs = kept(address)
        assert list(logs) == [token] and actions_of(logs[token]) == [{"best": 1}] * 8
        assert "Traceback" not in server.output.read_text(encoding="utf-8")


def test_a_worker_that_dies_is_replaced_also_while_the_database_is_away(tmp_path: Path) -> None:
    if postgresql.programs() is None and not os.environ.get("CI"):
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    with postgresql.cluster() as database:
        address = created(postgresql.new_database(database.address, "study"), tmp_path)
        with served(tmp_path, address) as server:
            with server.client() as client:
                token = client.post("/api/interviews").json()["id"]
            here = f"/api/interviews/{token}/answers"
            database.stop()
            (worker,) = workers(server)
            worker.kill()
            assert answered(server, here, 1).status_code == 503
            database.start()
            for turn in (1, 2, 3):
                assert answered(server, here, turn).status_code == 200
            (another,) = workers(server)
            assert another != worker
            assert server.stop() == 0
            until(lambda: gone(another), "the end of the worker")
        assert "Traceback" not in server.output.read_text(encoding="utf-8")
        assert actions_of(kept(address)[token]) == [{"best": 1}] * 3


def children(pid: int) -> list[int]:
    """Return the processes that a process has started, in whichever thread."""
    return [process.pid for process in psutil.Process(pid).children()]


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
                    *[lambda: ask(here, json={"turn": 2, "reply": {"best": 1}})] * 3,
                    *[lambda: ask("/api/interviews")] * 3,
                )
                assert statuses == [503] * 6
                with server.client() as client:
                    assert client.get("/").status_code == 200
            finally:
                for pid in frozen:
                    os.kill(pid, signal.SIGCONT)
            with server.client() as client:
                until(lambda: client.get(f"/api/interviews/{token}/question").status_code == 200)
                turn = client.get(f"/api/interviews/{token}/question").json()["turn"]
            for later in range(turn, turn + 3):
                assert answered(server, here, later).status_code == 200
        log = kept(address)[token]
        assert turn in (2, 3) and actions_of(log) == [{"best": 1}] * (turn + 2)
        Interview.resume(load("dependent"), log)
        assert "Traceback" not in server.output.read_text(encoding="utf-8")


def answered(server: Server, path: str, turn: int) -> httpx.Response:
    with server.client() as client:
        return client.post(path, json={"turn": turn, "reply": {"best": 1}})


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


def test_a_study_on_postgresql_is_listed_and_exported_while_it_is_served(study: str, tmp_path: Path) -> None:
    with served(tmp_path, study) as server:
        with server.client() as client:
            token = client.post("/api/interviews").json()["id"]
        assert answered(server, f"/api/interviews/{token}/answers", 1).status_code == 200
        check_export(study, token, tmp_path)


def check_export(study: str, token: str, tmp_path: Path) -> None:
    links = tool("study", "list", "--links", STUDY, "--store", study, folder=tmp_path)
    assert links.stdout.splitlines()[-1] == f"/i/{token}"
    done = tool("study", "export", STUDY, "--store", study, "--out", "data", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = (tmp_path / "data" / "answers.csv").read_text(encoding="utf-8").splitlines()
    given = [action for events in kept(study).values() for action in actions_of(events) if action != "undo"]
    assert len(rows) - 1 == len(given)
    with open_store(study, write=False) as store:
        assert Study.problem_of(store, STUDY).fingerprint == load("dependent").fingerprint
