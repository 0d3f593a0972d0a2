"""Turn GraphML files (such as those of OSMnx) and networkx graphs into problems of choosing a route."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.mdp.layer import Int
from tradeoff.mdp.model import MDP
from tradeoff.model import Objective, Vector
from tradeoff.sources.files.columns import number
from tradeoff.sources.messages import listing, shortened
from tradeoff.sources.networks.graph import Graph, Values
from tradeoff.sources.networks.graphml import read_graphml
from tradeoff.sources.networks.locations import Places
from tradeoff.sources.networks.routes import Network, Routes, hops_between, not_dominated, steps_mdp, within
from tradeoff.sources.options import parse_objectives, real, whole

OSM_UNITS = {"length": "m", "travel_time": "s", "speed_kph": "km/h", "elevation": "m"}  # as written by OSMnx
SHOWN = 8  # names in a message


@dataclass(frozen=True)
class NetworkOptions:
    """Options for reading a network, as given.

    ``origin`` and ``destination`` are nodes, or "x,y" for the nearest node. ``objectives`` are attributes of the edges
    that add up along a route ("length:min,travel_time:min"). With ``scenarios`` ("clear:0.7,jam:0.3"), an edge costs its
    travel_time_clear or its travel_time_jam. ``horizon`` is the largest number of edges in a route, if limited.
    """

    origin: object = None
    destination: object = None
    objectives: object = None
    scenarios: object = None
    horizon: object = None


def read_network(path: Path, options: NetworkOptions) -> Routes | MDP:
    """Return the routes through the network in a GraphML file."""
    try:
        return _problem(read_graphml(path), options, path.stem)
    except ProblemError as error:
        raise error if str(path) in str(error) else type(error)(f"{path}: {error}") from None


def from_graph(graph: Any, options: NetworkOptions) -> Routes | MDP:
    """Return the routes through a networkx graph."""
    nodes: dict[str, Values] = {}
    for node, values in graph.nodes(data=True):
        if str(node) in nodes:
            raise ProblemError(
                f"two nodes are both written {shortened(str(node))}; rename one, for example with relabel_nodes"
            )
        nodes[str(node)] = dict(values)
    found = Graph(dict(graph.graph), nodes)
    for source, target, values in graph.edges(data=True):
        found.edges.append((str(source), str(target), values))
        if not graph.is_directed() and source != target:
            found.edges.append((str(target), str(source), values))
    return _problem(found, options, str(graph.graph.get("name") or "network"))


def _problem(graph: Graph, asked: NetworkOptions, name: str) -> Routes | MDP:
    """Return the problem defined by a graph and the options."""
    notes: list[str] = []
    if not graph.edges:
        raise ProblemError(f"the network has {len(graph.nodes):,} nodes and no edges; there is no route through it")
    names, chances = _scenarios(asked.scenarios)
    objectives = _objectives(graph, asked.objectives, names, notes)
    index = {node: i for i, node in enumerate(graph.nodes)}
    places = Places(graph)
    start = _node(graph, places, "origin", asked.origin, index, notes)
    goal = _node(graph, places, "destination", asked.destination, index, notes)
    if start == goal:
        raise ArgumentError(
            f"origin and destination are both node {shortened(list(index)[start])}; choose two different nodes"
        )
    amounts = _amounts(graph, [o.name for o in objectives], names, notes)
    if names:
        notes.append(
            f"scenarios {', '.join(f'{n} ({c:g})' for n, c in zip(names, chances, strict=True))}: drawn independently "
            "on every edge; best and worst are averages"
        )
    network, hops = _on_the_way(graph, index, start, goal, amounts, chances, objectives, places, notes)
    problem = _routes(network, hops, objectives, asked.horizon, name, notes)
    problem.notes[:0] = notes
    return problem


def _routes(
    network: Network, hops: Int, objectives: tuple[Objective, ...], horizon: object, name: str, notes: list[str]
) -> Routes | MDP:
    """Return the routes: by shortest paths if that is exact; as an MDP otherwise, or if a horizon is given."""
    title = f"{name}: from {network.nodes[network.start]} to {network.nodes[network.goal]}"
    if horizon is not None:
        steps = whole("horizon", horizon)
        notes.append(
            f"a plan takes at most {steps} edges (the horizon); at each step only edges from which the destination can "
            "still be reached in time are allowed, so every plan arrives"
        )
        near, hops = within(network, hops, steps)
        if len(near.nodes) < len(network.nodes):
            notes.append(
                f"{len(network.nodes) - len(near.nodes):,} of {len(network.nodes):,} nodes are on no route of at most {steps} "
                "edges; they were left out"
            )
        return steps_mdp(near, hops, objectives, steps, name, title)
    reason = _not_a_cost(network, objectives)
    if not reason:
        return Routes(network, objectives, name=name, title=title)
    if network.longest is None:
        raise ProblemError(
            f"{reason}, and the network has cycles, so going round forever would pay; give a horizon (the largest number of "
            "edges, such as horizon=30), or express it as a cost that is never negative"
        )
    notes.append(f"the network has no cycles, and no route through it has more than {network.longest} edges")
    return steps_mdp(network, hops, objectives, network.longest, name, title)


def _not_a_cost(network: Network, objectives: tuple[Objective, ...]) -> str:
    """Return why shortest paths would not be exact, or "" if they are."""
    for j, objective in enumerate(objectives):
        if objective.goal == "max":
            return f"more {objective.name!r} is better"
        negative = np.flatnonzero(network.expected[:, j] < 0)
        if len(negative):
            edge = negative[0]
            ends = (network.nodes[network.source[edge]], network.nodes[network.target[edge]])
            where = _edge_words(*ends, network.streets[edge])
            return f"{where} has {objective.name} {network.expected[edge, j]:g}, which is below 0"
    return ""


# --- options ----------------------------------------------------------------------------------------------------------


def _objectives(graph: Graph, given: object, scenarios: list[str], notes: list[str]) -> tuple[Objective, ...]:
    if given is None:
        raise ArgumentError(
            f"say which attributes of the edges are objectives, such as objectives=length:min,travel_time:min; "
            f"with numbers there {_numeric(graph)}"
        )
    units = {o.name: o.unit for o in given if isinstance(o, Objective)} if isinstance(given, list | tuple) else {}
    if str(graph.about.get("created_with", "")).startswith("OSMnx"):
        units = OSM_UNITS | units
    wanted = parse_objectives(given)
    for name in wanted:
        _check_known(graph, name, scenarios)
    unsaid = [name for name, goal in wanted.items() if goal is None]
    if unsaid:
        notes.append(f"less is taken to be better for {', '.join(unsaid)}, because nothing else was said")
    return tuple(Objective(name, units.get(name, ""), goal or "min") for name, goal in wanted.items())


def _check_known(graph: Graph, objective: str, scenarios: list[str]) -> None:
    """Raise an ArgumentError if no edge has the objective as an attribute."""
    names = [objective, *(f"{objective}_{scenario}" for scenario in scenarios)]
    if any(name in values for _, _, values in graph.edges for name in names):
        return
    attribute, colon, goal = objective.rpartition(":")
    if colon and any(attribute in values for _, _, values in graph.edges):
        raise ArgumentError(
            f"the objective {attribute!r} has the direction {goal.strip()!r}; it must be min or max, such as {attribute}:min"
        )
    raise ArgumentError(f"no edge has the attribute {_some(names, 'or')}; with numbers there {_numeric(graph)}")


def _some(names: Sequence[str], word: str) -> str:
    """Return the first few names in quotes, as a list within a sentence."""
    shown = [repr(name) for name in names[:SHOWN]]
    if len(names) > SHOWN:
        return f"{', '.join(shown)}, ... ({len(names)} in all)"
    return f" {word} ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def _numeric(graph: Graph) -> str:
    """Return which attributes are numbers, judging by the first edges."""
    found: dict[str, None] = {}
    for _, _, values in graph.edges[:100]:
        for name, value in values.items():
            try:
                if not isinstance(value, bool) and math.isfinite(float(value)):  # type: ignore[arg-type]
                    found.setdefault(str(name))
            except (TypeError, ValueError, OverflowError):
                continue
    names = [name if len(name) <= 60 else f"{name[:57]}..." for name in list(found)[: 2 * SHOWN]]
    return f"are {', '.join(names)}" if names else "are none"


def _scenarios(given: object) -> tuple[list[str], Vector]:
    """Return the scenarios and their probabilities, given as "clear:0.7,jam:0.3" or as a mapping."""
    if given is None:
        return [], np.ones(1)
    if isinstance(given, Mapping):
        pairs = list(given.items())
    else:
        parts = [part.rpartition(":") for part in str(given).split(",")]
        if not all(name.strip() and colon for name, colon, _ in parts):
            raise ArgumentError(
                f"scenarios is {shortened(given)}; it must be of the form NAME:PROBABILITY,NAME:PROBABILITY, such as "
                "clear:0.7,jam:0.3"
            )
        pairs = [(name, chance) for name, _, chance in parts]
    chances = {str(name).strip(): real(f"the probability of scenario {name!r}", chance) for name, chance in pairs}
    if (
        not chances
        or "" in chances
        or len(chances) != len(pairs)
        or min(chances.values()) <= 0
        or abs(sum(chances.values()) - 1) > 1e-9
    ):
        raise ArgumentError(
            f"scenarios is {given!r}; it must be different names with probabilities above 0 that sum to 1, such as "
            "clear:0.7,jam:0.3"
        )
    shares = np.array(list(chances.values()))
    return list(chances), shares / shares.sum()


def _node(graph: Graph, places: Places, what: str, given: object, index: Mapping[str, int], notes: list[str]) -> int:
    """Return the index of a node given by its id, or as the nearest to "x,y"."""
    some = listing(index)
    if given is None:
        raise ArgumentError(f"say which node is the {what}, such as {what}=ID or {what}=x,y; nodes are {some}")
    text = str(given).strip()
    if text in index:
        return index[text]
    parts = text.strip("()[]").split(",")
    try:
        x, y = (float(part) for part in parts)
    except ValueError:
        raise ArgumentError(
            f"the {what} {shortened(given)} is neither a node nor a point x,y; nodes are {some}"
        ) from None
    if not (math.isfinite(x) and math.isfinite(y)):
        raise ArgumentError(f"the {what} {text} is not a point; give two finite numbers x,y")
    if not places.at:
        raise ArgumentError(f"the {what} is the point {text}, but no node has coordinates x and y; name a node: {some}")
    try:
        node, away = places.nearest(x, y)
    except ArgumentError as error:
        raise ArgumentError(f"the {what} {text} is not in this network: {error}") from None
    notes.append(f"the {what} is node {node}, the nearest to {text} ({away} away)")
    return index[node]


# --- edges ------------------------------------------------------------------------------------------------------------


def _amounts(graph: Graph, objectives: list[str], scenarios: list[str], notes: list[str]) -> NDArray[np.float64]:
    """Return the amounts [scenarios, edges, k]; an attribute named after a scenario replaces the plain one."""
    result = np.empty((max(1, len(scenarios)), len(graph.edges), len(objectives)))
    for j, objective in enumerate(objectives):
        for s, scenario in enumerate(scenarios or [""]):
            result[s, :, j] = _column(graph, objective, f"{objective}_{scenario}" if scenario else objective)
    special = {s for s in scenarios if any(f"{o}_{s}" in values for _, _, values in graph.edges for o in objectives)}
    plain = [scenario for scenario in scenarios if scenario not in special]
    if scenarios and not special:
        looked_for = [f"{objective}_{scenario}" for scenario in plain for objective in objectives]
        raise ProblemError(
            f"no edge has an attribute for scenario {_some(plain, 'or')}, so nothing tells the scenarios apart; "
            f"looked for: {_some(looked_for, 'and')}; with numbers there {_numeric(graph)}"
        )
    if plain:
        notes.append(f"no edge has attributes for scenario {', '.join(plain)}; the plain ones are used")
    return result


def _column(graph: Graph, objective: str, special: str) -> list[float]:
    column = []
    for source, target, values in graph.edges:
        name = special if special in values else objective
        if name not in values or values[name] in (None, ""):
            lacking = sum(1 for _, _, other in graph.edges if name not in other or other[name] in (None, ""))
            raise ProblemError(
                f"{_edge_words(source, target, _street(values))} has no {name!r}, and {lacking:,} of {len(graph.edges):,} "
                f"edges have none; give it to each, or choose another objective: with numbers there {_numeric(graph)}"
            )
        column.append(number(values[name], f"{_edge_words(source, target, _street(values))}, attribute {name!r}"))
    return column


def _street(values: Values) -> str:
    """Return the name of an edge's street; OSMnx writes several names as "['A', 'B']"."""
    given = values.get("name") or values.get("ref") or ""
    if isinstance(given, str) and given.startswith("[") and given.endswith("]"):
        given = [one or other for one, other in re.findall(r"'([^']*)'|\"([^\"]*)\"", given)] or given
    text = " / ".join(map(str, given)) if isinstance(given, list | tuple | set) else str(given)
    return " ".join(text.split())


def _edge_words(source: str, target: str, street: str) -> str:
    named = f" ({shortened(street)[1:-1]})" if street else ""
    return f"the edge from {shortened(source)} to {shortened(target)}{named}"


def _on_the_way(
    graph: Graph, index: Mapping[str, int], start: int, goal: int, amounts: NDArray[np.float64], chances: Vector,
    objectives: tuple[Objective, ...], places: Places, notes: list[str],
) -> tuple[Network, Int]:  # fmt: skip
    """Return the part of the graph that lies on some route, and how many edges each node is from the destination."""
    names = list(index)
    source = np.array([index[a] for a, _, _ in graph.edges], dtype=np.int64)
    target = np.array([index[b] for _, b, _ in graph.edges], dtype=np.int64)
    loops = source == target
    usable = ~loops & (source != goal)
    there, back = hops_between(source[usable], target[usable], len(index), start, goal)
    if not np.isfinite(there[goal]):
        raise ProblemError(
            f"the destination {shortened(names[goal])} cannot be reached from the origin {shortened(names[start])}: of "
            f"{len(index):,} nodes, "
            f"{int(np.isfinite(there).sum()) - 1:,} can be reached from the origin, and {int(np.isfinite(back).sum()) - 1:,} "
            "lead to the destination; choose other nodes, or check for one-way edges"
        )
    keep = np.isfinite(there) & np.isfinite(back)
    kept = np.flatnonzero(usable & keep[source] & keep[target])
    kept = kept[np.lexsort((target[kept], source[kept]))]
    better = not_dominated(source[kept], target[kept], amounts[:, kept] * [o.sign for o in objectives])
    for lost, words in (
        (loops, "edges lead back to where they begin"),
        (~keep, f"of {len(index):,} nodes are on no route to the destination"),
        (~better, "edges are no better in anything than another between the same nodes"),
    ):
        if lost.any():
            notes.append(f"{int(lost.sum()):,} {words}; they were left out")
    kept = kept[better]
    renumber = np.cumsum(keep) - 1
    nodes = tuple(names[i] for i in np.flatnonzero(keep))
    network = Network(
        nodes, int(renumber[start]), int(renumber[goal]), renumber[source[kept]], renumber[target[kept]],
        tuple(_street(graph.edges[i][2]) for i in kept), amounts[:, kept], chances,
        {node: places.drawn(node) for node in nodes if node in places.at},
    )  # fmt: skip
    return network, back[keep].astype(np.int64)
