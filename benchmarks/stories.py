"""How far the stories shown are from how the plan really goes, and what choosing them costs.

    python benchmarks/stories.py [--plans N] [--quick] [--json]

For optimal plans of random weights: the mean over the objectives of the 1-Wasserstein distance, in standard deviations,
between the outcomes that are shown and 4,000 rollouts of the plan that nothing else has seen. Beside the paper's Algorithm 4
(C4) and the faithful stories: the average alone, one hundred rollouts, and the best of 1,000 random vertices over 300
rollouts. All but the hundred rollouts use at most k+1 outcomes. CPU milliseconds on one thread for a policy that is solved
already; those of the faithful stories include C4 and the distribution of the outcomes.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from rich.progress import Progress
from scipy import sparse
from scipy.optimize import linprog
from scipy.stats import wasserstein_distance

from tradeoff import MDP, load, represent
from tradeoff.model import Matrix, Option, Vector

ROLLOUTS, PLANS, VERTICES = 4_000, 30, 1_000
TARGETS = {"commute": 50.0, "vacuum": 50.0, "random, S = 100,000": 500.0}  # CPU milliseconds
COLUMNS = ("average", "C4", "faithful", "100 rollouts", "best of 1,000")


def random_model(states: int, horizon: int, objectives: int) -> MDP:
    """Return a random stationary MDP with 4 actions of 4 branches in every state."""
    rng = np.random.default_rng(states)
    matrices = []
    for _ in range(4):
        rows, columns = np.repeat(np.arange(states), 4), rng.integers(0, states, size=4 * states)
        chances = rng.dirichlet(np.ones(4), size=states).ravel()
        matrices.append(sparse.csr_array((chances, (rows, columns)), shape=(states, states)))
    mdp = MDP.from_sparse(matrices, rng.random((states, 4, objectives)), horizon=horizon, prune=False)
    mdp.threads = 1
    return mdp


def distance(truth: Matrix, points: Matrix, weights: Vector) -> float:
    """Return the mean 1-Wasserstein distance over the objectives that vary, in standard deviations."""
    spread = truth.std(axis=0)
    varying = np.flatnonzero(spread > 1e-9 * np.abs(truth).max(axis=0))
    found = [wasserstein_distance(points[:, j], truth[:, j], weights) / spread[j] for j in varying]
    return float(np.mean(found)) if found else 0.0


def best_vertex(mdp: MDP, best: Option, truth: Matrix) -> float:
    """Return the least distance of 1,000 random vertices over 300 rollouts and the stories of C4."""
    shown = mdp.show(best, method="expand")
    drawn = mdp.rollout(best.plan, rng=2, n=300).outcomes
    points = np.concatenate([shown.outcomes, drawn])
    spread = np.where(points.std(axis=0) > 0, points.std(axis=0), 1.0)
    lifted = np.concatenate([(points - shown.average) / spread, np.ones((len(points), 1))], axis=1).T
    mean = np.append(np.zeros(len(spread)), 1.0)
    rng = np.random.default_rng(0)
    found = []
    for _ in range(VERTICES):
        vertex = linprog(rng.random(len(points)), A_eq=lifted, b_eq=mean, method="highs-ds").x
        assert vertex is not None
        rows = np.flatnonzero(vertex > 1e-12)
        found.append(distance(truth, points[rows], vertex[rows] / vertex[rows].sum()))
    return min(found)


def measure(name: str, mdp: MDP, plans: int, progress: Progress) -> dict[str, Any]:
    """Return the mean distances of one problem, and the median times."""
    task = progress.add_task(name, total=plans)
    found: dict[str, list[float]] = {column: [] for column in (*COLUMNS, "C4 ms", "faithful ms")}
    for seed in range(plans):
        rng = np.random.default_rng(seed)
        (best,) = mdp.best([rng.dirichlet(np.ones(len(mdp.objectives)))])
        truth = mdp.rollout(best.plan, rng=seed + 10_000, n=ROLLOUTS).outcomes
        average = mdp.outcome(best.value)[None, :]
        found["average"].append(distance(truth, average, np.ones(1)))
        for method, column in (("expand", "C4"), ("faithful", "faithful")):
            represent(mdp, best.plan, method=method)  # type: ignore[arg-type]
            begin = time.process_time()
            shown = represent(mdp, best.plan, method=method)  # type: ignore[arg-type]
            found[f"{column} ms"].append(1e3 * (time.process_time() - begin))
            found[column].append(distance(truth, shown.outcomes, shown.weights))
        hundred = mdp.rollout(best.plan, rng=seed + 20_000, n=100).outcomes
        found["100 rollouts"].append(distance(truth, hundred, np.full(100, 0.01)))
        found["best of 1,000"].append(best_vertex(mdp, best, truth))
        progress.advance(task)
    row: dict[str, Any] = {"problem": name, "plans": plans}
    row |= {column: statistics.fmean(found[column]) for column in COLUMNS}
    return row | {column: statistics.median(found[column]) for column in ("C4 ms", "faithful ms")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plans", type=int, default=PLANS, help="plans of each problem (fewer of random models)")
    parser.add_argument("--quick", action="store_true", help="5 plans, and no model of 100,000 states")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    plans = 5 if arguments.quick else arguments.plans
    rows: list[dict[str, Any]] = []

    def keep(row: dict[str, Any]) -> None:
        rows.append(row)
        if not arguments.json:  # at once, because the next may take long
            cells = [f"{row[column]:.3f}" for column in COLUMNS] + [f"{row['C4 ms']:.0f}", f"{row['faithful ms']:.0f}"]
            print(f"| {row['problem']} | {row['plans']} | " + " | ".join(cells) + " |", flush=True)

    if not arguments.json:
        print("| problem | plans | " + " | ".join(COLUMNS) + " | C4, ms | faithful, ms |")
        print("|---|---|" + "---|" * (len(COLUMNS) + 2))
    with Progress(disable=not sys.stderr.isatty()) as progress:
        for name in ("commute", "portfolio", "vacuum"):
            problem = load(name)
            assert isinstance(problem, MDP)
            keep(measure(name, problem, plans, progress))
        for states, horizon in ((100, 10), (1_000, 24), *(() if arguments.quick else ((100_000, 50),))):
            model = random_model(states, horizon, 4)
            keep(measure(f"random, S = {states:,}", model, min(plans, 10 if states < 10_000 else 3), progress))
    if arguments.json:
        print(json.dumps(rows, indent=2))
        return
    missed = [row["problem"] for row in rows if row["faithful ms"] > TARGETS.get(row["problem"], np.inf)]
    print("Targets: 50 ms for commute and vacuum, 500 ms at 100,000 states.", f"Missed: {', '.join(missed) or 'none'}.")


if __name__ == "__main__":
    main()
