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
from time import monotonic

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tradeoff.errors import ArgumentError
from tradeoff.menus import NOT_WORSE, OTHER_PREFERRED, PREFERRED, SAME
from tradeoff.strategies.rays import RAY_LIMIT, TOUCH, Skeleton, TooManyRays, distinct

__all__ = ["RAY_LIMIT", "TOUCH", "Cone", "TooManyRays", "checked_answers", "half_spaces"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

KINDS = (PREFERRED, OTHER_PREFERRED, SAME, NOT_WORSE)  # how a comparison can come out
CONFLICT_SECONDS = 2.0  # how long a smallest conflict is sought; what is found by then is nearly always smallest
LP_TOUCH = 1e-9  # TOUCH where only linear programs are affordable: HiGHS is asked for feasibility to 1e-10


def half_spaces(differences: ArrayLike, kinds: ArrayLike) -> Matrix:
    """Return the rows a with ``a @ (w, e) >= 0`` exactly where (w, e) is consistent with the answers.

    ``differences[q, d]`` is the value of the first alternative minus that of the second (one answer: ``[d]``),
    ``kinds[q]`` is +1 for "the first", -1 for "the second", 0 for "about equal", which takes two rows, put last, and 2 where
    the first was placed above the second in a larger question: the second is not better by more than the precision.

    >>> half_spaces([3.0, -1.0], -1).tolist()
    [[-3.0, 1.0, -1.0]]
    >>> half_spaces([3.0, -1.0], 0).tolist(), half_spaces([3.0, -1.0], 2).tolist()
    ([[3.0, -1.0, 1.0], [-3.0, 1.0, 1.0]], [[3.0, -1.0, 1.0]])
    """
    difference, kind = checked_answers(differences, kinds)
    one_row, same = kind != SAME, difference[kind == SAME]
    first, last = int(one_row.sum()), len(kind)
    rows = np.ones((last + len(same), difference.shape[1] + 1))
    rows[:first, :-1] = np.sign(kind[one_row])[:, None] * difference[one_row]
    rows[:first, -1] = np.where(kind[one_row] == NOT_WORSE, 1.0, -1.0)
    rows[first:last, :-1], rows[last:, :-1] = same, -same
    return rows


def checked_answers(differences: ArrayLike, kinds: ArrayLike) -> tuple[Matrix, NDArray[np.int64]]:
    """Return the answers as arrays, or raise an ArgumentError that says what is wrong with them."""
    difference = np.atleast_2d(np.asarray(differences, np.float64))
    kind = np.atleast_1d(np.asarray(kinds)).astype(np.int64)
    known = (kind >= min(KINDS)) & (kind <= max(KINDS))  # which are all the whole numbers between
    if difference.ndim != 2 or kind.shape != difference.shape[:1] or not known.all():
        raise ArgumentError(
            f"answers are differences [q, d] and as many kinds out of +1, -1, 0 and 2; found shapes "
            f"{difference.shape} and {kind.shape}, kinds {np.unique(kind).tolist()}"
        )
    return difference, kind


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

    def add(self, half_spaces: ArrayLike, label: Hashable, *, scaled: bool = False) -> Cone:
        """Return the part of this cone where ``a @ z >= 0`` for each row a of ``half_spaces``.

        One answer is one label, whatever the number of its half-spaces ("about equal" has two). The rays are those of
        this cone but for the ones cut off; rays that stay are the same numbers, bit for bit. Adding what already holds
        costs one product; adding what contradicts leaves an empty cone, which :meth:`conflict` explains. Rows that were
        ``scaled`` before are taken as they are.
        """
        rows: Matrix = np.asarray(half_spaces) if scaled else self.scaled(half_spaces)
        skeleton = self._skeleton
        everything = np.concatenate([self.half_spaces, rows])
        known: dict[str, Vector] = {}
        if skeleton is not None:
            try:
                for index, row in enumerate(rows, len(self.half_spaces)):
                    skeleton = skeleton.cut(row, index, self.limit)
                if len(skeleton.rays):
                    point = _inside(skeleton, everything)
                    if point is None:
                        skeleton = skeleton.none()
                    else:
                        point.flags.writeable = False
                        known["interior"] = point
            except TooManyRays:
                skeleton = None
        cone = Cone(everything, self.row_labels + (label,) * len(rows), self.e_max, self.limit, skeleton)
        vars(cone).update(known)
        return cone

    @property
    def has_rays(self) -> bool:
        """Whether the extreme rays are few enough to be listed."""
        return self._skeleton is not None

    @property
    def without_rays(self) -> bool:
        """Whether no ray is left; the cone is empty, then, with whatever is added."""
        return self._skeleton is not None and not len(self._skeleton.rays)

    @property
    def nbytes(self) -> int:
        """About how many bytes the cone takes."""
        parts = [self.half_spaces, *([] if self._skeleton is None else vars(self._skeleton).values())]
        return int(sum(part.nbytes for part in parts if part is not None))

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

        "Prefers the first" means *more* than the precision, so a set that is flat counts as empty; a real
        person's set always has an interior (a slightly larger precision changes none of the strict answers).
        """
        return self.interior is None

    @cached_property
    def interior(self) -> Vector | None:
        """A point well inside the set, or None where the set is empty."""
        if self._skeleton is None:
            slack, found = _most_slack(self.half_spaces)
            point = found if slack > LP_TOUCH else None
        else:
            point = _inside(self._skeleton, self.half_spaces) if len(self._skeleton.rays) else None
        if point is not None:
            point.flags.writeable = False
        return point

    def bounds(self, direction: ArrayLike) -> tuple[float, float]:
        """Return the least and the largest ``direction @ z`` over the points whose weights sum to 1."""
        c = np.asarray(direction, np.float64)
        self._check_filled("bounds")
        if self._skeleton is None:
            low, high = (_extreme(self.half_spaces, sign * c) for sign in (1.0, -1.0))
            return float(c @ low), float(c @ high)
        values = self.rays @ c
        return float(values.min()), float(values.max())

    def irreducible_conflict(self) -> tuple[Hashable, ...]:
        """Return the labels of answers that cannot all hold, while any of them can be left out; none if all can hold.

        Farkas' lemma gives a set of at most m + 1 to start with, which is thinned out by linear programs: some
        milliseconds, whatever the answers.
        """
        if not self.empty:
            return ()
        found = list(self.labels)
        first = self._dependent(None, [], np.inf)
        if first and len(first) < len(found) and self._contradict(first):
            found = first
        for label in tuple(reversed(found)):
            fewer = [other for other in found if other != label]
            if self._contradict(fewer):
                found = fewer
        return tuple(found)

    def conflict(self, seconds: float = CONFLICT_SECONDS) -> tuple[Hashable, ...]:
        """Return the labels of a smallest set of answers that cannot all hold, in their order; none if all can.

        An integer program looks for anything smaller than :meth:`irreducible_conflict`. Its tolerance (1e-7) only ever
        errs towards finding too much, so every find is checked and forbidden if false. After ``seconds`` the smallest
        set found so far is returned: it is irreducible or was proved to conflict, but there may be a smaller one.
        """
        best = list(self.irreducible_conflict())
        harmless: list[list[Hashable]] = []
        end = monotonic() + seconds
        while len(best) > 1 and (left := end - monotonic()) > 0:
            found = self._dependent(len(best) - 1, harmless, left)
            if found is None:
                break
            if self._contradict(found):
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

    def _only(self, labels: Collection[Hashable]) -> Cone:
        """Return the cone of these answers alone."""
        cone = Cone.orthant(self.d, self.e_max, self.limit)
        rows = self.half_spaces[self.d + 2 :]
        for label in labels:
            cone = cone.add(rows[[other == label for other in self.row_labels]], label)
        return cone

    def _contradict(self, labels: Collection[Hashable]) -> bool:
        """Return whether these answers alone cannot all hold: a linear program says, and the rays where it is close."""
        chosen = set(labels)
        stay = [True] * (self.d + 2) + [label in chosen for label in self.row_labels]
        slack, _ = _most_slack(self.half_spaces[stay])
        return slack < 0.0 if abs(slack) > LP_TOUCH else self._only(labels).empty

    def _dependent(self, most: int | None, harmless: list[list[Hashable]], seconds: float) -> list[Hashable] | None:
        """Return labels whose half-spaces have a non-negative combination that is nowhere positive, or None.

        The fewest labels, at most ``most`` of them and not all within one of the ``harmless`` sets, as far as they are
        found in these seconds; any basic solution where ``most`` is None.
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
        column = {label: j for j, label in enumerate(labels)}
        owner = np.zeros((n, len(labels)))
        owner[np.arange(n), [column[label] for label in self.row_labels]] = 1.0
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
        result = milp(
            whole, integrality=whole, bounds=Bounds(np.zeros(len(whole)), upper), constraints=constraints,
            options={"time_limit": seconds},
        )  # fmt: skip
        if result.x is None:
            return None
        return [label for label, chosen in zip(labels, result.x[n + 1 :], strict=True) if chosen > 0.5]


def _inside(skeleton: Skeleton, half_spaces: Matrix) -> Vector | None:
    """Return a point that satisfies every half-space with room to spare, or None where the set is flat."""
    centre: Vector = np.add.reduce(skeleton.rays, axis=0) / len(skeleton.rays)
    if np.minimum.reduce(half_spaces @ centre) > 0.0:
        return centre
    # The rays may reach beyond a cut that had to be moved outward.
    slack, point = _most_slack(half_spaces)
    return point if slack > LP_TOUCH else None


def _most_slack(half_spaces: Matrix) -> tuple[float, Vector | None]:
    """Return the largest that the least slack can be, negative where the half-spaces contradict, and where it is."""
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
    if found.x is None:
        return -np.inf, None
    return float(found.x[-1]), found.x[:-1] / found.x[:-2].sum()


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
