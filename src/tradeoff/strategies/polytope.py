"""The consistent set: every (weights, precision) that agrees with a person's answers, as a cone with its extreme rays.

A point is ``z = (w, e)``: d weights ``w >= 0`` and the precision ``e`` below which differences go unnoticed. Every
answer cuts the cone with half-spaces ``a @ z >= 0`` (:func:`half_spaces` writes them down). Only the ray through z
matters, so points are normalised to ``sum(w) = 1``; ``0 <= e <= e_max`` there.

The extreme rays are kept up to date by ``rays.py``, whose hull is never smaller than the set but for rounding, so the
largest value of a quasi-convex function over them is a bound for everyone who agrees with the answers.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tradeoff.errors import ArgumentError
from tradeoff.strategies.rays import RAY_LIMIT, TOUCH, Skeleton, TooManyRays, distinct
from tradeoff.strategies.sampling import half_spaces, hit_and_run

__all__ = ["RAY_LIMIT", "TOUCH", "Cone", "TooManyRays", "half_spaces"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

LP_TOUCH = 1e-9  # TOUCH where only linear programs are affordable: HiGHS is asked for feasibility to 1e-10


class Cone:
    """The set of (weights, precision) consistent with some answers; never changed, :meth:`add` returns another.

    >>> cone = Cone.orthant(2, e_max=1.0)
    >>> cone.rays.tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
    >>> cone = cone.add(half_spaces([1.0, -1.0], +1), "prefers the first")  # w1 - w2 >= e
    >>> cone.rays.tolist()
    [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [1.0, 0.0, 1.0]]
    >>> cone.bounds([0.0, 1.0, 0.0])
    (0.0, 0.5)
    >>> cone.add(half_spaces([1.0, -3.0], -1), "prefers the second").add([-1.0, 0.5, 0.0], "at odds").conflict()
    ('prefers the first', 'at odds')
    """

    def __init__(
        self,
        half_spaces: Matrix,
        labels: tuple[Hashable, ...],
        e_max: float,
        limit: int,
        skeleton: Skeleton | None,
    ) -> None:
        """Not called directly: cones start from :meth:`orthant`. ``skeleton`` is None where there are too many rays."""
        half_spaces.flags.writeable = False
        self.half_spaces = half_spaces  # [d + 2 + answers' rows, m], scaled; the first d + 2 are the cone's own bounds
        self.row_labels = labels  # one for each row after the first d + 2
        self.e_max = e_max
        self.limit = limit
        self._skeleton = skeleton

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
    def labels(self) -> tuple[Hashable, ...]:
        """The answers' labels in the order in which they came."""
        return tuple(dict.fromkeys(self.row_labels))

    def add(self, half_spaces: ArrayLike, label: Hashable) -> Cone:
        """Return the part of this cone where ``a @ z >= 0`` for each row a of ``half_spaces``.

        One answer is one label, whatever the number of its half-spaces ("about equal" has two). The rays are those of
        this cone but for the ones cut off; rays that stay are the same numbers, bit for bit. Adding what already holds
        costs one product; adding what contradicts leaves an empty cone, which :meth:`conflict` explains.
        """
        rows = self._scaled(half_spaces)
        skeleton = self._skeleton
        everything = np.vstack([self.half_spaces, rows])
        if skeleton is not None:
            try:
                for index, row in enumerate(rows, len(self.half_spaces)):
                    skeleton = skeleton.cut(row, index, self.limit)
                if len(skeleton.rays) and _inside(skeleton, everything) is None:
                    skeleton = skeleton.none()
            except TooManyRays:
                skeleton = None
        return Cone(everything, self.row_labels + (label,) * len(rows), self.e_max, self.limit, skeleton)

    def without(self, label: Hashable) -> Cone:
        """Return the cone of all answers but those with this label; immediate where they cut nothing off."""
        own = self.d + 2
        stay = np.array([True] * own + [other != label for other in self.row_labels])
        if stay.all():
            return self
        skeleton = self._skeleton
        if skeleton is not None and len(skeleton.rays) and stay[skeleton.tight].all():
            numbers = (np.cumsum(stay) - 1).astype(np.int32)
            kept = tuple(other for other in self.row_labels if other != label)
            still = Skeleton(skeleton.rays, numbers[skeleton.tight], skeleton.neighbours)
            return Cone(self.half_spaces[stay], kept, self.e_max, self.limit, still)
        return self._only([other for other in self.labels if other != label])

    @cached_property
    def rays(self) -> Matrix:
        """All extreme rays, ``[n, m]``, each with weights that sum to 1; none where the set is empty.

        Raises :class:`TooManyRays` where there are more than the limit.
        """
        rays = distinct(self._listed().rays)
        rays.flags.writeable = False
        return rays

    @property
    def empty(self) -> bool:
        """Whether nothing is consistent: no point satisfies every half-space with room to spare.

        "Prefers the first" means *more* than the precision, so a set that is flat contains nobody either; a real
        person's set always has an interior (a slightly larger precision changes none of the strict answers).
        """
        return self.interior is None

    @cached_property
    def interior(self) -> Vector | None:
        """A point well inside the set, or None where the set is empty."""
        if self._skeleton is None:
            point = _most_slack(self.half_spaces)
        else:
            point = _inside(self._skeleton, self.half_spaces) if len(self._skeleton.rays) else None
        if point is not None:
            point.flags.writeable = False
        return point

    def contains(self, z: ArrayLike, tol: float = LP_TOUCH) -> bool:
        """Whether z, scaled to weights that sum to 1, satisfies every half-space to within ``tol``."""
        point = np.asarray(z, np.float64)
        total = point[:-1].sum()
        return bool(total > 0.0 and (self.half_spaces @ (point / total)).min() >= -tol)

    def bounds(self, direction: ArrayLike) -> tuple[float, float]:
        """Return the least and the largest ``direction @ z`` over the points whose weights sum to 1."""
        c = np.asarray(direction, np.float64)
        self._check_filled("bounds")
        if self._skeleton is None:
            low, high = (_extreme(self.half_spaces, sign * c) for sign in (1.0, -1.0))
            return float(c @ low), float(c @ high)
        values = self.rays @ c
        return float(values.min()), float(values.max())

    def facets(self) -> tuple[Matrix, tuple[Hashable | None, ...]]:
        """Return the half-spaces that are not implied by the others, and their labels (None for the cone's own bounds).

        >>> cone = Cone.orthant(2).add([1.0, -1.0, 0.0], 7).add([2.0, -1.0, 0.0], 8)
        >>> cone.facets()[1]
        (None, None, None, 7)
        """
        skeleton = self._listed()
        found = []
        for row in np.unique(skeleton.tight):
            points = skeleton.rays[(skeleton.tight == row).any(axis=1)]
            if np.linalg.matrix_rank(points, tol=TOUCH) >= self.d:
                found.append(int(row))
        labels = (None,) * (self.d + 2) + self.row_labels
        return self.half_spaces[found], tuple(labels[row] for row in found)

    def sample(self, n: int, rng: np.random.Generator, moves: int | None = None) -> Matrix:
        """Return n points of the set, ``[n, m]``, approximately uniform and nearly independent.

        Hit-and-run, one chain a point, started from random mixtures of the rays and with directions shaped like the
        set. ``moves`` is the length of a chain, 20 m unless given: second moments within 1% up to ten weights.

        >>> inside = Cone.orthant(3).sample(4, np.random.default_rng(0))
        >>> inside.shape, inside[:, :3].sum(axis=1).round(12).tolist()
        ((4, 4), [1.0, 1.0, 1.0, 1.0])
        """
        self._check_filled("samples")
        if self._skeleton is None:
            spread, rows = self._outposts(rng), self.half_spaces
        else:
            spread, rows = self.rays, self.half_spaces[np.unique(self._skeleton.tight)]
        mixed = rng.integers(len(spread), size=(n, self.d + 1))
        start = np.einsum("ij,ijk->ik", rng.dirichlet(np.ones(self.d + 1), n), spread[mixed])
        assert self.interior is not None
        start = 0.9 * start + 0.1 * self.interior
        return hit_and_run(rows, start, spread - spread.mean(axis=0), moves or 20 * (self.d + 1), rng)

    def conflict(self) -> tuple[Hashable, ...]:
        """Return the labels of a smallest set of answers that cannot all hold, in their order; none if all can.

        No smaller set of labels conflicts. Farkas' lemma gives a set of at most m + 1 to start with, which is thinned
        out until every answer in it is needed; an integer program then looks for anything smaller. Its tolerance (1e-7)
        only ever errs towards finding too much, so every find is checked against the rays and forbidden if false.
        Meant for up to 40 answers: seconds at worst.
        """
        if not self.empty:
            return ()
        best = list(self.labels)
        first = self._dependent(None, [])
        if first and len(first) < len(best) and self._only(first).empty:
            best = first
        for label in tuple(reversed(best)):
            fewer = [other for other in best if other != label]
            if self._only(fewer).empty:
                best = fewer
        harmless: list[list[Hashable]] = []
        while len(best) > 1 and (found := self._dependent(len(best) - 1, harmless)) is not None:
            if self._only(found).empty:
                best = found  # the integer program's optimum: nothing smaller is left
                break
            harmless.append(found)
        return tuple(best)

    # ------------------------------------------------------------------------------------------------- underneath

    def _listed(self) -> Skeleton:
        if self._skeleton is None:
            raise TooManyRays(f"the consistent set has more than {self.limit:,} extreme rays")
        return self._skeleton

    def _check_filled(self, what: str) -> None:
        if self.empty:
            raise ArgumentError(f"an empty set has no {what}: the answers contradict each other; see Cone.conflict()")

    def _scaled(self, half_spaces: ArrayLike) -> Matrix:
        """Return the rows scaled by powers of two so that the largest ``|a @ z|`` before any answer is 0.5 to 1."""
        rows = np.atleast_2d(np.array(half_spaces, np.float64))
        if rows.ndim != 2 or rows.shape[1] != self.d + 1 or not np.isfinite(rows).all():
            raise ArgumentError(
                f"a half-space of this cone is {self.d + 1} finite numbers ({self.d} weights, then the precision's); "
                f"found {half_spaces!r}"
            )
        ends = np.hstack([rows[:, :-1], rows[:, :-1] + self.e_max * rows[:, -1:]])
        size = np.abs(ends).max(axis=1)
        # "0 >= 0" holds; it is kept, for its label, in the form sum(w) >= 0.
        rows[size == 0.0] = np.r_[np.full(self.d, 0.5), 0.0]
        # Powers of two change no digit, so that rows taken from another cone stay as they are.
        scaled: Matrix = np.ldexp(rows, -np.frexp(size)[1][:, None])
        return scaled

    def _only(self, labels: Collection[Hashable]) -> Cone:
        """Return the cone of these answers alone."""
        cone = Cone.orthant(self.d, self.e_max, self.limit)
        rows = self.half_spaces[self.d + 2 :]
        for label in labels:
            cone = cone.add(rows[[other == label for other in self.row_labels]], label)
        return cone

    def _outposts(self, rng: np.random.Generator) -> Matrix:
        """Return far points of the set in many directions, for cones with too many rays to list."""
        axes = np.vstack([np.eye(self.d + 1), rng.normal(size=(self.d + 1, self.d + 1))])
        return np.array([_extreme(self.half_spaces, c) for c in np.vstack([axes, -axes])])

    def _dependent(self, most: int | None, harmless: list[list[Hashable]]) -> list[Hashable] | None:
        """Return labels whose half-spaces have a non-negative combination that is nowhere positive, or None.

        The fewest labels, at most ``most`` of them and not all within one of the ``harmless`` sets; any basic solution
        where ``most`` is None.
        """
        from scipy.optimize import Bounds, LinearConstraint, linprog, milp  # slow to import, seldom needed

        d, rows = self.d, self.half_spaces[self.d + 2 :]
        n, labels = len(rows), self.labels
        # y >= 0 on the answers' rows, u >= 0 on e_max sum(w) - e >= 0:  A'y + u (e_max, .., e_max, -1) <= 0, sum(y) = 1
        columns = np.vstack([rows, self.half_spaces[d + 1]]).T
        convex = np.r_[np.ones(n), 0.0]
        if most is None:
            found = linprog(np.zeros(n + 1), A_ub=columns, b_ub=np.zeros(d + 1), A_eq=convex[None], b_eq=[1.0])
            if found.x is None:
                return None
            used = {self.row_labels[i] for i in np.flatnonzero(found.x[:n] > LP_TOUCH)}
            return [label for label in labels if label in used]
        place = {label: j for j, label in enumerate(labels)}
        owner = np.zeros((n, len(labels)))
        owner[np.arange(n), [place[label] for label in self.row_labels]] = 1.0
        blank = np.zeros((1, len(labels)))
        constraints = [
            LinearConstraint(np.hstack([columns, np.repeat(blank, d + 1, axis=0)]), -np.inf, 0.0),
            LinearConstraint(np.hstack([convex[None], blank]), 1.0, 1.0),
            LinearConstraint(np.hstack([np.eye(n), np.zeros((n, 1)), -owner]), -np.inf, 0.0),
            LinearConstraint(np.r_[np.zeros(n + 1), np.ones(len(labels))][None], 1.0, most),
        ]
        for known in harmless:
            outside = [0.0 if label in known else 1.0 for label in labels]
            constraints.append(LinearConstraint(np.r_[np.zeros(n + 1), outside][None], 1.0, np.inf))
        upper = np.r_[np.ones(n), np.inf, np.ones(len(labels))]
        whole = np.r_[np.zeros(n + 1), np.ones(len(labels))]
        result = milp(whole, integrality=whole, bounds=Bounds(np.zeros(len(whole)), upper), constraints=constraints)
        if result.x is None:
            return None
        return [label for label, chosen in zip(labels, result.x[n + 1 :], strict=True) if chosen > 0.5]


def _inside(skeleton: Skeleton, half_spaces: Matrix) -> Vector | None:
    """Return a point that satisfies every half-space with room to spare, or None where the set is flat."""
    centre: Vector = skeleton.rays.mean(axis=0)
    if (half_spaces @ centre).min() > 0.0:
        return centre
    return _most_slack(half_spaces)  # the rays may reach beyond a cut that had to be moved outward


def _most_slack(half_spaces: Matrix) -> Vector | None:
    """Return the point whose least slack is largest, or None where that is nothing."""
    from scipy.optimize import linprog

    n, m = half_spaces.shape
    found = linprog(
        np.r_[np.zeros(m), -1.0],
        A_ub=np.hstack([-half_spaces, np.ones((n, 1))]),
        b_ub=np.zeros(n),
        A_eq=np.r_[np.ones(m - 1), 0.0, 0.0][None],
        b_eq=[1.0],
        bounds=[(0.0, None)] * m + [(None, 1.0)],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if found.x is None or found.x[-1] <= LP_TOUCH:
        return None
    point: Vector = found.x[:-1] / found.x[:-2].sum()
    return point


def _extreme(half_spaces: Matrix, direction: Vector) -> Vector:
    """Return the point of the (non-empty) cross-section where ``direction @ z`` is least."""
    from scipy.optimize import linprog

    m = len(direction)
    found = linprog(
        direction,
        A_ub=-half_spaces,
        b_ub=np.zeros(len(half_spaces)),
        A_eq=np.r_[np.ones(m - 1), 0.0][None],
        b_eq=[1.0],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert found.x is not None, found.message  # the cross-section is bounded, and callers know it is not empty
    point: Vector = np.maximum(found.x, 0.0)
    return point
