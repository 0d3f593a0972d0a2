"""The extreme rays of a cone, kept up to date while half-spaces are added: double description on a simple polytope.

Every ray remembers exactly m-1 half-spaces that are tight at it and the neighbour reached by leaving each of them (the
cone has dimension m). A cut then touches nothing but the edges it crosses, and no adjacency has to be tested. Cuts
through existing rays would make the polytope degenerate; they are read as cuts just beside those rays, which yields
coincident rays instead (:func:`distinct` merges them).

The description is an outer one: rounding and tolerance can leave the hull of the rays larger than the set by ``TOUCH``,
never smaller by more than a few units in the last place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tradeoff.errors import TradeoffError
from tradeoff.model import Matrix, Vector
from tradeoff.numerics import worths

__all__ = ["RAY_LIMIT", "TOUCH", "Skeleton", "TooManyRays", "distinct"]

Table = NDArray[np.int32]

# The one tolerance. Half-spaces are scaled so that the largest |a @ z| over the whole cross-section is 0.5 to 1: it is
# relative to what a half-space can tell apart. Rays carry errors of 1e-16 to 1e-15 after 40 cuts: a thousand times that
# is surely not rounding, and still far less than any difference a person notices or an oracle resolves.
TOUCH = 1e-12
SAME = 1e-14  # rays this close are one: far below TOUCH, so that merging them cannot matter to any bound
RAY_LIMIT = 60_000  # a cut still takes a tenth of a second there, but a problem is to be solved once for every ray


class TooManyRays(TradeoffError):
    """The cone has more extreme rays than is sensible to list; linear programs over its half-spaces still work."""


@dataclass(frozen=True, eq=False)
class Skeleton:
    """The rays of a simple polytope, the half-spaces tight at each, and its neighbours opposite to them."""

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
    near = np.flatnonzero(along[1:] - along[:-1] <= SAME * rays.shape[1])
    if not len(near):
        return rays.copy()
    same = near[np.abs(rays[order[near + 1]] - rays[order[near]]).max(axis=1) <= SAME]
    if not len(same):
        return rays.copy()
    first = np.ones(len(rays), bool)
    first[same + 1] = False
    once: Matrix = rays[np.sort(np.minimum.reduceat(order, np.flatnonzero(first)))]
    return once
