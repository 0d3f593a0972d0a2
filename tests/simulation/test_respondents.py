"""How simulated respondents are drawn and scaled; how they answer is tested with law 9."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tradeoff
from tradeoff import Catalogue, LinearRespondent
from tradeoff.simulation import KINDS, Respondent, Settings
from tradeoff.simulation.respondents import relative_regret, weighed
from tradeoff.simulation.run import respondent_at

COFFEE = tradeoff.load("coffee")


def test_the_best_is_worth_exactly_one() -> None:
    for problem in (COFFEE, tradeoff.load("dependent")):
        for index in range(20):
            respondent = respondent_at(problem, index, Settings(seed=7))
            assert isinstance(respondent, LinearRespondent)
            (best,) = problem.best([respondent.weights])
            assert respondent.worth(best.value) == pytest.approx(1, abs=1e-14)
            assert respondent.weights.min() >= 0


def test_relative_regret_is_the_share_of_the_best_that_is_lost() -> None:
    problem = Catalogue([[4.0, 0.0], [0.0, 4.0], [2.0, 0.0], [0.0, 0.0]])
    for weights in ([1.0, 0.0], [7.0, 0.0]):
        respondent = LinearRespondent.scaled(problem, weights, precision=0.25, error_rate=0.5, seed=1)
        assert (respondent.precision, respondent.error_rate) == (0.25, 0.5)
        assert respondent.weights.tolist() == [1.0, 0.0]
        (best,) = problem.best([[1.0, 0.0]])
        (other,) = problem.best([[0.0, 1.0]])
        assert relative_regret(problem, respondent, best) == 0.0
        assert relative_regret(problem, LinearRespondent(weights), best) == 0.0
        assert relative_regret(problem, respondent, other) == 1.0
    flat = Catalogue([[1.0, 0.0], [1.0, 4.0]])
    lost = LinearRespondent.scaled(flat, [2.0, 0.0])  # nothing that matters to them can be changed
    assert lost.weights.tolist() == [2.0, 0.0] and relative_regret(flat, lost, flat.best([[0.0, 1.0]])[0]) == 0.0


def test_weights_are_drawn_uniformly_and_independently() -> None:
    """Dirichlet(1) has mean 1/k and variance (k-1) / (k^2 (k+1))."""
    k = len(COFFEE.objectives)
    drawn = np.array([respondent_at(COFFEE, i, Settings(seed=1)).weights for i in range(2000)])
    shares = drawn / drawn.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares.mean(axis=0), 1 / k, atol=0.02)
    np.testing.assert_allclose(shares.var(axis=0), (k - 1) / (k * k * (k + 1)), rtol=0.15)
    assert len({row.tobytes() for row in shares}) == len(shares)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_respondents_of_every_kind_are_drawn_as_before(kind: str) -> None:
    """Respondent 5 of seed 0, drawn by what the documentation says: a sequence of the seed, spawned for each."""
    problem = Catalogue(np.random.default_rng(3).random((9, 3)).round(2))
    taste, slips = np.random.SeedSequence(0, spawn_key=(5,)).spawn(2)
    weights = np.random.default_rng(taste).dirichlet(np.ones(3))
    respondent = respondent_at(problem, 5, Settings(kind=kind))
    first = respondent.before.weights if isinstance(respondent, Respondent) else respondent.weights
    assert np.allclose(first / first.sum(), weights)
    if not kind.startswith("changing"):  # who have drawn from it already
        random = np.random.default_rng(int(slips.generate_state(1, np.uint64)[0]))
        assert respondent._random.bit_generator.state == random.bit_generator.state


@given(seed=st.integers(0, 100), n=st.integers(1, 40), k=st.integers(1, 9))
def test_no_worth_depends_on_the_other_respondents(seed: int, n: int, k: int) -> None:
    random = np.random.default_rng(seed)
    weights, value = random.random((n, k)), random.random(k)
    together = weighed(weights, value)
    assert together.tolist() == [LinearRespondent(row).worth(value) for row in weights]
    assert together.tolist() == weighed(weights, np.tile(value, (n, 1))).tolist()
    np.testing.assert_allclose(together, weights @ value, rtol=1e-12)
