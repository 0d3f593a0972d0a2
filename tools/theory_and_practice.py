"""Measure what the paper proves: writes docs/theory-and-practice.md and its pictures.

    python tools/theory_and_practice.py            the whole thing, some minutes on one core
    python tools/theory_and_practice.py --quick    a few interviews only, to see that it works

Every number on the page is computed here. The same seed gives the same page.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from theory_page import write_page, write_pictures

from tradeoff import MDP, Catalogue
from tradeoff.model import Recommendation
from tradeoff.population import Settings, user_of
from tradeoff.strategies._paper import _Elicitation
from tradeoff.strategies.base import counted, without_identical
from tradeoff.strategies.basis import SPANNER_FACTOR
from tradeoff.users import LinearUser

AnyProblem = Catalogue | MDP


# --- problems ---------------------------------------------------------------------------------------------------------


def uniform(rng: np.random.Generator, k: int) -> Catalogue:
    """Return 300 points, uniform in a cube: only few of them are ever best."""
    return Catalogue(rng.random((300, k)))


def sphere(rng: np.random.Generator, k: int) -> Catalogue:
    """Return 300 points on the positive part of a sphere: every one is the best for somebody."""
    points = np.abs(rng.normal(size=(300, k)))
    return Catalogue(points / np.linalg.norm(points, axis=1, keepdims=True))


def thin(rng: np.random.Generator, k: int) -> Catalogue:
    """Return 300 points close to a simplex: what one gains here one loses there, and one direction is hardly there."""
    shares = rng.dirichlet(np.ones(k), size=300)
    return Catalogue(shares * (1 + 0.05 * rng.random((300, 1))))


def random_mdp(rng: np.random.Generator, k: int) -> MDP:
    """Return a random MDP with 30 states, 4 actions, 6 steps and 3 successors for every choice."""
    states, actions, horizon = 30, 4, 6
    transitions = np.zeros((states, actions, states))
    for s, a in np.ndindex(states, actions):
        transitions[s, a, rng.choice(states, size=3, replace=False)] = rng.dirichlet(np.ones(3))
    rewards = rng.random((states, actions, k)) ** 3  # few choices are good at anything
    return MDP.from_arrays(transitions, rewards, horizon=horizon, prune=False)


FAMILIES: dict[str, Callable[[np.random.Generator, int], AnyProblem]] = {
    "uniform catalogue": uniform,
    "sphere catalogue": sphere,
    "thin catalogue": thin,
    "random MDP": random_mdp,
}

METHODS: dict[str, dict[str, Any]] = {
    "Theorem 1": {"basis": "paper", "theorem": 1},
    "Theorem 2": {"basis": "paper", "theorem": 2},
    "spanner": {"basis": "spanner", "theorem": 1},
}


# --- one interview ----------------------------------------------------------------------------------------------------


@dataclass
class Cell:
    """All interviews of one family, number of objectives, precision and method."""

    questions: list[int] = field(default_factory=list)
    regret: list[float] = field(default_factory=list)
    misjudged: list[float] = field(default_factory=list)  # sup over all alternatives of the error in their worth
    kept: list[float] = field(default_factory=list)  # share of the ratios that the estimate uses
    question_share: list[float] = field(default_factory=list)  # of the bound on the number of questions
    benchmark_share: list[float] = field(default_factory=list)  # Lemma 1: (v* / <w*, V1>) / 2k
    ratio_share: list[float] = field(default_factory=list)  # Lemma 1: |alpha-hat - alpha| / (4 k^2 eps / v*)
    regret_share: list[float] = field(default_factory=list)  # of the spanner theorem's 2 C (d-1) eps


def ask(problem: AnyProblem, user: LinearUser, basis: str, theorem: int) -> tuple[_Elicitation, Recommendation]:
    """Return what the strategy knows at the end, and its recommendation; nothing implied is left out."""
    known = _Elicitation(problem, basis, theorem, literal=True)
    running = counted(without_identical(known.run()), None)
    try:
        step = next(running)
        while True:
            step = running.send(user(step.question))
    except StopIteration as end:
        return known, end.value


def interview(cell: Cell, problem: AnyProblem, user: LinearUser, method: str) -> None:
    """Ask one user and note down what came of it, and how much of each bound it used up (v* is 1 for every user)."""
    known, found = ask(problem, user, **METHODS[method])
    k, d, eps = len(problem.objectives), len(known.order), user.precision
    regret = max(0.0, 1 - user.worth(found.alternative.value))
    cell.questions.append(found.questions)
    cell.regret.append(regret if regret > 1e-12 else 0.0)
    rows, _ = known.rows()
    cell.kept.append((len(rows) - 1) / max(1, d - 1))
    benchmark = user.worth(known.order[0].value)
    cell.misjudged.append(farthest(problem, benchmark * known.weights() - user.weights))
    # Halving an interval of this width until it is 2 eps wide puts its middle within eps of any ratio.
    width = known.largest_ratio
    searches = max(1, math.ceil(math.log2(width / (2 * eps))) + 1)
    tournament = (k if method != "spanner" else d) - 1
    if method != "Theorem 2":
        cell.question_share.append(found.questions / max(1, tournament + (d - 1) * searches))
    if method == "Theorem 1" and eps <= 1 / (2 * k):
        cell.benchmark_share.append(1 / benchmark / (2 * k))
        for ratio, other in zip(known.ratios, known.order[1:], strict=True):
            error = abs(ratio - user.worth(other.value) / benchmark)
            cell.ratio_share.append(error / (4 * k * k * eps))
    if method == "spanner" and d > 1:
        cell.regret_share.append(regret / (2 * SPANNER_FACTOR * (d - 1) * eps))


def farthest(problem: AnyProblem, error: np.ndarray) -> float:
    """Return the largest |<error, V>| over the values of all alternatives."""
    found = problem.best([error, -error])
    return max(abs(float(error @ a.value)) for a in found)


# --- all of them ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """What is measured: regret against eps for one k, and against k for one eps."""

    seed: int
    instances: int
    users: int  # of each instance with the number of objectives at which eps is varied; two fifths elsewhere
    precisions: tuple[float, ...]
    objectives: tuple[int, ...]
    fixed_objectives: int = 4
    fixed_precision: float = 0.01

    def points(self) -> list[tuple[int, float]]:
        """Return the pairs (k, eps), each once."""
        sweep = [(self.fixed_objectives, eps) for eps in self.precisions]
        return list(dict.fromkeys([*sweep, *((k, self.fixed_precision) for k in self.objectives)]))

    def users_of(self, k: int) -> int:
        """Return how many users an instance with k objectives has."""
        return self.users if k == self.fixed_objectives else max(1, 2 * self.users // 5)

    def jobs(self) -> Iterator[tuple[str, int, int]]:
        """Yield (family, k, instance)."""
        for family in FAMILIES:
            for k in dict.fromkeys((self.fixed_objectives, *self.objectives)):
                for instance in range(self.instances):
                    yield family, k, instance


Cells = dict[tuple[str, int, float, str], Cell]


def measure(plan: Plan) -> Cells:
    """Return every cell; the same problems and the same users in all cells of one family and k."""
    cells: Cells = {}
    jobs = list(plan.jobs())
    for family, k, instance in track(jobs, "problems", console=Console(stderr=True), transient=True):
        number = list(FAMILIES).index(family)
        rng = np.random.default_rng(np.random.SeedSequence(plan.seed, spawn_key=(number, k, instance)))
        problem = FAMILIES[family](rng, k)
        precisions = [e for objectives, e in plan.points() if objectives == k]
        for index in range(plan.users_of(k)):
            weights = user_of(problem, index, Settings(seed=plan.seed)).weights
            for eps in precisions:
                for method in METHODS:
                    cell = cells.setdefault((family, k, eps, method), Cell())
                    interview(cell, problem, LinearUser(weights, eps), method)
    return cells


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few interviews only")
    parser.add_argument("--seed", type=int, default=0)
    docs = Path(__file__).resolve().parent.parent / "docs"
    parser.add_argument("--to", type=Path, default=docs, help="the folder of the page")
    given = parser.parse_args()
    if given.quick:
        plan = Plan(given.seed, 1, 2, (1e-1, 1e-2), (2, 4))
    else:
        steps = tuple(float(f"{10 ** (-e / 2):.3g}") for e in range(2, 11))
        plan = Plan(given.seed, 20, 25, steps, tuple(range(2, 11)))
    cells = measure(plan)
    (given.to / "pictures").mkdir(parents=True, exist_ok=True)
    write_pictures(plan, cells, given.to / "pictures")
    write_page(plan, cells, given.to / "theory-and-practice.md", quick=given.quick)


if __name__ == "__main__":
    main()
