"""A store of plain files: one file of JSON lines per log, which any text editor can read."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

from tradeoff.errors import StoreError
from tradeoff.log import Event
from tradeoff.stores.base import Closing, DamagedError, Events, Log, check_name, conflict, missing, or_damaged
from tradeoff.stores.jsonlines import LONGEST_HEADER, JsonLines

PATIENCE = 10  # seconds to wait for a file that another process holds


class Folder(Closing):
    """Logs as files ``PATH/folder/name.jsonl``; a file is held only while it is read or written."""

    def __init__(self, path: str | Path) -> None:
        if not str(path):
            raise StoreError("a store of files needs a folder; write folder:PATH")
        self.path = Path(path)
        self._lock = threading.Lock()  # a file can be held once only, by this process too

    def create(self, folder: str, name: str, events: Events) -> None:
        """Begin a log."""
        check_name("folder", folder), check_name("log", name)
        path = self._file(folder, name)
        with self._lock:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(f"cannot make the folder {path.parent}: {error.strerror}") from error
            if path.exists() and path.stat().st_size:
                raise conflict(folder, name)
            with JsonLines.create(path) as log:
                log.append(events)

    def append(self, folder: str, name: str, events: Events, *, after: int) -> None:
        """Add to a log."""
        with self._lock, self._opened(folder, name) as log:
            if len(log.read()) != after:
                raise conflict(folder, name)
            log.append(events)

    def read(self, folder: str, name: str, *, after: int = 0) -> list[Event]:
        """Return a log's events."""
        with self._lock:
            try:
                with self._opened(folder, name) as log:
                    return log.read()[after:]
            except DamagedError as error:
                raise DamagedError(str(error).replace(str(self._file(folder, name)), "the file")) from None

    def names(self, folder: str) -> list[str]:
        """Return the names of a folder's logs, the oldest first by the time in their header."""
        check_name("folder", folder)
        headers = {path.stem: _header(path) for path in (self.path / folder).glob("*.jsonl")}
        begun = {name: _time(header) for name, header in headers.items() if header is not None}
        return sorted(begun, key=lambda name: (begun[name], name))

    def logs(self, folder: str) -> dict[str, Log]:
        """Return all logs of a folder, the oldest first."""
        return {name: or_damaged(self.read, folder, name) for name in self.names(folder)}

    def lengths(self, folder: str) -> dict[str, int]:
        """Return how many events each log of a folder has: its whole lines."""
        return {name: self._file(folder, name).read_bytes().count(b"\n") for name in self.names(folder)}

    @property
    def shared(self) -> bool:
        """Whether other processes may write at the same time."""
        return True

    def _file(self, folder: str, name: str) -> Path:
        return self.path / folder / f"{name}.jsonl"

    def _opened(self, folder: str, name: str) -> JsonLines:
        check_name("folder", folder), check_name("log", name)
        path = self._file(folder, name)
        if not path.is_file() or not path.stat().st_size:
            raise missing(folder, name)
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return JsonLines.open(path)
            except StoreError as error:  # another process reads or writes it, which takes no time
                if "in use" not in str(error) or time.monotonic() > deadline:
                    raise
            time.sleep(0.01)


def _header(path: Path) -> bytes | None:
    """Return a log's first line, or None if a crash interrupted the writing of it: such a log was never acknowledged."""
    with path.open("rb") as file:
        line, newline, _ = file.read(LONGEST_HEADER).partition(b"\n")
    return line if newline else None


def _time(header: bytes) -> str:
    """Return the time in a header, or nothing if it is damaged."""
    try:
        return str(json.loads(header)["time"])
    except (ValueError, RecursionError, TypeError, KeyError):
        return ""
