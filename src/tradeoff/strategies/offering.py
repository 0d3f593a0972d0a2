"""Which alternatives to put on one menu: all small sets of the contenders, and how likely everybody is to reply what."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tradeoff.menus import PREFERRED, QUESTIONS, Asks, Choice, Menu, comparisons, implied, members, shapes
from tradeoff.model import Indices, Matrix, Vector
from tradeoff.strategies.belief import Belief
from tradeoff.strategies.cache import Candidates
from tradeoff.strategies.choosing import entropy

# Contenders that menus are made of, by the size of the menu: 220 and 210 menus. More take longer and save nothing that
# could be measured (benchmarks/questions.py --kinds).
CONTENDERS = {3: 12, 4: 10}


@dataclass(frozen=True, eq=False)
class Offer:
    """Candidate menus: ``numbers[Q, n]`` of candidates, and what each particle replies to each of them."""

    asks: Asks
    numbers: Indices
    chances: NDArray[np.float64]  # [A, M, Q], replies in the order of ``shapes``

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def replies(self) -> list[Choice]:
        """All replies, in the order of ``chances``."""
        return shapes(self.numbers.shape[1], self.asks)

    def menu(self, index: int, candidates: Candidates) -> Menu:
        """Return a menu to be asked about."""
        return Menu(tuple(candidates.alternatives[i] for i in self.numbers[index]), self.asks)

    def with_lapses(self, lapse: float | Vector) -> NDArray[np.float64]:
        """Return how likely each reply is if any other one is given with probability ``lapse``, of all or of each particle."""
        others = len(self.chances) - 1
        wrong = np.broadcast_to(np.asarray(lapse)[..., None], (self.chances.shape[1], 1))
        result: NDArray[np.float64] = self.chances * (1 - wrong * (others + 1) / others) + wrong / others
        return result

    def surprise(self, chances: NDArray[np.float64]) -> Vector:
        """Return how many bits a reply tells about the person."""
        told = entropy(chances.mean(axis=1)) - entropy(chances).mean(axis=0)
        result: Vector = np.maximum(told, 0.0)
        return result

    def fresh(self, candidates: Candidates, done: frozenset[frozenset[bytes]]) -> NDArray[np.bool_]:
        """Return which menus are none of those that were answered or skipped."""
        return np.array([members(self.menu(i, candidates)) not in done for i in range(len(self))], dtype=bool)

    def statement(self, index: int, reply: Choice, candidates: Candidates) -> tuple[Matrix, NDArray[np.int64]]:
        """Return what a reply to a menu says about the objectives that can be changed."""
        differences, outcomes = comparisons(self.menu(index, candidates), reply)
        return differences[:, candidates.relevant], outcomes

    def easiest(self, scores: Vector, candidates: Candidates, *, allowed: NDArray[np.bool_], nearly: float) -> int:
        """Return the menu to offer: of those ``nearly`` as good as the best, one that differs in few objectives."""
        usable = np.where(allowed, scores, -np.inf)
        best = float(usable.max())
        good = np.flatnonzero(usable >= best - (1 - nearly) * abs(best))
        differing = (np.ptp(candidates.gains[self.numbers[good]], axis=1) > 1e-9).sum(axis=1)
        return int(good[np.lexsort((-scores[good], differing))[0]])


def offer(questions: str, numbers: list[int], candidates: Candidates, belief: Belief) -> Offer | None:
    """Return all menus of these candidates, the most promising first; None where they are too few, or pairs are asked."""
    size, asks = QUESTIONS[questions]
    if size < 3 or len(numbers) < size:
        return None
    chosen = np.array(list(combinations(numbers[: CONTENDERS[size]], size)), dtype=np.int64)
    worth = belief.weights @ candidates.gains.T
    return Offer(asks, chosen, reply_chances(worth[:, chosen], belief.precision, asks))


def reply_chances(worth: NDArray[np.float64], precision: Vector, asks: Asks) -> NDArray[np.float64]:
    """Return how likely each particle is to give each reply, [A, M, Q]; ``worth`` is [M, Q, n].

    Who cannot tell some alternatives apart takes any of the choices that are possible then, each as likely.
    """
    size = worth.shape[2]
    least = precision[:, None]
    gap = worth[:, :, :, None] - worth[:, :, None, :]
    better, not_worse = gap > least[:, :, None, None], gap >= -least[:, :, None, None]
    low = worth.min(axis=2)
    found = []
    for choice in shapes(size, asks)[:-1]:
        fits = np.ones(worth.shape[:2], dtype=bool)
        for first, second, outcome in implied(choice):
            fits &= better[:, :, first, second] if outcome == PREFERRED else not_worse[:, :, first, second]
        if choice.best is not None and choice.worst is None:  # it is told apart from something
            fits &= worth[:, :, choice.best] - low > least
        found.append(fits)
    possible = np.array([*found, np.ptp(worth, axis=2) <= least], dtype=np.float64)
    result: NDArray[np.float64] = possible / np.maximum(possible.sum(axis=0), 1.0)
    return result
