"""A store that is lost when the program ends, for tests and experiments."""

from __future__ import annotations

import json
import threading

from tradeoff.log import Event
from tradeoff.stores.base import Events, Store, check_new, conflict, lines_of, missing


class InMemoryStore(Store):
    """Logs in memory. Events are kept as text, so that a caller cannot change them afterwards."""

    def __init__(self) -> None:
        self._logs: dict[tuple[str, str], list[str]] = {}
        self._lock = threading.Lock()

    def create(self, folder: str, name: str, events: Events) -> None:
        """Begin a log."""
        key, lines = check_new(folder, name, events), lines_of(events)
        with self._lock:
            if key in self._logs:
                raise conflict(folder, name)
            self._logs[key] = lines

    def append(self, folder: str, name: str, events: Events, *, after: int) -> None:
        """Add events to a log."""
        lines = lines_of(events)
        with self._lock:
            log = self._log(folder, name)
            if len(log) != after:
                raise conflict(folder, name)
            log += lines

    def read(self, folder: str, name: str, *, after: int = 0) -> list[Event]:
        """Return the events of a log."""
        with self._lock:
            return [json.loads(line) for line in self._log(folder, name)[after:]]

    def names(self, folder: str) -> list[str]:
        """Return the names of a folder's logs."""
        with self._lock:
            return [name for where, name in self._logs if where == folder]

    def lengths(self, folder: str) -> dict[str, int]:
        """Return how many events each log of a folder has."""
        with self._lock:
            return {name: len(lines) for (where, name), lines in self._logs.items() if where == folder}

    def _log(self, folder: str, name: str) -> list[str]:
        if (folder, name) not in self._logs:
            raise missing(folder, name)
        return self._logs[folder, name]
