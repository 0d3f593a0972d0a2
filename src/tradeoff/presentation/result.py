"""A recommendation as people read it: what, why, how certain, and what would change it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tradeoff.decisions.what_if import Change, shares_of
from tradeoff.model import Lottery, Reason, Recommendation
from tradeoff.presentation import sentences
from tradeoff.presentation.cards import AmountRow, Card, amounts, card, changes
from tradeoff.presentation.certainty import asked_words, certainty
from tradeoff.presentation.certainty import certificate_while_asking as certificate_while_asking
from tradeoff.presentation.linearity import linear_words
from tradeoff.presentation.numbers import amount_pair, percent, percent_up
from tradeoff.presentation.plans import Guide, guide, plan_name, plan_names, ranked_names, recommended_name
from tradeoff.presentation.stories import common_total, is_certain
from tradeoff.presentation.text import clipped, one_line
from tradeoff.problem import Presentable, pieces_of

NOTICEABLE = 1e-3  # of an objective's range: what the runner-up changes by less is not mentioned


@dataclass(frozen=True)
class Importance:
    """How much one objective matters, with the range that fits the answers."""

    name: str
    way: str  # "from 76 min to 40 min"
    matters: bool  # False: no plan changes it
    share: float  # the estimate, by which rows can be sorted; it is shown only within its band
    band: tuple[float, float] | None  # None: nothing is known of it, and no number may be shown
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
    premise: str  # on what the importance of each is known, as a sentence
    certainty: list[str]
    reason: str
    own_choice: str  # what is said where the respondent's own choice and the model disagree; ""
    runner_up: str
    left_open: str  # of which objectives the importance need not be known better, as a sentence; ""
    guide: Guide | None  # how to follow the plan; None for an item
    linear: str = ""  # what linear preferences leave out, as a sentence; "" where nothing


def result(problem: Presentable, recommendation: Recommendation, lottery: Lottery, finished: bool) -> Result:
    """Return the facts about a recommendation; ``lottery`` is what the problem shows of it, heaviest first."""
    because, counted_words = because_words(problem, recommendation)
    premise = "very likely " if _is_likely(recommendation) else "if your answers are right, "
    own_choice = own_choice_words(problem, recommendation)
    told = len(lottery.trajectories) > 1 or bool(lottery.trajectories[0].actions)
    return Result(
        heading=_heading(recommendation, finished),
        sentence=own_choice
        or f"We would recommend {_called(problem, recommendation)}"
        + (f", because to you, {premise}{because}." if because else "."),
        counted="" if own_choice else counted_words,
        lead=sentences.plan_lead(lottery) if told else "",
        card=card(problem, lottery, common_total(lottery)),
        average="" if is_certain(lottery) else "on average",
        amounts=amounts(problem, recommendation.option),
        importance=_importance(problem, recommendation),
        premise=_premise(recommendation),
        certainty=certainty(problem.reference_name, recommendation),
        reason=asked_words(recommendation, finished),
        own_choice=own_choice,
        runner_up=_runner_up(problem, recommendation),
        left_open=_left_open(problem, recommendation),
        guide=guide(problem, recommendation.option),
        linear=linear_words(problem),
    )


def _heading(recommendation: Recommendation, finished: bool) -> str:
    """Return what the plan is: the best one only where the answers show that much."""
    if not (finished and recommendation.complete):
        return "The best plan for you, so far"
    unsure = not recommendation.fits or recommendation.reason in (Reason.NOT_SURER, Reason.TOO_MANY)
    return "A suggestion for you" if unsure else "The best plan for you"


def _called(problem: Presentable, recommendation: Recommendation) -> str:
    """Return what the recommended plan is called, in quotation marks."""
    return f"“{recommended_name(problem, recommendation.option, recommendation.runner_up)}”"


def own_choice_words(problem: Presentable, recommendation: Recommendation) -> str:
    """Return what is recommended and why, where the respondent's own choice and the model disagree; "" where they agree."""
    other = recommendation.model_choice or recommendation.contested_by
    if other is None:
        return ""
    shown = [one for one in (recommendation.option, recommendation.runner_up) if one is not None]
    names = ranked_names(problem, shown if other.plan in [one.plan for one in shown] else [*shown, other])
    mine, theirs = f"“{names[0]}”", f"“{names[-1]}”"
    if recommendation.model_choice is None:
        return (
            f"We would recommend {mine}, although you once chose {theirs} over it: your other answers speak for {mine}. "
            "Compare the two yourself."
        )
    return (
        f"We would recommend {mine}, because you preferred it to {theirs}. Your other answers speak for {theirs}, so "
        "something that is not listed here may matter to you. Compare the two yourself."
    )


def _left_open(problem: Presentable, recommendation: Recommendation) -> str:
    """Return that no other plan is better by more than the target, however much some objectives matter in their ranges."""
    read = problem.original
    asked = {o.name for o, matters in zip(read.objectives, read.matters, strict=True) if matters}
    names = [one_line(name) for name in recommendation.unidentified if name in asked]
    if not names or recommendation.target is None or not recommendation.questions:
        return ""
    answers = "your other answers" if recommendation.doubtful else "your answers"
    return (
        f"The range of {sentences.listed(names)} is wide, but anywhere in it no other plan is better for you by more than "
        f"{percent_up(recommendation.target)}, if {answers} are right."
    )


def _runner_up(problem: Presentable, recommendation: Recommendation) -> str:
    """Return what the next best plan is called and what it would change, in units; "" where there is none."""
    other = recommendation.runner_up
    if other is None:
        return ""
    found = changes(problem, recommendation.option, other, least=NOTICEABLE)
    named = zip(problem.original.objectives, found, strict=True)
    told = [f"{one_line(o.name)} {change}" for o, change in named if change]
    _, name = plan_names(problem, recommendation.option, other)
    return f"Another good choice, “{name}”, would mean: {', '.join(told)}." if told else ""


# --- importance ------------------------------------------------------------------------------------------------------


def because_words(problem: Presentable, recommendation: Recommendation) -> tuple[str, str]:
    """Return what matters most to the person, as the end of a sentence, and how that is counted.

    Both are "" where the answers do not show it: only what holds everywhere in the bands is said.
    """
    problem = problem.original
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
    return words, f"Counted for the whole way from the worst to the best that is considered: {ways}."


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


def _is_likely(recommendation: Recommendation) -> bool:
    """Return whether the ranges of importance are very likely; otherwise they are exact if the answers are right."""
    stated, exact = recommendation.importance, recommendation.importance_if_right
    return stated is not None and exact is not None and not np.array_equal(stated, exact)


def _premise(recommendation: Recommendation) -> str:
    """Return on what the importance of each objective is known; "" where nothing is said of it."""
    if not recommendation.questions:
        return "Nothing was asked, so your priorities are not known."
    if not recommendation.fits:
        return "Your answers do not follow one set of priorities, so we cannot say how much each thing matters to you."
    if recommendation.importance is None:
        return "These are estimates." if recommendation.complete else ""
    if _is_likely(recommendation):
        return "Each range is very likely right; for 1 person in 20 or fewer it is not."
    return "The ranges are right if your answers are."


def _way(problem: Presentable, j: int) -> str:
    worst, best = amount_pair(problem.objectives[j], float(problem.origin[j]), float(problem.ideal[j]))
    return f"from {worst} to {best}"


def _importance(problem: Presentable, recommendation: Recommendation) -> list[Importance]:
    shares, problem = shares_of(recommendation.weights @ pieces_of(problem)), problem.original
    bands, exact = _bands(problem, recommendation), recommendation.importance_if_right
    without_bands = recommendation.importance is None and exact is None  # as a strategy may be
    rows = []
    for j, o in enumerate(problem.objectives):
        band, matters = bands.get(j), bool(problem.matters[j])
        if without_bands and recommendation.complete and recommendation.questions and recommendation.fits:
            words = f"about {percent(float(shares[j]))}"  # it has asked all it wanted
        elif band is None or (band[0] < 0.01 and band[1] > 0.99):
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
class Switch:
    """What is best while an objective has this share of all importance."""

    share: str
    plan: str
    recommended: bool
    rows: list[ChangedRow]


@dataclass(frozen=True)
class WhatIf:
    """What is best for each share of importance of one objective."""

    name: str
    switches: list[Switch]


def what_ifs(problem: Presentable, recommendation: Recommendation, switched: Sequence[Change]) -> list[WhatIf]:
    """Return what would be recommended instead, for each objective that can be changed; ``switched`` is from ``what_if``."""
    recommended, made = recommendation.option, []
    for change, matters in zip(switched, problem.original.matters, strict=True):
        if not matters:
            continue
        switches = []
        for stretch in change.stretches:
            low, high = percent(stretch.low), percent(stretch.high)
            # Finding out what a policy decides takes long, and its averages say enough here.
            plan = "a plan with these averages" if problem.has_paths else f"“{plan_name(problem, stretch.option)}”"
            if stretch.option is recommended:
                plan = _called(problem, recommendation)
            rows = zip(amounts(problem, stretch.option), changes(problem, recommended, stretch.option), strict=True)
            switches.append(
                Switch(
                    low if low == high else f"{low} to {high}",
                    plan,
                    stretch.option is recommended,
                    [ChangedRow(*row) for row in rows],
                )
            )
        made.append(WhatIf(one_line(change.objective.name), switches))
    return made
