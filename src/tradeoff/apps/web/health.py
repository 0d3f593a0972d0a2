"""Whether the server is well, for what watches over it: a health page for everybody, and metrics behind the admin secret."""

from __future__ import annotations

import contextlib
import json
import math
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tradeoff.apps.web.admin import checked
from tradeoff.apps.web.threads import aside
from tradeoff.errors import StoreError
from tradeoff.studies import Sessions
from tradeoff.studies.study import FOLDER

BUCKETS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # seconds
TELL_AFTER = 1.0  # seconds
STATM = Path("/proc/self/statm")


@dataclass
class Figures:
    """What a process has counted since its start, and how it is now."""

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)  # by kind and status
    waits: Counter[float] = field(default_factory=Counter)  # by bucket
    seconds: float = 0.0
    solves: int = 0
    waiting: int = 0
    memory: int = 0  # 0 on systems that do not say

    def add(self, other: Figures, *, alive: bool) -> None:
        """Add what another process has counted; how one is that has ended does not matter."""
        self.requests.update(other.requests)
        self.waits.update(other.waits)
        self.seconds += other.seconds
        self.solves += other.solves
        if alive:
            self.waiting += other.waiting
            self.memory += other.memory

    def to_json(self) -> str:
        """Return the figures for another process to read."""
        lists = {"requests": [[*key, n] for key, n in self.requests.items()], "waits": list(self.waits.items())}
        numbers = {name: getattr(self, name) for name in ("seconds", "solves", "waiting", "memory")}
        return json.dumps(lists | numbers)

    @classmethod
    def from_json(cls, text: str) -> Figures:
        """Return the figures that another process has written."""
        given = json.loads(text)
        requests = Counter({(kind, status): n for kind, status, n in given.pop("requests")})
        return cls(requests, Counter(dict(given.pop("waits"))), **given)


def tell_others(folder: Path | None, own: Callable[[], Figures]) -> None:
    """Write the own figures into a folder from now on, for the other processes of the server; None: there are no others."""

    def keep_telling(folder: Path) -> None:
        told, path = "", folder / f"{os.getpid()}.json"
        while folder.exists():
            text = own().to_json()
            if text != told:
                fresh = path.with_suffix(".new")
                with contextlib.suppress(OSError):
                    fresh.write_text(text, encoding="utf-8")
                    fresh.replace(path)
                    told = text
            time.sleep(TELL_AFTER)

    if folder is not None:
        threading.Thread(target=keep_telling, args=(folder,), daemon=True).start()


class Metrics:
    """Counts requests on their way to the application: how many, how they ended, and how long they took.

    The processes of a server tell each other by files in a folder, a second after something has happened.
    """

    def __init__(self, app: ASGIApp, folder: Path | None = None) -> None:
        self.app, self.folder = app, folder
        self._own = Figures()
        self._lock = threading.Lock()

    def tell(self, sessions: Sessions) -> None:
        """Write the own figures from now on, for the other processes of the server."""
        tell_others(self.folder, lambda: self.own(sessions))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and note how it ended."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin, status = time.perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, noted)
        finally:
            self.note(_kind(scope), status, time.perf_counter() - begin)

    def note(self, kind: str, status: int, seconds: float) -> None:
        """Note a request that has ended."""
        bucket = next((most for most in BUCKETS if seconds <= most), math.inf)
        with self._lock:
            self._own.requests[kind, status] += 1
            self._own.waits[bucket] += 1
            self._own.seconds += seconds

    def own(self, sessions: Sessions) -> Figures:
        """Return the figures of this process."""
        with self._lock:
            own = replace(self._own, requests=self._own.requests.copy(), waits=self._own.waits.copy())
        return replace(own, solves=sessions.solves, waiting=sessions.queue.waiting, memory=memory())

    def of_all(self, sessions: Sessions) -> Figures:
        """Return the figures of all processes of this server, those included that have been replaced."""
        found = self.own(sessions)
        for path in [] if self.folder is None else self.folder.glob("*.json"):
            pid = int(path.stem)
            if pid != os.getpid():
                found.add(Figures.from_json(path.read_text(encoding="utf-8")), alive=_alive(pid))
        return found

    def text(self, sessions: Sessions) -> str:
        """Return everything in the format that Prometheus reads."""
        found = self.of_all(sessions)
        requests = found.requests
        answers = sum(count for (kind, status), count in requests.items() if kind == "answer" and status < 400)
        errors = sum(count for (_, status), count in requests.items() if status >= 500)
        plans = getattr(getattr(sessions.begins_with, "plans", None), "values", ())
        lines = [
            *_family("tradeoff_requests_total", "counter", "Requests by kind and status.",
                     [({"kind": kind, "status": status}, n) for (kind, status), n in sorted(requests.items())]),
            *_family("tradeoff_answers_total", "counter", "Answers; one that is sent twice counts twice.", [({}, answers)]),
            *_family("tradeoff_errors_total", "counter", "Requests that ended with a status of 500 or more.", [({}, errors)]),
            *_family("tradeoff_solves_total", "counter", "Directions that the problem was solved for to ask and to certify.",
                     [({}, found.solves)]),
            *_family("tradeoff_compiled_plans", "gauge", "Plans computed beforehand that new interviews use.",
                     [({}, len(plans))]),
            *_family("tradeoff_waiting", "gauge", "Computations that wait for their turn.", [({}, found.waiting)]),
            *_family("tradeoff_memory_bytes", "gauge", "Resident memory of all processes of this server.",
                     [({}, found.memory)] if found.memory else []),
            "# HELP tradeoff_wait_seconds Time until a request was replied to.",
            "# TYPE tradeoff_wait_seconds histogram",
        ]  # fmt: skip
        total = 0
        for most in (*BUCKETS, math.inf):
            total += found.waits.get(most, 0)
            name = "+Inf" if most == math.inf else f"{most:g}"
            lines.append(f'tradeoff_wait_seconds_bucket{{le="{name}"}} {total}')
        lines += [f"tradeoff_wait_seconds_sum {found.seconds:.6f}", f"tradeoff_wait_seconds_count {total}"]
        return "\n".join(lines) + "\n"


def _kind(scope: Scope) -> str:
    """Return what a request is, never its address, which holds a secret."""
    path: str = scope["path"]
    if scope["method"] == "POST" and path.endswith(("/answer", "/answers")):
        return "answer"
    first = path.split("/")[1] if "/" in path else ""
    return {"i": "page", "api": "api", "admin": "admin", "static": "static", "healthz": "health"}.get(first, "other")


def _family(name: str, kind: str, description: str, amounts: Iterable[tuple[Mapping[str, object], float]]) -> list[str]:
    lines = [f"# HELP {name} {description}", f"# TYPE {name} {kind}"]
    for labels, amount in amounts:
        inside = ",".join(f'{key}="{value}"' for key, value in labels.items())
        lines.append(f"{name}{f'{{{inside}}}' if inside else ''} {amount}")
    return lines


def memory() -> int:
    """Return the resident memory in bytes, or 0 on systems that do not say."""
    try:
        return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _alive(pid: int) -> bool:
    if os.name == "nt":  # there, os.kill ends a process whatever the signal
        return True
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


async def healthz(request: Request) -> Response:
    """Say whether the server takes visitors and its store works: 200 or 503."""
    sessions: Sessions = request.app.state.sessions
    if request.app.state.leaving.is_set():
        return PlainTextResponse("shutting down\n", 503)
    try:
        await aside(sessions.store.names, FOLDER)
    except StoreError:
        return PlainTextResponse("the store cannot be read\n", 503)
    return PlainTextResponse("ok\n" + (f"{sessions.compiling}\n" if sessions.compiling else ""))


async def metrics(request: Request) -> Response:
    """Return the metrics of this server."""
    sessions, _ = checked(request)
    counted: Any = request.app.state.metrics
    text = await aside(counted.text, sessions)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


routes = [Route("/healthz", healthz), Route("/admin/{secret}/metrics", metrics)]
