"""The misfit check: it finds respondents who reply at random, and seldom accuses those who follow one set of weights."""

from __future__ import annotations

import numpy as np
import pytest

import tradeoff
from tradeoff.problem import Problem
from tradeoff.simulation.respondents import random_respondent

COFFEE = tradeoff.load("coffee")
RANDOM, LINEAR = 200, 60
NOISY = ("exact", "logistic-3", "slips-10", "thurstone-5", "side")


def fits(problem: Problem, questions: str, respond) -> bool:
    interview = tradeoff.Interview(problem, questions=questions)
    while question := interview.ask():
        interview.tell(respond(question))
    return interview.recommendation.fits


@pytest.mark.parametrize("questions", ["pairs", "best-worst-4"])
def test_half_of_those_who_reply_at_random_are_noticed(questions: str) -> None:
    rng = np.random.default_rng(22)

    def at_random(question: tradeoff.Question) -> tradeoff.Reply:
        return question.replies[rng.integers(len(question.replies))]

    noticed = sum(not fits(COFFEE, questions, at_random) for _ in range(RANDOM))
    assert noticed >= RANDOM / 2


@pytest.mark.parametrize("questions", ["pairs", "best-worst-4"])
def test_respondents_with_one_set_of_weights_are_seldom_accused(questions: str) -> None:
    people = [(kind, number) for kind in NOISY for number in range(LINEAR)]
    accused = sum(not fits(COFFEE, questions, random_respondent(COFFEE, kind, number)) for kind, number in people)
    assert accused <= 0.05 * len(people)
