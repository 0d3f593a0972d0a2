"""How long a person waits between an answer and the next question, on one thread, and where that time goes.

    python benchmarks/latency.py [--quick] [--answers N] [--only TEXT] [--json FILE]

Simulated interviews of people whose precision is 1% of their best; in some rows 15% of their answers are wrong, and in some of
these they are asked about four options at a time. Every interview is about a problem of its own, so that no solved
direction is in a cache; what happens before the first question is the column "first question". A wait is telling the answer
and asking for the next question; after the last answer there is none, and what that takes, all bounds of the result included,
is the column "result" (its largest, where a row has a target for single waits). "Looking" is the time that the recommendation
takes on the way, where it is shown.

Where the time goes is measured in interviews of its own, with timers around the functions of the strategies; a
function's time is its own, without that of other timed functions that it calls. The exit code is 0 whether or not the
targets are met: the verdicts say which are not.
"""

from __future__ import annotations

# The number of threads must be set before the libraries are imported.
import os

for _name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import functools
import importlib
import inspect
import json
import pkgutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from scipy import sparse

import tradeoff.strategies
from tradeoff import MDP, Catalogue, Interview, LinearRespondent, Reference
from tradeoff.problem import Problem
from tradeoff.strategies.acquisition import Pool
from tradeoff.strategies.careful import Careful
from tradeoff.strategies.certified import Certified
from tradeoff.strategies.cone import Cone, Skeleton
from tradeoff.strategies.posterior import Posterior
from tradeoff.strategies.solutions import Candidates, Certificate, Certifier, Solutions

ACTIONS, SUCCESSORS, HORIZON = 4, 4, 50
PRECISION = 0.01
STRATEGIES = ("certified", "careful")
SPLIT_INTERVIEWS = 2  # in which it is measured where the time goes


@dataclass(frozen=True)
class Row:
    """One size of problem, the milliseconds that 95% of the waits must be below, and that every wait must be below."""

    name: str
    make: Callable[[int], Problem]
    target: float
    most: float | None = None
    error_rate: float = 0.0  # of the answers
    strategies: tuple[str, ...] = STRATEGIES
    questions: str = "pairs"


@dataclass(eq=False)
class Waits:
    """Seconds, one entry a wait (and one an interview for ``first`` and ``result``)."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    looking: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    result: list[float] = field(default_factory=list)
    result_cpu: list[float] = field(default_factory=list)


# --- problems ---------------------------------------------------------------------------------------------------------


def catalogue(items: int, k: int, number: int) -> Catalogue:
    """Return a catalogue of points in a cube or, for odd numbers, in a shell, where many more are optimal."""
    rng = np.random.default_rng([k, number, 5])
    values = rng.random((items, k))
    if number % 2:
        values = np.abs(rng.normal(size=(items, k)))
        values *= (0.85 + 0.15 * rng.random((items, 1))) / np.linalg.norm(values, axis=1, keepdims=True)
    return Catalogue(values, reference=Reference("nothing", {f"objective {j + 1}": 0.0 for j in range(k)}))


def decision_process(states: int, k: int, number: int) -> MDP:
    """Return a random stationary MDP with 4 actions of 4 successors in every state."""
    rng = np.random.default_rng([states, k, number, 5])
    matrices = []
    for _ in range(ACTIONS):
        rows = np.repeat(np.arange(states), SUCCESSORS)
        columns = rng.integers(0, states, size=states * SUCCESSORS)
        chances = rng.dirichlet(np.ones(SUCCESSORS), size=states).ravel()
        matrices.append(sparse.csr_array((chances, (rows, columns)), shape=(states, states)))
    rewards = rng.random((states, ACTIONS, k)) ** 3
    mdp = MDP.from_sparse(matrices, rewards, horizon=HORIZON, prune=False)
    mdp.threads = 1
    return mdp


def person(problem: Problem, number: int, error_rate: float) -> LinearRespondent:
    """Return a simulated person whose best option is worth 1."""
    weights = np.random.default_rng([number, 9]).dirichlet(np.ones(len(problem.objectives)))
    (best,) = problem.best(weights[None, :])
    return LinearRespondent(weights / float(weights @ best.value), PRECISION, error_rate, seed=number)


# --- waiting ----------------------------------------------------------------------------------------------------------


def interview(row: Row, strategy: str, number: int, waits: Waits, timers: Timers | None = None) -> None:
    """Hold one interview and note every wait."""
    problem = row.make(number)
    user = person(problem, number, row.error_rate)
    timed = nullcontext if timers is None else timers.counting
    begin = time.perf_counter()
    held = Interview(problem, strategy, seed=number, questions=row.questions)
    question = held.ask()
    waits.first.append(time.perf_counter() - begin)
    while question is not None:
        answer = user(question)
        with timed():
            wall, cpu = time.perf_counter(), time.process_time()
            held.tell(answer)
            question = held.ask()
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        if question is None:
            waits.result.append(wall)
            waits.result_cpu.append(cpu)
            return
        waits.wall.append(wall)
        waits.cpu.append(cpu)
        begin = time.perf_counter()
        _ = held.recommendation
        waits.looking.append(time.perf_counter() - begin)


def milliseconds(seconds: Sequence[float], quantile: float) -> float:
    """Return a quantile in milliseconds, always one of the values themselves."""
    return float(1e3 * np.quantile(seconds, quantile, method="inverted_cdf")) if seconds else float("nan")


def measure(row: Row, strategy: str, answers: int, progress: Progress) -> dict[str, Any]:
    """Return the waits over as many interviews as give so many answers, and then where the time goes."""
    waits = Waits()
    interview(row, strategy, 0, Waits())  # compiles and warms up
    task = progress.add_task(f"{row.name}, {strategy}", total=answers)
    number = 0
    while len(waits.wall) < answers and number < answers:
        number += 1
        interview(row, strategy, number, waits)
        progress.update(task, completed=min(answers, len(waits.wall)))
    timers = Timers()
    timed = Waits()
    for again in range(1, 1 + min(number, SPLIT_INTERVIEWS)):
        with timers.in_place(type(row.make(again))):
            interview(row, strategy, again, timed, timers)
    progress.remove_task(task)
    told = max(1, len(timed.wall) + len(timed.result))
    return {
        "row": row.name,
        "strategy": strategy,
        "interviews": number,
        "answers": len(waits.wall),
        "median_ms": milliseconds(waits.wall, 0.5),
        "p95_ms": milliseconds(waits.wall, 0.95),
        "most_ms": milliseconds(waits.wall, 1.0),
        "cpu_median_ms": milliseconds(waits.cpu, 0.5),
        "cpu_p95_ms": milliseconds(waits.cpu, 0.95),
        "cpu_most_ms": milliseconds([*waits.cpu, *waits.result_cpu], 1.0),
        "looking_p95_ms": milliseconds(waits.looking, 0.95),
        "first_question_ms": milliseconds(waits.first, 0.5),
        "result_ms": milliseconds(waits.result, 0.5 if row.most is None else 1.0),
        "target_ms": row.target,
        "most_allowed_ms": row.most,
        "timed_answers": told,
        "split_ms": timers.per_answer(told, timers.by_kind),
        "functions_ms": timers.per_answer(told, timers.by_name),
        "calls": {name: count / told for name, count in timers.calls.items()},
    }


# --- where the time goes ----------------------------------------------------------------------------------------------


class Timers:
    """Timers around the functions of the strategies, each counting its own time only, while an answer is taken in."""

    def __init__(self) -> None:
        self.by_kind: dict[str, float] = defaultdict(float)
        self.by_name: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)
        self._on = False
        self._within: list[float] = []  # per timed function being run: the time of those that it called
        self._undo: list[Callable[[], None]] = []

    def per_answer(self, answers: int, seconds: dict[str, float]) -> dict[str, float]:
        """Return milliseconds per answer, most first."""
        return {name: 1e3 * took / answers for name, took in sorted(seconds.items(), key=lambda pair: -pair[1])}

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count what happens inside; what is not in a timed function counts as the rest."""
        self._on = True
        begin, before = time.perf_counter(), sum(self.by_kind.values())
        try:
            yield
        finally:
            self._on = False
            took = time.perf_counter() - begin
            self.by_kind["rest"] += took - (sum(self.by_kind.values()) - before)

    @contextmanager
    def in_place(self, problem: type) -> Iterator[None]:
        """Put the timers in place for an interview about a problem of this class."""
        self._around_class(problem, "oracle", only=("best",))
        for cls, kind in (
            (Solutions, "cache and candidates"), (Candidates, "cache and candidates"), (Cone, "cone"),
            (Skeleton, "cone"), (Posterior, "posterior"), (Certifier, "certificate"), (Certificate, "certificate"),
            (Certified, "strategy"), (Careful, "strategy"), (Pool, "acquisition"),
        ):  # fmt: skip
            self._around_class(cls, kind)
        modules = {"skeleton": "cone", "sampler": "posterior", "acquisition": "acquisition", "elicitation": "strategy"}
        for module, kind in modules.items():
            for name in list(vars(importlib.import_module(f"tradeoff.strategies.{module}"))):
                self._around_function(f"tradeoff.strategies.{module}", name, kind)
        try:
            yield
        finally:
            while self._undo:
                self._undo.pop()()

    def _around_class(self, cls: type, kind: str, only: tuple[str, ...] | None = None) -> None:
        """Time the methods and properties of a class."""
        for name, found in list(vars(cls).items()):
            if name.startswith("_") or (only is not None and name not in only):
                continue
            label = f"{cls.__name__}.{name}"
            if inspect.isfunction(found):
                timed: Any = self._timed(found, kind, label)
            elif isinstance(found, property) and found.fget is not None:
                timed = property(self._timed(found.fget, kind, label))
            elif isinstance(found, functools.cached_property):
                timed = functools.cached_property(self._timed(found.func, kind, label))
                timed.__set_name__(cls, name)
            else:
                continue
            self._put(cls, name, timed)

    def _around_function(self, module: str, name: str, kind: str) -> None:
        """Time a public function wherever the strategies have imported it."""
        home = importlib.import_module(module)
        found = vars(home)[name]
        found = getattr(found, "__wrapped__", found)
        if name.startswith("_") or not inspect.isfunction(found) or found.__module__ != module:
            return
        timed = self._timed(found, kind, name)
        for info in pkgutil.iter_modules(tradeoff.strategies.__path__, "tradeoff.strategies."):
            user = importlib.import_module(info.name)
            if vars(user).get(name) is found:
                self._put(user, name, timed)

    def _put(self, owner: Any, name: str, timed: Any) -> None:
        before = vars(owner)[name]
        self._undo.append(lambda: setattr(owner, name, before))
        setattr(owner, name, timed)

    def _timed(self, work: Callable[..., Any], kind: str, name: str) -> Callable[..., Any]:
        """Return the function with a timer, which runs while a wait is being counted."""

        @functools.wraps(work)
        def timed(*given: Any, **named: Any) -> Any:
            if not self._on:
                return work(*given, **named)
            self._within.append(0.0)
            begin = time.perf_counter()
            try:
                return work(*given, **named)
            finally:
                took = time.perf_counter() - begin
                own = took - self._within.pop()
                if self._within:
                    self._within[-1] += took
                self.by_kind[kind] += own
                self.by_name[name] += own
                self.calls[name] += 1

        return timed


# --- telling ----------------------------------------------------------------------------------------------------------


def rows(quick: bool) -> list[Row]:
    """Return the sizes that are measured."""
    if quick:
        return [
            Row("catalogue of 1,000, k=3", lambda number: catalogue(1000, 3, number), 100),
            Row("MDP S=100, H=50, k=3", lambda number: decision_process(100, 3, number), 150),
            Row("catalogue of 100, k=4, 15% wrong", partial(catalogue, 100, 4), 500, 2000, 0.15),
        ]
    return [
        Row("catalogue of 10,000, k=6", lambda number: catalogue(10_000, 6, number), 100),
        Row("MDP S=1,000, H=50, k=4", lambda number: decision_process(1000, 4, number), 150),
        Row("MDP S=10,000, H=50, k=4", lambda number: decision_process(10_000, 4, number), 1000),
        *(
            Row(f"catalogue of 500, k={k}, 15% wrong", partial(catalogue, 500, k), 500, 2000, 0.15)
            for k in (6, 8, 10, 12)
        ),
        *(
            Row(
                f"catalogue of 500, k={k}, 15% wrong, menus",
                partial(catalogue, 500, k),
                500,
                2000,
                0.15,
                ("careful",),
                "best-worst-4",
            )
            for k in (6, 12)
        ),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small problems, few answers")
    parser.add_argument("--answers", type=int, help="at least so many a row (default 60)")
    parser.add_argument("--only", metavar="TEXT", help="only rows whose name contains this")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything to this file")
    given = parser.parse_args(arguments)
    chosen = [row for row in rows(given.quick) if given.only is None or given.only in row.name]
    if not chosen:
        parser.error("no row is left; see --only")
    answers = given.answers or (10 if given.quick else 60)
    print("milliseconds between an answer and the next question, one thread\n")
    print(f"{'problem':<33} {'strategy':<10} {'answers':>7} {'median':>7} {'p95':>7} {'most':>7} {'CPU median':>10} "
          f"{'CPU p95':>8} {'looking p95':>11} {'first question':>14} {'result':>7}")  # fmt: skip
    results = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        for row in chosen:
            for strategy in row.strategies:
                found = measure(row, strategy, answers, progress)
                results.append(found)
                print(f"{row.name:<33} {strategy:<10} {found['answers']:>7} {found['median_ms']:>7.1f} "
                      f"{found['p95_ms']:>7.1f} {found['most_ms']:>7.1f} {found['cpu_median_ms']:>10.1f} "
                      f"{found['cpu_p95_ms']:>8.1f} {found['looking_p95_ms']:>11.1f} "
                      f"{found['first_question_ms']:>14.1f} {found['result_ms']:>7.1f}", flush=True)  # fmt: skip
                if given.json:
                    given.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    for found in results:
        split = ", ".join(f"{name} {took:.1f}" for name, took in found["split_ms"].items())
        print(f"\n{found['row']}, {found['strategy']}: mean ms an answer ({found['timed_answers']} answers): {split}")
        most = list(found["functions_ms"].items())[:10]
        print("  " + ", ".join(f"{name} {took:.1f} ({found['calls'][name]:.0f}x)" for name, took in most))
    print()
    for found in results:
        if found["most_allowed_ms"] is not None:
            longest = max(found["most_ms"], found["result_ms"], found["first_question_ms"])
            print(f"{found['row']}, {found['strategy']}: the longest wait took {longest:.0f} ms (CPU "
                  f"{found['cpu_most_ms']:.0f} ms), below "
                  f"{found['most_allowed_ms']:g} ms: {'met' if longest < found['most_allowed_ms'] else 'MISSED'}")  # fmt: skip
        met = found["p95_ms"] < found["target_ms"]
        print(f"{found['row']}, {found['strategy']}: 95% of the waits within {found['p95_ms']:.0f} ms "
              f"(CPU {found['cpu_p95_ms']:.0f} ms), below {found['target_ms']:g} ms: {'met' if met else 'MISSED'}")  # fmt: skip


if __name__ == "__main__":
    main()
