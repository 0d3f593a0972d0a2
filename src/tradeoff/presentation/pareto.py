"""The picture of all options: two objectives, what is beaten in everything, what is recommended and its runner-up."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from tradeoff.decisions import Preferences
from tradeoff.decisions.what_if import shares_of
from tradeoff.errors import ArgumentError
from tradeoff.model import Matrix, Objective, Option, Recommendation, Vector
from tradeoff.presentation import svg
from tradeoff.presentation.numbers import amount, amounts_together, counted
from tradeoff.presentation.plans import names_beside
from tradeoff.presentation.svg import number, text
from tradeoff.presentation.text import clipped, one_line, text_width
from tradeoff.problem import Presentable, pieces_of
from tradeoff.problems.dominance import undominated
from tradeoff.strategies.solutions import solutions_of

WIDTH, HEIGHT = 520.0, 380.0  # letters are still read at 360 pixels
LEFT, RIGHT, TOP, BOTTOM = 74.0, 16.0, 30.0, 58.0
LETTERS, TICK_LETTERS = 14.0, 13.0
FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', Helvetica, Arial, sans-serif"
TICKS = 5
PLANS = 400  # weights for which the plans of a model are drawn
FEW, COARSE = 3_000, 2.0  # dots; where there are more, those within so many pixels are one
NAME = 32  # characters
BEATEN = "another one is better, and nowhere worse"


@dataclass(frozen=True)
class Picture:
    """A drawing, what it shows in words, and the key to its marks."""

    drawing: svg.Svg
    words: str
    key: tuple[tuple[str, svg.Svg], ...]


@dataclass(frozen=True)
class _Axis:
    """One objective as an axis, better ends to the right and up."""

    objective: Objective
    low: float
    high: float
    start: float  # where the worse end is drawn
    length: float

    def at(self, values: Vector) -> Vector:
        share = (values - self.low) / (self.high - self.low)
        result: Vector = self.start + self.length * (share if self.objective.goal == "max" else 1 - share)
        return result


def pareto_picture(
    problem: Presentable, recommendation: Recommendation | None = None, axes: Sequence[str] = ()
) -> Picture | None:
    """Return all options over two objectives; None where fewer than two can be changed.

    The objectives are the ``axes`` given by name, or the two that matter most in a recommendation. A model has too many
    plans to show: drawn are those that are best for some of many weights.
    """
    weights = None if recommendation is None else shares_of(recommendation.weights @ pieces_of(problem))
    special = [] if recommendation is None else [recommendation.option, recommendation.runner_up]
    drawn_apart = [problem.as_read(one) for one in special if one is not None]
    problem = problem.original
    chosen = _axes(problem, weights, axes)
    if chosen is None:
        return None
    values, beaten = _points(problem)
    marked = [(one, problem.outcome(one.value)) for one in drawn_apart]
    everything = np.vstack([values, beaten, *(outcome[None, :] for _, outcome in marked)])
    across, up = (
        _axis(problem.objectives[j], everything[:, j], start, length)
        for j, start, length in zip(
            chosen, (LEFT, HEIGHT - BOTTOM), (WIDTH - LEFT - RIGHT, TOP + BOTTOM - HEIGHT), strict=True
        )
    )

    def placed(points: Matrix) -> Matrix:
        return np.stack([across.at(points[:, chosen[0]]), up.at(points[:, chosen[1]])], axis=1)

    drawn = [_frame(across, up)]
    if len(problem.objectives) == 2 and problem.items is not None:
        edge = placed(values[np.argsort(values[:, chosen[0]], kind="stable")])
        drawn.append(f'<path class="frontier" d="M{"L".join(f"{number(x)} {number(y)}" for x, y in edge.tolist())}"/>')
    for name, points in (("beaten", placed(beaten)), ("option", placed(values))):
        if len(points):
            drawn.append(f'<path class="{name}" d="{_dots(points)}"/>')
    drawn += _marks(problem, marked, placed)
    words = _words(problem, across.objective, up.objective, len(values), len(beaten), marked)
    return Picture(svg.svg("".join(drawn), WIDTH, HEIGHT, "pareto", words), words, _key(len(beaten), len(marked)))


def _axes(problem: Presentable, weights: Vector | None, names: Sequence[str]) -> tuple[int, int] | None:
    known = [o.name for o in problem.objectives]
    if names:
        for name in names:
            if name not in known:
                raise ArgumentError(f"there is no objective {name!r:.80}; there are {', '.join(known)}")
        if len(set(names)) != 2 or len(names) != 2:
            raise ArgumentError(f"a picture has two different axes; {', '.join(names)} are given")
        return known.index(names[0]), known.index(names[1])
    able = [j for j, matters in enumerate(problem.matters) if matters]
    if len(able) < 2:
        return None
    weights = np.zeros(len(known)) if weights is None else weights
    first, second = sorted(able, key=lambda j: -weights[j])[:2]
    return first, second


def _points(problem: Presentable) -> tuple[Matrix, Matrix]:
    """Return what the options come to, and what those come to that another one beats in everything."""
    items = problem.items
    if items is not None:
        kept = undominated(items.values, problem.objectives)
        left_out = np.array(list(items.beaten.values())).reshape(len(items.beaten), len(problem.objectives))
        return items.values[kept], np.vstack([items.values[~kept], left_out])
    relevant = np.flatnonzero(np.asarray(problem.matters))
    anyone = Preferences(len(problem.objectives), relevant, ())
    weights = np.vstack([anyone.on_all(np.eye(anyone.d)), anyone.spread(PLANS)])
    found = {np.round(one.value, 9).tobytes(): one for one in solutions_of(problem).best(weights)}
    return np.array([problem.outcome(one.value) for one in found.values()]), np.zeros((0, len(problem.objectives)))


def _axis(objective: Objective, values: Vector, start: float, length: float) -> _Axis:
    low, high = float(values.min()), float(values.max())
    room = 0.06 * (high - low) or max(abs(high), 1.0) * 0.1
    return _Axis(objective, low - room, high + room, start, length)


def _frame(across: _Axis, up: _Axis) -> str:
    """Return the two axes with ticks, names and which way is better."""
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = [f'<path class="axis" d="M{number(LEFT)} {number(TOP)}V{number(bottom)}H{number(right)}" fill="none"/>']
    for axis, is_across in ((across, True), (up, False)):
        values = ticks(axis.low, axis.high)
        plain = Objective(axis.objective.name, "", axis.objective.goal)
        for value, words in zip(values, amounts_together(plain, values), strict=True):
            at = number(float(axis.at(np.array([value]))[0]))
            x, y, anchor = (at, number(bottom + 18), "middle") if is_across else (number(LEFT - 6), at, "end")
            line = f"M{at} {number(bottom)}v4" if is_across else f"M{number(LEFT)} {at}h-4"
            shift = "" if is_across else ' dy="4"'
            parts.append(
                f'<path class="axis" d="{line}"/><text class="names" font-size="{number(TICK_LETTERS)}" x="{x}" y="{y}"{shift} '
                f'text-anchor="{anchor}">{text(words)}</text>'
            )
    parts.append(_said(_title(across.objective, "→"), right, bottom + 42, "end"))
    parts.append(_said(_title(up.objective, "↑"), 4.0, 16.0, "start"))
    return "".join(parts)


def _title(objective: Objective, arrow: str) -> str:
    unit = f" in {one_line(objective.unit)}" if objective.unit else ""
    return f"{clipped(objective.name, NAME)}{clipped(unit, NAME)}, better {arrow}"


def _said(words: str, x: float, y: float, anchor: str, name: str = "names passed") -> str:
    return (
        f'<text class="{name}" font-size="{number(LETTERS)}" x="{number(x)}" y="{number(y)}" '
        f'text-anchor="{anchor}">{text(words)}</text>'
    )


def ticks(low: float, high: float, most: int = TICKS) -> list[float]:
    """Return round numbers between two ends, at most so many.

    >>> ticks(430.0, 1720.0), ticks(0.9, 2.2)
    ([500.0, 1000.0, 1500.0], [1.0, 1.5, 2.0])
    """
    span = high - low
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(power * part for part in (1, 2, 5, 10, 20) if span / (power * part) <= most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12) + 0.0 for i in range(first, last + 1)]


def _dots(points: Matrix) -> str:
    """Return dots as one path; those that would be drawn over each other are one."""
    digits = np.round(points, 1) if len(points) <= FEW else COARSE * np.round(points / COARSE)
    return "".join(f"M{number(x)} {number(y)}h0" for x, y in np.unique(digits, axis=0).tolist())


def _marks(problem: Presentable, marked: list[tuple[Option, Vector]], placed: object) -> list[str]:
    """Return what is recommended and its runner-up, with their names beside them where these do not run into each other."""
    assert callable(placed)
    parts: list[str] = []
    names = _names(problem, [one for one, _ in marked])
    places = [placed(outcome[None, :])[0].tolist() for _, outcome in marked]
    for i in reversed(range(len(marked))):  # what is recommended on top
        x, y = places[i]
        if i:
            parts.append(
                f'<path class="second" d="M{number(x)} {number(y - 8)}L{number(x + 8)} {number(y)}L{number(x)} '
                f'{number(y + 8)}L{number(x - 8)} {number(y)}Z"/>'
            )
        else:
            parts.append(f'<circle class="chosen" cx="{number(x)}" cy="{number(y)}" r="8"/>')
        wide = text_width(names[i], LETTERS, bold=True)
        leftwards = x + 14 + wide > WIDTH - 4
        near = (
            len(places) == 2 and abs(places[0][1] - places[1][1]) < 18 and abs(places[0][0] - places[1][0]) < wide + 30
        )
        lower = near and (y > places[1 - i][1] or (y == places[1 - i][1] and i == 1))
        shift = 4.0 + (16.0 if lower else -12.0 if near else 0.0)
        anchor, at = ("end", max(x - 14, min(wide, WIDTH) + 2)) if leftwards else ("start", x + 14)
        parts.append(_said(names[i], at, min(max(y + shift, 14.0), HEIGHT - BOTTOM - 4), anchor))
    return parts


def _names(problem: Presentable, options: Sequence[Option], longest: int = NAME) -> list[str]:
    return [clipped(name, longest) for name in names_beside(problem, options)]


def _key(beaten: int, marked: int) -> tuple[tuple[str, svg.Svg], ...]:
    """Return what each mark means."""
    made = [
        ("recommended", '<circle class="chosen" cx="8" cy="8" r="6"/>', marked > 0),
        ("runner-up", '<path class="second" d="M8 2L14 8L8 14L2 8Z"/>', marked > 1),
        ("the others", '<path class="option" d="M8 8h0"/>', True),
        (BEATEN, '<path class="beaten" d="M8 8h0"/>', beaten > 0),
    ]  # fmt: skip
    return tuple((words, svg.svg(content, 16, 16, "key")) for words, content, there in made if there)


def _words(
    problem: Presentable,
    across: Objective,
    up: Objective,
    options: int,
    beaten: int,
    marked: list[tuple[Option, Vector]],
) -> str:
    thing = "plan" if problem.items is None else "option"
    said = [f"Drawn: {clipped(across.name)} and {clipped(up.name)} of {counted(options, thing)}"]
    if beaten:
        said[0] += f" and of {beaten:,} that another one beats"
    shown = [problem.objectives.index(across), problem.objectives.index(up)]
    for (_, outcome), name, role in zip(
        marked, _names(problem, [a for a, _ in marked], 3 * NAME), ("Recommended", "Runner-up"), strict=False
    ):
        told = ", ".join(
            f"{clipped(problem.objectives[j].name)} {amount(problem.objectives[j], float(outcome[j]))}" for j in shown
        )
        said.append(f"{role}: {name} ({told})")
    rest = [clipped(o.name) for o in problem.objectives if o not in (across, up)]
    if rest:
        said.append(f"Not drawn: {', '.join(rest)}")
    return ". ".join(said) + "."


def pareto_svg(problem: Presentable, picture: Picture) -> str:
    """Return the text of an SVG file that holds the picture, its title and the key to its marks."""
    below = HEIGHT + 40
    parts = [picture.drawing.replace("<svg ", f'<svg y="34" width="{number(WIDTH)}" height="{number(HEIGHT)}" ', 1)]
    x, y = 14.0, below + 8
    for words, mark in picture.key:
        wide = 26 + text_width(words, LETTERS)
        if x + wide > WIDTH and x > 14:
            x, y = 14.0, y + 22
        parts.append(mark.replace("<svg ", f'<svg x="{number(x)}" y="{number(y - 12)}" width="16" height="16" ', 1))
        parts.append(_said(words, x + 22, y, "start", "soft"))
        x += wide + 16
    size = f'width="{number(WIDTH)}" height="{number(y + 16)}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {number(WIDTH)} {number(y + 16)}" role="img" '
        f'font-family="{FONTS}">\n<title>{text(problem.title)}</title>\n<desc>{text(picture.words)}</desc>\n'
        f'<style>{style()}</style>\n<rect class="paper" {size}/>\n'
        f'<text class="ink" x="14" y="24" font-size="16" font-weight="700">{text(clipped(problem.title, 56))}</text>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


@cache
def style() -> str:
    """Return the style sheet of drawings with its variables filled in: few programs other than browsers know them."""
    rules = (svg.STATIC / "drawing.css").read_text(encoding="utf-8")
    values = dict(re.findall(r"--([a-z0-9]+): (#[0-9a-f]+);", rules))
    rules = re.sub(r"(?s)/\*.*?\*/|:root \{.*?\}", "", rules).strip()
    rules += "\n.paper { fill: var(--card); } .ink { fill: var(--ink); } .soft { fill: var(--faint); }"
    return re.sub(r"var\(--([a-z0-9]+)\)", lambda variable: values[variable[1]], rules)
