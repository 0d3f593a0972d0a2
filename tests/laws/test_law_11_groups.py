"""Law 11: what is chosen for several people is what brute force over everything that can be chosen finds."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from tests.models import all_policies, small_arrays
from tests.strategies.people import random_catalogue
from tradeoff.decisions.group import Group, group
from tradeoff.errors import ArgumentError
from tradeoff.interview import Interview
from tradeoff.problems.catalogue import Catalogue

SAME = 1e-7


def people(seed: int, k: int, n: int, items: int = 9) -> Group:
    random = np.random.default_rng(seed)
    problem = random_catalogue(random, k, items)
    return Group(problem, tuple(f"p{i}" for i in range(n)), random.dirichlet(np.full(k, 0.6), n))


def shares_of_all(found: Group) -> np.ndarray:
    """Return what each item is worth to each person, as a share of the best of all items for them."""
    worth = found.problem.gains @ found.weights.T
    return worth / worth.max(axis=0)


def fairest_lot(shares: np.ndarray) -> float:
    """Return the largest least share of any mixture of the rows, by one linear program over all of them."""
    n, m = shares.shape
    done = linprog(
        np.r_[np.zeros(n), -1.0], A_ub=np.hstack([-shares.T, np.ones((m, 1))]), b_ub=np.zeros(m),
        A_eq=np.r_[np.ones(n), 0.0][None], b_eq=[1.0], bounds=[(0, None)] * n + [(None, None)],
    )  # fmt: skip
    return float(done.x[-1])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(1, 5))
def test_choices_from_a_catalogue(seed: int, k: int, n: int) -> None:
    found = people(seed, k, n)
    shares = shares_of_all(found)
    assert found.on_average().average == pytest.approx(shares.mean(axis=1).max(), abs=SAME)
    assert found.fairest().least == pytest.approx(shares.min(axis=1).max(), abs=SAME)
    assert found.by_lot().least == pytest.approx(fairest_lot(shares), abs=SAME)
    for size in (1, 2, 3):
        best = max(
            shares[list(menu)].max(axis=0).min() for menu in combinations(range(len(shares)), min(size, len(shares)))
        )
        menu = found.menu(size)
        assert len(menu.plans) <= size
        assert menu.least == pytest.approx(best, abs=SAME)
        fewest = found.smallest_menu(1 - best + SAME)
        assert len(fewest.plans) <= size and fewest.least >= best - 2 * SAME
    chosen = found.menu(2)
    for person, plan in enumerate(chosen.served):
        index = chosen.plans[plan].plan.index
        assert chosen.shares[person] == pytest.approx(shares[index, person], abs=SAME)


@settings(max_examples=10, deadline=None)
@given(small_arrays(), st.integers(0, 10**6), st.integers(1, 3))
def test_the_fairest_lot_of_policies_is_that_of_all_policies(arrays, seed: int, n: int) -> None:
    problem = arrays.mdp()
    k = len(problem.objectives)
    weights = np.random.default_rng(seed).dirichlet(np.ones(k), n)
    _, outcomes = all_policies(arrays)
    gains = problem.gain_scale.gains(outcomes)
    worth = gains @ weights.T
    if worth.max(axis=0).min() <= 1e-6:  # nothing is worth anything to somebody
        return
    found = Group(problem, tuple(map(str, range(n))), weights)
    shares = worth / worth.max(axis=0)
    assert found.fairest().least == pytest.approx(fairest_lot(shares), abs=1e-6)
    assert found.on_average().average == pytest.approx(shares.mean(axis=1).max(), abs=1e-6)
    lottery = problem.show(found.fairest().plans[0])
    assert lottery.average == pytest.approx(problem.outcome(found.fairest().plans[0].value), abs=1e-6)
    menu = found.menu(n)
    assert menu.least == pytest.approx(1, abs=1e-6)  # everybody's own best plan is on it


def test_a_group_is_made_of_interviews_that_say_something() -> None:
    problem = Catalogue([[9, 1], [6, 6], [1, 9]], ["speed", "range"], ["fast", "middle", "far"])
    one, other = Interview(problem), Interview(problem)
    assert one.ask() is not None
    one.tell("first")
    with pytest.raises(ArgumentError, match="Bo has answered nothing"):
        group([one, other], ["Ann", "Bo"])
    with pytest.raises(ArgumentError, match="a name of its own"):
        group([one, one], ["Ann", "Ann"])
    found = group([one], ["Ann"])
    assert found.on_average().shares.tolist() == pytest.approx([1.0])
    with pytest.raises(ArgumentError, match="at least one person"):
        group([])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 3), st.integers(2, 4), st.integers(1, 2))
def test_no_menu_is_better_for_somebody_and_worse_for_nobody(seed: int, k: int, n: int, size: int) -> None:
    found = people(seed, k, n)
    shares = shares_of_all(found)
    menus = (shares[list(menu)].max(axis=0) for menu in combinations(range(len(shares)), min(size, len(shares))))
    leximin = max(tuple(np.sort(np.round(menu, 9))) for menu in menus)
    assert tuple(np.sort(found.menu(size).shares)) == pytest.approx(leximin, abs=1e-8)
