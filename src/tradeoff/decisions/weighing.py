"""Alternatives to weigh freely: few enough to be compared at once, for any weights a person tries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradeoff.decisions.preferences import Preferences
from tradeoff.decisions.ranked import Ranking, left_out, merged
from tradeoff.model import Alternative, Recommendation
from tradeoff.problem import Problem
from tradeoff.problems.catalogue import Catalogue
from tradeoff.strategies.cache import cache_of

MOST_ITEMS = 600
MOST_PLANS = 24
WEIGHTS = 400  # for which the plans of a model are looked for


@dataclass(frozen=True, eq=False)
class Options:
    """Alternatives that are weighed against each other, and how many there are in all; None where nobody knows."""

    alternatives: tuple[Alternative, ...]
    total: int | None


def options(problem: Problem, recommendation: Recommendation, ranked: Ranking) -> Options:
    """Return the items of a catalogue, or the plans that are best for some of many weights.

    Items that others beat are there as well: what beats one may not be what a person looks for.
    Of many items, those that lose least on average; of many plans, those that are best for one objective alone or most
    often, each standing for all that are nearly the same.
    """
    if isinstance(problem, Catalogue):
        beaten = [left_out(problem, name) for name in problem.beaten]
        gains = np.vstack([problem.gains, *(one.value[None, :] for one in beaten)])
        order, items = np.argsort(-(gains @ ranked.weights), kind="stable")[:MOST_ITEMS].tolist(), len(problem.names)
        ordered = (problem.alternative(i) if i < items else beaten[i - items] for i in order)
        return Options(tuple(ordered), items + len(beaten))
    anyone = Preferences(len(problem.objectives), ranked.preferences.relevant, ())
    alone = cache_of(problem).best(anyone.on_all(np.eye(anyone.d)))  # the best of each objective is there in any case
    best = cache_of(problem).best(anyone.spread(WEIGHTS))  # the same weights for everybody
    found, shares = merged(recommendation, [(one, 1.0) for one in alone] + [(one, 1 / len(best)) for one in best])
    order = np.argsort(-shares, kind="stable")
    return Options(tuple(found[int(i)] for i in order[:MOST_PLANS]), None)
