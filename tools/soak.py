"""Let people answer for a long time, kill the server now and then, and check that nothing acknowledged is lost.

A real server runs in a separate process. Participants begin, think, answer, skip and undo through the JSON API; each one
who finishes is followed by a new one. This program notes every acknowledged action, and looks for it in the database at the
end: at its turn, with the same content.

    python tools/soak.py --minutes 30                     20 people who think for a second, SQLite
    python tools/soak.py --kills 60 --clients 8           kill -9 sixty times under 8 people who do not pause
    python tools/soak.py --kills 20 --store postgresql    the same on PostgreSQL

The last line is a summary. The exit code is 1 if an acknowledged action is lost, if one is stored twice or changed, or if
the database is damaged; otherwise 0. Replies that report an error are counted and named, but do not fail the run.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tradeoff.log import ACTIONS
from tradeoff.stores import open_store

TOOL = Path(sys.executable).parent / "tradeoff"
RESTART = 0.2  # seconds until a client tries again
UNDO, EQUAL, SKIP = 0.05, 0.15, 0.15  # shares of actions that undo an answer, and of replies that are a word


@dataclass(eq=False)
class Tally:
    """What the server has acknowledged, and what else happened."""

    actions: dict[str, dict[int, Any]] = field(default_factory=dict)  # by interview and turn: the reply, or "undo"
    finished: int = 0
    interrupted: int = 0  # requests that were sent and got no reply
    statuses: Counter[int] = field(default_factory=Counter)  # replies that report an error
    waits: list[float] = field(default_factory=list)  # seconds per answer
    memory: list[tuple[float, int]] = field(default_factory=list)  # minute, MB
    kills: int = 0

    @property
    def acknowledged(self) -> int:
        """The number of actions."""
        return sum(map(len, self.actions.values()))


class Served:
    """The server: started, killed and started again on the same port."""

    def __init__(self, folder: Path, words: Sequence[str]) -> None:
        self.folder, self.words, self.port = folder, words, 0
        self.output = folder / "server.txt"
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        words = [str(TOOL), *self.words, "--no-browser", "--port", str(self.port)]
        before = self.output.stat().st_size if self.output.exists() else 0
        with self.output.open("ab") as out:
            self.process = subprocess.Popen(words, cwd=self.folder, stdout=out, stderr=subprocess.STDOUT)
        while "Stop with" not in (said := self.output.read_text()[before:]):
            if self.process.poll() is not None:
                raise SystemExit(f"the server did not start: {said}")
            time.sleep(0.05)
        found = re.search(r"http://[^:]+:(\d+)/", said)
        assert found is not None
        self.port = int(found[1])

    def kill(self) -> None:
        """End it as a power cut would."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """End it as Ctrl-C does."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(timeout=120)

    def memory(self) -> int:
        """Return the megabytes that the process and its workers hold."""
        assert self.process is not None
        processes = [self.process.pid]
        with contextlib.suppress(OSError):
            for listed in Path(f"/proc/{self.process.pid}/task").glob("*/children"):  # any thread may have started one
                processes += [int(child) for child in listed.read_text().split()]
        total = 0
        for number in processes:
            with contextlib.suppress(OSError):
                found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{number}/status").read_text())
                total += int(found[1]) >> 10 if found else 0
        return total


class Person:
    """Goes through one interview, whatever happens to the server meanwhile."""

    def __init__(self, client: httpx.AsyncClient, tally: Tally, think: float, rng: random.Random) -> None:
        self.client, self.tally, self.think, self.rng = client, tally, think, rng

    async def request(self, method: str, path: str, sent: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """Return the data of a reply, or None if there is none and the question must be asked for again."""
        try:
            done = await self.client.request(method, path, json=sent)
        except httpx.HTTPError as error:
            self.tally.interrupted += not isinstance(error, httpx.ConnectError)  # which never reached the server
            await asyncio.sleep(RESTART)
            return None
        if done.status_code >= 400:
            self.tally.statuses[done.status_code] += 1
            await asyncio.sleep(float(done.headers.get("retry-after", RESTART)))
            return None
        data: dict[str, Any] = done.json()
        return data

    def reply(self, question: dict[str, Any]) -> str | dict[str, int]:
        """Return any reply to a question."""
        word = self.rng.random()
        if word < EQUAL + SKIP:
            return "equal" if word < EQUAL else "skip"
        best, worst = self.rng.sample(range(1, len(question["options"]) + 1), 2)
        return {"best": best, "worst": worst} if question["asks"] == "best-worst" else {"best": best}

    async def take_part(self) -> None:
        """Begin, and answer until nothing is left to ask."""
        while (state := await self.request("POST", "/api/interviews")) is None:
            pass
        token = str(state["id"])
        here, acknowledged = f"/api/interviews/{token}", self.tally.actions.setdefault(token, {})
        while not state["finished"]:
            if self.think:
                await asyncio.sleep(self.think * self.rng.uniform(0.5, 1.5))
            turn, answered = int(state["turn"]), int(state["answered"])
            said = "undo" if answered and self.rng.random() < UNDO else self.reply(state["question"])
            begun = time.perf_counter()
            if said == "undo":
                found = await self.request("POST", f"{here}/undo", {"turn": turn})
            else:
                found = await self.request("POST", f"{here}/answers", {"turn": turn, "reply": said})
            if found is not None:
                acknowledged[turn] = said
                self.tally.waits.append(time.perf_counter() - begun)
            while found is None:
                found = await self.request("GET", f"{here}/question")
            state = found
        if await self.request("GET", f"{here}/recommendation") is not None:
            self.tally.finished += 1


async def run(server: Served, given: argparse.Namespace, tally: Tally) -> None:
    """Let everybody answer until the time is over or the last kill is done."""
    rng = random.Random(given.seed)
    begun = time.monotonic()
    limits = httpx.Limits(max_connections=None)

    async def seat(seed: int) -> None:
        own = random.Random(seed)
        await asyncio.sleep(own.uniform(0, given.think))
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=60, limits=limits) as client:
            while True:
                await Person(client, tally, given.think, own).take_part()

    async def last() -> None:
        pause = 60 * given.minutes / max(1, given.kills) if given.minutes else given.every
        for _ in range(given.kills):
            await asyncio.sleep(pause * rng.uniform(0.5, 1.5))
            server.kill()
            tally.kills += 1
            await asyncio.to_thread(server.start)
        await asyncio.sleep(max(given.every, begun + 60 * given.minutes - time.monotonic()))

    async def watch() -> None:
        while True:
            minute = (time.monotonic() - begun) / 60
            tally.memory.append((minute, server.memory()))
            print(f"minute {minute:5.1f}: {tally.memory[-1][1]} MB, {tally.acknowledged:,} acknowledged, "
                  f"{tally.finished:,} finished, {tally.kills} kills, {tally.interrupted} interrupted, "
                  f"errors {dict(tally.statuses) or 'none'}", flush=True)  # fmt: skip
            await asyncio.sleep(given.report)

    works = [last(), watch(), *(seat(given.seed + i) for i in range(given.clients))]
    tasks = [asyncio.create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)  # only last() ends by itself
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    tally.memory.append(((time.monotonic() - begun) / 60, server.memory()))


def actions_of(events: list[dict[str, Any]]) -> list[Any]:
    """Return what was sent for each action in a log, "undo" or a reply: the n-th belongs to turn n."""
    found: list[Any] = []
    orders: dict[str | None, list[int]] = {}  # of the last question and of each attention check
    for event in events:
        if event["event"] == "question":
            orders[event.get("check")] = event["order"]
        elif event["event"] in ACTIONS:
            places = {name: event[name] for name in ("best", "worst") if name in event}
            order = orders.get(event.get("check"), [])
            named = {name: order.index(position) + 1 for name, position in places.items()}
            found.append("undo" if event["event"] == "undo" else named or event["reply"])
    return found


def check(store: str, tally: Tally, clients: int) -> tuple[int, int, list[str]]:
    """Return how many actions the database holds, how many acknowledged ones it lacks, and everything that is wrong."""
    wrong: list[str] = []
    kept = lost = 0
    with open_store(store, write=False) as opened:
        logs = opened.logs("soak")
    for token, acknowledged in tally.actions.items():
        events = logs.get(token)
        if not isinstance(events, list):
            lost += len(acknowledged)
            wrong.append(f"an interview with {len(acknowledged)} acknowledged actions is missing or damaged: {events}")
            continue
        actions = actions_of(events)
        kept += len(actions)
        for turn, said in acknowledged.items():
            found = actions[turn - 1] if turn <= len(actions) else "nothing"
            if found != said:
                lost += 1
                wrong.append(f"turn {turn} was acknowledged as {said}, stored is {found}")
    missing = clients + tally.interrupted + sum(tally.statuses.values())  # each client may have stopped in a request
    if kept - tally.acknowledged + lost > missing:
        wrong.append(
            f"{kept - tally.acknowledged} actions are stored without a reply, and only {missing} replies are missing"
        )
    if store.startswith("sqlite:///"):
        with contextlib.closing(sqlite3.connect(store.removeprefix("sqlite:///"))) as connection:
            found = connection.execute("PRAGMA integrity_check").fetchone()[0]
            if found != "ok":
                wrong.append(f"the database is damaged: {found}")
    return kept, lost, wrong


@contextmanager
def database(kind: str, folder: Path) -> Iterator[str]:
    """Give the address of a fresh store."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'soak.db'}"
        return
    from tests import postgresql

    with postgresql.server() as address:
        yield postgresql.new_database(address, "soak")


def at(memory: list[tuple[float, int]], minute: float) -> int:
    """Return the megabytes that were measured nearest to a minute."""
    return min(memory, key=lambda one: abs(one[0] - minute))[1]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run it, print a summary line, and exit with 1 if anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", nargs="?", default="commute", help="anything that can be loaded (default commute)")
    parser.add_argument(
        "--minutes", type=float, default=0.0, help="how long (default 30, or as long as the kills take)"
    )
    parser.add_argument("--kills", type=int, default=0, help="kill -9 so many times (default 0)")
    parser.add_argument("--every", type=float, default=2.0, help="seconds between kills without --minutes (default 2)")
    parser.add_argument("--clients", type=int, help="people at a time (default 20, with --kills 8)")
    parser.add_argument("--think", type=float, help="seconds to think, on average (default 1, with --kills 0)")
    parser.add_argument("--store", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--workers", type=int, help="processes that compute questions, as of tradeoff serve")
    parser.add_argument("--strategy", default="careful")
    parser.add_argument("--checks", action="store_true", help="with attention checks")
    parser.add_argument("--report", type=float, default=60.0, help="seconds between lines of progress (default 60)")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    given.minutes = given.minutes or (0.0 if given.kills else 30.0)
    given.clients = given.clients or (8 if given.kills else 20)
    given.think = (0.0 if given.kills else 1.0) if given.think is None else given.think
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="tradeoff-soak-") as name, database(given.store, Path(name)) as store:
        create = [str(TOOL), "study", "create", "soak", given.problem, "--strategy", given.strategy, "--store", store]
        create += [] if given.checks else ["--no-checks"]
        subprocess.run(create, cwd=name, check=True, capture_output=True, env=os.environ)
        words = ["study", "serve", "soak", "--store", store, "--visitor-limit", "begins-total=0"]
        words += [] if given.workers is None else ["--workers", str(given.workers)]
        server = Served(Path(name), words)
        try:
            asyncio.run(run(server, given, tally))
        finally:
            server.stop()
        kept, lost, wrong = check(store, tally, given.clients)
        complaints = [line for line in server.output.read_text().splitlines() if "Traceback" in line or "Error" in line]
    for line in [*wrong[:20], *complaints[:5]]:
        print(line)
    last = tally.memory[-1][0]
    waits = sorted(tally.waits) or [0.0]
    print(f"{len(tally.actions):,} people, {tally.finished:,} finished, {tally.kills} kills in {last:.1f} minutes on "
          f"{given.store}: {tally.acknowledged:,} acknowledged, {kept:,} stored, {lost} lost; "
          f"{tally.interrupted} interrupted, errors {dict(tally.statuses) or 'none'}, {len(complaints)} complaints; "
          f"answer p50 {1e3 * waits[len(waits) // 2]:.0f} ms, p95 {1e3 * waits[int(0.95 * len(waits))]:.0f} ms; "
          f"memory {at(tally.memory, 0)} / {at(tally.memory, last / 2)} / {at(tally.memory, last)} MB "
          "(start / middle / end)")  # fmt: skip
    raise SystemExit(1 if lost or wrong else 0)


if __name__ == "__main__":
    main()
