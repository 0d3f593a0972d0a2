"""The file of an SQLite database: allow one writer at a time, notice if the file is moved, check it and copy it.

The writer locks one byte of the file itself, far beyond its end, so that a second writer is refused whatever name it uses:
a symbolic or hard link, a mount, the new name of a moved file. The lock belongs to an open file description (Linux), and
SQLite's own locks are on other bytes, so they do not interfere. On other systems only ``FILE.lock`` guards the file; it is
taken everywhere, because earlier versions of tradeoff use it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import struct
import sys
import threading
from collections import Counter, defaultdict
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

log = logging.getLogger("tradeoff.stores")

Inode = tuple[int, int]

# Closing any descriptor of a file drops every POSIX lock that this process has on it, including those of SQLite. So a
# descriptor is closed only when no store of this process uses the file any more.
_users: Counter[Inode] = Counter()
_unused: defaultdict[Inode, list[int]] = defaultdict(list)
_mutex = threading.Lock()


class SqliteFile:
    """The file of an open SQLite database; with ``write`` no other process or store can write to it."""

    def __init__(self, path: Path, *, write: bool) -> None:
        self.path = path
        self.real = path.resolve()  # SQLite keeps its write-ahead log beside the file, not beside a link to it
        self.lost = ""  # why writing is no longer allowed, if so
        self._rescued = False
        self._descriptor: int | None = None
        self._lock_file: int | None = None
        self._inode: Inode | None = None
        self._watched: dict[Path, Inode] = {}
        try:
            self._check_folder(write)
            if write:
                self._lock_file = lock_file(self.real.with_name(f"{self.real.name}.lock"), self._in_use())
                self._open_and_lock()
            else:
                self._use(_inode(self.real.stat()))
            check_database(self.path)
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
        log = _beside(self.real, "wal")
        if _size(log) and not _size(self.real):
            raise StoreError(
                f"{log} holds answers of a database that is no longer beside it: {self.path} was moved or deleted while it "
                "was in use; bring it back under its old name and start again, or move that file away"
            )

    def _in_use(self) -> str:
        return f"{self.path} is in use by another server or program"

    def _open_and_lock(self) -> None:
        """Open the file (a new one is private) and lock it."""
        try:
            self._descriptor = os.open(self.real, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
        except OSError as error:
            raise StoreError(f"cannot write {self.path}: {error.strerror}; name a writable file") from None
        self._use(_inode(os.fstat(self._descriptor)))
        try:
            _set_lock(self._descriptor, taken=True)
        except BlockingIOError:
            raise InUseError(f"{self._in_use()}, perhaps under another name; end that one first") from None
        except OSError as error:
            raise StoreError(f"{self.path} cannot be locked: {error.strerror}; use a local disk") from None

    def _use(self, inode: Inode) -> None:
        self._inode = inode
        with _mutex:
            _users[inode] += 1

    # --- watching -----------------------------------------------------------------------------------------------------

    def watch(self) -> None:
        """Remember the file and the two files that SQLite keeps beside it; call this with a connection open."""
        for path in (self.path.absolute(), _beside(self.real, "wal"), _beside(self.real, "shm")):
            with contextlib.suppress(FileNotFoundError):  # not every file system supports a write-ahead log
                self._watched[path] = _inode(path.stat())

    def check(self) -> None:
        """Raise a StoreError if one of the files is no longer at its path, and on every call after that."""
        for path, opened in self._watched.items():
            try:
                found = _inode(path.stat())
            except OSError:
                found = None
            if found != opened and not self.lost:
                self.lost = (
                    f"{path} was {'replaced' if found else 'moved or deleted'} while the server was using it, so nothing "
                    "more is saved; stop the server, put the file back and start again"
                )
        if self.lost:
            raise StoreError(f"the answer was not saved: {self.lost}")

    def rescue(self, connection: sqlite3.Connection) -> None:
        """Save what was committed before the file was lost; ``connection`` was opened before that."""
        if self._rescued:
            return
        try:
            # Copy the write-ahead log into the file, wherever that is now.
            busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if busy:  # a reader needs the log; the next call tries again
                return
            where = "the database file"
            if self._descriptor is not None and not os.fstat(self._descriptor).st_nlink:
                target = self.real.with_name(f"{self.real.name}.rescued-{datetime.now(UTC):%Y%m%dT%H%M%S}")
                copy_database(connection, target)
                where = f"the copy {target}, because the database file is deleted"
            self.lost += f"; everything acknowledged before is in {where}"
        except (sqlite3.Error, OSError, StoreError, ArgumentError) as error:
            self.lost += f"; what was acknowledged before could not be copied to the database file: {error}"
        self._rescued = True
        log.error("%s", self.lost)

    def close(self) -> None:
        """Release the file; call this after all connections are closed."""
        with _mutex:
            if self._inode is not None:
                _users[self._inode] -= 1
                if self._descriptor is not None:
                    _set_lock(self._descriptor, taken=False)
                    _unused[self._inode].append(self._descriptor)
                if not _users[self._inode]:
                    for descriptor in _unused.pop(self._inode, []):
                        os.close(descriptor)
                    del _users[self._inode]
        self._inode = self._descriptor = None
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None


def _set_lock(descriptor: int, *, taken: bool) -> None:
    """Lock or unlock the file for this descriptor only; raise a BlockingIOError if another one has it locked."""
    if sys.platform == "linux":
        import fcntl

        kind = fcntl.F_WRLCK if taken else fcntl.F_UNLCK
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, os.SEEK_SET, LOCKED_BYTE, 1, 0))


def _inode(found: os.stat_result) -> Inode:
    return found.st_dev, found.st_ino


def _beside(path: Path, what: str) -> Path:
    return path.with_name(f"{path.name}-{what}")


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
