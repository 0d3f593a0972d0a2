"""Ways of asking. Each is a generator that yields steps and receives answers; none knows what an MDP is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tradeoff.errors import ArgumentError
from tradeoff.problem import Problem
from tradeoff.strategies.base import Strategy, counted, without_identical, without_implied
from tradeoff.strategies.careful import careful
from tradeoff.strategies.certified import certified
from tradeoff.strategies.paper import paper

STRATEGIES: dict[str, Callable[..., Strategy]] = {"careful": careful, "certified": certified, "paper": paper}


def start(
    name: str,
    problem: Problem,
    *,
    max_questions: int | None = None,
    skip_implied: bool | None = None,
    **options: Any,
) -> Strategy:
    """Return a strategy, ready to be asked: never two identical alternatives, nothing implied, within its budget."""
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
