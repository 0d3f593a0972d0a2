"""How far every participant of a study is, kept up to date by reading only the logs that grew since the last look."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tradeoff.stores import DamagedError, Log, Store
from tradeoff.studies.export import participant_rows, unreadable

if TYPE_CHECKING:
    from tradeoff.sources import AnyProblem

FEW = 100  # logs that are read one by one; more are read together


@dataclass(frozen=True)
class Person:
    """One participant, or why their log cannot be read (``damage``)."""

    token: str
    begun: str | None = None
    last: str | None = None
    answers: int = 0
    finished: bool = False
    failed: tuple[str, ...] = ()  # attention checks
    damage: str = ""


class Progress:
    """The participants of one study in the order they were begun."""

    def __init__(self, store: Store, study: str, problem: AnyProblem) -> None:
        self._store, self._study, self._problem = store, study, problem
        self._known: dict[str, tuple[int, Person]] = {}  # by token: the length of the log, and what it says
        self._lock = threading.Lock()
        self.logs_read = 0

    def version(self) -> str:
        """Return a text that changes when a log is begun or grows."""
        return _version(self._store.lengths(self._study))

    def people(self) -> tuple[str, list[Person]]:
        """Return the version and all participants."""
        with self._lock:
            lengths = self._store.lengths(self._study)
            changed = [name for name, length in lengths.items() if self._length(name) != length]
            for name, person in self._read(changed).items():
                self._known[name] = lengths[name], person
            if len(self._known) > len(lengths):  # a participant was deleted
                self._known = {name: self._known[name] for name in lengths}
            return _version(lengths), [self._known[name][1] for name in lengths]

    def _length(self, name: str) -> int | None:
        known = self._known.get(name)
        return None if known is None or known[1].damage else known[0]  # what is damaged may be repaired

    def _read(self, names: list[str]) -> dict[str, Person]:
        logs = self._logs(names)
        self.logs_read += len(logs)
        order = list(logs)
        people = {}
        for row in participant_rows(self._problem, logs):
            token = order[row["participant"] - 1]
            failed = tuple(check for check in ("dominated", "repeat") if row[f"check {check}"] == "failed")
            people[token] = Person(token, row["begun"], row["last"], row["answers"], row["finished"], failed)
        rest = {name: log for name, log in logs.items() if name not in people}
        for number, reason in unreadable(self._problem, rest).items():
            token = list(rest)[number - 1]
            people[token] = replace(Person(token), damage=reason)
        return people

    def _logs(self, names: list[str]) -> dict[str, Log]:
        if len(names) > FEW:
            every = self._store.logs(self._study)
            return {name: every[name] for name in names}
        found: dict[str, Log] = {}
        for name in names:
            try:
                found[name] = self._store.read(self._study, name)
            except DamagedError as error:
                found[name] = error
        return found


def _version(lengths: dict[str, int]) -> str:
    return hashlib.blake2b(repr(lengths).encode(), digest_size=12).hexdigest()
