"""What each column of a table holds, and which columns are to be weighed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.model import Objective
from tradeoff.objective import YES_NO
from tradeoff.sources.limits import MOST_KEYS
from tradeoff.sources.messages import option, shortened
from tradeoff.sources.options import parse_objectives
from tradeoff.sources.tables.cells import DATES, Heading, Kind, amount, complaint, kind_of, looks_grouped
from tradeoff.sources.tables.deciding import Undecided
from tradeoff.sources.tables.sheets import Sheet
from tradeoff.sources.tables.words import label_kind, proposed_goal
from tradeoff.sources.tables.written import Written, inferred_mark, units_differ, written

PANDAS_INDEX = "__index_level_"  # a column that pandas adds to Parquet files
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
        more = f" ({count - 1:,} more cells of this column have no number either)" if count > 1 else ""
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


def numeric_columns(columns: Columns, skipped: int | None, notes: list[str]) -> list[Column]:
    """Return the columns that hold numbers, or are meant to, and note what is worth knowing about the others."""
    table = columns.table
    heads = table.headings
    annotated = any(head.goal is not None and not head.ambiguous for head in heads)
    found: list[int] = []
    empty = False
    for i, head in enumerate(heads):
        if i == skipped:
            continue
        kinds = columns.kinds(i)
        numbers, texts = kinds[Kind.NUMBER] + kinds[Kind.ALMOST], kinds[Kind.TEXT]
        meant = head.declared or numbers > texts or (numbers > 0 and head.doubtful)
        label = _label(columns, i, annotated)
        if meant and not label:
            found.append(i)
        elif label and numbers:
            notes.append(f"the column {shortened(head.text)} is shown, but not weighed: {label}")
        elif not numbers and not texts:
            empty = True
            notes.append(f"the column {shortened(head.text)} is empty{table.advice}")
        else:
            notes += _text_note(head.text, table.columns[i], numbers, texts)
    if not found:
        unread = "".join(f"; {said}" for said in table.unread[:3])
        raise ProblemError(
            f"{table.source} has no column of numbers to weigh; it has {table.found}. An objective is a column of "
            f"numbers, with its unit and direction in the head, such as 'price [EUR] (min)'{unread}"
            f"{table.advice if empty else ''}"
        )
    return [column_of(columns, i) for i in found]


def _label(columns: Columns, index: int, annotated: bool) -> str:
    """Return why a column of numbers is only shown, unless it is asked for; "" if it is to be weighed."""
    head = columns.table.headings[index]
    if head.goal is not None:
        return ""
    if head.text.startswith(PANDAS_INDEX):
        return "it numbers the rows"
    weigh = f"to weigh it, end its head with (min) or (max), or name it in {option('objectives', '...')}"
    kind = None if head.declared else label_kind(head.text)
    if kind is not None:
        return f"its head says that it is {kind}; {weigh}"
    if annotated and not head.declared and columns.written(index) is not None:
        return f"other heads say what is better, and this one does not; {weigh}"
    return ""


def _text_note(head: str, cells: list[object], numbers: int, texts: int) -> list[str]:
    """Return what is noteworthy about a column that is shown, but not weighed."""
    shown = f"the column {shortened(head)} is shown, but not weighed"
    if numbers:
        return [f"{shown}: {numbers:,} of its cells are numbers, {texts:,} are texts"]
    if all(cell is None or isinstance(cell, DATES) for cell in cells):
        return [f"{shown}: it holds dates or times; write numbers, such as counts of days, to weigh it"]
    if units_differ(cells):
        return [f"{shown}: not all of its cells have the same unit; write all of them in one to weigh it"]
    if all(amount(str(cell).strip()[:1]) is not None for cell in cells if kind_of(cell) is not Kind.MISSING):
        return [f"{shown}: it holds texts such as {shortened(cells[0])}; write numbers alone to weigh it"]
    return []
