"""The places of a menu: which alternative stands where, and replies by place and by number, counted from 0."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import cast

import numpy as np

from tradeoff.errors import ArgumentError
from tradeoff.menus import Asks, Choice, Graded, Menu, plain
from tradeoff.model import Alternative


class Placed:
    """Something with several alternatives: ``order[p]`` is the number of the one shown at place p.

    This is the one place where places become numbers, and back.
    """

    order: tuple[int, ...]

    def by_number(self, placed: Choice) -> Choice:
        """Return a choice of places as one of the alternatives' numbers."""
        return placed.renumbered(self.order)

    def by_place(self, choice: Choice) -> Choice:
        """Return a choice of the alternatives' numbers as one of places."""
        return choice.renumbered(sorted(range(len(self.order)), key=self.order.__getitem__))

    def chosen(self, asks: Asks, best: int | None, worst: int | None) -> Choice:
        """Return the choice of places counted from 1; raise an ArgumentError if a menu of this kind has no such answer."""
        count = len(self.order)
        wanted = [best, worst] if asks == "best-worst" else [best]
        known = [place - 1 for place in wanted if place is not None and 1 <= place <= count]
        if len(set(known)) < len(wanted) or (asks == "best" and worst is not None):
            what = "the best and the worst, two different ones" if asks == "best-worst" else "the best"
            raise ArgumentError(f"choose {what} of the {count} alternatives, by their numbers from 1 to {count}")
        first, last = known[0], known[-1]
        best_only = asks == "best"
        return self.by_number(
            Choice.of_best(first, count) if best_only else Choice.of_best_and_worst(first, last, count)
        )

    def said(self, reply: Choice | Graded | None) -> str:
        """Return what was chosen, by places counted from 1: "best 2, worst 4", "same" or "skip"."""
        if reply is None:
            return "skip"
        placed = self.by_place(cast(Choice, plain(reply)))
        if placed.equal:
            return "same"
        parts = [("best", placed.best), ("worst", placed.worst)]
        return ", ".join(f"{word} {place + 1}" for word, place in parts if place is not None)


@dataclass(frozen=True, eq=False)
class ShownMenu(Placed):
    """A menu as a person sees it."""

    question: Menu
    order: tuple[int, ...]

    @property
    def alternatives(self) -> list[Alternative]:
        """The alternatives in the order in which they are shown."""
        return [self.question.alternatives[number] for number in self.order]


def order_of(seed: int | None, menu: Menu) -> tuple[int, ...]:
    """Return the order in which a menu is shown: at random, but the same whenever it is asked again.

    Without a seed it is the strategy's own.
    """
    numbers = range(len(menu.alternatives))
    if seed is None:
        return tuple(numbers)
    values = (np.round(menu.values, 9) + 0.0).tobytes()
    return tuple(sorted(numbers, key=lambda i: hashlib.sha256(f"{seed}/{i}/{menu.asks}/".encode() + values).digest()))
