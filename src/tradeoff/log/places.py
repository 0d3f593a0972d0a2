"""The places of a menu: which alternative stands where, and replies by place and by number, counted from 0."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from tradeoff.menus import Menu, Ranking
from tradeoff.model import Alternative


class Placed:
    """Something with several alternatives: ``order[p]`` is the number of the one shown at place p.

    This is the one place where places become numbers, and back.
    """

    order: tuple[int, ...]

    def by_number(self, placed: Ranking) -> Ranking:
        """Return a ranking of places as one of the alternatives' numbers."""
        return placed.renumbered(self.order)

    def by_place(self, ranking: Ranking) -> Ranking:
        """Return a ranking of the alternatives' numbers as one of places."""
        return ranking.renumbered(sorted(range(len(self.order)), key=self.order.__getitem__))

    def said(self, reply: Ranking | None) -> str:
        """Return what was chosen, by places counted from 1: "best 2, worst 4", "2 > 1 > 3", "same" or "skip"."""
        if reply is None:
            return "skip"
        placed = self.by_place(reply)
        if placed.equal:
            return "same"
        if len(placed.tiers) == len(self.order):
            return " > ".join(str(tier[0] + 1) for tier in placed.tiers)
        best, worst = placed.best, placed.worst
        parts = [("best", best), ("worst", worst)]
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
