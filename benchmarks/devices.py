"""One model on one core, on all cores and on a graphics card: times, and that the bits are the same.

    python benchmarks/devices.py                   models of 1e3 to 1e6 states (some minutes on sixteen cores)
    python benchmarks/devices.py --sizes 1e4,1e5   only these numbers of states

Each model has 4 actions of 4 random successors and 4 objectives. A time is that of the optimal outcomes of some weight
vectors over the whole horizon (backwards with policies, then forwards), the best of two rounds in which all candidates
take turns; what is prepared once for a model is not counted. The exit code is 1 if any bit differs.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from tradeoff.problems.card import Card, absent
from tradeoff.problems.compiled import CompiledSolver
from tradeoff.problems.dynamics import Dynamics
from tradeoff.problems.layer import Layer
from tradeoff.problems.solver import Weights

HORIZON, ROUNDS = 50, 2


def random_model(states: int, seed: int = 0) -> Dynamics:
    """Return a model with random successors."""
    rng = np.random.default_rng(seed)
    branches = 16 * states
    chances = rng.random((4 * states, 4))
    layer = Layer(
        state_ptr=np.arange(0, 4 * states + 1, 4, dtype=np.int32),
        action=np.tile(np.arange(4, dtype=np.int32), states),
        choice_ptr=np.arange(0, branches + 1, 4, dtype=np.int64),
        target=rng.integers(0, states, branches, dtype=np.int32),
        prob=(chances / chances.sum(axis=1, keepdims=True)).ravel(),
        reward=rng.random((4 * states, 4)),
        branch_reward=None,
    )
    start = np.zeros(states)
    start[0] = 1.0
    return Dynamics((layer,), HORIZON, start, range(states), ("a", "b", "c", "d"))  # type: ignore[arg-type]


def candidates() -> dict[str, CompiledSolver]:
    """Return the solvers to compare, by name."""
    cores = os.cpu_count() or 1
    found = {"one core": CompiledSolver(1)}
    if cores > 1:
        found[f"{cores} cores"] = CompiledSolver(cores)
    if not absent():
        found["card"] = CompiledSolver(device=Card())
    return found


def compare(states: int, count: int, solvers: dict[str, CompiledSolver]) -> tuple[dict[str, float], bool]:
    """Return the seconds of each solver, and whether all results have the same bits."""
    model = random_model(states)
    rows = np.random.default_rng(1).random((count, 4))
    weights = Weights(rows, np.zeros(count, bool), np.zeros(count), np.ones(4))
    best: dict[str, float] = dict.fromkeys(solvers, float("inf"))
    results: dict[str, Any] = {name: solver.optimal_outcomes(model, weights) for name, solver in solvers.items()}
    for _ in range(ROUNDS):
        for name, solver in solvers.items():
            begin = time.perf_counter()
            solver.optimal_outcomes(model, weights)
            best[name] = min(best[name], time.perf_counter() - begin)
    first = next(iter(results.values()))
    return best, all(np.array_equal(found, first) for found in results.values())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1e3,1e4,1e5,1e6", help="numbers of states")
    sizes = [int(float(text)) for text in parser.parse_args().sizes.split(",")]
    out, solvers = Console(width=120), candidates()
    if reason := absent():
        out.print(f"without a card: {reason}")
    table = Table("states", "weight vectors", *solvers, "bits")
    right = True
    for states in sizes:
        for count in (1, 16):
            with out.status(f"{states:,} states, {count} weight vectors"):
                seconds, same = compare(states, count, solvers)
            right &= same
            whole = next(iter(seconds.values()))
            cells = [f"{1000 * each:,.1f} ms ({whole / each:.1f}x)" for each in seconds.values()]
            table.add_row(f"{states:,}", str(count), *cells, "same" if same else "DIFFERENT")
    out.print(table)
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
