"""Comparisons that were made elsewhere: a table with the columns ``better`` and ``worse``, and perhaps ``equal``."""

from __future__ import annotations

from pathlib import Path

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.knowledge import compared
from tradeoff.menus import Statement
from tradeoff.problem import Problem
from tradeoff.sources.messages import shortened
from tradeoff.sources.tables.cells import text_of
from tradeoff.sources.tables.sheets import Sheet, read_sheet
from tradeoff.sources.tables.written import truth

BETTER, WORSE, EQUAL = "better", "worse", "equal"
MOST_COMPLAINTS = 8
MOST_COMPARISONS = 1_000


def imported_comparisons(problem: Problem, path: str | Path) -> list[Statement]:
    """Return what a table says about the items of a catalogue, row by row, as statements for ``Interview.know``.

    ``better`` and ``worse`` name items. Where ``equal`` is yes (or 1), the two are about equal, in whatever order.
    """
    table = read_sheet(Path(path))
    first, second = (table.texts(table.column(name)) for name in (BETTER, WORSE))
    same = _equal(table)
    if not 0 < len(table) <= MOST_COMPARISONS:
        raise ProblemError(f"{path} has {len(table):,} comparisons; give from 1 to {MOST_COMPARISONS:,}")
    found: list[Statement] = []
    wrong: list[str] = []
    for row, (better, worse) in enumerate(zip(first, second, strict=True)):
        try:
            found.append(compared(problem, better.strip(), worse.strip(), equal=same[row]))
        except ArgumentError as error:
            wrong.append(f"{table.location(row)}: {error}")
    if wrong:
        more = len(wrong) - MOST_COMPLAINTS
        rest = f"; and {more:,} more" if more > 0 else ""
        raise ProblemError(f"{'; '.join(wrong[:MOST_COMPLAINTS])}{rest}. Correct these rows, or remove them")
    return found


def _equal(table: Sheet) -> list[bool]:
    """Return for each row whether the two items are about equal; no row says so if there is no such column."""
    if EQUAL not in (head.name.casefold() for head in table.headings):
        return [False] * len(table)
    column = table.column(EQUAL)
    said = []
    for row, cell in enumerate(table.columns[column]):
        text = text_of(cell).strip()
        meant = {"": 0, "0": 0, "1": 1}.get(text, truth(cell))
        if meant is None:
            raise ProblemError(f"{table.location(row, column)}: {shortened(text)} is neither yes nor no")
        said.append(bool(meant))
    return said
