"""Random problems for the laws, and slow, obvious ways to solve them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from tradeoff import MDP, Objective


@dataclass(frozen=True)
class Arrays:
    """A random MDP as dense arrays [H, S, A, S] and [H, S, A, S, k], with its options."""

    transitions: np.ndarray
    rewards: np.ndarray
    start: np.ndarray
    objectives: tuple[Objective, ...]

    @property
    def horizon(self) -> int:
        return len(self.transitions)

    def mdp(self, **options: Any) -> MDP:
        return MDP.from_arrays(
            self.transitions, self.rewards, start=self.start, objectives=self.objectives,
            rewards_on="step and next", prune=False, **options,
        )  # fmt: skip

    def expected_rewards(self) -> np.ndarray:
        return np.einsum("hsat,hsatk->hsak", self.transitions, self.rewards)


def random_arrays(
    rng: np.random.Generator,
    *,
    states: int,
    actions: int,
    objectives: int,
    horizon: int,
    integers: bool = False,
    stationary: bool = True,
    goals: bool = True,
) -> Arrays:
    """Return a random MDP with unavailable actions, ends, absorbing states, zero rewards and (with integers) ties."""
    layers = 1 if stationary else horizon
    transitions = np.zeros((layers, states, actions, states))
    for h, s, a in np.ndindex(layers, states, actions):
        support = rng.choice(states, size=rng.integers(1, min(3, states) + 1), replace=False)
        if integers:
            share = rng.integers(1, 4, size=len(support)).astype(float)
            transitions[h, s, a, support] = share / share.sum()
        else:
            transitions[h, s, a, support] = rng.dirichlet(np.ones(len(support)))
    rewards = rng.integers(-2, 3, size=(layers, states, actions, states, objectives)).astype(float)
    if not integers:
        rewards += rng.normal(size=rewards.shape)
    if rng.random() < 0.5:  # rewards on (state, action) only
        rewards[:] = rewards[:, :, :, :1]
    available = rng.random((states, actions)) < 0.8
    available[np.arange(states), rng.integers(0, actions, states)] = True
    transitions[:, ~available] = 0
    if states > 1 and rng.random() < 0.5:  # an end
        transitions[:, rng.integers(1, states)] = 0
    if rng.random() < 0.3:  # an absorbing state
        s = rng.integers(0, states)
        for a in range(actions):
            if transitions[0, s, a].any():
                transitions[:, s, a] = np.eye(states)[s]
    if rng.random() < 0.2:  # an objective that never changes
        rewards[..., rng.integers(0, objectives)] = 0
    start = np.eye(states)[0]
    if rng.random() < 0.3:
        start = rng.dirichlet(np.ones(states)) if not integers else np.full(states, 1 / states)
    named = tuple(Objective(f"o{j}", "u", "min" if goals and rng.random() < 0.4 else "max") for j in range(objectives))
    full = (horizon, states, actions, states)
    return Arrays(
        np.broadcast_to(transitions, full).copy(),
        np.broadcast_to(rewards, (*full, objectives)).copy(),
        start,
        named,
    )


SMALL = [(1, 3, 4), (2, 2, 4), (2, 3, 3), (2, 4, 2), (3, 2, 3), (3, 3, 2), (4, 2, 2), (4, 3, 1), (3, 5, 1), (1, 5, 3)]


@st.composite
def small_arrays(draw: st.DrawFn) -> Arrays:
    """Draw an MDP with few enough policies to try them all: k = 1..5, H = 1..4."""
    states, actions, horizon = draw(st.sampled_from(SMALL))
    return random_arrays(
        np.random.default_rng(draw(st.integers(0, 2**32 - 1))),
        states=states,
        actions=actions,
        objectives=draw(st.integers(1, 5)),
        horizon=horizon,
        integers=draw(st.booleans()),
        stationary=draw(st.booleans()),
    )


def all_policies(arrays: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """Return every deterministic time-dependent policy [n, H, S] and its outcome [n, k], by trying them all."""
    horizon, states, actions, _ = arrays.transitions.shape
    able = [
        [a for a in range(actions) if arrays.transitions[h, s, a].any()] or [0]
        for h in range(horizon)
        for s in range(states)
    ]
    policies = np.array(list(itertools.product(*able))).reshape(-1, horizon, states)
    expected = arrays.expected_rewards()
    values = np.zeros((len(policies), states, expected.shape[-1]))
    for h in reversed(range(horizon)):
        chosen = policies[:, h]
        moves = arrays.transitions[h][np.arange(states), chosen]
        values = expected[h][np.arange(states), chosen] + moves @ values
    return policies, np.einsum("s,nsk->nk", arrays.start, values)


def lp_optimum(mdp: MDP, raw_weights: np.ndarray) -> float:
    """Return the largest expected weighted outcome, by a linear program over occupancy measures."""
    offsets = np.cumsum([0] + [len(mdp.layer(h).action) for h in range(mdp.horizon)])
    states, ends = len(mdp.states), mdp.layers[0].ends
    rows, cols, data, cost = [], [], [], []
    for h in range(mdp.horizon):
        layer = mdp.layer(h)
        choices = np.arange(len(layer.action))
        rows.append(h * states + layer.state_of_choice)
        cols.append(offsets[h] + choices)
        data.append(np.ones(len(choices)))
        cost.append(-layer.reward @ raw_weights)
        if h + 1 < mdp.horizon:
            choice = np.repeat(choices, np.diff(layer.choice_ptr))
            rows.append((h + 1) * states + layer.target)
            cols.append(offsets[h] + choice)
            data.append(-layer.prob)
    matrix = sparse.coo_array(
        (np.concatenate(data), (np.concatenate(rows), np.concatenate(cols))),
        shape=(mdp.horizon * states, offsets[-1]),
    ).tocsr()
    right = np.zeros(mdp.horizon * states)
    right[:states] = mdp.start
    going = np.tile(~ends, mdp.horizon)
    found = linprog(np.concatenate(cost), A_eq=matrix[going], b_eq=right[going], bounds=(0, None), method="highs")
    assert found.status == 0
    return -float(found.fun)
