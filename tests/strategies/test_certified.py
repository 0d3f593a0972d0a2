"""Law 6 and what the certified and the careful strategy promise."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies.people import KINDS, person, random_catalogue, random_mdp, regret, run
from tradeoff import (
    Answer,
    ArgumentError,
    Catalogue,
    ConcaveUser,
    ContraryUser,
    DriftingUser,
    Interview,
    LinearUser,
    RandomUser,
    Reference,
    StubbornUser,
    load,
)
from tradeoff.strategies.cache import cache_of
from tradeoff.strategies.choosing import ANSWERS
from tradeoff.strategies.consistency import ConsistentSet
from tradeoff.strategies.elicitation import State
from tradeoff.strategies.polytope import half_spaces
from tradeoff.strategies.proving import _said

seeds = st.integers(0, 2**32 - 1)

# The one tolerance of the certificate: regrets and bounds are quotients of sums of at most a few hundred products.
ROUNDING = 1e-9


def check_every_step(interview: Interview, user: LinearUser, limit: int = 200) -> None:
    """At every moment the true regret is at most the bound; so is that of everybody who would answer the same."""
    problem = interview.problem
    for _ in range(limit):
        recommendation = interview.recommendation
        if recommendation.regret_bound is not None:
            assert regret(problem, user, recommendation) <= recommendation.regret_bound + ROUNDING
        question = interview.ask()
        if question is None:
            return
        interview.tell(user(question))
    raise AssertionError("the interview did not end")


@settings(max_examples=80)  # each is a whole interview
@given(
    seeds,
    st.integers(2, 6),
    st.sampled_from(KINDS),
    st.sampled_from([0.5, 0.1, 0.01, 0.001, 0.0]),
    st.booleans(),
    st.sampled_from([0.1, 0.01]),
)
def test_law_6_on_catalogues(seed: int, k: int, kind: str, precision: float, lotteries: bool, target: float) -> None:
    rng = np.random.default_rng(seed)
    problem = random_catalogue(rng, k, items=40, kind=kind)
    user = person(rng, problem, precision, sparse=seed % 2 == 0)
    check_every_step(Interview(problem, "certified", target=target, lotteries=lotteries, seed=seed), user)


@pytest.mark.parametrize("seed", range(12))
def test_law_6_on_mdps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_mdp(rng, 2 + seed % 4)
    for precision in (0.1, 0.01):
        user = person(rng, problem, precision, sparse=seed % 3 == 0)
        check_every_step(Interview(problem, "certified", target=0.02), user)


@settings(max_examples=80)  # each is a whole interview
@given(seeds, st.integers(2, 5), st.sampled_from(KINDS))
def test_the_certificate_holds_for_everybody_consistent(seed: int, k: int, kind: str) -> None:
    """Not only for the person who answered: for many others who would have given the same answers."""
    rng = np.random.default_rng(seed)
    problem = random_catalogue(rng, k, items=40, kind=kind)
    interview = Interview(problem, "certified")
    recommendation = run(interview, person(rng, problem, 0.02))
    if recommendation.regret_bound is None:
        return
    weights = rng.dirichlet(np.ones(k), size=3000)
    precisions = 10 ** rng.uniform(-4, 0, size=3000)
    fits = np.ones(3000, dtype=bool)
    for _, question, answer in interview.answers:
        gains = weights @ question.difference
        said = np.where(gains > precisions, 1, np.where(gains < -precisions, -1, 0))
        fits &= said == answer.sign
    best = (weights[fits] @ problem.gains.T).max(axis=1, initial=0.0)
    mine = weights[fits] @ recommendation.alternative.value
    assert np.all(mine >= (1 - recommendation.regret_bound) * best - ROUNDING)


@pytest.mark.parametrize("name", ["commute", "coffee", "vacuum", "portfolio", "dependent"])
@pytest.mark.parametrize("strategy", ["certified", "careful"])
def test_bundled_problems(name: str, strategy: str) -> None:
    problem = load(name)
    rng = np.random.default_rng(3)
    for _ in range(3):
        user = person(rng, problem, 0.01)
        interview = Interview(problem, strategy)
        result = run(interview, user)
        assert result.complete and result.questions <= 12 * len(problem.objectives)
        assert regret(problem, user, result) <= 0.03
        assert result.importance is not None and np.all(result.importance[:, 0] <= result.importance[:, 1] + 1e-12)
        assert result.likely_worst is not None and result.likely_regret is not None


def test_real_alternatives_only_unless_lotteries_are_allowed() -> None:
    problem = load("coffee")
    user = person(np.random.default_rng(0), problem, 0.01)
    plain = Interview(problem, "certified")
    run(plain, user)
    items = {tuple(row) for row in problem.gains.tolist()}
    assert all(tuple(side.value) in items for _, q, _ in plain.answers for side in (q.first, q.second))


def test_questions_never_depend_on_who_was_asked_before() -> None:
    """Solved directions are shared; what is asked is not."""
    problem, fresh = load("commute"), load("commute")
    rng = np.random.default_rng(1)
    users = [person(rng, problem, 0.01) for _ in range(3)]
    for user in users:
        run(Interview(problem, "certified"), user)
    solved = cache_of(problem).solved
    again, alone = Interview(problem, "certified"), Interview(fresh, "certified")
    run(again, users[-1])
    run(alone, users[-1])
    assert [q.key for _, q, _ in again.answers] == [q.key for _, q, _ in alone.answers]
    assert cache_of(problem).solved == solved  # the second time nothing had to be solved


def test_contradictions_are_explained_and_can_be_taken_back() -> None:
    """Some people who answer at random contradict themselves; what they said is shown, and any of it can be taken back."""
    problem = load("commute")
    contradicted = 0
    for seed in range(20):
        interview = Interview(problem, "certified")
        run(interview, RandomUser(seed))
        conflict = interview.conflicts()
        assert bool(conflict) == ("contradict" in interview.recommendation.reason)
        if not conflict:
            continue
        contradicted += 1
        assert interview.recommendation.regret_bound is None and not interview.recommendation.complete
        for number, _, _ in conflict:
            again = Interview.resume(problem, interview.log)
            again.undo(number)
            assert again.conflicts() == ()  # the set is minimal: without any one of them the rest can hold
    assert contradicted >= 2


def test_no_conflicts_among_honest_answers() -> None:
    problem = load("commute")
    for strategy in ("paper", "certified", "careful"):
        interview = Interview(problem, strategy)
        run(interview, person(np.random.default_rng(4), problem, 0.02))
        assert interview.conflicts() == ()


@pytest.mark.parametrize("strategy", ["certified", "careful"])
@pytest.mark.parametrize(
    "user",
    [
        RandomUser(0),
        StubbornUser(Answer.FIRST),
        StubbornUser(Answer.SECOND),
        StubbornUser(Answer.SAME),
        ContraryUser([3, 1, 1, 2, 1]),
        DriftingUser([1, 0, 0, 0, 0], [0, 0, 1, 1, 0]),
        ConcaveUser([1, 2, 1, 1, 1]),
        LinearUser([1, 0, 0, 0, 0], precision=5.0),
        LinearUser([0, 0, 1, 0, 0], precision=0.0),
    ],
    ids=lambda user: type(user).__name__,
)
def test_it_ends_for_people_who_break_the_assumptions(user, strategy: str) -> None:
    result = run(Interview(load("commute"), strategy), user, limit=61)
    assert result.reason and np.all(np.isfinite(result.weights))


def test_skipping_for_ever_comes_to_an_end() -> None:
    for strategy in ("certified", "careful"):
        interview = Interview(load("coffee"), strategy)
        for _ in range(100):
            if interview.ask() is None:
                break
            interview.skip()
        assert interview.finished


def test_careful_survives_slips() -> None:
    """With 10% wrong answers most recommendations are still good, and some of the wrong answers are found."""
    rng = np.random.default_rng(0)
    losses, wrong, flagged, hits = [], 0, 0, 0
    for seed in range(20):
        problem = random_catalogue(rng, 4, items=100)
        honest = person(rng, problem, 0.01)
        user = LinearUser(honest.weights, 0.01, error_rate=0.1, seed=seed)
        interview = Interview(problem, "careful", seed=seed)
        result = run(interview, user)
        losses.append(regret(problem, honest, result))
        slips = {i + 1 for i, (_, q, a) in enumerate(interview.answers) if honest(q) is not a}
        wrong += len(slips)
        flagged += len(result.doubtful)
        hits += len(slips & set(result.doubtful))
        assert result.robust_bound is None or result.robust_bound >= (result.regret_bound or 0) - 1e-12
    assert np.mean(losses) <= 0.02 and np.median(losses) <= 0.005
    assert hits >= 0.25 * wrong and hits >= 0.5 * flagged


def test_duplicated_and_single_alternatives() -> None:
    low = Reference("nothing", {"objective 1": 0, "objective 2": 0})
    twins = Catalogue([[1, 0.2], [1, 0.2], [0.2, 1], [0.2, 1]], reference=low)
    result = run(Interview(twins, "certified"), LinearUser([1, 0.3], 0.01))
    assert result.alternative.plan.index == 0 and result.regret_bound <= 0.01
    dominated = Catalogue([[1, 1], [0.5, 0.5]], reference=low)
    for strategy in ("certified", "careful"):
        interview = Interview(dominated, strategy)
        assert interview.ask() is None and interview.recommendation.regret_bound == 0


def test_bad_targets_are_named() -> None:
    for target in (0, 1, -0.1, float("nan")):
        with pytest.raises(ArgumentError, match="the target is"):
            Interview(load("dependent"), "certified", target=target)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 8))
def test_what_many_pairs_say_is_written_down_as_for_each_alone(seed: int, d: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    differences = rng.normal(size=(count, d)) * 10.0 ** rng.integers(-8, 3, (count, 1)) * rng.integers(0, 2, (count, 1))
    consistent = ConsistentSet.everything(d, 100)
    found = _said(cast(State, SimpleNamespace(consistent=consistent)), differences)
    for difference, rows in zip(differences, found, strict=True):
        for answer, row in zip(ANSWERS, rows, strict=True):
            assert row.tobytes() == consistent.listed.scaled(half_spaces(difference, answer.sign)).tobytes()
