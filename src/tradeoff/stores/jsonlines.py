"""An append-only log of events as a file of JSON lines.

An event is on the disk when ``append`` returns. A line that a crash left unfinished was never acknowledged: it is ignored,
and removed when the next event is written. Every line has a checksum (``tradeoff.log.lines``). Only one process at a time
can have a file open.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import sys
from collections.abc import Iterable, Mapping
from copy import copy
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tradeoff.errors import LogError, StoreError
from tradeoff.log import Event, Lines, unfinished
from tradeoff.stores.base import DamagedError, InUseError

# A log begins with a short header; of any other file, no more than this is read.
LONGEST_HEADER = 1 << 20


class JsonLines:
    """A log file, open and locked.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "answers.jsonl"
    >>> with JsonLines.create(path) as store:
    ...     store.append([{"event": "header"}])
    >>> with JsonLines.open(path) as store:
    ...     store.read()
    [{'event': 'header'}]
    """

    def __init__(self, path: str | Path, *, create: bool) -> None:
        """Use ``create`` or ``open`` instead."""
        self.path = Path(path)
        self._descriptor = self._opened(os.O_CREAT if create else 0)
        try:
            _lock(self._descriptor, self.path)
            if not create:
                self._check_header()
        except BaseException:
            os.close(self._descriptor)
            raise
        self._end: int | None = None  # where the last complete event ends; unknown until read
        self._before = b""  # what must be written before the next event
        self._lines = Lines()

    @classmethod
    def create(cls, path: str | Path) -> Self:
        """Return a new log at this path, where there must be no file or an empty one."""
        store = cls(path, create=True)
        if os.fstat(store._descriptor).st_size:
            store.close()
            raise StoreError(
                f"{store.path} exists and is not empty, so nothing was written to it; resume that interview, or choose "
                "another file"
            )
        store._end = 0
        sync_folder(store.path.parent)
        return store

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Return the existing log at this path."""
        return cls(path, create=False)

    def _opened(self, flags: int) -> int:
        # A pipe would wait forever and a device stores nothing: only plain files are opened.
        try:
            if self.path.exists() and not stat.S_ISREG(self.path.stat().st_mode):
                raise StoreError(f"{self.path} is not a plain file; name a file to keep the answers in")
            return os.open(self.path, os.O_RDWR | flags | getattr(os, "O_BINARY", 0), 0o600)
        except OSError as error:
            raise StoreError(f"cannot open {self.path}: {error.strerror}; name a writable file") from error

    def _check_header(self) -> None:
        """Raise a StoreError unless the file begins with the header of a log."""
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        first, newline, _ = os.read(self._descriptor, LONGEST_HEADER).partition(b"\n")
        try:
            header = json.loads(first) if newline else None
        except (ValueError, RecursionError):
            header = None
        if not isinstance(header, dict) or header.get("event") != "header":
            raise DamagedError(
                f"{self.path} is not a log of answers (its first line is not a header); it was left unchanged"
            )

    # --- reading and writing ------------------------------------------------------------------------------------------

    def read(self) -> list[Event]:
        """Return the events of the log, without one that a crash left unfinished."""
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        with os.fdopen(self._descriptor, "rb", closefd=False) as file:
            content = file.read()
        end = content.rfind(b"\n") + 1
        whole = not unfinished(
            content[end:].decode("utf-8", errors="replace")
        )  # complete, though its line end may be missing
        lines = Lines()
        try:
            events = lines.read((content if whole else content[:end]).decode("utf-8"))
        except LogError as error:
            raise DamagedError(f"{self.path}: {error}") from None
        except UnicodeDecodeError as error:
            raise DamagedError(f"{self.path}: byte {error.start + 1} is not text; the log is damaged there") from None
        self._lines = lines
        self._end, self._before = (len(content), b"\n") if whole else (end, b"")
        return events

    def append(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Write the events and return when they are on the disk; on failure the file is as it was before."""
        events = list(events)
        if not events:
            return
        if self._end is None:
            self.read()
        assert self._end is not None
        lines = copy(self._lines)
        data = self._before + lines.write(events).encode()
        try:
            os.ftruncate(self._descriptor, self._end)  # remove an unfinished line
            os.lseek(self._descriptor, self._end, os.SEEK_SET)
            _write_all(self._descriptor, data)
            os.fsync(self._descriptor)
        except OSError as error:
            self._take_back()
            raise StoreError(
                f"the last answer was not saved, because {self.path} cannot be written: {error.strerror}; "
                "fix that and resume; everything before it was saved"
            ) from error
        self._end, self._before, self._lines = self._end + len(data), b"", lines

    def _take_back(self) -> None:
        assert self._end is not None
        with contextlib.suppress(OSError):  # what remains was never acknowledged
            os.ftruncate(self._descriptor, self._end)

    # --- closing ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close and unlock the file; calling it again does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def lock_file(path: Path, taken: str) -> int:
    """Open and lock a file; raise an InUseError with the message ``taken`` if another process has it locked."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}; use a writable folder") from error
    try:
        _lock(descriptor, path)
    except InUseError:
        os.close(descriptor)
        raise InUseError(f"{taken}; end that one first") from None
    return descriptor


def _lock(descriptor: int, path: Path) -> None:
    """Lock the file until it is closed; raise an InUseError if another process has locked it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(descriptor, 1 << 40, os.SEEK_SET)  # locks are mandatory on Windows: lock a byte that is never read
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise InUseError(
            f"{path} is in use by another process (another interview is being written to it); end that one, or choose "
            "another file"
        ) from error


def sync_folder(folder: Path) -> None:
    """Make the name of a new file as durable as its content; Windows needs no such call."""
    if sys.platform == "win32":
        return
    with contextlib.suppress(OSError):  # not supported by some network file systems; the folder may be unreadable
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
