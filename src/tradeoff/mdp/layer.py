"""Build and check one step of a Markov decision process, stored as ragged sparse arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradeoff.errors import ProblemError
from tradeoff.model import Matrix, Vector

# A sum of probabilities may differ from 1 by this much, as in tables with nine digits; they are then scaled to sum to 1.
SUM_TOLERANCE = 1e-9
# The same for probabilities of single precision (float32).
SINGLE_TOLERANCE = 8 * float(np.finfo(np.float32).eps)
# Below this, a sum differs from 1 by rounding only and is left alone, so that saving and loading changes nothing.
SUM_ROUNDING = 1e-12

Int = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Layer:
    """The choices of every state at one step, and what each leads to.

    State s has the choices ``state_ptr[s]:state_ptr[s + 1]`` (none: the state is an end, where nothing more happens).
    Choice c is action ``action[c]``, earns ``reward[c]`` on average, and has the branches
    ``choice_ptr[c]:choice_ptr[c + 1]``, each with a ``target`` state and a probability ``prob``. If the reward
    depends on the branch, ``branch_reward`` holds it.
    """

    state_ptr: NDArray[np.int32]
    action: NDArray[np.int32]
    choice_ptr: NDArray[np.int64]
    target: NDArray[np.int32]
    prob: Vector
    reward: Matrix
    branch_reward: Matrix | None

    @property
    def arrays(self) -> tuple[NDArray[Any] | None, ...]:
        """All arrays, in the order in which a fingerprint hashes them."""
        first = self.state_ptr, self.choice_ptr, self.target, self.prob, self.reward
        return *first, self.action, self.branch_reward

    @property
    def states(self) -> int:
        """The number of states."""
        return len(self.state_ptr) - 1

    @cached_property
    def state_of_choice(self) -> NDArray[np.int32]:
        """The state that each choice belongs to."""
        return np.repeat(np.arange(self.states, dtype=np.int32), np.diff(self.state_ptr))

    @cached_property
    def ends(self) -> NDArray[np.bool_]:
        """Which states are ends."""
        return np.equal(np.diff(self.state_ptr), 0)

    @cached_property
    def going(self) -> NDArray[np.int64]:
        """The states that are not ends."""
        return np.flatnonzero(~self.ends)

    def outcomes_of_branches(self) -> Matrix:
        """Return the reward of each branch [N, k]."""
        if self.branch_reward is not None:
            return self.branch_reward
        return np.repeat(self.reward, np.diff(self.choice_ptr), axis=0)

    def branches(self) -> tuple[Int, Int, Vector, Int, Matrix]:
        """Return the branches as columns: state, action, probability, target, rewards."""
        choice = np.repeat(np.arange(len(self.action)), np.diff(self.choice_ptr))
        return (
            self.state_of_choice[choice].astype(np.int64),
            self.action[choice].astype(np.int64),
            self.prob,
            self.target.astype(np.int64),
            self.outcomes_of_branches(),
        )


Where = Callable[[int, int], str]  # (state, action) -> "state 'home', action 'drive'", for messages


def build_layer(
    state: Int,
    action: Int,
    probability: Vector,
    target: Int,
    reward: Matrix | Callable[[Int, Int], Matrix],
    *,
    states: int,
    renormalise: bool,
    where: Where,
    objective_names: Sequence[str],
    tolerance: float = SUM_TOLERANCE,
) -> Layer:
    """Check the branches and return their layer; branches keep their order within a choice.

    ``reward`` has one row per branch, or, if rewards do not depend on the branch, is a function of the states and
    actions of the choices.
    """
    _check_probabilities(state, action, probability, where)
    order = np.lexsort((action, state))
    state, action, probability, target = state[order], action[order], probability[order], target[order]
    first = np.ones(len(state), dtype=bool)
    first[1:] = (np.diff(state) != 0) | (np.diff(action) != 0)
    begin = np.flatnonzero(first)
    choice_of_branch = np.cumsum(first) - 1
    totals = _sums(choice_of_branch, probability, len(begin))
    allowed = np.where(totals > 0, np.inf, -1.0) if renormalise else np.full(len(totals), tolerance)
    probability = _normalised(probability, totals, choice_of_branch, state, action, begin, allowed, where)

    branch_reward: Matrix | None = None
    if callable(reward):
        choice_reward = reward(state[begin], action[begin])
        _check_rewards(choice_reward, state[begin], action[begin], where, objective_names)
    else:
        rows = np.ascontiguousarray(reward[order])
        _check_rewards(rows, state, action, where, objective_names)
        choice_reward = rows[begin]
        varying = np.any(rows != choice_reward[choice_of_branch], axis=1)
        if varying.any():
            branch_reward = rows
            mean = np.stack([_sums(choice_of_branch, probability * column, len(begin)) for column in rows.T], axis=1)
            # If all branches of a choice earn the same, use that exact amount instead of a rounded weighted sum.
            differs = _sums(choice_of_branch, varying.astype(float), len(begin)) > 0
            choice_reward = np.where(differs[:, None], mean, choice_reward)

    again = _repeats(choice_of_branch, target, branch_reward)
    if again is not None:  # merge branches with the same target and rewards, adding their probabilities
        keep, number = again
        probability = _sums(number, probability, len(keep))
        choice_of_branch, target = choice_of_branch[keep], target[keep]
        branch_reward = None if branch_reward is None else branch_reward[keep]
    possible = probability > 0  # drop branches that cannot happen
    if not possible.all():
        choice_of_branch, target, probability = choice_of_branch[possible], target[possible], probability[possible]
        branch_reward = None if branch_reward is None else branch_reward[possible]
    return Layer(
        state_ptr=_pointers(state[begin], states),
        action=action[begin].astype(np.int32),
        choice_ptr=_pointers(choice_of_branch, len(begin)).astype(np.int64),
        target=target.astype(np.int32),
        prob=np.ascontiguousarray(probability),
        reward=np.ascontiguousarray(choice_reward, dtype=float),
        branch_reward=None if branch_reward is None else np.ascontiguousarray(branch_reward),
    )


def _repeats(choice: Int, target: Int, reward: Matrix | None) -> tuple[Int, Int] | None:
    """Return which branches to keep and the kept one that each is merged into; None if no branch is repeated."""
    order = np.lexsort((target, choice))
    if not np.any((np.diff(choice[order]) == 0) & (np.diff(target[order]) == 0)):
        return None
    columns = [choice[:, None], target[:, None]] if reward is None else [choice[:, None], target[:, None], reward]
    _, first, number = np.unique(np.hstack(columns), axis=0, return_index=True, return_inverse=True)
    keep = np.sort(first)  # in their original order, by choice
    return keep, np.searchsorted(keep, first[number.ravel()])


def _sums(group: Int, amounts: Vector, count: int) -> Vector:
    """Return the sum of the amounts of each of ``count`` groups."""
    return np.bincount(group, weights=amounts, minlength=count).astype(np.float64, copy=False)


def _pointers(group: Int, count: int) -> NDArray[np.int32]:
    """Return where each of ``count`` groups begins in a sorted list of group numbers."""
    if len(group) >= 2**31:
        raise ProblemError(f"the model has {len(group):,} entries; at most {2**31 - 1:,} can be numbered")
    return _running_total(np.bincount(group, minlength=count))


def _running_total(counts: NDArray[np.integer]) -> NDArray[np.int32]:
    """Return where each group begins, given how many members it has."""
    pointers = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=pointers[1:])
    return pointers


def _check_probabilities(state: Int, action: Int, probability: Vector, where: Where) -> None:
    bad = np.flatnonzero(~np.isfinite(probability) | (probability < 0))
    if len(bad):
        i = bad[0]
        problem = "negative" if probability[i] < 0 else "not a finite number"
        raise ProblemError(
            f"a probability of {where(state[i], action[i])} is {probability[i]}, which is {problem}; "
            "correct the transitions"
        )


def _normalised(
    probability: Vector,
    totals: Vector,
    choice_of_branch: Int,
    state: Int,
    action: Int,
    begin: Int,
    allowed: Vector,
    where: Where,
) -> Vector:
    """Return the probabilities, scaled to sum to 1 for each choice; raise a ProblemError if a sum differs by more."""
    missing = np.abs(totals - 1)
    bad = np.flatnonzero(missing > allowed)
    if len(bad):
        i = begin[bad[0]]
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        raise ProblemError(
            f"the probabilities of {where(state[i], action[i])} sum to {totals[bad[0]]:.9g}, not 1{more}; "
            "check the transitions, or load with renormalise=True"
        )
    divide = np.where(missing > SUM_ROUNDING, totals, 1.0)
    return probability if np.all(divide == 1) else probability / divide[choice_of_branch]


def _check_rewards(rows: Matrix, state: Int, action: Int, where: Where, objective_names: Sequence[str]) -> None:
    # A finite sum means that every entry is finite. Finite entries may still overflow, so the entries are checked below.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(rows.sum()):
            return
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        i, j = bad[0]
        raise ProblemError(
            f"the reward of {where(state[i], action[i])} for {objective_names[j]!r} is {rows[i, j]}; "
            "every reward must be a finite number"
        )


def reachable(layers: Sequence[Layer], start: Vector) -> NDArray[np.bool_]:
    """Return which states can be reached from the start by any actions in any number of steps."""
    seen = start > 0
    frontier = np.flatnonzero(seen)
    while len(frontier):
        targets = np.unique(np.concatenate([_targets(layer, frontier) for layer in layers]))
        frontier = targets[~seen[targets]]
        seen[frontier] = True
    return seen


def _targets(layer: Layer, states: Int) -> NDArray[np.int32]:
    """Return the targets of all branches of these states."""
    begin = layer.choice_ptr[layer.state_ptr[states]].astype(np.int64)
    counts = layer.choice_ptr[layer.state_ptr[states + 1]] - begin
    offsets = np.repeat(begin - (np.cumsum(counts) - counts), counts)
    found: NDArray[np.int32] = layer.target[offsets + np.arange(counts.sum())]
    return found


def keep_states(layer: Layer, keep: NDArray[np.bool_]) -> Layer:
    """Return the layer with only these states; none of their branches may lead to another state."""
    choice_kept = keep[layer.state_of_choice]
    branches = np.diff(layer.choice_ptr)
    branch_kept = np.repeat(choice_kept, branches)
    renumber = np.cumsum(keep) - 1
    return Layer(
        state_ptr=_running_total(np.diff(layer.state_ptr)[keep]),
        action=layer.action[choice_kept],
        choice_ptr=_running_total(branches[choice_kept]).astype(np.int64),
        target=renumber[layer.target[branch_kept]].astype(np.int32),
        prob=layer.prob[branch_kept],
        reward=layer.reward[choice_kept],
        branch_reward=_needed(layer.branch_reward, choice_kept, branch_kept, branches),
    )


def _needed(
    branch_reward: Matrix | None, choice_kept: NDArray[np.bool_], branch_kept: NDArray[np.bool_], branches: Int
) -> Matrix | None:
    """Return the kept rewards of branches, or None if all branches of each kept choice earn the same."""
    if branch_reward is None:
        return None
    rows = branch_reward[branch_kept]
    counts = branches[choice_kept]
    first = np.repeat(np.cumsum(counts) - counts, counts)
    return rows if np.any(rows != rows[first]) else None


def check_layer(layer: Layer, states: Sequence[str], actions: Sequence[str], objective_names: Sequence[str]) -> None:
    """Raise a ProblemError if arrays read from a file are not a valid layer."""
    count, choices, found = len(states), len(layer.action), len(layer.target)
    types = [layer.state_ptr, layer.action, layer.target]
    rows = [layer.reward] if layer.branch_reward is None else [layer.reward, layer.branch_reward]
    if (
        any(array.dtype != np.int32 or array.ndim != 1 for array in types)
        or layer.choice_ptr.dtype != np.int64
        or any(array.dtype != np.float64 for array in (layer.prob, *rows))
    ):
        raise ProblemError("the arrays of the model have the wrong types; was the file made by this program?")
    shapes = [
        (layer.state_ptr.shape, (count + 1,)),
        (layer.choice_ptr.shape, (choices + 1,)),
        (layer.prob.shape, (found,)),
        (layer.reward.shape, (choices, len(objective_names))),
        *([] if layer.branch_reward is None else [(layer.branch_reward.shape, (found, len(objective_names)))]),
    ]
    for shape, expected in shapes:
        if shape != expected:
            raise ProblemError(f"an array of the model has shape {shape} where {expected} is needed")
    for pointers, end in ((layer.state_ptr, choices), (layer.choice_ptr, found)):
        if pointers[0] != 0 or pointers[-1] != end or np.any(pointers[1:] < pointers[:-1]):
            raise ProblemError("the pointers of the model do not increase from 0 to its size")
    if found and not (layer.target.min() >= 0 and layer.target.max() < count):
        raise ProblemError(f"a next state is outside 0 to {count - 1}")
    if choices and not (layer.action.min() >= 0 and layer.action.max() < len(actions)):
        raise ProblemError(f"an action is outside 0 to {len(actions) - 1}")

    def where(state: int, action: int) -> str:
        return f"state {states[state]!r}, action {actions[action]!r}"

    choice = np.repeat(np.arange(choices), np.diff(layer.choice_ptr))
    state, action = layer.state_of_choice.astype(np.int64), layer.action.astype(np.int64)
    _check_probabilities(state[choice], action[choice], layer.prob, where)
    totals = _sums(choice, layer.prob, choices)
    wrong = np.flatnonzero(np.abs(totals - 1) > SUM_TOLERANCE)
    if len(wrong):
        raise ProblemError(
            f"the probabilities of {where(state[wrong[0]], action[wrong[0]])} sum to {totals[wrong[0]]:.9g}"
        )
    _check_rewards(layer.reward, state, action, where, objective_names)
    if layer.branch_reward is not None:
        _check_rewards(layer.branch_reward, state[choice], action[choice], where, objective_names)
