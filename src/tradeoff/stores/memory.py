"""A store that lasts as long as the program: for tests and for trying things out."""

from __future__ import annotations

import json
import threading

from tradeoff.log import Event
from tradeoff.stores.base import Closing, Events, Log, check_name, conflict, missing


class Memory(Closing):
    """Logs in memory. Events are kept as text, so that nobody holds a part of one."""

    def __init__(self) -> None:
        self._logs: dict[tuple[str, str], list[str]] = {}
        self._lock = threading.Lock()

    def create(self, folder: str, name: str, events: Events) -> None:
        """Begin a log."""
        key = check_name("folder", folder), check_name("log", name)
        lines = [json.dumps(dict(event), allow_nan=False) for event in events]
        with self._lock:
            if key in self._logs:
                raise conflict(folder, name)
            self._logs[key] = lines

    def append(self, folder: str, name: str, events: Events, *, after: int) -> None:
        """Add to a log."""
        lines = [json.dumps(dict(event), allow_nan=False) for event in events]
        with self._lock:
            log = self._log(folder, name)
            if len(log) != after:
                raise conflict(folder, name)
            log += lines

    def read(self, folder: str, name: str, *, after: int = 0) -> list[Event]:
        """Return a log's events."""
        with self._lock:
            return [json.loads(line) for line in self._log(folder, name)[after:]]

    def names(self, folder: str) -> list[str]:
        """Return the names of a folder's logs."""
        with self._lock:
            return [name for where, name in self._logs if where == folder]

    def logs(self, folder: str) -> dict[str, Log]:
        """Return all logs of a folder."""
        return {name: self.read(folder, name) for name in self.names(folder)}  # in memory nothing is damaged

    def lengths(self, folder: str) -> dict[str, int]:
        """Return how many events each log of a folder has."""
        with self._lock:
            return {name: len(lines) for (where, name), lines in self._logs.items() if where == folder}

    @property
    def shared(self) -> bool:
        """Whether other processes may write at the same time."""
        return False

    def _log(self, folder: str, name: str) -> list[str]:
        if (folder, name) not in self._logs:
            raise missing(folder, name)
        return self._logs[folder, name]
