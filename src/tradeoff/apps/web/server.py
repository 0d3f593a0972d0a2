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
import threading
import time
from collections.abc import Callable

from starlette.types import ASGIApp

from tradeoff.errors import ArgumentError

HEADER_PATIENCE = 4_000  # milliseconds for the head of a request
WAITING = 2_048  # connections that may wait to be accepted
AT_ONCE = 1_024  # requests that a process works on at a time


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
    """More processes that serve the same port; they end with this one, however it ends."""

    def __init__(self, work: Callable[..., None], arguments: tuple[object, ...], count: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._processes = [
            context.Process(target=_watched, args=(os.getpid(), work, arguments), daemon=True) for _ in range(count)
        ]
        for process in self._processes:
            process.start()

    def stop(self) -> None:
        """End them."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join(timeout=10)


def _watched(parent: int, work: Callable[..., None], arguments: tuple[object, ...]) -> None:
    """Do the work of a further process, and end when its parent is gone."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    work(*arguments)
