"""The textbook algorithm in NumPy, for all weight vectors at once: the solver of models that are not large.

With V_H = 0, the recursion for step t = H - 1, ..., 0 and a weight vector w is

    Q_t(s, a) = w . r_t(s, a) + sum over s' of P_t(s' | s, a) V_t+1(s')
    V_t(s)    = max over a of Q_t(s, a)            (0 at an end)

and an optimal policy takes an action that attains the maximum. Arrays have a column for each weight vector. Sums are added up
in a fixed order, so that the bits of a column do not depend on the others.

>>> import tradeoff
>>> from tradeoff.mdp.compiled import CompiledSolver
>>> trip = tradeoff.load("commute")
>>> plain, quick = trip.best([[1, 2, 0, 1, 0]])[0], trip.replace(solver=CompiledSolver()).best([[1, 2, 0, 1, 0]])[0]
>>> bool(abs(quick.value - plain.value).max() < 1e-12)
True
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tradeoff.mdp.dynamics import Dynamics
from tradeoff.mdp.layer import Int, Layer
from tradeoff.mdp.solver import Choices, Weights
from tradeoff.memory import check_fits
from tradeoff.model import Indices, Matrix, Vector
from tradeoff.numerics import worths

AT_ONCE = 100_000  # numbers in an array, so that it stays in the cache: weight vectors are solved some at a time


class TextbookSolver:
    """Backward induction in NumPy, with whole policies in memory."""

    threads = 1

    def optimal_values(self, dynamics: Dynamics, weights: Matrix) -> Vector:
        """Return V_0 at the start, for each row of weights."""
        found = [_optimal_values(dynamics, weights[part]) for part in _parts(dynamics, len(weights))]
        return np.concatenate([np.empty(0), *found])

    def optimal_outcomes(self, dynamics: Dynamics, weights: Weights) -> Matrix:
        """Return the expected outcome of an optimal policy: the sum of d_t . r_pi, with d_0 the start and d_t+1 = d_t P_pi."""
        outcomes = np.zeros(weights.rows.shape)
        for part in _parts(dynamics, len(outcomes)):
            outcomes[part] = _follow(dynamics, _greedy(dynamics, weights, part))
        return outcomes

    def optimal_choices(self, dynamics: Dynamics, weights: Weights) -> list[Choices]:
        """Return the greedy policy with respect to V, for each row of weights."""
        count, states = len(weights.rows), len(dynamics.states)
        size = 4 * dynamics.horizon * states * count
        check_fits(size, f"{count} policy tables for {dynamics.horizon} steps and {states:,} states")
        found: list[Choices] = []
        for part in _parts(dynamics, count):
            policies = _greedy(dynamics, weights, part)
            found += [np.ascontiguousarray(policies[:, :, column]) for column in range(policies.shape[2])]
        return found

    def policy_values(self, layer: Layer, chance: Vector, after: Matrix) -> Matrix:
        """Return r_pi + P_pi V, the expected outcomes before this step."""
        worth = chance[:, None] * (layer.reward + _Step.of(layer).moved(after))
        values = np.zeros_like(after)
        np.add.at(values, layer.state_of_choice, worth)
        return values

    def next_distribution(self, layer: Layer, chance: Vector, now: Vector) -> Vector:
        """Return d P_pi, the distribution over states after this step."""
        of_choice = now[layer.state_of_choice] * chance
        of_branch = np.repeat(of_choice, np.diff(layer.choice_ptr)) * layer.prob
        after: Vector = np.where(layer.ends, now, 0.0)
        np.add.at(after, layer.target, of_branch)
        return after

    def sample_step(
        self, layer: Layer, chance: Vector, states: Int, action_draws: Vector, branch_draws: Vector
    ) -> tuple[Int, Int, Int]:
        """Return the choice, the branch (both -1 at an end) and the next state of each walker."""
        choices, branches = np.full(len(states), -1), np.full(len(states), -1)
        going = np.flatnonzero(~layer.ends[states])
        choices[going] = _drawn(layer.state_ptr, states[going], chance, action_draws[going])
        branches[going] = _drawn(layer.choice_ptr, choices[going], layer.prob, branch_draws[going])
        return choices, branches, np.where(branches >= 0, layer.target[branches], states)


def _parts(dynamics: Dynamics, count: int) -> Iterator[slice]:
    """Yield slices of the weight vectors whose arrays are not too large."""
    width = max(1, AT_ONCE // max(1, *(len(layer.action) for layer in dynamics.layers)))
    for begin in range(0, count, width):
        yield slice(begin, min(begin + width, count))


@dataclass(frozen=True, eq=False)
class _Step:
    """A layer as the recursion uses it: P as a sparse matrix, and which choices each state has that is no end."""

    layer: Layer
    transitions: csr_array
    begin: Int  # the first choice of each state
    owner: Int  # the position of the state that each choice belongs to
    local: Int  # the number of each choice within its state

    @classmethod
    def of(cls, layer: Layer) -> _Step:
        shape = (len(layer.action), layer.states)
        transitions = csr_array((layer.prob, layer.target, layer.choice_ptr), shape=shape)
        begin = layer.state_ptr[layer.going].astype(np.int64)
        owner = np.repeat(np.arange(len(layer.going)), np.diff(layer.state_ptr)[layer.going])
        return cls(layer, transitions, begin, owner, np.arange(len(owner)) - begin[owner])

    def moved(self, after: Matrix) -> Matrix:
        """Return P V: for each choice, the expected value of the state it leads to."""
        if after.shape[1] != 1:
            return np.asarray(self.transitions @ after)
        return np.asarray(self.transitions @ np.repeat(after, 2, axis=1))[
            :, :1
        ]  # one column would be added up otherwise

    def best(self, worth: Matrix) -> Matrix:
        """Return the largest worth of each state's choices."""
        result: Matrix = np.maximum.reduceat(worth, self.begin, axis=0)
        return result

    def first(self, allowed: NDArray[np.bool_]) -> Int:
        """Return the number of the first choice of each state that is allowed."""
        numbers = np.where(allowed, self.local[:, None], len(self.local))
        result: Int = np.minimum.reduceat(numbers, self.begin, axis=0)
        return result


def _backwards(dynamics: Dynamics, weights: Matrix) -> Iterator[tuple[int, _Step, Matrix]]:
    """Yield the steps from the last to the first, each with the expected weighted reward of every choice [C, B]."""
    steps = [_Step.of(layer) for layer in dynamics.layers]
    rewards = [worths(step.layer.reward, weights) for step in steps] if dynamics.stationary else []
    for t in reversed(range(dynamics.horizon)):
        if dynamics.stationary:
            yield t, steps[0], rewards[0]
        else:
            yield t, steps[t], worths(steps[t].layer.reward, weights)


def _optimal_values(dynamics: Dynamics, weights: Matrix) -> Vector:
    """Return V_0 at the start, for each row of weights."""
    values = np.zeros((len(dynamics.states), len(weights)))
    for _, step, reward in _backwards(dynamics, weights):
        worth = reward + step.moved(values)  # Q_t
        values = np.zeros_like(values)
        if len(step.begin):
            values[step.layer.going] = step.best(worth)
    at_start: Vector = worths(dynamics.start[None, :], values.T)[0]
    return at_start


def _greedy(dynamics: Dynamics, weights: Weights, part: slice) -> Choices:
    """Return optimal policies [H, S, B]; ties within the tolerance are broken where they may occur."""
    may_tie = weights.may_tie[part]
    policies = np.zeros((dynamics.horizon, len(dynamics.states), len(may_tie)), np.uint32)
    for tied in (False, True):
        columns = np.flatnonzero(may_tie == tied)
        if len(columns):
            rows, tolerance = weights.rows[part][columns], weights.tolerance[part][columns]
            policies[:, :, columns] = _greedy_columns(dynamics, rows, weights.tie_break, tolerance if tied else None)
    return policies


def _greedy_columns(dynamics: Dynamics, rows: Matrix, tie_break: Vector, tolerance: Vector | None) -> Choices:
    """Return optimal policies [H, S, B]; with a tolerance, the largest expected sum of ``tie_break`` breaks ties."""
    chosen = np.zeros((dynamics.horizon, len(dynamics.states), len(rows)), np.uint32)
    values = np.zeros(chosen.shape[1:])
    seconds = np.zeros_like(values)
    for t, step, reward in _backwards(dynamics, rows):
        going = step.layer.going
        if not len(going):
            values[:], seconds[:] = 0.0, 0.0
            continue
        worth = reward + step.moved(values)
        best = step.best(worth)
        if tolerance is None:
            picked = step.first(worth == best[step.owner])
            values[going] = best
        else:
            second = worths(step.layer.reward, tie_break[None, :]) + step.moved(seconds)
            among = np.where(worth >= (best - tolerance)[step.owner], second, -np.inf)
            picked = step.first(among == step.best(among)[step.owner])
            choice = step.begin[:, None] + picked
            values[going] = np.take_along_axis(worth, choice, axis=0)
            seconds[going] = np.take_along_axis(second, choice, axis=0)
        chosen[t, going] = picked
    return chosen


def _follow(dynamics: Dynamics, policies: Choices) -> Matrix:
    """Return the expected outcome [B, k] of each policy."""
    count = policies.shape[2]
    outcomes = np.zeros((count, dynamics.objectives))
    now = np.repeat(dynamics.start[:, None], count, axis=1)
    for step in range(dynamics.horizon):
        layer = dynamics.layer(step)
        state, column = np.nonzero(np.where(layer.ends[:, None], 0.0, now))
        mass = now[state, column]
        choice = layer.state_ptr[state] + policies[step, state, column].astype(np.int64)
        for j in range(dynamics.objectives):  # bincount adds up in order, whatever the number of columns
            outcomes[:, j] += np.bincount(column, mass * layer.reward[choice, j], count)
        width = layer.choice_ptr[choice + 1] - layer.choice_ptr[choice]
        branch = np.repeat(layer.choice_ptr[choice] - (np.cumsum(width) - width), width) + np.arange(width.sum())
        place = layer.target[branch].astype(np.int64) * count + np.repeat(column, width)
        moved = np.bincount(place, np.repeat(mass, width) * layer.prob[branch], now.size)
        now = np.where(layer.ends[:, None], now, 0.0) + moved.reshape(now.shape)
    return outcomes


def _drawn(pointers: Indices, groups: Int, chances: Vector, draws: Vector) -> Int:
    """Return which member of each group a uniform number falls on.

    The members of group g are ``pointers[g]:pointers[g + 1]``. If rounding leaves a remainder it is the last possible one.
    """
    begin, end = pointers[groups].astype(np.int64), pointers[groups + 1].astype(np.int64)
    found = np.full(len(groups), -1)
    total = np.zeros(len(groups))
    waiting = np.arange(len(groups))
    for rank in range(int((end - begin).max(initial=0))):
        waiting = waiting[begin[waiting] + rank < end[waiting]]
        member = begin[waiting] + rank
        possible = chances[member] > 0
        at = waiting[possible]
        found[at] = member[possible]
        total[at] += chances[member[possible]]
        waiting = waiting[draws[waiting] >= total[waiting]]
    return found
