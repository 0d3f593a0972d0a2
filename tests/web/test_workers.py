"""Worker processes of the server: killed, hung, interrupted, and with a problem whose file has changed."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from tools.soak import actions_of

from tests import processes
from tests.processes import PATIENCE, until
from tests.web.servers import TOOL, Server, begin, turn_of
from tradeoff.stores import open_store
from tradeoff.studies import Study

PAIRS = ("--questions", "pairs")
SLOWLY = ("python:slow_problem:problem", *PAIRS, "--workers", "1")
SLOW = """
import os
import time
from pathlib import Path

import numpy as np
import tradeoff


class Slow:
    objectives = [tradeoff.Objective("a"), tradeoff.Objective("b"), tradeoff.Objective("c")]

    def best(self, weights):
        while Path("slow").exists():
            time.sleep(0.05)
        if Path("dies").exists():
            os._exit(1)
        return weights / np.linalg.norm(weights)


problem = Slow()
"""


def workers(server: Server) -> list[psutil.Process]:
    """Return the worker processes of a server."""
    children = psutil.Process(server.process.pid).children()
    return [one for one in children if any("spawn_main" in word for word in one.cmdline())]


def gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def answer(server: Server, here: str) -> int:
    """Answer the question on a page, and return its turn."""
    with server.client() as client:
        turn = turn_of(client.get(here).text)
        assert client.post(f"{here}/answer", data={"turn": str(turn), "best": "1"}).headers["location"] == here
    return turn


def stored(folder: Path, token: str, store: str = "sqlite:///tradeoff.db") -> list[dict[str, Any]]:
    with open_store(store.replace("///", f"///{folder}/"), write=False) as opened:
        (name,) = Study.names(opened)
        return opened.read(name, token)


def restarts(server: Server) -> int:
    with server.client() as client:
        return int(client.get("/healthz").text.rpartition("restarts ")[2])


def still_replies(server: Server) -> bool:
    """Return whether the server replies while a job runs."""
    time.sleep(0.5)  # until the job runs
    with server.client() as client:
        return client.get("/healthz").status_code == 200


def in_background(call: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=call)
    thread.start()
    return thread


def test_killed_workers_are_replaced_and_nobody_notices(tmp_path: Path) -> None:
    with Server(tmp_path, "serve", "coffee", *PAIRS, "--workers", "2") as server:
        with server.client() as client:
            assert "workers 2" in client.get("/healthz").text
            people = [begin(client) for _ in range(3)]
        for expected in range(1, 5):
            if expected % 2 == 0:
                for worker in workers(server):
                    worker.kill()
            assert [answer(server, here) for here in people] == [expected] * 3
        with server.client() as client:
            for here in people:
                assert turn_of(client.get(here).text) == 5
                assert client.get(f"{here}/result").status_code == 200
        assert restarts(server) >= 2
        assert server.stop() == 0
    for here in people:
        assert actions_of(stored(tmp_path, here.rpartition("/")[2])) == [{"best": 1}] * 4
    assert "Traceback" not in server.output.read_text(encoding="utf-8")


def test_a_job_whose_worker_is_killed_is_repeated(tmp_path: Path) -> None:
    (tmp_path / "slow_problem.py").write_text(SLOW, encoding="utf-8")
    with Server(tmp_path, "serve", *SLOWLY) as server:
        with server.client() as client:
            here = begin(client)
        (tmp_path / "slow").touch()
        assert answer(server, here) == 1
        turns: list[int] = []

        def look() -> None:
            with server.client() as client:
                turns.append(turn_of(client.get(here).text))

        waiting = in_background(look)
        assert still_replies(server) and waiting.is_alive()
        workers(server)[0].kill()
        until(lambda: restarts(server) == 1, "another worker")
        (tmp_path / "slow").unlink()
        waiting.join()
        assert turns == [2]


def test_a_job_that_two_workers_die_of_is_said_and_can_be_tried_again(tmp_path: Path) -> None:
    (tmp_path / "slow_problem.py").write_text(SLOW, encoding="utf-8")
    with Server(tmp_path, "serve", *SLOWLY) as server, server.client() as client:
        here = begin(client)
        assert answer(server, here) == 1
        (tmp_path / "dies").touch()
        for page in (client.get(here), client.get(f"/api/interviews/{here.rpartition('/')[2]}/question")):
            assert page.status_code == 503 and "failed twice" in page.text and page.headers["retry-after"] == "60"
        (tmp_path / "dies").unlink()
        assert turn_of(client.get(here).text) == 2


def test_workers_end_with_a_server_that_is_killed(tmp_path: Path) -> None:
    with Server(tmp_path, "serve", "coffee", *PAIRS, "--workers", "2") as server:
        running = until(lambda: found if len(found := workers(server)) == 2 else None, "two workers")
        server.kill()
        until(lambda: all(map(gone, running)), "the end of the workers")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_it_ends_soon_while_a_job_runs_and_no_answer_is_lost(tmp_path: Path, how: signal.Signals) -> None:
    (tmp_path / "slow_problem.py").write_text(SLOW, encoding="utf-8")
    with Server(tmp_path, "serve", *SLOWLY) as server:
        with server.client() as client:
            here = begin(client)
        (tmp_path / "slow").touch()
        assert answer(server, here) == 1

        def look() -> None:
            with contextlib.suppress(httpx.HTTPError), server.client() as client:
                client.get(here)

        (worker,) = workers(server)
        waiting = [in_background(look) for _ in range(3)]
        assert still_replies(server) and all(thread.is_alive() for thread in waiting)
        begun = time.monotonic()
        os.killpg(server.process.pid, how)  # as a terminal does: all processes are told
        assert server.process.wait(timeout=PATIENCE) == (-how if how == signal.SIGKILL else 0)
        assert time.monotonic() - begun < 10
        for thread in waiting:
            thread.join()
        until(lambda: gone(worker), "the end of the worker")
        output = server.output.read_text(encoding="utf-8")
        assert "Traceback" not in output
        assert ("Everything is saved; the same command continues." in output) == (how != signal.SIGKILL)
    assert actions_of(stored(tmp_path, here.rpartition("/")[2])) == [{"best": 1}]
    (tmp_path / "slow").unlink()
    with Server(tmp_path, "serve", *SLOWLY) as server:
        assert answer(server, here) == 2
    assert actions_of(stored(tmp_path, here.rpartition("/")[2])) == [{"best": 1}] * 2


def test_ctrl_c_while_workers_start_is_quiet(tmp_path: Path) -> None:
    for delay in (0.0, 0.3, 1.0):
        output = tmp_path / "output.txt"
        words = [str(TOOL), "serve", "commute", "--port", "0", "--no-browser", "--workers", "2"]
        with (
            output.open("wb") as out,
            processes.Child(words, stdout=out, stderr=out, cwd=tmp_path) as child,
        ):
            parent = psutil.Process(child.pid)
            until(
                lambda parent=parent: any("spawn_main" in " ".join(p.cmdline()) for p in parent.children()), "a worker"
            )
            time.sleep(delay)
            os.killpg(child.pid, signal.SIGINT)  # as a terminal does: all processes are told
            assert child.wait(timeout=PATIENCE) in (0, 1, 130)
        said = output.read_text(encoding="utf-8")
        assert "Traceback" not in said and "Error" not in said, said


def test_a_replaced_worker_has_the_same_problem_after_its_file_was_changed(tmp_path: Path) -> None:
    table = tmp_path / "items.csv"
    table.write_text("name,price,size\nAda,500,30\nBea,600,45\nCleo,700,55\nDora,800,60\n", encoding="utf-8")
    words = ("serve", "items.csv", "--objectives", "price:min,size:max", *PAIRS, "--workers", "1")
    with Server(tmp_path, *words) as server:
        with server.client() as client:
            here = begin(client)
        answer(server, here)
        (first,) = workers(server)
        table.write_text(table.read_text(encoding="utf-8").replace("600", "650"), encoding="utf-8")
        first.kill()
        answer(server, here)
        table.unlink()
        workers(server)[0].kill()
        with server.client() as client:
            other = begin(client)
            assert "650" not in client.get(other).text
            assert client.get(f"{here}/result").status_code == 200
        assert restarts(server) == 2
    fingerprints = {stored(tmp_path, one.rpartition("/")[2])[0]["problem"] for one in (here, other)}
    with open_store(f"sqlite:///{tmp_path}/tradeoff.db", write=False) as store:
        (name,) = Study.names(store)
        assert fingerprints == {Study.read(store, name).fingerprint}
