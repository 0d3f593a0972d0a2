"""The tables of a database, and their upgrades (Alembic; see ``migrations/versions``)."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Engine

from tradeoff.errors import StoreError

VERSION_TABLE = "tradeoff_version"

metadata = sa.MetaData()

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

    With ``upgrade``, the tables of a new database are created and those of an older one upgraded.
    """
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    script = ScriptDirectory.from_config(config)
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({UPGRADE_LOCK})"))
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        found, newest = context.get_current_revision(), script.get_current_head()
        assert newest is not None
        if found == newest:
            return found
        if found is None and set(sa.inspect(connection).get_table_names()) & {"logs", "events"}:
            raise StoreError(
                f"{where} has tables named logs or events that are not ours; it was not changed: use another database"
            )
        if found is not None and found not in {revision.revision for revision in script.walk_revisions()}:
            raise StoreError(
                f"{where} was written by a newer version of tradeoff (version {found!r} of the tables; this one "
                f"supports {newest!r}); it was not changed: upgrade tradeoff"
            )
        if not upgrade:
            if found is None:
                raise StoreError(f"{where} holds nothing of tradeoff's; name the database that a server has used")
            return found
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        return newest
