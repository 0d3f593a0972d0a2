"""The push itself: a first basis, and chunks of points whose mass is moved onto it. See ``caratheodory`` for the idea."""

from typing import Any

from tradeoff.kernels.basis import (
    CENTRE,
    COLUMN,
    ENTER,
    INVERSE_SCALE,
    MASK,
    PRICE,
    ROUNDING,
    SPARE,
    STEP,
    TINY_PIVOT,
    WEIGHT,
    exchange,
    furthest,
    invert,
    lift,
    loose,
    product,
    reordered,
    solve,
)
from tradeoff.kernels.jit import inlined, int64
from tradeoff.kernels.vector import prefetch

DECISIVE = 0.01  # in the first window, a pivot must be at least this share of the largest in its row
AHEAD = 24  # how many points ahead to prefetch
WIDE = 0.05  # relative to the coordinate's scale: points farther apart than this determine a direction despite rounding
REFINED = 1e-3  # a pivot smaller than this, relative to its terms, is computed with refinement
NEGATIVE = 1e-15  # how far below zero a weight may be between steps; the final solve corrects it


@loose
def most_violating(block: Any, used: Any, inverse: Any, slot: Any) -> Any:
    """Return which of the block's points has the most negative coordinate at ``slot``, or -1 if none is negative."""
    size = block.shape[0] - 2
    mass = block[size]
    price = block[size + 1]
    constant = inverse[size, slot]
    for t in range(used):
        price[t] = constant
    for j in range(size):
        factor = inverse[j, slot]
        for t in range(used):
            price[t] += factor * block[j, t]
    best = 0.0
    found = -1
    for t in range(used):
        if price[t] < best and mass[t] > 0.0:
            best = price[t]
            found = t
    return found


@reordered
def total(block: Any, used: Any, column: Any) -> Any:
    """Write the sum of mass times lifted point over the block to ``column``."""
    size = block.shape[0] - 2
    for j in range(size):
        amount = 0.0
        for t in range(used):
            amount += block[size, t] * block[j, t]
        column[j] = amount
    amount = 0.0
    for t in range(used):
        amount += block[size, t]
    column[size] = amount


@loose
def gather(points: Any, weights: Any, order: Any, start: Any, used: Any, vectors: Any, taken: Any, block: Any) -> Any:
    """Fill the block with the lifted points order[start:start + used], a coordinate per row, and their masses."""
    size = points.shape[1]
    centre = vectors[CENTRE]
    inverse_scale = vectors[INVERSE_SCALE]
    last = order.shape[0] - 1
    for t in range(used):
        # Sorted by weight, the points are scattered in memory: prefetch them.
        ahead = start + t + AHEAD
        ahead = order[ahead if ahead < last else last] * size
        for j in range(0, size, 8):
            prefetch(points, ahead + j)
        i = order[start + t]
        block[size, t] = 0.0 if taken[i] else weights[i]
        for j in range(size):
            block[j, t] = (points[i, j] - centre[j]) * inverse_scale[j]


@loose
def add_point(points: Any, weights: Any, i: Any, slot: Any, vectors: Any, basis: Any, support: Any, taken: Any) -> Any:
    """Replace a unit column with point i, with all its weight."""
    lift(points, i, vectors, basis[slot])
    vectors[WEIGHT, slot] = weights[i]
    vectors[MASK, slot] = 1.0
    support[slot] = i
    taken[i] = 1


@inlined
def initial_basis(
    points: Any, weights: Any, order: Any, count: Any, block: Any, vectors: Any, basis: Any, inverse: Any, support: Any,
    swaps: Any, taken: Any,
) -> Any:  # fmt: skip
    """Find a first basis of as many independent points as there are, each with its own weight; return its size."""
    rows, width = inverse.shape
    size = rows - 1
    spare = vectors[SPARE]
    window = rows + 16
    if window > count:
        window = count
    rank = 0
    for wide in (1e-6, WIDE):
        for i in range(taken.shape[0]):
            taken[i] = 0
        for q in range(width):
            vectors[WEIGHT, q] = 0.0
            vectors[MASK, q] = 0.0
            vectors[COLUMN, q] = 0.0
        for slot in range(rows):
            support[slot] = -1
            for q in range(width):
                basis[slot, q] = 0.0
            basis[slot, slot] = 1.0
        # Gaussian elimination over a window of the first points, the row of ones first.
        gather(points, weights, order, int64(0), window, vectors, taken, block)
        add_point(points, weights, order[0], size, vectors, basis, support, taken)
        rank = 1
        narrowest = 1.0
        for j in range(size):
            first = block[j, 0]
            peak = 0.0
            for t in range(window):
                value = block[j, t] - first
                block[j, t] = value
                value = abs(value)
                peak = value if value > peak else peak
            spare[j] = DECISIVE * peak if DECISIVE * peak > wide else wide
        # Coordinates with the least rounding first, so that the rounding of the others does not affect them.
        for slot in range(size):
            at = slot
            while at > 0 and vectors[ROUNDING, swaps[at - 1]] > vectors[ROUNDING, slot]:
                swaps[at] = swaps[at - 1]
                at -= 1
            swaps[at] = slot
        factors = block[size]
        for turn in range(size):
            j = swaps[turn]
            best = spare[j]
            pivot = -1
            for t in range(window):
                if abs(block[j, t]) > best:
                    best = abs(block[j, t])
                    pivot = t
            if pivot < 0:
                continue
            add_point(points, weights, order[pivot], j, vectors, basis, support, taken)
            rank += 1
            narrowest = best if best < narrowest else narrowest
            reciprocal = 1.0 / block[j, pivot]
            for t in range(window):
                factors[t] = block[j, t] * reciprocal
            factors[pivot] = 1.0
            for later in range(turn + 1, size):
                row = swaps[later]
                amount = block[row, pivot]
                for t in range(window):
                    block[row, t] -= factors[t] * amount
        # Points close together do not determine the rank: distant points would seem to lie outside their plane.
        if rank == rows or narrowest >= WIDE:
            break
    invert(basis, inverse, swaps, spare)
    # For the rows that the window left: the point, of all points, with the largest entry in a generic combination of them.
    # Rounding of the data may contribute NOISE in each coordinate; if it is no more than that, no point needs those rows.
    price = vectors[PRICE]
    while True:
        for row in range(rows):
            price[row] = 0.0
        mix = 0.5
        for slot in range(rows):
            if support[slot] < 0:
                mix += 0.6180339887498949 if mix < 0.3819660112501051 else -0.3819660112501051
                factor = (0.5 + mix) / vectors[ROUNDING, slot]
                for row in range(rows):
                    price[row] += factor * inverse[row, slot]
        rounding = 0.0
        for row in range(rows):
            rounding += abs(price[row]) * vectors[ROUNDING, row]
        if rounding == 0.0:
            return rank
        i = furthest(points, order, count, vectors, int64(1))
        if i < 0 or taken[i]:
            return rank
        column = vectors[COLUMN]
        enter = vectors[ENTER]
        lift(points, i, vectors, column)
        amount = 0.0
        for row in range(rows):
            amount += price[row] * column[row]
        if abs(amount) <= rounding:
            return rank
        solve(inverse, basis, column, enter, spare)
        slot = int64(-1)  # a plain -1 has a different type, which would compile every callee twice
        best = 0.0
        for q in range(rows):
            if support[q] < 0 and abs(enter[q]) > best * vectors[ROUNDING, q]:
                best = abs(enter[q]) / vectors[ROUNDING, q]
                slot = q
        if slot < 0:
            return rank
        add_point(points, weights, i, slot, vectors, basis, support, taken)
        rank += 1
        invert(basis, inverse, swaps, spare)


@inlined
def push_chunk(
    block: Any, order: Any, start: Any, used: Any, vectors: Any, basis: Any, inverse: Any, support: Any, swaps: Any,
    pivots: Any,
) -> Any:  # fmt: skip
    """Move the mass of the block's points onto the basis, exchanging points when a weight would become negative.

    Takes and returns the number of exchanges since the inverse was last recomputed.
    """
    rows, width = inverse.shape
    size = rows - 1
    weight, step, column, spare = vectors[WEIGHT], vectors[STEP], vectors[COLUMN], vectors[SPARE]
    enter, mask = vectors[ENTER], vectors[MASK]
    share = 1.0  # of the block's mass, still to be moved
    total(block, used, column)
    solve(inverse, basis, column, step, spare)
    for q in range(width):
        step[q] *= mask[q]
    while True:
        part = 1.0
        slot = int64(-1)
        for q in range(rows):
            if weight[q] + step[q] < -NEGATIVE:
                reach = weight[q] / -step[q] if weight[q] > 0.0 else 0.0
                if reach < part:
                    part = reach
                    slot = q
        if slot < 0:
            for q in range(width):
                weight[q] += step[q]
            return pivots
        t = most_violating(block, used, inverse, slot)
        sound = False
        if t >= 0:
            noise = 1.0
            for j in range(size):
                column[j] = block[j, t]
                noise += abs(column[j] * inverse[j, slot])
            column[size] = 1.0
            product(inverse, column, enter)
            if enter[slot] > -REFINED * noise:
                solve(inverse, basis, column, enter, spare)
            for q in range(width):
                enter[q] *= mask[q]
            sound = enter[slot] < -1e-12 * noise
        if not sound:
            # No point lies beyond the facet: the negative weight was rounding.
            weight[slot] = weight[slot] if weight[slot] > 0.0 else 0.0
            step[slot] = 0.0
            continue
        share *= 1.0 - part
        entering = share * block[size, t]
        block[size, t] = 0.0
        pivot = enter[slot]
        for q in range(width):
            weight[q] += part * step[q]
            step[q] = (1.0 - part) * step[q] - entering * enter[q]
        ratio = step[slot] / pivot
        for q in range(width):
            step[q] -= ratio * enter[q]
        step[slot] = ratio
        weight[slot] = entering
        support[slot] = order[start + t]
        for q in range(rows):
            basis[slot, q] = column[q]
        pivots += 1
        if -pivot < TINY_PIVOT or pivots > 100 + rows:
            invert(basis, inverse, swaps, spare)
            pivots = 0
            total(block, used, column)
            for q in range(rows):
                column[q] *= share
            solve(inverse, basis, column, step, spare)
            for q in range(width):
                step[q] *= mask[q]
        else:
            exchange(inverse, enter, slot)
