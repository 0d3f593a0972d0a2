"""An objective: one thing a person cares about."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Literal, cast

from tradeoff.errors import ProblemError, ProblemWarning

YES_NO = "yes/no"  # the unit of an objective that is there (1) or not (0)


class _Unsaid(str):
    """A goal that nobody gave."""


_UNSAID = cast(Literal["max", "min"], _Unsaid("max"))


@dataclass(frozen=True)
class Objective:
    """One thing a person cares about: its name, its unit, and whether more or less of it is better.

    ``description`` says in a few words what is counted. ``better`` and ``worse`` are the words for a difference: "faster"
    and "slower" in "15 min faster". No log and no fingerprint depends on these three.

    >>> Objective("time", "min", "min")
    Objective(name='time', unit='min', goal='min')
    """

    name: str
    unit: str = ""
    goal: Literal["max", "min"] = _UNSAID
    description: str = field(default="", compare=False, repr=False)
    better: str = field(default="", compare=False, repr=False)
    worse: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ProblemError(f"an objective needs a name, but {self.name!r} was found; give it a short text")
        if self.goal not in ("max", "min"):
            raise ProblemError(f"the goal of objective {self.name!r} is {self.goal!r}; it must be 'max' or 'min'")
        if isinstance(self.goal, _Unsaid):
            object.__setattr__(self, "goal", "max")
            if self.unit in ("min", "max"):
                warnings.warn(
                    f"Objective({self.name!r}, {self.unit!r}) is counted in {self.unit!r}, and more of it is better: the "
                    f"second argument is the unit; say what is better with goal='min' or goal='max'",
                    ProblemWarning, stacklevel=3,
                )  # fmt: skip

    @property
    def sign(self) -> float:
        """1.0 if more is better, -1.0 if less is."""
        return 1.0 if self.goal == "max" else -1.0

    def comparative(self, gain: float) -> str:
        """Return the word for a difference that is a gain (positive) or a loss.

        >>> Objective("time", "min", "min", better="faster").comparative(1), Objective("comfort").comparative(-1)
        ('faster', 'less')
        """
        more, less = ("more", "less") if self.goal == "max" else ("less", "more")
        return (self.better or more) if gain > 0 else (self.worse or less)

    def text(self, amount: float) -> str:
        """Return an amount of this objective as a person reads it.

        >>> Objective("time", "min", "min").text(41.5)
        '41.5 min'
        """
        if self.unit == YES_NO and amount in (0, 1):
            return "yes" if amount else "no"
        number = f"{amount:.4g}" if abs(amount) < 1000 else f"{amount:,.0f}"
        return f"{'0' if number == '-0' else number} {self.unit}".rstrip()
