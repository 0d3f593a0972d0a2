"""What every store is: logs of events in folders, to which events are only ever added."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

from tradeoff.errors import ArgumentError, StoreError
from tradeoff.log import Event

# Folders and logs are called by what is safe in a file name, an address and a shell.
NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")

Events = Sequence[Mapping[str, Any]]


class ConflictError(StoreError):
    """Somebody else was quicker: the log is longer than the writer believed, or there already."""


class MissingError(StoreError):
    """There is no such log."""


class DamagedError(StoreError):
    """A log is there but cannot be read. The message says what is wrong, never the log's name, which can be a secret."""


Log = list[Event] | DamagedError


class Store(Protocol):
    """Logs of events. What ``create`` and ``append`` have taken is durable when they return; nothing is ever changed.

    A store is safe to use from several threads.
    """

    def create(self, folder: str, name: str, events: Events) -> None:
        """Begin a log with these events; raise a ConflictError if there is one of that name."""

    def append(self, folder: str, name: str, events: Events, *, after: int) -> None:
        """Add events to a log that holds ``after`` events; raise a ConflictError if it holds more by now."""

    def read(self, folder: str, name: str, *, after: int = 0) -> list[Event]:
        """Return the events of a log without the first ``after``; raise a MissingError or a DamagedError."""

    def names(self, folder: str) -> list[str]:
        """Return the names of a folder's logs in the order they were begun."""

    def logs(self, folder: str) -> dict[str, Log]:
        """Return all logs of a folder by name, in the order they were begun.

        A log that cannot be read is its DamagedError, so that one damaged log never hides the others.
        """

    def lengths(self, folder: str) -> dict[str, int]:
        """Return how many events each log of a folder has, in the order they were begun, without reading them."""

    @property
    def shared(self) -> bool:
        """Whether other processes may write at the same time."""

    def close(self) -> None:
        """Let go of everything; doing so twice is no harm."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Closing:
    """Makes a store with ``close`` usable in ``with``."""

    def close(self) -> None:
        """Let go of everything."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def check_name(what: str, name: str) -> str:
    """Return the name of a folder or log, checked."""
    if not NAME.fullmatch(name):
        raise ArgumentError(
            f"the {what} {name[:140]!r} has a name that cannot be kept; use at most 128 letters, digits, - and _"
        )
    return name


def events_from(rows: Iterable[tuple[int, object]], after: int = 0) -> list[Event]:
    """Return the events of a log from (position, JSON text), of which the first should be at position ``after``.

    Raise a DamagedError if one is missing or is not a JSON object.
    """
    events: list[Event] = []
    for expected, (position, text) in enumerate(rows, start=after):
        if position != expected:
            raise DamagedError(f"event {expected + 1} of the log is missing")
        try:
            event = json.loads(str(text).encode())  # encoded strictly: what was not UTF-8 must not pass as text
        except (ValueError, RecursionError) as error:
            raise DamagedError(f"event {position + 1} of the log is not JSON ({error})") from None
        if not isinstance(event, dict):
            raise DamagedError(f"event {position + 1} of the log is not a JSON object")
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
    """Return the error for a log that is not there."""
    return MissingError(f"there is no {name!r} in {folder!r}")


def conflict(folder: str, name: str) -> ConflictError:
    """Return the error for a log that has moved on."""
    return ConflictError(f"{name!r} in {folder!r} was written by somebody else in the meantime; read it again")


def open_store(address: str, *, write: bool = True) -> Store:
    """Return the store at an address.

    ``memory:`` forgets everything, ``folder:PATH`` keeps a file of JSON lines per log, ``sqlite:///PATH`` one database
    file for one server, ``postgresql://...`` a database for several. Without ``write`` nothing can be added, and an
    SQLite file that a server holds can be read all the same.

    >>> with open_store("memory:") as store:
    ...     store.create("people", "ann", [{"event": "header"}])
    ...     store.names("people")
    ['ann']
    """
    kind, _, rest = address.partition(":")
    match kind:
        case "memory":
            from tradeoff.stores.memory import Memory

            return Memory()
        case "folder":
            from tradeoff.stores.folder import Folder

            return Folder(rest)
        case "sqlite" | "postgresql" | "postgresql+psycopg":
            from tradeoff.stores.sql import Sql

            return Sql(address, write=write)
    raise ArgumentError(
        f"there is no store {address.rpartition('@')[2]!r:.200}; "
        "use sqlite:///FILE, postgresql://USER@HOST/DATABASE, folder:PATH or memory:"
    )
