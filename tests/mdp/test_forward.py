"""What a policy earns, and rollouts: forward steps agree with backward ones and with the probabilities."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tests.mdp.test_bellman import Array, Layer, build, chance_of, layers, solve, weights_for
from tradeoff.mdp.kernels import bellman


@settings(deadline=None, max_examples=30)
@given(layers(), st.integers(1, 20), st.sampled_from([1, 2, 9]), st.booleans())
def test_forward_earns_what_backward_promised(layer: Layer, count: int, steps: int, spread: bool) -> None:
    weights = weights_for(layer, count)
    values, policy = solve(layer, weights, steps)
    rng = np.random.default_rng(8)
    start = rng.dirichlet(np.ones(layer.states), count).T if spread else np.zeros((layer.states, count))
    if not spread:
        start[rng.integers(0, layer.states, count), np.arange(count)] = 1.0
    occupancy, totals = start.copy(order="C"), np.ones((count, layer.reward.shape[1]))
    bellman.forward(*layer, policy, occupancy, totals)
    assert_allclose(((totals - 1.0) * weights).sum(axis=1), (start * values).sum(axis=0), atol=1e-9)
    assert_allclose(occupancy.sum(axis=0), 1.0, atol=1e-12)
    for b in {0, count - 1}:
        now = np.ascontiguousarray(start[:, b])
        for step in range(steps):
            out = np.full(layer.states, np.nan)
            bellman.occupancy_step(*layer[:4], chance_of(layer, policy[step, :, b]), now, out)
            now = out
        assert_allclose(occupancy[:, b], now, atol=1e-12)
        alone = np.ascontiguousarray(start[:, b : b + 1])
        total = np.ones((1, layer.reward.shape[1]))
        bellman.forward(*layer, np.ascontiguousarray(policy[:, :, b : b + 1]), alone, total)
        assert_array_equal(alone[:, 0], occupancy[:, b])
        assert_array_equal(total[0], totals[b])


@settings(deadline=None, max_examples=20)
@given(layers(), st.integers(1, 6))
def test_forward_steps_together_are_steps_one_by_one(layer: Layer, steps: int) -> None:
    weights = weights_for(layer, 3)
    _, policy = solve(layer, weights, steps)
    occupancy, single = np.full((2, layer.states, 3), 1 / layer.states)
    totals, single_totals = np.zeros((2, 3, layer.reward.shape[1]))
    bellman.forward(*layer, policy, occupancy, totals)
    for step in range(steps):
        bellman.forward(*layer, policy[step : step + 1], single, single_totals)
    assert_array_equal(single, occupancy)
    assert_array_equal(single_totals, totals)


@settings(deadline=None, max_examples=40)
@given(layers(), st.integers(0, 2**32 - 1))
def test_a_step_of_a_random_policy(layer: Layer, seed: int) -> None:
    rng = np.random.default_rng(seed)
    chance = np.where(rng.random(layer.choices) < 0.3, 0.0, rng.random(layer.choices))
    values = rng.normal(size=(layer.states, layer.reward.shape[1]))
    now = rng.random(layer.states)
    expected_out = np.zeros_like(values)
    expected_now = np.zeros(layer.states)
    for state in range(layer.states):
        if not layer.actions(state):
            expected_now[state] += now[state]
        for choice in layer.actions(state):
            worth = layer.reward[choice].copy()
            for entry in layer.entries(choice):
                worth += layer.prob[entry] * values[layer.target[entry]]
                expected_now[layer.target[entry]] += now[state] * chance[choice] * layer.prob[entry]
            expected_out[state] += chance[choice] * worth
    out = np.full_like(values, np.nan)
    bellman.evaluate_step(*layer, chance, values, out)
    assert_allclose(out, expected_out, atol=1e-12)
    after = np.full(layer.states, np.nan)
    bellman.occupancy_step(*layer[:4], chance, now, after)
    assert_allclose(after, expected_now, atol=1e-12)


def walk(layer: Layer, chance: Array, states: Array, first: Array, second: Array) -> tuple[Array, Array, Array]:
    choice, index, after = (np.empty(states.size, np.int64) for _ in range(3))
    bellman.rollout_step(*layer[:4], chance, states, first, second, choice, index, after)
    return choice, index, after


@settings(deadline=None, max_examples=30)
@given(layers(), st.integers(0, 2**32 - 1))
def test_rollout_draws_only_what_can_happen(layer: Layer, seed: int) -> None:
    rng = np.random.default_rng(seed)
    chance = np.where(rng.random(layer.choices) < 0.4, 0.0, rng.random(layer.choices) + 1e-3)
    for state in range(layer.states):
        own = slice(layer.state_ptr[state], layer.state_ptr[state + 1])
        if layer.actions(state):
            if chance[own].sum() == 0.0:
                chance[own.stop - 1] = 1.0
            chance[own] /= chance[own].sum()
    states = rng.integers(0, layer.states, 200)
    # The extremes are where rounding could step over the last branch or onto an impossible first one.
    first, second = rng.choice([0.0, 0.5, rng.random(), 1.0 - 2.0**-53], (2, 200))
    choice, index, after = walk(layer, chance, states, first, second)
    for i, state in enumerate(states):
        if not layer.actions(state):
            assert (choice[i], index[i], after[i]) == (-1, -1, state)
            continue
        assert choice[i] in layer.actions(state)
        assert index[i] in layer.entries(choice[i])
        assert chance[choice[i]] > 0.0
        assert layer.prob[index[i]] > 0.0
        assert after[i] == layer.target[index[i]]


def test_rollout_frequencies_are_the_probabilities() -> None:
    counts, widths = np.array([3, 0]), np.array([1, 4, 2])
    layer = build(9, counts, widths, 1)
    chance = np.array([0.0, 0.7, 0.3])
    n = 200_000
    first, second = np.random.default_rng(10).random((2, n))
    choice, index, _ = walk(layer, chance, np.zeros(n, np.int64), first, second)
    assert_allclose(np.bincount(choice, minlength=3) / n, chance, atol=5e-3)
    expected = layer.prob * np.repeat(chance, widths)
    assert_allclose(np.bincount(index, minlength=7) / n, expected, atol=5e-3)


def test_an_impossible_tail_is_not_drawn_when_the_sum_falls_short() -> None:
    """Ten tenths add up to less than one in floating point; what is left over must not go to the impossible last."""
    prob = np.append(np.full(10, 0.1), 0.0)
    layer = Layer(np.array([0, 1], np.int32), np.array([0, 11]), np.zeros(11, np.int32), prob, np.zeros((1, 1)))
    assert np.cumsum(prob)[-1] < 1.0
    top = np.array([1.0 - 2.0**-53])
    _, index, _ = walk(layer, np.ones(1), np.zeros(1, np.int64), top, top)
    assert index.tolist() == [9]
