"""A table of items, as a CSV, TSV, Excel or Parquet file, becomes a catalogue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.model import Matrix, Objective
from tradeoff.problems.catalogue import Catalogue
from tradeoff.sources.limits import MOST_KEYS
from tradeoff.sources.messages import listing, shortened
from tradeoff.sources.options import flag, parse_objectives
from tradeoff.sources.tables.cells import DATES, Kind, amount, decimal_mark, heading, kind_of
from tradeoff.sources.tables.dominance import undominated
from tradeoff.sources.tables.sheets import CHOOSE, Sheet, read_sheet

PANDAS_INDEX = "__index_level_"  # a column that pandas adds to Parquet files


def read_table(
    path: Path,
    *,
    objectives: object = None,
    keep_dominated: object = False,
    name_column: object = None,
    sheet: object = None,
    separator: object = None,
    decimal: object = None,
) -> Catalogue:
    """Return the catalogue of the items in a table; its first row names the columns.

    Columns of numbers, and all with a unit or a direction in their head (``price [EUR] (min)``), are objectives, or those
    that ``objectives`` chooses (``price:min,battery:max``). Other columns are shown beside the items. What another item
    beats in everything is left out unless ``keep_dominated``. ``decimal`` says which mark is the decimal one, if commas occur.
    """
    mark, keeps = decimal_mark(decimal), flag("keep_dominated", keep_dominated)
    table = read_sheet(Path(path), sheet=sheet, separator=separator, leave_out=True)
    _check_rows(table)
    if objectives is None:
        _check_items(table)
        _check_left_out(table)
    notes = [f"{said}, and is left out" for said in table.unread]
    given = None if name_column is None else table.column(str(name_column))
    if objectives is None:
        chosen = _numeric(table, mark, skipped=_called_name(table) if given is None else given, notes=notes)
    else:
        chosen = chosen_columns(table, objectives)
    if given in [column.index for column in chosen]:
        raise ArgumentError(f"the column {name_column!r} cannot be both the name of the items and an objective")
    taken = {column.index for column in chosen}
    at = given if given is not None else _name_column(table, taken, mark, notes)
    names = _names(table, at)
    values = _values(table, chosen, mark)
    aims = [column.objective for column in chosen]
    notes += direction_notes(chosen)
    kept = np.arange(len(table))
    if not keeps:
        kept = np.flatnonzero(undominated(values, aims))
        if len(kept) < len(table):
            notes.append(_dropped(len(table) - len(kept), len(table)))
    labels = {
        table.headings[i].text: [texts[row] for row in kept.tolist()]
        for i in range(len(table.headings))
        if i not in taken and i != at
        for texts in [table.texts(i)]
        if any(texts)
    }
    made = Catalogue(
        values[kept], aims, [names[row] for row in kept.tolist()], labels=labels, name=Path(path).stem, notes=notes
    )  # fmt: skip
    made.beaten = {names[row]: values[row].tolist() for row in np.setdiff1d(np.arange(len(table)), kept).tolist()}
    return made


def _check_rows(table: Sheet) -> None:
    if len(table) < 2:
        found = "one row" if len(table) else "no rows"
        raise ProblemError(f"{table.source} has {found} under its head; a choice needs at least two items")


def _check_items(table: Sheet) -> None:
    """Refuse a table whose rows are the steps of a log or the transitions of a model, which are not choices."""
    heads = {head.name.lower() for head in table.headings}
    if {"episode", "step", "state", "action"} <= heads:
        raise ProblemError(
            f"{table.source} looks like a log of steps; name it log:FILE, or choose columns with objectives=..."
        )
    if {"state", "action", "probability", "next"} <= heads:
        raise ProblemError(
            f"{table.source} looks like the transitions of a problem file; name that file (.toml or .json), or choose "
            "columns with objectives=..."
        )


def _check_left_out(table: Sheet) -> None:
    """Refuse a table where a column that is to be weighed could not be read."""
    for text, said in zip(table.left_out, table.unread, strict=True):
        if heading(text).declared:
            raise ProblemError(f"{table.source}: {said}; write numbers, or {CHOOSE}")


# --- which columns are objectives ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A column that is an objective; ``assumed`` if no direction was given."""

    index: int
    objective: Objective
    assumed: bool


def chosen_columns(table: Sheet, objectives: object) -> list[Column]:
    """Return the columns that ``objectives`` asks for, in that order."""
    units: dict[str, str] = {}
    if isinstance(objectives, Iterable) and not isinstance(objectives, str | Mapping):
        objectives = list(objectives)
        units = {o.name: o.unit for o in objectives if isinstance(o, Objective)}
    found: list[Column] = []
    for name, goal in parse_objectives(objectives).items():
        index = table.column(name)
        if index in [column.index for column in found]:
            raise ArgumentError(f"the column {table.headings[index].text!r} is chosen twice; keep one of them")
        head = table.headings[index]
        found.append(Column(index, head.objective(goal, units.get(name, "")), goal is None and head.goal is None))
    return _distinct(table, found)


def all_columns(table: Sheet, indices: Iterable[int]) -> list[Column]:
    """Return these columns as objectives, as their heads describe them."""
    heads = ((i, table.headings[i]) for i in indices)
    return _distinct(table, [Column(i, head.objective(None), head.goal is None) for i, head in heads])


def _distinct(table: Sheet, columns: list[Column]) -> list[Column]:
    if len(columns) > MOST_KEYS:
        raise ProblemError(f"{table.source} has {len(columns):,} columns of numbers; choose at most {MOST_KEYS:,}")
    seen: dict[str, int] = {}
    for column in columns:
        head = table.headings[column.index]
        if column.assumed and head.doubtful:
            raise ProblemError(
                f"{table.source}: the head {shortened(head.text)} does not say clearly which direction is better; end it "
                f"with (min) or (max), with a unit in square brackets, as in 'price [EUR] (min)', or {CHOOSE}"
            )
        name = column.objective.name
        if name in seen:
            heads = (table.headings[i].text for i in (seen[name], column.index))
            raise ProblemError(
                f"{table.source}: the columns {' and '.join(map(shortened, heads))} are both called {shortened(name)}; "
                "give each a name of its own, or choose one with objectives=..."
            )
        seen[name] = column.index
    return columns


def _numeric(table: Sheet, mark: str | None, skipped: int | None, notes: list[str]) -> list[Column]:
    """Return the columns that hold numbers, or are meant to, and note what else may be worth knowing about the others."""
    found: list[int] = []
    empty = False
    for i, (head, cells) in enumerate(zip(table.headings, table.columns, strict=True)):
        if i == skipped:
            continue
        plain = table.plain(i, mark)
        kinds = Counter(kind_of(cell, mark) for cell in cells) if plain is None else Counter({Kind.NUMBER: len(plain)})
        numbers = kinds[Kind.NUMBER] + kinds[Kind.ALMOST]
        texts = kinds[Kind.TEXT]
        meant = head.declared or numbers > texts or (numbers > 0 and head.doubtful)
        if meant and not head.text.startswith(PANDAS_INDEX):
            found.append(i)
        elif not numbers and not texts:
            empty = True
            notes.append(f"the column {shortened(head.text)} is empty{table.advice}")
        else:
            notes += _text_note(head.text, cells, numbers, texts)
    if not found:
        unread = "".join(f"; {said}" for said in table.unread[:3])
        raise ProblemError(
            f"{table.source} has no column of numbers to weigh; it has {table.found}. An objective is a column of "
            f"numbers, with its unit and direction in the head, such as 'price [EUR] (min)'{unread}"
            f"{table.advice if empty else ''}"
        )
    return all_columns(table, found)


def _text_note(head: str, cells: list[object], numbers: int, texts: int) -> list[str]:
    """Return what is noteworthy about a column that is shown, but not weighed."""
    shown = f"the column {shortened(head)} is shown, but not weighed"
    if head.startswith(PANDAS_INDEX):
        return [f"{shown}: it numbers the rows"]
    if numbers:
        return [f"{shown}: {numbers:,} of its cells are numbers, {texts:,} are texts"]
    if all(cell is None or isinstance(cell, bool) or str(cell).strip().lower() in TRUTHS for cell in cells):
        return [f"{shown}: write 1 and 0 for yes and no to weigh it"]
    if all(cell is None or isinstance(cell, DATES) for cell in cells):
        return [f"{shown}: it holds dates or times; write numbers, such as counts of days, to weigh it"]
    if all(amount(str(cell).strip()[:1]) is not None for cell in cells if kind_of(cell) is not Kind.MISSING):
        return [f"{shown}: it holds texts such as {shortened(cells[0])}; write numbers alone to weigh it"]
    return []


TRUTHS = {"true", "false", "yes", "no", ""}


def direction_notes(columns: Iterable[Column]) -> list[str]:
    """Return a note about the objectives whose direction was assumed."""
    assumed = [column.objective.name for column in columns if column.assumed]
    if not assumed:
        return []
    return [
        f"more is taken to be better for {listing(assumed)}; if less is, say so in the head with (min), or with "
        "objectives=NAME:min"
    ]


def _values(table: Sheet, columns: list[Column], mark: str | None) -> Matrix:
    return np.array([table.numbers(column.index, mark) for column in columns], dtype=float).T


def _dropped(count: int, total: int) -> str:
    return (
        f"{count:,} of {total:,} items were left out, because another one is at least as good in everything and better in "
        "something; keep_dominated=true keeps them"
    )


# --- what the items are called ---------------------------------------------------------------------------------------


def _called_name(table: Sheet) -> int | None:
    called = [i for i, head in enumerate(table.headings) if head.text.lower() == "name"]
    if len(called) > 1:
        raise ProblemError(f"{table.source} has {len(called)} columns called 'name'; choose one with name_column=...")
    return called[0] if called else None


def _name_column(table: Sheet, taken: set[int], mark: str | None, notes: list[str]) -> int | None:
    """Return the column called name, or else the first of texts that all differ; None if there is neither."""
    called = _called_name(table)
    if called is not None and called not in taken:
        return called
    for i, cells in enumerate(table.columns):
        if i in taken or not all(kind_of(cell, mark) is Kind.TEXT for cell in cells):
            continue
        if len({text.strip() for text in table.texts(i)}) == len(cells):
            notes.append(f"items are called what the column {shortened(table.headings[i].text)} says")
            return i
    notes.append("no column has a name for every item; they are called after their rows")
    return None


def _names(table: Sheet, column: int | None) -> list[str]:
    """Return the items' names, or say which is missing or used twice."""
    if column is None:
        return [f"row {row + 1}" for row in range(len(table))]
    names = [text.strip() for text in table.texts(column)]
    if all(names) and len(set(names)) == len(names):
        return names
    seen: dict[str, int] = {}
    for row, name in enumerate(names):
        where = table.location(row, column)
        if not name:
            raise ProblemError(
                f"{where}: the item has no name; give it one, or choose another column with name_column=..."
            )
        if name in seen:
            raise ProblemError(
                f"{where}: the name {shortened(name)} is already used in {table.counted} {table.rows[seen[name]]}; give "
                "every item a name of its own, or choose another column with name_column=..."
            )
        seen[name] = row
    return names
