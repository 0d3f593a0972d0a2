"""Point sets: what an optimiser finds is the best of everything there is, and interviews about it are right."""

from __future__ import annotations

import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.messages import refused
from tradeoff import ArgumentError, Interview, LinearRespondent, Objective, PointSet, ProblemError, Reference
from tradeoff.model import NOTHING, Item, Option
from tradeoff.problem import dilute
from tradeoff.simulation import simulate
from tradeoff.simulation.respondents import relative_regret


def over(points: np.ndarray, objectives: Any = None, **options: Any) -> PointSet:
    named = objectives or [f"o{j}" for j in range(points.shape[1])]
    return PointSet(lambda w: points[(points @ w).argmax()], named, **options)


@st.composite
def sets(draw: st.DrawFn) -> tuple[np.ndarray, list[Objective], np.random.Generator]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    k, n = draw(st.integers(1, 4)), draw(st.integers(1, 25))
    points = rng.integers(-3, 4, (n, k)).astype(float) if draw(st.booleans()) else rng.normal(size=(n, k)) * 10.0**k
    return points, [Objective(f"o{j}", "", rng.choice(["min", "max"])) for j in range(k)], rng


def rows_for(rng: np.random.Generator, k: int) -> np.ndarray:
    mixed = rng.normal(size=(10, k))
    likely = rng.dirichlet(np.ones(k), 10)
    holes = rng.dirichlet(np.ones(k), 10) * rng.integers(0, 2, (10, k))
    return np.concatenate([mixed, likely, holes, np.eye(k), -np.eye(k), np.zeros((1, k))])


def not_dominated(points: np.ndarray, value: np.ndarray) -> bool:
    return not np.any(np.all(points >= value - 1e-9, axis=1) & np.any(points > value + 1e-9, axis=1))


@given(sets(), st.sampled_from([0, 5, 1000]))
def test_best_is_the_best_of_all_points_for_any_weights(drawn: Any, most: int) -> None:
    points, objectives, rng = drawn
    problem = over(points, objectives, most_asked=most)
    gains, rows = problem.gain_scale.gains(points), rows_for(rng, len(objectives))
    for row, best in zip(rows, problem.best(rows), strict=True):
        assert best.value @ row == pytest.approx((gains @ row).max(), abs=1e-9)
        if np.all(row >= 0):
            assert not_dominated(gains, best.value)
    alone = [problem.best(row[None, :])[0].value.tolist() for row in rows]
    assert alone == [best.value.tolist() for best in problem.best(rows)]  # whatever else is asked with it


@given(sets())
def test_one_way_is_as_good_and_never_asks_against_an_objective(drawn: Any) -> None:
    points, objectives, rng = drawn
    sign = np.array([o.sign for o in objectives])

    def best(weights: np.ndarray) -> np.ndarray:
        assert np.all(weights * sign >= 0)
        return points[(points @ weights).argmax()]

    problem = PointSet(best, objectives, both_ways=False)
    gains = sign * (points - problem.gain_scale.origin) / np.abs(problem.gain_scale.scale) * problem.gain_scale.matters
    rows = rows_for(rng, len(objectives))
    found = problem.best(rows)
    listed = np.array([a.value for a in found])
    for row, option in zip(rows, found, strict=True):
        assert option.value @ row >= (listed @ row).max() - 1e-9
        if np.all(row >= 0):
            assert option.value @ row == pytest.approx((gains @ row).max(), abs=1e-9)
            assert not_dominated(gains, option.value)


@given(sets())
def test_what_is_shown_is_worth_what_it_says(drawn: Any) -> None:
    points, objectives, rng = drawn
    problem = over(points, objectives)
    for best in problem.best(rows_for(rng, len(objectives))[:6]):
        for option in (best, dilute(best, 0.3), problem.nothing):
            lottery = problem.show(option)
            np.testing.assert_allclose(lottery.average, problem.outcome(option.value), rtol=1e-9, atol=1e-9)
            assert len(lottery.trajectories) <= len(objectives) + 1


@pytest.mark.parametrize("both_ways", [True, False])
@pytest.mark.parametrize("strategy", ["paper", "certified", "careful"])
def test_interviews_find_what_is_best_and_can_be_resumed(strategy: str, both_ways: bool) -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(60, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    problem = over(points, both_ways=both_ways)
    problem.best(rng.normal(size=(30, 3)))  # solutions have other numbers in the fresh one below
    for seed in range(5):
        person = LinearRespondent.scaled(problem, np.random.default_rng(seed).dirichlet(np.ones(3)), 0.001)
        interview = Interview(problem, strategy)
        while question := interview.ask():
            interview.tell(person(question))
        made = interview.recommendation
        bound = 0.05 if made.regret_bound is None else made.regret_bound
        assert relative_regret(problem, person, made.option) <= bound + 1e-9
        again = Interview.resume(over(points, both_ways=both_ways), interview.log)
        assert [one.question.key for one in again.answers] == [one.question.key for one in interview.answers]
        assert again.recommendation.option.value.tolist() == made.option.value.tolist()


def test_an_optimiser_is_asked_for_directions_once_and_an_interview_then_never() -> None:
    points = np.random.default_rng(1).normal(size=(50, 3))
    asked: list[bytes] = []

    def best(weights: np.ndarray) -> np.ndarray:
        asked.append(weights.tobytes())
        weights *= 0  # what it does to its argument is its own business
        return points[(points @ np.frombuffer(asked[-1])).argmax()]

    problem = PointSet(best, ["a", "b", "c"])
    first = problem.best([[1, 2, 3]])[0]
    assert problem.complete and len(asked) == len(set(asked)) < 400
    before = len(asked)
    assert problem.best([[2, 4, 6]])[0].value.tolist() == first.value.tolist()
    problem.best(np.random.default_rng(2).dirichlet(np.ones(3), 500))
    assert len(asked) == before


def test_stories_are_a_text_or_texts() -> None:
    problem = PointSet(lambda w: ([1.0, w[0]], ["tent", "stove"]) if w[1] > 0 else ([2.0, 0.0], "nothing"), ["a", "b"])
    told = {problem.show(a).trajectories[0].states for a in problem.best([[1, 0], [0, 1]])}
    assert told == {("tent, stove",), ("nothing",)}
    (packed,) = problem.best([[0, 1]])
    assert problem.lines(packed.plan) == ["tent", "stove"] and packed.plan.name == "tent, stove"
    plain = over(np.array([[1.0, 2.0]]), [Objective("price", "EUR", "min"), "speed"])
    assert plain.best([[1, 1]])[0].plan.name == "price 1 EUR, speed 2"


@pytest.mark.parametrize(
    ("best", "facts"),
    [
        (lambda w: None, ("returned None", "2 finite numbers")),
        (lambda w: [1.0], ("returned [1.0]", "a, b")),
        (lambda w: [1.0, 2.0, 3.0], ("returned [1.0, 2.0, 3.0]",)),
        (lambda w: [1.0, float("nan")], ("returned [1.0, nan]",)),
        (lambda w: "xy", ("returned 'xy'",)),
        (lambda w: ([1.0, 2.0], 5), ("5 as what to do", "string")),
        (lambda w: 1 / 0, ("ZeroDivisionError: division by zero",)),
    ],
)
@pytest.mark.parametrize("both_ways", [True, False])
def test_what_an_optimiser_does_wrong_is_said(best: Any, facts: tuple[str, ...], both_ways: bool) -> None:
    with refused(ProblemError, "best([", *facts):
        PointSet(best, ["a", "b"], both_ways=both_ways).best([[1, 1]])


@pytest.mark.parametrize("both_ways", [True, False])
def test_minimising_by_mistake_is_noticed(both_ways: bool) -> None:
    points = np.random.default_rng(0).random((20, 2))
    with pytest.raises(ProblemError, match="must maximise"):
        PointSet(lambda w: points[(points @ w).argmin()], ["a", "b"], both_ways=both_ways).best([[1, 1]])


def test_an_optimiser_that_finds_only_good_solutions_is_noticed() -> None:
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.4, 1.4]])

    def best(weights: np.ndarray) -> np.ndarray:
        return points[(points[: 3 if np.count_nonzero(weights) == 1 else 4] @ weights).argmax()]

    with refused(ProblemError, "best(weights)", "gap"):
        PointSet(best, ["a", "b"], most_asked=0).best([[1, 1]])


def test_what_is_not_a_point_set_is_refused() -> None:
    with refused(ArgumentError, "best(weights)", "[1, 2]"):
        PointSet([1, 2], ["a"])  # type: ignore[arg-type]
    with pytest.raises(ProblemError, match="at least one objective"):
        PointSet(lambda w: w, [])
    problem, other = over(np.eye(2)), over(3 * np.eye(2) + 1)
    problem.best([[1, 1]])
    for plan in (Item(99, "x"), None):
        with pytest.raises(ArgumentError):
            problem.show(Option(np.zeros(2), plan))  # type: ignore[arg-type]
    with refused(ArgumentError, "value is", "another problem"):
        other.show(Option(np.full(2, 0.5), other.best([[1, 0]])[0].plan))


def test_a_reference_counts() -> None:
    points = np.array([[1.0, 3.0], [2.0, 2.0], [3.0, 1.0]])
    for both_ways in (True, False):
        problem = over(points, both_ways=both_ways, reference=Reference("nothing", {"o0": 0, "o1": 0}))
        assert problem.best([[1, 0]])[0].value.tolist() == pytest.approx([1, 1 / 3])
        assert problem.show(Option(np.zeros(2), NOTHING)).trajectories[0].states == ("nothing",)
        with refused(ProblemError, "reference", "o"):
            over(points, both_ways=both_ways, reference=Reference("much", {"o0": 2, "o1": 0})).best([[1, 1]])


class Locked:
    """An optimiser that cannot be sent to another process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def best(self, weights: np.ndarray) -> np.ndarray:
        points = np.random.default_rng(0).random((30, 2))
        with self.lock:
            return points[(points @ weights).argmax()]


def test_a_problem_travels_to_other_processes_or_says_why_not() -> None:
    expected = simulate(PointSet(Locked().best, ["a", "b"]), 12, jobs=1, strategy="careful")
    sent = simulate(PointSet(Locked().best, ["a", "b"]), 12, jobs=2, strategy="careful")
    assert sent.results.regret.tolist() == expected.results.regret.tolist()
    copy = pickle.loads(pickle.dumps(PointSet(Locked().best, ["a", "b"])))
    with refused(ProblemError, "another process", "jobs=1"):
        copy.best([[1, 1]])
    points = np.random.default_rng(1).random((30, 3))
    far = simulate(over(points), 12, jobs=2, strategy="careful")
    assert far.results.regret.tolist() == simulate(over(points), 12, jobs=1, strategy="careful").results.regret.tolist()


def test_best_is_the_same_from_several_threads() -> None:
    """Thousands of new solutions, numbered by eight threads that are switched as often as can be."""
    angles = np.linspace(0, np.pi / 2, 4000)
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    rows = np.random.default_rng(0).dirichlet(np.ones(2), 1500)
    problem = over(points, most_asked=0)
    expected = (problem.gain_scale.gains(points) @ rows.T).max(axis=0)
    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            orders = [np.random.default_rng(i).permutation(len(rows)) for i in range(8)]
            list(pool.map(lambda order: [problem.best(rows[[i]]) for i in order], orders))
    finally:
        sys.setswitchinterval(switching)
    found = np.array([best.value for best in problem.best(rows)])
    np.testing.assert_allclose((found * rows).sum(axis=1), expected, atol=1e-12)


def test_the_slack_is_the_gap_and_what_the_search_leaves_out() -> None:
    rng = np.random.default_rng(3)
    points = rng.random((300, 3))

    def nearly(weights: np.ndarray) -> np.ndarray:
        """Return the worst of the points that miss the optimum by less than the gap."""
        worth = points @ weights
        allowed = worth >= worth.max() - 8e-4 * np.abs(weights).sum()
        return points[np.flatnonzero(allowed)[worth[allowed].argmin()]]

    exact, inexact = over(points, gap=0), PointSet(nearly, ["o0", "o1", "o2"], most_asked=0)
    assert 0 < exact.slack < 1e-6 and 1e-3 < inexact.slack < 1e-3 + 1e-6
    rows = rng.dirichlet(np.ones(3), 400)
    for problem, beaten in ((exact, False), (inexact, True)):
        missing = (problem.gain_scale.gains(points) @ rows.T).max(axis=0) - [
            a.value @ w for a, w in zip(problem.best(rows), rows, strict=True)
        ]
        assert missing.max() <= problem.slack
        assert bool(missing.max() > 1e-6) == beaten
    with pytest.raises(ArgumentError, match="gap"):
        over(points, gap=-0.1)
