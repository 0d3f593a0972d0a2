"""Drawings as SVG whose colours come from a style sheet: icon arrays, bars, routes on a map.

Everything here is made of numbers and of texts that were escaped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path

import numpy as np

from tradeoff.presentation.maps import FEW_NODES, LETTERS, MANY_ROADS, WIDTH, MapLayout, Point
from tradeoff.presentation.risk import Risk
from tradeoff.presentation.text import one_line

STATIC = Path(__file__).resolve().parent / "static"  # drawing.css, the style sheet of all drawings

COLOURS = 8  # stories after these begin again with the first colour
LANE = 4.5  # between routes that run beside each other

# The icons of the stories: what follows "M x y", ten units apart. They differ by shape as well as by colour.
ICONS = (
    "h8v8h-8z",
    "m0 4a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "m4 0l4 8h-8z",
    "m4-.5l4.5 4.5-4.5 4.5-4.5-4.5z",
    "m0 2.5h8v3h-8z",
    "l8 0-4 8z",
    "m2.5 0h3v8h-3z",
    "m3 0h2v3h3v2h-3v3h-2v-3h-3v-2h3z",
)


class Svg(str):
    """A drawing that templates put into a page as it is."""

    def __html__(self) -> str:
        return self


def number(value: float) -> str:
    """Return a number as SVG has it, without needless digits."""
    return f"{value:.1f}".removesuffix(".0")


def text(value: str) -> str:
    """Return a text that is inert in HTML and SVG."""
    return escape(one_line(value))


def svg(content: str, width: float, height: float, name: str, words: str = "") -> Svg:
    """Return a drawing of this class; with words it is a picture for screen readers, without it is decoration."""
    role = f'role="img" aria-label="{text(words)}"' if words else 'aria-hidden="true"'
    return Svg(
        f'<svg class="{name}" viewBox="0 0 {number(width)} {number(height)}" {role} focusable="false">{content}</svg>'
    )


# --- how often -------------------------------------------------------------------------------------------------------


def icon(story: int) -> Svg:
    """Return the icon of a story, alone: the key to the others."""
    shape = ICONS[story % COLOURS]
    return svg(f'<path class="s{story % COLOURS}" d="M1 1{shape}"/>', 10, 10, "key")


def icon_array(counts: Sequence[int], total: int, words: str) -> Svg:
    """Return a hundred icons shared out among the stories, or a thousand where the shares are that fine."""
    if total == 100:
        cells = [(1 + 10 * (i % 10), 1 + 10 * (i // 10)) for i in range(100)]
        drawn, at = [], 0
        for story, count in enumerate(counts):
            shape = ICONS[story % COLOURS]
            path = "".join(f"M{x} {y}{shape}" for x, y in cells[at : at + count])
            drawn.append(f'<path class="s{story % COLOURS}" d="{path}"/>')
            at += count
        return svg("".join(drawn), 100, 100, "array", words)
    return svg(_thousand([count * 1000 / total for count in counts]), 160, 100, "array fine", words)


def _thousand(counts: Sequence[float]) -> str:
    """Return a thousand small squares, 40 in a row: each run of equal ones is a dashed line."""
    drawn, ends = [], np.cumsum(counts).round().astype(int).tolist()
    at = 0
    for story, end in enumerate(ends):
        path = ""
        while at < end:
            row, column = divmod(at, 40)
            run = min(end - at, 40 - column)
            path += f"M{4 * column + 0.5} {4 * row + 2}h{4 * run - 1}"
            at += run
        if path:
            drawn.append(f'<path class="l{story % COLOURS}" d="{path}" stroke-width="3" stroke-dasharray="3 1"/>')
    return "".join(drawn)


# --- how much --------------------------------------------------------------------------------------------------------


def bar(amount: float, scale: tuple[float, float], better: bool) -> Svg:
    """Return a bar from 0 to the amount on a scale, from its low end to its high end, that contains 0."""
    low, high = scale
    span = high - low
    zero, end = (0.0, 0.0) if not span > 0 else (100 * (0 - low) / span, 100 * (amount - low) / span)
    left, wide = min(zero, end), max(abs(end - zero), 0.8)
    axis = f'<path class="zero" d="M{number(zero)} 0v10"/>' if 1 < zero < 99 else ""
    name = "better" if better else "other"
    return Svg(
        f'<svg class="bar {name}" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        f'<rect class="track" width="100" height="10"/>'
        f'<rect class="fill" x="{number(left)}" width="{number(wide)}" height="10"/>{axis}</svg>'
    )


def share_bar(share: float) -> Svg:
    """Return a share of 1 as a bar."""
    return bar(100 * share, (0.0, 100.0), True)


def range_bar(estimate: float, band: tuple[float, float] | None) -> Svg:
    """Return how much something matters: a mark on a line from 0 to 100%, and the band that is still possible."""
    drawn = ""
    if band is not None:
        low, high = band
        wide = max(192 * (high - low), 1)
        drawn = f'<rect class="band" x="{number(4 + 192 * low)}" y="5" width="{number(wide)}" height="10"/>'
    return svg(
        f'<rect class="track" x="4" y="9" width="192" height="2"/>{drawn}'
        f'<circle class="mark" cx="{number(4 + 192 * estimate)}" cy="10" r="5.5"/>',
        200, 20, "range",
    )  # fmt: skip


def quantile_dots(risk: Risk) -> Svg:
    """Return how an objective comes out as 20 dots on a line from the least to the greatest: each is 1 time in 20."""
    low, high = risk.dots[0], risk.dots[-1]
    columns, wide = 40, 200.0
    span = high - low
    at = [round((dot - low) / span * (columns - 1)) if span > 0 else columns // 2 for dot in risk.dots]
    tall = max(at.count(column) for column in set(at))
    step = wide / columns
    height = tall * step + 14
    drawn, stacked = [], [0] * columns
    for column in at:
        x, y = step * (column + 0.5), height - 14 - step * (stacked[column] + 0.5)
        stacked[column] += 1
        drawn.append(f"M{number(x)} {number(y)}h0")
    ends = "".join(
        f'<text class="names" font-size="8" x="{number(x)}" y="{number(height - 3)}" text-anchor="{anchor}">{text(end)}</text>'
        for x, anchor, end in zip((0, wide), ("start", "end"), risk.ends, strict=True)
        if span > 0 or anchor == "start"
    )
    return svg(
        f'<path class="axis" d="M0 {number(height - 13)}h{number(wide)}"/><path class="chances" '
        f'stroke-width="{number(0.8 * step)}" d="{"".join(drawn)}"/>{ends}',
        wide, height, "quantiles", f"{risk.name}: {risk.words}",
    )  # fmt: skip


# --- the map ---------------------------------------------------------------------------------------------------------


def map_defs(layout: MapLayout) -> Svg:
    """Return what all maps of a page show, to be put into the page once."""
    return Svg(
        '<svg class="defs" width="0" height="0" aria-hidden="true" focusable="false"><defs><g id="base-map">'
        f"{_base_map(layout)}</g></defs></svg>"
    )


def _base_map(layout: MapLayout) -> str:
    nodes = layout.nodes
    joins = [(nodes[a], nodes[b]) for a, b in layout.roads]
    if layout.tile:
        joins = [(a, b) for a, b in joins if abs(a[0] - b[0]) + abs(a[1] - b[1]) < 1.3 * layout.tile / 0.86]
    roads = "".join(f"M{_point(a)}L{_point(b)}" for a, b in joins) if len(joins) <= MANY_ROADS else ""
    written = _names(layout, range(len(nodes)), "names") if layout.tile or len(nodes) <= FEW_NODES else ""
    if layout.tile:
        side = layout.tile
        size = f'width="{number(side)}" height="{number(side)}"'
        rooms = "".join(
            f'<rect x="{number(x - side / 2)}" y="{number(y - 0.6 * side)}" {size} rx="5"/>' for x, y in nodes
        )
        # A door is a gap in the walls: a band of floor from room to room, wide enough for the routes through it.
        return (
            f'<g class="rooms">{rooms}</g>'
            f'<path class="doors" stroke-width="{number(0.5 * side)}" d="{roads}"/>{written}'
        )
    dots = "".join(f"M{_point(node)}h0" for node in nodes)
    return f'<path class="roads" d="{roads}"/><path class="dots" d="{dots}"/>{written}'


def _names(layout: MapLayout, nodes: Iterable[int], name: str) -> str:
    """Return the names of these nodes, where there is room for them."""
    lines = "".join(
        f'<tspan x="{number(label.x)}" y="{number(label.y + 1.2 * LETTERS * i)}" '
        f'text-anchor="{label.anchor}">{text(line)}</tspan>'
        for label in (layout.labels[node] for node in nodes)
        if label is not None
        for i, line in enumerate(label.lines)
    )
    return f'<text class="{name}" font-size="{number(LETTERS - bool(layout.tile))}">{lines}</text>'


def map_of(layout: MapLayout, paths: Sequence[Sequence[str]], words: str) -> Svg | None:
    """Return a map with the routes of all stories, side by side where they share a road; it needs ``map_defs``.

    ``paths`` are the states that each story passes. None if none of them is on the map.
    """
    routes = [layout.route(states) for states in paths]
    if not any(routes):
        return None
    lanes = _lanes(routes)
    drawn = []
    for story in reversed(range(len(routes))):  # the most frequent on top
        if len(routes[story]) > 1:
            points = _beside(layout.nodes, routes[story], story, lanes)
            path = "M" + "L".join(map(_point, points))
            drawn.append(f'<path class="case" d="{path}"/><path class="l{story % COLOURS} way" d="{path}"/>')
    passed = sorted({node for route in routes for node in route})
    drawn.append(_names(layout, passed, "names passed"))  # not hidden by the routes
    drawn += _marks(layout, routes, paths)
    return svg(
        f'<use href="#base-map"/>{"".join(drawn)}', WIDTH, layout.height, "map tiled" if layout.tile else "map", words
    )


def _marks(layout: MapLayout, routes: Sequence[Sequence[int]], paths: Sequence[Sequence[str]]) -> list[str]:
    """Return the marks of where ways end and, above them, begin."""
    marks = []
    for node in sorted({layout.node_of[states[-1]] for states in paths if states[-1] in layout.node_of}):
        x, y = layout.nodes[node]
        marks.append(f'<rect class="end" x="{number(x - 6)}" y="{number(y - 6)}" width="12" height="12" rx="2"/>')
    for node in sorted({route[0] for route in routes if route}):
        x, y = layout.nodes[node]
        marks.append(f'<circle class="start" cx="{number(x)}" cy="{number(y)}" r="6"/>')
    return marks


def compared_map(
    layout: MapLayout, left: Sequence[Sequence[str]], right: Sequence[Sequence[str]]
) -> tuple[Svg, str] | None:
    """Return one map of two plans with the roads that only one of them takes standing out, and what it shows in words.

    ``left`` and ``right`` are the states that the stories of A and B pass. None if neither is on the map.
    """
    sides = [[layout.route(states) for states in paths] for paths in (left, right)]
    routes = [route for side in sides for route in side if route]
    if not routes:
        return None
    at = layout.nodes
    mine, theirs = ({(min(pair), max(pair)) for route in side for pair in pairwise(route)} for side in sides)
    drawn = [
        f'<path class="{name}" d="{"".join(f"M{_point(at[a])}L{_point(at[b])}" for a, b in sorted(roads))}"/>'
        for name, roads in (
            ("way both", mine & theirs), ("case", mine ^ theirs), ("l0 way", mine - theirs), ("l1 way", theirs - mine),
        )
        if roads
    ]  # fmt: skip
    drawn.append(_names(layout, sorted({node for route in routes for node in route}), "names passed"))
    drawn += _marks(layout, routes, [*left, *right])
    words = "A and B go the same ways; they differ in what is done there."
    if mine != theirs:
        words = "Only A: blue line. Only B: orange dashes. Both: grey."
    name = "map tiled" if layout.tile else "map"
    return svg(f'<use href="#base-map"/>{"".join(drawn)}', WIDTH, layout.height, name, words), words


def _lanes(routes: Sequence[Sequence[int]]) -> dict[tuple[int, int], list[int]]:
    """Return which stories use each road, in their order."""
    users: dict[tuple[int, int], list[int]] = defaultdict(list)
    for story, route in enumerate(routes):
        for a, b in {(min(pair), max(pair)) for pair in pairwise(route)}:
            users[a, b].append(story)
    return users


def _beside(
    nodes: Sequence[Point], route: Sequence[int], story: int, lanes: dict[tuple[int, int], list[int]]
) -> list[Point]:
    """Return the points of a route, each of its roads moved to the story's own lane."""
    points: list[Point] = []
    for here, there in pairwise(route):
        road = (min(here, there), max(here, there))
        (x0, y0), (x1, y1) = nodes[road[0]], nodes[road[1]]
        length = float(np.hypot(x1 - x0, y1 - y0)) or 1.0
        users = lanes[road]
        shift = LANE * (users.index(story) - (len(users) - 1) / 2) / length
        dx, dy = -(y1 - y0) * shift, (x1 - x0) * shift
        # Turning at a node takes a little room, so that lanes do not cross on top of each other.
        points += [_moved(nodes[here], nodes[there], dx, dy), _moved(nodes[there], nodes[here], dx, dy)]
    return [nodes[route[0]], *points, nodes[route[-1]]]


def _moved(node: Point, towards: Point, dx: float, dy: float) -> Point:
    gap = float(np.hypot(towards[0] - node[0], towards[1] - node[1])) or 1.0
    part = min(7.0, 0.25 * gap) / gap
    return node[0] + dx + part * (towards[0] - node[0]), node[1] + dy + part * (towards[1] - node[1])


def _point(point: Point) -> str:
    return f"{number(point[0])} {number(point[1])}"
