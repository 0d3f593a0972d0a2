"""How the recommendation would change if one objective mattered more or less: exact switch points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradeoff.decisions.best_along import Stretch, best_along
from tradeoff.model import Objective, Recommendation, Vector
from tradeoff.problem import Problem, pieces_of, with_share


@dataclass(frozen=True)
class Change:
    """What is best for each share of importance of one objective from 0 to 1, where the others keep their proportions.

    ``share`` is the present one, at which the recommendation is best unless the strategy recommends for the worst case.
    """

    objective: Objective
    share: float
    stretches: tuple[Stretch, ...]

    @property
    def unchanged(self) -> Stretch:
        """The stretch of the present share."""
        return next(s for s in self.stretches if s.low <= self.share <= s.high)


def what_if(problem: Problem, recommendation: Recommendation) -> tuple[Change, ...]:
    """Return, for each objective, which option is best as its share of all importance goes from 0 to 1.

    >>> from tradeoff.problems.catalogue import Catalogue
    >>> shop = Catalogue([[9, 1], [6, 6], [1, 9]], ["speed", "range"], ["fast", "middle", "far"])
    >>> (middle,) = shop.best([[0.5, 0.5]])
    >>> speed, _ = what_if(shop, Recommendation(middle, [0.5, 0.5], 3, "done"))
    >>> [(round(s.low, 3), round(s.high, 3), s.option.plan.name) for s in speed.stretches]
    [(0.0, 0.375, 'far'), (0.375, 0.625, 'middle'), (0.625, 1.0, 'fast')]
    """
    weights, pieces = decisive_weights(recommendation), pieces_of(problem)
    changes = []
    for objective, members in zip(getattr(problem, "original", problem).objectives, pieces.T, strict=True):
        share = float(weights @ members)
        none, now, all_of_it = with_share(weights, members, np.array([0.0, share, 1.0]))
        below = best_along(problem, now, none, recommendation.option) if share > 0 else []
        above = best_along(problem, now, all_of_it, recommendation.option) if share < 1 else []
        downwards = [Stretch(share * (1 - s.high), share * (1 - s.low), s.option) for s in reversed(below)]
        upwards = [Stretch(share + (1 - share) * s.low, share + (1 - share) * s.high, s.option) for s in above]
        if downwards and upwards and downwards[-1].option is upwards[0].option:
            upwards[0] = upwards[0]._replace(low=downwards.pop().low)
        changes.append(Change(objective, share, tuple(downwards + upwards)))
    return tuple(changes)


def decisive_weights(recommendation: Recommendation) -> Vector:
    """Return weights, summing to 1, for which the recommendation was made.

    With an expected regret these are the weights for which the recommended option is the best; otherwise the estimated ones.
    """
    criterion = recommendation.criterion
    expected = criterion is not None and not criterion.worst_case and recommendation.model_choice is None
    return shares_of(criterion.mean_weights if expected and criterion is not None else recommendation.weights)


def shares_of(weights: Vector) -> Vector:
    """Return the weights as shares that sum to 1; equal shares if all weights are 0."""
    positive = np.maximum(weights, 0.0)
    total = positive.sum()
    result: Vector = positive / total if total > 0 else np.full(len(positive), 1 / len(positive))
    return result
