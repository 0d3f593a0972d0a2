"""Fold a log into its state, in one pass over its events."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tradeoff.errors import ArgumentError, LogError
from tradeoff.evidence import check_reply
from tradeoff.log.events import (
    CHECKS,
    Answered,
    Asked,
    CheckKind,
    Ended,
    Header,
    LogEvent,
    Observed,
    Stated,
    Undone,
    event_of,
    header_of,
)
from tradeoff.model import FIRST, SKIP, Reply


@dataclass(frozen=True, kw_only=True)
class Given:
    """A reply, and the question, check, observation or statement it belongs to."""

    shown: Asked | Observed | Stated
    reply: Reply
    at: datetime
    undone: bool = False

    @property
    def number(self) -> int | None:
        """The number of the answer; None for a check."""
        return self.shown.number

    @property
    def check(self) -> CheckKind | None:
        """Which check was answered; None for a question."""
        return self.shown.check if isinstance(self.shown, Asked) else None

    @property
    def kind(self) -> str:
        """What was answered: "question", the kind of a check, "observation" or "statement"."""
        if isinstance(self.shown, Stated):
            return "statement"
        return "observation" if isinstance(self.shown, Observed) else self.shown.check or "question"

    @property
    def options(self) -> tuple[tuple[float, ...], ...]:
        """The gains of the options; a statement is about none."""
        return () if isinstance(self.shown, Stated) else self.shown.options

    @property
    def order(self) -> tuple[int, ...]:
        """The position of the option at each place; empty where nothing was shown."""
        return self.shown.order if isinstance(self.shown, Asked) else ()

    @property
    def placed(self) -> Reply:
        """The reply by places, in the order in which options were shown."""
        return self.shown.by_place(self.reply) if isinstance(self.shown, Asked) else self.reply

    @property
    def seconds(self) -> float:
        """How long the reply took; 0 if the clock of an old log was set back in between."""
        return max(0.0, (self.at - self.shown.at).total_seconds())


@dataclass
class LogState:
    """The state that a log describes."""

    header: Header
    given: list[Given] = field(default_factory=list)  # every reply in order, also those undone
    question: Asked | None = None  # the question that waits for an answer
    shown: Asked | None = None  # what was shown in this turn, if anything yet
    turn: int = 1  # one more for everything a respondent did
    length: int = 1  # events, with the header
    answered: int = 0  # the number of the last answer or skip
    begun: datetime | None = None  # when the first question was shown
    ended: Ended | None = None  # None again if anything happens after the end
    last: datetime = field(init=False)  # the time of the last event
    _checks: dict[CheckKind, Asked] = field(default_factory=dict)  # each as it was last shown

    def __post_init__(self) -> None:
        self.last = self.header.at

    def apply(self, event: LogEvent) -> None:
        """Apply the next event. Raise a LogError, and change nothing, if it cannot follow."""
        where = f"event {self.length + 1} of the log"
        match event:
            case Asked():
                self._apply_question(event, where)
            case Answered():
                self._apply_answer(event, where)
            case Observed() | Stated():
                self._apply_observation(event, where)
            case Undone():
                self._apply_undo(event, where)
            case Ended():
                self._check_size(where, value=event.value, weights=event.weights)
        self.ended = event if isinstance(event, Ended) else None
        self.shown = event if isinstance(event, Asked) else None
        self.turn += isinstance(event, Answered | Observed | Stated | Undone)
        self.length += 1
        self.last = event.at

    def _apply_question(self, event: Asked, where: str) -> None:
        for position, value in enumerate(event.options):
            self._check_size(where, **{f"options[{position}]": value})
        count = len(event.options)
        if sorted(event.order) != list(range(count)) or (event.asks == "best-worst" and count == 2):
            raise LogError(f"{where} has {count} options in the order {list(event.order)}; it was edited")
        if event.check is not None:
            self._checks[event.check] = event
            return
        if event.number != self.answered + 1:
            raise LogError(f"{where} is question {event.number}, but the next one is {self.answered + 1}")
        self.question = event
        self.begun = self.begun or event.at

    def _apply_answer(self, event: Answered, where: str) -> None:
        if event.check is not None:
            if event.check not in self._checks or event.check in (given.check for given in self.standing):
                raise LogError(f"{where} answers the check {event.check!r}, which was not shown then")
            shown = self._checks[event.check]
        elif self.question is None or event.number != self.question.number:
            raise LogError(f"{where} answers question {event.number}, which was not asked then")
        else:
            shown = self.question
        _check_answers(event.reply, shown, where)
        self.given.append(Given(shown=shown, reply=event.reply, at=event.at))
        if event.check is None:
            self.answered, self.question = event.number or 0, None

    def _apply_observation(self, event: Observed | Stated, where: str) -> None:
        if event.number != self.answered + 1:
            raise LogError(f"{where} has the number {event.number}, but the next one is {self.answered + 1}")
        rows = event.differences if isinstance(event, Stated) else event.options
        for position, row in enumerate(rows):
            self._check_size(where, **{f"row {position + 1}": row})
        if isinstance(event, Observed):
            _check_answers(event.reply, event, where)
        elif len(event.outcomes) != len(event.differences):
            raise LogError(f"{where}: 'outcomes' is {list(event.outcomes)}; the log is damaged or was edited")
        reply = event.reply if isinstance(event, Observed) else FIRST  # a statement holds
        self.given.append(Given(shown=event, reply=reply, at=event.at))
        self.answered, self.question = event.number, None

    def _apply_undo(self, event: Undone, where: str) -> None:
        key = event.check or event.number
        standing = [given.check or given.number for given in self.standing]
        if key is None or key not in standing:
            raise LogError(f"{where}: there is no answer number {key!r} to undo; there are {standing}")
        index = next(i for i in reversed(range(len(self.given))) if self._key(i) == key)
        self.given[index] = replace(self.given[index], undone=True)
        if event.check is None:
            self.question = None

    def _key(self, index: int) -> int | CheckKind | None:
        given = self.given[index]
        return given.check or given.number

    def _check_size(self, where: str, **values: tuple[float, ...]) -> None:
        """Raise a LogError unless there is a number per objective; logs of the first version may not name them."""
        for name, numbers in values.items():
            if self.header.objectives and len(numbers) != len(self.header.objectives):
                raise LogError(
                    f"{where}: {name!r} has {len(numbers)} numbers, but there are {len(self.header.objectives)} objectives; "
                    "the log is damaged or was edited"
                )

    @property
    def standing(self) -> list[Given]:
        """The replies that were not undone, in order."""
        return [given for given in self.given if not given.undone]

    @property
    def flags(self) -> dict[str, str]:
        """The result of each check: "passed", "failed", "skipped" or "not asked"."""
        flags: dict[str, str] = dict.fromkeys(CHECKS, "not asked")
        for given in self.standing:
            if given.check is not None and isinstance(given.shown, Asked):
                right = given.reply == given.shown.expected_reply
                flags[given.check] = "skipped" if given.reply == SKIP else "passed" if right else "failed"
        return flags


def _check_answers(reply: Reply, shown: Asked | Observed, where: str) -> None:
    """Raise a LogError unless a reply answers what was shown."""
    try:
        check_reply(reply, len(shown.options), shown.asks)
    except ArgumentError as error:
        raise LogError(f"{where}: {error}; the log is damaged or was edited") from None


def fold(events: Sequence[Mapping[str, Any]]) -> LogState:
    """Return the state of a log; raise a LogError if an event is damaged or out of order."""
    state = LogState(header_of(events[0] if events else None))
    for position, event in enumerate(events[1:], start=2):
        state.apply(event_of(event, position))
    return state


class SteadyClock:
    """A clock for one log: no event has an earlier time than the one before it.

    If the computer's clock is set back, time continues from the last event.
    """

    def __init__(self, wall: Callable[[], datetime], *, elapsed: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._elapsed = wall, elapsed
        self._mark = elapsed()  # the time of the last event

    def after(self, last: datetime | None) -> datetime:
        """Return the time of an event that follows one at ``last``."""
        passed, now = self._elapsed(), self._wall().astimezone(UTC)
        if last is not None and now < last:
            now = last + timedelta(seconds=max(0.0, passed - self._mark))
        self._mark = passed
        return now
