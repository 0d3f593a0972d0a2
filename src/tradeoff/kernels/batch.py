"""Backward induction for many weight vectors at once: weights innermost, in vector registers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from tradeoff.kernels.arranged import Arrangement
from tradeoff.kernels.jit import compiled
from tradeoff.kernels.layers import (
    HELD,
    LAYER,
    POLICY,
    REAL_ROWS,
    REAL_ROWS_OUT,
    REALS,
    THREAD_STATES,
    Array,
    empty_rows,
    spread,
    taken,
    weigher,
)
from tradeoff.kernels.single import backward_one
from tradeoff.kernels.vector import (
    at,
    block_fma,
    block_load,
    broadcast,
    gather_fma,
    greater,
    lane_fma,
    load,
    not_less,
    prefetch,
    select,
    store,
    store_narrow,
    subtract,
)

# Two chunks of 8 cost half as much again as one of 16 while values fit the cache; from here on they cost little more.
_SPLIT_STATES = 50_000
# Rows of values are asked for this many successors ahead: far enough to hide main memory, near enough to stay in L1.
_AHEAD = 32


@cache
def _sweep_lanes(lanes: int, held: int, size: int) -> Callable[..., Any]:
    @compiled(
        types.void(
            *LAYER, REAL_ROWS, REAL_ROWS_OUT, REAL_ROWS_OUT, taken(POLICY[size]), types.int64, types.int64,
            taken(POLICY[size], 3),
        )
    )  # fmt: skip
    def sweep_lanes(
        state_ptr: Array, choice_ptr: Array, target: Array, prob: Array, reward: Array, weights: Array, source: Array,
        sink: Array, picks: Array, column: int, used: int, policy: Array,
    ) -> None:  # fmt: skip
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
                index = (step * states + state) * columns + column
                if used == lanes:
                    store_narrow(policy, index, picked)
                else:
                    # A whole store would run into the next state's row, which belongs to another thread.
                    store_narrow(picks, 0, picked)
                    for lane in range(used):
                        policy[step, state, column + lane] = at(picks, lane)
            source, sink = sink, source

    return sweep_lanes


def _filled(part: Array, lanes: int) -> Array:
    """Return an aligned copy of float64[rows, n] widened with zeros to `lanes` columns."""
    rows = empty_rows(part.shape[0], lanes)
    rows[:, : part.shape[1]] = part
    rows[:, part.shape[1] :] = 0.0
    return rows


def _chunks(count: int, states: int, threads: int) -> list[tuple[int, int]]:
    """Return (first column, number of columns) of each chunk: sixteen, or eight where threads would be idle."""
    size = 8 if states >= _SPLIT_STATES and -(-count // 8) <= threads else 16
    return [(column, min(size, count - column)) for column in range(0, count, size)]


def backward(
    state_ptr: Array, choice_ptr: Array, target: Array, prob: Array, reward: Array, weights: Array, values: Array,
    policy: Array, threads: int = 1, arranged: Arrangement | None = None,
) -> None:  # fmt: skip
    """Replace `values` by the best values `policy.shape[0]` steps earlier, and write the actions that attain them.

    weights  float64[B, k]            of any sign
    values   float64[S, B]            in: after the last step; out: before the first
    policy   uint8|16|32[steps, S, B]   out: local index of the action, 0 for the state's first choice (and at a
                                        terminal state); of equally good actions the lowest. C-contiguous, and of a type
                                        that holds every index: nothing here notices one that does not fit

    B is arbitrary: chunks of 16 or 8 are padded inside. `threads` splits the batch, never a single solve. `arranged`
    (see `arrange`) spares a single solve on a ragged layer some work; it never changes the result.
    """
    layer = (state_ptr, choice_ptr, target, prob, reward)
    states, count = values.shape
    steps = policy.shape[0]
    if count == 1:
        backward_one(*layer, weights[0], values[:, 0], policy, arranged)
        return
    if states < THREAD_STATES:
        threads = 1
    held = min(weights.shape[1], HELD)
    size = policy.itemsize

    chunks = _chunks(count, states, threads)
    kernels = {used > 8: _sweep_lanes(16 if used > 8 else 8, held, size) for _, used in chunks}

    def task(column: int, used: int) -> None:
        lanes = 16 if used > 8 else 8
        part = slice(column, column + used)
        source, sink = _filled(values[:, part], lanes), empty_rows(states, lanes)
        by_objective = _filled(weights[part].T, lanes)
        picks = np.empty(lanes, policy.dtype)
        kernels[used > 8](*layer, by_objective, source, sink, picks, column, used, policy)
        values[:, part] = (sink if steps % 2 else source)[:, :used]

    spread(task, chunks, threads)


@cache
def _sweep_lexicographic(held: int, size: int) -> Callable[..., Any]:
    lanes = 8

    @compiled(
        types.void(
            *LAYER, REAL_ROWS, REALS, REAL_ROWS, REAL_ROWS_OUT, REAL_ROWS_OUT, REAL_ROWS_OUT, REAL_ROWS_OUT,
            taken(types.float64, 3), taken(POLICY[size]), types.int64, types.int64, taken(POLICY[size], 3),
        )
    )  # fmt: skip
    def sweep_lexicographic(
        state_ptr: Array, choice_ptr: Array, target: Array, prob: Array, reward: Array, weights: Array,
        second_reward: Array, tolerance: Array, source: Array, sink: Array, second_source: Array, second_sink: Array,
        scratch: Array, picks: Array, column: int, used: int, policy: Array,
    ) -> None:  # fmt: skip
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
    state_ptr: Array, choice_ptr: Array, target: Array, prob: Array, reward: Array, weights: Array, second: Array,
    tolerance: Array, values: Array, seconds: Array, policy: Array, threads: int = 1,
) -> None:  # fmt: skip
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
    weigher()(reward, np.ascontiguousarray(second), np.empty(0, np.int32), second_reward)
    kernel = _sweep_lexicographic(min(weights.shape[1], HELD), policy.itemsize)
    most = max(1, int(np.diff(state_ptr).max(initial=0)))

    def task(column: int, used: int) -> None:
        part = slice(column, column + used)
        source, sink = _filled(values[:, part], lanes), empty_rows(states, lanes)
        second_source, second_sink = _filled(seconds[:, part], lanes), empty_rows(states, lanes)
        kernel(
            *layer, _filled(weights[part].T, lanes), second_reward, _filled(tolerance[np.newaxis, part], lanes), source,
            sink, second_source, second_sink, np.empty((most, 2, lanes)), np.empty(lanes, policy.dtype), column, used,
            policy,
        )  # fmt: skip
        values[:, part] = (sink if steps % 2 else source)[:, :used]
        seconds[:, part] = (second_sink if steps % 2 else second_source)[:, :used]

    chunks = [(column, min(lanes, count - column)) for column in range(0, count, lanes)]
    spread(task, chunks, threads if states >= THREAD_STATES else 1)
