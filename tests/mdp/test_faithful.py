"""Stories as the plan itself goes: never farther from its distribution than the paper's, and what that distribution is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from tests.laws.test_law_2_show import all_trajectories, models
from tradeoff import MDP, NOTHING, Mixture, load, represent
from tradeoff.mdp.stories import outcomes as room
from tradeoff.mdp.stories import parts_of
from tradeoff.mdp.stories.faithful import Distance
from tradeoff.mdp.stories.outcomes import draw, outcomes_of
from tradeoff.model import Outcomes

seeds = st.integers(0, 2**32 - 1)


def truth_of(mdp: MDP, plan: object) -> Outcomes:
    """Return the distribution by walking through every trajectory."""
    stories = all_trajectories(mdp, plan).values()
    return Outcomes(np.array([s.outcome for s in stories]), np.array([s.probability for s in stories]))


def distance(truth: Outcomes, points: np.ndarray, weights: np.ndarray) -> float:
    """Return the mean over the objectives that vary of the 1-Wasserstein distance in standard deviations, by SciPy."""
    varying = np.flatnonzero(truth.spread > 0)
    found = [
        wasserstein_distance(points[:, j], truth.points[:, j], weights, truth.probabilities) / truth.spread[j]
        for j in varying
    ]
    return float(np.mean(found)) if found else 0.0


def plan_of(mdp: MDP, rng: np.random.Generator, mixed: bool) -> object:
    first, second = (best.plan for best in mdp.best(rng.normal(size=(2, len(mdp.objectives)))))
    return Mixture((0.5, 0.3, 0.2), (first, second, NOTHING)) if mixed else first


@given(models(), st.booleans())
def test_never_farther_from_the_truth_than_the_papers_algorithm(drawn, mixed: bool) -> None:
    mdp, rng = drawn
    plan = plan_of(mdp, rng, mixed)
    truth = truth_of(mdp, plan)
    shown, paper = represent(mdp, plan), represent(mdp, plan, method="expand")
    assert len(shown.weights) <= len(mdp.objectives) + 1
    rounding = 1e-7  # of a standard deviation that is itself rounded where a branch has probability 1e-12
    assert distance(truth, shown.outcomes, shown.weights) <= distance(truth, paper.outcomes, paper.weights) + rounding


@given(st.lists(st.integers(0, 400), min_size=1, max_size=12), st.integers(0, 400))
def test_distinct_numbers_are_found_by_marking_as_by_sorting(numbers: list[int], more: int) -> None:
    found, which = room._distinct(np.array(numbers), max(numbers) + 1 + more)
    expected = np.unique(numbers, return_inverse=True)
    assert found.tolist() == expected[0].tolist() and which.tolist() == expected[1].tolist()


@given(models(), st.booleans())
def test_the_distribution_is_that_of_all_trajectories(drawn, mixed: bool) -> None:
    mdp, rng = drawn
    plan = plan_of(mdp, rng, mixed)
    parts = [(share, mdp.follow(part) if mdp.can_follow(part) else None) for share, part in parts_of(plan)]
    found, truth = outcomes_of(mdp, parts, limit=10**6), truth_of(mdp, plan)
    assert found.rollouts is None and found.error == 0
    assert math.isclose(found.probabilities.sum(), 1, abs_tol=1e-12)
    for j in range(len(mdp.objectives)):
        reach = np.abs(truth.points[:, j]).max()
        gap = wasserstein_distance(found.points[:, j], truth.points[:, j], found.probabilities, truth.probabilities)
        assert gap <= 1e-11 * reach


@given(models(), seeds)
def test_drawn_paths_are_paths_of_the_policy(drawn, seed: int) -> None:
    mdp, rng = drawn
    (best,) = mdp.best([rng.normal(size=len(mdp.objectives))])
    stories = all_trajectories(mdp, best.plan)
    paths = draw(mdp, mdp.follow(best.plan), 20, seed)
    for row in range(20):
        steps = int((paths.choices[row] >= 0).sum())
        states = tuple(mdp.states[s] for s in paths.states[row, : steps + 1])
        actions = tuple(mdp.actions[mdp.layer(t).action[paths.choices[row, t]]] for t in range(steps))
        story = stories[states, actions]
        assert story.probability > 0
        np.testing.assert_allclose(paths.returns[row], story.outcome, rtol=1e-12, atol=1e-12)


def test_rollouts_go_as_often_as_they_should() -> None:
    mdp = load("commute")
    (best,) = mdp.best([[1, 0.2, 1, 0.2, 1]])
    following = mdp.follow(best.plan)
    exact = outcomes_of(mdp, [(1.0, following)])
    rolled = outcomes_of(mdp, [(1.0, following)], limit=0, rollouts=20_000)
    assert exact.rollouts is None and rolled.rollouts == 20_000
    # The largest gap of two distribution functions exceeds 2.7 / sqrt(n) less than once in a million (DKW).
    for j in range(len(mdp.objectives)):
        for amount in np.unique(exact.points[:, j]):
            exactly, estimated = (one.probabilities[one.points[:, j] > amount + 1e-9].sum() for one in (exact, rolled))
            assert abs(exactly - estimated) <= 2.7 / math.sqrt(20_000)


@given(models(), st.booleans())
def test_the_best_and_the_worst_of_a_plan_are_attained(drawn, mixed: bool) -> None:
    mdp, rng = drawn
    plan = plan_of(mdp, rng, mixed)
    parts = [(share, mdp.follow(part) if mdp.can_follow(part) else None) for share, part in parts_of(plan)]
    points = truth_of(mdp, plan).points
    for limit in (10**6, 0):  # enumerated, and swept beside rollouts
        found = outcomes_of(mdp, parts, limit=limit, rollouts=50)
        assert found.range is not None and (found.rollouts is None) == (limit > 0)
        np.testing.assert_allclose(found.range, [points.min(axis=0), points.max(axis=0)], rtol=1e-9, atol=1e-9)


def test_where_a_sweep_takes_too_long_the_ends_are_not_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    mdp = load("commute")
    (best,) = mdp.best([[1, 0.2, 1, 0.2, 1]])
    monkeypatch.setattr(room, "SWEPT", 3)
    assert outcomes_of(mdp, [(1.0, mdp.follow(best.plan))], limit=0).range is None


def test_accidental_collisions_of_keys_do_not_merge(monkeypatch: pytest.MonkeyPatch) -> None:
    state = np.array([0, 1, 0, 1])
    earned = np.array([[1.0], [1.0], [1.0], [2.0]])

    unique = np.unique

    def all_keys_the_same(key: np.ndarray, **options: object):
        return unique(np.zeros_like(key) if key.ndim == 1 else key, **options)

    monkeypatch.setattr(room.np, "unique", all_keys_the_same)
    states, points, chances = room._merged(state, earned, np.full(4, 0.25))
    found = sorted(zip(states.tolist(), points[:, 0].tolist(), chances.tolist(), strict=True))
    assert found == [(0, 1.0, 0.5), (1, 1.0, 0.25), (1, 2.0, 0.25)]


@given(seeds, st.integers(1, 6), st.integers(2, 30))
def test_the_distance_is_that_of_scipy(seed: int, k: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    truth = Outcomes(rng.integers(-3, 4, size=(count, k)).astype(float), rng.dirichlet(np.ones(count)))
    points, weights = rng.normal(size=(4, k)), rng.dirichlet(np.ones(4))
    assert Distance(truth).of(points, weights) == pytest.approx(distance(truth, points, weights), abs=1e-9)
