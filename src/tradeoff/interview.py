"""Ask, tell, undo, resume: an interview is its log, and everything else is replay.

``tell``, ``skip`` and ``undo`` only add an event to the log: they cost nothing, and nothing they record can be lost by a
strategy that fails. The strategy takes the events in when somebody looks: at the next question, the recommendation, or
whether anything is left to ask. Resuming runs the strategy again and answers from the log what was answered before;
taking an answer back does the same without it. A question that was answered once is never asked again unless its answer
was taken back, even if the strategy comes to it by another way.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

import numpy as np

from tradeoff._version import __version__
from tradeoff.errors import ArgumentError, LogError
from tradeoff.log import (
    FORMAT,
    READABLE,
    Answered,
    Asked,
    Event,
    Header,
    LogEvent,
    LogState,
    Reply,
    Retracted,
    Shown,
    Side,
    Skipped,
    SteadyClock,
    event_of,
    header_of,
    read_log,
)
from tradeoff.model import NOTHING, Alternative, Answer, Question, Recommendation
from tradeoff.problem import Problem
from tradeoff.strategies import AnyStrategy, ForeignAnswer, Step, Strategy, StrategySpec, name_of, spec_of, start
from tradeoff.strategies.polytope import Cone, half_spaces

__all__ = ["FORMAT", "READABLE", "VERSION", "Event", "Interview", "Record", "Side", "read_log", "side_of"]

VERSION = __version__

Record: TypeAlias = tuple[int, Question, Reply]  # number in the log, question, answer (None: skipped)
Clock: TypeAlias = Callable[[], datetime]


def wall_clock() -> datetime:
    """Return the time of day."""
    return datetime.now(UTC)


class Interview:
    """One person being asked about one problem.

    >>> import tradeoff
    >>> interview = Interview(tradeoff.load("dependent"), "paper")
    >>> person = tradeoff.LinearUser([1.0, 2.0, 1.0], precision=0.01)
    >>> while question := interview.ask():
    ...     interview.tell(person(question))
    >>> interview.finished, interview.recommendation.complete
    (True, True)
    """

    def __init__(
        self,
        problem: Problem,
        strategy: AnyStrategy = "careful",
        *,
        max_questions: int | None = None,
        skip_implied: bool | None = None,
        sides: int | None = None,
        clock: Clock = wall_clock,
        **options: Any,
    ) -> None:
        """``strategy``: "careful" for people, "certified" for answers that are always right, "paper", or your own.

        ``options`` are the strategy's own; ``skip_implied`` asks nothing that follows from earlier answers. ``sides`` is
        a seed that decides, question by question, which alternative is shown first.
        """
        spec = spec_of(strategy)
        if max_questions is not None and (type(max_questions) is not int or max_questions < 0):
            raise ArgumentError(f"max_questions is {max_questions!r}; it must be a whole number, 0 or more")
        if sides is not None and type(sides) is not int:
            raise ArgumentError(f"sides is {sides!r}; it must be a whole number, the seed of which side is which")
        steady = SteadyClock(clock)
        header = Header(
            version=VERSION,
            problem=problem.fingerprint,
            problem_name=getattr(problem, "name", ""),
            objectives=tuple(o.name for o in problem.objectives),
            strategy=name_of(strategy),
            settings={"max_questions": max_questions, "skip_implied": skip_implied, **options},
            sides=sides,
            at=steady.after(None),
        )
        self._set_up(problem, spec, header, header.to_json(), steady)
        self._advance()  # options that the strategy cannot use are refused here

    def _set_up(self, problem: Problem, spec: StrategySpec, header: Header, written: Event, clock: SteadyClock) -> None:
        self.problem, self.strategy, self.sides = problem, header.strategy, header.sides
        self.state = LogState(header)  # what the log says
        self.thinking: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext  # entered around all thinking
        self._spec, self._clock = spec, clock
        self._events: list[Event] = [written]
        self._resumed = False
        # What the strategy knows, which may be less than the log says.
        self._unseen: deque[LogEvent] = deque()  # recorded since
        self._answers: list[Record] = []  # those not taken back
        self._untold: deque[Record] = deque()  # of these, what the running strategy was not told yet
        self._foreign: set[int] = set()  # numbers of answers to questions that this version would not ask
        self._asked: Question | None = None  # the question that waits for an answer
        self._asked_foreign = False
        self._running: Strategy | None = None
        self._waiting: dict[bytes, deque[Record]] = {}  # answers whose question the strategy has not come to
        self._used: list[Record] = []
        self._step: Step | None = None
        self._final: Recommendation | None = None
        self._found: Recommendation | None = None  # the recommendation, once somebody looked

    # --- recording ----------------------------------------------------------------------------------------------------

    def now(self) -> datetime:
        """Return the time of an event that comes next."""
        return self._clock.after(self.state.last)

    def record(self, event: LogEvent) -> None:
        """Add an event to the log. The strategy takes it in when somebody looks."""
        self.state.apply(event)
        self._events.append(event.to_json())
        self._unseen.append(event)

    def tell(self, answer: Answer | str) -> None:
        """Record the answer to the question that was asked; anything else is refused and changes nothing."""
        try:
            given = Answer(answer)
        except ValueError:
            words = ", ".join(repr(a.value) for a in Answer)
            raise ArgumentError(f"{answer!r} is not an answer; it must be one of {words}") from None
        self.record(Answered(answer=given, number=self._number_asked(), at=self.now()))

    def skip(self) -> None:
        """Record that the question was skipped: nothing is learned from it, and something else is asked instead."""
        self.record(Skipped(number=self._number_asked(), at=self.now()))

    def _number_asked(self) -> int:
        if self.state.question is None:
            if self.finished:
                raise ArgumentError("nothing is being asked any more: the interview is finished")
            raise ArgumentError("no question was asked yet that this could answer; call ask() first")
        return self.state.question.number

    def undo(self, number: int | None = None) -> None:
        """Take back the last answer, or the one with this number in the log."""
        standing = [one.number for one in self.state.standing if one.number is not None]
        if number is None:
            number = self._last_used()
        if number not in standing:
            raise ArgumentError(f"there is no answer number {number} to take back; standing are {standing}")
        self.record(Retracted(number=number, at=self.now()))

    def _last_used(self) -> int:
        """Return the number of the last answer that the strategy uses, wherever it uses it."""
        if self._unseen and isinstance(last := self._unseen[-1], Answered | Skipped):
            return last.number  # it will be used next
        self._think()
        if not self._used:
            raise ArgumentError("there is no answer to take back")
        return max(number for number, _, _ in self._used)

    # --- thinking -----------------------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether the next question is known, so that looking takes no time."""
        return not self._unseen and not self._untold and self._running is not None

    def _think(self) -> None:
        """Bring the strategy to where the log is."""
        if not self.ready:
            with self.thinking():
                self._take_in()
                self._advance()

    def _take_in(self) -> None:
        """Take in what was recorded, up to where the strategy would have to think of a question nobody has seen yet."""
        while self._unseen:
            match event := self._unseen[0]:
                case Asked():
                    self._advance()
                    self._compare(event)
                case Answered() | Skipped():
                    assert self._asked is not None
                    record = (event.number, self._asked, event.answer)
                    self._answers.append(record)
                    self._untold.append(record)
                    if self._asked_foreign:
                        self._foreign.add(event.number)
                    self._asked = None
                case Retracted():
                    self._answers = [record for record in self._answers if record[0] != event.number]
                    self._asked = self._running = None
            self._unseen.popleft()

    def _advance(self) -> None:
        """Move the strategy to the first question without an answer. If it fails, it begins anew next time."""
        try:
            if self._running is None:
                self._begin()
            while self._untold:
                number, question, reply = record = self._untold[0]
                if self._step is not None:  # it may have ended before it was told of a foreign answer
                    self._used.append(record)
                    self._send(ForeignAnswer(question, reply) if number in self._foreign else reply)
                self._untold.popleft()
        except BaseException:
            self._running = None
            raise

    def _begin(self) -> None:
        """Run the strategy from the beginning with the answers that stand."""
        self._untold.clear()
        self._used, self._final, self._found = [], None, None
        self._waiting = defaultdict(deque)
        for record in self._answers:
            if record[0] in self._foreign:
                self._untold.append(record)
            else:
                self._waiting[record[1].key].append(record)
        try:
            self._running = start(self._spec, self.problem, **self.state.header.settings)
            self._move(lambda running: next(running))
        except (ArgumentError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            if self._resumed:
                raise LogError(f"the log's header cannot be used by this version: {error}") from error
            raise

    def _send(self, reply: Reply | ForeignAnswer) -> None:
        self._move(lambda running: running.send(reply))

    def _move(self, move: Callable[[Strategy], Step]) -> None:
        """Move the strategy on, and past every question whose answer is already there."""
        assert self._running is not None
        self._found = None
        try:
            self._step = move(self._running)
            while known := self._waiting.get(self._step.question.key):
                self._used.append(known.popleft())
                self._step = self._running.send(self._used[-1][2])
        except StopIteration as end:
            self._step, self._final = None, end.value

    # --- asking -------------------------------------------------------------------------------------------------------

    def ask(self) -> Question | None:
        """Return the question to be answered now, or None when nothing is left to ask."""
        shown = self.next()
        if shown is None:
            return None
        if not self._is_asked(shown.question):
            asked = Asked(
                number=self.state.answered + 1,
                first=tuple(shown.question.first.value.tolist()),
                second=tuple(shown.question.second.value.tolist()),
                left=shown.left,
                at=self.now(),
            )
            self.record(asked)
            self._unseen.pop()  # the strategy asked it
            self._asked, self._asked_foreign = shown.question, False
        return shown.question

    def next(self) -> Shown | None:
        """Return what ``ask`` would ask, and on which side each alternative would be, without asking it."""
        self._think()
        if self._step is None:
            return None
        question = self._step.question
        return Shown(question, self.left if self._is_asked(question) else side_of(self.sides, question))

    def _is_asked(self, question: Question) -> bool:
        return self._asked is not None and not self._asked_foreign and self._asked.key == question.key

    @property
    def left(self) -> Side:
        """Which alternative of the question that was asked is shown first, on the left or as A."""
        return "first" if self.state.question is None else self.state.question.left

    def sides_shown(self) -> dict[int, Side]:
        """Return for each answer's number which alternative was shown first."""
        return {one.number: one.shown.left for one in self.state.given if one.number is not None}

    def can_show(self, number: int) -> bool:
        """Return whether the question of an answer can be shown again: a log keeps values, and no plans."""
        self._think()
        return number not in self._foreign

    # --- looking ------------------------------------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """Whether nothing is left to ask."""
        self._think()
        return self._step is None

    @property
    def recommendation(self) -> Recommendation:
        """What is recommended now: the final word, or the best estimate so far."""
        self._think()
        if self._found is None:
            with self.thinking():
                found = self._final if self._step is None else self._step.recommend()
            assert found is not None
            # A strategy counts the answers it has used, in its order; everybody else knows them by their numbers.
            used = [number for number, _, _ in self._used]
            doubtful = tuple(sorted(used[place - 1] for place in found.doubtful if place <= len(used)))
            self._found = found if doubtful == found.doubtful else replace(found, doubtful=doubtful)
        return self._found

    @property
    def at_most(self) -> int | None:
        """The most questions that can still come, the pending one included; None if the strategy cannot tell."""
        self._think()
        return 0 if self._step is None else self._step.left

    @property
    def answers(self) -> tuple[Record, ...]:
        """The answers that the strategy has used, in its order: (number, question, answer or None if skipped)."""
        self._think()
        return tuple(self._used)

    def conflicts(self) -> tuple[Record, ...]:
        """Return the smallest set of answers that cannot all hold for any weights and precision; empty if all can.

        Any of them can be taken back with ``undo(number)``.
        """
        cone = Cone.orthant(len(self.problem.objectives), 1.0)
        given = {number: (number, question, answer) for number, question, answer in self.answers if answer is not None}
        with self.thinking():
            for number, question, answer in given.values():
                cone = cone.add(half_spaces(question.difference, answer.sign), number)
            return tuple(given[number] for number in cone.conflict())  # type: ignore[index]

    @property
    def log(self) -> tuple[Event, ...]:
        """The events so far, as JSON: a header, then questions, answers, skips and retractions."""
        return tuple(self._events)

    # --- resuming -----------------------------------------------------------------------------------------------------

    @classmethod
    def resume(
        cls,
        problem: Problem,
        log: Iterable[Mapping[str, Any]],
        *,
        strategy: AnyStrategy | None = None,
        clock: Clock = wall_clock,
    ) -> Interview:
        """Return the interview that wrote this log, at the same question, ready to go on.

        A strategy of your own must be given again: nothing that a log names is ever imported.
        """
        interview = cls.loaded(problem, list(log), strategy=strategy, clock=clock)
        interview._verify()
        return interview

    @classmethod
    def loaded(
        cls,
        problem: Problem,
        log: Sequence[Mapping[str, Any]],
        *,
        strategy: AnyStrategy | None = None,
        clock: Clock = wall_clock,
    ) -> Interview:
        """Return the interview that wrote this log, not replayed yet: that is done when somebody looks."""
        header = header_of(log[0] if log else None)
        _check_problem(header, problem)
        interview = cls.__new__(cls)
        interview._set_up(problem, _spec_of(header, strategy), header, dict(log[0]), SteadyClock(clock))
        interview._resumed = True
        interview.extend(log[1:])
        return interview

    def extend(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Add events that followed those of this log, such as another process has written, without replaying them."""
        for event in events:
            found = event_of(event, self.state.length + 1)
            self.state.apply(found)
            self._events.append(dict(event))
            self._unseen.append(found)

    def replay(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Add events that followed those of this log, and check that the strategy asks what they say it asked."""
        self.extend(events)
        self._verify()

    def _verify(self) -> None:
        with self.thinking():
            self._take_in()
            if not self._answers:
                self._advance()

    def _compare(self, event: Asked) -> None:
        """Take a question as it was asked then; one of another version is learned from, where the strategy can."""
        question = None if self._step is None else self._step.question
        if question is not None and _same(event.first, question.first) and _same(event.second, question.second):
            self._asked, self._asked_foreign = question, False
            return
        version = self.state.header.version
        if version != VERSION and self._spec.accepts_foreign_answers:
            self._asked = Question(
                Alternative(np.array(event.first), NOTHING), Alternative(np.array(event.second), NOTHING)
            )
            self._asked_foreign = True
            return
        where = f"event {self.state.length - len(self._unseen) + 1} of the log"
        if question is None:
            raise LogError(f"{where} is a question, but the strategy has nothing left to ask there")
        side, now = ("second", question.second) if _same(event.first, question.first) else ("first", question.first)
        raise LogError(
            f"{where}: the {side} alternative was {list(getattr(event, side))}, but this version would ask about "
            f"{now.value.tolist()}; the log was begun with version {version or 'unknown'} of the program (this is {VERSION}): "
            + (
                "it was edited"
                if version == VERSION
                else "that one chose its questions differently, or the log was edited"
            )
        )


def _same(value: tuple[float, ...], alternative: Alternative) -> bool:
    """Return whether an alternative in a log is this one, but for the last digits of another machine."""
    return len(value) == len(alternative.value) and bool(np.allclose(value, alternative.value, rtol=0, atol=1e-9))


def side_of(seed: int | None, question: Question) -> Side:
    """Return which alternative of a question is shown first: by chance, but the same whenever it is asked again.

    Without a seed it is always the first.
    """
    if seed is None:
        return "first"
    values = np.round(np.concatenate([question.first.value, question.second.value]), 9) + 0.0
    return "second" if hashlib.sha256(f"{seed}/".encode() + values.tobytes()).digest()[0] & 1 else "first"


def _check_problem(header: Header, problem: Problem) -> None:
    """Raise a LogError unless the log is about this problem."""
    name = getattr(problem, "name", "")
    if header.problem != problem.fingerprint:
        why = "; its file has changed, or it was read with other options" if header.problem_name == name else ""
        raise LogError(
            f"the log is about another problem ({header.problem_name!r:.80}, fingerprint {header.problem!r:.80}); "
            f"this one is {name!r} with fingerprint {problem.fingerprint!r}{why}"
        )


def _spec_of(header: Header, strategy: AnyStrategy | None) -> StrategySpec:
    """Return the strategy of a log: by its name, if it is installed, or as it is given."""
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
