"""Simulate many users of one problem: how many questions a strategy asks, and how much its recommendations lose.

User i depends only on the seed and i, so any row can be reproduced on its own (``run_user``), and no row depends on the
number of processes. Those who are left are divided among joblib's processes for some seconds, again and again: on this
machine or, under ``joblib.parallel_config``, on a Dask or Ray cluster.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradeoff.crowds import Settings, Waiting, Walked, interview_all, run_user, user_of
from tradeoff.errors import ArgumentError
from tradeoff.model import Reason, Vector
from tradeoff.people import Person
from tradeoff.problem import SAME, Problem
from tradeoff.results import Parts, Results, check_out, held, write_results
from tradeoff.strategies import spec_of
from tradeoff.strategies.basis import bases_of

__all__ = [
    "Exceeded", "Population", "Settings", "Spread", "Summary", "exceeded_statements", "run_user", "simulate", "user_of",
]  # fmt: skip

# Rounds take this many seconds, the last number from then on: that is what an interruption loses. The first ones are short,
# because the first people are in one place of the tree of answers.
ROUNDS = (1.0, 2.0, 4.0, 8.0)
# So many people are handed to a process at a time, unless people with the same weights answer the same. The others share
# little, and what they say at random has to be drawn again when the next round goes on with them.
AT_ONCE = 200
MANY = 20_000  # the weights of more people than this are drawn in all processes


# --- processes --------------------------------------------------------------------------------------------------------

# The last problem in this process, kept so that later rounds reuse what was computed (bases, states, compiled code).
_known: dict[tuple[str, str], Problem] = {}


class _Sent:
    """A problem that can be sent to another process.

    It is sent as bytes, together with the folders to import its modules from: worker processes are reused, and one that
    was started before a folder was added to the path does not know that folder.
    """

    def __init__(self, problem: Problem) -> None:
        self.fingerprint = problem.fingerprint
        self._problem: Problem | None = problem
        self._packed: bytes = b""
        self._path = list(sys.path)

    def __getstate__(self) -> dict[str, Any]:
        from joblib.externals.loky.backend.reduction import dumps  # can also pickle what is defined in __main__

        self._packed = self._packed or bytes(dumps(self._problem))
        return vars(self) | {"_problem": None}

    def problem(self) -> Problem:
        """Return the problem."""
        if self._problem is None:
            sys.path += [folder for folder in self._path if folder not in sys.path]
            try:
                self._problem = pickle.loads(self._packed)
            except ImportError as error:
                raise ArgumentError(
                    f"the problem cannot be used in another process, which fails with {error}; put that module where that "
                    "process can import it, or use jobs=1"
                ) from None
        return self._problem


def prepare(problem: Problem, settings: Settings) -> float:
    """Compute what all users of a problem share, up to the first question; return the seconds this took."""
    begin = time.perf_counter()
    spec_of(settings.strategy).prepare(problem, settings.options)
    next(settings.begin(problem), None)
    return time.perf_counter() - begin


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C in a worker process: it reaches all processes of a terminal, and the first one decides how to stop."""
    if multiprocessing.current_process().name.startswith("Loky"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Let Ctrl-C wait until the block has ended, however it ends; processes started in it are never interrupted."""
    if threading.current_thread() is not threading.main_thread():  # no other thread is interrupted
        yield
        return
    interrupted = False

    def note(*_: object) -> None:
        nonlocal interrupted
        interrupted = True

    if sys.platform != "win32":
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()  # now, because starting it unblocks the signal again in some versions of Python
    before = signal.signal(signal.SIGINT, note)
    # Blocked in this thread, and in the processes that it starts.
    blocked = None if sys.platform == "win32" else signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        if blocked is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        signal.signal(signal.SIGINT, before)
        if interrupted:
            signal.raise_signal(signal.SIGINT)


def _received(sent: _Sent, settings: Settings) -> Problem:
    """Return the problem in a worker process, prepared."""
    _ignore_interrupts()
    key = (sent.fingerprint, repr(settings))
    known = _known.get(key)
    if known is None:
        known = sent.problem()
        prepare(known, settings)
        _known.clear()
        _known[key] = known
    return known


def _draw(sent: _Sent, settings: Settings, people: Waiting) -> Waiting:
    """Return people with their weights; called in the worker processes."""
    return people.drawn(_received(sent, settings), settings.seed)


def _interview(sent: _Sent, settings: Settings, people: Waiting, seconds: float) -> Walked:
    """Interview people for some seconds; called in the worker processes."""
    problem = _received(sent, settings)
    return interview_all(problem, people, settings, time.perf_counter() + seconds)


def _rounds(problem: Problem, people: Waiting, settings: Settings, jobs: int | None) -> Iterator[Walked]:
    """Yield what each process finished in each round, until nobody is left."""
    import joblib

    if jobs is None and joblib.effective_n_jobs(None) == 1:  # no number of processes in joblib's configuration, if any
        jobs = -1
    sent, processes, started = _Sent(problem), joblib.effective_n_jobs(jobs), False

    def divided(work: Callable[..., Any], some: Waiting, *more: float) -> list[Any]:
        nonlocal started
        if processes > 1 and not started:
            # An interruption while joblib starts its processes, or while these start, would come out as another error.
            with _interrupts_held():
                parallel(joblib.delayed(_ignore_interrupts)() for _ in range(processes))
            started = True
        parts = np.array_split(np.arange(len(some)), min(processes, len(some)))
        found: list[Any] = parallel(joblib.delayed(work)(sent, settings, some[part], *more) for part in parts)
        return found

    at_once = len(people) if settings.alike else AT_ONCE
    with joblib.Parallel(n_jobs=jobs, batch_size=1, max_nbytes=None) as parallel:
        if settings.alike and len(people) > MANY:
            people = Waiting.joined(divided(_draw, people))
        # The first round is this process's own. If it suffices, no process is started; and who is left then stands in the
        # order of the tree, so that two processes seldom work out the same question.
        some, others = people[:at_once], people[at_once:]
        done = [interview_all(problem, some, settings, time.perf_counter() + ROUNDS[0])]
        yield done[0]
        lengths = chain(ROUNDS[1:], repeat(ROUNDS[-1]))
        while len(people := Waiting.joined([*(one.left for one in done), others])):
            some, others = people[: processes * at_once], people[processes * at_once :]
            done = divided(_interview, some, next(lengths))
            yield from done


# --- the run ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spread:
    """The distribution of a quantity over all users."""

    mean: float
    p50: float
    p95: float
    worst: float

    @classmethod
    def of(cls, amounts: Vector | NDArray[np.int64]) -> Spread:
        """Return the spread of these amounts; each percentile is the amount of an actual user."""
        p50, p95 = np.percentile(amounts, [50, 95], method="inverted_cdf")
        return cls(float(np.mean(amounts)), float(p50), float(p95), float(np.max(amounts)))


@dataclass(frozen=True)
class Exceeded:
    """How often a kind of statement was made, and for how many users it did not hold."""

    stated: int
    exceeded: int


def exceeded_statements(rows: Results, precision: float) -> dict[str, Exceeded]:
    """Return, for each kind of statement, how often it was made and how often it did not hold.

    The reason for stopping is a statement if it names a limit: the target, what the user notices, or the larger of the
    two. An average is one statement about all users: it is exceeded if they lose more than that on average.
    """
    limits = {"proved": rows.bound, "proved with one slip": rows.robust, "very likely": rows.likely_worst}
    found = {}
    for kind, limit in (limits | {"reason": _limits(rows, precision)}).items():
        made = ~np.isnan(limit)
        if made.any():
            found[kind] = Exceeded(int(made.sum()), int(np.sum(rows.regret[made] > limit[made] + SAME)))
    made = ~np.isnan(rows.likely_regret)
    if made.any():
        found["average"] = Exceeded(1, int(rows.regret[made].mean() > rows.likely_regret[made].mean() + SAME))
    return found


def _limits(rows: Results, precision: float) -> Vector:
    """Return the largest loss that each reason for stopping allows; a user's best is worth 1, so precision is a share too."""
    notice, either = np.full(len(rows), precision), np.maximum(rows.target, precision)
    said = {
        Reason.PROVED: rows.target,
        Reason.UNNOTICEABLE: notice,
        Reason.VERY_LIKELY_WITHIN: rows.target,
        Reason.VERY_LIKELY_UNNOTICED: notice,
        Reason.VERY_LIKELY_EITHER: either,
        Reason.PROBABLY_WITHIN: rows.target,
        Reason.PROBABLY_UNNOTICED: notice,
        Reason.PROBABLY_EITHER: either,
    }
    unknown = np.full(len(rows), np.nan)
    return np.array([said.get(reason, unknown)[i] for i, reason in enumerate(rows.reason)])  # type: ignore[call-overload]


@dataclass(frozen=True)
class Summary:
    """The figures of a run; regrets are relative (0.01 is 1% of what the user could have had)."""

    users: int
    questions: Spread
    regret: Spread
    baseline: Spread  # the regret of asking nothing and weighting all objectives equally
    complete: float  # share of the users whose interview the strategy completed
    bound: Spread | None  # the strategy's certificates, if it gives any
    exceeded: Mapping[str, Exceeded]  # by kind of statement, for those that were made
    seconds_per_user: float  # after the shared precomputation
    precomputation: float  # seconds, once per process


@dataclass(frozen=True, eq=False)
class Population:
    """The results of a run."""

    problem: Problem
    settings: Settings
    results: Results
    precomputation: float
    worked_out: int  # questions that this call worked out: many people are asked the same

    def __len__(self) -> int:
        return len(self.results)

    def baseline(self) -> Vector:
        """Return each user's relative regret if nothing is asked and all objectives have equal weight."""
        relevant = np.zeros(len(self.problem.objectives))
        relevant[list(bases_of(self.problem).relevant)] = 1.0
        (equal,) = self.problem.best(relevant[None, :])
        if not self.settings.linear:
            users = (user_of(self.problem, i, self.settings) for i in range(len(self)))
            return np.array([user.regret(equal) for user in users if isinstance(user, Person)])
        regret: Vector = 1.0 - self.results.weights @ equal.value
        return np.where(np.abs(regret) <= SAME, 0.0, regret)

    def summary(self) -> Summary:
        """Return the figures that summarise the run."""
        rows = self.results
        certified = ~np.isnan(rows.bound)
        return Summary(
            users=len(rows),
            questions=Spread.of(rows.questions),
            regret=Spread.of(rows.regret),
            baseline=Spread.of(self.baseline()),
            complete=float(rows.complete.mean()),
            bound=Spread.of(rows.bound[certified]) if certified.any() else None,
            exceeded=exceeded_statements(rows, self.settings.precision),
            seconds_per_user=float(rows.seconds.mean()),
            precomputation=self.precomputation,
        )


def simulate(
    problem: Problem,
    users: int = 1000,
    *,
    precision: float = 0.01,
    strategy: str = "careful",
    error_rate: float = 0.0,
    seed: int = 0,
    max_questions: int | None = None,
    people: str = "exact",
    jobs: int | None = None,
    out: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Population:
    """Interview ``users`` simulated people and return the results.

    ``jobs``: the number of processes, -1 for one per core; by default as many as joblib is configured for, or one per core
    (of the cluster, under a back end that has one) if the run is long enough. ``out``: a .csv or .parquet file for the rows;
    the same call then continues an interrupted run, and a second run on that file is refused while the first lasts.
    ``progress`` is called with the number of users done and their total. ``options`` are the strategy's own. ``people`` is
    a kind of ``tradeoff.people``.

    >>> import tradeoff
    >>> summary = simulate(tradeoff.load("coffee"), 20, precision=0.01).summary()
    >>> summary.users, summary.regret.worst < summary.baseline.worst
    (20, True)
    """
    if not isinstance(users, int) or isinstance(users, bool) or users < 1:
        raise ArgumentError(f"users is {users!r}; it must be a whole number, 1 or more")
    if jobs is not None and (not isinstance(jobs, int) or isinstance(jobs, bool) or jobs == 0):
        raise ArgumentError(f"jobs is {jobs!r}; it must be a number of processes, or -1 for one per core")
    settings = Settings(precision, strategy, error_rate, seed, max_questions, options, people)
    target = None if out is None else check_out(out)
    with nullcontext() if target is None else held(target):
        return _simulate(problem, users, settings, jobs, target, progress or (lambda finished, total: None))


def _simulate(
    problem: Problem,
    users: int,
    settings: Settings,
    jobs: int | None,
    target: Path | None,
    tell: Callable[[int, int], None],
) -> Population:
    """Simulate the users who are not stored yet; no other run uses their folder."""
    precomputation = prepare(problem, settings)
    parts = None if target is None else Parts(target, _manifest(problem, users, settings))
    done = [] if parts is None else parts.read(users)
    count, worked_out = sum(map(len, done)), 0
    tell(count, users)
    left = np.setdiff1d(np.arange(users), np.concatenate([[], *(part.index for part in done)]))
    for walked in _rounds(problem, Waiting.of(left, len(problem.objectives)), settings, jobs):
        done.append(walked.rows)
        if parts is not None:
            parts.keep(walked.rows)
        count, worked_out = count + len(walked.rows), worked_out + walked.worked_out
        tell(count, users)
    results = Results.joined(done).by_index()
    if parts is not None and target is not None:
        write_results(results, _names(problem), target, parts.manifest)
        parts.remove()
    return Population(problem, settings, results, precomputation, worked_out)


def _names(problem: Problem) -> list[str]:
    return [objective.name for objective in problem.objectives]


def _manifest(problem: Problem, users: int, settings: Settings) -> dict[str, Any]:
    """Return what identifies a run, for the folder of its parts; another version may ask other questions."""
    from tradeoff import __version__

    return {
        "version": __version__,
        "problem": problem.fingerprint,
        "problem_name": getattr(problem, "name", ""),
        "objectives": _names(problem),
        "users": users,
        "settings": {
            "precision": settings.precision,
            "strategy": settings.strategy,
            "error_rate": settings.error_rate,
            "seed": settings.seed,
            "max_questions": settings.max_questions,
            **({} if settings.people == "exact" else {"people": settings.people}),
            **{f"option {name}": value for name, value in settings.options.items()},
        },
    }
