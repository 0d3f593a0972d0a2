"""The consistent set: every (weights, precision) that agrees with a respondent's answers, as a cone with its extreme rays.

A point is ``z = (w, e)``: d weights ``w >= 0`` and the precision ``e`` below which differences go unnoticed. Every answer cuts
the cone with half-spaces ``a @ z >= 0`` (``evidence.half_spaces``). Only the ray through z matters, so points are normalised to
``sum(w) = 1``; ``0 <= e <= e_max`` there.

The hull of the extreme rays (``Skeleton``) is never smaller than the set but for rounding. So the largest value of a
quasi-convex function over them is a bound for everyone who agrees with the answers. An answer that would make too many rays is
left out of them: the hull is then larger than the set, and bounds still hold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tradeoff.errors import ArgumentError, TradeoffError
from tradeoff.model import Matrix, Vector
from tradeoff.numerics import worths

Table = NDArray[np.int32]
LabelledRows = tuple[int, Matrix]  # the half-spaces of an answer under its label

# Half-spaces are scaled so that the largest |a @ z| over the whole cross-section is 0.5 to 1: it is
# relative to what a half-space can tell apart. Rays carry errors of 1e-16 to 1e-15 after 40 cuts: a thousand times that
# is surely not rounding, and still far less than any difference a person notices or an oracle resolves.
TOUCH = 1e-12
SAME_RAY = 1e-14  # rays this close are one: far below TOUCH, so that merging them cannot matter to any bound
RAY_LIMIT = 60_000  # a cut still takes a tenth of a second there, but a problem is to be solved once for every ray
LP_TOUCH = 1e-9  # TOUCH where only linear programs are affordable: HiGHS is asked for feasibility to 1e-10
TOLERANCES: Any = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
# Work limits of the search for a smallest conflict; what is found by then is nearly always smallest.
CONFLICT_ROUNDS, CONFLICT_NODES = 20, 2_000


class TooManyRays(TradeoffError):
    """The cone has more extreme rays than is sensible to list; linear programs over its half-spaces still work."""


@dataclass(frozen=True, eq=False)
class Skeleton:
    """The extreme rays of a cone and its edges: double description on a simple polytope.

    Every ray remembers exactly m-1 half-spaces that are tight at it and the neighbour reached by leaving each of them (the cone
    has dimension m). A cut then touches nothing but the edges it crosses, and no adjacency has to be tested. Cuts through
    existing rays would make the polytope degenerate; they are read as cuts just beside those rays, which yields coincident rays
    instead (:func:`distinct` merges them). Rounding and tolerance can leave the hull of the rays larger than the set by
    ``TOUCH``, never smaller by more than a few units in the last place.
    """

    rays: Matrix  # [n, m]
    tight: Table  # [n, m-1] rows of Cone.half_spaces
    neighbours: Table  # [n, m-1]; leaving tight[i, j] leads to neighbours[i, j]
    above: Vector | None = None  # [n]: what a convex function is at most at each ray; new rays interpolate it

    @staticmethod
    def prism(d: int, e_max: float) -> Skeleton:
        """Return the simplex of weights times the interval of precisions."""
        others = np.array([[j for j in range(d) if j != i] for i in range(d)], np.int32).reshape(d, d - 1)
        low = np.hstack([np.eye(d), np.zeros((d, 1))])
        high = np.hstack([np.eye(d), np.full((d, 1), e_max)])
        floor, ceiling = np.full((d, 1), d, np.int32), np.full((d, 1), d + 1, np.int32)
        here = np.arange(d, dtype=np.int32)[:, None]
        return Skeleton(
            np.vstack([low, high]),
            np.vstack([np.hstack([others, floor]), np.hstack([others, ceiling])]),
            np.vstack([np.hstack([others, here + d]), np.hstack([others + d, here])]).astype(np.int32),
        )

    def none(self) -> Skeleton:
        """Return the skeleton of the empty set."""
        above = None if self.above is None else self.above[:0]
        return Skeleton(self.rays[:0], self.tight[:0], self.neighbours[:0], above)

    def cut(self, row: Vector, index: int, limit: int) -> Skeleton:
        """Return the skeleton of the part where ``row @ z >= 0``; ``index`` is the name of the new half-space."""
        if not len(self.rays):
            return self
        height = worths(self.rays, row[None])[:, 0]
        if np.minimum.reduce(height) >= -TOUCH:
            return self
        if np.maximum.reduce(height) <= TOUCH:
            return self.none()
        # Rays on the cut may count as either side of it. Fewer rays are better: dropping them gets rid of half-spaces
        # that have become redundant (e >= 0 after "about equal"), keeping them spares a redundant new one.
        sides, not_above = [height < -TOUCH], height <= TOUCH
        if np.count_nonzero(not_above) > np.count_nonzero(sides[0]):
            sides.append(not_above)
            sides.sort(key=lambda gone: len(self.rays) - int(gone.sum()) + self._crossings(gone))
        for gone in sides:
            result = self._separate(height, gone, index, limit)
            if result is not None:
                return result
        # Half-spaces parallel to within rounding can leave faces that are not quite convex, and a cut may then cross
        # one of them more than twice. Moved outward far enough it does not; the set only becomes larger.
        threshold = -TOUCH
        while (gone := height < threshold).any():
            result = self._separate(height, gone, index, limit)
            if result is not None:
                return result
            threshold *= 3.0
        return self

    def _crossings(self, gone: NDArray[np.bool_]) -> int:
        return int(np.count_nonzero(gone[self.neighbours[~gone]]))

    def _separate(self, height: Vector, gone: NDArray[np.bool_], index: int, limit: int) -> Skeleton | None:
        """Return the skeleton without the rays ``gone``, closed by a new facet, or None where that is inconsistent."""
        stay = np.flatnonzero(~gone)
        crossing = gone[self.neighbours[stay]]  # edges from a ray that stays to one that is gone
        total = len(stay) + int(np.count_nonzero(crossing))
        if total > limit:
            raise TooManyRays(f"the consistent set has {total:,} extreme rays, more than {limit:,}")
        row, left = np.nonzero(crossing)
        inside = stay[row]
        outside = self.neighbours[inside, left]
        new = np.arange(len(stay), total, dtype=np.int32)
        renumbered = np.cumsum(~gone, dtype=np.int32) - 1
        tight = self.tight[inside]
        tight[np.arange(len(new)), left] = index
        between = _facet(tight, left, new)
        if between is None:
            return None
        between[np.arange(len(new)), left] = renumbered[inside]
        around = renumbered[self.neighbours[stay]]
        around[row, left] = new
        # A new ray for every crossed edge. As a combination of the edge's ends it satisfies what both satisfy to a
        # rounding, however thin the cone. The clip is for ends that lie on the cut.
        share = height[inside] / (height[inside] - height[outside])
        share = np.minimum(np.maximum(share, 0.0), 1.0)[:, None]
        rays = (1.0 - share) * self.rays[inside] + share * self.rays[outside]
        rays /= np.add.reduce(rays[:, :-1], axis=1, keepdims=True)
        above = self.above
        if above is not None:
            interpolated = (1.0 - share[:, 0]) * above[inside] + share[:, 0] * above[outside]
            above = np.concatenate([above[stay], interpolated])
        return Skeleton(
            np.concatenate([self.rays[stay], rays]),
            np.concatenate([self.tight[stay], tight]),
            np.concatenate([around, between]),
            above,
        )


def _facet(tight: Table, left: NDArray[np.intp], names: Table) -> Table | None:
    """Return which rays of a new facet are next to each other, [n, m-1]; None if it is no polytope.

    Two of them are neighbours if their edges lie on a common face of dimension two. Such a face is the set of the edge's tight
    half-spaces less one, recognised by the exclusive or of a random word per half-space. Every edge of the facet has two ends.
    ``left`` is the column of the new half-space in each row.
    """
    count, width = tight.shape
    words = _words(tight)
    places = np.arange(count)
    words[places, left] = 0
    keys = np.bitwise_xor.reduce(words, axis=1)[:, None] ^ words
    others = np.ones((count, width), dtype=bool)
    others[places, left] = False
    row, column = np.nonzero(others)
    order = np.argsort(keys[row, column], kind="stable")
    row, column = row[order], column[order]
    key = keys[row, column]
    if len(key) % 2 or (key[::2] != key[1::2]).any() or (key[1:-1:2] == key[2::2]).any():
        return None
    neighbours = np.empty((count, width), dtype=np.int32)
    neighbours[row[::2], column[::2]] = names[row[1::2]]
    neighbours[row[1::2], column[1::2]] = names[row[::2]]
    return neighbours


def _words(numbers: Table) -> NDArray[np.uint64]:
    """Return a well-mixed 64-bit word for each number, always the same (splitmix64)."""
    x = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


@cache
def _line(m: int) -> Vector:
    """Return a direction that has no simple ratio with the axes."""
    direction: Vector = np.sqrt(np.arange(2.0, m + 2.0))
    direction.flags.writeable = False
    return direction


def distinct(rays: Matrix) -> Matrix:
    """Return the rays without those that coincide with an earlier one."""
    if len(rays) < 2:
        return rays.copy()
    # Coincident rays are next to each other along any line.
    along = worths(rays, _line(rays.shape[1])[None])[:, 0]
    order = np.argsort(along, kind="stable")
    along = along[order]
    near = np.flatnonzero(along[1:] - along[:-1] <= SAME_RAY * rays.shape[1])
    if not len(near):
        return rays.copy()
    same = near[np.abs(rays[order[near + 1]] - rays[order[near]]).max(axis=1) <= SAME_RAY]
    if not len(same):
        return rays.copy()
    first = np.ones(len(rays), bool)
    first[same + 1] = False
    once: Matrix = rays[np.sort(np.minimum.reduceat(order, np.flatnonzero(first)))]
    return once


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
    n, m = half_spaces.shape
    rows = np.hstack([half_spaces, -np.ones((n, 1))])
    point = _minimise(np.r_[np.zeros(m), -1.0], rows, m - 1, [(0.0, None)] * m + [(None, 1.0)])
    return (-np.inf, None) if point is None else (float(point[-1]), point[:-1] / point[:-2].sum())


def _extreme(half_spaces: Matrix, direction: Vector) -> Vector:
    """Return the point of the (non-empty) cross-section where ``direction @ z`` is least."""
    point = _minimise(direction, half_spaces, len(direction) - 1, [(0.0, None)] * len(direction))
    assert point is not None  # the cross-section is bounded, and callers know it is not empty
    result: Vector = np.maximum(point, 0.0)
    return result


def _minimise(
    cost: Vector, rows: Matrix, weights: int, bounds: list[tuple[float | None, float | None]]
) -> Vector | None:
    """Return the x with ``rows @ x >= 0`` of least cost whose first numbers, the weights, sum to 1; None if there is none."""
    from scipy.optimize import linprog  # slow to import, seldom needed

    total = np.r_[np.ones(weights), np.zeros(len(cost) - weights)][None]
    done = linprog(
        cost, A_ub=-rows, b_ub=np.zeros(len(rows)), A_eq=total, b_eq=[1.0], bounds=bounds, options=TOLERANCES
    )
    return None if done.x is None else np.asarray(done.x, dtype=np.float64)
