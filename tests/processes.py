"""Processes that tests start: with default signals, and ended together with everything they start.

Every process that descends from a test carries a mark in its environment. Unlike parents, groups and sessions, the mark
survives a parent that dies and a child that leaves its session, so that all descendants can be found at any time. Should
pytest itself be killed, a guardian, which notices because its standard input closes, ends them instead.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import psutil

Found = TypeVar("Found")

PATIENCE = (
    600  # seconds after which a wait is given up: it only ends tests that would hang, and is never a measure of speed
)
QUICK = 20  # seconds of processor time (not of the clock) for what should take at most one or two; a bomb takes minutes
EXCUSE = "not possible on this machine"
MARK = "TRADEOFF_TEST_PROCESS"
RUN = uuid.uuid4().hex
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")

_numbers = itertools.count(1)
_guardian: subprocess.Popen[bytes] | None = None

GUARDIAN = """
import shutil, sys
from tests.processes import end_marked
folders = sys.stdin.read().splitlines()  # until whoever holds the other end is gone
end_marked(sys.argv[1])
for folder in folders:
    shutil.rmtree(folder, ignore_errors=True)
"""


def restore_signals() -> None:
    """Let children have the default signals, whatever this process was told to ignore.

    ``nohup`` and ``&`` in a script make a program ignore SIGHUP or SIGINT, and its children inherit that. A signal with a
    handler is ignored just as well if the handler does nothing, but a new program starts with the default.
    """
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def until(found: Callable[[], Found], what: str = "what the test waits for") -> Found:
    """Return what is found, as soon as it is neither false nor none."""
    deadline = time.monotonic() + PATIENCE
    while not (result := found()):
        assert time.monotonic() < deadline, f"{what} did not happen within {PATIENCE} seconds"
        time.sleep(0.02)
    return result


def not_possible_here(reason: str) -> NoReturn:
    """Skip a test for want of rights or limits that cannot be installed; that is excused also where changes are judged."""
    import pytest  # not at the top: the guardian does without

    pytest.skip(f"{EXCUSE}: {reason}")


# --- starting and ending ---------------------------------------------------------------------------------------------


class Child(subprocess.Popen[Any]):
    """A process in a session of its own; use it in a ``with`` statement, after which nothing is left of it."""

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str] | None = None, **options: Any) -> None:
        self.mark = f"{RUN}.{next(_numbers)}."
        environment = {**(os.environ if env is None else env), MARK: self.mark}
        options = {"stdin": subprocess.DEVNULL, "start_new_session": True} | options
        super().__init__(list(command), env=environment, **options)

    def end(self) -> None:
        """Kill it and all that descends from it, and close its pipes."""
        end_marked(self.mark, signal.SIGKILL)
        self.wait()
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def __exit__(self, *error: object) -> None:
        self.end()


def run(
    command: Sequence[str], *, input: str | None = None, check: bool = False, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Return how a command ended and all that it printed, as text."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    pipes |= {} if input is None else {"stdin": subprocess.PIPE}
    with Child(command, **pipes, **options) as child:
        out, error = child.communicate(input, timeout=PATIENCE)
    assert not check or child.returncode == 0, f"{command} ended with {child.returncode}:\n{out}\n{error}"
    return subprocess.CompletedProcess(child.args, child.returncode, out, error)


# --- descendants -----------------------------------------------------------------------------------------------------


def marked(mark: str) -> list[psutil.Process]:
    """Return the running processes whose mark begins like this, other than this one.

    Python's trackers of shared memory are left out: they end by themselves once nothing is left to be tracked.
    """
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            alive = process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE
            ours = alive and process.environ().get(MARK, "").startswith(mark)
            if ours and not any("resource_tracker" in word for word in process.cmdline()):
                found.append(process)
    return found


def end_marked(mark: str, how: signal.Signals = signal.SIGTERM) -> None:
    """End the processes whose mark begins like this; those that do not heed the signal are killed."""
    deadline = time.monotonic() + 10
    while left := marked(mark):
        for process in left:
            with suppress(psutil.Error):
                process.send_signal(how if time.monotonic() < deadline else signal.SIGKILL)
        time.sleep(0.02)  # not psutil's wait, which would take a child's exit status away from Popen


@contextmanager
def guarded() -> Iterator[None]:
    """End all descendants of this process however it ends; complain of those that a test has left behind."""
    global _guardian
    os.environ[MARK] = RUN
    here = str(Path(__file__).resolve().parents[1])
    unmarked = {name: value for name, value in os.environ.items() if name != MARK}
    command = [sys.executable, "-c", GUARDIAN, RUN]
    _guardian = subprocess.Popen(command, stdin=subprocess.PIPE, env=unmarked, cwd=here, start_new_session=True)
    try:
        yield
        end_workers()
        until(lambda: not left_behind(), "the end of all processes that tests have started")
    finally:
        names = left_behind()
        _guardian.communicate()  # ends what is left
        _guardian = None
        assert not names, f"tests have left processes behind: {names}"


def remove_at_the_end(folder: Path) -> None:
    """Remove a folder when this process has ended, however it ends."""
    if _guardian is not None and _guardian.stdin is not None:
        _guardian.stdin.write(f"{folder}\n".encode())
        _guardian.stdin.flush()


def left_behind() -> list[str]:
    """Return the commands of the descendants that are still there."""
    commands = []
    for process in marked(RUN):
        with suppress(psutil.Error):
            commands.append(" ".join(process.cmdline())[:200])
    return commands


def end_workers() -> None:
    """End the workers that joblib keeps for the next call."""
    loky = sys.modules.get("joblib.externals.loky.reusable_executor")
    if loky is not None and loky._executor is not None:
        loky._executor.shutdown(wait=True, kill_workers=True)


# --- ports -----------------------------------------------------------------------------------------------------------


def reserved_port() -> int:
    """Return a port that nothing else takes while this process runs, also while nobody listens at it.

    It is outside the range from which the system hands out ports; other tests are kept away by the UDP port of the same
    number, which no server uses.
    """
    above = int(EPHEMERAL.read_text(encoding="ascii").split()[0]) if EPHEMERAL.exists() else 32768
    while True:
        port = random.SystemRandom().randrange(max(1024, above - 15_000), above)
        ours = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            ours.bind(("127.0.0.1", port))
            with socket.socket() as free:
                free.bind(("127.0.0.1", port))
        except OSError:
            ours.close()
            continue
        ours.detach()  # stays open until this process ends
        return port
