"""What an interview costs, and what a study of ten million people would need.

    python benchmarks/scaling.py                                10,000,000 people in 30 days (four minutes on two cores)
    python benchmarks/scaling.py --participants 1e6 --days 1    any other study

Measured: processor seconds of the real server per answer, results and drawing included, on a model on which people share
most of what is computed and on one on which nearly everybody has a best plan of their own; the same for a question on that
model compiled beforehand; and the bytes that an interview takes in the database. Computed from that: cores at the busiest time
of a day, when people come ``--peak`` times as often as on average, and the size of the database. A core counts as full at half
its time, so that people rarely wait for each other.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from rich.console import Console
from rich.table import Table
from serve import crowd, field_trip, random_successors, served

from tradeoff import MDP, Interview, LinearRespondent, cover
from tradeoff.problem import Problem

FULL = 0.5  # the share of a core's time that may be used


@dataclass(frozen=True)
class Served:
    """What the server needed for the interviews of a crowd."""

    interviews: int
    answers: int
    seconds: float  # of processor time
    size: int  # bytes of the database

    @property
    def each(self) -> float:
        """Processor seconds per answer."""
        return self.seconds / self.answers


def processor_seconds() -> float:
    """Return the processor time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(problem: MDP, people: int, warming: float, seconds: float) -> Served:
    """Let people answer the real server for a while; what it needed until everybody was warm is not counted.

    The same crowd comes twice, to a new server each time, for a shorter and a longer while: the difference is what counts.
    """
    parts = []
    for length in (warming, warming + seconds):
        begin = processor_seconds()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            with served(problem, f"sqlite:///{folder / 'study.db'}", "careful", folder) as (host, port, _):
                found = asyncio.run(crowd((host, port), problem, people, 1.0, 0.0, length))
            size = sum(file.stat().st_size for file in folder.glob("study.db*"))
        if found.errors:
            raise SystemExit(f"errors: {found.errors[:3]}")
        parts.append((found.finished, len(found.answer), processor_seconds() - begin, size))
    interviews, answers, spent, size = (after - before for before, after in zip(*parts, strict=True))
    if not interviews:
        raise SystemExit("nobody finished an interview in this time; give more --seconds or fewer --people")
    return Served(interviews, answers, spent, size)


def asked_alone(problem: Problem, people: int) -> tuple[float, float]:
    """Return processor seconds per question and questions per interview for people who share nothing but the problem."""
    questions, begin = 0, time.process_time()
    for number in range(people):
        weights = np.random.default_rng(1000 + number).dirichlet(np.ones(len(problem.objectives)))
        person, interview = LinearRespondent.scaled(problem, weights, precision=0.01), Interview(problem)
        while question := interview.ask():
            interview.tell(person(question))
            questions += 1
    return (time.process_time() - begin) / questions, questions / people


def solve_seconds(states: int, count: int) -> float:
    """Return processor seconds of solving a random model for so many weight vectors at once, on one thread."""
    problem = random_successors(states, 4, 24)
    problem.threads = 1
    weights = np.random.default_rng(0).random((count, 4))
    problem.best(weights)  # compiled code
    begin = time.process_time()
    problem.best(weights)
    return time.process_time() - begin


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--participants", type=float, default=1e7, metavar="N", help="of the study (default 1e7)")
    parser.add_argument("--days", type=float, default=30.0, help="how long the study lasts (default 30)")
    parser.add_argument(
        "--peak", type=float, default=4.0, help="answers at the busiest time, as a multiple of the average (default 4)"
    )
    parser.add_argument("--people", type=int, default=40, help="simulated people at once, for measuring (default 40)")
    parser.add_argument(
        "--warming", type=float, default=30.0, help="seconds for which a crowd is not measured (default 30)"
    )
    parser.add_argument("--seconds", type=float, default=25.0, help="how long each crowd is measured (default 25)")
    given = parser.parse_args()
    out = Console(width=120)

    with out.status("solving"):
        solving = Table("states", "processor time per weight vector, one at a time", "in a batch of 64")
        for states in (1_000, 10_000, 100_000):
            solving.add_row(f"{states:,}", *(f"{1e3 * solve_seconds(states, n) / n:.2f} ms" for n in (1, 64)))
    out.print(solving)

    alike, different = field_trip(1000, 3, 24), random_successors(1000, 3, 24)
    with out.status("serving"):
        crowds = {"much is shared": measured(alike, given.people, given.warming, given.seconds),
                  "everybody different": measured(different, given.people, given.warming, given.seconds)}  # fmt: skip
    with out.status("compiling"):
        begin = time.process_time()
        compiled = cover(different, 0.001)
        compiling = time.process_time() - begin
        asked_alone(different, 2), asked_alone(compiled, 2)  # compiled code
        model, beforehand = asked_alone(different, 20), asked_alone(compiled, 20)
    alone = Table("a question that nobody was asked before", "processor time", "questions per interview")
    alone.add_row("random model, 1,000 states", f"{1e3 * model[0]:.0f} ms", f"{model[1]:.1f}")
    plans = f"{len(compiled.plans.values):,} plans, {compiling:.0f} s once"
    alone.add_row(f"the same, compiled ({plans})", f"{1e3 * beforehand[0]:.0f} ms", f"{beforehand[1]:.1f}")
    out.print(alone)

    people, seconds = given.participants, given.days * 86_400
    table = Table("people", "interviews", "server, processor time per answer", "answers a second and core",
                  "bytes per interview", f"{people:,.0f} in {given.days:g} days: answers a second, busiest", "cores",
                  "database")  # fmt: skip
    for name, cost in crowds.items():
        each = cost.answers / cost.interviews
        rate = given.peak * people * each / seconds
        size = cost.size / cost.interviews
        table.add_row(name, f"{cost.interviews:,}", f"{1e3 * cost.each:.1f} ms", f"{FULL / cost.each:.0f}", f"{size:,.0f}",
                      f"{rate:,.0f}", f"{np.ceil(rate * cost.each / FULL):.0f}", f"{people * size / 1e9:,.0f} GB")  # fmt: skip
    out.print(table)


if __name__ == "__main__":
    main()
