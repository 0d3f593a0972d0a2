"""All states of an environment, found by trying every action in every state with every random outcome."""

from __future__ import annotations

import random
import time
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tradeoff.mdp.layer import Int
from tradeoff.memory import GIB, memory_limit, resident_memory
from tradeoff.model import Matrix, Vector
from tradeoff.sources.progress import report
from tradeoff_gym.branching import BranchingRandom, NotExactError
from tradeoff_gym.environment_state import (
    EnvironmentState,
    RestartExploration,
    check_single,
    frozen,
    kept,
)

MOST_STATES = 1_000_000
MOST_UNSEEN = 20_000  # states of an environment whose observations are continuous, or much fewer than its states
EXPLORING = 300.0  # seconds of processor time, unless TRADEOFF_SECONDS says otherwise
EXPLORING_ENDLESS = 20.0  # the same if observations are continuous or pictures, so that exploration may never end
CHECKED_EVERY = 256  # states between two checks of the memory
MOST_RUNS_PER_STEP = 50  # average number of random outcomes of an action in a state, checked after MANY_RUNS
MANY_RUNS = 100_000
ALTERNATIVES = 3  # identities with the same index whose behaviour is compared
CHECKED_STEPS = 500  # in the real environment

Branch = tuple[int, int, float, int, tuple[float, ...]]  # source, action, probability, target, rewards


@dataclass
class StateSpace:
    """All states of an environment and what each action does there.

    A row of the columns is a branch: ``action`` in ``source`` leads with ``probability`` to ``target`` and earns
    ``rewards``. ``saved`` holds the attributes that put the environment into each state.
    """

    observations: list[Any]
    ended: list[bool]
    saved: list[dict[str, Any]]
    start: dict[int, float]
    source: Int
    action: Int
    probability: Vector
    target: Int
    rewards: Matrix
    identities: list[tuple[Any, ...]] = field(default_factory=list)  # what distinguishes a state from others
    known: list[str] = field(default_factory=list)  # the attributes that identities are made of
    steps: int | None = None  # the number of steps after which it always ends
    notes: list[str] = field(default_factory=list)
    drawable: bool = True  # whether ``saved`` has everything that rendering needs

    def branches(self, state: int) -> slice:
        """Return the rows that begin in a state; rows are sorted by it."""
        first, last = np.searchsorted(self.source, [state, state + 1])
        return slice(int(first), int(last))


def reward_row(reward: Any) -> tuple[float, ...]:
    """Return a reward (a number or a vector) as floats; 0.7 in single precision becomes 0.7 in double."""
    row = np.atleast_1d(np.asarray(reward))
    if row.dtype == np.float32:
        return tuple([float(str(amount)) for amount in row])
    return tuple([float(amount) for amount in row])


def enumerate_states(
    env: Any,
    actions: Sequence[Any],
    depth: int | None,
    most: int = MOST_STATES,
    seconds: float = EXPLORING,
    name: str = "the environment",
) -> StateSpace:
    """Return all states of an (unwrapped) environment that can be reached in ``depth`` steps.

    Raises NotExactError if that cannot be done exactly or there are more than ``most`` states, and OutOfBudgetError if
    ``seconds`` of processor time or the available memory do not suffice. The environment is left as it was found.
    """
    check_single(env)
    branching = BranchingRandom()
    explorer = Explorer(env, actions, branching, depth, most, seconds, name)
    explorer.attributes.begin()
    try:
        with branching.everywhere():
            found = explorer.explore()
    finally:
        explorer.attributes.end()
    explorer.check_against_real(found)
    return found


class OutOfBudgetError(NotExactError):
    """The time or memory did not suffice to find all states; another machine might find them."""


class _UnlikeError(Exception):
    """Two identities with the same index behave differently."""


class _Rows:
    """The branches found so far, in compact columns."""

    def __init__(self) -> None:
        self.source, self.action, self.target = array("q"), array("q"), array("q")
        self.chance, self.rewards = array("d"), array("d")
        self.width = 0

    def add(self, row: Branch) -> None:
        """Add one branch."""
        source, action, chance, target, reward = row
        self.source.append(source)
        self.action.append(action)
        self.chance.append(chance)
        self.target.append(target)
        self.rewards.extend(reward)
        self.width = self.width or len(reward)
        if len(reward) != self.width:
            raise NotExactError("its rewards are not always of the same length")


class Explorer:
    """The search through the states of one environment, breadth first."""

    def __init__(
        self,
        env: Any,
        actions: Sequence[Any],
        branching: BranchingRandom,
        depth: int | None,
        most: int,
        seconds: float,
        name: str,
    ) -> None:
        self.env, self.actions, self.branching, self.name = env, actions, branching, name
        self.depth, self.most = depth, most
        self.seconds, self.began = seconds, time.process_time()
        self.room, self.resident = memory_limit(), resident_memory()
        self.attributes = EnvironmentState(env, branching)
        # Some environments number their observations themselves, more coarsely than their attributes.
        self.index_of = getattr(env, "get_obs_idx", None)

    def explore(self) -> StateSpace:
        """Return all states; start again whenever something new is learned about the attributes."""
        while True:
            try:
                return self._explore()
            except RestartExploration:
                continue
            except _UnlikeError:
                self.index_of = None

    def _explore(self) -> StateSpace:
        self.number: dict[Any, int] = {}
        self.depths: list[int] = []
        self.observations: list[Any] = []
        self.ended: list[bool] = []
        self.saved: list[dict[str, Any]] = []
        self.start: dict[int, float] = {}
        self.contents_of: dict[int, list[Any]] = {}
        self.doubles: list[tuple[int, dict[str, Any]]] = []  # other identities with the index of a state
        self.runs = self.compared = 0
        for chance, observation in self.branching.outcomes(self._reset):
            state = self._state(observation, False, 0)
            self.start[state] = self.start.get(state, 0.0) + chance
        rows, state = _Rows(), 0
        while state < len(self.depths) or self.doubles:
            if state == len(self.depths):
                self._compare(*self.doubles.pop(), rows)
                continue
            if not self.ended[state] and (self.depth is None or self.depths[state] < self.depth):
                for row in self._branches(state, self.saved[state]):
                    rows.add(row)
            state += 1
        self.attributes.check(thoroughly=True)
        return self._finished(rows)

    def _finished(self, rows: _Rows) -> StateSpace:
        found = StateSpace(
            self.observations, self.ended, self.saved, self.start,
            source=np.array(rows.source, dtype=np.int64),
            action=np.array(rows.action, dtype=np.int64),
            probability=np.array(rows.chance, dtype=float),
            target=np.array(rows.target, dtype=np.int64),
            rewards=np.array(rows.rewards, dtype=float).reshape(len(rows.source), rows.width),
            identities=list(self.number),
            known=[] if self.index_of is not None else list(self.attributes.known),
            drawable=not self.attributes.partly_saved,
        )  # fmt: skip
        if self.index_of is not None and self.compared:
            found.notes.append(
                f"states are told apart by the environment's own get_obs_idx; {self.compared} identities that it does not "
                "tell apart were tried out, and behave the same"
            )
        return found

    def _reset(self) -> Any:
        self.attributes.first_state()
        return self._call(self.env.reset)[0]

    def _step(self, saved: dict[str, Any], action: int) -> tuple[Any, tuple[float, ...], bool]:
        self.attributes.restore(saved)
        observation, reward, terminated, truncated, _ = self._call(self.env.step, self.actions[action])
        return observation, reward_row(reward), bool(terminated or truncated)

    def _call(self, method: Any, *given: Any) -> Any:
        try:
            return method(*given)
        except NotExactError:
            raise
        except Exception as error:
            self.attributes.check(thoroughly=True)  # a counter proxy may have been the cause
            raise NotExactError(
                f"its {method.__name__}() failed during exploration ({type(error).__name__}: {error})"
            ) from None

    def _state(self, observation: Any, ended: bool, depth: int) -> int:
        """Return the number of the state that the environment is in now."""
        self._check_budget()
        key = self._key(observation, ended)
        self.attributes.check()
        state = self.number.get(key)
        if state is None:
            state = self.number[key] = len(self.depths)
            if state >= self.most:
                raise NotExactError(f"it has more than {self.most:,} states")
            self.depths.append(depth)
            self.observations.append(kept(observation))
            self.ended.append(ended)
            self.saved.append(self.attributes.save())
        if self.index_of is not None and not ended:
            content, others = self.attributes.state(), self.contents_of.setdefault(state, [])
            if content not in others and len(others) <= ALTERNATIVES:
                others.append(content)
                if len(others) > 1:
                    self.doubles.append((state, self.attributes.save()))
        return state

    def _check_budget(self) -> None:
        """Raise an OutOfBudgetError if all attempts together took too long, or the states take too much memory."""
        found = len(self.depths)
        if time.process_time() - self.began > self.seconds:
            raise OutOfBudgetError(
                f"{found:,} states were found in {self.seconds:g} seconds of processor time, and the search had not ended "
                "(the environment variable TRADEOFF_SECONDS allows more)"
            )
        if found % CHECKED_EVERY == 0:
            report(f"Exploring {self.name}: states found", found)
            if resident_memory() - self.resident > self.room:
                raise OutOfBudgetError(
                    f"its {found:,} states found so far take more than {self.room / GIB:.3g} GiB of memory, and the search "
                    "had not ended (the environment variable TRADEOFF_MEMORY allows more)"
                )

    def _key(self, observation: Any, ended: bool) -> Any:
        shown = frozen(observation) if ended or self.attributes.counted else None  # observing a counter is using it
        if self.index_of is not None:
            return "end" if ended else "going", int(np.asarray(self.index_of(observation)).ravel()[0])
        return ("end", shown) if ended else self.attributes.state()

    def _branches(self, state: int, saved: dict[str, Any]) -> Iterator[Branch]:
        """Yield the branches of every action in a state, given by these saved attributes."""
        for action in range(len(self.actions)):
            for chance, (observation, reward, ended) in self.branching.outcomes(lambda a=action: self._step(saved, a)):  # type: ignore[misc]
                self.runs += 1
                if self.runs > MANY_RUNS and self.runs > MOST_RUNS_PER_STEP * (state + 1) * len(self.actions):
                    raise NotExactError(
                        f"its steps have too many random outcomes: only {state:,} states were explored in {self.runs:,} tries"
                    )
                yield state, action, chance, self._state(observation, ended, self.depths[state] + 1), reward

    def _compare(self, state: int, saved: dict[str, Any], rows: _Rows) -> None:
        """Raise _UnlikeError unless other attributes with the same index behave as that state does."""
        if self.depth is None or self.depths[state] < self.depth:
            first, last = bisect_left(rows.source, state), bisect_right(rows.source, state)
            width = rows.width
            before = [
                (
                    state,
                    rows.action[i],
                    rows.chance[i],
                    rows.target[i],
                    tuple(rows.rewards[width * i : width * (i + 1)]),
                )
                for i in range(first, last)
            ]
            self.compared += 1
            if _behaviour(before) != _behaviour(self._branches(state, saved)):
                raise _UnlikeError

    # --- the real environment ----------------------------------------------------------------------------------------

    def check_against_real(self, found: StateSpace) -> None:
        """Raise a NotExactError if the environment, played normally, does something that no branch describes."""
        rng, left, episode = np.random.default_rng(0), CHECKED_STEPS, 0
        self.attributes.counted, drawn = [], random.getstate()
        before = self.attributes.save(), {name: vars(self.env).get(name) for name in ("_np_random", "_np_random_seed")}
        try:
            while left > 0 and episode < CHECKED_STEPS // 5:
                observation, _ = self.env.reset(seed=episode)
                state = self._found(found, observation, False)
                if state not in found.start:
                    raise NotExactError("it does not always begin as it did during exploration")
                episode += 1
                for _ in range(min(left, self.depth or left)):
                    left -= 1
                    action = int(rng.integers(len(self.actions)))
                    observation, reward, terminated, truncated, _ = self.env.step(self.actions[action])
                    rows, ended = found.branches(state), bool(terminated or truncated)
                    target = self._found(found, observation, ended)
                    same = (found.action[rows] == action) & (found.target[rows] == target)
                    if not np.any(same & np.all(found.rewards[rows] == reward_row(reward), axis=1)):
                        raise NotExactError("it did something that exploration never saw")
                    state = target
                    if ended:
                        break
        finally:
            self.attributes.restore(before[0])
            vars(self.env).update(before[1])
            random.setstate(drawn)

    def _found(self, found: StateSpace, observation: Any, ended: bool) -> int:
        state = self.number.get(self._key(observation, ended), -1)
        if state < 0 or (self.index_of is None and frozen(found.observations[state]) != frozen(observation)):
            raise NotExactError("it reached a state that exploration never reached")
        return state


def _behaviour(rows: Iterable[Branch]) -> dict[Any, float]:
    """Return the probability of everything that can happen, for comparison."""
    total: dict[Any, float] = {}
    for _, action, chance, target, reward in rows:
        total[action, target, reward] = total.get((action, target, reward), 0.0) + chance
    return {what: round(chance, 12) for what, chance in total.items()}
