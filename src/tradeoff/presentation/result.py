"""A recommendation as people read it: what, why, how certain, and what would change it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tradeoff.log import Shown, Side
from tradeoff.model import Alternative, Answer, Lottery, Question, Recommendation
from tradeoff.presentation import sentences
from tradeoff.presentation.cards import AmountRow, Card, advantages, amounts, card, changes, comparison
from tradeoff.presentation.numbers import amount_pair, counted, percent, percent_up
from tradeoff.presentation.plans import Guide, guide, plan_names
from tradeoff.presentation.stories import common_total, is_certain
from tradeoff.presentation.text import clipped, one_line
from tradeoff.problem import Presentable
from tradeoff.sensitivity import Change, shares_of

NOTICEABLE = 1e-3  # of an objective's range: what the runner-up changes by less is not mentioned


@dataclass(frozen=True)
class Importance:
    """How much one objective matters, with the range that fits the answers."""

    name: str
    way: str  # "from 76 min to 40 min"
    matters: bool  # False: no plan changes it
    share: float
    band: tuple[float, float] | None
    words: str

    @property
    def percent(self) -> str:
        """The estimated share."""
        return percent(self.share)


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


def result(problem: Presentable, recommendation: Recommendation, lottery: Lottery, finished: bool) -> Result:
    """Return the facts about a recommendation; ``lottery`` is what the problem shows of it, heaviest first."""
    because, counted_words = because_words(problem, recommendation)
    done = finished and recommendation.complete
    told = len(lottery.trajectories) > 1 or bool(lottery.trajectories[0].actions)
    return Result(
        heading="The best plan for you" if done else "The best plan for you, so far",
        sentence=f"We would recommend {plan_name(lottery)}{f', because to you, {because}' if because else ''}.",
        counted=counted_words,
        lead=sentences.plan_lead(lottery) if told else "",
        card=card(problem, lottery, common_total(lottery)),
        average="" if is_certain(lottery) else "on average",
        amounts=amounts(problem, recommendation.alternative),
        importance=_importance(problem, recommendation),
        certainty=certainty(problem, recommendation),
        reason=sentences.reason(recommendation.questions, clipped(recommendation.reason) if finished else ""),
        runner_up=_runner_up(problem, recommendation),
        doubtful=tuple(int(number) for number in recommendation.doubtful),
        left_open=_left_open(recommendation),
        guide=guide(problem, recommendation.alternative),
    )


def plan_name(lottery: Lottery) -> str:
    """Return what a plan is called in a sentence: an item's name, or what it begins with."""
    likely = lottery.trajectories[0]
    if likely.actions and likely.actions[0]:
        return f"the plan that begins with “{clipped(likely.actions[0])}”"
    return f"“{clipped(likely.states[0])}”"


def _left_open(recommendation: Recommendation) -> str:
    if not recommendation.unidentified:
        return ""
    names = ", ".join(map(one_line, recommendation.unidentified))
    return f"How much these matter to you was {sentences.LEFT_OPEN}: {names}."


def _runner_up(problem: Presentable, recommendation: Recommendation) -> str:
    """Return what the next best plan would change, in units; "" where there is none."""
    if recommendation.runner_up is None:
        return ""
    found = changes(problem, recommendation.alternative, recommendation.runner_up, least=NOTICEABLE)
    told = [f"{one_line(o.name)} {change}" for o, change in zip(problem.objectives, found, strict=True) if change]
    _, name = plan_names(problem, recommendation.alternative, recommendation.runner_up)
    return f"The next best plan for you, “{name}”, would mean: {', '.join(told)}." if told else ""


# --- certainty -------------------------------------------------------------------------------------------------------


def certificate(recommendation: Recommendation) -> str:
    """Return how good the recommendation provably is, rounded up; "" where nothing was proved.

    >>> from tradeoff.model import NOTHING, Alternative
    >>> known = {"regret_bound": 0.0312, "expected_left": 2.6, "target": 0.01}
    >>> certificate(Recommendation(Alternative([1.0], NOTHING), [1.0], 3, "", complete=False, **known))
    'Within 4% of the best plan for you, whatever you would answer next; about 3 more questions to 1%.'
    """
    bound = recommendation.regret_bound
    if bound is None or bound >= 1:
        return ""
    if bound <= 1e-9:
        return "No plan is better for you, whatever you would answer next."
    line = f"Within {percent_up(bound)} of the best plan for you, whatever you would answer next"
    likely, aim, left = recommendation.likely_worst, recommendation.target, recommendation.expected_left
    if likely is not None and likely < 0.9 * bound:
        line += f", and very likely within {percent_up(likely)}"
    if aim is not None and left is not None and bound > aim and not recommendation.complete:
        line += f"; about {counted(max(1, round(left)), 'more question')} to {100 * aim:g}%"
    return line + "."


def certainty(problem: Presentable, recommendation: Recommendation) -> list[str]:
    """Return how good the recommendation is: what is proved, what holds if one answer is a slip, what is likely."""
    said = [proved] if (proved := certificate(recommendation)) else []
    robust, likely = recommendation.robust_bound, recommendation.likely_regret
    if robust is not None and robust < 1:
        said.append(f"Even if any one of your answers were a slip, at most {percent_up(robust)} would be lost.")
    if likely is not None and likely < 1:
        said.append(f"For people who answer as you did, about {percent_up(likely)} is lost on average.")
    if said:
        name = clipped(problem.reference_name)
        said.append(f"Percentages are of what the best plan for you gains over “{name}”.")
    return said


# --- importance ------------------------------------------------------------------------------------------------------


def because_words(problem: Presentable, recommendation: Recommendation) -> tuple[str, str]:
    """Return what seems to matter most to the person, as the end of a sentence, and how that is counted.

    Both are "" if nothing can be said yet. Nothing is called certain that other preferences which fit the answers deny.
    """
    shares = shares_of(recommendation.weights)
    matter = [j for j in range(len(shares)) if problem.matters[j] and shares[j] > 0]
    order = sorted(matter, key=lambda j: -shares[j])
    if not recommendation.questions or len(order) < 2:
        return "", ""
    first, second, *rest = order
    names = [clipped(o.name, 40) for o in problem.objectives]
    ranges, ratio = recommendation.importance, float(shares[first] / shares[second])
    sure = ranges is not None and float(ranges[first, 0]) > float(ranges[second, 1])
    matters = "matters" if sure else "probably matters"
    sentence = f"{names[first]} {matters} {sentences.times_as_much(ratio)} {names[second]}"
    if rest:
        less = sentences.listed([names[j] for j in rest])
        sentence += f", and {less} {'seems' if len(rest) == 1 else 'seem'} to matter less"
    ways = ", ".join(f"{names[j]} {_way(problem, j)}" for j in (first, second))
    return sentence, f"Counted for the whole way from the worst to the best that is possible: {ways}."


def _way(problem: Presentable, j: int) -> str:
    worst, best = amount_pair(problem.objectives[j], float(problem.origin[j]), float(problem.ideal[j]))
    return f"from {worst} to {best}"


def _importance(problem: Presentable, recommendation: Recommendation) -> list[Importance]:
    shares, ranges = shares_of(recommendation.weights), recommendation.importance
    rows = []
    for j, o in enumerate(problem.objectives):
        band = None if ranges is None else (max(float(ranges[j, 0]), 0.0), min(float(ranges[j, 1]), 1.0))
        words = "" if band is None else sentences.importance_range(*band)
        if o.name in recommendation.unidentified:
            words = sentences.LEFT_OPEN
        matters = bool(problem.matters[j])
        rows.append(Importance(one_line(o.name), _way(problem, j), matters, float(shares[j]), band, words))
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


def what_ifs(
    problem: Presentable, found: Alternative, tried: Sequence[Change], shown: Callable[[Alternative], Lottery]
) -> list[WhatIf]:
    """Return what would be recommended instead of ``found``, for each objective that can be changed.

    ``tried`` is what ``sensitivity.what_if`` returns, and ``shown`` gives an alternative's lottery.
    """
    made = []
    for change, matters in zip(tried, problem.matters, strict=True):
        if not matters:
            continue
        stops = []
        for stop in change.stops:
            low, high = percent(stop.low), percent(stop.high)
            # Telling a policy's stories takes long, and its averages say enough here.
            known = stop is change.stops[0] or not problem.has_paths
            plan = plan_name(shown(stop.alternative)) if known else "a plan with these averages"
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
    answer: Answer | None  # FIRST means A; None: skipped


def as_shown(number: int, question: Question, answer: Answer | None, left: Side) -> Given:
    """Return an answer as the person saw the question; ``left`` says which alternative was A."""
    shown = Shown(question, left)
    return Given(number, shown.a, shown.b, shown.turned(answer))


@dataclass(frozen=True)
class AnswerLine:
    """An answer as it is listed: what was said, and how A and B differed."""

    number: int
    ordinal: int
    choice: str  # "A", "B", "about equal" or "skipped"
    said: str
    differences: list[str]
    conflict: bool
    doubtful: bool


def answer_lines(
    problem: Presentable, given: Sequence[Given], *, conflicts: Sequence[int] = (), doubtful: Sequence[int] = ()
) -> list[AnswerLine]:
    """Return the answers in their order, with those marked that contradict each other or are probably slips."""
    return [
        AnswerLine(
            one.number,
            ordinal,
            sentences.CHOICES[one.answer],
            sentences.ANSWERED[one.answer],
            advantages(comparison(problem, one.left, one.right)),
            one.number in conflicts,
            one.number in doubtful,
        )
        for ordinal, one in enumerate(given, start=1)
    ]
