"""A store of plain files: one file of JSON lines per log, readable with any text editor."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

from tradeoff.errors import StoreError
from tradeoff.log import Event
from tradeoff.stores.base import (
    DamagedError,
    Events,
    InUseError,
    Store,
    check_name,
    check_new,
    conflict,
    missing,
)
from tradeoff.stores.jsonlines import LONGEST_HEADER, JsonLines

TIMEOUT = 10  # seconds to wait for a file that another process has locked


class FolderStore(Store):
    """Logs as files ``PATH/folder/name.jsonl``. A file is locked only while it is read or written."""

    def __init__(self, path: str | Path) -> None:
        if not str(path):
            raise StoreError("the address of a store of files needs a path: folder:PATH")
        self.path = Path(path)
        self._lock = threading.Lock()  # a file can be locked only once, even within this process

    def create(self, folder: str, name: str, events: Events) -> None:
        """Begin a log."""
        path = self._file(*check_new(folder, name, events))
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
        """Add events to a log."""
        with self._lock, self._opened(folder, name) as log:
            if len(log.read()) != after:
                raise conflict(folder, name)
            log.append(events)

    def read(self, folder: str, name: str, *, after: int = 0) -> list[Event]:
        """Return the events of a log."""
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

    def lengths(self, folder: str) -> dict[str, int]:
        """Return how many events each log of a folder has, by counting complete lines."""
        return {name: self._file(folder, name).read_bytes().count(b"\n") for name in self.names(folder)}

    @property
    def shared(self) -> bool:
        """Whether several processes can write to the store."""
        return True

    def _file(self, folder: str, name: str) -> Path:
        return self.path / folder / f"{name}.jsonl"

    def _opened(self, folder: str, name: str) -> JsonLines:
        path = self._file(check_name("folder", folder), check_name("log", name))
        if not path.is_file() or not path.stat().st_size:
            raise missing(folder, name)
        deadline = time.monotonic() + TIMEOUT
        while True:
            try:
                return JsonLines.open(path)
            except InUseError:  # another process is reading or writing it; wait for that
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.01)


def _header(path: Path) -> bytes | None:
    """Return the first line of a log, or None if a crash left it unfinished: such a log was never acknowledged."""
    with path.open("rb") as file:
        line, newline, _ = file.read(LONGEST_HEADER).partition(b"\n")
    return line if newline else None


def _time(header: bytes) -> str:
    """Return the time in a header, or "" if it is damaged."""
    try:
        return str(json.loads(header)["time"])
    except (ValueError, RecursionError, TypeError, KeyError):
        return ""
