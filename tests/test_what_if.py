"""What would change if one objective mattered more or less: laws against brute force over random catalogues."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tradeoff
from tradeoff.decisions.what_if import shares_of, what_if
from tradeoff.model import Criterion, Objective, Recommendation
from tradeoff.problem import with_share
from tradeoff.problems.catalogue import Catalogue


@st.composite
def situations(draw):
    """Return a random catalogue, with ties and costs, and a recommendation for random weights, zeros among them."""
    seed = draw(st.integers(0, 2**32 - 1))
    k, count = draw(st.integers(1, 5)), draw(st.integers(1, 12))
    random = np.random.default_rng(seed)
    values = random.integers(0, 6, (count, k)) if draw(st.booleans()) else random.normal(size=(count, k))
    goals = ["max" if draw(st.booleans()) else "min" for _ in range(k)]
    problem = Catalogue(values, [Objective(f"o{j}", "", goal) for j, goal in enumerate(goals)])
    weights = random.dirichlet(np.ones(k)) * (random.random(k) < draw(st.sampled_from([1.0, 0.5])))
    best = problem.best([weights])[0]
    return problem, Recommendation(best, weights, 3, "done")


@given(situations())
@settings(max_examples=150, deadline=None)
def test_every_stretch_is_best_for_all_the_shares_it_stands_for(situation):
    problem, recommendation = situation
    weights = shares_of(recommendation.weights)
    changes = what_if(problem, recommendation)
    assert [change.objective for change in changes] == list(problem.objectives)
    for j, change in enumerate(changes):
        assert change.share == pytest.approx(weights[j])
        assert change.unchanged.low <= change.share <= change.unchanged.high
        if recommendation.weights.sum() > 0:  # it is best for these weights, and stays the recommendation
            assert any(s.option is recommendation.option for s in change.stretches if s.low <= change.share <= s.high)
        assert change.stretches[0].low == 0.0 and change.stretches[-1].high == pytest.approx(1.0)
        for stretch in change.stretches:
            shares = np.linspace(stretch.low, stretch.high, 5)
            rows = with_share(weights, np.eye(len(weights))[j], shares)
            np.testing.assert_allclose(rows @ stretch.option.value, (rows @ problem.gains.T).max(axis=1), atol=1e-8)
        for before, after in pairwise(change.stretches):
            assert before.low <= before.high == pytest.approx(after.low) and after.low <= after.high
            assert after.option.value[j] > before.option.value[j] - 1e-9  # more of what matters more


@given(situations())
@settings(max_examples=50, deadline=None)
def test_a_strategy_that_expects_regrets_recommends_what_is_best_at_the_present_shares(situation):
    """These are the weights that the recommendation was made for, not the estimated ones."""
    problem, _ = situation
    rows = np.random.default_rng(1).dirichlet(np.ones(len(problem.objectives)), 40)
    criterion = Criterion(rows, (rows @ problem.gains.T).max(axis=1))
    (best,) = problem.best(criterion.mean_weights[None])
    found = what_if(problem, Recommendation(best, rows[0], 3, "done", criterion=criterion))
    for change, share in zip(found, shares_of(criterion.mean_weights), strict=True):
        assert change.share == pytest.approx(share)
        assert any(s.option is best for s in change.stretches if s.low <= change.share <= s.high)


def test_weights_keep_their_proportions_and_sum_to_one():
    rows = with_share(np.array([0.2, 0.6, 0.2]), np.eye(3)[0], np.array([0.2, 0.5, 1.0]))
    np.testing.assert_allclose(rows, [[0.2, 0.6, 0.2], [0.5, 0.375, 0.125], [1, 0, 0]])


def test_an_option_is_given_up_when_something_matters_more():
    problem = tradeoff.load("commute")
    weights = np.array([0.05, 0.8, 0.05, 0.05, 0.05])
    (best,) = problem.best([weights])
    time = what_if(problem, Recommendation(best, weights, 1, ""))[0]
    assert time.objective.name == "time" and len(time.stretches) > 2 and time.unchanged.option is best
    minutes = [problem.outcome(stretch.option.value)[0] for stretch in time.stretches]
    assert minutes == sorted(minutes, reverse=True) and len(set(minutes)) == len(minutes)
