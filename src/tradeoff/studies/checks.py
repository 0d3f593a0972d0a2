"""Two questions that show whether somebody pays attention: they flag, and never exclude anybody.

The first puts an alternative against one that is worse in everything. The second repeats, at the end, one of the first
questions with the sides swapped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tradeoff.log import fold
from tradeoff.model import Alternative, Question
from tradeoff.problem import Problem, dilute
from tradeoff.problems.catalogue import Catalogue
from tradeoff.strategies.cache import cache_of

DILUTED = 0.5  # how often the worse alternative is the better one


def dominated_pair(problem: Problem) -> Question:
    """Return a question whose first alternative is better in everything that can be changed."""
    k = len(problem.objectives)
    (best,) = cache_of(problem).best(np.full((1, k), 1 / k))  # worked out once for everybody
    if isinstance(problem, Catalogue):
        real = _worse_item(problem, best)
        if real is not None:
            return Question(best, real)
    return Question(best, dilute(best, DILUTED))


def _worse_item(catalogue: Catalogue, best: Alternative) -> Alternative | None:
    """Return a real item that the best one beats clearly: the middle one of those it beats in everything."""
    worse = np.all(catalogue.gains <= best.value, axis=1) & np.any(catalogue.gains < best.value, axis=1)
    if not worse.any():
        return None
    items = np.flatnonzero(worse)
    order = items[np.argsort(catalogue.gains[items].sum(axis=1), kind="stable")]
    return catalogue.alternative(int(order[len(order) // 2]))


def flags(events: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return what each check of a log came to: "passed", "failed", "skipped" or "not asked"."""
    return fold(events).flags
