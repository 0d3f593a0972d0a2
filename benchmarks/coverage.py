"""How many plans are enough for everybody, what finding them costs, and whether the guarantee was ever exceeded.

    python benchmarks/coverage.py [--quick] [--jobs N] [--json]

For each problem and tolerance: the number of plans, how many directions were solved for, CPU seconds, the guarantee that was
proved, and the largest regret seen over 100,000 random weights (a quarter inside the simplex, half near its faces, a quarter on
them). "exact" is the size of the smallest set without any loss, the convex coverage set, where the search finds it in time. A
search ends after 300 CPU seconds (30 with --quick); then the guarantee says how far it got.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

sys.path.insert(0, str(Path(__file__).resolve().parent))

import joblib
import numpy as np
from serve import random_successors

from tradeoff import examples, load
from tradeoff.covering import better_coverages
from tradeoff.model import Matrix
from tradeoff.problem import ScaledProblem
from tradeoff.problems.coverage import Coverage

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
    problem = problem_of(name)
    problem.best(np.eye(len(problem.objectives)))  # compiled code and the scale are not what is measured
    found, seconds = searched(problem, tolerance, 30.0 if quick else 300.0)
    everything, _ = searched(problem, EXACT, 10.0 if quick else 60.0)
    exact = len(everything.plans.values) if everything.guarantee <= EXACT else None
    return Line(
        name, len(problem.objectives), tolerance, len(found.plans.values), exact, len(found.proof.most), seconds,
        found.guarantee, largest_regret(problem, found, QUICK_WEIGHTS if quick else WEIGHTS),
    )  # fmt: skip


def available(name: str) -> bool:
    """Return whether an environment can be made here."""
    try:
        problem_of(name)
    except Exception as error:
        print(f"left out: {name}: {error}", file=sys.stderr)
        return False
    return True


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="fewer weights, and small random models only")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1, the default, is one per core")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    names = [*examples(), *filter(available, ENVIRONMENTS)]
    tasks: list[tuple[str, float]] = [(name, tolerance) for name in names for tolerance in (0.01, 0.001)]
    size = 100 if given.quick else 1_000
    tasks += [(f"random k={k} S={size}", 0.01) for k in (2, 3, 4)]
    tasks += [(f"random k={k} S={size}", 0.001) for k in (2, 3, 4)]
    tasks += [(f"random k=5 S={size}", 0.02), (f"random k=6 S={size}", 0.05)]
    lines: list[Any] = joblib.Parallel(n_jobs=given.jobs, batch_size=1)(
        joblib.delayed(measured)(name, tolerance, given.quick) for name, tolerance in tasks
    )
    if given.json:
        print(json.dumps([asdict(line) for line in lines], indent=2))
    else:
        print(f"{'problem':24} k tolerance  plans  exact  solved  seconds  guarantee  largest regret seen")
        for line in lines:
            exact = "" if line.exact is None else f"{line.exact:,}"
            print(
                f"{line.problem:24} {line.objectives} {line.tolerance:9g} {line.plans:6,} {exact:>6} {line.solved:7,} "
                f"{line.seconds:8.2f} {line.guarantee:10.6f} {line.largest:20.6f}"
            )
    return int(any(line.largest > line.guarantee for line in lines))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
