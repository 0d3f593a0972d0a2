"""Tables as text with separators: the one reader of CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from tradeoff.errors import ProblemError
from tradeoff.problems.ram import check_fits

LARGEST_TABLE = 512 << 20


def read_text(path: Path, smaller: str) -> str:
    """Return the text of a table; ``smaller`` says what to do about one that is too large."""
    size = path.stat().st_size
    if size > LARGEST_TABLE:
        raise ProblemError(
            f"{path} has {size / 2**20:,.0f} MB; tables may have at most {LARGEST_TABLE >> 20} MB: {smaller}"
        )
    check_fits(10 * size, str(path))
    raw = path.read_bytes()
    if b"\0" in raw:
        raise ProblemError(f"{path} is not text; save the table as 'CSV UTF-8', or name a workbook .xlsx")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ProblemError(
            f"{path}, line {line}: the byte {raw[error.start]:#04x} is not UTF-8; save the table as 'CSV UTF-8'"
        ) from None


def rows_of(path: Path, text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a text that are not blank, each with the line it begins in."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    line = 1
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ProblemError(f"{path}, line {line}: not readable: {error}; check the quotes there") from None
        if "".join(row).strip():
            yield line, row
        line = reader.line_num + 1


def check_width(source: str, number: int, row: int, width: int, line: int, counted: str = "line") -> None:
    """Raise a ProblemError if a row does not have as many cells as the header names columns."""
    if row != width:
        raise ProblemError(
            f"{source}, {counted} {number}: {row} cells, but the header in {counted} {line} names {width} columns; every "
            "row needs one cell for each, in quotes if it holds a separator"
        )
