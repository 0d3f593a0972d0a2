"""People with diminishing returns: what linear preferences cost them, and what curves cost in questions.

    python benchmarks/curves.py                 40 people on each of 5 random catalogues, on all cores
    python benchmarks/curves.py --quick         a few people

Catalogues have 500 items with k = 4 objectives on a bent frontier, reduced to what nothing beats. A person's worth is
sum w_j * gain_j ** power with Dirichlet weights and power 0.3 or 0.5; they notice 1% of their best. Regret is relative to that.
"""

from __future__ import annotations

import os

if __name__ == "__main__":
    for _name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(_name, "1")

import argparse
from typing import NamedTuple

import joblib
import numpy as np

from tradeoff import Catalogue, Interview, Item, Objective
from tradeoff.evidence import possible_replies
from tradeoff.model import Vector
from tradeoff.problems.curves import CurvedCatalogue, curved, never_best
from tradeoff.problems.dominance import undominated

ITEMS, OBJECTIVES, PRECISION = 500, 4, 0.01
MODELS = ("linear", "concave:2", "concave:3", "monotone:3")


class Respondent(NamedTuple):
    """Somebody to whom sum w_j * gain_j ** power is what an option is worth."""

    weights: Vector
    power: float


class Row(NamedTuple):
    model: str
    regret: float
    questions: int


def catalogue(seed: int) -> Catalogue:
    """Return items on a bent frontier, without those that others beat."""
    rng = np.random.default_rng(seed)
    points = rng.dirichlet(np.ones(OBJECTIVES), size=ITEMS) ** 0.9 * rng.uniform(0.6, 1, size=(ITEMS, 1))
    aims = [Objective(f"objective {j + 1}") for j in range(OBJECTIVES)]
    return Catalogue(points, aims).subset(np.flatnonzero(undominated(points, aims)))


def interview(problem: Catalogue, person: Respondent) -> tuple[float, int]:
    """Return what a person loses by what is recommended to them, and how many questions they answered."""
    plain = problem.uncurved if isinstance(problem, CurvedCatalogue) else problem
    worth: Vector = plain.gains**person.power @ person.weights
    best = float(worth.max())
    asked = Interview(problem, "careful")
    while (question := asked.ask()) is not None:
        shown = [option.plan.index for option in question.options if isinstance(option.plan, Item)]
        asked.tell(possible_replies(worth[shown], PRECISION * best, question.asks)[0])
    plan = asked.recommendation.option.plan
    assert isinstance(plan, Item)
    return 1 - float(worth[plan.index]) / best, len(asked.answers)


def rows_of(seed: int, people: int) -> list[Row]:
    rng = np.random.default_rng(1000 + seed)
    plain = catalogue(seed)
    crowd = [Respondent(rng.dirichlet(np.ones(OBJECTIVES)), power) for power in (0.3, 0.5) for _ in range(people // 2)]
    found = []
    for model in MODELS:
        problem = plain if model == "linear" else curved(plain, model)
        found += [Row(model, *interview(problem, person)) for person in crowd]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two catalogues, six people each")
    quick = parser.parse_args().quick
    seeds, people = (2, 6) if quick else (5, 40)
    parts = joblib.Parallel(n_jobs=-1)(joblib.delayed(rows_of)(seed, people) for seed in range(seeds))
    rows = [row for part in parts for row in part]
    for seed in range(seeds):
        plain = catalogue(seed)
        print(f"catalogue {seed}: {len(plain.names)} efficient items, {never_best(plain)} of them best for no weights")
    print(f"{'model':12} {'people':>6} {'mean regret':>12} {'largest':>9} {'questions':>10}")
    for model in MODELS:
        regrets = [row.regret for row in rows if row.model == model]
        questions = [row.questions for row in rows if row.model == model]
        print(f"{model:12} {len(regrets):6} {np.mean(regrets):12.2%} {max(regrets):9.2%} {np.mean(questions):10.1f}")


if __name__ == "__main__":
    main()
