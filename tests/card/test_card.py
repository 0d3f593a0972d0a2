"""A graphics card changes no value, no policy and no question. Collected only where there is a card."""

from __future__ import annotations

import pickle

import cupy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tests.mdp.test_bellman import Layer, layers, weights_for
from tradeoff import Interview, LinearRespondent, load
from tradeoff.mdp.compiled import CompiledSolver
from tradeoff.mdp.kernels import bellman
from tradeoff.mdp.registry import DEVICE
from tradeoff_cuda import card
from tradeoff_cuda import kernels as cuda
from tradeoff_cuda.card import Card

KINDS = (np.uint8, np.uint16, np.uint32)
counts, steps = st.sampled_from([1, 2, 9, 16, 33]), st.integers(1, 4)


def on_card(*arrays: np.ndarray) -> list[cupy.ndarray]:
    return [cupy.asarray(array) for array in arrays]


@given(layers(), counts, steps, st.sampled_from(KINDS))
def test_backward_and_forward_have_the_same_bits(layer: Layer, count: int, steps: int, kind: type) -> None:
    weights = weights_for(layer, count)
    values, policy = np.zeros((layer.states, count)), np.empty((steps, layer.states, count), kind)
    bellman.backward(*layer, weights, values, policy)
    start = np.random.default_rng(0).dirichlet(np.ones(layer.states), count).T.copy()
    occupancy, totals = start.copy(), np.zeros_like(weights)
    bellman.forward(*layer, policy, occupancy, totals)

    there = cuda.card_layer(*layer)
    found, chosen = cupy.zeros(values.shape), cupy.empty(policy.shape, kind)
    cuda.backward(there, *on_card(weights), found, chosen)
    reached, earned = cupy.asarray(start), cupy.zeros(totals.shape)
    cuda.forward(there, chosen, reached, earned)
    for mine, theirs in ((values, found), (policy, chosen), (occupancy, reached), (totals, earned)):
        assert_array_equal(theirs.get(), mine, strict=True)


@given(layers(whole=True), counts, steps, st.sampled_from([0.0, 1e-9, 1.0]))
def test_ties_are_broken_with_the_same_bits(layer: Layer, count: int, steps: int, slack: float) -> None:
    weights, second, tolerance = weights_for(layer, count), weights_for(layer, 1)[0], np.full(count, slack)
    shape = (layer.states, count)
    values, seconds, policy = np.zeros(shape), np.zeros(shape), np.empty((steps, *shape), np.uint8)
    bellman.backward_lexicographic(*layer, weights, second, tolerance, values, seconds, policy)
    found, found_second, chosen = cupy.zeros(shape), cupy.zeros(shape), cupy.empty(policy.shape, np.uint8)
    there = cuda.card_layer(*layer)
    cuda.backward_lexicographic(there, *on_card(weights, second, tolerance), found, found_second, chosen)
    for mine, theirs in ((values, found), (seconds, found_second), (policy, chosen)):
        assert_array_equal(theirs.get(), mine, strict=True)


@pytest.mark.parametrize("name", ["commute", "portfolio", "vacuum"])
@pytest.mark.parametrize("strategy", ["paper", "certified", "careful"])
def test_an_interview_is_the_same(name: str, strategy: str) -> None:
    found = []
    for solver in (CompiledSolver(), CompiledSolver(device=Card())):
        interview = Interview(load(name).replace(solver=solver), strategy)
        user = LinearRespondent(np.arange(1, len(interview.problem.objectives) + 1))
        for _ in range(4):
            question = interview.ask()
            if question is None:
                break
            found.append((question.key, None))
            interview.tell(user(question))
        found.append((interview.recommendation.option.value.tobytes(), interview.recommendation.regret_bound))
    half = len(found) // 2
    assert found[:half] == found[half:]


def test_a_small_card_is_used_in_segments_and_refused_when_nothing_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = load("vacuum")
    rows = np.random.default_rng(0).dirichlet(np.ones(len(problem.objectives)), 20)
    expected = [best.value for best in problem.best(rows)]
    size = sum(map(card._size, problem.layers))
    monkeypatch.setattr(card, "_free", lambda: size + 200 * len(problem.states))
    small = problem.replace(solver=CompiledSolver(device=Card()))
    assert_array_equal([best.value for best in small.best(rows)], expected)
    monkeypatch.setattr(card, "_free", lambda: size // 2)
    with pytest.raises(card.TooLargeError, match="GiB on the graphics card"):
        problem.replace(solver=CompiledSolver(device=Card())).best(rows)


def test_the_environment_says_which_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEVICE, "gpu")
    solver = load("commute").solver
    assert isinstance(pickle.loads(pickle.dumps(solver)).device, Card)
