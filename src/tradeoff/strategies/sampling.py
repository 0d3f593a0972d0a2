"""Random points: uniform over a polytope, and from the posterior of a person who sometimes answers wrongly.

Arrays in, arrays out, randomness passed in: the same generator gives the same points, bit for bit on one machine.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, lgamma, log

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tradeoff.errors import ArgumentError

__all__ = ["consistent", "half_spaces", "hit_and_run", "posterior_particles"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Particles = tuple[Matrix, Vector]  # weights [n, d], precision [n]

SPARSE = 0.3  # the Dirichlet parameter of the half of the prior that expects few objectives to matter
FLOOR = 1e-9  # particles' weights stay above this, where the sparse prior's density would have a pole
SHRINKS = 8  # a particle that has found no better place after as many tries stays, which is as valid and much cheaper


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
    for count in range(seen + 1, len(kind) + 1):
        fits = consistent(weights, np.exp(levels), difference[count - 1 : count], kind[count - 1 : count])[:, 0]
        likelihood = np.cumsum(np.where(fits, 1.0 - lapse, lapse / 2.0))
        ticks = (np.arange(n) + rng.random()) * (likelihood[-1] / n)  # systematic: the least noise
        drawn = np.minimum(np.searchsorted(likelihood, ticks, side="right"), n - 1)
        walk = _Walk(
            half_spaces(difference[:count], kind[:count]), penalty, e_range, weights[drawn].T.copy(), levels[drawn]
        )
        for _ in range(moves if count == len(kind) else (moves + 1) // 2):
            walk.round(rng)
        weights, levels = walk.weights.T.copy(), walk.levels
    return weights, np.exp(levels)


class _Walk:
    """Particles that move; every move leaves the posterior as it is. Arrays are [d, n] here, for speed."""

    def __init__(
        self, rows: Matrix, penalty: float, e_range: tuple[float, float], weights: Matrix, levels: Vector
    ) -> None:
        self.weights, self.levels = weights, levels  # levels: logarithms of the precision
        self.low, self.high = log(e_range[0]), log(e_range[1])
        d = len(weights)
        self._rows, self._offsets = np.ascontiguousarray(rows[:, :-1]), rows[:, -1:]
        self._penalty = penalty
        # the density of Dirichlet(SPARSE) over that of Dirichlet(1), but for the weights' own part
        self._sparse = exp(lgamma(d * SPARSE) - d * lgamma(SPARSE) - lgamma(d))
        # Directions are differences of the particles as they were at first, which do not move: directions that depended
        # on where the particles are now would not leave the posterior as it is.
        self._then = weights, levels

    def round(self, rng: np.random.Generator) -> None:
        """Move every particle along two differences of particles, in one weight and in precision."""
        if len(self.weights) > 1:
            self._along_others(rng)
            self._along_others(rng)
            self._one_weight(rng)
        self._precision(rng)

    def _log_density(self, weights: Matrix, levels: Vector) -> Vector:
        # An "about equal" answer has two rows of which at most one fails: wrong answers are failing rows.
        wrong = (self._rows @ weights + self._offsets * np.exp(levels) < 0.0).sum(axis=0)
        density: Vector = np.log1p(self._sparse * weights.prod(axis=0) ** (SPARSE - 1.0)) - self._penalty * wrong
        return density

    def _along_others(self, rng: np.random.Generator) -> None:
        weights, levels = self.weights, self.levels
        d, n = weights.shape
        one, two = rng.integers(n, size=(2, n))
        direction, rise = self._then[0][:, one] - self._then[0][:, two], self._then[1][one] - self._then[1][two]
        # Some directions are free, for the population may lie in a plane; a pair that coincides has none.
        free = (rng.random(n) < 0.2) | (np.abs(direction).max(axis=0) < 1e-13)
        isotropic = rng.normal(size=(d, n))
        direction = np.where(free, isotropic - isotropic.mean(axis=0), direction)
        rise = np.where(free, 0.0, rise)
        # From each weight down to its floor, and from the precision down and up to the ends of its range.
        slope = np.vstack([direction, rise, -rise])
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.vstack([FLOOR - weights, self.low - levels, levels - self.high]) / slope
        lowest = np.where(slope > 0.0, reach, -np.inf).max(axis=0)
        highest = np.where(slope < 0.0, reach, np.inf).min(axis=0)

        def place(t: Vector) -> tuple[Matrix, Vector]:
            return weights + t * direction, levels + t * rise

        self._slice(place, lowest, highest, rng)

    def _one_weight(self, rng: np.random.Generator) -> None:
        """Move one weight on the scale of log(x / (1 - x)), the others keeping their proportions."""
        weights, levels = self.weights, self.levels
        d, n = weights.shape
        every = np.arange(n)
        chosen = rng.integers(d, size=n)
        x = weights[chosen, every]
        rest = weights.copy()
        rest[chosen, every] = 0.0
        rest /= rest.sum(axis=0)
        scale = np.log(x) - np.log1p(-x)
        # Neal's bracket of fixed width, randomly placed around the particle; 9 is a factor of 8,000 in odds.
        lowest = -9.0 * rng.random(len(levels))

        def place(t: Vector) -> tuple[Matrix, Vector]:
            x = 1.0 / (1.0 + np.exp(-(scale + t)))
            moved = (1.0 - x) * rest
            moved[chosen, every] = x
            return moved, levels

        def volume(moved: Matrix) -> Vector:
            x = moved[chosen, every]
            # x (1 - x) for the scale and (1 - x)^(d - 2) for lines that meet in a corner; nothing below the floor
            return np.where(moved.min(axis=0) >= FLOOR, np.log(x) + (d - 1) * np.log1p(-x), -np.inf)

        self._slice(place, lowest, lowest + 9.0, rng, volume)

    def _precision(self, rng: np.random.Generator) -> None:
        weights, levels = self.weights, self.levels

        def place(t: Vector) -> tuple[Matrix, Vector]:
            return weights, levels + t

        self._slice(place, self.low - levels, self.high - levels, rng)

    def _slice(
        self,
        place: Callable[[Vector], tuple[Matrix, Vector]],
        lowest: Vector,
        highest: Vector,
        rng: np.random.Generator,
        volume: Callable[[Matrix], Vector] | None = None,
    ) -> None:
        """Make one slice-sampling move (Neal 2003, shrinking) along the curves ``place(t)``, which start at t = 0."""

        def log_density(t: Vector) -> Vector:
            weights, levels = place(t)
            density = self._log_density(weights, levels)
            return density if volume is None else density + volume(weights)

        n = len(lowest)
        least = log_density(np.zeros(n)) - rng.exponential(size=n)
        lowest, highest = np.minimum(lowest, 0.0), np.maximum(highest, 0.0)
        found, searching = np.zeros(n), np.ones(n, bool)
        for _ in range(SHRINKS):
            t = lowest + (highest - lowest) * rng.random(n)
            good = searching & (log_density(t) >= least)
            found = np.where(good, t, found)
            searching &= ~good
            if not searching.any():
                break
            lowest, highest = np.where(t < 0.0, t, lowest), np.where(t < 0.0, highest, t)
        self.weights, self.levels = place(found)


def _answers(differences: ArrayLike, kinds: ArrayLike) -> tuple[Matrix, NDArray[np.int64]]:
    difference = np.atleast_2d(np.asarray(differences, np.float64))
    kind = np.atleast_1d(np.asarray(kinds)).astype(np.int64)
    if difference.ndim != 2 or kind.shape != difference.shape[:1] or not np.isin(kind, (-1, 0, 1)).all():
        raise ArgumentError(
            f"answers are differences [q, d] and as many kinds out of +1, -1 and 0; found shapes "
            f"{difference.shape} and {kind.shape}, kinds {np.unique(kind).tolist()}"
        )
    return difference, kind
