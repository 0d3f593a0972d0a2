"""Routes through a network as a problem: by shortest paths if all amounts are costs, as an MDP otherwise.

A linear preference depends only on the expected amounts on each edge. If less of every objective is better and no amount
is negative, the best route for any weights is a shortest path, and visiting a node twice never helps: ``Routes`` finds such
paths with Dijkstra's algorithm, exactly and without a limit on their length. Otherwise going round in circles may pay, so
``steps_mdp`` limits the number of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from tradeoff.errors import ProblemError
from tradeoff.mdp import inputs
from tradeoff.mdp.layer import Int, Layer, build_layer
from tradeoff.mdp.model import MDP
from tradeoff.model import Item, Lottery, Matrix, Objective, Option, Outcomes, Plan, Trajectory, Vector
from tradeoff.problems.limits import Limit
from tradeoff.problems.pointset import PointSet, Steps

# Shortest paths computed at the start to find every route that is best for some weights: a few seconds for a city.
MOST_ASKED = 5000
MOST_DRAWN = 500  # nodes; the map of a larger network shows only its routes


@dataclass(frozen=True, eq=False)
class Network:
    """The nodes and edges on routes from the origin to the destination; edges are sorted by their two ends."""

    nodes: tuple[str, ...]
    start: int
    goal: int
    source: Int
    target: Int
    streets: tuple[str, ...]  # one per edge, "" if it has no name
    amounts: NDArray[np.float64]  # [scenarios, edges, k], in the person's units
    chances: Vector  # of the scenarios
    places: Mapping[str, tuple[float, float]]

    @cached_property
    def expected(self) -> Matrix:
        """The expected amounts of each edge [edges, k]."""
        mean: Matrix = np.tensordot(self.chances, self.amounts, axes=1)
        return self.amounts[0] if len(self.chances) == 1 else mean

    def action(self, edge: int) -> str:
        """Return the name of taking an edge: its street, or where it leads."""
        return self.streets[edge] or f"to {self.nodes[self.target[edge]]}"

    @cached_property
    def longest(self) -> int | None:
        """The largest number of edges on a route, or None if the network has cycles."""
        waiting = np.bincount(self.target, minlength=len(self.nodes))
        length = np.zeros(len(self.nodes), dtype=np.int64)
        begin = np.searchsorted(self.source, np.arange(len(self.nodes) + 1))
        ready = np.flatnonzero(waiting == 0).tolist()
        done = 0
        while ready:
            node = ready.pop()
            done += 1
            for edge in range(begin[node], begin[node + 1]):
                after = self.target[edge]
                length[after] = max(length[after], length[node] + 1)
                waiting[after] -= 1
                if waiting[after] == 0:
                    ready.append(after)
        return int(length[self.goal]) if done == len(self.nodes) else None


class ShortestPaths:
    """Finds the best route for weights on outcomes, none above 0: its amounts, and its edges as strings."""

    def __init__(self, network: Network) -> None:
        self.network = network
        pair = network.source * len(network.nodes) + network.target
        self._first = np.flatnonzero(np.diff(pair, prepend=-1))  # first of the edges between the same nodes
        self._pointers = np.searchsorted(network.source[self._first], np.arange(len(network.nodes) + 1))
        ends = zip(network.source[self._first].tolist(), network.target[self._first].tolist(), strict=True)
        ranges = pairwise([*self._first.tolist(), len(pair)])
        self._between = {nodes: range(*edges) for nodes, edges in zip(ends, ranges, strict=True)}

    def __call__(self, weights: Vector) -> tuple[Vector, list[str]]:
        """Return the best route."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        network, count = self.network, len(self.network.nodes)
        costs = np.maximum(network.expected @ -weights, 0.0)
        cheapest = np.minimum.reduceat(costs, self._first)
        ways = csr_array((cheapest, network.target[self._first], self._pointers), shape=(count, count))
        _, (before,) = dijkstra(ways, indices=[network.start], return_predecessors=True)
        path = [network.goal]
        while path[-1] != network.start:
            path.append(int(before[path[-1]]))
            if path[-1] < 0:  # there is a route, so its length must have overflowed
                raise ProblemError("the amounts along a route are too large to add up; use larger units")
        edges = [self._cheapest(self._between[pair], costs) for pair in pairwise(reversed(path))]
        return network.expected[edges].sum(axis=0), [str(edge) for edge in edges]

    def _cheapest(self, edges: range, costs: Vector) -> int:
        return edges[0] if len(edges) == 1 else edges[int(costs[edges.start : edges.stop].argmin())]


class Routes(PointSet):
    """The routes through a network that are best for some weights; all amounts are costs that add up along a route."""

    limiter = "tradeoff.sources.networks.limited_routes.limited"
    limits: tuple[Limit, ...] = ()

    def __init__(
        self, network: Network, objectives: Sequence[Objective], *, name: str, title: str = "",
        optimiser: Callable[[Vector], tuple[Vector, list[str]]] | None = None,
    ) -> None:  # fmt: skip
        self.network = network
        super().__init__(
            optimiser or ShortestPaths(network), objectives, both_ways=False, gap=0, most_asked=MOST_ASKED,
            places=network.places, name=name, title=title,
        )  # fmt: skip
        found = len(self.supported.names)
        if self.complete:
            self.notes.append(
                f"{found:,} {'route is' if found == 1 else 'routes are'} best for some weights; they were all found"
                f"{' by shortest paths' if optimiser is None else ''}, so everything is exact, and the worst of them is the "
                "reference"
            )

    def label(self, steps: Steps) -> str:
        """Return a route as the streets it follows."""
        streets = [street for street, _ in groupby(self.network.action(int(edge)) for edge in steps)]
        return ", ".join(streets)

    def journey(self, option: Option | Item) -> MDP:
        """Return an MDP with only this route, whose trajectories and rollouts draw the scenario of each edge."""
        plan = option.plan if isinstance(option, Option) else option
        network = self.network
        edges = np.array([int(edge) for edge in self.steps(plan)])
        count = len(network.chances)
        return MDP.from_columns(
            [network.nodes[i] for i in np.repeat(network.source[edges], count)],
            [network.action(edge) for edge in np.repeat(edges, count)],
            np.tile(network.chances, len(edges)),
            [network.nodes[i] for i in np.repeat(network.target[edges], count)],
            network.amounts[:, edges].transpose(1, 0, 2).reshape(-1, len(self.objectives)),
            horizon=len(edges), start=network.nodes[network.start], ends=[network.nodes[network.goal]],
            objectives=self.objectives, name=self.name,
        )  # fmt: skip

    @cached_property
    def roads(self) -> tuple[tuple[str, str], ...]:  # type: ignore[override]
        """The edges that a map shows: all of a small network, or those on the routes of a large one."""
        network = self.network
        edges = np.arange(len(network.source))
        if len(network.nodes) > MOST_DRAWN:
            edges = np.unique([int(edge) for n in self._supported_numbers for edge in self._solution(n)[1]])
        pairs = np.unique(np.sort([network.source[edges], network.target[edges]], axis=0), axis=1)
        names = network.nodes
        return ((names[network.start], names[network.goal]), *((names[a], names[b]) for a, b in pairs.T))

    def lines(self, plan: Plan) -> list[str]:
        """Return a route turn by turn: each node where the street changes, and the street to take there."""
        states, actions = self._turns(self.steps(plan))
        return [*(f"{state}: {action}" for state, action in zip(states, actions, strict=False)), states[-1]]

    def _turns(self, steps: Steps) -> tuple[tuple[str, ...], tuple[str, ...]]:
        nodes = [self.network.nodes[i] for i in self._passed(steps)]
        return turns(nodes, [self.network.action(int(edge)) for edge in steps])

    def _passed(self, steps: Steps) -> list[int]:
        return [self.network.start, *self.network.target[[int(edge) for edge in steps]].tolist()]

    def stories_of(self, item: Item, chance: float) -> list[tuple[float, Trajectory]]:
        """Return how a route can turn out: the same streets, with the amounts of different scenarios."""
        states, actions = self._turns(self.steps(item))
        passed = tuple(self.network.nodes[i] for i in self._passed(self.steps(item)))
        if len(self.network.chances) == 1:
            return [(1.0, Trajectory(states, actions, chance, self.outcome_of(item), passed))]
        lottery = self._told(item)
        return [
            (float(weight), Trajectory(states, actions, chance * told.probability, told.outcome, passed))
            for weight, told in zip(lottery.weights, lottery.trajectories, strict=True)
        ]

    def outcomes_of(self, item: Item) -> Outcomes:
        """Return how the amounts of a route are distributed over the scenarios of its edges."""
        truth = None if len(self.network.chances) == 1 else self._told(item).truth
        return super().outcomes_of(item) if truth is None else truth

    def _told(self, item: Item) -> Lottery:
        journey = self.journey(item)
        return journey.show(journey.best(np.ones((1, len(self.objectives))))[0])


def turns(nodes: Sequence[str], actions: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return a route as a person reads it: only where the street changes.

    >>> turns(["a", "b", "c", "d"], ["Main Street", "Main Street", "High Street"])
    (('a', 'c', 'd'), ('Main Street', 'High Street'))
    """
    changes = [0, *(i + 1 for i, (one, next_) in enumerate(pairwise(actions)) if one != next_)]
    return (*(nodes[i] for i in changes), nodes[-1]), tuple(actions[i] for i in changes)


def hops_between(source: Int, target: Int, count: int, start: int, goal: int) -> tuple[Vector, Vector]:
    """Return how many edges each node is from the start, and how many from the goal; infinite if there is no route."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    ways = csr_array((np.ones(len(source)), (source, target)), shape=(count, count))
    there, back = (dijkstra(w, indices=[i], unweighted=True)[0] for w, i in ((ways, start), (ways.T.tocsr(), goal)))
    return there, back


def not_dominated(source: Int, target: Int, goods: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which edges (sorted by their ends) have no parallel edge at least as good in every objective and scenario.

    ``goods``: [scenarios, edges, k], more is better. Of equal edges, the last is kept.
    """
    keep = np.ones(len(source), dtype=bool)
    again = np.flatnonzero((np.diff(source) == 0) & (np.diff(target) == 0))
    for group in np.split(again, np.flatnonzero(np.diff(again) > 1) + 1) if len(again) else []:
        edges = np.append(group, group[-1] + 1)
        for edge in edges:
            others = edges[keep[edges] & (edges != edge)]
            keep[edge] = not np.any(np.all(goods[:, others] >= goods[:, [edge]], axis=(0, 2)))
    return keep


# --- routes as an MDP -------------------------------------------------------------------------------------------------


def within(network: Network, hops: Int, horizon: int) -> tuple[Network, Int]:
    """Return the part of a network that lies on routes of at most ``horizon`` edges, and its hops to the destination."""
    if hops[network.start] > horizon:
        raise ProblemError(
            f"the destination {network.nodes[network.goal]!r} is {hops[network.start]} edges away, but the horizon is "
            f"{horizon}; allow at least that many"
        )
    source, target = network.source, network.target
    there, _ = hops_between(source, target, len(network.nodes), network.start, network.goal)
    keep = there + hops <= horizon
    edges = np.flatnonzero(there[source] + 1 + hops[target] <= horizon)
    renumber = np.cumsum(keep) - 1
    nodes = tuple(network.nodes[i] for i in np.flatnonzero(keep))
    near = Network(
        nodes, int(renumber[network.start]), int(renumber[network.goal]), renumber[source[edges]],
        renumber[target[edges]], tuple(network.streets[i] for i in edges), network.amounts[:, edges], network.chances,
        {node: network.places[node] for node in nodes if node in network.places},
    )  # fmt: skip
    return near, hops[keep]


def steps_mdp(network: Network, hops: Int, objectives: Sequence[Objective], horizon: int, name: str, title: str) -> MDP:
    """Return the network as an MDP: states are nodes, actions are edges, and the destination is always reached.

    ``hops`` is the least number of edges from each node to the destination. At each step only edges are allowed from
    whose end the destination can be reached in the remaining steps; so no plan can save costs by not arriving.
    """
    count = len(network.chances)
    source, target = np.repeat(network.source, count), np.repeat(network.target, count)
    chances = np.tile(network.chances, len(network.source))
    amounts = np.ascontiguousarray(network.amounts.transpose(1, 0, 2).reshape(-1, len(objectives)))
    names, numbers = _actions(network)
    action = np.repeat(numbers, count)
    farthest = int(hops.max())
    free = network.longest is not None and network.longest <= horizon  # every plan arrives in time
    different = 1 if free else min(horizon, farthest + 1)  # steps near the end, where fewer edges are allowed
    inputs.check_model_fits(len(network.nodes), len(network.source), len(source), len(objectives), different, True)

    def layer(left: int) -> Layer:
        """Return the edges that are allowed when ``left`` steps remain after them."""
        # A node that is too far away is never entered; it keeps its edges because all layers must have the same ends.
        allowed = (hops[target] <= left) | (hops[source] > left + 1)
        return build_layer(
            source[allowed], action[allowed], chances[allowed], target[allowed], amounts[allowed],
            states=len(network.nodes), renormalise=False, where=inputs.where_in(network.nodes, names),
            objective_names=[o.name for o in objectives],
        )  # fmt: skip

    layers = [layer(farthest)]
    if not free:
        layers = [layers[0]] * max(0, horizon - different) + [layer(left) for left in reversed(range(different))]
    return MDP(
        layers, horizon=horizon, start=network.nodes[network.start], states=network.nodes, actions=names,
        objectives=objectives, places=network.places, name=name, title=title,
    )  # fmt: skip


def _actions(network: Network) -> tuple[tuple[str, ...], Int]:
    """Return the names of the actions and the action of each edge; the edges of a node have different actions."""
    names: dict[str, int] = {}
    numbers = np.zeros(len(network.source), dtype=np.int64)
    taken: set[tuple[int, str]] = set()
    for edge, (source, target) in enumerate(zip(network.source.tolist(), network.target.tolist(), strict=True)):
        street = network.streets[edge]
        name = f"{street} to {network.nodes[target]}" if street else f"to {network.nodes[target]}"
        again = 1
        while (source, name if again == 1 else f"{name} ({again})") in taken:
            again += 1
        name = name if again == 1 else f"{name} ({again})"
        taken.add((source, name))
        numbers[edge] = names.setdefault(name, len(names))
    return tuple(names), numbers
