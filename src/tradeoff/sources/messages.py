"""Shorten values and lists for messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
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


def _in_python(name: str, value: str) -> str:
    return f"{name}={value!r}"


_written: ContextVar[Callable[[str, str], str]] = ContextVar("_written", default=_in_python)


def option(name: str, value: str) -> str:
    """Return an option of a source as whoever reads the message has to write it.

    >>> option("decimal", ",")
    "decimal=','"
    """
    return _written.get()(name, value)


@contextmanager
def options_written(how: Callable[[str, str], str]) -> Iterator[None]:
    """Have messages write options in the words of a front end."""
    token = _written.set(how)
    try:
        yield
    finally:
        _written.reset(token)
