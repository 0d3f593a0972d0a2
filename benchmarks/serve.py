"""Load test of the real server: how long participants wait when many answer at once, and whether anything is refused.

Simulated participants open the page, read the amounts of both options, think, and send the form. Each one who finishes is
followed by a new one. The server, its workers, the database and the participants share this machine.

    python benchmarks/serve.py                        500 participants, 2 s of thinking, SQLite: two minutes
    python benchmarks/serve.py --store postgresql     the same with PostgreSQL, which must be installed
    python benchmarks/serve.py --random               nearly every participant has another best plan: little can be shared
    python benchmarks/serve.py --random --compiled    the same on a compiled model, as of tradeoff compile
    python benchmarks/serve.py --people 50 --ramp 5 --seconds 10 --states 200     a quick look

Participants arrive evenly during --ramp seconds; waits are counted during the --seconds after it. The table has quantiles
of the wait in milliseconds: p50 is the median, p95 what 1 request in 20 exceeds. "Different histories" is how many sequences
of answers occurred: each had to be computed once, and everything else came from the cache. Memory is that of the server
and its workers, in which shared pages count once (PSS). The last line compares all
requests with the target: 95% within 300 ms and no errors. Run it while nothing else does.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil  # type: ignore[import-untyped]
from scipy import sparse

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tradeoff
from tradeoff import MDP
from tradeoff.problem import ScaledProblem
from tradeoff.problems.coverage import Coverage
from tradeoff.stores import open_store

PLENTY, REACH = 2, 4.0  # rich locations per good, and how far each reaches
TARGET = 300.0  # milliseconds, for 95% of the requests
PRECISION = 0.01

ROW = re.compile(
    r'<span class="name">(.*?)</span>.*?<span class="amount">(.*?)</span>.*?<span class="amount">(.*?)</span>',
    re.DOTALL,
)
TURN = re.compile(r'name="turn" value="(\d+)"')
NUMBER = re.compile(r"-?[\d,]*\.?\d+(?:e[-+]?\d+)?")


def field_trip(states: int, k: int, horizon: int) -> MDP:
    """Return a robot that gathers k goods on a field; one step in ten its wheels slip and it stays where it is.

    Each good is plentiful around a few locations, so preferences decide where to go.
    """
    rng = np.random.default_rng([states, k, horizon])
    wide = int(np.ceil(np.sqrt(states * 1.6)))
    at = np.stack(np.divmod(np.arange(states), wide), axis=1).astype(float)
    middles = at[rng.integers(states, size=(k, PLENTY))]
    goods = np.exp(-((at[:, None, None, :] - middles[None]) ** 2).sum(axis=3) / (2 * REACH**2)).sum(axis=2)
    matrices = []
    for down, right in ((0, 1), (1, 0), (0, -1), (-1, 0)):
        there = at + np.array([down, right])
        target = (there[:, 0] * wide + there[:, 1]).astype(int)
        inside = (there[:, 0] >= 0) & (there[:, 1] >= 0) & (there[:, 1] < wide) & (target < states)
        target = np.where(inside, target, np.arange(states))
        chances = np.concatenate([np.full(states, 0.9), np.full(states, 0.1)])
        rows = np.tile(np.arange(states), 2)
        matrices.append(
            sparse.csr_array((chances, (rows, np.concatenate([target, np.arange(states)]))), shape=(states, states))
        )
    rewards = np.repeat(goods[:, None, :], 4, axis=1)
    start = int((states // wide // 2) * wide + wide // 2)
    return MDP.from_sparse(
        matrices, rewards, horizon=horizon, start=start, name="field", objectives=["ore", "water", "light", "seeds"][:k]
    )


def random_successors(states: int, k: int, horizon: int) -> MDP:
    """Return an MDP with 4 actions of 4 random successors in every state: nearly everyone has a different best plan."""
    rng = np.random.default_rng([states, k, horizon])
    matrices = []
    for _ in range(4):
        rows = np.repeat(np.arange(states), 4)
        chances = rng.dirichlet(np.ones(4), size=states).ravel()
        matrices.append(
            sparse.csr_array((chances, (rows, rng.integers(states, size=4 * states))), shape=(states, states))
        )
    return MDP.from_sparse(matrices, rng.random((states, 4, k)) ** 3, horizon=horizon, name="random")


@dataclass(eq=False)
class Measured:
    """Seconds per request and per answer (the form, then the next page), after the ramp."""

    start: list[float] = field(default_factory=list)
    form: list[float] = field(default_factory=list)
    page: list[float] = field(default_factory=list)
    answer: list[float] = field(default_factory=list)
    result: list[float] = field(default_factory=list)
    finished: int = 0
    begun: int = 0
    errors: list[str] = field(default_factory=list)


class Person:
    """A participant with weights, who reads the page and answers it over one connection."""

    def __init__(self, address: tuple[str, int], scale: dict[str, float], think: float, seed: int) -> None:
        self.address, self.scale, self.think = address, scale, think
        self.random = random.Random(seed)
        drawn = np.random.default_rng(seed).dirichlet(np.ones(len(scale)))
        self.weights = dict(zip(scale, drawn.tolist(), strict=True))
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, str, str]:
        """Return the status, the address to go to and the text of a reply."""
        host, port = self.address
        for again in (False, True):  # the server closes idle connections
            if self.streams is None or self.streams[1].is_closing():
                self.streams = await asyncio.open_connection(host, port)
            reader, writer = self.streams
            writer.write(
                f"{method} {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: {len(body)}\r\n"
                "Accept-Encoding: gzip\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\n".encode()
                + body
            )
            head = b""
            try:
                head = await reader.readuntil(b"\r\n\r\n")
                break
            except (asyncio.IncompleteReadError, ConnectionError):
                self.streams = None
                if again:
                    raise
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        content = await reader.readexactly(int(headers.get("content-length", "0")))
        if headers.get("content-encoding") == "gzip":
            content = gzip.decompress(content)
        return int(lines[0].split()[1]), headers.get("location", ""), content.decode()

    def answer(self, page: str) -> str:
        """Return the reply, as a field of the form, by the averages on the page."""
        gain = 0.0
        for name, left, right in ROW.findall(page):
            if name in self.weights:
                amounts = [float(NUMBER.search(side).group().replace(",", "")) for side in (left, right)]  # type: ignore[union-attr]
                gain += self.weights[name] * (amounts[0] - amounts[1]) / self.scale[name]
        return "reply=equal" if abs(gain) <= PRECISION / len(self.weights) else "best=1" if gain > 0 else "best=2"

    async def take_part(self, measured: Measured, counting: asyncio.Event) -> None:
        """Go through a whole interview."""
        begin = time.perf_counter()
        status, here, _ = await self.ask("POST", "/start")
        self.check(status, 303, measured)
        measured.begun += 1
        status, place, page = await self.ask("GET", here)
        if counting.is_set():
            measured.start.append(time.perf_counter() - begin)
        while status == 200:
            await asyncio.sleep(self.think * self.random.uniform(0.5, 1.5))
            turn = TURN.search(page)
            assert turn is not None
            begin = time.perf_counter()
            sent = f"turn={turn[1]}&{self.answer(page)}".encode()
            status, place, _ = await self.ask("POST", f"{here}/answer", sent)
            middle = time.perf_counter()
            self.check(status, 303, measured)
            status, place, page = await self.ask("GET", place)
            end = time.perf_counter()
            if counting.is_set():
                measured.form.append(middle - begin)
                measured.page.append(end - middle)
                measured.answer.append(end - begin)
        self.check(status, 303, measured)
        begin = time.perf_counter()
        status, _, _ = await self.ask("GET", place)
        self.check(status, 200, measured)
        if counting.is_set():
            measured.result.append(time.perf_counter() - begin)
        measured.finished += 1

    @staticmethod
    def check(status: int, expected: int, measured: Measured) -> None:
        if status != expected:
            measured.errors.append(f"status {status} instead of {expected}")


async def crowd(
    address: tuple[str, int], problem: ScaledProblem, people: int, think: float, ramp: float, seconds: float
) -> Measured:
    """Let participants arrive during the ramp, and measure for so many seconds after it."""
    measured, counting = Measured(), asyncio.Event()
    scale = {o.name: float(s) for o, s in zip(problem.objectives, problem.scale, strict=True)}
    end = time.monotonic() + ramp + seconds
    seeds = iter(range(10**9))

    async def seat(number: int) -> None:
        await asyncio.sleep(ramp * number / people)
        while time.monotonic() < end:
            person = Person(address, scale, think, next(seeds))
            try:
                await asyncio.wait_for(person.take_part(measured, counting), max(1.0, end - time.monotonic()))
            except TimeoutError:
                return  # the time is over
            except (OSError, asyncio.IncompleteReadError) as error:
                measured.errors.append(repr(error))
            finally:
                if person.streams is not None:
                    person.streams[1].close()

    async def tell() -> None:
        while time.monotonic() < end:
            await asyncio.sleep(5)
            recent = measured.answer[-500:]
            wait = f", lately p95 {1e3 * float(np.quantile(recent, 0.95)):.0f} ms an answer" if recent else ""
            print(f"  {measured.begun} begun, {measured.finished} finished, {len(measured.errors)} errors{wait}",
                  file=sys.stderr, flush=True)  # fmt: skip

    async def start_counting() -> None:
        await asyncio.sleep(ramp)
        counting.set()

    await asyncio.gather(tell(), start_counting(), *(seat(number) for number in range(people)))
    return measured


@contextmanager
def database(kind: str, folder: Path) -> Iterator[str]:
    """Give the address of a fresh store."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'study.db'}"
        return
    from tests import postgresql

    with postgresql.server() as address:
        yield postgresql.new_database(address, "study")


def memory_of(pid: int) -> list[float]:
    """Return the memory of a process and of all that it has started in MB; shared pages are divided among them (PSS)."""
    server = psutil.Process(pid)
    return [process.memory_full_info().pss / 1e6 for process in (server, *server.children(recursive=True))]


@contextmanager
def served(
    problem: MDP | Coverage, store: str, strategy: str, folder: Path, workers: int | None = None
) -> Iterator[tuple[str, int, int]]:
    """Give the host, the port and the process of the real server."""
    tool = Path(sys.executable).parent / "tradeoff"
    tradeoff.save(problem, folder / "field.npz")
    words = ["study", "create", "crowd", "field.npz", "--no-checks", "--strategy", strategy, "--store", store]
    subprocess.run([str(tool), *words], cwd=folder, check=True, capture_output=True)
    output = folder / "server.txt"
    with output.open("wb") as out:
        process = subprocess.Popen(
            [str(tool), "study", "serve", "crowd", "--store", store, "--port", "0", "--no-browser",
             *([] if workers is None else ["--workers", str(workers)])], cwd=folder, stdout=out, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        for _ in range(600):
            found = re.search(r"http://([\d.]+):(\d+)/\s", output.read_text())
            if found and "Stop with" in output.read_text():
                break
            time.sleep(0.1)
        else:
            raise SystemExit(f"the server did not start: {output.read_text()}")
        yield found[1], int(found[2]), process.pid
    finally:
        process.terminate()
        process.wait(timeout=30)
        told = ("Error", "not saved")
        complaints = [line for line in output.read_text().splitlines() if any(word in line for word in told)]
        print("\n".join(complaints[:10]), file=sys.stderr)


def milliseconds(seconds: Sequence[float]) -> str:
    """Return the median, the 95% and 99% quantiles, and the maximum in milliseconds."""
    if not seconds:
        return "no request was served"
    return "  ".join(f"{1e3 * float(np.quantile(seconds, q)):>7.0f}" for q in (0.5, 0.95, 0.99, 1.0))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    people = parser.add_argument_group("participants")
    people.add_argument("--people", type=int, default=500, metavar="N", help="participants at any time (default 500)")
    people.add_argument("--think", type=float, default=2.0, metavar="SECONDS",
                        help="mean time to think; each is 0.5 to 1.5 times this (default 2)")  # fmt: skip
    people.add_argument("--ramp", type=float, default=30.0, metavar="SECONDS",
                        help="time in which they arrive, not measured (default 30)")  # fmt: skip
    people.add_argument("--seconds", type=float, default=60.0, help="time that is measured (default 60)")
    people.add_argument("--wait", type=float, default=0.0, metavar="SECONDS",
                        help="time between the start of the server and the first participant (default 0)")  # fmt: skip
    server = parser.add_argument_group("server")
    server.add_argument("--store", choices=["sqlite", "postgresql"], default="sqlite", help="default sqlite")
    server.add_argument("--workers", type=int, metavar="N",
                        help="processes that compute questions (default: as of tradeoff serve)")  # fmt: skip
    server.add_argument("--strategy", default="careful", metavar="NAME", help="default careful")
    problem_group = parser.add_argument_group("problem (a robot gathers goods on a field)")
    problem_group.add_argument("--states", type=int, default=1000, metavar="N", help="default 1000")
    problem_group.add_argument("--objectives", type=int, default=3, metavar="N", help="goods, at most 4 (default 3)")
    problem_group.add_argument("--horizon", type=int, default=24, metavar="N", help="steps (default 24)")
    problem_group.add_argument(
        "--random", action="store_true", help="random successors instead: participants share as little as possible"
    )
    problem_group.add_argument("--compiled", action="store_true", help="serve the compiled model")
    given = parser.parse_args(arguments)
    make = random_successors if given.random else field_trip
    model = make(given.states, given.objectives, given.horizon)
    problem = tradeoff.cover(model, tolerance=0.1 * PRECISION) if given.compiled else model
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with database(given.store, folder) as store:
            with served(problem, store, given.strategy, folder, given.workers) as (host, port, pid):
                time.sleep(given.wait)
                load = (given.people, given.think, given.ramp, given.seconds)
                measured = asyncio.run(crowd((host, port), problem, *load))
                memory = memory_of(pid)
            with open_store(store, write=False) as kept:
                logs = kept.logs("crowd")
    whole = [log for log in logs.values() if isinstance(log, list)]
    replies = [
        tuple((event.get("best"), event.get("reply")) for event in events if event["event"] == "answer")
        for events in whole
    ]
    answers = sum(map(len, replies))
    histories = len({one[:n] for one in replies for n in range(1, len(one) + 1)})
    print(f"{given.people} participants, {given.think:g} s of thinking, S = {given.states:,}, k = {given.objectives}, "
          f"H = {given.horizon}{', random successors' * given.random}{', compiled' * given.compiled}, "
          f"{given.strategy}, {given.store}, {given.workers or 'default'} workers")  # fmt: skip
    print(f"{len(measured.answer):,} answers in {given.seconds:g} s: {len(measured.answer) / given.seconds:.0f} a second; "
          f"{measured.begun:,} began, {measured.finished:,} finished")  # fmt: skip
    print(f"{answers:,} answers are stored; {histories:,} different histories of answers")
    print(f"{'milliseconds':<28} {'p50':>7}  {'p95':>7}  {'p99':>7}  {'most':>7}")
    print(f"{'beginning, first page':<28} {milliseconds(measured.start)}")
    print(f"{'sending an answer':<28} {milliseconds(measured.form)}")
    print(f"{'the next page':<28} {milliseconds(measured.page)}")
    print(f"{'both':<28} {milliseconds(measured.answer)}")
    print(f"{'the result':<28} {milliseconds(measured.result)}")
    requests = [*measured.start, *measured.form, *measured.page, *measured.result]
    worst = 1e3 * float(np.quantile(requests, 0.95)) if requests else float("inf")
    print(f"{'all requests':<28} {milliseconds(requests)}")
    print(
        f"memory after {measured.begun:,} participants: {sum(memory):.0f} MB = {' + '.join(f'{mb:.0f}' for mb in memory)}"
    )
    met = worst < TARGET and not measured.errors
    print(
        f"{len(measured.errors)} errors{': ' + '; '.join(sorted(set(measured.errors))[:3]) if measured.errors else ''}"
    )
    print(f"95% of all requests within {worst:.0f} ms, below {TARGET:g} ms and no errors: {'met' if met else 'MISSED'}")


if __name__ == "__main__":
    main()
