"""Learn a model from logged episodes, and keep track of the evidence for it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tradeoff.errors import ProblemError
from tradeoff.mdp.inputs import number_of


@dataclass(frozen=True)
class Evidence:
    """The evidence for a learned model.

    ``visits`` counts how often each action was taken in each state; ``unseen`` lists the (state, action) pairs of known
    states and actions that were never tried, which the model therefore does not offer; ``only_last`` lists the states
    seen only at the end of episodes, where the available actions are unknown and the model ends.
    """

    visits: Mapping[tuple[str, str], int]
    unseen: tuple[tuple[str, str], ...]
    only_last: tuple[str, ...]
    episodes: int

    def notes(self) -> list[str]:
        """Return notes on what a person should know before trusting the model."""
        fewest = min(self.visits, key=lambda pair: self.visits[pair])
        found = [
            f"learned from {self.episodes} episodes; the least seen is action {fewest[1]!r:.60} in state {fewest[0]!r:.60}, "
            f"{self.visits[fewest]} times"
        ]
        if self.unseen:
            some = "; ".join(f"{action!r:.60} in {state!r:.60}" for state, action in self.unseen[:3])
            found.append(f"{len(self.unseen)} actions were never seen in a state and are not offered there: {some}")
        if self.only_last:
            some = ", ".join(map(repr, self.only_last[:3]))
            found.append(f"{len(self.only_last)} states were only seen last; the model ends there: {some}")
        return found


@dataclass(frozen=True)
class Learned:
    """The rows of a learned model, as accepted by ``MDP.from_rows``, and the evidence for them."""

    rows: list[tuple[str, str, float, str, list[float]]]
    start: dict[str, float]
    horizon: int
    evidence: Evidence


def learn(log: Iterable[Sequence[Any]]) -> Learned:
    """Return the model estimated from logged steps (episode, step, state, action, rewards, next state).

    Probabilities are relative frequencies, and the reward of a branch is the mean of those logged with it.
    """
    episodes: dict[str, dict[int, tuple[str, str, list[float], str]]] = defaultdict(dict)
    for line, row in enumerate(log, start=1):
        if isinstance(row, str) or not isinstance(row, Sequence) or len(row) != 6:
            raise ProblemError(
                f"row {line} of the log is {row!r:.80}; a row is (episode, step, state, action, rewards, next state)"
            )
        episode, step, state, action, rewards, after = row
        amounts = [number_of(r, f"a reward in row {line}") for r in np.atleast_1d(np.asarray(rewards, dtype=object))]
        when = number_of(step, f"the step in row {line}")
        if not np.isfinite(when) or when != int(when):
            raise ProblemError(f"the step in row {line} is {step!r:.60}, which is not a whole number")
        if int(when) in episodes[str(episode)]:
            raise ProblemError(f"row {line}: step {int(when)} of episode {episode!r:.60} is logged twice")
        episodes[str(episode)][int(when)] = (str(state), str(action), amounts, str(after))
    if not episodes:
        raise ProblemError("the log has no rows; a model is learned from at least one step")
    return _count(episodes)


def _count(episodes: Mapping[str, Mapping[int, tuple[str, str, list[float], str]]]) -> Learned:
    visits: Counter[tuple[str, str]] = Counter()
    branches: Counter[tuple[str, str, str]] = Counter()
    earned: dict[tuple[str, str, str], np.ndarray] = {}
    starts: Counter[str] = Counter()
    last: dict[str, None] = {}
    width: int | None = None
    for episode, steps in episodes.items():
        order = sorted(steps)
        if order != list(range(order[0], order[0] + len(order))):
            gap = next(t for t in range(order[0], order[-1]) if t not in steps)
            raise ProblemError(
                f"step {gap} of episode {episode!r:.60} is missing from the log; complete it or leave it out"
            )
        starts[steps[order[0]][0]] += 1
        for t in order:
            state, action, amounts, after = steps[t]
            width = len(amounts) if width is None else width
            if len(amounts) != width:
                raise ProblemError(
                    f"step {t} of episode {episode!r:.60} has {len(amounts)} rewards where others have {width}"
                )
            if t + 1 in steps and steps[t + 1][0] != after:
                raise ProblemError(
                    f"step {t} of episode {episode!r:.60} ends in state {after!r:.60}, but step {t + 1} begins in "
                    f"{steps[t + 1][0]!r:.60}; the log is inconsistent there"
                )
            visits[state, action] += 1
            key = (state, action, after)
            branches[key] += 1
            earned[key] = earned.get(key, np.zeros(width)) + amounts
        last[steps[order[-1]][3]] = None
    states = list(dict.fromkeys(state for state, _ in visits))
    actions = list(dict.fromkeys(action for _, action in visits))
    acted = set(states)
    evidence = Evidence(
        visits=dict(visits),
        unseen=tuple((s, a) for s in states for a in actions if (s, a) not in visits),
        only_last=tuple(state for state in last if state not in acted),
        episodes=len(episodes),
    )
    rows = [
        (s, a, count / visits[s, a], after, (earned[s, a, after] / count).tolist())
        for (s, a, after), count in branches.items()
    ]
    total = sum(starts.values())
    horizon = max(len(steps) for steps in episodes.values())
    return Learned(rows, {state: count / total for state, count in starts.items()}, horizon, evidence)
