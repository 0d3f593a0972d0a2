"""One log that cannot be read hides no other."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tradeoff.stores import DamagedError, open_store

HEADER = {"event": "header", "format": "tradeoff-log/2"}


def filled(address: str) -> None:
    with open_store(address) as store:
        for second, name in enumerate(["ann", "bob", "cid"]):
            store.create("people", name, [{**HEADER, "time": f"2026-01-01T00:00:0{second}+00:00"}])
            store.append("people", name, [{"event": "answer"}, {"event": "end"}], after=1)


def in_sqlite(statement: str) -> Callable[[Path], str]:
    def damage(folder: Path) -> str:
        address = f"sqlite:///{folder / 'logs.db'}"
        filled(address)
        with closing(sqlite3.connect(folder / "logs.db")) as connection, connection:
            assert connection.execute(statement).rowcount > 0
        return address

    return damage


BOB = "log = (SELECT id FROM logs WHERE name = 'bob')"


@pytest.mark.parametrize(
    "damage",
    [
        in_sqlite(f"UPDATE events SET body = '{{broken' WHERE position = 1 AND {BOB}"),
        in_sqlite(f"UPDATE events SET body = '[]' WHERE position = 0 AND {BOB}"),
        in_sqlite(f"UPDATE events SET body = CAST(x'7b22ff22' AS TEXT) WHERE position = 2 AND {BOB}"),
        in_sqlite(f"UPDATE events SET body = x'ff00' WHERE position = 2 AND {BOB}"),
        in_sqlite(f"UPDATE events SET body = '{'[' * 100_000}' WHERE position = 1 AND {BOB}"),
        in_sqlite(f"DELETE FROM events WHERE position = 1 AND {BOB}"),
        in_sqlite(f"DELETE FROM events WHERE {BOB}"),
    ],
)
def test_a_damaged_log_is_reported_in_its_position_and_hides_no_other(
    damage: Callable[[Path], str], tmp_path: Path
) -> None:
    with open_store(damage(tmp_path), write=False) as store:
        logs = store.logs("people")
        assert sorted(store.names("people")) == sorted(logs) == ["ann", "bob", "cid"]
        assert isinstance(logs["bob"], DamagedError)
        assert "bob" not in str(logs["bob"])
        for name in ("ann", "cid"):
            log = logs[name]
            assert isinstance(log, list) and [event["event"] for event in log] == ["header", "answer", "end"]
            assert store.read("people", name) == log
        with pytest.raises(DamagedError) as caught:
            store.read("people", "bob")
        assert "bob" not in str(caught.value)  # the name of a log can be a secret link
