"""Parse the options of sources: strings from the command line, values from Python."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, Literal

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.model import Objective

Goals = dict[str, Literal["max", "min"] | None]  # direction by objective, None where it is not given


def whole(name: str, value: object, least: int = 1) -> int:
    """Return an option as a whole number.

    >>> whole("horizon", "20")
    20
    """
    try:
        if isinstance(value, bool) or int(value) != float(value):  # type: ignore[call-overload, arg-type]
            raise ValueError
        found = int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"{name} is {value!r}; it must be a whole number, {least} or more") from None
    if found < least:
        raise ArgumentError(f"{name} is {found}; it must be {least} or more")
    return int(found)


def real(name: str, value: object) -> float:
    """Return an option as a finite number."""
    try:
        found = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if isinstance(value, bool) or not math.isfinite(found):
        raise ArgumentError(f"{name} is {value!r}; it must be a finite number")
    return found


def flag(name: str, value: object) -> bool:
    """Return an option as true or false."""
    match str(value).lower():
        case "true" | "yes" | "1":
            return True
        case "false" | "no" | "0":
            return False
    raise ArgumentError(f"{name} is {value!r}; it must be true or false")


def listed(name: str, value: object) -> list[str]:
    """Return an option as a list of names; it may be given as a list or as a string with commas.

    >>> listed("columns", "a, b")
    ['a', 'b']
    """
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        parts = [str(part) for part in value]
    else:
        parts = str(value).split(",")
    parts = [part.strip() for part in parts]
    if not all(parts):
        raise ArgumentError(f"{name} is {value!r}; it must be names separated by commas")
    return parts


def parse_objectives(value: object) -> Goals:
    """Return the directions of the chosen objectives, None where no direction is given: ``price:min,battery``.

    Python callers may also pass a mapping of names to directions, or a sequence of names or ``Objective``.

    >>> parse_objectives("price:min, battery")
    {'price': 'min', 'battery': None}
    >>> parse_objectives('"length, in all":max')
    {'length, in all': 'max'}
    """
    found: Goals = {}
    given: Iterable[Any]
    if isinstance(value, Mapping):
        given = [f"{name}:{goal}" if goal else str(name) for name, goal in value.items()]
    elif isinstance(value, Iterable) and not isinstance(value, str):
        given = [f"{o.name}:{o.goal}" if isinstance(o, Objective) else str(o) for o in value]
    else:
        given = next(csv.reader([str(value)], skipinitialspace=True), [""])  # a name with a comma is in quotes
    for part in given:
        name, colon, goal = part.strip().rpartition(":")
        if not colon or goal.strip() not in ("min", "max"):
            name, goal = part.strip(), ""
        name = name.strip()
        if not name:
            raise ArgumentError(f"the objectives {value!r} are not of the form NAME:min,NAME:max")
        if name in found:
            raise ArgumentError(f"the objective {name!r} is given twice; keep one of them")
        found[name] = goal.strip() or None
    return found


def parse_pairs(name: str, value: object) -> dict[str, str]:
    """Return an option that gives a word to each of some names, as a mapping or as a text.

    >>> parse_pairs("gaps", "battery:drop, range:label")
    {'battery': 'drop', 'range': 'label'}
    """
    if isinstance(value, Mapping):
        return {str(key): str(word) for key, word in value.items()}
    pairs = [part.strip().rpartition(":") for part in next(csv.reader([str(value)], skipinitialspace=True), [""])]
    if not all(key.strip() and word.strip() for key, _, word in pairs):
        raise ArgumentError(f"{name} is {value!r}; it must be of the form NAME:WORD,NAME:WORD")
    return {key.strip(): word.strip() for key, _, word in pairs}


def library(name: str, extra: str, what: str) -> ModuleType:
    """Import and return an optional library; if it is missing, the error says how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ProblemError(
            f"{what} needs the package {name.partition('.')[0]!r} ({error}); install it, in the folder of tradeoff, with: "
            f"pip install '.[{extra}]'"
        ) from None
