"""Processes that make the pages that people see next, so that the one that serves them stays free to reply.

A thinker is sent a log, makes the next page from it, and sends back what was new on the way: states of the interview, names of
plans, parts of the page. Here they are put where they are looked up before anything is computed. So thinkers change nothing
but the time: without them, or when one fails, this process computes the same itself.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import pickle
import signal
import threading
import time
import zlib
from collections.abc import Callable, Hashable, Iterator
from multiprocessing import AuthenticationError, current_process
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

from tradeoff.apps.web import pages
from tradeoff.apps.web.compiling import REST, drawn_ahead
from tradeoff.apps.web.health import Figures, memory, tell_others
from tradeoff.apps.web.processes import Workers
from tradeoff.apps.web.rendering import render_cache
from tradeoff.errors import TradeoffError
from tradeoff.keeping import Kept
from tradeoff.log import Event
from tradeoff.model import Alternative
from tradeoff.presentation.plans import names_of
from tradeoff.sources import AnyProblem
from tradeoff.strategies.cache import cache_of
from tradeoff.studies import Page, Session, Sessions
from tradeoff.studies.compiled import kept

log = logging.getLogger("tradeoff.web")

MOST = 4  # processes; each has the model and 128 MB of states of its own
ALIKE = 2  # people with the same first answers are thought about by the same process, which knows what came before
WAIT = 0.1  # seconds between two looks for a free place
LESS = 5  # by how much their priority is lower than that of the process that replies
NUMBERED = 20_000  # alternatives that are sent once and named by their number after that

Found = list[tuple[str, Hashable, Any]]  # what is new: in which of the caches, under which key


def spare_cores(workers: int) -> int:
    """Return for how many thinkers there is room beside so many processes that serve."""
    return max(0, min(MOST, (os.cpu_count() or 1) - 1)) if workers == 1 else 0


class Thinkers:
    """The thinkers of this process."""

    def __init__(self, work: Callable[..., None], given: tuple[object, ...], count: int) -> None:
        """``work(*given, address)`` calls ``think`` with that address, in each of ``count`` processes."""
        self._work, self._given = work, given
        self._lines: list[_Line | None] = [None] * count
        self._lock = threading.Lock()
        self._workers: Workers | None = None
        self._listener: Listener | None = None

    def start(self) -> bool:
        """Start them, unless they have been; return False if there are none."""
        with self._lock:
            if self._workers is not None or not self._lines:
                return bool(self._lines)
            self._listener = Listener(authkey=bytes(current_process().authkey))
            threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()
            self._workers = Workers(self._work, (*self._given, self._listener.address), len(self._lines))
            return True

    def _accept(self, listener: Listener) -> None:
        while True:
            try:
                connection = listener.accept()
            except (AuthenticationError, EOFError, ConnectionError):
                continue
            except OSError:  # closed
                return
            while not self._admitted(connection):
                time.sleep(WAIT)

    def _admitted(self, connection: Connection) -> bool:
        """Give a new thinker the place of one that is gone; return False while there is none."""
        with self._lock:
            place = next((i for i, line in enumerate(self._lines) if line is None or line.gone()), None)
            if place is not None:
                self._lines[place] = _Line(connection)
            return place is not None

    def think(self, session: Session, page: Page) -> None:
        """Have a thinker make a page, and keep what it finds; if none is there, do nothing."""
        if self._workers is None:
            return
        first = repr([one.reply for one in session.state.standing[:ALIKE]]).encode()
        place = zlib.crc32(first) % len(self._lines)
        line = self._lines[place]
        if line is None:
            return
        try:
            found = line.ask(session.events, page)
        except Exception as error:  # it has died, or cannot be understood; the next one takes its place
            log.info("a thinker is given up: %r", error)
            with self._lock:
                if self._lines[place] is line:
                    self._lines[place] = None
            line.connection.close()
            return
        caches = _caches(session.problem)
        for name, key, value in found:
            caches[name].keep(key, value)

    def leave(self) -> None:
        """Let them end; nobody is replaced."""
        if self._workers is not None:
            self._workers.leave()

    def stop(self) -> None:
        """End them all."""
        if self._workers is not None:
            self._workers.stop()
        if self._listener is not None:
            self._listener.close()


def _caches(problem: AnyProblem) -> dict[str, Kept[Any, Any]]:
    """Return all that is looked up before a page is made, by names that two processes have in common."""
    return {
        "states": cache_of(problem).states,
        "names": names_of(problem),
        "parts": render_cache(problem).parts,
    }


class _Line:
    """The way to one thinker, for one request at a time."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._alternatives: list[Alternative] = []
        self._lock = threading.Lock()

    def gone(self) -> bool:
        """Return whether nobody is there; while something is being asked, that shows by itself."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            return self.connection.poll()  # a thinker that is not asked says nothing, so this can only be the end
        except OSError:
            return True
        finally:
            self._lock.release()

    def ask(self, events: list[Event], page: Page) -> Found:
        with self._lock:
            self.connection.send((events, page))
            fresh, new, content = self.connection.recv()
            if fresh:
                self._alternatives = []
            self._alternatives += new
            return _Unpickler(content, self._alternatives).load()  # type: ignore[no-any-return]


# --- in a thinker ----------------------------------------------------------------------------------------------------


def think(sessions: Sessions, address: Any, figures: Path | None = None) -> None:
    """Make the pages that are asked for at an address, until nobody is there any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one ends this
    with contextlib.suppress(AttributeError, OSError):  # Windows has no such priorities
        os.nice(LESS)
    sessions.problem.threads = 1
    tell_others(figures, lambda: Figures(solves=sessions.solves, memory=memory()))
    coverage = None
    with contextlib.suppress(TradeoffError):  # the process that serves says what is wrong
        coverage = kept(sessions.store, sessions.study, sessions.problem)
    pages.warm_up(sessions.study, sessions.problem if coverage is None else coverage)
    ahead = iter(()) if coverage is None else drawn_ahead(coverage)
    numbers = _Numbers()
    with contextlib.suppress(EOFError, OSError), Client(address, authkey=bytes(current_process().authkey)) as line:
        while True:
            while not line.poll(REST) and next(ahead, None) is not None:
                pass
            events, page = line.recv()
            line.send(numbers.packed(_made(sessions, events, page)))


def _made(sessions: Sessions, events: list[Event], page: Page) -> Found:
    """Make a page, and return all that was new on the way."""
    found: Found = []
    try:
        problem = sessions.problem_of(events)
        with _watched(problem, found):
            session = Session.resume(problem, events, checks=sessions.study.checks)
            pages.prepare(sessions, session, page)
    except Exception:  # whoever asked computes it as well, and says what is wrong
        log.info("a page could not be made", exc_info=True)
    return found


@contextlib.contextmanager
def _watched(problem: AnyProblem, found: Found) -> Iterator[None]:
    """Add to ``found`` whatever is kept of a problem."""
    caches = _caches(problem)
    for name, cache in caches.items():
        cache.watch = lambda key, value, name=name: found.append((name, key, value))
    try:
        yield
    finally:
        for cache in caches.values():
            cache.watch = None


class _Numbers:
    """Numbers alternatives, which hundreds of states have in common, so that each is sent only once."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}  # by identity
        self._alternatives: list[Alternative] = []  # keeps them alive, so that no other one has their identity

    def packed(self, found: Found) -> tuple[bool, list[Alternative], bytes]:
        """Return whether to forget all numbers, the alternatives that are new, and the content."""
        fresh = len(self._alternatives) > NUMBERED
        if fresh:
            self._numbers, self._alternatives = {}, []
        before = len(self._alternatives)
        content = io.BytesIO()
        try:
            _Pickler(content, self._number).dump(found)
        except Exception as error:  # somebody's own strategy may keep what cannot be sent
            log.info("what was found cannot be sent: %r", error)
            self._numbers, self._alternatives = {}, []
            return True, [], pickle.dumps([])
        return fresh, self._alternatives[before:], content.getvalue()

    def _number(self, alternative: Alternative) -> int:
        number = self._numbers.setdefault(id(alternative), len(self._alternatives))
        if number == len(self._alternatives):
            self._alternatives.append(alternative)
        return number


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, number: Callable[[Alternative], int]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._number = number

    def persistent_id(self, obj: Any) -> int | None:
        return self._number(obj) if type(obj) is Alternative else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, content: bytes, alternatives: list[Alternative]) -> None:
        super().__init__(io.BytesIO(content))
        self._alternatives = alternatives

    def persistent_load(self, pid: int) -> Alternative:
        return self._alternatives[pid]
