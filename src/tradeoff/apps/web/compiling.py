"""Compiling in the background: a process of low priority looks for a coverage of the model while people answer.

Every process that serves the study notices when one is kept beside it, and lets new interviews begin with it.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tradeoff.apps.web.pages import warm_up
from tradeoff.apps.web.processes import start_uninterrupted
from tradeoff.apps.web.rendering import render_cache
from tradeoff.covering import cover
from tradeoff.errors import StoreError, TradeoffError
from tradeoff.model import Alternative
from tradeoff.presentation.plans import guide
from tradeoff.problems.coverage import Coverage
from tradeoff.sources import AnyProblem
from tradeoff.stores import DamagedError, Store
from tradeoff.studies import Sessions, Study
from tradeoff.studies.compiled import SECONDS, content_of, keep, kept, tolerance_for
from tradeoff.studies.computing import BusyError

LOOK_AFTER = 2.0  # seconds between two checks for a coverage that another process has stored
LOWEST = 19  # priority
AHEAD = 300  # plans that are drawn ahead, of some 130 KB each
REST = 0.05  # seconds between two plans that are drawn ahead
NOT_REACHED = 5  # exit code

log = logging.getLogger("tradeoff.web")


def begin_with_kept(sessions: Sessions) -> bool:
    """Let new interviews begin with the coverage that is kept beside the study; return False if there is none."""
    coverage = kept(sessions.store, sessions.study, sessions.problem)
    if coverage is None:
        return False
    warm_up(sessions.study, coverage)  # the first to begin with it does not wait
    sessions.begin_with(coverage)
    if sessions.helpers is None or not sessions.helpers.start():
        threading.Thread(target=_draw_ahead, args=(sessions, coverage), name="tradeoff drawing", daemon=True).start()
    count = len(coverage.plans.values)
    sessions.compiling = (
        f"compiled: new interviews use {count:,} plan{'s' * (count != 1)}, proved to miss at most "
        f"{coverage.guarantee_text} of the best possible gain"
    )
    return True


def _draw_ahead(sessions: Sessions, coverage: Coverage) -> None:
    """Draw the plans one at a time, while nothing else is computed."""
    ahead, queue, left = drawn_ahead(coverage), sessions.queue, True
    while left:
        while queue.busy:
            time.sleep(REST)
        with contextlib.suppress(BusyError), queue.slot("drawing ahead", long=True):
            left = next(ahead, None) is not None
        time.sleep(REST)  # for what does not go through the queue


def drawn_ahead(coverage: Coverage) -> Iterator[Alternative]:
    """Draw the plans, one when the next is asked for, so that nobody has to wait for the drawing of a plan."""
    cache = render_cache(coverage)
    for alternative in coverage.alternatives[:AHEAD]:
        cache.lottery(alternative)
        guide(coverage, alternative)
        yield alternative


def follow(sessions: Sessions) -> None:
    """Wait in a thread for a coverage, whichever process finds it."""
    sessions.compiling = "not compiled yet: interviews solve the model"
    threading.Thread(target=_follow, args=(sessions,), name="tradeoff coverage", daemon=True).start()


def _follow(sessions: Sessions) -> None:
    while True:
        time.sleep(LOOK_AFTER)
        try:
            if begin_with_kept(sessions):
                return
        except DamagedError as error:
            log.error("%s", error)
            return
        except StoreError:
            continue  # the next check may succeed; requests report a store that cannot be reached
        except Exception:
            log.exception("the compiled plans cannot be used; interviews solve the model")
            return


class Compiler:
    """A process that looks for a coverage, at the lowest priority. It ends with this one."""

    def __init__(
        self, store: Store, study: Study, read: Callable[..., AnyProblem], given: tuple[object, ...],
        say: Callable[[str], None],
    ) -> None:  # fmt: skip
        """``read(*given)`` returns the model, in that process."""
        self._store, self._study, self._say = store, study, say
        self._folder = tempfile.TemporaryDirectory(prefix="tradeoff-")
        self._path = Path(self._folder.name) / "plans.npz"
        arguments = (os.getpid(), study, read, given, str(self._path))
        self._process = multiprocessing.get_context("spawn").Process(target=_compile, args=arguments, daemon=True)
        self._stopping = False
        self._thread = threading.Thread(target=self._wait, daemon=True)

    def start(self) -> None:
        """Begin, and say so."""
        if self._stopping:
            return
        self._say(
            "Compiling in the background, so that people wait less. Whoever begins after that is asked about plans that are "
            "proved to be enough."
        )
        start_uninterrupted(self._process)
        self._thread.start()

    def _wait(self) -> None:
        self._process.join()
        if self._stopping:
            return
        try:
            if self._process.exitcode == 0:
                keep(self._store, self._study, self._path.read_bytes())
                self._say("Compiled. New interviews use it; those that have begun go on as before.")
            elif self._process.exitcode == NOT_REACHED:
                self._say(
                    f"Not compiled: {SECONDS / 60:g} minutes were not enough. Interviews solve the model, as before; "
                    "`tradeoff compile` may take longer, and the file it writes can be served."
                )
            else:
                self._say("Not compiled: the process ended early. Interviews solve the model, as before.")
        except (TradeoffError, OSError) as error:
            self._say(f"Not compiled: {error}. Interviews solve the model, as before.")

    def stop(self) -> None:
        """End the process if it is still at work, and remove its file."""
        self._stopping = True
        if self._process.pid is not None:
            self._process.terminate()
            self._process.join(timeout=10)
            self._thread.join(timeout=10)
        self._folder.cleanup()


def _compile(parent: int, study: Study, read: Callable[..., AnyProblem], given: tuple[object, ...], path: str) -> None:
    """Write the plans to a file; whoever has started this process keeps them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one ends this
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    with contextlib.suppress(AttributeError, OSError):  # Windows has no such priorities
        os.nice(LOWEST)
    problem = read(*given)
    problem.threads = 1
    tolerance = tolerance_for(study)
    found = cover(problem, tolerance, seconds=SECONDS)
    if found.guarantee > tolerance:
        os._exit(NOT_REACHED)
    Path(path).write_bytes(content_of(found))
