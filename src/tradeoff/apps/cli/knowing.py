"""What a person knows already, read from files: the log of an earlier interview, or a table of comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tradeoff.apps.cli.output import console

if TYPE_CHECKING:
    from tradeoff.menus import Statement
    from tradeoff.problem import Presentable

KNOW_FROM_HELP = (
    "A file of what you said before: the log (.jsonl) of an earlier interview with the same objectives, or a table of items "
    "with the columns better and worse, and perhaps equal. Can be repeated."
)
LOGS = (".jsonl", ".json", ".log")


def all_known(problem: Presentable, texts: Sequence[str], files: Sequence[Path]) -> list[str | Statement]:
    """Return these texts, and what these files say about a problem; say on stderr what of it cannot be used, and why."""
    from tradeoff.elsewhere import earlier_answers
    from tradeoff.sources.tables.comparisons import imported_comparisons

    found: list[str | Statement] = [*texts]
    for path in files:
        if path.suffix.lower() not in LOGS:
            found += imported_comparisons(problem, path)
            continue
        said = earlier_answers(problem, path)
        found += said.statements
        for why in said.left_out:
            console(on_stderr=True).print(f"note: {path}: {why}", style="yellow", markup=False)
    return found
