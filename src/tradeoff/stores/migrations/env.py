"""Runs the migrations on the connection that the store gives."""

from alembic import context

from tradeoff.stores.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table="tradeoff_version",
    transactional_ddl=True,
)
context.run_migrations()
