"""What is computed once per problem and shared by all its respondents; the options of one interview; and the certificate.

Everything a respondent may be, given their answers, is a cone of (weights, precision). The relative regret of an option is
quasi-convex over it, so its worst case is at an extreme ray: solving the problem in the directions of all rays, in one batched
call, gives the certificate. It holds for every linear preference with weights >= 0 that fits the answers, however the questions
were chosen.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, cast
from weakref import WeakKeyDictionary, ref

import numpy as np
from cachetools import LRUCache

from tradeoff.errors import ArgumentError
from tradeoff.evidence import identity
from tradeoff.model import Indices, Matrix, Option, Question, Recommendation, Vector
from tradeoff.numerics import worth_of_each, worths
from tradeoff.problem import Problem, slack_of
from tradeoff.strategies.posterior import Posterior

# Solved directions per problem; an option of an MDP takes about a kilobyte. A tenth of this costs 20 respondents 6% more.
CACHED_DIRECTIONS = 50_000
CACHED_STATE_BYTES = 48 << 20  # of interview states per problem: about 50 KB each with few objectives, more with ten
# A component this small relative to the largest value is rounding, not another dimension (the paper writes "> 0", with which a
# basis grew to 5 vectors on values of rank 3).
RANK_TOLERANCE = 1e-9
# How far a barycentric spanner may be from the best one: every value is a combination with coefficients in [-2, 2].
SPANNER_FACTOR = 2.0


@dataclass(frozen=True, eq=False)
class Basis:
    """Options whose values are independent and span all values, in the order in which they were found.

    ``components`` are the sizes max(|v^u_i|, |v^-u_i|) of the largest value in each new direction u_i (Theorem 2 leaves out the
    rows where this is small); the first entry is the norm of the benchmark's value.
    """

    options: tuple[Option, ...]
    components: Vector

    @property
    def values(self) -> Matrix:
        """The values, one row each."""
        return np.array([option.value for option in self.options])


class Solutions:
    """Optima, bases and interview states of one problem, each computed when first needed; safe to share between threads.

    None of them depends on a respondent, so a question never depends on earlier respondents.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = ref(problem)  # the cache must not keep its problem alive
        self._options: LRUCache[bytes, Option] = LRUCache(CACHED_DIRECTIONS)
        self._states: LRUCache[bytes, Any] = LRUCache(CACHED_STATE_BYTES, getsizeof=_size)
        self._lock = threading.Lock()
        self._bases_lock = threading.RLock()
        self._optima: tuple[Option, ...] | None = None
        self._paper_bases: dict[int, Basis] = {}
        self._spanner: Basis | None = None
        self.solved = 0

    @property
    def problem(self) -> Problem:
        """The problem that is solved."""
        problem = self._problem()
        if problem is None:
            raise ReferenceError("the problem of these solutions no longer exists")
        return problem

    def best(self, weights: Matrix) -> list[Option]:
        """Return an optimal option for each row, solving only the directions that are not in the cache."""
        keys = [row.tobytes() for row in weights]
        with self._lock:
            options = [self._options.get(key) for key in keys]
        missing = [i for i, option in enumerate(options) if option is None]
        if missing:
            problem = self.problem
            solved = problem.best(weights[missing])
            looked_up = getattr(problem, "looked_up", None)  # a coverage solves few of them
            with self._lock:
                self.solved += len(missing) - (0 if looked_up is None else looked_up(weights[missing]))
                for i, option in zip(missing, solved, strict=True):
                    options[i] = self._options[keys[i]] = option
        return cast(list[Option], options)

    # --- states of interviews -----------------------------------------------------------------------------------------

    def state(self, key: bytes) -> Any | None:
        """Return what was computed after the same answers before; None if nothing was, or it was dropped."""
        with self._lock:
            return self._states.get(key)

    def put_state(self, key: bytes, state: Any) -> None:
        """Remember what follows some answers; a state larger than the cache is not."""
        with self._lock:
            if _size(state) <= CACHED_STATE_BYTES:
                self._states[key] = state

    # --- bases of the space of values ---------------------------------------------------------------------------------

    @property
    def optima(self) -> tuple[Option, ...]:
        """The optimum of each single objective: pi^{e_1}, ..., pi^{e_k}."""
        with self._bases_lock:
            if self._optima is None:
                self._optima = tuple(self.problem.best(np.eye(len(self.problem.objectives))))
            return self._optima

    @property
    def changeable(self) -> tuple[int, ...]:
        """The objectives that what is chosen can change, if any."""
        return tuple(j for j, optimum in enumerate(self.optima) if optimum.value[j] > RANK_TOLERANCE)

    @property
    def relevant(self) -> tuple[int, ...]:
        """The objectives that can be changed, at least one: others have no optimum, and would make u_1 undefined."""
        if not self.changeable:
            raise ArgumentError(
                "no objective of this problem can be changed by what is chosen; there is nothing to ask"
            )
        return self.changeable

    def paper_basis(self, benchmark: int) -> Basis:
        """Return the basis that begins with the optimum of objective number ``benchmark``."""
        with self._bases_lock:
            if benchmark not in self._paper_bases:
                self._paper_bases[benchmark] = grow_basis(self.problem, self.optima[benchmark])
            return self._paper_bases[benchmark]

    def spanner(self) -> Basis:
        """Return the barycentric spanner."""
        with self._bases_lock:
            if self._spanner is None:
                start = grow_basis(self.problem, self.optima[self.relevant[0]])
                self._spanner = barycentric_spanner(self.problem, start)
            return self._spanner


def _size(value: Any) -> int:
    """Return about how many bytes a value of an interview takes, its parts included."""
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    if is_dataclass(value) and not isinstance(value, type | Option | Question | Recommendation):
        return 500 + sum(_size(getattr(value, part.name)) for part in fields(value))
    return 50


_solutions: WeakKeyDictionary[Problem, Solutions] = WeakKeyDictionary()
_lock = threading.Lock()


def solutions_of(problem: Problem) -> Solutions:
    """Return the solutions of a problem, shared by all its respondents."""
    with _lock:
        if problem not in _solutions:
            _solutions[problem] = Solutions(problem)
        return _solutions[problem]


def grow_basis(problem: Problem, benchmark: Option) -> Basis:
    """Return a basis that begins with the benchmark (Algorithm 1, lines 6-13)."""
    k = len(problem.objectives)
    chosen = [benchmark]
    norm = float(np.linalg.norm(benchmark.value))
    components, largest = [norm], norm
    while len(chosen) < k:
        # Line 7: an orthonormal basis of the complement of what is spanned so far.
        _, _, directions = np.linalg.svd(np.array([a.value for a in chosen]), full_matrices=True)
        complement = directions[len(chosen) :]
        both = np.concatenate([complement, -complement])
        found = problem.best(both)
        sizes = np.abs([direction @ a.value for direction, a in zip(both, found, strict=True)])
        # Line 8: the direction in which some value has the largest component, whichever way it points.
        j = int(np.maximum(sizes[: len(complement)], sizes[len(complement) :]).argmax())
        opposite = j + len(complement)
        winner = j if sizes[j] > sizes[opposite] else opposite
        largest = max(largest, *(float(np.linalg.norm(a.value)) for a in found))
        if sizes[winner] <= RANK_TOLERANCE * largest:
            break  # line 12: nothing sticks out of the span, so d = len(chosen)
        chosen.append(found[winner])
        components.append(float(sizes[winner]))
    return Basis(tuple(chosen), np.array(components))


def barycentric_spanner(problem: Problem, start: Basis) -> Basis:
    """Return a 2-approximate barycentric spanner: every value is sum c_i S_i with |c_i| <= 2.

    Found with the oracle (Awerbuch & Kleinberg 2004): while some value would make the spanned volume more than twice
    as large in place of S_i, it takes that place. The coefficient c_i of a value is the change of volume it makes.
    """
    chosen = list(start.options)
    changed = True
    while changed:
        changed = False
        for i in range(len(chosen)):
            # Row i of the inverse reads off c_i: <c, S_i> = 1 and <c, S_j> = 0 for the others.
            functional = np.linalg.pinv(np.array([a.value for a in chosen]))[:, i]
            found = problem.best(np.array([functional, -functional]))
            sizes = [abs(float(functional @ a.value)) for a in found]
            best = int(np.argmax(sizes))
            if sizes[best] > SPANNER_FACTOR:
                chosen[i] = found[best]
                changed = True
    return Basis(tuple(chosen), np.array([float(np.linalg.norm(a.value)) for a in chosen]))


class Candidates:
    """The different options that one interview has come across, in that order; never changed."""

    def __init__(self, options: tuple[Option, ...], relevant: Indices, values: Matrix, keys: frozenset[bytes]) -> None:
        self.options = options
        self.relevant = relevant  # the objectives that can be changed
        self.values = values  # [K, k]
        self._keys = keys

    @classmethod
    def none(cls, objectives: int, relevant: Indices) -> Candidates:
        """Return the candidates before any was found."""
        return cls((), relevant, np.zeros((0, objectives)), frozenset())

    def add(self, options: Sequence[Option]) -> Candidates:
        """Return these candidates and those of the options that are new."""
        fresh: dict[bytes, Option] = {}
        for option in dict.fromkeys(options):  # many directions have the same optimum
            key = identity(option)
            if key not in self._keys:
                fresh.setdefault(key, option)
        if not fresh:
            return self
        values = np.concatenate([self.values, [option.value for option in fresh.values()]])
        return Candidates((*self.options, *fresh.values()), self.relevant, values, self._keys.union(fresh))

    def number_of(self, option: bytes) -> int | None:
        """Return the number of the candidate with this ``identity``; None if it is not among them."""
        if option not in self._keys:
            return None
        return next(i for i, candidate in enumerate(self.options) if identity(candidate) == option)

    @cached_property
    def gains(self) -> Matrix:
        """The gains in the relevant objectives, [K, d]."""
        return self.values[:, self.relevant]

    @property
    def nbytes(self) -> int:
        """About how many bytes the candidates take."""
        return int(self.values.nbytes) * 2 + 200 * len(self.options)


@dataclass(frozen=True, eq=False)
class Certificate:
    """The worst case of a recommendation over everything that fits the answers."""

    rays: Matrix  # [n, d] weights, each row summing to 1
    precision: Vector  # [n]
    best: Vector  # [n]: what the best option found is worth at each ray
    worth: Vector  # [n]: what the recommended option is worth there
    number: int  # of the candidate that is recommended
    slack: float  # what the best option may be worth more than ``best``

    def recommending(self, number: int, candidates: Candidates) -> Certificate:
        """Return the certificate of another candidate, over the same set."""
        return replace(self, number=number, worth=worths(self.rays, candidates.gains[[number]])[:, 0])

    @property
    def bound(self) -> float:
        """The largest relative regret of the recommendation."""
        return float((1 - self.worth / (self.best + self.slack)).max())

    @property
    def noticeable(self) -> float:
        """The largest loss in units of the respondent's precision."""
        loss = self.best + self.slack - self.worth
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.where(loss > 1e-12, loss / self.precision, 0.0).max())

    @property
    def regrets(self) -> Vector:
        """The relative regret of the recommendation at each ray, against the best option found."""
        result: Vector = 1 - self.worth / self.best
        return result

    @property
    def resolvable(self) -> float:
        """The part of the bound that answers can bring down: without what the problem itself leaves open."""
        return float(self.regrets.max())


@dataclass(frozen=True, eq=False)
class Certifier:
    """Finds optima and certifies recommendations of one problem, whose optima are exact up to ``slack``."""

    solutions: Solutions
    objectives: int
    relevant: Indices
    slack: float

    @classmethod
    def of(cls, problem: Problem) -> Certifier:
        """Return the certifier of a problem."""
        relevant = np.array(solutions_of(problem).relevant, dtype=np.int64)
        slack = slack_of(problem)
        if not 0 <= slack < np.inf:
            raise ArgumentError(f"the slack of the problem is {slack!r}; it must be a finite number, 0 or more")
        return cls(solutions_of(problem), len(problem.objectives), relevant, float(slack))

    @property
    def d(self) -> int:
        """The number of objectives that can be changed."""
        return len(self.relevant)

    def directions(self, weights: Matrix) -> Matrix:
        """Return weights on the relevant objectives as weights on all of them."""
        rows = np.zeros((len(weights), self.objectives))
        rows[:, self.relevant] = weights
        return rows

    def add_optima(self, candidates: Candidates, posterior: Posterior, count: int, grid: int) -> Candidates:
        """Return the candidates with the optima of about ``count`` samples, rounded to ``grid`` cells across the posterior."""
        width = float(np.ptp(posterior.weights, axis=0).max())
        cells = max(4 * self.d, 2 ** int(np.ceil(np.log2(grid / max(width, 1e-6)))))
        some = posterior.weights[:: max(1, len(posterior.weights) // count)]
        rows = np.unique(np.round(some * cells), axis=0) / cells
        return candidates.add(self.solutions.best(self.directions(rows)))

    def certify(
        self, rays: Matrix, candidates: Candidates, number: int | None = None
    ) -> tuple[Certificate, Candidates]:
        """Return the worst case over the rays of a cone, and the candidates with the optima that were found there.

        ``number`` is the candidate to recommend; without it, that is the one of least worst-case regret.
        """
        weights, precision = rays[:, :-1], rays[:, -1]
        optima = self.solutions.best(self.directions(weights))
        candidates = candidates.add(optima)
        worth = worths(weights, candidates.gains)
        best = self._largest(weights, optima, worth)
        if number is None:
            number = int((worth / (best + self.slack)[:, None]).min(axis=0).argmax())
        return Certificate(weights, precision, best, worth[:, number].copy(), number, self.slack), candidates

    def worst_regret(self, rays: Matrix, candidates: Candidates, number: int) -> float:
        """Return the largest relative regret of a candidate over some rays; 0 if there are none."""
        if not len(rays):
            return 0.0
        weights = rays[:, :-1]
        optima = self.solutions.best(self.directions(weights))
        worth = worths(weights, candidates.gains)
        most = self._largest(weights, optima, worth) + self.slack
        return float((1 - worth[:, number] / most).max())

    def _largest(self, weights: Matrix, optima: list[Option], worth: Matrix) -> Vector:
        """Return what the best option found is worth to each row of weights, to the last digit."""
        values = np.array([option.value for option in optima])[:, self.relevant]
        result: Vector = np.maximum(worth_of_each(weights, values), worth.max(axis=1))
        return result
