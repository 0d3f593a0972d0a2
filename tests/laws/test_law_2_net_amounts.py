"""Law 2 where amounts cancel: what is shown is exact to the rounding of the summands, and nothing is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.test_law_2_show import METHODS, all_trajectories
from tests.mdp.test_mdp import random_stochastic
from tests.models import random_arrays
from tradeoff import MDP, NOTHING, Lottery, Mixture, Objective, Reference, dilute
from tradeoff.model import Plan

seeds = st.integers(0, 2**32 - 1)


def check(lottery: Lottery, mdp: MDP, plan: Plan) -> None:
    stories = all_trajectories(mdp, plan)
    k = len(mdp.objectives)
    assert len(lottery.trajectories) <= k + 1 and np.all(lottery.weights > 0)
    assert abs(math.fsum(lottery.weights) - 1) <= 1e-14
    rounding = 8 * mdp.horizon * np.finfo(float).eps * mdp.largest_total
    for trajectory in lottery.trajectories:
        story = stories[trajectory.states, trajectory.actions]
        assert story.probability > 0 and trajectory.probability == pytest.approx(story.probability, rel=1e-9)
        assert np.all(np.abs(trajectory.outcome - story.outcome) <= rounding)
    expected = [math.fsum(s.probability * s.outcome[j] for s in stories.values()) for j in range(k)]
    assert np.all(np.abs(lottery.average - expected) <= rounding)


def plus_then_minus(shares: tuple[float, ...], amount: float = 1.0) -> MDP:
    """Return the model in which every way earns an amount, and pays it back."""
    states = [f"s{i}" for i in range(len(shares))]
    rows = [("home", "go", q, s, [amount, 2.0 + i]) for i, (q, s) in enumerate(zip(shares, states, strict=True))]
    rows += [("home", "stay", 1, "end", [0, 0]), *((s, "back", 1, "end", [-amount, 1]) for s in states)]
    objectives = [Objective("debt", "EUR", "min"), Objective("fun")]
    return MDP.from_rows(rows, horizon=2, start="home", ends=["end"], objectives=objectives)


@given(st.lists(st.integers(1, 97), min_size=2, max_size=5), st.sampled_from([1.0, 0.1, 1e5, 3e-7]))
def test_an_objective_that_nets_to_zero_is_shown(parts: list[int], amount: float) -> None:
    mdp = plus_then_minus(tuple(part / sum(parts) for part in parts), amount)
    (best,) = mdp.best([[1, 1]])
    for option in (best, dilute(best, 0.3)):
        for method in METHODS:
            check(mdp.show(option, method=method), mdp, option.plan)
    assert [o.name for o in mdp.irrelevant] == ["debt"] and mdp.origin[0] == 0.0


def test_the_reported_model_is_shown() -> None:
    mdp = plus_then_minus((0.01, 0.06, 0.93))
    (best,) = mdp.best([[1, 1]])
    assert mdp.show(best).average.tolist() == [0.0, pytest.approx(4.92)]


@given(seeds, st.sampled_from(["cancel", "offset"]), st.sampled_from([1, 2, 4]), st.sampled_from(METHODS))
def test_random_models_with_net_amounts(seed: int, kind: str, horizon: int, method: str) -> None:
    """Large amounts come in at the first step and go out at the last, or every step earns much and varies little."""
    rng = np.random.default_rng(seed)
    arrays = random_arrays(rng, states=3, actions=2, objectives=3, horizon=horizon, stationary=False)
    rewards = arrays.rewards
    if kind == "cancel" and horizon > 1:
        rewards *= [1.0, 1e-2, 0.0]
        rewards[0] += [3.0, 1e5, 1.0]
        rewards[-1] -= [3.0, 1e5, 1.0]
    elif kind == "offset":
        rewards = np.array([1e8, 1e8, -1e4]) + rewards * [1e-3, 1e-4, 1e-7]
    mdp = MDP.from_arrays(
        arrays.transitions, rewards, start=arrays.start, objectives=arrays.objectives, prune=False,
        rewards_on="step and next",
    )  # fmt: skip
    first, second = mdp.best(rng.normal(size=(2, 3)))
    stochastic = mdp.plan(random_stochastic(mdp, rng))
    for plan in (first.plan, stochastic, Mixture((0.2, 0.3, 0.5), (second.plan, NOTHING, stochastic))):
        check(mdp.show(mdp.option(plan), method=method), mdp, plan)


@pytest.mark.parametrize("offset", [3_000.0, 10_000.0, 1e8])
def test_totals_far_above_their_range_are_shown(offset: float) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        transitions = rng.dirichlet(np.ones(4), size=(4, 3))
        mdp = MDP.from_arrays(transitions, offset + rng.random((4, 3, 2)) * 0.01, horizon=100)
        for best in mdp.best([[1, 1], [1, 0], [0.2, 0.8]]):
            lottery = mdp.show(best)
            gap = np.abs(lottery.average - mdp.outcome(best.value))
            assert np.all(gap <= 1e-9 * np.abs(mdp.scale) + 200 * np.finfo(float).eps * mdp.largest_total)


def test_a_reference_of_zero_may_be_named_where_amounts_cancel() -> None:
    mdp = plus_then_minus((0.01, 0.06, 0.93), 1e5)
    named = MDP(
        mdp.layers, horizon=2, start=mdp.start, states=mdp.states, actions=mdp.actions, objectives=mdp.objectives,
        reference=Reference("staying at home", {"debt": 0, "fun": 0}),
    )  # fmt: skip
    assert named.origin.tolist() == [0.0, 0.0]
