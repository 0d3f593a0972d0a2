"""A PostgreSQL server for the tests, in a temporary folder; it is gone when they end, however they end."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import processes

USER = "postgres"
GUARDED = "guarded"  # the only user who needs a password


def programs() -> Path | None:
    """Return the folder of PostgreSQL's programs; Debian does not put them where others are."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


class Cluster:
    """A server that can be stopped and started; its address lacks the database: add the name of one."""

    def __init__(self, home: Path) -> None:
        folder = programs()
        assert folder is not None, "PostgreSQL is not installed"
        self.folder, self.home = folder, home
        self._as_user: list[str] = []
        if os.geteuid() == 0:  # the server refuses to run as root
            shutil.chown(home, USER)
            # Not everybody who is root has the folder of root's programs in their path.
            found = shutil.which("runuser", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
            self._as_user = [found or "runuser", "-u", USER, "--"]
        self.port = processes.reserved_port()  # also while it is stopped
        self.address = f"postgresql://{USER}@127.0.0.1:{self.port}"
        self._call("initdb", "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync")
        access = home / "data" / "pg_hba.conf"
        access.write_text(f"host all {GUARDED} all scram-sha-256\n{access.read_text()}")

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.home}"
        self._call("pg_ctl", "-o", options, "-l", f"{self.home}/log", "-t", str(processes.PATIENCE), "-w", "start")

    def stop(self) -> None:
        """As a crash of its machine would: connections break, and what was committed is there after the next start."""
        self._call("pg_ctl", "-m", "immediate", "-t", str(processes.PATIENCE), "-w", "stop")

    def _call(self, program: str, *words: str) -> None:
        """Run one of its programs; the server itself stays, so these are no ``processes.run``."""
        call = [*self._as_user, f"{self.folder}/{program}", "-D", f"{self.home}/data", *words]
        said = self.home / f"{program}.txt"  # a file, because the server would keep a pipe open
        with said.open("wb") as out:
            done = subprocess.run(call, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self.home, check=False)
        log = self.home / "log"
        assert done.returncode == 0, said.read_text() + (log.read_text() if log.exists() else "")


@contextmanager
def cluster() -> Iterator[Cluster]:
    """Give a running server of one's own."""
    home = Path(tempfile.mkdtemp(prefix="tradeoff-pg-"))
    processes.remove_at_the_end(home)
    try:
        made = Cluster(home)
        made.start()
        try:
            yield made
        finally:
            if (home / "data" / "postmaster.pid").exists():
                made.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def server() -> Iterator[str]:
    """Give the address of a running server without its database: add the name of one."""
    with cluster() as made:
        yield made.address


def new_database(address: str, name: str) -> str:
    """Return the address of a fresh database on the server."""
    import psycopg

    with psycopg.connect(f"{address}/postgres", autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return f"{address}/{name}"
