"""C4, Algorithm 3 of the paper, as the push phase of a linear program's crossover (Megiddo 1991), done in chunks.

The paper eliminates one point at a time, with a fresh null vector each. Here a basis of at most k+1 points with their
weights represents every point processed so far, and a whole chunk of further points is moved onto it by one solve:
if all weights stay positive, the chunk is gone at the price of its sum; otherwise the step stops where the first weight
reaches zero, and the chunk's point that lies furthest beyond that facet takes the place of the point that was lost.

Each point x is lifted to ((x - centre) / scale, 1): a convex combination becomes a linear one (the paper's
"mu append 1"). The basis begins as unit columns, which stand for no point. One of them gives its row to a point that
has something in it beyond rounding; a row that no point needs keeps its unit column at weight 0, so that points of
lower rank need no special case and leave rank+1 points.
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
from tradeoff.kernels.chunks import absorb, begin, gather
from tradeoff.kernels.exact import (
    HIGH,
    LOW,
    MEAN,
    REST,
    SOUND,
    FixedIndices,
    FixedMatrix,
    FixedVector,
    Indices,
    Matrix,
    Vector,
    float64,
    helper,
    int64,
    kernel,
    shortfall,
    survey,
)

tuple_of: Any = types.Tuple

CHUNK = 256  # most points in one chunk
BUCKETS = 1024  # for the order of weights: 64 powers of two, 16 steps in each
CLIPPED = 1e-17  # a weight this little below zero after the last solve is zero
TRUSTED = 3e-15  # a result with a larger error than this is computed again by other means


@helper
def heaviest_first(weights: Any, order: Any) -> Any:
    """Return how many weights are positive, their places left in ``order``: decreasing, to within a part in 16.

    A stable counting sort over the leading bits takes one pass where a full sort would cost more than all the rest.
    """
    count = weights.shape[0]
    bits = weights.view(np.int64)
    starts = np.zeros(BUCKETS + 1, np.int64)
    one = 0x3FF0  # the leading 16 bits of 1.0: exponent and four digits
    for i in range(count):
        if weights[i] > 0.0:
            starts[min(max(one - (bits[i] >> 48), 0), BUCKETS - 1) + 1] += 1
    for b in range(BUCKETS):
        starts[b + 1] += starts[b]
    for i in range(count):
        if weights[i] > 0.0:
            bucket = min(max(one - (bits[i] >> 48), 0), BUCKETS - 1)
            order[starts[bucket]] = i
            starts[bucket] += 1
    return starts[BUCKETS - 1]


Reduced = tuple_of((int64, int64, Indices, Indices, Matrix, Matrix))


@kernel(Reduced(FixedMatrix, FixedVector, FixedIndices))
def reduce(points: Any, weights: Any, given: Any) -> Any:
    """Return what ``survey`` says, how many points have weight, their order, the support, its workspace, the summary.

    The points are taken in the order ``given``, or the heaviest first if that is empty.
    """
    count, size = points.shape
    rows = size + 1
    width = (rows + PAD - 1) // PAD * PAD
    order = np.empty(count, np.int64)
    support = np.full(rows, -1, np.int64)
    work = np.zeros((VECTORS + 2 * rows, width))
    summary = np.empty((4, rows))
    verdict = survey(points, weights, summary)
    if verdict != SOUND or summary[MEAN, size] <= 0.0:
        return verdict, int64(0), order, support, work, summary
    if given.shape[0] == 0:
        positive = heaviest_first(weights, order)
    else:
        positive = int64(0)
        for t in range(count):
            if weights[given[t]] > 0.0:
                order[positive] = given[t]
                positive += 1
    vectors = work[:VECTORS]
    basis = work[VECTORS : VECTORS + rows]
    inverse = work[VECTORS + rows :]
    measure(summary, vectors)
    block = np.empty((rows + 1, max(CHUNK, 2 * rows + 8)))
    taken = np.zeros(count, np.uint8)
    swaps = np.empty(rows, np.int64)
    rank = begin(points, weights, order, positive, block, vectors, basis, inverse, support, swaps, taken)
    smallest = max(16, 2 * rows)
    chunk = smallest
    pivots = int64(0)
    start = int64(0)
    while start < positive and rank < positive:
        used = min(chunk, positive - start)
        gather(points, weights, order, start, used, vectors, taken, block)
        before = pivots
        pivots = absorb(block, order, start, used, vectors, basis, inverse, support, swaps, pivots)
        start += used
        # Where nothing blocks, larger chunks save solves; where much does, smaller ones save prices.
        chunk = min(2 * chunk, CHUNK) if pivots == before else max(smallest, chunk // 2)
    for q in range(rows):
        vectors[WEIGHT, q] /= summary[MEAN, size]
    return verdict, positive, order, support, work, summary


@helper
def discrepancy(points: Any, support: Any, weights: Any, summary: Any, vectors: Any, missing: Any, spare: Any) -> Any:
    """Return the largest error of the mean (of the coordinate's scale) and of the sum of the weights.

    ``missing`` receives what is missing of the lifted mean.
    """
    size = points.shape[1]
    shortfall(points, support, weights, summary[MEAN], summary[REST], missing, spare)
    lost = missing[size]
    error = abs(lost)
    for j in range(size):
        reach = max(abs(summary[LOW, j]), abs(summary[HIGH, j]))
        if reach > 0.0:
            error = max(error, abs(missing[j]) / reach)
        missing[j] = (missing[j] - vectors[CENTRE, j] * lost) * vectors[INVERSE_SCALE, j]
    return error if error == error else np.inf


@helper
def collect(support: Any, weight: Any, error: Any) -> Any:
    """Return the places with positive weight in increasing order, their weights, and the error."""
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
    return indices, shares, error


Kept = tuple_of((Indices, Vector, float64))


@kernel(Kept(FixedMatrix, FixedVector, int64, Indices, Indices, Matrix, Matrix))
def settle(points: Any, target: Any, count: Any, order: Any, support: Any, work: Any, summary: Any) -> Any:
    """Return the rows kept, their weights and the error, after the last solves against the mean (or ``target``) itself.

    A weight that the true mean makes negative is that of a point which rounding kept one exchange too long: the dual
    simplex method puts the point that lies furthest beyond its facet in its place.
    """
    size = points.shape[1]
    rows = size + 1
    vectors = work[:VECTORS]
    basis = work[VECTORS : VECTORS + rows]
    inverse = work[VECTORS + rows :]
    weight, step, column, spare = vectors[WEIGHT], vectors[STEP], vectors[COLUMN], vectors[SPARE]
    enter, mask, price = vectors[ENTER], vectors[MASK], vectors[PRICE]
    if target.shape[0] > 0:
        for j in range(size):
            summary[MEAN, j] = target[j]
            summary[REST, j] = 0.0
    else:
        rank = 0
        for q in range(rows):
            if support[q] >= 0:
                rank += 1
        if rank == count:
            # Affinely independent: there is nothing to reduce, and the weights are what they were.
            return collect(support, weight, 0.0)
    swaps = np.empty(rows, np.int64)
    for _ in range(24):
        for correction in range(6):
            error = discrepancy(points, support, weight, summary, vectors, column, spare)
            if correction >= 2 and error <= 3 * EPSILON:
                break
            if correction == 2:
                invert(basis, inverse, swaps)
            step[:] = 0.0
            for row in range(rows):
                for q in range(rows):
                    step[q] += column[row] * inverse[row, q]
            for q in range(rows):
                weight[q] += step[q] * mask[q]
        place = int64(-1)
        lowest = -CLIPPED
        for q in range(rows):
            if weight[q] < lowest:
                lowest = weight[q]
                place = q
        if place < 0:
            break
        for row in range(rows):
            price[row] = inverse[row, place]
        i = furthest(points, order, count, points[0, :0], vectors, False)
        if i < 0:
            break
        lift(points, i, vectors, column)
        noise = 1.0
        for row in range(size):
            noise += abs(column[row] * price[row])
        solve(inverse, basis, column, enter, spare)
        pivot = enter[place]
        if not pivot < -1e-13 * noise:
            break
        entering = weight[place] / pivot
        for q in range(rows):
            weight[q] -= entering * enter[q] * mask[q]
            basis[place, q] = column[q]
        weight[place] = entering
        support[place] = i
        invert(basis, inverse, swaps)
    for q in range(rows):
        if support[q] < 0 or weight[q] < 0.0:
            weight[q] = 0.0
    error = discrepancy(points, support, weight, summary, vectors, column, spare)
    return collect(support, weight, error)


_HEAVIEST_FIRST = np.empty(0, np.int64)
_OWN_MEAN = np.empty(0)


def push(points: Any, weights: Any, target: Any = _OWN_MEAN, order: Any = _HEAVIEST_FIRST) -> tuple[Any, Any, float]:
    """Return at most k+1 of the points (their rows, increasing), weights with the same mean, and the error of scale.

    Takes C-contiguous arrays of 64 bits and checks nothing: for callers that compress many times in a row. ``target``
    is the mean to meet where it is known, ``order`` the rows in the order in which to take them. An error above
    ``TRUSTED`` (it may be infinite) says that the result must not be used: see ``tradeoff.represent.compress``.

    >>> corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> rows, shares, error = push(corners, np.array([0.4, 0.3, 0.2, 0.1]))
    >>> len(rows), error < TRUSTED, np.allclose(shares @ corners[rows], [0.4, 0.3])
    (3, True, True)
    """
    verdict, count, order, support, work, summary = reduce(points, weights, order)
    if verdict != SOUND or count == 0:
        return support[:0], work[0, :0], np.inf
    return settle(points, target, count, order, support, work, summary)  # type: ignore[no-any-return]
