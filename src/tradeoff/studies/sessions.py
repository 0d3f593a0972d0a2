"""Live sessions of one study, by token; the log in the store is authoritative.

Everything a session records is durable before it is acknowledged, and before the strategy sees it. Live sessions are a
cache that saves replaying the log for every answer. If a write fails, or another process wrote first, the live session is
dropped and read again.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

from tradeoff.errors import ArgumentError
from tradeoff.log import ACTIONS, Event, Reply
from tradeoff.stores import ConflictError, Store
from tradeoff.stores.base import NAME, missing
from tradeoff.strategies.cache import cache_of
from tradeoff.studies.compiled import kept
from tradeoff.studies.computing import BusyError, ComputeQueue
from tradeoff.studies.session import Session, TurnError, nowhere
from tradeoff.studies.study import Study, new_token

if TYPE_CHECKING:
    from tradeoff.sources import AnyProblem

Result = TypeVar("Result")
Page = Literal["state", "question", "result"]  # what is worked out: a state alone, or with what is drawn of it

LIVE = 2_000  # sessions kept in memory
REST = 600.0  # seconds after which an unused session is dropped from memory

REFUSED = (TurnError, ArgumentError, BusyError)  # raised only while the session agrees with the store


@dataclass(eq=False)
class _Live:
    """A session in memory, and how many of its events the store has."""

    token: str
    lock: threading.Lock = field(default_factory=threading.Lock)
    session: Session | None = None
    stored: int = 0
    used: float = 0.0  # when it was last used


class Helpers(Protocol):
    """Other processes that work out what pages need."""

    def start(self) -> bool:
        """Start them, unless they have been; return False if there are none."""

    def think(self, session: Session, page: Page) -> None:
        """Have one of them work out a page, and keep what it finds where this process looks first; it may find nothing."""


class Sessions:
    """The sessions of one study."""

    def __init__(
        self, study: Study, problem: AnyProblem, store: Store, *, live: int = LIVE, queue: ComputeQueue | None = None
    ) -> None:
        self.study, self.problem, self.store = study, problem, store
        self.begins_with = problem  # what new interviews are about: the problem, or a coverage of it
        self.compiling = ""  # what is to be said of that
        self._problems = {problem.fingerprint: problem}  # what interviews may be about
        self._opened: set[str] = set()  # those of which the first question is known
        self.queue = queue or ComputeQueue()
        self.helpers: Helpers | None = None
        self._most = live
        self._live: OrderedDict[str, _Live] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, caller: Hashable = None) -> str:
        """Return the token of a new session; its first question is in the store."""
        return self._new(caller, ask=True)

    def invite(self) -> str:
        """Return the token of a new session whose first question is asked when its link is opened."""
        return self._new(None, ask=False)

    def _new(self, caller: Hashable, *, ask: bool) -> str:
        token, settings, problem = new_token(), self.study.interview_settings(), self.begins_with
        # The first question is the same for everybody, and computed for the first of them. The others do not wait, but nobody
        # begins while too many wait for their next one.
        self.queue.check()
        with nullcontext() if problem.fingerprint in self._opened else self.queue.slot(caller or token):
            session = Session.begin(problem, checks=self.study.checks, sides=self.study.sides(token), **settings)
            if ask:
                session.work_out()
                session.ask()
                self._opened.add(problem.fingerprint)
        self.store.create(self.study.name, token, session.events)
        entry = self._entry(token)
        session.interview.thinking = lambda: self.queue.slot(caller or token)
        entry.session, entry.stored = session, len(session.events)
        return token

    @contextmanager
    def session(self, token: str, caller: Hashable = None, *, long: bool = False) -> Iterator[Session]:
        """Yield a person's session to one thread at a time; everything it records is stored immediately.

        ``caller`` is who takes turns in the compute queue, by default the person; ``long`` computations wait for others. A
        MissingError is raised for an unknown
        token, a TurnError if another process wrote at the same time.
        """
        if not NAME.fullmatch(token):
            raise missing(self.study.name, token[:40])
        entry, session = self._entry(token), None
        with entry.lock:
            try:
                session = current = self._current(entry)
                session.interview.thinking = lambda: self.queue.slot(caller or token, long=long)
                session.keep = lambda: self._append(entry, current)
                yield session
                session.keep()
            except REFUSED:
                raise
            except BaseException:
                entry.session = None
                raise
            finally:
                if session is not None:
                    session.keep = nowhere  # break the reference cycle, so that a dropped session is freed
                self._drop_if_changed(entry)

    @staticmethod
    def _drop_if_changed(entry: _Live) -> None:
        """Drop a session that differs from the store, since only what is stored counts."""
        if entry.session is None or entry.stored != len(entry.session.events):
            entry.session, entry.stored = None, 0

    def _append(self, entry: _Live, session: Session) -> None:
        new = session.events[entry.stored :]
        if not new:
            return
        try:
            self.store.append(self.study.name, entry.token, new, after=entry.stored)
        except ConflictError:
            # Another process wrote first: an answer is too late; a question only shown is shown again.
            if not ACTIONS.isdisjoint(event["event"] for event in new):
                raise TurnError("this question has already been answered") from None
            return
        entry.stored += len(new)

    def events(self, token: str) -> list[Event]:
        """Return a person's log from the store, without waiting for the session."""
        if not NAME.fullmatch(token):
            raise missing(self.study.name, token[:40])
        return self.store.read(self.study.name, token)

    def do(
        self, token: str, work: Callable[[Session], Result], caller: Hashable = None, *, long: bool = False
    ) -> Result:
        """Return the result of ``work(session)`` once everything it recorded is durable."""
        with self.session(token, caller, long=long) as session:
            return work(session)

    def at_once(
        self, token: str, turn: int | None, work: Callable[[Session], Result], quick: Callable[[Session], bool]
    ) -> tuple[Result, Future[None] | None] | None:
        """Do quick work without ever blocking, so that an event loop can call this; return None if it would block.

        Otherwise return the result and, if events were recorded, a future that is done once they are durable: send no
        reply before that. Until then the session stays locked. In a store shared by several processes, a session counts
        as up to date if it has reached ``turn``, the person's turn.
        """
        entry, later = self._live.get(token), getattr(self.store, "append_later", None)
        if entry is None or later is None or not entry.lock.acquire(blocking=False):
            return None
        with self._lock:
            if token in self._live:
                self._touch(entry)
        session, held = entry.session, True
        try:
            behind = self.store.shared and session is not None and (turn is None or session.turn < turn)
            if session is None or behind or not quick(session):
                return None
            result = work(session)
            new = session.events[entry.stored :]
            if not new:
                return result, None
            saved: Future[None] = later(self.study.name, token, new, after=entry.stored)
            held = False
            saved.add_done_callback(lambda done: self._saved(entry, session, done))
            return result, saved
        except REFUSED:
            raise
        except BaseException:
            entry.session = None
            raise
        finally:
            if held:
                self._drop_if_changed(entry)
                entry.lock.release()

    def ask_helpers(self, session: Session, page: Page) -> None:
        """Have another process work out a page, if there is one; call this while holding a turn to compute.

        The others are started the first time that somebody has to wait.
        """
        if self.helpers is not None and (not self.queue.waiting or self.helpers.start()):
            self.helpers.think(session, page)

    def told(self, token: str) -> Hashable | None:
        """Return what a person has said, which is what the next page depends on; None if the session is not in memory."""
        entry = self._live.get(token)
        session = None if entry is None else entry.session
        if session is None:
            return None
        return session.problem.fingerprint, tuple(repr(one.reply) for one in session.state.standing)

    def _saved(self, entry: _Live, session: Session, done: Future[None]) -> None:
        if done.exception() is None:
            entry.stored = len(session.events)
        self._drop_if_changed(entry)
        entry.lock.release()

    def answer(self, token: str, turn: int, reply: Reply) -> None:
        """Take an answer (None: skipped) to the question of a turn; it is durable when this returns."""
        self.do(token, lambda session: session.tell(turn, reply))

    def undo(self, token: str, number: int | None = None, turn: int | None = None) -> None:
        """Take back the last answer, or the one with this number; this is durable when it returns."""
        self.do(token, lambda session: session.undo(number, turn=turn))

    def begin_with(self, coverage: AnyProblem) -> None:
        """Let new interviews be about the study's coverage; those that have begun stay with what they began with."""
        self._problems[coverage.fingerprint] = coverage
        self.begins_with = coverage

    @property
    def solves(self) -> int:
        """How many directions the problem was solved for, to ask and to certify."""
        return sum(cache_of(problem).solved for problem in list(self._problems.values()))

    def problem_of(self, events: list[Event]) -> AnyProblem:
        """Return what an interview is about: the problem, or the coverage that this or another process has found."""
        about = events[0].get("problem") if events else None
        if about not in self._problems:
            coverage = kept(self.store, self.study, self.problem)
            if coverage is not None:
                self._problems[coverage.fingerprint] = coverage
        return self._problems.get(str(about), self.problem)  # where it is about neither, resuming says so

    def _entry(self, token: str) -> _Live:
        with self._lock:
            entry = self._live.setdefault(token, _Live(token))
            self._touch(entry)
            drop: list[str] = []
            most = len(self._live) - self._most
            for other in self._live.values():  # least recently used first
                if len(drop) >= most and other.used > entry.used - REST:
                    break
                if not other.lock.locked():  # not in use
                    drop.append(other.token)
            for other_token in drop:
                del self._live[other_token]
            return entry

    def _touch(self, entry: _Live) -> None:
        entry.used = time.monotonic()
        self._live.move_to_end(entry.token)

    def _current(self, entry: _Live) -> Session:
        """Return the session, brought up to date with the store."""
        if entry.session is None:
            try:
                events = self.store.read(self.study.name, entry.token)
            except BaseException:
                with self._lock:
                    self._live.pop(entry.token, None)  # guessed tokens must not fill the memory
                raise
            entry.session = Session.resume(self.problem_of(events), events, checks=self.study.checks)
            entry.stored = len(events)
        elif self.store.shared:
            new = self.store.read(self.study.name, entry.token, after=entry.stored)
            if new:
                entry.session.catch_up(new)
                entry.stored += len(new)
        assert entry.session is not None
        return entry.session
