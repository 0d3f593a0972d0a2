"""A store in a database: an SQLite file for one server, PostgreSQL for several.

All writes go through one thread and one connection. Writes that arrive during a commit are combined in the next one, so that
a disk with four milliseconds per commit serves more than 250 people a second. A write is reported as saved only after the
commit that contains it has returned.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import queue
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, Connection, Engine, make_url

from tradeoff.errors import ArgumentError, StoreError
from tradeoff.log import Event, checksum
from tradeoff.stores.base import (
    Events,
    Log,
    Store,
    check_new,
    conflict,
    events_from,
    lines_of,
    missing,
    or_damaged,
)
from tradeoff.stores.schema import check_schema, events_table, logs_table
from tradeoff.stores.sqlite_file import TIMEOUT, SqliteFile, connect

log = logging.getLogger("tradeoff.stores")

MAX_BATCH = 256  # writes in one transaction
ROWS = 500  # events in one statement
CONNECTIONS = 10  # at most, the writer's included
POLL = 0.5  # how often, in seconds, a waiting caller checks that the writer thread is alive
IDLE = 1.0  # seconds without a write after which the rest of SQLite's write-ahead log is copied into its file
MAX_ENDS = 20_000  # logs whose end is cached

NOT_SAVED = "the answer was not saved"


class _End(NamedTuple):
    """Where the next event of a log goes."""

    log: int  # its id
    length: int  # of its events
    checksum: int


Ends = dict[tuple[str, str], _End]  # by the folder and name of the log


@dataclass(eq=False)
class _Write:
    """A pending write, and the future that reports its outcome."""

    folder: str
    name: str
    lines: list[str]
    after: int | None  # None: a new log
    done: Future[None] = field(default_factory=Future)

    @property
    def key(self) -> tuple[str, str]:
        return self.folder, self.name


class SqlStore(Store):
    """Logs in two tables: ``logs`` (folder, name) and ``events`` (log, position, body, crc)."""

    def __init__(self, address: str, *, write: bool = True) -> None:
        self.url = _url(address)
        self._writer: threading.Thread | None = None
        self._ends: Ends = {}
        self._unfolded = False  # whether SQLite's write-ahead log holds anything that its file does not
        self._file: SqliteFile | None = None
        self._lost, self._reported = "", False
        self._anchor: sqlite3.Connection | None = None
        self._engine: Engine | None = None
        try:
            path = _database_file(self.url)
            if path is None:
                from tradeoff.stores.postgresql import make_engine

                self._engine = make_engine(self.url)
            else:
                self._file = SqliteFile(path, write=write)
                self._engine = _sqlite_engine(self.url, self._file, write)
            with _store_errors(self.url):
                version = check_schema(self._engine, self.where, upgrade=write)
                self._crc: sa.ColumnElement[Any] = sa.null() if version == "0001" else events_table.c.crc
                if self._file is not None:
                    # As long as one connection is open, others create no files, so a full disk can still be read.
                    self._anchor = connect(self._file.real)
                    self._anchor.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if write:
                self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
                writer = threading.Thread(target=self._run_writer, name="tradeoff store", daemon=True)
                writer.start()
                self._writer = writer  # only once it runs: ``close`` waits for it, also after a Ctrl-C just here
        except BaseException:
            self.close()
            raise

    @property
    def where(self) -> str:
        """The address of the database without a password."""
        path = _database_file(self.url)
        return str(path) if path is not None else self.url.set(query={}).render_as_string(hide_password=True)

    @property
    def shared(self) -> bool:
        """Whether several processes can write to the store."""
        return self.url.get_backend_name() != "sqlite"

    @property
    def lost(self) -> str:
        """Why nothing more can be saved: the file was moved, deleted or replaced."""
        return self._lost if self._file is None else self._file.lost

    # --- reading ------------------------------------------------------------------------------------------------------

    def read(self, folder: str, name: str, *, after: int = 0) -> list[Event]:
        """Return the events of a log."""
        begin = max(0, after - 1)  # the event before the first has the checksum to continue from
        wanted = (
            sa.select(events_table.c.position, events_table.c.body, self._crc)
            .join_from(logs_table, events_table, isouter=True, onclause=sa.and_(
                events_table.c.log == logs_table.c.id, events_table.c.position >= begin))
            .where(logs_table.c.folder == folder, logs_table.c.name == name)
            .order_by(events_table.c.position)
        )  # fmt: skip
        with _store_errors(self.url), self._reading() as connection:
            rows = connection.execute(wanted).all()
        if not rows:
            raise missing(folder, name)
        found = [(position, body, crc) for position, body, crc in rows if body is not None]
        if begin == after or not found or found[0][0] != begin:
            return events_from(found, after)
        before = found.pop(0)[2]
        if before is None and found:  # stored by an earlier version
            return self.read(folder, name)[after:]
        return events_from(found, after, before or 0)

    def names(self, folder: str) -> list[str]:
        """Return the names of a folder's logs, oldest first."""
        wanted = sa.select(logs_table.c.name).where(logs_table.c.folder == folder).order_by(logs_table.c.id)
        with _store_errors(self.url), self._reading() as connection:
            return list(connection.execute(wanted).scalars())

    def logs(self, folder: str) -> dict[str, Log]:
        """Return all logs of a folder by name, oldest first."""
        wanted = (
            sa.select(logs_table.c.name, events_table.c.position, events_table.c.body, self._crc)
            .join_from(logs_table, events_table, isouter=True)
            .where(logs_table.c.folder == folder)
            .order_by(logs_table.c.id, events_table.c.position)
        )
        found: dict[str, list[tuple[int, str, int | None]]] = {}
        with _store_errors(self.url), self._reading() as connection:
            for name, position, body, crc in connection.execute(wanted):
                found.setdefault(name, []).extend([] if body is None else [(position, body, crc)])
        return {name: or_damaged(events_from, rows) for name, rows in found.items()}

    def lengths(self, folder: str) -> dict[str, int]:
        """Return how many events each log of a folder has, oldest first."""
        last = sa.select(sa.func.max(events_table.c.position)).where(events_table.c.log == logs_table.c.id)
        wanted = (
            sa.select(logs_table.c.name, last.scalar_subquery())
            .where(logs_table.c.folder == folder)
            .order_by(logs_table.c.id)
        )
        with _store_errors(self.url), self._reading() as connection:
            return {name: 0 if position is None else position + 1 for name, position in connection.execute(wanted)}

    def unchecked(self, folder: str) -> int:
        """Return how many logs of a folder end with events that an earlier version stored without a checksum."""
        last = sa.select(sa.func.max(events_table.c.position)).where(events_table.c.log == logs_table.c.id)
        wanted = (
            sa.select(sa.func.count())
            .join_from(logs_table, events_table)
            .where(
                logs_table.c.folder == folder,
                events_table.c.position == last.correlate(logs_table).scalar_subquery(),
                self._crc.is_(None),
            )
        )
        with _store_errors(self.url), self._reading() as connection:
            return int(connection.execute(wanted).scalar_one())

    def _reading(self) -> Connection:
        if self._engine is None:
            raise StoreError(f"the store {self.where} is closed")
        if self._file is not None:
            self._file.check()  # or a new connection could open a different file
        return self._engine.connect()

    # --- writing ------------------------------------------------------------------------------------------------------

    def create(self, folder: str, name: str, events: Events) -> None:
        """Begin a log."""
        self._wait(self._submit(*check_new(folder, name, events), events, None))

    def append(self, folder: str, name: str, events: Events, *, after: int) -> None:
        """Add events to a log."""
        self._wait(self._submit(folder, name, events, after))

    def append_later(self, folder: str, name: str, events: Events, *, after: int) -> Future[None]:
        """Add events to a log without waiting for the commit."""
        return self._submit(folder, name, events, after)

    def _submit(self, folder: str, name: str, events: Events, after: int | None) -> Future[None]:
        if self._writer is None or not self._writer.is_alive():
            raise StoreError(f"{NOT_SAVED}: the store {self.where} is not open for writing")
        write = _Write(folder, name, lines_of(events), after)
        write.done.set_running_or_notify_cancel()  # it can no longer be cancelled
        self._queue.put(write)
        return write.done

    def _wait(self, done: Future[None]) -> None:
        writer = self._writer
        while True:
            alive = (
                writer is not None and writer.is_alive()
            )  # read before the result: the writer may report it and then end
            try:
                return done.result(timeout=POLL)
            except TimeoutError:
                if not alive:
                    raise StoreError(f"{NOT_SAVED}: the store {self.where} was closed") from None

    def _run_writer(self) -> None:
        """Write pending writes, as many as possible in one transaction, and report when they are durable."""
        connection: Connection | None = None
        ends = False
        while not ends:
            batch: list[_Write] = []
            try:
                while len(batch) < MAX_BATCH:
                    write = self._queue.get(timeout=0 if batch else IDLE)
                    if write is None:
                        ends = True
                        break
                    batch.append(write)
            except queue.Empty:
                pass
            if batch:
                connection = self._write_batch(batch, connection)
            elif self._unfolded:
                self._fold()
        if connection is not None:
            connection.close()
        if self._unfolded:
            self._fold()  # SQLite does not do this for a file that was moved

    def _check_file(self) -> None:
        """Raise a StoreError if the file of an SQLite database is no longer at its path."""
        if self._file is None or self._anchor is None:
            return
        try:
            self._file.check()
        except StoreError:
            if not self._reported:
                self._reported = True
                self._file.rescue(self._anchor)
                log.error("%s", self._file.lost)
            raise

    def _fold(self) -> None:
        """Copy SQLite's write-ahead log into its file, except what a reader has yet to see there."""
        assert self._anchor is not None
        try:
            _, length, copied = self._anchor.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            self._unfolded = copied < length
        except sqlite3.Error as error:  # nothing is lost: the write-ahead log still has it, and this is tried again
            if not self._unfolded:
                log.warning("the write-ahead log of %s cannot be copied into it: %s", self.where, error)
            self._unfolded = True

    def _write_batch(self, batch: list[_Write], connection: Connection | None) -> Connection | None:
        """Write a batch in one transaction; return the connection to use next, or None if it may be broken."""
        if connection is not None and self.shared and not _alive(connection):
            connection = None  # the database was restarted since the last write
        try:
            with _store_errors(self.url, NOT_SAVED):
                self._check_file()  # before a new connection could open a different file
                if connection is None:
                    assert self._engine is not None
                    connection = self._engine.execution_options(writing=True).connect()
                with connection.begin():
                    unknown = {write.key for write in batch if write.after is not None} - self._ends.keys()
                    known = self._ends | _find_ends(connection, unknown)
                    refused = _write_all(connection, batch, known)
                    self._check_file()
            if not self.shared:  # there is no other writer, so the ends stay valid
                self._ends = known if len(known) < MAX_ENDS else {}
            if self._anchor is not None:
                self._fold()  # before acknowledging: moving the file leaves the write-ahead log behind
        except BaseException as error:  # every kind of failure must reach the callers
            self._ends = {}  # the outcome may be unknown, so read the ends again
            for write in batch:
                write.done.set_exception(error)
            if connection is not None:
                with contextlib.suppress(Exception):
                    connection.invalidate()
                    connection.close()
            return None
        for i, write in enumerate(batch):
            if i in refused:
                write.done.set_exception(refused[i])
            else:
                write.done.set_result(None)
        return connection

    def close(self) -> None:
        """Finish pending writes, and release the database."""
        if self._writer is not None:
            self._queue.put(None)
            self._writer.join()
            self._writer = None
            while not self._queue.empty():
                late = self._queue.get()
                if late is not None:
                    late.done.set_exception(StoreError(f"{NOT_SAVED}: the store {self.where} was closed"))
        if self._anchor is not None:
            self._anchor.close()
            self._anchor = None
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None
        if self._file is not None:
            self._file.close()
            self._lost = self._file.lost
            self._file = None


def _alive(connection: Connection) -> bool:
    """Return whether the server still answers on a connection; close it if not."""
    try:
        connection.execute(sa.select(1))
        connection.rollback()
        return True
    except sa.exc.SQLAlchemyError:
        with contextlib.suppress(Exception):
            connection.invalidate()
            connection.close()
        return False


def _write_all(connection: Connection, batch: list[_Write], known: Ends) -> dict[int, StoreError]:
    """Write a batch with as few statements as possible; return the refused writes by index, with the reason.

    ``known`` has the end of every log in the batch that exists, and is updated.
    """
    refused: dict[int, StoreError] = {}
    rows: list[dict[str, Any]] = []
    new = dict.fromkeys(write.key for write in batch if write.after is None and write.key not in known)
    created = _create(connection, list(new))
    for i, write in enumerate(batch):
        key = write.key
        if write.after is None and key in created:
            known[key] = _End(created.pop(key), 0, 0)
        elif write.after is None or (key in known and known[key].length != write.after):
            refused[i] = conflict(*key)
            continue
        elif key not in known:
            refused[i] = missing(*key)
            continue
        log, count, crc = known[key]
        for position, line in enumerate(write.lines, start=count):
            crc = checksum(line, crc)
            rows.append({"log": log, "position": position, "body": line, "crc": crc})
        known[key] = _End(log, count + len(write.lines), crc)
    if rows:
        _insert(connection, rows)
    return refused


def _insert(connection: Connection, rows: list[dict[str, Any]]) -> None:
    """Add events: to SQLite with few statements, because this thread may have to wait after each for those that reply."""
    if connection.dialect.name != "sqlite":
        connection.execute(sa.insert(events_table), rows)
        return
    for begin in range(0, len(rows), ROWS):
        values = tuple(row[name] for row in rows[begin : begin + ROWS] for name in ("log", "position", "body", "crc"))
        places = ", ".join(["(?, ?, ?, ?)"] * (len(values) // 4))
        connection.exec_driver_sql(f"INSERT INTO events (log, position, body, crc) VALUES {places}", values)


def _find_ends(connection: Connection, keys: set[tuple[str, str]]) -> Ends:
    """Return the end of each of these logs that exists, locked until the transaction ends."""
    if not keys:
        return {}
    wanted = sa.tuple_(logs_table.c.folder, logs_table.c.name).in_(sorted(keys))
    # Always lock in the same order: two workers that lock the same logs in different orders would deadlock.
    locked = sa.select(logs_table.c.id, logs_table.c.folder, logs_table.c.name).where(wanted).order_by(logs_table.c.id)
    found = {row.id: (row.folder, row.name) for row in connection.execute(locked.with_for_update())}
    ends = {log: _End(log, 0, 0) for log in found}
    same_log = events_table.alias()
    last = sa.select(same_log.c.crc).where(same_log.c.log == events_table.c.log).order_by(same_log.c.position.desc())
    counted = (
        sa.select(events_table.c.log, sa.func.count(), last.limit(1).scalar_subquery())
        .where(events_table.c.log.in_(list(found)))
        .group_by(events_table.c.log)
    )
    for log, count, crc in connection.execute(counted) if found else ():
        ends[log] = _End(log, count, _running_checksum(connection, log) if crc is None else crc)
    return {key: ends[log] for log, key in found.items()}


def _running_checksum(connection: Connection, log: int) -> int:
    """Return the checksum of a log whose last event was stored by an earlier version, without one."""
    wanted = sa.select(events_table.c.body).where(events_table.c.log == log).order_by(events_table.c.position)
    return functools.reduce(lambda before, body: checksum(str(body), before), connection.execute(wanted).scalars(), 0)


def _create(connection: Connection, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """Return the ids of new logs; one that exists already has none."""
    if not keys:
        return {}
    now = datetime.now(UTC).isoformat()
    make = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    made = make(logs_table).on_conflict_do_nothing().returning(logs_table.c.id, logs_table.c.folder, logs_table.c.name)
    rows = [{"folder": folder, "name": name, "created": now} for folder, name in keys]
    return {(row.folder, row.name): int(row.id) for row in connection.execute(made, rows)}


# --- databases -------------------------------------------------------------------------------------------------------


def _url(address: str) -> URL:
    try:
        url = make_url(address)
    except (sa.exc.ArgumentError, ValueError):
        raise ArgumentError(
            f"{address.rpartition('@')[2]!r:.200} is not the address of a database; "
            "use sqlite:///FILE or postgresql://USER@HOST/DATABASE"
        ) from None
    if url.get_backend_name() == "postgresql":
        try:
            import psycopg  # noqa: F401
        except ImportError:
            raise StoreError(
                "PostgreSQL needs the package 'psycopg'; install it, in the folder of tradeoff, with: "
                "pip install '.[postgresql]'"
            ) from None
        return url.set(drivername="postgresql+psycopg")
    if not url.database or url.database == ":memory:":
        raise ArgumentError(f"{address!r} names no file; use sqlite:///FILE, or memory: to keep nothing")
    return url


def _database_file(url: URL) -> Path | None:
    return Path(url.database or "") if url.get_backend_name() == "sqlite" else None


def _sqlite_engine(url: URL, file: SqliteFile, write: bool) -> Engine:
    engine = sa.create_engine(
        url, creator=lambda: connect(file.real), pool_size=CONNECTIONS, max_overflow=0, pool_timeout=TIMEOUT
    )

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, record: object) -> None:
        # A row that is not UTF-8 must not fail the whole query: events_from reports it.
        connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        cursor = connection.cursor()
        if write:
            cursor.execute("PRAGMA journal_mode = WAL")
            cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # Get the write lock at the start of the transaction instead of failing in the middle of it.
        writing = connection.get_execution_options().get("writing")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine


@contextmanager
def _store_errors(url: URL, what: str = "the store cannot be used") -> Iterator[None]:
    """Turn errors of the database into StoreErrors that name it without its password."""
    try:
        yield
    except (sa.exc.SQLAlchemyError, sqlite3.Error) as error:
        reason = str(getattr(error, "orig", None) or error).strip().split("\n")[0]
        shown = _database_file(url) or url.set(query={}).render_as_string(hide_password=True)
        raise StoreError(f"{what}: {shown}: {reason}; fix that and try again") from error
