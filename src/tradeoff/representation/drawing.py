"""A lottery drawn so that a person sees it at a glance: how often, what way, what it comes to, and the average."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from tradeoff.errors import ArgumentError
from tradeoff.model import Lottery, Trajectory
from tradeoff.representation.picture import (
    ASCENT,
    LEADING,
    Anchor,
    Circle,
    Line,
    Picture,
    Rectangle,
    Shape,
    Text,
    inert,
    text_width,
    wrap,
)
from tradeoff.representation.words import (
    NOISE,
    heading_words,
    heaviest_first,
    is_certain,
    outcome_words,
    path_words,
    share_words,
)

Places = Mapping[str, tuple[float, float]]

# Okabe and Ito's colours, which people of all kinds of colour vision can tell apart; text is dark enough to read.
BLUE, GREEN, ORANGE = "#0072b2", "#009e73", "#d55e00"
INK, QUIET, TRACK, EDGE, CARD, PAPER = "#1a1a1a", "#595959", "#dddddd", "#c8c8c8", "#ffffff", "#f4f6f8"

NARROWEST = 280  # pixels
MARGIN, PAD, GAP = 12.0, 14.0, 10.0
LARGE, MIDDLE, SMALL = 18.0, 14.0, 12.0  # font sizes
SHOWN = 30  # steps of a path that are drawn; the middle of a longer one is left out


def lottery_picture(lottery: Lottery, title: str = "", places: Places | None = None, *, width: float = 640) -> Picture:
    """Return a picture of a lottery: each trajectory's share, path and outcome, then the average of everything.

    ``places`` says where states are (x to the east, y to the north); each trajectory then has a small map. ``width`` is
    in pixels, from 280 up: texts keep their size and flow into the width that there is.
    """
    if not width >= NARROWEST:
        raise ArgumentError(f"a picture is at least {NARROWEST} pixels wide, but a width of {width} was asked for")
    lottery, sheet = heaviest_first(lottery), _Sheet(width)
    inner = width - 2 * MARGIN
    if title:
        sheet.paragraph(title, MARGIN, inner, LARGE, bold=True)
    sheet.paragraph(heading_words(lottery), MARGIN, inner, MIDDLE, QUIET)
    outcomes, _ = outcome_words(lottery)
    names = [o.name for o in lottery.objectives]
    rooms = _cell_rooms(lottery, outcomes, sheet.inner)
    located = _Map(places, sheet.inner) if places else None
    for i, share in enumerate(share_words(lottery.weights)):
        trajectory = lottery.trajectories[i]
        sheet.y += GAP
        top, behind = sheet.y, len(sheet.shapes)
        sheet.y += PAD
        _draw_share(sheet, share, float(lottery.weights[i]))
        _draw_way(sheet, trajectory, located)
        if len(outcomes) > 1:
            _draw_cells(sheet, names, outcomes[i], rooms)
        sheet.y += PAD
        sheet.shapes.insert(behind, Rectangle(MARGIN, top, inner, sheet.y - top, CARD, EDGE))
    sheet.y += GAP + PAD
    _draw_average(sheet, lottery)
    sheet.y += MARGIN
    return Picture(width, sheet.y, tuple(sheet.shapes), title or "What can happen", lottery_text(lottery), PAPER)


def lottery_text(lottery: Lottery) -> str:
    """Return a lottery as a few sentences, for those who cannot see the picture of it."""
    lottery = heaviest_first(lottery)
    outcomes, average = outcome_words(lottery)
    names = [o.name for o in lottery.objectives]
    told = [heading_words(lottery)]
    for share, trajectory, amounts in zip(share_words(lottery.weights), lottery.trajectories, outcomes, strict=True):
        told.append(f"{share}: {'; '.join(_shortened(path_words(trajectory)))}. {_listed(names, amounts)}.")
    return " ".join([*told, f"On average: {_listed(names, average)}."])


def lottery_html(lottery: Lottery) -> str:
    """Return a lottery as a small HTML table for notebooks: all text escaped, nothing loaded, no scripts."""
    lottery = heaviest_first(lottery)
    outcomes, average = outcome_words(lottery)
    left, right = 'style="text-align: left; vertical-align: top"', 'style="text-align: right; vertical-align: top"'

    def row(first: str, way: str, amounts: Sequence[str], tag: str = "td") -> str:
        cells = "".join(f"<{tag} {right}>{_safe(amount)}</{tag}>" for amount in amounts)
        return f"<tr><{tag} {left}>{_safe(first)}</{tag}><{tag} {left}>{way}</{tag}>{cells}</tr>"

    rows = []
    for share, trajectory, amounts in zip(share_words(lottery.weights), lottery.trajectories, outcomes, strict=True):
        rows.append(row(share, "<br>".join(map(_safe, _shortened(path_words(trajectory)))), amounts))
    # The classes keep notebooks from typesetting names with dollar signs as formulas.
    return (
        '<table class="tex2jax_ignore mathjax_ignore">'
        f'<caption style="text-align: left">{_safe(heading_words(lottery))}</caption>'
        f"<thead>{row('how often', 'what happens', [o.name for o in lottery.objectives], 'th')}</thead>"
        f"<tbody>{''.join(rows)}</tbody><tfoot>{row('on average', '', average, 'th')}</tfoot></table>"
    )


def _safe(text: str) -> str:
    return escape(inert(text))


def _listed(names: Sequence[str], amounts: Sequence[str]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in zip(names, amounts, strict=True))


def _shortened(path: list[str]) -> list[str]:
    if len(path) <= SHOWN:
        return path
    left_out = len(path) - SHOWN + 1
    return [*path[: SHOWN // 2], f"… {left_out:,} more …", *path[SHOWN // 2 + left_out :]]


# --- the sheet -------------------------------------------------------------------------------------------------------


class _Sheet:
    """The shapes drawn so far, and how far down the next one goes."""

    def __init__(self, width: float) -> None:
        self.shapes: list[Shape] = []
        self.y = MARGIN
        self.left, self.right = MARGIN + PAD, width - MARGIN - PAD

    @property
    def inner(self) -> float:
        """The width inside a card."""
        return self.right - self.left

    def lines(
        self, lines: Sequence[str], x: float, size: float, fill: str, bold: bool, anchor: Anchor = "start"
    ) -> float:
        """Draw lines from here down, without moving; return where they end."""
        y = self.y
        for line in lines:
            self.shapes.append(Text(x, y + ASCENT * size, line, size, fill, bold, anchor))
            y += LEADING * size
        return y

    def paragraph(self, text: str, x: float, width: float, size: float, fill: str = INK, bold: bool = False) -> None:
        """Draw a text, wrapped to the width, and move below it."""
        self.y = self.lines(wrap(text, width, size, bold), x, size, fill, bold)


def _draw_share(sheet: _Sheet, words: str, share: float) -> None:
    sheet.paragraph(words, sheet.left, sheet.inner, MIDDLE, bold=True)
    _draw_bar(sheet, share, 10)
    sheet.y += GAP


def _draw_bar(sheet: _Sheet, part: float, height: float) -> None:
    filled = max(2.0, part * sheet.inner)
    sheet.shapes.append(Rectangle(sheet.left, sheet.y + 3, sheet.inner, height, TRACK))
    sheet.shapes.append(Rectangle(sheet.left, sheet.y + 3, filled, height, BLUE))
    sheet.y += height + 6


def _draw_way(sheet: _Sheet, trajectory: Trajectory, located: _Map | None) -> None:
    """Draw the path as stops along a line, and the map beside or below it."""
    path = _shortened(path_words(trajectory))
    if located is None or not located.way(trajectory):
        _draw_stops(sheet, path, sheet.inner)
    elif located.beside:
        top = sheet.y
        _draw_stops(sheet, path, sheet.inner - located.width - 2 * GAP)
        below, sheet.y = sheet.y, top
        located.draw(sheet, trajectory, sheet.right - located.width)
        sheet.y = max(below, sheet.y)
    else:
        _draw_stops(sheet, path, sheet.inner)
        sheet.y += GAP / 2
        located.draw(sheet, trajectory, sheet.left)
    sheet.y += GAP / 2


def _draw_stops(sheet: _Sheet, path: Sequence[str], room: float) -> None:
    if len(path) == 1:
        sheet.paragraph(path[0], sheet.left, room, MIDDLE)
        return
    middles, behind = [], len(sheet.shapes)
    for step in path:
        middles.append((sheet.left + 5, sheet.y + 0.6 * MIDDLE))
        sheet.paragraph(step, sheet.left + 20, room - 20, MIDDLE)
        sheet.y += 3
    stops = [Circle(x, y, 4, CARD if i < len(path) - 1 else BLUE, BLUE) for i, (x, y) in enumerate(middles)]
    sheet.shapes[behind:behind] = [Line((middles[0], middles[-1]), BLUE, 2), *stops]


def _cell_rooms(lottery: Lottery, outcomes: Sequence[Sequence[str]], inner: float) -> list[float]:
    """Return the widths of the columns that names and amounts are drawn in: all in one row if there is room."""
    needed = [
        max(text_width(objective.name, SMALL), *(text_width(amounts[j], MIDDLE) for amounts in outcomes)) + 2 * GAP
        for j, objective in enumerate(lottery.objectives)
    ]
    spare = inner - sum(needed)
    if spare >= 0:
        return [width + spare / len(needed) for width in needed]
    most = max(1, min(len(needed), int(inner // max(needed))))
    rows = -(-len(needed) // most)
    columns = -(-len(needed) // rows)
    return [inner / columns] * columns


def _draw_cells(sheet: _Sheet, names: Sequence[str], amounts: Sequence[str], rooms: Sequence[float]) -> None:
    """Draw names with their amounts below, side by side in columns of these widths."""
    sheet.shapes.append(Line(((sheet.left, sheet.y), (sheet.right, sheet.y)), EDGE))
    sheet.y += GAP / 2
    for start in range(0, len(names), len(rooms)):
        top = bottom = sheet.y
        x = sheet.left
        for room, name, amount in zip(rooms, names[start:], amounts[start:], strict=False):
            sheet.y = top
            sheet.paragraph(name, x, room - GAP, SMALL, QUIET)
            sheet.paragraph(amount, x, room - GAP, MIDDLE)
            bottom, x = max(bottom, sheet.y), x + room
        sheet.y = bottom + 2


def _draw_average(sheet: _Sheet, lottery: Lottery) -> None:
    """Draw the average of each objective as a bar between the worst and the best that happens."""
    outcomes, average = outcome_words(lottery)
    sheet.paragraph(
        "What it comes to" if is_certain(lottery) else "On average", sheet.left, sheet.inner, LARGE, bold=True
    )
    if len(outcomes) > 1:
        sheet.paragraph("The fuller a bar, the nearer to the best above.", sheet.left, sheet.inner, SMALL, QUIET)
    for j, objective in enumerate(lottery.objectives):
        sheet.y += GAP
        amounts = wrap(average[j], 0.55 * sheet.inner, MIDDLE, bold=True)
        taken = max(text_width(line, MIDDLE, bold=True) for line in amounts)
        name = wrap(objective.name, sheet.inner - taken - GAP, MIDDLE, bold=True)
        below = sheet.lines(name, sheet.left, MIDDLE, INK, True)
        sheet.y = max(below, sheet.lines(amounts, sheet.right, MIDDLE, INK, True, "end"))
        gains = objective.sign * lottery.outcomes[:, j]
        gains = gains / (np.abs(gains).max() or 1.0)
        worst, best = int(gains.argmin()), int(gains.argmax())
        span = gains[best] - gains[worst]
        if not span > NOISE:
            if len(outcomes) > 1:
                sheet.paragraph("the same every time", sheet.left, sheet.inner, SMALL, QUIET)
            continue
        _draw_bar(sheet, float(lottery.weights @ ((gains - gains[worst]) / span)), 8)
        _draw_ends(sheet, f"at worst {outcomes[worst][j]}", f"at best {outcomes[best][j]}")


def _draw_ends(sheet: _Sheet, left: str, right: str) -> None:
    if text_width(left, SMALL) + GAP + text_width(right, SMALL) <= sheet.inner:
        sheet.lines([left], sheet.left, SMALL, QUIET, False)
        sheet.y = sheet.lines([right], sheet.right, SMALL, QUIET, False, "end")
    else:
        sheet.paragraph(left, sheet.left, sheet.inner, SMALL, QUIET)
        sheet.paragraph(right, sheet.left, sheet.inner, SMALL, QUIET)


# --- the map ---------------------------------------------------------------------------------------------------------


class _Map:
    """Where everything is: the same little map for each trajectory of a lottery."""

    def __init__(self, places: Places, room: float) -> None:
        self.beside = room >= 440
        self.width = min(0.38 * room, 240.0) if self.beside else min(room, 340.0)
        points = np.array(list(places.values()), dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != 2 or not np.isfinite(points).all():
            raise ArgumentError("a place is two finite numbers, x and y, for each state")
        unit = max(float(np.abs(points).max()), np.finfo(float).tiny)
        points = points / unit  # so that no difference overflows
        low, high = points.min(axis=0), points.max(axis=0)
        span = np.maximum(high - low, 1e-9)
        edge = 14.0
        across = self.width - 2 * edge
        zoom = min(across / span[0], 1.2 * across / span[1])
        self.height = max(float(zoom * span[1]), 24.0) + 2 * edge
        centre = (low + high) / 2
        at = (points - centre) * zoom * (1, -1) + (self.width / 2, self.height / 2)
        self.at = {state: (float(x), float(y)) for state, (x, y) in zip(places, at, strict=True)}
        # Many states are in one place, and dots nearer than three pixels look like one.
        self.dots = sorted({(round(x / 3) * 3.0, round(y / 3) * 3.0): (x, y) for x, y in self.at.values()}.values())

    def way(self, trajectory: Trajectory) -> list[tuple[float, float]]:
        """Return the places a trajectory passes, each once for as long as it stays there."""
        found = [self.at[state] for state in trajectory.states if state in self.at]
        return [place for i, place in enumerate(found) if i == 0 or place != found[i - 1]]

    def draw(self, sheet: _Sheet, trajectory: Trajectory, left: float) -> None:
        """Draw the map here, all places as dots and the way as a line, and move below it."""
        top = sheet.y
        sheet.shapes.append(Rectangle(left, top, self.width, self.height, PAPER, EDGE))
        sheet.shapes += [Circle(left + x, top + y, 2, "#9a9a9a") for x, y in self.dots]
        way = [(left + x, top + y) for x, y in self.way(trajectory)]
        if len(way) > 1:
            sheet.shapes.append(Line(tuple(way), BLUE, 2.5))
            sheet.shapes += [Circle(x, y, 3, BLUE) for x, y in way]
        begins, ends = trajectory.states[0] in self.at, trajectory.states[-1] in self.at
        sheet.shapes += [_start(*way[0])] * begins + [_end(*way[-1])] * ends
        sheet.y += self.height + 4
        middle, below = sheet.y + 0.6 * SMALL, sheet.y
        if begins:
            sheet.shapes.append(_start(left + 7, middle))
            below = sheet.lines(["start"], left + 18, SMALL, QUIET, False)
        if ends:
            sheet.shapes.append(_end(left + 77, middle))
            below = sheet.lines(["end"], left + 86, SMALL, QUIET, False)
        sheet.y = below


def _start(x: float, y: float) -> Circle:
    return Circle(x, y, 6, CARD, GREEN)


def _end(x: float, y: float) -> Rectangle:
    return Rectangle(x - 4, y - 4, 8, 8, ORANGE)
