"""The application: pages for people, an API for programs, one study behind both."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from tradeoff.apps.web import admin, api, pages
from tradeoff.apps.web.security import LOOPBACK, Guard
from tradeoff.errors import ArgumentError, LogError, StoreError
from tradeoff.sources import AnyProblem
from tradeoff.stores import MissingError
from tradeoff.studies import Desk, TurnError

STATIC = Path(__file__).parent / "static"

log = logging.getLogger("tradeoff.web")


def make_app(desk: Desk, problem: AnyProblem, *, hosts: Iterable[str] = LOOPBACK) -> ASGIApp:
    """Return the application for one study."""
    app = Starlette(
        routes=[
            *pages.routes,
            *admin.routes,
            Mount("/api", routes=api.routes),
            Mount("/static", StaticFiles(directory=STATIC, packages=[("tradeoff.presentation", "static")])),
        ],
        exception_handlers={
            MissingError: _missing,
            TurnError: _over,
            ArgumentError: _wrong,
            StoreError: _not_saved,
            LogError: _unreadable,
            HTTPException: _http,
            Exception: _broken,
        },
    )
    app.router.redirect_slashes = False  # a redirect would repeat a secret, maybe in clear
    app.state.desk, app.state.problem = desk, problem
    return Guard(app, hosts)


def _said(request: Request, status: int, title: str, sentence: str, **headers: str) -> Response:
    """Return an error as a page for people or as data for programs."""
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": sentence}, status, headers)
    return pages.message(title, sentence, status, headers)


def _missing(request: Request, error: Exception) -> Response:
    # The same words for a link that never was and for one that is somebody else's.
    return _said(request, 404, "Not found", "There is nothing at this address. Check the link you were given.")


def _over(request: Request, error: Exception) -> Response:
    return _said(request, 409, "Already answered", f"{str(error).capitalize()}.")


def _wrong(request: Request, error: Exception) -> Response:
    return _said(request, 422, "That did not work", f"{error}.")


def _not_saved(request: Request, error: Exception) -> Response:
    log.error("not saved: %s", error)
    sentence = "This was not saved, try again in a moment. Everything you said before is safe."
    return _said(request, 503, "Not saved", sentence, **{"retry-after": "5"})


def _unreadable(request: Request, error: Exception) -> Response:
    log.error("a log cannot be gone on with: %s", error)
    sentence = "These answers were written by another version of this program; please tell whoever gave you the link."
    return _said(request, 500, "This cannot be continued", sentence)


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return _missing(request, error)
    headers = dict(error.headers or {})
    detail = "this address is not for that" if error.status_code == 405 else str(error.detail)
    return _said(request, error.status_code, "That did not work", f"{detail[:1].upper()}{detail[1:]}.", **headers)


def _broken(request: Request, error: Exception) -> Response:
    where = getattr(
        request.scope.get("route"), "path", "an address that is not ours"
    )  # never the secret in the address
    log.error("an internal error at %s", where, exc_info=error)
    return _said(request, 500, "Something went wrong", "This is our mistake. What you said before is safe.")


__all__ = ["make_app"]
