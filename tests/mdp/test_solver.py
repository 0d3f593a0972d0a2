"""Solvers: the compiled one and the NumPy one return the same, and another one can be plugged in."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tests import processes
from tests.laws.asking import ASKING
from tests.mdp.test_mdp import random_stochastic
from tests.messages import refused
from tests.models import random_arrays
from tests.processes import EXCUSE
from tradeoff import MDP, Interview, LinearRespondent, Mixture, load
from tradeoff.errors import ArgumentError
from tradeoff.mdp.compiled import CompiledSolver, Processor
from tradeoff.mdp.registry import solver_for
from tradeoff.mdp.solver import Weights
from tradeoff.mdp.textbook import TextbookSolver
from tradeoff_cuda.card import absent

seeds = st.integers(0, 2**32 - 1)


@st.composite
def models(draw: st.DrawFn) -> tuple[MDP, MDP, np.random.Generator]:
    """Draw a model, solved by compiled code and in NumPy."""
    rng = np.random.default_rng(draw(seeds))
    arrays = random_arrays(
        rng, states=draw(st.integers(1, 8)), actions=3, objectives=draw(st.sampled_from([1, 2, 4, 9])),
        horizon=draw(st.integers(1, 5)), integers=draw(st.booleans()), stationary=draw(st.booleans()),
    )  # fmt: skip
    mdp = arrays.mdp(solver=CompiledSolver())
    return mdp, mdp.replace(solver=TextbookSolver()), rng


def rows_for(rng: np.random.Generator, k: int) -> np.ndarray:
    mixed, likely = rng.normal(size=(6, k)), rng.dirichlet(np.ones(k), 6)
    return np.concatenate([mixed, likely, likely * rng.integers(0, 2, (6, k)), np.eye(k), np.zeros((1, k))])


@given(models())
def test_the_compiled_solver_returns_what_the_textbook_says(drawn: tuple[MDP, MDP, np.random.Generator]) -> None:
    mdp, plain, rng = drawn
    assert_allclose(plain.origin, mdp.origin, atol=1e-12)
    assert_allclose(plain.scale, mdp.scale, rtol=1e-12, atol=1e-12)
    rows = rows_for(rng, len(mdp.objectives))
    for row, one, other in zip(rows, mdp.best(rows), plain.best(rows), strict=True):
        assert one.value @ row == pytest.approx(other.value @ row, abs=1e-11)
        if np.any(row <= 0):  # ties go to the largest total gain; rounding decides between equal totals
            assert one.value.sum() == pytest.approx(other.value.sum(), abs=1e-9)
    raw = rng.normal(size=(5, len(mdp.objectives)))
    solvers = mdp.solver, plain.solver
    assert_allclose(*(solver.optimal_values(mdp.dynamics, raw) for solver in solvers), rtol=1e-12, atol=1e-12)


@given(seeds, st.integers(1, 40), st.integers(1, 6), st.booleans(), st.sampled_from([1, 3, 9]))
def test_policies_are_the_same_if_every_sum_is_exact(
    seed: int, states: int, horizon: int, stationary: bool, objectives: int
) -> None:
    """With dyadic numbers nothing is rounded, so both solvers see the same ties, of which there are many."""
    rng = np.random.default_rng(seed)
    layers, actions = 1 if stationary else horizon, 4
    transitions = rng.multinomial(8, rng.dirichlet(np.full(states, 2 / states), (layers, states, actions))) / 8
    transitions[:, rng.random((states, actions)) < 0.2] = 0
    transitions[:, 0, 0, 0] += 1 - transitions[:, 0, 0].sum(axis=-1)
    rewards = rng.integers(-1, 2, (layers, states, actions, states, objectives)) / 2
    full = (horizon, states, actions, states)
    model = MDP.from_arrays(
        np.broadcast_to(transitions, full), np.broadcast_to(rewards, (*full, objectives)), start=np.eye(states)[0],
        rewards_on="step and next", prune=False,
    ).dynamics  # fmt: skip
    assert all(np.all(layer.prob * 8 % 1 == 0) for layer in model.layers)
    rows = rng.integers(-2, 3, (20, objectives)) / 2
    weights = Weights(rows, rng.random(20) < 0.5, rng.integers(0, 3, 20) / 4, rng.integers(0, 3, objectives) / 2)
    compiled, plain = CompiledSolver(), TextbookSolver()
    assert_array_equal(compiled.optimal_values(model, rows), plain.optimal_values(model, rows))
    assert_array_equal(compiled.optimal_choices(model, weights), plain.optimal_choices(model, weights))
    assert_array_equal(compiled.optimal_outcomes(model, weights), plain.optimal_outcomes(model, weights))


@pytest.mark.parametrize("name", ["commute", "portfolio", "vacuum"])
@pytest.mark.parametrize("asking", ASKING)
def test_an_interview_asks_the_same_questions_with_either_solver(name: str, asking: str) -> None:
    strategy, options = ASKING[asking]
    asked = []
    for solver in (CompiledSolver(), TextbookSolver()):
        interview = Interview(load(name).replace(solver=solver), strategy, **options)
        respondent = LinearRespondent(np.arange(1.0, len(interview.problem.objectives) + 1))
        for _ in range(8):
            question = interview.ask()
            if question is None:
                break
            asked.append((solver, [np.round(option.value, 9) for option in question.options]))
            interview.tell(respondent(question))
        asked.append((solver, [np.round(interview.recommendation.option.value, 9)]))
    half = len(asked) // 2
    assert half > 1 and asked[half - 1][0] is not asked[half][0]
    for (_, one), (_, other) in zip(asked[:half], asked[half:], strict=True):
        assert_array_equal(one, other)


@given(models())
def test_policies_are_followed_alike(drawn: tuple[MDP, MDP, np.random.Generator]) -> None:
    mdp, plain, rng = drawn
    stochastic = random_stochastic(mdp, rng)
    (table,) = mdp.solve(rng.normal(size=(1, len(mdp.objectives))))
    for policy in (stochastic, table):
        assert_allclose(plain.evaluate(policy), mdp.evaluate(policy), atol=1e-11)
        assert_allclose(plain.values(policy), mdp.values(policy), atol=1e-11)
        assert_allclose(plain.occupancy(policy), mdp.occupancy(policy), atol=1e-13)
    one, other = (m.show(m.option(stochastic)) for m in (mdp, plain))
    assert_allclose(one.average, other.average, atol=1e-10)


@given(models(), seeds)
def test_walkers_draw_the_same(drawn: tuple[MDP, MDP, np.random.Generator], seed: int) -> None:
    """The same uniform numbers lead both solvers along the same way, unless one falls on a border."""
    mdp, plain, rng = drawn
    policy = Mixture((0.5, 0.5), tuple(m.plan(random_stochastic(mdp, rng)) for m in (mdp, plain)))
    one, other = mdp.rollout(policy, rng=seed, n=40), plain.rollout(policy, rng=seed, n=40)
    assert_array_equal(one.states, other.states)
    assert_array_equal(one.actions, other.actions)
    assert_allclose(one.outcomes, other.outcomes, atol=1e-12)


class Counting(CompiledSolver):
    """A solver of one's own: counts the weight vectors it is asked for."""

    def __init__(self) -> None:
        super().__init__(threads=1)
        self.asked = 0

    def optimal_outcomes(self, dynamics: Any, weights: Any) -> Any:
        self.asked += len(weights.rows)
        return super().optimal_outcomes(dynamics, weights)


def test_another_solver_is_plugged_in() -> None:
    solver = Counting()
    trip = load("commute").replace(solver=solver)
    trip.best(np.eye(5))
    assert solver.asked == 5 and trip.threads == 1
    trip.solver = CompiledSolver(threads=3)
    trip.best(np.eye(5))
    assert solver.asked == 5 and trip.threads == 3
    trip.threads = 2
    assert pickle.loads(pickle.dumps(trip)).solver.threads == 2


def test_a_copy_with_changes_keeps_the_rest() -> None:
    trip = load("vacuum")
    trip.notes.append("a note")
    trip.slack = 0.01
    other = trip.replace(title="Another day")
    assert (other.title, other.about, other.notes, other.slack) == ("Another day", trip.about, trip.notes, 0.01)
    assert other.fingerprint == trip.fingerprint and other.places == trip.places
    other.threads = 7
    assert trip.threads != 7
    shorter = trip.replace(horizon=3)
    assert shorter.horizon == 3 and shorter.fingerprint != trip.fingerprint
    with refused(TypeError, "'tittle'", "title"):
        trip.replace(tittle="A typo")


def test_many_steps_with_a_narrow_range_are_not_called_exact() -> None:
    """What tie-breaks lose adds up over the steps; beyond rounding it is stated."""
    layers = MDP.from_arrays(np.ones((1, 2, 1)), 1e6 + np.array([[[0.0, 1.0], [1.0, 0.0]]]), horizon=1).layers
    make = MDP(
        layers, horizon=10, start=0, states=["s"], actions=["a", "b"], objectives=load("dependent").objectives[:2]
    )
    long = make.replace(horizon=100_000)
    assert make.slack < 1e-7 < long.slack


def test_a_small_model_is_solved_in_numpy_a_larger_one_in_compiled_code_and_unknown_devices_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert isinstance(load("commute").solver, TextbookSolver)
    larger = solver_for(load("commute").replace(horizon=10_000).dynamics)
    assert isinstance(larger, CompiledSolver) and isinstance(larger.device, Processor)
    monkeypatch.setenv("TRADEOFF_DEVICE", "tpu")
    with refused(ArgumentError, "TRADEOFF_DEVICE", "'tpu'", "auto, cpu, gpu"):
        load("commute")


@pytest.mark.skipif(not absent(), reason=EXCUSE)
def test_a_card_that_is_asked_for_and_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRADEOFF_DEVICE", "gpu")
    with pytest.raises(ArgumentError, match="graphics card"):
        load("commute")


def test_interviews_need_no_compiler() -> None:
    """Without numba a small model is asked about as with it."""
    code = """
import importlib.abc, sys
class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numba", "llvmlite"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
import tradeoff
trip = tradeoff.load("commute")
interview = tradeoff.Interview(trip)
trip.show(interview.ask().options[0])
interview.tell("first")
print(interview.ask() is not None)
"""
    assert processes.run([sys.executable, "-c", code]).stdout.strip() == "True"
