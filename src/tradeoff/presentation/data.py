"""Questions, alternatives and recommendations as plain data: one vocabulary for the API and for ``--json``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tradeoff.interview import Interview
from tradeoff.log import Reply, Shown, ShownMenu
from tradeoff.menus import Choice, Menu, Occasion, Statement, plain, strength_of
from tradeoff.model import Alternative, Item, Lottery, Objective, Question, Recommendation, Vector
from tradeoff.presentation.certainty import certainty, reason_words
from tradeoff.presentation.numbers import share_counts, share_total
from tradeoff.presentation.plans import guide, names_beside, plan_name, plan_names, recommended_name
from tradeoff.presentation.problems import instructions, notes, sizes
from tradeoff.presentation.risk import basis, risks
from tradeoff.presentation.stories import heaviest_first, path_words
from tradeoff.problem import Presentable
from tradeoff.wording import Wording

Data = dict[str, Any]


def finite(number: float | None) -> float | None:
    """Return a number as JSON can have it: None for infinities."""
    return None if number is None or not math.isfinite(number) else float(number)


def reply_data(reply: Reply) -> str | Data:
    """Return a reply as programs write it: a word, or what was best and worst on a menu, counted from 1."""
    reply = plain(reply)
    if isinstance(reply, Choice) and not reply.equal:
        ends = {"best": reply.best, "worst": reply.worst}
        return {word: number + 1 for word, number in ends.items() if number is not None}
    return "skip" if reply is None else "same" if isinstance(reply, Choice) else reply.value


def amounts_data(objectives: Sequence[Objective], values: Sequence[float]) -> list[Data]:
    """Return an amount per objective with its name and unit."""
    return [
        {"objective": o.name, "amount": float(value), "unit": o.unit, "goal": o.goal}
        for o, value in zip(objectives, values, strict=True)
    ]


def value_data(problem: Presentable, alternative: Alternative) -> Data:
    """Return an alternative without its stories: its gains, and its average outcome in units."""
    outcome = problem.outcome(alternative.value).tolist()
    return {"gains": alternative.value.tolist(), "average": amounts_data(problem.objectives, outcome)}


def alternative_data(
    problem: Presentable, alternative: Alternative, lottery: Lottery | None = None, name: str | None = None
) -> Data:
    """Return an alternative with some of the ways it can go, the largest weight first, and how its outcomes are spread."""
    shown = heaviest_first(lottery or problem.show(alternative))
    return {
        "name": plan_name(problem, alternative) if name is None else name,
        **value_data(problem, alternative),
        "stories": stories_data(shown, problem.wording),
        "risk": risk_data(shown),
    }


def guide_data(problem: Presentable, alternative: Alternative, name: str | None = None) -> Data | None:
    """Return how to follow a plan; None for an item. A plan that is recommended has a name already."""
    found = guide(problem, alternative)
    if found is None:
        return None
    rules = [{"when": rule.when, "do": rule.do} for rule in found.rules]
    return {"name": name or found.name, "lead": found.lead, "rules": rules, "covered": found.covered}


def risk_data(lottery: Lottery) -> Data | None:
    """Return how each objective really comes out; None where nothing is left to chance."""
    truth, found = lottery.truth, risks(lottery)
    if truth is None or not found:
        return None
    shares = [0.05, 0.25, 0.5, 0.75, 0.95]
    return {
        "rollouts": truth.rollouts,
        "error": truth.error,
        "basis": basis(lottery),
        "objectives": [
            {
                "objective": o.name,
                "unit": o.unit,
                "goal": o.goal,
                "words": one.words,
                "quantiles": dict(zip(map(str, shares), truth.quantiles(j, shares).tolist(), strict=True)),
                "dots": list(one.dots),
                "range": None if truth.range is None else truth.range[:, j].tolist(),
            }
            for j, (o, one) in enumerate(zip(lottery.objectives, found, strict=True))
        ],
    }


def stories_data(lottery: Lottery, wording: Wording) -> list[Data]:
    """Return the trajectories of a lottery."""
    total = share_total(lottery.weights)
    return [
        {
            "share": float(share),
            "count": count,
            "of": total,
            "probability": float(trajectory.probability),
            "words": path_words(trajectory, wording),
            "states": list(trajectory.states),
            "actions": list(trajectory.actions),
            "outcome": amounts_data(lottery.objectives, trajectory.outcome.tolist()),
        }
        for share, count, trajectory in zip(
            lottery.weights, share_counts(lottery.weights, total), lottery.trajectories, strict=True
        )
    ]


def shown_data(problem: Presentable, shown: Shown | ShownMenu) -> Data:
    """Return a question as it is shown: a pair, or the alternatives of a menu in the order of their places."""
    if isinstance(shown, ShownMenu):
        names = names_beside(problem, shown.alternatives)
        named = zip(shown.alternatives, names, strict=True)
        alternatives = [alternative_data(problem, one, name=name) for one, name in named]
        return {"asks": shown.question.asks, "alternatives": alternatives}
    return question_data(problem, shown.question, shown.left)


def question_data(problem: Presentable, question: Question, left: str) -> Data:
    """Return a pair; ``left`` says which alternative is shown as A."""
    first, second = plan_names(problem, question.first, question.second)
    return {
        "left": left,
        "first": alternative_data(problem, question.first, name=first),
        "second": alternative_data(problem, question.second, name=second),
    }


def recommendation_data(problem: Presentable, found: Recommendation, finished: bool, conflicts: Sequence[int]) -> Data:
    """Return what is recommended, and how much can be said for it."""
    return {
        "finished": finished,
        "complete": found.complete,
        "questions": found.questions,
        "reason": reason_words(found),
        "alternative": alternative_data(problem, found.alternative) | recommended_data(problem, found),
        "guide": guide_data(problem, found.alternative, recommended_data(problem, found)["name"]),
        "runner_up": None if found.runner_up is None else _runner_up(problem, found.alternative, found.runner_up),
        "weights": by_name(problem, found.weights),
        "importance": None
        if found.importance is None
        else {
            o.name: [finite(end) for end in ends]
            for o, ends in zip(problem.objectives, found.importance.tolist(), strict=True)
        },
        "regret_bound": finite(found.regret_bound),
        "robust_bound": finite(found.robust_bound),
        "likely_regret": finite(found.likely_regret),
        "likely_worst": finite(found.likely_worst),
        "fits": found.fits,
        "target": finite(found.target),
        "expected_left": finite(found.expected_left),
        "certainty": certainty(problem.reference_name, found),
        "unidentified": list(found.unidentified),
        "doubtful": [int(number) for number in found.doubtful],
        "conflicts": list(conflicts),
    }


def named_data(problem: Presentable, alternative: Alternative) -> Data:
    """Return what an alternative is called; an item also has its index and labels."""
    plan = alternative.plan
    if isinstance(plan, Item):
        return {"name": plan.name, "index": plan.index, "labels": dict(problem.labels_of(plan.name))}
    return {"name": plan_name(problem, alternative), "index": None, "labels": {}}


def recommended_data(problem: Presentable, found: Recommendation) -> Data:
    """Return what a recommended alternative is called: the same as in the sentence that recommends it."""
    named = named_data(problem, found.alternative)
    if isinstance(found.alternative.plan, Item):
        return named
    return named | {"name": recommended_name(problem, found.alternative, found.runner_up)}


def _runner_up(problem: Presentable, best: Alternative, next_best: Alternative) -> Data:
    name = {"name": plan_names(problem, best, next_best)[1]}  # a name of its own, even if both plans begin alike
    return value_data(problem, next_best) | named_data(problem, next_best) | name


def by_name(problem: Presentable, values: Vector) -> dict[str, float]:
    """Return a number per objective, by its name."""
    return dict(zip([o.name for o in problem.objectives], map(float, values), strict=True))


def interview_data(problem: Presentable, interview: Interview) -> Data:
    """Return an interview: what is recommended, and every answer that stands."""
    found = interview.recommendation
    conflicts = [] if found.complete else [number for number, _, _ in interview.conflicts()]
    return {
        "problem": problem.name,
        "strategy": interview.strategy,
        "finished": interview.finished,
        "recommendation": recommendation_data(problem, found, interview.finished, conflicts),
        "answers": [_answered(problem, *record) for record in interview.answers],
    }


def _answered(problem: Presentable, number: int, question: Occasion, reply: Reply) -> Data:
    if isinstance(question, Statement):
        return {"number": number, "statement": question.text}
    if isinstance(question, Menu):
        compared: Data = {
            "asks": question.asks,
            "alternatives": [value_data(problem, one) for one in question.alternatives],
        }
    else:
        compared = {"first": value_data(problem, question.first), "second": value_data(problem, question.second)}
    strength = strength_of(reply)
    said = {} if strength is None else {"strength": strength}
    return {"number": number, **compared, "answer": reply_data(reply), **said}


def plan_data(problem: Presentable, weights: Vector, best: Alternative) -> Data:
    """Return the best plan for stated weights, without saying what it is."""
    return {
        "problem": problem.name,
        "weights": by_name(problem, weights),
        "score": float(weights @ best.value),
        "alternative": value_data(problem, best),
    }


def solution_data(problem: Presentable, weights: Vector, best: Alternative) -> Data:
    """Return the best plan for stated weights, and what to do."""
    return plan_data(problem, weights, best) | instructions(problem, best) | {"guide": guide_data(problem, best)}


def explanation_data(problem: Presentable, weights: Vector, best: Alternative, lottery: Lottery) -> Data:
    """Return the best plan for stated weights, and the stories it can lead to."""
    return plan_data(problem, weights, best) | {
        "alternative": alternative_data(problem, best, lottery),
        "guide": guide_data(problem, best),
    }


def problem_data(problem: Presentable) -> Data:
    """Return a problem's objectives with the best and worst that can be expected of each, in units."""
    return sizes(problem) | {
        "about": problem.about,
        "objectives": [
            {
                "name": o.name,
                "unit": o.unit,
                "goal": o.goal,
                "description": o.description,
                "best": float(problem.ideal[j]),
                "worst": float(problem.nadir[j]),
                "reference": float(problem.origin[j]),
                "matters": bool(problem.matters[j]),
            }
            for j, o in enumerate(problem.objectives)
        ],
        "reference": problem.reference_name,
        "notes": notes(problem),
    }
