"""Policies in every accepted form, as the chance of each choice at each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tradeoff.errors import ArgumentError
from tradeoff.model import Item, Mixture, Nothing, OptimalPolicy, Plan, Policy, StochasticPolicy, Vector
from tradeoff.problems import solving
from tradeoff.representation.outcomes import segments

if TYPE_CHECKING:
    from tradeoff.problems.layer import Int, Layer
    from tradeoff.problems.mdp import MDP


def as_plan(mdp: MDP, policy: object) -> Plan:
    """Return the policy as a plan, with arrays checked against the model."""
    match policy:
        case Nothing() | OptimalPolicy():
            return policy
        case Mixture():
            return Mixture(policy.probabilities, tuple(as_plan(mdp, part) for part in policy.plans))
        case Policy() | StochasticPolicy():
            _check_shape(mdp, policy)
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
            _check_shape(mdp, plan)
            return plan


def _check_shape(mdp: MDP, plan: Policy | StochasticPolicy) -> None:
    expected: tuple[int, ...] = (mdp.horizon, len(mdp.states))
    found = plan.actions.shape if isinstance(plan, Policy) else plan.probabilities.shape
    if isinstance(plan, StochasticPolicy):
        expected = (*expected, len(mdp.actions))
    if found != expected:
        meaning = "[steps, states]" if isinstance(plan, Policy) else "[steps, states, actions]"
        raise ArgumentError(
            f"the policy has shape {found}, but {meaning} is {expected} here; "
            "states that cannot be reached were left out of the model, see its `states`"
        )


def follow(mdp: MDP, plan: Plan) -> Deterministic | Stochastic:
    """Return a single policy, checked and ready to be followed."""
    match plan:
        case OptimalPolicy():
            return Deterministic(mdp, solving.optimal_choices(mdp, plan.weights[None, :])[0])
        case Policy():
            return Deterministic(mdp, np.stack([_local_choices(mdp, step, plan) for step in range(mdp.horizon)]))
        case StochasticPolicy():
            return Stochastic(mdp, [_chance_of_probabilities(mdp, step, plan) for step in range(mdp.horizon)])
        case Nothing() if mdp.nothing_is_reference:
            return Deterministic(mdp, np.stack([_nothing_choices(mdp, step) for step in range(mdp.horizon)]))
        case Nothing():
            raise ArgumentError(
                f"{mdp.reference.name!r} is a hypothetical outcome that no policy leads to; "
                "it can be compared with, but not followed"
            )
        case _:
            raise ArgumentError(f"{type(plan).__name__} is not a single policy")


@dataclass(frozen=True, eq=False)
class Deterministic:
    """A policy that takes one choice in each state: ``local[step, state]`` is its number among the state's choices."""

    mdp: MDP
    local: np.ndarray

    def chance(self, step: int) -> Vector:
        """Return the chance of each choice given its state: 0 or 1."""
        layer = self.mdp.layer(step)
        chance = np.zeros(len(layer.action))
        going = layer.going
        chance[layer.state_ptr[going] + self.local[step][going]] = 1.0
        return chance

    def at(self, step: int, state: int) -> tuple[Int, Vector]:
        """Return the choice taken in a state, with chance 1; nothing at an end."""
        pointers = self.mdp.layer(step).state_ptr
        taken = int(pointers[state] != pointers[state + 1])
        return np.array([int(pointers[state]) + int(self.local[step, state])] * taken, dtype=np.int64), np.ones(taken)

    def options(self, step: int, states: Int) -> tuple[Int, Int, Vector]:
        """Return the choice of each state that is not an end: (row, choice, 1)."""
        pointers = self.mdp.layer(step).state_ptr
        rows = np.flatnonzero(pointers[states] != pointers[states + 1])
        going = states[rows]
        return rows, pointers[going].astype(np.int64) + self.local[step, going].astype(np.int64), np.ones(len(rows))

    def actions(self) -> Policy:
        """Return the policy as a table of action numbers."""
        table = np.full(self.local.shape, -1, dtype=np.int32)
        for step in range(self.mdp.horizon):
            layer = self.mdp.layer(step)
            table[step, layer.going] = layer.action[layer.state_ptr[layer.going] + self.local[step, layer.going]]
        return Policy(table)


@dataclass(frozen=True, eq=False)
class Stochastic:
    """A policy that draws its choices: ``chances[step][choice]``."""

    mdp: MDP
    chances: list[Vector]

    def chance(self, step: int) -> Vector:
        """Return the chance of each choice given its state."""
        return self.chances[step]

    def at(self, step: int, state: int) -> tuple[Int, Vector]:
        """Return the choices that may be taken in a state, and their chances."""
        pointers = self.mdp.layer(step).state_ptr
        choices = np.arange(pointers[state], pointers[state + 1], dtype=np.int64)
        chances = self.chances[step][choices]
        return choices[chances > 0], chances[chances > 0]

    def options(self, step: int, states: Int) -> tuple[Int, Int, Vector]:
        """Return the choices that may be taken in each state: (row, choice, chance)."""
        pointers = self.mdp.layer(step).state_ptr
        rows, choices = segments(pointers[states], pointers[states + 1])
        chances = self.chances[step][choices]
        return rows[chances > 0], choices[chances > 0], chances[chances > 0]


def _local_choices(mdp: MDP, step: int, plan: Policy) -> Int:
    """Return the local number of the action taken in each state, 0 at an end."""
    layer = mdp.layer(step)
    chosen = plan.actions[step]
    taken = np.flatnonzero(layer.action == chosen[layer.state_of_choice])
    found = np.bincount(layer.state_of_choice[taken], minlength=layer.states)
    wrong = np.flatnonzero((found != 1) & ~layer.ends)
    if len(wrong):
        state, action = wrong[0], chosen[wrong[0]]
        named = repr(mdp.actions[action]) if 0 <= action < len(mdp.actions) else f"number {action}"
        able = [mdp.actions[a] for a in layer.action[layer.state_ptr[state] : layer.state_ptr[state + 1]]]
        raise ArgumentError(
            f"the policy takes action {named} in state {mdp.states[state]!r} at step {step}, "
            f"which is not available there; available are {', '.join(map(repr, able))}"
        )
    return _local(layer, taken)


def _local(layer: Layer, choices: Int) -> Int:
    """Return the local number of these choices for their states, 0 for all others."""
    local = np.zeros(layer.states, dtype=np.int64)
    states = layer.state_of_choice[choices]
    local[states] = choices - layer.state_ptr[states]
    return local


def _chance_of_probabilities(mdp: MDP, step: int, plan: StochasticPolicy) -> Vector:
    layer = mdp.layer(step)
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
            f"the action probabilities of state {mdp.states[state]!r} at step {step} are {table[state].tolist()}: they "
            "must not be negative, must be 0 for unavailable actions and for ends, and must sum to 1 otherwise"
        )
    # Nine digits are accepted, but what is computed from here on sums to 1 exactly.
    divide = np.where(np.abs(total - 1) > 1e-12, total, 1.0)
    return chance / np.where(divide > 0, divide, 1.0)[layer.state_of_choice]


def _nothing_choices(mdp: MDP, step: int) -> Int:
    """Return the do-nothing action where there is one, and the first choice where it does not matter."""
    layer = mdp.layer(step)
    return _local(layer, np.flatnonzero(layer.action == mdp.nothing_action))
