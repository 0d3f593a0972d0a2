"""The vertex that a linear objective likes best: primal simplex steps from the basis that the push leaves.

Every vertex of {w >= 0 : sum of w (x, 1) = (mean, 1)} represents the mean exactly, so which one is shown to a person is
a free choice (Section 4 of the paper asks only for k+1 trajectories). There is no feasibility tolerance: an event of
probability 1e-12 is as binding as any other, because the last solve is against the mean itself.
"""

from typing import Any

from tradeoff.kernels.basis import (
    COLUMN,
    ENTER,
    MASK,
    PRICE,
    SPARE,
    TINY_PIVOT,
    WEIGHT,
    exchange,
    furthest,
    invert,
    lift,
    solve,
)
from tradeoff.kernels.exact import inlined, int64

GAIN = 1e-11  # a step must promise at least this much of the largest cost
DEGENERATE = 1e-16  # a step shorter than this has not moved


@inlined
def leaving(weight: Any, enter: Any, rows: Any) -> Any:
    """Return the place whose weight reaches zero first; of those within rounding, the one with the largest pivot."""
    reach = 1e300
    for q in range(rows):
        if enter[q] > 1e-11:
            limit = (weight[q] + 1e-15 if weight[q] > 0.0 else 1e-15) / enter[q]
            reach = limit if limit < reach else reach
    place = int64(-1)
    pivot = 1e-11
    for q in range(rows):
        if enter[q] > pivot and weight[q] <= reach * enter[q]:
            pivot = enter[q]
            place = q
    return place


@inlined
def steer(
    points: Any, costs: Any, order: Any, count: Any, vectors: Any, basis: Any, inverse: Any, support: Any, swaps: Any
) -> Any:
    """Return the number of simplex steps that took the basis to the one of least total cost."""
    rows = inverse.shape[0]
    weight, column, spare = vectors[WEIGHT], vectors[COLUMN], vectors[SPARE]
    enter, mask, price = vectors[ENTER], vectors[MASK], vectors[PRICE]
    largest = 0.0
    for t in range(count):
        cost = abs(costs[order[t]])
        largest = cost if cost > largest else largest
    invert(basis, inverse, swaps, spare)
    stalled = 0
    pivots = 0
    limit = 1000 + 50 * rows
    for step in range(limit):
        # Reduced cost of a point: its own, less what the basis charges for the same lifted point.
        for row in range(rows):
            charge = 0.0
            for q in range(rows):
                if support[q] >= 0:
                    charge += costs[support[q]] * inverse[row, q]
            price[row] = -charge
        i = furthest(points, order, count, costs, vectors, int64(0))
        if i < 0:
            return step
        for q in range(rows):
            if support[q] == i:  # what seems to be gained is rounding
                return step
        lift(points, i, vectors, column)
        gain = costs[i]
        for row in range(rows):
            gain += price[row] * column[row]
        if gain > -GAIN * largest:
            return step
        solve(inverse, basis, column, enter, spare)
        for q in range(rows):
            enter[q] *= mask[q]
        place = leaving(weight, enter, rows)
        if place < 0:
            return step
        pivot = enter[place]
        length = weight[place] / pivot if weight[place] > 0.0 else 0.0
        for q in range(rows):
            weight[q] -= length * enter[q]
            basis[place, q] = column[q]
        weight[place] = length
        support[place] = i
        pivots += 1
        if pivot < TINY_PIVOT or pivots > 100 + rows:
            invert(basis, inverse, swaps, spare)
            pivots = 0
        else:
            exchange(inverse, enter, place)
        # A vertex where more facets meet than it needs could hold the steps in a circle. Moving the facets apart by
        # less than rounding matters breaks it (the last solve puts them back).
        stalled = stalled + 1 if length < DEGENERATE else 0
        if stalled > 2 * rows:
            stalled = 0
            mix = 0.5
            for q in range(rows):
                mix += 0.6180339887498949 if mix < 0.3819660112501051 else -0.3819660112501051
                if support[q] >= 0 and weight[q] < 1e-13:
                    weight[q] = 1e-13 * (1.0 + mix)
    return limit
