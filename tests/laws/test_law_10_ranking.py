"""Law 10: the share of a ranking is of all weights that fit the trusted answers, and "why not" is right, by brute force."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from tests.strategies.people import person, random_catalogue, random_mdp
from tradeoff.decisions import Preferences, ranking, why_not
from tradeoff.decisions.linear_program import minimise
from tradeoff.evidence import PREFERRED, Answer
from tradeoff.interview import Interview
from tradeoff.model import EQUAL, FIRST, SECOND, SKIP, Item, Option, Question, Reply
from tradeoff.problems.catalogue import Catalogue

TOLERANCE = 1e-7


def answered(seed: int, k: int, questions: int, *, items: int = 30, precision: float = 0.03) -> Interview:
    """Return an interview about a random catalogue with so many answers of a person who never slips."""
    random = np.random.default_rng(seed)
    problem = random_catalogue(random, k, items)
    user = person(random, problem, precision)
    interview = Interview(problem, "certified")
    for _ in range(questions):
        question = interview.ask()
        if question is None:
            break
        interview.tell(user(question))
    return interview


def fitting(interview: Interview, count: int, seed: int = 1) -> np.ndarray:
    """Return weights drawn evenly from all weights, of which those are kept that go with some precision: brute force."""
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(interview.problem.objectives)), count)
    pairs = [answer for answer in interview.answers if answer.reply != SKIP]
    if not pairs:
        return weights
    signs = np.array([sign_of(answer.reply) for answer in pairs])
    gains = weights @ np.array([answer.asked.difference for answer in pairs]).T
    # The least precision that leaves everything unnoticed that was not noticed is the one to try.
    least = np.abs(gains[:, signs == 0]).max(axis=1, initial=0.0) + 1e-12  # other sums differ in the last digit
    noticed = (gains * signs)[:, signs != 0]
    return weights[(noticed >= least[:, None]).all(axis=1)]


def sign_of(reply: Reply) -> int:
    """Return which option of a pair is preferred: 1 for the first, -1 for the second, 0 for neither."""
    return {FIRST: 1, SECOND: -1, EQUAL: 0}[reply]


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(0, 3))
def test_shares_are_those_of_all_weights_that_fit(seed: int, k: int, questions: int) -> None:
    interview = answered(seed, k, questions)
    drawn = fitting(interview, 60_000)
    if len(drawn) < 2_000:  # too few to compare with
        return
    found = ranking(interview, places=30)
    problem = interview.problem
    winners = np.argmax(drawn @ problem.gains.T, axis=1)
    worth = (drawn @ problem.gains.T) / (drawn @ problem.gains.T).max(axis=1, keepdims=True)
    spread = 5 * (0.5 / len(drawn) ** 0.5 + (0.5 / found.drawn**0.5 if found.drawn else 0.0))
    for one in found.ranked:
        index = one.option.plan.index
        assert abs(one.share - (winners == index).mean()) <= spread
        assert (1 - worth[:, index]).max() <= one.loss + 1e-9  # "certified" ranks by the worst case
    assert sum(one.share for one in found.ranked) == pytest.approx(1, abs=1e-9)
    for can_be_best in (True, False):
        losses = [one.loss for one in found.ranked[1:] if (one.share > 0) == can_be_best]
        assert losses == sorted(losses)
    assert np.array_equal(found.ranked[0].option.value, interview.recommendation.option.value)


@pytest.mark.parametrize("d", [3, 6, 9])
def test_points_are_spread_evenly(d: int) -> None:
    """All of the simplex, and a thin slice of it: means, and the chance of half-spaces, are those of the uniform law."""
    everything = Preferences(d, np.arange(d), ())
    points = everything.spread(4_000)
    assert np.abs(points.mean(axis=0) - 1 / d).max() < 0.02
    for share in (0.1, 0.3):  # of one weight, the chance of at least this much is (1 - share)^(d - 1)
        expected = (1 - share) ** (d - 1)
        assert np.abs((points >= share).mean(axis=0) - expected).max() < 0.035
    flat = np.zeros(d)
    flat[:2] = 1.0, -1.0
    preferred = np.array([PREFERRED])
    thin = Preferences(d, np.arange(d), ((1, flat[None], preferred), (2, 0.001 * np.eye(1, d) - flat[None], preferred)))
    slender = thin.spread(4_000)
    assert thin.fit(slender).all()
    # The slice is 0.999 w0 <= w1 <= w0. Within it the even law puts as much on either side of the middle, and the part of
    # the two weights together has the mean 2 / d.
    assert abs((slender[:, 1] >= 0.9995 * slender[:, 0]).mean() - 0.5) < 0.04
    assert abs(slender[:, :2].sum(axis=1).mean() - 2 / d) < 0.02


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 5), st.integers(1, 6))
def test_corners_are_the_extreme_points_of_what_fits(seed: int, k: int, questions: int) -> None:
    preferences = Preferences.of(answered(seed, k, questions))
    known = preferences._known_corners()
    assert len(known) and preferences.fit(preferences.on_all(known)).all()
    rows = preferences.half_spaces[preferences.d :]
    for direction in np.random.default_rng(seed).standard_normal((3, preferences.d)):
        lowest = minimise(direction, rows, np.zeros(len(rows)), preferences.d)
        assert (known @ direction).min() == pytest.approx(direction @ lowest.x, abs=1e-8)


def brute_verdict(interview: Interview, index: int) -> str:
    """Return the verdict on an item by linear programs over all items and answers at once."""
    problem = interview.problem
    gains, d = problem.gains, len(problem.objectives)
    mine = gains[index]
    if index == interview.recommendation.option.plan.index:
        return "recommended"
    if np.array_equal(mine, interview.recommendation.option.value):
        return "same"
    if any((other >= mine).all() and (other > mine).any() for other in gains):
        return "dominated"
    ahead = np.hstack([mine - gains, np.zeros((len(gains), 1))])
    answers = [np.zeros((0, d + 1))]
    for answer in interview.answers:
        if answer.reply != SKIP:
            s, row = sign_of(answer.reply), answer.asked.difference
            answers.append(np.array([[*(s * row), -1.0]]) if s else np.array([[*row, 1.0], [*-row, 1.0]]))
    # It must be better than what is recommended; as good as all others is enough.
    better = np.r_[mine - interview.recommendation.option.value, 0.0][None]
    for name, rows in (("possible", np.vstack([better, ahead, *answers])), ("ruled out", np.vstack([better, ahead]))):
        done = linprog(
            np.zeros(d + 1), A_ub=-rows, b_ub=np.r_[-1e-6, np.full(len(rows) - 1, 1e-9)], A_eq=[[1.0] * d + [0.0]], b_eq=[1.0],
            bounds=[(0, None)] * d + [(0, 1)], options={"primal_feasibility_tolerance": 1e-10},
        )  # fmt: skip
        if done.x is not None:
            return name
    return "never"


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(0, 6))
def test_why_not_is_what_linear_programs_over_everything_say(seed: int, k: int, questions: int) -> None:
    interview = answered(seed, k, questions, items=12)
    problem, found = interview.problem, ranking(interview, draws=200)
    numbers = {answer.number for answer in interview.answers}
    for index, name in enumerate(problem.names):
        rival = why_not(interview, name, found)
        assert rival.verdict == brute_verdict(interview, index), name
        if rival.verdict == "dominated":
            (better,) = rival.beaten_by
            assert (better.value >= rival.option.value - 1e-9).all() and better.value.sum() > problem.gains[index].sum()
        if rival.verdict == "never":
            weights = np.random.default_rng(0).dirichlet(np.ones(k), 300)
            others = np.array([one.value for one in rival.beaten_by])
            assert len(others) <= k
            assert ((weights @ others.T).max(axis=1) >= weights @ problem.gains[index] - 1e-9).all()
        if rival.verdict in ("possible", "ruled out"):
            assert rival.weights.sum() == pytest.approx(1) and rival.weights.min() >= 0
            assert rival.weights @ problem.gains[index] >= (problem.gains @ rival.weights).max() - TOLERANCE
        if rival.verdict == "possible":
            assert found.preferences.half_spaces @ rival.weights == pytest.approx(
                np.maximum(found.preferences.half_spaces @ rival.weights, 0), abs=TOLERANCE
            )
        if rival.verdict == "ruled out":
            assert rival.answers and set(rival.answers) <= numbers


def shop(*rows: tuple[float, float]) -> Catalogue:
    return Catalogue(np.array(rows), ["speed", "range"], [f"item {i}" for i in range(len(rows))])


def asked_by_hand(problem: Catalogue, *given_answers: tuple[int, int, Reply]) -> Preferences:
    answers = [
        Answer(Question((problem.option(a), problem.option(b))), reply, number)
        for number, (a, b, reply) in enumerate(given_answers, start=1)
    ]
    return Preferences.given(problem, answers)


def test_answers_that_contradict_each_other_are_set_aside() -> None:
    problem = shop((9, 1), (6, 6), (1, 9))
    found = asked_by_hand(problem, (0, 2, FIRST), (0, 2, SECOND), (1, 2, FIRST))
    assert found.set_aside == (1, 2) and [number for number, _, _ in found.answers] == [3]


def test_weights_fit_if_some_precision_goes_with_them() -> None:
    problem = shop((9, 1), (6, 6), (1, 9))
    found = asked_by_hand(problem, (0, 1, EQUAL), (0, 2, FIRST))
    weights = np.array([[0.7, 0.3], [0.5, 0.5], [0.95, 0.05], [1.0, 0.0]])
    gains = problem.gains
    expected = [
        abs(w @ (gains[0] - gains[1])) <= w @ (gains[0] - gains[2]) and w @ (gains[0] - gains[2]) >= 0 for w in weights
    ]
    assert found.fit(weights).tolist() == expected


def test_an_item_that_was_left_out_is_known_by_name() -> None:
    problem = shop((9, 1), (6, 6), (1, 9))
    problem.beaten = {"slow": [0.5, 2.0]}
    rival = why_not(Interview(problem), "SLOW")
    assert rival.verdict == "dominated" and rival.option.plan == Item(-1, "slow")
    assert problem.outcome(rival.option.value).tolist() == [0.5, 2.0]


def test_plans_that_are_nearly_the_same_count_as_one() -> None:
    problem = random_mdp(np.random.default_rng(3), 3)
    interview = Interview(problem)
    found = ranking(interview, places=50, draws=400)
    values = np.array([one.option.value for one in found.ranked])
    for i in range(2, len(values)):
        assert np.abs(values[:i] - values[i]).max(axis=1).min() >= 0.02
    assert sum(one.share for one in found.ranked) == pytest.approx(1)
    assert found.ranked[0].option.value.tolist() == interview.recommendation.option.value.tolist()
    assert why_not(interview, 2, found).option is found.ranked[1].option
    (best,) = problem.best([[1.0, 0.0, 0.0]])
    assert why_not(interview, Option(best.value, best.plan), found).verdict in ("possible", "recommended", "same")


@pytest.mark.parametrize("rows", [[[1, 2], [1, 2]], [[1, 2]]])
def test_among_identical_items_nothing_is_lost(rows: list[list[float]]) -> None:
    found = ranking(Interview(Catalogue(rows)))
    assert [one.loss for one in found.ranked] == [0.0] * len(found.ranked)


def test_a_search_that_gave_up_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_catalogue(np.random.default_rng(3), 4, items=60)
    interview = Interview(problem)
    for _ in range(3):
        interview.ask()
        interview.tell("first")
    before = {name: why_not(interview, name).verdict for name in problem.names}
    monkeypatch.setattr(sys.modules["tradeoff.decisions.why_not"], "MOST_CUTS", 1)  # the function has the same name
    after = {name: why_not(interview, name).verdict for name in problem.names}
    assert "unknown" in after.values() and "unknown" not in before.values()
    assert all(after[name] in (before[name], "unknown") for name in problem.names)
