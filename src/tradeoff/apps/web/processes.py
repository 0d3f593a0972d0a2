"""Further processes of a server: one that dies is replaced, and all of them end with the first."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess

from tradeoff.errors import TradeoffError

SHORTEST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds before a dead worker is replaced; doubled while they die at once
STEADY = 10.0  # seconds after which a worker has started well


def start_uninterrupted(process: BaseProcess) -> None:
    """Start a process with Ctrl-C blocked until it unblocks it: before that, it could only print a traceback."""
    if sys.platform == "win32":
        process.start()
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # now, because starting it unblocks the signal again in some versions of Python
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


class Workers:
    """Further processes of a server. One that dies is reported and replaced; all end with this process."""

    def __init__(self, work: Callable[..., None], arguments: tuple[object, ...], count: int) -> None:
        self._work, self._arguments = work, arguments
        self._running: set[BaseProcess] = set()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._keep_one_running, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def _keep_one_running(self) -> None:
        """Start a process, and another one when it has ended, with a growing pause if it ends soon after its start."""
        pause = SHORTEST_PAUSE
        while (process := self._started()) is not None:
            begun = time.monotonic()
            process.join()
            with self._lock:
                self._running.discard(process)
            pause = SHORTEST_PAUSE if time.monotonic() - begun > STEADY else min(2 * pause, LONGEST_PAUSE)
            if self._stopping.wait(pause):
                return
            code = process.exitcode or 0
            ended = f"signal {-code}" if code < 0 else f"exit code {code}"
            print(f"a worker process ended ({ended}); another one is started", file=sys.stderr, flush=True)

    def _started(self) -> BaseProcess | None:
        """Return a new running process, or None once this is being stopped."""
        with self._lock:
            if self._stopping.is_set():
                return None
            context = multiprocessing.get_context("spawn")
            process = context.Process(target=_run_worker, args=(os.getpid(), self._work, self._arguments), daemon=True)
            start_uninterrupted(process)
            self._running.add(process)
            return process

    def leave(self) -> None:
        """Tell them all to end soon, and replace none of them; the health page of each says so meanwhile."""
        with self._lock:
            self._stopping.set()
            for process in self._running:
                process.terminate()

    def stop(self) -> None:
        """End them all."""
        with self._lock:
            self._stopping.set()
            for process in self._running:
                process.terminate()
        for thread in self._threads:
            thread.join(timeout=10)


def _run_worker(parent: int, work: Callable[..., None], arguments: tuple[object, ...]) -> None:
    """Work in a further process until its parent is gone; an error is one line, as in the first process."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    try:
        if sys.platform != "win32":
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        work(*arguments)
    except TradeoffError as error:
        print(f"error: a worker process cannot serve: {error}", file=sys.stderr, flush=True)
        sys.exit(4)
    except KeyboardInterrupt:
        sys.exit(130)
