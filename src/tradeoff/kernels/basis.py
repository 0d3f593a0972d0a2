"""A basis of lifted points and its inverse, used by the push and by the final solve.

Each point x is lifted to ((x - centre) / scale, 1), so that a convex combination becomes a linear one (the paper's
"mu append 1", Algorithm 3). ``basis[slot, row]`` holds one lifted point per slot, or a unit column that represents no
point; ``inverse[row, slot]`` is the transposed inverse, so that a solve runs along whole rows of memory.
"""

import math
from typing import Any

from numba import njit

from tradeoff.kernels.compensated import HIGH, LOW, MEAN
from tradeoff.kernels.jit import HELPER, Decorator, inlined

EPSILON = 2.220446049250313e-16
NOISE = 16 * EPSILON  # a lifted coordinate smaller than this is rounding, not a separate direction
CONSTANT = 4 * EPSILON  # a coordinate that varies by less than this, relative to its size, is constant
TINY_PIVOT = 1e-7  # the inverse is recomputed after such a pivot
PAD = 4  # rows are padded to a multiple of this, so that loops over them run in whole vector registers

# Rows of the vectors that the kernels share; the basis and its inverse follow them in the same array.
WEIGHT, STEP, COLUMN, SPARE, PRICE, ENTER, MASK, CENTRE, INVERSE_SCALE, ROUNDING, VECTORS = range(11)

# Products may be fused into sums; ``reordered`` sums may also be split over vector registers.
loose: Decorator = njit(**HELPER, fastmath={"contract", "nsz"})
reordered: Decorator = njit(**HELPER, fastmath={"contract", "nsz", "reassoc"})


@inlined
def measure(summary: Any, vectors: Any) -> Any:
    """Choose the centre (the mean), the scale (a power of two, so it is exact) and the rounding of each coordinate."""
    size = summary.shape[1] - 1
    for j in range(size):
        centre = summary[MEAN, j]
        above = summary[HIGH, j] - centre
        below = centre - summary[LOW, j]
        spread = above if above > below else below
        vectors[CENTRE, j] = centre
        if spread > CONSTANT * abs(centre):
            scale = math.ldexp(1.0, math.frexp(spread)[1])
            vectors[INVERSE_SCALE, j] = 1.0 / scale
            vectors[ROUNDING, j] = NOISE * (1.0 + abs(centre) / scale)
        else:
            vectors[INVERSE_SCALE, j] = 0.0
            vectors[ROUNDING, j] = 1.0
    vectors[ROUNDING, size] = NOISE


@loose
def lift(points: Any, i: Any, vectors: Any, column: Any) -> Any:
    """Write the lifted point i, ((x - centre) / scale, 1), to ``column``."""
    size = points.shape[1]
    for j in range(size):
        column[j] = (points[i, j] - vectors[CENTRE, j]) * vectors[INVERSE_SCALE, j]
    column[size] = 1.0


@loose
def solve(inverse: Any, basis: Any, column: Any, answer: Any, spare: Any) -> Any:
    """Write the coordinates of ``column`` in the basis to ``answer``, with one step of refinement.

    ``inverse[row, slot]`` is the transposed inverse and ``basis[slot, row]`` the basis itself, one point per row.
    """
    rows, width = inverse.shape
    for q in range(width):
        answer[q] = 0.0
        spare[q] = column[q]
    for row in range(rows):
        value = column[row]
        for q in range(width):
            answer[q] += value * inverse[row, q]
    for slot in range(rows):
        value = answer[slot]
        for q in range(width):
            spare[q] -= value * basis[slot, q]
    for row in range(rows):
        value = spare[row]
        for q in range(width):
            answer[q] += value * inverse[row, q]


@loose
def product(inverse: Any, column: Any, answer: Any) -> Any:
    """Write the coordinates of ``column`` in the basis to ``answer``."""
    rows, width = inverse.shape
    for q in range(width):
        answer[q] = 0.0
    for row in range(rows):
        value = column[row]
        for q in range(width):
            answer[q] += value * inverse[row, q]


@loose
def exchange(inverse: Any, column: Any, slot: Any) -> Any:
    """Update the inverse after the point at ``slot`` was replaced by one with coordinates ``column``."""
    rows, width = inverse.shape
    reciprocal = 1.0 / column[slot]
    for row in range(rows):
        factor = inverse[row, slot] * reciprocal
        if factor != 0.0:
            for q in range(width):
                inverse[row, q] -= factor * column[q]
        inverse[row, slot] = factor


@loose
def invert(basis: Any, inverse: Any, swaps: Any, pivotal: Any) -> Any:
    """Recompute the inverse: Gauss-Jordan in place, with partial pivoting."""
    rows, width = inverse.shape
    for slot in range(rows):
        for q in range(width):
            inverse[slot, q] = basis[slot, q]
    for col in range(rows):
        best = col
        for row in range(col + 1, rows):
            if abs(inverse[row, col]) > abs(inverse[best, col]):
                best = row
        swaps[col] = best
        if best != col:
            for q in range(width):
                inverse[best, q], inverse[col, q] = inverse[col, q], inverse[best, q]
        reciprocal = 1.0 / inverse[col, col]
        inverse[col, col] = 1.0
        for q in range(width):
            inverse[col, q] *= reciprocal
            pivotal[q] = inverse[col, q]
        for row in range(rows):
            factor = inverse[row, col]
            if row != col and factor != 0.0:
                for q in range(width):
                    inverse[row, q] -= factor * pivotal[q]
                inverse[row, col] = -factor * pivotal[col]
    for col in range(rows - 1, -1, -1):
        best = swaps[col]
        if best != col:
            for row in range(rows):
                inverse[row, best], inverse[row, col] = inverse[row, col], inverse[row, best]


@reordered
def furthest(points: Any, order: Any, count: Any, vectors: Any, either: Any) -> Any:
    """Return the point with the smallest vectors[PRICE] . lifted point, or with the largest absolute value.

    Return -1 if no value is negative (or, for ``either`` sign, nonzero).
    """
    size = points.shape[1]
    price = vectors[PRICE]
    spare = vectors[SPARE]
    centre = vectors[CENTRE]
    for j in range(size):
        spare[j] = price[j] * vectors[INVERSE_SCALE, j]
    best = 0.0
    found = -1
    for t in range(count):
        i = order[t]
        value = price[size]
        for j in range(size):
            value += spare[j] * (points[i, j] - centre[j])
        if either:
            value = -abs(value)
        if value < best:
            best = value
            found = i
    return found
