"""Law 1: ``best(w).value @ w`` is the maximum, whatever the weights; the result is never dominated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tests.models import Arrays, all_policies, lp_optimum, random_arrays, small_arrays
from tradeoff import Catalogue, Objective

seeds = st.integers(0, 2**32 - 1)


def weight_rows(seed: int, k: int) -> np.ndarray:
    """Rows of any sign, with zeros, the standard basis, its negative, and all zeros."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(6, k)) * (rng.random((6, k)) < 0.7)
    return np.concatenate([rows, np.abs(rows), np.eye(k), -np.eye(k), np.zeros((1, k)), 1e-9 * np.ones((1, k))])


@given(small_arrays(), seeds)
def test_best_reaches_the_maximum_over_all_policies(arrays: Arrays, seed: int) -> None:
    mdp = arrays.mdp()
    _, outcomes = all_policies(arrays)
    gains = (outcomes - mdp.origin) / mdp.scale
    rows = weight_rows(seed, len(mdp.objectives))
    found = mdp.best(rows)
    for row, option in zip(rows, found, strict=True):
        assert_allclose(option.value @ row, (gains @ row).max(), rtol=0, atol=1e-10 * (1 + np.abs(row).sum()))
        # The value is that of a real policy, and the policy behind the option has it.
        assert np.abs(gains - option.value).max(axis=1).min() < 1e-9
        (policy,) = mdp.solve([row])
        assert_allclose(mdp.evaluate(policy), option.value, atol=1e-12)


@given(small_arrays(), seeds)
def test_best_is_never_dominated_for_weights_that_are_not_negative(arrays: Arrays, seed: int) -> None:
    mdp = arrays.mdp()
    _, outcomes = all_policies(arrays)
    gains = (outcomes - mdp.origin) / mdp.scale
    for option in mdp.best(np.abs(weight_rows(seed, len(mdp.objectives)))):
        better = gains - option.value
        dominates = np.all(better >= -1e-10, axis=1) & np.any(better > 1e-8, axis=1)
        assert not dominates.any(), gains[dominates][0] - option.value


@given(small_arrays())
def test_gains_run_from_zero_to_one(arrays: Arrays) -> None:
    mdp = arrays.mdp()
    _, outcomes = all_policies(arrays)
    gains = (outcomes - mdp.origin) / mdp.scale
    matters = mdp.gain_scale.matters
    assert_allclose(gains[:, matters].min(axis=0, initial=0), 0, atol=1e-12)
    assert_allclose(gains.max(axis=0)[matters], 1, atol=1e-12)
    spread = outcomes.max(axis=0) - outcomes.min(axis=0)
    assert_array_equal(matters, spread > 1e-9)
    assert [o.name for o in mdp.irrelevant] == [o.name for o, m in zip(mdp.objectives, matters, strict=True) if not m]


@pytest.mark.parametrize("seed", range(12))
def test_best_agrees_with_a_linear_program_on_larger_models(seed: int) -> None:
    rng = np.random.default_rng(seed)
    arrays = random_arrays(
        rng, states=30, actions=4, objectives=4, horizon=8, integers=seed % 2 == 0, stationary=seed % 3 > 0
    )
    mdp = arrays.mdp()
    rows = rng.normal(size=(4, 4))
    for row, option in zip(rows, mdp.best(rows), strict=True):
        raw = mdp.gain_scale.raw_weights(row)
        optimum = lp_optimum(mdp, raw)
        found = raw @ mdp.outcome(option.value)
        assert_allclose(found, optimum, atol=1e-6 * (1 + abs(optimum)))
        assert found >= optimum - 1e-6 * (1 + abs(optimum))


@given(small_arrays(), seeds)
def test_results_do_not_depend_on_the_batch(arrays: Arrays, seed: int) -> None:
    mdp = arrays.mdp()
    rows = weight_rows(seed, len(mdp.objectives))
    together = mdp.best(rows)
    order = np.random.default_rng(seed).permutation(len(rows))
    shuffled = mdp.best(rows[order])
    for i, row in enumerate(rows):
        alone = mdp.best([row])[0]
        assert alone.value.tobytes() == together[i].value.tobytes()
    for position, i in enumerate(order):
        assert shuffled[position].value.tobytes() == together[i].value.tobytes()


@given(seeds, st.integers(1, 40), st.integers(1, 6), st.booleans())
def test_a_catalogue_returns_its_best_item(seed: int, items: int, k: int, integers: bool) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(-2, 3, size=(items, k)).astype(float) if integers else rng.normal(size=(items, k))
    goals = ["min" if rng.random() < 0.4 else "max" for _ in range(k)]
    catalogue = Catalogue(values, [Objective(f"o{j}", goal=goal) for j, goal in enumerate(goals)])
    gains = (values - catalogue.origin) / catalogue.scale
    rows = weight_rows(seed, k)
    for row, option in zip(rows, catalogue.best(rows), strict=True):
        assert_allclose(option.value @ row, (gains @ row).max(), atol=1e-11)
        assert_allclose(option.value, gains[option.plan.index], atol=1e-12)
        if row.min() >= 0:
            better = gains - option.value
            assert not np.any(np.all(better >= -1e-12, axis=1) & np.any(better > 1e-10, axis=1))
        assert catalogue.best([row])[0].value.tobytes() == option.value.tobytes()
