"""The people of a study who choose together: everybody who has finished, with the weights that their log ends with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from tradeoff.decisions.group import Group
from tradeoff.decisions.what_if import shares_of
from tradeoff.errors import ArgumentError, LogError
from tradeoff.log import fold
from tradeoff.model import SKIP
from tradeoff.stores import DamagedError
from tradeoff.stores.base import Log

if TYPE_CHECKING:
    from tradeoff.sources import AnyProblem


def finished_people(problem: AnyProblem, logs: Mapping[str, Log]) -> Group:
    """Return everybody who has finished, by their number, in the order in which they began.

    No strategy is run: a log ends with what was estimated. Nobody's link is in what is returned.
    """
    names, weights = [], []
    for number, log in enumerate(logs.values(), start=1):
        if isinstance(log, DamagedError):
            continue
        try:
            state = fold(log)
        except LogError:
            continue
        answered = any(given.reply != SKIP and given.check is None for given in state.standing)
        if state.ended is not None and answered and len(state.ended.weights) == len(problem.objectives):
            names.append(f"person {number}")
            weights.append(shares_of(np.array(state.ended.weights)))
    if not names:
        raise ArgumentError(f"nobody has finished yet; {len(logs):,} have a link")
    return Group(problem, tuple(names), np.array(weights))
