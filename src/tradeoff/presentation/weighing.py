"""Alternatives to weigh freely, in words: in the order of any weights, within any limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tradeoff.decisions.weighing import Options
from tradeoff.model import Indices, Item, Option, Vector
from tradeoff.presentation.cards import amounts
from tradeoff.presentation.plans import ranked_names
from tradeoff.presentation.problems import labels
from tradeoff.presentation.text import one_line
from tradeoff.problem import Presentable, pieces_of, with_share

MOST_TEXTS, MOST_KINDS = 12, 6  # of which one can be chosen
SAME = 1e-9  # of a limit: an amount this close to it is within


@dataclass(frozen=True)
class Field:
    """An objective with its weight, in whole per cent of the largest, and its limit."""

    name: str
    weight: int
    word: str  # "at most" or "at least"
    unit: str
    sign: int  # 1 where more is better
    limit: float | None = None


@dataclass(frozen=True)
class Kind:
    """Something else that is known of items, such as a colour, with all it can be; one of these may be wanted."""

    name: str
    texts: tuple[str, ...]
    wanted: int | None = None


@dataclass(frozen=True)
class OptionRow:
    """An option to be weighed."""

    name: str
    gains: tuple[float, ...]  # of the fields
    amounts: tuple[float, ...]  # of the fields, in units
    kinds: tuple[int, ...]  # which of its texts each kind is
    told: str  # what it comes to
    score: float  # what it is worth, as a part of the best of those within the limits
    within: bool
    recommended: bool


@dataclass(frozen=True)
class Weighing:
    """Alternatives in the order of some weights, those within the limits first."""

    fields: tuple[Field, ...]
    kinds: tuple[Kind, ...]
    rows: tuple[OptionRow, ...]
    basis: str

    @property
    def within(self) -> int:
        """How many are within the limits."""
        return sum(row.within for row in self.rows)


def weighing(
    problem: Presentable,
    given: Options,
    recommended: Option,
    name: str,
    weights: Vector,
    limits: Mapping[int, float] | None = None,
    wanted: Mapping[int, int] | None = None,
    estimate: Vector | None = None,
    losses: Vector | None = None,
) -> Weighing:
    """Return alternatives in the order of their worth for these weights, which are on all objectives that people read.

    ``estimate`` are the recommendation's weights, which say how the pieces of a curve compare. ``losses`` are given while
    the weights are untouched: then the order is that of the ranking, the recommended one first. ``name`` is what the
    recommended one is called; ``limits`` are the least that is wanted of an objective, or the most where less is better,
    by its number; ``wanted`` says which text of a kind is wanted, by their numbers.
    """
    known = np.zeros(len(problem.objectives)) if estimate is None else estimate
    curves = np.vstack([with_share(known, members, np.ones(1)) for members in pieces_of(problem).T])
    relevant = [j for j, matters in enumerate(problem.original.matters) if matters]
    others = [one for one in given.alternatives if one.plan != recommended.plan]
    called = dict(zip(map(id, others), ranked_names(problem, [recommended, *others])[1:], strict=True))
    gains = np.array([curves @ one.value for one in given.alternatives])[:, relevant]
    read = problem.original
    outcomes = np.array([read.outcome(problem.as_read(one).value) for one in given.alternatives])
    kept = np.ones(len(outcomes), dtype=bool)
    for j, limit in (limits or {}).items():
        kept &= (outcomes[:, j] - limit) * read.objectives[j].sign >= -SAME * max(abs(limit), 1.0)
    kinds, numbers = _kinds(read, given, wanted or {})
    for i, kind in enumerate(kinds):
        kept &= (numbers[:, i] == kind.wanted) if kind.wanted is not None else True
    mine = np.maximum(weights[relevant], 0.0)
    worth = gains @ (mine if mine.sum() > 0 else np.ones(len(relevant)))
    first = np.zeros(len(gains), dtype=bool)
    if losses is not None:
        worth = 1 - losses
        first = np.array([id(one) not in called for one in given.alternatives])
    most = max(float(worth[kept].max(initial=0.0)), 1e-300)
    rows = []
    for i in np.lexsort((-worth, ~first, ~kept)).tolist():
        one = given.alternatives[i]
        rows.append(
            OptionRow(
                name=called.get(id(one), name),
                gains=tuple(round(float(gain), 6) for gain in gains[i]),
                amounts=tuple(float(f"{outcomes[i, j]:.9g}") for j in relevant),
                kinds=tuple(numbers[i].tolist()),
                told=", ".join(f"{row.name} {row.amount}" for row in amounts(problem, one)),
                score=min(float(worth[i] / most), 1.0),
                within=bool(kept[i]),
                recommended=id(one) not in called,
            )
        )
    return Weighing(_fields(read, relevant, mine, limits or {}), kinds, tuple(rows), _basis(given))


def _kinds(problem: Presentable, given: Options, wanted: Mapping[int, int]) -> tuple[tuple[Kind, ...], Indices]:
    """Return what few texts tell items apart by, and which of them each item has."""
    known = [dict(labels(problem, one.plan.name)) if isinstance(one.plan, Item) else {} for one in given.alternatives]
    found: list[Kind] = []
    numbers: list[list[int]] = []
    for name in dict.fromkeys(name for one in known for name in one):
        texts = sorted({one.get(name, "") for one in known} - {""}, key=str.lower)
        if 2 <= len(texts) <= MOST_TEXTS and len(found) < MOST_KINDS:
            choice = wanted.get(len(found))
            found.append(Kind(name, tuple(texts), choice if choice is not None and choice < len(texts) else None))
            numbers.append([texts.index(one[name]) if one.get(name) else -1 for one in known])
    made: Indices = np.array(numbers, dtype=np.int64).reshape(len(found), len(known)).T
    return tuple(found), made


def _fields(
    problem: Presentable, relevant: list[int], weights: Vector, limits: Mapping[int, float]
) -> tuple[Field, ...]:
    largest = float(weights.max(initial=0.0)) or 1.0
    found = []
    for j, weight in zip(relevant, weights.tolist(), strict=True):
        o = problem.objectives[j]
        word = "at least" if o.goal == "max" else "at most"
        found.append(
            Field(one_line(o.name), round(100 * weight / largest), word, one_line(o.unit), int(o.sign), limits.get(j))
        )
    return tuple(found)


def _basis(given: Options) -> str:
    shown = len(given.alternatives)
    if given.total is None:
        return "Shown are plans that are best for some weights; plans that are nearly the same count as one."
    if given.total > shown:
        return f"Shown are the {shown:,} of {given.total:,} that lose least on average by your answers."
    return ""
