"""Ask, tell, undo and resume. An interview is its log; everything else is replay.

``tell``, ``skip`` and ``undo`` only add an event to the log: they cost nothing, and a strategy that fails cannot lose what
they recorded. The strategy sees the events when something depends on them: the next question, the recommendation, or
whether anything is left to ask. Resuming runs the strategy again with the answers in the log; taking back an answer does
the same without that answer. A question is not asked again unless its answer was taken back, even if the strategy reaches
it in another order.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, TypeAlias

from tradeoff import running
from tradeoff._version import __version__
from tradeoff.errors import ArgumentError, LogError
from tradeoff.knowledge import statement
from tradeoff.log import (
    FOR_SESSIONS,
    FORMAT,
    READABLE,
    Answered,
    Asked,
    Chosen,
    Event,
    Header,
    LogEvent,
    LogState,
    MenuAsked,
    Retracted,
    Shown,
    ShownMenu,
    Side,
    Skipped,
    Stated,
    SteadyClock,
    answer_event,
    event_of,
    header_of,
    order_of,
    read_log,
    side_of,
)
from tradeoff.menus import AnyAnswer, AnyQuestion, Menu, Statement, Strength, comparisons
from tradeoff.model import Recommendation
from tradeoff.problem import Problem
from tradeoff.running import Record, Run
from tradeoff.strategies import AnyStrategy, Step, StrategySpec, name_of, spec_of
from tradeoff.strategies.polytope import Cone, half_spaces

__all__ = ["FORMAT", "READABLE", "VERSION", "Event", "Interview", "Record", "Side", "read_log", "side_of"]

VERSION = __version__

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

        ``options`` are the strategy's own; with ``skip_implied``, questions whose answers follow from earlier ones are not
        asked. ``sides`` is a seed that decides which alternative of each question is shown first.
        """
        spec = spec_of(strategy)
        if max_questions is not None and (type(max_questions) is not int or max_questions < 0):
            raise ArgumentError(f"max_questions is {max_questions!r}; it must be a whole number, 0 or more")
        if sides is not None and type(sides) is not int:
            raise ArgumentError(f"sides is {sides!r}; it must be a whole number, the seed of which side is which")
        steady = SteadyClock(clock)
        header = Header(
            version=VERSION,
            **running.described(problem),
            strategy=name_of(strategy),
            settings={"max_questions": max_questions, "skip_implied": skip_implied, **options},
            sides=sides,
            at=steady.after(None),
        )
        self._set_up(problem, spec, header, header.to_json(), steady)
        self._advance()  # raises an error if the strategy cannot use the options

    def _set_up(self, problem: Problem, spec: StrategySpec, header: Header, written: Event, clock: SteadyClock) -> None:
        self.problem, self.strategy, self.sides = problem, header.strategy, header.sides
        self.state = LogState(header)  # the state of the log
        # A context manager entered for every computation.
        self.thinking: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext
        self._spec, self._clock = spec, clock
        self._events: list[Event] = [written]
        self._resumed = False
        # The strategy may be behind the log: these are the events it has not seen, with their positions in the log.
        self._unseen: deque[tuple[int, LogEvent]] = deque()
        self._answers: list[Record] = []  # those not taken back
        self._untold: deque[Record] = deque()  # those of them that the current run has not been given
        self._foreign: set[int] = set()  # numbers of answers to questions that this version would not ask
        self._asked: AnyQuestion | None = None  # the question that waits for an answer
        self._asked_foreign = False
        self._run: Run | None = None  # None: start again
        # What ``next`` returns, which is needed several times for a page; at which step, after how many events.
        self._next: tuple[Step, int, Shown | ShownMenu] | None = None

    # --- recording ----------------------------------------------------------------------------------------------------

    def now(self) -> datetime:
        """Return the time for the next event."""
        return self._clock.after(self.state.last)

    def record(self, event: LogEvent) -> None:
        """Add an event to the log. The strategy sees it when its next question is needed."""
        self._append(event, event.to_json())

    def _append(self, event: LogEvent, written: Event) -> None:
        self.state.apply(event)
        self._events.append(written)
        if not isinstance(event, FOR_SESSIONS):  # these are not for the strategy
            self._unseen.append((self.state.length, event))

    def tell(self, answer: AnyAnswer | str, strength: Strength | None = None) -> None:
        """Record the answer to the question that was asked; anything else is refused and changes nothing.

        ``strength`` is how much better the preferred one is, in an interview with ``strengths=True``.
        """
        reply = running.checked_reply(answer, strength, self.state)
        self.record(answer_event(reply, self._number_asked(), self.now()))

    def skip(self) -> None:
        """Record that the current question was skipped: nothing is learned from it, and another one is asked."""
        self.record(Skipped(number=self._number_asked(), at=self.now()))

    def know(self, said: str | Statement) -> None:
        """Record what the person says without being asked, such as "price > speed" (see ``tradeoff.knowledge``).

        It counts like an answer: it is undone by its number, and named by ``conflicts`` if it contradicts others.
        """
        if not self._spec.accepts_foreign_answers:
            raise ArgumentError(
                f"the strategy {self.strategy!r} learns only from what it asks; use careful or certified"
            )
        known = statement(self.problem, said) if isinstance(said, str) else said
        self.record(Stated.of(known, number=self.state.answered + 1, at=self.now()))

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
        if self._unseen and isinstance(last := self._unseen[-1][1], Answered | Chosen | Skipped):
            return last.number  # it will be used next
        if self.state.standing and isinstance(self.state.standing[-1].shown, Stated):
            return self.state.standing[-1].shown.number
        used = self._think().used
        if not used:
            raise ArgumentError("there is no answer to take back")
        return max(number for number, _, _ in used)

    # --- thinking -----------------------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether the next question and the recommendation are already computed."""
        return self._is_current() and self._run is not None and self._run.recommended

    def _is_current(self) -> bool:
        return not self._unseen and not self._untold and self._run is not None

    @property
    def known(self) -> bool:
        """Whether the next question needs no computation: it is known, or in the strategy's cache."""
        if self._run is None or self._untold or len(self._unseen) > 1 or (self._unseen and self._asked_foreign):
            return False
        return all(isinstance(e, Answered | Chosen | Skipped) and self._run.knows(e.reply) for _, e in self._unseen)

    def _think(self) -> Run:
        """Bring the strategy up to date with the log."""
        if not self._is_current():
            with contextlib.nullcontext() if self.known else self.thinking():
                self._take_in()
                self._advance()
        assert self._run is not None
        return self._run

    def _take_in(self) -> None:
        """Process recorded events, but do not make the strategy compute a question that has not been asked."""
        while self._unseen:
            position, event = self._unseen[0]
            match event:
                case Asked() | MenuAsked():
                    self._compare(event, self._advance(), f"event {position} of the log")
                case Answered() | Chosen() | Skipped():
                    assert self._asked is not None
                    record = (event.number, self._asked, event.reply)
                    self._answers.append(record)
                    self._untold.append(record)
                    if self._asked_foreign:
                        self._foreign.add(event.number)
                    self._asked = None
                case Stated():
                    self._answers.append(running.stated(event))
                    self._untold.append(self._answers[-1])
                    self._foreign.add(event.number)
                    self._asked = None
                case Retracted():
                    self._answers = [record for record in self._answers if record[0] != event.number]
                    self._asked = self._run = None
            self._unseen.popleft()

    def _advance(self) -> Run:
        """Move the strategy to the first question without an answer. If it fails, it starts again next time."""
        try:
            if self._run is None and any(isinstance(record[1], Statement) for record in self._answers):
                self._untold.clear()
                self._run = self._begun([])
                self._run.tell_in_order(self._answers)
            elif self._run is None:
                own = [record for record in self._answers if record[0] not in self._foreign]
                self._untold = deque(record for record in self._answers if record[0] in self._foreign)
                self._run = self._begun(own)
            self._run.tell_all(self._untold, self._foreign)
            self._untold.clear()
        except BaseException:
            self._run = None
            raise
        return self._run

    def _begun(self, answers: list[Record]) -> Run:
        try:
            return Run(self._spec, self.problem, self.state.header.settings, answers)
        except (ArgumentError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            if self._resumed:
                raise LogError(f"the log's header cannot be used by this version: {error}") from error
            raise

    # --- asking -------------------------------------------------------------------------------------------------------

    def ask(self) -> AnyQuestion | None:
        """Return the question to be answered now, or None when nothing is left to ask."""
        shown = self.next()
        if shown is None:
            return None
        if not self._is_asked(shown.question):
            number, at = self.state.answered + 1, self.now()
            asked: Asked | MenuAsked
            if isinstance(shown, ShownMenu):
                asks, values = shown.question.asks, tuple(tuple(row) for row in shown.question.values.tolist())
                asked = MenuAsked(number=number, asks=asks, alternatives=values, order=shown.order, at=at)
            else:
                first, second = (tuple(one.value.tolist()) for one in (shown.question.first, shown.question.second))
                asked = Asked(number=number, first=first, second=second, left=shown.left, at=at)
            self.record(asked)
            self._unseen.pop()  # the strategy already knows its own question
            self._asked, self._asked_foreign = shown.question, False
        return shown.question

    def next(self) -> Shown | ShownMenu | None:
        """Return what ``ask`` would ask, and where each alternative would stand, without asking it."""
        step = self._think().step
        if step is None:
            return None
        if self._next is None or self._next[0] is not step or self._next[1] != self.state.length:
            self._next = step, self.state.length, self._shown(step.question)
        return self._next[2]

    def _shown(self, question: AnyQuestion) -> Shown | ShownMenu:
        asked = self.state.question
        if isinstance(question, Menu):
            is_asked = self._is_asked(question) and isinstance(asked, MenuAsked)
            return ShownMenu(question, asked.order if is_asked else order_of(self.sides, question))  # type: ignore[union-attr]
        turned = self.state.side_turned(question)
        if self._is_asked(question):
            side = self.left
        else:
            side = turned if turned and self.sides is not None else side_of(self.sides, question)
        return Shown(question, side, again=side == turned)

    def _is_asked(self, question: AnyQuestion) -> bool:
        return self._asked is not None and not self._asked_foreign and self._asked.key == question.key

    @property
    def left(self) -> Side:
        """Which alternative of the pair that was asked is shown first, on the left or as A."""
        return self.state.question.left if isinstance(self.state.question, Asked) else "first"

    def sides_shown(self) -> dict[int, Side | tuple[int, ...]]:
        """Return for each answer's number which alternative was shown first, and of a menu the order."""
        shown = [one.shown for one in self.state.given if isinstance(one.shown, Asked | MenuAsked)]
        return {one.number: one.left if isinstance(one, Asked) else one.order for one in shown}

    def can_show(self, number: int) -> bool:
        """Return whether an answer's question can be shown again; a foreign one cannot, because a log has no plans."""
        self._think()
        return number not in self._foreign

    # --- looking ------------------------------------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """Whether nothing is left to ask."""
        return self._think().step is None

    @property
    def recommendation(self) -> Recommendation:
        """The current recommendation: the final one, or the best estimate so far."""
        run = self._think()
        with contextlib.nullcontext() if run.recommended else self.thinking():
            return run.recommendation()

    @property
    def at_most(self) -> int | None:
        """The most questions that can still come, the pending one included; None if the strategy cannot tell."""
        step = self._think().step
        return 0 if step is None else step.left

    @property
    def answers(self) -> tuple[Record, ...]:
        """The answers the strategy has used, in the order it used them: (number, question, answer or None if skipped)."""
        return tuple(self._think().used)

    def conflicts(self) -> tuple[Record, ...]:
        """Return the smallest set of answers that cannot all hold for any weights and precision; empty if all can.

        Any of them can be taken back with ``undo(number)``.
        """
        run = self._think()
        if run.conflicts is None:
            with self.thinking():
                cone = Cone.orthant(len(self.problem.objectives), 1.0)
                given = {number: (number, question, answer) for number, question, answer in run.used}
                for number, question, answer in run.used:
                    if answer is not None:
                        cone = cone.add(half_spaces(*comparisons(question, answer)), number)
                run.conflicts = tuple(given[number] for number in cone.conflict())  # type: ignore[index]
        return run.conflicts

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
        """Return the interview that wrote this log, ready to continue at the same question.

        A custom strategy must be given again, because nothing that a log names is ever imported.
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
        """Return the interview that wrote this log; it is replayed when needed."""
        header = header_of(log[0] if log else None)
        running.check_problem(header, problem)
        interview = cls.__new__(cls)
        interview._set_up(problem, running.spec_of_log(header, strategy), header, dict(log[0]), SteadyClock(clock))
        interview._resumed = True
        interview.extend(log[1:])
        return interview

    def extend(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Add events that another process has appended to this log; they are replayed when needed."""
        for event in events:
            self._append(event_of(event, self.state.length + 1), dict(event))

    def replay(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Add events that another process has appended to this log, and check that the strategy asks the same questions."""
        self.extend(events)
        self._verify()

    def _verify(self) -> None:
        with self.thinking():
            self._take_in()
            if not self._answers:
                self._advance()

    def _compare(self, event: Asked | MenuAsked, run: Run, where: str) -> None:
        """Accept a logged question if the strategy asks it too, or if another version of the program asked it."""
        question = None if run.step is None else run.step.question
        logged = running.logged_question(event)
        if question is not None and running.same_question(logged, question):
            self._asked, self._asked_foreign = question, False
            return
        version = self.state.header.version
        whole = all(len(value) == len(self.problem.objectives) for value in running.values_of(logged))
        if whole and version != VERSION and self._spec.accepts_foreign_answers:
            self._asked, self._asked_foreign = logged, True
            return
        if question is None:
            raise LogError(f"{where} is a question, but the strategy has nothing left to ask there")
        raise running.other_question(where, logged, question, version, VERSION)
