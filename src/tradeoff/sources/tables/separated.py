"""Texts whose cells are set apart by a separator: which one it is, and where the table begins."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.sources.messages import option
from tradeoff.sources.tables.text import read_any_text, rows_of

SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a vertical bar"}
NAMES = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|", "\\t": "\t"}
LOOKED_AT = 200  # rows, to recognise the separator
MOST_TITLES = 10  # lines that may stand above the heads
_RULE = re.compile(r"\s*:?-{2,}:?\s*")  # what sets the head apart where cells are drawn with bars


def separated_rows(path: Path, separator: object) -> tuple[Iterator[tuple[int, Sequence[object]]], int, str, list[str]]:
    """Return the numbered rows of a text, how many lines it has, its separator, and notes on how it was read."""
    text, notes = read_any_text(path, "leave out what would not be chosen")
    said, text = _said_separator(path, text)
    if path.suffix.lower() == ".tsv" and said is None:
        said = "\t"
    mark = _separator_option(separator) or said or _separator(path, text)
    return _rows(path, text, mark), text.count("\n"), mark, notes


def _rows(path: Path, text: str, mark: str) -> Iterator[tuple[int, Sequence[object]]]:
    for number, row in rows_of(path, text, mark):
        if mark != "|" or not all(_RULE.fullmatch(cell) for cell in row if cell.strip()):
            yield number, row


def _said_separator(path: Path, text: str) -> tuple[str | None, str]:
    """Return the separator that a first line such as ``sep=;`` names, and the text with that line blank."""
    said = re.match(r'("?)sep=([^\r\n"])\1(?=\r?\n)', text, re.IGNORECASE)
    if said is None:
        return None, text
    if said[2] not in SEPARATORS:
        raise ProblemError(
            f"{path}, line 1: cells are separated by {said[2]!r}; save the table with a comma, a semicolon or a tab"
        )
    return said[2], text[said.end() :]  # what ends the line stays, so that lines are counted as in the file


def _separator_option(value: object) -> str | None:
    found = NAMES.get(str(value), value)
    if found is not None and found not in SEPARATORS:
        raise ArgumentError(f"separator is {value!r}; it must be comma, semicolon, tab or bar")
    return None if found is None else str(found)


def _separator(path: Path, text: str) -> str:
    """Return the separator of a text: the only one in its head, or the only one with which all rows fit."""
    looked = {mark: _beginning(path, text, mark) for mark in SEPARATORS}
    split = [mark for mark, rows in looked.items() if rows and len(rows[0]) > 1]
    if len(split) > 1:
        split = [mark for mark in split if _all_fit(path, text, mark)] or split
    if len(split) > 1:  # a line is not a title if some separator makes it the head
        split = [mark for mark in split if mark in _first_row(path, text)] or split
    if len(split) > 1:
        ways = [option("separator", name) for name, mark in NAMES.items() if mark in split and len(name) > 2]
        raise ProblemError(
            f"{path}: cells could be separated by {' or by '.join(SEPARATORS[mark] for mark in split)}; "
            f"say which with {' or '.join(ways)}"
        )
    return split[0] if split else ","


def _beginning(path: Path, text: str, mark: str) -> list[Sequence[object]]:
    """Return the first rows without titles; none if they cannot be read."""
    try:
        rows = [row for _, row in islice(_rows(path, text, mark), LOOKED_AT)]
    except ProblemError:
        return []
    return rows[title_rows(rows) :]


def _first_row(path: Path, text: str) -> set[str]:
    """Return the separators that split the very first row."""
    first = {mark: next(iter(islice(_rows(path, text, mark), 1)), (0, []))[1] for mark in SEPARATORS}
    return {mark for mark, row in first.items() if len(row) > 1}


def _all_fit(path: Path, text: str, mark: str) -> bool:
    try:
        rows = [row for _, row in _rows(path, text, mark)]
    except ProblemError:
        return False
    return len({len(row) for row in rows[title_rows(rows) :]}) == 1


def title_rows(rows: Sequence[Sequence[object]]) -> int:
    """Return how many rows stand above the heads: with fewer cells than those that follow, and mostly one.

    >>> title_rows([["Our laptops"], ["name", "price"], ["a", "1"]]), title_rows([["name", "price"], ["a", "1"]])
    (1, 0)
    """
    filled = [sum(cell is not None and bool(str(cell).strip()) for cell in row) for row in rows[:LOOKED_AT]]
    if len(filled) < 3:
        return 0
    usual = Counter(filled).most_common(1)[0][0]
    begin = next((i for i, count in enumerate(filled) if count > 1 and 2 * count >= usual), 0)
    # A head that is only short of one name is a mistake to be pointed out, and a table of one column has no titles.
    above = rows[:begin]
    alone = all(
        row[0] is not None and str(row[0]).strip() and count == 1 for row, count in zip(above, filled, strict=False)
    )
    return begin if begin <= MOST_TITLES and alone and all(usual > 2 or len(row) < usual for row in above) else 0
