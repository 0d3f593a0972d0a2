"""Where a problem's states are drawn: a schematic map of their locations, or a floor plan where they form a grid."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tradeoff.mdp.model import MDP
from tradeoff.presentation.text import one_line, text_width, wrap
from tradeoff.problem import Presentable
from tradeoff.problems.coverage import Coverage

WIDTH = 360.0  # of the drawing, in its own units; it is scaled to the room there is
TALLEST = 1.1  # of the width
EDGE = 26.0  # free room around the nodes
NEAR = 13.0  # locations nearer than this are one node
LETTERS = 11.0  # font size
FLAT = 30.0  # the least height that the nodes take
FEW_NODES = 10  # up to so many, all are labelled; otherwise those that are passed
MANY_NODES, MANY_ROADS = 60, 1500  # more are not labelled at all, or not drawn

# What a name does not need at its ends: "at the subway station" is labelled "subway station".
FILLING = frozenset(
    ("a", "an", "and", "at", "behind", "by", "in", "near", "of", "on", "or", "the", "to", "under", "with")
)

COORDINATES = re.compile(r"(row \d+|column \d+|\(?-?\d+|-?\d+\)?|,|\s)+")

Point = tuple[float, float]
Box = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True)
class Label:
    """The name of a node, in lines, and where its first line begins or is centred."""

    x: float
    y: float
    lines: tuple[str, ...]
    anchor: str


@dataclass(frozen=True)
class MapLayout:
    """The map that a problem's paths are drawn on: nodes, roads between them, and the labels that fit."""

    height: float
    nodes: tuple[Point, ...]
    roads: tuple[tuple[int, int], ...]
    labels: tuple[Label | None, ...]  # of each node
    node_of: dict[str, int]  # by state
    tile: float  # the side of a floor plan's tiles; 0 for a map

    def route(self, states: Iterable[str]) -> list[int]:
        """Return the nodes that these states pass, each once for as long as they stay there."""
        found = [self.node_of[state] for state in states if state in self.node_of]
        return [node for i, node in enumerate(found) if i == 0 or node != found[i - 1]]


def map_layout(problem: Presentable) -> MapLayout | None:
    """Return the map of a problem whose states have locations; None if they have none, or all the same one."""
    if isinstance(problem, Coverage):
        problem = problem.model
    if not problem.places or not (isinstance(problem, MDP) or problem.roads):
        return None
    passed = dict.fromkeys(name for road in problem.roads for name in road)
    names = [name for name in passed or problem.places if name in problem.places]
    if len(names) < 2:
        return None
    points = np.array([problem.places[name] for name in names], dtype=np.float64)
    points = points / max(float(np.abs(points).max()), np.finfo(float).tiny)  # so that no difference overflows
    drawn, height = _fitted(points)
    if len(np.unique(points, axis=0)) < 2:
        return None
    nodes, number = _merged(drawn)
    node_of = dict(zip(names, number.tolist(), strict=True))
    roads = _roads(problem, node_of) if isinstance(problem, MDP) else _named_roads(problem.roads[1:], node_of)
    pitch = _pitch(nodes, roads)
    members: list[list[str]] = [[] for _ in nodes]
    for name, node in node_of.items():
        members[node].append(name)
    titles = [location_name(group) for group in members]
    tile = 0.86 * pitch
    if pitch:
        labels = [_tile_label(title, node, tile) for title, node in zip(titles, nodes, strict=True)]
        nodes = [(x, y + 0.1 * tile) for x, y in nodes]  # the route passes below the name
    else:
        ends = _ends(problem) if isinstance(problem, MDP) else problem.roads[0]
        labels = _map_labels(titles, nodes, height, [node_of[name] for name in ends if name in node_of])
    return MapLayout(height, tuple(nodes), roads, tuple(labels), node_of, tile)


def _fitted(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return the points in drawing units, north up, and the height that they need."""
    low, high = points.min(axis=0), points.max(axis=0)
    span = np.maximum(high - low, 1e-9)
    columns = max(2, min(len(np.unique(points[:, 0].round(6))), 12))
    edge = max(EDGE, 0.5 * WIDTH / columns)  # a floor plan's outer tiles need half a tile
    across = WIDTH - 2 * edge
    zoom = min(across / span[0], TALLEST * across / span[1])
    height = max(float(zoom * span[1]), FLAT) + 2 * edge
    middle = (low + high) / 2
    return (points - middle) * zoom * (1, -1) + (WIDTH / 2, height / 2), height


def _merged(drawn: NDArray[np.float64]) -> tuple[list[Point], NDArray[np.int64]]:
    """Return the nodes, and which of them each point belongs to: the first one that is near enough."""
    _, first, inverse = np.unique(drawn.round(1), axis=0, return_index=True, return_inverse=True)
    nodes: list[Point] = []
    node_of_point = np.zeros(len(first), dtype=np.int64)
    for point in np.argsort(first):  # in the order of the states: the start is usually among the first
        x, y = drawn[first[point]]
        gaps = [np.hypot(x - a, y - b) for a, b in nodes]
        if gaps and min(gaps) < NEAR:
            node_of_point[point] = int(np.argmin(gaps))
        else:
            node_of_point[point] = len(nodes)
            nodes.append((float(x), float(y)))
    return nodes, node_of_point[inverse.ravel()]


def _roads(problem: MDP, node_of: dict[str, int]) -> tuple[tuple[int, int], ...]:
    """Return the pairs of nodes that some action leads between, without direction."""
    number = np.array([node_of.get(name, -1) for name in problem.states])
    pairs = []
    for layer in problem.layers:
        begin = number[np.repeat(layer.state_of_choice, np.diff(layer.choice_ptr))]
        both = np.stack([begin, number[layer.target]], axis=1)
        both = both[(both >= 0).all(axis=1) & (both[:, 0] != both[:, 1])]
        pairs.append(np.unique(np.sort(both, axis=1), axis=0))
    return tuple((int(a), int(b)) for a, b in np.unique(np.concatenate(pairs), axis=0))


def _named_roads(pairs: Sequence[tuple[str, str]], node_of: dict[str, int]) -> tuple[tuple[int, int], ...]:
    joined = {(node_of[a], node_of[b]) for a, b in pairs if a in node_of and b in node_of}
    return tuple(sorted({(min(pair), max(pair)) for pair in joined if pair[0] != pair[1]}))


def _ends(problem: MDP) -> list[str]:
    """Return the names of the states that paths begin or end in, which are labelled first."""
    begins = [problem.states[int(s)] for s in np.flatnonzero(problem.start > 0)]
    return begins + [problem.states[int(s)] for s in np.flatnonzero(problem.layers[0].ends)]


def _pitch(nodes: Sequence[Point], roads: Sequence[tuple[int, int]]) -> float:
    """Return the distance of neighbours if the nodes lie on a square grid and most roads join neighbours, or 0."""
    if len(nodes) < 4 or not roads:
        return 0.0
    at = np.array(nodes)
    steps = [np.diff(np.unique(at[:, axis].round(0))) for axis in (0, 1)]
    gaps = np.concatenate(steps)
    if not len(steps[0]) or not len(steps[1]):
        return 0.0
    pitch = float(gaps.min())
    on_grid = np.abs((at - at[0]) / pitch - ((at - at[0]) / pitch).round()) < 0.08
    moves = np.array([at[a] - at[b] for a, b in roads])
    joins = np.isclose(np.abs(moves).sum(axis=1), pitch, rtol=0.08) & (np.abs(moves).min(axis=1) < 0.08 * pitch)
    return pitch if pitch > 20 and on_grid.all() and joins.mean() > 0.4 else 0.0


# --- names -----------------------------------------------------------------------------------------------------------


def location_name(states: Sequence[str]) -> str:
    """Return what to call the location that these states share: what their names have in common.

    >>> location_name(["at the ramp", "at the ramp with jams announced"]), location_name(["in a full bus", "in an empty bus"])
    ('ramp', 'bus')
    """
    named = [one_line(state[:200]).split() for state in states]
    for turned in (named, [words[::-1] for words in named]):
        common = []
        for column in zip(*turned, strict=False):
            if len(set(column)) > 1:
                break
            common.append(column[0])
        found = _trimmed(common if turned is named else common[::-1])
        if found:
            return found
    return _trimmed(min(named, key=len)) or " ".join(named[0])


def _trimmed(words: Sequence[str]) -> str:
    kept = list(words)
    while kept and kept[0].lower() in FILLING:
        kept.pop(0)
    while kept and kept[-1].lower() in FILLING:
        kept.pop()
    return " ".join(kept).rstrip(",;:")


def _tile_label(title: str, node: Point, tile: float) -> Label | None:
    # Where a tile lies is seen; "row 2, column 3" on each would only hide what is drawn there.
    lines = wrap(title, tile, LETTERS - 1) if tile >= 44 and not COORDINATES.fullmatch(title) else []
    if not lines or len(lines) > 2:
        return None
    return Label(node[0], node[1] - tile / 2 + LETTERS + 1, tuple(lines), "middle")


def _map_labels(
    titles: Sequence[str], nodes: Sequence[Point], height: float, first: Sequence[int]
) -> list[Label | None]:
    """Return a label beside each node where there is room for one that hides no other and no node."""
    labels: list[Label | None] = [None] * len(nodes)
    if len(nodes) > MANY_NODES:
        return labels
    taken: list[Box] = [(x - 5, y - 5, x + 5, y + 5) for x, y in nodes]
    for node in dict.fromkeys([*first, *range(len(nodes))]):
        (x, y), lines = nodes[node], wrap(titles[node], 96, LETTERS)
        if len(lines) > 2:
            continue
        wide, high = max(text_width(line, LETTERS) for line in lines), 1.2 * LETTERS * len(lines)
        for anchor, dx, dy in (
            ("start", 11, -high / 2), ("end", -11, -high / 2), ("middle", 0, 9), ("middle", 0, -high - 9),
            ("start", 7, 5), ("end", -7, 5), ("start", 7, -high - 5), ("end", -7, -high - 5),
        ):  # fmt: skip
            left = x + dx - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
            box = (left, y + dy, left + wide, y + dy + high)
            inside = left >= 2 and box[2] <= WIDTH - 2 and box[1] >= 2 and box[3] <= height - 2
            own = taken[node]
            if inside and not any(_touch(box, other) for other in taken if other is not own):
                taken.append(box)
                labels[node] = Label(x + dx, y + dy + LETTERS, tuple(lines), anchor)
                break
    return labels


def _touch(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
