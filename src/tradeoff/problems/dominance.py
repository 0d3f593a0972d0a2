"""Which of many items are beaten by another one in everything."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tradeoff.model import Indices, Matrix, Objective

# So many items are compared with all others at a time; each is one bit of a row of 64-bit words.
AT_ONCE = 1024
WORD = 64


def undominated(values: Matrix, objectives: Sequence[Objective]) -> NDArray[np.bool_]:
    """Return for each row of values whether no other is at least as good in everything and better in something.

    Of identical rows all are kept or none.

    >>> undominated(np.array([[1.0, 5.0], [2.0, 4.0], [1.0, 4.0], [2.0, 4.0]]), [Objective("a"), Objective("b")]).tolist()
    [True, True, False, True]
    """
    # Only the order of the amounts counts. Whole numbers in their place are compared and added without rounding.
    columns = [np.unique(o.sign * values[:, j], return_inverse=True)[1] for j, o in enumerate(objectives)]
    ranks, where = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    # What beats a row has a larger total of ranks. So the best come first, and a row is compared with what precedes it.
    todo = np.argsort(-ranks.sum(axis=1), kind="stable")
    kept = np.zeros(len(ranks), dtype=bool)
    while len(todo):
        first, todo = todo[:AT_ONCE], todo[AT_ONCE:]
        best = first[~_beaten(ranks[first], ranks[first], themselves=True)]
        kept[best] = True
        todo = todo[~_beaten(ranks[todo], ranks[best], themselves=False)]
    result: NDArray[np.bool_] = kept[where.reshape(-1)]
    return result


def _beaten(rows: Indices, by: Indices, *, themselves: bool) -> NDArray[np.bool_]:
    """Return which rows are at most ``by`` some other one in every column; all of them differ.

    ``themselves`` says that both are the same rows, and a row does not beat itself.
    """
    beaten = np.zeros(len(rows), dtype=bool)
    sets = [_leaders(by[:, j]) for j in range(by.shape[1])]
    for begin in range(0, len(rows), 8 * AT_ONCE):
        part = slice(begin, begin + 8 * AT_ONCE)
        common: NDArray[np.uint64] | None = None
        for j, (ordered, leaders) in enumerate(sets):
            ahead = len(by) - np.searchsorted(ordered, rows[part, j], side="left")
            common = leaders[ahead] if common is None else np.bitwise_and(common, leaders[ahead], out=common)
        assert common is not None
        if themselves:
            own = np.arange(begin, begin + len(common))
            common[own - begin, own // WORD] &= ~_bit(own)
        beaten[part] = common.any(axis=1)
    return beaten


def _leaders(column: Indices) -> tuple[Indices, NDArray[np.uint64]]:
    """Return a column in order, and for each n the set of its n largest, as bits."""
    order = np.argsort(-column, kind="stable")
    single = np.zeros((len(column) + 1, -(-len(column) // WORD)), dtype=np.uint64)
    single[np.arange(1, len(column) + 1), order // WORD] = _bit(order)
    return column[order][::-1], np.bitwise_or.accumulate(single, axis=0)


def _bit(position: Indices) -> NDArray[np.uint64]:
    return np.left_shift(np.uint64(1), (position % WORD).astype(np.uint64))
