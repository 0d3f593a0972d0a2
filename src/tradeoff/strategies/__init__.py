"""Ways of asking. Each is a generator that yields steps and receives answers; none knows what an MDP is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tradeoff.errors import ArgumentError
from tradeoff.model import Recommendation
from tradeoff.problem import Problem
from tradeoff.strategies.base import Strategy, counted, without_identical, without_implied
from tradeoff.strategies.basis import bases_of
from tradeoff.strategies.careful import careful
from tradeoff.strategies.certified import certified
from tradeoff.strategies.paper import paper


def settled(problem: Problem) -> Strategy:
    """Return the strategy for a problem in which nothing can be changed: it recommends what there is, without asking."""
    k = len(problem.objectives)
    (only,) = problem.best(np.full((1, k), 1 / k))
    return Recommendation(
        only, np.full(k, 1 / k), 0, "nothing is better in anything, so there was nothing to ask",
        regret_bound=0.0, robust_bound=0.0, likely_regret=0.0, likely_worst=0.0,
        unidentified=tuple(o.name for o in problem.objectives),
    )  # fmt: skip
    yield  # never: a strategy is a generator


STRATEGIES: dict[str, Callable[..., Strategy]] = {"careful": careful, "certified": certified, "paper": paper}


def start(
    name: str,
    problem: Problem,
    *,
    max_questions: int | None = None,
    skip_implied: bool | None = None,
    **options: Any,
) -> Strategy:
    """Return a strategy, ready to be asked: never two identical alternatives, nothing implied, within its budget.

    Where whatever is chosen comes to the same, as where one item beats all others, nothing is asked.
    """
    if not bases_of(problem).asked_about:
        return settled(problem)
    try:
        strategy = STRATEGIES[name](problem, **options)
    except TypeError as error:
        raise ArgumentError(f"the strategy {name!r} does not take these options: {error}") from None
    if skip_implied is None:
        # The paper's own version asks what its pseudo-code asks; the others but the spanner choose by what an answer
        # would tell, and so never ask what follows already.
        skip_implied = name == "paper" and options.get("basis", "paper") != "paper"
    if skip_implied:
        strategy = without_implied(strategy, len(problem.objectives))
    return counted(without_identical(strategy), max_questions)
