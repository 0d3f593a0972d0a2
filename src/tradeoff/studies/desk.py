"""Where people are received: sessions by their token, kept in the store before anybody is told anything.

Live sessions are remembered, so that an answer costs one step and not a replay; the log in the store is the truth. If
something could not be written, or another process was quicker, the live session is forgotten and read again.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from tradeoff.errors import ArgumentError
from tradeoff.interview import Event
from tradeoff.model import Answer
from tradeoff.stores import ConflictError, Store
from tradeoff.stores.base import NAME, missing
from tradeoff.studies.session import ACTIONS, Session, TurnError
from tradeoff.studies.study import Study, new_token

if TYPE_CHECKING:
    from tradeoff.sources import AnyProblem

Result = TypeVar("Result")

LIVE = 2_000  # sessions remembered


@dataclass(eq=False)
class _Live:
    """A session in memory, and how many of its events the store has."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    session: Session | None = None
    kept: int = 0


class Desk:
    """One study's people."""

    def __init__(self, study: Study, problem: AnyProblem, store: Store, *, live: int = LIVE) -> None:
        self.study, self.problem, self.store = study, problem, store
        self._most = live
        self._live: OrderedDict[str, _Live] = OrderedDict()
        self._lock = threading.Lock()
        # As many at a time as there is something to compute with: who waits for the disk lets the next one in.
        self._computing = threading.BoundedSemaphore(os.cpu_count() or 1)

    def open(self) -> str:
        """Return the token of somebody who begins now; their log is begun with the first question."""
        token, session = self._new()
        session.ask()
        self._keep(token, session)
        return token

    def invite(self) -> str:
        """Return the token of somebody who will begin when they open their link."""
        token, session = self._new()
        self._keep(token, session)
        return token

    def _new(self) -> tuple[str, Session]:
        token, settings = new_token(), self.study.interview_settings()
        return token, Session.begin(self.problem, checks=self.study.checks, sides=self.study.sides(token), **settings)

    def _keep(self, token: str, session: Session) -> None:
        self.store.create(self.study.name, token, session.events)
        entry = self._entry(token)
        entry.session, entry.kept = session, len(session.events)

    @contextmanager
    def session(self, token: str) -> Iterator[Session]:
        """Give a person's session, alone; what happens to it is kept before the context ends.

        A MissingError is raised for a token that nobody has, a TurnError if another process wrote at the same time.
        """
        if not NAME.fullmatch(token):
            raise missing(self.study.name, token[:40])
        entry = self._entry(token)
        with entry.lock:
            try:
                session = self._current(token, entry)
                with self._computing:
                    yield session
                new = session.events[entry.kept :]
                if new:
                    self._append(token, new, entry)
            except (TurnError, ArgumentError):  # refused before anything was done
                raise
            except BaseException:  # whatever was half done
                entry.session = None
                raise
            finally:
                self._settle(entry)

    @staticmethod
    def _settle(entry: _Live) -> None:
        """Forget a session that is not exactly what the store has: what is in memory only never happened."""
        session = entry.session
        if session is None or not session.settled or entry.kept != len(session.events):
            entry.session, entry.kept = None, 0

    def _append(self, token: str, new: list[Event], entry: _Live) -> None:
        try:
            self.store.append(self.study.name, token, new, after=entry.kept)
        except ConflictError:
            # Another process was quicker. Who only looked will look again; an answer came too late.
            if not ACTIONS.isdisjoint(event["event"] for event in new):
                raise TurnError("this question was answered already") from None
            return
        entry.kept += len(new)

    def do(self, token: str, work: Callable[[Session], Result]) -> Result:
        """Return what some work with a person's session gives; what happens to it is durable when this returns."""
        with self.session(token) as session:
            return work(session)

    def at_once(
        self, token: str, turn: int | None, work: Callable[[Session], Result], quick: Callable[[Session], bool]
    ) -> tuple[Result, Future[None] | None] | None:
        """Do what takes no time without waiting for anything: an event loop can call this. Return None if it would wait.

        Otherwise return what the work gives and, if something is to be kept, what is done when it is durable: nobody may
        be told before. Until then the session is held. Where other processes write, too, a session is up to date for
        somebody who has come to this turn if it has come there itself.
        """
        entry, later = self._live.get(token), getattr(self.store, "append_later", None)
        if entry is None or later is None or not entry.lock.acquire(blocking=False):
            return None
        with self._lock:
            if token in self._live:
                self._live.move_to_end(token)
        session, held = entry.session, True
        try:
            behind = self.store.shared and session is not None and (turn is None or session.turn < turn)
            if session is None or behind or not quick(session):
                return None
            result = work(session)
            new = session.events[entry.kept :]
            if not new:
                return result, None
            saved: Future[None] = later(self.study.name, token, new, after=entry.kept)
            held = False
            saved.add_done_callback(lambda done: self._saved(entry, session, done))
            return result, saved
        except (TurnError, ArgumentError):  # refused before anything was done
            raise
        except BaseException:
            entry.session = None
            raise
        finally:
            if held:
                self._settle(entry)
                entry.lock.release()

    def _saved(self, entry: _Live, session: Session, done: Future[None]) -> None:
        if done.exception() is None:
            entry.kept = len(session.events)
        self._settle(entry)
        entry.lock.release()

    def answer(self, token: str, turn: int, reply: Answer | None) -> None:
        """Take an answer (None: skipped) to the question of a turn; it is durable when this returns."""
        with self.session(token) as session:
            session.tell(turn, reply)

    def undo(self, token: str, number: int | None = None, turn: int | None = None) -> None:
        """Take back the last answer, or one by its number; that is durable when this returns."""
        with self.session(token) as session:
            session.undo(number, turn=turn)

    def _entry(self, token: str) -> _Live:
        with self._lock:
            entry = self._live.setdefault(token, _Live())
            self._live.move_to_end(token)
            for other in list(self._live)[: max(0, len(self._live) - self._most)]:
                if not self._live[other].lock.locked():  # who is being served is not forgotten
                    del self._live[other]
            return entry

    def _current(self, token: str, entry: _Live) -> Session:
        """Return the session as the store has it."""
        if entry.session is None:
            try:
                events = self.store.read(self.study.name, token)
            except BaseException:
                with self._lock:
                    self._live.pop(token, None)  # whoever guesses tokens fills no memory
                raise
            with self._computing:
                entry.session = Session.resume(self.problem, events, checks=self.study.checks)
            entry.kept = len(events)
        elif self.store.shared:
            new = self.store.read(self.study.name, token, after=entry.kept)
            if new:
                with self._computing:
                    entry.session.catch_up(new)
                entry.kept += len(new)
        return entry.session
