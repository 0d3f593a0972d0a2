"""Cells as people write them: a number is accepted only if it can be read in one way; headers have units and directions."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Literal

from tradeoff.errors import ArgumentError
from tradeoff.model import Objective
from tradeoff.sources.messages import option, shortened
from tradeoff.sources.tables.words import is_duration

CURRENCIES = "$€£¥₹₽₩¢"
# What people write for a missing value.
MISSING = {"", "-", "–", "—", "\u2212", "?", "na", "n/a", "#n/a", "null", "none"}
# Not a number, where one should be.
BROKEN = {"nan", "inf", "infinity", "#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!"}
LONGEST_NUMBER = 400  # characters; what is longer is a text
DATES = (datetime.date, datetime.time, datetime.timedelta)

_PLAIN = {mark: re.compile(rf"[+-]?(?:\d+{re.escape(mark)}?\d*|{re.escape(mark)}\d+)(?:[eE][+-]?\d+)?", re.ASCII)
          for mark in ".,"}  # fmt: skip
# Thousands in groups of three, separated by what is not the decimal mark.
_GROUPED = {mark: re.compile(rf"[+-]?[0-9]{{1,3}}([{other}'’\s])[0-9]{{3}}(?:\1[0-9]{{3}})*(?:{re.escape(mark)}[0-9]*)?")
            for mark, other in ((".", ","), (",", "."))}  # fmt: skip
# Any number of cells that are plain numbers, each with a line of its own.
_COLUMN = re.compile(rf"(?:[ \t]*+{_PLAIN['.'].pattern}[ \t]*+\n)*+", re.ASCII)
_ALMOST = re.compile(rf"[+-]?[{CURRENCIES}\s]*[+-]?\d[\d.,'’\s]*[%‰{CURRENCIES}\s]*")
_DATE = re.compile(r"\d{1,4}([-./])\d{1,2}\1\d{1,4}\.?")
_POINTED = re.compile(r"[+-]?\d{1,3}\.\d{3}", re.ASCII)
# The end of a head: a direction, or a unit.
_ENDING = re.compile(r"(.*\S)\s*(?:\(\s*(min|max)(?:imi[sz]e|imum)?\s*\)|\[([^][]*)\])", re.IGNORECASE)
_MIN = re.compile(r"\(\s*min\s*\)", re.IGNORECASE)
_DIRECTION = re.compile(r"\S\s*\(\s*(?:min|max|low|high|less|more)", re.IGNORECASE)


class Kind(Enum):
    """What a cell holds."""

    NUMBER = "a finite number"
    ALMOST = "what was meant to be a number"
    MISSING = "nothing"
    TEXT = "anything else"


def decimal_mark(value: object) -> Literal[".", ","] | None:
    """Return the option that says which mark is the decimal one."""
    match value:
        case None | "." | ",":
            return value
    raise ArgumentError(f"decimal is {value!r}; it must be a point or a comma")


def _signed(text: str) -> str:
    """Return a text with an ASCII minus in place of U+2212, which typesetters write."""
    return text.strip().replace("\u2212", "-")


def amount(cell: object, decimal: str | None = None) -> float | None:
    """Return the finite number in a cell, or None where there is none that can be read in one way only.

    Without ``decimal`` there are no thousands separators, and a point is the decimal mark.

    >>> amount("1299.5"), amount("1,299"), amount("1,299", "."), amount("1.299,5", ",")
    (1299.5, None, 1299.0, 1299.5)
    """
    match cell:
        case bool():
            return None
        case int() | float() | Decimal():
            try:
                found = float(cell)
            except (OverflowError, ValueError):
                return None
        case str() if len(cell) <= LONGEST_NUMBER:
            text, mark = _signed(cell), decimal or "."
            if not _PLAIN[mark].fullmatch(text):
                grouped = _GROUPED[mark].fullmatch(text) if decimal else None
                if grouped is None:
                    return None
                text = text.replace(grouped[1], "")
            found = float(text.replace(mark, "."))
        case _:
            return None
    return found if math.isfinite(found) else None


def plain_numbers(cells: Sequence[object]) -> list[float] | None:
    """Return a column of numbers if ``amount`` would find one in each cell whatever the decimal point is; None otherwise.

    This is many times faster than to look at each cell.

    >>> plain_numbers(["1", " 2.5", "-3e2"]), plain_numbers(["1", "1,299"]), plain_numbers([1, 2.5])
    ([1.0, 2.5, -300.0], None, [1.0, 2.5])
    """
    kinds = set(map(type, cells))
    if kinds == {str}:
        text = "\n".join(cells) + "\n"  # type: ignore[arg-type]
        if text.count("\n") != len(cells) or max(map(len, cells)) > LONGEST_NUMBER or not _COLUMN.fullmatch(text):  # type: ignore[arg-type]
            return None
    elif not kinds <= {int, float}:
        return None
    try:
        found = [float(cell) for cell in cells]  # type: ignore[arg-type]
    except OverflowError:
        return None
    return found if all(map(math.isfinite, found)) else None


def kind_of(cell: object, decimal: str | None = None) -> Kind:
    """Return what a cell holds.

    >>> [kind_of(cell).name for cell in ("12", "1,299", "15%", "n/a", "2024-01-31", "16GB", True)]
    ['NUMBER', 'ALMOST', 'ALMOST', 'MISSING', 'TEXT', 'TEXT', 'TEXT']
    """
    if isinstance(cell, str) and len(cell) > LONGEST_NUMBER:
        return Kind.TEXT if cell.strip() else Kind.MISSING
    if cell is None or (isinstance(cell, str) and cell.strip().lower() in MISSING):
        return Kind.MISSING
    if amount(cell, decimal) is not None:
        return Kind.NUMBER
    if isinstance(cell, int | float | Decimal) and not isinstance(cell, bool):
        return Kind.ALMOST
    if isinstance(cell, str):
        text = _signed(cell)
        if text.lower().lstrip("+-") in BROKEN or _PLAIN["."].fullmatch(text):
            return Kind.ALMOST
        if _ALMOST.fullmatch(text) and not _DATE.fullmatch(text):
            return Kind.ALMOST
    return Kind.TEXT


def complaint(cell: object, decimal: str | None = None) -> str:
    """Return why a cell is not a number, and what to do about it."""
    found = shortened(cell)
    text = _signed(cell) if isinstance(cell, str) else ""
    kind = kind_of(cell, decimal)
    rules: list[tuple[bool, str]] = [
        (cell is None or text == "" == cell, "the cell is empty; fill it in, or remove the row"),
        (kind is Kind.MISSING, f"{found} is not a value; fill it in, or remove the row"),
        (isinstance(cell, bool), f"{found} is not a number; write 1 or 0 to weigh it"),
        (isinstance(cell, DATES), f"{cell} is a date or a time; write a number, such as a count of days"),
        (text.startswith("#"), f"{found} is the error of a formula; correct the formula"),
        (
            not isinstance(cell, str)
            or text.lower().lstrip("+-") in BROKEN
            or bool(_PLAIN[decimal or "."].fullmatch(text)),
            f"{found} is not a finite number; correct it, or remove the row",
        ),
        (
            kind is Kind.ALMOST and any(sign in text for sign in f"%‰{CURRENCIES}"),
            f"{found} has a sign; write the number alone, and the unit in the header, as in 'price [EUR]'",
        ),
        (
            kind is Kind.ALMOST and decimal is None,
            f"{found} can be read in several ways; write it with a decimal point and without thousands separators, or "
            f"say which mark is the decimal one with {option('decimal', '.')} or {option('decimal', ',')}",
        ),
        (
            kind is Kind.ALMOST,
            f"{found} is not written with {option('decimal', decimal or '.')} and thousands in groups of three; correct it",
        ),
    ]
    return next((said for applies, said in rules if applies), f"{found} is not a number; correct it, or remove the row")


def looks_grouped(cell: object) -> bool:
    """Return whether a number with a point may be meant as thousands: 1.299."""
    return isinstance(cell, str) and _POINTED.fullmatch(_signed(cell)) is not None


def text_of(cell: object) -> str:
    """Return a cell as a text to show.

    >>> text_of(3.0), text_of(None), text_of(True), text_of(datetime.datetime(2024, 1, 31))
    ('3', '', 'true', '2024-01-31')
    """
    match cell:
        case None:
            return ""
        case bool():
            return "true" if cell else "false"
        case float() if cell.is_integer():
            return str(int(cell))
        case datetime.datetime() if cell.time() == datetime.time():
            return cell.date().isoformat()
    return str(cell)


@dataclass(frozen=True)
class Heading:
    """The head of a column: ``price [EUR] (min)`` is a name, a unit, and what is better where it is said."""

    text: str
    name: str
    unit: str
    goal: Literal["max", "min"] | None

    @property
    def declared(self) -> bool:
        """Whether the head says that the column is to be weighed: it has a unit or a direction."""
        return bool(self.unit or self.goal)

    @property
    def doubtful(self) -> bool:
        """Whether the head has what may be meant as a direction, but is not written as one."""
        return self.goal is None and _DIRECTION.search(self.text) is not None

    @property
    def ambiguous(self) -> bool:
        """Whether the head says "(min)" of a duration without a unit: that may mean minutes, or that less is better."""
        return self.goal == "min" and not self.unit and bool(_MIN.search(self.text)) and is_duration(self.name)

    def objective(self, goal: Literal["max", "min"] | None, unit: str = "") -> Objective:
        """Return the column as an objective; what is asked for goes before what the head says."""
        minutes = "min" if self.ambiguous else ""
        return Objective(self.name, unit or self.unit or minutes, goal or self.goal or "max")


def heading(text: str) -> Heading:
    """Return what the head of a column says.

    >>> heading("price [EUR] (min)")
    Heading(text='price [EUR] (min)', name='price', unit='EUR', goal='min')
    >>> heading("time [min]"), heading("weight ( Minimum )").goal, heading("size (inch)").name
    (Heading(text='time [min]', name='time', unit='min', goal=None), 'min', 'size (inch)')
    """
    text = " ".join(text.split())
    rest, unit, goal = text, "", None
    while True:
        part = _ENDING.fullmatch(rest)
        if part is None or (part[2] and goal) or (part[3] is not None and unit):
            return Heading(text, rest, unit, goal)  # type: ignore[arg-type]
        rest = part[1]
        goal = part[2].lower() if part[2] else goal
        unit = part[3].strip() if part[3] is not None else unit
