"""Simulate many users of one problem: how many questions a strategy asks, and how much its recommendations lose.

User i depends only on the seed and i, so any row can be reproduced on its own (``run_user``), and no row depends on the
number of processes. The work is divided into shards that joblib runs in local processes or, under
``joblib.parallel_config``, on a Dask or Ray cluster.
"""

from __future__ import annotations

import math
import multiprocessing
import pickle
import signal
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradeoff.errors import ArgumentError
from tradeoff.model import Reason, Recommendation, Vector
from tradeoff.people import Person, kind_of, regret_of
from tradeoff.problem import SAME, Problem
from tradeoff.results import Results, Row, Shards, check_out, held, write_results
from tradeoff.strategies import spec_of, start
from tradeoff.strategies.basis import bases_of
from tradeoff.users import LinearUser

# A shard takes about this long: short enough that an interruption loses little, long enough to be worth sending.
SHARD_SECONDS = 2.0
SMALLEST_SHARD, LARGEST_SHARD = 10, 1000

# Starting processes takes about this many seconds, so a run shorter than this uses the current process only.
WORTH_PROCESSES = 2.0


@dataclass(frozen=True)
class Settings:
    """Everything that determines a row, except the problem and the user's number."""

    precision: float = 0.01
    strategy: str = "careful"
    error_rate: float = 0.0
    seed: int = 0
    max_questions: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    people: str = "exact"  # one of tradeoff.people.KINDS

    def __post_init__(self) -> None:
        spec_of(self.strategy)
        kind_of(self.people)
        if not (math.isfinite(self.precision) and self.precision >= 0):
            raise ArgumentError(f"a precision is a number >= 0; {self.precision!r} was given")
        if not 0 <= self.error_rate <= 1:
            raise ArgumentError(f"an error rate is a probability; {self.error_rate!r} was given")
        for name, number in (("seed", self.seed), ("max_questions", self.max_questions)):
            if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number < 0):
                raise ArgumentError(f"{name} is {number!r}; it must be a whole number, 0 or more")


def user_of(problem: Problem, index: int, settings: Settings) -> LinearUser | Person:
    """Return simulated user number ``index``: weights Dirichlet(1), scaled so that their best alternative is worth 1.

    With that scale the precision is relative: 0.01 is 1% of the best that this user can get. ``people`` is their kind.
    """
    taste, slips = np.random.SeedSequence(settings.seed, spawn_key=(index,)).spawn(2)
    weights = np.random.default_rng(taste).dirichlet(np.ones(len(problem.objectives)))
    seed = int(slips.generate_state(1, np.uint64)[0])
    strengths = bool(settings.options.get("strengths"))
    if settings.people != "exact" or strengths:
        kind = kind_of(settings.people, settings.precision, settings.error_rate)
        return Person(problem, weights, kind, seed, strengths=strengths)
    return LinearUser.scaled(problem, weights, settings.precision, settings.error_rate, seed)


def run_user(problem: Problem, index: int, settings: Settings) -> Row:
    """Interview simulated user number ``index`` and return the result: the same row as in any run with this user.

    >>> import tradeoff
    >>> row = run_user(tradeoff.load("coffee"), 3, Settings(precision=0.01, strategy="paper"))
    >>> row.index, row.complete, row.regret < 0.01
    (3, True, True)
    """
    user = user_of(problem, index, settings)
    begin = time.perf_counter()
    found = _interview(problem, user, settings)
    seconds = time.perf_counter() - begin
    return Row(
        index=index,
        weights=tuple(user.weights.tolist()),
        questions=found.questions,
        regret=regret_of(problem, user, found.alternative),
        complete=found.complete,
        reason=str(found.reason),
        bound=found.regret_bound,
        errors=user.errors,
        seconds=seconds,
        robust=found.robust_bound,
        likely_worst=found.likely_worst,
        likely_regret=found.likely_regret,
        target=found.target,
    )


def _interview(problem: Problem, user: LinearUser | Person, settings: Settings) -> Recommendation:
    """Return the recommendation; the strategy is run without an ``Interview``, since no log is needed."""
    running = start(settings.strategy, problem, max_questions=settings.max_questions, **settings.options)
    try:
        step = next(running)
        while True:
            step = running.send(user(step.question))
    except StopIteration as end:
        found: Recommendation = end.value
        return found


# --- shards -----------------------------------------------------------------------------------------------------------

# The last problem in this process, kept so that its later shards reuse what the first one computed (bases, compiled code).
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


def prepare(problem: Problem, settings: Settings) -> tuple[float, float]:
    """Compute what all users of a problem share; return the seconds this took, and those for one user afterwards.

    They share the paper's bases, and whatever else the first interview computes and later ones reuse.
    """
    times = [time.perf_counter()]
    spec_of(settings.strategy).prepare(problem, settings.options)
    for _ in range(2):
        times.append(time.perf_counter())
        run_user(problem, 0, settings)
    times.append(time.perf_counter())
    shared, first, second = np.diff(times).tolist()
    return shared + max(0.0, first - second), second


def run_shard(sent: _Sent, settings: Settings, users: Sequence[int]) -> list[Row]:
    """Return the rows of some users; called in the worker processes."""
    if multiprocessing.current_process().name.startswith("Loky"):
        # Ctrl-C reaches all processes of a terminal; the parent process decides how to stop this one.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    key = (sent.fingerprint, repr(settings))
    known = _known.get(key)
    if known is None:
        known = sent.problem()
        prepare(known, settings)
        _known.clear()
        _known[key] = known
    return [run_user(known, index, settings) for index in users]


def _run_shards(
    problem: Problem, settings: Settings, shards: Mapping[int, range], jobs: int | None
) -> Generator[tuple[int, list[Row]], None, None]:
    """Yield the rows of each shard as it finishes, in any order."""
    import joblib

    sent = _Sent(problem)
    tasks = [joblib.delayed(_numbered_shard)(number, sent, settings, users) for number, users in shards.items()]
    try:
        parallel = joblib.Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")
    except ValueError:
        # Some back ends (such as Ray's) return all results together: work in several rounds, so that little can be lost.
        parallel = joblib.Parallel(n_jobs=jobs, batch_size=1)
        step = 4 * joblib.effective_n_jobs(jobs)
        for begin in range(0, len(tasks), step):
            yield from parallel(tasks[begin : begin + step])
        return
    with closing(parallel(tasks)) as finished:
        yield from finished


def _numbered_shard(number: int, sent: _Sent, settings: Settings, users: Sequence[int]) -> tuple[int, list[Row]]:
    return number, run_shard(sent, settings, users)


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

    def __len__(self) -> int:
        return len(self.results)

    def baseline(self) -> Vector:
        """Return each user's relative regret if nothing is asked and all objectives have equal weight."""
        relevant = np.zeros(len(self.problem.objectives))
        relevant[list(bases_of(self.problem).relevant)] = 1.0
        (equal,) = self.problem.best(relevant[None, :])
        if self.settings.people != "exact" or self.settings.options.get("strengths"):
            users = (user_of(self.problem, i, self.settings) for i in range(len(self)))
            return np.array([regret_of(self.problem, user, equal) for user in users])
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

    ``jobs``: the number of processes, -1 for one per core; by default joblib's configuration, or one per core if the run
    is long enough. ``out``: a .csv or .parquet file for the rows; the same call then continues an interrupted run, and
    a second run on that file is refused while the first lasts. ``progress`` is called with the number of users done and
    their total. ``options`` are the strategy's own. ``people`` is a kind of ``tradeoff.people``.

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
    """Simulate the shards that are not stored yet; no other run uses their folder."""
    precomputation, one = prepare(problem, settings)
    processes = _processes(jobs, users * one)
    shards = None if target is None else Shards(target, _manifest(problem, users, settings, one), _names(problem))
    size = _shard_size(users, one) if shards is None else shards.size
    cut = {number: range(at, min(users, at + size)) for number, at in enumerate(range(0, users, size))}
    done: dict[int, Results] = {}
    for number, part in cut.items():
        kept = None if shards is None else shards.read(number, part)
        if kept is not None:
            done[number] = kept
    count = sum(len(part) for part in done.values())
    tell(count, users)
    left = {number: part for number, part in cut.items() if number not in done}
    with closing(_run_shards(problem, settings, left, processes)) as finished:
        for number, rows in finished:
            done[number] = Results.from_rows(rows, len(problem.objectives))
            if shards is not None:
                shards.keep(number, done[number])
            count += len(rows)
            tell(count, users)
    results = Results.joined([done[number] for number in cut])
    if shards is not None and target is not None:
        write_results(results, _names(problem), target, shards.manifest)
        shards.remove()
    return Population(problem, settings, results, precomputation)


def _processes(jobs: int | None, seconds: float) -> int | None:
    """Return joblib's ``n_jobs``: as requested, as joblib is configured, or as many as are worth starting."""
    import joblib

    if jobs is not None:
        return jobs
    if joblib.effective_n_jobs(None) > 1:  # within joblib.parallel_config
        return None
    return 1 if seconds < WORTH_PROCESSES else joblib.cpu_count()


def _shard_size(users: int, seconds: float) -> int:
    """Return the number of users in a shard: about two seconds of work, in enough shards to estimate the time left."""
    size = min(LARGEST_SHARD, max(SMALLEST_SHARD, int(SHARD_SECONDS / max(seconds, 1e-9))))
    return max(1, min(size, math.ceil(users / 16)))


def _names(problem: Problem) -> list[str]:
    return [objective.name for objective in problem.objectives]


def _manifest(problem: Problem, users: int, settings: Settings, seconds: float) -> dict[str, Any]:
    """Return what identifies a run, for the folder of its shards; another version may ask other questions."""
    from tradeoff import __version__

    described = {
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
        "shard": _shard_size(users, seconds),
    }
    return described
