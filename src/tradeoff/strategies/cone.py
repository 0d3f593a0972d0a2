"""The consistent set: every (weights, precision) that agrees with a respondent's answers, as a cone with its extreme rays.

A point is ``z = (w, e)``: d weights ``w >= 0`` and the precision ``e`` below which differences go unnoticed. Every answer cuts
the cone with half-spaces ``a @ z >= 0`` (``evidence.half_spaces``). Only the ray through z matters, so points are normalised to
``sum(w) = 1``; ``0 <= e <= e_max`` there.

The extreme rays are kept up to date by ``skeleton.py``, whose hull is never smaller than the set but for rounding. So the
largest value of a quasi-convex function over them is a bound for everyone who agrees with the answers. An answer with which
there would be too many rays is left out of them: the hull is then larger than the set, and bounds still hold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tradeoff.errors import ArgumentError
from tradeoff.model import Matrix, Vector
from tradeoff.numerics import worths
from tradeoff.strategies.skeleton import RAY_LIMIT, TOUCH, Skeleton, TooManyRays, distinct

__all__ = ["RAY_LIMIT", "TOUCH", "Cone", "LabelledRows", "TooManyRays"]

LP_TOUCH = 1e-9  # TOUCH where only linear programs are affordable: HiGHS is asked for feasibility to 1e-10
TOLERANCES: Any = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
# Work limits of the search for a smallest conflict; what is found by then is nearly always smallest.
CONFLICT_ROUNDS, CONFLICT_NODES = 20, 2_000

LabelledRows = tuple[int, Matrix]  # the half-spaces of an answer under its label


class Cone:
    """The set of (weights, precision) consistent with some answers; never changed, :meth:`add` returns another.

    >>> cone = Cone.orthant(2, e_max=1.0)
    >>> cone.rays.tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
    >>> cone = cone.add([[1.0, -1.0, -1.0]], 1)  # prefers the first: w1 - w2 >= e
    >>> cone.rays.tolist()
    [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [1.0, 0.0, 1.0]]
    >>> cone.bounds([0.0, 1.0, 0.0])
    (0.0, 0.5)
    >>> cone.add([[-1.0, 3.0, -1.0]], 2).add([-1.0, 0.5, 0.0], 3).conflict()
    (1, 3)
    """

    def __init__(
        self,
        half_spaces: Matrix,
        row_labels: tuple[int, ...],
        e_max: float,
        limit: int,
        skeleton: Skeleton,
        complete: bool = True,
        interior: Vector | None = None,
    ) -> None:
        """Not called directly: cones start from :meth:`orthant`."""
        half_spaces.flags.writeable = False
        self.half_spaces = half_spaces  # [d + 2 + answers' rows, m], scaled; the first d + 2 are the cone's own bounds
        self.row_labels = row_labels  # one for each row after the first d + 2
        self.e_max, self.limit = e_max, limit
        self.complete = complete  # whether the skeleton has all answers
        self._skeleton, self._known_interior = skeleton, interior

    @classmethod
    def orthant(cls, d: int, e_max: float = 1.0, limit: int = RAY_LIMIT) -> Cone:
        """Return the cone of d weights and a precision of at most ``e_max`` times their sum, before any answer."""
        if d < 1 or not 0.0 < e_max < np.inf:
            raise ArgumentError(f"a cone needs at least one weight and 0 < e_max < inf; found d={d}, e_max={e_max}")
        own = np.vstack([np.eye(d + 1), np.r_[np.full(d, e_max), -1.0]])
        own[d:] /= e_max
        return cls(own, (), float(e_max), limit, Skeleton.prism(d, float(e_max)))

    @property
    def d(self) -> int:
        """The number of weights."""
        return int(self.half_spaces.shape[1]) - 1

    @cached_property
    def labels(self) -> tuple[int, ...]:
        """The answers' labels in the order in which they came."""
        return tuple(dict.fromkeys(self.row_labels))

    def add(self, half_spaces: ArrayLike, label: int, *, scaled: bool = False) -> Cone:
        """Return the part of this cone where ``a @ z >= 0`` for each row a of ``half_spaces``.

        One answer is one label, whatever the number of its half-spaces. Rays that stay are the same numbers, bit for bit. Rows
        that were ``scaled`` before are taken as they are.
        """
        rows: Matrix = np.asarray(half_spaces) if scaled else self.scaled(half_spaces)
        everything = np.concatenate([self.half_spaces, rows])
        labels = self.row_labels + (label,) * len(rows)
        skeleton, complete, interior = self._skeleton, self.complete, None
        try:
            for index, row in enumerate(rows, len(self.half_spaces)):
                skeleton = skeleton.cut(row, index, self.limit)
        except TooManyRays:
            skeleton, complete = self._skeleton, False
        if complete and len(skeleton.rays):
            interior = _inside(skeleton, everything)
            if interior is None:
                skeleton = skeleton.none()
        return Cone(everything, labels, self.e_max, self.limit, skeleton, complete, interior)

    def add_all(self, answers: Iterable[LabelledRows]) -> Cone:
        """Return the part of this cone that fits these answers as well."""
        cone = self
        for label, rows in answers:
            cone = cone.add(rows, label)
        return cone

    @property
    def without_rays(self) -> bool:
        """Whether no ray is left; the cone is empty, then, with whatever is added."""
        return not len(self._skeleton.rays)

    @property
    def nbytes(self) -> int:
        """About how many bytes the cone takes."""
        parts = [self.half_spaces, *vars(self._skeleton).values()]
        return int(sum(part.nbytes for part in parts if part is not None))

    @cached_property
    def rays(self) -> Matrix:
        """The extreme rays of a set that contains this one, ``[n, m]``, with weights that sum to 1; none if it is empty."""
        rays = distinct(self._skeleton.rays)
        rays.flags.writeable = False
        return rays

    @property
    def empty(self) -> bool:
        """Whether nothing is consistent: no point satisfies every half-space with room to spare.

        "Prefers the first" means *more* than the precision, so a set that is flat counts as empty; a real respondent's set
        always has an interior (a slightly larger precision changes none of the strict answers).
        """
        return self.interior is None

    @cached_property
    def interior(self) -> Vector | None:
        """A point well inside the set, or None where the set is empty."""
        point = self._known_interior
        if point is None and not self.without_rays:
            point = _inside(self._skeleton, self.half_spaces) if self.complete else _central_point(self.half_spaces)
        if point is not None:
            point.flags.writeable = False
        return point

    def bounds(self, direction: ArrayLike) -> tuple[float, float]:
        """Return the least and the largest ``direction @ z`` over the points whose weights sum to 1."""
        c = np.asarray(direction, np.float64)
        if self.empty:
            raise ArgumentError("an empty set has no bounds: the answers contradict each other; see Cone.conflict()")
        if not self.complete:
            low, high = (_extreme(self.half_spaces, sign * c) for sign in (1.0, -1.0))
            return float(c @ low), float(c @ high)
        values = self.rays @ c
        return float(values.min()), float(values.max())

    def rays_if_one_is_wrong(self, answers: Sequence[LabelledRows], limit: int) -> Matrix:
        """Return the extreme rays of every set in which exactly one of these answers is wrong.

        Together with the rays of this cone, whose answers these are, they bound what fits all answers but any one. Each of
        these sets has at most ``limit`` rays.
        """
        found = [np.zeros((0, self.d + 1))]
        before = Cone.orthant(self.d, self.e_max, limit)
        rows = [before.scaled(rows) for _, rows in answers]
        for position, (label, _) in enumerate(answers):
            for row in rows[position]:  # "about equal" can be wrong in either direction, a choice in any comparison
                opposite = before.add(-row[None, :], label, scaled=True)
                for later in range(position + 1, len(answers)):
                    if opposite.without_rays:  # more answers would change nothing
                        break
                    opposite = opposite.add(rows[later], answers[later][0], scaled=True)
                if not opposite.empty:
                    found.append(opposite.rays)
            before = before.add(rows[position], label, scaled=True)
        return np.vstack(found)

    # --- contradictions ---------------------------------------------------------------------------------------------

    def irreducible_conflict(self) -> tuple[int, ...]:
        """Return the labels of answers that cannot all hold, while any of them can be left out; none if all can hold.

        Farkas' lemma gives a set of at most m + 1 to start with, which is thinned out by linear programs.
        """
        if not self.empty:
            return ()
        found = list(self.labels)
        first = self._dependent()
        if first and len(first) < len(found) and self._contradict(first):
            found = first
        for label in tuple(reversed(found)):
            fewer = [other for other in found if other != label]
            if self._contradict(fewer):
                found = fewer
        return tuple(found)

    def conflict(self) -> tuple[int, ...]:
        """Return the labels of a smallest set of answers that cannot all hold, in their order; none if all can.

        An integer program looks for anything smaller than :meth:`irreducible_conflict`. Its tolerance (1e-7) only ever errs
        towards finding too much, so every find is checked and forbidden if false. The search has limits of work, not of time;
        beyond them the smallest set found so far is returned.
        """
        best = list(self.irreducible_conflict())
        harmless: list[list[int]] = []
        while len(best) > 1 and len(harmless) < CONFLICT_ROUNDS:
            found = self._smallest_dependent(len(best) - 1, harmless)
            if found is None:
                break
            if self._contradict(found):
                best = found  # the integer program's optimum: nothing smaller is left
                break
            harmless.append(found)
        return tuple(best)

    def scaled(self, half_spaces: ArrayLike) -> Matrix:
        """Return the rows scaled by powers of two so that the largest ``|a @ z|`` before any answer is 0.5 to 1."""
        rows = np.atleast_2d(np.array(half_spaces, np.float64))
        if rows.ndim != 2 or rows.shape[1] != self.d + 1 or not np.isfinite(rows).all():
            raise ArgumentError(
                f"a half-space of this cone is {self.d + 1} finite numbers ({self.d} weights, then the precision's); "
                f"found {half_spaces!r}"
            )
        ends = np.concatenate([rows[:, :-1], rows[:, :-1] + self.e_max * rows[:, -1:]], axis=1)
        size = np.abs(ends).max(axis=1)
        if not size.all():  # "0 >= 0" holds; it is kept, for its label, in the form sum(w) >= 0
            rows[size == 0.0] = np.append(np.full(self.d, 0.5), 0.0)
        # Powers of two change no digit, so that rows taken from another cone stay as they are.
        scaled: Matrix = np.ldexp(rows, -np.frexp(size)[1][:, None])
        return scaled

    def _contradict(self, labels: Collection[int]) -> bool:
        """Return whether these answers alone cannot all hold: a linear program says, and the rays where it is close."""
        chosen = set(labels)
        stay = [True] * (self.d + 2) + [label in chosen for label in self.row_labels]
        slack, _ = _most_slack(self.half_spaces[stay])
        if abs(slack) > LP_TOUCH:
            return slack < 0.0
        rows, owners = self.half_spaces[self.d + 2 :], np.array(self.row_labels)
        alone = Cone.orthant(self.d, self.e_max, self.limit)
        return alone.add_all((label, rows[owners == label]) for label in labels).empty

    def _columns(self) -> Matrix:
        """Return the columns of Farkas' system: y >= 0 on the answers' rows, u >= 0 on e_max sum(w) - e >= 0.

        ``A'y + u (e_max, .., e_max, -1) <= 0`` and ``sum(y) = 1``
        """
        return np.vstack([self.half_spaces[self.d + 2 :], self.half_spaces[self.d + 1]]).T

    def _dependent(self) -> list[int] | None:
        """Return labels whose half-spaces have a non-negative combination that is nowhere positive, or None."""
        from scipy.optimize import linprog  # slow to import, seldom needed

        columns, n = self._columns(), len(self.row_labels)
        convex = np.r_[np.ones(n), 0.0]
        done = linprog(np.zeros(n + 1), A_ub=columns, b_ub=np.zeros(self.d + 1), A_eq=convex[None], b_eq=[1.0])
        if done.x is None:
            return None
        used = {self.row_labels[i] for i in np.flatnonzero(done.x[:n] > LP_TOUCH)}
        return [label for label in self.labels if label in used]

    def _smallest_dependent(self, most: int, harmless: list[list[int]]) -> list[int] | None:
        """Return the fewest such labels, at most ``most`` of them and not all within one of the ``harmless`` sets."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        n, labels = len(self.row_labels), self.labels
        column = {label: j for j, label in enumerate(labels)}
        owner = np.zeros((n, len(labels)))
        owner[np.arange(n), [column[label] for label in self.row_labels]] = 1.0
        blank = np.zeros((1, len(labels)))
        constraints = [
            LinearConstraint(np.hstack([self._columns(), np.repeat(blank, self.d + 1, axis=0)]), -np.inf, 0.0),
            LinearConstraint(np.hstack([np.r_[np.ones(n), 0.0][None], blank]), 1.0, 1.0),
            LinearConstraint(np.hstack([np.eye(n), np.zeros((n, 1)), -owner]), -np.inf, 0.0),
            LinearConstraint(np.r_[np.zeros(n + 1), np.ones(len(labels))][None], 1.0, most),
        ]
        for known in harmless:
            outside = [0.0 if label in known else 1.0 for label in labels]
            constraints.append(LinearConstraint(np.r_[np.zeros(n + 1), outside][None], 1.0, np.inf))
        upper = np.r_[np.ones(n), np.inf, np.ones(len(labels))]
        whole = np.r_[np.zeros(n + 1), np.ones(len(labels))]
        done = milp(
            whole, integrality=whole, bounds=Bounds(np.zeros(len(whole)), upper), constraints=constraints,
            options={"node_limit": CONFLICT_NODES},
        )  # fmt: skip
        if done.x is None:
            return None
        return [label for label, chosen in zip(labels, done.x[n + 1 :], strict=True) if chosen > 0.5]


def _inside(skeleton: Skeleton, half_spaces: Matrix) -> Vector | None:
    """Return a point that satisfies every half-space with room to spare, or None where the set is flat."""
    centre: Vector = np.add.reduce(skeleton.rays, axis=0) / len(skeleton.rays)
    if np.minimum.reduce(worths(half_spaces, centre[None])[:, 0]) > 0.0:
        return centre
    return _central_point(half_spaces)  # the rays may reach beyond a cut that had to be moved outward


def _central_point(half_spaces: Matrix) -> Vector | None:
    """Return the point whose least slack is largest, or None where the set is flat."""
    slack, point = _most_slack(half_spaces)
    return point if slack > LP_TOUCH else None


def _most_slack(half_spaces: Matrix) -> tuple[float, Vector | None]:
    """Return the largest that the least slack can be, negative where the half-spaces contradict, and where it is."""
    from scipy.optimize import linprog

    n, m = half_spaces.shape
    done = linprog(
        np.r_[np.zeros(m), -1.0],
        A_ub=np.hstack([-half_spaces, np.ones((n, 1))]),
        b_ub=np.zeros(n),
        A_eq=np.r_[np.ones(m - 1), 0.0, 0.0][None],
        b_eq=[1.0],
        bounds=[(0.0, None)] * m + [(None, 1.0)],
        options=TOLERANCES,
    )
    if done.x is None:
        return -np.inf, None
    return float(done.x[-1]), done.x[:-1] / done.x[:-2].sum()


def _extreme(half_spaces: Matrix, direction: Vector) -> Vector:
    """Return the point of the (non-empty) cross-section where ``direction @ z`` is least."""
    from scipy.optimize import linprog

    total = np.r_[np.ones(len(direction) - 1), 0.0][None]
    no_slack = np.zeros(len(half_spaces))
    done = linprog(direction, A_ub=-half_spaces, b_ub=no_slack, A_eq=total, b_eq=[1.0], options=TOLERANCES)
    assert done.x is not None, done.message  # the cross-section is bounded, and callers know it is not empty
    point: Vector = np.maximum(done.x, 0.0)
    return point
