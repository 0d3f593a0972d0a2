"""Two questions that check whether a person pays attention. They flag a person and never exclude one.

The first compares an option with one that is worse in everything. The second repeats one of the first questions at
the end, with the sides swapped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tradeoff.log import fold
from tradeoff.model import Option, Question
from tradeoff.problem import Problem, dilute
from tradeoff.strategies.solutions import solutions_of

DILUTED = 0.5  # share of the better option in the worse one, a mixture with the reference


def dominated_pair(problem: Problem) -> Question:
    """Return a question whose first option is better in everything that can be changed."""
    k = len(problem.objectives)
    (best,) = solutions_of(problem).best(np.full((1, k), 1 / k))  # solved once for all sessions
    find = getattr(problem, "worse_than", None)  # optional for problems of other classes
    worse: Option | None = find(best) if find is not None else None
    return Question((best, dilute(best, DILUTED) if worse is None else worse))


def flags(events: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the result of each check in a log: "passed", "failed", "skipped" or "not asked"."""
    return fold(events).flags
