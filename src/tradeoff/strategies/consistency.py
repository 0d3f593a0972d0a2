"""Everything that fits a person's trusted answers, with its extreme rays where they are few enough to list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tradeoff.model import Matrix
from tradeoff.strategies.polytope import Cone, half_spaces

# An answer as a label, and what it says: differences of gains [q, d], and how each comparison came out.
LabelledAnswer = tuple[int, Matrix, NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class ConsistentSet:
    """The (weights, precision) that fit some answers. A bound over ``rays`` holds for all of them.

    ``cone`` has all the answers. ``listed`` is the same cone, or a larger one that leaves out the answers with which
    there would be too many rays: its answers are always some of those of ``cone``, never others.
    """

    cone: Cone
    listed: Cone

    @classmethod
    def everything(cls, d: int, limit: int) -> ConsistentSet:
        """Return the set before any answer; ``limit`` is the largest number of rays."""
        cone = Cone.orthant(d, 1.0, limit=limit)
        return cls(cone, cone)

    def given(self, answers: Iterable[LabelledAnswer]) -> ConsistentSet:
        """Return the part of the set that fits these answers as well."""
        found = self
        for label, difference, kind in answers:
            found = found.cut(half_spaces(difference, kind), label)
        return found

    def if_one_were_wrong(self, answers: Sequence[LabelledAnswer], limit: int) -> Matrix:
        """Return the rays of what fits all of these answers but one, and contradicts that one; for each of them in turn.

        Together with the rays of this set, whose answers these are, they bound what fits all answers but any one. Each of
        these sets has at most ``limit`` rays.
        """
        found = [np.zeros((0, self.cone.d + 1))]
        before = ConsistentSet.everything(self.cone.d, limit)
        rows = [before.cone.scaled(half_spaces(difference, kind)) for _, difference, kind in answers]
        for position, (label, *_) in enumerate(answers):
            for row in rows[position]:  # "about equal" can be wrong in either direction, a choice in any place
                opposite = before.cut(-row[None, :], label, scaled=True)
                for later in range(position + 1, len(answers)):
                    if opposite.cone.without_rays:  # more answers would change nothing
                        break
                    opposite = opposite.cut(rows[later], answers[later][0], scaled=True)
                if not opposite.empty:
                    found.append(opposite.rays)
            before = before.cut(rows[position], label, scaled=True)
        return np.vstack(found)

    def cut(self, rows: Matrix, label: int, *, scaled: bool = False) -> ConsistentSet:
        """Return the part of the set where ``a @ z >= 0`` for each row a; ``scaled`` if ``Cone.scaled`` has seen to them."""
        cone = self.cone.add(rows, label, scaled=scaled)
        smaller = cone if self.cone is self.listed else self.listed.add(rows, label, scaled=scaled)
        return ConsistentSet(cone, smaller if smaller.has_rays else self.listed)

    @property
    def rays(self) -> Matrix:
        """The extreme rays of a set that contains this one: weights that sum to 1, then the precision."""
        return self.listed.rays

    @property
    def empty(self) -> bool:
        """Whether the answers contradict each other."""
        return self.cone.empty

    @property
    def trusted(self) -> frozenset[int]:
        """The labels of the answers."""
        return frozenset(self.cone.labels)  # type: ignore[arg-type]

    @property
    def nbytes(self) -> int:
        """About how many bytes it takes."""
        return self.cone.nbytes + (0 if self.cone is self.listed else self.listed.nbytes)
