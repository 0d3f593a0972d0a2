"""Find the supported solutions, those that are optimal for some weights >= 0, by calling an optimiser.

A routine for shortest paths cannot find the longest one. So only weights >= 0 are used: first each objective alone, then
the normals of the facets of the convex hull found so far, until no solution lies beyond a facet.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tradeoff.model import Matrix, Vector

Ask = Callable[
    [Vector], tuple[int, Vector]
]  # weights >= 0 -> the number of a best solution, and its k amounts (more is better)

# Points this far down each axis represent everything that is worse; ranges are scaled to about 1.
FAR = 1e6
# The least weight used, relative to a sum of 1, so that a solution found is never dominated.
LEAST = 1e-7
# A solution is new if it lies beyond a facet by more than rounding.
BEYOND = 1e-9


def find_supported(ask: Ask, first: list[int], goods: Matrix, most: int) -> tuple[list[int], bool]:
    """Return the numbers of the supported solutions, and whether these are all.

    ``first`` are the best solutions for each single objective, ``goods`` their amounts (more is better). The search stops
    early after ``most`` calls of the optimiser.

    >>> points = np.array([(0.0, 4.0), (1.0, 3.5), (2.0, 1.5), (4.0, 0.0)])
    >>> def ask(weights):
    ...     best = int((points @ weights).argmax())
    ...     return best, points[best]
    >>> find_supported(ask, [3, 0], points[[3, 0]], 100)
    ([3, 0, 1], True)
    """
    low, size = goods.min(axis=0), ranges_of(goods)
    found = {number: (row - low) / size for number, row in zip(first, goods, strict=True)}
    asked: set[bytes] = set()
    grows = goods.shape[1] > 1
    while grows:
        grows = False
        points = np.array(list(found.values()))
        for direction in _facets(points):
            key = np.round(direction, 9).tobytes()
            if key in asked:
                continue
            if len(asked) >= most:
                return list(found), False
            asked.add(key)
            number, row = ask(direction / size)
            point = (row - low) / size
            if number not in found and direction @ point > (points @ direction).max() + BEYOND:
                found[number], grows = point, True
    return list(found), True


def ranges_of(goods: Matrix) -> Vector:
    """Return the range of each column, or the size of its values if they are all the same."""
    low, high = goods.min(axis=0), goods.max(axis=0)
    ranges: Vector = np.where(high > low, high - low, np.maximum(np.abs(high), 1.0))
    return ranges


def _facets(points: Matrix) -> Matrix:
    """Return the outward normals (each summing to 1) of the upper facets of the hull of the points and all that is worse."""
    from scipy.spatial import ConvexHull

    below = points.mean(axis=0) - FAR * np.eye(points.shape[1])
    normals: Matrix = ConvexHull(np.concatenate([points, below])).equations[:, :-1]
    upwards = np.maximum(normals[normals.min(axis=1) > -0.01], LEAST)  # the others face towards worse points
    result: Matrix = upwards / upwards.sum(axis=1, keepdims=True)
    return result
