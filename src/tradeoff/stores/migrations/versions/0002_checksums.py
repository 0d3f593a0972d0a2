"""A checksum for every event; events stored before have none."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column of checksums."""
    op.add_column("events", sa.Column("crc", sa.BigInteger))
