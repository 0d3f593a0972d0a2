"""Run a strategy over the known answers, up to the first question without one; and find the strategy of a log."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np

from tradeoff.errors import ArgumentError, LogError
from tradeoff.log import Asked, Header, LogState, MenuAsked, Reply, Stated
from tradeoff.menus import (
    AnyAnswer,
    AnyQuestion,
    Graded,
    Menu,
    Occasion,
    Statement,
    Strength,
    check_choice,
    graded,
)
from tradeoff.model import NOTHING, Alternative, Answer, Question, Recommendation, Vector
from tradeoff.problem import Problem
from tradeoff.strategies import AnyStrategy, ForeignAnswer, Step, StrategySpec, name_of, spec_of, start

Record: TypeAlias = tuple[int, Occasion, Reply]  # number in the log, question, answer (None: skipped)


class Run:
    """One run of a strategy. Do not use it after an error; start another one."""

    def __init__(
        self, spec: StrategySpec, problem: Problem, settings: Mapping[str, Any], answers: Iterable[Record] = ()
    ) -> None:
        """``answers`` are used when the strategy reaches their questions, in any order."""
        self.used: list[Record] = []  # the answers that the strategy has used, in the order it used them
        self._foreign: set[int] = set()  # the places among them of those to questions that it would not ask
        self.step: Step | None = None  # the question it waits at; None at its end
        self._final: Recommendation | None = None
        self._found: Recommendation | None = None
        self._recalled = False  # whether this step was found in the strategy's cache
        self.conflicts: tuple[Record, ...] | None = None  # the answers that contradict each other, once computed
        self._waiting: dict[bytes, deque[Record]] = defaultdict(deque)
        for record in answers:
            self._waiting[record[1].key].append(record)
        self._begin = partial(start, spec, problem, **settings)
        self._strategy = self._begin()
        self._move(lambda: next(self._strategy))

    def tell_all(self, records: Iterable[Record], foreign: Container[int]) -> None:
        """Give the strategy answers in their order, those of the numbers in ``foreign`` as ones that it would not ask for."""
        self._tell_each(records, lambda record: record[0] in foreign)

    def tell_in_order(self, records: Iterable[Record]) -> None:
        """Tell answers in their order, each as one to the question being asked if it is that, and as foreign otherwise.

        Where something was stated in between, the questions depend on when: another order would not lead to them.
        """
        self._tell_each(records, lambda record: self.step is None or self.step.question.key != record[1].key)

    def _tell_each(self, records: Iterable[Record], foreign: Callable[[Record], bool]) -> None:
        for is_statement, group in groupby(records, lambda record: isinstance(record[1], Statement)):
            if is_statement:
                self._tell_statements(list(group))
            else:
                for record in group:
                    self._tell(record, foreign=foreign(record))

    def _tell(self, record: Record, *, foreign: bool) -> None:
        """Give the strategy an answer: to the question it waits at or, if foreign, to one that it would not ask."""
        if self.step is None:  # it may have ended before a foreign answer
            return
        _, question, reply = record
        self.used.append(record)
        self._recalled = not foreign and self.step.knows(reply)
        if foreign:
            self._foreign.add(len(self.used) - 1)
        self._move(lambda: self._strategy.send(ForeignAnswer(question, reply) if foreign else reply))

    def _tell_statements(self, records: Sequence[Record]) -> None:
        """Give the strategy what was stated, all at once; if it has ended, it starts again with all answers and this."""
        before: list[ForeignAnswer] = []
        if self.step is None:
            before = [
                ForeignAnswer(question, reply, own=place not in self._foreign)
                for place, (_, question, reply) in enumerate(self.used)
            ]
            self._strategy = self._begin()
            self._move(lambda: next(self._strategy))
            if self.step is None:  # there is nothing to choose
                return
        self._foreign |= set(range(len(self.used), len(self.used) + len(records)))
        self.used += records
        self._recalled = False
        *first, last = (ForeignAnswer(question, reply) for _, question, reply in records)
        self._move(lambda: self._strategy.send(replace(last, before=(*before, *first))))

    def _move(self, move: Callable[[], Step]) -> None:
        """Advance the strategy, past every question whose answer is known."""
        self._found = self.conflicts = None
        try:
            self.step = move()
            while known := self._waiting.get(self.step.question.key):
                self.used.append(known.popleft())
                self.step = self._strategy.send(self.used[-1][2])
        except StopIteration as end:
            self.step, self._final = None, end.value

    def knows(self, reply: Reply) -> bool:
        """Return whether the step after a reply is in the strategy's cache: another person gave the same answers."""
        return self.step is not None and self.step.knows(reply)

    @property
    def recommended(self) -> bool:
        """Whether the recommendation needs no computation."""
        return self._found is not None or self._recalled

    def recommendation(self) -> Recommendation:
        """Return the current recommendation: the final one, or the best estimate so far."""
        if self._found is None:
            found = self._final if self.step is None else self.step.recommend()
            assert found is not None
            # A strategy counts the answers it has used; elsewhere, answers have their numbers in the log.
            used = [number for number, _, _ in self.used]
            doubtful = tuple(sorted(used[number - 1] for number in found.doubtful if number <= len(used)))
            self._found = found if doubtful == found.doubtful else replace(found, doubtful=doubtful)
        return self._found


def described(problem: Problem) -> dict[str, Any]:
    """Return what the header of a log says of a problem."""
    aims = problem.objectives
    return {
        "problem": problem.fingerprint,
        "problem_name": getattr(problem, "name", ""),
        "objectives": tuple(o.name for o in aims),
        "units": tuple(o.unit for o in aims),
        "goals": tuple(str(o.goal) for o in aims),
        "origin": tuple(np.asarray(problem.origin, dtype=float).tolist()),
        "scale": tuple(np.asarray(problem.scale, dtype=float).tolist()),
    }


def check_problem(header: Header, problem: Problem) -> None:
    """Raise a LogError unless the log is about this problem."""
    name = getattr(problem, "name", "")
    if header.problem != problem.fingerprint:
        why = "; its file has changed, or it was read with other options" if header.problem_name == name else ""
        raise LogError(
            f"the log is about another problem ({header.problem_name!r:.80}, fingerprint {header.problem!r:.80}); "
            f"this one is {name!r} with fingerprint {problem.fingerprint!r}{why}"
        )


def spec_of_log(header: Header, strategy: AnyStrategy | None) -> StrategySpec:
    """Return the strategy of a log: the installed one of that name, or the given one."""
    if strategy is not None and name_of(strategy) != header.strategy:
        raise LogError(
            f"the log was written with the strategy {header.strategy!r:.80}, not with {name_of(strategy)!r}; give that one"
        )
    try:
        return spec_of(header.strategy if strategy is None else strategy)
    except ArgumentError as error:
        raise LogError(
            f"the log's header cannot be used by this version: {error}; if it is your own strategy, give it again: "
            "Interview.resume(problem, log, strategy=...)"
        ) from None


def logged_question(event: Asked | MenuAsked) -> AnyQuestion:
    """Return the question of a log, without plans."""
    if isinstance(event, MenuAsked):
        return Menu(tuple(Alternative(np.array(value), NOTHING) for value in event.alternatives), event.asks)
    return Question(Alternative(np.array(event.first), NOTHING), Alternative(np.array(event.second), NOTHING))


def values_of(question: AnyQuestion) -> list[Vector]:
    """Return the gains of a question's alternatives."""
    alternatives = question.alternatives if isinstance(question, Menu) else (question.first, question.second)
    return [one.value for one in alternatives]


def same_question(one: AnyQuestion, other: AnyQuestion) -> bool:
    """Return whether two questions are the same, but for the last digits of another machine."""
    mine, theirs = values_of(one), values_of(other)
    if (
        type(one) is not type(other)
        or len(mine) != len(theirs)
        or getattr(one, "asks", "") != getattr(other, "asks", "")
    ):
        return False
    return all(len(a) == len(b) and np.allclose(a, b, rtol=0, atol=1e-9) for a, b in zip(mine, theirs, strict=True))


def other_question(where: str, logged: AnyQuestion, question: AnyQuestion, version: str | None, mine: str) -> LogError:
    """Return what is wrong with a log in which another question stands than this version, ``mine``, would ask."""
    before, now = ([value.tolist() for value in values_of(one)] for one in (logged, question))
    why = "" if version == mine else "that one chose its questions differently, or "
    return LogError(
        f"{where}: the question was about {before}, but this version would ask about {now}; "
        f"the log was begun with version {version or 'unknown'} of the program (this is {mine}): {why}it was edited"
    )


def checked_reply(answer: AnyAnswer | str, strength: Strength | None, state: LogState) -> AnyAnswer:
    """Return an answer to the question that was asked, with its strength; raise an ArgumentError if it is none."""
    if isinstance(answer, Graded):
        strength = answer.strength if strength is None else strength
        answer = answer.answer
    if strength is not None and not state.strengths:
        raise ArgumentError(
            f"the strength {strength!r:.40} cannot be recorded: this interview does not ask by how much something is "
            "better; begin it with strengths=True, or leave the strength out"
        )
    if isinstance(state.question, MenuAsked):
        return graded(check_choice(answer, len(state.question.alternatives), state.question.asks), strength)
    try:
        side = Answer(answer)
    except ValueError:
        words = ", ".join(repr(a.value) for a in Answer)
        raise ArgumentError(f"{answer!r} is not an answer; it must be one of {words}") from None
    return graded(side, strength)


def stated(event: Stated) -> Record:
    """Return a statement of a log as it is told to a strategy."""
    outcomes = np.array(event.outcomes, dtype=np.int64)
    return event.number, Statement(event.text, np.array(event.differences), outcomes), event.answer
