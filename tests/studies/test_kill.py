"""kill -9 while a strategy is thinking: the answer it thinks about is there, and the interview goes on from it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from tests import postgresql
from tests.processes import PATIENCE, Child, run, until
from tests.web.servers import begin, turn_of
from tradeoff.log import read_log
from tradeoff.stores import open_store

# The real program, with a strategy of the paper's that never comes to an end with an answer while HANG is set. Worker
# processes import it, too.
PROGRAM = """
import os, sys, time
from pathlib import Path
from tradeoff.strategies import StrategySpec, paper, registry

def slow(problem):
    inner = paper(problem)
    step = next(inner)
    while True:
        reply = yield step
        if os.environ.get("HANG"):
            Path("thinking").touch()
            time.sleep(100_000)
        try:
            step = inner.send(reply)
        except StopIteration as end:
            return end.value

registry.BUILT_IN["slow"] = StrategySpec(slow)
if __name__ == "__main__":
    from tradeoff.apps.cli.main import main
    main()
"""
HANGING, PLAIN = {**os.environ, "HANG": "1"}, {name: value for name, value in os.environ.items() if name != "HANG"}


def words(folder: Path, *given: str) -> list[str]:
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    return [sys.executable, str(folder / "program.py"), *given]


def kinds(events: list[dict]) -> list[str]:
    return [event["event"] for event in events]


def kill(child: Child) -> None:
    child.send_signal(signal.SIGKILL)
    child.wait()


def test_in_the_terminal(tmp_path: Path) -> None:
    log = tmp_path / "answers.jsonl"
    begun = words(tmp_path, "ask", "dependent", "--strategy", "slow", "--log", str(log))
    with Child(begun, env=HANGING, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as child:
        assert child.stdin is not None
        child.stdin.write("a\n")
        child.stdin.flush()
        until((tmp_path / "thinking").exists, "the strategy's thinking")
        kill(child)
    assert kinds(read_log(log.read_text(encoding="utf-8"))) == ["header", "question", "answer"]
    resumed = run(words(tmp_path, "ask", "dependent", "--resume", str(log)), env=PLAIN, cwd=tmp_path, input="b\nq\n")
    assert resumed.returncode == 0 and "Question 2" in resumed.stdout, resumed.stderr
    events = read_log(log.read_text(encoding="utf-8"))
    assert kinds(events)[:5] == ["header", "question", "answer", "question", "answer"]


@contextmanager
def served(folder: Path, store: str, env: dict[str, str]) -> Iterator[tuple[Child, httpx.Client]]:
    output = folder / f"server-{uuid.uuid4().hex}.txt"
    command = words(
        folder,
        "serve",
        "dependent",
        "--strategy",
        "slow",
        "--store",
        store,
        "--workers",
        "2",
        "--port",
        "0",
        "--no-browser",
    )
    with output.open("wb") as out, Child(command, env=env, cwd=folder, stdout=out, stderr=subprocess.STDOUT) as child:
        until(lambda: "Stop with" in output.read_text() or child.poll() is not None, "a server's start")
        found = re.search(r"(http://\S+?)/\s", output.read_text())
        assert found is not None, output.read_text()
        with httpx.Client(base_url=found.group(1), timeout=PATIENCE) as client:
            yield child, client


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'study.db'}"
    return postgresql.new_database(request.getfixturevalue("postgresql_server"), f"test_{uuid.uuid4().hex}")


@pytest.mark.parametrize("way", ["page", "api"])
def test_on_the_web(store: str, way: str, tmp_path: Path) -> None:
    with served(tmp_path, store, HANGING) as (child, client):
        here = begin(client)
        token = here.rpartition("/")[2]
        turn = turn_of(client.get(here).text)

        def answer() -> None:
            with suppress(httpx.HTTPError):  # the server is killed before it can reply
                if way == "page":
                    done = client.post(f"{here}/answer", data={"turn": turn, "best": "1"})
                    client.get(done.headers["location"])
                else:
                    client.post(f"/api/interviews/{token}/answers", json={"turn": turn, "reply": {"best": 1}})

        waiting = threading.Thread(target=answer)
        waiting.start()
        until((tmp_path / "thinking").exists, "the strategy's thinking")
        with httpx.Client(base_url=client.base_url, timeout=PATIENCE) as other:  # and nobody else waits for it
            assert kinds(read_log(other.get(f"{here}/log").text))[-1] == "answer"
            assert other.get(begin(other)).status_code == 200
        kill(child)
        waiting.join()
    with open_store(store, write=False) as opened:
        (study,) = opened.names("studies")
        assert kinds(opened.read(study, token)) == ["header", "question", "answer"]
    with served(tmp_path, store, PLAIN) as (_, client):
        page = client.get(here)
        assert page.status_code == 200 and turn_of(page.text) == 2
