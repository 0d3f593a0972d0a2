from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradeoff.errors import ArgumentError
from tradeoff.model import Objective
from tradeoff.presentation.numbers import amount, amount_pair, chance, gap, share_counts, share_percentages, share_total

TIME = Objective("time", "min", "min")
weights = st.lists(st.floats(1e-12, 1.0) | st.sampled_from([1.0, 0.01, 1e-3, 1e-4, 1e-6]), min_size=1, max_size=13)


# --- amounts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "text"),
    [(41.5273, "41.5 min"), (0.0, "0 min"), (-0.0, "0 min"), (999.7, "1,000 min"), (12345.6, "12,346 min")],
)
def test_amounts_have_three_digits_and_a_unit(number: float, text: str) -> None:
    assert amount(TIME, number) == text


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9))
def test_amounts_side_by_side_look_equal_only_where_four_digits_are(one: float, other: float) -> None:
    first, second = amount_pair(TIME, one, other)
    assert (first == second) <= (TIME.text(one) == TIME.text(other) or amount(TIME, one) == amount(TIME, other))
    if TIME.text(one) != TIME.text(other):
        assert first != second


@given(st.integers(-999, 999), st.integers(-999, 999))
def test_a_gap_is_the_difference_of_what_is_shown(one: int, other: int) -> None:
    assert gap(TIME, one / 10, other / 10) == TIME.text(round(abs(one - other) / 10, 1))


# --- shares ----------------------------------------------------------------------------------------------------------


@given(weights, st.lists(weights, max_size=2))
def test_counts_add_up_and_are_near_the_shares(mine: list[float], others: list[list[float]]) -> None:
    total = share_total(mine, *others)
    counts = share_counts(mine, total)
    assert sum(counts) == total and min(counts) >= 0
    assert total in (100, 1000, 10_000)
    exact = np.array(mine) / sum(mine)
    assert np.all(np.abs(np.array(counts) - exact * total) < 1 + 1e-6)
    smallest = min(min(w) / sum(w) for w in [mine, *others])
    assert total == 10_000 or smallest * total >= 1 - 1e-6  # coarse only where every share is at least one


@given(weights)
def test_only_certain_shares_are_100_percent_and_none_is_0(shares: list[float]) -> None:
    for words, share in zip(
        share_percentages(shares, share_total(shares)), np.array(shares) / sum(shares), strict=True
    ):
        assert (words == "100%") == (share == 1)
        assert not words.startswith("0%")


@pytest.mark.parametrize(
    ("shares", "told"),
    [
        ([0.9, 0.1], ["90%", "10%"]),
        ([1.0], ["100%"]),
        ([0.99, 0.01], ["99%", "1%"]),
        ([0.995, 0.005], ["99.5%", "0.5%"]),
        ([0.9995, 0.0005], ["99.95%", "0.05%"]),
        (
            [1 - 1e-7, 1e-7],
            ["more than 99.99%", "less than 0.01%"],
        ),
    ],
)
def test_shares_are_percentages_that_add_up(shares: list[float], told: list[str]) -> None:
    assert share_percentages(shares, share_total(shares)) == told


@pytest.mark.parametrize("shares", [[], [-0.1, 1.1], [np.nan], [0.0], [[1.0]]])
def test_what_is_not_a_share_is_refused(shares: list[float]) -> None:
    with pytest.raises(ArgumentError):
        share_percentages(shares, 100)


@given(st.floats(0, 1))
def test_chances_are_near_and_never_certain_unless_they_are(probability: float) -> None:
    told = chance(probability)
    number = float(re.search(r"([\d.]+)%", told).group(1))  # type: ignore[union-attr]
    assert number == pytest.approx(100 * probability, rel=0.06, abs=0.011)
    if 1e-6 < probability < 1 - 1e-6:
        assert told not in ("0%", "100%")
