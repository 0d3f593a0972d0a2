"""Routes with limits on what they cost, exactly: every route that nothing beats is found, label by label."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import numpy as np

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.model import Matrix, Vector
from tradeoff.problems.limits import Limit, infeasible, parse
from tradeoff.sources.networks.routes import Network, Routes

MOST_LABELS = 200_000  # partial routes that are looked at


def limited(routes: Routes, limits: Sequence[str]) -> Routes:
    """Return the routes whose expected amounts keep the limits."""
    found = parse(limits, routes.objectives)
    for limit in found:
        if limit.relation != "<=":
            raise ArgumentError(
                f"the limit '{limit}' is not an upper one; what a route costs can be limited from above: <="
            )
    every = (*getattr(routes, "limits", ()), *found)
    ways = efficient_routes(routes.network, _bounds(routes.network, every))
    if not ways:
        raise infeasible(
            routes.name, every, routes.objectives, lambda one, others: _attainable(routes.network, one, others)
        )
    made = Routes(
        routes.network, routes.objectives, name=routes.name, title=routes.title, optimiser=Listed(routes.network, ways)
    )
    made.limits = every
    made.notes.append(f"{'; '.join(map(str, every))}: {len(ways):,} routes keep that and are beaten by none")
    return made


class Listed:
    """Finds the best of a list of routes for weights on outcomes."""

    def __init__(self, network: Network, ways: Sequence[tuple[int, ...]]) -> None:
        self.ways = [list(way) for way in ways]
        self.amounts: Matrix = np.array([network.expected[way].sum(axis=0) for way in self.ways])

    def __call__(self, weights: Vector) -> tuple[Vector, list[str]]:
        """Return the best route: its amounts, and its edges as texts."""
        number = int(np.argmax(self.amounts @ weights))
        return self.amounts[number], [str(edge) for edge in self.ways[number]]


def _bounds(network: Network, limits: Sequence[Limit]) -> Vector:
    bounds = np.full(network.expected.shape[1], np.inf)
    for limit in limits:
        assert limit.objective is not None
        bounds[limit.objective] = min(bounds[limit.objective], limit.amount)
    return bounds


def _attainable(network: Network, limit: Limit, others: Sequence[Limit]) -> float | None:
    assert limit.objective is not None
    ways = efficient_routes(network, _bounds(network, others))
    return min((float(network.expected[list(way), limit.objective].sum()) for way in ways), default=None)


def efficient_routes(network: Network, bounds: Vector) -> list[tuple[int, ...]]:
    """Return all routes within the bounds that no other such route beats; of routes with the same amounts, one.

    Partial routes are extended in the order of their total. One is given up if it cannot keep the bounds even on the
    least way home, or if another one at its end costs no more of anything. What is best for any weights is never given up.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    count, costs = len(network.nodes), network.expected
    home = np.stack([
        dijkstra(_cheapest(csr_array, network, costs[:, j], count).T.tocsr(), indices=[network.goal])[0]
        for j in range(costs.shape[1])
    ], axis=1)  # fmt: skip
    slack = 1e-12 * np.maximum(np.where(np.isfinite(bounds), np.abs(bounds), 0.0), 1.0)
    begin = np.searchsorted(network.source, np.arange(count + 1))
    size = np.maximum(home[network.start], 1e-300)
    settled: list[list[Vector]] = [[] for _ in range(count)]
    first = np.zeros(costs.shape[1])
    waiting: list[tuple[float, int, int, Vector, tuple[int, ...]]] = [(0.0, 0, network.start, first, ())]
    made = 0
    found: list[tuple[int, ...]] = []
    while waiting:
        _, _, node, amount, way = heapq.heappop(waiting)
        if any(np.all(known <= amount) for known in settled[node]):
            continue
        settled[node].append(amount)
        if node == network.goal:
            found.append(way)
            continue
        for edge in range(begin[node], begin[node + 1]):
            after, total = int(network.target[edge]), amount + costs[edge]
            ahead = total + home[after]
            if np.any(ahead > bounds + slack) or any(np.all(known <= ahead) for known in settled[network.goal]):
                continue
            made += 1
            if made > MOST_LABELS:
                raise ProblemError(
                    f"more than {MOST_LABELS:,} partial routes keep these limits; use fewer objectives, tighter limits, or a "
                    "smaller network"
                )
            heapq.heappush(waiting, (float((ahead / size).sum()), made, after, total, (*way, edge)))
    return found


def _cheapest(array: Any, network: Network, costs: Vector, count: int) -> Any:
    """Return the cheapest edge between each two nodes, as a matrix in which a cost of 0 is an edge too."""
    order = np.lexsort((costs, network.target, network.source))
    pair = network.source[order] * count + network.target[order]
    first = order[np.flatnonzero(np.diff(pair, prepend=-1))]
    positive = np.maximum(costs[first], 1e-300)  # an explicit 0 would be no edge
    return array((positive, (network.source[first], network.target[first])), shape=(count, count))
