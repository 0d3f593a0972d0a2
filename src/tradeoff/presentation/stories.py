"""Trajectories as stories: each path told once, repeats folded, with its share and what it comes to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TypeAlias

import numpy as np

from tradeoff.errors import ArgumentError
from tradeoff.model import Lottery, Trajectory, Vector
from tradeoff.presentation.numbers import NOISE, ROUNDING, amount, chance, share_percentages, share_total
from tradeoff.presentation.text import one_line
from tradeoff.wording import Wording

# A state and the action taken there; None where the path ends.
Step: TypeAlias = tuple[str, str | None]

PLAIN = Wording()
LONGEST_CYCLE = 3  # steps; readers do not recognise longer ones


@dataclass(frozen=True)
class Repeat:
    """Some steps of a path, done one after the other so many times."""

    steps: tuple[Step, ...]
    times: int = 1

    def words(self, between: str = "; ") -> str:
        """Return the steps as a person reads them.

        >>> Repeat((("kerb", "wait"),), 5).words()
        'kerb: wait (5 times)'
        >>> Repeat((("kerb", "wait"), ("kerb", "wave")), 2).words()
        'kerb: wait; kerb: wave (these 2 steps, 2 times)'
        >>> Repeat((("", "wait"),)).words()  # where the state does not matter
        'wait'
        """
        text = between.join(
            state if action is None else f"{state}: {action}" if state else action for state, action in self.steps
        )
        if self.times == 1:
            return text
        which = "" if len(self.steps) == 1 else f"these {len(self.steps)} steps, "
        return f"{text} ({which}{self.times:,} times)"


@dataclass(frozen=True)
class Story:
    """One way things can go."""

    share: str  # its weight in the average, or how often it happens where that is the same; "" where it is the only one
    chance: str  # how often exactly this happens; "" where the share says it, or nothing is left to chance
    like_above: bool  # whether only what differs from the story above is told
    parts: tuple[Repeat, ...]
    amounts: tuple[tuple[str, str], ...]  # objective and amount; none where the average says it
    states: tuple[str, ...]  # all states or places passed, as the problem names them
    labels: tuple[tuple[str, str], ...] = ()  # what else is known of an item

    @property
    def summary(self) -> str:
        """The story in one line."""
        told = ", ".join(part.words() for part in self.parts)
        return f"{self.share}: {told}" if self.share else told


# --- lotteries -------------------------------------------------------------------------------------------------------


def heaviest_first(lottery: Lottery) -> Lottery:
    """Return the lottery with its trajectories in the order a person reads them: the largest share first."""
    order = np.argsort(-lottery.weights, kind="stable")
    told = tuple(lottery.trajectories[i] for i in order)
    return replace(lottery, weights=lottery.weights[order], trajectories=told)


def is_certain(lottery: Lottery) -> bool:
    """Return whether there is only one way things can go."""
    return len(lottery.trajectories) == 1 and lottery.trajectories[0].probability > 1 - ROUNDING


def common_total(*lotteries: Lottery) -> int | None:
    """Return what the shares of these lotteries are counted out of; None if each has a single story."""
    if all(len(lottery.trajectories) == 1 for lottery in lotteries):
        return None
    return share_total(*(lottery.weights for lottery in lotteries))


def stories(lottery: Lottery, total: int | None, wording: Wording = PLAIN) -> tuple[Story, ...]:
    """Return the trajectories as stories; one that begins like the story above tells only what then differs.

    A state is named where chance decided between trajectories, by what chance decided, and at the end; elsewhere the
    actions say it all. Without a ``total`` to count shares out of, a story has no share and no amounts: the average says it.
    """
    count = len(lottery.trajectories)
    shares, chances = share_words(lottery, total), chance_words(lottery)
    amounts = outcomes(lottery) if total is not None else [()] * count
    paths = [steps_of(trajectory) for trajectory in lottery.trajectories]
    told = []
    for i, (path, trajectory) in enumerate(zip(paths, lottery.trajectories, strict=True)):
        begin = _common(paths[i - 1], path) if i else 0
        steps, above = ([_told(p, t, paths, wording) for t in range(begin, len(p))] for p in (path, paths[i - 1]))
        if begin and _within(steps, above):  # what did not happen is not seen unless all of it is told
            begin, steps = 0, [_told(path, t, paths, wording) for t in range(len(path))]
        told.append(
            Story(
                shares[i],
                chances[i],
                begin > 0,
                tuple(fold(steps)),
                amounts[i],
                trajectory.through or trajectory.states,
            )
        )
    return tuple(told)


def are_frequencies(lottery: Lottery) -> bool:
    """Return whether the stories are all that can happen, so that each one's weight is also how often it happens."""
    chances = np.array([trajectory.probability for trajectory in lottery.trajectories])
    return bool(np.abs(chances - lottery.weights).max() <= ROUNDING)


def share_words(lottery: Lottery, total: int | None) -> list[str]:
    """Return what each story counts for: how often it happens where that is known, otherwise its weight in the average."""
    if total is None:
        return [""] * len(lottery.trajectories)
    if are_frequencies(lottery):
        return [f"{chance(trajectory.probability)} of the time" for trajectory in lottery.trajectories]
    return [f"weight {one}" for one in share_percentages(lottery.weights, 100)]


def chance_words(lottery: Lottery) -> list[str]:
    """Return how often exactly each story happens; "" where its share says that already."""
    if are_frequencies(lottery):
        return [""] * len(lottery.trajectories)
    return [f"exactly this happens {chance(trajectory.probability)} of the time" for trajectory in lottery.trajectories]


def outcomes(lottery: Lottery) -> list[tuple[tuple[str, str], ...]]:
    """Return the name and amount of each objective, for each trajectory."""
    reach = np.abs(lottery.outcomes).max(axis=0)
    return [_amounts(lottery, outcome, reach) for outcome in lottery.outcomes]


def average(lottery: Lottery) -> tuple[tuple[str, str], ...]:
    """Return the name of each objective and its average amount."""
    return _amounts(lottery, lottery.average, np.abs(lottery.outcomes).max(axis=0))


def _amounts(lottery: Lottery, outcome: Vector, reach: Vector) -> tuple[tuple[str, str], ...]:
    clean = np.where(np.abs(outcome) <= NOISE * reach, 0.0, outcome)
    return tuple((one_line(o.name), amount(o, float(x))) for o, x in zip(lottery.objectives, clean, strict=True))


def _safe(step: Step) -> Step:
    state, action = step
    return one_line(state), None if action is None else one_line(action)


def _common(path: Sequence[Step], other: Sequence[Step]) -> int:
    """Return how many steps two paths have in common from the start."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(path, other, strict=False)))


def _within(steps: Sequence[Step], others: Sequence[Step]) -> bool:
    """Return whether the steps are some of the others, in the same order."""
    left = iter(others)
    return all(step in left for step in steps)


def _told(path: Sequence[Step], t: int, paths: Iterable[Sequence[Step]], wording: Wording) -> Step:
    state, action = path[t]
    parts = wording.parts(state)
    # A path without any action is the reference: that it begins elsewhere says nothing about this one.
    others = [p for p in paths if len(p) > t and p[:t] == path[:t] and p[0][1] is not None]
    elsewhere = [wording.parts(p[t][0]) for p in others if p[t][0] != state]
    if not elsewhere and action is not None:
        return _safe(("", action))
    decided = [words for name, words in parts.items() if any(other.get(name) != words for other in elsewhere)]
    return _safe((", ".join(decided if decided and action is not None else parts.values()), action))


# --- paths -----------------------------------------------------------------------------------------------------------


def path_words(trajectory: Trajectory, wording: Wording = PLAIN) -> list[str]:
    """Return a trajectory as steps a person reads, repeats folded; a last state without an action stands alone.

    >>> path_words(Trajectory(("home", "kerb", "kerb", "work"), ("call", "wait", "wait"), 1.0, [0.0]))
    ['home: call', 'kerb: wait (2 times)', 'work']
    """
    said = [_safe((wording.words(state), action)) for state, action in steps_of(trajectory)]
    return [part.words() for part in fold(said)]


def steps_of(trajectory: Trajectory) -> list[Step]:
    """Return the states of a trajectory, each with the action taken there."""
    states, actions = trajectory.states, trajectory.actions
    if len(states) - len(actions) not in (0, 1):
        raise ArgumentError(
            f"a trajectory has an action in every state but the last, but {len(states)} states and {len(actions)} "
            "actions were given"
        )
    return [*zip(states, actions, strict=False), *((state, None) for state in states[len(actions) :])]


def fold(steps: Sequence[Step]) -> list[Repeat]:
    """Return the steps with immediate repeats of one to three of them folded, so that the fewest are left to read."""
    count, sizes = len(steps), range(1, LONGEST_CYCLE + 1)
    # agree[size, i]: how many steps from i on are the same as those `size` later.
    agree = np.zeros((LONGEST_CYCLE + 1, count + 1), dtype=np.int64)
    for size in sizes:
        for i in reversed(range(count - size)):
            agree[size, i] = agree[size, i + 1] + 1 if steps[i] == steps[i + size] else 0
    cost = [(0, 0)] * (count + 1)  # of the best folding from i on: steps to read, then parts
    best = [Repeat(())] * count
    # After a cycle that ends at i: the least cost from there, and how many more times the cycle is done first.
    after = {size: [((0, 0), 0)] * (count + 1) for size in sizes}
    for i in reversed(range(count)):
        cost[i], best[i] = (1 + cost[i + 1][0], 1 + cost[i + 1][1]), Repeat((steps[i],))
        for size in sizes:
            if agree[size, i] >= size:
                rest, more = after[size][i + 2 * size]
                if (size + rest[0], 1 + rest[1]) < cost[i]:
                    cost[i], best[i] = (size + rest[0], 1 + rest[1]), Repeat(tuple(steps[i : i + size]), 2 + more)
        for size in sizes:
            after[size][i] = (cost[i], 0)
            if i >= size and agree[size, i - size] >= size and after[size][i + size][0] <= cost[i]:
                after[size][i] = (after[size][i + size][0], after[size][i + size][1] + 1)
    folded: list[Repeat] = []
    at = 0
    while at < count:
        folded.append(best[at])
        at += len(best[at].steps) * best[at].times
    return folded
