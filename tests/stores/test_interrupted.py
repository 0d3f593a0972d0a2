"""A crash while a new database is being made leaves nothing that is taken for damage."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests import processes
from tradeoff.errors import StoreError
from tradeoff.stores import open_store

HEADER = {"event": "header"}

# Makes one database after the other, and is killed while the journal of one of them has not been dealt with.
MAKER = """
import itertools, os, signal, sys, threading
from pathlib import Path
from tradeoff.stores import open_store

def strike():
    while True:
        for path in Path(sys.argv[1]).glob("*.db-journal"):
            os.kill(os.getpid(), signal.SIGKILL)

sys.setswitchinterval(1e-6)
threading.Thread(target=strike, daemon=True).start()
for i in itertools.count():
    open_store(f"sqlite:///{sys.argv[1]}/{i}.db").close()
"""


def hot(path: Path) -> None:
    """Leave a database as a crash in its first transaction does: page 1 is written, and the journal says to undo it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("PRAGMA cache_spill = 1")
        connection.execute("CREATE TABLE first (x)")
        connection.execute("DROP TABLE first")
        connection.execute("BEGIN")
        connection.execute("CREATE TABLE second (x)")
        connection.executemany("INSERT INTO second VALUES (?)", [("x" * 3000,)] * 50)  # spills into the file
        for source in (path, Path(f"{path}-journal")):
            shutil.copy(source, f"{source}.copy")
        connection.execute("ROLLBACK")
    for source in (path, Path(f"{path}-journal")):
        Path(f"{source}.copy").replace(source)


@pytest.mark.parametrize("write", [True, False])
def test_a_transaction_that_a_crash_interrupted_is_rolled_back_and_not_called_damage(
    write: bool, tmp_path: Path
) -> None:
    path = tmp_path / "logs.db"
    hot(path)
    assert Path(f"{path}-journal").stat().st_size  # or nothing is tested
    if not write:
        with pytest.raises(StoreError, match="holds nothing of tradeoff"):  # and not: damaged
            open_store(f"sqlite:///{path}", write=False)
    with open_store(f"sqlite:///{path}") as store:
        store.create("people", "ann", [HEADER])
        assert store.read("people", "ann") == [HEADER]


def test_a_new_database_killed_while_it_is_made_can_be_opened(tmp_path: Path) -> None:
    for attempt in range(4):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        done = processes.run([sys.executable, "-c", MAKER, str(folder)])
        assert done.returncode == -signal.SIGKILL, done.stderr
        for path in sorted(folder.glob("*.db")):
            with open_store(f"sqlite:///{path}") as store:
                store.create("people", "ann", [HEADER])
