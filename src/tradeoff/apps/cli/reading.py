"""A progress bar for reading a problem that takes long."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 2.0  # seconds before a bar is shown


@contextmanager
def reading_bar() -> Iterator[None]:
    """Show on a terminal how far the reading is, once it has taken two seconds; elsewhere show nothing."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from tradeoff.sources.progress import reported_to

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("Reading the problem", total=None)

    def show(what: str, done: int, total: int | None) -> None:
        bar.update(task, description=what, completed=done, total=total)

    timer = threading.Timer(PATIENCE, bar.start)
    timer.daemon = True
    timer.start()
    try:
        with reported_to(show):
            yield
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
