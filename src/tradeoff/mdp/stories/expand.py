"""Expand and compress trajectories: Algorithm 4 of the paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from tradeoff.mdp.stories.compress import compress
from tradeoff.mdp.stories.process import Following, Int, Paths, Process, branch_rewards
from tradeoff.model import Matrix, Vector


def values_forwards(process: Process, following: Following, fits: Callable[[int], bool]) -> Iterator[Matrix]:
    """Yield V^pi(s) from step 0, 1, ..., H on, each [S, k], in the person's units.

    They are computed backwards (Eq. 2 of the paper) and kept if they fit. Otherwise only those at the borders of
    segments of about sqrt(H) steps are kept, and each segment is computed again when it is reached.
    """
    horizon, shape = process.horizon, (len(process.states), len(process.objectives))
    length = horizon if fits((horizon + 1) * shape[0] * shape[1] * 8) else math.ceil(math.sqrt(horizon))
    begins = list(range(0, horizon, length))
    borders = {horizon: np.zeros(shape)}

    def segment(begin: int, after: Matrix) -> list[Matrix]:
        """Return the values at each step of a segment, given those after it."""
        values = [after]
        for step in reversed(range(begin, min(begin + length, horizon))):
            values.append(process.policy_values(step, following.chance(step), values[-1]))
        return values[:0:-1]

    kept: list[Matrix] = []
    for begin in reversed(begins):
        kept = segment(begin, borders[min(begin + length, horizon)])
        borders[begin] = kept[0]
    yield from kept
    for begin in begins[1:]:
        yield from segment(begin, borders[min(begin + length, horizon)])
    yield borders[horizon]


def expected_return(process: Process, following: Following) -> Vector:
    """Return V^pi, the expected outcome of a policy from its start, in the person's units."""
    values = np.zeros((len(process.states), len(process.objectives)))
    for step in reversed(range(process.horizon)):
        values = process.policy_values(step, following.chance(step), values)
    states = np.flatnonzero(process.start > 0)
    value: Vector = process.start[states] @ values[states]
    return value


def expand(process: Process, following: Following, fits: Callable[[int], bool]) -> tuple[Paths, Vector]:
    """Return at most k+1 weighted paths of a policy, and V^pi, which is their mean return."""
    tails = values_forwards(process, following, fits)
    tail = next(tails)
    states = np.flatnonzero(process.start > 0)
    # Q^(0): one prefix per start state. Every compression matches V^pi itself, so that errors do not add up over the steps.
    value: Vector = process.start[states] @ tail[states]
    size = process.largest_total
    kept, weights = compress(tail[states], process.start[states], target=value, size=size)
    states = states[kept]
    returns = np.zeros((len(states), len(process.objectives)))
    history: list[tuple[Int, Int, Int, Int]] = [(np.arange(len(states)), states, states, states)]
    for step in range(process.horizon):
        tail = next(tails)
        parent, choice, branch, chance, after = _successors(process, following, step, states)
        grown = returns[parent].copy()
        going = choice >= 0
        if going.any():
            grown[going] += branch_rewards(process.layer(step), choice[going], branch[going])
        # J(tau + s): the return so far plus the expected return from there (Eq. 4).
        shares = _shares(weights[parent] * chance)
        kept, weights = compress(grown + tail[after], shares, target=value, size=size)
        states, returns = after[kept], grown[kept]
        history.append((parent[kept], choice[kept], branch[kept], states))
    return _paths(history, weights, returns), value


def _shares(weights: Vector) -> Vector:
    """Return the weights scaled to sum to 1, since products of probabilities do so only up to rounding."""
    shares: Vector = weights / weights.sum()
    return shares


def _successors(process: Process, following: Following, step: int, states: Int) -> tuple[Int, Int, Int, Vector, Int]:
    """Return what may follow each prefix: (prefix, choice, branch, probability, state); -1 if it has ended."""
    layer = process.layer(step)
    found: list[tuple[Int, Int, Int, Vector, Int]] = []
    for prefix, state in enumerate(states):
        choices, chances = following.at(step, int(state))
        if not len(choices):
            ended = np.array([-1])
            found.append((np.array([prefix]), ended, ended, np.ones(1), np.array([state])))
            continue
        for choice, chance in zip(choices, chances, strict=True):
            branch = np.arange(layer.choice_ptr[choice], layer.choice_ptr[choice + 1])
            found.append(
                (
                    np.full(len(branch), prefix),
                    np.full(len(branch), choice),
                    branch,
                    chance * layer.prob[branch],
                    layer.target[branch].astype(np.int64),
                )
            )
    parent, choice, branch, chance, after = (np.concatenate(column) for column in zip(*found, strict=True))
    return parent, choice, branch, chance, after


def _paths(history: list[tuple[Int, Int, Int, Int]], weights: Vector, returns: Matrix) -> Paths:
    """Return the remaining paths, traced back through their prefixes."""
    count, horizon = len(weights), len(history) - 1
    states = np.empty((count, horizon + 1), dtype=np.int64)
    choices, branches = np.empty((count, horizon), dtype=np.int64), np.empty((count, horizon), dtype=np.int64)
    row = np.arange(count)
    for step in reversed(range(1, horizon + 1)):
        parent, choice, branch, state = history[step]
        states[:, step], choices[:, step - 1], branches[:, step - 1] = state[row], choice[row], branch[row]
        row = parent[row]
    states[:, 0] = history[0][3][row]
    return Paths(states, choices, branches, weights, returns)
