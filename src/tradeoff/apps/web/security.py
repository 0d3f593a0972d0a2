"""Checks that every request passes: a known host, no form of another site, a small body that arrives in time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 8 << 10  # bytes; an answer has a few dozen
BODY_TIMEOUT = 4.0  # seconds for the whole body
DRAINED, DRAIN_TIMEOUT = 2 << 20, 1.0  # bytes and seconds spent on reading a body that is refused anyway
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
    """Refuses requests that no browser showing our pages sends, and adds the security headers to every reply."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = LOOPBACK) -> None:
        self.app = app
        self.hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                # The address of a static file changes with its content.
                static = scope["path"].startswith("/static/") and message["status"] == 200
                headers.setdefault("cache-control", "public, max-age=31536000, immutable" if static else "no-store")
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
            body = await asyncio.wait_for(_whole_body(receive), BODY_TIMEOUT)
        except TimeoutError:
            await refusal(scope, 408, "the request did not arrive in time")(scope, receive, send_guarded)
            return
        except _Broken:
            await refusal(scope, 400, "the request broke off, or its chunks are malformed")(
                scope, receive, send_guarded
            )
            return
        except _TooLarge:
            await _drain(receive)
            await _too_large(scope)(scope, receive, send_guarded)
            return

        async def receive_whole() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, receive_whole, send_guarded)

    def _refused(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        host = hosts[0] if len(hosts) == 1 else ""
        if _name_of(host) not in self.hosts:
            return refusal(scope, 400, "unknown host name; the server allows names given with --allowed-host")
        if scope["method"] not in ("GET", "HEAD", "OPTIONS"):
            origin, site = headers.get("origin"), headers.get("sec-fetch-site")
            foreign = origin is not None and _endpoint(origin) != _endpoint(f"{origin.partition('://')[0]}://{host}")
            if foreign or site in ("cross-site", "same-site"):
                return refusal(scope, 403, "requests from other sites are not accepted")
            length = headers.get("content-length", "0")
            if not (length.isascii() and length.isdigit()) or int(length) > LARGEST_BODY:
                return _too_large(scope)
        return None


class _TooLarge(Exception):
    """The body is larger than ``LARGEST_BODY``."""


class _Broken(Exception):
    """The body ended early, or it is not valid HTTP."""


async def _whole_body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Broken
        part = message.get("body", b"")
        size += len(part)
        if size > LARGEST_BODY:
            raise _TooLarge
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


async def _drain(receive: Receive) -> None:
    """Read some of the rest of the body: a client that is cut off while sending never reads the reply."""

    async def take() -> None:
        size = 0
        while size < DRAINED:
            message = await receive()
            size += len(message.get("body", b""))
            if message["type"] == "http.disconnect" or not message.get("more_body", False):
                return

    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(take(), DRAIN_TIMEOUT)


def _endpoint(address: str) -> tuple[str | None, int | None] | None:
    """Return the host and the port of a URL; None if it is malformed."""
    try:
        parts = urlsplit(address)
        return parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return None


@lru_cache(256)
def _name_of(host: str) -> str:
    """Return the name in a Host header, without the port; "" if it is malformed."""
    try:
        parts = urlsplit(f"//{host}")
        parts.port  # noqa: B018 - raises if malformed
    except ValueError:
        return ""
    name = "" if set(host) & set("/\\@?# ") else (parts.hostname or "").lower()
    return f"[{name}]" if ":" in name else name


def _too_large(scope: Scope) -> Response:
    return refusal(scope, 413, f"more than {LARGEST_BODY >> 10} KB were sent")


def refusal(scope: Scope, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return a reply that refuses a request: JSON for the API, text for everything else."""
    given = dict(headers or {})
    if scope["path"].startswith("/api/"):
        return JSONResponse({"error": sentence}, status, given)
    return PlainTextResponse(sentence + "\n", status, given)
