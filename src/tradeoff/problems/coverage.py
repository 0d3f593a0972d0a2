"""A coverage: plans solved for beforehand, the best of which is nearly as good as the best possible for any weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.model import Alternative, Details, Lottery, Matrix, OptimalPolicy, Plan, Vector, frozen_array
from tradeoff.problem import GainScale, ScaledProblem, fingerprint_of, unit_rows, weight_rows
from tradeoff.problems.mdp import MDP
from tradeoff.problems.selection import winners

AGREE = 1e-9  # a plan that is solved for again must have its stored gains up to this


@dataclass(frozen=True, eq=False)
class Plans:
    """Plans as what they were solved for and what they are worth: enough to solve for them again."""

    weights: Matrix  # [n, k]
    values: Matrix  # [n, k] gains

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", frozen_array(self.weights))
        object.__setattr__(self, "values", frozen_array(self.values))


@dataclass(frozen=True, eq=False)
class Proof:
    """What a guarantee rests on: the plans in the order they were taken, and the optima that were looked up.

    From these the search goes on where it stopped, and anybody can check the guarantee again.
    """

    weights: Matrix  # [m, k]
    most: Vector  # [m]: no plan is worth more than this to such weights

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", frozen_array(self.weights))
        object.__setattr__(self, "most", frozen_array(self.most))


class Coverage(ScaledProblem):
    """The plans of a problem that are enough for everybody; made by ``tradeoff.cover``.

    For all weights >= 0 the best of the plans misses at most the share ``guarantee`` of the best possible gain, and at
    most ``slack`` of gain if the weights sum to 1. Both are proved. Nothing is solved for such weights; only weights below 0,
    which some strategies ask for, are passed on to the ``model``. It also shows and explains the plans.
    """

    kind = "coverage"

    def __init__(self, model: ScaledProblem, plans: Plans, proof: Proof, guarantee: float, slack: float) -> None:
        self.model, self.plans, self.proof = model, plans, proof
        self.guarantee, self.slack = float(guarantee), float(slack)
        self.objectives, self.name, self.title, self.about = model.objectives, model.name, model.title, model.about
        self.has_paths, self.storable, self.places, self.roads = (
            model.has_paths, model.storable, model.places, model.roads,
        )  # fmt: skip
        self.pictures, self.wording = model.pictures, model.wording

    def __repr__(self) -> str:
        return f"<Coverage of {self.name!r}: {len(self.plans.values)} plans, within {self.guarantee:.3g}>"

    @property
    def notes(self) -> list[str]:  # type: ignore[override]
        """The notes of the model, and what the coverage guarantees."""
        count = len(self.plans.values)
        most = f"{100 * self.guarantee:.3g}%"
        said = f"{count:,} plans were computed beforehand" if count > 1 else "1 plan was computed beforehand"
        return [*self.model.notes, f"{said}; whatever matters, the best of them is proved to miss at most {most} of the "
                "best possible gain, and the bounds that are stated allow for that"]  # fmt: skip

    @property
    def gain_scale(self) -> GainScale:
        """The reference and the scale of each gain."""
        return self.model.gain_scale

    @cached_property
    def fingerprint(self) -> str:
        """A text that identifies this coverage and its model."""
        return fingerprint_of(
            "coverage", self.model.fingerprint, np.array(self.plans.weights), np.array(self.plans.values), self.slack
        )

    @property
    def extent(self) -> Mapping[str, int]:
        """The sizes of the model, and the number of plans."""
        return {**self.model.extent, "plans": len(self.plans.values)}

    @property
    def threads(self) -> int:  # type: ignore[override]
        """How many threads the model may use."""
        return self.model.threads

    @threads.setter
    def threads(self, count: int) -> None:
        self.model.threads = count

    @cached_property
    def alternatives(self) -> tuple[Alternative, ...]:
        """The plans; an MDP's are solved for only when somebody looks at them."""
        weights, values = self.plans.weights, self.plans.values
        if isinstance(self.model, MDP):
            return tuple(Alternative(v, OptimalPolicy(w)) for v, w in zip(values, weights, strict=True))
        found = self.model.best(weights)
        if np.abs(np.array([a.value for a in found]) - values).max() > AGREE:
            raise ProblemError(f"the plans of the coverage of {self.name!r} are not those of its model; compile it again")
        return tuple(found)

    @cached_property
    def _totals(self) -> Vector:
        totals: Vector = self.plans.values.sum(axis=1)
        return totals

    @cached_property
    def _relevant(self) -> Vector:
        return np.array(self.matters, dtype=float)

    def best(self, weights: ArrayLike) -> list[Alternative]:
        """Return the best of the plans for each row of weights; rows with weights below 0 are solved by the model."""
        rows = weight_rows(weights, self.objectives)
        signed = np.any(rows * self._relevant < 0, axis=1)
        covered = winners(unit_rows(rows[~signed]) * self._relevant, self.plans.values, self._totals)
        chosen = iter([self.alternatives[i] for i in covered.tolist()])
        solved = iter(self.model.best(rows[signed]) if signed.any() else [])
        return [next(solved) if other else next(chosen) for other in signed.tolist()]

    def show(self, alternative: Alternative, **options: Any) -> Lottery:
        """Return an alternative as the model shows it; its plan is solved for again if need be."""
        shown: Lottery = self.model.show(alternative, **options)
        return shown

    def evaluate(self, plan: Plan) -> Vector:
        """Return the expected gains of a plan."""
        evaluate = getattr(self.model, "evaluate", None)
        if evaluate is None:
            raise ArgumentError(f"{self.name!r} cannot evaluate a plan")
        gains: Vector = evaluate(plan)
        return gains

    def details(self, plan: Plan) -> Details:
        """Return what to do under a plan, beyond what its lottery tells."""
        return self.model.details(plan)

    def labels_of(self, name: str) -> Mapping[str, str]:
        """Return the texts to show beside the item of this name."""
        return self.model.labels_of(name)

    def worse_than(self, alternative: Alternative) -> Alternative | None:
        """Return a real alternative that this one clearly beats in everything, or None if none is known."""
        return self.model.worse_than(alternative)
