"""A simple polytope loses some of its corners and is closed by a new facet: which corners arise, and who is next to whom.

Only whole numbers here: where the new corners lie is for the caller to say.
"""

from typing import Any

import numpy as np
from numba import types, uint64

from tradeoff.kernels.jit import compiled_when_called, helper, int64

Table = types.Array(types.int32, 2, "C", readonly=True)
Mask = types.Array(types.boolean, 1, "C", readonly=True)


@helper
def word(number: Any) -> Any:
    """Return a well-mixed 64-bit word for a number, always the same (splitmix64)."""
    x = (uint64(number) + uint64(1)) * uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> uint64(27))) * uint64(0x94D049BB133111EB)
    return x ^ (x >> uint64(31))


@compiled_when_called((Table, Table, Mask, int64, int64))
def close(tight: Any, neighbours: Any, gone: Any, index: Any, limit: Any) -> Any:
    """Return the corners without those ``gone``, closed by the facet ``index``; ``[n, w]`` arrays as in ``Skeleton``.

    A new corner arises on every edge from a corner that stays to one that is gone. The result is the number of corners, these
    edges' ends, and the tables of the corners that stay and then of the new ones. There are no tables where there would be more
    than ``limit`` corners, and only the number -1 where the new facet is no polytope: every edge of it must have two ends.
    """
    count, width = neighbours.shape
    renumbered = np.empty(count, np.int32)
    stay, new = 0, 0
    for i in range(count):
        if not gone[i]:
            renumbered[i] = stay
            stay += 1
            for j in range(width):
                new += gone[neighbours[i, j]]
    total = stay + new
    if total > limit:
        new, stay = 0, 0
    inside, outside, left = np.empty(new, np.int64), np.empty(new, np.int64), np.empty(new, np.int64)
    tight_now, neighbours_now = np.empty((stay + new, width), np.int32), np.empty((stay + new, width), np.int32)
    if total > limit:
        return total, inside, outside, tight_now, neighbours_now
    new = 0
    for i in range(count):
        if gone[i]:
            continue
        here = renumbered[i]
        for j in range(width):
            tight_now[here, j] = tight[i, j]
            other = neighbours[i, j]
            if not gone[other]:
                neighbours_now[here, j] = renumbered[other]
                continue
            inside[new], outside[new], left[new] = i, other, j
            there = stay + new
            for k in range(width):
                tight_now[there, k] = tight[i, k]
            tight_now[there, j] = index
            neighbours_now[here, j], neighbours_now[there, j] = there, here
            new += 1
    # Two new corners are neighbours if their edges lie on a common face of dimension two. Such a face is the set of the edge's
    # tight half-spaces less one, recognised by the exclusive or of one random word per half-space, in a table of hashes.
    size = 4
    while size < 2 * new * width:
        size *= 2
    keys, places, met = np.empty(size, np.uint64), np.full(size, -1, np.int64), np.zeros(size, np.bool_)
    words = np.empty(width, np.uint64)
    single = 0
    for a in range(new):
        every = uint64(0)
        for j in range(width):
            words[j] = word(tight_now[stay + a, j])
            if j != left[a]:
                every ^= words[j]
        for j in range(width):
            if j == left[a]:
                continue
            key = every ^ words[j]
            at = int64(key & uint64(size - 1))
            while places[at] >= 0 and keys[at] != key:
                at = (at + 1) & (size - 1)
            if places[at] < 0:
                keys[at], places[at] = key, a * width + j
                single += 1
            elif met[at]:
                return -1, inside, outside, tight_now, neighbours_now
            else:
                met[at] = True
                single -= 1
                b, k = places[at] // width, places[at] % width
                neighbours_now[stay + a, j], neighbours_now[stay + b, k] = stay + b, stay + a
    return (total if single == 0 else -1), inside, outside, tight_now, neighbours_now
