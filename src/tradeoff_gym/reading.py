"""Turn environments of gymnasium and mo-gymnasium into models: exact if possible, estimated otherwise."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.mdp.inputs import where_in
from tradeoff.mdp.layer import build_layer
from tradeoff.mdp.model import MDP
from tradeoff.memory import check_fits
from tradeoff.sources.limits import check_length, seconds_limit
from tradeoff.sources.options import library, real, whole
from tradeoff_gym.branching import NotExactError
from tradeoff_gym.exploration import (
    EXPLORING,
    EXPLORING_ENDLESS,
    MOST_STATES,
    MOST_UNSEEN,
    OutOfBudgetError,
    StateSpace,
    enumerate_states,
)  # fmt: skip
from tradeoff_gym.random_play import estimate, name_of
from tradeoff_gym.rendering import RenderedStates
from tradeoff_gym.rewards import objectives_of
from tradeoff_gym.time_folding import fold_time
from tradeoff_gym.transition_tables import longest_episode, read_transition_table
from tradeoff_gym.vocabulary import Vocabulary, name_states, vocabulary_of

EPISODES = 5_000
MOST_ACTIONS = 1_000
STATES_PER_OBSERVATION = 500
MOST_NUMBERS = 1_000  # in an observation of whole numbers; one with more is a picture
# Wrappers that change neither observations nor rewards.
HARMLESS = {"TimeLimit", "OrderEnforcing", "PassiveEnvChecker", "RecordEpisodeStatistics", "MORecordEpisodeStatistics"}


@dataclass(frozen=True)
class EnvironmentOptions:
    """Options for reading an environment, from the command line or from Python; they are checked and parsed on creation.

    ``horizon`` is the number of steps (by default the environment's own limit, or its longest episode); ``discount`` is
    the factor on a reward for each step of delay; ``objectives`` names the rewards and says which are costs.
    ``method`` is "exact", "rollouts" (an estimate from ``episodes`` of random actions, drawn with ``seed``), or "auto"
    (exact if possible).
    """

    horizon: Any = None
    discount: Any = 1.0
    objectives: object = None
    method: object = "auto"
    episodes: Any = EPISODES
    seed: Any = 0

    def __post_init__(self) -> None:
        if self.horizon is not None:
            object.__setattr__(self, "horizon", whole("horizon", self.horizon))
        object.__setattr__(self, "discount", real("discount", self.discount))
        object.__setattr__(self, "episodes", whole("episodes", self.episodes))
        object.__setattr__(self, "seed", whole("seed", self.seed, least=0))
        if not 0 < self.discount <= 1:
            raise ArgumentError(f"discount is {self.discount:g}; it must be above 0 and at most 1")
        if self.method not in ("auto", "exact", "rollouts"):
            raise ArgumentError(f"method is {self.method!r}; it must be auto, exact or rollouts")


@dataclass(frozen=True)
class GymOptions(EnvironmentOptions):
    """The same for a named environment; ``kwargs`` are its own arguments: a mapping, or ``is_slippery=false,map_name=8x8``."""

    kwargs: object = None


def read_gym(name: str, options: GymOptions) -> MDP:
    """Return the model of a gymnasium environment, such as ``gym:FrozenLake-v1``."""
    env, notes = _made(name, _arguments(options.kwargs))
    found = from_environment(env, options)
    found.notes[:0] = notes
    return found


def read_mo_gym(name: str, options: GymOptions) -> MDP:
    """Return the model of a mo-gymnasium environment, such as ``mo-gym:deep-sea-treasure-v0``."""
    _imported("mo_gymnasium")
    return read_gym(name, options)


def from_environment(env: Any, options: EnvironmentOptions) -> MDP:
    """Return the model of an environment object, which is left as it was found unless episodes are played in it."""
    steps, gamma, method, objectives = options.horizon, options.discount, options.method, options.objectives
    actions, words, limit = _actions(env), vocabulary_of(env.unwrapped), _limit(env)
    if len(words.actions) != len(actions):
        words = replace(words, actions=[f"action {action}" for action in actions])
    why, ended = "", False
    if method != "rollouts":
        try:
            mdp, finite = _exactly(env, actions, words, steps, limit, objectives)
            return _discounted(mdp, gamma, finite)
        except NotExactError as error:
            why = str(error)
            ended = isinstance(error, OutOfBudgetError)
    endless = _endless(env.observation_space)
    if endless == "continuous" or (endless and method != "rollouts"):
        cannot = f"cannot be read exactly ({why}), nor can it be estimated" if why else "cannot be estimated"
        raise ProblemError(
            f"{name_of(env)} {cannot}: its observations are {endless} ({env.observation_space}), so hardly any state "
            "is seen twice; choose an environment with finitely many states, such as mo-gym:deep-sea-treasure-v0"
        )
    if ended:  # falling back to an estimate would make the model depend on how fast the machine is
        raise ProblemError(
            f"{name_of(env)} cannot be read exactly: {why}; give a smaller horizon, or method=rollouts to estimate it"
        )
    if method == "exact":
        raise ProblemError(f"{name_of(env)} cannot be read exactly: {why}; method=rollouts estimates it")
    mdp = estimate(env, actions, words, objectives, steps or limit, why, (options.episodes, options.seed))
    return _discounted(mdp, gamma, finite=mdp.horizon == limit)


# --- the environment ---------------------------------------------------------------------------------------------------


def _made(name: str, arguments: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Return a new environment, with rendering if it has any, and gymnasium's warnings about it."""
    gymnasium = _imported("gymnasium")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            env = gymnasium.make(name, disable_env_checker=True, **arguments)
            if "rgb_array" in env.metadata.get("render_modes", ()) and env.unwrapped.render_mode is None:
                env = gymnasium.make(name, disable_env_checker=True, **arguments, render_mode="rgb_array")
        except Exception as error:
            raise ProblemError(f"the environment {name!r} cannot be made: {_reason(error)}") from None
    return env, [_uncoloured(str(w.message)) for w in said if issubclass(w.category, DeprecationWarning)]


def _reason(error: Exception) -> str:
    """Return why an environment cannot be created, and what to do."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.partition(".")[0]
        return f"it needs the package {package!r}, which is not installed ({error}); install that package"
    text, kind = _uncoloured(str(error)).strip().rstrip("."), type(error)
    # Gymnasium's own errors are sentences; others, such as a KeyError, may be a single word.
    if not text or not kind.__module__.startswith("gymnasium."):
        text = f"{kind.__name__}: {text}" if text else kind.__name__
    # An error about a missing dependency says how to install it.
    return text if kind.__name__ == "DependencyNotInstalled" else f"{text}; check its name and kwargs"


def _uncoloured(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def _imported(name: str) -> ModuleType:
    """Return a library of environments; its banner and import warnings are suppressed."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return library(name, "gym", "an environment")


def _arguments(given: object) -> dict[str, Any]:
    """Return the environment's own arguments, given as a mapping or a string like ``is_slippery=false,map_name=8x8``."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {str(name): value for name, value in given.items()}
    found: dict[str, Any] = {}
    for part in str(given).split(","):
        name, equals, value = (text.strip() for text in part.partition("="))
        if not equals or not name.isidentifier():
            raise ArgumentError(f"kwargs is {given!r}; it must be like is_slippery=false,map_name=8x8")
        found[name] = _value(value)
    return found


def _value(text: str) -> Any:
    constants = {"true": True, "false": False, "none": None}
    if text.lower() in constants:
        return constants[text.lower()]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _layers(env: Any) -> list[Any]:
    """Return the wrappers of an environment, the outermost first."""
    found = []
    while env is not env.unwrapped:
        found.append(env)
        env = env.env
    return found


def _limit(env: Any) -> int | None:
    """Return the environment's limit on the number of steps, if it has one."""
    for wrapper in _layers(env):
        if type(wrapper).__name__ == "TimeLimit":
            return int(wrapper._max_episode_steps)
    return None


def _actions(env: Any) -> list[Any]:
    """Return all actions of an environment; raise a ProblemError if there are infinitely many."""
    space = env.action_space
    kind = type(space).__name__
    if kind == "Discrete":
        found: list[Any] = list(range(int(space.start), int(space.start + space.n))) if space.n <= MOST_ACTIONS else []
    elif kind in ("MultiDiscrete", "MultiBinary") and len(space.shape) == 1:
        counts = space.nvec if kind == "MultiDiscrete" else np.full(space.shape, 2)
        many = np.prod(counts.astype(float)) > MOST_ACTIONS
        found = [] if many else [np.array(each) for each in product(*[range(int(n)) for n in counts])]
    else:
        raise ProblemError(f"{name_of(env)} has the actions {space}; only finitely many actions can be compared")
    if not found:
        raise ProblemError(f"{name_of(env)} has the actions {space}; at most {MOST_ACTIONS:,} can be explored")
    return found


def _endless(space: Any) -> str:
    """Return why there may be endlessly many observations: "continuous" or "pictures"; "" if they are neither."""
    parts = getattr(space, "spaces", None)
    if parts is not None:
        kinds = {_endless(part) for part in (parts.values() if isinstance(parts, Mapping) else parts)}
        return next((kind for kind in ("continuous", "pictures") if kind in kinds), "")
    if type(space).__name__ != "Box":
        return ""
    if np.issubdtype(space.dtype, np.floating):
        return "continuous"
    return "pictures" if np.prod(space.shape) > MOST_NUMBERS else ""


def _most_states(space: Any) -> int:
    """Return the limit on the number of states, which is lower if observations could not tell most of them apart."""
    return int(min(MOST_STATES, max(MOST_UNSEEN, STATES_PER_OBSERVATION * _size(space))))


def _size(space: Any) -> float:
    """Return the number of possible observations; 0 if they are continuous or of an unknown kind."""
    kind, parts = type(space).__name__, getattr(space, "spaces", None)
    if parts is not None:
        return float(np.prod([_size(part) for part in (parts.values() if isinstance(parts, Mapping) else parts)]))
    if kind == "Box" and not _endless(space):
        return float(np.prod(space.high.astype(float) - space.low + 1))
    if kind == "MultiDiscrete":
        return float(np.prod(space.nvec.astype(float)))
    if kind == "MultiBinary":
        return float(2.0 ** np.prod(space.shape))
    return float(space.n) if kind == "Discrete" else 0.0


# --- the exact model ---------------------------------------------------------------------------------------------------


def _exactly(
    env: Any, actions: Sequence[Any], words: Vocabulary, steps: int | None, limit: int | None, objectives: object
) -> tuple[MDP, bool]:
    """Return the exact model, and whether every episode ends within its horizon."""
    for wrapper in _layers(env):
        if type(wrapper).__name__ not in HARMLESS:
            raise NotExactError(f"it is wrapped in {type(wrapper).__name__}, which may change what happens")
    inner, depth = env.unwrapped, limit if steps is None else steps
    how = "read from the environment's own transition table"
    space = read_transition_table(inner, actions)
    if space is None:
        how = "found by trying every action in every state with every random outcome"
        seen = env.observation_space
        seconds = seconds_limit(EXPLORING_ENDLESS if _endless(seen) else EXPLORING)
        space = fold_time(enumerate_states(inner, actions, depth, _most_states(seen), seconds, name_of(env)))
    if not len(space.source):
        raise ProblemError(f"{name_of(env)} ends before anything can be done")
    longest = longest_episode(space)
    horizon, note = _horizon(env, space.steps, longest, steps, limit)
    check_length(horizon, len(space.source))
    names, places, notes = name_states(inner, words, space)
    named, rewards, turned = objectives_of(space.rewards, words, objectives)
    layer = build_layer(
        space.source, space.action, space.probability, space.target, rewards, states=len(names), renormalise=False,
        where=where_in(names, words.actions), objective_names=[o.name for o in named],
    )  # fmt: skip
    start = np.zeros(len(names))
    start[list(space.start)] = list(space.start.values())
    mdp = MDP(
        [layer], horizon=horizon, start=start, states=names, actions=words.actions, objectives=named, places=places,
        pictures=_pictures(inner, names, space), name=name_of(env), about=f"The exact model, {how}.",
    )  # fmt: skip
    mdp.notes += [*space.notes, *note, *notes, *turned]
    ends = [length for length in (limit, longest, space.steps) if length is not None]
    return mdp, bool(ends) and min(ends) <= horizon


def _horizon(
    env: Any, by_clock: int | None, longest: int | None, steps: int | None, limit: int | None
) -> tuple[int, list[str]]:
    """Return the horizon, and notes about it."""
    ends = [length for length in (by_clock, longest) if length is not None]
    if steps is not None:
        if by_clock is not None and by_clock < steps:
            return by_clock, [f"the horizon is {by_clock} steps, not {steps}: the environment ends then"]
        beyond = limit is not None and limit < steps and not (ends and min(ends) <= limit)
        return steps, [f"the environment itself stops after {limit} steps, before the horizon"] * beyond
    known = [*ends, *([] if limit is None else [limit])]
    if not known:
        raise ProblemError(
            f"{name_of(env)} can go on forever: it sets no step limit and its states form cycles; give the number of "
            "steps, such as horizon=50"
        )
    return min(known), []


def _pictures(inner: Any, names: Sequence[str], space: StateSpace) -> RenderedStates | None:
    drawn = getattr(inner, "render_mode", None) == "rgb_array" and space.drawable
    return RenderedStates(inner, names, space.saved) if drawn else None


# --- discount ----------------------------------------------------------------------------------------------------------


def _discounted(mdp: MDP, gamma: float, finite: bool) -> MDP:
    """Return the model in which a reward at step t counts gamma^t times, which needs a separate layer for each step."""
    if gamma == 1:
        return mdp
    (layer,), horizon = mdp.layers, mdp.horizon
    amounts = layer.reward.size + (0 if layer.branch_reward is None else layer.branch_reward.size)
    check_fits(8 * horizon * amounts, f"the discounted rewards of {horizon} steps")
    layers = []
    for step in range(horizon):
        factor, branch = gamma**step, layer.branch_reward
        layers.append(
            replace(layer, reward=layer.reward * factor, branch_reward=None if branch is None else branch * factor)
        )
    made = mdp.replace(layers=layers)
    made.notes.append(f"a reward at step t counts {gamma:g}^t times; steps begin at 0")
    if not finite:
        largest = np.abs(layer.outcomes_of_branches()).max(axis=0)
        missing = gamma**horizon / (1 - gamma) * largest
        said = ", ".join(
            o.text(float(amount)) + f" of {o.name}" for o, amount in zip(mdp.objectives, missing, strict=True)
        )
        made.notes.append(f"what comes after {horizon} steps is left out: at most {said}")
    return made
