"""Whether the server is well, for what watches over it: a health page for everybody, and metrics behind the admin secret."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tradeoff.apps.web.admin import checked
from tradeoff.apps.web.threads import aside
from tradeoff.errors import StoreError
from tradeoff.strategies.cache import cache_of
from tradeoff.studies import Sessions
from tradeoff.studies.study import FOLDER

BUCKETS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # seconds
STATM = Path("/proc/self/statm")


class Metrics:
    """Counts requests on their way to the application: how many, how they ended, and how long they took."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.requests: Counter[tuple[str, int]] = Counter()  # by kind and status
        self.waits: Counter[float] = Counter()  # by bucket
        self.seconds = 0.0
        self._lock = threading.Lock()

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
        bucket = next((most for most in BUCKETS if seconds <= most), float("inf"))
        with self._lock:
            self.requests[kind, status] += 1
            self.waits[bucket] += 1
            self.seconds += seconds

    def text(self, sessions: Sessions) -> str:
        """Return everything in the format that Prometheus reads."""
        with self._lock:
            requests, waits, seconds = dict(self.requests), dict(self.waits), self.seconds
        answers = sum(count for (kind, status), count in requests.items() if kind == "answer" and status < 400)
        errors = sum(count for (_, status), count in requests.items() if status >= 500)
        queue = sessions.queue
        lines = [
            *_family("tradeoff_requests_total", "counter", "Requests by kind and status.",
                     [({"kind": kind, "status": status}, n) for (kind, status), n in sorted(requests.items())]),
            *_family("tradeoff_answers_total", "counter", "Answers; one that is sent twice counts twice.", [({}, answers)]),
            *_family("tradeoff_errors_total", "counter", "Requests that ended with a status of 500 or more.", [({}, errors)]),
            *_family("tradeoff_solves_total", "counter", "Directions that the problem was solved for.",
                     [({}, cache_of(sessions.problem).solved)]),
            *_family("tradeoff_waiting", "gauge", "Computations that wait for their turn.", [({}, queue.waiting)]),
            *_family("tradeoff_memory_bytes", "gauge", "Resident memory of this process.", _memory()),
            "# HELP tradeoff_wait_seconds Time until a request was replied to.",
            "# TYPE tradeoff_wait_seconds histogram",
        ]  # fmt: skip
        total = 0
        for most in (*BUCKETS, float("inf")):
            total += waits.get(most, 0)
            name = "+Inf" if most == float("inf") else f"{most:g}"
            lines.append(f'tradeoff_wait_seconds_bucket{{le="{name}"}} {total}')
        lines += [f"tradeoff_wait_seconds_sum {seconds:.6f}", f"tradeoff_wait_seconds_count {total}"]
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


def _memory() -> list[tuple[Mapping[str, object], float]]:
    """Return the resident memory in bytes, or nothing on systems that do not say."""
    try:
        pages = int(STATM.read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return []
    return [({}, pages * os.sysconf("SC_PAGE_SIZE"))]


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
    """Return the metrics of this process."""
    sessions, _ = checked(request)
    counted: Any = request.app.state.metrics
    text = await aside(counted.text, sessions)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


routes = [Route("/healthz", healthz), Route("/admin/{secret}/metrics", metrics)]
