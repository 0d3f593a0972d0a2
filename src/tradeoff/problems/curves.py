"""Beyond linear preferences: every objective of a catalogue in a few pieces, each of which is weighed on its own.

With weights >= 0, the pieces of an objective add up to a curve: any concave one with these kinks, so that the first bit counts
most (diminishing returns), or any that only rises, so that thresholds can be learned as well. A curved catalogue is a catalogue
with more objectives; strategies, certificates and laws hold as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal, TypeAlias, cast, get_args

import numpy as np

from tradeoff.errors import ArgumentError
from tradeoff.model import Item, Lottery, Matrix, Objective, Option, Vector
from tradeoff.problem import ScaledProblem
from tradeoff.problems.catalogue import Catalogue
from tradeoff.problems.dominance import undominated

Shape: TypeAlias = Literal["concave", "monotone"]
PIECES, MOST_PIECES = 3, 8
SAMPLED = 4_000  # weights that are tried before linear programs are
MOST_COUNTED = 300  # items up to which those that can never win are counted
CLEAR = 1e-7  # in gains: a strict preference has at least this margin


class CurvedCatalogue(Catalogue):
    """A catalogue whose objectives are pieces of those of another one, ``uncurved``, with the same items.

    People read the amounts and the objectives of ``original``; strategies weigh the pieces.
    """

    storable = False  # a file would forget what the pieces are pieces of
    why_not_storable = "a file cannot hold curves; leave out --curves, and add it again when you ask about the table"
    limiter = ""  # limits come before curves
    uncurved: Catalogue
    shape: Shape
    ends: Matrix  # [k, 2]: where each piece begins and ends, the negative of an amount if less is better
    pieces: Matrix  # [k, m]: 1 where a piece is one of an objective

    @property
    def original(self) -> Catalogue:
        """The catalogue without curves."""
        return self.uncurved

    @property
    def beaten(self) -> Mapping[str, Sequence[float]]:
        """What the items come to that were left out because others beat them, by name, without curves."""
        return self.uncurved.beaten

    def as_read(self, option: Option) -> Option:
        """Return an option as one of the catalogue without curves."""
        plan = option.plan
        if isinstance(plan, Item):
            return self.uncurved.left_out(plan.name) if plan.index < 0 else self.uncurved.option(plan.index)
        return Option(option.value @ self.straight.T, plan)

    def cut(self, amounts: Vector) -> Vector:
        """Return the amounts of the pieces, given those of the objectives; the outermost pieces have no end."""
        sign = np.array([o.sign for o in self.objectives])
        result: Vector = sign * np.clip(sign * (self.pieces @ amounts), *self.ends.T)
        return result

    @cached_property
    def straight(self) -> Matrix:
        """The weights [m, k] of the pieces of each objective that make its curve a straight line."""
        lengths = np.where(self.matters, np.abs(self.scale), 0.0)[:, None] * self.pieces
        if self.shape == "concave":  # the longest piece is the objective itself
            lengths = np.where(lengths >= lengths.max(axis=0), lengths, 0.0)
        lengths = np.where(lengths.any(axis=0), lengths, self.pieces)  # an objective that is the same for all items
        result: Matrix = (lengths / lengths.sum(axis=0)).T
        return result

    def show(self, option: Option) -> Lottery:
        """Return an option in readable form, in the amounts of the catalogue without curves."""
        return self.uncurved.show(self.as_read(option))


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
        why = "is not a table of items" if problem.items is None else "was compiled, or has curves already"
        raise ArgumentError(f"{problem.name!r} {why}; curves are for tables of items as they are")
    columns: list[Vector] = []
    aims: list[Objective] = []
    ends: list[tuple[float, float]] = []
    of: list[int] = []
    for j, objective in enumerate(problem.objectives):
        parts = _parts(problem, j, cast(Shape, word), int(number or PIECES))
        for name, values, begin_and_end in parts:
            columns.append(values)
            aims.append(Objective(name, objective.unit, objective.goal, objective.description))
            ends.append(begin_and_end)
            of.append(j)
    made = CurvedCatalogue(
        np.stack(columns, axis=1), aims, problem.names, labels=problem.labels, name=problem.name, title=problem.title,
        about=problem.about, noun=problem.noun,
        notes=[*problem.notes, f"every objective is a {word} curve of up to {number or PIECES} pieces"],
    )  # fmt: skip
    made.shape, made.ends, made.pieces = cast(Shape, word), np.array(ends), np.eye(len(problem.objectives))[of]
    made.uncurved = problem
    if problem.reference.outcome is not None:  # pieces are counted from the worst of all items, so people read that
        made.uncurved = problem.subset(np.arange(len(problem.names)))
        made.uncurved.reference, made.uncurved.whole = made.reference, problem.whole
    return made


def _parts(catalogue: Catalogue, j: int, shape: Shape, count: int) -> list[tuple[str, Vector, tuple[float, float]]]:
    """Return the pieces of an objective: their names, the amounts of all items, cut off at the ends, and these ends."""
    objective, values = catalogue.objectives[j], catalogue.values[:, j]
    goods = objective.sign * values
    inside = np.unique(np.quantile(goods, np.arange(1, count) / count))
    low, high = float(goods.min()), float(goods.max())
    knots = [float(knot) for knot in inside if low < knot < high]
    if not knots:
        return [(objective.name, values, (-np.inf, np.inf))]
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
        column = np.clip(goods, begin, ends[i]) * objective.sign + 0.0
        found.append((name, column, (begin if begin > low else -np.inf, ends[i] if ends[i] < high else np.inf)))
    if len({name for name, *_ in found}) < len(found):  # knots so close that their texts are the same
        found = [(f"{objective.name}, part {i}", column, end) for i, (_, column, end) in enumerate(found, start=1)]
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


def fits(gains: Matrix, preferred: Sequence[tuple[int, int]]) -> bool:
    """Return whether some weights >= 0 agree with every preference of an item over another, given by their numbers."""
    rows = [gains[better] - gains[worse] for better, worse in preferred]
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
