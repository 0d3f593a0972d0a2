"""A PostgreSQL server of the tests' own, in a temporary folder, gone when they end."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

USER = "postgres"


def programs() -> Path | None:
    """Return the folder of PostgreSQL's programs; Debian does not put them where others are."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


@contextmanager
def server() -> Iterator[str]:
    """Give the address of a running server without its database: add the name of one."""
    folder = programs()
    assert folder is not None, "PostgreSQL is not installed"
    home = Path(tempfile.mkdtemp(prefix="tradeoff-pg-"))
    as_user: list[str] = []
    if os.geteuid() == 0:  # the server refuses to run as root
        shutil.chown(home, USER)
        as_user = ["runuser", "-u", USER, "--"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={home}"

    def call(*words: str) -> None:
        subprocess.run([*as_user, *words], check=True, cwd=home, stdout=subprocess.DEVNULL)

    try:
        call(f"{folder}/initdb", "-D", f"{home}/data", "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync")
        call(f"{folder}/pg_ctl", "-D", f"{home}/data", "-o", options, "-l", f"{home}/log", "-w", "start")
        try:
            yield f"postgresql://{USER}@127.0.0.1:{port}"
        finally:
            call(f"{folder}/pg_ctl", "-D", f"{home}/data", "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)


def new_database(address: str, name: str) -> str:
    """Return the address of a fresh database on the server."""
    import psycopg

    with psycopg.connect(f"{address}/postgres", autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return f"{address}/{name}"
