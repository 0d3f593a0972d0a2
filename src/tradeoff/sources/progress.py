"""Progress of loading: readers report it, and an application may show it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Report = Callable[[str, int, int | None], None]  # what is being done, how much is done, how much there is
Item = TypeVar("Item")

EVERY = 4096  # items between two reports

_report: ContextVar[Report | None] = ContextVar("report", default=None)


@contextmanager
def reported_to(report: Report) -> Iterator[None]:
    """Call ``report`` whenever a problem loaded in this context makes progress."""
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)


def report(what: str, done: int = 0, total: int | None = None) -> None:
    """Report progress; ``total`` is None if it is not known."""
    listener = _report.get()
    if listener is not None:
        listener(what, done, total)


def tracked(items: Iterable[Item], what: str, total: int | None = None) -> Iterator[Item]:
    """Yield the items, reporting how many have been yielded so far."""
    for done, item in enumerate(items):
        if done % EVERY == 0:
            report(what, done, total)
        yield item
