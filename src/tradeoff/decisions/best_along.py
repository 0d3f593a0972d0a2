"""Which option is best where, exactly, while weights move along a line."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tradeoff.model import Option, Vector
from tradeoff.problem import Problem

SAME = 1e-9  # in gains: an option this close to the best is as good
MOST_SOLVES = 400  # beyond them, what is best between two known options is left open; the ends stay exact


class Stretch(NamedTuple):
    """An option that is best from ``low`` to ``high`` along the line, counted from 0 to 1."""

    low: float
    high: float
    option: Option


def best_along(problem: Problem, start: Vector, end: Vector, first: Option | None = None) -> list[Stretch]:
    """Return what is best from the weights ``start`` to the weights ``end``, in order.

    Between two points with different optima there is one where both are worth the same. Either both are optimal there, or
    something better is, and each part is looked at in the same way. ``first`` is taken at the start if it is as good.

    >>> from tradeoff.problems.catalogue import Catalogue
    >>> shop = Catalogue([[9, 1], [6, 6], [1, 9]], ["speed", "range"], ["fast", "middle", "far"])
    >>> [(round(s.low, 3), s.option.plan.name) for s in best_along(shop, np.array([0.0, 1.0]), np.array([1.0, 0.0]))]
    [(0.0, 'far'), (0.375, 'middle'), (0.625, 'fast')]
    """
    search = _Search(problem, start, end)
    left, right = search.best(0.0), search.best(1.0)
    if first is not None and search.loss(first, left, 0.0) <= SAME:
        left = first
    search.split(0.0, 1.0, left, right)
    merged: list[Stretch] = []
    for stretch in search.found:
        if merged and merged[-1].option is stretch.option:
            merged[-1] = merged[-1]._replace(high=stretch.high)
        elif stretch.high > stretch.low or not merged:
            merged.append(stretch)
    return merged


class _Search:
    def __init__(self, problem: Problem, start: Vector, end: Vector) -> None:
        self.problem, self.start, self.end = problem, start, end
        self.found: list[Stretch] = []
        self.left = MOST_SOLVES

    def weights(self, at: float) -> Vector:
        result: Vector = (1 - at) * self.start + at * self.end
        return result

    def best(self, at: float) -> Option:
        self.left -= 1
        return self.problem.best(self.weights(at)[None, :])[0]

    def loss(self, option: Option, best: Option, at: float) -> float:
        return float(self.weights(at) @ (best.value - option.value))

    def split(self, low: float, high: float, left: Option, right: Option) -> None:
        """Add what is best between two points at which the optima are known."""
        gap = left.value - right.value
        here, there = float(gap @ self.weights(low)), float(gap @ self.weights(high))
        if abs(here) <= SAME and abs(there) <= SAME:  # as good as each other all the way
            self.found.append(Stretch(low, high, left))
            return
        # The left option is ahead by ``here`` at the low end and behind by ``-there`` at the high end.
        share = float(np.clip(here / (here - there), 0.0, 1.0)) if here != there else 0.0
        at = low + share * (high - low)
        between = self.best(at) if self.left > 0 else left
        if self.loss(left, between, at) <= SAME:
            self.found += [Stretch(low, at, left), Stretch(at, high, right)]
            return
        self.split(low, at, left, between)
        self.split(at, high, between, right)
