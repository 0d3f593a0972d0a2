"""Data frames of pandas and polars become catalogues, as tables in files do; neither library is imported here."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

from tradeoff.errors import ProblemError
from tradeoff.problems.catalogue import Catalogue
from tradeoff.sources.tables.catalogues import catalogue_of
from tradeoff.sources.tables.cells import heading
from tradeoff.sources.tables.sheets import MOST_CELLS, MOST_COLUMNS, MOST_ROWS, Sheet

HELD = (str, bool, int, float, Decimal, datetime.date, datetime.time, datetime.timedelta)


def from_frame(
    frame: Any,
    *,
    objectives: object = None,
    keep_dominated: object = False,
    name_column: object = None,
    decimal: object = None,
    gaps: object = None,
    name: str = "frame",
) -> Catalogue:
    """Return the catalogue of the rows of a pandas or polars data frame; its options are those of a table in a file.

    An index of texts, or one with a name, is a column; NaN, NA and None are gaps.
    """
    table = _sheet(frame)
    return catalogue_of(
        table, name, objectives=objectives, keep_dominated=keep_dominated, name_column=name_column, decimal=decimal, gaps=gaps
    )  # fmt: skip


def _sheet(frame: Any) -> Sheet:
    columns = _pandas_columns(frame) if hasattr(frame, "iloc") else [(str(s.name), s.to_list()) for s in frame]
    rows = len(columns[0][1]) if columns else 0
    if rows > MOST_ROWS or len(columns) > MOST_COLUMNS or rows * len(columns) > MOST_CELLS:
        raise ProblemError(
            f"the frame has {rows:,} rows and {len(columns):,} columns, which is too large; choose some first"
        )
    left_out: dict[str, str] = {}
    kept: dict[str, list[object]] = {}
    for text, cells in columns:
        plain = [_plain(cell) for cell in cells]
        odd = next((cell for cell in plain if cell is not None and not isinstance(cell, HELD)), None)
        if text in kept or text in left_out:
            raise ProblemError(f"the frame has two columns called {text!r}; give every column a name of its own")
        if odd is not None:
            left_out[text] = type(odd).__name__
        else:
            kept[text] = plain
    headings = [heading(text) for text in kept]
    return Sheet("the frame", headings, list(kept.values()), list(range(1, rows + 1)), "row", left_out=left_out)


def _pandas_columns(frame: Any) -> list[tuple[str, list[object]]]:
    """Return the columns of a pandas frame with None for gaps, and its index where it says something."""
    index = frame.index
    said = index.nlevels > 1 or index.name is not None or index.dtype.kind not in "iu"
    if said:
        names = [name if name is not None else "index" for name in index.names]
        frame = frame.reset_index(names=names if index.nlevels > 1 else names[0])
    heads = [" ".join(map(str, head)) if isinstance(head, tuple) else str(head) for head in frame.columns]
    found = []
    for position, head in enumerate(heads):
        series = frame.iloc[:, position]
        cells = zip(series.tolist(), series.isna().tolist(), strict=True)
        found.append((head, [None if gap else cell for cell, gap in cells]))
    return found


def _plain(cell: object) -> object:
    """Return a cell as a plain value; a number that is none is a gap."""
    item = getattr(cell, "item", None)
    if item is not None and not isinstance(cell, HELD):
        cell = item()
    return None if isinstance(cell, float) and cell != cell else cell
