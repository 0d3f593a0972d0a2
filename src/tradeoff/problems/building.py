"""From what people have (dense arrays, sparse matrices, rows) to the layers of a Markov decision process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tradeoff.errors import ProblemError
from tradeoff.model import Matrix, Vector, check_distinct
from tradeoff.problems.layer import Int, Layer, Where, build_layer, keep_states, reachable
from tradeoff.problems.memory import check_fits


class Numbered(Sequence[str]):
    """Names that are just numbers, made when asked for: a million states need no million strings."""

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
    """Return ``count`` different names: those given, or the numbers from 0."""
    if names is None:
        return Numbered(np.arange(count))
    found = tuple(str(name) for name in names)
    if len(found) != count:
        raise ProblemError(f"{len(found)} {what} names are given for {count} {what}s; name each {what} once")
    check_distinct(what, found)
    return found


def place_of(states: Sequence[str], actions: Sequence[str], step: int | None = None) -> Where:
    """Return a function that says where in the model a (state, action) is."""
    at = "" if step is None else f" at step {step}"
    return lambda state, action: f"state {states[state]!r}, action {actions[action]!r}{at}"


def start_from(start: object, states: Sequence[str]) -> Vector:
    """Return the start distribution [S] of a state (number or name), a mapping from names, or a vector."""
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
        place = {name: i for i, name in enumerate(states)}
        for name, chance in start.items():
            if str(name) not in place:
                raise ProblemError(f"the start state {str(name)!r} does not exist; {_known(states)}")
            chances[place[str(name)]] = number_of(chance, f"the probability of start {name!r}")
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
    if abs(chances.sum() - 1) > 1e-9:
        raise ProblemError(f"the start probabilities sum to {chances.sum():.9g}, not 1; check the start distribution")
    return chances / chances.sum() if abs(chances.sum() - 1) > 1e-12 else chances


def horizon_from(horizon: object) -> int:
    """Return the number of steps, checked."""
    if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or horizon < 1:
        raise ProblemError(f"the horizon is {horizon!r}; it must be a whole number of steps, at least 1")
    return int(horizon)


def places_from(places: Mapping[str, tuple[float, float]], states: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return where states are on a picture, checked to be about states that exist."""
    if places:
        known = set(states)
        for state, place in places.items():
            if state not in known:
                raise ProblemError(f"a place is given for state {state!r}, which does not exist; {_known(states)}")
            if not np.all(np.isfinite(place)):
                raise ProblemError(f"the place of state {state!r} is {place}; both coordinates must be finite")
    return dict(places)


def index_of(what: str, name: str, names: Sequence[str]) -> int:
    """Return the position of a name, or say that it is unknown."""
    try:
        return names.index(name)
    except ValueError:
        raise ProblemError(f"the {what} {name!r} does not exist; {_known(names)}") from None


def _known(names: Iterable[str]) -> str:
    first = [str(name) for _, name in zip(range(8), names, strict=False)]
    return f"known are {', '.join(map(repr, first))}" + (", ..." if len(first) == 8 else "")


def number_of(value: object, what: str) -> float:
    """Return the value as a number, or say what is not one."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ProblemError(f"{what} is {value!r}, which is not a number") from None


def without_unreachable(
    layers: Sequence[Layer], start: Vector, states: Sequence[str]
) -> tuple[Sequence[Layer], Vector, Sequence[str], str]:
    """Return the model without the states that cannot be reached, and a note about them (empty if there are none)."""
    keep = reachable(layers, start)
    if keep.all():
        return layers, start, states, ""
    kept, lost = np.flatnonzero(keep), np.flatnonzero(~keep)
    some = ", ".join(repr(states[int(i)]) for i in lost[:3]) + (", ..." if len(lost) > 3 else "")
    note = f"{len(lost)} states cannot be reached from the start and were left out: {some}"
    names: Sequence[str] = tuple(states[int(i)] for i in kept)
    if isinstance(states, Numbered):
        names = Numbered(states.numbers[kept])
    return [keep_states(layer, keep) for layer in layers], start[kept], names, note


# --- dense arrays and sparse matrices -------------------------------------------------------------------------------


def array_of(values: ArrayLike, what: str) -> NDArray[np.float64]:
    """Return the values as an array of floats, or say that they are not one."""
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ProblemError(f"{what} must be a full array of numbers: {error}") from None


def check_rewards_shape(shape: tuple[int, ...], horizon: int, states: int, actions: int, on: str | None) -> str:
    """Return what rewards depend on: "action", "next", "step" or "step and next" (state and action always)."""
    fits = {
        "action": shape[:-1] == (states, actions),
        "next": shape[:-1] == (states, actions, states),
        "step": shape[:-1] == (horizon, states, actions),
        "step and next": shape[:-1] == (horizon, states, actions, states),
    }
    kinds = [kind for kind, fit in fits.items() if fit and (on is None or kind == on)]
    if len(kinds) == 1 and shape[-1] >= 1:
        return kinds[0]
    expected = (
        f"[{states}, {actions}, k], [{states}, {actions}, {states}, k] (by next state), "
        f"[{horizon}, {states}, {actions}, k] (by step) or [{horizon}, {states}, {actions}, {states}, k]"
    )
    if len(kinds) > 1:
        raise ProblemError(
            f"rewards of shape {shape} could be by next state or by step, because the numbers of states, actions and "
            "steps agree; say which with rewards_on='next' or rewards_on='step'"
        )
    raise ProblemError(f"the rewards have shape {shape}; expected is {expected}, with k objectives")


def layers_from_matrices(
    steps: Sequence[Sequence[Any]],
    rewards: NDArray[np.float64],
    rewards_on: str,
    *,
    horizon: int,
    available: NDArray[np.bool_] | None,
    renormalise: bool,
    states: Sequence[str],
    actions: Sequence[str],
    objective_names: Sequence[str],
) -> list[Layer]:
    """Return one layer, or one per step, from sparse matrices ``steps[step][action]`` [S, S]."""
    layered = len(steps) > 1 or rewards_on.startswith("step")
    layers = []
    for step in range(horizon if layered else 1):
        matrices = [matrix.tocoo() for matrix in steps[step if len(steps) > 1 else 0]]
        state = np.concatenate([m.row for m in matrices]).astype(np.int64)
        action = np.repeat(np.arange(len(matrices)), [m.nnz for m in matrices])
        target = np.concatenate([m.col for m in matrices]).astype(np.int64)
        probability = np.concatenate([m.data for m in matrices]).astype(float)
        check_model_fits(
            len(states), len(states) * len(matrices), len(probability), rewards.shape[-1], horizon, layered
        )
        where = place_of(states, actions, step if layered else None)
        if available is not None:
            allowed = available[step] if available.ndim == 3 else available
            _check_available(allowed, state, action, probability, where)
            keep = allowed[state, action]
            state, action, target, probability = state[keep], action[keep], target[keep], probability[keep]
        table = rewards[step] if rewards_on.startswith("step") else rewards
        earned: Matrix | Callable[[Int, Int], Matrix] = partial(_at, table)
        if rewards_on.endswith("next"):
            earned = table[state, action, target]
        layers.append(
            build_layer(
                state,
                action,
                probability,
                target,
                earned,
                states=len(states),
                renormalise=renormalise,
                where=where,
                objective_names=objective_names,
            )
        )
    return layers


def _at(table: NDArray[np.float64], state: Int, action: Int) -> Matrix:
    """Return the rewards of these (state, action) pairs."""
    rows: Matrix = table[state, action]
    return rows


def _check_available(allowed: NDArray[np.bool_], state: Int, action: Int, probability: Vector, where: Where) -> None:
    """Raise a ProblemError if an action said to be available has no transitions."""
    total = np.zeros(allowed.shape)
    np.add.at(total, (state, action), probability)
    missing = np.argwhere(allowed & (total == 0))
    if len(missing):
        raise ProblemError(
            f"{where(*missing[0])} is said to be available, but has no transitions; "
            "give it some, or mark it as unavailable"
        )


def dense_steps(transitions: NDArray[np.float64]) -> list[list[Any]]:
    """Return dense transitions [S, A, S] or [H, S, A, S] as sparse matrices by step and action."""
    from scipy import sparse

    bad = np.argwhere(~np.isfinite(transitions))
    if len(bad):
        raise ProblemError(f"the transition probability at {tuple(map(int, bad[0]))} is {transitions[tuple(bad[0])]}")
    stack = transitions if transitions.ndim == 4 else transitions[None]
    return [[sparse.coo_array(step[:, a, :]) for a in range(step.shape[1])] for step in stack]


# --- rows ------------------------------------------------------------------------------------------------------------


def columns_from_rows(rows: Iterable[Sequence[Any]]) -> tuple[list[str], list[str], Vector, list[str], Matrix]:
    """Return the columns state, action, probability, next and rewards [N, k] of rows of those five."""
    state: list[str] = []
    action: list[str] = []
    probability: list[float] = []
    target: list[str] = []
    rewards: list[list[float]] = []
    for number, row in enumerate(rows, start=1):
        if isinstance(row, str) or not isinstance(row, Sequence) or len(row) != 5:
            raise ProblemError(
                f"row {number} is {row!r}; a row is (state, action, probability, next state, rewards), five entries"
            )
        state.append(str(row[0]))
        action.append(str(row[1]))
        probability.append(number_of(row[2], f"the probability in row {number}"))
        target.append(str(row[3]))
        reward = row[4] if isinstance(row[4], Sequence | np.ndarray) and not isinstance(row[4], str) else [row[4]]
        rewards.append([number_of(amount, f"a reward in row {number}") for amount in reward])
        if not rewards[-1]:
            raise ProblemError(f"row {number} has no rewards; give one for each objective")
        if len(rewards[-1]) != len(rewards[0]):
            raise ProblemError(
                f"row {number} has {len(rewards[-1])} rewards, but row 1 has {len(rewards[0])}; "
                "every row needs one reward for each objective"
            )
    if not state:
        raise ProblemError("there are no rows; a model needs at least one (state, action, probability, next, rewards)")
    return state, action, np.array(probability), target, np.array(rewards)


def layers_from_columns(
    state: Sequence[str],
    action: Sequence[str],
    probability: Vector,
    target: Sequence[str],
    rewards: Matrix,
    step: Sequence[int] | None,
    *,
    horizon: int,
    states: Sequence[str] | None,
    actions: Sequence[str] | None,
    ends: Iterable[str],
    renormalise: bool,
    objective_names: Sequence[str],
) -> tuple[list[Layer], tuple[str, ...], tuple[str, ...]]:
    """Return the layers and the names of states and actions; a state without rows must be among the ``ends``."""
    ends = dict.fromkeys(str(name) for name in ends)
    if states is None:
        state_names = tuple(dict.fromkeys([*state, *ends]))
    else:
        state_names = tuple(str(name) for name in states)
        check_distinct("state", state_names)
    if actions is None:
        action_names = tuple(dict.fromkeys(action))
    else:
        action_names = tuple(str(name) for name in actions)
        check_distinct("action", action_names)
    state_number = {name: i for i, name in enumerate(state_names)}
    action_number = {name: i for i, name in enumerate(action_names)}
    for name in ends:
        if name not in state_number:
            raise ProblemError(f"the end {name!r} is not among the states; {_known(state_names)}")
    check_model_fits(len(state_names), len(probability), len(probability), rewards.shape[1], 1, False)
    sources = _numbers_of(state, state_number, "state")
    targets = _numbers_of(target, state_number, "next state", state, action)
    chosen = _numbers_of(action, action_number, "action")

    where = place_of(state_names, action_names)
    has_rows = np.zeros(len(state_names), dtype=bool)
    has_rows[sources] = True
    for i, name in enumerate(state_names):
        if has_rows[i] == (name in ends):
            raise ProblemError(
                f"state {name!r} is an end, but has actions of its own; remove its rows or take it from the ends"
                if has_rows[i]
                else f"state {name!r} has no actions; give it rows, or name it among the ends, where nothing more happens"
            )

    def build(at: Any, where: Where) -> Layer:
        """Return the layer of some of the rows."""
        columns = (sources[at], chosen[at], probability[at], targets[at], rewards[at])
        return build_layer(
            *columns, states=len(state_names), renormalise=renormalise, where=where, objective_names=objective_names
        )

    if step is None:
        return [build(slice(None), where)], state_names, action_names
    steps = np.asarray(step)
    if steps.min() < 0 or steps.max() >= horizon:
        raise ProblemError(f"a row is for step {steps.max()}, but the steps go from 0 to {horizon - 1} (the horizon)")
    layers = []
    for t in range(horizon):
        layer = build(steps == t, place_of(state_names, action_names, t))
        missing = np.flatnonzero(layer.ends & has_rows)
        if len(missing):
            raise ProblemError(
                f"state {state_names[missing[0]]!r} has no rows at step {t}, but has some at other steps; "
                "give rows for every step of the horizon"
            )
        layers.append(layer)
    return layers, state_names, action_names


def _numbers_of(
    names: Sequence[str],
    number: Mapping[str, int],
    what: str,
    state: Sequence[str] | None = None,
    action: Sequence[str] | None = None,
) -> Int:
    try:
        return np.array([number[name] for name in names], dtype=np.int64)
    except KeyError:
        row = next(i for i, name in enumerate(names) if name not in number)
        came = f" (reached from state {state[row]!r} by action {action[row]!r})" if state and action else ""
        advice = (
            "correct the name, give it rows, or name it among the ends, where nothing more happens"
            if what == "next state"
            else f"correct the name, or add it to the {what}s"
        )
        raise ProblemError(f"row {row + 1}: the {what} {names[row]!r}{came} is unknown; {advice}") from None


def check_model_fits(states: int, choices: int, branches: int, objectives: int, horizon: int, layered: bool) -> None:
    """Raise a TooLargeError if a model of (at most) this size would not fit in memory; called before it is allocated.

    Building it takes a few index arrays per branch beside what is kept.
    """
    kept = 8 * states + min(choices, branches) * (16 + 8 * objectives) + branches * 12
    steps = horizon if layered else 1
    what = f"a model with {states:,} states and {branches:,} branches" + (
        f" at each of {steps} steps" if layered else ""
    )
    check_fits(steps * kept + 48 * branches, what)
