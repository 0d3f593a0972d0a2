"""Follow one deterministic policy forwards on several threads, if it reaches many states.

What arrives in a state is the sum of what its predecessors send, in the order of their numbers. To share that sum between
threads and keep its order, a step has three parts. Threads count what each piece of the states sends to each stretch of
the states; they write it down, sorted by piece and stretch; and they add up the stretches, each taking the pieces in order.
A stretch is small enough to stay in a thread's cache, so the additions no longer wait for main memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from tradeoff.kernels.jit import compiled
from tradeoff.kernels.layers import (
    HELD,
    IDS,
    IDS_OUT,
    LAYER,
    LONG_ROWS_OUT,
    POLICY,
    REAL_ROWS_OUT,
    REALS,
    REALS_OUT,
    SUM_STATES,
    Array,
    given,
    spread,
)
from tradeoff.kernels.vector import at, broadcast, fma, lane_fma, load, put, store

# A policy that reaches fewer states in a step is followed on one thread.
WIDE_STATES = 150_000
# A stretch has this many states at most (as a power of two): 128 KiB of doubles.
_STRETCH_BITS = 14


@cache
def _count_sent(size: int) -> Callable[..., Any]:
    @compiled(
        types.void(
            *LAYER[:3], given(POLICY[size], 3), types.int64, REALS, types.int64, types.int64, types.int64,
            types.int64, LONG_ROWS_OUT,
        )
    )  # fmt: skip
    def count_sent(
        state_ptr: Array, choice_ptr: Array, target: Array, policy: Array, column: int, now: Array, piece: int,
        begin: int, end: int, bits: int, counts: Array,
    ) -> None:  # fmt: skip
        """Count how many amounts the states of a piece send to each stretch."""
        row = piece * counts.shape[1]
        for stretch in range(counts.shape[1]):
            put(counts, row + stretch, 0)
        for state in range(begin, end):
            if at(now, state) == 0.0:
                continue
            first = np.int64(at(state_ptr, state))
            if first == np.int64(at(state_ptr, state + 1)):
                slot = row + (state >> bits)
                put(counts, slot, at(counts, slot) + 1)
                continue
            choice = first + np.int64(policy[0, state, column])
            for entry in range(at(choice_ptr, choice), at(choice_ptr, choice + 1)):
                slot = row + (np.int64(at(target, entry)) >> bits)
                put(counts, slot, at(counts, slot) + 1)

    return count_sent


@cache
def _send(held: int, size: int) -> Callable[..., Any]:
    @compiled(
        types.void(
            *LAYER, given(POLICY[size], 3), types.int64, REALS, types.int64, types.int64, types.int64, types.int64,
            LONG_ROWS_OUT, IDS_OUT, REALS_OUT, REALS_OUT, REAL_ROWS_OUT,
        )
    )  # fmt: skip
    def send(
        state_ptr: Array, choice_ptr: Array, target: Array, prob: Array, reward: Array, policy: Array, column: int,
        now: Array, piece: int, begin: int, end: int, bits: int, place: Array, goals: Array, amounts: Array,
        chances: Array, earned: Array,
    ) -> None:  # fmt: skip
        """Write down what the states of a piece send, at the places of their stretches, and what they earn."""
        objectives = reward.shape[1]
        row_of_places = piece * place.shape[1]
        for block in range(begin, end, SUM_STATES):
            row = (1 + block // SUM_STATES) * objectives
            for i in range(objectives):
                put(earned, row + i, 0.0)
            total = broadcast(0.0, held)
            for state in range(block, min(end, block + SUM_STATES)):
                amount = at(now, state)
                if amount == 0.0:
                    continue
                first = np.int64(at(state_ptr, state))
                if first == np.int64(at(state_ptr, state + 1)):
                    slot = row_of_places + (state >> bits)
                    there = at(place, slot)
                    put(place, slot, there + 1)
                    put(goals, there, np.int32(state))
                    put(amounts, there, amount)
                    put(chances, there, 1.0)
                    continue
                choice = first + np.int64(policy[0, state, column])
                total = lane_fma(amount, load(reward, choice * objectives, held), total)
                for i in range(held, objectives):
                    put(earned, row + i, fma(amount, at(reward, choice * objectives + i), at(earned, row + i)))
                for entry in range(at(choice_ptr, choice), at(choice_ptr, choice + 1)):
                    goal = np.int64(at(target, entry))
                    slot = row_of_places + (goal >> bits)
                    there = at(place, slot)
                    put(place, slot, there + 1)
                    put(goals, there, np.int32(goal))
                    put(amounts, there, amount)
                    put(chances, there, at(prob, entry))
            store(earned, row, total)

    return send


@cache
def _receive() -> Callable[..., Any]:
    @compiled(
        types.void(LONG_ROWS_OUT, LONG_ROWS_OUT, IDS, REALS, REALS, types.int64, types.int64, types.int64, REALS_OUT)
    )
    def receive(
        counts: Array, place: Array, goals: Array, amounts: Array, chances: Array, stretch: int, begin: int, end: int,
        later: Array,
    ) -> None:  # fmt: skip
        """Add up what a stretch of states is sent, piece by piece."""
        for state in range(begin, end):
            later[state] = 0.0
        for piece in range(counts.shape[0]):
            stop = place[piece, stretch]  # `send` has moved it from the first to behind the last
            for sent in range(stop - counts[piece, stretch], stop):
                goal = np.int64(at(goals, sent))
                put(later, goal, fma(at(amounts, sent), at(chances, sent), at(later, goal)))

    return receive


def forward_wide(
    state_ptr: Array, choice_ptr: Array, target: Array, prob: Array, reward: Array, policy: Array, column: int,
    first: int, occupancy: Array, totals: Array, threads: int,
) -> None:  # fmt: skip
    """Follow a column of `policy` from step `first` on, as ``policy.forward`` does and with the same bits."""
    layer = (state_ptr, choice_ptr, target, prob, reward)
    states, objectives = occupancy.shape[0], reward.shape[1]
    size = -(-states // (4 * threads) // SUM_STATES) * SUM_STATES
    pieces = [(i, begin, min(states, begin + size)) for i, begin in enumerate(range(0, states, size))]
    bits = max(_STRETCH_BITS - 4, min(_STRETCH_BITS, (states // (4 * threads)).bit_length()))
    length = 1 << bits
    stretches = [(i, begin, min(states, begin + length)) for i, begin in enumerate(range(0, states, length))]
    # Wider than needed, so that no two threads write to the same cache line.
    counts = np.zeros((len(pieces), len(stretches) + 16), np.int64)
    earned = np.zeros((1 + -(-states // SUM_STATES), objectives))  # the first row stays 0, which every sum begins with
    counter, sender = _count_sent(policy.itemsize), _send(min(objectives, HELD), policy.itemsize)
    receiver = _receive()
    room = np.empty(0, np.int32), np.empty(0), np.empty(0)  # where to, how much there was, which share of it goes there

    def step(chosen: Array, now: Array, later: Array) -> None:
        nonlocal room
        moved = (chosen, column, now)
        spread(lambda *piece: counter(*layer[:3], *moved, *piece, bits, counts), pieces, threads)
        ends = np.cumsum(counts.T).reshape(counts.T.shape).T  # sorted by stretch and, within it, by piece
        if room[0].size < ends[-1, -1]:
            room = tuple(np.empty(ends[-1, -1], part.dtype) for part in room)  # type: ignore[assignment]
        place = np.ascontiguousarray(ends - counts)
        spread(lambda *piece: sender(*layer, *moved, *piece, bits, place, *room, earned), pieces, threads)
        spread(lambda *stretch: receiver(counts, place, *room, *stretch, later), stretches, threads)
        totals[column] += np.add.accumulate(earned)[-1]

    now, later = occupancy[:, column].copy(), np.empty(states)
    for chosen in policy[first:, np.newaxis]:
        step(chosen, now, later)
        now, later = later, now
    occupancy[:, column] = now
