"""Build the parts of a Markov decision process from dense arrays, sparse matrices or rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Self, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tradeoff.errors import ProblemError
from tradeoff.mdp.inputs import (
    array_of,
    check_model_fits,
    horizon_from,
    known_names,
    names_from,
    number_of,
    where_in,
)
from tradeoff.mdp.layer import SINGLE_TOLERANCE, SUM_TOLERANCE, Int, Layer, Where, build_layer
from tradeoff.mdp.solver import Solver
from tradeoff.model import Matrix, Objective, Reference, Vector
from tradeoff.problem import check_distinct, objectives_from

Parts = dict[str, Any]  # layers, horizon, start, states, actions and objectives, as ``MDP`` takes them


class Texts(TypedDict, total=False):
    """Keyword arguments of every MDP constructor that are not part of the model itself."""

    reference: Reference | None  # what gains are measured from
    nothing_action: str | None  # the paper's a_0, by name
    places: Mapping[str, tuple[float, float]] | None  # map coordinates of states
    pictures: Mapping[str, bytes] | None  # PNG by state; may be rendered on demand
    prune: bool  # whether to leave out unreachable states
    name: str
    title: str
    about: str
    noun: str  # what one plan is called
    describe: Mapping[str, str | Sequence[str]] | None  # how states and steps are described; see ``tradeoff.wording``
    solver: Solver | None  # by default the compiled one


class Options(Texts, total=False):
    """Keyword arguments of every MDP constructor: the fields of ``Builder``, explained there, and ``Texts``."""

    horizon: int | None
    start: object
    objectives: Sequence[Objective | str] | None
    states: Sequence[str] | None
    actions: Sequence[str] | None
    renormalise: bool


def check_texts(texts: Mapping[str, Any]) -> None:
    """Raise a TypeError that names the first unknown keyword argument."""
    for name in texts.keys() - Texts.__annotations__.keys():
        raise TypeError(f"an MDP has no argument {name!r}; it has {', '.join(Options.__annotations__)}")


@dataclass(frozen=True)
class Builder:
    """The part of building an MDP that does not depend on how the transitions are given.

    ``start`` is a state (number or name), a mapping of state names to probabilities, or an array of probabilities.
    ``states`` and ``actions`` are names, in the order of the arrays; by default they are numbers.
    With ``renormalise`` the probabilities of an action are divided by their sum instead of being refused.
    """

    horizon: int | None = None
    start: object = 0
    objectives: Sequence[Objective | str] | None = None
    states: Sequence[str] | None = None
    actions: Sequence[str] | None = None
    renormalise: bool = False

    @classmethod
    def taken_from(cls, options: dict[str, Any]) -> Self:
        """Remove the builder's own options from ``options``, and return a builder with them."""
        own = [field.name for field in fields(cls) if field.name in options]
        return cls(**{name: options.pop(name) for name in own})

    def arrays(
        self, transitions: ArrayLike, rewards: ArrayLike, available: ArrayLike | None, rewards_on: str | None
    ) -> Parts:
        """Return the parts of an MDP, from dense arrays [S, A, S] or [H, S, A, S]."""
        dense = array_of(transitions, "the transitions")
        if dense.ndim not in (3, 4) or dense.shape[-3] != dense.shape[-1] or 0 in dense.shape:
            raise ProblemError(
                f"the transitions have shape {dense.shape}; expected [states, actions, states] "
                "or [steps, states, actions, states]"
            )
        steps = dense_steps(dense.astype(np.float32) if _is_single(transitions) else dense)
        return self._matrices(steps, rewards, available, rewards_on, timed=dense.ndim == 4)

    def sparse(
        self, transitions: Sequence[Any], rewards: ArrayLike, available: ArrayLike | None, rewards_on: str | None
    ) -> Parts:
        """Return the parts of an MDP, from SciPy matrices: one [S, S] per action, or a list of such lists, one per step."""
        from scipy import sparse

        if not len(transitions):
            raise ProblemError("the list of transition matrices is empty; give one matrix [states, states] per action")
        steps = [transitions] if sparse.issparse(transitions[0]) else list(transitions)
        shape = steps[0][0].shape
        for step, matrices in enumerate(steps):
            if len(matrices) != len(steps[0]):
                raise ProblemError(f"step {step} has {len(matrices)} matrices, but step 0 has {len(steps[0])}")
            for action, matrix in enumerate(matrices):
                if matrix.shape != (shape[0], shape[0]):
                    raise ProblemError(
                        f"the matrix of action {action} has shape {matrix.shape}; expected {(shape[0], shape[0])}"
                    )
        return self._matrices(steps, rewards, available, rewards_on, timed=len(steps) > 1)

    def _matrices(
        self, steps: list[Any], rewards: ArrayLike, available: ArrayLike | None, rewards_on: str | None, *, timed: bool
    ) -> Parts:
        """Return the parts of an MDP, from ``steps[step][action]``; if ``timed``, there is one entry per step."""
        if timed and self.horizon not in (None, len(steps)):
            raise ProblemError(f"the transitions are for {len(steps)} steps, but the horizon is {self.horizon}")
        horizon = horizon_from(len(steps) if timed else self.horizon)
        state_count, action_count = steps[0][0].shape[0], len(steps[0])
        allowed = None if available is None else np.asarray(available, dtype=bool)
        shape = (state_count, action_count)
        if allowed is not None and allowed.shape not in (shape, (len(steps), *shape)):
            raise ProblemError(f"available has shape {allowed.shape}; expected {shape}")
        if allowed is not None and len(steps) == 1:
            allowed = allowed.reshape(shape)
        table = array_of(rewards, "the rewards")
        kind = check_rewards_shape(table.shape, horizon, state_count, action_count, rewards_on)
        named = objectives_from(self.objectives, table.shape[-1])
        states = names_from("state", self.states, state_count)
        actions = names_from("action", self.actions, action_count)
        layers = layers_from_matrices(
            steps, table, kind, horizon=horizon, available=allowed, renormalise=self.renormalise, states=states,
            actions=actions, objective_names=[o.name for o in named],
        )  # fmt: skip
        return self._parts(layers, horizon, self.start, states, actions, named)

    def columns(
        self,
        state: Sequence[str],
        action: Sequence[str],
        probability: Vector,
        target: Sequence[str],
        rewards: Matrix,
        step: Sequence[int] | None,
        ends: Iterable[str],
    ) -> Parts:
        """Return the parts of an MDP, from columns: state, action, probability, next state, rewards."""
        named = objectives_from(self.objectives, rewards.shape[1])
        horizon = horizon_from(self.horizon)
        layers, states, actions = layers_from_columns(
            state, action, probability, target, rewards, step, horizon=horizon, states=self.states, actions=self.actions,
            ends=ends, renormalise=self.renormalise, objective_names=[o.name for o in named],
        )  # fmt: skip
        start = self.start
        if isinstance(start, int | np.integer) and not isinstance(start, bool):
            start = str(start)  # rows name their states, so a number is a name too
        return self._parts(layers, horizon, start, states, actions, named)

    @staticmethod
    def _parts(layers: object, horizon: int, start: object, states: object, actions: object, named: object) -> Parts:
        return {
            "layers": layers, "horizon": horizon, "start": start, "states": states, "actions": actions, "objectives": named
        }  # fmt: skip


# --- dense arrays and sparse matrices -------------------------------------------------------------------------------


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
    raise ProblemError(f"the rewards have shape {shape}; expected {expected}, with k objectives")


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
        single = any(_is_single(m) for m in matrices)
        probability = np.concatenate([m.data for m in matrices]).astype(float)
        check_model_fits(
            len(states), len(states) * len(matrices), len(probability), rewards.shape[-1], horizon, layered
        )
        where = where_in(states, actions, step if layered else None)
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
                tolerance=SINGLE_TOLERANCE if single else SUM_TOLERANCE,
            )
        )
    return layers


def _is_single(numbers: object) -> bool:
    """Return whether an array or a sparse matrix has single precision."""
    return getattr(numbers, "dtype", None) == np.float32


def _at(table: NDArray[np.float64], state: Int, action: Int) -> Matrix:
    """Return the rewards of the given (state, action) pairs."""
    rows: Matrix = table[state, action]
    return rows


def _check_available(allowed: NDArray[np.bool_], state: Int, action: Int, probability: Vector, where: Where) -> None:
    """Raise a ProblemError if an action marked as available has no transitions."""
    total = np.zeros(allowed.shape)
    np.add.at(total, (state, action), probability)
    missing = np.argwhere(allowed & (total == 0))
    if len(missing):
        raise ProblemError(
            f"{where(*missing[0])} is marked as available but has no transitions; "
            "give it some, or mark it as unavailable"
        )


def dense_steps(transitions: NDArray[np.floating]) -> list[list[Any]]:
    """Return dense transitions [S, A, S] or [H, S, A, S] as sparse matrices by step and action."""
    from scipy import sparse

    bad = np.argwhere(~np.isfinite(transitions))
    if len(bad):
        raise ProblemError(f"the transition probability at {tuple(map(int, bad[0]))} is {transitions[tuple(bad[0])]}")
    stack = transitions if transitions.ndim == 4 else transitions[None]
    return [[sparse.coo_array(step[:, a, :]) for a in range(step.shape[1])] for step in stack]


# --- rows ------------------------------------------------------------------------------------------------------------


def columns_from_rows(rows: Iterable[Sequence[Any]]) -> tuple[list[str], list[str], Vector, list[str], Matrix]:
    """Return rows (state, action, probability, next state, rewards) as five columns; rewards are [N, k]."""
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
    """Return the layers and the names of states and actions; states without rows must be among the ``ends``."""
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
            raise ProblemError(f"the end {name!r} is not among the states; {known_names(state_names)}")
    check_model_fits(len(state_names), len(probability), len(probability), rewards.shape[1], 1, False)
    sources = _numbers_of(state, state_number, "state")
    targets = _numbers_of(target, state_number, "next state", state, action)
    chosen = _numbers_of(action, action_number, "action")

    where = where_in(state_names, action_names)
    has_rows = np.zeros(len(state_names), dtype=bool)
    has_rows[sources] = True
    for i, name in enumerate(state_names):
        if has_rows[i] == (name in ends):
            raise ProblemError(
                f"state {name!r} is an end, but has actions of its own; remove its rows, or remove it from the ends"
                if has_rows[i]
                else f"state {name!r} has no actions; give it rows, or name it among the ends, where nothing more happens"
            )

    def build(at: Any, where: Where) -> Layer:
        """Return the layer made of the rows ``at``."""
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
        layer = build(steps == t, where_in(state_names, action_names, t))
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
