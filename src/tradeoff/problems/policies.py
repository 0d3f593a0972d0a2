"""Policies in every accepted form, as the chance of each choice at each step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tradeoff.errors import ArgumentError
from tradeoff.model import Item, Mixture, Nothing, OptimalPolicy, Plan, Policy, StochasticPolicy, Vector
from tradeoff.problems import solving

if TYPE_CHECKING:
    from tradeoff.problems.layer import Layer
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


def chances(mdp: MDP, plan: Plan, *, backwards: bool = False) -> Iterator[tuple[int, Vector]]:
    """Yield (step, chance of each choice given its state) for one policy, forwards or backwards."""
    order = range(mdp.horizon)[::-1] if backwards else range(mdp.horizon)
    match plan:
        case OptimalPolicy():
            table = solving.optimal_choices(mdp, plan.weights[None, :])[0]
            for step in order:
                yield step, _chance_of_choices(mdp.layer(step), table[step])
        case Policy():
            for step in order:
                yield step, _chance_of_actions(mdp, step, plan)
        case StochasticPolicy():
            for step in order:
                yield step, _chance_of_probabilities(mdp, step, plan)
        case Nothing() if mdp.nothing_is_reference:
            for step in order:
                yield step, _chance_of_nothing(mdp, step)
        case Nothing():
            raise ArgumentError(
                f"{mdp.reference.name!r} is a hypothetical outcome that no policy leads to; "
                "it can be compared with, but not followed"
            )
        case _:
            raise ArgumentError(f"{type(plan).__name__} is not a single policy")


def _chance_of_choices(layer: Layer, local: np.ndarray) -> Vector:
    """Return chance 1 for the locally numbered choice of each state."""
    chance = np.zeros(len(layer.action))
    going = np.flatnonzero(~layer.ends)
    chance[layer.state_ptr[going] + local[going]] = 1.0
    return chance


def _chance_of_actions(mdp: MDP, step: int, plan: Policy) -> Vector:
    layer = mdp.layer(step)
    chosen = plan.actions[step]
    chance = (layer.action == chosen[layer.state_of_choice]).astype(float)
    found = np.bincount(layer.state_of_choice, weights=chance, minlength=layer.states)
    wrong = np.flatnonzero((found != 1) & ~layer.ends)
    if len(wrong):
        state, action = wrong[0], chosen[wrong[0]]
        named = repr(mdp.actions[action]) if 0 <= action < len(mdp.actions) else f"number {action}"
        able = [mdp.actions[a] for a in layer.action[layer.state_ptr[state] : layer.state_ptr[state + 1]]]
        raise ArgumentError(
            f"the policy takes action {named} in state {mdp.states[state]!r} at step {step}, "
            f"which is not available there; available are {', '.join(map(repr, able))}"
        )
    return chance


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


def _chance_of_nothing(mdp: MDP, step: int) -> Vector:
    """Return the do-nothing action where there is one, and the first choice where it does not matter."""
    layer = mdp.layer(step)
    local = np.zeros(layer.states, dtype=np.int64)
    at = np.flatnonzero(layer.action == mdp.nothing_action)
    states = layer.state_of_choice[at]
    local[states] = at - layer.state_ptr[states]
    return _chance_of_choices(layer, local)


def to_actions(mdp: MDP, local: np.ndarray) -> Policy:
    """Return a table of locally numbered choices [H, S] as a policy of action numbers."""
    actions = np.full(local.shape, -1, dtype=np.int32)
    for step in range(mdp.horizon):
        layer = mdp.layer(step)
        going = np.flatnonzero(~layer.ends)
        actions[step, going] = layer.action[layer.state_ptr[going] + local[step, going]]
    return Policy(actions)
