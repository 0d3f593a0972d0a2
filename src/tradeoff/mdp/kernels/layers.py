"""Shared by the kernels over layers: array types, threads, and weighted rewards."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numba import types

from tradeoff.mdp.kernels.jit import compiled
from tradeoff.mdp.kernels.vector import at, fma
from tradeoff.numerics import SUM_STATES

Array: TypeAlias = np.ndarray[Any, Any]

# With fewer states, a step is done before a second thread has started.
THREAD_STATES = 10_000
# The least number of values per thread in a step: with fewer, the threads would mostly wait for each other.
THREAD_VALUES = 20_000
# Weights of at most this many objectives are held in vector registers; the rest are read from memory.
HELD = 8


def given(kind: Any, dimensions: int = 1) -> Any:
    """Return the type of a contiguous array that is only read, so that read-only arrays are accepted."""
    return types.Array(kind, dimensions, "C", readonly=True)


def taken(kind: Any, dimensions: int = 1) -> Any:
    """Return the type of a contiguous array that is written."""
    return types.Array(kind, dimensions, "C")


IDS, LONGS, REALS = (given(kind) for kind in (types.int32, types.int64, types.float64))
IDS_OUT, LONGS_OUT, REALS_OUT = (taken(kind) for kind in (types.int32, types.int64, types.float64))
REAL_ROWS, REAL_ROWS_OUT = given(types.float64, 2), taken(types.float64, 2)
POINTERS = (IDS, LONGS)
LAYER = (*POINTERS, IDS, REALS, REAL_ROWS)
POLICY = {1: types.uint8, 2: types.uint16, 4: types.uint32}  # by size: the number of a choice within its state


@cache
def _pool() -> ThreadPoolExecutor:
    """Return the threads of this process; all calls share them, so parallel calls do not add threads."""
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="kernels")


if hasattr(os, "register_at_fork"):  # a child process has none of its parent's threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


def spread(task: Callable[..., object], chunks: Sequence[tuple[Any, ...]], threads: int) -> None:
    """Run the task on every chunk, on several threads if there are several chunks."""
    waiting = deque(chunks)

    def work() -> None:
        while waiting:
            try:
                chunk = waiting.popleft()
            except IndexError:  # another thread was quicker
                return
            task(*chunk)

    helpers = [_pool().submit(work) for _ in range(min(threads, len(chunks)) - 1)]
    try:
        work()
    finally:
        waiting.clear()
        for helper in helpers:
            if (
                not helper.cancel()
            ):  # do not wait for one that has not started: the threads may be busy with other calls
                helper.result()


def ranges(count: int, threads: int) -> list[tuple[int, int]]:
    """Return (begin, end) of a part for each thread, or of fewer that are large enough to be worth a thread."""
    size = max(THREAD_STATES, -(-count // max(1, threads)))
    return [(begin, min(count, begin + size)) for begin in range(0, count, size)]


def pieces(states: int, count: int) -> list[tuple[int, int]]:
    """Return (begin, end) of about `count` pieces of the states, whose sizes are multiples of SUM_STATES."""
    size = -(-states // count // SUM_STATES) * SUM_STATES
    return [(begin, min(states, begin + size)) for begin in range(0, states, size)]


@cache
def _weigher() -> Callable[..., Any]:
    @compiled(types.void(REAL_ROWS, REALS, types.int64, types.int64, REALS_OUT))
    def weigh_some(reward: Array, weights: Array, begin: int, end: int, out: Array) -> None:
        objectives = weights.shape[0]
        for i in range(begin, end):
            total = 0.0
            for j in range(objectives):
                total = fma(at(reward, i * objectives + j), at(weights, j), total)
            out[i] = total

    return weigh_some


def weigh(reward: Array, weights: Array, out: Array, threads: int) -> None:
    """Write the weighted reward of every choice."""
    kernel, vector = _weigher(), np.ascontiguousarray(weights)
    spread(lambda begin, end: kernel(reward, vector, begin, end, out), ranges(len(out), threads), threads)


Values: TypeAlias = tuple[Array, ...]
Sweep: TypeAlias = Callable[[int, int, Values, Values, Array], None]


def sweep_back(jobs: Sequence[tuple[Sweep, Values, Values]], policy: Array, threads: int) -> list[Values]:
    """Do all steps of some jobs, each (sweep, values after the last step, space for as many); return the first values.

    A sweep is called with a range of states, the values after a step, where to write those before it, and the policy to
    write. Given all states, it does all steps; otherwise threads share the states of each step in turn. Each state's sums
    are the same in both cases.
    """
    steps, states, _ = policy.shape
    values = sum(now[0].size for _, now, _ in jobs)
    threads = min(threads, max(len(jobs), values // THREAD_VALUES))
    if threads <= len(jobs) or states < THREAD_STATES:
        spread(
            lambda run, now, room: run(0, states, now, room, policy), jobs, threads if states >= THREAD_STATES else 1
        )
        return [room if steps % 2 else now for _, now, room in jobs]
    shared = pieces(states, 4 * threads // len(jobs))
    for step in range(steps - 1, -1, -1):
        written = policy[step : step + 1]
        spread(
            lambda run, now, room, begin, end, written=written: run(begin, end, now, room, written),
            [(*job, *part) for job in jobs for part in shared],
            threads,
        )
        jobs = [(run, room, now) for run, now, room in jobs]
    return [now for _, now, _ in jobs]


def empty_rows(rows: int, lanes: int) -> Array:
    """Return an uninitialised float64[rows, lanes] whose first row starts a cache line.

    NumPy aligns only to 16 bytes, which would spread every gathered row over one cache line more than necessary.
    """
    memory = np.empty(rows * lanes + 8)
    skip = (-memory.ctypes.data % 64) // 8
    return memory[skip : skip + rows * lanes].reshape(rows, lanes)
