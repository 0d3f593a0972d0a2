"""The tables of a database, and their upgrades from earlier versions."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from tradeoff.errors import StoreError

VERSION_TABLE = "tradeoff_version"

VERSION = "0002"  # of the tables
UPGRADES = {
    "0001": ("0002", "ALTER TABLE events ADD COLUMN crc BIGINT")
}  # by version: the next one, and how to reach it

metadata = sa.MetaData()

version_table = sa.Table(VERSION_TABLE, metadata, sa.Column("version_num", sa.String(32), primary_key=True))

logs_table = sa.Table(
    "logs",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("folder", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("created", sa.Text, nullable=False),
    sa.UniqueConstraint("folder", "name", name="logs_name"),
)

events_table = sa.Table(
    "events",
    metadata,
    sa.Column("log", sa.Integer, sa.ForeignKey("logs.id"), primary_key=True, autoincrement=False),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("crc", sa.BigInteger),  # CRC-32 of all bodies of the log up to this one; NULL: stored by version 0.3
)

# The key of the lock that a process holds while it changes the tables (PostgreSQL; the number is arbitrary).
UPGRADE_LOCK = 7_347_301


def check_schema(engine: Engine, where: str, *, upgrade: bool) -> str:
    """Return the version of the tables; raise a StoreError for a database that is not ours or of a newer version.

    With ``upgrade``, the tables of a new database are created and those of an older one upgraded, in one transaction.
    """
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({UPGRADE_LOCK})"))
        tables = set(sa.inspect(connection).get_table_names())
        stored = connection.execute(sa.select(version_table)).scalar() if VERSION_TABLE in tables else None
        if stored is None and tables & {"logs", "events"}:
            raise StoreError(
                f"{where} has tables named logs or events that are not ours; it was not changed: use another database"
            )
        if stored not in (None, VERSION, *UPGRADES):
            raise StoreError(
                f"{where} was written by a newer version of tradeoff (version {stored!r} of the tables; this one "
                f"supports {VERSION!r}); it was not changed: upgrade tradeoff"
            )
        if not upgrade and stored is None:
            raise StoreError(f"{where} holds nothing of tradeoff's; name the database that a server has used")
        if not upgrade and stored is not None:
            return str(stored)
        if stored is None:
            metadata.create_all(connection)
            connection.execute(sa.insert(version_table).values(version_num=VERSION))
        while stored in UPGRADES:
            stored, statement = UPGRADES[stored]
            connection.execute(sa.text(statement))
            connection.execute(sa.update(version_table).values(version_num=stored))
        return VERSION
