"""A table of items, as a CSV, TSV, Excel or Parquet file or a data frame, becomes a catalogue."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.model import Matrix
from tradeoff.problems.catalogue import Catalogue, some
from tradeoff.sources.messages import listing, option, shortened
from tradeoff.sources.options import flag
from tradeoff.sources.tables.cells import Kind, decimal_mark, heading, kind_of
from tradeoff.sources.tables.columns import (
    Amounts,
    Column,
    Columns,
    chosen_columns,
    clashes,
    numeric_columns,
    unused_columns,
    unused_notes,
)
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
        chosen = numeric_columns(columns, skipped=_called_name(table) if given is None else given)
    else:
        chosen = chosen_columns(columns, objectives)
    if given in [column.index for column in chosen]:
        raise ArgumentError(f"the column {name_column!r} cannot be both the name of the items and an objective")
    others = clashes(table, chosen)
    taken = {column.index for column in chosen}
    at = given if given is not None else _name_column(table, taken, columns.mark, notes)
    unused = unused_columns(columns, {*taken} if at is None else {*taken, at}, chosen=objectives is not None)
    chosen, amounts, left_out = _settled(columns, chosen, rule, others, unused, at)
    taken = {column.index for column in chosen}
    rows = [row for row in range(len(table)) if row not in left_out]
    every = _names(table, at, rows, notes)
    names = [every[row] for row in rows]
    notes += [*unused_notes(unused), *_gap_notes(left_out, every)]
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
    return whole if keeps else whole.without_beaten(f"; {option('keep_dominated', 'true')} keeps them")


def _settled(
    columns: Columns, chosen: list[Column], rule: GapRule, others: list[str], unused: dict[str, str], at: int | None
) -> tuple[list[Column], list[Amounts], dict[int, list[str]]]:
    """Return the columns to be weighed, their numbers and what each row lacks that is left out, or ask for what is open.

    Columns that are not weighed because of their gaps are added to ``unused``.
    """
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
            unused[table.headings[column.index].text] = "it has gaps"
            undecided = [one for one in undecided if one is not column.open]
            continue
        elif found.gaps:
            for row in found.gaps:
                left_out.setdefault(row, []).append(column.name)
        kept.append((column, found))
    goals = [(column.name, None if column.open is not None else column.objective.goal) for column, _ in kept]
    named = {} if at is None else {table.headings[at].text: "it names the rows"}
    unread = {text: f"it holds {held}" for text, held in table.left_out.items()}
    said = [*unused_notes(unused), *table.unread]
    refuse(table.source, undecided, goals, complaints, others, named | unused | unread, said)
    count = len(table) - len(left_out)
    if not kept or count < 2:
        raise ProblemError(
            f"{table.source}: rows without gaps: {count}; columns of numbers without gaps: {len(kept)}. A choice needs two "
            "rows and one column: fill cells in, or treat the gaps in another way"
        )
    return [column for column, _ in kept], [found for _, found in kept], left_out


def _gap_notes(left_out: Mapping[int, list[str]], names: Sequence[str]) -> list[str]:
    """Return which rows are left out, by what they lack."""
    found: dict[str, list[str]] = {}
    for row, lacking in left_out.items():
        found.setdefault(listing(lacking), []).append(names[row])
    return [f"left out, because there is no number for {lacking}: {some(rows)}" for lacking, rows in found.items()]


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


# --- what the items are called ---------------------------------------------------------------------------------------


def _called_name(table: Sheet) -> int | None:
    called = [i for i, head in enumerate(table.headings) if head.text.lower() == "name"]
    if len(called) > 1:
        raise ProblemError(
            f"{table.source} has {len(called)} columns called 'name'; choose one with {option('name_column', '...')}"
        )
    return called[0] if called else None


def _name_column(table: Sheet, taken: set[int], mark: str | None, notes: list[str]) -> int | None:
    """Return the column called name, or else the first of texts that all differ, or else of identifiers that do.

    A first column in which a few names come twice is preferred to texts that begin with digits, such as durations.
    """
    called = _called_name(table)
    if called is not None and called not in taken:
        return called
    free = [i for i in range(len(table.headings)) if i not in taken]

    @cache
    def kinds(i: int) -> set[Kind]:
        return {kind_of(cell, mark) for cell in table.columns[i]}

    @cache
    def share(i: int) -> float:  # of texts that differ
        return len({text.strip() for text in table.texts(i)}) / len(table)

    def worded(i: int) -> bool:
        return kinds(i) == {Kind.TEXT} and not all(text.strip()[0].isdigit() for text in table.texts(i))

    def identifies(i: int) -> bool:
        return label_kind(table.headings[i].text) in IDENTIFIERS and kinds(i) <= {Kind.NUMBER, Kind.TEXT}

    candidates = itertools.chain(
        (i for i in free if share(i) == 1 and worded(i)),
        (i for i in free[:1] if i == 0 and share(i) > 0.5 and worded(i)),
        (i for i in free if share(i) == 1 and kinds(i) == {Kind.TEXT}),
        (i for i in free if share(i) == 1 and identifies(i)),
    )
    if (found := next(candidates, None)) is not None:
        notes.append(f"items are called what the column {shortened(table.headings[found].text)} says")
        return found
    notes.append("no column has a name for every item; they are called after their rows")
    return None


def _names(table: Sheet, column: int | None, rows: Sequence[int], notes: list[str]) -> list[str]:
    """Return the name of every row; where several have the same, they are numbered. ``rows`` must not lack one."""
    numbers = [f"row {row + 1}" for row in range(len(table))]
    if column is None:
        return numbers
    names = [text.strip() for text in table.texts(column)]
    for row in rows:
        if not names[row]:
            raise ProblemError(
                f"{table.location(row, column)}: the item has no name; give it one, or choose another column with "
                f"{option('name_column', '...')}"
            )
    used = set(names)
    for name, count in Counter(names).items():
        if not name or count == 1:
            continue
        new = (f"{name} ({number})" for number in itertools.count(1))
        same = [row for row, other in enumerate(names) if other == name]
        for row in same:
            names[row] = next(one for one in new if one not in used)
        notes.append(
            f"{count:,} items are called {shortened(name)}; they are numbered: {some(names[row] for row in same)}"
        )
    return [name or number for name, number in zip(names, numbers, strict=True)]
