"""How a recommendation would change if one objective mattered more than the answers suggest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tradeoff.errors import ArgumentError
from tradeoff.model import Alternative, Matrix, Objective, Recommendation, Vector
from tradeoff.problem import Problem

SAME = 1e-9  # relative to the best score: an alternative this close to it is as good
LEAST, MOST = 0.01, 0.99  # the range of shares before the last step, whose share is 1


class Stop(NamedTuple):
    """An alternative that stays best while the objective's share of all importance goes from ``low`` to ``high``."""

    low: float
    high: float
    alternative: Alternative


@dataclass(frozen=True)
class Change:
    """What would be recommended as one objective matters more and more; the first stop is the current recommendation."""

    objective: Objective
    stops: tuple[Stop, ...]


def what_if(problem: Problem, recommendation: Recommendation, steps: int = 9) -> tuple[Change, ...]:
    """Return, for each objective, what would be recommended as its share grows from the estimated one to 1.

    The other objectives keep their proportions. ``steps`` shares are tried, all in one batch; neighbours with the same best
    alternative are one stop.

    >>> from tradeoff.problems.catalogue import Catalogue
    >>> shop = Catalogue([[9, 1], [6, 6], [1, 9]], ["speed", "range"], ["fast", "middle", "far"])
    >>> (middle,) = shop.best([[0.5, 0.5]])
    >>> speed, _ = what_if(shop, Recommendation(middle, [0.5, 0.5], 3, "done"))
    >>> [(round(stop.low, 2), round(stop.high, 2), stop.alternative.plan.name) for stop in speed.stops]
    [(0.5, 0.5, 'middle'), (0.66, 1.0, 'fast')]
    """
    if type(steps) is not int or steps < 2:
        raise ArgumentError(f"steps is {steps!r}; it must be a whole number, 2 or more: the present share and 1")
    weights = shares_of(recommendation.weights)
    ladders = [ladder(float(share), steps) for share in weights]
    rows = np.concatenate([weights_with(weights, j, shares) for j, shares in enumerate(ladders)])
    found = iter(zip(rows, problem.best(rows), strict=True))
    changes = []
    for objective, shares in zip(problem.objectives, ladders, strict=True):
        stops: list[Stop] = []
        for share in shares.tolist():
            row, best = next(found)
            if not stops:
                stops.append(Stop(share, share, recommendation.alternative))
            elif as_good(stops[-1].alternative, best, row):
                stops[-1] = stops[-1]._replace(high=share)
            else:
                stops.append(Stop(share, share, best))
        changes.append(Change(objective, tuple(stops)))
    return tuple(changes)


def shares_of(weights: Vector) -> Vector:
    """Return the weights as shares that sum to 1; equal shares if all weights are 0."""
    positive = np.maximum(weights, 0.0)
    total = positive.sum()
    result: Vector = positive / total if total > 0 else np.full(len(positive), 1 / len(positive))
    return result


def ladder(share: float, steps: int) -> Vector:
    """Return increasing shares from this one to 1, whose odds grow by the same factor at each step but the last."""
    if share >= MOST:
        return np.array([share, 1.0]) if share < 1 else np.array([1.0])
    # The odds of a share of 0 cannot grow by a factor, so its first step is to the least share.
    odds = np.geomspace(max(share, LEAST) / (1 - max(share, LEAST)), MOST / (1 - MOST), steps - 1)
    shares = odds / (1 + odds)
    if share < LEAST:
        return np.concatenate([[share], shares, [1.0]])
    return np.concatenate([[share], shares[1:], [1.0]])


def weights_with(weights: Vector, objective: int, shares: Vector) -> Matrix:
    """Return the weights with other shares for one objective, one row each; the others keep their proportions."""
    rest = weights.copy()
    rest[objective] = 0.0
    total = rest.sum()
    rows: Matrix = np.outer(1 - shares, rest / total if total > 0 else rest)
    rows[:, objective] = shares
    return rows


def as_good(alternative: Alternative, best: Alternative, weights: Vector) -> bool:
    """Return whether an alternative is worth as much as the best one, up to rounding."""
    most = float(best.value @ weights)
    return float(alternative.value @ weights) >= most - SAME * max(abs(most), 1.0)
