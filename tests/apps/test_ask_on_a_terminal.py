"""Interviews on a real terminal: single keys, interruptions, kills, and stopping and going on."""

from __future__ import annotations

import codecs
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import tradeoff
from tests import processes
from tests.apps.test_ask import PAPER, PROMPT, found, interviewed, replies, run
from tradeoff.apps.cli.afterwards import LAST_PROMPT
from tradeoff.apps.cli.ask import BEGIN
from tradeoff.model import FIRST, SECOND
from tradeoff.presentation.question import reply_sentence

# --- a real terminal -------------------------------------------------------------------------------------------------

CODE = (
    "from tradeoff.apps.cli.ask import ask\nfrom tradeoff.apps.cli.main import Commands\n"
    "Commands('tradeoff', commands={'ask': ask})()"
)


class Terminal:
    """A command on a pseudo-terminal: what it shows, and keys for it."""

    def __init__(self, *arguments: str) -> None:
        import pty
        import termios

        self.master, self.slave = pty.openpty()
        self.attributes = termios.tcgetattr(self.slave)
        environment = os.environ | {"COLUMNS": "100", "LINES": "40", "TERM": "dumb", "NO_COLOR": "1"}
        command = [sys.executable, "-c", CODE, "ask", *arguments]
        ends = {"stdin": self.slave, "stdout": self.slave, "stderr": self.slave}
        self.process = processes.Child(command, env=environment, **ends)
        self.shown = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")()  # a character may come in two parts

    def wait_for(self, text: str, count: int = 1) -> None:
        import select

        limit = time.monotonic() + processes.PATIENCE
        while self.shown.count(text) < count:
            assert time.monotonic() < limit, f"{text!r} is not shown {count} times in:\n{self.shown}"
            if select.select([self.master], [], [], 0.2)[0]:
                self.shown += self._decoder.decode(os.read(self.master, 65536))

    def begin(self) -> None:
        """Leave the first page."""
        self.wait_for(BEGIN)
        os.write(self.master, b" ")

    def press(self, key: str, prompts: int) -> None:
        """Press a key when it has been prompted for so many times."""
        self.wait_for(PROMPT, prompts)
        os.write(self.master, key.encode())

    def end(self, drain: str = "") -> int:
        if drain:
            self.wait_for(drain)
        return int(self.process.wait(processes.PATIENCE))

    def restored(self) -> bool:
        import termios

        return termios.tcgetattr(self.slave) == self.attributes


@contextmanager
def terminal(*arguments: str) -> Iterator[Terminal]:
    pytest.importorskip("termios")
    opened = Terminal(*arguments)
    try:
        yield opened
    finally:
        opened.process.end()
        os.close(opened.master)
        os.close(opened.slave)


def test_single_keys_on_a_terminal_give_the_same_as_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    keys, interview = interviewed("dependent", [2, 1, 1])
    with terminal("dependent", *PAPER, "--log", str(log)) as screen:
        screen.begin()
        for number, key in enumerate(keys, start=1):
            screen.press(key, number)
        screen.wait_for(LAST_PROMPT)
        os.write(screen.master, b"q")
        assert screen.end() == 0 and screen.restored()
        assert f"{len(keys)} questions: " in screen.shown
    assert replies(log) == [answer.reply for answer in interview.answers]


def test_special_keys_are_no_answers_and_early_keys_are_dropped() -> None:
    with terminal("dependent", *PAPER) as screen:
        os.write(screen.master, b"bbbb")  # before anything is seen
        screen.begin()
        screen.press("\x1b[A", 1)  # the arrow upwards ends with an A
        screen.wait_for("that key is not an answer", 1)
        os.write(screen.master, b"\xc3\xa9")
        screen.wait_for("'\u00e9' is not an answer", 1)
        os.write(screen.master, b"a")
        screen.wait_for(reply_sentence(FIRST, 2))
        screen.press("\x04", 2)  # Ctrl-D
        assert screen.end("answers.jsonl") == 0 and screen.restored()
        assert reply_sentence(SECOND, 2) not in screen.shown and "1 question so far." in screen.shown


def test_ctrl_c_keeps_everything_and_gives_the_terminal_back(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with terminal("dependent", *PAPER, "--log", str(log)) as screen:
        screen.begin()
        screen.press("a", 1)
        screen.press("b", 2)
        screen.wait_for(PROMPT, 3)
        screen.process.send_signal(signal.SIGINT)
        assert screen.end("interrupted") == 130 and screen.restored()
        assert f"tradeoff ask dependent --resume {log}" in screen.shown
    assert "Question 3," in run("dependent", "--resume", str(log), keys=["q"]).stdout


@pytest.mark.parametrize("acknowledged", [1, 3, 6])
def test_no_acknowledged_answer_is_lost_to_kill_9(acknowledged: int, tmp_path: Path) -> None:
    log = tmp_path / "log"
    keys, _ = interviewed("dependent", [1, 2, 3])
    with terminal("dependent", *PAPER, "--log", str(log)) as screen:
        screen.begin()
        for number in range(acknowledged):
            screen.press(keys[number], number + 1)
        screen.wait_for(PROMPT, acknowledged + 1)  # comes after the answer was acknowledged
        os.write(screen.master, keys[acknowledged].encode())
        screen.process.send_signal(signal.SIGKILL)  # while the next answer is on its way
        assert screen.end() == -signal.SIGKILL
    answered = len(replies(log))
    assert acknowledged <= answered <= acknowledged + 1
    whole = found(run("dependent", *PAPER, "--json", keys=keys))
    ended = found(run("dependent", "--resume", str(log), "--json", keys=keys[answered:]))
    assert ended["recommendation"] == whole["recommendation"]
    assert [a["reply"] for a in ended["answers"]] == [a["reply"] for a in whole["answers"]]


def test_the_last_answer_can_be_taken_back_at_the_end_and_after_resuming(tmp_path: Path) -> None:
    log = tmp_path / "log"
    keys, _ = interviewed("dependent", [2, 1, 1])
    with terminal("dependent", *PAPER, "--log", str(log)) as screen:
        screen.begin()
        for number, key in enumerate(keys, start=1):
            screen.press(key, number)
        screen.wait_for(LAST_PROMPT)
        os.write(screen.master, b"u")
        screen.press(keys[-1], len(keys) + 1)
        screen.wait_for(LAST_PROMPT, 2)
        os.write(screen.master, b"x")
        assert screen.end() == 0 and screen.restored()
    with terminal("dependent", "--resume", str(log)) as screen:
        screen.wait_for(LAST_PROMPT)
        assert BEGIN not in screen.shown
        os.write(screen.master, b"u")
        screen.press("q", 1)
        assert screen.end("so far.") == 0
    events = [event["event"] for event in tradeoff.interview.read_log(log.read_text())]
    assert events.count("undo") == 2 and events.count("answer") == len(keys) + 1


def test_details_and_help_are_followed_by_the_question_again() -> None:
    with terminal("commute") as screen:
        screen.begin()
        screen.press("d", 1)
        pages = 1
        screen.wait_for("back to the question.")
        while "Any key: back to the question." not in screen.shown:
            os.write(screen.master, b" ")
            pages += 1
            screen.wait_for("back to the question.", pages)
        assert pages > 1 and screen.shown.count("; less is better") >= 3  # the amounts are on the last page
        os.write(screen.master, b"q")
        screen.press("?", 2)
        screen.wait_for("the one you would rather have")
        screen.wait_for("Any key: back to the question.", 2)
        os.write(screen.master, b"q")
        screen.press("q", 3)
        assert screen.end("so far.") == 0 and screen.shown.count("Question 1") == 3


def test_keys_work_after_the_program_was_stopped_and_continued() -> None:
    import termios

    with terminal("dependent", *PAPER) as screen:
        screen.begin()
        screen.wait_for(PROMPT)
        screen.process.send_signal(signal.SIGSTOP)
        os.waitpid(screen.process.pid, os.WUNTRACED)  # returns when it has stopped
        termios.tcsetattr(screen.slave, termios.TCSANOW, screen.attributes)  # as a shell does
        screen.process.send_signal(signal.SIGCONT)
        limit = time.monotonic() + processes.PATIENCE
        while termios.tcgetattr(screen.slave)[3] & termios.ICANON:
            assert time.monotonic() < limit
            time.sleep(0.05)
        os.write(screen.master, b"a")  # without Enter
        screen.press("q", 2)
        assert screen.end("so far.") == 0 and screen.restored()
