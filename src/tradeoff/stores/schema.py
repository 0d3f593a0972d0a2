"""The tables of a database, and how an older one becomes a newer one (Alembic; see ``migrations/versions``)."""

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
)

# Programs of one database wait for each other while one of them changes its tables (PostgreSQL; any number will do).
UPGRADE_LOCK = 7_347_301


def check_schema(engine: Engine, where: str, *, upgrade: bool) -> None:
    """Make the tables of a new database, bring an older one up to date, and refuse what is not ours."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    script = ScriptDirectory.from_config(config)
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({UPGRADE_LOCK})"))
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        found, newest = context.get_current_revision(), script.get_current_head()
        if found == newest:
            return
        if found is None and set(sa.inspect(connection).get_table_names()) & {"logs", "events"}:
            raise StoreError(
                f"{where} holds tables called logs or events that are not ours; it was left as it is: name another database"
            )
        if found is not None and found not in {revision.revision for revision in script.walk_revisions()}:
            raise StoreError(
                f"{where} was written by a newer version of tradeoff (its tables are of version {found!r}, this one knows "
                f"{newest!r}); it was left as it is: upgrade tradeoff"
            )
        if not upgrade:
            problem = "holds nothing of tradeoff's" if found is None else f"is of the older version {found!r}"
            raise StoreError(f"{where} {problem}; name the database that a server has used")
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
