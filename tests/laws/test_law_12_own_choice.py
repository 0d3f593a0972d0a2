"""Law 12: an option that the respondent directly preferred is never overruled without asking again and saying so."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies.people import random_catalogue, random_mdp
from tradeoff.decisions import ranking
from tradeoff.interview import Interview
from tradeoff.model import Question, Recommendation, Reply, Vector
from tradeoff.problem import Problem
from tradeoff.problems.catalogue import Catalogue

KINDS = [(strategy, questions) for strategy in ("careful", "certified") for questions in ("pairs", "best-worst-4")]


class StrictOrder:
    """A respondent with a strict order over all options, for reasons that are not among the objectives."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.ranks: dict[bytes, float] = {}

    def rank(self, value: Vector) -> float:
        key = value.tobytes()
        if key not in self.ranks:
            self.ranks[key] = np.random.default_rng([self.seed, len(self.ranks)]).random()
        return self.ranks[key]

    def __call__(self, question: Question) -> Reply:
        ranks = [self.rank(value) for value in question.values]
        return Reply(int(np.argmin(ranks)), int(np.argmax(ranks)) if question.asks == "best-worst" else None)


def interviewed(problem: Problem, strategy: str, questions: str, seed: int) -> Interview:
    interview, respondent = Interview(problem, strategy, questions=questions), StrictOrder(seed)
    while question := interview.ask():
        interview.tell(respondent(question))
    return interview


def placed_above(interview: Interview) -> list[tuple[int, bytes, bytes]]:
    """Return for each answer that names options: its number, and every option that it places above another one."""
    found = []
    for answer in interview.answers:
        assert answer.asked is not None
        names = [value.tobytes() for value in answer.asked.values]
        best, worst = answer.reply.best, answer.reply.worst
        for i, j in permutations(range(len(names)), 2):
            if best is not None and (i == best or j == worst):
                found.append((answer.number, names[i], names[j]))
    return found


def rejections(interview: Interview) -> tuple[set[bytes], set[bytes]]:
    """Return, by brute force, the options that were ever rejected, and those that were chosen over the recommended one."""
    recommended = interview.recommendation.option.value
    rejected, chosen_over_it = set(), set()
    for _, better, worse in placed_above(interview):
        rejected.add(worse)
        if worse == recommended.tobytes():
            chosen_over_it.add(better)
    return rejected, chosen_over_it


@pytest.mark.parametrize(("strategy", "questions"), KINDS)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_nothing_is_recommended_that_an_unrejected_option_beat(strategy: str, questions: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    interview = interviewed(random_catalogue(random, int(random.integers(2, 6)), 9), strategy, questions, seed)
    rejected, chosen_over_it = rejections(interview)
    found = interview.recommendation
    assert chosen_over_it <= rejected or found.contested_by is not None
    if found.reason != "that many questions were not enough to be sure":
        assert chosen_over_it <= rejected


def test_plans_of_a_model_too() -> None:
    overruled = 0
    for seed in (5, 6, 7, 11):
        interview = interviewed(random_mdp(np.random.default_rng(seed), 3), "careful", "best-worst-4", seed)
        rejected, chosen_over_it = rejections(interview)
        assert chosen_over_it <= rejected
        overruled += interview.recommendation.model_choice is not None
    assert overruled  # or the test would show nothing


def confirmed_interview() -> Interview:
    """Return an interview in which the respondent's confirmed choice is not what the model favours."""
    for seed in range(200):
        problem = random_catalogue(np.random.default_rng(seed), 4, 9)
        interview = interviewed(problem, "careful", "best-worst-4", seed)
        if interview.recommendation.model_choice is not None:
            return interview
    raise AssertionError("no respondent was at odds with the model")


def test_the_confirmed_option_comes_first_and_every_figure_is_its_own() -> None:
    interview = confirmed_interview()
    found, problem = interview.recommendation, interview.problem
    assert isinstance(problem, Catalogue)
    first, *rest = ranking(interview, places=len(problem.names)).ranked
    assert np.array_equal(first.option.value, found.option.value)
    assert [one.loss for one in rest] == sorted(one.loss for one in rest)
    assert min(one.loss for one in rest) < first.loss
    assert found.criterion is not None and first.loss == pytest.approx(mean_regret(found), abs=0.01)
    # The bound is the largest regret over all weights that fit the trusted answers: no sample of these exceeds it.
    trusted = ranking(interview).preferences.spread(500)
    regrets = 1 - (trusted @ found.option.value) / (trusted @ problem.gains.T).max(axis=1)
    assert found.regret_bound is not None and regrets.max() <= found.regret_bound + 1e-9


def mean_regret(found: Recommendation) -> float:
    assert found.criterion is not None
    return float(1 - ((found.criterion.weights @ found.option.value) / found.criterion.best).mean())


@pytest.mark.parametrize("questions", ["pairs", "best-worst-4"])
def test_an_answer_that_was_repeated_is_never_called_a_slip(questions: str) -> None:
    unexplained = 0
    for seed in range(25):
        interview = interviewed(random_catalogue(np.random.default_rng(seed), 4, 8), "careful", questions, seed)
        found = interview.recommendation
        said: dict[tuple[bytes, bytes], list[int]] = {}
        for number, better, worse in placed_above(interview):
            said.setdefault((better, worse), []).append(number)
        once = {number for numbers in said.values() if len(numbers) == 1 for number in numbers}
        assert set(found.doubtful) <= once
        unexplained += len(found.unexplained)
    assert unexplained


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(0, 8))
def test_one_criterion_decides_and_orders(seed: int, k: int, answers: int) -> None:
    """Nothing in a ranking loses less than the first, unless the respondent preferred the first."""
    random = np.random.default_rng(seed)
    problem = random_catalogue(random, k, 30)
    interview = Interview(problem, "careful")
    for _ in range(answers):
        question = interview.ask()
        if question is None:
            break
        interview.tell(question.replies[random.integers(3)])
    found = ranking(interview, places=30)
    losses = [one.loss for one in found.ranked]
    assert np.array_equal(found.ranked[0].option.value, interview.recommendation.option.value)
    if found.confirmed:
        losses = losses[1:]
    assert losses == sorted(losses)
