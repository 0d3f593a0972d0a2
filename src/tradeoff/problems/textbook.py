"""The textbook algorithm in NumPy: a reference for other solvers, and a starting point for new ones.

With V_H = 0, the recursion for step t = H - 1, ..., 0 and one weight vector w is

    Q_t(s, a) = w . r_t(s, a) + sum over s' of P_t(s' | s, a) V_t+1(s')
    V_t(s)    = max over a of Q_t(s, a)            (0 at an end)

and an optimal policy takes an action that attains the maximum. The other methods apply the same recursion to a given policy.

>>> import tradeoff
>>> trip = tradeoff.load("commute")
>>> quick, plain = trip.best([[1, 2, 0, 1, 0]])[0], trip.replace(solver=TextbookSolver()).best([[1, 2, 0, 1, 0]])[0]
>>> bool(abs(quick.value - plain.value).max() < 1e-12)
True
"""

from __future__ import annotations

import numpy as np

from tradeoff.model import Matrix, Vector
from tradeoff.problems.dynamics import Dynamics
from tradeoff.problems.layer import Int, Layer
from tradeoff.problems.solver import Choices, Weights


class TextbookSolver:
    """A plain, slow solver: one weight vector at a time, with whole policies in memory."""

    threads = 1

    def optimal_values(self, dynamics: Dynamics, weights: Matrix) -> Vector:
        """Return V_0 at the start, for each row of weights."""
        return np.array([dynamics.start @ _values(dynamics, row) for row in weights])

    def optimal_outcomes(self, dynamics: Dynamics, weights: Weights) -> Matrix:
        """Return the expected outcome of an optimal policy: the sum of d_t . r_pi, with d_0 the start and d_t+1 = d_t P_pi."""
        outcomes = np.zeros(weights.rows.shape)
        for outcome, choices in zip(outcomes, self.optimal_choices(dynamics, weights), strict=True):
            now = dynamics.start
            for step, local in enumerate(choices):
                layer = dynamics.layer(step)
                chance = np.zeros(len(layer.action))
                chance[layer.state_ptr[layer.going] + local[layer.going]] = 1.0
                outcome += (now[layer.state_of_choice] * chance) @ layer.reward
                now = self.next_distribution(layer, chance, now)
        return outcomes

    def optimal_choices(self, dynamics: Dynamics, weights: Weights) -> list[Choices]:
        """Return the greedy policy with respect to V, for each row of weights."""
        return [
            _greedy(dynamics, row, weights.tie_break, tolerance if may_tie else None)
            for row, may_tie, tolerance in zip(weights.rows, weights.may_tie, weights.tolerance, strict=True)
        ]

    def policy_values(self, layer: Layer, chance: Vector, after: Matrix) -> Matrix:
        """Return r_pi + P_pi V, the expected outcomes before this step."""
        worth = chance[:, None] * (layer.reward + _moved(layer, after))
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
        """Return the choice, the branch and the next state of each walker."""
        choices, branches, after = np.full(len(states), -1), np.full(len(states), -1), states.copy()
        for i, state in enumerate(states):
            if not layer.ends[state]:
                own = np.arange(layer.state_ptr[state], layer.state_ptr[state + 1])
                choices[i] = _drawn(own, chance[own], action_draws[i])
                own = np.arange(layer.choice_ptr[choices[i]], layer.choice_ptr[choices[i] + 1])
                branches[i] = _drawn(own, layer.prob[own], branch_draws[i])
                after[i] = layer.target[branches[i]]
        return choices, branches, after


def _moved(layer: Layer, after: Matrix) -> Matrix:
    """Return P V: for each choice, the expected value of the state it leads to."""
    choice = np.repeat(np.arange(len(layer.action)), np.diff(layer.choice_ptr))
    moved = np.zeros((len(layer.action), *after.shape[1:]))
    np.add.at(moved, choice, (layer.prob * after[layer.target].T).T)
    return moved


def _values(dynamics: Dynamics, weights: Vector) -> Vector:
    """Return V_0 of every state for one weight vector."""
    values = np.zeros(len(dynamics.states))
    for step in reversed(range(dynamics.horizon)):
        layer = dynamics.layer(step)
        worth = layer.reward @ weights + _moved(layer, values)  # Q_t
        values = np.zeros(len(dynamics.states))
        if len(layer.going):
            values[layer.going] = np.maximum.reduceat(worth, layer.state_ptr[layer.going])
    return values


def _greedy(dynamics: Dynamics, weights: Vector, tie_break: Vector, tolerance: float | None) -> Choices:
    """Return an optimal policy for one weight vector; ties within the tolerance are broken if there is one."""
    chosen = np.zeros((dynamics.horizon, len(dynamics.states)), np.uint32)
    values, seconds = np.zeros(len(dynamics.states)), np.zeros(len(dynamics.states))
    for step in reversed(range(dynamics.horizon)):
        layer = dynamics.layer(step)
        worth = layer.reward @ weights + _moved(layer, values)
        second = layer.reward @ tie_break + _moved(layer, seconds)
        values, seconds = np.zeros(len(dynamics.states)), np.zeros(len(dynamics.states))
        for state in layer.going:
            own = slice(layer.state_ptr[state], layer.state_ptr[state + 1])
            best = int(worth[own].argmax())
            if tolerance is not None:
                best = int(np.where(worth[own] >= worth[own].max() - tolerance, second[own], -np.inf).argmax())
            chosen[step, state] = best
            values[state], seconds[state] = worth[own][best], second[own][best]
    return chosen


def _drawn(candidates: Int, chances: Vector, draw: float) -> int:
    """Return the candidate that a uniform number falls on, or the last possible one if rounding leaves a remainder."""
    possible = chances > 0
    at = np.searchsorted(np.cumsum(chances[possible]), draw, side="right")
    return int(candidates[possible][min(int(at), int(possible.sum()) - 1)])
