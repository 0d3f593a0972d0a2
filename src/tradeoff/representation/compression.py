"""Reduce a weighted set of points to at most k+1 with the same mean: C4, Algorithm 3 of the paper (Caratheodory's theorem)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tradeoff.errors import ProblemError
from tradeoff.representation import few

if TYPE_CHECKING:
    from collections.abc import Iterator

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]
    Indices = NDArray[np.int64]

SUM_TOLERANCE = 1e-9  # how far the weights' sum may be from 1
TARGET_TOLERANCE = 1e-9  # how far a given mean may be from the points' own, relative to each coordinate's scale
SUMMAND_ROUNDING = 4 * float(np.finfo(float).eps)  # the same, relative to the size of the amounts that were added up

TRUSTED = 3e-15  # a result with a larger error than this is computed again by other means
FEW = 64  # points; for up to this many, loading the compiled kernel is not worthwhile

_OWN_MEAN = np.empty(0)


@cache
def _kernel() -> Any:
    """Return the module of the compiled kernel, loading it on first use."""
    from tradeoff.kernels import caratheodory

    return caratheodory


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
    dimensions. Points of weight 0 are never chosen. Of the many exact choices, points with large weights are preferred
    (weights within 1/8 of each other count as equal).

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
    _check_shapes(points, weights)
    mean = _OWN_MEAN if target is None else _checked_shape(target, points)
    if len(points) <= FEW:
        return _compress_few(points, weights, mean, size)
    kernel = _kernel()
    verdict, rows, shares, error, summary = kernel.push(points, weights, mean)
    if verdict != kernel.SOUND:
        _explain(points, weights)
        # The input is valid, but a sum overflows. Scale each coordinate near 1 by a power of two, which changes no digit.
        exponents = np.frexp(np.abs(points).max(axis=0))[1]
        nearer = None if target is None else np.ldexp(mean, -exponents)
        size = np.ldexp(np.asarray(size, float), -exponents)
        return compress(np.ldexp(points, -exponents), weights, target=nearer, size=size)
    if not abs(summary[kernel.MEAN, -1] - 1.0) <= SUM_TOLERANCE:
        _explain(points, weights)
    if target is not None:
        own, low, high = summary[[kernel.MEAN, kernel.LOW, kernel.HIGH], :-1]
        _check_target(mean, own, low, high, size)
    if error <= TRUSTED:
        return rows, shares
    return robust(points, weights, mean, size)


def _compress_few(points: Matrix, weights: Vector, target: Vector, size: ArrayLike) -> tuple[Indices, Vector]:
    """Do the same as ``compress`` without the compiled kernel."""
    _explain(points, weights)
    # Scale each coordinate near 1 by a power of two, which changes no digit, so that no sum overflows.
    exponents = np.frexp(np.abs(points).max(axis=0))[1]
    scaled = np.ldexp(points, -exponents)
    aim = few.mean_of(scaled, weights)
    if len(target):
        likely = points[weights > 0]
        _check_target(target, np.ldexp(aim[0], exponents), likely.min(axis=0), likely.max(axis=0), size)
        aim = np.ldexp(target, -exponents), np.zeros(len(target))
    rows, shares, error = few.push(scaled, weights, *aim)
    return (rows, shares) if error <= TRUSTED else robust(points, weights, target, size)


def robust(points: Matrix, weights: Vector, target: Vector, size: ArrayLike = 0.0) -> tuple[Indices, Vector]:
    """Do the same as ``compress`` by the method that leaves the smallest error.

    It handles the few inputs for which the result of the push is not accurate: points so nearly dependent that no basis of
    them can be inverted, coordinates so small that they underflow, and targets that no mixture of the points meets exactly.
    If a target differs from the points' own mean by no more than the rounding of the summands, that mean is good enough.
    """
    from tradeoff.representation.elimination import eliminate, exact_shortfall, relative_error

    kernel = _kernel()
    exponents = np.frexp(np.abs(points).max(axis=0, initial=0.0))[1]
    points = np.ldexp(points, -exponents)
    _, *plain, _, summary = kernel.push(points, weights, _OWN_MEAN)
    own = (summary[kernel.MEAN, :-1], summary[kernel.REST, :-1])
    wanted = (np.ldexp(target, -exponents), np.zeros(len(target))) if len(target) else own
    reach = np.abs(points[weights > 0]).max(axis=0, initial=0.0)
    rounding = SUMMAND_ROUNDING * np.ldexp(np.asarray(size, float), -exponents)
    if np.all(np.abs(wanted[0] - own[0]) <= rounding):
        wanted = own

    def ways() -> Iterator[tuple[Indices, Vector]]:
        if len(target):
            _, rows, shares, *_ = kernel.push(points, weights, wanted[0])
            yield rows, shares
            yield eliminate(points, weights, *wanted)
        yield plain[0], plain[1]
        yield eliminate(points, weights, *own)

    best, least = (plain[0], plain[1]), np.inf
    for way in ways():
        error = relative_error(exact_shortfall(points, *way, *wanted), reach)
        if error < least:
            best, least = way, error
        if error <= TRUSTED:
            break
    return best


def _check_shapes(points: Matrix, weights: Vector) -> None:
    if points.ndim != 2 or weights.ndim != 1 or len(points) != len(weights):
        raise ProblemError(
            f"points must be a table of n rows and k columns and weights a list of n numbers; found shapes "
            f"{points.shape} and {weights.shape}"
        )
    if len(points) == 0:
        raise ProblemError("there are no points: a mean needs at least one")


def _explain(points: Matrix, weights: Vector) -> None:
    """Raise an error that says what is wrong with the input; return if only an intermediate result overflowed."""
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise ProblemError(
            f"the weight of point {bad[0]} is {weights[bad[0]]:.6g}; weights must be 0 or more and finite"
        )
    places = np.argwhere(~np.isfinite(points))
    if len(places):
        row, column = (int(place) for place in places[0])
        raise ProblemError(
            f"coordinate {column} of point {row} is {points[row, column]}; leave out points that are not known"
        )
    total = float(weights.sum())
    if not abs(total - 1.0) <= SUM_TOLERANCE:
        raise ProblemError(
            f"the weights of the {len(weights)} points sum to {total:.12g}, not 1; divide them by their sum"
        )


def _checked_shape(target: ArrayLike, points: Matrix) -> Vector:
    mean = np.ascontiguousarray(target, np.float64)
    if mean.shape != (points.shape[1],):
        raise ProblemError(f"the target has shape {mean.shape}; the points have {points.shape[1]} coordinates")
    return mean


def _check_target(mean: Vector, own: Vector, low: Vector, high: Vector, size: ArrayLike) -> None:
    """Raise an error if a target is not the points' own mean; ``low`` and ``high`` are the ranges of the coordinates."""
    reach = np.maximum(np.maximum(np.abs(low), np.abs(high)), size)
    far = np.flatnonzero(~(np.abs(mean - own) <= TARGET_TOLERANCE * reach))
    if len(far):
        j = int(far[0])
        raise ProblemError(
            f"coordinate {j} of the target is {mean[j]:.12g}, but the points' mean there is {own[j]:.12g}; "
            "a target is the same mean, known more precisely"
        )
