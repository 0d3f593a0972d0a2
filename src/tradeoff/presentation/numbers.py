"""Numbers as people read them: amounts with units, shares out of 100, percentages, counts."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from tradeoff.errors import ArgumentError
from tradeoff.model import Objective, Vector
from tradeoff.presentation.text import one_line

DIGITS = 3  # of an amount below 1,000: people compare, they do not compute
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

    >>> amount(Objective("time", "min", "min"), 41.5273)
    '41.5 min'
    """
    return one_line(objective.text(_rounded(number)))


def amount_pair(objective: Objective, one: float, other: float) -> tuple[str, str]:
    """Return two amounts that stand side by side; they get another digit if they would look equal and are not."""
    texts = amount(objective, one), amount(objective, other)
    if texts[0] == texts[1] and one != other:
        return one_line(objective.text(one)), one_line(objective.text(other))
    return texts


def gap(objective: Objective, one: float, other: float) -> str:
    """Return the difference of two amounts as it follows from what is shown of them, rounded as they are.

    >>> gap(Objective("time", "min", "min"), 42.94, 53.26)
    '10.4 min'
    """
    seen = [round(number) if abs(number) >= 1000 else _rounded(number) for number in (one, other)]
    if seen[0] == seen[1]:  # then they are shown with more digits
        return amount(objective, abs(one - other))
    places = max(len(f"{number:.10g}".partition(".")[2]) for number in seen)
    return one_line(objective.text(round(abs(seen[0] - seen[1]), places)))


def _rounded(number: float) -> float:
    return float(f"{number:.{DIGITS}g}") if abs(number) < 1000 else number


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
