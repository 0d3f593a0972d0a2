"""The file of an SQLite database: allow one writer at a time, notice if the file is moved, check it and copy it.

The writer locks ``FILE.lock``, and on Linux also one byte of the database file, far beyond its end: so a second writer is
refused whatever name it uses (a symbolic or hard link, a mount, the new name of a moved file).
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import struct
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from tradeoff.errors import ArgumentError, StoreError
from tradeoff.stores.base import InUseError
from tradeoff.stores.jsonlines import lock_file, sync_folder
from tradeoff.stores.schema import VERSION_TABLE

TIMEOUT = 10  # seconds to wait for another program that is writing to the database
LOCKED_BYTE = 1 << 62  # no file is that long, and SQLite's locks are at 1 << 30
PAGES = 2_048  # copied between two reports of progress


class SqliteFile:
    """The file of an open SQLite database; with ``write`` no other process or store can write to it."""

    def __init__(self, path: Path, *, write: bool) -> None:
        self.path = path.absolute()
        self.real = path.resolve()  # SQLite writes its write-ahead log beside the file, not beside a link to it
        self.lost = ""  # why writing is no longer allowed, if so
        self._locks: list[int] = []
        try:
            self._check_folder(write)
            if write:
                taken = f"{path} is in use by another server or program"
                self._locks.append(lock_file(self.real.with_name(f"{self.real.name}.lock"), taken))
                self._locks.append(_open_private(self.real))
                _lock_byte(self._locks[-1], taken)
            check_database(path)
            self._opened = self.path.stat()
        except BaseException:
            self.close()
            raise

    def _check_folder(self, write: bool) -> None:
        """Raise a StoreError unless the file exists or can be created."""
        if not write and not self.path.exists():
            raise StoreError(f"there is no database {self.path}; check the name")
        if not self.path.parent.is_dir():
            raise StoreError(
                f"there is no folder {str(self.path.parent)!r} for the database {self.path.name}; create it first"
            )
        log = self.real.with_name(f"{self.real.name}-wal")
        if _size(log) and not _size(self.real):
            raise StoreError(
                f"{log} holds answers of a database that is no longer beside it: {self.path} was moved or deleted while it "
                "was in use; bring it back under its old name and start again, or move that file away"
            )

    def check(self) -> None:
        """Raise a StoreError if the file is no longer at its path, and on every call after that."""
        try:
            replaced = not os.path.samestat(self.path.stat(), self._opened)
            change = "replaced" if replaced else ""
        except OSError:
            change = "moved or deleted"
        if change and not self.lost:
            self.lost = (
                f"{self.path} was {change} while the server was using it, so nothing more is saved; stop the server, put the "
                "file back and start again"
            )
        if self.lost:
            raise StoreError(f"the answer was not saved: {self.lost}")

    def rescue(self, connection: sqlite3.Connection) -> None:
        """Copy the database to a new file if its own was deleted; ``connection`` was opened before that."""
        if os.fstat(self._locks[-1]).st_nlink:
            return
        target = self.real.with_name(f"{self.real.name}.rescued-{datetime.now(UTC):%Y%m%dT%H%M%S}")
        try:
            copy_database(connection, target)
            self.lost += f"; everything acknowledged before is in {target}"
        except (ArgumentError, StoreError) as error:
            self.lost += f"; what was acknowledged before could not be copied: {error}"

    def close(self) -> None:
        """Release the file; call this after all connections are closed."""
        # Closing a descriptor of a file also drops SQLite's own locks on it in this process.
        while self._locks:
            os.close(self._locks.pop())


def _open_private(path: Path) -> int:
    """Return a descriptor of a file, which is created with access for its owner only."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}; name a writable file") from None


def _lock_byte(descriptor: int, taken: str) -> None:
    """Lock the file until the descriptor is closed; raise an InUseError if another one has it locked."""
    if sys.platform != "linux":  # only Linux has locks of open file descriptions
        return
    import fcntl

    try:
        whole = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, LOCKED_BYTE, 1, 0)
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, whole)
    except BlockingIOError:
        raise InUseError(f"{taken}, perhaps under another name; end that one first") from None
    except OSError as error:
        raise StoreError(f"the database cannot be locked: {error.strerror}; use a local disk") from None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


# --- connections, checks, copies -------------------------------------------------------------------------------------


def connect(path: Path) -> sqlite3.Connection:
    """Return a connection to an existing database; the caller begins and ends transactions explicitly.

    The file is opened for writing if possible, since a crash may have left a transaction to roll back.
    """
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=TIMEOUT, isolation_level=None, check_same_thread=False
    )


def check_database(path: Path) -> None:
    """Raise a StoreError unless the file is an undamaged database of tradeoff, or empty."""
    if not path.stat().st_size:
        return
    advice = "it was left unchanged: restore a copy, or name another file"
    try:
        with contextlib.closing(connect(path)) as connection:
            found = [row[0] for row in connection.execute("PRAGMA quick_check(1)")]
            tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error as error:
        match getattr(error, "sqlite_errorname", ""):
            case "SQLITE_NOTADB":
                raise StoreError(f"{path} is not an SQLite database; {advice}") from None
            case name if name.startswith(("SQLITE_CANTOPEN", "SQLITE_PERM")):
                raise StoreError(f"{path} cannot be opened ({error}); check the name and the permissions") from None
            case name if name.startswith("SQLITE_READONLY"):
                raise StoreError(
                    f"the last program that wrote to {path} was interrupted, and that cannot be undone because the file "
                    "cannot be written; make the file and its folder writable"
                ) from None
            case name if name.startswith(("SQLITE_IOERR", "SQLITE_FULL")):
                raise StoreError(f"{path} cannot be used ({error}); check the disk, and whether it is full") from None
            case name if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                raise StoreError(f"{path} is locked by another program; end that one first") from None
        raise StoreError(f"the database {path} is damaged ({error}); {advice}") from None
    if found != ["ok"]:
        raise StoreError(f"the database {path} is damaged ({' '.join(str(found[0]).split())[:200]}); {advice}")
    if tables and VERSION_TABLE not in tables:
        raise StoreError(
            f"{path} is a database of another program (it holds {', '.join(sorted(tables))[:200]}); {advice}"
        )


def copy_database(
    source: sqlite3.Connection, target: Path, progress: Callable[[int, int], None] = lambda done, total: None
) -> None:
    """Copy everything committed so far into a new private file, and check the copy.

    Others may go on writing: the copy is the database at one moment. ``progress`` is called with the pages copied so far
    and their total.
    """
    try:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        raise ArgumentError(f"{target} already exists; nothing was written: choose another name") from None
    except OSError as error:
        raise StoreError(f"{target} cannot be written: {error.strerror}; choose another path") from None
    try:
        with contextlib.closing(connect(target)) as copy:
            source.execute("BEGIN")  # so that all pages are from the same moment
            try:
                source.execute("SELECT count(*) FROM sqlite_master").fetchone()
                source.backup(copy, pages=PAGES, progress=lambda status, left, total: progress(total - left, total))
            finally:
                source.execute("ROLLBACK")
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, which needs no log beside it
            found = [row[0] for row in copy.execute("PRAGMA integrity_check(1)")]
        if found != ["ok"]:
            raise StoreError(f"the copy {target} is damaged ({str(found[0])[:200]}), and was deleted; try again")
        sync_folder(target.parent)
    except sqlite3.Error as error:
        target.unlink(missing_ok=True)
        raise StoreError(f"{target} cannot be written: {error}; no part of it remains") from None
    except BaseException:
        target.unlink(missing_ok=True)
        raise
