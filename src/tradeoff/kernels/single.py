"""Backward induction for one weight vector: regular layers, ragged ones, and (``arranged``) ragged ones sorted by size."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from tradeoff.kernels.arranged import Arrangement, arrange, regular, sweep_arranged
from tradeoff.kernels.jit import compiled
from tradeoff.kernels.layers import (
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
from tradeoff.kernels.vector import (
    at,
    choose,
    fma,
    gather_dot,
)

# From this many steps on, arranging a ragged layer before a scalar sweep pays.
_ARRANGE_STEPS = 12


@cache
def _sweep_regular(width: int, size: int) -> Callable[..., Any]:
    @compiled(
        types.void(
            types.int64, IDS, REALS, REALS, types.int64, types.int64, REALS_OUT, REALS_OUT, taken(POLICY[size], 3)
        )
    )  # fmt: skip
    def sweep_regular(
        actions: int, target: Array, prob: Array, earned: Array, begin: int, end: int, source: Array, sink: Array,
        policy: Array,
    ) -> None:  # fmt: skip
        """Sweep a layer whose states all have `actions` choices of exactly `width` successors."""
        for step in range(policy.shape[0] - 1, -1, -1):
            choice = np.int64(begin * actions)
            entry = choice * width
            for state in range(begin, end):
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
    @compiled(
        types.void(*POINTERS, IDS, REALS, REALS, types.int64, types.int64, REALS_OUT, REALS_OUT, taken(POLICY[size], 3))
    )
    def sweep_ragged(
        state_ptr: Array, choice_ptr: Array, target: Array, prob: Array, earned: Array, begin: int, end: int,
        source: Array, sink: Array, policy: Array,
    ) -> None:  # fmt: skip
        """Sweep any layer without sorting it."""
        for step in range(policy.shape[0] - 1, -1, -1):
            entry = np.int64(at(choice_ptr, np.int64(at(state_ptr, begin))))
            for state in range(begin, end):
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


def backward_one(
    state_ptr: Array, choice_ptr: Array, target: Array, prob: Array, reward: Array, weights: Array, values: Array,
    policy: Array, arranged: Arrangement | None, threads: int,
) -> None:  # fmt: skip
    """Run the scalar sweep for one weight vector; `values` is float64[S], `policy` [steps, S, 1]."""
    steps, states, _ = policy.shape
    size = policy.itemsize
    kernel: Callable[..., Any]
    given: tuple[Any, ...]
    source, sink = empty_rows(states, 1)[:, 0], empty_rows(states, 1)[:, 0]
    source[:] = values
    earned = np.empty(choice_ptr.size - 1)
    actions, width = regular(state_ptr, choice_ptr)
    if arranged is None and not actions and steps >= _ARRANGE_STEPS:
        arranged = arrange(state_ptr, choice_ptr, target, prob)
    order = np.empty(0, np.int32) if arranged is None else arranged.choice
    weigh(reward, weights, order, earned, threads)
    if actions:
        kernel, given = _sweep_regular(width, size), (actions, target, prob, earned)
    elif arranged is None:
        kernel, given = _sweep_ragged(size), (state_ptr, choice_ptr, target, prob, earned)
    else:
        kernel, given = sweep_arranged(size), (state_ptr, choice_ptr, *arranged[1:-1], earned)

    def run(begin: int, end: int, now: Values, room: Values, written: Array) -> None:
        scratch = () if arranged is None else (np.zeros(arranged.scratch + 8), np.empty(8), np.empty(8, policy.dtype))
        kernel(*given, *scratch, begin, end, *now, *room, written)

    ((values[:],),) = sweep_back([(run, (source,), (sink,))], policy, threads)
