"""Events as frozen values, and their conversion from and to JSON.

One kind of question: a pair is a question about two options. ``order`` says which option stood at each place. Attention checks
of studies are questions and answers with a ``check`` and without a number.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeAlias, get_args

import msgspec
import numpy as np
from msgspec import Meta

from tradeoff.errors import ArgumentError, LogError
from tradeoff.evidence import Statement
from tradeoff.log.old import upgrade, upgrade_header
from tradeoff.model import Asks, Option, Question, Reply, ReplyWord

FORMAT = "tradeoff-log/3"
READABLE = ("tradeoff-log/1", "tradeoff-log/2", FORMAT)

Event: TypeAlias = dict[str, Any]  # an event as JSON
CheckKind: TypeAlias = Literal["dominated", "repeat"]
CHECKS: tuple[CheckKind, ...] = get_args(CheckKind)

# Gains are at most about 1: a number beyond this is damage, and would overflow later.
LARGEST = 1e9
Amount: TypeAlias = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
Row: TypeAlias = Annotated[tuple[Amount, ...], Meta(min_length=1)]
Number: TypeAlias = Annotated[int, Meta(ge=1)]
Place: TypeAlias = Annotated[int, Meta(ge=0, le=99)]


class _Timed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event"):
    """Something that happened at a time."""

    at: datetime = msgspec.field(name="time")

    def __post_init__(self) -> None:
        if self.at.tzinfo is not UTC:
            aware = self.at if self.at.tzinfo is not None else self.at.replace(tzinfo=UTC)
            try:
                msgspec.structs.force_setattr(self, "at", aware.astimezone(UTC))
            except OverflowError:
                raise ValueError(f"the time {self.at.isoformat()} is none in UTC") from None

    def to_json(self) -> Event:
        """Return the event as JSON."""
        event: Event = msgspec.json.decode(msgspec.json.encode(self))
        return event


class Header(_Timed, frozen=True, kw_only=True, tag="header"):
    """What is fixed before the first question."""

    format: str
    version: str | None = None  # of the program that began the log; the first versions left it out
    problem: str  # its fingerprint
    problem_name: str = ""
    objectives: tuple[str, ...] = ()
    # What gains are in the respondent's units, per objective: outcome = origin + scale * gain; logs before version 0.3 lack it.
    units: tuple[str, ...] = ()
    goals: tuple[Literal["min", "max"], ...] = ()
    origin: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    strategy: str
    settings: dict[str, Any]
    order_seed: int | None = None

    @property
    def is_old(self) -> bool:
        """Whether an earlier version began the log: its questions are not compared with those of this version."""
        return self.format != FORMAT


class Placed(_Timed, frozen=True, kw_only=True):
    """Options in the order in which they were shown: ``order[p]`` is the position of the one at place p."""

    asks: Asks = "best"
    options: Annotated[tuple[Row, ...], Meta(min_length=2)]
    order: tuple[Place, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        # msgspec omits a default only if it is the same object, which a word from another process is not.
        msgspec.structs.force_setattr(self, "asks", sys.intern(self.asks))

    @property
    def question(self) -> Question:
        """The question, without plans."""
        return Question(tuple(Option(np.array(value)) for value in self.options), self.asks)

    def by_place(self, reply: Reply) -> Reply:
        """Return a reply about positions as one about the places where the options were shown."""
        return reply.renumbered(sorted(range(len(self.order)), key=self.order.__getitem__))

    def by_position(self, reply: Reply) -> Reply:
        """Return a reply about places as one about positions."""
        return reply.renumbered(self.order)


class Asked(Placed, frozen=True, kw_only=True, tag="question"):
    """A question was shown; its answer has the same number. A check has the reply that is ``expected`` instead."""

    number: Number | None = None
    check: CheckKind | None = None
    expected: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.check is not None:
            try:
                _ = self.expected_reply
            except (ArgumentError, TypeError) as error:
                raise ValueError(f"the reply that the check expects: {error}") from None

    @property
    def expected_reply(self) -> Reply:
        """The reply that an attention check expects."""
        return Reply(**(self.expected or {}))


class _Replied(_Timed, frozen=True, kw_only=True):
    """A reply: positions of options, or a word."""

    best: Place | None = None
    worst: Place | None = None
    word: ReplyWord | None = msgspec.field(name="reply", default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            _ = self.reply
        except ArgumentError as error:
            raise ValueError(str(error)) from None

    @property
    def reply(self) -> Reply:
        """The reply."""
        return Reply(self.best, self.worst, self.word)


class Answered(_Replied, frozen=True, kw_only=True, tag="answer"):
    """The question of this number, or an attention check, was answered or skipped."""

    number: Number | None = None
    check: CheckKind | None = None


class Observed(_Replied, frozen=True, kw_only=True, tag="observation"):
    """An answer that was given elsewhere: its options, and the reply. It is undone by its number."""

    number: Number
    asks: Asks = "best"
    options: Annotated[tuple[Row, ...], Meta(min_length=2)]

    @property
    def question(self) -> Question:
        """The question, without plans."""
        return Question(tuple(Option(np.array(value)) for value in self.options), self.asks)


class Stated(_Timed, frozen=True, kw_only=True, tag="statement"):
    """Something was said without being asked; it is undone by its number, as answers are."""

    number: Number
    text: str
    differences: Annotated[tuple[Row, ...], Meta(min_length=1)]
    outcomes: tuple[Literal[0, 1, 2, 3], ...]

    @classmethod
    def of(cls, statement: Statement, number: int, at: datetime) -> Stated:
        """Return the event in which something is stated."""
        differences = tuple(tuple(row) for row in statement.differences.tolist())
        return cls(
            number=number, text=statement.text, differences=differences,
            outcomes=tuple(statement.outcomes.tolist()), at=at,
        )  # fmt: skip

    @property
    def statement(self) -> Statement:
        """The statement."""
        return Statement(self.text, np.array(self.differences), np.array(self.outcomes))


class Undone(_Timed, frozen=True, kw_only=True, tag="undo"):
    """The answer of this number, or that to an attention check, was undone."""

    number: Number | None = None
    check: CheckKind | None = None


class Ended(_Timed, frozen=True, kw_only=True, tag="end"):
    """Nothing was left to ask; this was recommended."""

    reason: str
    complete: bool
    value: Row
    weights: Row
    regret_bound: float | None = None
    likely_regret: float | None = None


# All events that can follow a header.
LogEvent: TypeAlias = Asked | Answered | Observed | Stated | Undone | Ended

# What a respondent does: each of these begins a new turn. The older words are those of formats 1 and 2.
ACTIONS = frozenset(
    ("answer", "observation", "statement", "undo", "choice", "skip", "retraction", "check-answer", "check-retraction")
)


def answer_event(reply: Reply, at: datetime, *, number: int | None = None, check: CheckKind | None = None) -> Answered:
    """Return the event in which a question or a check is answered."""
    return Answered(best=reply.best, worst=reply.worst, word=reply.word, number=number, check=check, at=at)


def reply_json(reply: Reply) -> dict[str, Any]:
    """Return a reply as the fields of a JSON object."""
    fields = {"best": reply.best, "worst": reply.worst, "word": reply.word}
    return {name: value for name, value in fields.items() if value is not None}


# --- one event from JSON ---------------------------------------------------------------------------------------------


def header_of(event: object) -> Header:
    """Return the header of a log, checked."""
    if not isinstance(event, Mapping) or event.get("event") != "header":
        raise LogError("the log does not begin with a header; it is damaged or not a log")
    if event.get("format") not in READABLE:
        raise LogError(f"the log's format is {event.get('format')!r:.80}; this version reads {', '.join(READABLE)}")
    header: Header = _converted(upgrade_header(event), Header, "the header of the log")
    _check_units(header)
    return header


def _check_units(header: Header) -> None:
    """Raise a LogError unless the header has units, goals, origin and scale for each objective, or none of them."""
    columns = (header.units, header.goals, header.origin, header.scale)
    count = len(header.objectives)
    if not any(columns):
        return
    fits = all(len(column) == count for column in columns) and all(
        abs(scale) > 0 and (scale > 0) == (goal == "max") and abs(origin) < float("inf")
        for scale, goal, origin in zip(header.scale, header.goals, header.origin, strict=True)
    )
    if not fits:
        raise LogError(
            f"the header of the log does not give units, goals, origin and scale of each of {count} objectives; "
            "it is damaged or was edited"
        )


def event_of(event: object, position: int) -> LogEvent:
    """Return the event at a position of a log (the header is at 1), checked."""
    where = f"event {position} of the log"
    if not isinstance(event, Mapping):
        raise LogError(f"{where} is not an event; the log is damaged there")
    found: LogEvent = _converted(upgrade(event), LogEvent, where)
    return found


def _converted(event: Mapping[str, Any], kind: Any, where: str) -> Any:
    try:
        return msgspec.convert(event, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise LogError(f"{where}: {error}; the log is damaged or was edited") from None
