"""The application: pages for participants, an API for programs, one study behind both."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Router
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Scope

from tradeoff.apps.web import admin, api, health, pages, sharing
from tradeoff.apps.web.limits import Limiter, Limits
from tradeoff.apps.web.security import LOOPBACK, Guard
from tradeoff.errors import ArgumentError, LogError, StoreError
from tradeoff.stores import DamagedError, MissingError
from tradeoff.studies import TurnError
from tradeoff.studies.compute import BusyError, SlowError, WorkerLostError
from tradeoff.studies.service import StudyService

STATIC = Path(__file__).parent / "static"
COMPRESSED_FROM = 1_000  # bytes
COMPRESSION = 4  # of 9; higher levels take longer and save little

log = logging.getLogger("tradeoff.web")


def make_app(
    service: StudyService,
    *,
    hosts: Iterable[str] = LOOPBACK,
    limits: Limits | None = None,
    visitor_header: str | None = None,
    leaving: threading.Event | None = None,
) -> ASGIApp:
    """Return the application for one study: the guard, then the limits, the metrics, compression and the routes.

    Once ``leaving`` is set, the health page says that the server is shutting down.
    """
    app = Starlette(
        routes=[
            *pages.routes,
            *sharing.routes,
            *admin.routes,
            *health.routes,
            # No router redirects: a redirect repeats the secret in the address, and behind TLS it would name http://.
            Mount("/api", Router(api.routes, redirect_slashes=False)),
            Mount("/static", StaticFiles(directory=STATIC, packages=[("tradeoff.presentation", "static")])),
        ],
        exception_handlers={
            MissingError: _not_found,
            TurnError: _conflict,
            BusyError: _busy,
            SlowError: _slow,
            WorkerLostError: _worker_lost,
            ArgumentError: _unprocessable,
            DamagedError: _unreadable,
            StoreError: _store_failed,
            LogError: _unreadable,
            HTTPException: _http_error,
            Exception: _internal_error,
        },
    )
    app.router.redirect_slashes = False
    app.state.service = service
    app.state.leaving = leaving or threading.Event()
    app.state.store_check = health.StoreCheck(service)
    app.state.overview = admin.Overview(service)
    # Compression reveals nothing to other sites (BREACH): only who knows the secret in an address can request its page.
    compressed = GZipMiddleware(app, minimum_size=COMPRESSED_FROM, compresslevel=COMPRESSION)
    app.state.metrics = metrics = health.Metrics(compressed, service)
    return Guard(Limiter(metrics, limits or Limits(), visitor_header, refuse=_limit_reached), hosts)


def _error(request: Request, status: int, title: str, sentence: str, **headers: str) -> Response:
    """Return an error as a page for people or as data for programs."""
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": sentence}, status, headers)
    return pages.message(title, sentence, status, headers)


def _sentence(words: object) -> str:
    text = str(words)
    return f"{text[:1].upper()}{text[1:]}."


def _limit_reached(scope: Scope, status: int, sentence: str, headers: Mapping[str, str]) -> Response:
    return _error(Request(scope), status, "Please wait", _sentence(sentence), **headers)


def _not_found(request: Request, error: Exception) -> Response:
    # The same reply for a link that never existed and for one of another study.
    return _error(request, 404, "Not found", "There is nothing at this address. Check the link you were given.")


def _conflict(request: Request, error: Exception) -> Response:
    return _error(request, 409, "Already answered", _sentence(error))


def _unprocessable(request: Request, error: Exception) -> Response:
    return _error(request, 422, "That did not work", _sentence(error))


def _store_failed(request: Request, error: Exception) -> Response:
    log.error("the store failed: %s", error)
    if getattr(request.state, "saved", False):
        title = "Not ready"
        sentence = (
            "Everything you answered, stated or undid is saved, but the next question cannot be shown yet. Try again."
        )
    elif request.method in ("GET", "HEAD"):
        title = "Not ready"
        sentence = "This cannot be shown now. Try again in a moment; everything you answered before is safe."
    else:  # when a database stops answering, nobody knows whether it has stored the last write
        title = "Please try again"
        sentence = "This may not have been saved. Try again in a moment; everything you answered before is safe."
    return _error(request, 503, title, sentence, **{"retry-after": "5"})


def _busy(request: Request, error: Exception) -> Response:
    sentence = "Many people are answering at the moment; try again in a few seconds. Everything you answered is safe."
    return _error(request, 503, "Busy", sentence, **{"retry-after": "5"})


def _slow(request: Request, error: Exception) -> Response:
    sentence = "This takes longer than usual. Try again in a moment; everything you answered before is safe."
    return _error(request, 503, "Not ready yet", sentence, **{"retry-after": "5"})


def _worker_lost(request: Request, error: Exception) -> Response:
    log.error("%s", error)
    sentence = (
        "The server cannot compute this at the moment: it failed twice. Try again in a minute, and tell the person who sent "
        "you the link if it fails again. Everything you answered is safe."
    )
    return _error(request, 503, "Not ready", sentence, **{"retry-after": "60"})


def _unreadable(request: Request, error: Exception) -> Response:
    log.error("an interview cannot be continued: %s", error)
    sentence = "These answers cannot be read. Please tell the person who sent you the link."
    return _error(request, 500, "This cannot be continued", sentence)


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return _not_found(request, error)
    headers = dict(error.headers or {})
    detail = "this address does not accept that method" if error.status_code == 405 else str(error.detail)
    return _error(request, error.status_code, "That did not work", _sentence(detail), **headers)


def _internal_error(request: Request, error: Exception) -> Response:
    route = getattr(request.scope.get("route"), "path", "an unknown route")  # the route: the address holds a secret
    log.error("an internal error at %s", route, exc_info=error)
    return _error(request, 500, "Something went wrong", "This is our mistake. Everything you answered before is safe.")


__all__ = ["make_app"]
