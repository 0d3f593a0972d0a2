"""What every strategy sees: something that can be maximised in any linear direction."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.model import NOTHING, Alternative, Matrix, Mixture, Objective, Plan, Reference, Vector

# Two expectations closer than this share of their size are the same number: rounding, not a difference.
SAME = 1e-12


class Problem(Protocol):
    """A decision problem as the strategies see it; ``best`` is all they need.

    ``outcome in the person's units = origin + scale * value``, with ``scale < 0`` for objectives to be minimised.
    """

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """The k objectives, in the order of every value vector."""

    @property
    def origin(self) -> Vector:
        """The reference's outcome, in the person's units."""

    @property
    def scale(self) -> Vector:
        """One unit of gain in the person's units, per objective."""

    @property
    def nothing(self) -> Alternative | None:
        """The reference as an alternative worth exactly zero: the paper's pi_0."""

    @property
    def fingerprint(self) -> str:
        """What tells this problem from others; a log of answers names it."""

    def best(self, weights: ArrayLike) -> list[Alternative]:
        """Return one optimal, never dominated alternative per row of weights."""


class Frame:
    """The one place that turns outcomes in the person's units into gains over a reference, and back.

    Gains are ``(outcome - origin) / scale``: larger is better, never negative, at most 1 for what is attainable, so that
    objectives measured in minutes and in euros can be compared. An objective with no range gets a scale of one unit;
    nothing that can be done changes it.
    """

    def __init__(
        self, objectives: Sequence[Objective], lowest: Vector, highest: Vector, noise: Vector, reference: Reference
    ) -> None:
        """``lowest`` and ``highest`` attainable expectation per objective; ``noise``: what rounding alone may differ."""
        self.objectives = tuple(objectives)
        self.reference = reference
        sign = np.array([o.sign for o in objectives])
        with np.errstate(over="ignore", invalid="ignore"):
            broken = np.flatnonzero(~np.isfinite(highest - lowest))
        if len(broken):
            raise ProblemError(
                f"the amounts of {objectives[broken[0]].name!r} are too large to be added up; use a larger unit"
            )
        worst, best = np.where(sign > 0, lowest, highest), np.where(sign > 0, highest, lowest)
        self.matters = np.abs(best - worst) > np.maximum(SAME * np.maximum(np.abs(best), np.abs(worst)), noise)
        self.ideal, self.nadir = best, worst
        self.origin: Vector = worst + 0.0  # never -0.0, which a person would read as a sign
        if reference.outcome is not None:
            self.origin = self._given_reference(reference.outcome, worst, sign)
        span = (best - self.origin) * sign
        self.scale: Vector = np.where(self.matters, span, 1.0) * sign
        for array in (self.matters, self.origin, self.scale, self.ideal, self.nadir):
            array.flags.writeable = False

    def _given_reference(self, outcome: Mapping[str, float], worst: Vector, sign: Vector) -> Vector:
        """Return the origin the person named, checked to be no better than anything attainable."""
        origin = np.array([outcome[o.name] for o in self.objectives])
        for j, objective in enumerate(self.objectives):
            slack = SAME * max(1.0, abs(worst[j]))
            if not np.isfinite(origin[j]) or (origin[j] - worst[j]) * sign[j] > slack:
                raise ProblemError(
                    f"the reference {self.reference.name!r} has {objective.name} = {objective.text(origin[j])}, but "
                    f"the worst that can happen is {objective.text(worst[j])}; a reference must not be better than "
                    "that: lower it, or leave the outcome out and the worst is taken"
                )
            if not self.matters[j]:
                origin[j] = worst[j]
        return origin

    def gains(self, outcomes: Matrix) -> Matrix:
        """Return the gains of outcomes given in the person's units (rows or one row)."""
        values = (outcomes - self.origin) / self.scale
        # What is attainable is never below the reference: anything under zero is the last digit of a sum.
        return np.where(self.matters, np.maximum(values, 0.0), 0.0)

    def outcomes(self, gains: Matrix) -> Matrix:
        """Return outcomes in the person's units of gains (rows or one row)."""
        result: Matrix = self.origin + self.scale * gains
        return result

    def raw_weights(self, weights: Matrix) -> Matrix:
        """Return the weights on outcomes that order plans as these weights on gains do."""
        result: Matrix = np.where(self.matters, weights / self.scale, 0.0)
        return result


class Framed(ABC):
    """What all problems with a frame share: the reference, and the person's units outside."""

    objectives: tuple[Objective, ...]

    @property
    @abstractmethod
    def frame(self) -> Frame:
        """The reference and the scale of each gain; worked out when first needed."""

    @property
    def origin(self) -> Vector:
        """The reference's outcome, in the person's units."""
        return self.frame.origin

    @property
    def scale(self) -> Vector:
        """One unit of gain in the person's units, per objective; negative for objectives to be minimised."""
        return self.frame.scale

    @property
    def nothing(self) -> Alternative:
        """The reference as an alternative worth exactly zero gain: the paper's pi_0."""
        return Alternative(np.zeros(len(self.objectives)), NOTHING)

    @property
    def irrelevant(self) -> tuple[Objective, ...]:
        """The objectives that come out the same whatever is done; their weights cannot matter."""
        return tuple(o for o, matters in zip(self.objectives, self.frame.matters, strict=True) if not matters)

    def outcome(self, value: ArrayLike) -> Vector:
        """Return a value vector (gains) in the person's units."""
        return self.frame.outcomes(np.asarray(value, dtype=float))


def fingerprint_of(*parts: object) -> str:
    """Return a short text that is the same for the same parts (arrays, texts, numbers), bit for bit."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype.str}{part.shape}".encode())
            digest.update(np.ascontiguousarray(part).data)
        else:
            digest.update(repr(part).encode())
        digest.update(b"|")
    return digest.hexdigest()[:32]


def weight_rows(weights: ArrayLike, objectives: Sequence[Objective]) -> Matrix:
    """Return the weights as rows [B, k], checked to be finite and k wide."""
    try:
        rows = np.asarray(weights, dtype=float)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"the weights are not numbers: {error}") from None
    if rows.ndim != 2 or rows.shape[1] != len(objectives):
        raise ArgumentError(
            f"weights are rows of {len(objectives)} numbers, one per objective "
            f"({', '.join(o.name for o in objectives)}), but an array of shape {rows.shape} was given; "
            "a single weight vector w is the one row [w]"
        )
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        row, column = bad[0]
        raise ArgumentError(
            f"the weight of {objectives[column].name} in row {row} is {rows[row, column]}; weights must be finite"
        )
    return np.ascontiguousarray(rows)


def dilute(alternative: Alternative, share: float) -> Alternative:
    """Return the plan that is followed with probability ``share`` and replaced by the reference otherwise.

    Its value is ``share`` times the alternative's, because the reference is worth exactly zero.
    """
    if not 0 <= share <= 1:
        raise ArgumentError(f"the share of a dilution is a probability, but {share} was given")
    plan: Plan = Mixture((float(share), 1.0 - float(share)), (alternative.plan, NOTHING))
    return Alternative(share * alternative.value, plan)
