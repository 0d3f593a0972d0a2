"""One vocabulary: what ``--json`` prints is what the OpenAPI document of the page describes."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import numpy as np
import pytest

import tradeoff
from tradeoff.apps.web.openapi import document
from tradeoff.evidence import QUESTIONS
from tradeoff.model import Recommendation
from tradeoff.presentation.data import (
    explanation_data,
    interview_data,
    problem_data,
    recommendation_data,
    reply_data,
    shown_data,
    solution_data,
)
from tradeoff.simulation.respondents import LinearRespondent

BUNDLED = ["coffee", "commute", "portfolio"]


def valid(name: str, data: Any) -> None:
    schemas = document()["components"]["schemas"]
    jsonschema.validate(data, {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}})


@pytest.mark.parametrize("kind", QUESTIONS)
@pytest.mark.parametrize("name", BUNDLED)
def test_questions_and_recommendations_are_as_the_api_says(name: str, kind: str) -> None:
    problem = tradeoff.load(name)
    interview = tradeoff.Interview(problem, questions=kind, order_seed=1)
    person = LinearRespondent.scaled(problem, np.arange(1, len(problem.objectives) + 1), 0.01)
    for _ in range(2):
        shown, question = interview.next(), interview.ask()
        assert shown is not None and question is not None
        valid("QuestionData", shown_data(problem, shown))
        interview.tell(person(question))
    found = interview_data(problem, interview)
    valid("RecommendationData", found["recommendation"])
    for told, answer in zip(found["answers"], interview.answers, strict=True):
        assert [option["gains"] for option in told["options"]] == answer.asked.values.tolist()
        assert told["reply"] == reply_data(answer.reply)
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize("name", BUNDLED)
def test_solve_and_explain_speak_of_the_same_option(name: str) -> None:
    problem = tradeoff.load(name)
    weights = np.ones(len(problem.objectives))
    (best,) = problem.best([weights])
    solved, explained = (
        solution_data(problem, weights, best),
        explanation_data(problem, weights, best, problem.show(best)),
    )
    valid("OptionData", explained["option"])
    assert solved["option"] == {key: explained["option"][key] for key in ("gains", "average")}
    assert solved["weights"] == explained["weights"] and solved["score"] == pytest.approx(float(weights @ best.value))
    assert {"item", "plan", "solution"} & set(solved)
    shares = [story["share"] for story in explained["option"]["stories"]]
    assert shares == sorted(shares, reverse=True)
    json.dumps([solved, explained, problem_data(problem)], allow_nan=False)


def test_what_is_unknown_or_infinite_is_null() -> None:
    problem = tradeoff.load("coffee")
    weights = np.full(len(problem.objectives), 0.2)
    (best,) = problem.best([weights])
    found = recommendation_data(problem, Recommendation(best, weights, 0, "", regret_bound=np.inf), False, [])
    valid("RecommendationData", found)
    assert found["regret_bound"] is found["likely_regret"] is found["importance"] is None
    assert found["certainty"] == []
