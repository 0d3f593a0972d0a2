"""What every request must pass: a known host, no other site's forms, a small body that arrives in time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 64 << 10  # an answer has a few dozen bytes
BODY_PATIENCE = 4.0  # seconds for all of it
DRAINED, DRAIN_PATIENCE = 2 << 20, 1.0  # bytes and seconds for what is refused anyway
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

HEADERS = {
    "content-security-policy": "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    """Refuses what no honest browser sends here, and tells browsers what our pages may do."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = LOOPBACK) -> None:
        self.app = app
        self.hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request through, or answer it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                kept = (
                    scope["path"].startswith("/static/") and message["status"] == 200
                )  # their addresses change with them
                headers.setdefault("cache-control", "public, max-age=31536000, immutable" if kept else "no-store")
            await send(message)

        refused = self._refused(scope)
        if refused is not None:
            await _drain(receive)
            await refused(scope, receive, send_guarded)
            return
        if scope["method"] in ("GET", "HEAD"):
            await self.app(scope, receive, send_guarded)
            return
        try:
            body = await asyncio.wait_for(_whole_body(receive), BODY_PATIENCE)
        except TimeoutError:
            await _answer(scope, 408, "the request did not arrive in time")(scope, receive, send_guarded)
            return
        except _TooLarge:
            await _drain(receive)
            too_large = f"more than {LARGEST_BODY >> 10} KB were sent"
            await _answer(scope, 413, too_large)(scope, receive, send_guarded)
            return

        async def receive_whole() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, receive_whole, send_guarded)

    def _refused(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        name = (urlsplit(f"//{host}").hostname or "") if _sane(host) else ""
        name = f"[{name}]" if ":" in name else name
        if name.lower() not in self.hosts:
            return _answer(scope, 400, "this server is not known under that name")
        if scope["method"] not in ("GET", "HEAD", "OPTIONS"):
            origin, site = headers.get("origin"), headers.get("sec-fetch-site")
            foreign = origin is not None and _place(origin) != _place(f"{origin.partition('://')[0]}://{host}")
            if foreign or site in ("cross-site", "same-site"):
                return _answer(scope, 403, "forms of other sites are not accepted")
            length = headers.get("content-length", "0")
            if not (length.isascii() and length.isdigit()) or int(length) > LARGEST_BODY:
                return _answer(scope, 413, f"more than {LARGEST_BODY >> 10} KB were sent")
        return None


class _TooLarge(Exception):
    """More was sent than any answer has."""


async def _whole_body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise TimeoutError
        part = message.get("body", b"")
        size += len(part)
        if size > LARGEST_BODY:
            raise _TooLarge
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


async def _drain(receive: Receive) -> None:
    """Take in some of what is still being sent: whoever is cut off in the middle never reads why."""

    async def take() -> None:
        size = 0
        while size < DRAINED:
            message = await receive()
            size += len(message.get("body", b""))
            if message["type"] == "http.disconnect" or not message.get("more_body", False):
                return

    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(take(), DRAIN_PATIENCE)


def _place(address: str) -> tuple[str | None, int | None] | None:
    """Return the host and the port of an address; None if it is nonsense."""
    try:
        parts = urlsplit(address)
        return parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return None


def _sane(host: str) -> bool:
    try:
        urlsplit(f"//{host}").port  # noqa: B018 - which raises for nonsense
    except ValueError:
        return False
    return not set(host) & set("/\\@?# ")


def _answer(scope: Scope, status: int, sentence: str) -> Response:
    if scope["path"].startswith("/api/"):
        return JSONResponse({"error": sentence}, status)
    return PlainTextResponse(sentence + "\n", status)
