"""How good a recommendation is, in sentences: the one place that words it, for every front end.

Four kinds of statement, each with what it takes for granted: what is proved if the answers are right, what is proved even
if one of them is a slip, what is very likely when slips are allowed for, and what is lost on average.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tradeoff.model import Reason, Recommendation
from tradeoff.presentation.numbers import counted, percent_below, percent_up
from tradeoff.presentation.text import clipped

NOTHING_LOST = 1e-9  # a share that is only rounding

# What is said instead of numbers, and what it means.
NO_FIT = (
    "No one set of priorities fits your answers well, so how good this plan is for you cannot be said in numbers.",
    "That can be if what you want depends on the case, if you changed your mind, or after several slips: take this plan as a "
    "suggestion, and look at the options yourself.",
)

Kind = Literal["proved", "one slip", "very likely", "average"]


@dataclass(frozen=True)
class Statement:
    """One sentence about how much of the best possible gain is lost, with the share that it states."""

    kind: Kind
    share: float
    words: str


def stated(share: float) -> float:
    """Return a share as ``percent_up`` states it; everything, where that is not known to be less.

    >>> stated(0.0312), stated(0.0031), stated(0.0), stated(float("inf"))
    (0.04, 0.004, 0.0, 1.0)
    """
    if not share < 1:
        return 1.0
    return 0.0 if share <= NOTHING_LOST else float(percent_up(share)[:-1]) / 100


def statements(recommendation: Recommendation) -> list[Statement]:
    """Return what can be said; no two of these contradict each other, and nothing where no preference fits the answers.

    Everything is rounded up. The average has the digits that it takes to be below every maximum beside it. Where it is not
    below, it is left out. That can be: it allows for slips, and what is proved does not.
    """
    said: list[Statement] = []
    if not recommendation.fits:
        return said
    for kind, share, words in (
        ("proved", recommendation.regret_bound, _proved(recommendation)),
        (
            "one slip",
            recommendation.robust_bound,
            "Even if any one of your answers were a slip, at most {} would be lost.",
        ),
        (
            "very likely",
            recommendation.likely_worst,
            "Very likely within {} of the best plan for you, slips allowed for.",
        ),
    ):
        if share is not None and stated(share) < 1:
            said.append(Statement(kind, stated(share), words.format(percent_up(share))))  # type: ignore[arg-type]
    average, least = recommendation.likely_regret, min((one.share for one in said), default=1.0)
    if average is not None and (text := percent_below(average, least)):
        words = f"For people who answer as you did, about {text} is lost on average."
        said.append(Statement("average", float(text[:-1]) / 100, words))
    return said


def _proved(recommendation: Recommendation) -> str:
    answers = "your other answers" if recommendation.doubtful or recommendation.unexplained else "your answers"
    premise = f"If {answers} are right, " if recommendation.questions else ""
    nothing = (recommendation.regret_bound or 0.0) <= NOTHING_LOST
    if nothing and not premise:
        return "No plan is better in anything that is weighed."
    words = "no plan is better for you." if nothing else "at most {} is lost."
    return f"{premise}{words}" if premise else words[0].upper() + words[1:]


def certificate(recommendation: Recommendation) -> str:
    """Return how good the recommendation is already, in one sentence; "" where nothing can be said.

    >>> from tradeoff.model import NOTHING, Option
    >>> known = {"regret_bound": 0.0312, "likely_worst": 0.12, "target": 0.01}
    >>> certificate(Recommendation(Option([1.0], NOTHING), [1.0], 3, "", complete=False, **known))
    'Very likely within 12% of the best plan for you, slips allowed for.'
    """
    found = {one.kind: one.words for one in statements(recommendation)}
    return found.get("very likely") or found.get("proved") or ""


def certificate_while_asking(recommendation: Recommendation) -> str:
    """Return how good the recommendation is already.

    It is "" before the first answer, when nothing is known of the person, and where nothing could be better, which no
    question may follow.
    """
    if not recommendation.questions:
        return ""
    share = recommendation.regret_bound if recommendation.likely_worst is None else recommendation.likely_worst
    return "" if share is not None and share <= NOTHING_LOST else certificate(recommendation)


def certainty(reference_name: str, recommendation: Recommendation) -> list[str]:
    """Return all that can be said of how good the recommendation is, the likeliest first."""
    order: list[Kind] = ["very likely", "average", "proved", "one slip"]
    said = [one.words for one in sorted(statements(recommendation), key=lambda one: order.index(one.kind))]
    if not recommendation.fits:
        return list(NO_FIT)
    if said and recommendation.model_choice is not None:
        said.insert(0, BY_OBJECTIVES_ALONE)
    if said:
        said.append(f"Percentages are of what the best plan for you gains over “{clipped(reference_name)}”.")
    return said


BY_OBJECTIVES_ALONE = "These figures judge your choice by the listed objectives alone:"

_UNNOTICED = "no other plan is better for you by more than you would notice"
_EITHER = "no other plan is better for you by more than {target} or by more than you would notice"

REASONS = {
    Reason.PROVED: "if your answers are right, at most {target} is lost",
    Reason.UNNOTICEABLE: "if your answers are right, nothing could be better by as much as you would notice",
    Reason.INEXACT: str(Reason.INEXACT),
    Reason.CONTRADICTION: str(Reason.CONTRADICTION),
    Reason.VERY_LIKELY_WITHIN: "very likely within {target} of the best plan for you",
    Reason.VERY_LIKELY_UNNOTICED: f"very likely, {_UNNOTICED}",
    Reason.VERY_LIKELY_EITHER: f"very likely, {_EITHER}",
    Reason.PROBABLY_WITHIN: "probably within {target} of the best plan for you",
    Reason.PROBABLY_UNNOTICED: f"probably, {_UNNOTICED}",
    Reason.PROBABLY_EITHER: f"probably, {_EITHER}",
    Reason.NOTHING_TO_ASK: str(Reason.NOTHING_TO_ASK),
    Reason.CONFIRMED: "you preferred it when you compared the two",
    Reason.NOT_SURER: "this is not sure, but more questions would probably help little",
    Reason.NO_FIT: "your answers do not follow one set of priorities",
    Reason.TOO_MANY: str(Reason.TOO_MANY),
    Reason.EARLY: str(Reason.EARLY),
}


def reason_words(recommendation: Recommendation) -> str:
    """Return why the asking stopped; a text of a strategy's own, or of an old log, is returned as it is.

    >>> from tradeoff.model import NOTHING, Option
    >>> def why(reason): return reason_words(Recommendation(Option([1.0], NOTHING), [1.0], 3, reason, target=0.01))
    >>> why(Reason.VERY_LIKELY_WITHIN), why("the favourite so far")
    ('very likely within 1% of the best plan for you', 'the favourite so far')
    """
    try:
        words = REASONS[Reason(recommendation.reason)]
    except ValueError:
        return clipped(recommendation.reason)
    return words.format(target=f"{100 * (recommendation.target or 0.0):g}%")


def asked_words(recommendation: Recommendation, finished: bool) -> str:
    """Return how many questions were asked, and why no more if none are left."""
    asked = counted(recommendation.questions, "question")
    return f"{asked}: {reason_words(recommendation)}." if finished else f"{asked} so far."


EXCEEDED = {
    "proved": "What is proved if the answers are right was exceeded",
    "proved with one slip": "What is proved even with one slip was exceeded",
    "very likely": "“Very likely within” was exceeded",
    "reason": "The reason for stopping did not hold",
}


def exceeded_words(kind: str, stated: int, exceeded: int) -> str:
    """Return how often a kind of statement did not hold for simulated people.

    >>> exceeded_words("very likely", 200, 3), exceeded_words("average", 1, 0)
    ('“Very likely within” was exceeded 3 of 200 times.', 'The average that was stated was not exceeded.')
    """
    if kind == "average":
        return f"The average that was stated was {'exceeded' if exceeded else 'not exceeded'}."
    return f"{EXCEEDED[kind]} {exceeded:,} of {counted(stated, 'time')}."
