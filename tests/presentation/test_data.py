"""One vocabulary: what ``--json`` prints is what the OpenAPI document of the page describes."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import numpy as np
import pytest

import tradeoff
from tradeoff.apps.web.openapi import document
from tradeoff.model import Recommendation
from tradeoff.presentation.data import (
    explanation_data,
    interview_data,
    problem_data,
    question_data,
    recommendation_data,
    solution_data,
)
from tradeoff.users import LinearUser

BUNDLED = ["coffee", "commute", "portfolio"]


def valid(name: str, data: Any) -> None:
    schemas = document()["components"]["schemas"]
    jsonschema.validate(data, {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}})


@pytest.mark.parametrize("name", BUNDLED)
def test_questions_and_recommendations_are_as_the_api_says(name: str) -> None:
    problem = tradeoff.load(name)
    interview = tradeoff.Interview(problem)
    person = LinearUser.scaled(problem, np.arange(1, len(problem.objectives) + 1), 0.01)
    for _ in range(2):
        question = interview.ask()
        assert question is not None
        valid("Question", question_data(problem, question, "second"))
        interview.tell(person(question))
    found = interview_data(problem, interview)
    valid("Recommendation", found["recommendation"])
    assert [answer["first"]["gains"] for answer in found["answers"]] == [
        question.first.value.tolist() for _, question, _ in interview.answers
    ]
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize("name", BUNDLED)
def test_solve_and_explain_speak_of_the_same_alternative(name: str) -> None:
    problem = tradeoff.load(name)
    weights = np.ones(len(problem.objectives))
    (best,) = problem.best([weights])
    solved, explained = (
        solution_data(problem, weights, best),
        explanation_data(problem, weights, best, problem.show(best)),
    )
    valid("Alternative", explained["alternative"])
    assert solved["alternative"] == {key: explained["alternative"][key] for key in ("gains", "average")}
    assert solved["weights"] == explained["weights"] and solved["score"] == pytest.approx(float(weights @ best.value))
    assert {"item", "plan", "solution"} & set(solved)
    shares = [story["share"] for story in explained["alternative"]["stories"]]
    assert shares == sorted(shares, reverse=True)
    json.dumps([solved, explained, problem_data(problem)], allow_nan=False)


def test_what_is_unknown_or_infinite_is_null() -> None:
    problem = tradeoff.load("coffee")
    weights = np.full(len(problem.objectives), 0.2)
    (best,) = problem.best([weights])
    found = recommendation_data(problem, Recommendation(best, weights, 0, "", regret_bound=np.inf), False, [])
    valid("Recommendation", found)
    assert found["regret_bound"] is found["likely_regret"] is found["importance"] is None
    assert found["certainty"] == []
