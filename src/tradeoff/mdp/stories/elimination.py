"""C4 by orthogonal transformations: slower than the push, but sound on ill-conditioned input.

The points are merged into 2(k+1) groups; the null space of the groups' lifted means, from one singular value
decomposition, shifts mass between them until half the groups are empty (Tchernychova and Lyons' recombination, which is
Algorithm 3 of the paper applied to groups). Each round halves the points. An orthonormal null space is kept orthonormal
by reflections, so that no small pivot is ever divided by.
"""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

DEPENDENT = 4e-15  # singular values below this share of the largest are rounding
ROUNDS = 8  # of correction at the end; two are enough unless points are nearly dependent


def eliminate(points: Matrix, weights: Vector, mean: Vector, rest: Vector) -> tuple[Indices, Vector]:
    """Return at most k+1 of the points (their rows, increasing) and weights with the mean ``mean + rest``.

    >>> line = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> rows, shares = eliminate(line, np.full(4, 0.25), np.array([1.5]), np.zeros(1))
    >>> len(rows), float(shares @ line[rows, 0])
    (2, 1.5)
    """
    rows = np.flatnonzero(weights > 0).astype(np.int64)
    shares = weights[rows] / weights[rows].sum()
    # Relative to a coordinate's largest value, not its spread, because its rounding is.
    reach = np.abs(points[rows]).max(axis=0, initial=0.0)
    inverse = np.divide(1.0, reach, out=np.zeros_like(reach), where=reach > 0)
    groups = 2 * (points.shape[1] + 1)
    while True:
        lifted = np.column_stack([(points[rows] - mean) * inverse, np.ones(len(rows))])
        starts = np.arange(len(rows)) if len(rows) <= groups else np.arange(groups) * len(rows) // groups
        masses = np.add.reduceat(shares, starts)
        means = np.add.reduceat(lifted * shares[:, None], starts) / masses[:, None]
        shifted = _empty_groups(means, masses)
        if len(rows) <= groups and np.all(shifted > 0):
            break
        shares = shares * np.repeat(shifted / masses, np.diff(np.append(starts, len(rows))))
        rows, shares = rows[shares > 0], shares[shares > 0]
    return _corrected(points, rows, shares, mean, rest, inverse)


def _empty_groups(means: Matrix, masses: Vector) -> Vector:
    """Return masses with the same total and overall mean, at most rank of them positive."""
    _, singular, transposed = np.linalg.svd(means.T, full_matrices=True)
    rank = int(np.count_nonzero(singular > DEPENDENT * singular[0]))
    null = transposed[rank:]
    masses = masses.copy()
    alive = np.arange(len(masses))
    while len(null):
        direction = null[0] if null[0].max() > 0 else -null[0]
        limits = np.divide(masses[alive], direction, out=np.full(len(alive), np.inf), where=direction > 0)
        emptied = int(np.argmin(limits))
        masses[alive] = np.maximum(masses[alive] - limits[emptied] * direction, 0.0)
        masses[alive[emptied]] = 0.0
        # Reflect the directions so that only the first still touches the emptied group, and drop both.
        mirror = null[:, emptied].copy()
        mirror[0] += np.copysign(np.linalg.norm(mirror), mirror[0])
        null = null - np.outer(mirror * (2.0 / float(mirror @ mirror)), mirror @ null)
        null = np.delete(null[1:], emptied, axis=1)
        alive = np.delete(alive, emptied)
    return masses


def _corrected(
    points: Matrix, rows: Indices, shares: Vector, mean: Vector, rest: Vector, inverse: Vector
) -> tuple[Indices, Vector]:
    """Return the rows and weights after correcting by the exact difference from the mean; no weight is negative."""
    best, least = (rows, shares), np.inf
    reach = np.abs(points[rows]).max(axis=0, initial=0.0)
    for _ in range(ROUNDS):
        missing = exact_shortfall(points, rows, shares, mean, rest)
        error = relative_error(missing, reach)
        if error < least:
            best, least = (rows, shares), error
        lost = missing[-1]
        lifted = np.column_stack([(points[rows] - mean) * inverse, np.ones(len(rows))])
        residual = np.append((missing[:-1] - mean * lost) * inverse, lost)
        change = np.linalg.lstsq(lifted.T, residual, rcond=1e-15)[0]
        falling = change < 0
        limit = float(np.min(-shares[falling] / change[falling], initial=1.0))
        shares = shares + limit * change
        if limit < 1.0:
            shares[falling & (shares <= np.finfo(float).tiny + 1e-17)] = 0.0
        rows, shares = rows[shares > 0], shares[shares > 0]
    return best


def exact_shortfall(points: Matrix, rows: Indices, shares: Vector, mean: Vector, rest: Vector) -> Vector:
    """Return mean + rest - sum of shares * points, followed by 1 - sum of shares, in rational arithmetic rounded once."""
    exact_shares = [Fraction(float(share)) for share in shares]
    missing: list[Any] = []
    for j in range(points.shape[1]):
        total = sum((s * Fraction(float(points[i, j])) for s, i in zip(exact_shares, rows, strict=True)), Fraction(0))
        missing.append(float(Fraction(float(mean[j])) + Fraction(float(rest[j])) - total))
    missing.append(float(1 - sum(exact_shares, Fraction(0))))
    return np.array(missing)


def relative_error(missing: Vector, reach: Vector) -> float:
    """Return the largest entry of ``missing``, each relative to the coordinate's largest absolute value."""
    parts = np.divide(np.abs(missing[:-1]), reach, out=np.abs(missing[:-1]), where=reach > 0)
    return float(max(parts.max(initial=0.0), abs(missing[-1])))
