"""Backward induction for many weight vectors at once: weights innermost, in vector registers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from tradeoff.mdp.kernels.jit import compiled
from tradeoff.mdp.kernels.layers import (
    HELD,
    LAYER,
    POLICY,
    REAL_ROWS,
    REAL_ROWS_OUT,
    REALS,
    Array,
    Sweep,
    Values,
    empty_rows,
    sweep_back,
    taken,
    weigh,
)
from tradeoff.mdp.kernels.single import backward_one
from tradeoff.mdp.kernels.vector import (
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

# Rows of values are prefetched this many successors ahead: far enough to hide main memory, near enough to stay in L1.
_AHEAD = 32


@cache
def _sweep_lanes(lanes: int, held: int, size: int) -> Callable[..., Any]:
    @compiled(
        types.void(
            *LAYER, REAL_ROWS, taken(POLICY[size]), types.int64, types.int64, types.int64, types.int64, REAL_ROWS_OUT,
            REAL_ROWS_OUT, taken(POLICY[size], 3),
        )
    )  # fmt: skip
    def sweep_lanes(
        state_ptr: Array, choice_ptr: Array, target: Array, prob: Array, reward: Array, weights: Array, picks: Array,
        column: int, used: int, begin: int, end: int, source: Array, sink: Array, policy: Array,
    ) -> None:  # fmt: skip
        """Sweep any layer for `lanes` weight vectors at once, writing the policies of the first `used` of them."""
        states = state_ptr.shape[0] - 1
        objectives = reward.shape[1]
        columns = policy.shape[2]
        final = target.shape[0] - 1
        block = block_load(weights, held, lanes)
        for step in range(policy.shape[0] - 1, -1, -1):
            entry = np.int64(at(choice_ptr, np.int64(at(state_ptr, begin))))
            for state in range(begin, end):
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
                    # A full-width store would overwrite the next state's row, which may belong to another thread.
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


def backward(
    state_ptr: Array, choice_ptr: Array, target: Array, prob: Array, reward: Array, weights: Array, values: Array,
    policy: Array, threads: int = 1,
) -> None:  # fmt: skip
    """Replace `values` with the best values `policy.shape[0]` steps earlier, and write the actions that attain them.

    weights  float64[B, k]            of any sign
    values   float64[S, B]            in: after the last step; out: before the first
    policy   uint8|16|32[steps, S, B]   out: local index of the action, 0 for the state's first choice (and at a
                                        terminal state); of equally good actions the lowest. C-contiguous, and of a type
                                        that holds every index: nothing here notices one that does not fit

    B is arbitrary: it is split into chunks of 16 or 8, padded internally. Threads share the chunks, or the states of a
    step.
    """
    layer = (state_ptr, choice_ptr, target, prob, reward)
    states, count = values.shape
    if count == 1:
        backward_one(*layer, weights[0], values[:, 0], policy, threads)
        return
    held = min(weights.shape[1], HELD)

    def job(column: int, used: int) -> tuple[Sweep, Values, Values]:
        lanes = 16 if used > 8 else 8
        part = slice(column, column + used)
        kernel, by_objective = _sweep_lanes(lanes, held, policy.itemsize), _filled(weights[part].T, lanes)

        def run(begin: int, end: int, now: Values, room: Values, written: Array) -> None:
            picks = np.empty(lanes, policy.dtype)
            kernel(*layer, by_objective, picks, column, used, begin, end, *now, *room, written)

        return run, (_filled(values[:, part], lanes),), (empty_rows(states, lanes),)

    _in_groups(job, 16, policy, threads, (values,))


def _in_groups(
    job: Callable[[int, int], tuple[Sweep, Values, Values]], lanes: int, policy: Array, threads: int, values: Values
) -> None:
    """Do the job of every chunk of columns, as many in parallel as there are threads, and write its values back."""
    count = policy.shape[2]
    chunks = [(column, min(lanes, count - column)) for column in range(0, count, lanes)]
    for first in range(0, len(chunks), max(1, threads)):
        group = chunks[first : first + max(1, threads)]
        done = sweep_back([job(*chunk) for chunk in group], policy, threads)
        for (column, used), found in zip(group, done, strict=True):
            for whole, part in zip(values, found, strict=True):
                whole[:, column : column + used] = part[:, :used]


@cache
def _sweep_lexicographic(held: int, size: int) -> Callable[..., Any]:
    lanes = 8

    @compiled(
        types.void(
            *LAYER, REAL_ROWS, REALS, REAL_ROWS, taken(types.float64, 3), taken(POLICY[size]), types.int64, types.int64,
            types.int64, types.int64, REAL_ROWS_OUT, REAL_ROWS_OUT, REAL_ROWS_OUT, REAL_ROWS_OUT, taken(POLICY[size], 3),
        )
    )  # fmt: skip
    def sweep_lexicographic(
        state_ptr: Array, choice_ptr: Array, target: Array, prob: Array, reward: Array, weights: Array,
        second_reward: Array, tolerance: Array, scratch: Array, picks: Array, column: int, used: int, begin: int,
        end: int, source: Array, second_source: Array, sink: Array, second_sink: Array, policy: Array,
    ) -> None:  # fmt: skip
        """Sweep any layer for eight weight vectors at once, choosing by the second value among the near-best."""
        objectives = reward.shape[1]
        block = block_load(weights, held, lanes)
        slack = load(tolerance, 0, lanes)
        for step in range(policy.shape[0] - 1, -1, -1):
            entry = np.int64(at(choice_ptr, np.int64(at(state_ptr, begin))))
            for state in range(begin, end):
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
    """Replace `values` and `seconds` with those of the policy that is best for `second` among the near-best ones.

    Like `backward`, but among the actions whose value is within `tolerance` of the best, the one with the largest expected
    sum of `second` is chosen; if several are equal in that too, the lowest. Both values are those of the chosen action.

    second     float64[k]     one tie-breaking weight vector for the whole batch
    tolerance  float64[B]     absolute, per weight vector, per step
    seconds    float64[S, B]  in: after the last step; out: before the first
    """
    layer = (state_ptr, choice_ptr, target, prob, reward)
    states, lanes = values.shape[0], 8
    second_reward = np.empty(choice_ptr.size - 1)
    weigh(reward, second, second_reward, threads)
    kernel = _sweep_lexicographic(min(weights.shape[1], HELD), policy.itemsize)
    most = max(1, int(np.diff(state_ptr).max(initial=0)))

    def job(column: int, used: int) -> tuple[Sweep, Values, Values]:
        part = slice(column, column + used)
        given = (_filled(weights[part].T, lanes), second_reward, _filled(tolerance[np.newaxis, part], lanes))

        def run(begin: int, end: int, now: Values, room: Values, written: Array) -> None:
            scratch, picks = np.empty((most, 2, lanes)), np.empty(lanes, policy.dtype)
            kernel(*layer, *given, scratch, picks, column, used, begin, end, *now, *room, written)

        now = _filled(values[:, part], lanes), _filled(seconds[:, part], lanes)
        return run, now, (empty_rows(states, lanes), empty_rows(states, lanes))

    _in_groups(job, lanes, policy, threads, (values, seconds))
