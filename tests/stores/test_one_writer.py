"""One SQLite file has one writer, whatever name the second one uses; a file that goes away is noticed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests import processes
from tests.messages import refused
from tests.web.servers import Server
from tradeoff.errors import StoreError
from tradeoff.stores import InUseError, open_store
from tradeoff.stores.jsonlines import lock_file

HEADER = {"event": "header", "time": "2026-01-01T00:00:00+00:00"}

HOLDER = """
import sys
from tradeoff.stores import open_store
with open_store(sys.argv[1]) as store:
    store.create("people", "ann", [{"event": "header"}])
    print("open", flush=True)
    for after, _ in enumerate(sys.stdin, start=1):
        store.append("people", "ann", [{"event": "answer"}], after=after)
        print("saved", flush=True)
"""


@contextmanager
def holder(address: str, folder: Path) -> Iterator[Callable[[], None]]:
    """Give a function that has another process append to a store which that process holds open."""
    process = processes.Child(
        [sys.executable, "-c", HOLDER, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder
    )
    assert process.stdin is not None and process.stdout is not None

    def said(word: str) -> None:
        assert process.stdout is not None
        assert process.stdout.readline() == f"{word}\n"

    def append() -> None:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        said("saved")

    try:
        said("open")
        yield append
        process.stdin.close()
        assert process.wait(processes.PATIENCE) == 0
    finally:
        process.end()


def same(path: Path) -> str:
    return str(path)


def relative(path: Path) -> str:
    return os.path.relpath(path)


def roundabout(path: Path) -> str:
    (path.parent / "sub").mkdir()
    return f"{path.parent}/sub/../{path.name}"


def symbolic_link(path: Path) -> str:
    (path.parent / "alias.db").symlink_to(path)
    return str(path.parent / "alias.db")


def linked_folder(path: Path) -> str:
    (path.parent / "other").symlink_to(path.parent)
    return str(path.parent / "other" / path.name)


def hard_link(path: Path) -> str:
    os.link(path, path.parent / "alias.db")
    return str(path.parent / "alias.db")


def hard_link_elsewhere(path: Path) -> str:
    (path.parent / "elsewhere").mkdir()
    os.link(path, path.parent / "elsewhere" / path.name)
    return str(path.parent / "elsewhere" / path.name)


ALIASES = [same, relative, roundabout, symbolic_link, linked_folder, hard_link, hard_link_elsewhere]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux locks the file itself")
@pytest.mark.parametrize("alias", ALIASES)
def test_a_second_writer_is_refused_by_whatever_name(alias: Callable[[Path], str], tmp_path: Path) -> None:
    path = tmp_path / "logs.db"
    with holder(f"sqlite:///{path}", tmp_path) as append:
        other = alias(path)
        for _ in range(3):
            append()
            with pytest.raises(InUseError):
                open_store(f"sqlite:///{other}")
        append()
    with open_store(f"sqlite:///{other}") as store:  # afterwards any name will do, and nothing is missing
        assert len(store.read("people", "ann")) == 5


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has bind mounts")
def test_a_second_writer_through_a_bind_mount_is_refused(tmp_path: Path) -> None:
    path, other = tmp_path / "logs.db", tmp_path / "mounted.db"
    other.touch()
    with holder(f"sqlite:///{path}", tmp_path) as append:
        mounted = processes.run(["mount", "--bind", str(path), str(other)])
        if mounted.returncode:
            processes.not_possible_here("mounting needs the rights of an administrator")
        try:
            with pytest.raises(InUseError):
                open_store(f"sqlite:///{other}")
            append()
        finally:
            processes.run(["umount", str(other)], check=True)
    with open_store(f"sqlite:///{path}", write=False) as store:
        assert len(store.read("people", "ann")) == 2


def test_a_server_of_an_earlier_version_is_respected_and_respects_this_one(tmp_path: Path) -> None:
    """Earlier versions lock FILE.lock and nothing else."""
    path = tmp_path / "logs.db"
    descriptor = lock_file(tmp_path / "logs.db.lock", "in use")
    with refused(InUseError, "logs.db"):
        open_store(f"sqlite:///{path}")
    os.close(descriptor)
    with open_store(f"sqlite:///{path}"), pytest.raises(InUseError):
        lock_file(tmp_path / "logs.db.lock", "in use")


def test_a_refused_writer_leaves_the_locks_of_the_first_alone(tmp_path: Path) -> None:
    """Closing a descriptor of a file drops all of SQLite's locks on it in that process: it must not be closed."""
    path = tmp_path / "logs.db"
    with open_store(f"sqlite:///{path}") as store:
        store.create("people", "ann", [HEADER])
        with pytest.raises(InUseError):
            open_store(f"sqlite:///{path}")
        with open_store(f"sqlite:///{path}", write=False) as reader:
            assert reader.names("people") == ["ann"]
        # Another process that believes to be the last one folds the log in and deletes it.
        code = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT 1 FROM logs').fetchall(); c.close()"
        processes.run([sys.executable, "-c", code, str(path)], check=True)
        assert (tmp_path / "logs.db-wal").exists()
        store.append("people", "ann", [{"event": "answer"}], after=1)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("SELECT count(*) FROM events").fetchone() == (2,)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are counted as Linux shows them")
def test_descriptors_are_given_back(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for i in range(20):
        with open_store(f"sqlite:///{tmp_path / f'{i}.db'}"), pytest.raises(StoreError):
            open_store(f"sqlite:///{tmp_path / f'{i}.db'}")
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 2


# --- files that go away while they are open --------------------------------------------------------------------------


def moved(path: Path) -> Path:
    return path.rename(path.with_name("old.db"))


def moved_elsewhere(path: Path) -> Path:
    (path.parent / "elsewhere").mkdir()
    return path.rename(path.parent / "elsewhere" / "old.db")


def folder_moved(path: Path) -> Path:
    return path.parent.rename(path.parent.with_name("old-folder")) / path.name


def removed(path: Path) -> Path:
    path.unlink()
    return path.parent  # a copy is saved there


def replaced(path: Path) -> Path:
    with closing(sqlite3.connect(path.with_name("new.db"))) as connection, connection:
        connection.execute("CREATE TABLE other (x)")
    path.with_name("new.db").rename(path)
    return path.parent


def replaced_by_a_copy(path: Path) -> Path:
    shutil.copy(path, path.with_name("copy.db"))
    path.with_name("copy.db").rename(path)
    return path.parent


def stored_answers(place: Path) -> int:
    """Return how many answers are in a database, or in the copy that was saved into a folder."""
    if place.is_dir():
        (place,) = place.glob("*.rescued-*")
        assert place.stat().st_mode & 0o777 == 0o600
    with open_store(f"sqlite:///{place}", write=False) as store:
        return len(store.read("people", "ann")) - 1


@pytest.mark.parametrize("change", [moved, moved_elsewhere, folder_moved, removed, replaced, replaced_by_a_copy])
def test_a_file_that_goes_away_is_noticed_before_the_next_answer_is_acknowledged(
    change: Callable[[Path], Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "served" / "logs.db"
    path.parent.mkdir()
    with open_store(f"sqlite:///{path}") as store:
        store.create("people", "ann", [HEADER])
        for after in (1, 2, 3):
            store.append("people", "ann", [{"event": "answer"}], after=after)
        place = change(path)
        for _ in range(3):
            with pytest.raises(StoreError, match="stop the server, put the file back"):
                store.append("people", "ann", [{"event": "answer"}], after=4)
            with pytest.raises(StoreError, match=r"logs\.db"):  # nothing is read from a file that took its place
                store.read("people", "ann")
        if sys.platform == "linux" and place.is_file():  # the file is still locked under its new name
            code = "import sys; from tradeoff.stores import open_store; open_store(sys.argv[1])"
            second = processes.run([sys.executable, "-c", code, f"sqlite:///{place}"])
            assert "InUseError" in second.stderr
        assert stored_answers(place) == 3  # everything acknowledged, and nothing else, before the store is closed
        assert [record.message for record in caplog.records] == [store.lost]  # said once
    assert stored_answers(place) == 3


def test_a_server_whose_file_is_moved_refuses_answers_and_says_so_when_it_ends(tmp_path: Path) -> None:
    with Server(tmp_path, "serve", "dependent", "--strategy", "paper") as server, server.client() as client:
        token = client.post("/api/interviews").json()["id"]
        here = f"/api/interviews/{token}/answers"
        assert client.post(here, json={"turn": 1, "reply": "equal"}).status_code == 200
        moved(tmp_path / "tradeoff.db")
        assert client.post(here, json={"turn": 2, "reply": "equal"}).status_code == 503
        assert client.post("/api/interviews").status_code == 503
        assert client.get("/").status_code == 200
        assert server.stop() == 4
        output = server.output.read_text(encoding="utf-8")
    assert "tradeoff.db was moved" in output and "Traceback" not in output and "Everything is saved" not in output


def test_the_file_alone_has_everything_acknowledged(tmp_path: Path) -> None:
    """A kill after the file was moved, or after its write-ahead log was deleted, loses nothing."""
    path = tmp_path / "logs.db"
    with holder(f"sqlite:///{path}", tmp_path) as append:
        for answers in range(1, 7):
            append()
            shutil.copy(path, tmp_path / f"moved-{answers}.db")
            if answers == 3:
                path.with_name("logs.db-wal").unlink()
    for answers in range(1, 7):
        assert stored_answers(tmp_path / f"moved-{answers}.db") == answers


def test_a_new_database_is_not_begun_beside_the_log_of_one_that_was_moved(tmp_path: Path) -> None:
    """SQLite would delete that log, and with it what was acknowledged."""
    path = tmp_path / "logs.db"
    with holder(f"sqlite:///{path}", tmp_path):
        shutil.copy(tmp_path / "logs.db-wal", tmp_path / "left.db-wal")
    for write in (True, False):
        with pytest.raises(StoreError, match=r"left\.db-wal holds answers" if write else "no database"):
            open_store(f"sqlite:///{tmp_path / 'left.db'}", write=write)
    assert (tmp_path / "left.db-wal").stat().st_size
