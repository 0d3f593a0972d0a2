"""Events as frozen values, and their conversion from and to JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, TypeAlias, cast, get_args

import numpy as np

from tradeoff.errors import LogError
from tradeoff.model import Alternative, Answer, Question

FORMAT = "tradeoff-log/2"
READABLE = ("tradeoff-log/1", FORMAT)  # version 1 had neither sides nor checks

LARGEST = 1e9  # gains are at most about 1: a larger number is damage, and might overflow later

Event: TypeAlias = dict[str, Any]  # an event as JSON
Side: TypeAlias = Literal["first", "second"]
CheckKind: TypeAlias = Literal["dominated", "repeat"]
Said: TypeAlias = Literal["left", "right", "same", "skip"]
Reply: TypeAlias = Answer | None  # None: skipped

SAID: tuple[Said, ...] = get_args(Said)
CHECKS: tuple[CheckKind, ...] = get_args(CheckKind)


# --- which side is A -------------------------------------------------------------------------------------------------


class Sided:
    """Something with two alternatives, of which ``left`` is shown on the left, or as A.

    Only this class converts between left and right and first and second.
    """

    left: Side

    def turned(self, reply: Reply) -> Reply:
        """Convert a reply from first and second to A and B, or back."""
        return reply if reply is None or self.left == "first" else reply.swapped

    def reply(self, said: Said) -> Reply:
        """Return the reply that choosing a side means."""
        match said:
            case "left":
                return self.turned(Answer.FIRST)
            case "right":
                return self.turned(Answer.SECOND)
            case "same":
                return Answer.SAME
            case "skip":
                return None

    def said(self, reply: Reply) -> Said:
        """Return the side that a reply chooses."""
        match self.turned(reply):
            case None:
                return "skip"
            case Answer.SAME:
                return "same"
            case Answer.FIRST:
                return "left"
            case Answer.SECOND:
                return "right"


@dataclass(frozen=True, eq=False)
class Shown(Sided):
    """A question as a person sees it; ``again`` if it was answered before with the sides swapped."""

    question: Question
    left: Side = "first"
    again: bool = False

    @property
    def a(self) -> Alternative:
        """The alternative on the left."""
        return self.question.first if self.left == "first" else self.question.second

    @property
    def b(self) -> Alternative:
        """The alternative on the right."""
        return self.question.second if self.left == "first" else self.question.first


def side_of(seed: int | None, question: Question) -> Side:
    """Return which alternative of a question is shown first: random, but always the same for the same question.

    Without a seed it is the first.
    """
    if seed is None:
        return "first"
    values = np.round(np.concatenate([question.first.value, question.second.value]), 9) + 0.0
    return "second" if hashlib.sha256(f"{seed}/".encode() + values.tobytes()).digest()[0] & 1 else "first"


# --- events ----------------------------------------------------------------------------------------------------------


class _Written:
    """An event that is written as JSON: its fields in order, under the names used in the format."""

    kind: ClassVar[str]

    def to_json(self) -> Event:
        """Return the event as JSON."""
        found: Event = {"event": self.kind}
        for one in fields(cast(Any, self)):
            value = getattr(self, one.name)
            match one.name:
                case "at":
                    found["time"] = value.isoformat()
                case "check":
                    found["kind"] = value
                case "answer" | "expected":
                    found[one.name] = word(value)
                case _:
                    found[one.name] = list(value) if isinstance(value, tuple) else value
        return found


@dataclass(frozen=True, kw_only=True)
class Header(_Written):
    """What is fixed before the first question."""

    kind = "header"
    format: str = FORMAT
    version: str | None = None  # of the program that began the log; the first versions left it out
    problem: str  # its fingerprint
    problem_name: str = ""
    objectives: tuple[str, ...] = ()
    strategy: str
    settings: dict[str, Any]
    sides: int | None = None
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Asked(_Written, Sided):
    """A question was shown; its answer will have the same number."""

    kind = "question"
    number: int
    first: tuple[float, ...]
    second: tuple[float, ...]
    left: Side = "first"
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Answered(_Written):
    """The question of this number was answered."""

    kind = "answer"
    answer: Answer
    number: int
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Skipped(_Written):
    """The question of this number was skipped."""

    kind = "skip"
    number: int
    at: datetime

    @property
    def answer(self) -> None:
        """Nothing was answered."""
        return None


@dataclass(frozen=True, kw_only=True)
class Retracted(_Written):
    """The answer of this number was taken back."""

    kind = "retraction"
    number: int
    at: datetime


@dataclass(frozen=True, kw_only=True)
class CheckShown(_Written, Sided):
    """An attention check was shown."""

    kind = "check"
    check: CheckKind
    first: tuple[float, ...]
    second: tuple[float, ...]
    left: Side = "first"
    expected: Reply
    at: datetime


@dataclass(frozen=True, kw_only=True)
class CheckAnswered(_Written):
    """An attention check was answered or skipped."""

    kind = "check-answer"
    check: CheckKind
    answer: Reply
    at: datetime


@dataclass(frozen=True, kw_only=True)
class CheckRetracted(_Written):
    """The answer to an attention check was taken back."""

    kind = "check-retraction"
    check: CheckKind
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Ended(_Written):
    """Nothing was left to ask; this is what was recommended."""

    kind = "end"
    reason: str
    complete: bool
    value: tuple[float, ...]
    weights: tuple[float, ...]
    regret_bound: float | None = None
    likely_regret: float | None = None
    at: datetime


# All events that can follow a header.
LogEvent: TypeAlias = Asked | Answered | Skipped | Retracted | CheckShown | CheckAnswered | CheckRetracted | Ended
KINDS: dict[str, type[LogEvent]] = {kind.kind: kind for kind in get_args(LogEvent)}

# What a person does: each of these begins a new turn.
ACTIONS = frozenset(kind.kind for kind in (Answered, Skipped, Retracted, CheckAnswered, CheckRetracted))


def word(reply: Reply) -> str:
    """Return a reply as a log spells it."""
    return "skip" if reply is None else reply.value


# --- one event from JSON ---------------------------------------------------------------------------------------------


class _Reader:
    """The fields of one event, each checked when it is taken."""

    def __init__(self, event: Mapping[str, Any], where: str) -> None:
        self.event, self.where = event, where

    def wrong(self, name: str, wanted: str) -> LogError:
        found = f"is {self.event[name]!r:.80}" if name in self.event else "is missing"
        return LogError(f"{self.where}: {name!r} {found}; it must be {wanted}. The log is damaged or was edited")

    def text(self, name: str) -> str:
        value = self.event.get(name)
        if not isinstance(value, str):
            raise self.wrong(name, "a string")
        return value

    def one_of(self, name: str, words: Sequence[str]) -> str:
        value = self.event.get(name)
        if not isinstance(value, str) or value not in words:
            raise self.wrong(name, f"one of {', '.join(words)}")
        return value

    def count(self, name: str) -> int:
        value = self.event.get(name)
        if type(value) is not int or value < 1:
            raise self.wrong(name, "a whole number, 1 or more")
        return value

    def number(self, name: str) -> float | None:
        value = self.event.get(name)
        if value is None:
            return None
        if not _is_number(value):
            raise self.wrong(name, "a number")
        return float(value)

    def numbers(self, name: str) -> tuple[float, ...]:
        values = self.event.get(name)
        if not isinstance(values, list) or not values or not all(map(_is_number, values)):
            raise self.wrong(name, "a list of numbers, one per objective")
        return tuple(float(value) for value in values)

    def time(self) -> datetime:
        try:
            found = datetime.fromisoformat(self.text("time"))
            return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            raise self.wrong("time", "a date and time such as 2026-01-31T12:00:00+00:00") from None

    def flag(self, name: str) -> bool:
        value = self.event.get(name)
        if type(value) is not bool:
            raise self.wrong(name, "true or false")
        return value

    def reply(self, name: str, *, skip: bool) -> Reply:
        found = self.one_of(name, ("first", "second", "same", *(("skip",) if skip else ())))
        return None if found == "skip" else Answer(found)

    def field(self, name: str) -> Any:
        """Return the value of an event's field of this name."""
        match name:
            case "number":
                return self.count(name)
            case "first" | "second" | "value" | "weights":
                return self.numbers(name)
            case "left":
                return self.one_of(name, ("first", "second")) if name in self.event else "first"
            case "at":
                return self.time()
            case "check":
                return self.one_of("kind", CHECKS)
            case "answer" | "expected":
                return self.reply(name, skip=self.event["event"] != Answered.kind)
            case "regret_bound" | "likely_regret":
                return self.number(name)
            case "complete":
                return self.flag(name)
        return self.text(name)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST  # and no NaN


def header_of(event: object) -> Header:
    """Return the header of a log, checked."""
    if not isinstance(event, Mapping) or event.get("event") != "header":
        raise LogError("the log does not begin with a header; it is damaged or not a log")
    if event.get("format") not in READABLE:
        raise LogError(f"the log's format is {event.get('format')!r:.80}; this version reads {', '.join(READABLE)}")
    read = _Reader(event, "the header of the log")
    settings, sides, version = event.get("settings"), event.get("sides"), event.get("version")
    if not isinstance(settings, dict) or not isinstance(event.get("strategy"), str):
        raise LogError("the log's header names no strategy; it is damaged")
    if sides is not None and type(sides) is not int:
        raise read.wrong("sides", "a whole number")
    if version is not None and not isinstance(version, str):
        raise read.wrong("version", "a string")
    names = event.get("objectives", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise read.wrong("objectives", "a list of strings")
    return Header(
        problem=read.text("problem"), strategy=event["strategy"], settings=settings, at=read.time(),
        format=event["format"], version=version, problem_name=str(event.get("problem_name", "")),
        objectives=tuple(names), sides=sides,
    )  # fmt: skip


def event_of(event: object, position: int) -> LogEvent:
    """Return the event at a position of a log (the header is at 1), checked."""
    where = f"event {position} of the log"
    if not isinstance(event, Mapping):
        raise LogError(f"{where} is not an event; the log is damaged there")
    found = event.get("event")
    kind = KINDS.get(found) if isinstance(found, str) else None
    if kind is None:
        raise LogError(f"{where} has the unknown kind {found!r:.80}")
    read = _Reader(event, where)
    return kind(**{one.name: read.field(one.name) for one in fields(kind)})
