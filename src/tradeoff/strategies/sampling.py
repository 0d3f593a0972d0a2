"""Draws from the posterior of a person who sometimes answers wrongly.

Arrays in, arrays out, randomness passed in: the same generator gives the same points, bit for bit on one machine.
"""

from __future__ import annotations

from math import lgamma, log

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tradeoff.errors import ArgumentError
from tradeoff.kernels.walk import FLOOR, SPARSE, mover
from tradeoff.menus import NOT_WORSE
from tradeoff.strategies.polytope import checked_answers, half_spaces

__all__ = ["consistent", "posterior_particles"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Particles = tuple[Matrix, Vector]  # weights [n, d], precision [n]


def consistent(weights: ArrayLike, precision: ArrayLike, differences: ArrayLike, kinds: ArrayLike) -> NDArray[np.bool_]:
    """Return ``[n, q]``: whether particle i would have given answer j.

    >>> consistent([[1.0, 0.0], [0.5, 0.5]], [0.1, 0.1], [[1.0, -1.0]], [+1]).tolist()
    [[True], [False]]
    """
    difference, kind = checked_answers(differences, kinds)
    gain = np.asarray(weights, np.float64) @ difference.T
    least = np.asarray(precision, np.float64)[:, None]
    fits = np.where(kind == 0, np.abs(gain) <= least, gain * kind >= least)
    return np.where(kind == NOT_WORSE, gain >= -least, fits)


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

    Every answer has likelihood ``1 - lapse`` for those who would give it and ``lapse / 2`` for the others. Who does not
    notice which of two is better, but had to place one above the other (kind 2), did so by chance: half. Before any
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
    difference, kind = checked_answers(differences, kinds)
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
    placed = kind == NOT_WORSE
    guess = log((1.0 - lapse) / 0.5)
    # The density of Dirichlet(SPARSE) over that of Dirichlet(1), without the weights' own part.
    log_sparse = lgamma(d * SPARSE) - d * lgamma(SPARSE) - lgamma(d)
    for count in range(seen + 1, len(kind) + 1):
        fits = consistent(weights, np.exp(levels), difference[count - 1 : count], kind[count - 1 : count])[:, 0]
        likely = np.where(fits, 1.0 - lapse, lapse / 2.0)
        if placed[count - 1]:
            likely[fits & (weights @ difference[count - 1] < np.exp(levels))] = 0.5
        likelihood = np.cumsum(likely)
        ticks = (np.arange(n) + rng.random()) * (likelihood[-1] / n)  # systematic: the least noise
        drawn = np.minimum(np.searchsorted(likelihood, ticks, side="right"), n - 1)
        others, other_levels = weights[drawn], levels[drawn]
        weights, levels = others.copy(), other_levels.copy()
        rows = half_spaces(difference[:count], kind[:count])
        unsure = difference[:count][placed[:count]]  # noticeably better, or else placed by chance
        rows = np.vstack([rows, np.hstack([unsure, np.full((len(unsure), 1), -1.0)])])
        mover()(
            weights, levels, others, other_levels, np.ascontiguousarray(rows[:, :-1]), np.ascontiguousarray(rows[:, -1]),
            log(e_range[0]), log(e_range[1]), np.array([penalty, guess, len(unsure)]), log_sparse,
            moves if count == len(kind) else (moves + 1) // 2,
            rng.integers(1 << 63, dtype=np.uint64),
        )  # fmt: skip
    return weights, np.exp(levels)
