"""Health check for everybody, and Prometheus metrics behind the admin secret."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tradeoff.apps.web.admin import admin_service
from tradeoff.apps.web.pages import service_of
from tradeoff.errors import StoreError
from tradeoff.studies.compute import resident_memory
from tradeoff.studies.service import StudyService
from tradeoff.studies.study import FOLDER

BUCKETS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # seconds
CHECK_AFTER = 1.0  # seconds between two reads of the store
STORE_PATIENCE = 5.0  # seconds for one of them


class Metrics:
    """Counts requests before they reach the application: how many, how they ended, and how long they took."""

    def __init__(self, app: ASGIApp, service: StudyService) -> None:
        self.app, self.registry = app, CollectorRegistry()
        self._requests = Counter(
            "tradeoff_requests", "Requests by kind and status.", ["kind", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "tradeoff_request_seconds", "Time until a request was replied to.", buckets=BUCKETS, registry=self.registry
        )
        compute = service.compute
        self._gauge("tradeoff_waiting", "Computations that wait for a worker.", lambda: compute.waiting)
        restarts: Callable[[], float] = lambda: sum(max(0, worker.restarts) for worker in compute.workers)  # noqa: E731
        self._gauge("tradeoff_worker_restarts", "Worker processes that died or hung and were replaced.", restarts)
        memory: Callable[[], float] = lambda: resident_memory() + sum(w.memory() for w in compute.workers)  # noqa: E731
        self._gauge("tradeoff_memory_bytes", "Resident memory of all processes of this server.", memory)

    def _gauge(self, name: str, description: str, value: Callable[[], float]) -> None:
        Gauge(name, description, registry=self.registry).set_function(value)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count it when it has ended."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin, status = time.perf_counter(), 500

        async def send_counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, send_counted)
        finally:
            self._requests.labels(_kind(scope), status).inc()
            self._seconds.observe(time.perf_counter() - begin)


def _kind(scope: Scope) -> str:
    """Return what a request is, never its address, which holds a secret."""
    path: str = scope["path"]
    if scope["method"] == "POST" and path.endswith(("/answer", "/answers")):
        return "answer"
    first = path.split("/")[1] if "/" in path else ""
    return {"i": "page", "api": "api", "admin": "admin", "static": "static", "healthz": "health"}.get(first, "other")


class StoreCheck:
    """Whether the store can be read. It is read at most once in ``CHECK_AFTER`` seconds, however many ask."""

    def __init__(self, service: StudyService) -> None:
        self._service, self._works, self._at = service, False, -math.inf
        self._lock = asyncio.Lock()

    async def works(self) -> bool:
        """Return whether the store could be read when it was last tried."""
        async with self._lock:
            if time.monotonic() >= self._at + CHECK_AFTER:
                try:
                    async with asyncio.timeout(STORE_PATIENCE):
                        await self._service.on_disk(self._service.store.names, FOLDER)
                    self._works = True
                except (StoreError, TimeoutError):
                    self._works = False
                self._at = time.monotonic()
            return self._works


async def healthz(request: Request) -> Response:
    """Say whether the server takes visitors and its store works: 200 or 503."""
    if request.app.state.leaving.is_set():
        return PlainTextResponse("shutting down\n", 503)
    if not await request.app.state.store_check.works():
        return PlainTextResponse("the store cannot be read\n", 503)
    compute = service_of(request).compute
    restarts = sum(max(0, worker.restarts) for worker in compute.workers)
    return PlainTextResponse(f"ok\nwaiting {compute.waiting}\nworkers {len(compute.workers)}\nrestarts {restarts}\n")


async def metrics(request: Request) -> Response:
    """Return the metrics of this server."""
    admin_service(request)
    counted: Any = request.app.state.metrics
    return Response(generate_latest(counted.registry), media_type=CONTENT_TYPE_LATEST)


routes = [Route("/healthz", healthz), Route("/admin/{secret}/metrics", metrics)]
