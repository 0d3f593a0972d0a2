"""The protocol of stores: append-only logs of events, grouped in folders."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from types import TracebackType
from typing import Any, Protocol, Self

from tradeoff.errors import ArgumentError, StoreError
from tradeoff.log import Event, checksum

NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")  # safe in a file name, a URL and a shell
BACKGROUND_THREADS = 16

Events = Sequence[Mapping[str, Any]]


class ConflictError(StoreError):
    """The log has changed since the writer last read it, or a log of that name exists already."""


class MissingError(StoreError):
    """There is no such log."""


class InUseError(StoreError):
    """Another process has the store or file open for writing."""


class DamagedError(StoreError):
    """A log exists but cannot be read. The message says why, and never names the log: its name can be a secret."""


Log = list[Event] | DamagedError


class Store(Protocol):
    """Logs of events. Subclass it and implement ``create``, ``append``, ``read`` and ``names``.

    Events are durable when ``create`` or ``append`` returns, and never change afterwards. All methods can be called from
    several threads. ``tradeoff.testing.check_store`` checks an implementation.
    """

    @abstractmethod
    def create(self, folder: str, name: str, events: Events) -> None:
        """Begin a log with at least one event; raise a ConflictError if it exists."""

    @abstractmethod
    def append(self, folder: str, name: str, events: Events, *, after: int) -> None:
        """Add events to a log of exactly ``after`` events; raise a ConflictError if its length differs."""

    @abstractmethod
    def read(self, folder: str, name: str, *, after: int = 0) -> list[Event]:
        """Return the events of a log without the first ``after``; raise a MissingError or a DamagedError."""

    @abstractmethod
    def names(self, folder: str) -> list[str]:
        """Return the names of a folder's logs, oldest first."""

    def append_later(self, folder: str, name: str, events: Events, *, after: int) -> Future[None]:
        """Append without waiting; the future ends when the events are durable, or with the error of ``append``."""
        return _background().submit(self.append, folder, name, events, after=after)

    def logs(self, folder: str) -> dict[str, Log]:
        """Return all logs of a folder by name, oldest first.

        A log that cannot be read is represented by its DamagedError, so that it does not hide the others.
        """
        return {name: or_damaged(self.read, folder, name) for name in self.names(folder)}

    def lengths(self, folder: str) -> dict[str, int]:
        """Return how many events each log of a folder has, oldest first; 0 if it cannot be read."""
        return {name: len(log) if isinstance(log, list) else 0 for name, log in self.logs(folder).items()}

    def unchecked(self, folder: str) -> int:
        """Return how many logs of a folder end with events that an earlier version stored without a checksum."""
        return 0

    @property
    def lost(self) -> str:
        """Why nothing more can be saved; "" as long as it can."""
        return ""

    @property
    def shared(self) -> bool:
        """Whether several processes can have this store open and write to it."""
        return False

    def close(self) -> None:
        """Release all resources; calling it again does nothing."""
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@cache
def _background() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(BACKGROUND_THREADS, thread_name_prefix="tradeoff store")


def check_name(what: str, name: str) -> str:
    """Return the name of a folder or log; raise an ArgumentError if it is not safe to use."""
    if not NAME.fullmatch(name):
        raise ArgumentError(f"the {what} name {name[:140]!r} is not allowed; use 1 to 128 letters, digits, - and _")
    return name


def check_new(folder: str, name: str, events: Events) -> tuple[str, str]:
    """Return the folder and the name of a new log; raise an ArgumentError if it cannot be created."""
    if not events:
        raise ArgumentError("a new log needs at least one event")
    return check_name("folder", folder), check_name("log", name)


def lines_of(events: Events) -> list[str]:
    """Return events as JSON without line breaks; raise a ValueError or TypeError for what JSON cannot represent."""
    return [json.dumps(dict(event), allow_nan=False) for event in events]


def events_from(rows: Iterable[tuple[int, object, int | None]], after: int = 0, before: int = 0) -> list[Event]:
    """Return the events of a log, given rows that should begin at position ``after``: position, JSON text, checksum.

    A checksum covers its own event and all events before it; ``before`` is that of the event before the first row. An
    event that an earlier version stored has none (None), but the next checksum covers it. Raise a DamagedError if an
    event is missing, is not a JSON object or does not match its checksum.
    """
    events: list[Event] = []
    for expected, (position, text, stored) in enumerate(rows, start=after):
        if position != expected:
            raise DamagedError(f"event {expected + 1} of the log is missing")
        try:
            event = json.loads(str(text).encode())  # strict encoding: bytes that were not UTF-8 must not pass
        except (ValueError, RecursionError) as error:
            raise DamagedError(f"event {position + 1} of the log is not JSON ({error})") from None
        if not isinstance(event, dict):
            raise DamagedError(f"event {position + 1} of the log is not a JSON object")
        before = checksum(str(text), before)
        if stored is not None and stored != before:
            raise DamagedError(f"event {position + 1} of the log, or one before it, was changed: its checksum differs")
        events.append(event)
    if not events and not after:
        raise DamagedError("the log has no events")
    return events


def or_damaged(read: Callable[..., list[Event]], *arguments: Any) -> Log:
    """Return what ``read(*arguments)`` returns, or the DamagedError it raises."""
    try:
        return read(*arguments)
    except DamagedError as error:
        return error


def missing(folder: str, name: str) -> MissingError:
    """Return the error for a log that does not exist."""
    return MissingError(f"there is no log {name!r} in {folder!r}")


def conflict(folder: str, name: str) -> ConflictError:
    """Return the error for a log that has changed since it was read."""
    return ConflictError(f"the log {name!r} in {folder!r} was changed by another writer; read it again")
