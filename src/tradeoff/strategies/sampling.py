"""Random points: uniform over a polytope, and from the posterior of a person who sometimes answers wrongly.

Arrays in, arrays out, randomness passed in: the same generator gives the same points, bit for bit on one machine.
"""

from __future__ import annotations

from math import exp, lgamma, log

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tradeoff.errors import ArgumentError
from tradeoff.kernels.walk import FLOOR, SPARSE, move_all

__all__ = ["consistent", "half_spaces", "hit_and_run", "posterior_particles"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Particles = tuple[Matrix, Vector]  # weights [n, d], precision [n]


def half_spaces(differences: ArrayLike, kinds: ArrayLike) -> Matrix:
    """Return the rows a with ``a @ (w, e) >= 0`` exactly where (w, e) is consistent with the answers.

    ``differences[q, d]`` is the value of the first alternative minus that of the second (one answer: ``[d]``),
    ``kinds[q]`` is +1 for "the first", -1 for "the second", 0 for "about equal", which takes two rows, put last.

    >>> half_spaces([3.0, -1.0], -1).tolist()
    [[-3.0, 1.0, -1.0]]
    >>> half_spaces([3.0, -1.0], 0).tolist()
    [[3.0, -1.0, 1.0], [-3.0, 1.0, 1.0]]
    """
    difference, kind = _answers(differences, kinds)
    strict, same = kind != 0, difference[kind == 0]
    rows = np.vstack([kind[strict, None] * difference[strict], same, -same])
    return np.hstack([rows, np.repeat([-1.0, 1.0], [strict.sum(), 2 * len(same)])[:, None]])


def consistent(weights: ArrayLike, precision: ArrayLike, differences: ArrayLike, kinds: ArrayLike) -> NDArray[np.bool_]:
    """Return ``[n, q]``: whether particle i would have given answer j.

    >>> consistent([[1.0, 0.0], [0.5, 0.5]], [0.1, 0.1], [[1.0, -1.0]], [+1]).tolist()
    [[True], [False]]
    """
    difference, kind = _answers(differences, kinds)
    gain = np.asarray(weights, np.float64) @ difference.T
    least = np.asarray(precision, np.float64)[:, None]
    return np.where(kind == 0, np.abs(gain) <= least, gain * kind >= least)


def hit_and_run(rows: Matrix, start: Matrix, shape: Matrix, moves: int, rng: np.random.Generator) -> Matrix:
    """Return where ``len(start)`` chains end after ``moves`` random steps within ``rows @ z >= 0``, ``sum(w) = 1``.

    Every chain goes to a uniform point of a random chord. Directions are Gaussian with the covariance of the points
    ``shape`` (centred, of weights that sum to 0), so a thin set is explored as fast as a round one.
    """
    _, sizes, axes = np.linalg.svd(shape, full_matrices=False)
    frame = sizes[:, None] * axes / max(float(sizes[0]), np.finfo(float).tiny)
    points = np.ascontiguousarray(start)
    slack = points @ rows.T
    for move in range(moves):
        direction = rng.normal(size=(len(points), len(frame))) @ frame
        slope = direction @ rows.T
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = -slack / slope
        lowest = np.where(slope > 0.0, reach, -np.inf).max(axis=1)
        highest = np.where(slope < 0.0, reach, np.inf).min(axis=1)
        # A point on the boundary may find it a rounding behind it: then it stays.
        lowest, highest = np.minimum(lowest, 0.0), np.maximum(highest, 0.0)
        step = lowest + (highest - lowest) * rng.random(len(points))
        step[~np.isfinite(step)] = 0.0
        points = points + step[:, None] * direction
        slack = points @ rows.T if move % 16 == 15 else slack + step[:, None] * slope  # roundings must not add up
    normalised: Matrix = points / points[:, :-1].sum(axis=1, keepdims=True)
    return normalised


def posterior_particles(
    differences: ArrayLike,
    kinds: ArrayLike,
    n: int,
    rng: np.random.Generator,
    start: Particles | None = None,
    seen: int = 0,
    *,
    lapse: float = 0.05,
    moves: int = 12,
    e_range: tuple[float, float] = (1e-4, 1.0),
) -> Particles:
    """Return n draws (weights ``[n, d]``, precision ``[n]``) of who the person is, given answers that may be wrong.

    Every answer has likelihood ``1 - lapse`` for those who would give it and ``lapse / 2`` for the others. Before any
    answer the weights are Dirichlet(1) or Dirichlet(0.3), evenly, and the logarithm of the precision is uniform on
    ``e_range``. Answers are as in :func:`half_spaces`.

    ``start`` are particles for the first ``seen`` answers, such as an earlier result: then only the new answers cost
    anything. For each new answer particles are drawn again in proportion to its likelihood and then take ``moves``
    rounds (half as many for all but the last). A round is one slice-sampling move along the difference of two other
    particles, one of a single weight on a logarithmic scale and one of the precision; each leaves the posterior as it
    is, so more rounds only mean more independent particles.

    >>> rng = np.random.default_rng(0)
    >>> w, e = posterior_particles([[1.0, -1.0]], [+1], 400, rng)
    >>> bool((w[:, 0] > w[:, 1]).mean() > 0.9), w.shape, e.shape
    (True, (400, 2), (400,))
    """
    difference, kind = _answers(differences, kinds)
    d = difference.shape[1]
    if n < 4 or not 0.0 < lapse < 2.0 / 3.0 or not 0.0 < e_range[0] < e_range[1]:
        raise ArgumentError(
            f"particles need n >= 4, 0 < lapse < 2/3 and 0 < e_range[0] < e_range[1]; found {n}, {lapse}, {e_range}"
        )
    if start is None:
        seen = 0
        weights = np.where(rng.random((n, 1)) < 0.5, rng.dirichlet(np.ones(d), n), rng.dirichlet(np.full(d, SPARSE), n))
        levels = rng.uniform(log(e_range[0]), log(e_range[1]), n)
    else:
        picked = np.arange(n) * len(start[0]) // n
        weights = np.array(start[0], np.float64)[picked]
        levels = np.log(np.clip(np.asarray(start[1], np.float64)[picked], *e_range))
    weights = np.maximum(weights, FLOOR)
    weights /= weights.sum(axis=1, keepdims=True)
    penalty = log((1.0 - lapse) / (lapse / 2.0))
    # the density of Dirichlet(SPARSE) over that of Dirichlet(1), but for the weights' own part
    sparse = exp(lgamma(d * SPARSE) - d * lgamma(SPARSE) - lgamma(d))
    for count in range(seen + 1, len(kind) + 1):
        fits = consistent(weights, np.exp(levels), difference[count - 1 : count], kind[count - 1 : count])[:, 0]
        likelihood = np.cumsum(np.where(fits, 1.0 - lapse, lapse / 2.0))
        ticks = (np.arange(n) + rng.random()) * (likelihood[-1] / n)  # systematic: the least noise
        drawn = np.minimum(np.searchsorted(likelihood, ticks, side="right"), n - 1)
        others, other_levels = weights[drawn], levels[drawn]
        weights, levels = others.copy(), other_levels.copy()
        rows = half_spaces(difference[:count], kind[:count])
        move_all(
            weights, levels, others, other_levels, np.ascontiguousarray(rows[:, :-1]), np.ascontiguousarray(rows[:, -1]),
            log(e_range[0]), log(e_range[1]), penalty, sparse, moves if count == len(kind) else (moves + 1) // 2,
            rng.integers(1 << 63, dtype=np.uint64),
        )  # fmt: skip
    return weights, np.exp(levels)


def _answers(differences: ArrayLike, kinds: ArrayLike) -> tuple[Matrix, NDArray[np.int64]]:
    difference = np.atleast_2d(np.asarray(differences, np.float64))
    kind = np.atleast_1d(np.asarray(kinds)).astype(np.int64)
    if difference.ndim != 2 or kind.shape != difference.shape[:1] or not np.isin(kind, (-1, 0, 1)).all():
        raise ArgumentError(
            f"answers are differences [q, d] and as many kinds out of +1, -1 and 0; found shapes "
            f"{difference.shape} and {kind.shape}, kinds {np.unique(kind).tolist()}"
        )
    return difference, kind
