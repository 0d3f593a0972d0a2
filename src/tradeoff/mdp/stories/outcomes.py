"""The true distribution of a plan's outcomes: enumerated if feasible, otherwise estimated from rollouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradeoff.mdp.stories.process import Following, Int, Paths, Process, branch_rewards
from tradeoff.model import Matrix, Outcomes, Vector

ENUMERATED = 4_000  # distinct (state, outcome so far) pairs up to which a plan is enumerated
ROLLOUTS = 4_000  # otherwise; a frequency is then off by more than 1.6 points at most 1 time in 20
SWEPT = 500_000  # branches up to which the least and the greatest outcome are computed
MARKED = 32  # numbers are told apart by marking a table of up to this many times their count, else by sorting them
MERGED = 2.0**-40  # relative to the largest outcome: sums that differ by less are the same sum in another order

Parts = Sequence[tuple[float, Following | None]]  # a mixture: shares and policies; None is the reference


def outcomes_of(process: Process, parts: Parts, *, limit: int = ENUMERATED, rollouts: int = ROLLOUTS) -> Outcomes:
    """Return the distribution of the outcomes of a mixture of policies."""
    points: list[Matrix] = []
    chances: list[Vector] = []
    for share, following in parts:
        if following is None:
            points.append(process.origin[None, :])
            chances.append(np.array([share]))
            continue
        found = _enumerated(process, following, limit)
        if found is None:
            return _rolled_out(process, parts, rollouts)
        points.append(found[0])
        chances.append(share * found[1])
    probabilities, every = np.concatenate(chances), np.concatenate(points)
    return Outcomes(every, probabilities / probabilities.sum(), range=np.stack([every.min(axis=0), every.max(axis=0)]))


def _enumerated(process: Process, following: Following, limit: int) -> tuple[Matrix, Vector] | None:
    """Return the distribution of a policy's outcome, or None if that needs more than ``limit`` (state, outcome) pairs."""
    state = np.flatnonzero(process.start > 0)
    chance, earned = process.start[state], np.zeros((len(state), len(process.objectives)))
    done: list[tuple[Matrix, Vector]] = []
    for step in range(process.horizon):
        row, choice, share = following.options(step, state)
        ended = np.setdiff1d(np.arange(len(state)), row, assume_unique=False)
        if len(ended):
            done.append((earned[ended], chance[ended]))
        if not len(row):
            state = state[:0]
            break
        layer = process.layer(step)
        parent, branch = segments(layer.choice_ptr[choice], layer.choice_ptr[choice + 1])
        likely = chance[row[parent]] * share[parent] * layer.prob[branch]
        possible = likely > 0
        parent, branch, likely = parent[possible], branch[possible], likely[possible]
        if len(branch) > 20 * limit:
            return None
        after = earned[row[parent]] + branch_rewards(layer, choice[parent], branch)
        state, earned, chance = _merged(layer.target[branch].astype(np.int64), after, likely)
        if len(state) + sum(len(c) for _, c in done) > limit:
            return None
    done.append((earned[: len(state)], chance[: len(state)]))
    _, points, chances = _merged(
        np.zeros(sum(len(c) for _, c in done), np.int64),
        np.concatenate([p for p, _ in done]),
        np.concatenate([c for _, c in done]),
    )
    return points, chances


def _merged(state: Int, earned: Matrix, chance: Vector) -> tuple[Int, Matrix, Vector]:
    """Return the distinct (state, outcome so far) pairs with their chances added up."""
    if not len(state):
        return state, earned, chance
    grid = np.abs(earned).max(axis=0) * MERGED
    cells = np.round(np.divide(earned, grid, out=np.zeros_like(earned), where=grid > 0)).astype(np.int64)
    # One number per row to sort by. Different rows with the same number are told apart below.
    key = state.copy()
    for column in cells.T:
        key = (key * np.int64(6364136223846793005)) ^ (column + np.int64(1442695040888963407))
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    if np.any(state != state[first][group]) or np.any(cells != cells[first][group]):
        rows = np.concatenate([state[:, None], cells], axis=1)
        _, first, group = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        group = group.ravel()
    total = np.bincount(group, weights=chance).astype(np.float64)
    return state[first], earned[first], total


def _rolled_out(process: Process, parts: Parts, count: int) -> Outcomes:
    """Return the outcomes of rollouts, distributed over the parts in proportion to their shares."""
    counts = _counts([share for share, _ in parts], count)
    points = [
        np.repeat(process.origin[None, :], n, axis=0)
        if following is None
        else draw(process, following, n, seed).returns
        for seed, (n, (_, following)) in enumerate(zip(counts, parts, strict=True))
        if n
    ]
    found = np.concatenate(points)
    ends: list[Matrix | None] = [
        np.repeat(process.origin[None, :], 2, axis=0) if following is None else _range(process, following)
        for _, following in parts
    ]
    known = [end for end in ends if end is not None]
    range_ = np.stack([np.min(known, axis=(0, 1)), np.max(known, axis=(0, 1))]) if len(known) == len(ends) else None
    return Outcomes(found, np.full(len(found), 1 / len(found)), len(found), range_)


def _range(process: Process, following: Following) -> Matrix | None:
    """Return the least and the greatest of each objective over all possible paths; None if that would take too long."""
    reached = [np.flatnonzero(process.start > 0)]
    taken: list[tuple[Int, Int, Int]] = []  # state row, choice and branch of every possible branch
    total = 0
    for step in range(process.horizon):
        row, choice, _ = following.options(step, reached[-1])
        layer = process.layer(step)
        parent, branch = segments(layer.choice_ptr[choice], layer.choice_ptr[choice + 1])
        possible = layer.prob[branch] > 0
        parent, branch = parent[possible], branch[possible]
        total += len(branch)
        if total > SWEPT:
            return None
        taken.append((row[parent], choice[parent], branch))
        seen = np.zeros(len(process.start), dtype=bool)
        seen[layer.target[branch]] = True
        reached.append(np.flatnonzero(seen))
    # Both ends together: the greatest of the amounts, and of the negated amounts.
    after = np.zeros((len(reached[-1]), 2 * len(process.objectives)))
    for step in reversed(range(process.horizon)):
        row, choice, branch = taken[step]
        layer = process.layer(step)
        earned = branch_rewards(layer, choice, branch)
        totals = np.concatenate([-earned, earned], axis=1)
        totals += after[np.searchsorted(reached[step + 1], layer.target[branch])]
        after = np.zeros((len(reached[step]), totals.shape[1]))
        if len(row):
            first = np.flatnonzero(np.diff(row, prepend=-1))
            after[row[first]] = np.maximum.reduceat(totals, first, axis=0)
    least, greatest = np.split(after.max(axis=0), 2)
    return np.stack([-least + 0.0, greatest])


def _counts(shares: Sequence[float], count: int) -> list[int]:
    """Return how many of ``count`` rollouts each part gets, rounded so that they add up."""
    borders = np.round(np.cumsum(shares) / sum(shares) * count)
    return [int(size) for size in np.diff(borders, prepend=0)]


def draw(process: Process, following: Following, count: int, seed: int = 0) -> Paths:
    """Return ``count`` independent paths of a policy, the same ones for the same seed."""
    random = np.random.default_rng(seed)
    states = np.full((process.horizon + 1, count), -1, dtype=np.int64)
    choices, branches = np.full((2, process.horizon, count), -1, dtype=np.int64)
    returns = np.zeros((count, len(process.objectives)))
    begin = np.flatnonzero(process.start > 0)
    states[0] = random.choice(begin, size=count, p=process.start[begin] / process.start[begin].sum())
    for step in range(process.horizon):
        here, which = _distinct(states[step], len(process.start))
        row, choice, share = following.options(step, here)
        options = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(here)))])
        states[step + 1] = states[step]
        if not len(row):
            continue
        possible = np.diff(options) > 0
        going = slice(None) if possible.all() else possible[which]
        chosen = choice[_picked(options, share, which[going], random)]
        layer = process.layer(step)
        each, which_choice = _distinct(chosen, len(layer.action))
        begins, ends = layer.choice_ptr[each], layer.choice_ptr[each + 1]
        _, branch = segments(begins, ends)
        bounds = np.concatenate([[0], np.cumsum(ends - begins)])
        taken = branch[_picked(bounds, layer.prob[branch], which_choice, random)]
        choices[step, going], branches[step, going] = chosen, taken
        returns[going] += branch_rewards(layer, chosen, taken)
        states[step + 1, going] = layer.target[taken]
    return Paths(states.T, choices.T, branches.T, np.full(count, 1 / count), returns)


def _distinct(numbers: Int, below: int) -> tuple[Int, Int]:
    """Return the distinct numbers, all of them ``below`` this, in order, and which of them each number is."""
    if below > MARKED * len(numbers):
        return np.unique(numbers, return_inverse=True)
    seen = np.zeros(below, dtype=bool)
    seen[numbers] = True
    found = np.flatnonzero(seen)
    place = np.empty(below, dtype=np.int64)
    place[found] = np.arange(len(found))
    return found, place[numbers]


def segments(begins: NDArray[np.integer[Any]], ends: NDArray[np.integer[Any]]) -> tuple[Int, Int]:
    """Return the concatenation of all ranges: which range each number belongs to, and the numbers.

    >>> [column.tolist() for column in segments(np.array([3, 7]), np.array([5, 8]))]
    [[0, 0, 1], [3, 4, 7]]
    """
    length = (ends - begins).astype(np.int64)
    owner = np.repeat(np.arange(len(length)), length)
    shift = begins.astype(np.int64) - np.concatenate([[0], np.cumsum(length)[:-1]])
    return owner, np.arange(len(owner)) + shift[owner]


def _picked(bounds: Int, chance: Vector, segment: Int, random: np.random.Generator) -> Int:
    """Return, for each draw, an entry of its segment with probability ``chance``."""
    if np.diff(bounds).max() <= 1:  # nothing to choose from
        return bounds[segment]
    possible = np.flatnonzero(chance > 0)
    reached = np.concatenate([[0.0], np.cumsum(chance[possible])])
    border = np.searchsorted(possible, bounds)
    base, length = reached[border[:-1]], np.diff(reached[border])
    wanted = base[segment] + random.random(len(segment)) * length[segment]
    at = np.searchsorted(reached[1:], wanted, side="right")
    found: Int = possible[np.clip(at, border[segment], border[segment + 1] - 1)]
    return found
