"""Numbers as people read them: amounts with units, shares out of 100, percentages, counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tradeoff.errors import ArgumentError
from tradeoff.model import Objective, Vector
from tradeoff.objective import YES_NO
from tradeoff.presentation.text import one_line

DIGITS = 3  # of an amount that stands alone: people compare, they do not compute
BESIDE = 2  # of the largest of amounts that stand side by side, at least
NEAR = Decimal("0.25")  # of a difference: how far off it may look for the sake of fewer digits
ALIKE = Decimal("1e-9")  # of the larger amount: what differs by less is the same
NOISE_PART = Decimal("1e-12")  # of the largest amount beside it: what is smaller is a 0 that was added up
EXACT = 8  # digits from the first of all amounts to the last: up to here, amounts of few digits are not rounded
INSIGNIFICANT = 1000  # times smaller than the largest amount beside it: no digit is spent on it
GROUPED = 10_000  # from here on thousands are set apart
LARGE, LARGE_WORDS, SMALLEST = 7, 12, -4  # powers of ten: words from here, the last word, plain decimals down to here
WORDS = {0: "", 6: " million", 9: " billion", 12: " trillion"}
PERCENTAGE_POINTS = "percentage points"
# Units that lose their last letter after 1; of others nobody knows ("Gbps", "series").
PLURALS = {
    PERCENTAGE_POINTS, "points", "times", "seconds", "minutes", "hours", "days", "weeks", "months", "years", "miles", "stars",
    "rooms", "calories", "micromorts",
}  # fmt: skip
# "0.5 % less" and "0.2 times less" would be read as ratios.
GAP_UNITS = {"%": PERCENTAGE_POINTS, "times": "", "x": "", YES_NO: ""}
FINEST = 10_000  # shares are counted out of 100, 1,000 or at most this
ROUNDING = 1e-9  # a share this near to a whole count is that count
NOISE = 1e-12  # of an objective's largest amount: what is smaller is a 0 that was added up


def counted(number: int, thing: str) -> str:
    """Return how many there are of something.

    >>> counted(1, "question"), counted(1200, "question")
    ('1 question', '1,200 questions')
    """
    return f"{number:,} {thing if number == 1 else f'{thing}s'}"


# --- amounts ---------------------------------------------------------------------------------------------------------


def amount(objective: Objective, number: float) -> str:
    """Return an amount in its unit.

    >>> amount(Objective("time", "min", "min"), 41.5273), amount(Objective("debt", "USD", "min"), 391755581428310)
    ('41.5 min', '392 trillion USD')
    """
    return amounts_together(objective, [number])[0]


def amount_pair(objective: Objective, one: float, other: float) -> tuple[str, str]:
    """Return two amounts that stand side by side."""
    first, second = amounts_together(objective, [one, other])
    return first, second


def amounts_together(objective: Objective, numbers: Sequence[float]) -> list[str]:
    """Return amounts that are read together, all rounded alike, with no more digits than it takes to see how they differ.

    >>> amounts_together(Objective("late", "%", "min"), [1.081, 1.0])
    ['1.1 %', '1 %']
    >>> amounts_together(Objective("time", "min", "min"), [42.94, 53.26])
    ['43 min', '53 min']
    >>> amounts_together(Objective("price", "EUR", "min"), [1000.004, 1000.013])
    ['1000 EUR', '1000.01 EUR']
    """
    layout = _layout(numbers)
    return [_with_unit(_written(number, layout), objective.unit) for number in _rounded(numbers, layout)]


def gap(objective: Objective, one: float, other: float) -> str:
    """Return the difference of two amounts as they are shown side by side; per cent differ by percentage points.

    >>> gap(Objective("time", "min", "min"), 42.94, 53.26), gap(Objective("late", "%", "min"), 0.64, 1.17)
    ('10 min', '0.53 percentage points')
    """
    layout = _layout([one, other])
    first, second = _rounded([one, other], layout)
    difference = abs(first - second)
    unit, plain = layout.unit, difference.scaleb(layout.unit)
    if unit in WORDS:
        unit = unit and _unit_of(plain, unit - layout.places)  # "60,000", not "0.06 million"
    elif difference:
        unit += difference.adjusted()
    places = max(0, unit - (layout.unit - layout.places))
    written = _written(plain.scaleb(-unit), _Layout(unit, places, layout.grouped))
    rated = objective.unit.startswith("of ")  # "0.2 of 5 more" would be no sentence
    return _with_unit(written, "" if rated else GAP_UNITS.get(objective.unit, objective.unit))


def comparative(objective: Objective, difference: str, amount: str) -> str:
    """Return a difference from the better side, whose amount is given for what is there or not.

    >>> comparative(Objective("time", "min", "min", better="faster"), "10 min", "43 min")
    '10 min faster'
    >>> comparative(Objective("balcony", YES_NO), "1", "yes")
    'yes'
    """
    return amount if objective.unit == YES_NO else f"{difference} {objective.comparative(1)}"


class _Layout(NamedTuple):
    """How numbers that are read together are written."""

    unit: int  # of powers of ten: 6 for millions
    places: int  # digits after the point
    grouped: bool  # 12,345 but 1234, which may be a year


def _layout(numbers: Sequence[float]) -> _Layout:
    """Return how to write these numbers: exactly if they are short, as coarsely as differences allow, or alone."""
    exact = [_decimal(number) for number in numbers]
    sizes = sorted(map(abs, exact))
    largest = sizes[-1]
    if not largest:
        return _Layout(0, 0, False)
    gaps = [b - a for a, b in pairwise(sorted(exact)) if b - a > largest * ALIKE]
    last = largest.adjusted() - DIGITS + 1  # the power of ten of the last digit
    if gaps:
        coarse = next(size for size in sizes if size * INSIGNIFICANT >= largest).adjusted()
        coarse = min(coarse, largest.adjusted() - BESIDE + 1)
        fine = min(gaps).adjusted() - 1  # where no difference is off by more than a tenth
        last = next((place for place in range(coarse, fine, -1) if _tells_apart(exact, place)), min(coarse, fine))
    ends = [number.normalize() for number in exact if number]
    final = min(number.adjusted() - len(number.as_tuple().digits) + 1 for number in ends)
    if largest.adjusted() - final < EXACT and all(len(number.as_tuple().digits) <= DIGITS for number in ends):
        last = min(last, final)
    unit = _unit_of(largest, last)
    return _Layout(unit, max(0, unit - last), largest >= GROUPED)


def _tells_apart(exact: Sequence[Decimal], last: int) -> bool:
    """Return whether all differences look about as large as they are when the last digit is of this power of ten."""
    in_order = sorted(exact)
    shown = [number.scaleb(-last).to_integral_value(ROUND_HALF_UP).scaleb(last) for number in in_order]
    return all(
        abs((d - c) - (b - a)) <= NEAR * (b - a)
        for (a, b), (c, d) in zip(pairwise(in_order), pairwise(shown), strict=True)
        if b - a > max(map(abs, exact)) * ALIKE
    )


def _unit_of(largest: Decimal, last: int) -> int:
    """Return the power of ten to count in: words for large numbers, unless they need many digits; e-5 for tiny ones."""
    power = largest.adjusted() if largest else 0
    if power < SMALLEST or power >= LARGE_WORDS + 6:
        return power
    if power < LARGE:
        return 0
    unit = min(LARGE_WORDS, power // 3 * 3)
    return unit if last >= unit - 3 else 0


def _decimal(number: float) -> Decimal:
    """Return a number without the last digits, which computing has left there."""
    return Decimal(f"{number:.12g}")


def _rounded(numbers: Sequence[float], layout: _Layout) -> list[Decimal]:
    """Return the numbers in the layout's unit, rounded to its places."""
    exact = [_decimal(number) for number in numbers]
    least = max(map(abs, exact)) * NOISE_PART
    digit = Decimal(1).scaleb(-layout.places)
    return [
        Decimal(0) if abs(number) <= least else _kept(number.scaleb(-layout.unit).quantize(digit, ROUND_HALF_UP))
        for number in exact
    ]


def _kept(number: Decimal) -> Decimal:
    """Return a number that was rounded; one that became 0 keeps a sign, so that it is written as almost 0."""
    return number if number else Decimal("-0")


def _written(number: Decimal, layout: _Layout) -> str:
    if not number and number.is_signed():
        return "almost 0"
    text = _without_zeros(f"{abs(number):,.{layout.places}f}" if layout.grouped else f"{abs(number):.{layout.places}f}")
    words = WORDS.get(layout.unit, f"e{layout.unit}")
    return f"{'-' if number < 0 else ''}{text}{words if number else ''}"


def _with_unit(number: str, unit: str) -> str:
    """Return a number with its unit as it is given; only well-known plurals have a singular.

    >>> _with_unit("-1", "points"), _with_unit("2", "points"), _with_unit("1", "Gbps"), _with_unit("1", "series")
    ('-1 point', '2 points', '1 Gbps', '1 series')
    """
    if unit == YES_NO:
        return {"1": "yes", "0": "no"}.get(number, f"{number} (1 is yes)")
    if number in ("1", "-1") and unit in PLURALS:
        unit = unit.removesuffix("s")
    return one_line(f"{number} {unit}").rstrip()


# --- percentages -----------------------------------------------------------------------------------------------------


def percent(share: float) -> str:
    """Return a share as a whole percentage."""
    return f"{100 * share:.0f}%"


def percent_up(share: float) -> str:
    """Return a share as a percentage, rounded up.

    >>> percent_up(0.0312), percent_up(0.0031), percent_up(0.0)
    ('4%', '0.4%', '0.1%')
    """
    tenths = max(1, math.ceil(1000 * share - 1e-9))
    return f"{tenths / 10:g}%" if tenths < 10 else f"{math.ceil(100 * share - 1e-9)}%"


def percent_below(share: float, limit: float) -> str | None:
    """Return a share as a percentage, rounded up, with the digits that it takes to be below a limit; None if it is not below.

    >>> percent_below(0.0017, 0.002), percent_below(0.0017, 0.01), percent_below(0.002, 0.002)
    ('0.17%', '0.2%', None)
    """
    if not share < limit:
        return None
    finer = (f"{max(1, math.ceil(100 * share * 10**places - 1e-9)) / 10**places:g}%" for places in range(1, 7))
    tried = (percent_up(share), *finer)
    return next((text for text in tried if float(text[:-1]) < 100 * limit * (1 - 1e-9)), None)


def chance(probability: float) -> str:
    """Return a probability as a percentage of two digits; only what is impossible or certain is 0% or 100%.

    >>> [chance(p) for p in (1, 0.9, 0.123, 0.004, 1e-9, 0.99999)]
    ['100%', '90%', '12%', '0.4%', 'less than 0.01%', 'more than 99.99%']
    """
    if 0 < probability < 1 / FINEST:
        return f"less than {_part(1, FINEST)}"
    if 1 - 1 / FINEST < probability < 1 - ROUNDING:
        return f"more than {_part(FINEST - 1, FINEST)}"
    places = next((n for n in (0, 1, 2) if round(100 * min(probability, 1 - probability), n) >= 10 ** (1 - n)), 2)
    return f"{_without_zeros(f'{100 * probability:.{places}f}')}%"


def _part(count: int, total: int) -> str:
    return f"{_without_zeros(f'{100 * count / total:.2f}')}%"


def _without_zeros(number: str) -> str:
    return number.rstrip("0").rstrip(".") if "." in number else number


# --- shares ----------------------------------------------------------------------------------------------------------


def share_total(*weights: ArrayLike) -> int:
    """Return what the shares of lotteries that stand side by side are counted out of.

    It is 100, or 1,000 where a share is below 1%, or 10,000 where one is below 0.1%.
    """
    everything = np.concatenate([_shares(each) for each in weights])
    smallest = everything[everything > 0].min()
    total = 100
    while total < FINEST and smallest * total < 1 - ROUNDING:
        total *= 10
    return total


def share_counts(weights: ArrayLike, total: int) -> list[int]:
    """Return how many of the total each share stands for; the counts add up.

    >>> share_counts([1 / 3, 1 / 3, 1 / 3], 100)
    [34, 33, 33]
    """
    shares = _shares(weights)
    wanted = shares * total
    counts = np.floor(wanted + ROUNDING).astype(np.int64)
    # What is left goes to the largest remainders, and to shares below one only when there are no others.
    order = np.lexsort((-(wanted - counts), counts == 0))
    counts[order[: total - int(counts.sum())]] += 1
    found: list[int] = counts.tolist()
    return found


def share_percentages(weights: ArrayLike, total: int) -> list[str]:
    """Return each share as a percentage, rounded so that all of them add up.

    >>> share_percentages([0.9, 0.1], 1000)
    ['90%', '10%']
    """
    return [
        _share(count, total, float(share))
        for count, share in zip(share_counts(weights, total), _shares(weights), strict=True)
    ]


def _share(count: int, total: int, share: float) -> str:
    if count == 0 and share > 0:
        return f"less than {_part(1, total)}"
    if count == total and share < 1:
        return f"more than {_part(total - 1, total)}"
    return _part(count, total)


def _shares(weights: ArrayLike) -> Vector:
    found = np.atleast_1d(np.asarray(weights, dtype=np.float64))
    if found.ndim != 1 or not np.isfinite(found).all() or (found < 0).any() or not found.sum() > 0:
        raise ArgumentError(f"shares must be a list of numbers, not negative and not all 0, but {weights!r} was given")
    result: Vector = found / found.sum()
    return result
