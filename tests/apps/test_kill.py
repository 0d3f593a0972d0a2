"""kill -9 while a strategy is thinking: the answer it thinks about is there, and the interview goes on from it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.processes import Child, run, until
from tradeoff.log import read_log

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
