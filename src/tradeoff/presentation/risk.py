"""How a plan's outcomes are really spread: what happens how often, in words, as dots and as a line of figures.

Frequencies are said only of this, the true distribution of a plan's outcomes (``Lottery.truth``), never of the weights of
stories. Where the distribution was estimated, how well is said with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tradeoff.model import Lottery, Objective, Outcomes, Vector
from tradeoff.presentation.numbers import NOISE, amount
from tradeoff.presentation.text import clipped

DOTS = 20  # quantiles that are drawn: each stands for 1 time in 20
BAD = 1 / DOTS  # how rare the bad end is that is put into words
EXACT = 1e-9  # a chance this near to what is said of it is exactly that
DIGITS, LARGE = 3, 1e7  # digits of an amount below 1,000 or from here on, as amounts are shown; whole numbers between


@dataclass(frozen=True)
class Risk:
    """How one objective comes out when a plan is followed."""

    name: str
    always: str  # the amount, where it is the same every time; the other fields then only repeat it
    bad: str  # "about 1 in 20 times 96 min or more"
    best: str  # "at best 38 min", of everything that can happen or, if only that is known, of the runs
    worst: str
    dots: tuple[float, ...]  # quantiles, the least first: each stands for 1 time in 20
    ends: tuple[str, str]  # the least and the greatest dot, in units
    more_is_better: bool

    @property
    def words(self) -> str:
        """All of it in one line."""
        return f"always {self.always}" if self.always else ", ".join((self.bad, self.worst, self.best))

    def strip(self, width: int = 30) -> str:
        """Return the dots as a line of figures: how many of 20 times the amount is about there.

        >>> Risk("time", "", "", "", "", (40.0,) * 18 + (110.0, 180.0), ("40 min", "180 min"), False).strip(15)
        '40 min |+......1......1| 180 min'
        """
        low, high = self.dots[0], self.dots[-1]
        if high <= low:
            return f"{self.ends[0]} every time"
        counts = np.bincount(
            np.round((np.array(self.dots) - low) / (high - low) * (width - 1)).astype(int), minlength=width
        )
        drawn = "".join("." if count == 0 else str(count) if count < 10 else "+" for count in counts.tolist())
        return f"{self.ends[0]} |{drawn}| {self.ends[1]}"


def risks(lottery: Lottery) -> tuple[Risk, ...]:
    """Return how each objective comes out; none for an item, where nothing is left to chance, or where it is not known."""
    truth = lottery.truth
    if truth is None or not truth.spread.any():
        return ()
    return tuple(_risk(o, truth, j) for j, o in enumerate(lottery.objectives))


def basis(lottery: Lottery) -> str:
    """Return what the risks rest on, as a sentence; "" where nothing is left to chance."""
    truth = lottery.truth
    if truth is None or not truth.spread.any():
        return ""
    if truth.rollouts is None:
        return "Counted over everything that can happen under the plan."
    off = f"{100 * truth.error:.1f}".rstrip("0").rstrip(".")
    ends = "" if truth.range is not None else " At best and at worst are those of these runs."
    return (
        f"Estimated from {truth.rollouts:,} simulated runs of the plan: a chance is off by more than {off} percentage "
        f"points at most 1 time in 20.{ends}"
    )


def strip_key() -> str:
    """Return how a line of figures is to be read."""
    return f"Each figure counts how many of {DOTS} times it comes to about that much; + is 10 or more."


def _risk(objective: Objective, truth: Outcomes, j: int) -> Risk:
    column = _clean(truth.points[:, j])
    name, more = clipped(objective.name), objective.goal == "max"
    ends = (column.min(), column.max()) if truth.range is None else _clean(truth.range[:, j])
    if not truth.spread[j] and truth.range is not None and ends[1] - ends[0] <= EXACT * np.abs(ends).max():
        always = amount(objective, float(column[0]))
        return Risk(name, always, "", always, always, (float(column[0]),) * DOTS, (always, always), more)
    best, worst = (ends[1], ends[0]) if more else (ends[0], ends[1])
    dots = _clean(truth.quantiles(j, (np.arange(DOTS) + 0.5) / DOTS))
    seen = "" if truth.range is not None else " seen"
    return Risk(
        name, "", bad_end(objective, column, truth.probabilities, truth.rollouts is not None),
        f"at best{seen} {amount(objective, float(best))}", f"at worst{seen} {amount(objective, float(worst))}",
        tuple(dots.tolist()), (amount(objective, float(dots[0])), amount(objective, float(dots[-1]))), more,
    )  # fmt: skip


def bad_end(objective: Objective, amounts: Vector, chances: Vector, estimated: bool = False) -> str:
    """Return the bad end of a distribution in words: the least bad amount that is reached or passed 1 in 20 times.

    The amount is rounded towards the good side and the chance counted for it as it is shown, so that the sentence is true.

    >>> bad_end(Objective("time", "min", "min"), np.array([40.0, 96.27]), np.array([0.9, 0.1]))
    '1 in 10 times 96.2 min or more'
    >>> bad_end(Objective("dirt", "g"), np.array([24.0, 0.0]), np.array([0.97, 0.03]))
    '97 in 100 times 24 g, otherwise less'
    """
    bad = -objective.sign * amounts  # more is worse
    word = "less" if objective.goal == "max" else "more"
    order = np.argsort(-bad, kind="stable")
    at = int(np.searchsorted(np.cumsum(chances[order]), BAD - 1e-12))
    found = float(bad[order[min(at, len(order) - 1)]])
    near = EXACT * float(np.abs(bad).max())
    if found <= bad.min() + near:  # anything worse is rarer than 1 in 20
        usual = float(chances[bad <= found + near].sum())
        often = how_often(usual, estimated)
        return (
            f"{often} {amount(objective, -objective.sign * found)}{'' if usual > 1 - EXACT else f', otherwise {word}'}"
        )
    shown = _rounded_down(found)
    often = how_often(min(1.0, float(chances[bad >= shown - near].sum())), estimated)
    return f"{often} {amount(objective, -objective.sign * shown)} or {word}"


def how_often(chance: float, estimated: bool = False) -> str:
    """Return a chance of 5% or more as a frequency, with "about" unless it is exactly that.

    >>> [how_often(p) for p in (0.05, 0.0512, 0.25, 0.13, 0.9, 1.0)]
    ['1 in 20 times', 'about 1 in 20 times', '1 in 4 times', '13 in 100 times', '9 in 10 times', 'every time']
    """
    if chance > 1 - EXACT:
        return "in every run" if estimated else "every time"

    def about(said: float) -> str:
        return "" if not estimated and abs(said - chance) <= EXACT else "about "

    # The simplest fraction that is right to half a percentage point, or to a tenth of the chance where that is less.
    near = min(0.005, 0.1 * chance)
    for total in (2, 3, 4, 5, 10, 20):
        count = round(chance * total)
        if 0 < count < total and math.gcd(count, total) == 1 and abs(count / total - chance) < near:
            return f"{about(count / total)}{count} in {total} times"
    count = round(100 * chance)
    return f"{about(count / 100)}{count} in 100 times" if count < 100 else "more than 99 in 100 times"


def _rounded_down(number: float) -> float:
    """Return a number rounded towards minus infinity, with as many digits as amounts are shown with."""
    if number == 0 or not math.isfinite(number):
        return number
    whole = 1000 <= abs(number) < LARGE
    places = 0 if whole else DIGITS - 1 - math.floor(math.log10(abs(number)))
    down = math.floor(number * 10.0**places * (1 + math.copysign(1e-12, number))) / 10.0**places
    return number if abs(down - number) <= 1e-11 * abs(number) else down


def _clean(column: Vector | Sequence[float]) -> Vector:
    """Return amounts in which a 0 that was added up is 0."""
    values = np.asarray(column, dtype=float)
    return np.where(np.abs(values) <= NOISE * np.abs(values).max(initial=0.0), 0.0, values)
