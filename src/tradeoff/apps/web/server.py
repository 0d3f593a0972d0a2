"""Runs the page: one process for SQLite, several for PostgreSQL.

Granian, because it drops clients that do not finish what they began to say (``header_read_timeout``).
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess

from starlette.types import ASGIApp

from tradeoff.errors import ArgumentError, TradeoffError

HEADER_PATIENCE = 4_000  # milliseconds for the head of a request
WAITING = 2_048  # connections that may wait to be accepted
AT_ONCE = 1_024  # requests that a process works on at a time
SHORTEST_PAUSE, LONGEST_PAUSE = (
    0.5,
    30.0,
)  # seconds before a worker that died is replaced; doubled while they die at once
STEADY = 10.0  # seconds after which a worker has started well


def check_address(host: str, port: int) -> int:
    """Return the port, a free one for 0; raise an ArgumentError if it is taken, which the server would not notice."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as error:
            raise ArgumentError(f"cannot listen at {host}, port {port}: {error}; choose another with --port") from None
        return int(probe.getsockname()[1])


def serve(app: ASGIApp, host: str, port: int, *, ready: Callable[[], None] = lambda: None) -> None:
    """Serve until interrupted; ``ready`` is called when connections are accepted."""
    asyncio.run(_serve(app, host, port, ready))


async def _serve(app: ASGIApp, host: str, port: int, ready: Callable[[], None]) -> None:
    from granian.constants import HTTPModes, Interfaces
    from granian.http import HTTP1Settings
    from granian.server.embed import Server

    server = Server(
        app,
        address=host,
        port=port,
        interface=Interfaces.ASGINL,
        http=HTTPModes.http1,
        websockets=False,
        backlog=WAITING,
        backpressure=AT_ONCE,
        http1_settings=HTTP1Settings(header_read_timeout=HEADER_PATIENCE),
        log_enabled=False,
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C raises KeyboardInterrupt instead
            loop.add_signal_handler(number, server.stop)
    threading.Thread(target=_tell_when_ready, args=(host, port, ready), daemon=True).start()
    await server.serve()
    for number in (signal.SIGINT, signal.SIGTERM):  # it ends already: another signal must not find a loop half closed
        with contextlib.suppress(NotImplementedError, ValueError):
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)


def _tell_when_ready(host: str, port: int, ready: Callable[[], None]) -> None:
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection((reachable, port), timeout=1):
            ready()
            return
        time.sleep(0.05)


class Workers:
    """Further processes that serve the same port. One that dies is reported and replaced; all end with this process."""

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
            ended = f"signal {-process.exitcode}" if (process.exitcode or 0) < 0 else f"exit code {process.exitcode}"
            print(f"a worker process ended ({ended}); another one is started", file=sys.stderr, flush=True)

    def _started(self) -> BaseProcess | None:
        """Return a new running process, or None once this is being stopped."""
        with self._lock:
            if self._stopping.is_set():
                return None
            context = multiprocessing.get_context("spawn")
            process = context.Process(target=_run_worker, args=(os.getpid(), self._work, self._arguments), daemon=True)
            process.start()
            self._running.add(process)
            return process

    def stop(self) -> None:
        """End them all."""
        with self._lock:
            self._stopping.set()
            for process in self._running:
                process.terminate()
        for thread in self._threads:
            thread.join(timeout=10)


def _run_worker(parent: int, work: Callable[..., None], arguments: tuple[object, ...]) -> None:
    """Serve in a further process until its parent is gone; an error is one line, as in the first process."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    try:
        work(*arguments)
    except TradeoffError as error:
        print(f"error: a worker process cannot serve: {error}", file=sys.stderr, flush=True)
        sys.exit(4)
    except KeyboardInterrupt:
        sys.exit(130)
