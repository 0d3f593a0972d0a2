"""Questions, options and recommendations as plain data: one vocabulary for the API and for ``--json``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tradeoff.evidence import Answer
from tradeoff.interview import Interview
from tradeoff.log import ShownQuestion
from tradeoff.model import Item, Lottery, Matrix, Objective, Option, Recommendation, Reply, Vector
from tradeoff.presentation.certainty import certainty, reason_words
from tradeoff.presentation.numbers import share_counts, share_total
from tradeoff.presentation.plans import guide, names_beside, plan_name, plan_names, recommended_name
from tradeoff.presentation.problems import instructions, notes, sizes
from tradeoff.presentation.risk import basis, risks
from tradeoff.presentation.stories import heaviest_first, path_words
from tradeoff.problem import Presentable, pieces_of
from tradeoff.wording import Wording

Data = dict[str, Any]


def finite(number: float | None) -> float | None:
    """Return a number as JSON can have it: None for infinities."""
    return None if number is None or not math.isfinite(number) else float(number)


def reply_data(reply: Reply) -> str | Data:
    """Return a reply as programs write it: a word, or the numbers of the best and the worst option, counted from 1."""
    if reply.word is not None:
        return reply.word
    named = {"best": reply.best, "worst": reply.worst}
    return {word: position + 1 for word, position in named.items() if position is not None}


def amounts_data(objectives: Sequence[Objective], values: Sequence[float]) -> list[Data]:
    """Return an amount per objective with its name and unit."""
    return [
        {"objective": o.name, "amount": float(value), "unit": o.unit, "goal": o.goal}
        for o, value in zip(objectives, values, strict=True)
    ]


def value_data(problem: Presentable, option: Option) -> Data:
    """Return an option without its stories: its gains, and its average outcome in units."""
    option, problem = problem.as_read(option), problem.original
    outcome = problem.outcome(option.value).tolist()
    return {"gains": option.value.tolist(), "average": amounts_data(problem.objectives, outcome)}


def option_data(problem: Presentable, option: Option, lottery: Lottery | None = None, name: str | None = None) -> Data:
    """Return an option with some of the ways it can go, the largest weight first, and how its outcomes are spread."""
    shown = heaviest_first(lottery or problem.show(option))
    return {
        **named_data(problem, option),
        **({} if name is None else {"name": name}),
        **value_data(problem, option),
        "stories": stories_data(shown, problem.wording),
        "risk": risk_data(shown),
    }


def guide_data(problem: Presentable, option: Option, name: str | None = None) -> Data | None:
    """Return how to follow a plan; None for an item. A plan that is recommended has a name already."""
    found = guide(problem, option)
    if found is None:
        return None
    rules = [{"when": rule.when, "do": rule.do, "often": rule.often} for rule in found.rules]
    return {"name": name or plan_name(problem, option), "lead": found.lead, "rules": rules, "covered": found.covered}


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


def shown_data(problem: Presentable, shown: ShownQuestion) -> Data:
    """Return a question as it is shown: its options in the order of their places."""
    named = zip(shown.options, names_beside(problem, shown.options), strict=True)
    return {"asks": shown.question.asks, "options": [option_data(problem, option, name=name) for option, name in named]}


def recommendation_data(problem: Presentable, found: Recommendation, finished: bool, conflicts: Sequence[int]) -> Data:
    """Return what is recommended, and how much can be said for it."""
    return {
        "finished": finished,
        "complete": found.complete,
        "questions": found.questions,
        "reason": reason_words(found),
        "option": option_data(problem, found.option) | recommended_data(problem, found),
        "guide": guide_data(problem, found.option, recommended_data(problem, found)["name"]),
        "runner_up": _beside(problem, found.option, found.runner_up),
        "model_choice": _beside(problem, found.option, found.model_choice),
        "contested_by": _beside(problem, found.option, found.contested_by),
        "weights": by_name(problem, found.weights),
        "importance": _intervals(problem, found.importance),
        "importance_if_right": _intervals(problem, found.importance_if_right),
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
        "unexplained": [int(number) for number in found.unexplained],
        "conflicts": list(conflicts),
        "notes": notes(problem),
    }


def named_data(problem: Presentable, option: Option) -> Data:
    """Return what an option is called; an item also has its index and labels."""
    plan = option.plan
    if isinstance(plan, Item):
        return {"name": plan.name, "index": plan.index, "labels": dict(problem.labels_of(plan.name))}
    return {"name": plan_name(problem, option), "index": None, "labels": {}}


def recommended_data(problem: Presentable, found: Recommendation) -> Data:
    """Return what a recommended option is called: the same as in the sentence that recommends it."""
    named = named_data(problem, found.option)
    if problem.items is not None:
        return named
    return named | {"name": recommended_name(problem, found.option, found.runner_up)}


def _beside(problem: Presentable, best: Option, other: Option | None) -> Data | None:
    """Return an option beside the recommended one, with a name of its own even if both plans begin alike."""
    if other is None:
        return None
    name = {"name": plan_names(problem, best, other)[1]}
    return value_data(problem, other) | named_data(problem, other) | name


def by_name(problem: Presentable, weights: Vector) -> dict[str, float]:
    """Return the weight of each objective that people read, by its name; the pieces of a curve count together."""
    names = [o.name for o in problem.original.objectives]
    return dict(zip(names, (weights @ pieces_of(problem)).tolist(), strict=True))


def _intervals(problem: Presentable, ends: Matrix | None) -> dict[str, list[float | None]] | None:
    """Return an interval per objective that people read, by its name."""
    if ends is None:
        return None
    rows = zip(problem.original.objectives, ends.tolist(), strict=True)
    return {o.name: [finite(low), finite(high)] for o, (low, high) in rows}


def interview_data(problem: Presentable, interview: Interview) -> Data:
    """Return an interview: what is recommended, and every answer that stands."""
    conflicts = [answer.number for answer in interview.conflicts()]
    return {
        "problem": problem.name,
        "strategy": interview.strategy,
        "finished": interview.finished,
        "recommendation": recommendation_data(problem, interview.recommendation, interview.finished, conflicts),
        "answers": [_answer_data(problem, answer) for answer in interview.answers],
    }


def _answer_data(problem: Presentable, answer: Answer) -> Data:
    if answer.statement is not None:
        return {"number": answer.number, "statement": answer.statement.text}
    assert answer.asked is not None
    return {
        "number": answer.number,
        "asks": answer.asked.asks,
        "options": [value_data(problem, option) for option in answer.asked.options],
        "reply": reply_data(answer.reply),
        **({"observed": True} if answer.observed else {}),
    }


def plan_data(problem: Presentable, weights: Vector, best: Option) -> Data:
    """Return the best plan for stated weights, without saying what it is."""
    return {
        "problem": problem.name,
        "weights": by_name(problem, weights),
        "score": float(weights @ best.value),
        "option": value_data(problem, best),
    }


def solution_data(problem: Presentable, weights: Vector, best: Option) -> Data:
    """Return the best plan for stated weights, and what to do."""
    return plan_data(problem, weights, best) | instructions(problem, best) | {"guide": guide_data(problem, best)}


def explanation_data(problem: Presentable, weights: Vector, best: Option, lottery: Lottery) -> Data:
    """Return the best plan for stated weights, and the stories it can lead to."""
    return plan_data(problem, weights, best) | {
        "option": option_data(problem, best, lottery),
        "guide": guide_data(problem, best),
    }


def problem_data(problem: Presentable) -> Data:
    """Return a problem's objectives with the best and worst that can be expected of each, in units."""
    return sizes(problem.original) | {
        "about": problem.original.about,
        "objectives": objectives_data(problem),
        "reference": problem.original.reference_name,
        "notes": notes(problem),
    }


def objectives_data(problem: Presentable) -> list[Data]:
    """Return the objectives that people read, with their attainable range."""
    problem = problem.original
    return [
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
    ]
