"""A catalogue with limits: only the items that keep them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tradeoff.problems.catalogue import Catalogue, some
from tradeoff.problems.limits import Limit, infeasible, parse


def limited(catalogue: Catalogue, limits: Sequence[str]) -> Catalogue:
    """Return the items that keep the limits, also those left out before: what beat them may be forbidden now."""
    whole = catalogue.whole or catalogue
    found = parse(limits, whole.objectives, list(whole.labels))
    kept = allowed(whole, found)
    if not kept.any():
        raise infeasible(
            catalogue.name, found, whole.objectives, lambda limit, others: _attainable(whole, limit, others)
        )
    every = whole.subset(np.flatnonzero(kept))
    said = f"{'; '.join(map(str, found))}: {kept.sum():,} of {len(whole.names):,} items keep that"
    if not kept.all():
        said += f"; left out: {some(whole.names[i] for i in np.flatnonzero(~kept).tolist())}"
    every.notes = (*whole.notes, said)
    return every if catalogue.whole is None else every.without_beaten()


def allowed(catalogue: Catalogue, limits: Sequence[Limit]) -> NDArray[np.bool_]:
    """Return which items keep all limits."""
    kept = np.ones(len(catalogue.names), dtype=bool)
    for limit in limits:
        kept &= _gap(catalogue, limit) == 0
    return kept


def _gap(catalogue: Catalogue, limit: Limit) -> NDArray[np.float64]:
    """Return by how much each item misses a limit; 1 for a text that is not as it should be."""
    if limit.objective is None:
        same = np.array([text.strip().casefold() == limit.text.casefold() for text in catalogue.labels[limit.name]])
        return np.where(same == (limit.relation == "="), 0.0, 1.0)
    over = catalogue.values[:, limit.objective] - limit.amount
    match limit.relation:
        case "<=":
            return np.maximum(over, 0.0)
        case ">=":
            return np.maximum(-over, 0.0)
        case "=":
            return np.abs(over)
    return np.where(over == 0, 1.0, 0.0)


def _attainable(catalogue: Catalogue, limit: Limit, others: Sequence[Limit]) -> float | None:
    """Return the amount nearest to a limit among the items that keep the others."""
    items = np.flatnonzero(allowed(catalogue, others))
    if not len(items):
        return None
    gaps = _gap(catalogue, limit)[items]
    return (
        float(gaps.min()) if limit.objective is None else float(catalogue.values[items[gaps.argmin()], limit.objective])
    )
