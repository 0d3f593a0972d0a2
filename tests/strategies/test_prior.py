"""Learning from those before: a prior that is plain numbers, helps people alike, and touches no certificate."""

from __future__ import annotations

import doctest
import json
from typing import Any

import numpy as np
import pytest

from tests.strategies.people import random_catalogue, regret
from tradeoff import Answer, ArgumentError, Catalogue, Interview, LinearRespondent, Question, learn_prior
from tradeoff.evidence import Evidence
from tradeoff.model import FIRST, SKIP
from tradeoff.simulation.respondents import KINDS, Respondent
from tradeoff.strategies import posterior
from tradeoff.strategies import prior as prior_module
from tradeoff.strategies.posterior import DirichletMixture, update_samples
from tradeoff.strategies.prior import OUTSIDERS, Prior, mixture_of

TYPES = np.array([[0.8, 0.1, 0.1], [0.05, 0.15, 0.8]])


@pytest.fixture(scope="module")
def problem() -> Catalogue:
    return random_catalogue(np.random.default_rng(4), 3, items=60, kind="sphere")


@pytest.fixture(scope="module")
def interviews(problem: Catalogue) -> list[list[Answer]]:
    """Answers of 16 people of two types, to random questions."""
    found = []
    for i in range(16):
        rng = np.random.default_rng([7, i])
        who = Respondent(problem, rng.dirichlet(60 * TYPES[i % 2]), KINDS["exact"], seed=i)
        answers: list[Answer] = []
        for number in range(12):
            one, two = (problem.option(int(j)) for j in rng.choice(60, 2, replace=False))
            question = Question((one, two))
            answers.append(Answer(question, who(question) if number else SKIP, number + 1))  # one was skipped
        found.append(answers)
    return found


@pytest.fixture(scope="module")
def prior(problem: Catalogue, interviews: list[list[Answer]]) -> Prior:
    return learn_prior(problem, interviews)


def test_types_are_found_and_outsiders_stay_possible(problem: Catalogue, prior: Prior) -> None:
    assert sum(share for share, _ in prior) == pytest.approx(1)
    mixture = mixture_of(prior, problem)
    assert mixture is not None
    drawn = mixture.draw(4000, np.random.default_rng(0))
    anybody = DirichletMixture.default(3).draw(4000, np.random.default_rng(0))
    for centre in TYPES:
        near, before = (np.mean(np.abs(w - centre).max(axis=1) < 0.15) for w in (drawn, anybody))
        assert near > 2.5 * before
    usual = sum(share for share, row in prior if row in (tuple([1.0] * 3), tuple([0.3] * 3)))
    assert usual >= OUTSIDERS - 1e-6


def test_the_same_interviews_give_the_same_numbers(
    problem: Catalogue, interviews: list[list[Answer]], prior: Prior
) -> None:
    assert learn_prior(problem, interviews) == prior
    assert json.loads(json.dumps(prior)) == [[share, list(row)] for share, row in prior]
    nobody = learn_prior(problem, [[], [Answer(interviews[0][0].question, SKIP, 1)]])  # who said nothing tells nothing
    assert mixture_of(nobody, problem) == DirichletMixture.default(3)


def test_replay_is_exact_and_the_prior_is_in_the_log(problem: Catalogue, prior: Prior) -> None:
    person = LinearRespondent.scaled(problem, TYPES[0], 0.01)
    interview = Interview(problem, prior=prior)
    while question := interview.ask():
        interview.tell(person(question))
    written = json.loads(json.dumps(list(interview.log)))
    assert written[0]["settings"]["prior"] == json.loads(json.dumps(prior))
    again = Interview.resume(problem, written)
    assert again.finished and again.recommendation.weights.tolist() == interview.recommendation.weights.tolist()
    assert [answer.question.key for answer in again.answers] == [answer.question.key for answer in interview.answers]


def test_a_wrong_prior_breaks_no_certificate(problem: Catalogue) -> None:
    """Everybody is supposed to want the first objective alone, and this person wants anything else."""
    wrong = [[1.0, [90.0, 1.0, 1.0]]]
    person = LinearRespondent.scaled(problem, [0.02, 0.5, 0.48], 0.0)
    interview = Interview(problem, prior=wrong)
    while question := interview.ask():
        found = interview.recommendation
        assert found.regret_bound is not None
        if not found.doubtful:
            assert regret(problem, person, found) <= found.regret_bound + 1e-9
        interview.tell(person(question))


@pytest.mark.parametrize(
    "bad",
    [[], "often", [[1.0, [1.0, 1.0]]], [[0.5, [1.0, 1.0, 1.0]]], [[1.0, [1.0, -1.0, 1.0]]], [[1.0, ["a", 1, 1]]], 3],
)
def test_what_is_no_prior_is_refused(problem: Catalogue, bad: Any) -> None:
    with pytest.raises(
        ArgumentError, match=r"a prior is a list of at most 50 parts, each a share and 3 numbers from 0.01 to 10,000"
    ):
        Interview(problem, prior=bad)


def test_objectives_that_cannot_be_changed_are_left_out() -> None:
    dead = random_catalogue(np.random.default_rng(1), 3, kind="dead")
    found = learn_prior(dead, [[Answer(Question((dead.option(0), dead.option(1))), FIRST, 1)]])
    mixture = mixture_of(found, dead)
    assert all(len(row) == 3 for _, row in found)
    assert mixture is not None and all(len(row) == 2 for row in mixture.parameters)


def test_examples_in_docstrings_run() -> None:
    assert doctest.testmod(prior_module).failed == 0


def test_a_menu_counts_for_as_much_as_in_the_posterior(problem: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    """The posterior and what is learned from an earlier interview hand the same evidence to the sampler."""
    seen: list[Evidence] = []

    def noted(samples: Any, evidence: Evidence, *rest: Any) -> Any:
        seen.append(evidence)
        return update_samples(samples, evidence, *rest)

    interview = Interview(problem, questions="best-worst-4")
    someone = LinearRespondent.scaled(problem, np.ones(len(problem.objectives)), precision=0.01)
    monkeypatch.setattr(posterior, "update_samples", noted)
    for _ in range(2):
        interview.tell(someone(interview.ask()))
    interview.ask()
    asked = seen[-1]
    monkeypatch.setattr(prior_module, "update_samples", noted)
    learn_prior(problem, [interview.answers])
    assert seen[-1] is not asked and asked.shares.min() < 1
    for name in ("differences", "outcomes", "owners", "shares"):
        assert np.array_equal(getattr(seen[-1], name), getattr(asked, name)), name
