"""Names for the states, actions and rewards of the environments of gymnasium and mo-gymnasium."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tradeoff.model import Objective
from tradeoff_gym.environment_state import Digest, frozen
from tradeoff_gym.exploration import StateSpace

Place = tuple[float, float]
Described = tuple[str, Place | None]  # the name of a state, and its map coordinates

LONGEST_VECTOR = 8  # states whose observations have more numbers are named by number


@dataclass(frozen=True)
class Vocabulary:
    """Names for the parts of an environment; ``describe(env, observation)`` names a state."""

    describe: Callable[[Any, Any], Described]
    actions: Sequence[str] = ()
    objectives: Sequence[Objective] = ()


def vocabulary_of(env: Any) -> Vocabulary:
    """Return the vocabulary of an (unwrapped) environment."""
    kind = type(env)
    if kind.__module__.startswith(("gymnasium.", "mo_gymnasium.")) and kind.__name__ in VOCABULARIES:
        return VOCABULARIES[kind.__name__]
    meanings = getattr(env, "get_action_meanings", None)
    return Vocabulary(_describe_plainly, [str(name) for name in meanings()] if callable(meanings) else ())


def name_states(env: Any, words: Vocabulary, space: StateSpace) -> tuple[tuple[str, ...], dict[str, Place], list[str]]:
    """Return a unique name for each state, the locations of states, and notes about them."""
    described = [words.describe(env, observation) for observation in space.observations]
    names = [name or f"state {i}" for i, (name, _) in enumerate(described)]
    going = {name for name, ended in zip(names, space.ended, strict=True) if not ended}
    names = [
        f"{name} (end)" if ended and name in going else name for name, ended in zip(names, space.ended, strict=True)
    ]
    alike: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        alike.setdefault(name, []).append(i)
    hidden = 0
    for group in alike.values():
        if len(group) > 1:
            seen = Counter(frozen(space.observations[i]) for i in group if not space.ended[i])
            hidden += sum(count for count in seen.values() if count > 1)
            for i, more in zip(group, _differences(space, group), strict=True):
                names[i] += more
    if len(set(names)) < len(names):
        names = [f"{name}, state {i}" for i, name in enumerate(names)]
    places = {name: place for name, (_, place) in zip(names, described, strict=True) if place is not None}
    notes = [
        f"{hidden} states have the same observation as another state; the model tells them apart, so a plan may use "
        "more than an observer can see"
    ]
    return tuple(names), places, notes if hidden else []


def _differences(space: StateSpace, group: Sequence[int]) -> list[str]:
    """Return the attributes in which states that look alike differ."""
    if not space.known or space.ended[group[0]]:
        return [f", state {i}" for i in group]
    differing = [
        position
        for position in range(len(space.known))
        if len({frozen(space.identities[i][position]) for i in group}) > 1
    ]
    return [
        "".join(
            f", {space.known[p].strip('_').replace('_', ' ')} {space.saved[i].get(space.known[p])}" for p in differing
        )
        for i in group
    ]


def _describe_plainly(env: Any, observation: Any) -> Described:
    return plain_words(observation), None


def plain_words(observation: Any) -> str:
    """Return an observation as readable text; "" if it is too long.

    >>> plain_words(5), plain_words(np.array([1, 2])), plain_words({"bottles_left": 2})
    ('state 5', '(1, 2)', 'bottles left 2')
    """
    if isinstance(observation, int | float | str | np.generic):
        return observation if isinstance(observation, str) else f"state {observation}"
    if isinstance(observation, Mapping):
        parts = [(str(key).replace("_", " "), _short(part)) for key, part in observation.items()]
        return ", ".join(f"{key} {part}" for key, part in parts) if all(part for _, part in parts) else ""
    return _short(observation)


def _short(part: Any) -> str:
    if isinstance(part, Digest):
        return ""
    if isinstance(part, tuple | list | np.ndarray):
        numbers = np.asarray(part, dtype=object).ravel().tolist() if isinstance(part, np.ndarray) else list(part)
        texts = [_short(number) for number in numbers]
        return f"({', '.join(texts)})" if len(texts) <= LONGEST_VECTOR and all(texts) else ""
    return str(part)


def _cell(row: Any, column: Any) -> tuple[str, Place]:
    return f"row {int(row)}, column {int(column)}", (float(column), -float(row))


def _deep_sea(env: Any, observation: Any) -> Described:
    row, column = np.round(np.asarray(observation) * (10 if env.float_state else 1))
    return _cell(row, column)


def _resource(env: Any, observation: Any) -> Described:
    name, place = _cell(*observation[:2])
    return name + ", with gold" * bool(observation[2]) + ", with diamond" * bool(observation[3]), place


def _bottles(env: Any, observation: Any) -> Described:
    lying = [str(i) for i, count in enumerate(observation["bottles_dropped"], start=1) if count]
    carrying, delivered = observation["bottles_carrying"], observation["bottles_delivered"]
    name = f"place {observation['location']}, carrying {carrying}, delivered {delivered}"
    return name + (f", dropped at {', '.join(lying)}" if lying else ""), (float(observation["location"]), 0.0)


def _fish(env: Any, observation: Any) -> Described:
    return ("fishing" if int(np.asarray(observation).ravel()[0]) == 0 else "in the woods"), None


def _fruit(env: Any, observation: Any) -> Described:
    level, branch = (int(number) for number in observation)
    what = "fruit" if level == env.tree_depth else f"level {level}, branch"
    return (f"{what} {branch}" if level else "the root"), ((branch + 0.5) / 2**level, -level / (env.tree_depth + 1))


def _four_room(env: Any, observation: Any) -> Described:
    name, place = _cell(*observation[:2])
    collected = [str(i) for i, flag in enumerate(observation[2:], start=1) if flag]
    return name + (f", collected {', '.join(collected)}" if collected else ""), place


def _lake(env: Any, observation: Any) -> Described:
    return _cell(*divmod(int(observation), env.ncol))


def _cliff(env: Any, observation: Any) -> Described:
    return _cell(*divmod(int(observation), env.shape[1]))


def _taxi(env: Any, observation: Any) -> Described:
    row, column, passenger, goal = env.decode(int(observation))
    name, place = _cell(row, column)
    stops = ("red", "green", "yellow", "blue", "")
    where = "in the taxi" if passenger == 4 else f"at {stops[passenger]}"
    return f"{name}, passenger {where}, to {stops[goal]}", place


def _cards(env: Any, observation: Any) -> Described:
    total, dealer, ace = (int(number) for number in observation)
    return f"sum {total}" + " with a usable ace" * bool(ace) + f", dealer shows {dealer}", None


_CLOCK = Objective("time", "steps", "min")
VOCABULARIES = {
    "DeepSeaTreasure": Vocabulary(_deep_sea, ("up", "down", "left", "right"), (Objective("treasure"), _CLOCK)),
    "ResourceGathering": Vocabulary(
        _resource,
        ("up", "down", "left", "right"),
        (Objective("killed", goal="min"), Objective("gold"), Objective("diamond")),
    ),
    "BreakableBottles": Vocabulary(
        _bottles, ("left", "right", "pick up"), (_CLOCK, Objective("bottle reward"), Objective("tidiness"))
    ),
    "FishWood": Vocabulary(_fish, ("go fishing", "go for wood"), (Objective("fish"), Objective("wood"))),
    "FruitTreeEnv": Vocabulary(
        _fruit,
        ("left", "right"),
        tuple(Objective(name) for name in ("protein", "carbs", "fats", "vitamins", "minerals", "water")),
    ),
    "FourRoom": Vocabulary(
        _four_room,
        ("left", "up", "right", "down"),
        tuple(Objective(name) for name in ("blue squares", "green triangles", "red circles")),
    ),
    "FrozenLakeEnv": Vocabulary(_lake, ("left", "down", "right", "up")),
    "CliffWalkingEnv": Vocabulary(_cliff, ("up", "right", "down", "left")),
    "TaxiEnv": Vocabulary(_taxi, ("south", "north", "east", "west", "pick up", "drop off")),
    "BlackjackEnv": Vocabulary(_cards, ("stick", "hit")),
}
