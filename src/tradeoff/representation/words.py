"""A lottery in words a person reads: paths with their repeats folded, shares out of 100, amounts in units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from tradeoff.errors import ArgumentError
from tradeoff.model import Lottery, Trajectory, Vector

# A state and what is done there; None where the path ends.
Step: TypeAlias = tuple[str, str | None]

LONGEST_CYCLE = 3  # steps; longer ones are not recognised by a reader either
FINEST = 10_000  # shares are counted out of 100, 1,000 or at most this
ROUNDING = 1e-9  # a share this near to a whole count is that count
NOISE = 1e-12  # of an objective's largest amount: what is smaller is a 0 that was added up


@dataclass(frozen=True)
class Repeat:
    """Some steps of a path, done one after the other so many times."""

    steps: tuple[Step, ...]
    times: int = 1

    def words(self) -> str:
        """Return the steps as a person reads them.

        >>> Repeat((("kerb", "wait"),), 5).words()
        'kerb: wait (5 times)'
        >>> Repeat((("kerb", "wait"), ("kerb", "wave")), 2).words()
        'kerb: wait; kerb: wave (these 2 steps, 2 times)'
        >>> Repeat((("", "wait"),)).words()  # where it does not matter in which state
        'wait'
        """
        text = "; ".join(
            state if action is None else f"{state}: {action}" if state else action for state, action in self.steps
        )
        if self.times == 1:
            return text
        which = "" if len(self.steps) == 1 else f"these {len(self.steps)} steps, "
        return f"{text} ({which}{self.times:,} times)"


# --- paths -----------------------------------------------------------------------------------------------------------


def path_words(trajectory: Trajectory) -> list[str]:
    """Return a trajectory as steps a person reads, repeats folded; a last state without an action stands alone.

    >>> path_words(Trajectory(("home", "kerb", "kerb", "work"), ("call", "wait", "wait"), 1.0, [0.0]))
    ['home: call', 'kerb: wait (2 times)', 'work']
    """
    return [part.words() for part in fold(steps_of(trajectory))]


def steps_of(trajectory: Trajectory) -> list[Step]:
    """Return the states of a trajectory, each with what is done there."""
    states, actions = trajectory.states, trajectory.actions
    if len(states) - len(actions) not in (0, 1):
        raise ArgumentError(
            f"a trajectory has an action in every state but the last, but {len(states)} states and {len(actions)} "
            "actions were given"
        )
    return [*zip(states, actions, strict=False), *((state, None) for state in states[len(actions) :])]


def fold(steps: Sequence[Step]) -> list[Repeat]:
    """Return the steps with immediate repeats of one to three of them folded, so that the fewest are left to read."""
    count = len(steps)
    # agree[size, i]: how many steps from i on are the same as those `size` later.
    agree = np.zeros((LONGEST_CYCLE + 1, count + 1), dtype=np.int64)
    cost = [(0, 0)] * (count + 1)  # of the best folding from i on: steps to read, then parts
    best = [Repeat(())] * count
    for i in reversed(range(count)):
        cost[i], best[i] = (1 + cost[i + 1][0], 1 + cost[i + 1][1]), Repeat((steps[i],))
        for size in range(1, LONGEST_CYCLE + 1):
            if i + size < count and steps[i] == steps[i + size]:
                agree[size, i] = agree[size, i + 1] + 1
            times = 1 + int(agree[size, i]) // size
            after = cost[min(i + size * times, count)]
            if times > 1 and (size + after[0], 1 + after[1]) < cost[i]:
                cost[i], best[i] = (size + after[0], 1 + after[1]), Repeat(tuple(steps[i : i + size]), times)
    folded: list[Repeat] = []
    at = 0
    while at < count:
        folded.append(best[at])
        at += len(best[at].steps) * best[at].times
    return folded


def unfold(parts: Sequence[Repeat]) -> list[Step]:
    """Return the steps one by one: what was given to ``fold``."""
    return [step for part in parts for _ in range(part.times) for step in part.steps]


# --- shares ----------------------------------------------------------------------------------------------------------


def share_words(weights: ArrayLike, *beside: ArrayLike) -> list[str]:
    """Return each share as "90% (90 of 100 times)", all out of the same number of times.

    The number is 100, or 1,000 where a share is below 1%, or 10,000 where one is below 0.1%. ``beside`` are the weights
    of lotteries shown next to this one: they count when the number is chosen, so that both sides use the same.

    >>> share_words([0.9, 0.1])
    ['90% (90 of 100 times)', '10% (10 of 100 times)']
    >>> share_words([0.9, 0.1], [0.995, 0.005])
    ['90% (900 of 1,000 times)', '10% (100 of 1,000 times)']
    """
    counts, total = share_counts(weights, *beside)
    exact = _shares(weights)
    return [_share(int(count), total, float(share)) for count, share in zip(counts, exact, strict=True)]


def _share(count: int, total: int, share: float) -> str:
    if count == 0 and share > 0:
        return f"less than {_percent(1, total)} (less than 1 of {total:,} times)"
    if count == total and share < 1:
        return f"more than {_percent(total - 1, total)} (more than {total - 1:,} of {total:,} times)"
    return f"{_percent(count, total)} ({count:,} of {total:,} times)"


def share_counts(weights: ArrayLike, *beside: ArrayLike) -> tuple[list[int], int]:
    """Return how many times of how many each share stands for; the counts add up.

    >>> share_counts([1 / 3, 1 / 3, 1 / 3])
    ([34, 33, 33], 100)
    """
    shares = _shares(weights)
    everything = np.concatenate([shares, *map(_shares, beside)])
    smallest = everything[everything > 0].min()
    total = 100
    while total < FINEST and smallest * total < 1 - ROUNDING:
        total *= 10
    wanted = shares * total
    counts = np.floor(wanted + ROUNDING).astype(np.int64)
    # What is left goes to the largest remainders, and to shares below one time only when there are no others.
    order = np.lexsort((-(wanted - counts), counts == 0))
    counts[order[: total - int(counts.sum())]] += 1
    return counts.tolist(), total


def chance_words(probability: float) -> str:
    """Return how often something happens, as a per cent: two digits, and never 0% or 100% of what is neither.

    >>> [chance_words(p) for p in (1, 0.9, 0.123, 0.004, 1e-9, 0.99999)]
    ['100%', '90%', '12%', '0.4%', 'less than 0.01%', 'more than 99.99%']
    """
    if 0 < probability < 1 / FINEST:
        return f"less than {_percent(1, FINEST)}"
    if 1 - 1 / FINEST < probability < 1 - ROUNDING:
        return f"more than {_percent(FINEST - 1, FINEST)}"
    places = next((n for n in (0, 1, 2) if round(100 * min(probability, 1 - probability), n) >= 10 ** (1 - n)), 2)
    return f"{_trimmed(f'{100 * probability:.{places}f}')}%"


def _percent(count: int, total: int) -> str:
    return f"{_trimmed(f'{100 * count / total:.2f}')}%"


def _trimmed(number: str) -> str:
    return number.rstrip("0").rstrip(".") if "." in number else number


def _shares(weights: ArrayLike) -> Vector:
    found = np.atleast_1d(np.asarray(weights, dtype=np.float64))
    if found.ndim != 1 or not np.isfinite(found).all() or (found < 0).any() or not found.sum() > 0:
        raise ArgumentError(f"shares must be a list of numbers, not negative and not all 0, but {weights!r} was given")
    result: Vector = found / found.sum()
    return result


# --- amounts ---------------------------------------------------------------------------------------------------------


def outcome_words(lottery: Lottery) -> tuple[list[list[str]], list[str]]:
    """Return the outcome of each trajectory, and the average, as texts in the person's units, one per objective."""
    reach = np.abs(lottery.outcomes).max(axis=0)

    def texts(amounts: Vector) -> list[str]:
        clean = np.where(np.abs(amounts) <= NOISE * reach, 0.0, amounts)
        return [o.text(float(amount)) for o, amount in zip(lottery.objectives, clean, strict=True)]

    return [texts(outcome) for outcome in lottery.outcomes], texts(lottery.average)


def heaviest_first(lottery: Lottery) -> Lottery:
    """Return the lottery with its trajectories in the order a person reads them: the largest share first."""
    order = np.argsort(-lottery.weights, kind="stable")
    return Lottery(lottery.objectives, lottery.weights[order], tuple(lottery.trajectories[i] for i in order))


def is_certain(lottery: Lottery) -> bool:
    """Return whether there is only one way things can go."""
    return len(lottery.trajectories) == 1 and lottery.trajectories[0].probability > 1 - ROUNDING


def heading_words(lottery: Lottery) -> str:
    """Return the sentence to put above a lottery: how it is to be read."""
    if len(lottery.trajectories) > 1:
        _, total = share_counts(lottery.weights)
        return f"Imagine doing this {total:,} times. On average, it comes to the same as this:"
    return "This is what happens, every time:" if is_certain(lottery) else "On average, it comes to the same as this:"


# --- the interview ---------------------------------------------------------------------------------------------------

CANNOT_ALL_BE_MEANT = "These answers cannot all be meant: whatever matters to you, one of them must be a slip."
CANNOT_BE_MEANT = "This answer must be a slip: whatever matters to you, it cannot be meant."


def progress_words(number: int, at_most: int | None) -> str:
    """Return which question this is and how many more can come; ``at_most`` counts this one too.

    >>> progress_words(3, 8), progress_words(9, 1), progress_words(2, None)
    ('Question 3, at most 7 more', 'Question 9, the last one', 'Question 2')
    """
    more = "" if at_most is None else ", the last one" if at_most <= 1 else f", at most {at_most - 1:,} more"
    return f"Question {number:,}{more}"
