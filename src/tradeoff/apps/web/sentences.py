"""What was learned about a person, in sentences that need no explanation and promise no more than is known."""

from __future__ import annotations

from tradeoff.apps.cli.cards import certificate_line, percent_up, runner_up_line
from tradeoff.apps.web.cards import LONGEST, SHORT, amount_words, amounts_words, shown
from tradeoff.model import Alternative, Lottery, Recommendation
from tradeoff.problems.mdp import MDP
from tradeoff.representation.difference import ObjectiveDifference
from tradeoff.sensitivity import shares_of
from tradeoff.sources import AnyProblem


def plan_words(lottery: Lottery) -> str:
    """Return what a plan is called in a sentence: an item's name, or what it begins with."""
    likely = lottery.trajectories[0]
    if likely.actions and likely.actions[0]:
        return f"the plan that begins with “{shown(likely.actions[0], LONGEST)}”"
    return f"“{shown(likely.states[0], LONGEST)}”"


def because_words(problem: AnyProblem, recommendation: Recommendation) -> tuple[str, str]:
    """Return what seems to matter most to the person, as the end of a sentence, and how that is counted.

    Both are "" if nothing can be said yet. Nothing is called certain that other preferences which fit the answers deny.
    """
    shares = shares_of(recommendation.weights)
    matter = [j for j in range(len(shares)) if problem.frame.matters[j] and shares[j] > 0]
    order = sorted(matter, key=lambda j: -shares[j])
    if not recommendation.questions or len(order) < 2:
        return "", ""
    first, second = order[0], order[1]
    ranges, ratio = recommendation.importance, float(shares[first] / shares[second])
    sure = ranges is not None and float(ranges[first, 0]) > float(ranges[second, 1])
    one, other = (shown(problem.objectives[j].name, SHORT) for j in (first, second))
    sentence = f"{one} {'matters' if sure else 'probably matters'} {times_words(ratio)} {other}"
    less = [shown(problem.objectives[j].name, SHORT) for j in order[2:]]
    if less:
        sentence += f", and {_listed(less)} {'seems' if len(less) == 1 else 'seem'} to matter less"
    ways = f"{_way(problem, first)}, {_way(problem, second)}"
    return sentence, f"Counted for the whole way from the worst to the best that is possible: {ways}."


def times_words(ratio: float) -> str:
    """Return a ratio as a person says it, rounded as coarsely as it is known.

    >>> [times_words(r) for r in (1.1, 1.5, 2.2, 4.4, 30)]
    ['about as much as', 'about one and a half times as much as', 'about twice as much as', 'about 4 times as much as',\
 'more than 10 times as much as']
    """
    if ratio < 1.25:
        return "about as much as"
    if ratio < 1.75:
        return "about one and a half times as much as"
    if ratio < 2.5:
        return "about twice as much as"
    return f"about {ratio:.0f} times as much as" if ratio <= 10 else "more than 10 times as much as"


def _way(problem: AnyProblem, j: int) -> str:
    o, frame = problem.objectives[j], problem.frame
    worst, best = amounts_words(o, float(frame.origin[j]), float(frame.ideal[j]))
    return f"{shown(o.name, SHORT)} from {worst} to {best}"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def certainty_words(problem: AnyProblem, recommendation: Recommendation) -> list[str]:
    """Return how good the recommendation is: what is proved, what if a slip is among the answers, what is likely."""
    said = []
    proved = certificate_line(recommendation)
    if proved:
        said.append(proved)
    robust, likely = recommendation.robust_bound, recommendation.likely_regret
    if robust is not None and robust < 1:
        said.append(f"Even if any one of your answers were a slip, at most {percent_up(robust)} would be lost.")
    if likely is not None and likely < 1:
        said.append(f"For people who answer as you did, about {percent_up(likely)} is lost on average.")
    if said:
        name = shown(problem.reference_name, LONGEST)
        said.append(f"Per cents are of what the best plan for you gains over “{name}”.")
    return said


def runner_up_words(problem: AnyProblem, recommendation: Recommendation) -> str:
    """Return what the next best plan would change, or ""."""
    return shown(runner_up_line(problem, recommendation) or "", 10 * LONGEST)


def range_words(low: float | None, high: float | None) -> str:
    """Return which importance still fits the answers, rounded outwards so as not to pretend."""
    if low is None or high is None:
        return ""
    least, most = int(100 * low + 1e-9), -int(-100 * high // 1)
    if least <= 0 and most >= 100:
        return "your answers leave this open"
    return f"anything from {max(least, 0)}% to {min(most, 100)}% fits your answers"


def changes_between(problem: AnyProblem, before: Alternative, after: Alternative) -> list[str]:
    """Return by how much each objective changes, "" where it stays the same."""
    amounts = problem.outcome(after.value) - problem.outcome(before.value)
    return [
        f"{amount_words(o, abs(float(change)))} {'more' if change > 0 else 'less'}" if abs(change) > 1e-6 * size else ""
        for o, change, size in zip(problem.objectives, amounts.tolist(), abs(problem.scale).tolist(), strict=True)
    ]


def answered_words(parts: tuple[ObjectiveDifference, ...]) -> list[str]:
    """Return how the two alternatives of a question differed, seen from A and B."""
    return [shown(part.words("A", "B")) for part in parts if part.better != "same"]


def outlook(problem: AnyProblem) -> str:
    """Return what a problem's alternatives are, in a word for lay people."""
    return "plans" if isinstance(problem, MDP) else "alternatives"
