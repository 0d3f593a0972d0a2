"""Connections to PostgreSQL that give up on a server which has stopped answering.

If a server's process is frozen, its connections stay open and its system acknowledges every packet, so neither keepalives
nor the server's own limits notice. Therefore the client measures how long the server has been silent.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg.abc import RV, PQGen
from sqlalchemy.engine import URL, Engine

STATEMENT_TIMEOUT = 8  # seconds for a statement, enforced by the server
SILENCE_TIMEOUT = 10  # seconds without a byte from the server, enforced by the client
CONNECT_TIMEOUT = 5  # seconds to establish a connection
CONNECTIONS = 10  # at most, in one process
POOL_TIMEOUT = 15  # seconds to wait for a free connection


class Connection(psycopg.Connection[Any]):
    """A connection that is closed when the server has been silent for too long."""

    def wait(self, gen: PQGen[RV], *arguments: Any, **options: Any) -> RV:
        """Return the result of an exchange with the server; raise an OperationalError after a long silence."""
        return super().wait(self._unless_silent(gen), *arguments, **options)

    def _unless_silent(self, gen: PQGen[RV]) -> Generator[Any, Any, RV]:
        try:
            wanted = next(gen)
            heard = time.monotonic()
            while True:
                ready = yield wanted
                if ready:
                    heard = time.monotonic()
                elif time.monotonic() - heard > SILENCE_TIMEOUT:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"the server has not answered for {SILENCE_TIMEOUT} seconds")
                wanted = gen.send(ready)
        except StopIteration as end:
            result: RV = end.value
            return result


def make_engine(url: URL) -> Engine:
    """Return an engine whose statements all end in bounded time, with a result or an error."""
    limits = f"-c statement_timeout={1000 * STATEMENT_TIMEOUT} -c lock_timeout={1000 * STATEMENT_TIMEOUT}"
    arguments = {
        "connect_timeout": CONNECT_TIMEOUT,
        "keepalives_idle": SILENCE_TIMEOUT,
        "tcp_user_timeout": 1000 * SILENCE_TIMEOUT,
        "options": limits,
    }
    engine = sa.create_engine(
        url,
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_timeout=POOL_TIMEOUT,
        pool_pre_ping=True,
        connect_args=arguments,
    )

    @sa.event.listens_for(engine, "do_connect")
    def connect(dialect: object, record: object, positional: Any, named: Any) -> Connection:
        return Connection.connect(*positional, **named)

    return engine
