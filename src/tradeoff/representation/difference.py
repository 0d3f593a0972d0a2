"""How two lotteries differ: which objectives, by how much, to whose advantage, and which trajectories they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from tradeoff.errors import ArgumentError
from tradeoff.model import Lottery, Objective, Vector

Side: TypeAlias = Literal["first", "second", "same"]

SAME = 1e-9  # of the scale or of the amounts: a difference that is only rounding


@dataclass(frozen=True)
class ObjectiveDifference:
    """How two lotteries differ on one objective, in its units and relative to its scale."""

    objective: Objective
    first: float  # the average of the first lottery
    second: float
    amount: float  # second - first
    relative: float  # the size of that, as a part of the scale, or of the larger average where there is no scale
    better: Side

    def words(self, first: str = "the first", second: str = "the second") -> str:
        """Return the difference as a person reads it, seen from the better side.

        >>> ObjectiveDifference(Objective("time", "min", "min"), 40.0, 60.0, 20.0, 0.3, "first").words("A", "B")
        'time: 20 min less with A'
        """
        if self.better == "same":
            return f"{self.objective.name}: same for both"
        side = first if self.better == "first" else second
        more = "more" if self.objective.goal == "max" else "less"
        return f"{self.objective.name}: {self.objective.text(abs(self.amount))} {more} with {side}"


@dataclass(frozen=True)
class Difference:
    """How two lotteries differ, objective by objective, and which of their trajectories are the same."""

    objectives: tuple[ObjectiveDifference, ...]
    ranking: tuple[int, ...]  # positions of the objectives, the largest relative difference first
    shared: tuple[tuple[int, int], ...]  # positions of trajectories that are the same: (in the first, in the second)

    @property
    def ranked(self) -> tuple[ObjectiveDifference, ...]:
        """The differences with the largest first; those that are the same for both are last."""
        return tuple(self.objectives[j] for j in self.ranking)


def difference(first: Lottery, second: Lottery, scale: ArrayLike | None = None) -> Difference:
    """Return which objectives two lotteries differ on, by how much, and which trajectories they have in common.

    ``scale`` says how much of each objective is a lot (a problem's ``scale``), so that minutes and euros can be ranked;
    without it a difference is compared with the averages themselves. Each trajectory is paired at most once.
    """
    if first.objectives != second.objectives:
        raise ArgumentError(
            "two lotteries can be compared on the same objectives only, but the first has "
            f"{_names(first)} and the second {_names(second)}"
        )
    parts = compared(first.objectives, first.average, second.average, scale)
    ranking = tuple(int(j) for j in np.argsort([-part.relative for part in parts], kind="stable"))
    return Difference(parts, ranking, _shared(first, second))


def compared(
    objectives: Sequence[Objective], first: Vector, second: Vector, scale: ArrayLike | None = None
) -> tuple[ObjectiveDifference, ...]:
    """Return how two outcomes differ, objective by objective; ``scale`` is as in ``difference``."""
    amounts = np.maximum(np.abs(first), np.abs(second))
    gauge = amounts if scale is None else _gauge(scale, len(objectives))
    gaps = second - first
    gaps = np.where(np.abs(gaps) <= SAME * np.maximum(amounts, gauge), 0.0, gaps)
    # A scale of 0 says that the objective cannot change: what changes nevertheless is measured by itself.
    gauge = np.where(gauge > 0, gauge, np.maximum(amounts, np.finfo(float).tiny))
    relative = np.abs(gaps) / gauge
    return tuple(
        ObjectiveDifference(o, float(a), float(b), float(gap), float(size), _better(o, float(gap)))
        for o, a, b, gap, size in zip(objectives, first, second, gaps, relative, strict=True)
    )


def _better(objective: Objective, gap: float) -> Side:
    if gap == 0:
        return "same"
    return "second" if gap * objective.sign > 0 else "first"


def _shared(first: Lottery, second: Lottery) -> tuple[tuple[int, int], ...]:
    pairs: list[tuple[int, int]] = []
    free = list(range(len(second.trajectories)))
    for i, trajectory in enumerate(first.trajectories):
        match = next((j for j in free if trajectory.same_as(second.trajectories[j])), None)
        if match is not None:
            free.remove(match)
            pairs.append((i, match))
    return tuple(pairs)


def _gauge(scale: ArrayLike, count: int) -> Vector:
    sizes: Vector = np.abs(np.asarray(scale, dtype=np.float64))
    if sizes.shape != (count,) or not np.isfinite(sizes).all():
        raise ArgumentError(f"a scale has one finite number for each of the {count} objectives; {scale!r} was given")
    return sizes


def _names(lottery: Lottery) -> str:
    return ", ".join(f"{o.name} ({o.unit or 'no unit'}, {o.goal})" for o in lottery.objectives)
