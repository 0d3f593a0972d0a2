"""Ask, tell, undo, resume: an interview is the list of its answers, and everything else is replay.

The log is append-only. Resuming runs the strategy again and answers from the log what was answered before; taking an
answer back does the same without it. A question that was answered once is never asked again unless its answer was taken
back, even if the strategy comes to it on another way.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tradeoff.errors import ArgumentError, LogError
from tradeoff.model import NOTHING, Alternative, Answer, Question, Recommendation
from tradeoff.problem import Problem
from tradeoff.strategies import AnyStrategy, ForeignAnswer, Reply, Step, Strategy, name_of, spec_of, start
from tradeoff.strategies.polytope import Cone, half_spaces

FORMAT = "tradeoff-log/2"
VERSION = version("tradeoff")
READABLE = ("tradeoff-log/1", FORMAT)  # the first had no sides, and nothing in between

# What others note in a log of an interview, between its own events; a replay passes over them.
NOTES = frozenset({"check", "check-answer", "check-retraction", "end"})

Event = dict[str, Any]
Side = Literal["first", "second"]
Record = tuple[int, Question, Reply]  # number in the log, question, answer (None: skipped)


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
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        **options: Any,
    ) -> None:
        """``strategy``: "careful" for people, "certified" for answers that are always right, "paper", or your own.

        ``options`` are the strategy's own; ``skip_implied`` asks nothing that follows from earlier answers. ``sides`` is
        a seed that decides, question by question, which alternative ``left`` says to show first.
        """
        self._spec = spec_of(strategy)
        if max_questions is not None and (type(max_questions) is not int or max_questions < 0):
            raise ArgumentError(f"max_questions is {max_questions!r}; it must be a whole number, 0 or more")
        if sides is not None and type(sides) is not int:
            raise ArgumentError(f"sides is {sides!r}; it must be a whole number, the seed of which side is which")
        self.problem, self.strategy, self.sides = problem, name_of(strategy), sides
        self._clock = clock
        self._settings = {"max_questions": max_questions, "skip_implied": skip_implied, **options}
        self._answers: list[Record] = []  # those not taken back
        self._answered = 0
        self._asked: bytes | None = None  # the question that was last written to the log
        self._left: Side = "first"
        self._earlier: Question | None = None  # a question of an earlier version, about to be answered from a log
        self._elsewhere: set[int] = set()  # numbers of answers to such questions
        self._begin()
        self._log: list[Event] = [
            {
                "event": "header",
                "format": FORMAT,
                "version": VERSION,
                "problem": problem.fingerprint,
                "problem_name": getattr(problem, "name", ""),
                "objectives": [o.name for o in problem.objectives],
                "strategy": self.strategy,
                "settings": self._settings,
                "sides": sides,
                "time": self._now(),
            }
        ]

    def _now(self) -> str:
        return self._clock().isoformat()

    # --- replay -------------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Run the strategy from the beginning, with the answers that stand, to the first question without one."""
        self._waiting: dict[bytes, deque[Record]] = defaultdict(deque)
        for record in self._answers:
            if record[0] not in self._elsewhere:
                self._waiting[record[1].key].append(record)
        self._used: list[Record] = []
        self._final: Recommendation | None = None
        self._step: Step | None = None
        self._running: Strategy = start(self._spec, self.problem, **self._settings)
        self._advance(lambda: next(self._running))
        for record in self._answers:
            if record[0] in self._elsewhere:
                self._learn(record)

    def _learn(self, record: Record) -> None:
        """Let the strategy learn from an answer to a question that it did not ask, unless it has come to its end."""
        if self._step is not None:
            self._used.append(record)
            self._advance(lambda: self._running.send(ForeignAnswer(record[1], record[2])))

    def _advance(self, move: Callable[[], Step]) -> None:
        """Move the strategy on, and past every question whose answer is already there."""
        try:
            self._step = move()
            while known := self._waiting[self._step.question.key]:
                self._used.append(known.popleft())
                self._step = self._running.send(self._used[-1][2])
        except StopIteration as end:
            self._step, self._final = None, end.value

    # --- asking -------------------------------------------------------------------------------------------------------

    def ask(self) -> Question | None:
        """Return the question to be answered now, or None when nothing is left to ask."""
        if self._earlier is not None:  # cannot be shown any more: something else is asked
            self._earlier, self._asked = None, None
        if self._step is None:
            return None
        question = self._step.question
        if self._asked != question.key:
            self._asked = question.key
            self._left = side_of(self.sides, question)
            self._log.append(
                {
                    "event": "question",
                    "number": self._answered + 1,
                    "first": question.first.value.tolist(),
                    "second": question.second.value.tolist(),
                    "left": self._left,
                    "time": self._now(),
                }
            )
        return question

    @property
    def left(self) -> Side:
        """Which alternative of the question that was asked is shown first, on the left or as A."""
        return self._left

    def sides_shown(self) -> dict[int, Side]:
        """Return for each answer's number which alternative was shown first."""
        sides: dict[int, Side] = {}
        left: Side = "first"
        for event in self._log:
            if event["event"] == "question":
                left = event.get("left", "first")
            elif event["event"] in ("answer", "skip"):
                sides[event["number"]] = left
        return sides

    def tell(self, answer: Answer | str) -> None:
        """Take the answer to the question that was asked; nonsense is refused and changes nothing."""
        try:
            given = Answer(answer)
        except ValueError:
            words = ", ".join(repr(a.value) for a in Answer)
            raise ArgumentError(f"{answer!r} is not an answer; it must be one of {words}") from None
        self._record(given)

    def skip(self) -> None:
        """Pass the question over: nothing is learned from it, and something else is asked instead."""
        self._record(None)

    def _record(self, reply: Reply) -> None:
        question = self._earlier or (self._step.question if self._step is not None else None)
        if question is None:
            raise ArgumentError("nothing is being asked any more: the interview is finished")
        if self._asked != question.key:
            raise ArgumentError("no question was asked yet that this could answer; call ask() first")
        self._answered += 1
        record = (self._answered, question, reply)
        kind = {"event": "skip"} if reply is None else {"event": "answer", "answer": reply.value}
        self._log.append({**kind, "number": self._answered, "time": self._now()})
        self._answers.append(record)
        self._asked = None
        if self._earlier is not None:
            self._earlier = None
            self._elsewhere.add(self._answered)
            self._learn(record)
            return
        self._used.append(record)
        self._advance(lambda: self._running.send(reply))

    def undo(self, number: int | None = None) -> None:
        """Take back the last answer, or the one with this number in the log."""
        standing = [record[0] for record in self._answers]
        if number is None:
            if not self._used:
                raise ArgumentError("there is no answer to take back")
            number = max(record[0] for record in self._used)  # the last one said, wherever the strategy used it
        if number not in standing:
            raise ArgumentError(f"there is no answer number {number} to take back; standing are {standing}")
        self._log.append({"event": "retraction", "number": number, "time": self._now()})
        self._answers = [record for record in self._answers if record[0] != number]
        self._asked = None
        self._begin()

    # --- looking ------------------------------------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """Whether nothing is left to ask."""
        return self._step is None

    def knows(self, reply: Reply) -> bool:
        """Return whether what follows this reply is known already, so that telling it takes no time."""
        return self._step is not None and self._step.knows(reply)

    @property
    def recommendation(self) -> Recommendation:
        """What is recommended now: the final word, or the best estimate so far."""
        found = self._final if self._step is None else self._step.recommend()
        assert found is not None
        # A strategy counts the answers it has used, in its order; everybody else knows them by their numbers.
        used = [number for number, _, _ in self._used]
        doubtful = tuple(sorted(used[place - 1] for place in found.doubtful if place <= len(used)))
        return found if doubtful == found.doubtful else replace(found, doubtful=doubtful)

    @property
    def at_most(self) -> int | None:
        """The most questions that can still come, the pending one included; None if the strategy cannot tell."""
        return 0 if self._step is None else self._step.left

    @property
    def answers(self) -> tuple[Record, ...]:
        """The answers that the strategy has used, in its order: (number, question, answer or None if skipped)."""
        return tuple(self._used)

    def conflicts(self) -> tuple[Record, ...]:
        """Return the smallest set of answers that cannot all hold for any weights and precision; empty if all can.

        Any of them can be taken back with ``undo(number)``.
        """
        cone = Cone.orthant(len(self.problem.objectives), 1.0)
        given = {number: (number, question, answer) for number, question, answer in self._used if answer is not None}
        for number, question, answer in given.values():
            cone = cone.add(half_spaces(question.difference, answer.sign), number)
        return tuple(given[number] for number in cone.conflict())  # type: ignore[index]

    @property
    def log(self) -> tuple[Event, ...]:
        """The events so far: a header, then questions, answers, skips and retractions."""
        return tuple(self._log)

    # --- resuming -----------------------------------------------------------------------------------------------------

    @classmethod
    def resume(
        cls,
        problem: Problem,
        log: Iterable[Mapping[str, Any]],
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> Interview:
        """Return the interview that wrote this log, at the same question, ready to go on."""
        events = [dict(event) for event in log]
        header = _header(problem, events)
        settings = dict(header["settings"])
        try:
            interview = cls(problem, header["strategy"], sides=header.get("sides"), clock=clock, **settings)
        except (ArgumentError, TypeError) as error:
            raise LogError(f"the log's header cannot be used by this version: {error}") from None
        interview._log = [events[0]]
        interview.replay(events[1:])
        return interview

    def replay(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Go on with events that followed those of this log, such as another process has written."""
        for position, event in enumerate(map(dict, events), start=len(self._log) + 1):
            where = f"event {position} of the log"
            match event.get("event"):
                case kind if kind in NOTES:
                    continue
                case "question":
                    question = self.ask()
                    self._log.pop() if question is not None and self._log[-1]["event"] == "question" else None
                    self._take_question(event, question, where)
                    self._left = event.get("left", "first")
                    self._log.append(event)
                case "answer" | "skip" as kind:
                    if self._asked is None or event.get("number") != self._answered + 1:
                        raise LogError(f"{where} answers question {event.get('number')!r}, which was not asked then")
                    try:
                        self.tell(event.get("answer", "")) if kind == "answer" else self.skip()
                    except ArgumentError as error:
                        raise LogError(f"{where}: {error}") from None
                    self._log[-1] = event
                case "retraction":
                    try:
                        self.undo(event.get("number"))
                    except ArgumentError as error:
                        raise LogError(f"{where}: {error}") from None
                    self._log[-1] = event
                case kind:
                    raise LogError(f"{where} is of the unknown kind {kind!r}")

    def _take_question(self, event: Event, question: Question | None, where: str) -> None:
        """Take a question as it was asked then; one that would not be asked now is learned from, where that is possible."""
        first, second = (_values(event.get(side), len(self.problem.objectives)) for side in ("first", "second"))
        if question is not None and _same(first, question.first) and _same(second, question.second):
            return
        if self._spec.accepts_foreign_answers and first is not None and second is not None:
            self._earlier = Question(Alternative(first, NOTHING), Alternative(second, NOTHING))
            self._asked = self._earlier.key
            return
        if question is None:
            raise LogError(f"{where} is a question, but the strategy has nothing left to ask there")
        side, now = ("second", question.second) if _same(first, question.first) else ("first", question.first)
        raise LogError(
            f"{where}: the {side} alternative was {event.get(side)}, but this version would ask about {now.value.tolist()}; "
            f"the log was begun with version {self._log[0].get('version', 'unknown')} of the program, which chose its "
            f"questions in another way than this one ({VERSION}), or it was edited"
        )

    def can_show(self, number: int) -> bool:
        """Return whether the question of an answer can be shown again: an earlier version's cannot."""
        return number not in self._elsewhere


def _values(given: object, count: int) -> NDArray[np.float64] | None:
    """Return the value of an alternative in a log, or None if it is none."""
    try:
        values = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        return None
    return values if values.shape == (count,) and np.isfinite(values).all() else None


def _same(value: NDArray[np.float64] | None, alternative: Alternative) -> bool:
    """Return whether an alternative in a log is this one, but for the last digits of another machine."""
    return value is not None and bool(np.allclose(value, alternative.value, rtol=0, atol=1e-9))


def side_of(seed: int | None, question: Question) -> Side:
    """Return which alternative of a question is shown first: by chance, but the same whenever it is asked again.

    Without a seed it is always the first.
    """
    if seed is None:
        return "first"
    values = np.round(np.concatenate([question.first.value, question.second.value]), 9) + 0.0
    return "second" if hashlib.sha256(f"{seed}/".encode() + values.tobytes()).digest()[0] & 1 else "first"


def _header(problem: Problem, events: Sequence[Event]) -> Event:
    """Return the log's header, checked against the problem."""
    if not events or events[0].get("event") != "header":
        raise LogError("the log does not begin with a header; it is damaged or not a log")
    header = events[0]
    if header.get("format") not in READABLE:
        raise LogError(f"the log's format is {header.get('format')!r}; this version reads {', '.join(READABLE)}")
    if header.get("problem") != problem.fingerprint:
        same = header.get("problem_name") == getattr(problem, "name", "")
        why = "; its file has changed, or it was read with other options" if same else ""
        raise LogError(
            f"the log is about another problem ({header.get('problem_name')!r}, fingerprint {header.get('problem')!r}); "
            f"this one is {getattr(problem, 'name', '')!r} with fingerprint {problem.fingerprint!r}{why}"
        )
    if not isinstance(header.get("settings"), dict) or not isinstance(header.get("strategy"), str):
        raise LogError("the log's header names no strategy; it is damaged")
    return header


def read_log(text: str) -> list[Event]:
    """Return the events of a log written as JSON lines; an unfinished last line was never acknowledged and is dropped."""
    events: list[Event] = []
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
            if not isinstance(event, dict):
                raise ValueError("not an event")
        except (ValueError, RecursionError):
            if number == len(lines):  # no newline after it: the writer was interrupted
                break
            raise LogError(f"line {number} of the log is not an event; the log is damaged there") from None
        events.append(event)
    return events
