"""Answers that contradict each other: list them, and let the person take one back."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from tradeoff.apps.cli.keys import NextKey
    from tradeoff.interview import Interview
    from tradeoff.problem import Presentable


def answer_to_retract(interview: Interview, problem: Presentable, out: Console, next_key: NextKey) -> int | None:
    """Show the smallest set of answers that contradict each other; return the number of the one to take back, if any."""
    from tradeoff.apps.cli import keys
    from tradeoff.apps.cli.cards import print_answer
    from tradeoff.presentation.result import answer_lines, as_shown
    from tradeoff.presentation.sentences import contradiction

    if interview.recommendation.complete:  # a strategy that allows for slips has dealt with them
        return None
    sides = interview.sides_shown()
    conflict = [as_shown(*record, sides.get(record[0], "first")) for record in interview.conflicts()]
    if not conflict:
        return None
    last = len(conflict)
    out.print(f"\n{contradiction(last)}", style="yellow")
    for line in answer_lines(problem, conflict):
        print_answer(out, line)
    which = "1" if last == 1 else f"1 to {last}"
    possible = f"Press {which} to take that answer back and continue, or q to stop here."
    while True:
        key = next_key(lambda: out.print(possible, style="bold"))
        if key.lower() in ("q", keys.END):
            return None
        if key.isdecimal() and 1 <= int(key) <= last:
            return conflict[int(key) - 1].number
