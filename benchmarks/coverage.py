"""How many plans are enough for everybody, what finding them costs, and whether the guarantee was ever exceeded.

    python benchmarks/coverage.py [--quick] [--jobs N] [--problems NAME,NAME] [--json]
    python benchmarks/coverage.py --waits FILE [--people N]
    python benchmarks/coverage.py --states 1e6 [--tolerance X] [--seconds N] [--people N]

For each problem and tolerance: the number of plans, how many directions were solved for, CPU seconds, the guarantee that was
proved, and the largest regret seen over 100,000 random weights (a quarter inside the simplex, half near its faces, a quarter on
them). "exact" is the size of the smallest set without any loss, the convex coverage set, where the search finds it in time. A
search ends after 300 CPU seconds (30 with --quick); then the guarantee says how far it got. Lines are printed as they are
found.

With --waits: CPU milliseconds on one thread that people wait for a question of an interview on a compiled problem, and for the
result at its end, after two interviews for warming up. How large the model is does not matter: nothing is solved.

With --states: the same for a random model of so many states, 4 objectives and 50 steps, which is made and compiled first.
Before that, how many milliseconds a fifth as many people wait by the clock where the model itself is solved for every question,
on a graphics card if there is one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

sys.path.insert(0, str(Path(__file__).resolve().parent))

import joblib
import numpy as np
from serve import random_successors

from tradeoff import Interview, LinearRespondent, examples, load
from tradeoff.covering import better_coverages, cover
from tradeoff.model import Matrix
from tradeoff.problem import ScaledProblem
from tradeoff.problems.coverage import Coverage
from tradeoff_cuda.card import Card

WEIGHTS, QUICK_WEIGHTS = 100_000, 10_000
EXACT = 1e-6  # a tolerance that leaves out no plan that anybody could notice
ENVIRONMENTS = {"deep-sea-treasure": "mo-gym:deep-sea-treasure-v0", "fruit-tree": "mo-gym:fruit-tree-v0"}


@dataclass(frozen=True)
class Line:
    """A line of the table."""

    problem: str
    objectives: int
    tolerance: float
    plans: int
    exact: int | None
    solved: int
    seconds: float
    guarantee: float
    largest: float  # regret seen


def problem_of(name: str) -> ScaledProblem:
    """Return a bundled problem, an environment, or a random model called "random k=4 S=1000"."""
    if name.startswith("random "):
        k, states = (int(part.split("=")[1]) for part in name.split()[1:])
        return random_successors(states, k, 20)
    return load(ENVIRONMENTS.get(name, name))


def searched(problem: ScaledProblem, tolerance: float, limit: float) -> tuple[Coverage, float]:
    """Return the coverage and the CPU seconds of the search."""
    begin = time.process_time()
    for found in better_coverages(problem, tolerance):
        if time.process_time() - begin > limit:
            return found, limit
    return found, time.process_time() - begin


def drawn(k: int, count: int) -> Matrix:
    """Return random weights, many of them where few draws from the whole simplex fall."""
    rng = np.random.default_rng(0)
    on = rng.dirichlet(np.ones(k), count // 4) * (rng.random((count // 4, k)) < 0.6)
    on[on.sum(axis=1) == 0, 0] = 1.0
    rows = np.concatenate([rng.dirichlet(np.ones(k), count // 4), rng.dirichlet(np.full(k, 0.2), count // 2), on])
    weights: Matrix = rows / rows.sum(axis=1, keepdims=True)
    return weights


def largest_regret(problem: ScaledProblem, found: Coverage, count: int) -> float:
    """Return the largest relative regret of the best of the plans."""
    weights = drawn(len(problem.objectives), count)
    worst = 0.0
    for part in np.array_split(weights, max(1, count // 2_000)):
        best = np.einsum("nk,nk->n", part, np.array([a.value for a in problem.best(part)]))
        loss = best - (part @ found.plans.values.T).max(axis=1)
        worst = max(worst, float(np.where(best > 0, loss / np.where(best > 0, best, 1.0), 0.0).max()))
    return worst


def measured(name: str, tolerance: float, quick: bool) -> Line:
    """Return the line of one problem and tolerance."""
    searched(problem_of(name), tolerance, 10.0)  # compiled code is not what is measured
    problem = problem_of(name)
    problem.best(np.eye(len(problem.objectives)))  # neither is the scale
    found, seconds = searched(problem, tolerance, 30.0 if quick else 300.0)
    everything, _ = searched(problem, EXACT, 3.0 if quick else 60.0)
    exact = len(everything.plans.values) if everything.guarantee <= EXACT else None
    return Line(
        name, len(problem.objectives), tolerance, len(found.plans.values), exact, len(found.proof.most), seconds,
        found.guarantee, largest_regret(problem, found, QUICK_WEIGHTS if quick else WEIGHTS),
    )  # fmt: skip


def waits(problem: ScaledProblem, people: int, clock: Callable[[], float]) -> None:
    """Print how long people wait for their questions and results."""
    for strategy in ("careful", "certified"):
        times: dict[str, list[float]] = {"question": [], "result": []}
        for number in range(people + 2):
            weights = np.random.default_rng(number).dirichlet(np.ones(len(problem.objectives)))
            person = LinearRespondent.scaled(problem, weights, precision=0.01)
            interview = Interview(problem, strategy)
            question = interview.ask()
            while question is not None:
                interview.tell(person(question))
                begin = clock()
                question = interview.ask()
                if number >= 2:
                    times["question" if question is not None else "result"].append(1000 * (clock() - begin))
        for what, found in times.items():
            spread = (
                f"mean {np.mean(found):.0f}, p50 {np.percentile(found, 50):.0f}, p95 {np.percentile(found, 95):.0f}"
            )
            print(f"{strategy:9} {what:8} {len(found):5,} waits, ms: {spread}, most {max(found):.0f}", flush=True)


def large(states: int, tolerance: float, seconds: float | None, people: int) -> None:
    """Print how long people wait on a model and on what it is compiled to."""
    model = random_successors(states, 4, 50)
    model.best(np.eye(4))  # compiled code, the scale, and the way to the card are not what is measured
    where = "a graphics card" if isinstance(getattr(model.solver, "device", None), Card) else "the processor"
    print(f"{states:,} states, solved on {where}; by the clock", flush=True)
    waits(model, max(1, people // 5), time.perf_counter)
    begin = time.perf_counter()
    found = cover(model, tolerance, seconds=seconds)
    print(
        f"compiled in {time.perf_counter() - begin:.0f} s: {len(found.plans.values):,} plans, {len(found.proof.most):,} "
        f"directions, guarantee {found.guarantee:.6f}; CPU time on one thread",
        flush=True,
    )
    waits(found, people, time.process_time)


def available(name: str) -> bool:
    """Return whether an environment can be made here."""
    try:
        problem_of(name)
    except Exception as error:
        print(f"left out: {name}: {error}", file=sys.stderr)
        return False
    return True


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer weights, and small random models only")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1, the default, is one per core")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--waits", metavar="FILE", help="measure interviews on this compiled problem instead")
    parser.add_argument("--people", type=int, default=50, help="how many are asked, with --waits or --states")
    parser.add_argument("--problems", metavar="NAMES", help="only these lines, with commas between them")
    parser.add_argument(
        "--states", type=float, metavar="N", help="make and compile a random model of this size instead"
    )
    parser.add_argument("--tolerance", type=float, default=0.001, help="of the coverage, with --states")
    parser.add_argument("--seconds", type=float, help="compile for so long at most, with --states")
    given = parser.parse_args(arguments)
    if given.waits is not None:
        waits(load(given.waits), given.people, time.process_time)
        return 0
    if given.states is not None:
        large(int(given.states), given.tolerance, given.seconds, given.people)
        return 0
    names = [*examples(), *filter(available, ENVIRONMENTS)]
    tasks: list[tuple[str, float]] = [(name, tolerance) for name in names for tolerance in (0.01, 0.001)]
    size = 100 if given.quick else 1_000
    tasks += [(f"random k={k} S={size}", 0.01) for k in (2, 3, 4)]
    tasks += [(f"random k={k} S={size}", 0.001) for k in (2, 3, 4)]
    tasks += [(f"random k=5 S={size}", 0.02), (f"random k=6 S={size}", 0.05)]
    if given.problems is not None:
        wanted = given.problems.split(",")
        if unknown := set(wanted) - {name for name, _ in tasks}:
            parser.error(f"there is no line {', '.join(sorted(unknown))}; there are {', '.join(dict(tasks))}")
        tasks = [task for task in tasks if task[0] in wanted]
    if not given.json:
        print(f"{'problem':24} k tolerance  plans  exact  solved  seconds  guarantee  largest regret seen")
    lines: list[Line] = []
    calls = (joblib.delayed(measured)(name, tolerance, given.quick) for name, tolerance in tasks)
    for line in joblib.Parallel(n_jobs=given.jobs, batch_size=1, return_as="generator_unordered")(calls):
        lines.append(line)
        if not given.json:
            print_line(line)
    lines.sort(key=lambda line: tasks.index((line.problem, line.tolerance)))
    if given.json:
        print(json.dumps([asdict(line) for line in lines], indent=2))
    return int(any(line.largest > line.guarantee for line in lines))


def print_line(line: Line) -> None:
    """Print a line of the table."""
    exact = "" if line.exact is None else f"{line.exact:,}"
    print(
        f"{line.problem:24} {line.objectives} {line.tolerance:9g} {line.plans:6,} {exact:>6} {line.solved:7,} "
        f"{line.seconds:8.2f} {line.guarantee:10.6f} {line.largest:20.6f}",
        flush=True,
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
