from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradeoff.errors import ArgumentError
from tradeoff.model import Objective
from tradeoff.presentation.numbers import (
    amount,
    amount_pair,
    amounts_together,
    chance,
    gap,
    share_counts,
    share_percentages,
    share_total,
)

TIME = Objective("time", "min", "min")
weights = st.lists(st.floats(1e-12, 1.0) | st.sampled_from([1.0, 0.01, 1e-3, 1e-4, 1e-6]), min_size=1, max_size=13)


# --- amounts ---------------------------------------------------------------------------------------------------------

FACTORS = {"million": Decimal(10) ** 6, "billion": Decimal(10) ** 9, "trillion": Decimal(10) ** 12}
numbers = (
    st.floats(-1e9, 1e9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(-1, 1)
    | st.integers(-10_000, 10_000).map(lambda n: n / 100)
)
nudges = st.sampled_from([0.0, 1e-10, 1e-8, 1e-6, 1e-3, 0.04, 0.5, 3.0])


@st.composite
def pairs(draw: st.DrawFn) -> tuple[float, float]:
    """Return two numbers, which are often nearly the same."""
    one = draw(numbers)
    other = draw(numbers | nudges.map(lambda part: one * (1 - part)))
    return one, other


def read(text: str, unit: str = "min") -> Decimal:
    """Return the number that a person reads."""
    number, *words = text.removesuffix(unit).replace(",", "").removeprefix("almost ").split()
    return Decimal(number) * (FACTORS[words[0]] if words else 1)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (41.5273, "41.5 min"), (0.0, "0 min"), (-0.0, "0 min"), (999.7, "1000 min"), (2018, "2018 min"),
        (12345.6, "12,346 min"), (1234567.8, "1,234,568 min"), (391755581428310, "392 trillion min"),
        (-12.5e6, "-12.5 million min"), (9.46e-10, "9.46e-10 min"), (0.09682, "0.0968 min"), (2.5e21, "2.5e21 min"),
    ],
)  # fmt: skip
def test_an_amount_alone_has_three_digits_and_a_unit(number: float, text: str) -> None:
    assert amount(TIME, number) == text


@pytest.mark.parametrize(
    ("one", "other", "shown", "difference"),
    [
        (42.94, 64.25, ("43 min", "64 min"), "21 min"),
        (0.11301, 0.0435, ("0.11 min", "0.04 min"), "0.07 min"),
        (1.081, 1.0, ("1.1 min", "1 min"), "0.1 min"),
        (1.0412, 1.1583, ("1.04 min", "1.16 min"), "0.12 min"),
        (16.5, 36, ("16.5 min", "36 min"), "19.5 min"),
        (16.499999999999996, 36, ("16.5 min", "36 min"), "19.5 min"),
        (1000.004, 1000.013, ("1000 min", "1000.01 min"), "0.01 min"),
        (1299, 849, ("1299 min", "849 min"), "450 min"),
        (9500, 12000, ("9,500 min", "12,000 min"), "2,500 min"),
        (391755581428310, 12e12, ("392 trillion min", "12 trillion min"), "380 trillion min"),
        (12.5e6, 12.44e6, ("12.5 million min", "12.44 million min"), "60,000 min"),
        (123456789, 123456780, ("123,456,789 min", "123,456,780 min"), "9 min"),
        (9.461e-10, 7.5e-11, ("9.5e-10 min", "0.8e-10 min"), "8.7e-10 min"),
        (5, 5.00009, ("5 min", "5.0001 min"), "0.0001 min"),
        (0.4, 50, ("0.4 min", "50 min"), "49.6 min"),
        (0.0004, 50, ("0.0004 min", "50 min"), "49.9996 min"),
        (0.000412345, 50, ("almost 0 min", "50 min"), "50 min"),
        (42.9, 42.9 + 1e-12, ("42.9 min", "42.9 min"), "0 min"),
    ],
)
def test_amounts_side_by_side_have_the_digits_that_differ(
    one: float, other: float, shown: tuple[str, str], difference: str
) -> None:
    assert amount_pair(TIME, one, other) == shown and gap(TIME, one, other) == difference


@given(pairs())
def test_amounts_side_by_side_look_equal_only_where_they_are(pair: tuple[float, float]) -> None:
    one, other = pair
    first, second = amount_pair(TIME, one, other)
    far = abs(one / 2 - other / 2) > 0.6e-9 * max(abs(one), abs(other))
    assert first != second if far else one != other or first == second
    assert amount_pair(TIME, other, one) == (second, first)


@given(pairs())
def test_a_gap_is_the_difference_of_what_is_shown(pair: tuple[float, float]) -> None:
    first, second = map(read, amount_pair(TIME, *pair))
    assert read(gap(TIME, *pair)) == abs(first - second)
    assert gap(TIME, *pair) == gap(TIME, *pair[::-1])


@given(st.lists(numbers, min_size=1, max_size=4))
def test_what_is_shown_is_near_short_and_has_its_sign_and_unit(several: list[float]) -> None:
    largest = max(map(abs, several))
    for number, text in zip(several, amounts_together(TIME, several), strict=True):
        assert text.endswith(" min") and len(text) <= len("almost 123,456,789,012,345,678 min")
        shown = read(text)
        assert abs(shown - Decimal(number)) <= Decimal(largest) * Decimal("0.05")
        assert not shown or (shown > 0) == (number > 0)
        assert ("almost" in text) == (shown == 0 and abs(number) > 1e-12 * largest)
        if abs(number) * 999 >= largest > 0:
            assert shown  # what is not small beside the others is not called 0


@st.composite
def several_long(draw: st.DrawFn) -> list[float]:
    """Return numbers of many digits, as averages have them, that are often nearly the same."""
    one = draw(st.floats(0.001, 9.9).map(lambda number: number + 1e-6 / 7))
    factors = st.sampled_from([0.01, 0.04, 0.07, 0.3, 1.0, 5.0]) | st.floats(0.001, 1.0)
    return [one, *(one * (1 + factor) for factor in draw(st.lists(factors, min_size=1, max_size=3)))]


def tells(numbers: list[float], last: int) -> bool:
    """Return whether what a person compares is near the truth if the last digit is of this power of ten."""
    exact = [Decimal(f"{number:.12g}") for number in numbers]
    shown = [number.quantize(Decimal(1).scaleb(last), ROUND_HALF_UP) for number in exact]
    near = all(
        abs(abs(shown[i] - shown[j]) - abs(a - b)) <= abs(a - b) / 4
        for i, a in enumerate(exact)
        for j, b in enumerate(exact[:i])
        if abs(a - b) > max(exact) * Decimal("1e-9")
    )
    return near and max(exact).adjusted() > last and min(shown) > 0  # the largest has two digits or more


@given(several_long())
def test_amounts_have_no_more_digits_than_it_takes_to_tell_them_apart(several: list[float]) -> None:
    texts = amounts_together(TIME, several)
    places = max(len(text.split()[0].partition(".")[2]) for text in texts)
    exact = [Decimal(f"{number:.12g}") for number in several]
    ways = [n for n in range(13) if tells(several, -n)]
    if len(set(exact)) == 1:
        assert set(texts) == {amount(TIME, several[0])}  # nothing to tell apart
    else:
        assert places <= ways[0], texts  # not one digit more than the first way that will do
        digit = Decimal(1).scaleb(-ways[0])  # and all are rounded alike
        assert [read(text) for text in texts] == [number.quantize(digit, ROUND_HALF_UP) for number in exact]


@given(pairs())
def test_a_difference_looks_about_as_large_as_it_is(pair: tuple[float, float]) -> None:
    true, shown = abs(Decimal(pair[0]) - Decimal(pair[1])), read(gap(TIME, *pair))
    if true > max(map(abs, map(Decimal, pair))) * Decimal("1.1e-9"):
        assert abs(shown - true) <= true * Decimal("0.2501")


@pytest.mark.parametrize(
    ("unit", "one", "gap_of_one"),
    [
        ("points", "1 point", "1 point"), ("times", "1 time", "1"), ("%", "1 %", "1 percentage point"), ("s", "1 s", "1 s"),
        ("micromorts", "1 micromort", "1 micromort"), ("classes", "1 classes", "1 classes"), ("", "1", "1"),
        ("Gbps", "1 Gbps", "1 Gbps"), ("series", "1 series", "1 series"), ("buses", "1 buses", "1 buses"),
        ("Celsius", "1 Celsius", "1 Celsius"), ("EUR/kg", "1 EUR/kg", "1 EUR/kg"),
    ],
)  # fmt: skip
def test_units_are_singular_after_one_and_no_ratio_in_a_difference(unit: str, one: str, gap_of_one: str) -> None:
    objective = Objective("x", unit)
    assert amount(objective, 1.0) == one and gap(objective, 3.0, 4.0) == gap_of_one


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
