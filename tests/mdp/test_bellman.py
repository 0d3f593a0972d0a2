"""Laws of the dynamic-programming kernels: they agree with plain loops, and no result depends on its company."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tradeoff.mdp.kernels import bellman
from tradeoff.mdp.kernels import policy as policies

Array = np.ndarray[Any, Any]


class Layer(NamedTuple):
    state_ptr: Array
    choice_ptr: Array
    target: Array
    prob: Array
    reward: Array

    @property
    def states(self) -> int:
        return self.state_ptr.size - 1

    @property
    def choices(self) -> int:
        return self.choice_ptr.size - 1

    def actions(self, state: int) -> range:
        return range(self.state_ptr[state], self.state_ptr[state + 1])

    def entries(self, choice: int) -> range:
        return range(self.choice_ptr[choice], self.choice_ptr[choice + 1])


def build(seed: int, counts: Array, widths: Array, objectives: int, *, whole: bool = False) -> Layer:
    """Return a random layer of the given shape; `whole` makes rewards small integers, so that actions tie."""
    rng = np.random.default_rng(seed)
    state_ptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    choice_ptr = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    size = int(choice_ptr[-1])
    prob = rng.random(size)
    prob[rng.random(size) < 0.2] = 0.0
    if size:
        sums = np.add.reduceat(prob, choice_ptr[:-1])
        prob[choice_ptr[:-1][sums == 0.0]] = 1.0
        prob /= np.repeat(np.where(sums == 0.0, 1.0, sums), widths)
    shape = (widths.size, objectives)
    reward = rng.integers(-1, 2, shape).astype(float) if whole else rng.normal(size=shape)
    layer = Layer(state_ptr, choice_ptr, rng.integers(0, counts.size, size).astype(np.int32), prob, reward)
    for array in layer:
        array.flags.writeable = False  # models are frozen: every kernel must accept that
    return layer


@st.composite
def layers(draw: st.DrawFn, *, whole: bool = False) -> Layer:
    """Draw layers ragged or regular, with terminal states, single states, long choices and many actions."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    states = draw(st.sampled_from([1, 2, 7, 30, 300]))
    shape = draw(st.sampled_from(["ragged", "regular", "long", "one"]))
    if shape == "ragged":
        counts = rng.integers(0, 7, states)
        widths = rng.integers(1, 9, counts.sum())
    elif shape == "regular":
        counts = np.full(states, draw(st.integers(1, 5)))
        widths = np.full(counts.sum(), draw(st.integers(1, 10)))
    elif shape == "long":
        counts = np.where(rng.random(states) < 0.1, rng.integers(9, 20, states), rng.integers(0, 3, states))
        widths = np.where(rng.random(counts.sum()) < 0.1, rng.integers(9, 30, counts.sum()), 2)
    else:
        counts = np.ones(states, int)
        widths = np.ones(states, int)
    return build(seed, counts, widths, draw(st.sampled_from([1, 3, 7, 9])), whole=whole)


def weights_for(layer: Layer, count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=(count, layer.reward.shape[1]))


def solve(
    layer: Layer, weights: Array, steps: int, dtype: Any = np.uint8, start: Array | None = None, **options: Any
) -> tuple[Array, Array]:
    count = len(weights)
    values = np.zeros((layer.states, count)) if start is None else start.copy()
    policy = np.full((steps, layer.states, count), 99, dtype)
    bellman.backward(*layer, weights, values, policy, **options)
    return values, policy


def looped_values(layer: Layer, weights: Array, values: Array) -> Array:
    """Return the value of every choice for one weight vector."""
    return np.array(
        [
            layer.reward[choice] @ weights
            + sum(layer.prob[entry] * values[layer.target[entry]] for entry in layer.entries(choice))
            for choice in range(layer.choices)
        ]
    )


def chance_of(layer: Layer, actions: Array) -> Array:
    """Return a deterministic policy of one step as the chance of every choice."""
    chance = np.zeros(layer.choices)
    for state in range(layer.states):
        if layer.actions(state):
            chance[layer.state_ptr[state] + actions[state]] = 1.0
    return chance


@settings(deadline=None, max_examples=40)
@given(layers(), st.integers(1, 40), st.sampled_from([1, 2, 3, 13]))
def test_backward_is_bellmans_recursion(layer: Layer, count: int, steps: int) -> None:
    weights = weights_for(layer, count)
    start = np.random.default_rng(1).normal(size=(layer.states, count))
    values, policy = solve(layer, weights, steps, start=start)
    for b in {0, count // 2, count - 1}:
        expected = start[:, b]
        for step in reversed(range(steps)):
            worth = looped_values(layer, weights[b], expected)
            best = np.zeros(layer.states)
            for state in range(layer.states):
                own = worth[layer.state_ptr[state] : layer.state_ptr[state + 1]]
                if own.size:
                    best[state] = own.max()
                    assert own[policy[step, state, b]] >= own.max() - 1e-10
                else:
                    assert policy[step, state, b] == 0
            expected = best
        assert_allclose(values[:, b], expected, rtol=0, atol=1e-10)


@settings(deadline=None, max_examples=40)
@given(layers(), st.integers(2, 40), st.sampled_from([1, 14]), st.data())
def test_a_solution_does_not_depend_on_its_batch(layer: Layer, count: int, steps: int, data: st.DataObject) -> None:
    weights = weights_for(layer, count)
    values, policy = solve(layer, weights, steps)
    order = np.array(data.draw(st.permutations(range(count))))
    moved_values, moved_policy = solve(layer, weights[order], steps)
    assert_array_equal(moved_values.view(np.int64), values[:, order].view(np.int64))
    assert_array_equal(moved_policy, policy[:, :, order])
    b = data.draw(st.integers(0, count - 1))
    alone_values, alone_policy = solve(layer, weights[b : b + 1], steps)
    assert_array_equal(alone_values[:, 0].view(np.int64), values[:, b].view(np.int64))
    assert_array_equal(alone_policy[:, :, 0], policy[:, :, b])


@pytest.mark.parametrize("states", [1, 2, 513, 1700])
def test_a_single_solution_agrees_with_the_batch_if_choices_are_short_and_long(states: int) -> None:
    """The single sweep adds up the first successors of a choice in another way than further ones."""
    rng = np.random.default_rng(states)
    counts = np.where(rng.random(states) < 0.05, rng.integers(9, 40, states), rng.integers(0, 7, states))
    widths = np.where(rng.random(counts.sum()) < 0.05, rng.integers(9, 40, counts.sum()), 0)
    widths = np.where(widths, widths, rng.integers(1, 9, counts.sum()))
    layer = build(states, counts, widths, 3)
    weights = weights_for(layer, 2)
    values, policy = solve(layer, weights, 13)
    for b in range(2):
        alone_values, alone_policy = solve(layer, weights[b : b + 1], 13)
        assert_array_equal(alone_values[:, 0].view(np.int64), values[:, b].view(np.int64))
        assert_array_equal(alone_policy[:, :, 0], policy[:, :, b])


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("steps", [1, 20])
def test_terminal_states_alone_are_worth_nothing(count: int, steps: int) -> None:
    layer = build(0, np.zeros(5, int), np.zeros(0, int), 3)
    start = np.ones((5, count))
    values, policy = solve(layer, np.ones((count, 3)), steps, start=start)
    assert not values.any()
    assert not policy.any()
    totals = np.zeros((count, 3))
    bellman.forward(*layer, policy, start, totals)
    assert_array_equal(start, 1.0)
    assert not totals.any()


def followed(layer: Layer, policy: Array, occupancy: Array, totals: Array, threads: int) -> None:
    """Follow policies on several threads, which may share one."""
    bellman.forward(*layer, policy, occupancy, totals, threads, lambda: bellman.incoming(*layer[:4]))


@pytest.mark.parametrize("count", [1, 2, 8, 9, 16, 17, 24, 40])
def test_a_solution_does_not_depend_on_threads(count: int) -> None:
    rng = np.random.default_rng(2)
    states = 60_000 if count == 1 else 12_000  # enough for several threads
    counts = rng.integers(0, 4, states)
    layer = build(3, counts, rng.integers(1, 4, counts.sum()), 3)
    weights = weights_for(layer, count)
    values, policy = solve(layer, weights, 2)
    for threads in (2, 3, 8):
        threaded_values, threaded_policy = solve(layer, weights, 2, threads=threads)
        assert_array_equal(threaded_values.view(np.int64), values.view(np.int64))
        assert_array_equal(threaded_policy, policy)
    occupancy = np.full((layer.states, count), 1 / layer.states)
    totals = np.zeros((count, 3))
    bellman.forward(*layer, policy, occupancy, totals)
    threaded_occupancy = np.full((layer.states, count), 1 / layer.states)
    threaded_totals = np.zeros((count, 3))
    followed(layer, policy, threaded_occupancy, threaded_totals, threads=3)
    assert_array_equal(threaded_occupancy, occupancy)
    assert_array_equal(threaded_totals, totals)


@pytest.mark.parametrize("objectives", [3, 10])
@pytest.mark.parametrize("everywhere", [False, True])
def test_a_policy_that_reaches_many_states_is_followed_alike_by_any_number_of_threads(
    monkeypatch: pytest.MonkeyPatch, objectives: int, everywhere: bool
) -> None:
    monkeypatch.setattr("tradeoff.mdp.kernels.policy._wide_from", lambda *_: 5_000)  # as many as that are many here
    rng = np.random.default_rng(5)
    states = 45_000
    counts = rng.integers(0, 4, states)
    counts[0] = 3
    layer = build(6, counts, rng.integers(1, 40, counts.sum()), objectives)
    policy = (rng.integers(0, 4, (6, states, 1)) % np.maximum(counts, 1)[:, np.newaxis]).astype(np.uint8)
    start = np.full((states, 1), 1 / states) if everywhere else np.zeros((states, 1))
    start[0] += 0.5
    found = []
    for threads in (1, 2, 3, 8):
        occupancy, totals = start.copy(), np.ones((1, objectives))
        followed(layer, policy, occupancy, totals, threads)
        found.append((occupancy, totals))
    assert np.count_nonzero(found[0][0]) > 20_000
    for occupancy, totals in found[1:]:
        assert_array_equal(occupancy.view(np.int64), found[0][0].view(np.int64))
        assert_array_equal(totals.view(np.int64), found[0][1].view(np.int64))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3_000), st.integers(0, 4), st.integers(1, 4))
def test_a_policy_is_followed_alike_from_any_step_on(seed: int, states: int, first: int, threads: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, states)
    layer = build(seed, counts, rng.integers(1, 5, counts.sum()), 3)
    policy = (rng.integers(0, 4, (5, states, 2)) % np.maximum(counts, 1)[:, np.newaxis]).astype(np.uint8)
    occupancy = rng.random((states, 2)) * (rng.random((states, 2)) < rng.random())
    totals = rng.random((2, 3))
    alone, earned = occupancy.copy(), totals.copy()
    bellman.forward(*layer, policy[first:], alone, earned)
    into = bellman.incoming(*layer[:4])
    policies._forward_wide(layer.state_ptr, layer.reward, into, policy, 1, first, occupancy, totals, threads)
    assert_array_equal(occupancy[:, 1].view(np.int64), alone[:, 1].copy().view(np.int64))
    assert_array_equal(totals[1].view(np.int64), earned[1].view(np.int64))


def test_a_policy_is_evaluated_alike_by_any_number_of_threads() -> None:
    rng = np.random.default_rng(7)
    counts = rng.integers(0, 4, 25_000)
    layer = build(8, counts, rng.integers(1, 4, counts.sum()), 3)
    chance, values = rng.random(counts.sum()), rng.random((layer.states, 3))
    alone, shared = np.empty_like(values), np.empty_like(values)
    bellman.evaluate_step(*layer, chance, values, alone)
    bellman.evaluate_step(*layer, chance, values, shared, threads=2)
    assert_array_equal(shared.view(np.int64), alone.view(np.int64))


@settings(deadline=None, max_examples=30)
@given(layers(whole=True), st.integers(1, 20))
def test_ties_go_to_the_lowest_action(layer: Layer, count: int) -> None:
    """Integers add up exactly, so what ties on paper ties in the kernel."""
    weights = np.random.default_rng(4).integers(-2, 3, (count, layer.reward.shape[1])).astype(float)
    _, policy = solve(layer, weights, 1)
    for b in range(count):
        worth = looped_values(layer, weights[b], np.zeros(layer.states))
        for state in range(layer.states):
            own = worth[layer.state_ptr[state] : layer.state_ptr[state + 1]]
            assert policy[0, state, b] == (own.argmax() if own.size else 0)


@pytest.mark.parametrize("count", [1, 5, 16])
@pytest.mark.parametrize("steps", [1, 12])
def test_more_actions_than_a_byte_counts(count: int, steps: int) -> None:
    counts = np.array([1, 700, 0, 300, 256, 9])
    layer = build(5, counts, np.full(counts.sum(), 2), 3)
    weights = weights_for(layer, count)
    reward = layer.reward.copy()
    reward[700] = 10.0 * weights[0]  # the last action of the second state is the best for the first weights
    layer = layer._replace(reward=reward)
    values, policy = solve(layer, weights, steps, np.uint16)
    assert policy.max() > 255
    expected = np.zeros((layer.states, count))
    for _ in range(steps):
        worth = np.stack([looped_values(layer, weights[b], expected[:, b]) for b in range(count)], axis=1)
        expected = np.array(
            [worth[layer.actions(s)].max(axis=0) if layer.actions(s) else np.zeros(count) for s in range(layer.states)]
        )
    assert_allclose(values, expected, atol=1e-10)
    occupancy, totals = np.full((layer.states, count), 1 / layer.states), np.zeros((count, 3))
    bellman.forward(*layer, policy, occupancy, totals)
    assert_allclose((totals * weights).sum(axis=1), values.mean(axis=0), atol=1e-10)
    second, seconds, chosen = np.zeros_like(values), np.zeros_like(values), np.empty_like(policy)
    bellman.backward_lexicographic(*layer, weights, weights[0], np.zeros(count), second, seconds, chosen)
    assert_array_equal(chosen, policy)


@settings(deadline=None, max_examples=20)
@given(layers(), st.integers(1, 20), st.integers(2, 15))
def test_steps_together_are_steps_one_by_one(layer: Layer, count: int, steps: int) -> None:
    weights = weights_for(layer, count)
    values, policy = solve(layer, weights, steps)
    single = np.zeros_like(values)
    for step in reversed(range(steps)):
        one = np.empty((1, layer.states, count), np.uint8)
        bellman.backward(*layer, weights, single, one)
        assert_array_equal(one[0], policy[step])
    assert_array_equal(single, values)


@settings(deadline=None, max_examples=30)
@given(layers(whole=True), st.integers(1, 20), st.sampled_from([1, 3]))
def test_lexicographic_chooses_by_the_second_among_the_best(layer: Layer, count: int, steps: int) -> None:
    objectives = layer.reward.shape[1]
    rng = np.random.default_rng(6)
    weights = rng.integers(-1, 2, (count, objectives)).astype(float)
    second = rng.normal(size=objectives)
    tolerance = np.where(np.arange(count) % 2, 1e-9, 0.75)
    values, seconds = np.zeros((layer.states, count)), np.zeros((layer.states, count))
    policy = np.full((steps, layer.states, count), 99, np.uint8)
    bellman.backward_lexicographic(*layer, weights, second, tolerance, values, seconds, policy)
    for b in range(count):
        first_value, second_value = np.zeros(layer.states), np.zeros(layer.states)
        for step in reversed(range(steps)):
            worth = looped_values(layer, weights[b], first_value)
            other = looped_values(layer, second, second_value)
            first_value, second_value = np.zeros(layer.states), np.zeros(layer.states)
            for state in range(layer.states):
                own = np.array(layer.actions(state), int)
                if own.size == 0:
                    assert policy[step, state, b] == 0
                    continue
                taken = own[policy[step, state, b]]
                near = own[worth[own] >= worth[own].max() - tolerance[b] - 1e-12]
                assert taken in near
                sure = own[worth[own] >= worth[own].max() - tolerance[b] + 1e-12]
                assert other[taken] >= other[sure].max(initial=-np.inf) - 1e-12
                first_value[state], second_value[state] = worth[taken], other[taken]
        assert_allclose(values[:, b], first_value, atol=1e-10)
        assert_allclose(seconds[:, b], second_value, atol=1e-10)


def test_lexicographic_ties_in_both_go_to_the_lowest_action() -> None:
    reward = np.array([[0.0, 9.0], [1.0, 0.0], [1.0, 2.0], [1.0, 2.0]])
    layer = (np.array([0, 4], np.int32), np.arange(5), np.zeros(4, np.int32), np.ones(4), reward)
    values, seconds, policy = np.zeros((1, 3)), np.zeros((1, 3)), np.zeros((1, 1, 3), np.uint8)
    weights = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    tolerance = np.array([0.0, 0.0, 1.0])
    bellman.backward_lexicographic(*layer, weights, np.array([0.0, 1.0]), tolerance, values, seconds, policy)
    assert policy.tolist() == [[[2, 0, 0]]]
    assert values.tolist() == [[1.0, 0.0, 0.0]]
    assert seconds.tolist() == [[2.0, 9.0, 9.0]]


@settings(deadline=None, max_examples=20)
@given(layers(whole=True), st.integers(2, 20), st.data())
def test_lexicographic_does_not_depend_on_its_batch(layer: Layer, count: int, data: st.DataObject) -> None:
    weights = np.random.default_rng(7).integers(-1, 2, (count, layer.reward.shape[1])).astype(float)
    second = np.ones(layer.reward.shape[1])
    tolerance = np.full(count, 1e-9)

    def run(rows: Array) -> list[Array]:
        values, seconds = np.zeros((layer.states, rows.size)), np.zeros((layer.states, rows.size))
        policy = np.empty((4, layer.states, rows.size), np.uint8)
        arguments = (weights[rows], second, tolerance[rows], values, seconds, policy)
        bellman.backward_lexicographic(*layer, *arguments)
        return [values.view(np.int64), seconds.view(np.int64), policy]

    whole = run(np.arange(count))
    order = np.array(data.draw(st.permutations(range(count))))
    for rows in (order, order[:1]):
        for part, reference in zip(run(rows), whole, strict=True):
            assert_array_equal(part, reference[..., rows])


@settings(deadline=None, max_examples=20)
@given(layers(), st.integers(1, 12), st.sampled_from([1, 4]))
def test_lexicographic_without_ties_is_backward(layer: Layer, count: int, steps: int) -> None:
    weights = weights_for(layer, count)
    values, policy = solve(layer, weights, steps)
    first, second = np.zeros_like(values), np.zeros_like(values)
    chosen = np.empty_like(policy)
    none = np.zeros(count)
    bellman.backward_lexicographic(*layer, weights, weights[0], none, first, second, chosen)
    assert_array_equal(chosen, policy)
    assert_array_equal(first, values)
