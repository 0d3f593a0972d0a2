"""The drawings of the page, as SVG whose colours come from the style sheet: icon arrays, bars, paths on a map.

Everything here is made of numbers and of texts that were escaped; it is marked as safe for templates in one place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise

import numpy as np
from markupsafe import Markup

from tradeoff.apps.web.ground import FEW_PLACES, LETTERS, MANY_ROADS, WIDTH, Ground, Point
from tradeoff.representation.picture import inert

COLOURS = 8  # stories after these begin again with the first colour
LANE = 4.5  # between ways that run beside each other

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


def number(value: float) -> str:
    """Return a number as SVG has it, without needless digits."""
    return f"{value:.1f}".removesuffix(".0")


def text(value: str) -> str:
    """Return a text that is inert in HTML and SVG."""
    return escape(value if value.isprintable() else inert(value))


def svg(content: str, width: float, height: float, name: str, words: str = "") -> Markup:
    """Return a drawing of this class; with words it is a picture for screen readers, without it is decoration."""
    role = f'role="img" aria-label="{text(words)}"' if words else 'aria-hidden="true"'
    return Markup(
        f'<svg class="{name}" viewBox="0 0 {number(width)} {number(height)}" {role} focusable="false">{content}</svg>'
    )


# --- how often -------------------------------------------------------------------------------------------------------


def icon(story: int) -> Markup:
    """Return the icon of a story, alone: the key to the others."""
    shape = ICONS[story % COLOURS]
    return svg(f'<path class="s{story % COLOURS}" d="M1 1{shape}"/>', 10, 10, "key")


def icon_array(counts: Sequence[int], total: int, words: str) -> Markup:
    """Return a hundred icons shared out among the stories, or a thousand where the shares are that fine."""
    if total == 100:
        places = [(1 + 10 * (i % 10), 1 + 10 * (i // 10)) for i in range(100)]
        drawn, at = [], 0
        for story, count in enumerate(counts):
            shape = ICONS[story % COLOURS]
            path = "".join(f"M{x} {y}{shape}" for x, y in places[at : at + count])
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


def bar(amount: float, low: float, high: float, name: str) -> Markup:
    """Return a bar from 0 to the amount on a scale from low to high, which contains 0."""
    span = high - low
    zero, end = (0.0, 0.0) if not span > 0 else (100 * (0 - low) / span, 100 * (amount - low) / span)
    left, wide = min(zero, end), max(abs(end - zero), 0.8)
    axis = f'<path class="zero" d="M{number(zero)} 0v10"/>' if 1 < zero < 99 else ""
    return Markup(
        f'<svg class="bar {name}" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        f'<rect class="track" width="100" height="10"/>'
        f'<rect class="fill" x="{number(left)}" width="{number(wide)}" height="10"/>{axis}</svg>'
    )


def range_bar(estimate: float, low: float | None, high: float | None) -> Markup:
    """Return how much something matters: a mark on a line from 0 to 100%, and the range that is still possible."""
    band = ""
    if low is not None and high is not None:
        wide = max(192 * (high - low), 1)
        band = f'<rect class="band" x="{number(4 + 192 * low)}" y="5" width="{number(wide)}" height="10"/>'
    return svg(
        f'<rect class="track" x="4" y="9" width="192" height="2"/>{band}'
        f'<circle class="mark" cx="{number(4 + 192 * estimate)}" cy="10" r="5.5"/>',
        200, 20, "range",
    )  # fmt: skip


# --- the map ---------------------------------------------------------------------------------------------------------


def ground_definition(ground: Ground) -> Markup:
    """Return the ground that all maps of a page lie on, to be put once into the page."""
    return Markup(
        '<svg class="defs" width="0" height="0" aria-hidden="true" focusable="false"><defs><g id="ground">'
        f"{_ground(ground)}</g></defs></svg>"
    )


def _ground(ground: Ground) -> str:
    spots = ground.spots
    joins = [(spots[a], spots[b]) for a, b in ground.roads]
    if ground.tile:
        joins = [(a, b) for a, b in joins if abs(a[0] - b[0]) + abs(a[1] - b[1]) < 1.3 * ground.tile / 0.86]
    roads = "".join(f"M{_point(a)}L{_point(b)}" for a, b in joins) if len(joins) <= MANY_ROADS else ""
    written = _names(ground, range(len(spots)), "names") if ground.tile or len(spots) <= FEW_PLACES else ""
    if ground.tile:
        side = ground.tile
        size = f'width="{number(side)}" height="{number(side)}"'
        rooms = "".join(
            f'<rect x="{number(x - side / 2)}" y="{number(y - 0.6 * side)}" {size} rx="5"/>' for x, y in spots
        )
        # A door is a gap in the walls: a band of floor from room to room, wide enough for the ways through it.
        return (
            f'<g class="rooms">{rooms}</g>'
            f'<path class="doors" stroke-width="{number(0.5 * side)}" d="{roads}"/>{written}'
        )
    dots = "".join(f"M{_point(spot)}h0" for spot in spots)
    return f'<path class="roads" d="{roads}"/><path class="dots" d="{dots}"/>{written}'


def _names(ground: Ground, spots: Iterable[int], name: str) -> str:
    """Return the names of these spots, where there is room for them."""
    lines = "".join(
        f'<tspan x="{number(label.x)}" y="{number(label.y + 1.2 * LETTERS * i)}" '
        f'text-anchor="{label.anchor}">{text(line)}</tspan>'
        for label in (ground.labels[spot] for spot in spots)
        if label is not None
        for i, line in enumerate(label.lines)
    )
    return f'<text class="{name}" font-size="{number(LETTERS - bool(ground.tile))}">{lines}</text>'


def map_of(ground: Ground, ways: Sequence[Sequence[int]], ends: Sequence[int | None], words: str) -> Markup:
    """Return a map with the ways of all stories, side by side where they share a road; it needs the ground's definition.

    ``ways`` are the spots each story passes, ``ends`` where it ends, if that is on the map.
    """
    lanes = _lanes(ways)
    drawn = []
    for story in reversed(range(len(ways))):  # the most frequent on top
        if len(ways[story]) > 1:
            points = _beside(ground.spots, ways[story], story, lanes)
            path = "M" + "L".join(map(_point, points))
            drawn.append(f'<path class="case" d="{path}"/><path class="l{story % COLOURS} way" d="{path}"/>')
    drawn.append(
        _names(ground, sorted({spot for way in ways for spot in way}), "names passed")
    )  # not hidden by the ways
    begins = {way[0] for way in ways if way}
    stops = {end for end in ends if end is not None}
    for spot in sorted(stops):
        x, y = ground.spots[spot]
        drawn.append(f'<rect class="end" x="{number(x - 6)}" y="{number(y - 6)}" width="12" height="12" rx="2"/>')
    for spot in sorted(begins):
        x, y = ground.spots[spot]
        drawn.append(f'<circle class="start" cx="{number(x)}" cy="{number(y)}" r="6"/>')
    return svg(
        f'<use href="#ground"/>{"".join(drawn)}', WIDTH, ground.height, "map tiled" if ground.tile else "map", words
    )


def _lanes(ways: Sequence[Sequence[int]]) -> dict[tuple[int, int], list[int]]:
    """Return which stories use each road, in their order."""
    users: dict[tuple[int, int], list[int]] = defaultdict(list)
    for story, way in enumerate(ways):
        for a, b in {(min(pair), max(pair)) for pair in pairwise(way)}:
            users[a, b].append(story)
    return users


def _beside(
    spots: Sequence[Point], way: Sequence[int], story: int, lanes: dict[tuple[int, int], list[int]]
) -> list[Point]:
    """Return the points of a way, each of its roads moved to the story's own lane."""
    points: list[Point] = []
    for here, there in pairwise(way):
        road = (min(here, there), max(here, there))
        (x0, y0), (x1, y1) = spots[road[0]], spots[road[1]]
        length = float(np.hypot(x1 - x0, y1 - y0)) or 1.0
        users = lanes[road]
        shift = LANE * (users.index(story) - (len(users) - 1) / 2) / length
        dx, dy = -(y1 - y0) * shift, (x1 - x0) * shift
        # Turning at a spot takes a little room, so that lanes do not cross on top of each other.
        points += [_moved(spots[here], spots[there], dx, dy), _moved(spots[there], spots[here], dx, dy)]
    return [spots[way[0]], *points, spots[way[-1]]]


def _moved(spot: Point, towards: Point, dx: float, dy: float) -> Point:
    gap = float(np.hypot(towards[0] - spot[0], towards[1] - spot[1])) or 1.0
    part = min(7.0, 0.25 * gap) / gap
    return spot[0] + dx + part * (towards[0] - spot[0]), spot[1] + dy + part * (towards[1] - spot[1])


def _point(point: Point) -> str:
    return f"{number(point[0])} {number(point[1])}"
