"""Backward induction for one weight vector."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from tradeoff.mdp.kernels.jit import compiled
from tradeoff.mdp.kernels.layers import (
    IDS,
    POINTERS,
    POLICY,
    REALS,
    REALS_OUT,
    Array,
    Values,
    empty_rows,
    sweep_back,
    taken,
    weigh,
)
from tradeoff.mdp.kernels.vector import at, choose, fma, prefetch, short_dot

# The number of choices that tell how many successors a choice usually has.
_SAMPLE = 1000
# Successors are prefetched this far ahead, because the processor does not detect the uneven strides.
_AHEAD = 512


@cache
def _sweep(lanes: int, size: int) -> Callable[..., Any]:
    @compiled(
        types.void(*POINTERS, IDS, REALS, REALS, types.int64, types.int64, REALS_OUT, REALS_OUT, taken(POLICY[size], 3))
    )
    def sweep(
        state_ptr: Array, choice_ptr: Array, target: Array, prob: Array, earned: Array, begin: int, end: int,
        source: Array, sink: Array, policy: Array,
    ) -> None:  # fmt: skip
        """Sweep any layer.

        The first `lanes` successors of a choice are added up without a branch that depends on their number, because it
        would often be mispredicted, which takes longer than the sum.
        """
        tail = target.shape[0] - lanes
        for step in range(policy.shape[0] - 1, -1, -1):
            entry = np.int64(at(choice_ptr, np.int64(at(state_ptr, begin))))
            for state in range(begin, end):
                first, last = np.int64(at(state_ptr, state)), np.int64(at(state_ptr, state + 1))
                best = -np.inf
                picked = np.int64(0)
                for choice in range(first, last):
                    value = at(earned, choice)
                    stop = at(choice_ptr, choice + 1)
                    if entry <= tail:
                        prefetch(prob, entry + _AHEAD)
                        prefetch(target, entry + _AHEAD)
                        value = short_dot(prob, target, source, entry, stop - entry, lanes, value)
                        entry = min(entry + lanes, stop)
                    while entry < stop:
                        value = fma(at(prob, entry), at(source, np.int64(at(target, entry))), value)
                        entry += 1
                    better = value > best
                    best = choose(better, value, best)
                    picked = choose(better, np.int64(choice - first), picked)
                sink[state] = choose(last > first, best, 0.0)
                policy[step, state, 0] = picked
            source, sink = sink, source

    return sweep


def backward_one(
    state_ptr: Array, choice_ptr: Array, target: Array, prob: Array, reward: Array, weights: Array, values: Array,
    policy: Array, threads: int,
) -> None:  # fmt: skip
    """Run the scalar sweep for one weight vector; `values` is float64[S], `policy` [steps, S, 1]."""
    states = policy.shape[1]
    source, sink = empty_rows(states, 1)[:, 0], empty_rows(states, 1)[:, 0]
    source[:] = values
    earned = np.empty(choice_ptr.size - 1)
    weigh(reward, weights, earned, threads)
    widest = int(np.diff(choice_ptr[: _SAMPLE + 1]).max(initial=1))
    kernel = _sweep(min(8, 1 << (widest - 1).bit_length()), policy.itemsize)

    def run(begin: int, end: int, now: Values, room: Values, written: Array) -> None:
        kernel(state_ptr, choice_ptr, target, prob, earned, begin, end, *now, *room, written)

    ((values[:],),) = sweep_back([(run, (source,), (sink,))], policy, threads)
