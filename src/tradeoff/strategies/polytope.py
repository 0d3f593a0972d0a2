"""The consistent set: every (weights, precision) that agrees with a person's answers, as a cone with its extreme rays.

A point is ``z = (w, e)``: d weights ``w >= 0`` and the precision ``e`` below which differences go unnoticed. Every
answer cuts the cone with half-spaces ``a @ z >= 0`` (:func:`half_spaces` writes them down). Only the ray through z
matters, so points are normalised to ``sum(w) = 1``; ``0 <= e <= e_max`` there.

The rays are kept by the double description method on a *simple* polytope: every ray remembers exactly m-1 half-spaces
that are tight at it and the neighbour reached by leaving each of them (m = d + 1). A cut then touches nothing but the
edges it crosses, and no adjacency has to be tested. Cuts through existing rays would make the polytope degenerate; they
are read as cuts just beside those rays, which yields coincident rays instead (:attr:`Cone.rays` merges them).

Everything is an outer description: rounding can leave the hull of the rays larger than the set, never smaller by more
than a few units in the last place, so a maximum over the rays is a bound over the set.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from tradeoff.errors import ArgumentError, TradeoffError
from tradeoff.strategies.sampling import half_spaces, hit_and_run

__all__ = ["RAY_LIMIT", "TOUCH", "Cone", "TooManyRays", "half_spaces"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.int32]

# The one tolerance. Half-spaces are scaled so that |a @ z| is at most 1 on the whole cross-section, so it is relative to
# what the half-space can tell apart. Rays carry errors of 1e-16 to 1e-15 after 40 cuts: a thousand times that is surely
# not rounding, and a thousand times less than any difference a person or an oracle could state.
TOUCH = 1e-12
SAME = 1e-14  # rays this close are one: far below TOUCH, so that merging them cannot matter to any bound
LP_TOUCH = 1e-9  # the same where only linear programs are affordable: HiGHS is asked for feasibility to 1e-10
RAY_LIMIT = 60_000  # beyond it a cut takes most of a second and the oracle far longer


class TooManyRays(TradeoffError):
    """The cone has more extreme rays than is sensible to list; linear programs over its half-spaces still work."""


@dataclass(frozen=True, eq=False)
class _Skeleton:
    """The rays of a simple polytope, the half-spaces tight at each, and its neighbours opposite to them."""

    rays: Matrix  # [n, m]
    tight: Indices  # [n, m-1] rows of Cone.half_spaces
    neighbours: Indices  # [n, m-1]; leaving tight[i, j] leads to neighbours[i, j]

    @staticmethod
    def prism(d: int, e_max: float) -> _Skeleton:
        """Return the simplex of weights times the interval of precisions."""
        others = np.array([[j for j in range(d) if j != i] for i in range(d)], np.int32).reshape(d, d - 1)
        low = np.hstack([np.eye(d), np.zeros((d, 1))])
        high = np.hstack([np.eye(d), np.full((d, 1), e_max)])
        floor, ceiling = np.full((d, 1), d, np.int32), np.full((d, 1), d + 1, np.int32)
        here = np.arange(d, dtype=np.int32)[:, None]
        return _Skeleton(
            np.vstack([low, high]),
            np.vstack([np.hstack([others, floor]), np.hstack([others, ceiling])]),
            np.vstack([np.hstack([others, here + d]), np.hstack([others + d, here])]).astype(np.int32),
        )

    def none(self) -> _Skeleton:
        """Return the skeleton of the empty set."""
        return _Skeleton(self.rays[:0], self.tight[:0], self.neighbours[:0])

    def cut(self, row: Vector, index: int, limit: int) -> _Skeleton:
        """Return the skeleton of the part where ``row @ z >= 0``; ``index`` is the name of the new half-space."""
        if not len(self.rays):
            return self
        height = self.rays @ row
        if height.min() >= -TOUCH:
            return self
        if height.max() <= TOUCH:
            return self.none()
        # Rays on the cut may count as either side of it. Fewer rays are better: dropping them gets rid of half-spaces
        # that have become redundant (e >= 0 after "about equal"), keeping them spares a redundant new one.
        sides = [height < -TOUCH]
        if (np.abs(height) <= TOUCH).any():
            sides.append(height <= TOUCH)
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

    def _separate(self, height: Vector, gone: NDArray[np.bool_], index: int, limit: int) -> _Skeleton | None:
        """Return the skeleton without the rays ``gone``, closed by a new facet, or None where that is inconsistent."""
        kept = np.flatnonzero(~gone)
        neighbours = self.neighbours[kept]
        crossed = gone[neighbours]
        start, column = np.nonzero(crossed)
        count, total = len(start), len(kept) + len(start)
        if total > limit:
            raise TooManyRays(f"the consistent set has {total:,} extreme rays, more than {limit:,}")
        inside = kept[start]
        outside = neighbours[start, column]

        # A new ray for every crossed edge. As a combination of the edge's ends it satisfies what both satisfy to a
        # rounding, however thin the cone. The clip is for ends that lie on the cut.
        share = np.clip(height[inside] / (height[inside] - height[outside]), 0.0, 1.0)[:, None]
        new = (1.0 - share) * self.rays[inside] + share * self.rays[outside]
        new /= new[:, :-1].sum(axis=1, keepdims=True)
        tight = self.tight[inside]
        tight[np.arange(count), column] = index

        # Two new rays are neighbours if their edges lie on a common face of dimension two. Such a face is the set of
        # the edge's tight half-spaces less one, recognised by the exclusive or of one random word per half-space.
        words = _words(tight)
        words[np.arange(count), column] = 0
        faces = np.bitwise_xor.reduce(words, axis=1)[:, None] ^ words
        others = np.ones(tight.shape, bool)
        others[np.arange(count), column] = False
        slots = np.flatnonzero(others)
        order = np.argsort(faces.ravel()[slots])
        keys = faces.ravel()[slots[order]]
        if len(keys) % 2 or (keys[0::2] != keys[1::2]).any() or (keys[1:-1:2] == keys[2::2]).any():
            return None
        one, two = slots[order[0::2]], slots[order[1::2]]
        width = tight.shape[1]
        links = np.empty(tight.shape, np.int32)
        links.ravel()[one] = two // width + len(kept)
        links.ravel()[two] = one // width + len(kept)
        links[np.arange(count), column] = start

        renumbered = np.empty(len(gone), np.int32)
        renumbered[kept] = np.arange(len(kept), dtype=np.int32)
        neighbours[crossed] = 0  # their old numbers are void; set below
        neighbours = renumbered[neighbours]
        neighbours[crossed] = np.arange(len(kept), total, dtype=np.int32)
        return _Skeleton(
            np.vstack([self.rays[kept], new]),
            np.vstack([self.tight[kept], tight]),
            np.vstack([neighbours, links]),
        )


def _words(numbers: Indices) -> NDArray[np.uint64]:
    """Return one well-mixed 64-bit word per number, always the same (splitmix64)."""
    x = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = x ^ (x >> np.uint64(31))
    return mixed


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
        skeleton: _Skeleton | None,
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
        return cls(own, (), float(e_max), limit, _Skeleton.prism(d, float(e_max)))

    @property
    def d(self) -> int:
        """The number of weights."""
        return self.half_spaces.shape[1] - 1

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
                if skeleton is not self._skeleton and len(skeleton.rays):
                    centre = skeleton.rays.mean(axis=0)
                    if (everything @ centre).min() <= 0.0:  # flat to the last digit
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
            still = _Skeleton(skeleton.rays, numbers[skeleton.tight], skeleton.neighbours)
            return Cone(self.half_spaces[stay], kept, self.e_max, self.limit, still)
        return self._only([other for other in self.labels if other != label])

    @cached_property
    def rays(self) -> Matrix:
        """All extreme rays, ``[n, m]``, each with weights that sum to 1; none where the set is empty.

        Raises :class:`TooManyRays` where there are more than the limit.
        """
        rays = _distinct(self._listed().rays)
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
        elif len(self._skeleton.rays):
            point = self.rays.mean(axis=0)
        else:
            return None
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
        labels = ((None,) * (self.d + 2) + self.row_labels)
        return self.half_spaces[found], tuple(labels[row] for row in found)

    def sample(self, n: int, rng: np.random.Generator, moves: int | None = None) -> Matrix:
        """Return n points of the set, ``[n, m]``, approximately uniform and nearly independent.

        Hit-and-run, one chain a point, started from random mixtures of the rays and with directions shaped like the
        set. ``moves`` is the length of a chain, 10 m unless given.

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
        return hit_and_run(rows, start, spread - spread.mean(axis=0), moves or 10 * (self.d + 1), rng)

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

    def _listed(self) -> _Skeleton:
        if self._skeleton is None:
            raise TooManyRays(f"the consistent set has more than {self.limit:,} extreme rays")
        return self._skeleton

    def _check_filled(self, what: str) -> None:
        if self.empty:
            raise ArgumentError(f"an empty set has no {what}: the answers contradict each other; see Cone.conflict()")

    def _scaled(self, half_spaces: ArrayLike) -> Matrix:
        """Return the rows scaled so that the largest ``|a @ z|`` before any answer is 1."""
        rows = np.atleast_2d(np.array(half_spaces, np.float64))
        if rows.ndim != 2 or rows.shape[1] != self.d + 1 or not np.isfinite(rows).all():
            raise ArgumentError(
                f"a half-space of this cone is {self.d + 1} finite numbers ({self.d} weights, precision); found {half_spaces!r}"
            )
        ends = np.hstack([rows[:, :-1], rows[:, :-1] + self.e_max * rows[:, -1:]])
        size = np.abs(ends).max(axis=1)
        # "0 >= 0" holds; it is kept, for its label, in the form sum(w) >= 0.
        rows[size == 0.0] = np.r_[np.ones(self.d), 0.0]
        return rows / np.where(size > 0.0, size, 1.0)[:, None]

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


def _distinct(rays: Matrix) -> Matrix:
    """Return the rays without those that coincide with an earlier one."""
    if len(rays) < 2:
        return rays.copy()
    # Coincident rays are next to each other along any line; this one has no simple ratio with the axes.
    along = rays @ np.sqrt(np.arange(2.0, rays.shape[1] + 2.0))
    order = np.argsort(along, kind="stable")
    near = np.flatnonzero(np.diff(along[order]) <= SAME * rays.shape[1])
    same = near[np.abs(rays[order[near + 1]] - rays[order[near]]).max(axis=1) <= SAME]
    if not len(same):
        return rays.copy()
    first = np.ones(len(rays), bool)
    first[same + 1] = False
    return rays[np.sort(np.minimum.reduceat(order, np.flatnonzero(first)))]


def _most_slack(half_spaces: Matrix) -> Vector | None:
    """Return the point whose least slack is largest, or None where that is nothing."""
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
    m = len(direction)
    found = linprog(
        direction,
        A_ub=-half_spaces,
        b_ub=np.zeros(len(half_spaces)),
        A_eq=np.r_[np.ones(m - 1), 0.0][None],
        b_eq=[1.0],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    point: Vector = np.maximum(found.x, 0.0)
    return point
