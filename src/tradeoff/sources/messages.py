"""Shorten values and lists for messages."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice


def shortened(value: object) -> str:
    """Return the repr of a value, cut to a length that fits a message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def listing(names: Iterable[object], most: int = 8) -> str:
    """Return the first few names, each shortened.

    >>> listing("abc", 2)
    "'a', 'b', ..."
    """
    shown = [shortened(name) for name in islice(names, most + 1)]
    return ", ".join(shown[:most]) + (", ..." if len(shown) > most else "")
