"""The law of closing a polytope: the corners and neighbours that sets of half-spaces say, one by one."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tradeoff.kernels.facets import close
from tradeoff.strategies.rays import Skeleton


def by_the_book(
    skeleton: Skeleton, gone: NDArray[np.bool_], index: int
) -> tuple[list[list[int]], list[list[int]]] | None:
    """Return tight half-spaces and neighbours of all corners; None where an edge of the new facet has not two ends."""
    stay = np.flatnonzero(~gone).tolist()
    tight = [skeleton.tight[i].tolist() for i in stay]
    neighbours = [[stay.index(j) if not gone[j] else -1 for j in skeleton.neighbours[i]] for i in stay]
    faces: dict[frozenset[int], list[tuple[int, int]]] = defaultdict(list)
    for here in range(len(stay)):
        for place, following in enumerate(neighbours[here]):
            if following >= 0:
                continue
            neighbours[here][place] = new = len(tight)
            tight.append([index if j == place else half for j, half in enumerate(tight[here])])
            neighbours.append([here if j == place else -1 for j in range(len(tight[here]))])
            for j, half in enumerate(tight[new]):
                if j != place:
                    faces[frozenset(tight[new]) - {half, index}].append((new, j))
    for ends in faces.values():
        if len(ends) != 2:
            return None
        (one, i), (two, j) = ends
        neighbours[one][i], neighbours[two][j] = two, one
    return tight, neighbours


@given(seed=st.integers(0, 1000), d=st.integers(1, 4))
def test_corners_and_neighbours_are_those_of_the_half_spaces(seed: int, d: int) -> None:
    random = np.random.default_rng(seed)
    skeleton = Skeleton.prism(d, 1.0)
    for index in range(d + 2, d + 7):
        row = np.append(random.normal(size=d), random.choice([-1.0, 1.0]))
        for gone in (skeleton.rays @ row < 0, random.random(len(skeleton.rays)) < 0.2):  # a cut, and what may be none
            total, inside, outside, tight, neighbours = close(skeleton.tight, skeleton.neighbours, gone, index, 10_000)
            expected = by_the_book(skeleton, gone, index)
            if expected is None:
                assert total == -1
                continue
            assert (tight.tolist(), neighbours.tolist()) == expected and total == len(expected[0])
            assert not gone[inside].any() and gone[outside].all()
            assert close(skeleton.tight, skeleton.neighbours, gone, index, total - 1)[0] == total
        skeleton = skeleton.cut(row, index, 10_000)
