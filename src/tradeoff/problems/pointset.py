"""A set of points that nobody has listed: an optimiser finds the best one for any weights (the paper's section 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.model import (
    NOTHING,
    Alternative,
    Item,
    Lottery,
    Matrix,
    Mixture,
    Nothing,
    Objective,
    Plan,
    Reference,
    Trajectory,
    Vector,
    frozen_array,
    objectives_from,
)
from tradeoff.problem import SAME, Frame, Framed, fingerprint_of, weight_rows
from tradeoff.representation import mix, parts_of

# An optimum is asked for once more with this much added to the weights, to prefer the better of two that tie.
NUDGE = 1e-6


class PointSet(Framed):
    """A choice among solutions that an optimiser finds: a knapsack, a route, a schedule.

    ``best(weights)`` maximises ``weights @ outcome`` over everything that can be done, where ``outcome`` holds the
    amounts in the person's units and ``weights`` may have any sign: an objective to be minimised comes with a negative
    one. It returns the outcome, or the outcome and what is to be done: a text, or a list of texts for several steps.

    >>> corners = [(0.0, 3.0), (2.0, 2.0), (3.0, 0.0)]
    >>> problem = PointSet(lambda w: max(corners, key=lambda c: w @ c), ["speed", "range"])
    >>> [problem.outcome(a.value).tolist() for a in problem.best([[1, 0], [1, 1]])]
    [[3.0, 0.0], [2.0, 2.0]]
    """

    def __init__(
        self,
        best: Callable[[Vector], Any],
        objectives: Sequence[Objective | str],
        *,
        reference: Reference | None = None,
        name: str = "points",
        title: str = "",
        about: str = "",
    ) -> None:
        if not callable(best):
            raise ArgumentError(f"a point set needs a function best(weights), but {best!r:.80} was given")
        self._optimise = best
        self.objectives = objectives_from(objectives, len(objectives))
        if not self.objectives:
            raise ProblemError("a point set needs at least one objective; name them")
        self.reference = reference or Reference()
        self.reference.check(self.objectives)
        self.name, self.title, self.about = name, title or name, about
        self._known: dict[bytes, int] = {}  # weights on outcomes -> which solution is best
        self._numbers: dict[tuple[bytes, tuple[str, ...]], int] = {}
        self._solutions: list[tuple[Vector, tuple[str, ...]]] = []  # outcome, what is to be done

    def __repr__(self) -> str:
        return f"<PointSet {self.name!r}: {len(self.objectives)} objectives>"

    # --- the optimiser ------------------------------------------------------------------------------------------------

    def _ask(self, weights: Vector) -> int:
        """Return the number of the solution that the optimiser finds for weights on outcomes; it is asked once."""
        key = weights.tobytes()
        if key not in self._known:
            self._known[key] = self._number(self._optimise(weights.copy()), weights)
        return self._known[key]

    def _number(self, found: Any, weights: Vector) -> int:
        k = len(self.objectives)
        # A pair whose first part is itself a list of numbers is an outcome with its story.
        story: Any = ()
        if isinstance(found, tuple) and len(found) == 2 and np.ndim(found[0]) == 1:
            found, story = found
        try:
            outcome = np.array(found, dtype=float)
        except (TypeError, ValueError):
            outcome = np.empty(0)
        if outcome.shape != (k,) or not np.isfinite(outcome).all():
            raise ProblemError(
                f"best({weights.tolist()}) of {self.name!r} returned {found!r:.120}; it must return {k} finite numbers, "
                f"one for each of {', '.join(o.name for o in self.objectives)}, or a pair of these and what is to be done"
            )
        outcome = frozen_array(outcome + 0.0)
        steps = (story,) if isinstance(story, str) else tuple(str(step) for step in story)
        key = (outcome.tobytes(), steps)
        if key not in self._numbers:
            self._numbers[key] = len(self._solutions)
            self._solutions.append((outcome, steps or (self._words(outcome),)))
        return self._numbers[key]

    def _words(self, outcome: Vector) -> str:
        return ", ".join(f"{o.name} {o.text(float(x))}" for o, x in zip(self.objectives, outcome, strict=True))

    @cached_property
    def frame(self) -> Frame:
        """The reference and the scale of each gain: 2 k questions to the optimiser."""
        unit = np.eye(len(self.objectives))
        highest = np.array([self._solutions[self._ask(e)][0][j] for j, e in enumerate(unit)])
        lowest = np.array([self._solutions[self._ask(-e)][0][j] for j, e in enumerate(unit)])
        for j in np.flatnonzero(lowest > highest):
            raise ProblemError(
                f"{self.name!r} returned {lowest[j]:.6g} as the least {self.objectives[j].name} and {highest[j]:.6g} as "
                "the most; best(weights) must maximise weights @ outcome, for negative weights too"
            )
        noise = np.zeros(len(self.objectives))
        return Frame(self.objectives, np.minimum(lowest, highest), highest, noise, self.reference)

    # --- the problem --------------------------------------------------------------------------------------------------

    @cached_property
    def fingerprint(self) -> str:
        """What tells this set from others, as far as the best and worst of each objective do."""
        outcome = self.reference.outcome and sorted(self.reference.outcome.items())
        ends = (np.array(self.frame.ideal), np.array(self.frame.nadir))
        return fingerprint_of("points", self.name, self.objectives, *ends, outcome)

    @property
    def reference_name(self) -> str:
        """What the reference is called."""
        return self.reference.name

    def best(self, weights: ArrayLike) -> list[Alternative]:
        """Return the best solution for each row of weights on gains; among ties one that is not dominated."""
        rows = weight_rows(weights, self.objectives)
        return [self.alternative(self._best(row)) for row in rows]

    def _best(self, row: Vector) -> int:
        """Return the number of the best solution for one row of weights on gains."""
        largest = np.abs(row).max()
        plain = self._ask(self._raw(row))
        if np.all(np.abs(row) > SAME * largest) and largest > 0:
            return plain  # with every weight in play nothing that ties is dominated
        nudged = self._ask(self._raw(row + NUDGE * (largest or 1.0)))
        gains = self.frame.gains(np.array([self._solutions[plain][0], self._solutions[nudged][0]]))
        scores = gains @ row
        return nudged if scores[1] >= scores[0] - SAME * np.abs(row).sum() else plain

    def _raw(self, row: Vector) -> Vector:
        # Of any length: the optimiser is asked about directions, and equal directions are one question.
        raw = self.frame.raw_weights(row)
        length = np.abs(raw).max()
        return np.ascontiguousarray(raw / length if length > 0 else raw) + 0.0

    def alternative(self, number: int) -> Alternative:
        """Return a solution that was found, by its number."""
        if not 0 <= number < len(self._solutions):
            raise ArgumentError(f"there is no solution number {number}; {len(self._solutions)} were found so far")
        outcome, steps = self._solutions[number]
        return Alternative(self.frame.gains(outcome), Item(number, ", ".join(steps)))

    def evaluate(self, plan: Plan) -> Vector:
        """Return the expected gains of a solution, of the reference, or of a mixture of them."""
        match plan:
            case Item():
                return self.alternative(plan.index).value
            case Nothing():
                return np.zeros(len(self.objectives))
            case Mixture():
                mean: Vector = np.array(plan.probabilities) @ np.array([self.evaluate(part) for part in plan.plans])
                return mean
            case _:
                raise ArgumentError(f"a point set has solutions, not policies; {plan!r} cannot be evaluated")

    def show(self, alternative: Alternative) -> Lottery:
        """Return an alternative as a person can read it: what is to be done, and what it comes to."""
        parts = parts_of(alternative.plan)
        found = [self._told(plan, share) for share, plan in parts]
        value: Matrix = np.sum([share * told.outcome for (share, _), told in zip(parts, found, strict=True)], axis=0)
        return mix(self.objectives, [share for share, _ in parts], found, value)

    def _told(self, plan: Plan, share: float) -> Trajectory:
        if plan is NOTHING:
            return Trajectory((self.reference_name,), (), share, self.origin)
        assert isinstance(plan, Item)
        outcome, steps = self._solutions[plan.index]
        return Trajectory(steps, ("",) * (len(steps) - 1), share, outcome)
