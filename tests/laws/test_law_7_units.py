"""Law 7: permuting objectives, changing a unit, or asking for less of the negative changes nothing but ties."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from tests.models import Arrays, all_policies, small_arrays
from tradeoff import Catalogue, Objective

seeds = st.integers(0, 2**32 - 1)


def positive_rows(seed: int, k: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(k), size=8)


def same_up_to_ties(arrays: Arrays, changed: Arrays, rows: np.ndarray, changed_rows: np.ndarray, back) -> None:
    """The changed problem's optima, turned back, are optima of the original with the same outcome unless tied."""
    mdp, other = arrays.mdp(), changed.mdp()
    _, outcomes = all_policies(arrays)
    gains = (outcomes - mdp.origin) / mdp.scale
    for row, a, b in zip(rows, mdp.best(rows), other.best(changed_rows), strict=True):
        turned = back(other.outcome(b.value))
        value = (turned - mdp.origin) / mdp.scale
        assert_allclose(value @ row, a.value @ row, atol=1e-10)
        scores = gains @ row
        tied = gains[scores > scores.max() - 1e-9]
        if np.ptp(tied, axis=0).max() < 1e-9:  # the optimum is unique
            assert_allclose(turned, mdp.outcome(a.value), rtol=1e-9, atol=1e-9 * np.abs(mdp.scale).max())


@given(small_arrays(), seeds)
def test_permuting_objectives(arrays: Arrays, seed: int) -> None:
    k = len(arrays.objectives)
    order = np.random.default_rng(seed).permutation(k)
    changed = replace(arrays, rewards=arrays.rewards[..., order], objectives=tuple(arrays.objectives[j] for j in order))
    rows = positive_rows(seed, k)
    same_up_to_ties(arrays, changed, rows, rows[:, order], lambda outcome: outcome[np.argsort(order)])


@given(small_arrays(), seeds)
def test_changing_units(arrays: Arrays, seed: int) -> None:
    rng = np.random.default_rng(seed)
    factor = 10.0 ** rng.integers(-6, 7, size=len(arrays.objectives))
    changed = replace(arrays, rewards=arrays.rewards * factor)
    rows = positive_rows(seed, len(factor))
    same_up_to_ties(arrays, changed, rows, rows, lambda outcome: outcome / factor)


@given(small_arrays(), seeds)
def test_turning_max_into_min_of_the_negative(arrays: Arrays, seed: int) -> None:
    flip = np.random.default_rng(seed).random(len(arrays.objectives)) < 0.5
    sign = np.where(flip, -1.0, 1.0)
    turned = {"max": "min", "min": "max"}
    objectives = tuple(
        Objective(o.name, o.unit, turned[o.goal]) if f else o for o, f in zip(arrays.objectives, flip, strict=True)
    )
    changed = replace(arrays, rewards=arrays.rewards * sign, objectives=objectives)
    rows = positive_rows(seed, len(sign))
    same_up_to_ties(arrays, changed, rows, rows, lambda outcome: outcome * sign)


@given(seeds, st.integers(2, 30), st.integers(1, 5))
def test_catalogues(seed: int, items: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(items, k))
    factor = rng.choice([-1.0, 1.0], size=k) * 10.0 ** rng.integers(-6, 7, size=k)
    goals = np.where(factor < 0, "min", "max")
    plain = Catalogue(values)
    turned = Catalogue(values * factor, [Objective(f"o{j}", goal=str(goal)) for j, goal in enumerate(goals)])
    rows = positive_rows(seed, k)
    for a, b in zip(plain.best(rows), turned.best(rows), strict=True):
        assert a.plan.index == b.plan.index
        assert_allclose(a.value, b.value, atol=1e-12)
