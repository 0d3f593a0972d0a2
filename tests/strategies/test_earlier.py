"""Learning from those before: a prior that is plain numbers, helps people alike, and touches no certificate."""

from __future__ import annotations

import doctest
import json
from typing import Any

import numpy as np
import pytest

from tests.strategies.people import random_catalogue, regret
from tradeoff import Answer, ArgumentError, Catalogue, Interview, LinearUser, Question, learn_prior
from tradeoff.people import KINDS, Person
from tradeoff.strategies import belief, earlier
from tradeoff.strategies.earlier import OUTSIDERS, Prior, Record, dirichlets_of
from tradeoff.strategies.sampling import Dirichlets, posterior_particles

TYPES = np.array([[0.8, 0.1, 0.1], [0.05, 0.15, 0.8]])


@pytest.fixture(scope="module")
def problem() -> Catalogue:
    return random_catalogue(np.random.default_rng(4), 3, items=60, kind="sphere")


@pytest.fixture(scope="module")
def interviews(problem: Catalogue) -> list[list[Record]]:
    """Answers of 16 people of two types, to random questions."""
    found = []
    for i in range(16):
        rng = np.random.default_rng([7, i])
        who = Person(problem, rng.dirichlet(60 * TYPES[i % 2]), KINDS["exact"], seed=i)
        records: list[Record] = []
        for number in range(12):
            one, two = (problem.alternative(int(j)) for j in rng.choice(60, 2, replace=False))
            question = Question(one, two)
            records.append((number + 1, question, who(question) if number else None))  # one was skipped
        found.append(records)
    return found


@pytest.fixture(scope="module")
def prior(problem: Catalogue, interviews: list[list[Record]]) -> Prior:
    return learn_prior(problem, interviews)


def test_types_are_found_and_outsiders_stay_possible(problem: Catalogue, prior: Prior) -> None:
    assert sum(share for share, _ in prior) == pytest.approx(1)
    mixture = dirichlets_of(prior, problem)
    assert mixture is not None
    drawn = mixture.draw(4000, np.random.default_rng(0))
    anybody = Dirichlets.usual(3).draw(4000, np.random.default_rng(0))
    for centre in TYPES:
        near, before = (np.mean(np.abs(w - centre).max(axis=1) < 0.15) for w in (drawn, anybody))
        assert near > 2.5 * before
    usual = sum(share for share, row in prior if row in (tuple([1.0] * 3), tuple([0.3] * 3)))
    assert usual >= OUTSIDERS - 1e-6


def test_the_same_interviews_give_the_same_numbers(
    problem: Catalogue, interviews: list[list[Record]], prior: Prior
) -> None:
    assert learn_prior(problem, interviews) == prior
    assert json.loads(json.dumps(prior)) == [[share, list(row)] for share, row in prior]
    nobody = learn_prior(problem, [[], [(1, interviews[0][0][1], None)]])  # who said nothing tells nothing
    assert dirichlets_of(nobody, problem) == Dirichlets.usual(3)


def test_replay_is_exact_and_the_prior_is_in_the_log(problem: Catalogue, prior: Prior) -> None:
    person = LinearUser.scaled(problem, TYPES[0], 0.01)
    interview = Interview(problem, prior=prior)
    while question := interview.ask():
        interview.tell(person(question))
    written = json.loads(json.dumps(list(interview.log)))
    assert written[0]["settings"]["prior"] == json.loads(json.dumps(prior))
    again = Interview.resume(problem, written)
    assert again.finished and again.recommendation.weights.tolist() == interview.recommendation.weights.tolist()
    assert [q.key for _, q, _ in again.answers] == [q.key for _, q, _ in interview.answers]


def test_a_wrong_prior_breaks_no_certificate(problem: Catalogue) -> None:
    """Everybody is supposed to want the first objective alone, and this person wants anything else."""
    wrong = [[1.0, [90.0, 1.0, 1.0]]]
    person = LinearUser.scaled(problem, [0.02, 0.5, 0.48], 0.0)
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
    with pytest.raises(ArgumentError, match=r"a prior is a list of parts, each a share and 3 positive numbers"):
        Interview(problem, prior=bad)


def test_objectives_that_cannot_be_changed_are_left_out() -> None:
    dead = random_catalogue(np.random.default_rng(1), 3, kind="dead")
    found = learn_prior(dead, [[(1, Question(dead.alternative(0), dead.alternative(1)), Answer.FIRST)]])
    mixture = dirichlets_of(found, dead)
    assert all(len(row) == 3 for _, row in found)
    assert mixture is not None and all(len(row) == 2 for row in mixture.parameters)


def test_examples_in_docstrings_run() -> None:
    assert doctest.testmod(earlier).failed == 0


def test_a_menu_counts_for_as_much_as_in_the_belief(problem: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both the belief and what is learned from an earlier interview hand the same comparisons and shares to the sampler."""
    seen: dict[str, Any] = {}

    def noted(differences: Any, kinds: Any, *given: Any, **named: Any) -> Any:
        seen["kinds"], seen["shares"] = kinds, named["shares"]
        return posterior_particles(differences, kinds, *given, **named)

    interview = Interview(problem, questions="best-worst-4")
    someone = LinearUser.scaled(problem, np.ones(len(problem.objectives)), precision=0.01)
    monkeypatch.setattr(belief, "posterior_particles", noted)
    for _ in range(2):
        interview.tell(someone(interview.ask()))
    interview.ask()
    asked = dict(seen)
    monkeypatch.setattr(earlier, "posterior_particles", noted)
    learn_prior(problem, [interview.answers])
    assert asked["shares"].min() < 1
    assert np.array_equal(seen["kinds"], asked["kinds"]) and np.array_equal(seen["shares"], asked["shares"])
