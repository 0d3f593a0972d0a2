"""One visitor cannot take the server away from the others."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message, Receive, Scope, Send

from tests.processes import PATIENCE
from tests.web.servers import Server, begin
from tradeoff.apps.web import limits as module
from tradeoff.apps.web.limits import QUEUE, REFILL_TIME, Bucket, Limiter, Limits, address_of
from tradeoff.errors import ArgumentError


def scope(address: str, path: str = "/i/x", method: str = "GET", **headers: str) -> Scope:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http", "method": method, "path": path, "headers": raw, "client": (address, 1)}


async def nothing() -> Message:
    raise AssertionError("nobody reads a body here")


async def ask(limiter: Limiter, request: Scope) -> tuple[int, dict[str, str]]:
    """Return the status and the headers of the reply."""
    got: list[Message] = []

    async def send(message: Message) -> None:
        got.append(message)

    await limiter(request, nothing, send)
    return got[0]["status"], {name.decode(): value.decode() for name, value in got[0]["headers"]}


async def reply(send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


class Slow:
    """An application whose requests take until they are let go."""

    def __init__(self) -> None:
        self.free, self.inside, self.most = asyncio.Event(), 0, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        if scope["path"] == "/i/x":
            await self.free.wait()
        self.inside -= 1
        await reply(send)


async def at_rest() -> None:
    for _ in range(200):
        await asyncio.sleep(0)


def test_one_address_works_on_a_few_and_lets_the_others_wait() -> None:
    async def run() -> None:
        app, few = Slow(), Limits(requests=3)
        limiter = Limiter(app, few)
        greedy = [asyncio.create_task(ask(limiter, scope("192.0.2.1"))) for _ in range(3 * (1 + QUEUE) - 1)]
        await at_rest()
        assert app.inside == 3
        assert (await ask(limiter, scope("192.0.2.1", "/static/style.css")))[
            0
        ] == 200  # it does not wait for the others
        greedy.append(asyncio.create_task(ask(limiter, scope("192.0.2.1"))))
        await at_rest()
        for path in ("/i/x", "/static/style.css", "/healthz-but-longer", "/health"):
            status, headers = await ask(limiter, scope("192.0.2.1", path))
            assert status == 429 and int(headers["retry-after"]) >= 1
        assert (await ask(limiter, scope("192.0.2.1", "/healthz")))[0] == 200
        assert (await ask(limiter, scope("192.0.2.2", "/i/y")))[0] == 200  # and anything of another one
        assert (await ask(limiter, scope("127.0.0.1", "/i/y")))[0] == 200
        app.free.set()
        assert {status for status, _ in await asyncio.gather(*greedy)} == {200}
        assert app.most <= 3 + 1 and limiter.present == 0

    asyncio.run(run())


def test_all_addresses_together_have_a_limit() -> None:
    async def run() -> None:
        app = Slow()
        limiter = Limiter(app, Limits(requests_total=5))
        first = [asyncio.create_task(ask(limiter, scope(f"192.0.2.{i}"))) for i in range(5)]
        await at_rest()
        status, headers = await ask(limiter, scope("192.0.2.9"))
        assert status == 503 and int(headers["retry-after"]) >= 1
        assert (await ask(limiter, scope("192.0.2.9", "/static/style.css")))[0] == 503
        assert (await ask(limiter, scope("192.0.2.9", "/healthz")))[0] == 200
        app.free.set()
        await asyncio.gather(*first)
        assert (await ask(limiter, scope("192.0.2.9")))[0] == 200

    asyncio.run(run())


def test_a_request_that_fails_or_is_dropped_gives_its_turn_back() -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError

    async def run() -> None:
        limiter = Limiter(broken, Limits(requests=1))
        for _ in range(3 * (1 + QUEUE)):
            with pytest.raises(RuntimeError):
                await ask(limiter, scope("192.0.2.1"))
        slow = Slow()
        limiter.app = slow
        tasks = [asyncio.create_task(ask(limiter, scope("192.0.2.1"))) for _ in range(3)]
        await at_rest()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert limiter.present == 0
        slow.free.set()
        assert (await ask(limiter, scope("192.0.2.1")))[0] == 200

    asyncio.run(run())


def test_begins_come_back_with_time() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await reply(send)

    async def run() -> None:
        now = [0.0]
        limiter = Limiter(app, Limits(begins=2, begins_total=3), clock=lambda: now[0])

        async def begins(address: str, path: str = "/start") -> int:
            status, headers = await ask(limiter, scope(address, path, "POST"))
            assert (status == 200) == ("retry-after" not in headers)
            return status

        assert [await begins("192.0.2.1") for _ in range(3)] == [200, 200, 429]
        assert await begins("192.0.2.1", "/start\n") == 429  # which the route would match
        assert await begins("192.0.2.1", "/i/x/answer") == 200
        assert await begins("192.0.2.2", "/api/interviews") == 200
        assert await begins("192.0.2.3") == 503  # the total
        now[0] = REFILL_TIME / 2
        assert [await begins("192.0.2.1") for _ in range(2)] == [200, 429]

    asyncio.run(run())


@pytest.mark.parametrize(("begins", "total", "most"), [(120, 200, 120), (2, 40, 10), (0, 40, 40), (2, 0, 200)])
def test_a_site_with_many_networks_leaves_beginnings_to_others(begins: int, total: int, most: int) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await reply(send)

    async def run() -> None:
        limiter = Limiter(app, Limits(begins=begins, begins_total=total), clock=lambda: 0.0)
        asked = [await ask(limiter, scope(f"2001:db8:1:{i:x}::1", "/start", "POST")) for i in range(200)]
        assert sum(status == 200 for status, _ in asked) == most
        status, _ = await ask(limiter, scope("2001:db8:2::1", "/start", "POST"))
        assert status == (200 if total != most else 503)

    asyncio.run(run())


@given(st.integers(1, 20), st.lists(st.floats(0, 200), min_size=1, max_size=60))
def test_a_bucket_grants_no_more_than_it_says_and_waits_no_longer(size: int, pauses: list[float]) -> None:
    now, granted = 0.0, []
    bucket = Bucket(size, now)
    for pause in pauses:
        now += pause
        if bucket.wait(now) == 0:
            bucket.spend()
            granted.append(now)
        else:  # exactly then there is a token, and not before
            assert bucket.wait(now + bucket.wait(now)) == pytest.approx(0, abs=1e-6)
            now = bucket.at
    for i, begin_at in enumerate(granted):
        for j, end in enumerate(granted[i:], start=i):
            assert j - i + 1 <= size + (end - begin_at) * size / REFILL_TIME + 1e-6


def test_only_so_many_addresses_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_VISITORS", 50)

    async def run() -> None:
        app = Slow()
        limiter = Limiter(app, Limits(begins=1))
        held = asyncio.create_task(ask(limiter, scope("192.0.2.1")))
        await at_rest()
        for i in range(500):
            await ask(limiter, scope(f"198.51.{i // 250}.{i % 250}", "/i/y"))
        assert len(limiter.visitors) <= 50 + 1
        assert "192.0.2.1" in limiter.visitors  # it has a request in progress
        app.free.set()
        await held

    asyncio.run(run())


@pytest.mark.parametrize(
    ("address", "seen"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("127.0.0.1", None),
        ("::1", None),
        ("", "unknown"),
    ],
)
def test_who_a_visitor_is(address: str, seen: str | None) -> None:
    assert address_of(scope(address), None) == seen
    assert address_of(scope("127.0.0.1", x_real_ip=address), "X-Real-IP") == seen
    assert (
        address_of(scope(address, x_real_ip="198.51.100.1"), None) == seen
    )  # without the option the header says nothing


@pytest.mark.parametrize("proxy", ["127.0.0.1", "192.0.2.99"])
@pytest.mark.parametrize(
    ("told", "seen"),
    [
        ("10.9.9.9, 192.0.2.7", "192.0.2.7"),  # a visitor's own claim stands before the proxy's
        ("203.0.113.5:4711", "203.0.113.5"),
        ("10.9.9.9:1,203.0.113.5:4711", "203.0.113.5"),
        ("[2001:db8::1]", "2001:db8::/64"),
        ("[2001:db8::1]:443", "2001:db8::/64"),
        ("for=203.0.113.5", "203.0.113.5"),
        ('for=10.9.9.9, For="[2001:db8::1]:443";proto=https', "2001:db8::/64"),
        ("proto=https;for=203.0.113.5:80", "203.0.113.5"),
        *(
            (odd, "unknown")
            for odd in (None, "", "unknown", "nonsense", "for=_hidden", "203.0.113.5:x", "[::1", "1.2.3.4,")
        ),
    ],
)
def test_an_address_in_a_header_of_a_proxy(proxy: str, told: str | None, seen: str) -> None:
    headers = {} if told is None else {"x_real_ip": told}
    assert address_of(scope(proxy, **headers), "X-Real-IP") == seen


def test_addresses_that_are_not_understood_share_one_limit_and_are_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await reply(send)

    async def run() -> None:
        limiter = Limiter(app, Limits(begins=3), "X-Real-IP", clock=lambda: 0.0)
        for i in range(10):
            status, _ = await ask(limiter, scope("127.0.0.1", "/start", "POST", x_real_ip=f"somebody-{i}"))
            assert status == (200 if i < 3 else 429)
        assert (await ask(limiter, scope("127.0.0.1", "/start", "POST", x_real_ip="192.0.2.1")))[0] == 200

    asyncio.run(run())
    assert len(caplog.records) == 1
    assert "X-Real-IP" in caplog.text and "somebody-0" in caplog.text


@pytest.mark.parametrize("text", ["begins", "begins=x", "begins=-1", "nothing=3", "", "begins=1e3"])
def test_a_limit_that_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(ArgumentError, match="--visitor-limit"):
        Limits.parse((text,))


def test_the_real_server_keeps_the_limits(tmp_path: Path) -> None:
    words = ("--visitor-header", "X-Real-IP", "--visitor-limit", "begins=3", "--visitor-limit", "requests=2")
    with Server(tmp_path, "serve", "coffee", "--strategy", "paper", *words) as server, server.client() as client:

        def post(path: str, address: str) -> Any:
            return client.post(path, headers={"x-real-ip": address})

        statuses = [post(path, "192.0.2.1").status_code for path in ("/start", "/api/interviews", "/start", "/start")]
        assert statuses == [303, 201, 303, 429]
        refused = post("/api/interviews", "192.0.2.1")
        assert refused.status_code == 429 and "error" in refused.json() and int(refused.headers["retry-after"]) > 0
        page = post("/start", "192.0.2.1")
        assert page.status_code == 429 and "<h1" in page.text and "content-security-policy" in page.headers
        assert post("/start", "192.0.2.2").status_code == 303  # others are not concerned
        here = begin(client)  # nor is the machine itself
        for _ in range(10):
            assert client.get(here, headers={"x-real-ip": "192.0.2.1"}).status_code == 200


def test_thirty_people_behind_one_address_meet_no_limit(tmp_path: Path) -> None:
    """A lab: all of them begin at once, and answer at once."""
    with Server(tmp_path, "serve", "coffee", "--strategy", "paper", "--visitor-header", "X-Real-IP") as server:

        async def run() -> list[int]:
            import httpx

            headers = {"x-real-ip": "192.0.2.1"}
            async with httpx.AsyncClient(base_url=server.address, timeout=PATIENCE, headers=headers) as client:

                async def person() -> list[int]:
                    statuses = []
                    done = await client.post("/start")
                    statuses.append(done.status_code)
                    here = done.headers["location"]
                    for turn in range(1, 4):
                        statuses.append((await client.get(here)).status_code)
                        sent = await client.post(f"{here}/answer", data={"turn": str(turn), "best": "1"})
                        statuses.append(sent.status_code)
                    return statuses

                found = await asyncio.gather(*(person() for _ in range(30)))
                return [status for statuses in found for status in statuses]

        assert set(asyncio.run(run())) <= {200, 303}
