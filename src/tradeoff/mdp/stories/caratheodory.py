"""C4, Algorithm 3 of the paper, as the push phase of a linear program's crossover (Megiddo 1991), in NumPy.

The paper eliminates one point at a time, with a fresh null vector each. Here the heaviest affinely independent points are
a basis, and the mass of all others is moved onto it at once. If all its weights stay positive, that is all. Otherwise the
step stops where the first weight reaches zero, and a heavy point far beyond that facet takes the slot of that weight's
point. For random points, fewer than k+1 such exchanges are needed, whatever the number of points.

Each point x is lifted to ((x - mean) * scale, 1), so that a convex combination becomes a linear one (the paper's
"mu append 1").
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

EPSILON = float(np.finfo(float).eps)
CONSTANT = 4 * EPSILON  # a coordinate that varies by less than this, relative to its size, is constant
NOISE = 16 * EPSILON  # a lifted coordinate smaller than this, relative to its size, is rounding
PART = 2048  # weights that are summed without an intermediate result
INVERTIBLE = 1e3  # the heaviest points are the first basis if no entry of its inverse is larger than this
WINDOW = 8  # times k+1: so many of the heaviest points are searched for a first basis before all are
DECISIVE = 0.05  # a search takes the heaviest point at least this independent, relative to the most independent
NEGATIVE = 1e-15  # how far below zero a weight may be between steps; the final solves correct it
CLIPPED = 1e-17  # a weight this little below zero at the end counts as zero
PIVOT = 1e-13  # an entry of a direction smaller than this is rounding
EXCHANGES = 24  # at most, at the end, if the exact mean makes a weight negative
CORRECTIONS = 4  # solves for the remaining error of the mean
ENOUGH = 3 * EPSILON  # an error this small is not corrected


class Push:
    """A distribution whose mass has been moved onto a basis of at most k+1 of its points.

    The points must be finite; the weights between 0 and 1, and not all 0. The attributes' coordinates are divided by powers
    of two (``exponents``), so that they are near 1; this changes no digit.

    >>> line = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> push = Push(line, np.array([0.125, 0.375, 0.375, 0.125]))
    >>> rows, shares, error = push.solve(push.mean, push.rest)
    >>> rows.tolist(), shares.tolist(), error
    ([1, 2], [0.5, 0.5], 0.0)
    """

    def __init__(self, points: Matrix, weights: Vector) -> None:
        self.rows: Indices | None = None  # of the points with positive weight, if some have none
        if not weights.all():
            self.rows = np.flatnonzero(weights)
            points, weights = points[self.rows], weights[self.rows]
        self.lifted = np.ones((points.shape[1] + 1, len(points)))
        values = self.lifted[:-1]  # [k, n]
        values[:] = points.T
        low, high = values.min(axis=1), values.max(axis=1)
        self.exponents = np.maximum(np.frexp(np.maximum(-low, high))[1], -1000)
        factor = np.ldexp(1.0, -self.exponents)
        values *= factor[:, None]
        low, high = low * factor, high * factor
        self.reach = np.maximum(-low, high)  # the largest absolute value of each coordinate
        total = float(weights.sum())
        self.mean = np.minimum(np.maximum(values @ weights / total, low), high)
        values -= self.mean[:, None]
        self.rest = _sum_of_products(values, weights) / total  # the rounding error of the mean
        spread = np.maximum(high - self.mean, self.mean - low)
        self.scale = np.ldexp(1.0, -np.frexp(spread)[1])
        self.scale[spread <= CONSTANT * np.abs(self.mean)] = 0.0
        values *= self.scale[:, None]
        self._find_basis(_heaviest_first(weights))
        self.shares = weights[self.basis]
        if len(self.basis) < len(weights):
            self._move(weights.copy(), total)
        self.shares /= total

    def _find_basis(self, order: Indices) -> None:
        """Choose the first basis: heavy, affinely independent points, as many as there are."""
        rows, count = self.lifted.shape
        self.axes: Matrix | None = None
        self.basis = order[:rows]
        if count >= rows and self._invert() and np.abs(self.inverse).max() < INVERTIBLE:
            return
        noise = min(0.5, NOISE * math.hypot(1.0, *(1 + np.abs(self.mean) * self.scale)))
        for window in (WINDOW * rows, count):
            columns = self.lifted[:, order[:window]]
            # Points of lower rank have no basis of k+1, so work in the subspace that they span beyond rounding.
            triangle = np.asarray(np.linalg.qr(columns.T, mode="r"))
            left, sizes, _ = np.linalg.svd(triangle.T, full_matrices=False)
            sizes /= math.sqrt(columns.shape[1])  # the constant alone is sqrt(n) long
            if window >= count or sizes[-1] > max(noise, 1 / INVERTIBLE):
                break
        self.axes = left[:, sizes > noise].T
        self.basis = order[_independent(self.axes @ columns)]
        while not self._invert():  # the last direction is rounding as well
            self.axes, self.basis = self.axes[:-1], self.basis[:-1]

    def _invert(self) -> bool:
        """Compute the matrix that maps lifted points to weights of the basis, and return whether there is one."""
        columns = self.lifted[:, self.basis]
        try:
            if self.axes is None:
                self.inverse = np.linalg.inv(columns)
            else:
                self.inverse = np.linalg.inv(self.axes @ columns) @ self.axes
        except np.linalg.LinAlgError:
            return False
        return True

    def _replace(self, slot: int, point: int) -> bool:
        """Put a point in a slot of the basis unless that makes it singular; return whether it did."""
        before = self.basis[slot]
        self.basis[slot] = point
        if self._invert():
            return True
        self.basis[slot] = before
        return False

    def _move(self, weights: Vector, total: float) -> None:
        """Move the mass of every point outside the basis onto it."""
        weights[self.basis] = 0.0
        mass = self._lift(self.mean, self.rest) * total - self.lifted[:, self.basis] @ self.shares
        left = 1.0  # the share of the mass that remains to be moved
        step = self.inverse @ mass
        while (self.shares + step).min() < -NEGATIVE:
            limits = [
                share / -change if share + change < -NEGATIVE else 1.0
                for share, change in zip(self.shares.tolist(), step.tolist(), strict=True)
            ]
            part = min(limits)
            slot = limits.index(part)
            beyond = self.inverse[slot] @ self.lifted
            beyond *= weights
            entering = int(beyond.argmin())
            if beyond[entering] >= -PIVOT * weights[entering] or not self._replace(slot, entering):
                self.shares[slot] = step[slot] = 0.0  # no point lies beyond the facet: the negative weight was rounding
                continue
            left *= 1.0 - part
            share = left * float(weights[entering])
            weights[entering] = 0.0
            mass = (1.0 - part) * mass - share * self.lifted[:, entering]
            self.shares = np.maximum(self.shares + part * step, 0.0)
            self.shares[slot] = share
            step = self.inverse @ mass
        self.shares = np.maximum(self.shares + step, 0.0)

    def _lift(self, mean: Vector, rest: Vector) -> Vector:
        lifted = np.ones(len(self.lifted))
        lifted[:-1] = (mean - self.mean + rest) * self.scale
        return lifted

    def solve(self, mean: Vector, rest: Vector) -> tuple[Indices, Vector, float]:
        """Return the rows of at most k+1 points (increasing), weights with the mean ``mean + rest``, and their error.

        The error is the larger of that of the mean, relative to each coordinate's largest absolute value, and that of the
        sum of weights. If the exact mean makes a weight negative, rounding kept its point in the basis one exchange too
        long: as in the dual simplex method, the point that lies furthest beyond its facet takes its slot.
        """
        before = self.basis.copy(), self.inverse
        aim = self._lift(mean, rest)
        shares = self.shares
        for _ in range(EXCHANGES):
            shares, error = self._correct(shares, aim)
            slot = int(shares.argmin())
            if shares[slot] >= -CLIPPED:
                break
            beyond = self.inverse[slot] @ self.lifted
            entering = int(beyond.argmin())
            if beyond[entering] >= -PIVOT or not self._replace(slot, entering):
                break
        if shares[slot] < -CLIPPED:
            shares = np.maximum(shares, 0.0)
            error = self._error(self._missing(shares, aim))
        rows = self.basis if self.rows is None else self.rows[self.basis]
        self.basis, self.inverse = before
        kept = rows.argsort()
        kept = kept[shares[kept] > 0]
        return rows[kept], shares[kept], error

    def _correct(self, shares: Vector, aim: Vector) -> tuple[Vector, float]:
        """Return weights that are solved for until the error of the mean is no more than rounding, and that error."""
        for _ in range(CORRECTIONS):
            missing = self._missing(shares, aim)
            error = self._error(missing)
            if error <= ENOUGH:
                break
            shares = shares + self.inverse @ missing
        return shares, error

    def _missing(self, shares: Vector, aim: Vector) -> Vector:
        return aim - self.lifted[:, self.basis] @ shares

    def _error(self, missing: Vector) -> float:
        """Return a bound on the error of the mean and of the sum of weights, given that of the lifted mean."""
        sizes = np.abs(missing)
        width = self.scale * self.reach
        relative = np.divide(sizes[:-1], width, out=sizes[:-1], where=width > 0)
        return float(relative.max(initial=0.0) + sizes[-1])


def _sum_of_products(rows: Matrix, weights: Vector) -> Vector:
    """Return ``rows @ weights``, summed in parts so that rounding errors do not grow with the number of weights."""
    parts = [rows[:, at : at + PART] @ weights[at : at + PART] for at in range(0, len(weights), PART)]
    return parts[0] if len(parts) == 1 else np.sum(parts, axis=0)


def _heaviest_first(weights: Vector) -> Indices:
    """Return the rows of positive weights, decreasing to within 1/8 and stable: a radix sort of the leading bits."""
    leading = 0x1FF8 - (weights.view(np.int64) >> 49)  # 0 for a weight of 1: the exponent and three binary digits
    return leading.astype(np.uint16).argsort(kind="stable")


def _independent(columns: Matrix) -> Indices:
    """Return as many linearly independent columns as there are rows, each the first that is independent enough."""
    rank, count = columns.shape
    if rank == count:
        return np.arange(count)
    left = columns.copy()
    chosen: list[int] = []
    while len(chosen) < rank:
        squares = np.square(left).sum(axis=0)
        squares[chosen] = -1.0
        taken = int((squares >= DECISIVE**2 * squares.max()).argmax())
        chosen.append(taken)
        axis = left[:, taken] / math.sqrt(max(float(squares[taken]), 1e-300))
        left -= axis[:, None] * (axis @ left)
    return np.array(chosen)
