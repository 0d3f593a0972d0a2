"""C4, Algorithm 3 of the paper, as the push phase of a linear program's crossover (Megiddo 1991), done in chunks.

The paper eliminates one point at a time, with a fresh null vector each. Here a basis of at most k+1 points with their
weights represents every point processed so far, and a whole chunk of further points is moved onto it by one solve:
if all weights stay positive, the chunk is done at the cost of summing it; otherwise the step stops where the first weight
reaches zero, and the chunk's point that lies furthest beyond that facet takes the slot of that weight's point.

Each point x is lifted to ((x - centre) / scale, 1): a convex combination becomes a linear one (the paper's
"mu append 1"). The basis begins with unit columns, which represent no point. Each is replaced by a point with an entry in
its row that is larger than rounding; a row that no point needs keeps its unit column at weight 0, so that points of lower
rank need no special case and leave rank+1 points.
"""

from typing import Any

import numpy as np
from numba import types

from tradeoff.kernels.basis import (
    CENTRE,
    COLUMN,
    ENTER,
    EPSILON,
    INVERSE_SCALE,
    MASK,
    PAD,
    PRICE,
    SPARE,
    STEP,
    VECTORS,
    WEIGHT,
    furthest,
    invert,
    lift,
    measure,
    solve,
)
from tradeoff.kernels.chunks import gather, initial_basis, push_chunk
from tradeoff.kernels.compensated import (
    AIM,
    AIM_REST,
    HIGH,
    LOW,
    MEAN,
    REST,
    SOUND,
    SUMMARY,
    shortfall,
    summarise,
)
from tradeoff.kernels.jit import (
    FixedMatrix,
    FixedVector,
    Indices,
    Matrix,
    Vector,
    compiled,
    float64,
    helper,
    inlined,
    int64,
)

tuple_of: Any = types.Tuple

CHUNK = 256  # the largest number of points in a chunk
BUCKETS = 512  # for sorting by weight: 64 powers of two, 8 steps in each
CLIPPED = 1e-17  # a weight this little below zero after the final solve counts as zero


@inlined
def heaviest_first(weights: Any, order: Any) -> Any:
    """Return how many weights are positive, and write their indices to ``order``: decreasing, to within 1/8.

    A stable counting sort over the leading bits takes one pass; a full sort would cost more than everything else.
    """
    count = weights.shape[0]
    bits = weights.view(np.int64)
    starts = np.empty(BUCKETS + 1, np.int64)
    for b in range(BUCKETS + 1):
        starts[b] = 0
    one = 0x3FF0 >> 1  # the leading 15 bits of 1.0: exponent and three digits
    for i in range(count):
        if weights[i] > 0.0:
            bucket = one - (bits[i] >> 49)
            bucket = 0 if bucket < 0 else BUCKETS - 1 if bucket >= BUCKETS else bucket
            starts[bucket + 1] += 1
    for b in range(BUCKETS):
        starts[b + 1] += starts[b]
    for i in range(count):
        if weights[i] > 0.0:
            bucket = one - (bits[i] >> 49)
            bucket = 0 if bucket < 0 else BUCKETS - 1 if bucket >= BUCKETS else bucket
            order[starts[bucket]] = i
            starts[bucket] += 1
    return starts[BUCKETS - 1]


@helper
def discrepancy(points: Any, support: Any, weights: Any, summary: Any, vectors: Any, missing: Any, spare: Any) -> Any:
    """Return the largest error of the mean (relative to the coordinate's scale) and of the sum of the weights.

    ``missing`` receives the remaining error of the lifted mean.
    """
    size = points.shape[1]
    shortfall(points, support, weights, summary[AIM], summary[AIM_REST], missing, spare)
    lost = missing[size]
    error = abs(lost)
    for j in range(size):
        below = abs(summary[LOW, j])
        above = abs(summary[HIGH, j])
        reach = above if above > below else below
        if not abs(missing[j]) <= error * reach:
            error = abs(missing[j]) / reach
        missing[j] = (missing[j] - vectors[CENTRE, j] * lost) * vectors[INVERSE_SCALE, j]
    return error if error == error else np.inf


@inlined
def polish(
    points: Any, order: Any, count: Any, summary: Any, vectors: Any, basis: Any, inverse: Any, support: Any, swaps: Any
) -> Any:
    """Solve for the aim itself and return the remaining error; no weight is negative afterwards.

    If the true mean makes a weight negative, rounding kept its point in the basis one exchange too long: as in the dual
    simplex method, the point that lies furthest beyond its facet takes its slot.
    """
    rows = inverse.shape[0]
    size = rows - 1
    weight, step, column, spare = vectors[WEIGHT], vectors[STEP], vectors[COLUMN], vectors[SPARE]
    enter, mask, price = vectors[ENTER], vectors[MASK], vectors[PRICE]
    error = np.inf
    for _ in range(24):
        for correction in range(7):
            error = discrepancy(points, support, weight, summary, vectors, column, spare)
            if correction == 6 or (correction >= 1 and error <= (0.5 if correction == 1 else 3.0) * EPSILON):
                break
            if correction == 2:
                invert(basis, inverse, swaps, spare)
            for q in range(rows):
                step[q] = 0.0
            for row in range(rows):
                for q in range(rows):
                    step[q] += column[row] * inverse[row, q]
            for q in range(rows):
                weight[q] += step[q] * mask[q]
        slot = int64(-1)
        lowest = -CLIPPED
        for q in range(rows):
            if weight[q] < lowest:
                lowest = weight[q]
                slot = q
        if slot < 0:
            break
        for row in range(rows):
            price[row] = inverse[row, slot]
        i = furthest(points, order, count, vectors, int64(0))
        if i < 0:
            break
        lift(points, i, vectors, column)
        noise = 1.0
        for row in range(size):
            noise += abs(column[row] * price[row])
        solve(inverse, basis, column, enter, spare)
        pivot = enter[slot]
        if not pivot < -1e-13 * noise:
            break
        entering = weight[slot] / pivot
        for q in range(rows):
            weight[q] -= entering * enter[q] * mask[q]
            basis[slot, q] = column[q]
        weight[slot] = entering
        support[slot] = i
        invert(basis, inverse, swaps, spare)
        error = np.inf
    for q in range(rows):
        if weight[q] < 0.0:
            weight[q] = 0.0
            error = np.inf
    return error if error < np.inf else discrepancy(points, support, weight, summary, vectors, column, spare)


@inlined
def result(support: Any, weight: Any) -> Any:
    """Return the rows with positive weight in increasing order, and their weights."""
    kept = 0
    for q in range(support.shape[0]):
        if support[q] >= 0 and weight[q] > 0.0:
            kept += 1
    indices = np.empty(kept, np.int64)
    shares = np.empty(kept)
    filled = 0
    for q in range(support.shape[0]):
        if support[q] >= 0 and weight[q] > 0.0:
            at = filled
            while at > 0 and indices[at - 1] > support[q]:
                indices[at] = indices[at - 1]
                shares[at] = shares[at - 1]
                at -= 1
            indices[at] = support[q]
            shares[at] = weight[q]
            filled += 1
    return indices, shares


Pushed = tuple_of((int64, Indices, Vector, float64, Matrix))


@compiled(Pushed(FixedMatrix, FixedVector, FixedVector))
def push(points: Any, weights: Any, target: Any) -> Any:
    """Return the result of ``summarise``, the rows kept (increasing), their weights, the relative error, and the summary.

    The points are processed heaviest first; the weights match the points' own mean unless a ``target`` is given. Only what
    ``summarise`` checks is checked, for the sake of callers that compress many times in a row. If the error is large, the
    result must not be used (``tradeoff.representation.compression`` then uses other methods).
    """
    count, size = points.shape
    rows = size + 1
    width = (rows + PAD - 1) // PAD * PAD
    order = np.empty(count, np.int64)
    support = np.empty(rows, np.int64)
    swaps = np.empty(rows, np.int64)
    work = np.empty((VECTORS + 2 * rows, width))
    vectors = work[:VECTORS]
    basis = work[VECTORS : VECTORS + rows]
    inverse = work[VECTORS + rows :]
    summary = np.empty((SUMMARY, rows))
    verdict = summarise(points, weights, summary)
    if verdict != SOUND or summary[MEAN, size] <= 0.0:
        return verdict, order[:0], work[0, :0], np.inf, summary
    positive = heaviest_first(weights, order)
    measure(summary, vectors)
    smallest = 2 * rows if rows > 8 else 16
    block = np.empty((rows + 1, CHUNK + smallest))
    taken = np.empty(count, np.uint8)
    rank = initial_basis(points, weights, order, positive, block, vectors, basis, inverse, support, swaps, taken)
    chunk = smallest
    pivots = int64(0)
    start = int64(0)
    while start < positive and rank < positive:
        used = chunk if chunk < positive - start else positive - start
        gather(points, weights, order, start, used, vectors, taken, block)
        before = pivots
        pivots = push_chunk(block, order, start, used, vectors, basis, inverse, support, swaps, pivots)
        start += used
        # If few weights reach zero, larger chunks save solves; if many do, smaller ones save the search for a new point.
        if pivots != before:
            chunk = chunk // 2 if chunk > 2 * smallest else smallest
        elif chunk < CHUNK:
            chunk = 2 * chunk if 2 * chunk < CHUNK else CHUNK
    for q in range(rows):
        vectors[WEIGHT, q] /= summary[MEAN, size]
    aimed = target.shape[0] > 0
    for j in range(size):
        summary[AIM, j] = target[j] if aimed else summary[MEAN, j]
        summary[AIM_REST, j] = 0.0 if aimed else summary[REST, j]
    error = 0.0
    if aimed or rank < positive:  # otherwise all points are kept, and their weights are unchanged
        error = polish(points, order, positive, summary, vectors, basis, inverse, support, swaps)
    indices, shares = result(support, vectors[WEIGHT])
    return verdict, indices, shares, error, summary
