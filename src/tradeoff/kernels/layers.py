"""What the kernels over layers share: array types, threads, and the weighing of rewards."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numba import types

from tradeoff.kernels.jit import compiled
from tradeoff.kernels.vector import at, fma

Array: TypeAlias = np.ndarray[Any, Any]

# Below this many states a chunk of weights is done before a second thread has started.
THREAD_STATES = 10_000
# Weights of at most this many objectives are held in vector registers; the rest are read from memory.
HELD = 8


def given(kind: Any, dimensions: int = 1) -> Any:
    """Return the type of a contiguous array that is only read, so that read-only arrays are accepted."""
    return types.Array(kind, dimensions, "C", readonly=True)


def taken(kind: Any, dimensions: int = 1) -> Any:
    """Return the type of a contiguous array that is written."""
    return types.Array(kind, dimensions, "C")


IDS, LONGS, REALS = (given(kind) for kind in (types.int32, types.int64, types.float64))
LONG_ROWS, REAL_ROWS = (given(kind, 2) for kind in (types.int64, types.float64))
IDS_OUT, LONGS_OUT, REALS_OUT = (taken(kind) for kind in (types.int32, types.int64, types.float64))
LONG_ROWS_OUT, REAL_ROWS_OUT = (taken(kind, 2) for kind in (types.int64, types.float64))
POINTERS = (IDS, LONGS)
LAYER = (*POINTERS, IDS, REALS, REAL_ROWS)
POLICY = {1: types.uint8, 2: types.uint16, 4: types.uint32}  # by size: the number of a choice within its state


@cache
def weigher() -> Callable[..., Any]:
    """Return the kernel that weighs rewards."""

    @compiled(types.void(REAL_ROWS, REALS, IDS, REALS_OUT))
    def weigh(reward: Array, weights: Array, order: Array, out: Array) -> None:
        """Write the weighted reward of every choice, taken in the given order (an empty one means: as they are)."""
        objectives = weights.shape[0]
        permuted = order.shape[0] > 0
        for i in range(out.shape[0]):
            row = np.int64(at(order, i) if permuted else i) * objectives
            total = 0.0
            for j in range(objectives):
                total = fma(at(reward, row + j), at(weights, j), total)
            out[i] = total

    return weigh


def spread(task: Callable[[int, int], None], chunks: list[tuple[int, int]], threads: int) -> None:
    """Run the task on every chunk, on several threads if that is worth while."""
    if threads > 1 and len(chunks) > 1:
        with ThreadPoolExecutor(min(threads, len(chunks))) as pool:
            for _ in pool.map(lambda chunk: task(*chunk), chunks):
                pass
    else:
        for chunk in chunks:
            task(*chunk)


def empty_rows(rows: int, lanes: int) -> Array:
    """Return an uninitialised float64[rows, lanes] whose first row starts a cache line.

    NumPy aligns to 16 bytes only, which would spread every gathered row over one line more than it needs.
    """
    memory = np.empty(rows * lanes + 8)
    skip = (-memory.ctypes.data % 64) // 8
    return memory[skip : skip + rows * lanes].reshape(rows, lanes)
