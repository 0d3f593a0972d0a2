"""One call per person, on all cores, with a bar that shows how far it has come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import joblib
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

Result = TypeVar("Result")


def on_all_cores(
    work: Callable[..., Result],
    tasks: Sequence[tuple[Any, ...]],
    jobs: int | None,
    what: str = "people",
    batch: int = 4,
) -> list[Result]:
    """Return what ``work`` returns for each task, in their order; ``jobs`` processes, by default one per core."""
    parallel = joblib.Parallel(n_jobs=jobs or -1, batch_size=batch, return_as="generator", pre_dispatch="4*n_jobs")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    found: list[Result] = []
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as progress:
        bar = progress.add_task(what, total=len(tasks))
        done: Iterable[Result] = parallel(joblib.delayed(work)(*task) for task in tasks)
        for one in done:
            found.append(one)
            progress.advance(bar)
    return found
