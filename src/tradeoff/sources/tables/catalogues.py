"""A table of items, as a CSV, TSV, Excel or Parquet file or a data frame, becomes a catalogue."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.model import Indices, Matrix
from tradeoff.problems.catalogue import Catalogue
from tradeoff.problems.dominance import undominated
from tradeoff.sources.messages import listing, option, shortened
from tradeoff.sources.options import flag
from tradeoff.sources.tables.cells import Kind, decimal_mark, heading, kind_of
from tradeoff.sources.tables.columns import Amounts, Column, Columns, chosen_columns, clashes, numeric_columns
from tradeoff.sources.tables.deciding import GapRule, Undecided, refuse
from tradeoff.sources.tables.sheets import Sheet, choose, read_sheet
from tradeoff.sources.tables.words import IDENTIFIERS, label_kind


def read_table(
    path: Path,
    *,
    objectives: object = None,
    keep_dominated: object = False,
    name_column: object = None,
    sheet: object = None,
    separator: object = None,
    header: object = None,
    decimal: object = None,
    gaps: object = None,
) -> Catalogue:
    """Return the catalogue of the items in a table; its first row, below any titles, names the columns.

    Columns of numbers are objectives, or those that ``objectives`` chooses (``price:min,battery:max``). Whether less or
    more is better must be said there or in the head (``price [EUR] (min)``). Other columns are shown beside the items.
    ``gaps`` says what happens where a number is missing: "drop" leaves the row out, "label" only shows the column. What
    another item beats in everything is left out unless ``keep_dominated``. ``decimal`` is the decimal mark.
    """
    table = read_sheet(Path(path), sheet=sheet, separator=separator, header=header, leave_out=True)
    return catalogue_of(
        table, Path(path).stem, objectives=objectives, keep_dominated=keep_dominated, name_column=name_column,
        decimal=decimal, gaps=gaps,
    )  # fmt: skip


def catalogue_of(
    table: Sheet,
    name: str,
    *,
    objectives: object = None,
    keep_dominated: object = False,
    name_column: object = None,
    decimal: object = None,
    gaps: object = None,
) -> Catalogue:
    """Return the catalogue of the items in a sheet; see ``read_table``."""
    mark, keeps, rule = decimal_mark(decimal), flag("keep_dominated", keep_dominated), GapRule(gaps)
    _check_rows(table)
    if objectives is None:
        _check_items(table)
        _check_left_out(table)
    notes = [*table.notes, *(f"{said}, and is left out" for said in table.unread)]
    columns = Columns(table, mark, notes)
    given = None if name_column is None else table.column(str(name_column))
    if objectives is None:
        chosen = numeric_columns(columns, skipped=_called_name(table) if given is None else given, notes=notes)
    else:
        chosen = chosen_columns(columns, objectives)
    if given in [column.index for column in chosen]:
        raise ArgumentError(f"the column {name_column!r} cannot be both the name of the items and an objective")
    others = clashes(table, chosen)
    chosen, amounts, rows = _settled(columns, chosen, rule, others, notes)
    taken = {column.index for column in chosen}
    at = given if given is not None else _name_column(table, taken, columns.mark, notes)
    names = _names(table, at, rows)
    values: Matrix = np.array([[found.values[row] for row in rows] for found in amounts], dtype=float).T
    aims = [column.objective for column in chosen]
    labels = {
        table.headings[i].text: [texts[row] for row in rows]
        for i in range(len(table.headings))
        if i not in taken and i != at
        for texts in [table.texts(i)]
        if any(texts)
    }
    whole = Catalogue(values, aims, names, labels=labels, name=name, notes=notes)
    kept: Indices = np.arange(len(rows)) if keeps else np.flatnonzero(undominated(values, aims))
    if len(kept) == len(rows):
        return whole
    whole.notes = tuple(notes)
    made = whole.subset(kept)
    made.whole, made.notes = whole, (*notes, _dropped(len(rows) - len(kept), len(rows)))
    return made


def _settled(
    columns: Columns, chosen: list[Column], rule: GapRule, others: list[str], notes: list[str]
) -> tuple[list[Column], list[Amounts], list[int]]:
    """Return the columns to be weighed, their numbers and the rows that have them all, or ask for what is open."""
    table = columns.table
    undecided = [column.open for column in chosen if column.open is not None]
    complaints: list[str] = []
    kept: list[tuple[Column, Amounts]] = []
    left_out: dict[int, list[str]] = {}  # rows, and what they lack
    for column in chosen:
        found = columns.amounts(column.index)
        what = rule.of(column.name, table.headings[column.index].text)
        if found.doubtful:
            if not any(one.topic == "decimal" for one in undecided):
                undecided.append(Undecided("decimal", column.name, found.doubtful))
            complaints.append(f"{found.complaint}, or {choose()}")
        elif found.gaps and what is None:
            undecided.append(Undecided("gaps", column.name, f"{len(found.gaps):,} of {len(table):,} rows"))
            complaints.append(_gap_words(found.complaint))
        elif found.gaps and what == "label":
            notes.append(f"the column {shortened(column.name)} is shown, but not weighed: it has gaps")
            undecided = [one for one in undecided if one is not column.open]
            continue
        elif found.gaps:
            for row in found.gaps:
                left_out.setdefault(row, []).append(column.name)
        kept.append((column, found))
    goals = [(column.name, None if column.open is not None else column.objective.goal) for column, _ in kept]
    refuse(table.source, undecided, goals, complaints, others)
    rows = [row for row in range(len(table)) if row not in left_out]
    if left_out:
        lacking = list(dict.fromkeys(name for names in left_out.values() for name in names))
        notes.append(
            f"{len(left_out):,} of {len(table):,} rows were left out, because they have no number for {listing(lacking)}"
        )
    if not kept or len(rows) < 2:
        raise ProblemError(
            f"{table.source} has {len(rows)} rows and {len(kept)} columns of numbers without gaps; a choice needs two items "
            "and an objective: fill cells in, or treat the gaps in another way"
        )
    return [column for column, _ in kept], [found for _, found in kept], rows


def _gap_words(said: str) -> str:
    drop, label = option("gaps", "drop"), option("gaps", "label")
    return f"{said}; {drop} leaves such rows out, {label} only shows the column; or {choose()}"


def _check_rows(table: Sheet) -> None:
    if len(table) < 2:
        found = "one row" if len(table) else "no rows"
        raise ProblemError(f"{table.source} has {found} under its head; a choice needs at least two items")


def _check_items(table: Sheet) -> None:
    """Refuse a table whose rows are the steps of a log or the transitions of a model, which are not choices."""
    heads = {head.name.lower() for head in table.headings}
    chosen = f"choose columns with {option('objectives', '...')}"
    if {"episode", "step", "state", "action"} <= heads:
        raise ProblemError(f"{table.source} looks like a log of steps; name it log:FILE, or {chosen}")
    if {"state", "action", "probability", "next"} <= heads:
        raise ProblemError(
            f"{table.source} looks like the transitions of a problem file; name that file (.toml or .json), or {chosen}"
        )


def _check_left_out(table: Sheet) -> None:
    """Refuse a table where a column that is to be weighed could not be read."""
    for text, said in zip(table.left_out, table.unread, strict=True):
        if heading(text).declared:
            raise ProblemError(f"{table.source}: {said}; write numbers, or {choose()}")


def _dropped(count: int, total: int) -> str:
    return (
        f"{count:,} of {total:,} items were left out, because another one is at least as good in everything and better in "
        f"something; {option('keep_dominated', 'true')} keeps them"
    )


# --- what the items are called ---------------------------------------------------------------------------------------


def _called_name(table: Sheet) -> int | None:
    called = [i for i, head in enumerate(table.headings) if head.text.lower() == "name"]
    if len(called) > 1:
        raise ProblemError(
            f"{table.source} has {len(called)} columns called 'name'; choose one with {option('name_column', '...')}"
        )
    return called[0] if called else None


def _name_column(table: Sheet, taken: set[int], mark: str | None, notes: list[str]) -> int | None:
    """Return the column called name, or else the first of texts that all differ, or else of identifiers that do."""
    called = _called_name(table)
    if called is not None and called not in taken:
        return called
    for kinds in ((Kind.TEXT,), (Kind.NUMBER, Kind.TEXT)):
        for i, cells in enumerate(table.columns):
            if i in taken or not all(kind_of(cell, mark) in kinds for cell in cells):
                continue
            if Kind.NUMBER in kinds and label_kind(table.headings[i].text) not in IDENTIFIERS:
                continue
            if len({text.strip() for text in table.texts(i)}) == len(cells):
                notes.append(f"items are called what the column {shortened(table.headings[i].text)} says")
                return i
    notes.append("no column has a name for every item; they are called after their rows")
    return None


def _names(table: Sheet, column: int | None, rows: list[int]) -> list[str]:
    """Return the items' names, or say which is missing or used twice."""
    if column is None:
        return [f"row {row + 1}" for row in rows]
    texts = table.texts(column)
    names = [texts[row].strip() for row in rows]
    if all(names) and len(set(names)) == len(names):
        return names
    seen: dict[str, int] = {}
    for row, name in zip(rows, names, strict=True):
        where, another = table.location(row, column), f"choose another column with {option('name_column', '...')}"
        if not name:
            raise ProblemError(f"{where}: the item has no name; give it one, or {another}")
        if name in seen:
            raise ProblemError(
                f"{where}: the name {shortened(name)} is already used in {table.counted} {table.rows[seen[name]]}; give "
                f"every item a name of its own, or {another}"
            )
        seen[name] = row
    return names
