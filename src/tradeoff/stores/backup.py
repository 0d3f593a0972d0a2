"""Copy a store while it is in use."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from tradeoff.errors import ArgumentError


def backup(address: str, target: Path, progress: Callable[[int, int], None] = lambda done, total: None) -> None:
    """Copy the SQLite database at an address into a new private file, even while it is being written to.

    The copy has everything acknowledged before it began, and is checked. ``progress`` is called with the pages copied so
    far and their total. For other stores, the error names a better tool.
    """
    kind = address.partition(":")[0]
    match kind:
        case "sqlite":
            from tradeoff.stores.sql import SqlStore
            from tradeoff.stores.sqlite_file import connect, copy_database

            with SqlStore(address, write=False) as store:  # checks that it is a database of tradeoff
                assert store.url.database is not None
                with closing(connect(Path(store.url.database))) as connection:
                    copy_database(connection, target, progress)
        case "postgresql" | "postgresql+psycopg":
            raise ArgumentError(
                f"PostgreSQL makes its own backups, even while it is in use: pg_dump --format=custom --file={target} DATABASE"
            )
        case _:
            raise ArgumentError(f"only sqlite:///FILE can be backed up, not {kind}:")
