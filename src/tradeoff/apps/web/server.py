"""The server: one process that replies, and worker processes that compute. ``run_server`` puts all parts together.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from starlette.types import ASGIApp

from tradeoff.apps.web import jobs
from tradeoff.apps.web.app import make_app
from tradeoff.apps.web.limits import Limits as Limits
from tradeoff.apps.web.security import LOOPBACK
from tradeoff.errors import ArgumentError, TradeoffError
from tradeoff.sources import AnyProblem
from tradeoff.stores import Store, open_store
from tradeoff.stores.memory import InMemoryStore
from tradeoff.studies import Study
from tradeoff.studies.compute import Compute, default_workers
from tradeoff.studies.service import Context, StudyService

HEADER_TIMEOUT = 4_000  # milliseconds for the head of a request, and for an idle connection
LARGEST_HEAD = 32 << 10  # bytes of a request's head
BACKLOG = 4_096  # connections that may wait to be accepted
CONNECTIONS = 16_384  # open connections of a process; Granian accepts no more until one closes
OTHER_FILES = 256  # descriptors reserved for the store, the modules and the threads
GRACE = 3.0  # seconds that requests have to end when the server stops
COLLECT_AFTER = (5_000, 3, 1)  # objects, young collections, middle collections


@dataclass(frozen=True)
class ServerOptions:
    """Where a study is served, and to whom."""

    addresses: tuple[str, ...] = ("127.0.0.1",)  # numeric
    port: int = 0  # 0 picks a free one
    hosts: tuple[str, ...] = ()  # the names under which other machines know this one
    limits: Limits = field(default_factory=Limits)
    visitor_header: str | None = None
    drain: float = 0.0  # seconds for which it goes on after SIGTERM
    workers: int | None = None  # processes that compute; None: as many as there are cores for


def run_server(
    study: Study,
    problem: AnyProblem,
    store: Store,
    options: ServerOptions,
    *,
    store_address: str = "",
    load: Callable[[], AnyProblem] | None = None,
    ready: Callable[[int], None] = lambda port: None,
) -> None:
    """Serve a study until interrupted; ``ready`` is called with the port when connections are accepted.

    Worker processes open the store at ``store_address`` and read the problem from there, or with ``load``, a function that can
    be pickled. Without an address, a thread of this process computes.
    """
    port = check_port(options.addresses, options.port)
    leaving = threading.Event()
    problem.threads = 1  # many participants are served at once: one core each
    if store_address and not isinstance(store, InMemoryStore):
        workers = default_workers() if options.workers is None else options.workers
        compute = Compute(load_context, (store_address, study.name, load), workers=workers)
    else:
        compute = Compute(Context.of, (store, study, problem))
    service = StudyService(study, problem, store, compute)
    app = make_app(
        service, hosts=(*LOOPBACK, *options.hosts), limits=options.limits, visitor_header=options.visitor_header,
        leaving=leaving,
    )  # fmt: skip
    shorten_collections()

    async def run() -> None:
        warm = [compute.get(("warm up", i), jobs.warm_up, near=near) for i, near in enumerate(_one_per_worker(compute))]
        await asyncio.gather(*warm)
        shutdown = Shutdown(leaving, options.drain, compute.close)
        await _serve(app, options.addresses, port, lambda: ready(port), shutdown)

    try:
        asyncio.run(run())
    finally:
        compute.close()


def load_context(address: str, name: str, load: Callable[[], AnyProblem] | None) -> Context:
    """Return the context of a worker process.

    If the problem's file was changed or deleted since the server began, this is the problem as it is stored with the study.
    """
    with open_store(address, write=False) as store:
        study = Study.read(store, name)
        problem = None
        if load is not None:
            with contextlib.suppress(TradeoffError):
                problem = load()
                study.check_same(problem)
        if problem is None or problem.fingerprint != study.fingerprint:
            problem = Study.problem_of(store, name)
        problem.threads = 1
        return Context.of(store, study, problem)


def _one_per_worker(compute: Compute) -> list[bytes]:
    """Return a key for each worker, which the compute service sends to that worker."""
    found: dict[int, bytes] = {}
    for i in range(1000):
        found.setdefault(compute.worker_of(key := str(i).encode()), key)
        if len(found) == len(compute.workers):
            break
    return list(found.values())


def shorten_collections() -> None:
    """Make every garbage collection short: it examines only objects created since the last full one.

    Solved directions and sessions are many and live long, but none is part of a reference cycle: they are freed when the
    last reference to them is dropped, and need no collector.
    """
    with _delay_interrupts():
        gc.collect()
        gc.freeze()
        gc.collect()  # Python delays a full collection until objects have grown by a quarter of what the last one examined
    gc.set_threshold(*COLLECT_AFTER)
    gc.callbacks.append(_freeze_survivors)


@contextlib.contextmanager
def _delay_interrupts() -> Iterator[None]:
    """Delay Ctrl-C to the end of the block: Python ignores exceptions that are raised during a garbage collection."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: pressed.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed.is_set():
        raise KeyboardInterrupt


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
class Shutdown:
    """What SIGTERM does: the health page says so, requests are served for a while, and the server stops."""

    leaving: threading.Event = field(default_factory=threading.Event)
    drain: float = 0.0  # seconds; a load balancer notices meanwhile, and sends visitors to another server
    refuse: Callable[[], None] = lambda: None  # ends the requests that still wait for a computation


async def _serve(
    app: ASGIApp, addresses: Sequence[str], port: int, ready: Callable[[], None], shutdown: Shutdown
) -> None:
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

    loop = asyncio.get_running_loop()

    def stop() -> None:
        for server in servers:
            server.stop()  # type: ignore[no-untyped-call]  # Granian waits until open requests have ended
        loop.call_later(GRACE, shutdown.refuse)

    def stop_soon() -> None:
        if shutdown.leaving.is_set() or not shutdown.drain:
            stop()
        else:
            shutdown.leaving.set()
            loop.call_later(shutdown.drain, stop)

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
