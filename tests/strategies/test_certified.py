"""Law 6 and what the certified and the careful strategy promise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from tests.strategies.people import (
    KINDS,
    Replier,
    at_random,
    person,
    random_catalogue,
    random_mdp,
    regret,
    rule_breakers,
    run,
)
from tradeoff import Answer, ArgumentError, Catalogue, Interview, LinearRespondent, Reference, load
from tradeoff.model import EQUAL, FIRST, SECOND
from tradeoff.strategies.solutions import solutions_of

seeds = st.integers(0, 2**32 - 1)

# The one tolerance of the certificate: regrets and bounds are quotients of sums of at most a few hundred products.
ROUNDING = 1e-9


def check_every_step(interview: Interview, user: LinearRespondent, limit: int = 200) -> None:
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
    for answer in interview.answers:
        gains = weights @ answer.question.difference
        fits &= {FIRST: gains > precisions, SECOND: gains < -precisions, EQUAL: np.abs(gains) <= precisions}[
            answer.reply
        ]
    best = (weights[fits] @ problem.gains.T).max(axis=1, initial=0.0)
    mine = weights[fits] @ recommendation.option.value
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


def test_real_options_only_unless_lotteries_are_allowed() -> None:
    problem = load("coffee")
    user = person(np.random.default_rng(0), problem, 0.01)
    plain = Interview(problem, "certified")
    run(plain, user)
    items = {tuple(row) for row in problem.gains.tolist()}
    assert all(tuple(value) in items for answer in plain.answers for value in answer.question.values.tolist())


def test_questions_never_depend_on_who_was_asked_before() -> None:
    """Solved directions are shared; what is asked is not."""
    problem, fresh = load("commute"), load("commute")
    rng = np.random.default_rng(1)
    users = [person(rng, problem, 0.01) for _ in range(3)]
    for user in users:
        run(Interview(problem, "certified"), user)
    solved = solutions_of(problem).solved
    again, alone = Interview(problem, "certified"), Interview(fresh, "certified")
    run(again, users[-1])
    run(alone, users[-1])
    assert [answer.question.key for answer in again.answers] == [answer.question.key for answer in alone.answers]
    assert solutions_of(problem).solved == solved  # the second time nothing had to be solved


def can_hold(answers: Sequence[Answer]) -> bool:
    """Return whether some weights and precision give all these replies to pairs, by a linear program of its own."""
    rows = []
    for answer in answers:
        row = answer.question.difference
        signs = {FIRST: [(1, -1)], SECOND: [(-1, -1)], EQUAL: [(1, 1), (-1, 1)]}[answer.reply]
        rows += [[*(sign * row), times] for sign, times in signs]
    k = len(rows[0]) - 1
    room = np.full((len(rows), 1), -1.0)  # how much every row can have to spare
    done = linprog(
        [0.0] * (k + 1) + [-1.0], A_ub=-np.hstack([rows, room]), b_ub=np.zeros(len(rows)), A_eq=[[1.0] * k + [0.0, 0.0]],
        b_eq=[1.0], bounds=[(0, None)] * k + [(0, 1), (None, 1)],
    )  # fmt: skip
    return bool(done.x[-1] > 1e-9)


def test_contradictions_are_explained_and_can_be_taken_back() -> None:
    """Some people who answer at random contradict themselves; what they said is shown, and any of it can be taken back."""
    problem = load("commute")
    contradicted = 0
    for seed in range(20):
        interview = Interview(problem, "certified")
        run(interview, at_random(seed))
        conflict = interview.conflicts()
        assert bool(conflict) == ("contradict" in interview.recommendation.reason)
        if not conflict:
            continue
        contradicted += 1
        assert interview.recommendation.regret_bound is None and not interview.recommendation.complete
        assert not can_hold(conflict)
        for answer in conflict:
            assert can_hold([other for other in conflict if other is not answer])  # the set is minimal
            again = Interview.resume(problem, interview.log)
            again.undo(answer.number)
            rest = [other for other in interview.answers if other is not answer]
            assert bool(again.conflicts()) == (not can_hold(rest))  # there may be a second contradiction
    assert contradicted >= 2


def test_no_conflicts_among_honest_answers() -> None:
    problem = load("commute")
    for strategy in ("paper", "certified", "careful"):
        interview = Interview(problem, strategy)
        run(interview, person(np.random.default_rng(4), problem, 0.02))
        assert interview.conflicts() == ()


@pytest.mark.parametrize("strategy", ["certified", "careful"])
@pytest.mark.parametrize("respondent", rule_breakers(), ids=lambda respondent: respondent.name)
def test_it_ends_for_people_who_break_the_assumptions(respondent: Replier, strategy: str) -> None:
    result = run(Interview(load("commute"), strategy), respondent, limit=61)
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
        user = LinearRespondent(honest.weights, 0.01, error_rate=0.1, seed=seed)
        interview = Interview(problem, "careful", seed=seed)
        result = run(interview, user)
        losses.append(regret(problem, honest, result))
        slips = {answer.number for answer in interview.answers if honest(answer.question) != answer.reply}
        wrong += len(slips)
        flagged += len(result.doubtful)
        hits += len(slips & set(result.doubtful))
        assert result.robust_bound is None or result.robust_bound >= (result.regret_bound or 0) - 1e-12
    assert np.mean(losses) <= 0.02 and np.median(losses) <= 0.005
    assert hits >= 0.25 * wrong and hits >= 0.5 * flagged


def test_duplicated_and_single_options() -> None:
    low = Reference("nothing", {"objective 1": 0, "objective 2": 0})
    twins = Catalogue([[1, 0.2], [1, 0.2], [0.2, 1], [0.2, 1]], reference=low)
    result = run(Interview(twins, "certified"), LinearRespondent([1, 0.3], 0.01))
    assert result.option.plan.index == 0 and result.regret_bound <= 0.01
    dominated = Catalogue([[1, 1], [0.5, 0.5]], reference=low)
    for strategy in ("certified", "careful"):
        interview = Interview(dominated, strategy)
        assert interview.ask() is None and interview.recommendation.regret_bound == 0


def test_bad_targets_are_named() -> None:
    for target in (0, 1, -0.1, float("nan")):
        with pytest.raises(ArgumentError, match="the target is"):
            Interview(load("dependent"), "certified", target=target)
