"""Follow one deterministic policy forwards on several threads, if it reaches many states.

What arrives in a state is the sum of what its predecessors send, in the order of their numbers. To share that sum between
threads and keep its order, a step has two parts. Threads write down what the states send, sorted by the stretch of states
that it goes to and, within it, by the piece of states that it comes from; then they add up the stretches, each taking the
pieces in order. How much each piece may send to each stretch is counted beforehand, for many steps at once. A stretch is small
enough to stay in a thread's cache, so the additions do not wait for main memory.

A step takes a few milliseconds, in which Python could not start and stop so many threads. So all tasks have numbers; whoever is
free takes the next one, and begins it when every task of the part before has been done. Any number of threads gets
through, however late they come.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from tradeoff.kernels.jit import compiled, helper
from tradeoff.kernels.layers import (
    HELD,
    IDS_OUT,
    LAYER,
    LONGS_OUT,
    POLICY,
    REAL_ROWS_OUT,
    REALS_OUT,
    SUM_STATES,
    Array,
    given,
    spread,
    taken,
)
from tradeoff.kernels.vector import at, broadcast, count_up, counted, fma, lane_fma, load, put, store

# A stretch has this many states at most (as a power of two): 128 KiB of doubles.
_STRETCH_BITS = 14
_STEPS = 64  # counted for at once
_PIECES = 4  # for each thread
_PLACES, _PLACES_OUT = given(types.int64, 3), taken(types.int64, 3)  # by step, piece and stretch
_TAKEN, _DONE = 0, 16  # the two counts of tasks, in cache lines of their own
_PATIENCE = 1 << 15  # looks at the count of tasks done, some tens of microseconds, before Python lets others run
_PAUSE = 2e-5  # seconds


@cache
def _count_sent(size: int) -> Callable[..., Any]:
    @compiled(
        types.void(
            *LAYER[:3], given(POLICY[size], 3), types.int64, types.int64, types.int64, types.int64, types.int64,
            _PLACES_OUT,
        )
    )  # fmt: skip
    def count_sent(
        state_ptr: Array, choice_ptr: Array, target: Array, policy: Array, column: int, piece: int, begin: int,
        end: int, bits: int, counts: Array,
    ) -> None:  # fmt: skip
        """Count how many amounts the states of a piece send to each stretch in every step, if all of them are reached."""
        for step in range(policy.shape[0]):
            row = (step * counts.shape[1] + piece) * counts.shape[2]
            for state in range(begin, end):
                first = np.int64(at(state_ptr, state))
                if first == np.int64(at(state_ptr, state + 1)):
                    slot = row + (state >> bits)
                    put(counts, slot, at(counts, slot) + 1)
                    continue
                choice = first + np.int64(policy[step, state, column])
                for entry in range(at(choice_ptr, choice), at(choice_ptr, choice + 1)):
                    slot = row + (np.int64(at(target, entry)) >> bits)
                    put(counts, slot, at(counts, slot) + 1)

    return count_sent


@helper
def _receive(
    begins: Array, ends: Array, step: int, stretch: int, bits: int, goals: Array, amounts: Array, shares: Array,
    later: Array,
) -> None:  # fmt: skip
    """Add up what a stretch of states is sent, piece by piece."""
    for state in range(stretch << bits, min(later.shape[0], (stretch + 1) << bits)):
        later[state] = 0.0
    for piece in range(begins.shape[1]):
        for i in range(begins[step, piece, stretch], ends[step, piece, stretch]):
            goal = np.int64(at(goals, i))
            put(later, goal, fma(at(amounts, i), at(shares, i), at(later, goal)))


@helper
def _add_up(earned: Array, totals: Array, column: int) -> None:
    """Add what all blocks of states earned."""
    for i in range(earned.shape[1]):
        total = 0.0
        for block in range(earned.shape[0]):
            total += earned[block, i]
        totals[column, i] += total


@cache
def _follow(held: int, size: int) -> Callable[..., Any]:
    @compiled(
        types.int64(
            *LAYER, given(POLICY[size], 3), types.int64, types.int64, types.int64, types.int64, _PLACES, _PLACES_OUT,
            IDS_OUT, REALS_OUT, REALS_OUT, REALS_OUT, REALS_OUT, REAL_ROWS_OUT, REAL_ROWS_OUT, LONGS_OUT, types.int64,
        )
    )  # fmt: skip
    def follow(
        state_ptr: Array, choice_ptr: Array, target: Array, prob: Array, reward: Array, policy: Array, column: int,
        length: int, stretches: int, bits: int, begins: Array, ends: Array, goals: Array, amounts: Array,
        shares: Array, even: Array, odd: Array, earned: Array, totals: Array, progress: Array, task: int,
    ) -> int:  # fmt: skip
        """Do the given task, if any (not -1), and those that nobody has taken yet; return one that cannot begin yet, or -1.

        A step has a task for each piece, of `length` states, then one for each stretch, and one that adds up what was earned.
        What is sent is where to, how much there was, and which share of that goes there: `goals`, `amounts` and `shares`.
        """
        states, objectives, pieces = even.shape[0], reward.shape[1], begins.shape[1]
        each = pieces + stretches + 1
        while True:
            if task < 0:
                task = count_up(progress, _TAKEN)
            if task >= each * policy.shape[0]:
                return -1
            step = task // each
            part = task - step * each
            before = step * each + (0 if part < pieces else pieces)
            looks = 0
            while counted(progress, _DONE) < before:
                looks += 1
                if looks > _PATIENCE:
                    return task
            now, later = (even, odd) if step % 2 == 0 else (odd, even)
            if part == each - 1:
                _add_up(earned, totals, column)
            elif part >= pieces:
                _receive(begins, ends, step, part - pieces, bits, goals, amounts, shares, later)
            else:
                places = (step * pieces + part) * ends.shape[2]
                stop = min(states, (part + 1) * length)
                for block in range(part * length, stop, SUM_STATES):
                    row = block // SUM_STATES * objectives
                    for i in range(objectives):
                        put(earned, row + i, 0.0)
                    total = broadcast(0.0, held)
                    for state in range(block, min(stop, block + SUM_STATES)):
                        amount = at(now, state)
                        if amount == 0.0:
                            continue
                        first = np.int64(at(state_ptr, state))
                        if first == np.int64(at(state_ptr, state + 1)):
                            slot = places + (state >> bits)
                            there = at(ends, slot)
                            put(ends, slot, there + 1)
                            put(goals, there, np.int32(state))
                            put(amounts, there, amount)
                            put(shares, there, 1.0)
                            continue
                        choice = first + np.int64(policy[step, state, column])
                        total = lane_fma(amount, load(reward, choice * objectives, held), total)
                        for i in range(held, objectives):
                            put(earned, row + i, fma(amount, at(reward, choice * objectives + i), at(earned, row + i)))
                        for entry in range(at(choice_ptr, choice), at(choice_ptr, choice + 1)):
                            goal = np.int64(at(target, entry))
                            slot = places + (goal >> bits)
                            there = at(ends, slot)
                            put(ends, slot, there + 1)
                            put(goals, there, np.int32(goal))
                            put(amounts, there, amount)
                            put(shares, there, at(prob, entry))
                    store(earned, row, total)
            count_up(progress, _DONE)
            task = -1

    return follow


def wide_from(states: int, threads: int) -> int:
    """Return how many states a policy must reach in a step for several threads to be quicker than one."""
    return max(50_000, 300_000 // threads, states // 20)


def forward_wide(
    state_ptr: Array, choice_ptr: Array, target: Array, prob: Array, reward: Array, policy: Array, column: int,
    first: int, occupancy: Array, totals: Array, threads: int,
) -> None:  # fmt: skip
    """Follow a column of `policy` from step `first` on, as ``policy.forward`` does and with the same bits."""
    layer = (state_ptr, choice_ptr, target, prob, reward)
    states, objectives = occupancy.shape[0], reward.shape[1]
    length = -(-states // (_PIECES * threads) // SUM_STATES) * SUM_STATES
    pieces = [(i, begin, min(states, begin + length)) for i, begin in enumerate(range(0, states, length))]
    bits = max(_STRETCH_BITS - 4, min(_STRETCH_BITS, (states // (_PIECES * threads)).bit_length()))
    stretches = -(-states >> bits)
    counter, follower = _count_sent(policy.itemsize), _follow(min(objectives, HELD), policy.itemsize)
    earned = np.empty((-(-states // SUM_STATES), objectives))
    now, later = occupancy[:, column].copy(), np.empty(states)
    room = np.empty(0, np.int32), np.empty(0), np.empty(0)

    def follow(chosen: Array) -> None:
        nonlocal room
        # Wider than needed, so that no two threads write to the same cache line.
        counts = np.zeros((len(chosen), len(pieces), stretches + 16), np.int64)
        spread(lambda *piece: counter(*layer[:3], chosen, column, *piece, bits, counts), pieces, threads)
        stops = np.cumsum(counts.swapaxes(1, 2).reshape(len(chosen), -1), axis=1)
        begins = np.ascontiguousarray(stops.reshape(len(chosen), -1, len(pieces)).swapaxes(1, 2) - counts)
        if room[0].size < stops[:, -1].max():
            room = tuple(np.empty(stops[:, -1].max(), part.dtype) for part in room)  # type: ignore[assignment]
        sizes = (length, stretches, bits)
        given = (*layer, chosen, column, *sizes, begins, begins.copy(), *room, now, later, earned, totals)
        _together(follower, given, threads)

    for begin in range(first, len(policy), _STEPS):
        chosen = policy[begin : begin + _STEPS]
        follow(chosen)
        if len(chosen) % 2:
            now, later = later, now
    occupancy[:, column] = now


def _together(kernel: Callable[..., int], arguments: tuple[Any, ...], threads: int) -> None:
    """Call a kernel whose tasks are shared by all threads that call it."""
    progress = np.zeros(_DONE + 1, np.int64)
    broken = False

    def work() -> None:
        nonlocal broken
        task = -1
        try:
            while (task := kernel(*arguments, progress, task)) >= 0 and not broken:
                time.sleep(_PAUSE)  # the one who does what is missing may need this core
        except BaseException:
            broken = True  # nobody will do the task of this thread, so the others must not wait for it
            raise

    spread(work, [()] * threads, threads)
