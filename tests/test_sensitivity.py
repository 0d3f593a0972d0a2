"""What would change if one objective mattered more: laws against brute force over random catalogues."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tradeoff
from tradeoff.errors import ArgumentError
from tradeoff.model import Objective, Recommendation
from tradeoff.problems.catalogue import Catalogue
from tradeoff.sensitivity import ladder, shares_of, weights_with, what_if


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
    return problem, Recommendation(best, weights, 3, "done"), draw(st.integers(2, 12))


@given(situations())
@settings(max_examples=150, deadline=None)
def test_every_stop_is_best_for_all_the_shares_it_stands_for(situation):
    problem, recommendation, steps = situation
    weights = shares_of(recommendation.weights)
    changes = what_if(problem, recommendation, steps)
    assert [change.objective for change in changes] == list(problem.objectives)
    for j, change in enumerate(changes):
        first = change.stops[0]
        assert first.alternative is recommendation.alternative and first.low == weights[j]
        assert change.stops[-1].high == 1.0
        for number, stop in enumerate(change.stops):
            # Between the ends of a stop the alternative is best too: what is best for two weights is best between them.
            shares = np.linspace(stop.low, stop.high, 5)
            rows = weights_with(weights, j, shares)
            if number or recommendation.weights.sum() > 0:
                np.testing.assert_allclose(
                    rows @ stop.alternative.value, (rows @ problem.gains.T).max(axis=1), atol=1e-8
                )
        for before, after in zip(change.stops, change.stops[1:], strict=False):
            assert before.low <= before.high < after.low <= after.high
            assert after.alternative.value[j] > before.alternative.value[j] - 1e-9  # more of what matters more


@given(share=st.floats(0, 1), steps=st.integers(2, 20))
def test_shares_grow_from_the_estimated_one_to_all(share, steps):
    shares = ladder(share, steps)
    assert shares[0] == share and shares[-1] == 1.0
    assert (np.diff(shares) > 0).all()


def test_weights_keep_their_proportions_and_sum_to_one():
    rows = weights_with(np.array([0.2, 0.6, 0.2]), 0, np.array([0.2, 0.5, 1.0]))
    np.testing.assert_allclose(rows, [[0.2, 0.6, 0.2], [0.5, 0.375, 0.125], [1, 0, 0]])


def test_a_plan_is_recommended_first_and_given_up_when_something_matters_more():
    problem = tradeoff.load("commute")
    weights = np.array([0.05, 0.8, 0.05, 0.05, 0.05])
    (best,) = problem.best([weights])
    time = what_if(problem, Recommendation(best, weights, 1, ""))[0]
    assert time.objective.name == "time" and len(time.stops) > 2
    minutes = [problem.outcome(stop.alternative.value)[0] for stop in time.stops]
    assert minutes == sorted(minutes, reverse=True) and len(set(minutes)) == len(minutes)


def test_too_few_steps_are_refused():
    problem = Catalogue([[1.0, 2.0]])
    with pytest.raises(ArgumentError, match="steps"):
        what_if(problem, Recommendation(problem.best([[1, 1]])[0], [0.5, 0.5], 0, ""), 1)
