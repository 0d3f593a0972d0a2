"""Interview many simulated people at once: whoever has answered alike so far is asked the same next.

A strategy sees only answers, so the interviews of a crowd are a tree: at each node some people wait for a question. It is
worked out once, all of them answer it, and each answer leads to another node. The tree is walked depth first, and only
the people who wait at its nodes are kept. Row i depends only on the settings and i, whoever else is in the crowd.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from tradeoff.errors import ArgumentError
from tradeoff.menus import AnyAnswer, AnyQuestion, Menu, first_possible, shapes
from tradeoff.model import Answer, Indices, Matrix, Recommendation, Vector
from tradeoff.people import Person, kind_of
from tradeoff.problem import SAME, Problem
from tradeoff.results import STATED, Results, Row
from tradeoff.strategies import Strategy, spec_of, start
from tradeoff.users import LinearUser, weighed

Numbers: TypeAlias = NDArray[np.int64]
ANSWERS = list(Answer)


@dataclass(frozen=True)
class Settings:
    """Everything that determines a row, except the problem and the user's number."""

    precision: float = 0.01
    strategy: str = "careful"
    error_rate: float = 0.0
    seed: int = 0
    max_questions: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    people: str = "exact"  # one of tradeoff.people.KINDS

    def __post_init__(self) -> None:
        spec_of(self.strategy)
        kind_of(self.people)
        if not (math.isfinite(self.precision) and self.precision >= 0):
            raise ArgumentError(f"a precision is a number >= 0; {self.precision!r} was given")
        if not 0 <= self.error_rate <= 1:
            raise ArgumentError(f"an error rate is a probability; {self.error_rate!r} was given")
        for name, number in (("seed", self.seed), ("max_questions", self.max_questions)):
            if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number < 0):
                raise ArgumentError(f"{name} is {number!r}; it must be a whole number, 0 or more")

    @property
    def linear(self) -> bool:
        """Whether the users are ``LinearUser``, who can answer all at once."""
        return self.people == "exact" and not self.strengths

    @property
    def strengths(self) -> bool:
        """Whether the users say by how much something is better."""
        return bool(self.options.get("strengths"))

    @property
    def alike(self) -> bool:
        """Whether people with the same weights answer the same."""
        return self.linear and not self.error_rate

    def begin(self, problem: Problem) -> Strategy:
        """Return the strategy; it is run without an ``Interview``, since no log is needed."""
        return start(self.strategy, problem, max_questions=self.max_questions, **self.options)


def user_of(problem: Problem, index: int, settings: Settings) -> LinearUser | Person:
    """Return simulated user number ``index``: weights Dirichlet(1), scaled so that their best alternative is worth 1.

    With that scale the precision is relative: 0.01 is 1% of the best that this user can get. ``people`` is their kind.
    """
    weights, seed = _weights(index, settings.seed, len(problem.objectives)), _slips(index, settings.seed)
    if not settings.linear:
        kind = kind_of(settings.people, settings.precision, settings.error_rate)
        return Person(problem, weights, kind, seed, strengths=settings.strengths)
    return LinearUser.scaled(problem, weights, settings.precision, settings.error_rate, seed)


def _weights(index: int, seed: int, objectives: int) -> Vector:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index, 0))).dirichlet(np.ones(objectives))


def _slips(index: int, seed: int) -> int:
    """Return the seed of a user's errors, which do not depend on their weights."""
    return int(np.random.SeedSequence(seed, spawn_key=(index, 1)).generate_state(1, np.uint64)[0])


# --- people who answer ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Waiting:
    """People whose interviews are not finished; what is known of them already saves time, and changes no row."""

    index: Numbers
    weights: Matrix  # scaled as by ``LinearUser.scaled``
    most: Vector  # what their best alternative is worth to them: 1 but for rounding, 0 if there is nothing to gain
    seconds: Vector  # that were spent on each of them so far

    @classmethod
    def of(cls, index: Sequence[int] | Indices, objectives: int) -> Waiting:
        """Return people by their numbers; their weights are drawn when they are first asked."""
        count = len(index)
        unknown = np.full(count, np.nan)
        return cls(np.asarray(index, dtype=np.int64), np.tile(unknown[:, None], objectives), unknown, np.zeros(count))

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, which: slice | Indices) -> Waiting:
        return Waiting(self.index[which], self.weights[which], self.most[which], self.seconds[which])

    @staticmethod
    def joined(parts: Sequence[Waiting]) -> Waiting:
        """Return the people of all parts, in that order."""
        return Waiting(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(Waiting)))

    def drawn(self, problem: Problem, seed: int) -> Waiting:
        """Return these people with their weights, all drawn and scaled as those of ``user_of``."""
        new = np.flatnonzero(np.isnan(self.most))
        if not len(new):
            return self
        drawn = np.array([_weights(index, seed, self.weights.shape[1]) for index in self.index[new].tolist()])
        best = np.array([found.value for found in problem.best(drawn)])
        worth = weighed(drawn, best)
        weights, most = self.weights.copy(), self.most.copy()
        weights[new] = drawn / np.where(worth > 0, worth, 1.0)[:, None]
        most[new] = weighed(weights[new], best)
        return replace(self, weights=weights, most=most)


class Crowd(Protocol):
    """People who answer questions, by their places 0, 1, ...; each is asked in the order of their own interview."""

    def replies(self, question: AnyQuestion, who: Indices) -> list[tuple[AnyAnswer, Indices]]:
        """Return the different answers of these people, each with those who gave it."""

    def rows(self, who: Indices, found: Recommendation, seconds: float) -> Results:
        """Return the rows of people whose interviews ended with this recommendation, after as many seconds for each."""


class LinearCrowd:
    """Many ``LinearUser`` at once: the same answers and errors as each of them would give alone."""

    def __init__(self, people: Waiting, settings: Settings) -> None:
        self.people, self.settings = people, settings
        self.errors = np.zeros(len(people), dtype=np.int64)
        self._random: dict[int, np.random.Generator] = {}

    def replies(self, question: AnyQuestion, who: Indices) -> list[tuple[AnyAnswer, Indices]]:
        """Return the different answers of these people, each with those who gave it."""
        precision, weights = self.settings.precision, self.people.weights[who]
        possible: Sequence[AnyAnswer] = ANSWERS
        if isinstance(question, Menu):
            possible = shapes(len(question.alternatives), question.asks)
            worth = np.stack([weighed(weights, value) for value in question.values], axis=1)
            said = first_possible(worth, precision, question.asks)
        else:
            gap = weighed(weights, question.difference)
            said = np.select([gap > precision, gap < -precision], [0, 1], 2)  # as in ANSWERS
        if self.settings.error_rate:
            pairs = zip(who.tolist(), said.tolist(), strict=True)
            said = np.array([self._said(place, meant, len(possible)) for place, meant in pairs])
        return [(possible[number], who[said == number]) for number in np.unique(said)]

    def _said(self, place: int, meant: int, count: int) -> int:
        """Return the number of what somebody says: by mistake, any of the answers that they do not mean."""
        if place not in self._random:
            self._random[place] = np.random.default_rng(_slips(int(self.people.index[place]), self.settings.seed))
        random = self._random[place]
        if random.random() >= self.settings.error_rate:
            return meant
        self.errors[place] += 1
        other = int(random.integers(count - 1))
        return other + (other >= meant)

    def rows(self, who: Indices, found: Recommendation, seconds: float) -> Results:
        """Return the rows of people whose interviews ended with this recommendation, after as many seconds for each."""
        people = self.people[who]
        most = np.where(people.most > 0, people.most, np.inf)
        regret = np.where(people.most > 0, 1.0 - weighed(people.weights, found.alternative.value) / most, 0.0)
        regret[np.abs(regret) <= SAME] = 0.0
        return rows_of(found, people.index, people.weights, regret, self.errors[who], people.seconds + seconds)


class PersonCrowd:
    """People of a kind who answer one by one, each from their own taste and habits."""

    def __init__(self, problem: Problem, people: Waiting, settings: Settings) -> None:
        self.people = people
        self.persons = [user_of(problem, index, settings) for index in people.index.tolist()]

    def replies(self, question: AnyQuestion, who: Indices) -> list[tuple[AnyAnswer, Indices]]:
        """Return the different answers of these people, each with those who gave it."""
        said: dict[AnyAnswer, list[int]] = {}
        for place in who.tolist():
            said.setdefault(self.persons[place](question), []).append(place)
        return [(answer, np.array(places)) for answer, places in said.items()]

    def rows(self, who: Indices, found: Recommendation, seconds: float) -> Results:
        """Return the rows of people whose interviews ended with this recommendation, after as many seconds for each."""
        people, persons = self.people[who], [cast(Person, self.persons[place]) for place in who.tolist()]
        weights = np.array([person.weights for person in persons])
        regret = np.array([person.regret(found.alternative) for person in persons])
        errors = np.array([person.errors for person in persons])
        return rows_of(found, people.index, weights, regret, errors, people.seconds + seconds)


def rows_of(
    found: Recommendation, index: Numbers, weights: Matrix, regret: Vector, errors: Numbers, seconds: Vector
) -> Results:
    """Return the rows of people to whom the same was recommended."""
    stated = (found.regret_bound, found.robust_bound, found.likely_worst, found.likely_regret, found.target)
    same = {
        name: np.full(len(index), np.nan if share is None else share)
        for name, share in zip(STATED, stated, strict=True)
    }
    return Results(
        index=index, weights=weights, questions=np.full(len(index), found.questions), regret=regret,
        complete=np.full(len(index), found.complete), reason=(sys.intern(str(found.reason)),) * len(index), errors=errors,
        seconds=seconds, **same,
    )  # fmt: skip


# --- the tree of answers ----------------------------------------------------------------------------------------------


class Branch(NamedTuple):
    """People who gave the same answers and wait for what follows; the seconds that were spent on each of them."""

    replies: tuple[AnyAnswer, ...]
    who: Indices
    seconds: float


class Walked(NamedTuple):
    """What was found in some time of walking through the tree of a crowd's answers."""

    rows: Results
    left: Waiting  # those whose interviews are not finished, neighbours in the tree side by side
    worked_out: int  # questions that were worked out, each once however many people were asked it


def interview_all(problem: Problem, people: Waiting, settings: Settings, until: float = math.inf) -> Walked:
    """Interview these people, until the clock (``time.perf_counter``) shows ``until``; at least one interview ends.

    The time for each question is shared evenly among those who are asked it.
    """
    people = people.drawn(problem, settings.seed) if settings.linear else people
    crowd: Crowd = LinearCrowd(people, settings) if settings.linear else PersonCrowd(problem, people, settings)
    branches, worked_out = [Branch((), np.arange(len(people)), 0.0)], 0
    rows: list[Results] = []
    while branches and not (rows and time.perf_counter() >= until):
        branch = branches.pop()
        found, ended, others = _followed(settings.begin(problem), crowd, branch)
        rows.append(crowd.rows(ended.who, found, ended.seconds))
        branches += others
        worked_out += len(ended.replies) - len(branch.replies)
    left = [replace(people[who], seconds=people.seconds[who] + seconds) for _, who, seconds in reversed(branches)]
    return Walked(Results.joined(rows), Waiting.joined([people[:0], *left]), worked_out)


def _followed(running: Strategy, crowd: Crowd, branch: Branch) -> tuple[Recommendation, Branch, list[Branch]]:
    """Follow the answer that most people give until an interview ends; return those who answered otherwise as branches."""
    replies, who, seconds = branch
    others: list[Branch] = []
    clock = time.perf_counter()

    def share() -> float:
        """Return the time since this was last asked, shared among those who are being asked."""
        nonlocal clock
        before, clock = clock, time.perf_counter()
        return (clock - before) / len(who)

    try:
        step = next(running)
        for reply in replies:
            step = running.send(reply)
        while True:
            *fewer, (reply, most) = sorted(crowd.replies(step.question, who), key=lambda said: len(said[1]))
            seconds += share()
            others += [Branch((*replies, other), some, seconds) for other, some in fewer]
            replies, who = (*replies, reply), most
            step = running.send(reply)
    except StopIteration as end:
        return end.value, Branch(replies, who, seconds + share()), others


def run_user(problem: Problem, index: int, settings: Settings) -> Row:
    """Interview simulated user number ``index`` and return the result: the same row as in any run with this user.

    >>> import tradeoff
    >>> row = run_user(tradeoff.load("coffee"), 3, Settings(precision=0.01, strategy="paper"))
    >>> row.index, row.complete, row.regret < 0.01
    (3, True, True)
    """
    return interview_all(problem, Waiting.of([index], len(problem.objectives)), settings).rows.row(0)
