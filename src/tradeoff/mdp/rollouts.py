"""Sampled trajectories of a policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tradeoff.errors import ArgumentError
from tradeoff.mdp.dynamics import Dynamics
from tradeoff.mdp.policies import Following
from tradeoff.mdp.solver import Solver
from tradeoff.memory import check_fits
from tradeoff.model import Indices, Matrix, Mixture, Plan


@dataclass(frozen=True, eq=False)
class Rollouts:
    """Sampled trajectories: ``states[n, H+1]``, ``actions[n, H]`` (-1 at an end), ``outcomes[n, k]`` in units."""

    states: Indices
    actions: Indices
    outcomes: Matrix


def roll(
    dynamics: Dynamics,
    solver: Solver,
    follow: Callable[[Plan], Following],
    plan: Plan,
    random: np.random.Generator,
    n: int,
) -> Rollouts:
    """Return ``n`` independent trajectories of a plan; a mixture draws one of its parts for each trajectory."""
    if n < 0:
        raise ArgumentError(f"the number of rollouts is {n}; it must be 0 or more")
    horizon, k = dynamics.horizon, dynamics.objectives
    check_fits(n * (16 * horizon + 8 * k + 64), f"{n:,} rollouts of {horizon} steps")
    states = np.empty((n, horizon + 1), dtype=np.int64)
    actions = np.full((n, horizon), -1, dtype=np.int64)
    outcomes = np.zeros((n, k))
    if isinstance(plan, Mixture):
        part = random.choice(len(plan.plans), size=n, p=np.array(plan.probabilities))
        for i, one in enumerate(plan.plans):
            at = part == i
            if at.any():
                drawn = roll(dynamics, solver, follow, one, random, int(at.sum()))
                states[at], actions[at], outcomes[at] = drawn.states, drawn.actions, drawn.outcomes
        return Rollouts(states, actions, outcomes)
    following = follow(plan)
    states[:, 0] = random.choice(len(dynamics.states), size=n, p=dynamics.start)
    for step in range(horizon):
        layer, now = dynamics.layer(step), np.ascontiguousarray(states[:, step])
        draws = random.random(n), random.random(n)
        choice, branch, states[:, step + 1] = solver.sample_step(layer, following.chance(step), now, *draws)
        moved = choice >= 0
        actions[moved, step] = layer.action[choice[moved]]
        earned = layer.reward[choice[moved]] if layer.branch_reward is None else layer.branch_reward[branch[moved]]
        outcomes[moved] += earned
    return Rollouts(states, actions, outcomes)
