"""Sampled trajectories of a policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tradeoff.errors import ArgumentError
from tradeoff.kernels import bellman
from tradeoff.model import Indices, Matrix, Mixture, Plan
from tradeoff.problems.memory import check_fits

if TYPE_CHECKING:
    from tradeoff.problems.mdp import MDP


@dataclass(frozen=True, eq=False)
class Rollouts:
    """Sampled trajectories: ``states[n, H+1]``, ``actions[n, H]`` (-1 at an end), ``outcomes[n, k]`` in units."""

    states: Indices
    actions: Indices
    outcomes: Matrix


def roll(mdp: MDP, plan: Plan, random: np.random.Generator, n: int) -> Rollouts:
    """Return ``n`` independent trajectories of a plan; a mixture draws its part once for each."""
    if n < 0:
        raise ArgumentError(f"the number of rollouts is {n}; it must be 0 or more")
    check_fits(n * (16 * mdp.horizon + 8 * len(mdp.objectives) + 64), f"{n:,} rollouts of {mdp.horizon} steps")
    states = np.empty((n, mdp.horizon + 1), dtype=np.int64)
    actions = np.full((n, mdp.horizon), -1, dtype=np.int64)
    outcomes = np.zeros((n, len(mdp.objectives)))
    if isinstance(plan, Mixture):
        part = random.choice(len(plan.plans), size=n, p=np.array(plan.probabilities))
        for i, one in enumerate(plan.plans):
            at = part == i
            if at.any():
                drawn = roll(mdp, one, random, int(at.sum()))
                states[at], actions[at], outcomes[at] = drawn.states, drawn.actions, drawn.outcomes
        return Rollouts(states, actions, outcomes)
    following = mdp.follow(plan)
    states[:, 0] = random.choice(len(mdp.states), size=n, p=mdp.start)
    for step in range(mdp.horizon):
        layer, chance = mdp.layer(step), following.chance(step)
        choice, branch = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        after = np.empty(n, dtype=np.int64)
        bellman.rollout_step(
            *layer.moves, chance, np.ascontiguousarray(states[:, step]), random.random(n), random.random(n),
            choice, branch, after,
        )  # fmt: skip
        moved = choice >= 0
        actions[moved, step] = layer.action[choice[moved]]
        earned = layer.reward[choice[moved]] if layer.branch_reward is None else layer.branch_reward[branch[moved]]
        outcomes[moved] += earned
        states[:, step + 1] = after
    return Rollouts(states, actions, outcomes)
