"""Columns of amounts with signs or units in their cells, and of yes and no, become columns of numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tradeoff.objective import YES_NO
from tradeoff.sources.tables.cells import CURRENCIES, LONGEST_NUMBER, Kind, amount, kind_of

YES = {"yes", "y", "true", "ja", "oui", "sí", "si", "✓", "✔"}
NO = {"no", "n", "false", "nein", "non", "✗", "✘"}
_CODES = "EUR|USD|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|CAD|AUD|NZD|BRL|MXN|KRW|SGD|HKD|US\\$"
_NUMBER = r"[+\-\u2212]?[\d][\d.,'’\u00a0\u202f ]*(?:[eE][+-]?\d+)?"
_AMOUNT = re.compile(
    rf"(?P<sign>[+\-\u2212]?)(?P<before>[{CURRENCIES}]|{_CODES})?\s*(?P<number>{_NUMBER}?)\s*"
    rf"(?P<after>(?:/|of|out of)\s*\d+(?:[.,]0)?|[^\d\s+\-\u2212.,'’][^\d,;]{{0,15}}?(?:\d+ ?[a-z]+|[²³])?)?",
    re.IGNORECASE,
)
_OUT_OF = re.compile(r"(?:/|of|out of)\s*(\d+).*", re.IGNORECASE)


@dataclass(frozen=True)
class Written:
    """A column of numbers that were written with something else: the texts of the numbers, and their unit."""

    cells: list[object]
    unit: str


def _split(cell: object) -> tuple[str, str] | None:
    """Return the number and the unit in a cell, as they are written; None if it is nothing of the kind."""
    if not isinstance(cell, str) or len(cell) > LONGEST_NUMBER:
        return None
    found = _AMOUNT.fullmatch(cell.strip())
    if found is None or not (found["before"] or found["after"]):
        return None
    if found["before"] and found["after"]:
        thousands = found["after"].lower() in ("k", "m", "bn")  # €50k
        return (found["sign"] + found["number"].strip(), f"{found['after']} {found['before']}") if thousands else None
    out_of = _OUT_OF.fullmatch(found["after"] or "")
    unit = f"of {int(out_of[1])}" if out_of else (found["before"] or found["after"]).strip()
    return found["sign"] + found["number"].strip(), unit


def _same(unit: str) -> str:
    """Return a unit as it is compared with others: '1 room' and '2 rooms' have the same."""
    lower = unit.casefold().rstrip(".")
    return lower.removesuffix("s") if len(lower) > 3 else lower


def written(cells: Sequence[object]) -> Written | None:
    """Return a column as numbers and their unit if every cell that is not empty is such; None otherwise.

    >>> written(["16 GB", "8GB", ""]), written(["4.6/5", "4/5"])
    (Written(cells=['16', '8', ''], unit='GB'), Written(cells=['4.6', '4'], unit='of 5'))
    >>> written(["yes", "no", True]), written(["1 TB", "512 GB"])
    (Written(cells=[1, 0, 1], unit='yes/no'), None)
    """
    held = [cell for cell in cells if kind_of(cell) is not Kind.MISSING]
    if not held:
        return None
    if all(truth(cell) is not None for cell in held):
        return Written([cell if (said := truth(cell)) is None else said for cell in cells], YES_NO)
    parts: dict[str, tuple[str, str]] = {}
    units: dict[str, str] = {}
    for cell in held:
        found = _split(cell)
        if found is None:
            return None
        units.setdefault(_same(found[1]), found[1])
        if len(units) > 1:
            return None
        parts[str(cell)] = found
    (unit,) = units.values()
    return Written([parts[str(cell)][0] if str(cell) in parts else cell for cell in cells], unit)


def truth(cell: object) -> int | None:
    """Return 1 for yes, 0 for no, and None for anything else."""
    if isinstance(cell, bool):
        return int(cell)
    text = cell.strip().casefold() if isinstance(cell, str) else ""
    return 1 if text in YES else 0 if text in NO else None


def units_differ(cells: Sequence[object]) -> bool:
    """Return whether all cells are amounts, but not all of the same unit."""
    held = [cell for cell in cells if kind_of(cell) is not Kind.MISSING]
    return len(held) > 1 and all(_split(cell) is not None for cell in held)


def inferred_mark(columns: Iterable[Sequence[object]]) -> tuple[str | None, object]:
    """Return the decimal mark that some cells of a table leave no doubt about, and one of them; None if they disagree.

    >>> inferred_mark([["1,899", "949"], ["4.6", "3"]]), inferred_mark([["1200,5", "7"]]), inferred_mark([["1,899"]])
    (('.', '4.6'), (',', '1200,5'), (None, None))
    """
    shown: dict[str, object] = {}
    for cells in columns:
        for cell in cells:
            if isinstance(cell, str) and ("." in cell or "," in cell):
                readings = [mark for mark in ".," if amount(cell, mark) is not None]
                if len(readings) == 1:
                    shown.setdefault(readings[0], cell)
                    if len(shown) > 1:
                        return None, None
    return next(iter(shown.items()), (None, None))
