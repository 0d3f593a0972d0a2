"""How the two ways of showing a policy grow with steps, states and objectives, next to the paper's bounds.

    python benchmarks/represent.py [--quick] [--json]

Expand and compress is O(k^4 H S + k H S^2) in the paper, flow decomposition O(H^2 S^2 + k^3 H S^2), both for dense
transitions; here a policy has b branches per state, so S^2 reads S*b. CPU seconds on one thread, median of rounds, the
candidates interleaved. The first table is the target: for S = 1e5, H = 100, k = 6 expanding costs no more than three
times one evaluation of the policy.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from rich.progress import Progress
from scipy import sparse

from tradeoff import MDP
from tradeoff.mdp.stories import represent
from tradeoff.model import Plan

ACTIONS, BRANCHES = 4, 4


def model(states: int, horizon: int, objectives: int, seed: int = 0) -> MDP:
    """Return a random stationary MDP with 4 actions of 4 branches in every state."""
    rng = np.random.default_rng(seed)
    matrices = []
    for _ in range(ACTIONS):
        rows = np.repeat(np.arange(states), BRANCHES)
        columns = rng.integers(0, states, size=states * BRANCHES)
        chances = rng.dirichlet(np.ones(BRANCHES), size=states).ravel()
        matrices.append(sparse.csr_array((chances, (rows, columns)), shape=(states, states)))
    mdp = MDP.from_sparse(matrices, rng.random((states, ACTIONS, objectives)), horizon=horizon, prune=False)
    mdp.threads = 1
    return mdp


def cpu(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def measure(
    states: int, horizon: int, objectives: int, rounds: int, methods: tuple[str, ...], progress: Progress
) -> dict[str, Any]:
    """Return the medians for one size: evaluation and each method, and the largest error of a mean."""
    mdp = model(states, horizon, objectives)
    (best,) = mdp.best([np.ones(objectives)])
    # The table itself, so that what is measured does not contain the solving for it.
    plan: Plan = mdp.solve([best.plan.weights])[0]  # type: ignore[union-attr]
    candidates: dict[str, Callable[[], object]] = {
        "evaluate": lambda: mdp.evaluate(plan),  # what it is worth at the start
        "values": lambda: mdp.values(plan),  # what it is worth from every state at every step
    }
    for method in methods:
        candidates[method] = lambda method=method: represent(mdp, plan, method=method)  # type: ignore[misc]
    times: dict[str, list[float]] = {name: [] for name in candidates}
    task = progress.add_task(f"S={states:,} H={horizon} k={objectives}", total=(rounds + 1) * len(candidates))
    for turn in range(rounds + 1):
        for name, work in candidates.items():
            seconds = cpu(work)
            if turn:  # the first round compiles and warms up
                times[name].append(seconds)
            progress.advance(task)
    progress.remove_task(task)
    row: dict[str, Any] = {"S": states, "H": horizon, "k": objectives}
    row |= {name: statistics.median(seconds) for name, seconds in times.items()}
    expected = mdp.start @ mdp.values(plan)[0]
    for method in methods:
        lottery = represent(mdp, plan, method=method)  # type: ignore[arg-type]
        scale = np.abs(lottery.outcomes).max(axis=0)
        row[f"{method} error"] = float((np.abs(lottery.average - expected) / scale).max())
        row[f"{method} shown"] = len(lottery.trajectories)
    return row


def growth(rows: list[dict[str, Any]], by: str, method: str) -> float:
    """Return the exponent with which the time grows between the first and the last row."""
    first, last = rows[0], rows[-1]
    return float(np.log(last[method] / first[method]) / np.log(last[by] / first[by]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    sizes = {
        "H": [(1000, h, 4) for h in ((5, 10) if given.quick else (10, 20, 40, 80))],
        "S": [(s, 20, 4) for s in ((100, 400) if given.quick else (250, 1000, 4000, 16000))],
        "k": [(1000, 20, k) for k in ((2, 4) if given.quick else (2, 4, 8, 16))],
    }
    big = (2000, 20, 6) if given.quick else (100_000, 100, 6)
    both = ("expand", "flow")
    results: dict[str, list[dict[str, Any]]] = {}
    from rich.console import Console

    with Progress(console=Console(stderr=True)) as progress:
        results["target"] = [measure(*big, given.rounds, ("expand",), progress)]
        for by, rows in sizes.items():
            results[by] = [measure(*row, given.rounds, both, progress) for row in rows]
    if given.json:
        json.dump(results, sys.stdout, indent=2)
        return
    target = results["target"][0]
    ratio = target["expand"] / target["evaluate"]
    print(f"S = {target['S']:,}, H = {target['H']}, k = {target['k']}: expand {target['expand']:.3g} s, one evaluation "
          f"{target['evaluate']:.3g} s (of every state at every step {target['values']:.3g} s), "
          f"ratio {ratio:.2f} (at most 3: {'reached' if ratio <= 3 else 'MISSED'}), "
          f"error {target['expand error']:.1e} of scale, {target['expand shown']} trajectories")  # fmt: skip
    bounds = {"expand": {"H": 1, "S": 1, "k": 4}, "flow": {"H": 2, "S": 2, "k": 3}}
    for by in sizes:
        print(f"\ngrowth in {by}        S      H   k   evaluate     expand       flow   errors (expand, flow)")
        for row in results[by]:
            print(f"{'':14}{row['S']:>8,} {row['H']:>6} {row['k']:>3} {row['evaluate']:>10.3g} {row['expand']:>10.3g} "
                  f"{row['flow']:>10.3g}   {row['expand error']:.0e} {row['flow error']:.0e}")  # fmt: skip
        for method in both:
            found = growth(results[by], by, method)
            print(f"{'':14}{method} grows like {by}^{found:.2f}; the paper's bound is {by}^{bounds[method][by]}")


if __name__ == "__main__":
    main()
