"""Decision lists: what a policy does when, in as few lines as possible.

The variables of a state are the parts of its name (``Wording.parts``), and the step. A list is read from the top: the first
line that fits a decision applies. Lines are chosen greedily, the one that is right for the most likely decisions first.
A line that is wrong for a few of the decisions it fits says so (``exact`` is False).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, takewhile
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tradeoff.model import Situation, Vector
from tradeoff.presentation.text import one_line
from tradeoff.wording import Wording

LINES = 20  # of a list, at most
PURITY = 0.95  # of the decisions that a line fits, by probability: it is right for so many at least
VARIABLES = 2  # in a condition, at most, unless nothing shorter is right
VALUES = 3  # of one variable that a condition joins with "or", at most
SIMPLER = 0.97  # what a line counts for each variable or value more than one
SOONER = 0.97  # what a line counts for each step that its decisions are later: what comes first decides what follows
TIMELESS = 0.7  # what a line counts that depends on the step: a state says more
CERTAIN = 1 - 1e-9
STEP = "step"

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Condition:
    """What has to hold for a line to fit: some variables have one of some values. Without any, it always holds."""

    values: tuple[tuple[str, tuple[str, ...]], ...] = ()  # of each variable; numbers of steps as texts

    def words(self, wording: Wording) -> str:
        """Return the condition as a phrase: "in a calm market, in quarter 1 to 3"; "" where it always holds."""
        return ", ".join(
            one_line(wording.steps(sorted(map(int, values)))) if name == STEP else join_phrases(values)
            for name, values in self.values
        )


@dataclass(frozen=True)
class Line:
    """One line of a list: what is done in all decisions that fit the condition, or in nearly all of them."""

    condition: Condition
    action: str
    members: frozenset[int]  # the decisions that it fits first, and is right for
    exact: bool  # whether it is right for all decisions that it fits first
    fits: frozenset[int]  # all decisions that fit the condition
    step: float  # when its decisions are made, on average


def join_phrases(phrases: Sequence[str]) -> str:
    """Return phrases joined by "or"; the words that all begin or end with are said once.

    >>> join_phrases(["home after good news", "home after news of jams"]), join_phrases(["at the desk"])
    ('home after good news or news of jams', 'at the desk')
    >>> join_phrases(["with 4 units left", "with 3 units left", "with 2 units left"])
    'with 4, 3 or 2 units left'
    """
    words = [phrase.split(" ") for phrase in phrases]
    if len(words) == 1:
        return phrases[0]
    shortest = min(map(len, words)) - 1
    begin = next((i for i in range(shortest) if len({each[i] for each in words}) > 1), shortest)
    end = next((i for i in range(shortest - begin) if len({each[-1 - i] for each in words}) > 1), shortest - begin)
    middles = [" ".join(each[begin : len(each) - end]) for each in words]
    joined = f"{', '.join(middles[:-1])} or {middles[-1]}"
    return " ".join([*words[0][:begin], joined, *words[0][len(words[0]) - end :]])


def in_time_order(lines: Sequence[Line]) -> list[Line]:
    """Return lines of a list in the order in which they are needed, as far as that changes nothing.

    Two lines may change places if no decision fits both.
    """
    ordered: list[Line] = []
    for line in lines:
        at = len(ordered)
        while at and line.step < ordered[at - 1].step and not line.fits & ordered[at - 1].fits:
            at -= 1
        ordered.insert(at, line)
    return ordered


def opening(situations: Sequence[Situation]) -> list[Situation]:
    """Return the decisions that are always made first, whatever happens, as far as none of their actions is taken again."""
    certain = list(takewhile(lambda situation: situation.probability > CERTAIN, situations))
    first = [situation for situation in certain if situation.free]
    later = {situation.action for situation in situations[len(certain) :] if situation.free}
    actions = [situation.action for situation in first]
    again = (i for i, action in enumerate(actions) if action in later or action in actions[i + 1 :])
    return first[: next(again, len(first))]


class _Candidate(NamedTuple):
    """A condition as positions in the table of codes, and what it is worth."""

    score: float
    fits: NDArray[np.bool_]
    action: int
    variables: tuple[int, ...]
    values: tuple[tuple[int, ...], ...]


class DecisionList:
    """The decision list of some decisions of a policy."""

    def __init__(self, decisions: Sequence[Situation], wording: Wording) -> None:
        self.decisions, self.wording = decisions, wording
        parts = {decision.state: wording.parts(decision.state) for decision in decisions}
        known = {state: {name: one_line(words) for name, words in each.items()} for state, each in parts.items()}
        self.names = [*dict.fromkeys(name for each in known.values() for name in each), STEP]
        self.texts: list[list[str]] = []  # the values of each variable
        self.codes = np.full((len(decisions), len(self.names)), -1, dtype=np.intp)  # -1 where it has no such variable
        for j, name in enumerate(self.names):
            column = [str(one.step + 1) if name == STEP else known[one.state].get(name) for one in decisions]
            values = {text: i for i, text in enumerate(dict.fromkeys(text for text in column if text is not None))}
            self.texts.append(list(values))
            self.codes[:, j] = [-1 if text is None else values[text] for text in column]
        numbers = {action: i for i, action in enumerate(dict.fromkeys(one.action for one in decisions))}
        self.actions = list(numbers)
        self.action = np.array([numbers[one.action] for one in decisions], dtype=np.intp)
        self.mass: Vector = np.array([one.probability for one in decisions])
        self.step: Vector = np.array([float(one.step) for one in decisions])
        self._groups = [
            self._grouped(subset)
            for size in range(VARIABLES + 1)
            for subset in combinations(range(len(self.names)), size)
        ]

    def _grouped(self, variables: tuple[int, ...]) -> tuple[tuple[int, ...], Indices, int]:
        """Return the group of each decision by the values of these variables (-1: it has none), and how many there are."""
        columns = self.codes[:, variables]
        group = np.zeros(len(columns), dtype=np.intp)
        for j, column in zip(variables, columns.T, strict=True):
            group = group * len(self.texts[j]) + column
        group[(columns < 0).any(axis=1)] = -1
        found, inverse = np.unique(group, return_inverse=True)
        shift = int(len(found) > 0 and found[0] == -1)
        return variables, inverse - shift, len(found) - shift

    def lines(self) -> list[Line]:
        """Return the lines, the most important first, as many as are needed or allowed."""
        made: list[Line] = []
        left = np.ones(len(self.decisions), dtype=bool)
        while left.any() and len(made) < LINES:
            best = self._best(left)
            right = best.fits & (self.action == best.action)
            condition = Condition(
                tuple(
                    (self.names[j], tuple(self.texts[j][value] for value in values))
                    for j, values in zip(best.variables, best.values, strict=True)
                )
            )
            members = frozenset(np.flatnonzero(right).tolist())
            columns = zip(best.variables, best.values, strict=True)
            fits = np.all([np.ones_like(left), *(np.isin(self.codes[:, j], values) for j, values in columns)], axis=0)
            step = float(np.average(self.step[right], weights=self.mass[right]))
            exact = len(members) == int(best.fits.sum())
            every = frozenset(np.flatnonzero(fits).tolist())
            made.append(Line(condition, self.actions[best.action], members, exact, every, step))
            left &= ~best.fits
        return made

    def _best(self, left: NDArray[np.bool_]) -> _Candidate:
        found = [candidate for group in self._groups for candidate in self._candidates(left, *group)]
        if not found:  # only all variables together tell what is done
            found = [*self._candidates(left, *self._grouped(tuple(range(len(self.names)))))]
        if not found:  # the likeliest decision has fewer variables than others
            i = int(np.argmax(np.where(left, self.mass, -1.0)))
            own = tuple(int(j) for j in np.flatnonzero(self.codes[i] >= 0))
            fits = left & (self.codes[:, own] == self.codes[i, own]).all(axis=1)
            return _Candidate(0.0, fits, int(self.action[i]), own, tuple((int(self.codes[i, j]),) for j in own))
        return max(found, key=lambda candidate: candidate.score)

    def _candidates(
        self, left: NDArray[np.bool_], variables: tuple[int, ...], group: Indices, count: int
    ) -> list[_Candidate]:
        """Return the best condition on these variables for the decisions that are left, and the best that joins values."""
        chosen = np.flatnonzero(left & (group >= 0))
        if not len(chosen):
            return []
        table = np.zeros((count, len(self.actions)))
        np.add.at(table, (group[chosen], self.action[chosen]), self.mass[chosen])
        total, action = table.sum(axis=1), table.argmax(axis=1)
        right = table[np.arange(count), action]
        pure = np.flatnonzero((right >= PURITY * total) & (total > 0))
        if not len(pure):
            return []
        in_time = len(self.names) - 1 in variables
        worth = (right - (total - right)) * SIMPLER ** max(len(variables) - 1, 0) * (TIMELESS if in_time else 1.0)
        late = np.zeros(count)
        np.add.at(late, group[chosen], self.mass[chosen] * self.step[chosen])
        worth *= SOONER ** (late / np.maximum(total, np.finfo(float).tiny))
        best = pure[worth[pure].argmax()]
        sets = [(float(worth[best]), [int(best)])]
        if len(variables) == 1:
            for a in np.unique(action[pure]):
                same = pure[action[pure] == a]
                several = same[np.argsort(-worth[same], kind="stable")][:VALUES]
                sets += [
                    (float(worth[several[:n]].sum()) * SIMPLER ** (n - 1), several[:n].tolist())
                    for n in range(2, len(several) + 1)
                ]
        score, groups = max(sets, key=lambda each: each[0])
        fits = left & np.isin(group, groups)
        shown = [int(np.flatnonzero(fits & (group == g))[0]) for g in groups]
        values = tuple(
            tuple(int(self.codes[i, j]) for i in (shown if len(shown) > 1 else shown[:1])) for j in variables
        )
        return [_Candidate(score, fits, int(action[groups[0]]), variables, values)]
