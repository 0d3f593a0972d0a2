"""A question as it is shown: the options side by side, objective by objective, and the replies in words.

The options of a pair are called A and B, those of a larger question 1, 2, 3, ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tradeoff.evidence import QUESTIONS
from tradeoff.model import EQUAL, SKIP, Asks, Lottery, Option, Reply
from tradeoff.presentation.cards import SAME, Card, amounts, card
from tradeoff.presentation.numbers import amounts_together, comparative, gap
from tradeoff.presentation.plans import Guide, guides_beside, names_beside
from tradeoff.presentation.problems import description, goal
from tradeoff.presentation.risk import Risk
from tradeoff.presentation.sentences import listed, question_lead
from tradeoff.presentation.stories import common_total, is_certain
from tradeoff.presentation.text import one_line
from tradeoff.presentation.translation import _
from tradeoff.problem import Presentable

NEARLY_SAME = 0.02  # of everything attainable: a smaller difference is told in one line with others
COUNTS = {3: "three", 4: "four"}
PAIR_QUESTION = "Which would you rather have, A or B?"


def place_names(count: int) -> tuple[str, ...]:
    """Return what the places of a question with so many options are called.

    >>> place_names(2), place_names(4)
    (('A', 'B'), ('1', '2', '3', '4'))
    """
    return ("A", "B") if count == 2 else tuple(str(place + 1) for place in range(count))


def question_words(count: int, asks: Asks) -> str:
    """Return what is asked about so many options.

    >>> question_words(4, "best-worst")
    'Which of these four is best for you, and which worst?'
    """
    if count == 2:
        return PAIR_QUESTION
    of = f"Which of these {COUNTS.get(count, count)} is best for you"
    return f"{of}, and which worst?" if asks == "best-worst" else f"{of}?"


def welcome(questions: str | None) -> str:
    """Return what a respondent will be asked, before the first question."""
    if QUESTIONS.get(questions or "pairs", QUESTIONS["pairs"])[0] == 2:
        return "You are shown two options at a time. Say which you would rather have."
    return "You are shown a few options at a time. Say which is best for you, and which worst."


def how_it_works(questions: str | None, what: str) -> list[str]:
    """Return what a respondent sees and says, in two sentences; ``what`` are "plans" or "options"."""
    size, _ = QUESTIONS.get(questions or "pairs", QUESTIONS["pairs"])
    shown, said = (
        (f"two {what}, A and B", "which is better for you or that they are about equal")
        if size == 2
        else (f"at most {COUNTS[size]} {what}", "which is best for you and which worst, or that they are about equal")
    )
    return [
        f"You see {shown}, and in what they differ. Everything else about them is a tap away.",
        f"You say {said}, or you skip. You can undo any answer.",
    ]


@dataclass(frozen=True)
class ObjectiveRow:
    """One objective of all options of a question."""

    name: str
    goal: str  # "more is better"
    amounts: tuple[str, ...]
    lengths: tuple[float, ...]  # 0 to 1, from the worst attainable amount to the best: a longer bar is always better
    best: frozenset[int]  # the places of the best amount; none where all are the same
    part: float  # how far the amounts are apart, as a part of everything attainable
    gap: str = ""  # of a pair: "12 min"
    comparative: str = ""  # of a pair, from the better side: "12 min faster"
    description: str = ""  # what the objective is, where the problem says so

    @property
    def differs(self) -> bool:
        """Whether the options differ in it."""
        return bool(self.best)

    @property
    def nearly_same(self) -> bool:
        """Whether the options differ in it, but by less than a fiftieth of everything attainable."""
        return self.differs and self.part < NEARLY_SAME

    @property
    def better(self) -> str:
        """Which of a pair is better in it, A or B; "" if both are the same."""
        return "AB"[min(self.best)] if self.best else ""

    @property
    def pull(self) -> float:
        """The bar of a pair, from -1 to 1: from the middle towards A (negative) or B, as far as the better one is ahead."""
        return self.lengths[1] - self.lengths[0]


@dataclass(frozen=True)
class LabelRow:
    """Something else that is known of the options, which plays no part in what is asked: the origin of a coffee."""

    name: str
    texts: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether the options differ in it."""
        return len(set(self.texts)) > 1


@dataclass(frozen=True)
class QuestionTable:
    """A question as it is shown: facts that the page, the terminal and the report render."""

    words: str  # what is asked
    asks: Asks
    places: tuple[str, ...]  # what the places are called: "A" and "B", or numbers
    names: tuple[str, ...]  # what the options are called
    shared: str  # what all plans do first, in a sentence; "" where they begin differently, and for items
    guides: tuple[Guide, ...]  # what to do when, without what all share; none unless every option is a plan with rules
    lead: str  # how the stories are to be read
    average: str  # what the amounts are: "on average", or "" where nothing is left to chance
    cards: tuple[Card, ...]
    rows: tuple[ObjectiveRow, ...]  # those that differ most first
    labels: tuple[LabelRow, ...]
    chances: tuple[Risk, ...]  # of each option, the objective that chance changes most; none where nothing is random

    @property
    def is_pair(self) -> bool:
        """Whether two options are compared."""
        return len(self.names) == 2

    @property
    def shared_by(self) -> str:
        """Who shares what is the same: "both" or "all"."""
        return _("both") if self.is_pair else _("all")

    @property
    def differing(self) -> list[ObjectiveRow]:
        """The objectives in which the options differ noticeably, the largest difference first.

        Where no difference is noticeable, all that differ.
        """
        rows = [row for row in self.rows if row.differs and not row.nearly_same]
        return rows or [row for row in self.rows if row.differs]

    @property
    def nearly_same(self) -> str:
        """The objectives that differ by less than a fiftieth of their range, in a line; "" where there are none."""
        shown = self.differing
        rows = [row for row in self.rows if row.differs and row not in shown]
        told = "; ".join(f"{row.name} {listed(row.amounts)}" for row in rows)
        return _("Nearly the same: {amounts}").format(amounts=told) if told else ""

    @property
    def differing_labels(self) -> list[LabelRow]:
        """The labels in which the options differ."""
        return [row for row in self.labels if row.differs]

    @property
    def label_lines(self) -> list[str]:
        """The labels in which the options differ, a line for each option; a text that says little has its name before it.

        None where the options differ in no label.
        """
        rows = self.differing_labels
        return [
            ", ".join(_named_label(row.name, row.texts[place]) for row in rows if row.texts[place])
            for place in range(len(self.names) if rows else 0)
        ]

    @property
    def same(self) -> list[tuple[str, str]]:
        """What is the same for all: objectives with their amounts, then labels with their texts."""
        equal = [(row.name, row.amounts[0]) for row in self.rows if not row.differs]
        return equal + [(row.name, row.texts[0]) for row in self.labels if not row.differs]

    @property
    def definitions(self) -> list[tuple[str, str]]:
        """What the objectives are, where the problem says so: for the first question, and behind a link or a key."""
        return [(row.name, row.description) for row in self.rows if row.description]


def question_table(
    problem: Presentable, options: Sequence[Option], asks: Asks, lotteries: Sequence[Lottery]
) -> QuestionTable:
    """Return options side by side; ``lotteries`` are what the problem shows of them, heaviest first."""
    total = common_total(*lotteries)
    cards = tuple(card(problem, lottery, total) for lottery in lotteries)
    shared, guides = guides_beside(problem, options)
    return QuestionTable(
        words=question_words(len(options), asks),
        asks=asks,
        places=place_names(len(options)),
        names=names_beside(problem, options),
        shared=shared,
        guides=guides,
        lead=question_lead(lotteries),
        average="" if all(map(is_certain, lotteries)) else _("on average"),
        cards=cards,
        rows=tuple(sorted(objective_rows(problem, options), key=lambda row: -row.part)),
        labels=_label_rows(cards),
        chances=_chances(problem, cards),
    )


def _chances(problem: Presentable, cards: Sequence[Card]) -> tuple[Risk, ...]:
    """Return how one objective comes out under each option: the one that chance changes most, as a part of its range."""
    if not all(card.risks for card in cards):
        return ()
    spread = [
        max(card.risks[j].dots[-1] - card.risks[j].dots[0] for card in cards) / abs(float(scale))
        for j, scale in enumerate(problem.scale)
    ]
    j = int(np.argmax(spread))
    return tuple(card.risks[j] for card in cards) if spread[j] > 0 else ()


def objective_rows(problem: Presentable, options: Sequence[Option]) -> tuple[ObjectiveRow, ...]:
    """Return how options compare on average, objective by objective."""
    options, problem = [problem.as_read(option) for option in options], problem.original
    outcomes = np.array([problem.outcome(option.value) for option in options])
    rows = []
    for j, o in enumerate(problem.objectives):
        values = outcomes[:, j].tolist()
        gains = [value * o.sign for value in values]
        low, high = min(problem.nadir[j] * o.sign, *gains), max(problem.ideal[j] * o.sign, *gains)
        spread, least = float(np.ptp(values)), SAME * max(high - low, *(abs(value) for value in values))
        best = frozenset(i for i, gain in enumerate(gains) if max(gains) - gain <= least)
        shown, difference = amounts_together(o, values), gap(o, *values) if len(values) == 2 else ""
        rows.append(
            ObjectiveRow(
                name=one_line(o.name),
                goal=goal(o),
                amounts=tuple(shown),
                lengths=tuple(float((gain - low) / (high - low or 1.0)) for gain in gains),
                best=best if spread > least else frozenset(),
                part=float(spread / (high - low or 1.0)),
                gap=difference,
                comparative=comparative(o, difference, shown[min(best)]) if difference else "",
                description=description(o),
            )
        )
    return tuple(rows)


def _label_rows(cards: Sequence[Card]) -> tuple[LabelRow, ...]:
    """Return what else is known of items."""
    if not all(card.title for card in cards):
        return ()
    known = [dict(card.stories[0].labels) for card in cards]
    names = dict.fromkeys(name for labels in known for name in labels)
    return tuple(LabelRow(name, tuple(labels.get(name, "") for labels in known)) for name in names)


def _named_label(name: str, text: str) -> str:
    """Return a label in a line with others: "Altstadt", but "built 1928" and "balcony yes".

    >>> _named_label("district", "Altstadt"), _named_label("built", "1928"), _named_label("balcony", "yes")
    ('Altstadt', 'built 1928', 'balcony yes')
    """
    speaks_for_itself = len(text) > 3 and text[0].isalpha() and text.lower() not in ("true", "false", "none")
    return text if speaks_for_itself else f"{name} {text}"


def advantages(rows: Sequence[ObjectiveRow]) -> list[str]:
    """Return what is better about each side of a pair, in a line each: "A better: time 20 min"."""
    lines = {letter: [f"{row.name} {row.gap}" for row in rows if row.better == letter] for letter in "AB"}
    return [f"{letter} better: {', '.join(better)}" for letter, better in lines.items() if better]


# --- replies ---------------------------------------------------------------------------------------------------------


def reply_words(placed: Reply, count: int) -> str:
    """Return a reply by places, in a few words.

    >>> reply_words(Reply(1), 2), reply_words(Reply(1, 3), 4), reply_words(EQUAL, 4), reply_words(SKIP, 2)
    ('B', '2 best, 4 worst', 'about equal', 'skipped')
    """
    if placed.best is None:
        return {EQUAL: "about equal", SKIP: "skipped"}.get(placed, "none of these")
    places = place_names(count)
    if count == 2:
        return places[placed.best]
    worst = "" if placed.worst is None else f", {places[placed.worst]} worst"
    return f"{places[placed.best]} best{worst}"


def reply_sentence(placed: Reply, count: int) -> str:
    """Return a reply as a sentence.

    >>> reply_sentence(Reply(0), 2), reply_sentence(Reply(1, 3), 4)
    ('You preferred A.', 'You said that 2 is best and 4 worst.')
    """
    if placed.best is None:
        return {EQUAL: "About equal to you.", SKIP: "Skipped."}.get(placed, "None of these.")
    places = place_names(count)
    if count == 2:
        return f"You preferred {places[placed.best]}."
    worst = "" if placed.worst is None else f" and {places[placed.worst]} worst"
    return f"You said that {places[placed.best]} is best{worst}."


def option_lines(problem: Presentable, options: Sequence[Option], placed: Reply) -> list[str]:
    """Return the options of a question in a line each, with what was said of them."""
    marks = {placed.best: " (best)", placed.worst: " (worst)"}
    named = zip(place_names(len(options)), options, names_beside(problem, options), strict=True)
    return [
        f"{place}{marks.get(position, '')} {name}: "
        + ", ".join(f"{row.name} {row.amount}" for row in amounts(problem, option))
        for position, (place, option, name) in enumerate(named)
    ]
