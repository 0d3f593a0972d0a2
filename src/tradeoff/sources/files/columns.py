"""Tables in CSV files: columns by name, and errors that name the line."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from tradeoff.errors import ProblemError
from tradeoff.sources.messages import shortened
from tradeoff.sources.progress import tracked
from tradeoff.sources.tables.text import check_width, read_text, rows_of


@dataclass(frozen=True)
class Table:
    """The columns of a CSV file; ``location(i)`` tells where row i is."""

    source: str
    header: list[str]
    columns: dict[str, list[str]]
    lines: list[int]

    def __len__(self) -> int:
        return len(self.lines)

    def location(self, row: int) -> str:
        """Return where a row is, for error messages."""
        return f"{self.source}, line {self.lines[row]}"

    def texts(self, name: str) -> list[str]:
        """Return a column as strings, or raise a ProblemError if it is missing."""
        if name not in self.columns:
            raise ProblemError(
                f"{self.source}: there is no column {name!r}; it has {shortened(', '.join(self.header))}"
            )
        return self.columns[name]

    def numbers(self, name: str) -> list[float]:
        """Return a column as finite numbers, or raise a ProblemError that names the first bad cell."""
        texts = self.texts(name)
        try:
            found = [float(text) for text in texts]
            if bool not in set(map(type, texts)) and all(map(math.isfinite, found)):
                return found
        except (TypeError, ValueError, OverflowError):
            pass  # reported below, with its location
        return [number(text, f"{self.location(i)}, column {name!r}") for i, text in enumerate(texts)]


def number(text: object, where: str) -> float:
    """Return the text as a finite number, or raise a ProblemError that says where it is."""
    try:
        value = float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ProblemError(f"{where}: {shortened(text)} is not a number") from None
    except OverflowError:
        raise ProblemError(f"{where}: {shortened(text)} is too large for a number; correct it") from None
    if isinstance(text, bool) or not math.isfinite(value):
        raise ProblemError(f"{where}: {shortened(text)} is not a finite number; correct it")
    return value


def first_repeated(names: Iterable[str]) -> str | None:
    """Return the first name that occurs a second time, if any."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def table_name(name: str, where: str) -> str:
    """Return the name of a table after checking that it is a file beside the document, in no other folder."""
    if name in ("", ".", "..") or any(mark in name for mark in "/\\\0") or Path(name).name != name:
        raise ProblemError(
            f"{where} names the table {shortened(name)}; give the name of a CSV file beside the problem file, "
            "without a folder"
        )
    if len(name.encode("utf-8", "replace")) > 255:
        raise ProblemError(f"{where} names a table with {len(name):,} characters, too many for a file name; correct it")
    return name


def read_table(path: Path, required: Sequence[str]) -> Table:
    """Return the table in a CSV file; its first line names the columns.

    Spaces around cells are removed in the required columns, which hold names and numbers, and kept in all others.
    """
    if not path.exists():
        raise ProblemError(f"the table {path} does not exist; it is named in the problem file beside it")
    if not path.is_file():
        raise ProblemError(f"the table {path} is a folder, a device or a pipe; name a CSV file beside the problem file")
    text = read_text(path, "use the .npz form for large models")
    rows = list(tracked(rows_of(path, text, ","), f"Reading {path.name}", text.count("\n")))
    if not rows:
        raise ProblemError(f"{path} is empty; its first line must name the columns: {', '.join(required)}, ...")
    first, header = rows[0][0], [name.strip() for name in rows[0][1]]
    twice = first_repeated(header)
    if twice is not None:
        raise ProblemError(f"{path}: the column {shortened(twice)} is named twice; give each column its own name")
    for name in required:
        if name not in header:
            raise ProblemError(f"{path}: there is no column {name!r}; it has {shortened(', '.join(header))}")
    for line, row in rows[1:]:
        check_width(str(path), line, len(row), len(header), first)
    body = rows[1:]
    exact = set(header) - set(required)
    columns = {name: [row[i] if name in exact else row[i].strip() for _, row in body] for i, name in enumerate(header)}
    return Table(str(path), header, columns, [line for line, _ in body])


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV table that reads back exactly: floats keep every digit and strings every character."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(_Lines(file), lineterminator="\r\n")
        writer.writerow(header)
        writer.writerows(rows)


class _Lines:
    """A file whose lines end in a line feed only. The CSV writer is not told, as it would leave carriage returns unquoted."""

    def __init__(self, file: TextIO) -> None:
        self.file = file

    def write(self, line: str) -> int:
        """Write one line."""
        return self.file.write(line[:-2] + "\n")
