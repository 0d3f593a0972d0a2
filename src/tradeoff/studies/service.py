"""The participants of one study: begin, ask, answer, undo. It knows no HTTP.

The log in the store is authoritative. Everything a participant does is durable before it is acknowledged, and before anything
is computed from it. Sessions in memory are a cache that saves reading the log for every request. If a write fails, or another
process wrote first, the session is dropped and read again.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from cachetools import LRUCache

from tradeoff.errors import ArgumentError, StoreError
from tradeoff.log import ACTIONS, Asked, Event, LogState, Stated
from tradeoff.model import Reply
from tradeoff.stores import ConflictError, DamagedError, MissingError, Store
from tradeoff.stores.base import NAME, missing
from tradeoff.studies.compute import BusyError, Compute, Job, SlowError
from tradeoff.studies.coverage import stored_coverage
from tradeoff.studies.session import Prompt, Session, TurnError, View
from tradeoff.studies.study import Study, new_token

if TYPE_CHECKING:
    from tradeoff.sources import AnyProblem

Result = TypeVar("Result")

log = logging.getLogger("tradeoff.studies")

LIVE = 2_000  # sessions in memory
DISK_THREADS = 16
NEAR = 2  # participants whose first answers agree are served by the same worker, which knows what follows those

REFUSED = (TurnError, ArgumentError, BusyError, SlowError)  # raised only while the session agrees with the store


@dataclass(frozen=True, eq=False)
class Context:
    """What a job needs, in the process that computes it: a study and what its interviews may be about."""

    study: Study
    problems: dict[str, AnyProblem]  # by fingerprint

    @classmethod
    def of(cls, store: Store, study: Study, problem: AnyProblem) -> Context:
        """Return the context of a study: its problem, and the coverage that an earlier version may have stored with it."""
        coverage = None
        try:
            coverage = stored_coverage(store, study, problem)
        except DamagedError as error:  # most participants do not need it
            log.error("%s", error)
        return cls(study, {one.fingerprint: one for one in (problem, coverage) if one is not None})

    def problem(self, fingerprint: object) -> AnyProblem:
        """Return the problem with this fingerprint, or the study's own: where it is neither, resuming says so."""
        return self.problems.get(str(fingerprint), next(iter(self.problems.values())))

    def session(self, events: list[Event]) -> Session:
        """Return the session that wrote these events."""
        return Session.resume(self.problem(events[0].get("problem")), events, checks=self.study.checks)


def compute_view(context: Context, events: list[Event]) -> View:
    """Job: return what follows from a participant's answers."""
    return context.session(events).view()


def answers_key(state: LogState) -> bytes:
    """Return a key that is the same for participants with the same problem, settings and answers."""
    header = state.header
    parts: list[Any] = [header.format, header.problem, header.strategy, header.settings]
    for given in state.given:
        shown = given.shown
        asked = (shown.differences, shown.outcomes) if isinstance(shown, Stated) else (shown.options, shown.asks)
        parts.append((given.kind, asked, given.number, given.reply, given.undone))
    return hashlib.sha256(repr(parts).encode()).digest()


@dataclass(eq=False)
class _Live:
    """A session in memory, and how many of its events the store has."""

    token: str
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    session: Session | None = None
    stored: int = 0


@dataclass(frozen=True, eq=False)
class ParticipantState:
    """Where a participant stands: the question to answer, if they have begun and one is left."""

    begun: bool
    turn: int
    answered: int
    prompt: Prompt | None = None
    view: View | None = None
    fingerprint: str = ""  # of the problem that the interview is about
    near: bytes = b""  # decides which worker computes for this participant


class StudyService:
    """The participants of one study; all methods that wait are coroutines."""

    def __init__(self, study: Study, problem: AnyProblem, store: Store, compute: Compute) -> None:
        self.study, self.problem, self.store, self.compute = study, problem, store, compute
        self._context: Context | None = None
        self._live: LRUCache[str, _Live] = LRUCache(LIVE)
        self._disk = ThreadPoolExecutor(DISK_THREADS, thread_name_prefix="tradeoff disk")

    async def on_disk(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Return the result of work that waits for the disk or a database."""
        return await asyncio.get_running_loop().run_in_executor(self._disk, partial(work, *arguments))

    # --- beginning ----------------------------------------------------------------------------------------------------

    def invite(self, key: str | None = None) -> str:
        """Return the token of a new session, or of the one that this ``key`` made; nothing is asked yet.

        It waits for the store, and can be called without an event loop.
        """
        token = new_token() if key is None else self.study.token_of("begin", key)
        if key is not None and self._exists(token):
            return token
        settings = self.study.interview_settings()
        order_seed = self.study.order_seed(token)
        session = Session.begin(self.problem, checks=self.study.checks, order_seed=order_seed, **settings)
        try:
            self.store.create(self.study.name, token, session.events)
        except ConflictError:
            if key is None:
                raise  # else another process received the same request
        return token

    def _exists(self, token: str) -> bool:
        try:
            return bool(self.store.read(self.study.name, token))
        except MissingError:
            return False

    async def begin(self, caller: Hashable = None, key: str | None = None) -> str:
        """Return the token of a new session; its first question is in the store.

        A ``key`` names the request: when it is sent again, to any process, the session that it began is returned.
        """
        self.compute.check()  # nobody begins while too many wait for their next question
        token = await self.on_disk(self.invite, key)
        await self.question(token, caller, begin=True)
        return token

    # --- asking and answering -----------------------------------------------------------------------------------------

    async def question(self, token: str, caller: Hashable = None, *, begin: bool = False) -> ParticipantState:
        """Return the question to be answered now, and record that it was shown.

        Unless ``begin``, nothing is asked before the participant has begun.
        """
        async with self._session(token) as live:
            session = _current(live)
            if not (begin or session.begun):
                return ParticipantState(False, session.turn, session.answered)
            view = await self._view(session, caller or token)
            prompt = session.ask(view)
            await self._append(live)
            fingerprint = session.interview.problem.fingerprint
            return ParticipantState(True, session.turn, session.answered, prompt, view, fingerprint, _near(session))

    async def _view(self, session: Session, caller: Hashable) -> View:
        key = "view", answers_key(session.state)
        view: View = await self.compute.get(key, compute_view, session.events, near=_near(session), caller=caller)
        return view

    async def answer(self, token: str, turn: int, read: Callable[[Asked], Reply]) -> int:
        """Record the reply to the question of a turn, durable when this returns; return the next turn.

        ``read`` returns the reply, by places, given the question as it was shown.
        """
        async with self._session(token) as live:
            session = _current(live)
            if turn == session.turn and session.state.shown is None:
                prompt = session.ask(await self._view(session, token)) if session.begun else None
                if prompt is None:
                    raise TurnError("this question was not asked")
            session.tell(turn, read(session.shown(turn)))
            self._ask_if_cached(session)
            await self._append(live)
            return session.turn

    def _ask_if_cached(self, session: Session) -> None:
        """Ask the next question if it is known, so that it is stored together with the answer."""
        view = self.compute.cached(("view", answers_key(session.state)))
        if view is not None:
            session.ask(view)

    async def undo(self, token: str, number: int | None = None, turn: int | None = None) -> None:
        """Undo the last answer, or the one with this number; durable when this returns."""
        async with self._session(token) as live:
            _current(live).undo(number, turn=turn)
            await self._append(live)

    async def add_statement(self, token: str, text: str, turn: int | None = None) -> None:
        """Record a statement; durable when this returns."""
        async with self._session(token) as live:
            _current(live).know(text, turn=turn)
            await self._append(live)

    # --- looking ------------------------------------------------------------------------------------------------------

    async def events(self, token: str) -> list[Event]:
        """Return a participant's log from the store."""
        if not NAME.fullmatch(token):
            raise missing(self.study.name, token[:40])
        return await self.on_disk(self.store.read, self.study.name, token)

    async def result(self, token: str, job: Job, *arguments: Any, caller: Hashable = None) -> Any:
        """Return the result of ``job(context, events, *arguments)`` about a participant who has begun, else None."""
        async with self._session(token) as live:
            session = _current(live)
            if not session.begun:
                return None
            events, near = session.events, _near(session)
            # Which place an option had is part of what some jobs return.
            key = (
                job.__name__,
                answers_key(session.state),
                session.interview.order_seed,
                arguments,
            )
        return await self.compute.get(key, job, events, *arguments, near=near, caller=caller or token)

    # --- sessions in memory -------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _session(self, token: str) -> AsyncIterator[_Live]:
        """Yield a participant's session to one request at a time, brought up to date with the store.

        A MissingError is raised for an unknown token.
        """
        if not NAME.fullmatch(token):
            raise missing(self.study.name, token[:40])
        live = self._live.setdefault(token, _Live(token))
        async with live.lock:
            try:
                await self._load(live)
                yield live
            except REFUSED:
                raise
            except BaseException:
                live.session = None
                raise
            finally:
                if live.session is None or live.stored != len(live.session.events):
                    live.session, live.stored = None, 0  # only what is stored counts

    async def _load(self, live: _Live) -> None:
        if live.session is None:
            try:
                events = await self.on_disk(self.store.read, self.study.name, live.token)
            except BaseException:
                self._live.pop(live.token, None)  # guessed tokens must not fill the memory
                raise
            if self._context is None:
                self._context = await self.on_disk(Context.of, self.store, self.study, self.problem)
            live.session, live.stored = self._context.session(events), len(events)
        elif self.store.shared:
            new = await self.on_disk(partial(self.store.read, self.study.name, live.token, after=live.stored))
            if new:
                live.session.catch_up(new)
                live.stored += len(new)

    async def _append(self, live: _Live) -> None:
        """Store what a session has recorded."""
        session = _current(live)
        new = session.events[live.stored :]
        if not new:
            return
        writing = self.store.append_later(self.study.name, live.token, new, after=live.stored)
        try:
            await asyncio.shield(asyncio.wrap_future(writing))
        except ConflictError:
            # Another process wrote first: an answer is too late; a question only shown is shown again.
            if _acts(new):
                raise TurnError("something was answered, stated or undone in another window at the same time") from None
            return
        except StoreError as error:
            if _acts(new) or not session.state.given:
                raise
            # Everything that the participant did is stored; the question is asked again.
            log.warning("a question is not stored yet: %s", error)
            return
        live.stored += len(new)


def _current(live: _Live) -> Session:
    assert live.session is not None
    return live.session


def _near(session: Session) -> bytes:
    """Return what decides which worker computes for a participant: the first answers."""
    return repr([given.reply for given in session.state.standing[:NEAR]]).encode()


def _acts(events: list[Event]) -> bool:
    """Return whether a participant did something in these events: answered, stated or undid."""
    return not ACTIONS.isdisjoint(event["event"] for event in events)
