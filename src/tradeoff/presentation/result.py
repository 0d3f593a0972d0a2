"""A recommendation as people read it: what, why, how certain, and what would change it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from weakref import WeakKeyDictionary

from tradeoff.keeping import Kept
from tradeoff.log import PairReply, Reply, Shown, ShownMenu, Side
from tradeoff.menus import Choice, Menu, Occasion, Statement, Strength, plain, strength_of
from tradeoff.model import Alternative, Answer, Lottery, Recommendation
from tradeoff.presentation import sentences
from tradeoff.presentation.cards import AmountRow, Card, advantages, amounts, card, changes, comparison
from tradeoff.presentation.certainty import asked_words, certainty
from tradeoff.presentation.certainty import certificate_while_asking as certificate_while_asking
from tradeoff.presentation.linearity import linear_words
from tradeoff.presentation.menus import choice_words, listed, said_words
from tradeoff.presentation.numbers import amount_pair, percent
from tradeoff.presentation.plans import Guide, guide, plan_name, plan_names, recommended_name
from tradeoff.presentation.stories import common_total, is_certain
from tradeoff.presentation.text import clipped, one_line
from tradeoff.problem import Presentable
from tradeoff.sensitivity import Change, shares_of

OPEN = 0.9  # a band as wide as this says nothing
DIFFERENCES_KEPT = 20_000  # pairs of a problem: about 10 MB
NOTICEABLE = 1e-3  # of an objective's range: what the runner-up changes by less is not mentioned


@dataclass(frozen=True)
class Importance:
    """How much one objective matters, with the range that fits the answers."""

    name: str
    way: str  # "from 76 min to 40 min"
    matters: bool  # False: no plan changes it
    share: float  # the estimate, by which rows can be sorted; it is shown only within its band
    band: tuple[float, float] | None  # None: the answers leave it open, and no number may be shown
    words: str


@dataclass(frozen=True)
class Result:
    """What is recommended, and what can be said for it."""

    heading: str
    sentence: str
    counted: str  # how importance is counted; "" where nothing can be said of it
    lead: str  # how the stories are to be read; "" for an item
    card: Card
    average: str  # what the amounts are: "on average", or "" where nothing is left to chance
    amounts: list[AmountRow]
    importance: list[Importance]  # in the order of the objectives
    certainty: list[str]
    reason: str
    runner_up: str
    doubtful: tuple[int, ...]  # numbers of answers that are probably slips
    left_open: str  # which importances stayed open, as a sentence; ""
    guide: Guide | None  # how to follow the plan; None for an item
    linear: str = ""  # what linear preferences leave out, as a sentence; "" where nothing


def result(problem: Presentable, recommendation: Recommendation, lottery: Lottery, finished: bool) -> Result:
    """Return the facts about a recommendation; ``lottery`` is what the problem shows of it, heaviest first."""
    because, counted_words = because_words(problem, recommendation)
    done = finished and recommendation.complete
    told = len(lottery.trajectories) > 1 or bool(lottery.trajectories[0].actions)
    return Result(
        heading="The best plan for you" if done else "The best plan for you, so far",
        sentence=f"We would recommend {_called(problem, recommendation)}{f', because to you, {because}' if because else ''}.",
        counted=counted_words,
        lead=sentences.plan_lead(lottery) if told else "",
        card=card(problem, lottery, common_total(lottery)),
        average="" if is_certain(lottery) else "on average",
        amounts=amounts(problem, recommendation.alternative),
        importance=_importance(problem, recommendation),
        certainty=certainty(problem.reference_name, recommendation),
        reason=asked_words(recommendation, finished),
        runner_up=_runner_up(problem, recommendation),
        doubtful=tuple(int(number) for number in recommendation.doubtful),
        left_open=_left_open(recommendation),
        guide=guide(problem, recommendation.alternative),
        linear=linear_words(problem),
    )


def _called(problem: Presentable, recommendation: Recommendation) -> str:
    """Return what the recommended plan is called, in quotation marks."""
    return f"“{recommended_name(problem, recommendation.alternative, recommendation.runner_up)}”"


def _left_open(recommendation: Recommendation) -> str:
    if not recommendation.unidentified:
        return ""
    names = ", ".join(map(one_line, recommendation.unidentified))
    return f"How much these matter to you was {sentences.LEFT_OPEN}: {names}."


def _runner_up(problem: Presentable, recommendation: Recommendation) -> str:
    """Return what the next best plan is called and what it would change, in units; "" where there is none."""
    other = recommendation.runner_up
    if other is None:
        return ""
    found = changes(problem, recommendation.alternative, other, least=NOTICEABLE)
    told = [f"{one_line(o.name)} {change}" for o, change in zip(problem.objectives, found, strict=True) if change]
    _, name = plan_names(problem, recommendation.alternative, other)
    return f"The next best plan for you, “{name}”, would mean: {', '.join(told)}." if told else ""


# --- importance ------------------------------------------------------------------------------------------------------


def because_words(problem: Presentable, recommendation: Recommendation) -> tuple[str, str]:
    """Return what matters most to the person, as the end of a sentence, and how that is counted.

    Both are "" where the answers do not show it: only what holds everywhere in the bands is said.
    """
    bands = _bands(problem, recommendation)
    if not recommendation.questions or not bands:
        return "", ""
    first = max(bands, key=lambda j: bands[j][0])
    less = sorted((j for j in bands if j != first and bands[j][1] < bands[first][0]), key=lambda j: -bands[j][1])
    if not less:
        return "", ""
    names = {j: clipped(problem.objectives[j].name, 40) for j in (first, *less)}
    next_to = less[0]
    ratio = bands[first][0] / bands[next_to][1] if bands[next_to][1] > 0 else math.inf
    if len(less) == len(bands) - 1:
        words = f"{names[first]} matters most, {sentences.times_as_much(ratio)} {names[next_to]}"
    else:
        words = f"{names[first]} matters more than {sentences.listed([names[j] for j in less])}"
    ways = ", ".join(f"{names[j]} {_way(problem, j)}" for j in (first, *less))
    return words, f"Counted for the whole way from the worst to the best that is possible: {ways}."


def _bands(problem: Presentable, recommendation: Recommendation) -> dict[int, tuple[float, float]]:
    """Return what importance fits the answers, for the objectives that what is chosen can change."""
    ranges = recommendation.importance
    if ranges is None:
        return {}
    return {
        j: (max(float(ranges[j, 0]), 0.0), min(float(ranges[j, 1]), 1.0))
        for j in range(len(ranges))
        if problem.matters[j]
    }


def _way(problem: Presentable, j: int) -> str:
    worst, best = amount_pair(problem.objectives[j], float(problem.origin[j]), float(problem.ideal[j]))
    return f"from {worst} to {best}"


def _importance(problem: Presentable, recommendation: Recommendation) -> list[Importance]:
    shares, bands = shares_of(recommendation.weights), _bands(problem, recommendation)
    rows = []
    for j, o in enumerate(problem.objectives):
        band, matters = bands.get(j), bool(problem.matters[j])
        if o.name in recommendation.unidentified:
            band, words = None, sentences.LEFT_OPEN
        elif recommendation.importance is None and recommendation.complete and recommendation.questions:
            words = f"about {percent(float(shares[j]))}"  # a strategy without bands, which has asked all it wanted
        elif band is None or band[1] - band[0] >= OPEN:
            band, words = None, sentences.NOT_KNOWN
        else:
            words = sentences.importance_range(*band)
        share = float(shares[j]) if band is None else min(max(float(shares[j]), band[0]), band[1])
        rows.append(
            Importance(
                one_line(o.name), _way(problem, j), matters, share, band, words if matters else sentences.CANNOT_CHANGE
            )
        )
    return rows


# --- what would change it --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ChangedRow:
    """One objective under another plan: its amount, and by how much that changes."""

    amount: AmountRow
    change: str


@dataclass(frozen=True)
class Stop:
    """What would be recommended while an objective has this share of all importance."""

    share: str
    plan: str
    rows: list[ChangedRow]


@dataclass(frozen=True)
class WhatIf:
    """What would be recommended if one objective mattered more; the first stop is the recommendation as it is."""

    name: str
    stops: list[Stop]


def what_ifs(problem: Presentable, recommendation: Recommendation, tried: Sequence[Change]) -> list[WhatIf]:
    """Return what would be recommended instead, for each objective that can be changed.

    ``tried`` is what ``sensitivity.what_if`` returns.
    """
    found, made = recommendation.alternative, []
    for change, matters in zip(tried, problem.matters, strict=True):
        if not matters:
            continue
        stops = []
        for stop in change.stops:
            low, high = percent(stop.low), percent(stop.high)
            # Finding out what a policy decides takes long, and its averages say enough here.
            plan = "a plan with these averages" if problem.has_paths else f"“{plan_name(problem, stop.alternative)}”"
            if stop is change.stops[0]:
                plan = _called(problem, recommendation)
            rows = zip(amounts(problem, stop.alternative), changes(problem, found, stop.alternative), strict=True)
            stops.append(Stop(low if low == high else f"{low} to {high}", plan, [ChangedRow(*row) for row in rows]))
        made.append(WhatIf(one_line(change.objective.name), stops))
    return made


# --- the answers -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Given:
    """An answer that stands, as the person saw the question: A on the left."""

    number: int  # in the log
    left: Alternative
    right: Alternative
    answer: PairReply  # FIRST means A; None: skipped


@dataclass(frozen=True)
class GivenToMenu:
    """An answer to a menu that stands, as the person saw it."""

    number: int  # in the log
    alternatives: tuple[Alternative, ...]  # in the order in which they were shown
    placed: Choice | None  # by places; None: skipped
    strength: Strength | None = None


@dataclass(frozen=True)
class Volunteered:
    """Something that the person said without being asked, which stands."""

    number: int  # in the log
    text: str


AnyGiven: TypeAlias = Given | GivenToMenu | Volunteered


def as_shown(number: int, question: Occasion, answer: Reply, where: Side | tuple[int, ...] = "first") -> AnyGiven:
    """Return an answer as the person saw the question; ``where`` says which alternative was A, or the order of a menu."""
    if isinstance(question, Statement):
        return Volunteered(number, question.text)
    if isinstance(question, Menu):
        choice = plain(answer)
        assert isinstance(where, tuple) and not isinstance(choice, Answer)
        menu = ShownMenu(question, where)
        placed = None if choice is None else menu.by_place(choice)
        return GivenToMenu(number, tuple(menu.alternatives), placed, strength_of(answer))
    assert not isinstance(where, tuple) and not isinstance(answer, Choice)
    shown = Shown(question, where)
    return Given(number, shown.a, shown.b, shown.turned(answer))


@dataclass(frozen=True)
class AnswerLine:
    """An answer as it is listed: what was said, and how A and B differed, or what was on the menu."""

    number: int
    ordinal: int
    choice: str  # "A", "B, by a lot", "2 best, 4 worst", "about equal" or "skipped"
    said: str
    differences: list[str]
    conflict: bool
    doubtful: bool


# How the two of a pair differ: many people are asked about the same.
_differences: WeakKeyDictionary[Presentable, Kept[Hashable, list[str]]] = WeakKeyDictionary()


def answer_lines(
    problem: Presentable,
    given: Sequence[AnyGiven],
    *,
    conflicts: Sequence[int] = (),
    doubtful: Sequence[int] = (),
) -> list[AnswerLine]:
    """Return the answers in their order, with those marked that contradict each other or are probably slips."""
    return [
        AnswerLine(one.number, ordinal, *_told(problem, one), one.number in conflicts, one.number in doubtful)
        for ordinal, one in enumerate(given, start=1)
    ]


def _told(problem: Presentable, one: AnyGiven) -> tuple[str, str, list[str]]:
    if isinstance(one, Volunteered):
        return "you said", f"You said: {one.text}.", [one.text]
    if isinstance(one, GivenToMenu):
        told = listed(problem, one.alternatives, one.placed)
        return choice_words(one.placed, one.strength), said_words(one.placed, one.strength), told
    kept = _differences.setdefault(problem, Kept(DIFFERENCES_KEPT))
    key = tuple((side.value.tobytes(), side.plan) for side in (one.left, one.right))
    differences = kept.once(key, lambda: advantages(comparison(problem, one.left, one.right)))
    return sentences.chosen(one.answer), sentences.answered(one.answer), differences
