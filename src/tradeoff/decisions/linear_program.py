"""The form of linear program that decisions need: weights or probabilities that sum to 1, under conditions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tradeoff.model import Matrix, Vector

EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


class Solution(NamedTuple):
    """Where the cost is least, and how much each condition costs there."""

    x: Vector
    prices: Vector


def minimise(cost: Vector, rows: Matrix, limits: Vector, sharing: int, *, free: int = 0) -> Solution | None:
    """Return the x with ``rows @ x >= limits`` of least ``cost @ x``; None if there is none.

    The first ``sharing`` numbers of x sum to 1. None is negative, except for the last ``free`` ones, which may be anything.

    >>> minimise(np.array([2.0, 1.0]), np.array([[1.0, 0.0]]), np.array([0.25]), 2).x.tolist()
    [0.25, 0.75]
    """
    from scipy.optimize import linprog  # slow to import

    bounds: Any = [(0, None)] * (len(cost) - free) + [(None, None)] * free
    equal = np.zeros((1, len(cost)))
    equal[0, :sharing] = 1.0
    options: Any = EXACT
    done = linprog(
        cost, A_ub=-rows if len(rows) else None, b_ub=-limits if len(rows) else None, A_eq=equal, b_eq=[1.0],
        bounds=bounds, options=options,
    )  # fmt: skip
    if done.x is None:
        return None
    prices = np.maximum(-np.asarray(done.ineqlin.marginals, dtype=float), 0.0) if len(rows) else np.zeros(0)
    return Solution(np.asarray(done.x, dtype=float), prices)
