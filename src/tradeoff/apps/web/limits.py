"""Limits on what one visitor, and all visitors together, can ask of the server.

A visitor is an address: an IPv4 address, or an IPv6 network of /64, which is what one household gets. An IPv6 site (/48)
has many such networks; it can begin only a part of all interviews. The machine itself (loopback) counts only towards the
totals: it is one person trying things out, or a proxy without ``--visitor-header``.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import math
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import islice
from weakref import WeakValueDictionary

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from tradeoff.apps.web.security import refusal
from tradeoff.errors import ArgumentError

REFILL_TIME = 600.0  # seconds over which interviews begun are counted
QUEUE = 4  # requests that may wait for each one in progress
MAX_VISITORS = 10_000  # addresses remembered; the least recent ones are forgotten
BEGIN_PATHS = frozenset({"/start", "/api/interviews"})
HEALTH = "/healthz"  # costs no more than a refusal
STATIC = "/static/"  # is not computed, and waits for nobody's computation
SITE = 48  # bits of the network that one customer of a provider may get
SITES = 4  # how many sites can together begin all interviews
THIS_MACHINE = "this machine"
UNKNOWN = "unknown"  # everybody whose address is not known counts as one visitor

_WITH_PORT = re.compile(r"\[(?P<six>[^\]]*)\](?::\d+)?|(?P<four>[\d.]+):\d+")

log = logging.getLogger("tradeoff.web")


@dataclass(frozen=True)
class Limits:
    """How much is allowed; 0 means no limit."""

    begins: int = 120  # interviews that one address begins in ten minutes
    begins_total: int = 12_000  # interviews begun in ten minutes
    requests: int = 16  # requests of one address in progress; four times as many may wait
    requests_total: int = 1_000  # requests in progress or waiting

    @classmethod
    def parse(cls, texts: tuple[str, ...]) -> Limits:
        """Return the limits given as NAME=N.

        >>> Limits.parse(("begins=500", "requests-total=0")).begins
        500
        """
        given: dict[str, int] = {}
        names = [field.name.replace("_", "-") for field in fields(cls)]
        for text in texts:
            name, _, number = text.partition("=")
            if name not in names:
                raise ArgumentError(f"--visitor-limit {text} names no limit; the limits are {', '.join(names)}")
            if not (number.isascii() and number.isdigit() and len(number) < 10):
                raise ArgumentError(
                    f"--visitor-limit {text} needs a whole number, such as {name}=100; 0 removes the limit"
                )
            given[name.replace("-", "_")] = int(number)
        return cls(**given)


class Bucket:
    """Tokens that are spent one at a time; a full bucket refills within ``REFILL_TIME``."""

    def __init__(self, size: int, now: float) -> None:
        self.size, self.tokens, self.at = size, float(size), now

    def wait(self, now: float) -> float:
        """Return the seconds until a token is there."""
        if not self.size:
            return 0.0
        self.tokens = min(self.size, self.tokens + (now - self.at) * self.size / REFILL_TIME)
        self.at = now
        return max(0.0, (1 - self.tokens) * REFILL_TIME / self.size)

    def spend(self) -> None:
        """Take a token."""
        self.tokens -= 1


class Visitor:
    """One address: the interviews it may still begin, and its requests in progress."""

    def __init__(self, limits: Limits, site: Bucket, now: float) -> None:
        self.begins, self.site = Bucket(limits.begins, now), site
        self.turns = asyncio.Semaphore(limits.requests or 1 << 30)
        self.present = 0  # requests in progress or waiting


class Limiter:
    """Passes requests on within the limits, and refuses the rest with 429 or 503 and ``Retry-After``."""

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        header: str | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        refuse: Callable[[Scope, int, str, Mapping[str, str]], Response] = refusal,
    ) -> None:
        self.app, self.limits, self.header, self.clock, self.refuse = app, limits, header, clock, refuse
        self.begins = Bucket(limits.begins_total, clock())
        self.present = 0
        self.visitors: OrderedDict[str, Visitor] = OrderedDict()
        self.sites: WeakValueDictionary[str, Bucket] = WeakValueDictionary()  # as long as one of its visitors is known
        self._warned = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, at once or when earlier ones of the same visitor are done, or refuse it."""
        if scope["type"] != "http" or scope["path"] == HEALTH:
            await self.app(scope, receive, send)
            return
        visitor = self._visitor(scope)
        refused = self._refused(scope, visitor)
        if refused is not None:
            status, sentence, wait = refused
            headers = {"retry-after": str(max(1, math.ceil(wait)))}
            await self.refuse(scope, status, sentence, headers)(scope, receive, send)
            return
        self.present += 1
        try:
            if visitor is None:
                await self.app(scope, receive, send)
                return
            visitor.present += 1
            try:
                async with nullcontext() if scope["path"].startswith(STATIC) else visitor.turns:
                    await self.app(scope, receive, send)
            finally:
                visitor.present -= 1
        finally:
            self.present -= 1

    def _refused(self, scope: Scope, visitor: Visitor | None) -> tuple[int, str, float] | None:
        """Return status, sentence and seconds to wait if a limit is reached; otherwise count the request."""
        limits, now = self.limits, self.clock()
        most = limits.requests * (1 + QUEUE)  # in progress and waiting
        if visitor is not None and limits.requests and visitor.present >= most:
            return 429, "too many requests from your network; try again in a moment", 2
        if limits.requests_total and self.present >= limits.requests_total:
            return 503, "too many requests at the moment; try again in a few seconds", 5
        # A route's pattern also matches a line feed at the end of the path.
        if scope["method"] != "POST" or scope["path"].rstrip("\n") not in BEGIN_PATHS:
            return None
        buckets = [(self.begins, 503, "too many interviews were started; try again later")]
        if visitor is not None:
            own = "too many interviews were started from this {}; try again later"
            buckets = [
                (visitor.begins, 429, own.format("address")),
                (visitor.site, 429, own.format("network")),
                *buckets,
            ]
        for bucket, status, sentence in buckets:
            if (wait := bucket.wait(now)) > 0:
                return status, sentence, wait
        for bucket, _, _ in buckets:
            bucket.spend()
        return None

    def _visitor(self, scope: Scope) -> Visitor | None:
        """Return who is asking; None for the machine itself."""
        name = scope["visitor"] = address_of(scope, self.header)  # who takes turns at computing
        if name is None:
            return None
        if name == UNKNOWN and self.header and not self._warned:
            self._warned = True
            found = Headers(scope=scope).getlist(self.header)
            log.warning(
                "the header %s (--visitor-header) is %s, which is no address; all such visitors share the limits of one",
                self.header, f"{found[-1]!r:.60}" if found else "missing",
            )  # fmt: skip
        visitor = self.visitors.get(name)
        if visitor is None:
            visitor = self.visitors[name] = Visitor(self.limits, self._site(name), self.clock())
            for oldest in list(islice(self.visitors, 2 if len(self.visitors) > MAX_VISITORS else 0)):
                if self.visitors[oldest].present:
                    self.visitors.move_to_end(oldest)
                elif len(self.visitors) > MAX_VISITORS:
                    del self.visitors[oldest]
        self.visitors.move_to_end(name)
        return visitor

    def _site(self, name: str) -> Bucket:
        """Return the interviews that the site of a visitor may still begin; an IPv4 address is its own site."""
        limits = self.limits
        if "/" not in name or not limits.begins or not limits.begins_total:
            return Bucket(0, self.clock())
        site = str(ipaddress.ip_network(name).supernet(new_prefix=SITE))
        most = max(limits.begins, limits.begins_total // SITES)
        return self.sites.setdefault(site, Bucket(most, self.clock()))


def address_of(scope: Scope, header: str | None) -> str | None:
    """Return the visitor's address as limits count it; None for loopback.

    A proxy adds what it saw at the end of the header; what stands before that came from the visitor. Where a header is named
    that is missing or holds no address, the peer does not count instead: it is the proxy.
    """
    if header:
        values = Headers(scope=scope).getlist(header)
        text = values[-1].rpartition(",")[2] if values else ""
    else:
        text = (scope.get("client") or ("",))[0]
    found = _visitor_name(text)
    return None if found == THIS_MACHINE else found


@lru_cache(4_096)
def _visitor_name(text: str) -> str:
    """Return an address as limits count it: IPv6 by network.

    >>> _visitor_name("2001:db8::1:2"), _visitor_name("::ffff:10.0.0.1"), _visitor_name("::1"), _visitor_name("me")
    ('2001:db8::/64', '10.0.0.1', 'this machine', 'unknown')

    It may have a port, and be written as in the header "Forwarded".

    >>> _visitor_name("203.0.113.5:4711"), _visitor_name('proto=https; For="[2001:db8::1]:443"')
    ('203.0.113.5', '2001:db8::/64')
    """
    pairs = (part.partition("=") for part in text.split(";"))
    named = [value for name, equals, value in pairs if equals and name.strip().lower() == "for"]
    text = (named[0] if named else text).strip().strip('"')
    if found := _WITH_PORT.fullmatch(text):
        text = found["six"] or found["four"] or ""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return UNKNOWN
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    if address.is_loopback:
        return THIS_MACHINE
    return str(address) if address.version == 4 else str(ipaddress.ip_network((address, 64), strict=False))
