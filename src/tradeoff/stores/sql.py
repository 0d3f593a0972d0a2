"""A store in a database: SQLite in a file of its own for one server, PostgreSQL for several.

All writing goes through one thread and one connection. What has come in while the last transaction was being made durable
goes into the next one together, so that a disk that needs four milliseconds for a commit serves more than 250 people a
second; nobody is told "saved" before the commit that holds their events has returned.
"""

from __future__ import annotations

import contextlib
import json
import logging
import queue
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine, make_url

from tradeoff.errors import ArgumentError, StoreError
from tradeoff.log import Event
from tradeoff.stores.base import Closing, Events, Log, check_name, conflict, events_from, missing, or_damaged
from tradeoff.stores.schema import check_schema, events_table, logs_table
from tradeoff.stores.sqlite_file import TIMEOUT, SqliteFile, connect

log = logging.getLogger("tradeoff.stores")

MAX_BATCH = 256  # writes in one transaction
CONNECTIONS = 10  # at most, the writer's included
POLL = 0.5  # how often, in seconds, a waiting caller checks that the writer thread is alive
IDLE = 1.0  # seconds without a write after which the writer tidies up
MAX_LENGTHS = 20_000  # logs whose length is cached

Lengths = dict[tuple[str, str], tuple[int, int]]  # (folder, name) of a log -> its number and how many events it has

NOT_SAVED = "the answer was not saved"


@dataclass(eq=False)
class _Write:
    """Something to be written, and the promise to say when it is."""

    folder: str
    name: str
    lines: list[str]
    after: int | None  # None: a new log
    done: Future[None] = field(default_factory=Future)


class Sql(Closing):
    """Logs in two tables: ``logs`` (folder, name) and ``events`` (log, position, body)."""

    def __init__(self, address: str, *, write: bool = True) -> None:
        self.url = _url(address)
        self._writer: threading.Thread | None = None
        self._lengths: Lengths = {}
        self._unfolded = False  # whether SQLite's log has what its file has not
        self._file: SqliteFile | None = None
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
            with _named(self.url):
                check_schema(self._engine, self.where, upgrade=write)
                if self._file is not None:
                    # While one connection stays open, others need no new files: a full disk can still be read.
                    self._anchor = connect(self._file.real)
                    self._anchor.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if write:
                if self._file is not None:
                    self._file.watch()
                self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
                self._writer = threading.Thread(target=self._run_writer, name="tradeoff store", daemon=True)
                self._writer.start()
        except BaseException:
            self.close()
            raise

    @property
    def where(self) -> str:
        """The database as people know it, without a password."""
        path = _database_file(self.url)
        return str(path) if path is not None else self.url.set(query={}).render_as_string(hide_password=True)

    @property
    def shared(self) -> bool:
        """Whether other processes may write at the same time."""
        return self.url.get_backend_name() != "sqlite"

    # --- reading ------------------------------------------------------------------------------------------------------

    def read(self, folder: str, name: str, *, after: int = 0) -> list[Event]:
        """Return a log's events."""
        wanted = (
            sa.select(events_table.c.position, events_table.c.body)
            .join_from(logs_table, events_table, isouter=True, onclause=sa.and_(
                events_table.c.log == logs_table.c.id, events_table.c.position >= after))
            .where(logs_table.c.folder == folder, logs_table.c.name == name)
            .order_by(events_table.c.position)
        )  # fmt: skip
        with _named(self.url), self._reading() as connection:
            rows = connection.execute(wanted).all()
        if not rows:
            raise missing(folder, name)
        return events_from([(position, body) for position, body in rows if body is not None], after)

    def names(self, folder: str) -> list[str]:
        """Return the names of a folder's logs in the order they were begun."""
        wanted = sa.select(logs_table.c.name).where(logs_table.c.folder == folder).order_by(logs_table.c.id)
        with _named(self.url), self._reading() as connection:
            return list(connection.execute(wanted).scalars())

    def logs(self, folder: str) -> dict[str, Log]:
        """Return all logs of a folder by name, in the order they were begun."""
        wanted = (
            sa.select(logs_table.c.name, events_table.c.position, events_table.c.body)
            .join_from(logs_table, events_table, isouter=True)
            .where(logs_table.c.folder == folder)
            .order_by(logs_table.c.id, events_table.c.position)
        )
        found: dict[str, list[tuple[int, str]]] = {}
        with _named(self.url), self._reading() as connection:
            for name, position, body in connection.execute(wanted):
                found.setdefault(name, []).extend([] if body is None else [(position, body)])
        return {name: or_damaged(events_from, rows) for name, rows in found.items()}

    def lengths(self, folder: str) -> dict[str, int]:
        """Return how many events each log of a folder has, in the order they were begun."""
        last = sa.select(sa.func.max(events_table.c.position)).where(events_table.c.log == logs_table.c.id)
        wanted = (
            sa.select(logs_table.c.name, last.scalar_subquery())
            .where(logs_table.c.folder == folder)
            .order_by(logs_table.c.id)
        )
        with _named(self.url), self._reading() as connection:
            return {name: 0 if position is None else position + 1 for name, position in connection.execute(wanted)}

    def _reading(self) -> Connection:
        if self._engine is None:
            raise StoreError(f"the store {self.where} is closed")
        if self._file is not None:
            self._file.check()  # a new connection would be to another file
        return self._engine.connect()

    # --- writing ------------------------------------------------------------------------------------------------------

    def create(self, folder: str, name: str, events: Events) -> None:
        """Begin a log."""
        self._wait(self._submit(check_name("folder", folder), check_name("log", name), events, None))

    def append(self, folder: str, name: str, events: Events, *, after: int) -> None:
        """Add to a log."""
        self._wait(self._submit(folder, name, events, after))

    def append_later(self, folder: str, name: str, events: Events, *, after: int) -> Future[None]:
        """Add to a log; what is returned is done when the events are durable, or says why they are not."""
        return self._submit(folder, name, events, after)

    def _submit(self, folder: str, name: str, events: Events, after: int | None) -> Future[None]:
        if self._writer is None or not self._writer.is_alive():
            raise StoreError(f"{NOT_SAVED}: the store {self.where} is not open for writing")
        lines = [json.dumps(dict(event), allow_nan=False) for event in events]
        write = _Write(folder, name, lines, after)
        write.done.set_running_or_notify_cancel()  # from here on nobody can call it off
        self._queue.put(write)
        return write.done

    def _wait(self, done: Future[None]) -> None:
        writer = self._writer
        while True:
            alive = (
                writer is not None and writer.is_alive()
            )  # first: what a writer did in its last moments is seen, too
            try:
                return done.result(timeout=POLL)
            except TimeoutError:
                if not alive:
                    raise StoreError(f"{NOT_SAVED}: the store {self.where} was closed") from None

    def _run_writer(self) -> None:
        """Write what has come in, all of it in one transaction, and report it when it is durable."""
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
            elif not ends:
                self._tidy()
        if connection is not None:
            connection.close()
        self._tidy()  # a file that was moved is not tidied up by SQLite

    def _tidy(self) -> None:
        """Between writes: notice a file that was moved, and bring SQLite's log into its file."""
        if self._file is None or self._anchor is None:
            return
        try:
            self._file.check()
            if self._unfolded:
                self._unfolded = False
                self._anchor.execute("PRAGMA wal_checkpoint(PASSIVE)")
        except sqlite3.Error as error:  # nothing is lost: it is all in the log, and the next write tries again
            log.warning("the log of %s cannot be brought into it: %s", self.where, error)
        except StoreError:
            self._file.rescue(self._anchor)

    def _write_batch(self, batch: list[_Write], connection: Connection | None) -> Connection | None:
        """Write what belongs together; return the connection to go on with, none if it may be broken."""
        if connection is not None and self.shared and not _alive(connection):
            connection = None  # the database was started anew since the last write
        try:
            with _named(self.url, NOT_SAVED):
                if connection is None:
                    assert self._engine is not None
                    connection = self._engine.execution_options(writing=True).connect()
                with connection.begin():
                    unknown = {(write.folder, write.name) for write in batch} - self._lengths.keys()
                    known = self._lengths | _state(connection, unknown)
                    refused = _write_all(connection, batch, known)
                    if self._file is not None:
                        self._file.check()
            if not self.shared:  # then nobody else writes, and what we know stays true
                self._lengths = known if len(known) < MAX_LENGTHS else {}
            self._unfolded = True
        except BaseException as error:  # whatever it was, those who wait must be told
            self._lengths = {}  # what is there now must be looked up again
            for write in batch:
                write.done.set_exception(error)
            if connection is not None:
                with contextlib.suppress(Exception):
                    connection.invalidate()
                    connection.close()
            if self._file is not None and self._file.lost:
                self._tidy()
            return None
        for i, write in enumerate(batch):
            if i in refused:
                write.done.set_exception(refused[i])
            else:
                write.done.set_result(None)
        return connection

    def close(self) -> None:
        """Write what is left, and let go of the database."""
        if self._writer is not None:
            self._queue.put(None)
            self._writer.join()
            self._writer = None
        if self._anchor is not None:
            self._anchor.close()
            self._anchor = None
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None
        if self._file is not None:
            self._file.close()
            self._file = None


def _alive(connection: Connection) -> bool:
    """Return whether there is still somebody at the other end; what is not is closed."""
    try:
        connection.execute(sa.select(1))
        connection.rollback()
        return True
    except sa.exc.SQLAlchemyError:
        with contextlib.suppress(Exception):
            connection.invalidate()
            connection.close()
        return False


def _write_all(connection: Connection, batch: list[_Write], known: Lengths) -> dict[int, StoreError]:
    """Write what can be written, in as few statements as possible; return which writes were refused, and why.

    ``known`` has the number and the length of every log there is, and is brought up to date.
    """
    refused: dict[int, StoreError] = {}
    rows: list[dict[str, Any]] = []
    for i, write in enumerate(batch):
        key = (write.folder, write.name)
        try:
            if write.after is None:
                known[key] = _create(connection, write, key in known)
            elif key not in known:
                raise missing(*key)
            elif known[key][1] != write.after:
                raise conflict(*key)
        except StoreError as error:
            refused[i] = error
            continue
        log, count = known[key]
        rows += [{"log": log, "position": count + j, "body": line} for j, line in enumerate(write.lines)]
        known[key] = log, count + len(write.lines)
    if rows:
        connection.execute(sa.insert(events_table), rows)
    return refused


def _state(connection: Connection, keys: set[tuple[str, str]]) -> Lengths:
    """Return the number and the length of each of these logs that exists; they are ours until the transaction ends."""
    if not keys:
        return {}
    wanted = sa.tuple_(logs_table.c.folder, logs_table.c.name).in_(sorted(keys))
    # In one order everywhere: two workers that lock the same logs in another order would wait for each other for ever.
    locked = sa.select(logs_table.c.id, logs_table.c.folder, logs_table.c.name).where(wanted).order_by(logs_table.c.id)
    found = {row.id: (row.folder, row.name) for row in connection.execute(locked.with_for_update())}
    counted = (
        sa.select(events_table.c.log, sa.func.count())
        .where(events_table.c.log.in_(list(found)))
        .group_by(events_table.c.log)
    )
    counts = {log: int(count) for log, count in connection.execute(counted)} if found else {}
    return {key: (log, counts.get(log, 0)) for log, key in found.items()}


def _create(connection: Connection, write: _Write, exists: bool) -> tuple[int, int]:
    """Return the number and the length of a new log."""
    if exists:
        raise conflict(write.folder, write.name)
    made = sa.insert(logs_table).values(folder=write.folder, name=write.name, created=datetime.now(UTC).isoformat())
    with connection.begin_nested() as point:
        try:
            return int(connection.execute(made.returning(logs_table.c.id)).scalar_one()), 0
        except sa.exc.IntegrityError:  # another process began it a moment ago
            point.rollback()
            raise conflict(write.folder, write.name) from None


# --- databases -------------------------------------------------------------------------------------------------------


def _url(address: str) -> URL:
    try:
        url = make_url(address)
    except (sa.exc.ArgumentError, ValueError):
        raise ArgumentError(
            f"{address.rpartition('@')[2]!r:.200} is not the address of a database; "
            "write sqlite:///FILE or postgresql://USER@HOST/DATABASE"
        ) from None
    if url.get_backend_name() == "postgresql":
        try:
            import psycopg  # noqa: F401
        except ImportError:
            raise StoreError(
                "PostgreSQL needs the package 'psycopg'; install it with: pip install 'tradeoff[postgresql]'"
            ) from None
        return url.set(drivername="postgresql+psycopg")
    if not url.database or url.database == ":memory:":
        raise ArgumentError(f"{address!r} names no file; write sqlite:///FILE, or memory: to keep nothing")
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
        # A writer takes the right to write at once, instead of finding out in the middle that another has it.
        writing = connection.get_execution_options().get("writing")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine


@contextmanager
def _named(url: URL, what: str = "the store cannot be used") -> Iterator[None]:
    """Turn a database's errors into ours, with the name of the database and without its password."""
    try:
        yield
    except (sa.exc.SQLAlchemyError, sqlite3.Error) as error:
        reason = str(getattr(error, "orig", None) or error).strip().split("\n")[0]
        shown = _database_file(url) or url.set(query={}).render_as_string(hide_password=True)
        raise StoreError(f"{what}: {shown}: {reason}; put that right and try again") from error
