"""An option as a card: its stories, its amounts, and what another one changes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tradeoff.model import Lottery, Option
from tradeoff.presentation.memo import ProblemCache
from tradeoff.presentation.numbers import amount, gap, share_counts
from tradeoff.presentation.problems import goal, labels
from tradeoff.presentation.risk import Risk, basis, risks
from tradeoff.presentation.stories import Story, are_frequencies, stories
from tradeoff.presentation.text import one_line
from tradeoff.problem import Presentable

CARDS = 500  # in the cache of a problem
SAME = 1e-9  # of the scale or of the amounts: a difference that is only rounding


@dataclass(frozen=True)
class Card:
    """One option: some of the ways things can go, and what really happens how often."""

    title: str  # what it is called, where one name says it all
    stories: tuple[Story, ...]
    counts: tuple[int, ...]  # how many of the total times each story happens; none where that is not so simple
    total: int | None
    risks: tuple[Risk, ...] = ()  # how each objective really comes out; none where nothing is left to chance
    basis: str = ""  # what the risks rest on

    @property
    def summary(self) -> str:
        """All stories in one line, for screen readers."""
        return "; ".join(story.summary for story in self.stories)


@dataclass(frozen=True)
class AmountRow:
    """One objective and its amount; ``scale`` is the range of everything attainable, with 0 in it."""

    name: str
    goal: str
    amount: str
    value: float
    scale: tuple[float, float]


_cards: ProblemCache[tuple[Lottery, Card]] = ProblemCache(CARDS)


def card(problem: Presentable, lottery: Lottery, total: int | None) -> Card:
    """Return the card of a lottery; ``total`` is what shares are counted out of, None if nothing is shared out."""
    # The lottery is cached with its card, so that no other one has its identity.
    return _cards.get(problem, (id(lottery), total), lambda: (lottery, _card(problem, lottery, total)))[1]


def _card(problem: Presentable, lottery: Lottery, total: int | None) -> Card:
    told = tuple(
        replace(story, labels=labels(problem, story.states[0])) for story in stories(lottery, total, problem.wording)
    )
    only = lottery.trajectories[0] if len(lottery.trajectories) == 1 else None
    title = one_line(only.states[0]) if only is not None and len(only.states) == 1 else ""
    often = total is not None and are_frequencies(lottery)
    counts = tuple(share_counts(lottery.weights, total)) if often and total is not None else ()
    return Card(title, told, counts, total if often else None, risks(lottery), basis(lottery))


# --- amounts ---------------------------------------------------------------------------------------------------------


def amounts(problem: Presentable, option: Option) -> list[AmountRow]:
    """Return what an option comes to on average, objective by objective."""
    option, problem = problem.as_read(option), problem.original
    values = problem.outcome(option.value).tolist()
    return [
        AmountRow(one_line(o.name), goal(o), amount(o, value), value, range_of(problem, j, value))
        for j, (o, value) in enumerate(zip(problem.objectives, values, strict=True))
    ]


def range_of(problem: Presentable, j: int, *values: float) -> tuple[float, float]:
    """Return the range of everything attainable of an objective, with 0 and some values in it."""
    ends = [float(problem.nadir[j]), float(problem.ideal[j]), 0.0, *values]
    return min(ends), max(ends)


def changes(problem: Presentable, before: Option, after: Option, *, least: float = 1e-6) -> list[str]:
    """Return by how much each objective changes; "" where it is less than this part of the objective's range."""
    before, after, problem = problem.as_read(before), problem.as_read(after), problem.original
    here, there = problem.outcome(before.value).tolist(), problem.outcome(after.value).tolist()
    sizes = np.abs(problem.scale).tolist()
    return [
        f"{gap(o, a, b)} {o.comparative((b - a) * o.sign)}" if abs(b - a) > least * size else ""
        for o, a, b, size in zip(problem.objectives, here, there, sizes, strict=True)
    ]
