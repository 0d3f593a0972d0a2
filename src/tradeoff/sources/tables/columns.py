"""What each column of a table holds, and which columns are to be weighed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.model import Objective
from tradeoff.objective import YES_NO
from tradeoff.sources.limits import MOST_KEYS
from tradeoff.sources.messages import listing, option, shortened
from tradeoff.sources.options import parse_objectives
from tradeoff.sources.tables.cells import DATES, Heading, Kind, amount, complaint, kind_of, looks_grouped
from tradeoff.sources.tables.deciding import Undecided
from tradeoff.sources.tables.sheets import Sheet
from tradeoff.sources.tables.words import YEAR, label_kind, proposed_goal
from tradeoff.sources.tables.written import Written, inferred_mark, units_differ, written

PANDAS_INDEX = "__index_level_"  # a column that pandas adds to Parquet files
CALENDAR = range(1500, 2200)
MINUTES = '"(min)" may mean minutes, or that less is better'


@dataclass(frozen=True)
class Column:
    """A column to be weighed; ``open`` says what a person has to decide about its direction."""

    index: int
    name: str  # as options call it
    objective: Objective
    open: Undecided | None = None


@dataclass(frozen=True)
class Amounts:
    """The numbers of a column; None where a cell has none, and what is said about the first such cell."""

    values: list[float | None]
    complaint: str = ""
    doubtful: str = ""  # a cell that can be read in two ways

    @property
    def gaps(self) -> list[int]:
        """The rows without a number."""
        return [row for row, value in enumerate(self.values) if value is None]


class Columns:
    """The columns of a sheet as numbers, where they can be read as such."""

    def __init__(self, table: Sheet, decimal: str | None, notes: list[str]) -> None:
        self.table = table
        self._written: dict[int, Written | None] = {}
        self._counts: dict[int, tuple[int, int]] = {}
        self.mark = decimal
        if decimal is None and any(self._has_commas(i) for i in range(len(table.headings))):
            self.mark, cell = inferred_mark(self.cells(i) for i in range(len(table.headings)))
            if self.mark is not None:
                name = {".": "points", ",": "commas"}[self.mark]
                notes.append(f"{name} are taken to be decimal marks, as in {shortened(cell)}")

    def _has_commas(self, index: int) -> bool:
        if self.table.plain(index, None) is not None:
            return False
        return any(
            isinstance(cell, str) and "," in cell and any(amount(cell, mark) is not None for mark in ".,")
            for cell in self.cells(index)
        )

    def written(self, index: int) -> Written | None:
        """Return a column whose cells are numbers with a sign or a unit, or yes and no."""
        if index not in self._written:
            plain = self.table.plain(index, None) is not None
            self._written[index] = None if plain else written(self.table.columns[index])
        return self._written[index]

    def cells(self, index: int) -> list[object]:
        """Return the cells of a column, numbers without their signs and units."""
        found = self.written(index)
        return self.table.columns[index] if found is None else found.cells

    def kinds(self, index: int) -> Counter[Kind]:
        """Return how many cells of each kind there are."""
        plain = self.table.plain(index, self.mark)
        if plain is not None:
            return Counter({Kind.NUMBER: len(plain)})
        return Counter(kind_of(cell, self.mark) for cell in self.cells(index))

    def counts(self, index: int) -> tuple[int, int]:
        """Return how many cells hold numbers, or what was meant to be one, and how many hold texts."""
        if index not in self._counts:
            kinds = self.kinds(index)
            self._counts[index] = kinds[Kind.NUMBER] + kinds[Kind.ALMOST], kinds[Kind.TEXT]
        return self._counts[index]

    def are_years(self, index: int) -> bool:
        """Return whether all numbers of a column may be calendar years: whole, without a unit, from 1500 to 2199."""
        values = [amount(cell, self.mark) for cell in self.table.columns[index] if kind_of(cell) is not Kind.MISSING]
        return all(value is not None and value in CALENDAR for value in values)

    def amounts(self, index: int) -> Amounts:
        """Return the numbers of a column, and what is wrong with it."""
        plain = self.table.plain(index, self.mark)
        if plain is not None and not (self.table.separator == ";" and self.mark is None):
            return Amounts(list(plain))
        cells, original = self.cells(index), self.table.columns[index]
        values = [amount(cell, self.mark) for cell in cells]
        for row, cell in enumerate(cells):
            if values[row] is not None or not isinstance(cell, str) or kind_of(cell, self.mark) is not Kind.ALMOST:
                continue
            point, comma = amount(cell, "."), amount(cell, ",")
            if self.mark is None and point is not None and point == comma:
                values[row] = point  # 1 299: the same with either mark
            elif self.mark is None and (point is not None or comma is not None):
                return Amounts(values, self._said(index, row, cell), shortened(original[row]))
        if self.table.separator == ";" and self.mark is None:
            # Where semicolons separate cells, commas are probably decimal marks, and points may separate thousands.
            pointed = [row for row, cell in enumerate(cells) if isinstance(cell, str) and "." in cell]
            if pointed and all(looks_grouped(cells[row]) for row in pointed):
                found = shortened(original[pointed[0]])
                said = (
                    f"{self.table.location(pointed[0], index)}: {found} can be read in several ways where semicolons separate "
                    f"cells; say which mark is the decimal one with {option('decimal', '.')} or {option('decimal', ',')}"
                )
                return Amounts(values, said, found)
        gaps = [row for row, value in enumerate(values) if value is None]
        return Amounts(values, self._said(index, gaps[0], original[gaps[0]], len(gaps)) if gaps else "")

    def _said(self, index: int, row: int, cell: object, count: int = 1) -> str:
        others = "cell of this column has" if count == 2 else "cells of this column have"
        more = f" ({count - 1:,} more {others} no number either)" if count > 1 else ""
        hint = self.table.hint(index, cell)
        return f"{self.table.location(row, index)}: {complaint(cell, self.mark)}{hint}{more}"


# --- which columns are weighed ----------------------------------------------------------------------------------------


def chosen_columns(columns: Columns, objectives: object) -> list[Column]:
    """Return the columns that ``objectives`` asks for, in that order."""
    table = columns.table
    units: dict[str, str] = {}
    if isinstance(objectives, Iterable) and not isinstance(objectives, str | Mapping):
        objectives = list(objectives)
        units = {o.name: o.unit for o in objectives if isinstance(o, Objective)}
    found: list[Column] = []
    for name, goal in parse_objectives(objectives).items():
        index = table.column(name)
        if index in [column.index for column in found]:
            raise ArgumentError(f"the column {table.headings[index].text!r} is chosen twice; keep one of them")
        found.append(column_of(columns, index, goal, units.get(name, "")))
    return found


def column_of(columns: Columns, index: int, goal: Literal["max", "min"] | None = None, unit: str = "") -> Column:
    """Return a column to be weighed; its direction is open unless it is given or its head says it in one meaning only."""
    head, found = columns.table.headings[index], columns.written(index)
    objective = head.objective(goal, unit)
    if not objective.unit and found is not None:
        objective = replace(objective, unit=found.unit)
    name = head.name if [h.name for h in columns.table.headings].count(head.name) == 1 else head.text
    if goal is not None or (head.goal is not None and not head.ambiguous):
        return Column(index, name, objective)
    return Column(index, name, objective, _open(columns, index, name, head, objective))


def _open(columns: Columns, index: int, name: str, head: Heading, objective: Objective) -> Undecided:
    values = [value for value in columns.amounts(index).values if value is not None]
    found = ""
    if objective.unit == YES_NO:
        found = "yes or no"
    elif values:
        found = f"{objective.text(min(values))} to {objective.text(max(values))}"
    why = MINUTES if head.ambiguous else ""
    proposed = "max" if objective.unit == YES_NO else proposed_goal(head.name if head.ambiguous else head.text)
    return Undecided("direction", name, found, proposed, why)


def clashes(table: Sheet, columns: list[Column]) -> list[str]:
    """Return what is wrong with these columns together."""
    if len(columns) > MOST_KEYS:
        raise ProblemError(f"{table.source} has {len(columns):,} columns of numbers; choose at most {MOST_KEYS:,}")
    seen: dict[str, int] = {}
    said = []
    for column in columns:
        name = column.objective.name
        if name in seen:
            heads = (table.headings[i].text for i in (seen[name], column.index))
            said.append(
                f"{table.source}: the columns {' and '.join(map(shortened, heads))} are both called {shortened(name)}; "
                f"give each a name of its own, or choose one with {option('objectives', f'{name}:min')}"
            )
        seen[name] = column.index
    return said


def numeric_columns(columns: Columns, skipped: int | None) -> list[Column]:
    """Return the columns that hold numbers, or are meant to, and are not labels."""
    table = columns.table
    found = []
    for i, head in enumerate(table.headings):
        numbers, texts = columns.counts(i)
        meant = head.declared or numbers > texts or (numbers > 0 and head.doubtful)
        if i != skipped and meant and not _label(columns, i):
            found.append(column_of(columns, i))
    if not found:
        unread = "".join(f"; {said}" for said in table.unread[:3])
        empty = any(columns.counts(i) == (0, 0) for i in range(len(table.headings)) if i != skipped)
        raise ProblemError(
            f"{table.source} has no column of numbers to weigh; it has {table.found}. An objective is a column of "
            f"numbers, with its unit and direction in the head, such as 'price [EUR] (min)'{unread}"
            f"{table.advice if empty else ''}"
        )
    return found


def _label(columns: Columns, index: int) -> str:
    """Return why a column of numbers is only shown, unless it is asked for; "" if it is to be weighed."""
    heads = columns.table.headings
    head = heads[index]
    if head.goal is not None:
        return ""
    if head.text.startswith(PANDAS_INDEX):
        return "it numbers the rows"
    weigh = f"to weigh it, end its head with (min) or (max), or name it in {option('objectives', '...')}"
    kind = None if head.declared else label_kind(head.text)
    if kind == YEAR and not columns.are_years(index):
        kind = None
    if kind is not None:
        return f"its head says that it is {kind}; {weigh}"
    annotated = any(head.goal is not None and not head.ambiguous for head in heads)
    if annotated and not head.declared and columns.written(index) is not None:
        return f"other heads say what is better, and this one does not; {weigh}"
    return ""


# --- which columns are not weighed ------------------------------------------------------------------------------------

NOT_CHOSEN = "not chosen as objectives"
TEXTS = "texts, not numbers"


def unused_columns(columns: Columns, used: Container[int], chosen: bool) -> dict[str, str]:
    """Return why each column is not weighed, by its head; ``used`` are those that are weighed or name the options."""
    heads = columns.table.headings
    return {head.text: _why_unused(columns, i, chosen) for i, head in enumerate(heads) if i not in used}


def _why_unused(columns: Columns, index: int, chosen: bool) -> str:
    cells = columns.table.columns[index]
    numbers, texts = columns.counts(index)
    if not numbers and not texts:
        return f"it is empty{columns.table.advice}"
    if chosen and numbers > texts:
        return NOT_CHOSEN
    if numbers and (label := _label(columns, index)):
        return label
    if numbers:
        other = next(cell for cell in columns.cells(index) if kind_of(cell, columns.mark) is Kind.TEXT)
        return f"{numbers:,} of {len(cells):,} cells can be read as numbers, {shortened(other)} cannot"
    if all(cell is None or isinstance(cell, DATES) for cell in cells):
        return "it holds dates or times; write numbers, such as counts of days, to weigh it"
    held = [cell for cell in cells if kind_of(cell) is not Kind.MISSING]
    if units_differ(cells):
        examples = listing(dict.fromkeys(held), 2)
        return f"not all of its cells have the same unit ({examples}); write all of them in one to weigh it"
    if all(amount(str(cell).strip()[:1]) is not None for cell in held):
        return f"it holds texts such as {shortened(held[0])}; write numbers alone to weigh it"
    return TEXTS


def unused_notes(unused: Mapping[str, str]) -> list[str]:
    """Return which columns are not weighed, and why, in sentences.

    >>> unused_notes({"colour": "texts, not numbers", "brand": "texts, not numbers"})
    ["the columns 'colour', 'brand' are not weighed: texts, not numbers"]
    """
    alike = {reason: [head for head in unused if unused[head] == reason] for reason in (NOT_CHOSEN, TEXTS)}
    groups = [([head], reason) for head, reason in unused.items() if reason not in alike]
    groups += [(heads, reason) for reason, heads in alike.items() if heads]
    return [
        f"the {'column' if len(heads) == 1 else 'columns'} {', '.join(map(shortened, heads))} "
        f"{'is' if len(heads) == 1 else 'are'} not weighed: {reason}"
        for heads, reason in groups
    ]
