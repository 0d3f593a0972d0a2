"""Problems with a single choice, whose outcome does not unfold over time."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

import numpy as np

from tradeoff.errors import ArgumentError
from tradeoff.mdp.stories import mix, parts_of
from tradeoff.model import Item, Lottery, Mixture, Nothing, Option, Outcomes, Plan, Trajectory, Vector
from tradeoff.problem import ScaledProblem


class SingleChoice(ScaledProblem):
    """A base class for problems whose plans are items; it evaluates and shows items and mixtures of them.

    A subclass implements ``outcome_of``, ``gain_scale``, ``fingerprint`` and ``best``.
    """

    @abstractmethod
    def outcome_of(self, item: Item) -> Vector:
        """Return the outcome of an item, in the person's units."""

    def stories_of(self, item: Item, chance: float) -> list[tuple[float, Trajectory]]:
        """Return how an item can turn out, as weighted trajectories, if it is chosen with this chance."""
        return [(1.0, Trajectory((item.name,), (), chance, self.outcome_of(item)))]

    def outcomes_of(self, item: Item) -> Outcomes:
        """Return the distribution of an item's outcome; it is certain unless a subclass makes it depend on chance."""
        return Outcomes(self.outcome_of(item)[None, :], np.ones(1))

    def evaluate(self, plan: Plan) -> Vector:
        """Return the expected gains of an item, of the reference, or of a mixture of them."""
        match plan:
            case Item():
                return self.gain_scale.gains(self.outcome_of(plan))
            case Nothing():
                return np.zeros(len(self.objectives))
            case Mixture():
                mean: Vector = np.array(plan.probabilities) @ np.array([self.evaluate(part) for part in plan.plans])
                return mean
            case _:
                raise ArgumentError(f"{self.name!r} has items, not policies; {plan!r} cannot be evaluated")

    def show(self, option: Option) -> Lottery:
        """Return an option in readable form: the item, or the items and the reference in a mixture."""
        worth = self.evaluate(option.plan)
        if np.abs(worth - option.value).max() > 1e-9:
            raise ArgumentError(
                f"the option's stated value is {option.value.tolist()}, but its plan is worth "
                f"{worth.tolist()}; was it made for another problem?"
            )
        parts = parts_of(option.plan)
        mean = np.zeros(len(self.objectives))
        chances: dict[Plan, float] = {}
        for share, plan in parts:
            chances[plan] = chances.get(plan, 0.0) + share
        weights: list[float] = []
        found: list[Trajectory] = []
        spread: list[tuple[float, Outcomes]] = []
        for share, plan in parts:
            if isinstance(plan, Item):
                outcome, told = self.outcome_of(plan), self.stories_of(plan, chances[plan])
                spread.append((share, self.outcomes_of(plan)))
            else:
                outcome = self.origin
                told = [(1.0, Trajectory((self.reference_name,), (), chances[plan], outcome))]
                spread.append((share, Outcomes(outcome[None, :], np.ones(1))))
            mean = mean + share * outcome
            weights += [share * weight for weight, _ in told]
            found += [trajectory for _, trajectory in told]
        return replace(mix(self.objectives, weights, found, mean), truth=_mixed(spread))


def _mixed(parts: list[tuple[float, Outcomes]]) -> Outcomes:
    """Return the distribution of a mixture, which is an estimate if any of its parts is one."""
    rollouts = [one.rollouts for _, one in parts if one.rollouts is not None]
    ends = np.concatenate([one.points if one.range is None else one.range for _, one in parts])
    known = all(one.range is not None or one.rollouts is None for _, one in parts)
    return Outcomes(
        np.concatenate([one.points for _, one in parts]),
        np.concatenate([share * one.probabilities for share, one in parts]),
        min(rollouts) if rollouts else None,
        np.stack([ends.min(axis=0), ends.max(axis=0)]) if known else None,
    )
