"""An alternative as a card, and two of them compared objective by objective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from tradeoff.keeping import Kept
from tradeoff.model import Alternative, Lottery, Objective
from tradeoff.presentation.numbers import amount, amount_pair, gap, share_counts
from tradeoff.presentation.plans import plan_names
from tradeoff.presentation.problems import description, goal, labels
from tradeoff.presentation.risk import Risk, basis, risks
from tradeoff.presentation.sentences import question_lead
from tradeoff.presentation.stories import Story, are_frequencies, common_total, is_certain, stories
from tradeoff.presentation.text import one_line
from tradeoff.problem import Presentable
from tradeoff.problems.curves import CurvedCatalogue

Letter: TypeAlias = Literal["A", "B", ""]

CARDS_KEPT = 500  # of a problem
SAME = 1e-9  # of the scale or of the amounts: a difference that is only rounding


@dataclass(frozen=True)
class Card:
    """One alternative: some of the ways things can go, and what really happens how often."""

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


@dataclass(frozen=True)
class ComparisonRow:
    """One objective on both sides."""

    name: str
    goal: str
    amounts: tuple[str, str]
    values: tuple[float, float]
    scale: tuple[float, float]
    better: Letter  # "" if both are the same
    gap: str  # "12 min"
    word: str  # "less" or "more", whichever is better
    part: float  # how large the gap is, as a part of everything attainable
    description: str = ""  # what the objective is, where the problem says so

    @property
    def difference(self) -> str:
        """The difference seen from the better side: "12 min less"."""
        return f"{self.gap} {self.word}"


@dataclass(frozen=True)
class LabelRow:
    """Something else that is known of both sides, which plays no part in what is asked: the origin of a coffee."""

    name: str
    texts: tuple[str, str]

    @property
    def differs(self) -> bool:
        """Whether the two sides differ in it."""
        return self.texts[0] != self.texts[1]


@dataclass(frozen=True)
class Pair:
    """A question as it is shown: A on the left, B on the right."""

    names: tuple[str, str]  # what A and B are called
    lead: str  # how the stories are to be read
    average: str  # what the amounts are: "on average", or "" where nothing is left to chance
    cards: tuple[Card, Card]
    rows: tuple[ComparisonRow, ...]
    labels: tuple[LabelRow, ...]

    @property
    def differing(self) -> list[ComparisonRow]:
        """The objectives that the two sides differ on."""
        return [row for row in self.rows if row.better]

    @property
    def same(self) -> list[tuple[str, str]]:
        """What is the same on both sides: objectives with their amounts, then labels with their texts."""
        found = [(row.name, row.amounts[0]) for row in self.rows if not row.better]
        return found + [(row.name, row.texts[0]) for row in self.labels if not row.differs]

    @property
    def other(self) -> list[LabelRow]:
        """The labels that the two sides differ in."""
        return [row for row in self.labels if row.differs]


_cards: WeakKeyDictionary[Presentable, Kept[tuple[int, int | None], tuple[Lottery, Card]]] = WeakKeyDictionary()


def card(problem: Presentable, lottery: Lottery, total: int | None) -> Card:
    """Return the card of a lottery; ``total`` is what shares are counted out of, None if nothing is shared out."""
    # A plan stands beside many others. The lottery is kept with its card, so that no other one has its identity.
    cards = _cards.setdefault(problem, Kept(CARDS_KEPT))
    return cards.once((id(lottery), total), lambda: (lottery, _card(problem, lottery, total)))[1]


def _card(problem: Presentable, lottery: Lottery, total: int | None) -> Card:
    told = tuple(
        replace(story, labels=labels(problem, story.states[0])) for story in stories(lottery, total, problem.wording)
    )
    only = lottery.trajectories[0] if len(lottery.trajectories) == 1 else None
    title = one_line(only.states[0]) if only is not None and len(only.states) == 1 else ""
    often = total is not None and are_frequencies(lottery)
    counts = tuple(share_counts(lottery.weights, total)) if often and total is not None else ()
    return Card(title, told, counts, total if often else None, risks(lottery), basis(lottery))


def pair(problem: Presentable, left: Alternative, right: Alternative, lotteries: tuple[Lottery, Lottery]) -> Pair:
    """Return two alternatives side by side; ``lotteries`` are what the problem shows of them, heaviest first."""
    total = common_total(*lotteries)
    one, other = (card(problem, lottery, total) for lottery in lotteries)
    average = "" if all(map(is_certain, lotteries)) else "on average"
    return Pair(
        names=plan_names(problem, left, right),
        lead=question_lead(*lotteries),
        average=average,
        cards=(one, other),
        rows=comparison(problem, left, right),
        labels=_labels(one, other),
    )


def _labels(one: Card, other: Card) -> tuple[LabelRow, ...]:
    """Return what else is known of two items."""
    if not (one.title and other.title):
        return ()
    mine, theirs = dict(one.stories[0].labels), dict(other.stories[0].labels)
    return tuple(LabelRow(key, (mine.get(key, ""), theirs.get(key, ""))) for key in {**mine, **theirs})


# --- amounts ---------------------------------------------------------------------------------------------------------


def amounts(problem: Presentable, alternative: Alternative) -> list[AmountRow]:
    """Return what an alternative comes to on average, objective by objective."""
    values = problem.outcome(alternative.value).tolist()
    return [
        AmountRow(one_line(o.name), goal(o), amount(o, value), value, _scale(problem, j, value))
        for j, (o, value) in enumerate(zip(problem.objectives, values, strict=True))
    ]


def comparison(problem: Presentable, left: Alternative, right: Alternative) -> tuple[ComparisonRow, ...]:
    """Return how two alternatives compare on average, objective by objective."""
    problem, left, right = _as_read(problem, left, right)
    sides = zip(problem.outcome(left.value).tolist(), problem.outcome(right.value).tolist(), strict=True)
    return tuple(_compared(problem, j, values) for j, values in enumerate(sides))


def _as_read(problem: Presentable, *pair: Alternative) -> tuple[Presentable, Alternative, Alternative]:
    """Return two alternatives in the amounts that people know, where a problem weighs pieces of them."""
    left, right = pair
    if isinstance(problem, CurvedCatalogue):
        one, other = problem.as_read(left), problem.as_read(right)
        if one is not None and other is not None:
            return problem.uncurved, one, other
    return problem, left, right


def _compared(problem: Presentable, j: int, values: tuple[float, float]) -> ComparisonRow:
    o, size = problem.objectives[j], float(abs(problem.scale[j]))
    return ComparisonRow(
        name=one_line(o.name),
        goal=goal(o),
        amounts=amount_pair(o, *values),
        values=values,
        scale=_scale(problem, j, *values),
        better=_better(o, *values, size),
        gap=gap(o, *values),
        word="more" if o.goal == "max" else "less",
        part=abs(values[0] - values[1]) / (size or 1.0),
        description=description(o),
    )


def _better(objective: Objective, left: float, right: float, scale: float) -> Letter:
    gains = (right - left) * objective.sign
    if abs(gains) <= SAME * max(abs(left), abs(right), scale):
        return ""
    return "B" if gains > 0 else "A"


def _scale(problem: Presentable, j: int, *values: float) -> tuple[float, float]:
    ends = [float(problem.nadir[j]), float(problem.ideal[j]), 0.0, *values]
    return min(ends), max(ends)


def advantages(rows: Sequence[ComparisonRow]) -> list[str]:
    """Return what is better about each side, in a line each.

    >>> row = ComparisonRow("time", "less is better", ("40 min", "60 min"), (40, 60), (0, 60), "A", "20 min", "less", 0.3)
    >>> advantages([row])
    ['A better: time 20 min']
    """
    found = {letter: [f"{row.name} {row.gap}" for row in rows if row.better == letter] for letter in "AB"}
    return [f"{letter} better: {', '.join(better)}" for letter, better in found.items() if better]


def changes(problem: Presentable, before: Alternative, after: Alternative, *, least: float = 1e-6) -> list[str]:
    """Return by how much each objective changes; "" where it is less than this part of the objective's range."""
    here, there = problem.outcome(before.value).tolist(), problem.outcome(after.value).tolist()
    sizes = np.abs(problem.scale).tolist()
    return [
        f"{gap(o, a, b)} {'more' if b > a else 'less'}" if abs(b - a) > least * size else ""
        for o, a, b, size in zip(problem.objectives, here, there, sizes, strict=True)
    ]
