"""A menu as it is shown: the alternatives side by side, numbered from 1, and what was said about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tradeoff.menus import QUESTIONS, Asks, Choice, Strength
from tradeoff.model import Alternative, Lottery
from tradeoff.presentation.cards import SAME, Card, amounts, card
from tradeoff.presentation.numbers import amounts_together
from tradeoff.presentation.plans import names_beside
from tradeoff.presentation.problems import description, goal
from tradeoff.presentation.sentences import WELCOME
from tradeoff.presentation.stories import common_total, is_certain
from tradeoff.presentation.text import one_line
from tradeoff.problem import Presentable

COUNTS = {3: "three", 4: "four"}
WELCOME_MENUS = "You are shown a few alternatives at a time. Say which is best for you, and which worst."
WELCOME_BEST = "You are shown a few alternatives at a time. Say which is best for you."


def welcome(questions: str | None) -> str:
    """Return what a person will be asked, before the first question."""
    size, asks = QUESTIONS.get(questions or "pairs", QUESTIONS["pairs"])
    return WELCOME if size == 2 else WELCOME_MENUS if asks == "best-worst" else WELCOME_BEST


def how_it_works(questions: str | None, what: str) -> list[str]:
    """Return what a person sees and says, in two sentences; ``what`` are "plans" or "alternatives"."""
    size, asks = QUESTIONS.get(questions or "pairs", QUESTIONS["pairs"])
    if size == 2:
        return [
            f"You see two {what}, A and B, and in what they differ. Everything else about them is a tap away.",
            "You say which is better for you or that they are about equal, or you skip. You can undo any answer.",
        ]
    said = "which is best for you and which worst" if asks == "best-worst" else "which is best for you"
    return [
        f"You see at most {COUNTS[size]} {what}, and in what they differ. Everything else about them is a tap away.",
        f"You say {said}, or that they are about equal, or you skip. You can undo any answer.",
    ]


def question_words(count: int, asks: Asks) -> str:
    """Return what is asked about a menu.

    >>> question_words(4, "best-worst")
    'Which of these four is best for you, and which worst?'
    """
    of = f"Which of these {COUNTS.get(count, count)} is best for you"
    return f"{of}, and which worst?" if asks == "best-worst" else f"{of}?"


@dataclass(frozen=True)
class MenuRow:
    """One objective of all alternatives."""

    name: str
    goal: str
    amounts: tuple[str, ...]
    values: tuple[float, ...]
    scale: tuple[float, float]
    best: frozenset[int]  # the places of the best amount; none where all are the same
    part: float  # how far the amounts are apart, as a part of everything attainable
    description: str = ""

    @property
    def differs(self) -> bool:
        """Whether the alternatives differ in it."""
        return bool(self.best)


@dataclass(frozen=True)
class MenuLabels:
    """Something else that is known of all alternatives, which plays no part in what is asked."""

    name: str
    texts: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether the alternatives differ in it."""
        return len(set(self.texts)) > 1


@dataclass(frozen=True)
class MenuTable:
    """A menu as it is shown."""

    question: str
    asks: Asks
    names: tuple[str, ...]
    average: str  # what the amounts are: "on average", or "" where nothing is left to chance
    cards: tuple[Card, ...]
    rows: tuple[MenuRow, ...]
    labels: tuple[MenuLabels, ...]

    @property
    def differing(self) -> list[MenuRow]:
        """The objectives in which the alternatives differ."""
        return [row for row in self.rows if row.differs]

    @property
    def other(self) -> list[MenuLabels]:
        """The labels in which the alternatives differ."""
        return [row for row in self.labels if row.differs]

    @property
    def same(self) -> list[tuple[str, str]]:
        """What is the same for all: objectives with their amounts, then labels with their texts."""
        found = [(row.name, row.amounts[0]) for row in self.rows if not row.differs]
        return found + [(row.name, row.texts[0]) for row in self.labels if not row.differs]


def menu_table(
    problem: Presentable, alternatives: Sequence[Alternative], asks: Asks, lotteries: Sequence[Lottery]
) -> MenuTable:
    """Return alternatives side by side; ``lotteries`` are what the problem shows of them, heaviest first."""
    total = common_total(*lotteries)
    cards = tuple(card(problem, lottery, total) for lottery in lotteries)
    return MenuTable(
        question=question_words(len(alternatives), asks),
        asks=asks,
        names=names_beside(problem, alternatives),
        average="" if all(map(is_certain, lotteries)) else "on average",
        cards=cards,
        rows=_rows(problem, alternatives),
        labels=_labels(cards),
    )


def _rows(problem: Presentable, alternatives: Sequence[Alternative]) -> tuple[MenuRow, ...]:
    outcomes = np.array([problem.outcome(one.value) for one in alternatives])
    found = []
    for j, o in enumerate(problem.objectives):
        values = outcomes[:, j].tolist()
        size = float(abs(problem.scale[j]))
        ends = [float(problem.nadir[j]), float(problem.ideal[j]), 0.0, *values]
        spread, least = float(np.ptp(values)), SAME * max(size, *(abs(value) for value in values))
        gains = [value * o.sign for value in values]
        best = (
            frozenset(i for i, gain in enumerate(gains) if max(gains) - gain <= least)
            if spread > least
            else frozenset()
        )
        found.append(
            MenuRow(
                name=one_line(o.name),
                goal=goal(o),
                amounts=tuple(amounts_together(o, values)),
                values=tuple(values),
                scale=(min(ends), max(ends)),
                best=best,
                part=spread / (size or 1.0),
                description=description(o),
            )
        )
    return tuple(found)


def _labels(cards: Sequence[Card]) -> tuple[MenuLabels, ...]:
    if not all(one.title for one in cards):
        return ()
    known = [dict(one.stories[0].labels) for one in cards]
    names = dict.fromkeys(name for labels in known for name in labels)
    return tuple(MenuLabels(name, tuple(labels.get(name, "") for labels in known)) for name in names)


# --- what was said ---------------------------------------------------------------------------------------------------


def choice_words(placed: Choice | None, strength: Strength | None = None) -> str:
    """Return a reply by places, in a few words.

    >>> choice_words(Choice.of_best_and_worst(1, 3, 4)), choice_words(Choice.about_equal(4)), choice_words(None)
    ('2 best, 4 worst', 'about equal', 'skipped')
    >>> choice_words(Choice.of_best_and_worst(1, 3, 4), "a lot")
    '2 best, 4 worst, by a lot'
    """
    if placed is None:
        return "skipped"
    if placed.equal:
        return "about equal"
    ends = [(placed.best, "best"), (placed.worst, "worst")]
    words = [f"{place + 1} {word}" for place, word in ends if place is not None]
    return ", ".join([*words, *([] if strength is None else [f"by {strength}"])])


def said_words(placed: Choice | None, strength: Strength | None = None) -> str:
    """Return a reply as a sentence.

    >>> said_words(Choice.of_best_and_worst(1, 3, 4)), said_words(Choice.of_best(1, 3))
    ('You said that 2 is best and 4 worst.', 'You said that 2 is best.')
    >>> said_words(Choice.of_best_and_worst(1, 3, 4), "a little")
    'You said that 2 is best and 4 worst, by a little.'
    """
    if placed is None:
        return "Skipped."
    if placed.equal:
        return "About equal to you."
    worst = "" if placed.worst is None else f" and {placed.worst + 1} worst"
    much = "" if strength is None else f", by {strength}"
    return f"You said that {(placed.best or 0) + 1} is best{worst}{much}."


def listed(problem: Presentable, alternatives: Sequence[Alternative], placed: Choice | None) -> list[str]:
    """Return the alternatives of a menu in a line each, with what was said of them."""
    ends = {} if placed is None or placed.equal else {placed.best: " (best)", placed.worst: " (worst)"}
    named = zip(alternatives, names_beside(problem, alternatives), strict=True)
    return [
        f"{place + 1}{ends.get(place, '')} {name}: "
        + ", ".join(f"{row.name} {row.amount}" for row in amounts(problem, one))
        for place, (one, name) in enumerate(named)
    ]
