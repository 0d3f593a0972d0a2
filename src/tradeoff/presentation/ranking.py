"""A ranking in words: the best few by name, what each wins and loses, and why not another one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tradeoff.decisions import Ranking, Rival
from tradeoff.decisions.ranked import ALIKE
from tradeoff.interview import Interview
from tradeoff.model import Alternative, Item, Vector
from tradeoff.presentation.cards import amounts, changes
from tradeoff.presentation.numbers import chance, counted, percent
from tradeoff.presentation.plans import plan_names, recommended_name
from tradeoff.presentation.sentences import listed
from tradeoff.presentation.text import clipped, one_line
from tradeoff.problem import Presentable
from tradeoff.sensitivity import shares_of

NOTICEABLE = 1e-3  # of an objective's range: what differs by less is not mentioned
LONGEST_NAME = 60
ORDER = (
    "What is recommended comes first and its runner-up second. The others follow by the part of the best possible gain that "
    "they lose on average."
)
LINEAR = "This takes for granted that what things are worth to you adds up, each amount counting the same."


@dataclass(frozen=True)
class RankingRow:
    """An alternative in its place, with what it wins and loses against the first."""

    place: int
    name: str
    share: str  # of all preferences still possible: "81%"
    part: float  # the same as a number
    loss: str
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
    """Return the number under which a person knows each answer: its place among those that stand."""
    return {number: place for place, number in enumerate(sorted(n for n, _, _ in interview.answers), start=1)}


def ranking_table(problem: Presentable, ranked: Ranking, numbers: Mapping[int, int]) -> RankingTable:
    """Return a ranking as people read it; ``numbers`` are the answers' ordinals."""
    names = ranked_names(problem, [one.alternative for one in ranked.ranked])
    first = ranked.ranked[0].alternative
    rows = []
    for place, (one, name) in enumerate(zip(ranked.ranked, names, strict=True), start=1):
        wins, loses = wins_and_losses(problem, first, one.alternative)
        told = tuple((row.name, row.amount) for row in amounts(problem, one.alternative))
        rows.append(
            RankingRow(
                place,
                name,
                share_words(one.share, ranked),
                float(one.share),
                loss_words(one.loss, ranked),
                wins,
                loses,
                told,
            )
        )
    return RankingTable(tuple(rows), ORDER if len(rows) > 1 else "", basis_words(problem, ranked, numbers))


def share_words(share: float, ranked: Ranking) -> str:
    """Return a share as a percentage; one that was estimated has no finer digits than whole per cent."""
    if ranked.drawn is None:
        return chance(share)
    return "less than 1%" if share < 0.01 else "more than 99%" if share > 0.99 else percent(share)


def loss_words(loss: float, ranked: Ranking) -> str:
    """Return a loss as a percentage; one that was estimated is never said to be nothing."""
    return chance(max(loss, 0.0 if ranked.drawn is None else 1e-9))


def ranked_names(problem: Presentable, alternatives: Sequence[Alternative]) -> list[str]:
    """Return what the alternatives of a ranking are called: items by their names, plans by how they differ from the first."""
    # What is recommended is called as in the sentence that recommends it: as it differs from its runner-up.
    found = [recommended_name(problem, alternatives[0], alternatives[1] if len(alternatives) > 1 else None)]
    found += [plan_names(problem, alternatives[0], other)[1] for other in alternatives[1:]]
    seen: dict[str, int] = {}
    for place, name in enumerate(found):
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            found[place] = f"{name} ({seen[name]})"
    return [clipped(name, 2 * LONGEST_NAME) for name in found]


def wins_and_losses(
    problem: Presentable, first: Alternative, other: Alternative
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return in what another alternative is better and worse than the first, in units.

    >>> import tradeoff
    >>> price = tradeoff.Objective("price", "EUR", "min")
    >>> shop = tradeoff.Catalogue([[9, 300], [6, 200]], [tradeoff.Objective("speed"), price])
    >>> wins_and_losses(shop, shop.alternative(0), shop.alternative(1))
    (('price 100 EUR less',), ('speed 3 less',))
    """
    found = changes(problem, first, other, least=NOTICEABLE)
    better = other.value > first.value
    told = [
        (good, f"{one_line(o.name)} {change}")
        for o, change, good in zip(problem.objectives, found, better.tolist(), strict=True)
        if change
    ]
    return tuple(words for good, words in told if good), tuple(words for good, words in told if not good)


def basis_words(problem: Presentable, ranked: Ranking, numbers: Mapping[int, int]) -> str:
    """Return what shares and losses are over."""
    known = ranked.preferences
    fitting = "that fit your answers" if known.answers else "there are, because no answer says otherwise yet"
    said = [f"“Best for” is the share of all ways to weigh what matters {fitting}, each of them counting the same"]
    if ranked.drawn is None:
        said[0] += ", worked out exactly."
    else:
        points = math.ceil(100 * ranked.error)
        said[0] += (
            f", estimated from {ranked.drawn:,} of them, drawn at random: give or take "
            f"{counted(points, 'percentage point')}, 19 times in 20."
        )
    if problem.kind != "catalogue":
        said.append(f"A plan stands for all that differ from it by less than {percent(ALIKE)} of every range.")
    if known.set_aside:
        which = [f"{numbers[number]}" for number in known.set_aside if number in numbers]
        said.append(
            f"Left out of this as a probable slip: answer {which[0]}."
            if len(which) == 1
            else f"Left out of this as probable slips or because they contradict each other: answers {listed(which)}."
        )
    return " ".join(said)


# --- why not ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WhyNot:
    """Why an alternative is not what is recommended, in sentences."""

    name: str
    wins: tuple[str, ...]
    loses: tuple[str, ...]
    sentences: tuple[str, ...]
    answers: tuple[int, ...]  # the ordinals of the answers that rule it out


def why_not_words(
    problem: Presentable, rival: Rival, ranked: Ranking, numbers: Mapping[int, int], estimate: Vector
) -> WhyNot:
    """Return why an alternative is not what is recommended; ``estimate`` are the recommendation's weights."""
    mine, other = rival.recommended, rival.alternative
    recommended, name = _names(problem, mine, other)
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
                f"It can never be the best: “{_names(problem, mine, best)[1]}” is at least as good in everything, and better "
                f"in something{better}."
            )
        case "never":
            others = [f"“{_names(problem, mine, one)[1]}”" for one in rival.beaten_by]
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
            share = next((one.share for one in ranked.ranked if one.alternative is other), None)
            if share is not None:
                said.append(
                    f"It is the best for {share_words(share, ranked)} of all ways to weigh what matters that fit your answers."
                )
    if rival.verdict in ("ruled out", "possible", "never"):
        fitting = " that fits your answers" if ranked.preferences.answers else " that is possible"
        said.append(
            f"On average over everything{fitting} it loses {loss_words(rival.loss, ranked)} of the best possible gain; "
            f"“{recommended}” loses {loss_words(ranked.loss(mine), ranked)}."
        )
    return WhyNot(name, wins, loses, tuple(said), tuple(sorted(numbers[n] for n in rival.answers if n in numbers)))


def _names(problem: Presentable, one: Alternative, other: Alternative) -> tuple[str, str]:
    if isinstance(one.plan, Item) and isinstance(other.plan, Item):
        return clipped(one.plan.name, LONGEST_NAME), clipped(other.plan.name, LONGEST_NAME)
    return plan_names(problem, one, other)


def _needed(problem: Presentable, rival: Rival, estimate: Vector) -> str:
    """Return for which weights the alternative would be the best."""
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
    return ", ".join(
        f"{one_line(o.name)} {percent(float(share))}"
        for o, share, matters in zip(problem.objectives, weights.tolist(), problem.matters, strict=True)
        if matters
    )
