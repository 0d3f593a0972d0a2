"""Follow policies: many deterministic ones forwards together, or one step of a single one given as chances."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import types

from tradeoff.mdp.kernels.jit import compiled, compiled_when_called
from tradeoff.mdp.kernels.layers import (
    HELD,
    IDS,
    IDS_OUT,
    LAYER,
    LONGS,
    LONGS_OUT,
    POLICY,
    REAL_ROWS,
    REAL_ROWS_OUT,
    REALS,
    REALS_OUT,
    THREAD_STATES,
    Array,
    given,
    pieces,
    ranges,
    spread,
    taken,
)
from tradeoff.mdp.kernels.vector import at, broadcast, choose, fma, gather_fma, lane_fma, load, put, store
from tradeoff.numerics import SUM_STATES

# Forward pushes skip groups of this many neighbouring states (as a power of two) if none of them is reached.
_GROUP_BITS = 4
_SUM_GROUPS = SUM_STATES >> _GROUP_BITS


@cache
def _push_columns(held: int, size: int) -> Callable[..., Any]:
    @compiled(
        types.int64(
            *LAYER, given(POLICY[size], 3), types.int64, types.int64, types.int64, REAL_ROWS_OUT, REAL_ROWS_OUT,
            REAL_ROWS_OUT, taken(types.uint8, 2), REALS_OUT, REALS_OUT,
        )
    )  # fmt: skip
    def push_columns(
        state_ptr: Array, choice_ptr: Array, target: Array, prob: Array, reward: Array, policy: Array, column: int,
        used: int, wide: int, occupancy: Array, totals: Array, mass: Array, marks: Array, earned: Array, part: Array,
    ) -> int:  # fmt: skip
        """Push some columns forward one at a time, because one column fits the cache when a batch does not.

        Stops after a step that started from `wide` states or more (or before the first). Returns how many steps were done, of
        the last column.
        A byte marks each group of neighbouring states that may have mass, so that empty groups are skipped. States are
        visited by number, which fixes the order of summation.
        """
        states = state_ptr.shape[0] - 1
        objectives = reward.shape[1]
        done = 0
        for b in range(column, column + used):
            now = np.int64(0)
            mass[:] = 0.0
            marks[:] = 0
            reached: Any = np.int64(0)
            for state in range(states):
                if occupancy[state, b] != 0.0:
                    mass[0, state] = occupancy[state, b]
                    marks[0, state >> _GROUP_BITS] = 1
                    reached += 1
            done = len(policy)
            for step in range(policy.shape[0]):
                if reached >= wide:
                    done = step
                    break
                reached = np.int64(0)
                later = 1 - now
                here, there = now * states, later * states
                whole = broadcast(0.0, held)
                earned[:] = 0.0
                for begin in range(0, marks.shape[1], _SUM_GROUPS):
                    total = broadcast(0.0, held)
                    part[:] = 0.0
                    for group in range(begin, min(marks.shape[1], begin + _SUM_GROUPS)):
                        if marks[now, group] == 0:
                            continue
                        marks[now, group] = 0
                        for state in range(group << _GROUP_BITS, min(states, (group + 1) << _GROUP_BITS)):
                            amount = at(mass, here + state)
                            if amount == 0.0:
                                continue
                            mass[now, state] = 0.0
                            reached += 1
                            first = np.int64(at(state_ptr, state))
                            if first == np.int64(at(state_ptr, state + 1)):
                                mass[later, state] += amount
                                marks[later, group] = 1
                                continue
                            choice = first + np.int64(policy[step, state, b])
                            total = lane_fma(amount, load(reward, choice * objectives, held), total)
                            for i in range(held, objectives):
                                part[i] = fma(amount, at(reward, choice * objectives + i), part[i])
                            for entry in range(at(choice_ptr, choice), at(choice_ptr, choice + 1)):
                                goal = np.int64(at(target, entry))
                                put(mass, there + goal, fma(amount, at(prob, entry), at(mass, there + goal)))
                                put(marks, later * marks.shape[1] + (goal >> _GROUP_BITS), np.uint8(1))
                    whole = lane_fma(1.0, total, whole)
                    for i in range(held, objectives):
                        earned[i] += part[i]
                store(earned, 0, whole)
                for i in range(objectives):
                    totals[b, i] += earned[i]
                now = later
            for state in range(states):
                occupancy[state, b] = mass[now, state]
        return done

    return push_columns


class Incoming(NamedTuple):
    """The branches of a layer sorted by target. An end leads to itself, because what arrives there stays there."""

    ptr: Array  # int64[S + 1]: the branches into state s are ptr[s]:ptr[s + 1], in the order of the layer
    source: Array  # int32: the state that each comes from
    local: Array  # int32: the number of its choice among those of that state
    prob: Array  # float64


@compiled_when_called(types.void(*LAYER[:4], LONGS_OUT, IDS_OUT, IDS_OUT, REALS_OUT))
def _sort_by_target(
    state_ptr: Array, choice_ptr: Array, target: Array, prob: Array, place: Array, source: Array, local: Array,
    chances: Array,
) -> None:  # fmt: skip
    """Write every branch to the place of its target, which then moves on by one."""
    for state in range(state_ptr.shape[0] - 1):
        first, last = np.int64(at(state_ptr, state)), np.int64(at(state_ptr, state + 1))
        if first == last:
            there = place[state]
            place[state] += 1
            source[there], local[there], chances[there] = state, 0, 1.0
        for choice in range(first, last):
            for entry in range(at(choice_ptr, choice), at(choice_ptr, choice + 1)):
                goal = np.int64(at(target, entry))
                there = at(place, goal)
                put(place, goal, there + 1)
                source[there], local[there], chances[there] = state, choice - first, at(prob, entry)


def incoming(state_ptr: Array, choice_ptr: Array, target: Array, prob: Array) -> Incoming:
    """Return the branches of a layer sorted by target, for `forward`. It takes the time of some steps."""
    counts = np.bincount(target, minlength=state_ptr.size - 1) + (np.diff(state_ptr) == 0)
    ptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    size = int(ptr[-1])
    found = Incoming(ptr, np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size))
    _sort_by_target(state_ptr, choice_ptr, target, prob, ptr[:-1].copy(), *found[1:])
    return found


@cache
def _gather(held: int, size: int) -> Callable[..., Any]:
    @compiled(
        types.void(
            LAYER[0], REAL_ROWS, LONGS, IDS, IDS, REALS, given(POLICY[size], 2), types.int64, types.int64, types.int64,
            REALS, REALS_OUT, REAL_ROWS_OUT,
        )
    )  # fmt: skip
    def gather(
        state_ptr: Array, reward: Array, ptr: Array, source: Array, local: Array, prob: Array, policy: Array,
        column: int, begin: int, end: int, now: Array, later: Array, earned: Array,
    ) -> None:  # fmt: skip
        """Add up what arrives in some states, in the order in which `push_columns` adds it, and what is earned there."""
        objectives, columns = reward.shape[1], policy.shape[1]
        for block in range(begin, end, SUM_STATES):
            row = block // SUM_STATES * objectives
            for i in range(objectives):
                put(earned, row + i, 0.0)
            total = broadcast(0.0, held)
            for state in range(block, min(end, block + SUM_STATES)):
                amount, first = at(now, state), np.int64(at(state_ptr, state))
                if amount == 0.0 or first == np.int64(at(state_ptr, state + 1)):
                    continue
                choice = first + np.int64(at(policy, state * columns + column))
                total = lane_fma(amount, load(reward, choice * objectives, held), total)
                for i in range(held, objectives):
                    put(earned, row + i, fma(amount, at(reward, choice * objectives + i), at(earned, row + i)))
            store(earned, row, total)
        for state in range(begin, end):
            mass = 0.0
            for entry in range(at(ptr, state), at(ptr, state + 1)):
                origin = np.int64(at(source, entry))
                chosen = np.int64(at(policy, origin * columns + column)) == np.int64(at(local, entry))
                mass = choose(chosen, fma(at(now, origin), at(prob, entry), mass), mass)
            put(later, state, mass)

    return gather


def _forward_wide(
    state_ptr: Array, reward: Array, into: Incoming, policy: Array, column: int, first: int, occupancy: Array,
    totals: Array, threads: int,
) -> None:  # fmt: skip
    """Follow a column of `policy` from step `first` on; the threads share the states of each step."""
    states, objectives = occupancy.shape[0], reward.shape[1]
    kernel = _gather(min(objectives, HELD), policy.itemsize)
    earned = np.empty((-(-states // SUM_STATES), objectives))
    now, later = occupancy[:, column].copy(), np.empty(states)
    shared = pieces(states, 4 * threads)
    for chosen in policy[first:]:
        given = (state_ptr, reward, *into, chosen, column)
        spread(
            lambda begin, end, given=given, now=now, later=later: kernel(*given, begin, end, now, later, earned),
            shared,
            threads,
        )
        totals[column] += np.cumsum(earned, axis=0)[-1]  # in order, unlike a sum
        now, later = later, now
    occupancy[:, column] = now


def _wide_from(choices: int, threads: int) -> int:
    """Return how many states a policy must reach for a gather on several threads to be quicker than a push on one.

    A push visits the branches of one choice of each state that is reached. A gather visits those of all choices of all
    states, at half the cost of each, because it reads where a push adds to memory; and threads hinder each other.
    """
    return max(50_000, 3 * choices // (4 * threads))


def forward(
    state_ptr: Array, choice_ptr: Array, target: Array, prob: Array, reward: Array, policy: Array, occupancy: Array,
    totals: Array, threads: int = 1, sorted_by_target: Callable[[], Incoming] | None = None,
) -> None:  # fmt: skip
    """Replace each column of `occupancy` with the distribution `policy.shape[0]` steps later, and add up the rewards.

    policy            uint8|16|32[steps, S, B]   local index of the action, as `backward` writes it
    occupancy         float64[S, B]              in: before the first step; out: after the last
    totals            float64[B, k]              the expected reward of these steps is added
    sorted_by_target  returns `incoming` of the layer; only if it is given, several threads can follow one policy

    The cost is proportional to the number of states reached. Mass in a terminal state stays there and earns nothing.
    """
    states, count = occupancy.shape
    kernel = _push_columns(min(reward.shape[1], HELD), policy.itemsize)
    layer = (state_ptr, choice_ptr, target, prob, reward)
    if states < THREAD_STATES:
        threads = 1

    def push(column: int, used: int, wide: int = states + 1) -> int:
        mass = np.empty((2, states))
        marks = np.empty((2, -(-states // (1 << _GROUP_BITS))), np.uint8)
        earned, part = np.empty(reward.shape[1]), np.empty(reward.shape[1])
        done: int = kernel(*layer, policy, column, used, wide, occupancy, totals, mass, marks, earned, part)
        return done

    if 2 * count > threads or sorted_by_target is None:
        share = -(-count // threads)
        spread(push, [(column, min(share, count - column)) for column in range(0, count, share)], threads)
        return
    for column in range(count):  # too few for the threads: they share the states of each
        done = push(column, 1, _wide_from(choice_ptr.size - 1, threads))
        if done < len(policy):
            _forward_wide(state_ptr, reward, sorted_by_target(), policy, column, done, occupancy, totals, threads)


@cache
def _evaluate(lanes: int) -> Callable[..., Any]:
    @compiled(types.void(*LAYER, REALS, REAL_ROWS, REAL_ROWS_OUT, types.int64, types.int64))
    def evaluate(
        state_ptr: Array, choice_ptr: Array, target: Array, prob: Array, reward: Array, chance: Array, values: Array,
        out: Array, begin: int, end: int,
    ) -> None:  # fmt: skip
        """Evaluate the policy in some states, for `lanes` objectives at a time, a divisor of their number."""
        objectives = reward.shape[1]
        for state in range(begin, end):
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
    state_ptr: Array, choice_ptr: Array, target: Array, prob: Array, reward: Array, chance: Array, values_next: Array,
    out: Array, threads: int = 1,
) -> None:  # fmt: skip
    """Write to `out` the expected vector of rewards from every state on, given that after this step.

    chance       float64[C]     probability of each choice given its state; choices of chance 0 cost nothing
    values_next  float64[S, k]  must not be `out`
    out          float64[S, k]  zero at terminal states
    """
    objectives = reward.shape[1]
    lanes = max(divisor for divisor in range(1, 9) if objectives % divisor == 0)
    kernel, given = _evaluate(lanes), (state_ptr, choice_ptr, target, prob, reward, chance, values_next, out)
    spread(lambda begin, end: kernel(*given, begin, end), ranges(len(out), threads), threads)


@compiled_when_called(types.void(*LAYER[:4], REALS, REALS, REALS_OUT))
def occupancy_step(
    state_ptr: Array, choice_ptr: Array, target: Array, prob: Array, chance: Array, now: Array, out: Array
) -> None:
    """Write to `out` the distribution over states after this step of the policy; mass in terminal states stays there.

    chance  float64[C]  probability of each choice given its state
    now     float64[S]  must not be `out`
    out     float64[S]
    """
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


@compiled_when_called(types.void(*LAYER[:4], REALS, LONGS, REALS, REALS, LONGS_OUT, LONGS_OUT, LONGS_OUT))
def rollout_step(
    state_ptr: Array, choice_ptr: Array, target: Array, prob: Array, chance: Array, states: Array,
    action_uniforms: Array, next_uniforms: Array, out_choice: Array, out_index: Array, out_state: Array,
) -> None:  # fmt: skip
    """Write, for each of n walkers, the choice it takes, the successor it draws, and its next state.

    chance           float64[C]  probability of each choice given its state
    states           int64[n]    may be `out_state`
    action_uniforms  float64[n]  in [0, 1): which choice
    next_uniforms    float64[n]  in [0, 1): which successor
    out_choice       int64[n]    -1 at a terminal state
    out_index        int64[n]    index into `target`; -1 at a terminal state
    out_state        int64[n]    unchanged at a terminal state

    A choice or successor of probability zero is never drawn, even if sums are rounded.
    """
    for i in range(states.shape[0]):
        state = states[i]
        # Remember the last possible branch: it is taken if rounding leaves the sum below the uniform number. An
        # impossible branch never is.
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
