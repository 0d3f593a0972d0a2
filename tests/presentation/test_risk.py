"""What is said of risk is true: quantiles, tails, dots, and the best and the worst, against counting everything."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tradeoff
from tests.laws.test_law_2_show import all_trajectories, models
from tradeoff.model import Lottery, Objective, Outcomes, Trajectory
from tradeoff.presentation.data import risk_data
from tradeoff.presentation.risk import BAD, DOTS, bad_end, basis, how_often, risks
from tradeoff.problem import dilute

TIME, JOY = Objective("time", "min", "min"), Objective("joy", "", "max")
SAID = re.compile(
    r"(about )?(more than )?(?:(\d+) in (\d+) times|(every time)) (-?[\d,.e+-]+)( min)?"
    r"(?: or (more|less))?(?:, otherwise (more|less))?"
)
amounts = st.lists(st.integers(-200_000, 200_000), min_size=1, max_size=30)


@given(amounts, st.integers(0, 2**32 - 1), st.sampled_from([TIME, JOY]), st.sampled_from([1.0, 0.001, 37.0]))
def test_the_bad_end_is_as_likely_as_it_is_said(drawn: list[int], seed: int, objective: Objective, unit: float) -> None:
    values = np.array(drawn) * unit
    chances = np.random.default_rng(seed).dirichlet(np.ones(len(values)))
    said = SAID.fullmatch(bad_end(objective, values, chances))
    assert said is not None
    about, above, count, total, always, amount, _, tail, otherwise = said.groups()
    shown = float(amount.replace(",", ""))
    rounding = 1e-9 * np.abs(values).max()
    worse = values >= shown - rounding if objective.goal == "min" else values <= shown + rounding
    if tail:
        assert tail == ("more" if objective.goal == "min" else "less")
        chance = chances[worse].sum()
        assert chance >= BAD - 1e-9
        bad, end = -objective.sign * values, -objective.sign * shown
        strictly = bad > end + 0.011 * abs(end) + rounding
        assert chances[strictly].sum() <= BAD + 1e-9  # and not much worse things are as likely
    else:  # the best of all, and anything worse is rare
        best = values.min() if objective.goal == "min" else values.max()
        assert shown == pytest.approx(best, rel=0.006, abs=rounding)
        chance = chances[np.abs(values - best) <= rounding].sum()
        assert chance >= 1 - BAD - 1e-9 and bool(otherwise) == (chance < 1 - 1e-9)
    stated = 1.0 if always else int(count) / int(total)
    if above:
        assert chance > stated
    else:
        assert abs(chance - stated) <= (0.0051 if about else 1e-8)


@given(st.floats(0.05, 1))
def test_frequencies_are_near_and_only_certainty_is_every_time(chance: float) -> None:
    said = how_often(chance)
    assert (said == "every time") == (chance > 1 - 1e-9)
    assert how_often(chance, estimated=True).startswith(("about", "in every run", "more than"))


@given(models(), st.booleans())
def test_dots_quantiles_and_ends_are_those_of_all_trajectories(drawn, mixed: bool) -> None:
    mdp, rng = drawn
    (best,) = mdp.best([rng.normal(size=len(mdp.objectives))])
    best = dilute(best, 0.7) if mixed else best
    lottery = mdp.show(best)
    stories = all_trajectories(mdp, mdp.plan(best.plan)).values()
    points, chances = np.array([s.outcome for s in stories]), np.array([s.probability for s in stories])
    found = risks(lottery)
    varying = np.ptp(points, axis=0) > 1e-9 * np.abs(points).max(axis=0)
    assert lottery.truth is not None and lottery.truth.rollouts is None
    if not varying.any():
        assert found == () and basis(lottery) == "" and risk_data(lottery) is None
        return
    if not found:  # what varies is too rare to have a spread
        return
    for j, risk in enumerate(found):
        near = 1e-9 * np.abs(points[:, j]).max() + 1e-12
        for i, dot in enumerate(risk.dots):
            share = (i + 0.5) / DOTS
            assert chances[points[:, j] <= dot + near].sum() >= share - 1e-9
            assert chances[points[:, j] < dot - near].sum() <= share + 1e-9
        assert lottery.truth.range is not None
        np.testing.assert_allclose(
            lottery.truth.range[:, j], [points[:, j].min(), points[:, j].max()], rtol=1e-9, atol=1e-9
        )
        assert bool(risk.always) <= (not varying[j])
        assert risk.strip(17).count("|") in (0, 2)


def test_nothing_of_risk_is_said_of_items_and_certain_plans() -> None:
    coffee = tradeoff.load("coffee")
    item = coffee.best([[1, 0, 0, 0, 0]])[0]
    assert risks(coffee.show(item)) == ()
    half = risks(coffee.show(dilute(item, 0.5)))
    assert half and all("1 in 2 times" in one.bad or one.always for one in half)


def test_what_was_estimated_is_called_so() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(400, 1))
    told = (Trajectory(("a",), (), 0.5, np.zeros(1)),)
    lottery = Lottery((TIME,), [1.0], told, Outcomes(points, np.full(400, 1 / 400), 400))
    (risk,) = risks(lottery)
    assert "400 simulated runs" in basis(lottery) and "4.9 percentage points" in basis(lottery)
    assert risk.worst.startswith("at worst seen") and risk.bad.startswith("about")
