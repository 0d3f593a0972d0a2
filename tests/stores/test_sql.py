"""The store in a database: one writer, many who wait for it, and tables that agree with their migrations."""

from __future__ import annotations

import ctypes
import json
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from tests import processes
from tests.messages import refused
from tests.postgresql import GUARDED
from tradeoff.apps.cli.main import main
from tradeoff.errors import ArgumentError, StoreError
from tradeoff.stores import ConflictError, DamagedError, InUseError, open_store
from tradeoff.stores.schema import VERSION_TABLE, check_schema
from tradeoff.stores.sql import ROWS, SqlStore

HEADER = {"event": "header", "time": "2026-01-01T00:00:00+00:00"}


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'logs.db'}"
    database: str = request.getfixturevalue("postgresql_address")
    return database


@pytest.fixture
def store(address: str) -> Iterator[SqlStore]:
    with SqlStore(address) as opened:
        yield opened


@pytest.fixture
def engine(address: str) -> Iterator[sa.Engine]:
    """A way in that shares nothing with the store."""
    made = sa.create_engine(address.replace("postgresql://", "postgresql+psycopg://"), poolclass=sa.pool.NullPool)
    yield made
    made.dispose()


def together(*calls: Callable[[], None]) -> None:
    """Call everything at once; whatever is raised is raised here, and whoever waits for ever is named."""
    raised: list[BaseException] = []

    def guarded(call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(call,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(processes.PATIENCE)
    if raised:
        raise raised[0]
    assert not any(thread.is_alive() for thread in threads), "somebody still waits"


# --- durable when it returns -----------------------------------------------------------------------------------------


def test_what_append_has_returned_from_is_seen_by_everybody_else(store: SqlStore, engine: sa.Engine) -> None:
    """Group commit: many wait for one commit, and none of them is told before it."""
    people = [f"p{i}" for i in range(12)]
    for name in people:
        store.create("people", name, [HEADER])
    wanted = sa.text(
        "SELECT e.body FROM events e JOIN logs l ON e.log = l.id WHERE l.name = :name AND e.position = :position"
    )

    def write(name: str) -> None:
        for position in range(1, 9):
            event = {"event": "answer", "by": name, "position": position}
            store.append("people", name, [event], after=position)
            with engine.connect() as fresh:
                body = fresh.execute(wanted, {"name": name, "position": position}).scalar_one()
            assert json.loads(body) == event

    together(*(lambda name=name: write(name) for name in people))  # type: ignore[misc]
    assert [len(events) for events in store.logs("people").values()] == [9] * len(people)


def test_many_writes_share_a_commit(tmp_path: Path) -> None:
    """What has come in while the last commit was under way goes into the next one together."""
    path = tmp_path / "logs.db"
    with SqlStore(f"sqlite:///{path}") as store:
        people = [f"p{i}" for i in range(40)]
        for name in people:
            store.create("people", name, [HEADER])
        commits: list[object] = []
        assert store._engine is not None
        sa.event.listen(store._engine, "commit", commits.append)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")  # holds the writer up, as a slow disk does
            waiting = [store.append_later("people", name, [{"event": "answer"}], after=1) for name in people]
            assert not any(done.done() for done in waiting)  # nobody is told what is not durable yet
            assert store.read("people", "p0") == [HEADER]  # and reading does not wait
            other.execute("COMMIT")
        for done in waiting:
            done.result(processes.PATIENCE)
        assert {len(events) for events in store.logs("people").values()} == {2}
        assert 1 <= len(commits) <= 2  # what the writer had already taken, and everything else


@pytest.mark.parametrize("count", [1, ROWS, 2 * ROWS + 1])
def test_as_many_events_as_there_are_come_back_in_their_order(store: SqlStore, count: int) -> None:
    events = [HEADER, *({"event": "note", "time": HEADER["time"], "number": number} for number in range(1, count))]
    store.create("many", "log", events)
    store.append("many", "log", events, after=count)
    assert store.read("many", "log") == events + events


def test_one_that_is_refused_takes_nobody_with_it(store: SqlStore) -> None:
    store.create("people", "ann", [HEADER])
    done: list[str] = []

    def write(name: str) -> None:
        try:
            store.create("people", name, [HEADER])
            done.append(name)
        except ConflictError:
            done.append(f"no {name}")

    together(*(lambda name=name: write(name) for name in ["ann", "bob", "ann", "cid", "dee", "ann"]))  # type: ignore[misc]
    assert sorted(done) == ["bob", "cid", "dee", "no ann", "no ann", "no ann"]
    assert sorted(store.names("people")) == ["ann", "bob", "cid", "dee"]


def test_a_commit_is_on_the_disk_and_not_only_with_the_system(tmp_path: Path) -> None:
    with SqlStore(f"sqlite:///{tmp_path / 'logs.db'}") as store:
        assert store._engine is not None
        with store._engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL
            assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1


# --- a writer that ends ----------------------------------------------------------------------------------------------


def end(thread: threading.Thread) -> None:
    """End a thread from outside: whatever it does next raises."""
    assert thread.ident is not None
    assert ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)) == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # it is ended on purpose
def test_a_writer_that_dies_is_reported_and_not_waited_for(tmp_path: Path) -> None:
    with SqlStore(f"sqlite:///{tmp_path / 'logs.db'}") as store:
        store.create("people", "ann", [HEADER])
        assert store._writer is not None
        end(store._writer)

        def write() -> None:
            store.append("people", "ann", [{"event": "answer"}], after=1)

        for _ in range(2):  # the one it took with it, and the one that comes later
            with pytest.raises(StoreError, match="not saved"):
                together(write)
        assert store.read("people", "ann") == [HEADER]


def test_closing_while_others_write_leaves_nobody_waiting(tmp_path: Path) -> None:
    """Each of them hears: saved, and then it is there, or not saved."""
    for attempt in range(4):
        path = tmp_path / f"logs{attempt}.db"
        store = SqlStore(f"sqlite:///{path}")
        saved: list[str] = []

        def write(who: int, store: SqlStore = store, saved: list[str] = saved) -> None:
            for i in range(1000):
                try:
                    store.create("people", f"p{who}-{i}", [HEADER])
                except StoreError:
                    return
                saved.append(f"p{who}-{i}")

        def close(store: SqlStore = store, pause: float = 0.02 * attempt) -> None:
            time.sleep(pause)
            store.close()

        together(close, *(lambda who=who: write(who) for who in range(6)))  # type: ignore[misc]
        with open_store(f"sqlite:///{path}", write=False) as again:
            assert set(again.names("people")) == set(saved)


def test_closing_twice_is_no_harm_and_then_nothing_works(store: SqlStore) -> None:
    store.create("people", "ann", [HEADER])
    store.close()
    store.close()
    with pytest.raises(StoreError, match="not open for writing"):
        store.append("people", "ann", [HEADER], after=1)
    for look in (lambda: store.read("people", "ann"), lambda: store.names("people"), lambda: store.logs("people")):
        with pytest.raises(StoreError, match="closed"):
            look()


def test_ctrl_c_while_a_store_is_opened_is_reported_as_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writing thread that was not started yet is not waited for, and the file can be opened again."""

    def interrupt(_: threading.Thread) -> None:
        raise KeyboardInterrupt

    address = f"sqlite:///{tmp_path / 'trades.db'}"
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", interrupt)
        with pytest.raises(KeyboardInterrupt):
            SqlStore(address)
    SqlStore(address).close()


def test_closing_gives_the_file_back(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'logs.db'}"
    first = SqlStore(address)
    with refused(InUseError, "logs.db"):
        SqlStore(address)
    first.create("people", "ann", [HEADER])
    first.close()
    with SqlStore(address) as second:
        assert second.names("people") == ["ann"]
    assert not (tmp_path / "logs.db-wal").exists()  # everything is in the one file


# --- others who read and write ---------------------------------------------------------------------------------------

WRITER = """
import sys
from tradeoff.stores import open_store
with open_store(sys.argv[1]) as store:
    store.create("people", "ann", [{"event": "header"}])
    for i in range(1, 200):
        store.append("people", "ann", [{"event": "answer", "number": i}], after=i)
        print(i, flush=True)
"""


def test_who_reads_while_another_process_writes_sees_a_whole_beginning(address: str) -> None:
    """Everything that was acknowledged, in order, and nothing half."""
    looks = 0
    with processes.Child([sys.executable, "-c", WRITER, address], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        while line := writer.stdout.readline():
            if int(line) % 20:
                continue
            with open_store(address, write=False) as store:
                events = store.read("people", "ann")
            assert len(events) > int(line)
            assert [event["number"] for event in events[1:]] == list(range(1, len(events)))
            looks += 1
        assert writer.wait(processes.PATIENCE) == 0
    assert looks == 9


def test_who_only_reads_cannot_write(address: str) -> None:
    with open_store(address) as store:
        store.create("people", "ann", [HEADER])
    with open_store(address, write=False) as store:
        for write in (
            lambda: store.append("people", "ann", [HEADER], after=1),
            lambda: store.create("x", "y", [HEADER]),
        ):
            with pytest.raises(StoreError, match="not open for writing"):
                write()
        assert store.read("people", "ann") == [HEADER]


# --- checksums -------------------------------------------------------------------------------------------------------


def execute(engine: sa.Engine, statement: str, **values: object) -> None:
    with engine.begin() as connection:
        assert connection.execute(sa.text(statement), values).rowcount > 0, statement


def test_a_changed_event_is_noticed_unless_only_an_earlier_version_has_stored_it(
    store: SqlStore, engine: sa.Engine
) -> None:
    """Every event is changed to another valid one in turn, in a log whose first ``old`` events have no checksum."""
    events = [HEADER, *({"event": "answer", "number": i} for i in range(1, 4))]
    store.create("people", "bob", events)
    for old in range(len(events) + 1):
        store.create("people", f"log{old}", events[:2])
        store.append("people", f"log{old}", events[2:], after=2)
        this = f"log = (SELECT id FROM logs WHERE name = 'log{old}')"
        if old:
            execute(engine, f"UPDATE events SET crc = NULL WHERE {this} AND position < {old}")
        for changed, event in enumerate(events):
            where = f"WHERE {this} AND position = {changed}"
            execute(engine, f"UPDATE events SET body = :body {where}", body=json.dumps({**event, "by": "hand"}))
            noticed = old < len(events)
            found = store.logs("people")
            assert isinstance(found[f"log{old}"], DamagedError) == noticed and found["bob"] == events
            for after in range(changed + 1):
                if noticed:
                    with pytest.raises(DamagedError):
                        store.read("people", f"log{old}", after=after)
                else:
                    assert len(store.read("people", f"log{old}", after=after)) == len(events) - after
            execute(engine, f"UPDATE events SET body = :body {where}", body=json.dumps(event))
            for after in range(len(events) + 1):
                assert store.read("people", f"log{old}", after=after) == events[after:]
        assert store.unchecked("people") == (old == len(events))


@pytest.mark.parametrize(
    ("one", "other"), [(("ann", 1), ("ann", 2)), (("ann", 1), ("bob", 1)), (("ann", 2), ("bob", 2))]
)
def test_an_event_in_another_place_is_noticed(
    store: SqlStore, engine: sa.Engine, one: tuple[str, int], other: tuple[str, int]
) -> None:
    for name in ("ann", "bob"):
        store.create("people", name, [HEADER, *({"event": "answer", "by": name, "number": i} for i in (1, 2))])
    where = "WHERE log = (SELECT id FROM logs WHERE name = :name) AND position = :position"
    with engine.begin() as connection:
        places = [{"name": name, "position": position} for name, position in (one, other)]
        rows = [connection.execute(sa.text(f"SELECT body, crc FROM events {where}"), place).one() for place in places]
        for place, row in zip(reversed(places), rows, strict=True):
            connection.execute(sa.text(f"UPDATE events SET body = :body, crc = :crc {where}"), place | row._asdict())
    assert isinstance(store.logs("people")["ann"], DamagedError)


def test_checksums_go_on_after_a_restart_and_after_a_server_of_an_earlier_version(
    address: str, engine: sa.Engine
) -> None:
    """Servers on one database are upgraded one at a time, so events with and without a checksum may alternate."""
    events = [HEADER, *({"event": "answer", "number": i} for i in range(1, 9))]
    for position, event in enumerate(events):
        with open_store(address) as store:
            if position % 3 == 2:  # as the earlier version writes
                execute(engine, f"INSERT INTO events (log, position, body) SELECT id, {position}, :body FROM logs",
                        body=json.dumps(event))  # fmt: skip
            elif position:
                store.append("people", "ann", [event], after=position)
            else:
                store.create("people", "ann", [event])
            assert store.read("people", "ann") == events[: position + 1]
            assert store.unchecked("people") == (position % 3 == 2)
    execute(engine, "UPDATE events SET body = '{}' WHERE position = 5")
    with open_store(address, write=False) as store, pytest.raises(DamagedError):
        store.read("people", "ann")


# --- tables ----------------------------------------------------------------------------------------------------------


def tables(engine: sa.Engine) -> set[str]:
    with engine.connect() as connection:
        return set(sa.inspect(connection).get_table_names())


def test_an_empty_database_gets_everything_and_a_second_look_changes_nothing(engine: sa.Engine) -> None:
    for _ in range(2):
        check_schema(engine, "here", upgrade=True)
        assert tables(engine) == {"logs", "events", VERSION_TABLE}
        with engine.connect() as connection:
            found = connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).scalars().all()
        assert found == ["0002"]


def test_an_empty_database_is_left_empty_by_who_only_looks(engine: sa.Engine) -> None:
    with refused(StoreError, "here"):
        check_schema(engine, "here", upgrade=False)
    assert tables(engine) == set()


def test_an_upgraded_database_has_the_tables_of_a_new_one(engine: sa.Engine) -> None:
    def columns() -> list[tuple[str, str]]:
        return [(column["name"], str(column["type"])) for column in sa.inspect(engine).get_columns("events")]

    check_schema(engine, "here", upgrade=True)
    new = columns()
    with engine.begin() as connection:  # as version 0.3 made it
        connection.execute(sa.text("ALTER TABLE events DROP COLUMN crc"))
        connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '0001'"))
    assert check_schema(engine, "here", upgrade=False) == "0001" and columns() != new
    assert check_schema(engine, "here", upgrade=True) == "0002" and columns() == new


def test_two_who_open_a_new_database_at_once_make_it_once(postgresql_address: str) -> None:
    def use(name: str) -> None:
        with open_store(postgresql_address) as store:
            store.create("people", name, [HEADER])

    together(*(lambda name=name: use(name) for name in ("ann", "bob", "cid")))  # type: ignore[misc]
    with open_store(postgresql_address, write=False) as store:
        assert sorted(store.names("people")) == ["ann", "bob", "cid"]


def test_a_process_has_at_most_ten_connections_so_that_nine_fit_into_a_hundred(postgresql_address: str) -> None:
    import psycopg

    from tradeoff.stores.postgresql import CONNECTIONS

    assert 9 * CONNECTIONS < 97  # PostgreSQL keeps three of its 100 for its administrator
    most: list[int] = []
    stop = threading.Event()
    with psycopg.connect(postgresql_address, autocommit=True) as watcher, open_store(postgresql_address) as store:
        store.create("people", "ann", [HEADER])

        def look() -> None:
            while not stop.is_set():
                store.logs("people")

        def watch() -> None:
            mine = (
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            try:
                for after in range(1, 40):
                    store.append("people", "ann", [{"event": "answer"}], after=after)
                    most.append(watcher.execute(mine).fetchall()[0][0])
            finally:
                stop.set()

        together(watch, *[look] * 16)
    assert 2 <= max(most) <= CONNECTIONS


# --- addresses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ann:geheim@127.0.0.1:port/study",
        "postgres://ann:geheim@127.0.0.1/study",
        "postgresql+asyncpg://ann:geheim@127.0.0.1/study",
        "mysql://ann:geheim@127.0.0.1/study",
        "postgresql://ann:geheim@127.0.0.1:1/study",
        "postgresql://ann:ge%40heim@127.0.0.1:1/study",
        "postgresql://127.0.0.1:1/study?user=ann&password=geheim",
    ],
)
def test_no_error_says_the_password(address: str) -> None:
    with pytest.raises((ArgumentError, StoreError)) as caught:
        open_store(address)
    assert "heim" not in str(caught.value) and "127.0.0.1" in str(caught.value)


@pytest.fixture
def guarded(postgresql_address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[str, str]:
    """The address of a database whose user needs a password, and the password."""
    import psycopg

    password = "ge:h@im"
    with psycopg.connect(postgresql_address, autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [GUARDED]).fetchall():
            connection.execute(f"CREATE ROLE {GUARDED} LOGIN PASSWORD '{password}'")
        connection.execute(f'ALTER DATABASE "{postgresql_address.rpartition("/")[2]}" OWNER TO {GUARDED}')
    for name in ("PGPASSWORD", "PGPASSFILE", "TRADEOFF_STORE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return postgresql_address.replace("postgres@", f"{GUARDED}@"), password


@pytest.mark.parametrize("way", ["PGPASSWORD", "PGPASSFILE", "~/.pgpass"])
def test_the_password_can_be_where_postgresql_looks_for_it(
    guarded: tuple[str, str], way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, password = guarded
    with pytest.raises(StoreError, match="password"):
        open_store(address)
    if way == "PGPASSWORD":
        monkeypatch.setenv(way, password)
    else:
        file = tmp_path / ".pgpass"
        file.write_text("*:*:*:" + GUARDED + ":" + password.replace(":", "\\:") + "\n", encoding="utf-8")
        file.chmod(0o600)
        if way == "PGPASSFILE":
            monkeypatch.setenv(way, str(file.rename(tmp_path / "elsewhere")))
    with open_store(address) as store:
        store.create("people", "ann", [HEADER])
        assert store.names("people") == ["ann"]


def test_the_address_with_its_password_can_be_in_the_environment(guarded: tuple[str, str]) -> None:
    address, password = guarded
    secret = address.replace("@", f":{quote(password, safe='')}@")
    runner = CliRunner(env={"TRADEOFF_STORE": secret})
    made = runner.invoke(main, ["study", "create", "mine", "dependent", "--strategy", "paper"])
    assert made.exit_code == 0, made.output
    assert "--store" not in made.output  # the next command needs no address either
    assert password not in made.output and quote(password, safe="") not in made.output
    listed = runner.invoke(main, ["study", "list", "--json"])
    assert [row["name"] for row in json.loads(listed.stdout)] == ["mine"]
    other = runner.invoke(main, ["study", "list", "--store", "sqlite:///nowhere.db"])  # what is typed comes first
    assert other.exit_code == 4 and "nowhere.db" in other.stderr


def test_a_commit_whose_outcome_is_unknown_is_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk failed after the events were written: the writer is told, and whoever reads the log can go on with it."""
    from sqlalchemy.engine.default import DefaultDialect as Dialect

    with open_store(f"sqlite:///{tmp_path / 'x.db'}") as store:
        store.create("people", "ann", [{"event": "header"}])
        commit = Dialect.do_commit

        def fails(self: Dialect, connection: Any) -> None:
            commit(self, connection)
            raise sqlite3.OperationalError("the disk is gone")

        with monkeypatch.context() as patched:
            patched.setattr(Dialect, "do_commit", fails)
            with pytest.raises(StoreError, match="gone"):
                store.append("people", "ann", [{"event": "answer"}], after=1)
        kept = len(store.read("people", "ann"))
        store.append("people", "ann", [{"event": "answer"}], after=kept)
        assert len(store.read("people", "ann")) == kept + 1
