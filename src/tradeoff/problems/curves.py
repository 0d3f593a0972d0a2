"""Beyond linear preferences: every objective of a catalogue in a few pieces, each of which is weighed on its own.

With weights >= 0, the pieces of an objective add up to a curve: any concave one with these kinks, so that the first bit counts
most (diminishing returns), or any that only rises, so that thresholds can be learned as well. A curved catalogue is a catalogue
with more objectives; strategies, certificates and laws hold as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, cast, get_args

import numpy as np

from tradeoff.errors import ArgumentError
from tradeoff.model import Alternative, Answer, Item, Matrix, Objective, Vector
from tradeoff.problem import ScaledProblem
from tradeoff.problems.catalogue import Catalogue
from tradeoff.problems.dominance import undominated

Shape: TypeAlias = Literal["concave", "monotone"]
PIECES, MOST_PIECES = 3, 8
SAMPLED = 4_000  # weights that are tried before linear programs are
MOST_COUNTED = 300  # items up to which those that can never win are counted
CLEAR = 1e-7  # by this much an answer must be meant, in gains, to be one


class CurvedCatalogue(Catalogue):
    """A catalogue whose objectives are pieces of those of another one, ``uncurved``, with the same items."""

    storable = False  # a file would forget what the pieces are pieces of
    limiter = ""  # limits come before curves
    uncurved: Catalogue
    pieces: tuple[int, ...]  # of which objective each piece is

    def as_read(self, alternative: Alternative) -> Alternative | None:
        """Return an item as an alternative of the catalogue without curves, which people read; None for a mixture."""
        return self.uncurved.alternative(alternative.plan.index) if isinstance(alternative.plan, Item) else None


def curved(problem: ScaledProblem, shape: object = "concave") -> CurvedCatalogue:
    """Return a catalogue with its objectives in pieces; ``shape`` is "concave" or "monotone", with ":5" for five pieces.

    >>> aims = [Objective("price", "EUR", "min"), Objective("battery", "h")]
    >>> laptops = Catalogue([[1200, 9], [700, 5], [900, 8], [800, 7]], aims)
    >>> [o.name for o in curved(laptops, "concave:2").objectives]
    ['price (down to 850 EUR)', 'price', 'battery (up to 7.5 h)', 'battery']
    """
    word, _, number = str(shape).partition(":")
    if word not in get_args(Shape) or (number and not (number.isdecimal() and 2 <= int(number) <= MOST_PIECES)):
        raise ArgumentError(
            f"curves are {str(shape)!r:.60}; write concave or monotone, perhaps with the number of pieces from 2 to "
            f"{MOST_PIECES}: concave:4"
        )
    if not isinstance(problem, Catalogue) or isinstance(problem, CurvedCatalogue):
        raise ArgumentError(
            f"{problem.name!r} is no table of items, or has curves already; curves are for tables of items"
        )
    columns: list[Vector] = []
    aims: list[Objective] = []
    of: list[int] = []
    for j, objective in enumerate(problem.objectives):
        parts = _parts(problem, j, cast(Shape, word), int(number or PIECES))
        for name, values in parts:
            columns.append(values)
            aims.append(Objective(name, objective.unit, objective.goal, objective.description))
            of.append(j)
    made = CurvedCatalogue(
        np.stack(columns, axis=1), aims, problem.names, labels=problem.labels, name=problem.name, title=problem.title,
        about=problem.about, notes=[*problem.notes, f"every objective is a {word} curve of up to {number or PIECES} pieces"],
    )  # fmt: skip
    made.uncurved, made.pieces = problem, tuple(of)
    return made


def _parts(catalogue: Catalogue, j: int, shape: Shape, count: int) -> list[tuple[str, Vector]]:
    """Return the pieces of an objective: their names, and the amounts of all items, cut off at the ends of the piece."""
    objective, values = catalogue.objectives[j], catalogue.values[:, j]
    goods = objective.sign * values
    inside = np.unique(np.quantile(goods, np.arange(1, count) / count))
    low, high = float(goods.min()), float(goods.max())
    knots = [float(knot) for knot in inside if low < knot < high]
    if not knots:
        return [(objective.name, values)]
    ends = [low, *knots, high]

    def text(good: float) -> str:
        return objective.text(objective.sign * good)

    word = "up to" if objective.sign > 0 else "down to"
    found = []
    for i in range(1, len(ends)):
        begin = low if shape == "concave" else ends[i - 1]
        name = f"{objective.name} ({word} {text(ends[i])})"
        if shape == "monotone":
            name = f"{objective.name} ({text(begin)} to {text(ends[i])})"
        elif i == len(ends) - 1:
            name = objective.name
        found.append((name, np.clip(goods, begin, ends[i]) * objective.sign + 0.0))
    if len({name for name, _ in found}) < len(found):  # knots so close that their texts are the same
        found = [(f"{objective.name}, part {i}", column) for i, (_, column) in enumerate(found, start=1)]
    return found


# --- what linear preferences leave out --------------------------------------------------------------------------------


def never_best(catalogue: Catalogue) -> int | None:
    """Return how many items that nothing beats are best for no weights >= 0; None where counting would take long.

    >>> never_best(Catalogue([[10, 0], [0, 10], [4.8, 4.8]]))
    1
    """
    if "never_best" not in catalogue.__dict__:
        catalogue.__dict__["never_best"] = _count_never_best(catalogue)
    found: int | None = catalogue.__dict__["never_best"]
    return found


def _count_never_best(catalogue: Catalogue) -> int | None:
    efficient = np.flatnonzero(undominated(catalogue.values, catalogue.objectives))
    if len(efficient) > MOST_COUNTED:
        return None
    gains = catalogue.gains[efficient]
    k = gains.shape[1]
    weights = np.concatenate([np.random.default_rng(0).dirichlet(np.ones(k), SAMPLED), np.eye(k)])
    winners = {int(i) for i in (weights @ gains.T).argmax(axis=1)}
    others = [i for i in range(len(gains)) if i not in winners]
    return sum(_margin(gains[i] - np.delete(gains, i, axis=0)) < -CLEAR for i in others)


def fits(gains: Matrix, answers: Sequence[tuple[int, int, Answer]]) -> bool:
    """Return whether some weights >= 0 agree with every answer that prefers one of two items."""
    rows = [answer.sign * (gains[a] - gains[b]) for a, b, answer in answers if answer is not Answer.SAME]
    return not rows or _margin(np.array(rows)) > CLEAR


def _margin(better: Matrix) -> float:
    """Return the largest m such that some weights >= 0 with sum 1 give every row at least m."""
    from scipy.optimize import linprog

    k = better.shape[1]
    found = linprog(
        np.append(np.zeros(k), -1.0), A_ub=np.hstack([-better, np.ones((len(better), 1))]), b_ub=np.zeros(len(better)),
        A_eq=[[*np.ones(k), 0.0]], b_eq=[1.0], bounds=[*[(0, None)] * k, (None, None)], method="highs",
    )  # fmt: skip
    assert found.x is not None  # weights of 1/k with a small m are always possible
    return float(found.x[-1])
