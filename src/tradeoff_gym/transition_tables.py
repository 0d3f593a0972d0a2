"""Read the transition table that some environments have, and find the longest episode of a state space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tradeoff_gym.exploration import StateSpace, reward_row

CHECKED_STEPS = 1_000


def read_transition_table(env: Any, actions: Sequence[Any]) -> StateSpace | None:
    """Return the state space in ``env.P``; None if there is no such table, or the environment does not follow it."""
    table, first = getattr(env, "P", None), getattr(env, "initial_state_distrib", None)
    if table is None or first is None or getattr(env, "fickle_passenger", False):  # that option is not in the table
        return None
    try:
        rows = {
            (int(state), int(action)): [
                (float(p), int(after), reward_row(r), bool(end)) for p, after, r, end in branches
            ]
            for state, choices in table.items()
            for action, branches in choices.items()
        }
        chances = np.asarray(first, dtype=float).ravel()
    except (AttributeError, TypeError, ValueError):
        return None
    if not _keeps_to(env, actions, rows):
        return None
    number: dict[tuple[int, bool], int] = {}
    start = {number.setdefault((int(s), False), len(number)): float(chances[s]) for s in np.flatnonzero(chances)}
    columns: list[tuple[int, int, float, int, tuple[float, ...]]] = []
    todo = list(number)
    for state, ended in todo:
        for position, action in enumerate(actions):
            if ended:
                continue
            for chance, after, reward, end in rows[state, action]:
                if chance > 0:
                    if (after, end) not in number:
                        number[after, end] = len(number)
                        todo.append((after, end))
                    columns.append((number[state, False], position, chance, number[after, end], reward))
    source, action, probability, target, rewards = zip(*columns, strict=True)
    return StateSpace(
        observations=[state for state, _ in number],
        ended=[end for _, end in number],
        saved=[{"s": state, "lastaction": None} for state, _ in number],
        start=start,
        source=np.array(source),
        action=np.array(action),
        probability=np.array(probability),
        target=np.array(target),
        rewards=np.array(rewards),
    )


def _keeps_to(env: Any, actions: Sequence[Any], rows: dict[tuple[int, int], Any]) -> bool:
    """Return whether the environment follows the table over many random steps; it is left as it was."""
    before = dict(vars(env))
    rng = np.random.default_rng(0)
    try:
        state, _ = env.reset(seed=0)
        for _ in range(CHECKED_STEPS):
            action = actions[int(rng.integers(len(actions)))]
            after, reward, terminated, _, _ = env.step(action)
            said = [(s, r, end) for p, s, r, end in rows[int(state), int(action)] if p > 0]
            if (int(after), reward_row(reward), bool(terminated)) not in said:
                return False
            state = env.reset()[0] if terminated else after
        return True
    except (KeyError, TypeError, ValueError):
        return False
    finally:
        vars(env).clear()
        vars(env).update(before)


def longest_episode(space: StateSpace) -> int | None:
    """Return the number of steps of the longest episode, or None if the state space has a cycle."""
    if space.steps is not None:
        return space.steps
    count = len(space.ended)
    arrivals = np.bincount(space.target, minlength=count)
    length = np.zeros(count, dtype=np.int64)
    pointer = np.searchsorted(space.source, np.arange(count + 1))
    ready = np.flatnonzero(arrivals == 0).tolist()
    done = 0
    while ready:
        state = ready.pop()
        done += 1
        for target in space.target[pointer[state] : pointer[state + 1]].tolist():
            length[target] = max(length[target], length[state] + 1)
            arrivals[target] -= 1
            if not arrivals[target]:
                ready.append(target)
    return int(length.max()) if done == count else None
