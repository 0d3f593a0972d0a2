"""Fold a log into its state, in one pass over its events."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tradeoff.errors import LogError
from tradeoff.log.events import (
    ACTIONS,
    Answered,
    Asked,
    CheckAnswered,
    CheckRetracted,
    CheckShown,
    Chosen,
    Ended,
    Header,
    LogEvent,
    MenuAsked,
    Reply,
    Retracted,
    Side,
    Skipped,
    Stated,
    event_of,
    header_of,
)
from tradeoff.log.fields import CHECKS, CheckKind
from tradeoff.menus import NOT_WORSE, PREFERRED, SAME, WORTH_MORE, AnyQuestion, Menu, has_ends, shapes

STATED = {PREFERRED, SAME, NOT_WORSE, WORTH_MORE}  # how a comparison of a statement can come out


@dataclass(frozen=True, kw_only=True)
class Given:
    """A reply, and the question or check it belongs to."""

    shown: Asked | MenuAsked | CheckShown | Stated
    reply: Reply
    at: datetime
    retracted: bool = False

    @property
    def number(self) -> int | None:
        """The number of the answer; None for a check."""
        return None if isinstance(self.shown, CheckShown) else self.shown.number

    @property
    def check(self) -> CheckKind | None:
        """Which check was answered; None for a question."""
        return self.shown.check if isinstance(self.shown, CheckShown) else None

    @property
    def key(self) -> int | CheckKind:
        """What the reply is taken back by: its number, or the kind of check."""
        return self.shown.check if isinstance(self.shown, CheckShown) else self.shown.number

    @property
    def said(self) -> str:
        """The side that was chosen, or of a menu the places."""
        return self.shown.said(self.reply)  # type: ignore[arg-type]  # a reply is of the kind of what was shown

    @property
    def seconds(self) -> float:
        """How long the reply took; 0 if the clock of an old log was set back in between."""
        return max(0.0, (self.at - self.shown.at).total_seconds())


@dataclass
class LogState:
    """The state that a log describes."""

    header: Header
    given: list[Given] = field(default_factory=list)  # every reply in order, also those taken back
    question: Asked | MenuAsked | None = None  # the question that waits for an answer
    shown: Asked | MenuAsked | CheckShown | None = None  # what was shown in this turn, if anything yet
    turn: int = 1  # one more for everything a person did
    length: int = 1  # events, with the header
    answered: int = 0  # the number of the last answer or skip
    begun: datetime | None = None  # when the first question was shown
    ended: Ended | None = None  # None again if anything happens after the end
    last: datetime = field(init=False)  # the time of the last event
    _checks: dict[CheckKind, CheckShown] = field(default_factory=dict)  # each as it was last shown

    def __post_init__(self) -> None:
        self.last = self.header.at

    def apply(self, event: LogEvent) -> None:
        """Apply the next event. Raise a LogError, and change nothing, if it cannot follow."""
        where = f"event {self.length + 1} of the log"
        match event:
            case Asked() | MenuAsked():
                if event.number != self.answered + 1:
                    raise LogError(f"{where} is question {event.number}, but the next one is {self.answered + 1}")
                if isinstance(event, Asked):
                    self._check_size(where, first=event.first, second=event.second)
                else:
                    self._check_menu(where, event)
                self.question = event
                self.begun = self.begun or event.at
            case Answered() | Chosen() | Skipped():
                if self.question is None or event.number != self.question.number:
                    raise LogError(f"{where} answers question {event.number}, which was not asked then")
                if not isinstance(event, Skipped) and not self._answers(event, self.question):
                    raise LogError(f"{where} is no reply to question {event.number}; the log is damaged or was edited")
                self.given.append(Given(shown=self.question, reply=event.reply, at=event.at))
                self.answered, self.question = event.number, None
            case Stated():
                if event.number != self.answered + 1:
                    raise LogError(f"{where} is statement {event.number}, but the next number is {self.answered + 1}")
                if len(event.outcomes) != len(event.differences) or not set(event.outcomes) <= STATED:
                    raise LogError(f"{where}: 'outcomes' is {list(event.outcomes)}; the log is damaged or was edited")
                for number, value in enumerate(event.differences):
                    self._check_size(where, **{f"differences[{number}]": value})
                self.given.append(Given(shown=event, reply=event.answer, at=event.at))
                self.answered, self.question = event.number, None
            case Retracted():
                if event.number not in (standing := [one.number for one in self.standing if one.number is not None]):
                    raise LogError(
                        f"{where}: there is no answer number {event.number} to take back; there are {standing}"
                    )
                self._take_back(event.number)
                self.question = None
            case CheckShown():
                self._check_size(where, first=event.first, second=event.second)
                self._checks[event.check] = event
            case CheckAnswered():
                if event.check not in self._checks or event.check in (one.check for one in self.standing):
                    raise LogError(f"{where} answers the check {event.check!r}, which was not shown then")
                self.given.append(Given(shown=self._checks[event.check], reply=event.answer, at=event.at))
            case CheckRetracted():
                if event.check not in (one.check for one in self.standing):
                    raise LogError(f"{where} takes back the check {event.check!r}, which was not answered")
                self._take_back(event.check)
            case Ended():
                self._check_size(where, value=event.value, weights=event.weights)
        self.ended = event if isinstance(event, Ended) else None
        self.shown = event if isinstance(event, Asked | MenuAsked | CheckShown) else None
        self.turn += event.kind in ACTIONS
        self.length += 1
        self.last = event.at

    def _check_size(self, where: str, **values: tuple[float, ...]) -> None:
        """Raise a LogError unless there is a number per objective; logs of the first version may not name them."""
        for name, numbers in values.items():
            if self.header.objectives and len(numbers) != len(self.header.objectives):
                raise LogError(
                    f"{where}: {name!r} has {len(numbers)} numbers, but there are {len(self.header.objectives)} objectives; "
                    "the log is damaged or was edited"
                )

    def _check_menu(self, where: str, event: MenuAsked) -> None:
        """Raise a LogError unless there are at least three alternatives, each at one place."""
        count = len(event.alternatives)
        if count < 3 or sorted(event.order) != list(range(count)):
            raise LogError(f"{where} is a menu of {count} alternatives in the order {list(event.order)}; it was edited")
        for number, value in enumerate(event.alternatives):
            self._check_size(where, **{f"alternatives[{number}]": value})

    def _answers(self, event: Answered | Chosen, question: Asked | MenuAsked) -> bool:
        """Return whether an answer is of the kind of its question, and its strength of one that can have any."""
        if event.strength is not None and not has_ends(event.answer):
            return False
        if isinstance(question, Asked):
            return isinstance(event, Answered)
        return isinstance(event, Chosen) and event.answer in shapes(len(question.alternatives), question.asks)

    def _take_back(self, key: int | CheckKind) -> None:
        index = next(i for i in reversed(range(len(self.given))) if self.given[i].key == key)
        self.given[index] = replace(self.given[index], retracted=True)

    def side_turned(self, question: AnyQuestion) -> Side | None:
        """Return which alternative of a pair was B when these two were last shown and answered; None if they were not."""
        if isinstance(question, Menu):
            return None
        first, second = question.first.value.tolist(), question.second.value.tolist()
        for one in reversed(self.standing):
            shown = one.shown
            if not isinstance(shown, Asked):
                continue
            if _same(shown.first, first) and _same(shown.second, second):
                return "second" if shown.left == "first" else "first"
            if _same(shown.first, second) and _same(shown.second, first):
                return "first" if shown.left == "first" else "second"
        return None

    @property
    def strengths(self) -> bool:
        """Whether answers may say by how much something is better."""
        return bool(self.header.settings.get("strengths"))

    @property
    def standing(self) -> list[Given]:
        """The replies that were not taken back, in order."""
        return [one for one in self.given if not one.retracted]

    @property
    def flags(self) -> dict[str, str]:
        """The result of each check: "passed", "failed", "skipped" or "not asked"."""
        found: dict[str, str] = dict.fromkeys(CHECKS, "not asked")
        for one in self.standing:
            if isinstance(one.shown, CheckShown):
                right = one.reply == one.shown.expected
                found[one.shown.check] = "skipped" if one.reply is None else "passed" if right else "failed"
        return found


def _same(one: Sequence[float], other: Sequence[float]) -> bool:
    """Return whether two values agree in the digits that every machine agrees on."""
    return all(round(a, 9) == round(b, 9) for a, b in zip(one, other, strict=True))


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
