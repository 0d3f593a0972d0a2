"""What `certified` and `careful` share: bounded thinking, immutable states, a cache that keeps no problem alive."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import scipy.optimize

from tests.strategies.people import random_catalogue, run
from tradeoff import Answer, ArgumentError, Catalogue, Interview, LinearRespondent, Option, Question, load
from tradeoff.evidence import Evidence
from tradeoff.model import FIRST
from tradeoff.strategies import elicitation, solutions
from tradeoff.strategies.posterior import PEOPLE, DirichletMixture, Posterior
from tradeoff.strategies.solutions import Certifier, Solutions, solutions_of
from tradeoff.strategies.tuning import CAREFUL
from tradeoff.testing.strategies import interview, simulated_person


def test_no_integer_program_is_on_the_way_of_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contradictions are resolved by linear programs: the smallest conflict can take minutes to find."""

    def refused(*given: object, **named: object) -> None:
        raise AssertionError("an integer program was solved on the way of an answer")

    monkeypatch.setattr(scipy.optimize, "milp", refused)
    doubtful = 0
    for seed in range(6):
        problem = random_catalogue(np.random.default_rng(seed), 5, kind="sphere")
        held = interview("careful", problem, simulated_person(problem, seed, error_rate=0.3))
        doubtful += len(held[-1].recommendation.doubtful)
    assert doubtful > 0  # there was something to resolve


@pytest.mark.parametrize("strategy", ["careful", "certified"])
def test_too_many_objectives_are_refused(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elicitation, "MAX_OBJECTIVES", 4)
    rng = np.random.default_rng(0)
    assert run(Interview(random_catalogue(rng, 4), strategy), LinearRespondent(np.ones(4), 0.5)).reason
    with pytest.raises(ArgumentError, match=r"5 objectives can be changed .* at most 4"):
        Interview(random_catalogue(rng, 5), strategy).ask()
    dead = random_catalogue(rng, 5, kind="dead")  # one of five cannot be changed, and is not asked about
    assert Interview(dead, strategy).ask() is not None


def test_the_most_objectives_can_be_asked_about() -> None:
    k = elicitation.MAX_OBJECTIVES
    problem = random_catalogue(np.random.default_rng(1), k, items=50)
    user = simulated_person(problem, 1)
    found = run(Interview(problem, "careful", max_questions=6), user)
    assert found.regret_bound is not None and 0 <= found.regret_bound <= 1
    with pytest.raises(ArgumentError, match=f"at most {k}"):
        Interview(random_catalogue(np.random.default_rng(1), k + 1), "careful").ask()


def test_the_cache_keeps_no_problem_alive() -> None:
    problem = random_catalogue(np.random.default_rng(2), 3)
    run(Interview(problem, "careful"), simulated_person(problem, 0))
    run(Interview(problem, "certified"), simulated_person(problem, 0))
    alive = weakref.ref(problem)
    del problem
    gc.collect()
    assert alive() is None


def test_states_are_dropped_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solutions, "CACHED_STATE_BYTES", 100_000)
    problem = load("dependent")
    states = Solutions(problem)
    for number in range(5):
        states.put_state(bytes([number]), np.zeros(3_000))  # 24,000 bytes
    assert states.state(bytes([0])) is None and states.state(bytes([1])) is not None
    states.put_state(b"another", np.zeros(3_000))
    assert states.state(bytes([2])) is None and states.state(bytes([1])) is not None  # which was used since
    states.put_state(b"too large", np.zeros(20_000))
    assert states.state(b"too large") is None and states.state(b"another") is not None


def test_a_posterior_stays_what_it_is() -> None:
    before = Posterior.before_answers(DirichletMixture.default(3), PEOPLE, CAREFUL, 1, 300)
    weights = before.weights.copy()
    question = Question((Option([1.0, 0.0, 0.2]), Option([0.0, 1.0, 0.0])))
    evidence = Evidence.none(np.arange(3)).update(Answer(question, FIRST))
    one, two = before.update(evidence), before.update(evidence)
    assert one.weights.tobytes() == two.weights.tobytes() and (before.weights == weights).all()
    assert one.wrong_answers(evidence)[0] < before.wrong_answers(evidence)[0]


def test_slack_is_part_of_every_bound() -> None:
    plain, loose = (Catalogue([[1.0, 0.2], [0.2, 1.0], [0.7, 0.7]]) for _ in range(2))
    loose.slack = 0.01  # type: ignore[misc]
    user = LinearRespondent([1.0, 1.3], 0.01)
    exact, found = (run(Interview(problem, "careful"), user) for problem in (plain, loose))
    for name in ("regret_bound", "robust_bound", "likely_regret", "likely_worst"):
        assert getattr(found, name) > getattr(exact, name)
    assert found.regret_bound is not None and found.regret_bound >= 0.01
    broken = Catalogue([[1.0, 0.2], [0.2, 1.0]])
    broken.slack = float("nan")  # type: ignore[misc]
    with pytest.raises(ArgumentError, match="slack"):
        Certifier.of(broken)


def test_solved_directions_are_shared() -> None:
    problem = load("commute")
    assert solutions_of(problem) is solutions_of(problem)
    solutions_of(problem).best(np.eye(5))
    solved = solutions_of(problem).solved
    solutions_of(problem).best(np.eye(5))
    assert solutions_of(problem).solved == solved
