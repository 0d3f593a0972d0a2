"""Law 1 at the limits of number types: any number of actions, and weights as large or small as a float can be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tests.models import random_arrays
from tradeoff import MDP, Catalogue, LinearRespondent, PointSet
from tradeoff.mdp import compiled
from tradeoff.model import OptimalPolicy
from tradeoff.problem import Problem
from tradeoff.simulation.respondents import relative_regret


def many_actions(count: int, best_at: tuple[int, ...], horizon: int = 1) -> MDP:
    """Return a model with one state of many actions, of which those at ``best_at`` are the best, each in its way."""
    rewards = np.random.default_rng(0).random((count, 2))
    for place, reward in zip(best_at, ([2.0, 2.0], [3.0, 0.5]), strict=False):
        rewards[place] = reward
    names = [f"a{i}" for i in range(count)]
    target = ["s" if horizon > 1 else "end"] * count
    return MDP.from_columns(
        ["s"] * count, names, np.ones(count), target, rewards, horizon=horizon, start="s",
        ends=[] if horizon > 1 else ["end"],
    )  # fmt: skip


@pytest.mark.parametrize("count", [65_535, 65_536, 65_537, 70_000])
def test_a_state_may_have_any_number_of_actions(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mdp = many_actions(count, (count - 1, count - 2))
    single, several, tied = [[1.0, 1.0]], [[1.0, 1.0], [1.0, 0.1]] * 9, [[0.0, 1.0], [1.0, 0.0]]
    assert mdp.outcome(mdp.best(single)[0].value).tolist() == [2, 2]
    assert [mdp.outcome(a.value).tolist() for a in mdp.best(several)] == [[2, 2], [3, 0.5]] * 9
    assert [mdp.outcome(a.value).tolist() for a in mdp.best(tied)] == [[2, 2], [3, 0.5]]
    assert [policy.actions[0, 0] for policy in mdp.solve(several)] == [count - 1, count - 2] * 9
    shown = mdp.show(mdp.best(single)[0])
    assert shown.trajectories[0].actions == (f"a{count - 1}",) and shown.average.tolist() == [2, 2]


def test_many_actions_over_many_steps_and_in_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    count, horizon = 70_000, 40
    mdp = many_actions(count, (count - 1, count - 2), horizon)
    rows = np.array([[1.0, 1.0], [1.0, 0.1], [0.0, 1.0]] * 6)
    whole = mdp.best(rows)
    tables = [policy.actions for policy in mdp.solve(rows[:2])]
    assert all(np.all(table == count - 1 - i) for i, table in enumerate(tables))
    assert [mdp.outcome(a.value).round(9).tolist() for a in whole[:2]] == [[80, 80], [120, 20]]
    monkeypatch.setattr(compiled, "memory_limit", lambda: 2 * (128 * count * mdp.threads + 1300))
    found = mdp.solver._chunks(mdp.dynamics, len(rows), keep_policies=True)
    plans = {plan for _, _, plan in found}
    assert all(plan.segment < horizon for plan in plans)
    for one, other in zip(whole, mdp.best(rows), strict=True):
        assert one.value.tobytes() == other.value.tobytes()


def test_the_memory_of_wide_choices_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A choice among more than 65,536 takes four bytes, so policies need four times what those of few actions do."""
    assert [compiled.choice_type(many_actions(n, ()).dynamics)().itemsize for n in (256, 257, 65_536, 65_537)] == [
        1,
        2,
        2,
        4,
    ]


def problems(seed: int) -> list[Problem]:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(12, 3)) * 10.0 ** rng.integers(-8, 9, 3)
    mdp = random_arrays(rng, states=4, actions=3, objectives=3, horizon=3, goals=False).mdp()
    return [Catalogue(points), mdp, PointSet(lambda w: points[(points @ w).argmax()], ["a", "b", "c"])]


@given(st.integers(0, 2**32 - 1), st.sampled_from([2.0**1023, 2.0**1020, 2.0**700, 2.0**-700, 2.0**-1060]))
def test_weights_of_any_size_have_the_same_optimum(seed: int, factor: float) -> None:
    """Whole numbers times a power of two are exact at any size, denormal ones included."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(-1, 2, size=(6, 3)).astype(float)
    for problem in problems(seed):
        plain, scaled = problem.best(rows), problem.best(rows * factor)
        for one, other in zip(plain, scaled, strict=True):
            assert_array_equal(one.value, other.value)


@pytest.mark.parametrize("weights", [[5e307] * 3, [1e308] * 3, [1e308, 1e308, -1e308], [1.7e308, 1e-300, 5e-324]])
def test_weights_near_the_largest_number_do_not_overflow(weights: list[float]) -> None:
    for seed in range(5):
        for problem in problems(seed):
            (found,) = problem.best([weights])
            (modest,) = problem.best([np.array(weights) / 1e308])
            assert_array_equal(found.value, modest.value)
            if isinstance(problem, MDP):
                assert problem.show(found).trajectories
                assert_array_equal(problem.evaluate(OptimalPolicy(weights)), modest.value)


def test_people_with_huge_weights_have_a_finite_regret() -> None:
    for problem in problems(1):
        person = LinearRespondent.scaled(problem, [1e308, 1e308, 1.5e308])
        (best,) = problem.best([person.weights])
        assert person.worth(best.value) == pytest.approx(1.0)
        assert relative_regret(problem, LinearRespondent([1e308, 1e308, 1.5e308]), best) == 0.0
