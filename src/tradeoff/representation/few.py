"""C4, Algorithm 3 of the paper, for a few points: the same push as in the compiled kernel, in plain NumPy.

Showing a plan often compresses only a dozen prefixes at a time. For so few, the kernel would save less than a millisecond
each time, but cost a new user ten seconds of compiling before the first question.

The heaviest affinely independent points are the first basis. The mass of all others is moved onto it, heaviest first: if a
weight of the basis would become negative, the point being moved takes its slot.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

EPSILON = float(np.finfo(float).eps)
NOISE = 16 * EPSILON  # a lifted coordinate smaller than this, relative to its size, is rounding
DECISIVE = 0.05  # the first basis takes the heaviest point at least this independent, relative to the most independent
NEGATIVE = 1e-15  # how far below zero a weight may be between steps; the final solves correct it
CLIPPED = 1e-17  # a weight this little below zero at the end counts as zero
PIVOT = 1e-13  # an entry of a direction smaller than this is rounding
EXCHANGES = 24  # at most, at the end, if the exact mean makes a weight negative
CORRECTIONS = 6  # solves for the remaining error of the mean
SPLITTER = 2.0**27 + 1  # splits a number into two halves whose products are exact (Veltkamp)


def mean_of(points: Matrix, weights: Vector) -> tuple[Vector, Vector]:
    """Return the weighted mean and its rounding error."""
    total = math.fsum(weights)
    mean, rest = np.empty(points.shape[1]), np.empty(points.shape[1])
    products = np.stack(_exact_products(weights[:, None], points))
    for j in range(points.shape[1]):
        terms = products[:, :, j].ravel().tolist()
        mean[j] = math.fsum(terms) / total
        back = _exact_products(-mean[j], weights)
        rest[j] = math.fsum([*terms, *back[0].tolist(), *back[1].tolist()]) / total
    return mean, rest


def shortfall(points: Matrix, weights: Vector, mean: Vector, rest: Vector) -> Vector:
    """Return mean + rest - sum of weights * points, followed by 1 - sum of weights, each rounded once.

    >>> shortfall(np.array([[0.1], [0.2]]), np.array([0.5, 0.5]), np.array([0.15]), np.zeros(1)).tolist()
    [-1.3877787807814457e-17, 0.0]
    """
    high, low = _exact_products(-weights[:, None], points)
    missing = [math.fsum([mean[j], rest[j], *high[:, j].tolist(), *low[:, j].tolist()]) for j in range(points.shape[1])]
    return np.array([*missing, math.fsum([1.0, *(-weights).tolist()])])


def _exact_products(left: Vector | float, right: Matrix | Vector) -> tuple[Matrix, Matrix]:
    """Return the products and their rounding errors (Dekker)."""
    product = left * right
    left_high, right_high = (half - (half - x) for x in (left, right) for half in (SPLITTER * x,))
    left_low, right_low = left - left_high, right - right_high
    low = left_low * right_low - (((product - left_high * right_high) - left_low * right_high) - left_high * right_low)
    return product, low


def push(points: Matrix, weights: Vector, mean: Vector, rest: Vector) -> tuple[Indices, Vector, float]:
    """Return the rows of at most k+1 points (increasing), weights with the mean ``mean + rest``, and their error.

    The error is the larger of that of the mean, relative to each coordinate's largest absolute value, and that of the sum
    of weights. The weights must not be negative or all zero; entries must be finite and of moderate size.

    >>> line = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> rows, shares, error = push(line, np.array([0.1, 0.4, 0.4, 0.1]), np.array([1.5]), np.zeros(1))
    >>> rows.tolist(), shares.tolist(), error
    ([1, 2], [0.5, 0.5], 0.0)
    """
    order = np.argsort(-weights, kind="stable")[: int(np.count_nonzero(weights))]
    chosen = _Push(points[order], weights[order] / math.fsum(weights), mean, rest)
    chosen.move_all()
    error = chosen.polish()
    positive = chosen.shares > 0
    rows, shares = order[chosen.basis[positive]], chosen.shares[positive]
    sorted_ = np.argsort(rows)
    return rows[sorted_].astype(np.int64), shares[sorted_], error


class _Push:
    """Points with their weights, heaviest first, and a basis of some of them that has all the mass moved so far."""

    def __init__(self, points: Matrix, weights: Vector, mean: Vector, rest: Vector) -> None:
        self.points, self.weights, self.mean, self.rest = points, weights, mean, rest
        spread = np.abs(points - mean).max(axis=0)
        size = np.abs(mean)
        varies = spread > 4 * EPSILON * size
        self.scale = np.where(varies, np.ldexp(1.0, -np.frexp(np.where(varies, spread, 1.0))[1]), 0.0)
        noise = NOISE * float(np.linalg.norm(np.append(1 + size * self.scale, 1.0)))
        lifted = np.append((points - mean) * self.scale, np.ones((len(points), 1)), axis=1).T  # [k+1, n]
        # Points of lower rank have no basis of k+1, so work in the subspace that they span beyond rounding.
        left, sizes, _ = np.linalg.svd(lifted, full_matrices=False)
        self.axes = left[:, sizes > noise * math.sqrt(len(points))].T
        self.columns = self.axes @ lifted  # [rank, n]
        self.basis = _early_basis(self.columns)
        self.shares = weights[self.basis]
        self.reach = np.abs(points).max(axis=0)
        self._invert()

    def _invert(self) -> None:
        self.inverse = np.linalg.inv(self.columns[:, self.basis])

    def move_all(self) -> None:
        """Move the mass of every point outside the basis onto it."""
        waiting = np.delete(np.arange(len(self.weights)), self.basis)
        while len(waiting):
            directions = self.inverse @ self.columns[:, waiting]  # [rank, waiting]
            after = self.shares[:, None] + np.cumsum(directions * self.weights[waiting], axis=1)
            blocked = (after < -NEGATIVE).any(axis=0)
            if not blocked.any():
                self.shares = after[:, -1]
                return
            at = int(blocked.argmax())
            before = np.maximum(after[:, at - 1] if at else self.shares, 0.0)
            direction, mass = directions[:, at], self.weights[waiting[at]]
            with np.errstate(divide="ignore", invalid="ignore"):
                lengths = np.where(direction < -PIVOT, -before / direction, np.inf)
            slot = int(lengths.argmin())
            length = min(float(lengths[slot]), mass)
            self.shares = before + length * direction
            if length < mass:
                self.shares[slot] = mass - length
                self.basis[slot] = waiting[at]
                self._invert()
            waiting = waiting[at + 1 :]

    def polish(self) -> float:
        """Solve for the exact mean and return the remaining error; no weight is negative afterwards.

        If the exact mean makes a weight negative, rounding kept its point in the basis one exchange too long: as in the dual
        simplex method, the point that lies furthest beyond its facet takes its slot.
        """
        for _ in range(EXCHANGES):
            self._correct()
            slot = int(self.shares.argmin())
            if self.shares[slot] >= -CLIPPED:
                break
            beyond = self.inverse[slot] @ self.columns
            entering = int(beyond.argmin())
            if not beyond[entering] < -PIVOT:
                break
            self.basis[slot] = entering
            self._invert()
        self.shares = np.maximum(self.shares, 0.0)
        return self._error(self._missing())

    def _missing(self) -> Vector:
        return shortfall(self.points[self.basis], self.shares, self.mean, self.rest)

    def _error(self, missing: Vector) -> float:
        relative = np.divide(np.abs(missing[:-1]), self.reach, out=np.abs(missing[:-1]), where=self.reach > 0)
        return float(max(relative.max(initial=0.0), abs(missing[-1])))

    def _correct(self) -> None:
        """Solve for the shares until the error of the mean is no more than rounding."""
        for number in range(CORRECTIONS):
            missing = self._missing()
            if number >= 1 and self._error(missing) <= (0.5 if number == 1 else 3.0) * EPSILON:
                return
            lost = missing[-1]
            lifted = np.append((missing[:-1] - self.mean * lost) * self.scale, lost)
            self.shares = self.shares + self.inverse @ (self.axes @ lifted)


def _early_basis(columns: Matrix) -> Indices:
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
