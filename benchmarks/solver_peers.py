"""Other finite-horizon solvers, which benchmarks measure beside this package's. Not a benchmark by itself."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse  # type: ignore[import-untyped, unused-ignore]

Array = np.ndarray[Any, Any]
Run = Callable[[], Array]  # does the work and returns the values at the first step


class Layer(NamedTuple):
    """One step of a decision process, as `tradeoff.mdp.kernels.bellman` takes it."""

    state_ptr: Array
    choice_ptr: Array
    target: Array
    prob: Array
    reward: Array

    @property
    def states(self) -> int:
        return self.state_ptr.size - 1

    @property
    def regular(self) -> bool:
        counts, widths = np.diff(self.state_ptr), np.diff(self.choice_ptr)
        return bool((counts == counts[0]).all() and (widths == widths[0]).all())


def matrix(layer: Layer) -> Any:
    """Return the transitions as a SciPy CSR matrix, one row a choice."""
    shape = (layer.choice_ptr.size - 1, layer.states)
    wide = layer.choice_ptr if layer.choice_ptr[-1] > 2**31 - 1 else layer.choice_ptr.astype(np.int32)
    return scipy.sparse.csr_matrix((layer.prob, layer.target, wide), shape=shape)


def quantecon_peer(layer: Layer, weights: Array, steps: int) -> Run:
    """QuantEcon's backward induction over state-action pairs with a sparse Q; only R changes with the weights."""
    from quantecon.markov.ddp import DiscreteDP, backward_induction

    counts = np.diff(layer.state_ptr)
    states = np.repeat(np.arange(layer.states), counts)
    actions = np.arange(states.size) - np.repeat(layer.state_ptr[:-1], counts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that infinite-horizon methods are off at beta = 1
        process = DiscreteDP(layer.reward @ weights, matrix(layer), 1.0, states, actions)

    def run() -> Array:
        process.R = layer.reward @ weights
        values, _ = backward_induction(process, steps)
        return np.asarray(values[0])

    return run


def hiive_peer(layer: Layer, weights: Array, steps: int) -> Run:
    """mdptoolbox-hiive's FiniteHorizon with one sparse matrix an action."""
    from hiive.mdptoolbox.mdp import FiniteHorizon

    actions = int(layer.state_ptr[1])
    whole = matrix(layer)
    transitions = [whole[action::actions] for action in range(actions)]
    rewards = (layer.reward @ weights).reshape(-1, actions)
    with contextlib.redirect_stdout(
        io.StringIO()
    ):  # a warning about convergence, which a finite horizon has no need of
        process = FiniteHorizon(transitions, rewards, 1.0, steps, skip_check=True)

    def run() -> Array:
        process.run()
        return np.asarray(process.V[:, 0])

    return run


def scipy_naive_peer(layer: Layer, weights: Array, steps: int) -> Run:
    """The first thing one writes: one product, then the best of each state's choices in place."""
    whole = matrix(layer)
    begins = layer.state_ptr[:-1]
    counts = np.diff(layer.state_ptr)
    regular = layer.regular

    def run() -> Array:
        earned = layer.reward @ weights
        values = np.zeros(layer.states)
        policy = np.empty((steps, layer.states), np.int64)
        for step in reversed(range(steps)):
            worth = earned + whole @ values
            if regular:
                table = worth.reshape(layer.states, -1)
                policy[step] = table.argmax(axis=1)
                values = table.max(axis=1)
            else:
                values = np.maximum.reduceat(worth, begins)
                hits = np.flatnonzero(worth == np.repeat(values, counts))
                policy[step] = hits[np.searchsorted(hits, begins)] - begins
        return values

    return run


def scipy_major_peer(layer: Layer, weights: Array, steps: int) -> Run:
    """SciPy written with care: one matrix an action, the running best kept; several weight vectors at once if given."""
    whole = matrix(layer)
    counts = np.diff(layer.state_ptr)
    groups = []
    for action in range(int(counts.max())):
        states = np.flatnonzero(counts > action)
        rows = layer.state_ptr[:-1][states] + action
        groups.append((slice(None) if states.size == layer.states else states, rows, whole[rows]))

    def run() -> Array:
        earned = layer.reward @ weights.T
        split = [earned[rows] for _, rows, _ in groups]
        values = np.zeros((layer.states, *weights.shape[:-1]))
        policy = np.empty((steps, *values.shape), np.uint8)
        for step in reversed(range(steps)):
            best = split[0] + groups[0][2] @ values
            chosen = policy[step]
            chosen[...] = 0
            for action, (states, _, part) in enumerate(groups[1:], 1):
                worth = part @ values
                worth += split[action]
                if isinstance(states, slice):
                    np.copyto(chosen, action, where=worth > best)
                    np.maximum(best, worth, out=best)
                else:
                    kept = best[states]
                    chosen[states] = np.where(worth > kept, np.uint8(action), chosen[states])
                    best[states] = np.maximum(kept, worth)
            values = best
        return values

    return run


def storm_peer(layer: Layer, weights: Array, steps: int) -> Run:
    """Storm's step-bounded expected reward, through stormpy; it returns values and no policy."""
    import stormpy
    from stormpy import models
    from stormpy.datastructures import SparseMatrixBuilder

    builder = SparseMatrixBuilder(rows=0, columns=0, entries=0, force_dimensions=False, has_custom_row_grouping=True)
    for state in range(layer.states):
        builder.new_row_group(int(layer.state_ptr[state]))
        for choice in range(layer.state_ptr[state], layer.state_ptr[state + 1]):
            merged: dict[int, float] = {}
            for entry in range(layer.choice_ptr[choice], layer.choice_ptr[choice + 1]):
                goal = int(layer.target[entry])
                merged[goal] = merged.get(goal, 0.0) + float(layer.prob[entry])
            for goal in sorted(merged):
                builder.add_next_value(int(choice), goal, merged[goal])
    labels = models.StateLabeling(layer.states)
    labels.add_label("init")
    labels.add_label_to_state("init", 0)
    rewards = models.SparseRewardModel(optional_state_action_reward_vector=(layer.reward @ weights).tolist())
    parts = models.SparseModelComponents(
        transition_matrix=builder.build(), state_labeling=labels, reward_models={"sum": rewards}
    )
    process = models.SparseMdp(parts)
    wanted = stormpy.parse_properties(f'R{{"sum"}}max=? [C<={steps}]')[0]

    def run() -> Array:
        result = stormpy.model_checking(process, wanted, only_initial_states=False)
        return np.asarray(result.get_finite_value_vector())

    return run
