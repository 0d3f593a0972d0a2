"""Turn a model checker's arrays (states have choices, choices have branches) into a Markov decision process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.mdp.inputs import check_model_fits, where_in
from tradeoff.mdp.layer import Int, build_layer
from tradeoff.mdp.model import MDP
from tradeoff.model import Matrix, Objective, Vector
from tradeoff.sources.limits import check_length
from tradeoff.sources.messages import listing, shortened
from tradeoff.sources.options import Goals, flag, listed, parse_objectives, real, whole

Mask = NDArray[np.bool_]

# Kinds of model that are refused, and why.
REFUSED = {
    "ctmc": "time is continuous in a CTMC: there are no steps to plan",
    "ma": "time is continuous in a Markov automaton: there are no steps to plan",
    "pta": "time is continuous in a timed automaton: there are no steps to plan",
    "pomdp": "states are hidden in a POMDP, so a plan that depends on the state cannot be followed",
    "game": "several players decide in a game, but a plan is for one person",
    "interval": "the probabilities are intervals, so no plan has a definite value",
    "parametric": "the probabilities have parameters, so no plan has a definite value",
}


@dataclass(frozen=True)
class Rewards:
    """One reward structure: the rewards of states, choices and branches, each None if there are none."""

    states: Vector | None = None
    choices: Vector | None = None
    branches: Vector | None = None


@dataclass(frozen=True)
class ExplicitModel:
    """A model as arrays: state s has the choices ``state_ptr[s]:state_ptr[s + 1]``; likewise the branches of a choice."""

    state_ptr: Int
    choice_ptr: Int
    target: Int
    probability: Vector
    initial: Mask
    states: Sequence[str]
    action: Int  # for each choice, an index into action_names
    action_names: Sequence[str]  # "" where a choice has no label
    objectives: Sequence[Objective]
    rewards: Sequence[Rewards]  # one per objective
    labels: Mapping[str, NDArray[np.uint8]] = field(default_factory=dict)  # packed, one bit per state
    notes: Sequence[str] = ()

    def having(self, label: str) -> Mask:
        """Return which states have a label."""
        return np.unpackbits(self.labels[label], count=len(self.states), bitorder="little").astype(bool)


@dataclass(frozen=True)
class ModelOptions:
    """Options for reading a model, from the command line or from Python; they are checked and parsed on creation.

    ``horizon`` is the number of steps to plan for. ``objectives`` selects reward structures and says whether less or
    more of each is better (``time:min,gain:max``). ``start`` and ``ends`` name states or labels; ``start=uniform`` makes
    all initial states equally likely. ``renormalise`` scales probabilities that do not sum to 1.
    """

    horizon: Any = None
    objectives: Any = None
    start: object = None
    ends: object = None
    renormalise: Any = False

    def __post_init__(self) -> None:
        if self.horizon is None:
            raise ArgumentError(
                "a plan needs a number of steps, and the model does not set one; give it with horizon=20 "
                "(on the command line: --with horizon=20)"
            )
        object.__setattr__(self, "horizon", whole("horizon", self.horizon))
        object.__setattr__(self, "renormalise", flag("renormalise", self.renormalise))
        if self.objectives is not None:
            object.__setattr__(self, "objectives", parse_objectives(self.objectives))


def chosen_objectives(names: Sequence[str], asked: Goals | None) -> tuple[list[Objective], list[str]]:
    """Return the objectives, and a note naming those whose direction was assumed."""
    if not names:
        raise ProblemError("it has no reward structures, so there is nothing to choose between; add some")
    goals: Goals = dict.fromkeys(names) if asked is None else asked
    for name in goals:
        if name not in names:
            raise ArgumentError(f"there is no reward structure {name!r}; the model has {listing(names, 20)}")
    assumed = [name for name, goal in goals.items() if goal is None]
    notes = []
    if assumed:
        said = ",".join(f"{name}:{goal or 'max'}" for name, goal in list(goals.items())[:8])
        notes.append(
            f"more is taken to be better for {listing(assumed)}, because the model does not say which; where less is "
            f"better, write min in objectives={said}"
        )
    return [Objective(name, "", goal or "max") for name, goal in goals.items()], notes


def to_mdp(model: ExplicitModel, options: ModelOptions, **texts: Any) -> MDP:
    """Return the MDP of a model. As in model checkers, a state's reward is earned at each step that leaves the state."""
    k, count = len(model.objectives), len(model.states)
    check_length(options.horizon, len(model.target))
    check_model_fits(count, len(model.action), len(model.target), k, options.horizon, False)
    start = _start(model, options.start)
    state = np.repeat(np.arange(count), np.diff(model.state_ptr))
    branches = np.diff(model.choice_ptr)
    choice = np.repeat(np.arange(len(state)), branches)
    _check_choices(model, state, branches)
    earned, extra = _choice_rewards(model, state), _branch_rewards(model)

    ended, notes = _ended(model, options, _idle(model, state, choice, earned, extra))
    if np.all((ended | (np.diff(model.state_ptr) == 0))[start > 0]):
        raise ProblemError("no reward can be earned from the start, so there is nothing to choose; check the start")

    kept = ~ended[state]
    action, action_names = _actions(model.action[kept], state[kept], model.action_names)
    by_choice = earned[kept][np.lexsort((action, state[kept]))]  # in the order of the layer's choices
    going = kept[choice]  # branches
    layer = build_layer(
        state[choice][going],
        np.repeat(action, branches[kept]),
        model.probability[going],
        model.target[going],
        (lambda state, action: by_choice) if extra is None else (earned[choice] + extra)[going],
        states=count,
        renormalise=options.renormalise,
        where=where_in(model.states, action_names),
        objective_names=[o.name for o in model.objectives],
    )
    mdp = MDP(
        [layer], horizon=options.horizon, start=start, states=model.states, actions=action_names,
        objectives=model.objectives, **texts,
    )  # fmt: skip
    mdp.notes += [*model.notes, *notes]
    return mdp


def _ended(model: ExplicitModel, options: ModelOptions, idle: Mask) -> tuple[Mask, list[str]]:
    """Return which states are ends (nothing happens there, or the options say so), and notes about them."""
    ended, notes = np.zeros(len(model.states), dtype=bool), []
    for name in () if options.ends is None else _names(options.ends):
        ended |= _states_called(name, model, "ends")
    if options.ends is not None:
        notes.append(f"states that end the plan because the option ends names them: {ended.sum():,}")
    if idle.any():
        notes.append(f"states that end the plan because they only lead to themselves and earn nothing: {idle.sum():,}")
    return ended | idle, notes


# --- rewards ---------------------------------------------------------------------------------------------------------


def _choice_rewards(model: ExplicitModel, state: Int) -> Matrix:
    """Return the reward of each choice for each objective, including its state's reward [C, k]."""
    total = np.zeros((len(state), len(model.rewards)))
    with np.errstate(over="ignore"):  # overflow is refused later, by an error that names the state
        for column, rewards in zip(total.T, model.rewards, strict=True):
            if rewards.states is not None:
                column += rewards.states[state]
            if rewards.choices is not None:
                column += rewards.choices
    return total


def _branch_rewards(model: ExplicitModel) -> Matrix | None:
    """Return the reward of each branch in addition to its choice's [B, k], or None if branches have no rewards."""
    if all(rewards.branches is None for rewards in model.rewards):
        return None
    columns = [np.zeros(len(model.target)) if r.branches is None else r.branches for r in model.rewards]
    return np.stack(columns, axis=1)


def _check_choices(model: ExplicitModel, state: Int, branches: Int) -> None:
    empty = np.flatnonzero(branches == 0)
    if len(empty):
        raise ProblemError(
            f"choice {empty[0]} (of state {model.states[state[empty[0]]]!r}) leads nowhere; give it a branch"
        )
    stuck = np.diff(model.state_ptr) == 0
    for objective, rewards in zip(model.objectives, model.rewards, strict=True):
        if rewards.states is None:
            continue
        found = np.flatnonzero(stuck & (rewards.states != 0))
        if len(found):
            raise ProblemError(
                f"state {model.states[found[0]]!r} has no choices but earns {objective.name!r}, and the model does not say "
                "for how long; give it a choice that leads to itself, or no reward"
            )


def _idle(model: ExplicitModel, state: Int, choice: Int, earned: Matrix, extra: Matrix | None) -> Mask:
    """Return which states have choices that all lead back to the state with certainty and earn nothing."""
    moving = (model.target != state[choice]) | (model.probability != 1)
    if extra is not None:
        moving |= np.any(extra != 0, axis=1)
    busy = np.any(earned != 0, axis=1)
    busy[choice[moving]] = True
    idle = np.diff(model.state_ptr) > 0
    idle[state[busy]] = False
    return idle


# --- names -----------------------------------------------------------------------------------------------------------


def _actions(labels: Int, state: Int, texts: Sequence[str]) -> tuple[Int, tuple[str, ...]]:
    """Return the action of each choice and the names of actions; choices of a state with the same label are numbered.

    >>> _actions(np.array([1, 0, 0]), np.array([7, 7, 7]), ["", "go"])
    (array([2, 0, 1]), ('choice 1', 'choice 2', 'go'))
    """
    order = np.lexsort((labels, state))
    by_state, by_label = state[order], labels[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (np.diff(by_state) != 0) | (np.diff(by_label) != 0)
    begin = np.flatnonzero(first)
    size = np.diff(np.append(begin, len(order)))
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order)) - np.repeat(begin, size) + 1
    number[order[np.repeat(size == 1, size)]] = 0  # the only choice with its label
    base = int(number.max(initial=0)) + 1
    keys, action = np.unique(labels * base + number, return_inverse=True)
    names: dict[str, None] = {}
    for label, ordinal in (divmod(int(key), base) for key in keys):
        text = texts[label]
        name = f"{text or 'choice'} {ordinal}" if ordinal else text or "go on"
        while name in names:  # a label of the model may itself be called "go 1"
            name += "'"
        names[name] = None
    return action.ravel().astype(np.int64), tuple(names)


def _names(value: object) -> list[str]:
    """Return the names in a list or a string; a string with "=" is one state, whose name may have commas: x=3, y=1."""
    return [value] if isinstance(value, str) and "=" in value else listed("ends", value)


def _parts(name: str) -> list[str]:
    """Return the parts of a name such as x=3, y=1 in a fixed order, since their order does not matter."""
    return sorted(part.strip() for part in name.split(","))


def _states_called(name: str, model: ExplicitModel, option: str) -> Mask:
    """Return the states with this label, or the single state with this name."""
    if name in model.labels:
        return model.having(name)
    mask = np.zeros(len(model.states), dtype=bool)
    parts = _parts(name)
    for position, state in enumerate(model.states):
        if state == name or _parts(state) == parts:
            mask[position] = True
            return mask
    labels = listing(model.labels, 12) or "none"
    raise ArgumentError(
        f"{option} is {shortened(name)}, which is neither a label nor a state of the model; its labels are {labels}; "
        f"its states have names like {model.states[0]!r}"
    )


def _start(model: ExplicitModel, given: object) -> Vector:
    """Return the start distribution: the option's, or the model's only initial state."""
    if isinstance(given, Mapping):
        chances = np.zeros(len(model.states))
        for name, chance in given.items():
            mask = _states_called(str(name), model, "start")
            chances += mask * (real(f"the probability of start {name!r}", chance) / max(1, mask.sum()))
        if not (np.all(chances >= 0) and abs(chances.sum() - 1) <= 1e-9):
            raise ArgumentError(f"the start probabilities sum to {chances.sum():.9g}; they must be >= 0 and sum to 1")
        return chances
    uniform = isinstance(given, str) and given == "uniform" and given not in model.labels
    mask = model.initial if given is None or uniform else _states_called(str(given), model, "start")
    count = int(mask.sum())
    if count == 0:
        raise ProblemError("no state is initial; say where plans begin with start=NAME, naming a state or a label")
    if count > 1 and not uniform:
        raise ProblemError(
            f"there are {count:,} initial states ({_some(model.states, mask)}), and the model does not say how likely each "
            "is; give start=NAME for one of them, or start=uniform if they are equally likely"
        )
    return mask / count


def _some(states: Sequence[str], mask: Mask) -> str:
    found: Iterable[int] = np.flatnonzero(mask)[:3].tolist()
    return ", ".join(repr(states[i]) for i in found) + (", ..." if mask.sum() > 3 else "")
