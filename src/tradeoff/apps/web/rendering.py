"""Pages from templates, and drawings of options.

What is drawn of an option depends on the problem and not on who looks at it, so it is drawn once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, cast

import jinja2
import numpy as np

from tradeoff.model import Lottery, Option, Plan
from tradeoff.presentation import svg
from tradeoff.presentation.cards import Card
from tradeoff.presentation.maps import map_layout
from tradeoff.presentation.report import TEMPLATES, drawing_globals
from tradeoff.presentation.stories import heaviest_first
from tradeoff.presentation.text import LONGEST, clipped
from tradeoff.problem import Presentable

STATIC = (Path(__file__).resolve().parent / "static", svg.STATIC)

PROBLEMS, LOTTERIES = 16, 2048  # problems, and lotteries of each, that are cached
STEPS = 7  # of a path that are told at once; the middle of a longer one unfolds
FRAMES = 8  # pictures of a path

Picture = Callable[[str], str]  # from a state to the address of its picture


# --- templates -------------------------------------------------------------------------------------------------------


@cache
def environment() -> jinja2.Environment:
    """Return the environment of the templates: everything is escaped, and a missing value is an error."""
    rooms = jinja2.ChoiceLoader([jinja2.PackageLoader(room) for room in ("tradeoff.apps.web", TEMPLATES)])
    made = jinja2.Environment(
        loader=rooms, autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, auto_reload=False,
    )  # fmt: skip
    made.globals |= {
        "asset": asset,
        "bar": svg.bar,
        "range_bar": svg.range_bar,
        "icon": svg.icon,
        **drawing_globals(),
    }
    made.filters |= {"clip": _clip, "parts": _parts, "evenly": evenly}
    return made


def render(template: str, **values: Any) -> str:
    """Return the page that a template makes of these values."""
    return environment().get_template(template).render(values)


@cache
def asset(name: str) -> str:
    """Return the address of a static file; it changes with the file, so that browsers may keep it for long."""
    found = next(folder / name for folder in STATIC if (folder / name).exists())
    digest = hashlib.sha256(found.read_bytes()).hexdigest()[:12]
    return f"/static/{name}?v={digest}"


def _clip(text: object, longest: int = LONGEST) -> str:
    return clipped(str(text), longest)


def _parts(steps: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
    """Return the beginning, the middle, which unfolds on demand, and the end of a path."""
    return (steps[:4], steps[4:-2], steps[-2:]) if len(steps) > STEPS + 1 else (steps, (), ())


def evenly(states: Sequence[str], most: int = FRAMES) -> tuple[str, ...]:
    """Return at most so many of the states: the first, the last, and some evenly between; repeats count once."""
    changed = [state for i, state in enumerate(states) if i == 0 or state != states[i - 1]]
    if len(changed) <= most:
        return tuple(changed)
    return tuple(changed[round(i * (len(changed) - 1) / (most - 1))] for i in range(most))


# --- drawings --------------------------------------------------------------------------------------------------------


class RenderCache:
    """What has been drawn of one problem so far: its map and lotteries."""

    def __init__(self, problem: Presentable) -> None:
        self.problem = problem
        self.layout = map_layout(problem)
        self.map_defs = None if self.layout is None else svg.map_defs(self.layout)
        self._lottery = lru_cache(LOTTERIES)(self._shown)

    def lottery(self, option: Option) -> Lottery:
        """Return the option as trajectories, the heaviest first."""
        return self._lottery(option.value.tobytes(), option.plan)

    def _shown(self, value: bytes, plan: Plan) -> Lottery:
        return heaviest_first(self.problem.show(Option(np.frombuffer(value), plan)))

    def drawings(self, card: Card) -> dict[str, svg.Svg | None]:
        """Return the drawings of a card: how often each story happens, and where they lead."""
        words = clipped(card.summary, 20 * LONGEST)
        array = None if card.total is None else svg.icon_array(card.counts, card.total, f"How often: {words}")
        paths = [story.states for story in card.stories]
        route = None if self.layout is None else svg.map_of(self.layout, paths, f"Where it goes: {words}")
        return {"array": array, "map": route}

    def compared(self, one: Card, other: Card) -> tuple[svg.Svg, str] | None:
        """Return one map of both sides of a question, and how it is to be read."""
        sides = [[story.states for story in card.stories] for card in (one, other)]
        return None if self.layout is None else svg.compared_map(self.layout, *sides)


def render_cache(problem: Presentable) -> RenderCache:
    """Return the cache of a problem, the same every time."""
    return _render_cache(cast(Hashable, problem))


@lru_cache(PROBLEMS)
def _render_cache(problem: Any) -> RenderCache:
    return RenderCache(problem)
