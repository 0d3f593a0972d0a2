"""Answers that cannot all hold: they are shown, and any of them can be taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from tradeoff.apps.cli.ask import Keeper
    from tradeoff.apps.cli.keys import NextKey
    from tradeoff.sources import AnyProblem


def settle(keeper: Keeper, problem: AnyProblem, out: Console, next_key: NextKey) -> bool:
    """Show the smallest set of answers that contradict each other, if any; return whether one was taken back."""
    from tradeoff.apps.cli import keys
    from tradeoff.apps.cli.cards import SAYS, print_answered
    from tradeoff.model import Question

    if keeper.interview.recommendation.complete:  # a strategy that allows for slips has dealt with them
        return False
    conflict = keeper.interview.conflicts()
    if not conflict:
        return False
    last = len(conflict)
    words = "These answers cannot all be meant: whatever matters to you, one of them must be a slip."
    alone = "This answer must be a slip: whatever matters to you, it cannot be meant."
    out.print(f"\n{alone if last == 1 else words}", style="yellow")
    sides = keeper.interview.sides_shown()
    for place, (number, question, answer) in enumerate(conflict, start=1):
        assert answer is not None  # nothing follows from what was skipped
        if sides[number] == "second":
            question, answer = Question(question.second, question.first), answer.swapped
        print_answered(out, problem, question, place, SAYS[answer.value])
    which = "1" if last == 1 else f"1 to {last}"
    possible = f"Press {which} to take that answer back and go on, or q to end here."
    while True:
        key = next_key(lambda: out.print(possible, style="bold"))
        if key.lower() in ("q", keys.END):
            return False
        if key.isdecimal() and 1 <= int(key) <= last:
            keeper.interview.undo(conflict[int(key) - 1][0])
            keeper.keep()
            out.print("That answer is taken back.")
            return True
