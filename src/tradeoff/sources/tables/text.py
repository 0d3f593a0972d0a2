"""Tables as text with separators: the one reader of CSV."""

from __future__ import annotations

import codecs
import csv
import io
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from tradeoff.errors import ProblemError
from tradeoff.memory import check_fits

LARGEST_TABLE = 512 << 20


def read_text(path: Path, smaller: str) -> str:
    """Return the text of a table in UTF-8; ``smaller`` says what to do about one that is too large."""
    raw = _bytes(path, smaller)
    if b"\0" in raw:
        raise _not_text(path)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _not_utf8(path, raw, error) from None


def read_any_text(path: Path, smaller: str) -> tuple[str, list[str]]:
    """Return the text of a table as spreadsheet programs save it, UTF-8, UTF-16 or Windows-1252, and notes on that."""
    raw = _bytes(path, smaller)
    # UTF-16 begins with a mark, or has a 0 in every other byte of its head.
    ends = raw[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    little, big = raw[1:64:2], raw[:64:2]
    if ends or (len(raw) >= 8 and len(raw) % 2 == 0 and (not any(little) or not any(big))):
        encoding = "utf-16" if ends else "utf-16-le" if not any(little) else "utf-16-be"
        try:
            found = raw.decode(encoding)
        except UnicodeDecodeError:
            found = "\0"
        if "\0" not in found:
            return found, []
    if b"\0" in raw:
        raise _not_text(path)
    try:
        return raw.decode("utf-8-sig"), []
    except UnicodeDecodeError as error:
        try:
            found = raw.decode("cp1252")
        except UnicodeDecodeError:
            found = "\x01"
        if any(unicodedata.category(c) == "Cc" and c not in "\t\r\n" for c in set(found)):
            raise _not_utf8(path, raw, error) from None
        letter = found[error.start]
        return found, [f"the file is not UTF-8 and was read as Windows-1252; check that {letter!r} is right"]


def _bytes(path: Path, smaller: str) -> bytes:
    size = path.stat().st_size
    if size > LARGEST_TABLE:
        raise ProblemError(
            f"{path} has {size / 2**20:,.0f} MB; tables may have at most {LARGEST_TABLE >> 20} MB: {smaller}"
        )
    check_fits(10 * size, str(path))
    return path.read_bytes()


def _not_text(path: Path) -> ProblemError:
    return ProblemError(f"{path} is not text; save the table as 'CSV UTF-8', or name a workbook .xlsx")


def _not_utf8(path: Path, raw: bytes, error: UnicodeDecodeError) -> ProblemError:
    line = raw.count(b"\n", 0, error.start) + 1
    return ProblemError(
        f"{path}, line {line}: the byte {raw[error.start]:#04x} is not UTF-8; save the table as 'CSV UTF-8'"
    )


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
