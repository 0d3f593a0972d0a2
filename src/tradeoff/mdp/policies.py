"""Convert policies from every accepted form to the chance of each choice at each step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradeoff.errors import ArgumentError
from tradeoff.mdp.dynamics import Dynamics
from tradeoff.mdp.layer import Int, Layer
from tradeoff.mdp.stories.outcomes import segments
from tradeoff.model import (
    Item,
    Matrix,
    Mixture,
    Nothing,
    OptimalPolicy,
    Plan,
    Policy,
    Situation,
    StochasticPolicy,
    Vector,
)


def as_plan(dynamics: Dynamics, policy: object) -> Plan:
    """Return the policy as a plan, after checking its arrays against the model."""
    match policy:
        case Nothing() | OptimalPolicy():
            return policy
        case Mixture():
            return Mixture(policy.probabilities, tuple(as_plan(dynamics, part) for part in policy.plans))
        case Policy() | StochasticPolicy():
            _check_shape(dynamics, policy)
            return policy
        case Item():
            raise ArgumentError(f"{policy!r} is an item of a catalogue; an MDP has policies")
        case _:
            array = np.asarray(policy)
            if array.dtype.kind not in "iuf":
                raise ArgumentError(
                    f"a policy is an integer array [steps, states] of actions or a float array [steps, states, actions] "
                    f"of probabilities, but {policy!r:.60} was given"
                )
            plan = Policy(array) if array.dtype.kind in "iu" else StochasticPolicy(array)
            _check_shape(dynamics, plan)
            return plan


def _check_shape(dynamics: Dynamics, plan: Policy | StochasticPolicy) -> None:
    expected: tuple[int, ...] = (dynamics.horizon, len(dynamics.states))
    found = plan.actions.shape if isinstance(plan, Policy) else plan.probabilities.shape
    if isinstance(plan, StochasticPolicy):
        expected = (*expected, len(dynamics.actions))
    if found != expected:
        meaning = "[steps, states]" if isinstance(plan, Policy) else "[steps, states, actions]"
        raise ArgumentError(
            f"the policy has shape {found}, but {meaning} is {expected} here; "
            "states that cannot be reached were left out of the model, see its `states`"
        )


@dataclass(frozen=True, eq=False)
class Deterministic:
    """A policy that takes one choice in each state: ``local[step, state]`` is its number among the state's choices."""

    dynamics: Dynamics
    local: np.ndarray

    @classmethod
    def of_table(cls, dynamics: Dynamics, plan: Policy) -> Deterministic:
        """Check a table of actions, and return it in a form that can be followed."""
        return cls(dynamics, np.stack([_local_choices(dynamics, step, plan) for step in range(dynamics.horizon)]))

    @classmethod
    def of_action(cls, dynamics: Dynamics, action: int) -> Deterministic:
        """Return the policy that takes one action wherever it is available, and the first choice elsewhere."""
        layers = (dynamics.layer(step) for step in range(dynamics.horizon))
        return cls(dynamics, np.stack([_local(layer, np.flatnonzero(layer.action == action)) for layer in layers]))

    def chance(self, step: int) -> Vector:
        """Return the chance of each choice given its state: 0 or 1."""
        layer = self.dynamics.layer(step)
        chance = np.zeros(len(layer.action))
        going = layer.going
        chance[layer.state_ptr[going] + self.local[step][going]] = 1.0
        return chance

    def at(self, step: int, state: int) -> tuple[Int, Vector]:
        """Return the choice taken in a state, with chance 1; empty at an end."""
        pointers = self.dynamics.layer(step).state_ptr
        taken = int(pointers[state] != pointers[state + 1])
        return np.array([int(pointers[state]) + int(self.local[step, state])] * taken, dtype=np.int64), np.ones(taken)

    def options(self, step: int, states: Int) -> tuple[Int, Int, Vector]:
        """Return the choice of each state that is not an end: (row, choice, 1)."""
        pointers = self.dynamics.layer(step).state_ptr
        rows = np.flatnonzero(pointers[states] != pointers[states + 1])
        going = states[rows]
        return rows, pointers[going].astype(np.int64) + self.local[step, going].astype(np.int64), np.ones(len(rows))

    def actions(self) -> Policy:
        """Return the policy as a table of action numbers."""
        table = np.full(self.local.shape, -1, dtype=np.int32)
        for step in range(self.dynamics.horizon):
            layer = self.dynamics.layer(step)
            table[step, layer.going] = layer.action[layer.state_ptr[layer.going] + self.local[step, layer.going]]
        return Policy(table)


@dataclass(frozen=True, eq=False)
class Stochastic:
    """A policy that draws its choices at random: ``chances[step][choice]``."""

    dynamics: Dynamics
    chances: list[Vector]

    @classmethod
    def of_table(cls, dynamics: Dynamics, plan: StochasticPolicy) -> Stochastic:
        """Check a table of probabilities, and return it in a form that can be followed."""
        return cls(dynamics, [_chance_of_probabilities(dynamics, step, plan) for step in range(dynamics.horizon)])

    def chance(self, step: int) -> Vector:
        """Return the chance of each choice given its state."""
        return self.chances[step]

    def at(self, step: int, state: int) -> tuple[Int, Vector]:
        """Return the choices that may be taken in a state, and their chances."""
        pointers = self.dynamics.layer(step).state_ptr
        choices = np.arange(pointers[state], pointers[state + 1], dtype=np.int64)
        chances = self.chances[step][choices]
        return choices[chances > 0], chances[chances > 0]

    def options(self, step: int, states: Int) -> tuple[Int, Int, Vector]:
        """Return the choices that may be taken in each state: (row, choice, chance)."""
        pointers = self.dynamics.layer(step).state_ptr
        rows, choices = segments(pointers[states], pointers[states + 1])
        chances = self.chances[step][choices]
        return rows[chances > 0], choices[chances > 0], chances[chances > 0]


Following = Deterministic | Stochastic


def situations(following: Following, occupancy: Matrix, most: int = 5_000) -> tuple[tuple[Situation, ...], bool]:
    """Return what a policy does in the situations it leads to, in order of time, and whether these are all.

    If there are more than ``most``, the likeliest are returned. Each step's are sorted by probability, and each situation
    has its likeliest action.
    """
    dynamics = following.dynamics
    likely = occupancy[:-1].copy()
    likely[:, dynamics.layers[0].ends] = 0.0
    reached = np.flatnonzero(likely)
    complete = len(reached) <= most
    if not complete:
        values = likely.ravel()[reached]
        border = np.partition(values, -most)[-most]
        above, tied = np.flatnonzero(values > border), np.flatnonzero(values == border)
        reached = reached[np.concatenate([above, tied[: most - len(above)]])]
    steps, states = np.divmod(reached, likely.shape[1])
    names = {state: dynamics.states[state] for state in np.unique(states).tolist()}  # a name may be made on demand
    found: list[Situation] = []
    for step in np.unique(steps).tolist():
        here = states[steps == step]
        here = here[np.argsort(-likely[step, here], kind="stable")]
        layer = dynamics.layer(step)
        rows, choices, chances = following.options(step, here)
        order = np.lexsort((-chances, rows))
        first = order[np.flatnonzero(np.diff(rows[order], prepend=-1))]
        taken = here[rows[first]]
        free = np.diff(layer.state_ptr)[taken] > 1
        columns = (
            [names[state] for state in taken.tolist()],
            [dynamics.actions[action] for action in layer.action[choices[first]].tolist()],
            likely[step, taken].tolist(),
            free.tolist(),
        )
        found.extend(Situation(step, *row) for row in zip(*columns, strict=True))
    return tuple(found), complete


def _local_choices(dynamics: Dynamics, step: int, plan: Policy) -> Int:
    """Return the local number of the action taken in each state, 0 at an end."""
    layer = dynamics.layer(step)
    chosen = plan.actions[step]
    taken = np.flatnonzero(layer.action == chosen[layer.state_of_choice])
    found = np.bincount(layer.state_of_choice[taken], minlength=layer.states)
    wrong = np.flatnonzero((found != 1) & ~layer.ends)
    if len(wrong):
        state, action, names = wrong[0], chosen[wrong[0]], dynamics.actions
        named = repr(names[action]) if 0 <= action < len(names) else f"number {action}"
        able = [names[a] for a in layer.action[layer.state_ptr[state] : layer.state_ptr[state + 1]]]
        raise ArgumentError(
            f"the policy takes action {named} in state {dynamics.states[state]!r} at step {step}, "
            f"which is not available there; its actions are {', '.join(map(repr, able))}"
        )
    return _local(layer, taken)


def _local(layer: Layer, choices: Int) -> Int:
    """Return the local number of these choices for their states, 0 for all others."""
    local = np.zeros(layer.states, dtype=np.int64)
    states = layer.state_of_choice[choices]
    local[states] = choices - layer.state_ptr[states]
    return local


def _chance_of_probabilities(dynamics: Dynamics, step: int, plan: StochasticPolicy) -> Vector:
    layer = dynamics.layer(step)
    table = plan.probabilities[step]
    chance: Vector = np.ascontiguousarray(table[layer.state_of_choice, layer.action])
    total = np.bincount(layer.state_of_choice, weights=chance, minlength=layer.states)
    everything = table.sum(axis=1)
    fine = (
        (table.min(axis=1) >= 0)
        & (np.abs(total - everything) <= 1e-9)
        & (layer.ends | (np.abs(total - 1) <= 1e-9))
        & np.isfinite(everything)
    )
    wrong = np.flatnonzero(~fine)
    if len(wrong):
        state = wrong[0]
        raise ArgumentError(
            f"the action probabilities of state {dynamics.states[state]!r} at step {step} are {table[state].tolist()}: "
            "they must not be negative, must be 0 for unavailable actions and for ends, and must sum to 1 otherwise"
        )
    # Sums are checked to nine digits only; from here on, probabilities sum to 1 exactly.
    divide = np.where(np.abs(total - 1) > 1e-12, total, 1.0)
    return chance / np.where(divide > 0, divide, 1.0)[layer.state_of_choice]
