"""Alternatives to weigh freely: few enough to be compared at once, for any weights a person tries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradeoff.decisions.preferences import Preferences
from tradeoff.decisions.ranking import Ranking, merged
from tradeoff.model import Option, Recommendation
from tradeoff.problem import Problem, items_of
from tradeoff.strategies.solutions import solutions_of

MOST_ITEMS = 600
MOST_PLANS = 24
WEIGHTS = 400  # for which the plans of a model are looked for


@dataclass(frozen=True, eq=False)
class Options:
    """Alternatives that are weighed against each other, and how many there are in all; None where nobody knows."""

    alternatives: tuple[Option, ...]
    total: int | None


def options(problem: Problem, recommendation: Recommendation, ranked: Ranking) -> Options:
    """Return the items of a catalogue, or the plans that are best for some of many weights.

    Of many items, those that lose least on average; of many plans, those that are best for one objective alone or most
    often, each standing for all that are nearly the same.
    """
    items = items_of(problem)
    if items is not None:
        order = np.argsort(ranked.criterion.losses(items.gains), kind="stable")[:MOST_ITEMS].tolist()
        return Options(tuple(map(items.option, order)), len(items.names))
    anyone = Preferences(len(problem.objectives), ranked.preferences.relevant, ())
    alone = solutions_of(problem).best(
        anyone.on_all(np.eye(anyone.d))
    )  # the best of each objective is there in any case
    best = solutions_of(problem).best(anyone.spread(WEIGHTS))  # the same weights for everybody
    found, shares = merged(recommendation, [(one, 1.0) for one in alone] + [(one, 1 / len(best)) for one in best])
    order = np.argsort(-shares, kind="stable")
    return Options(tuple(found[int(i)] for i in order[:MOST_PLANS]), None)
