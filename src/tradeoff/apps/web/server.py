"""Serves the application: one process with SQLite, several with PostgreSQL.

Granian is embedded: it drops clients that do not finish sending a request (``header_read_timeout``).
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from starlette.types import ASGIApp

from tradeoff.apps.web.app import make_app
from tradeoff.apps.web.compiling import Compiler, begin_with_kept, follow
from tradeoff.apps.web.limits import Limits
from tradeoff.apps.web.pages import warm_up
from tradeoff.apps.web.processes import Workers
from tradeoff.apps.web.security import LOOPBACK
from tradeoff.apps.web.thinkers import Thinkers, spare_cores, think
from tradeoff.errors import ArgumentError
from tradeoff.sources import AnyProblem
from tradeoff.stores import Store
from tradeoff.studies import Sessions, Study
from tradeoff.studies.computing import ComputeQueue

__all__ = [
    "Compiler", "Leave", "Thinkers", "Workers", "application", "check_limits", "check_port", "resolve", "serve",
    "spare_cores", "think",
]  # fmt: skip

HEADER_TIMEOUT = 4_000  # milliseconds for the head of a request, and for an idle connection
LARGEST_HEAD = 32 << 10  # bytes of a request's head
BACKLOG = 4_096  # connections that may wait to be accepted
CONNECTIONS = 16_384  # open connections of a process; Granian accepts no more until one closes
OTHER_FILES = 256  # descriptors kept for the store, the modules and the threads
COLLECT_AFTER = (5_000, 3, 1)  # objects, young collections, middle collections


def check_limits(limits: tuple[str, ...]) -> None:
    """Raise an ArgumentError unless these are limits such as begins=120."""
    Limits.parse(limits)


def application(
    study: Study,
    problem: AnyProblem,
    store: Store,
    hosts: tuple[str, ...] = (),
    limits: tuple[str, ...] = (),
    visitor_header: str | None = None,
    leaving: threading.Event | None = None,
    compiled: bool = False,
    figures: Path | None = None,
    thinkers: Thinkers | None = None,
    queue: ComputeQueue | None = None,
) -> ASGIApp:
    """Return the application, warmed up, so that the first person does not wait for the compiler.

    ``hosts`` are the names under which other machines know this one. With ``compiled``, interviews begin with a coverage of
    the problem as soon as one is kept beside the study.
    """
    problem.threads = 1  # many people are served at once: one core each
    sessions = Sessions(study, problem, store, queue=queue)
    sessions.helpers = thinkers
    if not (compiled and begin_with_kept(sessions)):
        warm_up(study, problem)
        if compiled:
            follow(sessions)
    keep_collections_short()
    return make_app(
        sessions, problem, hosts=(*LOOPBACK, *hosts), limits=Limits.parse(limits), visitor_header=visitor_header,
        leaving=leaving, figures=figures,
    )  # fmt: skip


def keep_collections_short() -> None:
    """Make every garbage collection short: it examines only objects created since the last full one.

    Solved directions and sessions are many and live long, but none is part of a reference cycle: they are freed when the
    last reference to them is dropped, and need no collector.
    """
    gc.collect()
    gc.freeze()
    gc.collect()  # Python delays a full collection until objects have grown by a quarter of what the last one examined
    gc.set_threshold(*COLLECT_AFTER)
    gc.callbacks.append(_freeze_survivors)


def _freeze_survivors(phase: str, info: Mapping[str, int]) -> None:
    if phase == "stop" and info["generation"] == 2:
        gc.freeze()


def resolve(host: str) -> tuple[str, ...]:
    """Return the numeric addresses of a host on which this machine can listen, IPv4 first.

    >>> resolve("127.0.0.1")
    ('127.0.0.1',)
    """
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise ArgumentError(
            f"cannot listen at --host {host}: {error}; use 127.0.0.1, or 0.0.0.0 to let other machines in"
        ) from None
    addresses = sorted({str(endpoint[0]) for *_, endpoint in found}, key=lambda address: (":" in address, address))
    usable = [address for address in addresses if _can_bind(address)]
    if not usable:
        raise ArgumentError(
            f"cannot listen at --host {host}: {addresses[0]} is not an address of this machine; use 127.0.0.1, or 0.0.0.0 "
            "to let other machines in"
        )
    return tuple(usable)


def _can_bind(address: str) -> bool:
    with contextlib.suppress(OSError), _bound(address, 0):
        return True
    return False


def _bound(address: str, port: int) -> socket.socket:
    """Return a socket bound to an address, as a test that this is possible."""
    probe = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    try:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((address, port))
    except BaseException:
        probe.close()
        raise
    return probe


def check_port(addresses: Sequence[str], port: int) -> int:
    """Return a port that is free at every address, ``port`` unless that is 0; raise an ArgumentError if it is taken.

    Granian shares a port with other processes, so it would not notice.
    """
    for last in (*[False] * 9, True):
        try:
            with contextlib.ExitStack() as probes:
                chosen = port
                for address in addresses:
                    probe = probes.enter_context(_bound(address, chosen))
                    chosen = int(probe.getsockname()[1])
                return chosen
        except (OSError, OverflowError) as error:
            if port or last:  # a free port at one address may be taken at the next
                where = f"{address}, port {chosen}"
                raise ArgumentError(f"cannot listen at {where}: {error}; choose another with --port") from None
    raise AssertionError("unreachable")


def open_more_files() -> int:
    """Raise the limit on open files as far as allowed, and return how many connections fit."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    wanted = CONNECTIONS + OTHER_FILES
    if soft != unlimited and soft < wanted:
        soft = wanted if hard == unlimited else min(wanted, hard)
        with contextlib.suppress(OSError, ValueError):  # macOS refuses what its kernel does not allow
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return CONNECTIONS if soft == unlimited else max(64, min(CONNECTIONS, soft - OTHER_FILES))


@dataclass(frozen=True, eq=False)
class Leave:
    """How a server ends that is told to by SIGTERM: it says so on its health page, goes on for a while, and stops."""

    leaving: threading.Event = field(default_factory=threading.Event)
    drain: float = 0.0  # seconds; what stands before several servers notices meanwhile, and asks another one
    others: Callable[[], None] = lambda: None  # called at once: the workers leave as well


def serve(
    app: ASGIApp,
    addresses: Sequence[str],
    port: int,
    *,
    ready: Callable[[], None] = lambda: None,
    leave: Leave | None = None,
) -> None:
    """Serve until interrupted; ``ready`` is called when connections are accepted."""
    asyncio.run(_serve(app, addresses, port, ready, leave or Leave()))


async def _serve(app: ASGIApp, addresses: Sequence[str], port: int, ready: Callable[[], None], leave: Leave) -> None:
    from granian.constants import HTTPModes, Interfaces
    from granian.http import HTTP1Settings
    from granian.server.embed import Server

    connections = open_more_files() // len(addresses)
    servers = [
        Server(
            app,
            address=address,
            port=port,
            interface=Interfaces.ASGINL,
            http=HTTPModes.http1,
            websockets=False,
            backlog=BACKLOG,
            backpressure=connections,  # Granian counts connections here, idle ones included
            http1_settings=HTTP1Settings(header_read_timeout=HEADER_TIMEOUT, max_buffer_size=LARGEST_HEAD),
            log_enabled=False,
        )
        for address in addresses
    ]

    def stop() -> None:
        for server in servers:
            server.stop()  # type: ignore[no-untyped-call]

    loop = asyncio.get_running_loop()

    def stop_soon() -> None:
        if leave.leaving.is_set() or not leave.drain:
            stop()
        else:
            leave.leaving.set()
            loop.call_later(leave.drain, stop)
            leave.others()

    for number, handler in ((signal.SIGINT, stop), (signal.SIGTERM, stop_soon)):
        with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C raises KeyboardInterrupt instead
            loop.add_signal_handler(number, handler)
    threading.Thread(target=_report_ready, args=(addresses, port, ready), daemon=True).start()
    try:
        await asyncio.gather(*(server.serve() for server in servers))
    finally:
        stop()
        for number in (signal.SIGINT, signal.SIGTERM):  # a second signal must not meet a half-closed loop
            with contextlib.suppress(NotImplementedError, ValueError):
                loop.remove_signal_handler(number)
                signal.signal(number, signal.SIG_IGN)


def _report_ready(addresses: Sequence[str], port: int, ready: Callable[[], None]) -> None:
    for address in addresses:
        reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address)
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection((reachable, port), timeout=1):
                break
            time.sleep(0.05)
        else:
            return
    ready()
