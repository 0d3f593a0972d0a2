"""Ask, tell, undo and resume. An interview is its log; everything else is replay.

``tell``, ``skip`` and ``undo`` only add an event to the log: they cost nothing, and a strategy that fails cannot lose what they
recorded. The strategy runs when something depends on it: the next question, the recommendation, or whether anything is left to
ask. Undoing an answer runs the strategy again without that answer; all others still count.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from tradeoff._version import __version__
from tradeoff.errors import ArgumentError, LogError
from tradeoff.evidence import Answer, Statement, check_reply, half_spaces
from tradeoff.log import (
    FORMAT,
    LARGEST,
    READABLE,
    Answered,
    Asked,
    Ended,
    Event,
    Header,
    LogEvent,
    LogState,
    Observed,
    ShownQuestion,
    Stated,
    SteadyClock,
    Undone,
    answer_event,
    display_order,
    event_of,
    header_of,
    read_log,
)
from tradeoff.model import FIRST, NONE, SKIP, Matrix, Question, Recommendation, Reply
from tradeoff.problem import Problem, question_about, with_items
from tradeoff.problems.statements import parse_statement
from tradeoff.strategies import AnyStrategy, StrategySpec, name_of, spec_of, start
from tradeoff.strategies.cone import Cone
from tradeoff.strategies.replay import Position, replay, same_question

__all__ = ["FORMAT", "READABLE", "VERSION", "Event", "Interview", "read_log"]

VERSION = __version__

Clock: TypeAlias = Callable[[], datetime]


def wall_clock() -> datetime:
    """Return the time of day."""
    return datetime.now(UTC)


class Interview:
    """One respondent being asked about one problem.

    >>> import tradeoff
    >>> interview = Interview(tradeoff.load("dependent"), "paper")
    >>> person = tradeoff.LinearRespondent([1.0, 2.0, 1.0], precision=0.01)
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
        order_seed: int | None = None,
        clock: Clock = wall_clock,
        **settings: Any,
    ) -> None:
        """``strategy``: "careful" for people, "certified" for answers that are always right, "paper", or your own.

        ``settings`` are the strategy's own; with ``skip_implied``, questions whose answers follow from earlier ones are not
        asked. ``order_seed`` decides in which order the options of each question are shown.
        """
        _check_loaded(problem)
        spec = spec_of(strategy)
        if max_questions is not None and (type(max_questions) is not int or max_questions < 0):
            raise ArgumentError(f"max_questions is {max_questions!r}; it must be a whole number, 0 or more")
        if order_seed is not None and type(order_seed) is not int:
            raise ArgumentError(f"order_seed is {order_seed!r}; it must be a whole number")
        steady = SteadyClock(clock)
        header = Header(
            format=FORMAT,
            version=VERSION,
            **describe_problem(problem),
            strategy=name_of(strategy),
            settings={"max_questions": max_questions, "skip_implied": skip_implied, **settings},
            order_seed=order_seed,
            at=steady.after(None),
        )
        self._set_up(problem, spec, header, header.to_json(), steady)
        _ = self.position  # raises an error if the strategy cannot use the settings

    def __repr__(self) -> str:
        name = getattr(self.problem, "name", type(self.problem).__name__)
        count = len(self.state.standing)
        return f"<Interview about {name!r}: {self.strategy}, {count} answer{'' if count == 1 else 's'}>"

    def _set_up(self, problem: Problem, spec: StrategySpec, header: Header, written: Event, clock: SteadyClock) -> None:
        self.problem, self.strategy, self.order_seed = problem, header.strategy, header.order_seed
        self.state = LogState(header)  # the state of the log
        self._spec, self._clock = spec, clock
        self._events: list[Event] = [written]
        self._unseen: deque[tuple[int, LogEvent]] = deque()  # events, with their positions, that no replay has used yet
        self._answers: list[Answer] = []  # those that stand
        self._asked: Answer | None = None  # the question that waits for an answer, with a reply to come
        self._position: Position | None = None  # after these answers; None: to be computed
        self._unchecked = False  # whether the settings are those of a log, and may be wrong

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
        is_check = isinstance(event, Asked | Answered | Undone) and event.check is not None
        if not is_check and not isinstance(event, Ended):  # these are not for the strategy
            self._unseen.append((self.state.length, event))

    def tell(self, reply: Reply | int | str) -> None:
        """Record the reply to the question that was asked; anything else is refused and changes nothing.

        A reply is a ``Reply``, the position of the best option, or a word: "equal", "skip", and of a pair "first" or "second".
        """
        number, shown = self._waiting()
        checked = check_reply(reply, len(shown.options), shown.asks)
        if checked == NONE:
            raise ArgumentError("this interview does not take 'none of these'; skip the question instead")
        self.record(answer_event(checked, self.now(), number=number))

    def skip(self) -> None:
        """Record that the current question was skipped: nothing is learned from it, and another one is asked."""
        self.record(answer_event(SKIP, self.now(), number=self._waiting()[0]))

    def know(self, statement: str | Statement) -> None:
        """Record what the respondent says without being asked, such as "price > speed" (see ``problems.statements``).

        It counts like an answer: it is undone by its number, and named by ``conflicts`` if it contradicts others.
        """
        self._check_observations()
        known = parse_statement(self.problem, statement) if isinstance(statement, str) else statement
        self._check_gains(known.differences)
        self.record(Stated.of(known, number=self.state.answered + 1, at=self.now()))

    def observe(self, question: Question | Sequence[Any], reply: Reply | int | str) -> None:
        """Record an answer that was given elsewhere.

        ``question`` is a ``Question``, or its options: names of items, or outcomes in the respondent's units, as numbers in
        the order of the objectives or by name. Only differences count, so outcomes may lie outside what is attainable here.

        >>> import tradeoff
        >>> interview = Interview(tradeoff.load("coffee"))
        >>> interview.observe([{"price": 9, "aroma": 6}, {"price": 7, "aroma": 4}], "first")
        """
        self._check_observations()
        if not isinstance(question, Question):
            question = question_about(self.problem, question)
        self._check_gains(question.values)
        checked = check_reply(reply, len(question.options), question.asks)
        options = tuple(tuple(row) for row in question.values.tolist())
        observed = Observed(
            number=self.state.answered + 1, asks=question.asks, options=options, best=checked.best, worst=checked.worst,
            word=checked.word, at=self.now(),
        )  # fmt: skip
        self.record(observed)

    def _check_observations(self) -> None:
        if not self._spec.accepts_observations:
            raise ArgumentError(
                f"the strategy {self.strategy!r} learns only from what it asks; use careful or certified"
            )

    def _check_gains(self, rows: Matrix) -> None:
        """Raise an ArgumentError unless a log can hold these gains."""
        count = len(self.problem.objectives)
        if rows.shape[1:] != (count,) or not (np.abs(rows) <= LARGEST).all():
            raise ArgumentError(
                f"each option needs {count} gains, one per objective, none of them beyond {LARGEST:g} times what is possible "
                f"here; found {rows.tolist()!r:.120}"
            )

    def _waiting(self) -> tuple[int, Asked]:
        """Return the number of the question that waits for an answer, and the question as it was shown."""
        shown = self.state.question
        if shown is not None and shown.number is not None:
            return shown.number, shown
        if self.finished:
            raise ArgumentError("nothing is being asked any more: the interview is finished")
        raise ArgumentError("no question was asked yet that this could answer; call ask() first")

    def undo(self, number: int | None = None) -> None:
        """Undo the last answer, or the one with this number in the log."""
        standing = [given.number for given in self.state.standing if given.number is not None]
        if number is None:
            number = self._last_used(standing)
        if number not in standing:
            numbers = ", ".join(map(str, standing)) or "none"
            raise ArgumentError(
                f"there is no answer number {number} to undo; the numbers of the answers are: {numbers}"
            )
        self.record(Undone(number=number, at=self.now()))

    def _last_used(self, standing: list[int]) -> int:
        """Return the number of the last answer that the strategy uses, wherever it uses it."""
        if not standing:
            raise ArgumentError("there is no answer to undo")
        if self._spec.accepts_observations or self._unseen:
            return standing[-1]
        used = [answer.number for answer in self.position.used]
        return max(used, default=standing[-1])

    # --- replay -------------------------------------------------------------------------------------------------------

    @property
    def position(self) -> Position:
        """Where the strategy stands after all answers of the log."""
        self._see_all()
        return self._replayed()

    def _see_all(self) -> None:
        """Compare what was logged with what the strategy asks; it does not run after the last answer."""
        if self._unchecked:
            self._check_settings()
        while self._unseen:
            self._see(*self._unseen[0])
            self._unseen.popleft()

    def _check_settings(self) -> None:
        """Run the strategy of a resumed log up to its first question; raise a LogError if it cannot use the settings."""
        try:
            first = self._run(())
        except (ArgumentError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise LogError(f"the log's header cannot be used by this version: {error}") from error
        self._unchecked = False
        if not self._answers:
            self._position = first

    def _replayed(self) -> Position:
        if self._position is None:
            self._position = self._run(self._answers)
        return self._position

    def _run(self, answers: Sequence[Answer]) -> Position:
        begin = partial(start, self._spec, self.problem, **self.state.header.settings)
        return replay(begin, answers, observations=self._spec.accepts_observations)

    def _see(self, position: int, event: LogEvent) -> None:
        """Bring the answers up to date with an event; raise a LogError if it cannot be one of this problem's log."""
        match event:
            case Asked():
                self._asked = self._resolve(event, position)
            case Answered():
                assert self._asked is not None and event.number is not None
                question, observed = self._asked.question, self._asked.observed
                self._answers.append(Answer(question, event.reply, event.number, observed))
                self._asked = self._position = None
            case Stated():
                self._answers.append(Answer(event.statement, FIRST, event.number, observed=True))
                self._asked = self._position = None
            case Observed():
                question = with_items(self.problem, event.question)
                self._answers.append(Answer(question, event.reply, event.number, observed=True, elsewhere=True))
                self._asked = self._position = None
            case Undone():
                self._answers = [answer for answer in self._answers if answer.number != event.number]
                self._asked = self._position = None

    def _resolve(self, event: Asked, position: int) -> Answer:
        """Return a logged question that waits for its reply: the strategy's own if it asks that too, or else an observed one.

        Another version of the program, or rounding on another machine, may lead to another question.
        """
        logged, where, number = (
            with_items(self.problem, event.question),
            f"event {position} of the log",
            event.number or 0,
        )
        if logged.values.shape[1] != len(self.problem.objectives):
            raise LogError(f"{where} has {logged.values.shape[1]} gains of each option; it was edited")
        observations = self._spec.accepts_observations
        if observations and self.state.header.is_old:
            return Answer(logged, SKIP, number, observed=True)
        asked = self._replayed().question
        if asked is not None and same_question(logged, asked):
            return Answer(asked, SKIP, number)
        if observations:
            return Answer(logged, SKIP, number, observed=True)
        if asked is None:
            raise LogError(f"{where} is a question, but the strategy has nothing left to ask there")
        raise LogError(
            f"{where}: the question was about {logged.values.tolist()}, but this strategy would ask about "
            f"{asked.values.tolist()}; the log was begun with version {self.state.header.version or 'unknown'} of the program "
            f"(this is {VERSION}). Resume it with the version and on the kind of machine that wrote it, or use the log as it "
            "was before anybody changed it"
        )

    # --- asking -------------------------------------------------------------------------------------------------------

    def ask(self) -> Question | None:
        """Return the question to be answered now, or None when nothing is left to ask."""
        shown = self.next()
        if shown is None:
            return None
        if not self._is_asked(shown.question):
            options = tuple(tuple(row) for row in shown.question.values.tolist())
            number = self.state.answered + 1
            asked = Asked(number=number, asks=shown.question.asks, options=options, order=shown.order, at=self.now())
            self.record(asked)
            self._unseen.pop()  # the strategy already knows its own question
            self._asked = Answer(shown.question, SKIP, number)
        return shown.question

    def next(self) -> ShownQuestion | None:
        """Return what ``ask`` would ask, and where each option would stand, without asking it."""
        question = self.position.question
        return None if question is None else self.shown(question)

    def shown(self, question: Question) -> ShownQuestion:
        """Return a question with its options in the order in which this respondent sees them."""
        before = self._shown_before(question)
        pending = self.state.question
        if pending is not None and same_question(pending.question, question):
            order = pending.order
        elif before is not None and self.order_seed is not None:
            order = before[::-1]  # the same pair again, with the sides swapped
        else:
            order = display_order(self.order_seed, question)
        return ShownQuestion(question, order, again=before is not None and order == before[::-1])

    def _shown_before(self, question: Question) -> tuple[int, ...] | None:
        """Return in which order a pair was shown when it was last answered; None if it was not."""
        if not question.is_pair:
            return None
        for given in reversed(self.state.standing):
            if given.number is not None and len(given.order) == 2:
                for positions in ((0, 1), (1, 0)):
                    if np.allclose([given.options[i] for i in positions], question.values, rtol=0, atol=1e-9):
                        return tuple(positions[place] for place in given.order)
        return None

    def _is_asked(self, question: Question) -> bool:
        asked = self._asked
        return asked is not None and not asked.observed and asked.question.key == question.key

    # --- looking ------------------------------------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """Whether nothing is left to ask."""
        return self.position.step is None

    @property
    def recommendation(self) -> Recommendation:
        """The current recommendation: the final one, or the best estimate so far."""
        return self.position.recommendation

    @property
    def at_most(self) -> int | None:
        """The most questions that can still come, the pending one included; None if the strategy cannot tell."""
        step = self.position.step
        return 0 if step is None else step.left

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The answers the strategy has used, in the order it used them; skips are among them."""
        return self.position.used

    @property
    def questions_answered(self) -> int:
        """How many questions were answered or skipped, without statements and observations."""
        return sum(answer.was_asked for answer in self.answers)

    def display_orders(self) -> dict[int, tuple[int, ...]]:
        """Return for each answer's number the order in which its options were shown."""
        return {given.number: given.order for given in self.state.given if given.order and given.number is not None}

    def conflicts(self) -> tuple[Answer, ...]:
        """Return the smallest set of answers that cannot all hold for any weights and precision; empty if all can.

        Any of them can be undone with ``undo(number)``. A strategy that allows for slips has dealt with contradictions: then
        nothing is left to report.
        """
        if self.recommendation.complete:
            return ()
        cone = Cone.orthant(len(self.problem.objectives), 1.0)
        for answer in self.answers:
            if answer.reply != SKIP:
                cone = cone.add(half_spaces(*answer.certain_terms()), answer.number)
        numbers = cone.conflict()
        return tuple(answer for answer in self.answers if answer.number in numbers)

    @property
    def log(self) -> tuple[Event, ...]:
        """The events so far, as JSON: a header, then questions, answers, statements and undos."""
        return tuple(self._events)

    # --- resuming -----------------------------------------------------------------------------------------------------

    @classmethod
    def resume(
        cls,
        problem: Problem,
        log: Iterable[Mapping[str, Any]] | str | Path,
        *,
        strategy: AnyStrategy | None = None,
        clock: Clock = wall_clock,
    ) -> Interview:
        """Return the interview that wrote this log, ready to continue at the same question.

        ``log`` is a list of events, or the path of a file of them, as ``tradeoff ask --log`` writes it; the file is only read.
        A custom strategy must be given again, because nothing that a log names is ever imported.
        """
        if isinstance(log, str | Path):
            try:
                return cls.resume(problem, _read_file(Path(log)), strategy=strategy, clock=clock)
            except LogError as error:
                raise LogError(f"{log}: {error}") from None
        interview = cls.loaded(problem, list(log), strategy=strategy, clock=clock)
        interview._see_all()
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
        _check_loaded(problem)
        header = header_of(log[0] if log else None)
        check_problem(header, problem)
        interview = cls.__new__(cls)
        interview._set_up(problem, _spec_of_log(header, strategy), header, dict(log[0]), SteadyClock(clock))
        interview._unchecked = True
        interview.extend(log[1:])
        return interview

    def extend(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Add events that another process has appended to this log; they are replayed when needed."""
        for event in events:
            self._append(event_of(event, self.state.length + 1), dict(event))


def describe_problem(problem: Problem) -> dict[str, Any]:
    """Return what the header of a log says of a problem."""
    objectives = problem.objectives
    return {
        "problem": problem.fingerprint,
        "problem_name": getattr(problem, "name", ""),
        "objectives": tuple(o.name for o in objectives),
        "units": tuple(o.unit for o in objectives),
        "goals": tuple(str(o.goal) for o in objectives),
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


def _spec_of_log(header: Header, strategy: AnyStrategy | None) -> StrategySpec:
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


def _check_loaded(problem: Problem) -> None:
    if isinstance(problem, str | Path):
        raise ArgumentError(
            f"an interview is about a problem, not a name; load it first: tradeoff.load({str(problem)!r:.120})"
        )


def _read_file(path: Path) -> list[Event]:
    try:
        return read_log(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LogError(f"the file cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise LogError("this is not the log of an interview: it is not text") from None
