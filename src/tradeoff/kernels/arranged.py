"""Sort layers for solving one weight vector at a time, and sweep over them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import register_jitable

from tradeoff.kernels.jit import compiled
from tradeoff.kernels.layers import (
    IDS,
    IDS_OUT,
    LONG_ROWS,
    LONG_ROWS_OUT,
    PIECE,
    POINTERS,
    POLICY,
    REALS,
    REALS_OUT,
    Array,
    given,
    taken,
)
from tradeoff.kernels.vector import (
    at,
    broadcast,
    choose,
    fma,
    gather_dot,
    greater,
    load,
    prefetch,
    select,
    store,
    store_narrow,
)

# Arranged layers: states in a block, and the number of classes (exactly 0, 1, ..., 8 members, and more than 8).
_BLOCK = PIECE
_CLASSES = 10
_LONG = _CLASSES - 1


class Arrangement(NamedTuple):
    """A layer's choices and states sorted by size within blocks, so that one scalar sweep runs without mispredictions.

    Within each block of states the choices are ordered by their number of successors and the states by their number of
    choices. Depends on the layer's structure and probabilities only, never on rewards or weights.
    """

    choice: Array  # int32[C]: the choice at this position
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
    @compiled(types.int64(given(kind)))
    def common_step(pointers: Array) -> Any:
        """Return the difference between neighbours if it is the same everywhere, otherwise -1."""
        if pointers.shape[0] < 2:
            return -1
        step = pointers[1] - pointers[0]
        for i in range(1, pointers.shape[0] - 1):
            if pointers[i + 1] - pointers[i] != step:
                return -1
        return np.int64(step)

    return common_step


def regular(state_ptr: Array, choice_ptr: Array) -> tuple[int, int]:
    """Return the numbers of actions and of successors if they are the same everywhere and both small, otherwise (0, 0)."""
    actions = int(_common_step(types.int32)(state_ptr))
    width = int(_common_step(types.int64)(choice_ptr)) if actions > 0 else 0
    return (actions, width) if 0 < width < _LONG else (0, 0)


def arrange(state_ptr: Array, choice_ptr: Array, target: Array, prob: Array) -> Arrangement | None:
    """Return the layer sorted for scalar sweeps, for use with `backward`; None if it is regular and needs no sorting.

    It takes about 12 bytes per successor and the time of a few steps. Without one, `backward` creates its own if there are
    many steps, so keep one if single weight vectors are often solved on the same layer.
    """
    if regular(state_ptr, choice_ptr)[0]:
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


@cache
def _arrange() -> Callable[..., Any]:
    @compiled(
        types.int64(
            *POINTERS, IDS, REALS, IDS_OUT, IDS_OUT, IDS_OUT, REALS_OUT, IDS_OUT, LONG_ROWS_OUT, IDS_OUT, LONG_ROWS_OUT
        )
    )
    def arrange_blocks(
        state_ptr: Array, choice_ptr: Array, target: Array, prob: Array, choice_out: Array, slot: Array,
        target_out: Array, prob_out: Array, width_out: Array, choice_end: Array, state_out: Array, state_end: Array,
    ) -> Any:  # fmt: skip
        """Fill an arrangement and return the scratch it needs: two counting sorts in every block."""
        states = state_ptr.shape[0] - 1
        place = np.zeros(_CLASSES, np.int64)  # the position of the next member of each class
        entries = np.zeros(_CLASSES, np.int64)  # the same for its successors
        members = np.zeros(_CLASSES, np.int64)
        stride = np.zeros(_CLASSES, np.int64)  # between the actions of one state in the scratch
        offset = np.zeros(_CLASSES, np.int64)
        largest = np.int64(0)
        for block in range(choice_end.shape[0]):
            begin = block * _BLOCK
            end = min(states, begin + _BLOCK)
            # The scratch holds the states of one class side by side, action by action, so that the best actions of
            # eight states are found together; every class starts at a multiple of eight. The states with many actions
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
                # Stored at the state's first choice until the choices are moved below.
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
    """Prefetch what comes next, because the processor's stride detectors start again in the loop for each width."""
    prefetch(prob, entry + 128)
    prefetch(target, entry + 256)
    prefetch(earned, choice + 64)
    prefetch(slot, choice + 128)


@cache
def sweep_arranged(size: int) -> Callable[..., Any]:
    """Return the kernel that sweeps an arranged layer, for policies with this many bytes per choice."""

    @compiled(
        types.void(
            *POINTERS, IDS, IDS, REALS, IDS, LONG_ROWS, IDS, LONG_ROWS, REALS, REALS_OUT, REALS_OUT, taken(POLICY[size]),
            types.int64, types.int64, REALS_OUT, REALS_OUT, taken(POLICY[size], 3),
        )
    )  # fmt: skip
    def sweep_blocks(
        state_ptr: Array, choice_ptr: Array, slot: Array, target: Array, prob: Array, width: Array, choice_end: Array,
        state_order: Array, state_end: Array, earned: Array, scratch: Array, eight_values: Array, eight_picks: Array,
        first: int, last: int, source: Array, sink: Array, policy: Array,
    ) -> None:  # fmt: skip
        """Sweep an arranged layer: in each block, first the choices width by width, then the states count by count."""
        for step in range(policy.shape[0] - 1, -1, -1):
            start = np.int64(at(state_ptr, first))
            j = np.int64(at(choice_ptr, start))
            for block in range(first // _BLOCK, (last + _BLOCK - 1) // _BLOCK):
                # One loop for each width, so that no branch in it depends on data.
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

    return sweep_blocks
