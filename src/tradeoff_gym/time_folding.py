"""Remove a step counter from the state where it only determines when the episode ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tradeoff.model import Vector
from tradeoff_gym.environment_state import frozen, is_number
from tradeoff_gym.exploration import StateSpace


def fold_time(space: StateSpace) -> StateSpace:
    """Return the states without an attribute that only counts steps; return them unchanged if there is none.

    ``steps`` of the result is the number of steps after which the counter ends the episode.
    """
    for position in range(len(space.known)):
        folded = _folded(space, position)
        if folded is not None:
            return folded
    return space


def _folded(space: StateSpace, position: int) -> StateSpace | None:
    clock = _times(space, position)
    if clock is None:
        return None
    last = clock[space.source].max()
    by_the_clock = bool(np.all(np.array(space.ended)[space.target[clock[space.source] == last]]))
    rest = [
        key if ended else (*key[:position], *key[position + 1 :])
        for key, ended in zip(space.identities, space.ended, strict=True)
    ]
    leader: dict[Any, int] = {}  # the first of the states that differ only in time
    for state in dict.fromkeys(space.source.tolist()):
        model = leader.setdefault(rest[state], state)
        ends_now = by_the_clock and clock[state] == last  # then only rewards and observations must agree
        if _behaviour(space, state, rest, ends_now) != _behaviour(space, model, rest, ends_now):
            return None
    for state, key in enumerate(rest):
        leader.setdefault(key, state)
    folded = _only(space, [leader[key] for key in rest])
    folded.known = space.known[:position] + space.known[position + 1 :]
    folded.identities = [
        key if ended else (*key[:position], *key[position + 1 :])
        for key, ended in zip(folded.identities, folded.ended, strict=True)
    ]
    folded.steps = int(last - clock[next(iter(space.start))]) + 1 if by_the_clock else None
    return folded


def _times(space: StateSpace, position: int) -> Vector | None:
    """Return the time in each state, or None if this attribute does not increase by one with every step."""
    if not is_number(space.identities[0][position]):
        return None
    values = [0 if ended else key[position] for key, ended in zip(space.identities, space.ended, strict=True)]
    if not all(map(is_number, values)):
        return None
    clock = np.array(values, dtype=float)
    goes_on = ~np.array(space.ended)[space.target]
    ticks = np.array_equal(clock[space.target[goes_on]], clock[space.source[goes_on]] + 1)
    return clock if ticks and len({clock[state] for state in space.start}) == 1 else None


def _behaviour(space: StateSpace, state: int, rest: list[Any], ends_now: bool) -> dict[Any, float]:
    """Return the probability of everything that can happen in a state, ignoring the next state if the episode ends now."""
    total: dict[Any, float] = {}
    at = space.branches(state)
    for action, target, reward, chance in zip(
        space.action[at].tolist(),
        space.target[at].tolist(),
        space.rewards[at].tolist(),
        space.probability[at],
        strict=True,
    ):
        leads_to = () if ends_now else (space.ended[target], rest[target])
        what = (action, tuple(reward), frozen(space.observations[target]), leads_to)
        total[what] = total.get(what, 0.0) + float(chance)
    return {what: round(chance, 12) for what, chance in total.items()}


def _only(space: StateSpace, leader: list[int]) -> StateSpace:
    """Return only the leaders (``leader[state]``), with branches to other states redirected to their leaders."""
    leaders = np.array(leader)
    rows = leaders[space.source] == space.source
    source, target = space.source[rows], leaders[space.target[rows]]
    kept = np.unique(np.concatenate([source, target, leaders[list(space.start)]]))
    start: dict[int, float] = {}
    for state, chance in space.start.items():
        number = int(np.searchsorted(kept, leader[state]))
        start[number] = start.get(number, 0.0) + chance
    return replace(
        space,
        observations=[space.observations[i] for i in kept],
        ended=[space.ended[i] for i in kept],
        saved=[space.saved[i] for i in kept],
        identities=[space.identities[i] for i in kept],
        start=start,
        source=np.searchsorted(kept, source),
        target=np.searchsorted(kept, target),
        action=space.action[rows],
        probability=space.probability[rows],
        rewards=space.rewards[rows],
    )
