"""Reduce a weighted set of points to at most k+1 with the same mean: C4, Algorithm 3 of the paper (Caratheodory's theorem)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tradeoff.errors import ProblemError
from tradeoff.mdp.stories.caratheodory import Push

if TYPE_CHECKING:
    from collections.abc import Iterator

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]
    Indices = NDArray[np.int64]

SUM_TOLERANCE = 1e-9  # how far the weights' sum may be from 1
TARGET_TOLERANCE = 1e-9  # how far a given mean may be from the points' own, relative to each coordinate's scale
SUMMAND_ROUNDING = 4 * float(np.finfo(float).eps)  # the same, relative to the size of the amounts that were added up

TRUSTED = 3e-15  # a result with a larger error than this is computed again by other means


def compress(
    points: ArrayLike,
    weights: ArrayLike,
    *,
    target: ArrayLike | None = None,
    size: ArrayLike = 0.0,
) -> tuple[Indices, Vector]:
    """Return the rows of at most k+1 of the points, in increasing order, and positive weights with the same mean.

    ``points[n, k]`` and ``weights[n]`` (not negative, summing to 1) are a distribution. The result has the same mean up to
    a few rounding errors on each coordinate's scale, and at most rank + 1 points if the points span fewer than k
    dimensions. Points of weight 0 are never chosen. Of the many exact choices, points with large weights are preferred.

    ``target`` is the mean if it is known more precisely than the sum over the points gives it (for trajectories, the value
    of their policy). The weights then match it, so that errors do not grow when compressing repeatedly. ``size`` is the
    size of the amounts that each coordinate is a sum of, if that is larger than the coordinate itself: a sum of +1 and -1
    is 0 only up to the rounding of 1.

    >>> corners = [[0, 0], [1, 0], [0, 1], [1, 1]]
    >>> rows, shares = compress(corners, [0.4, 0.3, 0.2, 0.1])
    >>> len(rows), (shares @ np.array(corners)[rows]).round(12).tolist()
    (3, [0.4, 0.3])
    """
    points = np.ascontiguousarray(points, np.float64)
    weights = np.ascontiguousarray(weights, np.float64)
    _check(points, weights)
    push = Push(points, weights)
    aim = _aim(push, points, target, size)
    rows, shares, error = push.solve(*aim)
    return (rows, shares) if error <= TRUSTED else robust(push, points, weights, aim, size)


def _aim(push: Push, points: Matrix, target: ArrayLike | None, size: ArrayLike) -> tuple[Vector, Vector]:
    """Return the mean that the weights must have and its rounding error, in the units of ``push``."""
    if target is None:
        return push.mean, push.rest
    mean = np.ascontiguousarray(target, np.float64)
    if mean.shape != (points.shape[1],):
        raise ProblemError(f"the target has shape {mean.shape}; the points have {points.shape[1]} coordinates")
    own, reach = np.ldexp(push.mean, push.exponents), np.ldexp(push.reach, push.exponents)
    far = np.flatnonzero(~(np.abs(mean - own) <= TARGET_TOLERANCE * np.maximum(reach, size)))
    if len(far):
        j = int(far[0])
        raise ProblemError(
            f"coordinate {j} of the target is {mean[j]:.12g}, but the points' mean there is {own[j]:.12g}; "
            "a target is the same mean, known more precisely"
        )
    return np.ldexp(mean, -push.exponents), np.zeros(len(mean))


def robust(
    push: Push, points: Matrix, weights: Vector, aim: tuple[Vector, Vector], size: ArrayLike = 0.0
) -> tuple[Indices, Vector]:
    """Do the same as ``compress`` by the method that leaves the smallest error.

    It handles the few inputs for which the result of the push is not accurate: points so nearly dependent that no basis of
    them can be inverted, coordinates so small that they underflow, and targets that no mixture of the points meets exactly.
    If a target differs from the points' own mean by no more than the rounding of the summands, that mean is good enough.
    """
    from tradeoff.mdp.stories.elimination import eliminate, exact_shortfall, relative_error

    scaled = np.ldexp(points, -push.exponents)
    own = push.mean, push.rest
    rounding = SUMMAND_ROUNDING * np.ldexp(np.asarray(size, float), -push.exponents)
    if np.all(np.abs(aim[0] - own[0]) <= rounding):
        aim = own

    def ways() -> Iterator[tuple[Indices, Vector]]:
        for mean in (own,) if aim is own else (aim, own):
            yield push.solve(*mean)[:2]
            yield eliminate(scaled, weights, *mean)

    found: list[tuple[float, tuple[Indices, Vector]]] = []
    for way in ways():
        found.append((relative_error(exact_shortfall(scaled, *way, *aim), push.reach), way))
        if found[-1][0] <= TRUSTED:
            break
    return min(found, key=lambda result: result[0])[1]


def _check(points: Matrix, weights: Vector) -> None:
    """Raise an error that says what is wrong with a distribution."""
    if points.ndim != 2 or weights.ndim != 1 or len(points) != len(weights):
        raise ProblemError(
            f"points must be a table of n rows and k columns and weights a list of n numbers; found shapes "
            f"{points.shape} and {weights.shape}"
        )
    if len(points) == 0:
        raise ProblemError("there are no points: a mean needs at least one")
    total = float(weights.sum())
    if not (weights.min() >= 0 and np.isfinite(total)):
        bad = int(np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))[0])
        raise ProblemError(f"the weight of point {bad} is {weights[bad]:.6g}; weights must be 0 or more and finite")
    if not np.isfinite(points).all():
        row, column = (int(place) for place in np.argwhere(~np.isfinite(points))[0])
        raise ProblemError(
            f"coordinate {column} of point {row} is {points[row, column]}; leave out points that are not known"
        )
    if not abs(total - 1.0) <= SUM_TOLERANCE:
        raise ProblemError(
            f"the weights of the {len(weights)} points sum to {total:.12g}, not 1; divide them by their sum"
        )
