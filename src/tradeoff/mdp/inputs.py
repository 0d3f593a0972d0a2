"""Check the names, start and map coordinates of a Markov decision process, and remove unreachable states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tradeoff.errors import ProblemError
from tradeoff.mdp.dynamics import Dynamics
from tradeoff.mdp.layer import (
    SINGLE_TOLERANCE,
    SUM_TOLERANCE,
    Int,
    Layer,
    Where,
    build_layer,
    keep_states,
    reachable,
)
from tradeoff.memory import check_fits
from tradeoff.model import Vector
from tradeoff.problem import check_distinct


class Numbered(Sequence[str]):
    """Names that are just numbers, created on demand, so that a million states do not need a million strings."""

    def __init__(self, numbers: Int) -> None:
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return Numbered(self.numbers[position])
        return str(self.numbers[position])

    def __iter__(self) -> Iterator[str]:
        return (str(number) for number in self.numbers)


def names_from(what: str, names: Sequence[str] | None, count: int) -> Sequence[str]:
    """Return ``count`` distinct names: those given, or the numbers from 0."""
    if names is None:
        return Numbered(np.arange(count))
    found = tuple(str(name) for name in names)
    if len(found) != count:
        raise ProblemError(f"{len(found)} {what} names are given for {count} {what}s; name each {what} once")
    check_distinct(what, found)
    return found


def where_in(states: Sequence[str], actions: Sequence[str], step: int | None = None) -> Where:
    """Return a function that describes a (state, action) pair in messages."""
    at = "" if step is None else f" at step {step}"
    return lambda state, action: f"state {states[state]!r}, action {actions[action]!r}{at}"


def start_from(start: object, states: Sequence[str]) -> Vector:
    """Return the start distribution [S], given as a state (number or name), a mapping from names, or a vector."""
    chances = np.zeros(len(states))
    if isinstance(start, bool) or start is None:
        raise ProblemError(f"the start is {start!r}; give a state, or a probability for each start state")
    if isinstance(start, int | np.integer):
        if not 0 <= start < len(states):
            raise ProblemError(f"the start state {start} does not exist; there are {len(states)} states, from 0")
        chances[start] = 1.0
    elif isinstance(start, str):
        chances[index_of("start state", start, states)] = 1.0
    elif isinstance(start, Mapping):
        numbers = {name: i for i, name in enumerate(states)}
        for name, chance in start.items():
            if str(name) not in numbers:
                raise ProblemError(f"the start state {str(name)!r} does not exist; {known_names(states)}")
            chances[numbers[str(name)]] = number_of(chance, f"the probability of start {name!r}")
    else:
        given = array_of(start, "the start distribution")  # type: ignore[arg-type]
        if given.shape != chances.shape:
            raise ProblemError(
                f"a start distribution has one probability for each of the {len(states)} states; "
                f"an array of shape {given.shape} was given"
            )
        chances = given.copy()
    bad = np.flatnonzero(~np.isfinite(chances) | (chances < 0))
    if len(bad):
        raise ProblemError(f"the start probability of state {states[bad[0]]!r} is {chances[bad[0]]}; it must be >= 0")
    tolerance = SINGLE_TOLERANCE if getattr(start, "dtype", None) == np.float32 else SUM_TOLERANCE
    if abs(chances.sum() - 1) > tolerance:
        raise ProblemError(f"the start probabilities sum to {chances.sum():.9g}, not 1; check the start distribution")
    return chances / chances.sum() if abs(chances.sum() - 1) > 1e-12 else chances


def horizon_from(horizon: object) -> int:
    """Return the number of steps after checking it."""
    if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or horizon < 1:
        raise ProblemError(f"the horizon is {horizon!r}; it must be a whole number of steps, at least 1")
    return int(horizon)


def places_from(places: Mapping[str, tuple[float, float]], states: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the map coordinates of states after checking that the states exist."""
    if places:
        known = set(states)
        for state, place in places.items():
            if state not in known:
                raise ProblemError(f"places names the state {state!r}, which does not exist; {known_names(states)}")
            if not np.all(np.isfinite(place)):
                raise ProblemError(f"the place of state {state!r} is {place}; both coordinates must be finite")
    return dict(places)


def index_of(what: str, name: str, names: Sequence[str]) -> int:
    """Return the position of a name, or raise a ProblemError if it is unknown."""
    try:
        return names.index(name)
    except ValueError:
        raise ProblemError(f"the {what} {name!r} does not exist; {known_names(names)}") from None


def known_names(names: Iterable[str]) -> str:
    """Return the first few names as the end of a message."""
    first = [str(name) for _, name in zip(range(8), names, strict=False)]
    return f"known are {', '.join(map(repr, first))}" + (", ..." if len(first) == 8 else "")


def number_of(value: object, what: str) -> float:
    """Return the value as a number, or raise a ProblemError that says ``what`` is not one."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ProblemError(f"{what} is {value!r}, which is not a number") from None


def without_unreachable(dynamics: Dynamics) -> tuple[Dynamics, str]:
    """Return the model without its unreachable states, and a note about them (empty if there are none)."""
    states = dynamics.states
    keep = reachable(dynamics.layers, dynamics.start)
    if keep.all():
        return dynamics, ""
    kept, lost = np.flatnonzero(keep), np.flatnonzero(~keep)
    some = ", ".join(repr(states[int(i)]) for i in lost[:3]) + (", ..." if len(lost) > 3 else "")
    things, were = ("state", "was") if len(lost) == 1 else ("states", "were")
    note = f"{len(lost)} {things} cannot be reached from the start and {were} left out: {some}"
    names: Sequence[str] = tuple(states[int(i)] for i in kept)
    if isinstance(states, Numbered):
        names = Numbered(states.numbers[kept])
    layers = tuple(keep_states(layer, keep) for layer in dynamics.layers)
    return Dynamics(layers, dynamics.horizon, dynamics.start[kept], names, dynamics.actions), note


def array_of(values: ArrayLike, what: str) -> NDArray[np.float64]:
    """Return the values as an array of floats, or raise a ProblemError that says ``what`` is not one."""
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ProblemError(f"{what} must be a full array of numbers: {error}") from None


def check_model_fits(states: int, choices: int, branches: int, objectives: int, horizon: int, layered: bool) -> None:
    """Raise a TooLargeError if a model of (at most) this size would not fit in memory; call it before allocating.

    Building a model takes a few index arrays per branch in addition to what is kept.
    """
    kept = 8 * states + min(choices, branches) * (16 + 8 * objectives) + branches * 12
    steps = horizon if layered else 1
    what = f"a model with {states:,} states and {branches:,} branches" + (
        f" at each of {steps} steps" if layered else ""
    )
    check_fits(steps * kept + 48 * branches, what)


def with_action_at_start(
    dynamics: Dynamics, objectives: Sequence[str], name: str
) -> tuple[list[Layer], tuple[str, ...]]:
    """Return the layers and actions with one more action: available only at the start, no reward, stays there."""
    actions = (*dynamics.actions, name)
    at = np.flatnonzero(dynamics.start > 0)
    added = (at, np.full(len(at), len(dynamics.actions)), np.ones(len(at)), at, np.zeros((len(at), len(objectives))))
    layers = [
        build_layer(
            *(np.concatenate(columns) for columns in zip(layer.branches(), added, strict=True)),
            states=len(dynamics.states), renormalise=False, where=where_in(dynamics.states, actions),
            objective_names=objectives,
        )
        for layer in dynamics.layers
    ]  # fmt: skip
    return layers, actions
