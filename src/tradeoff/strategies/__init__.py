"""Ways of asking. Each is a generator that yields steps and receives replies; none knows what an MDP is."""

from __future__ import annotations

from typing import Any

import numpy as np

from tradeoff.errors import ArgumentError
from tradeoff.model import Recommendation
from tradeoff.problem import Problem
from tradeoff.strategies.basis import bases_of
from tradeoff.strategies.careful import careful
from tradeoff.strategies.certified import certified
from tradeoff.strategies.paper import paper
from tradeoff.strategies.registry import AnyStrategy, StrategySpec, name_of, spec_of, strategy_names
from tradeoff.strategies.step import Received, Step, Strategy, within_budget, without_identical, without_implied

__all__ = [
    "AnyStrategy",
    "Received",
    "Step",
    "Strategy",
    "StrategySpec",
    "careful",
    "certified",
    "name_of",
    "paper",
    "spec_of",
    "start",
    "strategy_names",
]


def start(
    strategy: AnyStrategy,
    problem: Problem,
    *,
    max_questions: int | None = None,
    skip_implied: bool | None = None,
    **options: Any,
) -> Strategy:
    """Return a strategy, ready to be asked: never two identical options, within its budget.

    ``strategy`` is a name, a ``StrategySpec`` or any callable that takes the problem and returns a generator of steps.
    ``skip_implied`` leaves out what follows from earlier answers; by default the strategy decides. Where no choice
    changes any objective, as where one item beats all others, nothing is asked.
    """
    spec = spec_of(strategy)
    if not bases_of(problem).asked_about:
        return nothing_to_ask(problem)
    try:
        running = spec.make(problem, **options)
    except TypeError as error:
        raise ArgumentError(f"the strategy {name_of(strategy)!r} does not take these options: {error}") from None
    if spec.skip_implied(options) if skip_implied is None else skip_implied:
        running = without_implied(running, len(problem.objectives))
    return within_budget(without_identical(running), max_questions)


def nothing_to_ask(problem: Problem) -> Strategy:
    """Return the strategy for a problem in which nothing can be changed: it recommends what there is, without asking."""
    k = len(problem.objectives)
    (only,) = problem.best(np.full((1, k), 1 / k))
    return Recommendation(
        only, np.full(k, 1 / k), 0, "nothing is better in anything that is weighed, so there was nothing to ask",
        regret_bound=0.0, robust_bound=0.0, likely_regret=0.0, likely_worst=0.0,
        unidentified=tuple(o.name for o in problem.objectives),
    )  # fmt: skip
    yield  # never reached: it makes this a generator
