"""Simulate many respondents of one problem: how many questions a strategy asks, and how much its recommendations lose.

Respondents are divided into parts, and the parts among joblib's processes: on this machine or, under
``joblib.parallel_config``, on a Dask or Ray cluster. Row i depends only on the settings and i, so any row can be reproduced
alone (``interview_respondents``), and no row depends on the division or on the number of processes.

The respondents of a part are interviewed together. A strategy sees only answers, so their interviews form a tree: at each node
some respondents wait for a question. It is computed once, all of them answer it, and each reply leads to another node. The tree
is walked depth first, and a part has at most ``LARGEST_PART`` respondents, so memory is bounded.
"""

from __future__ import annotations

import math
import multiprocessing
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tradeoff.errors import ArgumentError
from tradeoff.model import Indices, Matrix, Option, Question, Recommendation, Reply, Vector
from tradeoff.problem import SAME, Problem
from tradeoff.simulation.respondents import LinearRespondent, Respondent, kind_of, regret_of, weighed
from tradeoff.simulation.results import (
    STATED,
    Results,
    Summary,
    check_out,
    empty_rows,
    join_rows,
    open_folder,
    part_path,
    read_results,
    summarize,
    write_part,
)
from tradeoff.strategies import Strategy, spec_of, start
from tradeoff.strategies.solutions import solutions_of

Counts: TypeAlias = NDArray[np.int64]

# A run has about 64 to 128 parts, unless they are larger or smaller than this. An interruption loses the parts that are not
# finished, one for each process; respondents of the same part share the computation of their questions.
PARTS, SMALLEST_PART, LARGEST_PART = 64, 10, 1000
ALONE = 1.0  # seconds before other processes are started: many runs are finished by then


@dataclass(frozen=True)
class Settings:
    """Everything that determines a row, except the problem and the respondent's number."""

    precision: float = 0.01
    strategy: str = "careful"
    error_rate: float = 0.0
    seed: int = 0
    max_questions: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "exact"  # one of tradeoff.simulation.KINDS

    def __post_init__(self) -> None:
        spec_of(self.strategy)
        kind_of(self.kind)
        if not (math.isfinite(self.precision) and self.precision >= 0):
            raise ArgumentError(f"a precision is a number >= 0; {self.precision!r} was given")
        if not 0 <= self.error_rate <= 1:
            raise ArgumentError(f"an error rate is a probability; {self.error_rate!r} was given")
        for name, number in (("seed", self.seed), ("max_questions", self.max_questions)):
            if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number < 0):
                raise ArgumentError(f"{name} is {number!r}; it must be a whole number, 0 or more")

    def begin(self, problem: Problem) -> Strategy:
        """Return the strategy; it is run without an ``Interview``, since no log is needed."""
        return start(self.strategy, problem, max_questions=self.max_questions, **self.options)


# --- respondents who are interviewed together -------------------------------------------------------------------------


def respondent_at(problem: Problem, index: int, settings: Settings) -> LinearRespondent | Respondent:
    """Return respondent number ``index``: weights Dirichlet(1), scaled so that their best option is worth 1.

    With that scale the precision is relative: 0.01 is 1% of the best that this respondent can get.
    """
    (weights,) = _weights([index], settings.seed, len(problem.objectives))
    # The errors do not depend on the weights.
    seed = int(np.random.SeedSequence(settings.seed, spawn_key=(index, 1)).generate_state(1, np.uint64)[0])
    if settings.kind == "exact":
        return LinearRespondent.scaled(problem, weights, settings.precision, settings.error_rate, seed)
    return Respondent(problem, weights, kind_of(settings.kind, settings.precision, settings.error_rate), seed)


def _weights(indices: Sequence[int], seed: int, objectives: int) -> Matrix:
    seeds = (np.random.SeedSequence(seed, spawn_key=(index, 0)) for index in indices)
    return np.array([np.random.default_rng(one).dirichlet(np.ones(objectives)) for one in seeds])


class Crowd(Protocol):
    """Respondents who are interviewed together, by their positions 0, 1, ..."""

    def replies(self, question: Question, who: Indices) -> list[tuple[Reply, Indices]]:
        """Return the different replies of these respondents, each with those who gave it."""

    def weights(self, who: Indices) -> Matrix:
        """Return their weights."""

    def errors(self, who: Indices) -> Counts:
        """Return how many wrong answers they gave."""

    def regret(self, option: Option, who: Indices) -> Vector:
        """Return the relative regret of each of them with this option."""


class ExactCrowd:
    """Many ``LinearRespondent`` without errors, who answer at once as each of them would alone."""

    def __init__(self, problem: Problem, indices: Sequence[int], settings: Settings) -> None:
        drawn = _weights(indices, settings.seed, len(problem.objectives))
        best = np.array([option.value for option in problem.best(drawn)])
        worth = weighed(drawn, best)
        self._weights = drawn / np.where(worth > 0, worth, 1.0)[:, None]
        self._most = weighed(self._weights, best)  # 1 but for rounding; 0 if there is nothing to gain
        self._precision = settings.precision

    def replies(self, question: Question, who: Indices) -> list[tuple[Reply, Indices]]:
        """Return the different replies of these respondents, each with those who gave it."""
        weights = self._weights[who]
        worth = np.stack([weighed(weights, value) for value in question.values], axis=1)
        replies = first_replies(worth, self._precision, question)
        return [(question.replies[number], who[replies == number]) for number in np.unique(replies)]

    def weights(self, who: Indices) -> Matrix:
        """Return their weights."""
        return self._weights[who]

    def errors(self, who: Indices) -> Counts:
        """Return zeros: they give no wrong answers."""
        return np.zeros(len(who), dtype=np.int64)

    def regret(self, option: Option, who: Indices) -> Vector:
        """Return the relative regret of each of them with this option."""
        most = self._most[who]
        share = weighed(self._weights[who], option.value) / np.where(most > 0, most, np.inf)
        regret = np.where(most > 0, 1.0 - share, 0.0)
        regret[np.abs(regret) <= SAME] = 0.0
        return regret


def first_replies(worth: Matrix, precision: float, question: Question) -> Counts:
    """Return the first of the ``possible_replies`` for each row of worths, as its position in ``question.replies``."""
    close = 0.0 if question.is_pair else precision
    best = worth >= worth.max(axis=1, keepdims=True) - close
    worst = worth <= worth.min(axis=1, keepdims=True) + close
    *named, _ = question.replies
    fits = [best[:, reply.best] & (True if reply.worst is None else worst[:, reply.worst]) for reply in named]
    found: Counts = np.where(np.ptp(worth, axis=1) <= precision, len(named), np.argmax(fits, axis=0))
    return found


class MixedCrowd:
    """Respondents of any kind, who answer one by one."""

    def __init__(self, problem: Problem, indices: Sequence[int], settings: Settings) -> None:
        self._problem = problem
        self._respondents = [respondent_at(problem, index, settings) for index in indices]

    def _of(self, who: Indices) -> list[LinearRespondent | Respondent]:
        return [self._respondents[position] for position in who.tolist()]

    def replies(self, question: Question, who: Indices) -> list[tuple[Reply, Indices]]:
        """Return the different replies of these respondents, each with those who gave it."""
        groups: dict[Reply, list[int]] = {}
        for position in who.tolist():
            groups.setdefault(self._respondents[position](question), []).append(position)
        return [(reply, np.array(positions)) for reply, positions in groups.items()]

    def weights(self, who: Indices) -> Matrix:
        """Return their weights."""
        return np.array([respondent.weights for respondent in self._of(who)])

    def errors(self, who: Indices) -> Counts:
        """Return how many wrong answers they gave."""
        return np.array([respondent.errors for respondent in self._of(who)])

    def regret(self, option: Option, who: Indices) -> Vector:
        """Return the relative regret of each of them with this option."""
        return np.array([regret_of(self._problem, respondent, option) for respondent in self._of(who)])


class Branch(NamedTuple):
    """Respondents who gave the same replies and wait for the next question; the seconds spent on each of them."""

    replies: tuple[Reply, ...]
    who: Indices
    seconds: float


def interview_respondents(problem: Problem, indices: Sequence[int], settings: Settings) -> Results:
    """Interview the respondents with these numbers; their rows are the same as in any run.

    The time for each question is shared evenly among those who are asked it.

    >>> import tradeoff
    >>> (row,) = interview_respondents(tradeoff.load("coffee"), [3], Settings(precision=0.01, strategy="paper"))
    >>> int(row.index), bool(row.complete), bool(row.regret < 0.01)
    (3, True, True)
    """
    exact = settings.kind == "exact" and not settings.error_rate
    crowd: Crowd = (ExactCrowd if exact else MixedCrowd)(problem, indices, settings)
    rows, equal = empty_rows(len(indices), len(problem.objectives)), _equal_weights(problem)
    branches = [Branch((), np.arange(len(indices)), 0.0)]
    while branches:
        found, ended, others = _follow(settings.begin(problem), crowd, branches.pop())
        branches += others
        who = ended.who
        rows.index[who] = np.asarray(indices)[who]
        rows.weights[who] = crowd.weights(who)
        rows.questions[who] = found.questions
        rows.regret[who] = crowd.regret(found.option, who)
        rows.baseline[who] = crowd.regret(equal, who)
        rows.complete[who] = found.complete
        rows.reason[who] = sys.intern(str(found.reason))
        rows.errors[who] = crowd.errors(who)
        rows.seconds[who] = ended.seconds
        stated = (found.regret_bound, found.robust_bound, found.likely_worst, found.likely_regret, found.target)
        for name, share in zip(STATED, stated, strict=True):
            rows[name][who] = np.nan if share is None else share
    return rows


def _equal_weights(problem: Problem) -> Option:
    """Return the best option if all relevant objectives have the same weight."""
    weights = np.zeros(len(problem.objectives))
    weights[list(solutions_of(problem).relevant)] = 1.0
    return problem.best(weights[None, :])[0]


def _follow(running: Strategy, crowd: Crowd, branch: Branch) -> tuple[Recommendation, Branch, list[Branch]]:
    """Follow the most frequent reply until an interview ends; return those who replied otherwise as branches."""
    replies, who, seconds = branch
    others: list[Branch] = []
    clock = time.perf_counter()

    def share() -> float:
        """Return the time since the last call, shared among those who are being asked."""
        nonlocal clock
        before, clock = clock, time.perf_counter()
        return (clock - before) / len(who)

    try:
        step = next(running)
        for reply in replies:
            step = running.send(reply)
        while True:
            *fewer, (reply, most) = sorted(crowd.replies(step.question, who), key=lambda group: len(group[1]))
            seconds += share()
            others += [Branch((*replies, other), some, seconds) for other, some in fewer]
            replies, who = (*replies, reply), most
            step = running.send(reply)
    except StopIteration as end:
        return end.value, Branch(replies, who, seconds + share()), others


# --- parts and processes ----------------------------------------------------------------------------------------------


def divide(weights: Matrix, size: int, members: Indices | None = None) -> Iterator[list[int]]:
    """Yield groups of at most ``size`` respondents with similar weights: they share many questions."""
    members = np.arange(len(weights)) if members is None else members
    if len(members) <= size:
        yield sorted(members.tolist())
        return
    widest = np.ptp(weights[members], axis=0).argmax()
    ordered = members[np.argsort(weights[members, widest], kind="stable")]
    for half in (ordered[: len(ordered) // 2], ordered[len(ordered) // 2 :]):
        yield from divide(weights, size, half)


@lru_cache(maxsize=1)
def _unpack(packed: bytes, path: tuple[str, ...]) -> Problem:
    """Return a problem that was sent to this process; later parts reuse what it has in its caches.

    ``path`` are the folders to import its modules from: a worker process may be older than some of them.
    """
    sys.path += [folder for folder in path if folder not in sys.path]
    try:
        problem: Problem = pickle.loads(packed)
    except ImportError as error:
        raise ArgumentError(
            f"the problem cannot be used in another process, which fails with {error}; put that module where that "
            "process can import it, or use jobs=1"
        ) from None
    return problem


def _interview_part(
    packed: bytes, path: tuple[str, ...], settings: Settings, number: int, part: list[int]
) -> tuple[int, Results]:
    """Interview a part in a worker process."""
    return number, interview_respondents(_unpack(packed, path), part, settings)


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C in a worker process: it reaches all processes of a terminal, and the first one stops the others."""
    if multiprocessing.current_process().name.startswith("Loky"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _interrupts_deferred() -> Iterator[None]:
    """Defer Ctrl-C until the end of the block; processes that are started in it never receive it."""
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # now, because starting it unblocks the signal again in some versions of Python
    received: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        signal.signal(signal.SIGINT, handler)
        if received:
            signal.raise_signal(signal.SIGINT)


def _interview_parts(
    problem: Problem, parts: Mapping[int, list[int]], settings: Settings, jobs: int | None
) -> Iterator[tuple[int, Results]]:
    """Yield the number and the rows of each part as it is finished."""
    import joblib
    from joblib.externals.loky.backend.reduction import dumps  # can also pickle what is defined in __main__

    if jobs is None and joblib.effective_n_jobs(None) == 1:  # no number of processes in joblib's configuration, if any
        jobs = -1
    processes, begin, left = joblib.effective_n_jobs(jobs), time.perf_counter(), list(parts.items())
    while left and (processes == 1 or time.perf_counter() - begin < ALONE):
        number, part = left.pop(0)
        yield number, interview_respondents(problem, part, settings)
    if not left:
        return
    sent = (bytes(dumps(problem)), tuple(sys.path), settings)
    with _interrupts_deferred():  # starting processes cannot be interrupted cleanly
        joblib.Parallel(n_jobs=jobs, batch_size=1)(joblib.delayed(_ignore_interrupts)() for _ in range(processes))
    try:
        parallel = joblib.Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")
        rounds = [left]
    except ValueError:  # a back end that only returns lists, such as Ray's
        parallel = joblib.Parallel(n_jobs=jobs, batch_size=1)
        rounds = [left[first : first + processes] for first in range(0, len(left), processes)]
    for some in rounds:
        yield from parallel(joblib.delayed(_interview_part)(*sent, *part) for part in some)


# --- the run ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Population:
    """The results of a run."""

    settings: Settings
    results: Results
    precomputation: float

    def __len__(self) -> int:
        return len(self.results)

    def summary(self) -> Summary:
        """Return the figures that summarise the run."""
        return summarize(self.results, self.settings.precision, self.precomputation)


def simulate(
    problem: Problem,
    respondents: int = 1000,
    *,
    precision: float = 0.01,
    strategy: str = "careful",
    error_rate: float = 0.0,
    seed: int = 0,
    max_questions: int | None = None,
    kind: str = "exact",
    jobs: int | None = None,
    out: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Population:
    """Interview simulated respondents and return the results.

    ``jobs``: the number of processes, -1 for one per core; by default as many as joblib is configured for, or one per core
    (of the cluster, under a back end that has one) if the run is long enough. ``out``: a folder for the rows, in parts; the
    same call then continues an interrupted run. ``progress`` is called with the number of respondents done and their total.
    ``options`` are the strategy's own. ``kind`` is one of ``tradeoff.simulation.KINDS``.

    >>> import tradeoff
    >>> summary = simulate(tradeoff.load("coffee"), 20, precision=0.01).summary()
    >>> summary.respondents, summary.regret.worst < summary.baseline.worst
    (20, True)
    """
    if not isinstance(respondents, int) or isinstance(respondents, bool) or respondents < 1:
        raise ArgumentError(f"respondents is {respondents!r}; it must be a whole number, 1 or more")
    if jobs is not None and (not isinstance(jobs, int) or isinstance(jobs, bool) or jobs == 0):
        raise ArgumentError(f"jobs is {jobs!r}; it must be a number of processes, or -1 for one per core")
    settings = Settings(precision, strategy, error_rate, seed, max_questions, options, kind)
    folder = None if out is None else check_out(out)
    precomputation = prepare(problem, settings)
    if folder is not None:
        open_folder(folder, _described(problem, respondents, settings))
    size = min(max(respondents // PARTS, SMALLEST_PART), LARGEST_PART)
    parts = dict(enumerate(divide(_weights(range(respondents), seed, len(problem.objectives)), size)))
    left = {number: part for number, part in parts.items() if folder is None or not part_path(folder, number).exists()}
    done, rows = respondents - sum(map(len, left.values())), []
    tell = progress or (lambda finished, total: None)
    tell(done, respondents)
    for number, found in _interview_parts(problem, left, settings, jobs):
        if folder is None:
            rows.append(found)
        else:
            write_part(found, [objective.name for objective in problem.objectives], part_path(folder, number))
        done += len(found)
        tell(done, respondents)
    return Population(settings, join_rows(rows) if folder is None else read_results(folder), precomputation)


def prepare(problem: Problem, settings: Settings) -> float:
    """Compute what all respondents share, up to the first question; return the seconds this took."""
    begin = time.perf_counter()
    spec_of(settings.strategy).prepare(problem, settings.options)
    next(settings.begin(problem), None)
    return time.perf_counter() - begin


def _described(problem: Problem, respondents: int, settings: Settings) -> dict[str, Any]:
    """Return what identifies a run, for its folder; another version may ask other questions."""
    from tradeoff import __version__

    given = asdict(settings)
    options = given.pop("options")
    return {
        "version": __version__,
        "problem": getattr(problem, "name", ""),
        "fingerprint": problem.fingerprint,
        "respondents": respondents,
        **given,
        **{f"option {name}": value for name, value in options.items()},
    }
