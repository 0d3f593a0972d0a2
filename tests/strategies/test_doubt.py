"""People who look at their worst objective: what they want, how likely the answers are with them, and what is said then."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tradeoff
from tests.strategies.people import random_catalogue
from tradeoff.menus import Choice, Menu, Statement, comparisons
from tradeoff.model import Answer, Question
from tradeoff.people import Taste
from tradeoff.strategies import doubt
from tradeoff.strategies.doubt import Doubt, Rival, Sides, at_worst, most_of, sides_of
from tradeoff.strategies.sampling import PEOPLE, Answering, Dirichlets, _particles, log_likelihood

seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.integers(2, 5))
def test_they_want_what_such_people_want(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    problem, weights = random_catalogue(rng, k, items=20), rng.dirichlet(np.ones(k))
    found = at_worst(weights[None, :], problem.gains / most_of(problem.gains))[0]
    expected = Taste(problem, weights, "Chebyshev").all(problem.gains)
    assert found / found.max() == pytest.approx(expected, abs=1e-9)


@given(seeds, st.integers(1, 9), st.integers(1, 9), st.integers(0, 4), st.floats(0.01, 1.0))
def test_the_quantile_of_both_tastes_is_that_of_all_of_them_together(
    seed: int, linear: int, other: int, fourths: int, sure: float
) -> None:
    """Brute force: everybody is listed as often as their share says."""
    rng = np.random.default_rng(seed)
    mine, theirs = rng.random(linear).round(1), rng.random(other).round(1)
    both = Doubt(fourths / 4, theirs, np.zeros(other, dtype=bool))
    everybody = np.sort(np.concatenate([np.repeat(mine, (4 - fourths) * other), np.repeat(theirs, fourths * linear)]))
    at = max(int(np.ceil(sure * len(everybody) - 1e-6)), 1) - 1
    assert both.quantile(mine, sure) == everybody[at]
    assert both.mean(mine, theirs) == pytest.approx(everybody.mean())


@settings(max_examples=25)
@given(seeds, st.integers(1, 6), st.integers(1, 12), st.booleans())
def test_rough_densities_move_them_to_the_same_bits(seed: int, d: int, count: int, exact: bool) -> None:
    """The plain reference works every density out to the last digit."""
    rng = np.random.default_rng(seed)
    first, second = rng.random((2, count, d))
    plain, kinds = rng.random(count) < 0.2, rng.choice([-1, 0, 1, 2], count)
    shares, most = rng.choice([1.0, 0.6], count), rng.uniform(0.5, 1.0, d)
    answering = Answering(lapse=(1e-6, 1e-6)) if exact else PEOPLE
    found = []
    for close in (doubt.CLOSE, np.inf):
        rival = Rival.before_answers(d, answering, seed=seed)
        with patch.object(doubt, "CLOSE", close):
            for some in sorted({(count + 1) // 2, count}):
                sides = Sides(first[:some], second[:some], plain[:some])
                rival = rival.given(sides, kinds[:some], shares[:some], 1, 0.0, most)
        found.append([rival.logs.tobytes(), rival.traits.tobytes(), rival.log_odds])
    assert found[0] == found[1]


def test_how_likely_the_answers_are_with_them_agrees_with_a_large_sample() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.random((2, 5, 3))
    sides, kinds = Sides(first, second, np.zeros(5, dtype=bool)), np.array([1, -1, 1, 2, 0])
    shares, most = np.array([1.0, 1.0, 0.6, 0.6, 1.0]), np.ones(3)
    rival = Rival.before_answers(3, PEOPLE, seed=1)
    before = rival.log_odds
    for count in range(1, 6):
        some = Sides(first[:count], second[:count], sides.plain[:count])
        rival = rival.given(some, kinds[:count], shares[:count], 1, 0.0, most)
    low, high = PEOPLE.ranges
    drawn, traits = Dirichlets.usual(3).draw(40_000, rng), rng.uniform(low, high, (40_000, len(low)))
    margins = at_worst(drawn, first) - at_worst(drawn, second)
    everybody = _particles(margins, traits, np.zeros(len(drawn), dtype=np.int64))
    each = log_likelihood(everybody, np.eye(5), kinds) @ shares
    assert rival.log_odds - before == pytest.approx(np.logaddexp.reduce(each) - np.log(len(each)), abs=0.3)
    chances = np.exp(each - each.max()) / np.exp(each - each.max()).sum()
    assert np.exp(rival.logs).mean(axis=0) == pytest.approx(chances @ drawn, abs=0.06)
    assert rival.traits.mean(axis=0) == pytest.approx(chances @ traits, abs=0.5)


def test_the_two_sides_of_every_comparison() -> None:
    problem = random_catalogue(np.random.default_rng(2), 3, items=6)
    items = [problem.alternative(i) for i in range(4)]
    menu, choice = Menu(tuple(items), "best-worst"), Choice.of_best_and_worst(2, 0, 4)
    known = Statement("one > two", np.array([[1.0, -1.0, 0.0]]), np.array([3]))
    answers = [(Question(items[0], items[1]), Answer.FIRST), (menu, choice), (known, Answer.FIRST)]
    differences = [comparisons(question, answer)[0] for question, answer in answers]
    found = sides_of(answers, differences, np.arange(3))
    assert np.array_equal(found.first - found.second, np.concatenate(differences))
    assert found.plain.tolist() == [False] * 6 + [True]
    assert np.array_equal(found.first[1], items[2].value)


def test_who_looks_at_the_worst_is_told_less_than_who_weighs() -> None:
    """What is doubted is what the answers leave open: it grows with those of such people and shrinks with those of others."""
    problem = random_catalogue(np.random.default_rng(5), 4, items=60, kind="sphere")
    doubted: dict[str, list[float]] = {"exact": [], "chebyshev": []}
    for kind, shares in doubted.items():
        for i in range(4):
            who = tradeoff.people.person_of(problem, kind, 7, i)
            interview = tradeoff.Interview(problem)
            while question := interview.ask():
                interview.tell(who(question))
            shares.append(interview.recommendation.likely_worst or 1.0)
    assert np.mean(doubted["chebyshev"]) > np.mean(doubted["exact"])
