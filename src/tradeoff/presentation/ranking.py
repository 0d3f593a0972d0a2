"""A ranking in words: the best few by name, what each wins and loses, and why not another one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tradeoff.decisions import Ranking, Rival
from tradeoff.decisions.ranking import ALIKE
from tradeoff.decisions.what_if import shares_of
from tradeoff.interview import Interview
from tradeoff.model import Option, Vector
from tradeoff.presentation.cards import amounts, changes
from tradeoff.presentation.numbers import chance, counted, percent
from tradeoff.presentation.plans import plan_name, ranked_names
from tradeoff.presentation.sentences import listed
from tradeoff.presentation.text import clipped
from tradeoff.problem import Presentable, pieces_of

NOTICEABLE = 1e-3  # of an objective's range: what differs by less is not mentioned
LONGEST_NAME = 60
BY_MEAN = "Ordered by how much of the best possible gain each loses on average, given your answers."
BY_WORST_CASE = (
    "Ordered by how much of the best possible gain each may lose at most, if your answers are right. Options that cannot be "
    "your best one follow those that can."
)
CONFIRMED = "The first is the one that you preferred yourself. The others are ordered by how much they lose."
PREFERRED = "you preferred this"
LINEAR = "This takes for granted that what things are worth to you adds up, each amount counting the same."


@dataclass(frozen=True)
class RankingRow:
    """An option in its place, with what it wins and loses against the first."""

    place: int
    name: str
    best: str  # "81% likely the best", or "best for 81%"
    part: float  # the same as a number
    loss: str  # "loses 0.4% on average"
    note: str  # "you preferred this", or ""
    wins: tuple[str, ...]  # "price 100 EUR less"
    loses: tuple[str, ...]
    amounts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class RankingTable:
    """The best few, and what the shares are shares of."""

    rows: tuple[RankingRow, ...]
    order: str
    basis: str


def ordinals(interview: Interview) -> dict[int, int]:
    """Return the number under which a respondent knows each answer: its place among those that stand."""
    numbers = sorted(answer.number for answer in interview.answers)
    return {number: place for place, number in enumerate(numbers, start=1)}


def ranking_table(problem: Presentable, ranked: Ranking, numbers: Mapping[int, int]) -> RankingTable:
    """Return a ranking as people read it; ``numbers`` are the answers' ordinals."""
    names = ranked_names(problem, [one.option for one in ranked.ranked])
    first = ranked.ranked[0].option
    rows = []
    for place, (one, name) in enumerate(zip(ranked.ranked, names, strict=True), start=1):
        wins, loses = wins_and_losses(problem, first, one.option)
        told = tuple((row.name, row.amount) for row in amounts(problem, one.option))
        rows.append(
            RankingRow(
                place,
                name,
                best_words(one.share, ranked),
                float(one.share),
                loss_words(one.loss, ranked),
                PREFERRED if ranked.confirmed and place == 1 else "",
                wins,
                loses,
                told,
            )
        )
    order = CONFIRMED if ranked.confirmed else BY_WORST_CASE if ranked.criterion.worst_case else BY_MEAN
    return RankingTable(tuple(rows), order if len(rows) > 1 else "", basis_words(problem, ranked, numbers))


def share_words(share: float, ranked: Ranking) -> str:
    """Return a share as a percentage; one that was estimated has no finer digits than whole per cent."""
    if ranked.drawn is None:
        return chance(share)
    return "less than 1%" if share < 0.01 else "more than 99%" if share > 0.99 else percent(share)


def best_words(share: float, ranked: Ranking) -> str:
    """Return how likely an option is the best, or for how many of all priorities that fit the answers it is."""
    words = share_words(share, ranked)
    return f"{words} likely the best" if ranked.sampled else f"best for {words}"


def loss_words(loss: float, ranked: Ranking) -> str:
    """Return what is lost: "0.4% on average", or "at most 0.4%"; an estimated loss is never said to be nothing."""
    if ranked.criterion.worst_case:
        return f"at most {chance(loss)}"
    return f"{chance(max(loss, 1e-9 if ranked.sampled else 0.0))} on average"


def wins_and_losses(problem: Presentable, first: Option, other: Option) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return in what another option is better and worse than the first, in units.

    >>> import tradeoff
    >>> price = tradeoff.Objective("price", "EUR", "min")
    >>> shop = tradeoff.Catalogue([[9, 300], [6, 200]], [tradeoff.Objective("speed"), price])
    >>> wins_and_losses(shop, shop.option(0), shop.option(1))
    (('price 100 EUR less',), ('speed 3 less',))
    """
    found = changes(problem, first, other, least=NOTICEABLE)
    better = problem.as_read(other).value > problem.as_read(first).value
    told = [
        (good, f"{clipped(o.name)} {change}")
        for o, change, good in zip(problem.original.objectives, found, better.tolist(), strict=True)
        if change
    ]
    return tuple(words for good, words in told if good), tuple(words for good, words in told if not good)


def basis_words(problem: Presentable, ranked: Ranking, numbers: Mapping[int, int]) -> str:
    """Return what shares and losses are over."""
    known = ranked.preferences
    if ranked.sampled:
        said = ["“Likely the best” is the chance of being your best option, given your answers"]
    elif known.answers:
        said = ["“Best for” is the share of all priorities that fit your answers for which it is the best"]
    else:
        said = ["“Best for” is the share of all possible priorities for which it is the best"]
    if ranked.drawn is not None:
        points = counted(math.ceil(100 * ranked.error), "percentage point")
        said[0] += f", estimated from {ranked.drawn:,} samples: give or take {points}, 19 times in 20"
    said[0] += "."
    if problem.kind != "catalogue":
        said.append(f"A plan stands for all that differ from it by less than {percent(ALIKE)} of every range.")
    if known.set_aside:
        which = [f"{numbers[number]}" for number in known.set_aside if number in numbers]
        said.append(
            f"Your answer {which[0]} does not fit the others."
            if len(which) == 1
            else f"Your answers {listed(which)} do not fit the others."
        )
    return " ".join(said)


# --- why not ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WhyNot:
    """Why an option is not what is recommended, in sentences."""

    name: str
    wins: tuple[str, ...]
    loses: tuple[str, ...]
    sentences: tuple[str, ...]
    answers: tuple[int, ...]  # the ordinals of the answers that rule it out
    beaten_by: tuple[str, ...] = ()  # what options are called of which, for any weights, one is better


def why_not_words(
    problem: Presentable, rival: Rival, ranked: Ranking, numbers: Mapping[int, int], estimate: Vector
) -> WhyNot:
    """Return why an option is not what is recommended; ``estimate`` are the recommendation's weights."""
    mine, other = rival.recommended, rival.option
    recommended, name, *rivals = _names(problem, ranked, [mine, other, *rival.beaten_by])
    wins, loses = wins_and_losses(problem, mine, other)
    said: list[str] = []
    match rival.verdict:
        case "recommended":
            said.append(f"“{name}” is what is recommended.")
        case "same":
            said.append(f"“{name}” comes to the same as “{recommended}” in everything that counts.")
        case "dominated":
            (best,) = rival.beaten_by
            more, _ = wins_and_losses(problem, other, best)
            better = f": {', '.join(more)}" if more else ""
            said.append(
                f"It can never be the best: “{rivals[0]}” is at least as good in everything, and better "
                f"in something{better}."
            )
        case "never":
            others = [f"“{each}”" for each in rivals]
            word, better = "best", f"one of {listed(others)} is better"
            if len(others) == 1:
                word, better = "only best", f"{others[0]} is at least as good"
            said.append(
                f"It can never be the {word}, however much each thing matters to you: for any weights {better}. {LINEAR}"
            )
        case "ruled out":
            said.append(_needed(problem, rival, estimate))
            which = [str(numbers[number]) for number in rival.answers if number in numbers]
            said.append(
                f"Your answer {which[0]} rules that out."
                if len(which) == 1
                else f"Your answers {listed(which)} together rule that out."
            )
        case "possible":
            said.append(f"Your answers leave this open. {_needed(problem, rival, estimate)}")
            share = next((one.share for one in ranked.ranked if one.option is other), None)
            if share is not None:
                of = "" if ranked.sampled else " of all priorities that fit your answers"
                said.append(f"It is {best_words(share, ranked)}{of}.")
    if rival.verdict in ("ruled out", "possible", "never"):
        said.append(
            f"Of the best possible gain, given your answers, it loses {loss_words(rival.loss, ranked)}; "
            f"“{recommended}” loses {loss_words(ranked.loss(mine), ranked)}."
        )
    answers = sorted(numbers[n] for n in rival.answers if n in numbers)
    return WhyNot(name, wins, loses, tuple(said), tuple(answers), tuple(rivals))


def _names(problem: Presentable, ranked: Ranking, options: Sequence[Option]) -> list[str]:
    """Return what options are called, the recommended one first: as in the ranking."""
    if problem.items is not None:
        return [clipped(plan_name(problem, one), LONGEST_NAME) for one in options]
    shown = [options[0], *(one.option for one in ranked.ranked if one.option.plan != options[0].plan)]
    for one in options[1:]:
        shown += [] if any(one.plan == other.plan for other in shown) else [one]
    names = ranked_names(problem, shown)
    return [next(name for other, name in zip(shown, names, strict=True) if other.plan == one.plan) for one in options]


def _needed(problem: Presentable, rival: Rival, estimate: Vector) -> str:
    """Return for which weights the option would be the best."""
    if rival.weights is None:
        return ""
    return (
        f"It would be the best if things mattered like this: {weights_words(problem, rival.weights)}. That is as near "
        f"as can be to our estimate: {weights_words(problem, shares_of(estimate))}."
    )


def weights_words(problem: Presentable, weights: Vector) -> str:
    """Return how much each objective that can be changed matters, in whole per cent.

    >>> import numpy, tradeoff
    >>> weights_words(tradeoff.Catalogue([[9, 1], [6, 6]], ["speed", "range"]), numpy.array([0.256, 0.744]))
    'speed 26%, range 74%'
    """
    weights, problem = weights @ pieces_of(problem), problem.original
    return ", ".join(
        f"{clipped(o.name)} {percent(float(share))}"
        for o, share, matters in zip(problem.objectives, weights.tolist(), problem.matters, strict=True)
        if matters
    )
