"""Finite-horizon dynamic programming over sparse layers: backward sweeps, forward pushes, single steps of a policy.

A *layer* is one step of a decision process, five arrays that every function here takes first, in this order:

    state_ptr   int32[S + 1]   the choices of state s are state_ptr[s]:state_ptr[s + 1]; none: a terminal state, worth 0
    choice_ptr  int64[C + 1]   the successors of choice c are choice_ptr[c]:choice_ptr[c + 1]
    target      int32[N]       where each successor leads
    prob        float64[N]     how likely it is
    reward      float64[C, k]  what each choice earns on each objective

All arrays are C-contiguous and of exactly these types (inputs may be read-only), nothing is checked, and outputs are
written into arrays the caller gives. A stationary process uses one layer for several steps; one that depends on time
calls step by step.

Two promises hold throughout. The result for one weight vector or one policy has the same bits whether it is computed
alone or in any batch, at any position, with any number of threads: sums run in the order of the arrays, one fused
multiply-add at a time, in every path. And a kernel is compiled (or read from the cache on disk) when it is first
needed, not before. numba notices edits of this file but not of `vector.py`: after changing that one, touch this one.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba import njit, types
from numba.extending import register_jitable

from tradeoff.kernels.vector import (
    at,
    block_fma,
    block_load,
    broadcast,
    choose,
    fma,
    gather_dot,
    gather_fma,
    greater,
    lane_fma,
    load,
    not_less,
    prefetch,
    put,
    select,
    store,
    store_narrow,
    subtract,
)

__all__ = [
    "Arrangement",
    "arrange",
    "backward",
    "backward_lexicographic",
    "evaluate_step",
    "forward",
    "occupancy_step",
    "rollout_step",
]

Array: TypeAlias = np.ndarray[Any, Any]

# Below this many states a chunk of weights is done before a second thread has started.
_THREAD_STATES = 10_000
# Two chunks of 8 cost half as much again as one of 16 while values fit the cache; from here on they cost little more.
_SPLIT_STATES = 50_000
# Rows of values are asked for this many successors ahead: far enough to hide main memory, near enough to stay in L1.
_AHEAD = 32
# Weights of at most this many objectives are held in vector registers; the rest are read from memory.
_HELD = 8
# A scalar sweep over a ragged layer pays for arranging it first from this many steps on.
_ARRANGE_STEPS = 12

# Forward pushes skip this many neighbouring states at once (as a power of two) where none is reached.
_GROUP_BITS = 4

# Arranged layers: states in a block, and the number of classes (exactly 0, 1, ..., 8 members, and more than 8).
_BLOCK = 512
_CLASSES = 10
_LONG = _CLASSES - 1


def _given(kind: Any, dimensions: int = 1) -> Any:
    """Return the type of a contiguous array that is only read, so that read-only arrays are accepted."""
    return types.Array(kind, dimensions, "C", readonly=True)


def _taken(kind: Any, dimensions: int = 1) -> Any:
    """Return the type of a contiguous array that is written."""
    return types.Array(kind, dimensions, "C")


_IDS, _LONGS, _REALS = (_given(kind) for kind in (types.int32, types.int64, types.float64))
_LONG_ROWS, _REAL_ROWS = (_given(kind, 2) for kind in (types.int64, types.float64))
_IDS_OUT, _LONGS_OUT, _REALS_OUT = (_taken(kind) for kind in (types.int32, types.int64, types.float64))
_LONG_ROWS_OUT, _REAL_ROWS_OUT = (_taken(kind, 2) for kind in (types.int64, types.float64))
_POINTERS = (_IDS, _LONGS)
_LAYER = (*_POINTERS, _IDS, _REALS, _REAL_ROWS)
_POLICY = {1: types.uint8, 2: types.uint16}


def _compiled(result: Any, *arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that compiles a kernel for exactly these types, through the cache on disk if there is one."""

    def compile_now(function: Callable[..., Any]) -> Callable[..., Any]:
        options: dict[str, Any] = {"nogil": True, "boundscheck": False, "error_model": "numpy"}
        try:
            kernel: Callable[..., Any] = njit(result(*arguments), cache=True, **options)(function)
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            # Nowhere to write, neither beside this file nor in a home directory: slower to start, otherwise the same.
            kernel = njit(result(*arguments), **options)(function)
        return kernel

    return compile_now


# --------------------------------------------------------------------------------------------------------------------
# Backward: one weight vector
# --------------------------------------------------------------------------------------------------------------------


class Arrangement(NamedTuple):
    """A layer's choices and states sorted by size within blocks, so that one scalar sweep runs without mispredictions.

    Within each block of states the choices are ordered by their number of successors and the states by their number of
    choices. Depends on the layer's structure and probabilities only, never on rewards or weights.
    """

    choice: Array  # int32[C]: which choice stands here
    slot: Array  # int32[C]: where in the block's scratch its value goes
    target: Array  # int32[N]
    prob: Array  # float64[N]
    width: Array  # int32[C]: number of successors, read for the long ones only
    choice_end: Array  # int64[blocks, classes]: where each class of choices ends
    state: Array  # int32[S]
    state_end: Array  # int64[blocks, classes]: where each class of states ends, counted within the block
    scratch: int  # doubles of scratch that the largest block needs


@cache
def _common_step(kind: Any) -> Callable[..., Any]:
    @_compiled(types.int64, _given(kind))
    def common_step(pointers: Array) -> Any:
        """Return the difference between neighbours if it is the same everywhere, else -1."""
        if pointers.shape[0] < 2:
            return -1
        step = pointers[1] - pointers[0]
        for i in range(1, pointers.shape[0] - 1):
            if pointers[i + 1] - pointers[i] != step:
                return -1
        return np.int64(step)

    return common_step


@cache
def _weigh() -> Callable[..., Any]:
    @_compiled(types.void, _REAL_ROWS, _REALS, _IDS, _REALS_OUT)
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


@cache
def _sweep_regular(width: int, size: int) -> Callable[..., Any]:
    @_compiled(types.void, types.int64, _IDS, _REALS, _REALS, _REALS_OUT, _REALS_OUT, _taken(_POLICY[size], 3))
    def sweep_regular(
        actions: int, target: Array, prob: Array, earned: Array, source: Array, sink: Array, policy: Array
    ) -> None:
        """Sweep a layer whose states all have `actions` choices of exactly `width` successors."""
        states = source.shape[0]
        for step in range(policy.shape[0] - 1, -1, -1):
            choice = np.int64(0)
            entry = np.int64(0)
            for state in range(states):
                best = -np.inf
                picked = np.int64(0)
                for action in range(actions):
                    value = gather_dot(prob, target, source, entry, width, at(earned, choice))
                    better = value > best
                    best = choose(better, value, best)
                    picked = choose(better, np.int64(action), picked)
                    choice += 1
                    entry += width
                sink[state] = best
                policy[step, state, 0] = picked
            source, sink = sink, source

    return sweep_regular


@cache
def _sweep_ragged(size: int) -> Callable[..., Any]:
    @_compiled(types.void, *_POINTERS, _IDS, _REALS, _REALS, _REALS_OUT, _REALS_OUT, _taken(_POLICY[size], 3))
    def sweep_ragged(
        state_ptr: Array,
        choice_ptr: Array,
        target: Array,
        prob: Array,
        earned: Array,
        source: Array,
        sink: Array,
        policy: Array,
    ) -> None:
        """Sweep any layer as it is."""
        states = source.shape[0]
        for step in range(policy.shape[0] - 1, -1, -1):
            entry = np.int64(0)
            for state in range(states):
                first, last = np.int64(state_ptr[state]), np.int64(state_ptr[state + 1])
                best = -np.inf
                picked = np.int64(0)
                for choice in range(first, last):
                    value = at(earned, choice)
                    stop = at(choice_ptr, choice + 1)
                    while entry < stop:
                        value = fma(at(prob, entry), at(source, np.int64(at(target, entry))), value)
                        entry += 1
                    better = value > best
                    best = choose(better, value, best)
                    picked = choose(better, np.int64(choice - first), picked)
                sink[state] = choose(last > first, best, 0.0)
                policy[step, state, 0] = picked
            source, sink = sink, source

    return sweep_ragged


@cache
def _arrange() -> Callable[..., Any]:
    @_compiled(
        types.int64,
        *_POINTERS,
        _IDS,
        _REALS,
        _IDS_OUT,
        _IDS_OUT,
        _IDS_OUT,
        _REALS_OUT,
        _IDS_OUT,
        _LONG_ROWS_OUT,
        _IDS_OUT,
        _LONG_ROWS_OUT,
    )
    def arrange_blocks(
        state_ptr: Array,
        choice_ptr: Array,
        target: Array,
        prob: Array,
        choice_out: Array,
        slot: Array,
        target_out: Array,
        prob_out: Array,
        width_out: Array,
        choice_end: Array,
        state_out: Array,
        state_end: Array,
    ) -> Any:
        """Fill an arrangement and return the scratch it needs: two counting sorts in every block."""
        states = state_ptr.shape[0] - 1
        place = np.zeros(_CLASSES, np.int64)  # where the next member of a class goes
        entries = np.zeros(_CLASSES, np.int64)  # the same for its successors
        members = np.zeros(_CLASSES, np.int64)
        stride = np.zeros(_CLASSES, np.int64)  # between the actions of one state in the scratch
        offset = np.zeros(_CLASSES, np.int64)
        largest = np.int64(0)
        for block in range(choice_end.shape[0]):
            begin = block * _BLOCK
            end = min(states, begin + _BLOCK)
            # The scratch holds the states of one class side by side, action by action, so that the best actions of
            # eight states are found at once; every class starts at a multiple of eight. The states with many actions
            # come last, each with its own values in a row.
            members[:] = 0
            for state in range(begin, end):
                members[min(_LONG, state_ptr[state + 1] - state_ptr[state])] += 1
            position = np.int64(0)
            used = np.int64(0)
            for group in range(_CLASSES):
                place[group] = position
                position += members[group]
                state_end[block, group] = position
                offset[group] = used
                stride[group] = (members[group] + 7) // 8 * 8
                used += group * stride[group] if group < _LONG else 0
            for state in range(begin, end):
                actions = state_ptr[state + 1] - state_ptr[state]
                group = min(_LONG, actions)
                state_out[begin + place[group]] = state
                place[group] += 1
                # Parked at the state's first choice until the choices are moved below.
                if group < _LONG:
                    if group > 0:
                        choice_out[state_ptr[state]] = offset[group]
                    offset[group] += 1
                else:
                    choice_out[state_ptr[state]] = used
                    used += actions
            largest = max(largest, used)
            first, last = np.int64(state_ptr[begin]), np.int64(state_ptr[end])
            members[:] = 0
            entries[:] = 0
            for choice in range(first, last):
                width = at(choice_ptr, choice + 1) - at(choice_ptr, choice)
                members[min(_LONG, width)] += 1
                entries[min(_LONG, width)] += width
            position = first
            entry = at(choice_ptr, first)
            for group in range(_CLASSES):
                place[group] = position
                position += members[group]
                choice_end[block, group] = position
                length = entries[group]
                entries[group] = entry
                entry += length
            parked = choice_out[first:last].copy()
            for state in range(begin, end):
                start = np.int64(at(state_ptr, state))
                actions = at(state_ptr, state + 1) - start
                step = stride[actions] if actions < _LONG else np.int64(1)
                goal = np.int64(parked[start - first]) if actions > 0 else np.int64(0)
                for choice in range(start, start + actions):
                    source = at(choice_ptr, choice)
                    width = at(choice_ptr, choice + 1) - source
                    group = min(np.int64(_LONG), width)
                    here = place[group]
                    place[group] = here + 1
                    choice_out[here] = choice
                    slot[here] = goal
                    width_out[here] = width
                    goal += step
                    there = entries[group]
                    entries[group] = there + width
                    for i in range(width):
                        target_out[there + i] = at(target, source + i)
                        prob_out[there + i] = at(prob, source + i)
        return largest

    return arrange_blocks


@register_jitable  # type: ignore[untyped-decorator, unused-ignore]
def ask_ahead(prob: Array, target: Array, earned: Array, slot: Array, entry: Any, choice: Any) -> None:
    """Ask for what comes next: the processor's stride detectors start anew in the loop of every width."""
    prefetch(prob, entry + 128)
    prefetch(target, entry + 256)
    prefetch(earned, choice + 64)
    prefetch(slot, choice + 128)


@cache
def _sweep_arranged(size: int) -> Callable[..., Any]:
    @_compiled(
        types.void,
        _IDS,
        _IDS,
        _IDS,
        _REALS,
        _IDS,
        _LONG_ROWS,
        _IDS,
        _LONG_ROWS,
        _REALS,
        _REALS_OUT,
        _REALS_OUT,
        _REALS_OUT,
        _REALS_OUT,
        _taken(_POLICY[size]),
        _taken(_POLICY[size], 3),
    )
    def sweep_arranged(
        state_ptr: Array,
        slot: Array,
        target: Array,
        prob: Array,
        width: Array,
        choice_end: Array,
        state_order: Array,
        state_end: Array,
        earned: Array,
        source: Array,
        sink: Array,
        scratch: Array,
        eight_values: Array,
        eight_picks: Array,
        policy: Array,
    ) -> None:
        """Sweep an arranged layer: per block, all values of choices of one width, then all states of one count."""
        for step in range(policy.shape[0] - 1, -1, -1):
            start = np.int64(0)
            j = np.int64(0)
            for block in range(choice_end.shape[0]):
                # One loop for each width: no branch in it depends on data.
                for i in range(start, choice_end[block, 0]):
                    scratch[np.int64(at(slot, i))] = at(earned, i)
                for i in range(choice_end[block, 0], choice_end[block, 1]):
                    ask_ahead(prob, target, earned, slot, j, i)
                    scratch[np.int64(at(slot, i))] = gather_dot(prob, target, source, j, 1, at(earned, i))
                    j += 1
                for i in range(choice_end[block, 1], choice_end[block, 2]):
                    ask_ahead(prob, target, earned, slot, j, i)
                    scratch[np.int64(at(slot, i))] = gather_dot(prob, target, source, j, 2, at(earned, i))
                    j += 2
                for i in range(choice_end[block, 2], choice_end[block, 3]):
                    ask_ahead(prob, target, earned, slot, j, i)
                    scratch[np.int64(at(slot, i))] = gather_dot(prob, target, source, j, 3, at(earned, i))
                    j += 3
                for i in range(choice_end[block, 3], choice_end[block, 4]):
                    ask_ahead(prob, target, earned, slot, j, i)
                    scratch[np.int64(at(slot, i))] = gather_dot(prob, target, source, j, 4, at(earned, i))
                    j += 4
                for i in range(choice_end[block, 4], choice_end[block, 5]):
                    ask_ahead(prob, target, earned, slot, j, i)
                    scratch[np.int64(at(slot, i))] = gather_dot(prob, target, source, j, 5, at(earned, i))
                    j += 5
                for i in range(choice_end[block, 5], choice_end[block, 6]):
                    ask_ahead(prob, target, earned, slot, j, i)
                    scratch[np.int64(at(slot, i))] = gather_dot(prob, target, source, j, 6, at(earned, i))
                    j += 6
                for i in range(choice_end[block, 6], choice_end[block, 7]):
                    ask_ahead(prob, target, earned, slot, j, i)
                    scratch[np.int64(at(slot, i))] = gather_dot(prob, target, source, j, 7, at(earned, i))
                    j += 7
                for i in range(choice_end[block, 7], choice_end[block, 8]):
                    ask_ahead(prob, target, earned, slot, j, i)
                    scratch[np.int64(at(slot, i))] = gather_dot(prob, target, source, j, 8, at(earned, i))
                    j += 8
                for i in range(choice_end[block, 8], choice_end[block, 9]):
                    value = at(earned, i)
                    stop = j + width[i]
                    while j < stop:
                        value = fma(at(prob, j), at(source, np.int64(at(target, j))), value)
                        j += 1
                    scratch[np.int64(at(slot, i))] = value
                start = choice_end[block, 9]

                place = block * _BLOCK
                begin = np.int64(0)
                corner = np.int64(0)
                for actions in range(_LONG):
                    count = state_end[block, actions] - begin
                    stride = (count + 7) // 8 * 8
                    for near in range(0, count, 8):
                        best = broadcast(0.0, 8)
                        picked = broadcast(0, 8)
                        if actions > 0:
                            best = load(scratch, corner + near, 8)
                        for action in range(1, actions):
                            row = load(scratch, corner + action * stride + near, 8)
                            better = greater(row, best)
                            best = select(better, row, best)
                            picked = select(better, broadcast(action, 8), picked)
                        store(eight_values, 0, best)
                        store_narrow(eight_picks, 0, picked)
                        for lane in range(min(8, count - near)):
                            state = np.int64(at(state_order, place + near + lane))
                            sink[state] = at(eight_values, lane)
                            policy[step, state, 0] = at(eight_picks, lane)
                    corner += stride * actions
                    place += count
                    begin += count
                for _ in range(begin, state_end[block, _LONG]):
                    state = np.int64(state_order[place])
                    actions = state_ptr[state + 1] - state_ptr[state]
                    largest = scratch[corner]
                    choice = np.int64(0)
                    for action in range(1, actions):
                        value = at(scratch, corner + action)
                        higher = value > largest
                        largest = choose(higher, value, largest)
                        choice = choose(higher, np.int64(action), choice)
                    sink[state] = largest
                    policy[step, state, 0] = choice
                    corner += actions
                    place += 1
            source, sink = sink, source

    return sweep_arranged


def _regular(state_ptr: Array, choice_ptr: Array) -> tuple[int, int]:
    """Return the numbers of actions and of successors if they are the same everywhere and both small, else (0, 0)."""
    actions = int(_common_step(types.int32)(state_ptr))
    width = int(_common_step(types.int64)(choice_ptr)) if actions > 0 else 0
    return (actions, width) if 0 < width < _LONG else (0, 0)


def arrange(state_ptr: Array, choice_ptr: Array, target: Array, prob: Array) -> Arrangement | None:
    """Return the layer sorted for scalar sweeps, to be given to `backward`; None if it is regular and needs no sorting.

    It takes about 12 bytes a successor and the time of a few steps. `backward` makes its own when it is given none and
    has many steps to go, so keep one where single weight vectors are solved on the same layer again and again.
    """
    if _regular(state_ptr, choice_ptr)[0]:
        return None
    states, choices = state_ptr.size - 1, choice_ptr.size - 1
    blocks = -(-states // _BLOCK)
    made = Arrangement(
        choice=np.empty(choices, np.int32),
        slot=np.empty(choices, np.int32),
        target=np.empty(target.size, np.int32),
        prob=np.empty(prob.size),
        width=np.empty(choices, np.int32),
        choice_end=np.empty((blocks, _CLASSES), np.int64),
        state=np.empty(states, np.int32),
        state_end=np.empty((blocks, _CLASSES), np.int64),
        scratch=0,
    )
    return made._replace(scratch=int(_arrange()(state_ptr, choice_ptr, target, prob, *made[:-1])))


def _backward_one(
    state_ptr: Array,
    choice_ptr: Array,
    target: Array,
    prob: Array,
    reward: Array,
    weights: Array,
    values: Array,
    policy: Array,
    arranged: Arrangement | None,
) -> None:
    """Run the scalar sweep for one weight vector; `values` is float64[S], `policy` [steps, S, 1]."""
    steps, states, _ = policy.shape
    size = policy.itemsize
    source, sink = _rows(states, 1)[:, 0], _rows(states, 1)[:, 0]
    source[:] = values
    earned = np.empty(choice_ptr.size - 1)
    actions, width = _regular(state_ptr, choice_ptr)
    if arranged is None and not actions and steps >= _ARRANGE_STEPS:
        arranged = arrange(state_ptr, choice_ptr, target, prob)
    order = np.empty(0, np.int32) if arranged is None else arranged.choice
    _weigh()(reward, np.ascontiguousarray(weights), order, earned)
    if actions:
        _sweep_regular(width, size)(actions, target, prob, earned, source, sink, policy)
    elif arranged is None:
        _sweep_ragged(size)(state_ptr, choice_ptr, target, prob, earned, source, sink, policy)
    else:
        _sweep_arranged(size)(
            state_ptr,
            *arranged[1:-1],
            earned,
            source,
            sink,
            np.zeros(arranged.scratch + 8),
            np.empty(8),
            np.empty(8, policy.dtype),
            policy,
        )
    values[:] = sink if steps % 2 else source


# --------------------------------------------------------------------------------------------------------------------
# Backward: many weight vectors
# --------------------------------------------------------------------------------------------------------------------


@cache
def _sweep_lanes(lanes: int, held: int, size: int) -> Callable[..., Any]:
    @_compiled(
        types.void,
        *_LAYER,
        _REAL_ROWS,
        _REAL_ROWS_OUT,
        _REAL_ROWS_OUT,
        _taken(_POLICY[size]),
        types.int64,
        types.int64,
        _taken(_POLICY[size], 3),
    )
    def sweep_lanes(
        state_ptr: Array,
        choice_ptr: Array,
        target: Array,
        prob: Array,
        reward: Array,
        weights: Array,
        source: Array,
        sink: Array,
        picks: Array,
        column: int,
        used: int,
        policy: Array,
    ) -> None:
        """Sweep any layer for `lanes` weight vectors at once, writing the policies of the first `used` of them."""
        states = state_ptr.shape[0] - 1
        objectives = reward.shape[1]
        columns = policy.shape[2]
        final = target.shape[0] - 1
        block = block_load(weights, held, lanes)
        for step in range(policy.shape[0] - 1, -1, -1):
            entry = np.int64(0)
            for state in range(states):
                first, last = np.int64(at(state_ptr, state)), np.int64(at(state_ptr, state + 1))
                best = broadcast(-np.inf, lanes)
                picked = broadcast(0, lanes)
                for choice in range(first, last):
                    row = choice * objectives
                    value = block_fma(reward, row, block, broadcast(0.0, lanes))
                    for i in range(held, objectives):
                        value = lane_fma(at(reward, row + i), load(weights, i * lanes, lanes), value)
                    stop = at(choice_ptr, choice + 1)
                    while entry < stop:
                        soon = np.int64(at(target, min(entry + _AHEAD, final))) * lanes
                        prefetch(source, soon)
                        if lanes > 8:
                            prefetch(source, soon + 8)
                        value = gather_fma(at(prob, entry), source, np.int64(at(target, entry)) * lanes, value)
                        entry += 1
                    better = greater(value, best)
                    best = select(better, value, best)
                    picked = select(better, broadcast(choice - first, lanes), picked)
                if first == last:
                    best = broadcast(0.0, lanes)
                store(sink, state * lanes, best)
                place = (step * states + state) * columns + column
                if used == lanes:
                    store_narrow(policy, place, picked)
                else:
                    # A whole store would run into the next state's row, which belongs to another thread.
                    store_narrow(picks, 0, picked)
                    for lane in range(used):
                        policy[step, state, column + lane] = at(picks, lane)
            source, sink = sink, source

    return sweep_lanes


def _rows(rows: int, lanes: int) -> Array:
    """Return an uninitialised float64[rows, lanes] whose first row starts a cache line.

    NumPy aligns to 16 bytes only, which would spread every gathered row over one line more than it needs.
    """
    memory = np.empty(rows * lanes + 8)
    skip = (-memory.ctypes.data % 64) // 8
    return memory[skip : skip + rows * lanes].reshape(rows, lanes)


def _filled(part: Array, lanes: int) -> Array:
    """Return an aligned copy of float64[rows, n] widened with zeros to `lanes` columns."""
    rows = _rows(part.shape[0], lanes)
    rows[:, : part.shape[1]] = part
    rows[:, part.shape[1] :] = 0.0
    return rows


def _chunks(count: int, states: int, threads: int) -> list[tuple[int, int]]:
    """Return (first column, number of columns) of each chunk: sixteen, or eight where threads would be idle."""
    size = 8 if states >= _SPLIT_STATES and -(-count // 8) <= threads else 16
    return [(column, min(size, count - column)) for column in range(0, count, size)]


def _spread(task: Callable[[int, int], None], chunks: list[tuple[int, int]], threads: int) -> None:
    """Run the task on every chunk, on several threads if that is worth while."""
    if threads > 1 and len(chunks) > 1:
        with ThreadPoolExecutor(min(threads, len(chunks))) as pool:
            for _ in pool.map(lambda chunk: task(*chunk), chunks):
                pass
    else:
        for chunk in chunks:
            task(*chunk)


def backward(
    state_ptr: Array,
    choice_ptr: Array,
    target: Array,
    prob: Array,
    reward: Array,
    weights: Array,
    values: Array,
    policy: Array,
    threads: int = 1,
    arranged: Arrangement | None = None,
) -> None:
    """Replace `values` by the best values `policy.shape[0]` steps earlier, and write the actions that attain them.

    weights  float64[B, k]            of any sign
    values   float64[S, B]            in: after the last step; out: before the first
    policy   uint8|uint16[steps, S, B]  out: local index of the action, 0 for the state's first choice (and at a
                                        terminal state); of equally good actions the lowest. C-contiguous

    B is arbitrary: chunks of 16 or 8 are padded inside. `threads` splits the batch, never a single solve. `arranged`
    (see `arrange`) spares a single solve on a ragged layer some work; it never changes the result.
    """
    layer = (state_ptr, choice_ptr, target, prob, reward)
    states, count = values.shape
    steps = policy.shape[0]
    if count == 1:
        _backward_one(*layer, weights[0], values[:, 0], policy, arranged)
        return
    if states < _THREAD_STATES:
        threads = 1
    held = min(weights.shape[1], _HELD)
    size = policy.itemsize

    chunks = _chunks(count, states, threads)
    kernels = {used > 8: _sweep_lanes(16 if used > 8 else 8, held, size) for _, used in chunks}

    def task(column: int, used: int) -> None:
        lanes = 16 if used > 8 else 8
        part = slice(column, column + used)
        source, sink = _filled(values[:, part], lanes), _rows(states, lanes)
        by_objective = _filled(weights[part].T, lanes)
        picks = np.empty(lanes, policy.dtype)
        kernels[used > 8](*layer, by_objective, source, sink, picks, column, used, policy)
        values[:, part] = (sink if steps % 2 else source)[:, :used]

    _spread(task, chunks, threads)


@cache
def _sweep_lexicographic(held: int, size: int) -> Callable[..., Any]:
    lanes = 8

    @_compiled(
        types.void,
        *_LAYER,
        _REAL_ROWS,
        _REALS,
        _REAL_ROWS,
        _REAL_ROWS_OUT,
        _REAL_ROWS_OUT,
        _REAL_ROWS_OUT,
        _REAL_ROWS_OUT,
        _taken(types.float64, 3),
        _taken(_POLICY[size]),
        types.int64,
        types.int64,
        _taken(_POLICY[size], 3),
    )
    def sweep_lexicographic(
        state_ptr: Array,
        choice_ptr: Array,
        target: Array,
        prob: Array,
        reward: Array,
        weights: Array,
        second_reward: Array,
        tolerance: Array,
        source: Array,
        sink: Array,
        second_source: Array,
        second_sink: Array,
        scratch: Array,
        picks: Array,
        column: int,
        used: int,
        policy: Array,
    ) -> None:
        """Sweep any layer for eight weight vectors at once, choosing by the second value among the near-best."""
        states = state_ptr.shape[0] - 1
        objectives = reward.shape[1]
        block = block_load(weights, held, lanes)
        slack = load(tolerance, 0, lanes)
        for step in range(policy.shape[0] - 1, -1, -1):
            entry = np.int64(0)
            for state in range(states):
                first, last = np.int64(at(state_ptr, state)), np.int64(at(state_ptr, state + 1))
                best = broadcast(-np.inf, lanes)
                for choice in range(first, last):
                    row = choice * objectives
                    value = block_fma(reward, row, block, broadcast(0.0, lanes))
                    for i in range(held, objectives):
                        value = lane_fma(at(reward, row + i), load(weights, i * lanes, lanes), value)
                    second = broadcast(at(second_reward, choice), lanes)
                    stop = at(choice_ptr, choice + 1)
                    while entry < stop:
                        where = np.int64(at(target, entry)) * lanes
                        value = gather_fma(at(prob, entry), source, where, value)
                        second = gather_fma(at(prob, entry), second_source, where, second)
                        entry += 1
                    best = select(greater(value, best), value, best)
                    store(scratch, (choice - first) * 2 * lanes, value)
                    store(scratch, (choice - first) * 2 * lanes + lanes, second)
                floor = subtract(best, slack)
                best = broadcast(0.0, lanes)
                chosen = broadcast(-np.inf, lanes)
                picked = broadcast(0, lanes)
                for action in range(last - first):
                    value = load(scratch, action * 2 * lanes, lanes)
                    second = load(scratch, action * 2 * lanes + lanes, lanes)
                    second = select(not_less(value, floor), second, broadcast(-np.inf, lanes))
                    better = greater(second, chosen)
                    chosen = select(better, second, chosen)
                    best = select(better, value, best)
                    picked = select(better, broadcast(action, lanes), picked)
                if first == last:
                    chosen = broadcast(0.0, lanes)
                store(sink, state * lanes, best)
                store(second_sink, state * lanes, chosen)
                store_narrow(picks, 0, picked)
                for lane in range(used):
                    policy[step, state, column + lane] = at(picks, lane)
            source, sink = sink, source
            second_source, second_sink = second_sink, second_source

    return sweep_lexicographic


def backward_lexicographic(
    state_ptr: Array,
    choice_ptr: Array,
    target: Array,
    prob: Array,
    reward: Array,
    weights: Array,
    second: Array,
    tolerance: Array,
    values: Array,
    seconds: Array,
    policy: Array,
    threads: int = 1,
) -> None:
    """Replace `values` and `seconds` by those of the policy best for `second` among the near-best for the weights.

    As `backward`, but of the actions whose value is within `tolerance` of the best, the one with the largest expected
    sum of `second` is taken; of those equal in that too, the lowest. Both values carried on are the chosen action's.

    second     float64[k]     one tie-breaking weight vector for the whole batch
    tolerance  float64[B]     absolute, per weight vector, per step
    seconds    float64[S, B]  in: after the last step; out: before the first
    """
    layer = (state_ptr, choice_ptr, target, prob, reward)
    states, count = values.shape
    steps = policy.shape[0]
    lanes = 8
    second_reward = np.empty(choice_ptr.size - 1)
    _weigh()(reward, np.ascontiguousarray(second), np.empty(0, np.int32), second_reward)
    kernel = _sweep_lexicographic(min(weights.shape[1], _HELD), policy.itemsize)
    most = max(1, int(np.diff(state_ptr).max(initial=0)))

    def task(column: int, used: int) -> None:
        part = slice(column, column + used)
        source, sink = _filled(values[:, part], lanes), _rows(states, lanes)
        second_source, second_sink = _filled(seconds[:, part], lanes), _rows(states, lanes)
        kernel(
            *layer,
            _filled(weights[part].T, lanes),
            second_reward,
            _filled(tolerance[np.newaxis, part], lanes),
            source,
            sink,
            second_source,
            second_sink,
            np.empty((most, 2, lanes)),
            np.empty(lanes, policy.dtype),
            column,
            used,
            policy,
        )
        values[:, part] = (sink if steps % 2 else source)[:, :used]
        seconds[:, part] = (second_sink if steps % 2 else second_source)[:, :used]

    chunks = [(column, min(lanes, count - column)) for column in range(0, count, lanes)]
    _spread(task, chunks, threads if states >= _THREAD_STATES else 1)


# --------------------------------------------------------------------------------------------------------------------
# Forward
# --------------------------------------------------------------------------------------------------------------------


@cache
def _push_columns(held: int, size: int) -> Callable[..., Any]:
    @_compiled(
        types.void,
        *_LAYER,
        _given(_POLICY[size], 3),
        types.int64,
        types.int64,
        _REAL_ROWS_OUT,
        _REAL_ROWS_OUT,
        _REAL_ROWS_OUT,
        _taken(types.uint8, 2),
        _REALS_OUT,
    )
    def push_columns(
        state_ptr: Array,
        choice_ptr: Array,
        target: Array,
        prob: Array,
        reward: Array,
        policy: Array,
        column: int,
        used: int,
        occupancy: Array,
        totals: Array,
        mass: Array,
        marks: Array,
        earned: Array,
    ) -> None:
        """Push some columns forward one after the other: a column fits the cache where a batch would not.

        A byte marks each group of neighbouring states of which one may have mass, so that empty groups are skipped.
        States are visited by number, which fixes the order of summation.
        """
        states = state_ptr.shape[0] - 1
        objectives = reward.shape[1]
        for b in range(column, column + used):
            now = np.int64(0)
            mass[:] = 0.0
            marks[:] = 0
            for state in range(states):
                if occupancy[state, b] != 0.0:
                    mass[0, state] = occupancy[state, b]
                    marks[0, state >> _GROUP_BITS] = 1
            for step in range(policy.shape[0]):
                later = 1 - now
                here, there = now * states, later * states
                total = broadcast(0.0, held)
                earned[:] = 0.0
                for group in range(marks.shape[1]):
                    if marks[now, group] == 0:
                        continue
                    marks[now, group] = 0
                    for state in range(group << _GROUP_BITS, min(states, (group + 1) << _GROUP_BITS)):
                        amount = at(mass, here + state)
                        if amount == 0.0:
                            continue
                        mass[now, state] = 0.0
                        first = np.int64(at(state_ptr, state))
                        if first == np.int64(at(state_ptr, state + 1)):
                            mass[later, state] += amount
                            marks[later, group] = 1
                            continue
                        choice = first + np.int64(policy[step, state, b])
                        total = lane_fma(amount, load(reward, choice * objectives, held), total)
                        for i in range(held, objectives):
                            earned[i] = fma(amount, at(reward, choice * objectives + i), earned[i])
                        for entry in range(at(choice_ptr, choice), at(choice_ptr, choice + 1)):
                            goal = np.int64(at(target, entry))
                            put(mass, there + goal, fma(amount, at(prob, entry), at(mass, there + goal)))
                            put(marks, later * marks.shape[1] + (goal >> _GROUP_BITS), np.uint8(1))
                store(earned, 0, total)
                for i in range(objectives):
                    totals[b, i] += earned[i]
                now = later
            for state in range(states):
                occupancy[state, b] = mass[now, state]

    return push_columns


def forward(
    state_ptr: Array,
    choice_ptr: Array,
    target: Array,
    prob: Array,
    reward: Array,
    policy: Array,
    occupancy: Array,
    totals: Array,
    threads: int = 1,
) -> None:
    """Replace each column of `occupancy` by where its policy leads in `policy.shape[0]` steps; add up what it earns.

    policy     uint8|uint16[steps, S, B]  local index of the action, as `backward` writes it
    occupancy  float64[S, B]              in: before the first step; out: after the last
    totals     float64[B, k]              the expected reward of these steps is added

    The cost is proportional to the states that are reached. Mass in a terminal state stays there and earns nothing.
    """
    states, count = occupancy.shape
    kernel = _push_columns(min(reward.shape[1], _HELD), policy.itemsize)
    if states < _THREAD_STATES:
        threads = 1

    def task(column: int, used: int) -> None:
        mass = np.empty((2, states))
        marks = np.empty((2, -(-states // (1 << _GROUP_BITS))), np.uint8)
        earned = np.empty(reward.shape[1])
        kernel(
            state_ptr, choice_ptr, target, prob, reward, policy, column, used, occupancy, totals, mass, marks, earned
        )

    share = -(-count // threads)
    _spread(task, [(column, min(share, count - column)) for column in range(0, count, share)], threads)


# --------------------------------------------------------------------------------------------------------------------
# One step of one policy, given as the chance of every choice
# --------------------------------------------------------------------------------------------------------------------


@cache
def _evaluate(lanes: int) -> Callable[..., Any]:
    @_compiled(types.void, *_LAYER, _REALS, _REAL_ROWS, _REAL_ROWS_OUT)
    def evaluate(
        state_ptr: Array,
        choice_ptr: Array,
        target: Array,
        prob: Array,
        reward: Array,
        chance: Array,
        values: Array,
        out: Array,
    ) -> None:
        """Evaluate the policy for `lanes` objectives at a time, a divisor of their number."""
        objectives = reward.shape[1]
        for state in range(state_ptr.shape[0] - 1):
            for offset in range(0, objectives, lanes):
                total = broadcast(0.0, lanes)
                for choice in range(np.int64(at(state_ptr, state)), np.int64(at(state_ptr, state + 1))):
                    taken = at(chance, choice)
                    if taken == 0.0:
                        continue
                    value = load(reward, choice * objectives + offset, lanes)
                    for entry in range(at(choice_ptr, choice), at(choice_ptr, choice + 1)):
                        row = np.int64(at(target, entry)) * objectives + offset
                        value = gather_fma(at(prob, entry), values, row, value)
                    total = lane_fma(taken, value, total)
                store(out, state * objectives + offset, total)

    return evaluate


def evaluate_step(
    state_ptr: Array,
    choice_ptr: Array,
    target: Array,
    prob: Array,
    reward: Array,
    chance: Array,
    values_next: Array,
    out: Array,
) -> None:
    """Write into `out` the expected vector of rewards from every state on, given that after this step.

    chance       float64[C]     probability of each choice given its state; choices of chance 0 cost nothing
    values_next  float64[S, k]  must not be `out`
    out          float64[S, k]  zero at terminal states
    """
    objectives = reward.shape[1]
    lanes = max(divisor for divisor in range(1, 9) if objectives % divisor == 0)
    _evaluate(lanes)(state_ptr, choice_ptr, target, prob, reward, chance, values_next, out)


@cache
def _occupy() -> Callable[..., Any]:
    @_compiled(types.void, *_LAYER[:4], _REALS, _REALS, _REALS_OUT)
    def occupy(
        state_ptr: Array, choice_ptr: Array, target: Array, prob: Array, chance: Array, now: Array, out: Array
    ) -> None:
        out[:] = 0.0
        for state in range(state_ptr.shape[0] - 1):
            held = now[state]
            if held == 0.0:
                continue
            first, last = np.int64(state_ptr[state]), np.int64(state_ptr[state + 1])
            if first == last:
                out[state] += held
            for choice in range(first, last):
                moved = held * at(chance, choice)
                if moved == 0.0:
                    continue
                for entry in range(at(choice_ptr, choice), at(choice_ptr, choice + 1)):
                    goal = np.int64(at(target, entry))
                    out[goal] = fma(moved, at(prob, entry), out[goal])

    return occupy


def occupancy_step(
    state_ptr: Array, choice_ptr: Array, target: Array, prob: Array, chance: Array, now: Array, out: Array
) -> None:
    """Write into `out` the distribution over states after this step of the policy; terminal mass stays.

    chance  float64[C]  probability of each choice given its state
    now     float64[S]  must not be `out`
    out     float64[S]
    """
    _occupy()(state_ptr, choice_ptr, target, prob, chance, now, out)


@cache
def _roll() -> Callable[..., Any]:
    @_compiled(types.void, *_LAYER[:4], _REALS, _LONGS, _REALS, _REALS, _LONGS_OUT, _LONGS_OUT, _LONGS_OUT)
    def roll(
        state_ptr: Array,
        choice_ptr: Array,
        target: Array,
        prob: Array,
        chance: Array,
        state_now: Array,
        action_uniforms: Array,
        next_uniforms: Array,
        out_choice: Array,
        out_index: Array,
        out_state: Array,
    ) -> None:
        for i in range(state_now.shape[0]):
            state = state_now[i]
            # The last possible branch is kept in hand: it is the answer when rounding leaves the sum short of the
            # uniform number, and an impossible branch never is.
            picked: Any = np.int64(-1)
            reached = 0.0
            for choice in range(np.int64(state_ptr[state]), np.int64(state_ptr[state + 1])):
                if chance[choice] > 0.0:
                    picked = choice
                    reached += chance[choice]
                    if action_uniforms[i] < reached:
                        break
            index: Any = np.int64(-1)
            if picked >= 0:
                reached = 0.0
                for entry in range(choice_ptr[picked], choice_ptr[picked + 1]):
                    if prob[entry] > 0.0:
                        index = entry
                        reached += prob[entry]
                        if next_uniforms[i] < reached:
                            break
            out_choice[i] = picked
            out_index[i] = index
            out_state[i] = np.int64(target[index]) if index >= 0 else state

    return roll


def rollout_step(
    state_ptr: Array,
    choice_ptr: Array,
    target: Array,
    prob: Array,
    chance: Array,
    states: Array,
    action_uniforms: Array,
    next_uniforms: Array,
    out_choice: Array,
    out_index: Array,
    out_state: Array,
) -> None:
    """Write for each of n walkers the choice it takes, the successor it draws, and the state it then is in.

    chance           float64[C]  probability of each choice given its state
    states           int64[n]    may be `out_state`
    action_uniforms  float64[n]  in [0, 1): which choice
    next_uniforms    float64[n]  in [0, 1): which successor
    out_choice       int64[n]    -1 at a terminal state
    out_index        int64[n]    index into `target`; -1 at a terminal state
    out_state        int64[n]    unchanged at a terminal state

    A choice or successor of probability zero is never drawn, however the sums round.
    """
    _roll()(
        state_ptr,
        choice_ptr,
        target,
        prob,
        chance,
        states,
        action_uniforms,
        next_uniforms,
        out_choice,
        out_index,
        out_state,
    )
