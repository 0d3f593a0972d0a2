"""A question as a respondent sees it: which option stands where."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from tradeoff.model import Option, Question, Reply


@dataclass(frozen=True, eq=False)
class ShownQuestion:
    """A question with its options in the order in which they are shown: ``order[p]`` is the position of the one at place p.

    ``again`` if the same pair was answered before with the sides swapped.
    """

    question: Question
    order: tuple[int, ...]
    again: bool = False

    @property
    def options(self) -> list[Option]:
        """The options in the order in which they are shown."""
        return [self.question.options[position] for position in self.order]

    def by_position(self, placed: Reply) -> Reply:
        """Return a reply about places as one about the question's options."""
        return placed.renumbered(self.order)

    def by_place(self, reply: Reply) -> Reply:
        """Return a reply about the question's options as one about places."""
        return reply.renumbered(sorted(range(len(self.order)), key=self.order.__getitem__))


def display_order(seed: int | None, question: Question) -> tuple[int, ...]:
    """Return the order in which a question is shown: at random, but the same whenever it is asked again.

    Without a seed it is the strategy's own.
    """
    positions = range(len(question.options))
    if seed is None:
        return tuple(positions)
    values = (np.round(question.values, 9) + 0.0).tobytes()
    return tuple(
        sorted(positions, key=lambda i: hashlib.sha256(f"{seed}/{i}/{question.asks}/".encode() + values).digest())
    )
