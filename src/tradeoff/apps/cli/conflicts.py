"""Answers that contradict each other: list them, and let the respondent undo one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from tradeoff.apps.cli.keys import NextKey
    from tradeoff.interview import Interview
    from tradeoff.problem import Presentable


def answer_to_undo(interview: Interview, problem: Presentable, out: Console, next_key: NextKey) -> int | None:
    """Show the smallest set of answers that contradict each other; return the number of the one to undo, if any."""
    from tradeoff.apps.cli import keys
    from tradeoff.apps.cli.cards import print_answer
    from tradeoff.presentation.answers import answer_lines
    from tradeoff.presentation.sentences import contradiction

    conflict = interview.conflicts()
    if not conflict:
        return None
    last = len(conflict)
    out.print(f"\n{contradiction(last)}", style="yellow")
    for line in answer_lines(problem, conflict, interview.display_orders()):
        print_answer(out, line)
    which = "1" if last == 1 else f"1 to {last}"
    possible = f"Press {which} to undo that answer and continue, or q to stop here."
    while True:
        key = next_key(lambda: out.print(possible, style="bold"))
        if key.lower() in ("q", keys.END):
            return None
        if key.isdecimal() and 1 <= int(key) <= last:
            return conflict[int(key) - 1].number
