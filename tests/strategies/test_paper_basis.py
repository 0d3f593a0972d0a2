"""The basis policies of the paper: independent, spanning, and with small coefficients."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from tests.strategies.people import KINDS, random_catalogue
from tests.strategies.test_paper import seeds
from tradeoff import (
    Catalogue,
    Reference,
    load,
)
from tradeoff.strategies.solutions import SPANNER_FACTOR, grow_basis, solutions_of


@given(seeds, st.integers(1, 7), st.sampled_from(KINDS))
def test_a_spanner_spans_with_small_coefficients(seed: int, k: int, kind: str) -> None:
    problem = random_catalogue(np.random.default_rng(seed), k, kind=kind)
    spanner = solutions_of(problem).spanner()
    coefficients = problem.gains @ np.linalg.pinv(spanner.values)
    assert_allclose(coefficients @ spanner.values, problem.gains, atol=1e-6)
    assert np.abs(coefficients).max() <= SPANNER_FACTOR * (1 + 1e-6)


@given(seeds, st.integers(1, 7), st.sampled_from(KINDS))
def test_a_basis_is_independent_and_spans_everything(seed: int, k: int, kind: str) -> None:
    problem = random_catalogue(np.random.default_rng(seed), k, kind=kind)
    bases = solutions_of(problem)
    for j in bases.relevant:
        values = bases.paper_basis(j).values
        rank = np.linalg.matrix_rank(values, tol=1e-10)
        assert rank == len(values) <= k
        projection = problem.gains @ np.linalg.pinv(values) @ values
        assert_allclose(projection, problem.gains, atol=1e-7)


def test_the_appendix_example_gives_a_basis_of_full_rank() -> None:
    problem = load("dependent")
    bases = solutions_of(problem)
    assert np.linalg.matrix_rank([a.value for a in bases.optima]) == 2
    for j in bases.relevant:
        assert np.linalg.matrix_rank(bases.paper_basis(j).values) == 3
    assert np.linalg.matrix_rank(bases.spanner().values) == 3


def test_rank_three_gives_three_basis_policies() -> None:
    """The trap: with the paper's "> 0" a basis grew to 5 on values of rank 3."""
    rng = np.random.default_rng(3)
    values = rng.random((200, 3)) @ rng.random((3, 6))
    problem = Catalogue(values, reference=Reference("nothing", {f"objective {j + 1}": 0 for j in range(6)}))
    assert len(grow_basis(problem, problem.best([np.ones(6)])[0]).options) == 3
    assert len(solutions_of(problem).spanner().options) == 3
