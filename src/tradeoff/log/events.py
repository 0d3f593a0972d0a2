"""Events as frozen values, and their conversion from and to JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, ClassVar, Literal, TypeAlias, cast, get_args

import numpy as np

from tradeoff.errors import LogError
from tradeoff.log.fields import CheckKind, PairReply, Reader
from tradeoff.log.places import Placed
from tradeoff.menus import AnyAnswer, Asks, Choice, Statement, Strength, graded, plain, strength_of
from tradeoff.model import Alternative, Answer, Question

FORMAT = "tradeoff-log/2"
READABLE = ("tradeoff-log/1", FORMAT)  # version 1 had neither sides nor checks

Event: TypeAlias = dict[str, Any]  # an event as JSON
Side: TypeAlias = Literal["first", "second"]
Said: TypeAlias = Literal["left", "right", "same", "skip"]
Reply: TypeAlias = AnyAnswer | None  # to a pair or to a menu

SAID: tuple[Said, ...] = get_args(Said)


# --- which side is A -------------------------------------------------------------------------------------------------


class Sided:
    """Something with two alternatives, of which ``left`` is shown on the left, or as A.

    Only this class converts between left and right and first and second.
    """

    left: Side

    def turned(self, reply: PairReply) -> PairReply:
        """Return a reply about the first and the second as one about A and B, or the other way round."""
        return reply if reply is None or self.left == "first" else reply.swapped

    def reply(self, said: Said) -> PairReply:
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

    def said(self, reply: PairReply) -> Said:
        """Return the side that a reply chooses."""
        match plain(self.turned(reply)):
            case Answer.SAME:
                return "same"
            case Answer.FIRST:
                return "left"
            case Answer.SECOND:
                return "right"
        return "skip"


@dataclass(frozen=True, eq=False)
class Shown(Sided):
    """A question as a person sees it; ``again`` if it was answered before with the sides swapped."""

    question: Question
    left: Side = "first"
    again: bool = False

    @property
    def alternatives(self) -> list[Alternative]:
        """Both, in the order in which they are shown."""
        return [self.a, self.b]

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
                case "strength" if value is None:
                    pass  # as in all logs before there were any
                case "alternatives" | "tiers" | "differences":
                    found[one.name] = [list(row) for row in value]
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
    # What gains are in the person's units, per objective: outcome = origin + scale * gain; logs before version 0.3 lack it.
    units: tuple[str, ...] = ()
    goals: tuple[str, ...] = ()
    origin: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
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
    strength: Strength | None = None
    number: int
    at: datetime

    @property
    def reply(self) -> AnyAnswer:
        """The answer, with its strength."""
        return graded(self.answer, self.strength)


@dataclass(frozen=True, kw_only=True)
class MenuAsked(_Written, Placed):
    """A menu was shown; its answer will have the same number. ``order`` says which alternative stood at each place."""

    kind = "menu"
    number: int
    asks: Asks
    alternatives: tuple[tuple[float, ...], ...]
    order: tuple[int, ...]
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Chosen(_Written):
    """The menu of this number was answered: its alternatives by number, in tiers from the best to the worst."""

    kind = "choice"
    tiers: tuple[tuple[int, ...], ...]
    strength: Strength | None = None
    number: int
    at: datetime

    @property
    def answer(self) -> Choice:
        """The answer."""
        return Choice(self.tiers)

    @property
    def reply(self) -> AnyAnswer:
        """The answer, with its strength."""
        return graded(self.answer, self.strength)


@dataclass(frozen=True, kw_only=True)
class Stated(_Written):
    """Something was said without being asked; it is taken back by its number, as answers are."""

    kind = "statement"
    number: int
    text: str
    differences: tuple[tuple[float, ...], ...]
    outcomes: tuple[int, ...]
    at: datetime

    @classmethod
    def of(cls, known: Statement, number: int, at: datetime) -> Stated:
        """Return the event in which something is stated."""
        differences = tuple(tuple(row) for row in known.differences.tolist())
        return cls(
            number=number, text=known.text, differences=differences, outcomes=tuple(known.outcomes.tolist()), at=at
        )

    @property
    def answer(self) -> Answer:
        """It holds."""
        return Answer.FIRST

    def said(self, reply: Reply) -> str:
        """Return what was said."""
        return self.text


@dataclass(frozen=True, kw_only=True)
class Skipped(_Written):
    """The question of this number was skipped."""

    kind = "skip"
    number: int
    at: datetime

    @property
    def reply(self) -> None:
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
    expected: PairReply
    at: datetime


@dataclass(frozen=True, kw_only=True)
class CheckAnswered(_Written):
    """An attention check was answered or skipped."""

    kind = "check-answer"
    check: CheckKind
    answer: PairReply
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
LogEvent: TypeAlias = (
    Asked
    | Answered
    | MenuAsked
    | Chosen
    | Stated
    | Skipped
    | Retracted
    | CheckShown
    | CheckAnswered
    | CheckRetracted
    | Ended
)
FOR_SESSIONS = (CheckShown, CheckAnswered, CheckRetracted, Ended)  # what no strategy needs to know
KINDS: dict[str, type[LogEvent]] = {kind.kind: kind for kind in get_args(LogEvent)}

# What a person does: each of these begins a new turn.
ACTIONS = frozenset(kind.kind for kind in (Answered, Chosen, Stated, Skipped, Retracted, CheckAnswered, CheckRetracted))


def answer_event(reply: AnyAnswer, number: int, at: datetime) -> Answered | Chosen:
    """Return the event in which the question of this number is answered."""
    answer, strength = plain(reply), strength_of(reply)
    if isinstance(answer, Choice):
        return Chosen(tiers=answer.tiers, strength=strength, number=number, at=at)
    return Answered(answer=answer, strength=strength, number=number, at=at)


def word(reply: Reply) -> str:
    """Return a reply in a word, without its strength: as a log spells it, or the tiers of a choice, such as "2 > 1, 3"."""
    reply = plain(reply)
    if isinstance(reply, Choice):
        return " > ".join(", ".join(str(i + 1) for i in tier) for tier in reply.tiers) if not reply.equal else "same"
    return "skip" if reply is None else reply.value


# --- one event from JSON ---------------------------------------------------------------------------------------------


def header_of(event: object) -> Header:
    """Return the header of a log, checked."""
    if not isinstance(event, Mapping) or event.get("event") != "header":
        raise LogError("the log does not begin with a header; it is damaged or not a log")
    if event.get("format") not in READABLE:
        raise LogError(f"the log's format is {event.get('format')!r:.80}; this version reads {', '.join(READABLE)}")
    read = Reader(event, "the header of the log")
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
        **read.measures(len(names)),
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
    read = Reader(event, where)
    return kind(**{one.name: read.field(one.name) for one in fields(kind)})
