"""A coverage: plans solved for beforehand, the best of which is nearly as good as the best possible for any weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.mdp.model import MDP
from tradeoff.model import Details, Lottery, Matrix, OptimalPolicy, Option, Plan, Vector, frozen_array
from tradeoff.problem import GainScale, Items, ScaledProblem, fingerprint_of, pieces_of, unit_rows, weight_rows
from tradeoff.problems.catalogue import Catalogue
from tradeoff.problems.selection import winners

DIGITS = 11  # of the directions that are looked up
AGREE = 1e-9  # a plan that is solved for again must have its stored gains up to this


@dataclass(frozen=True, eq=False)
class Plans:
    """Plans, as the weights they were solved for and their gains: enough to solve for them again."""

    weights: Matrix  # [n, k]
    values: Matrix  # [n, k] gains

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", frozen_array(self.weights))
        object.__setattr__(self, "values", frozen_array(self.values))


@dataclass(frozen=True, eq=False)
class Proof:
    """The optima that the guarantee rests on. A search that was interrupted goes on from them."""

    weights: Matrix  # [m, k]
    values: Matrix  # [m, k] gains of the best plan found for them
    most: Vector  # [m]: no plan is worth more than this to such weights

    def __post_init__(self) -> None:
        for name in ("weights", "values", "most"):
            object.__setattr__(self, name, frozen_array(getattr(self, name)))


class Coverage(ScaledProblem):
    """The plans of a problem that are enough for everybody; made by ``tradeoff.cover``.

    For all weights >= 0 the best of the plans misses at most the share ``guarantee`` of the best possible gain, and at
    most ``slack`` of gain if the weights sum to 1. Both are proved. Nothing is solved for such weights. Weights below 0, which
    strategies ask for when they look for plans that differ much, are looked up in ``signed`` or passed on to the ``model``.
    The model also shows and explains the plans.
    """

    kind = "coverage"

    def __init__(
        self,
        model: ScaledProblem,
        plans: Plans,
        proof: Proof,
        guarantee: float,
        slack: float,
        signed: Plans | None = None,
    ) -> None:
        self.model, self.plans, self.proof, self.signed = model, plans, proof, signed
        self.guarantee, self.slack = float(guarantee), float(slack)
        self.objectives, self.name, self.title, self.about = model.objectives, model.name, model.title, model.about
        self.noun = model.noun
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
        said = f"{count:,} plans were computed beforehand" if count > 1 else "1 plan was computed beforehand"
        return [*self.model.notes, f"{said}; whatever matters, the best of them is proved to miss at most "
                f"{self.guarantee_text} of the best possible gain, and the bounds that are stated allow for that"]  # fmt: skip

    @property
    def guarantee_text(self) -> str:
        """The guarantee in percent, rounded up, so that what it says is true."""
        percent = 100 * self.guarantee
        if percent == 0:
            return "0%"
        unit = 10.0 ** (math.floor(math.log10(percent)) - 2)
        return f"{math.ceil(percent / unit) * unit:.3g}%"

    @property
    def storable_model(self) -> MDP | Catalogue:
        """The model, if it can be written to a file."""
        if not isinstance(self.model, MDP | Catalogue) or not self.model.storable:
            raise ProblemError(f"the coverage of {self.name!r} cannot be written: {self.model.why_not_storable}")
        return self.model

    @property
    def gain_scale(self) -> GainScale:
        """The reference and the scale of each gain."""
        return self.model.gain_scale

    @property
    def items(self) -> Items | None:
        """The items of the model; None if it has plans."""
        return self.model.items

    @property
    def original(self) -> ScaledProblem:
        """The coverage, or where its objectives are pieces of curves, the model without curves."""
        return self if self.model.original is self.model else self.model.original

    def as_read(self, option: Option) -> Option:
        """Return an option as one of ``original``."""
        return self.model.as_read(option)

    @property
    def pieces(self) -> Matrix:
        """Which objective that people read each objective is a piece of."""
        return pieces_of(self.model)

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
    def threads(self) -> int:
        """How many threads the model may use."""
        return self.model.threads

    @threads.setter
    def threads(self, count: int) -> None:
        self.model.threads = count

    @cached_property
    def alternatives(self) -> tuple[Option, ...]:
        """The plans; an MDP's are solved for only when somebody looks at them."""
        weights, values = self.plans.weights, self.plans.values
        if self._by_weights:
            return tuple(Option(v, OptimalPolicy(w)) for v, w in zip(values, weights, strict=True))
        found = self.model.best(weights)
        if np.abs(np.array([a.value for a in found]) - values).max() > AGREE:
            raise ProblemError(
                f"the plans of the coverage of {self.name!r} are not those of its model; compile it again"
            )
        return tuple(found)

    @property
    def _by_weights(self) -> bool:
        """Whether a plan is known by its weights alone; those of a subclass of MDP, such as one with limits, may not be."""
        return type(self.model) is MDP

    @cached_property
    def _totals(self) -> Vector:
        totals: Vector = self.plans.values.sum(axis=1)
        return totals

    @cached_property
    def _relevant(self) -> Vector:
        return np.array(self.matters, dtype=float)

    def best(self, weights: ArrayLike) -> list[Option]:
        """Return the best of the plans for each row of weights; rows with weights below 0 are solved by the model."""
        rows = weight_rows(weights, self.objectives)
        negative = self.has_negative(rows)
        covered = winners(unit_rows(rows[~negative]) * self._relevant, self.plans.values, self._totals)
        chosen = iter([self.alternatives[i] for i in covered.tolist()])
        solved = iter(self._solved(rows[negative]))
        return [next(solved) if below else next(chosen) for below in negative.tolist()]

    def has_negative(self, rows: Matrix) -> NDArray[np.bool_]:
        """Return which rows have a weight below 0 on an objective that can be changed."""
        found: NDArray[np.bool_] = np.any(rows * self._relevant < 0, axis=1)
        return found

    def _solved(self, rows: Matrix) -> list[Option]:
        """Return the best plans for weights of any sign: those that were solved for beforehand, or the model's."""
        known = [self._signed.get(_key(row)) for row in rows]
        missing = [i for i, option in enumerate(known) if option is None]
        if missing:
            for i, option in zip(missing, self.model.best(rows[missing]), strict=True):
                known[i] = option
        return known  # type: ignore[return-value]

    def looked_up(self, rows: Matrix) -> int:
        """Return for how many rows of weights nothing has to be solved."""
        below = rows[self.has_negative(rows)]
        return len(rows) - sum(_key(row) not in self._signed for row in below)

    @cached_property
    def _signed(self) -> dict[bytes, Option]:
        if self.signed is None or not self._by_weights:
            return {}
        pairs = zip(self.signed.weights, self.signed.values, strict=True)
        return {_key(row): Option(value, OptimalPolicy(row)) for row, value in pairs}

    def limited(self, *limits: str) -> ScaledProblem:
        """Refuse: the plans are enough without the limits, not with them."""
        raise ArgumentError(
            f"{self.name!r} was compiled without {'; '.join(limits)!r}; compile the problem with the limits"
        )

    def show(self, option: Option, **options: Any) -> Lottery:
        """Return an option as the model shows it; its plan is solved for again if need be."""
        shown: Lottery = self.model.show(option, **options)
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

    def worse_than(self, option: Option) -> Option | None:
        """Return a real option that this one clearly beats in everything, or None if none is known."""
        return self.model.worse_than(option)


def _key(row: Vector) -> bytes:
    """Return the key of weights: their direction, with so many digits that its optimum is the same up to rounding."""
    direction: Vector = np.round(row / np.abs(row).max(), DIGITS) + 0.0
    return direction.tobytes()
