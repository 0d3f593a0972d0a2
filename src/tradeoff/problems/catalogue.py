"""A catalogue: choose one of n items, each with k attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.model import (
    Details,
    Indices,
    Item,
    Matrix,
    Objective,
    Option,
    Plan,
    Reference,
    Vector,
    frozen_array,
)
from tradeoff.problem import (
    GainScale,
    check_distinct,
    fingerprint_of,
    gains_at,
    objectives_from,
    unit_rows,
    weight_rows,
)
from tradeoff.problems.choice import SingleChoice
from tradeoff.problems.dominance import undominated
from tradeoff.problems.selection import winners

MOST_NAMED = 20  # items in a note


def some(names: Iterable[str]) -> str:
    """Return names for a note; of many, the first and how many more there are.

    >>> some(["Alto", "Brio"])
    "'Alto', 'Brio'"
    """
    every = list(names)
    count = len(every) if len(every) <= MOST_NAMED + 1 else MOST_NAMED
    shown = [repr(name if len(name) <= 60 else f"{name[:57]}...") for name in every[:count]]
    return ", ".join([*shown, f"and {len(every) - count:,} more"] if count < len(every) else shown)


class Catalogue(SingleChoice):
    """A choice among items described by numbers.

    >>> laptops = Catalogue([[1200, 9], [700, 5], [900, 8]], names=["Alto", "Brio", "Cara"],
    ...                     objectives=[Objective("price", "EUR", "min"), Objective("battery", "h")])
    >>> [laptops.names[a.plan.index] for a in laptops.best([[1, 0], [0, 1], [1, 1]])]
    ['Brio', 'Alto', 'Cara']
    """

    kind = "catalogue"
    storable = True
    limiter = "tradeoff.problems.limited_items.limited"
    whole: Catalogue | None = None  # with the items that were left out because others beat them

    def __init__(
        self,
        values: ArrayLike,
        objectives: Sequence[Objective | str] | None = None,
        names: Sequence[str] | None = None,
        *,
        labels: Mapping[str, Sequence[str]] | None = None,
        reference: Reference | None = None,
        name: str = "catalogue",
        title: str = "",
        about: str = "",
        noun: str = "",
        notes: Sequence[str] = (),
    ) -> None:
        """``values[n, k]`` are in the person's units; ``labels`` are texts shown beside the items.

        ``noun`` is what one item is called ("flat"); ``notes`` say what was assumed or left out when the catalogue was created.
        """
        try:
            table = np.asarray(values, dtype=float)
        except (TypeError, ValueError) as error:
            raise ProblemError(f"the values of a catalogue must be rows of numbers of equal length: {error}") from None
        if table.ndim != 2 or 0 in table.shape:
            raise ProblemError(
                f"a catalogue needs a table of numbers [items, objectives] with at least one of each, "
                f"but an array of shape {table.shape} was given"
            )
        self.values = frozen_array(table)
        self.objectives = objectives_from(objectives, table.shape[1])
        given = (f"item {i + 1}" for i in range(len(table))) if names is None else names
        self.names = tuple(str(name) for name in given)
        if len(self.names) != len(table):
            raise ProblemError(f"{len(self.names)} names are given for {len(table)} items; name each item")
        check_distinct("item", self.names)
        bad = np.argwhere(~np.isfinite(table))
        if len(bad):
            item, column = bad[0]
            raise ProblemError(
                f"{self.objectives[column].name} of item {self.names[item]!r} is {table[item, column]}; "
                "every attribute must be a finite number: correct it or leave the item out"
            )
        self.labels = {key: tuple(texts) for key, texts in (labels or {}).items()}
        for key, texts in self.labels.items():
            if len(texts) != len(table):
                raise ProblemError(f"the label {key!r} has {len(texts)} texts for {len(table)} items; give one to each")
        self.reference = reference or Reference()
        self.reference.check(self.objectives)
        self.name, self.title, self.about, self.noun = name, title or name, about, noun
        self.notes = tuple(notes)

    @classmethod
    def from_frame(cls, frame: Any, **options: Any) -> Catalogue:
        """Return the catalogue of the rows of a pandas or polars data frame.

        ``options`` are those of a table: ``objectives={"price": "min", "battery": "max"}``, ``name_column``, ``gaps``, ...
        """
        # Sources are built on problems, so this is looked up when it is called.
        found: Catalogue = import_module("tradeoff.sources.tables.frames").from_frame(frame, **options)
        return found

    def curved(self, shape: str = "concave") -> Catalogue:
        """Return the catalogue with every objective in a few pieces, so that curves are learned ("concave", "monotone:4")."""
        found: Catalogue = import_module("tradeoff.problems.curves").curved(self, shape)
        return found

    def subset(self, items: Indices) -> Catalogue:
        """Return the catalogue of some of the items, by number."""
        labels = {key: [texts[i] for i in items.tolist()] for key, texts in self.labels.items()}
        return Catalogue(
            self.values[items], self.objectives, [self.names[i] for i in items.tolist()], labels=labels,
            reference=self.reference, name=self.name, title=self.title, about=self.about, noun=self.noun,
            notes=self.notes,
        )  # fmt: skip

    def without_beaten(self, advice: str = "") -> Catalogue:
        """Return the catalogue without the items that another one beats; ``whole`` keeps them, and a note names them."""
        kept = undominated(self.values, self.objectives)
        if kept.all():
            return self
        made = self.subset(np.flatnonzero(kept))
        made.whole = self
        names = some(self.names[i] for i in np.flatnonzero(~kept).tolist())
        why = "another one is at least as good in everything that is weighed and better in something"
        made.notes = (*self.notes, f"left out, because {why}: {names}{advice}")
        return made

    def __repr__(self) -> str:
        return f"<Catalogue {self.name!r}: {len(self.names)} items, {len(self.objectives)} objectives>"

    @cached_property
    def gain_scale(self) -> GainScale:
        """The reference and the scale of each gain."""
        return GainScale(self.objectives, self.values.min(axis=0), self.values.max(axis=0), self.reference)

    @cached_property
    def gains(self) -> Matrix:
        """The items' values as gains over the reference, read-only."""
        return frozen_array(self.gain_scale.gains(self.values))

    @cached_property
    def fingerprint(self) -> str:
        """A string that identifies this catalogue."""
        outcome = self.reference.outcome and sorted(self.reference.outcome.items())
        return fingerprint_of("catalogue", self.objectives, self.names, self.values, outcome)

    @property
    def extent(self) -> Mapping[str, int]:
        """The number of items."""
        return {"items": len(self.names)}

    def best(self, weights: ArrayLike) -> list[Option]:
        """Return the best item for each row of weights; the largest total gain breaks ties, so none is dominated."""
        rows = unit_rows(weight_rows(weights, self.objectives))
        return [self._item(i) for i in winners(rows, self.gains, self._totals).tolist()]

    @cached_property
    def _totals(self) -> Vector:
        """The total gain of each item, which breaks ties."""
        totals: Vector = self.gains.sum(axis=1)
        return totals

    def option(self, item: int | str) -> Option:
        """Return an item, given by number or name, as an option."""
        if isinstance(item, str):
            if item not in self._numbers:
                raise ArgumentError(f"there is no item {item!r} in the catalogue {self.name!r}")
            item = self._numbers[item]
        self._check_number(item)
        return self._item(item)

    def _item(self, number: int) -> Option:
        """Return an item as an option, always the same object, since thousands of directions share a best item."""
        found = self._made.get(number)
        if found is None:
            found = self._made[number] = Option(self.gains[number], Item(number, self.names[number]))
        return found

    @cached_property
    def _made(self) -> dict[int, Option]:
        return {}

    def _check_number(self, item: int) -> None:
        if not 0 <= item < len(self.names):
            raise ArgumentError(f"there is no item number {item}; the catalogue {self.name!r} has {len(self.names)}")

    @cached_property
    def beaten(self) -> Mapping[str, Sequence[float]]:
        """What the items come to that were left out because others beat them, by name: people ask why they are not there."""
        if self.whole is None:
            return {}
        rows = zip(self.whole.names, self.whole.values.tolist(), strict=True)
        return {name: row for name, row in rows if name not in self._numbers}

    def left_out(self, name: str) -> Option:
        """Return an item of ``beaten`` as an option; its gains may be below 0."""
        return Option(gains_at(self, np.asarray(self.beaten[name])), Item(-1, name))

    @property
    def items(self) -> Catalogue:
        """The items that can be chosen."""
        return self

    def details(self, plan: Plan) -> Details:
        """Return the labels of an item."""
        return Details(labels=self.labels_of(plan.name)) if isinstance(plan, Item) else Details()

    def labels_of(self, name: str) -> dict[str, str]:
        """Return the texts to show beside the item of this name; empty if there is no such item."""
        number = self._numbers.get(name)
        return {} if number is None else {key: texts[number] for key, texts in self.labels.items()}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def worse_than(self, option: Option) -> Option | None:
        """Return, of the items that this option beats in every objective, the one with the median total gain."""
        worse = np.all(self.gains <= option.value, axis=1) & np.any(self.gains < option.value, axis=1)
        items = np.flatnonzero(worse)
        order = items[np.argsort(self._totals[items], kind="stable")]
        return self.option(int(order[len(order) // 2])) if len(order) else None

    def outcome_of(self, item: Item) -> Vector:
        """Return the values of an item, in the person's units."""
        self._check_number(item.index)
        values: Vector = self.values[item.index]
        return values

    def evaluate(self, plan: Plan | int | str) -> Vector:
        """Return the expected gains of an item (or its number or name), of the reference, or of a mixture of them."""
        return self.option(plan).value if isinstance(plan, int | str) else super().evaluate(plan)
