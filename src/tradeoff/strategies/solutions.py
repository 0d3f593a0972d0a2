"""Optima of a problem, shared by all respondents; the options that one interview knows; and the certificate.

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
from tradeoff.model import Indices, Matrix, Option, Question, Recommendation, Vector
from tradeoff.numerics import worth_of_each, worths
from tradeoff.problem import Problem, slack_of
from tradeoff.strategies.basis import bases_of
from tradeoff.strategies.posterior import Posterior

# Solved directions per problem; an option of an MDP takes about a kilobyte. A tenth of this costs 20 respondents 6% more.
DIRECTIONS = 50_000
STATE_BYTES = 48 << 20  # of interview states per problem: about 50 KB each with few objectives, more with ten
DIGITS = 10  # options whose gains agree to this many digits are one option
# Cells across the posterior, to which looked-up directions are rounded: finer than the posterior is wide, coarse enough that
# respondents who are alike share them.
GRID = 16


class SolutionCache:
    """Solved directions and interview states of one problem; safe to share between threads.

    Neither depends on who is asked, so a question never depends on who was asked before.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = ref(problem)  # the cache must not keep its problem alive
        self._options: LRUCache[bytes, Option] = LRUCache(DIRECTIONS)
        self._states: LRUCache[bytes, Any] = LRUCache(STATE_BYTES, getsizeof=_size)
        self._lock = threading.Lock()
        self.solved = 0

    def best(self, weights: Matrix) -> list[Option]:
        """Return an optimal option for each row, solving only the directions that are not in the cache."""
        keys = [row.tobytes() for row in weights]
        with self._lock:
            known = [self._options.get(key) for key in keys]
        missing = [i for i, option in enumerate(known) if option is None]
        if missing:
            problem = self._problem()
            if problem is None:
                raise ReferenceError("the problem of this cache no longer exists")
            solved = problem.best(weights[missing])
            looked_up = getattr(problem, "looked_up", None)  # a coverage solves few of them
            with self._lock:
                self.solved += len(missing) - (0 if looked_up is None else looked_up(weights[missing]))
                for i, option in zip(missing, solved, strict=True):
                    known[i] = self._options[keys[i]] = option
        return cast(list[Option], known)

    def state(self, key: bytes) -> Any | None:
        """Return what was computed after the same answers before; None if nothing was, or it was dropped."""
        with self._lock:
            return self._states.get(key)

    def put_state(self, key: bytes, state: Any) -> None:
        """Remember what follows some answers; a state larger than the cache is not."""
        with self._lock:
            if _size(state) <= STATE_BYTES:
                self._states[key] = state


def _size(value: Any) -> int:
    """Return about how many bytes a value of an interview takes, its parts included."""
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    if is_dataclass(value) and not isinstance(value, type | Option | Question | Recommendation):
        return 500 + sum(_size(getattr(value, part.name)) for part in fields(value))
    return 50


_caches: WeakKeyDictionary[Problem, SolutionCache] = WeakKeyDictionary()
_lock = threading.Lock()


def cache_of(problem: Problem) -> SolutionCache:
    """Return the cache of a problem, shared by everybody who is asked about it."""
    with _lock:
        if problem not in _caches:
            _caches[problem] = SolutionCache(problem)
        return _caches[problem]


def identity(option: Option) -> bytes:
    """Return what tells an option from others: its gains, rounded."""
    return (np.round(option.value, DIGITS) + 0.0).tobytes()


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

    cache: SolutionCache
    objectives: int
    relevant: Indices
    slack: float

    @classmethod
    def of(cls, problem: Problem) -> Certifier:
        """Return the certifier of a problem."""
        relevant = np.array(bases_of(problem).relevant, dtype=np.int64)
        slack = slack_of(problem)
        if not 0 <= slack < np.inf:
            raise ArgumentError(f"the slack of the problem is {slack!r}; it must be a finite number, 0 or more")
        return cls(cache_of(problem), len(problem.objectives), relevant, float(slack))

    @property
    def d(self) -> int:
        """The number of objectives that can be changed."""
        return len(self.relevant)

    def directions(self, weights: Matrix) -> Matrix:
        """Return weights on the relevant objectives as weights on all of them."""
        rows = np.zeros((len(weights), self.objectives))
        rows[:, self.relevant] = weights
        return rows

    def look_up(self, candidates: Candidates, posterior: Posterior, count: int) -> Candidates:
        """Return the candidates with the optima of about ``count`` samples, or of weights very near theirs."""
        width = float(np.ptp(posterior.weights, axis=0).max())
        cells = max(4 * self.d, 2 ** int(np.ceil(np.log2(GRID / max(width, 1e-6)))))
        some = posterior.weights[:: max(1, len(posterior.weights) // count)]
        rows = np.unique(np.round(some * cells), axis=0) / cells
        return candidates.add(self.cache.best(self.directions(rows)))

    def certify(
        self, rays: Matrix, candidates: Candidates, number: int | None = None
    ) -> tuple[Certificate, Candidates]:
        """Return the worst case over the rays of a cone, and the candidates with the optima that were found there.

        ``number`` is the candidate to recommend; without it, that is the one of least worst-case regret.
        """
        weights, precision = rays[:, :-1], rays[:, -1]
        optima = self.cache.best(self.directions(weights))
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
        optima = self.cache.best(self.directions(weights))
        worth = worths(weights, candidates.gains)
        most = self._largest(weights, optima, worth) + self.slack
        return float((1 - worth[:, number] / most).max())

    def _largest(self, weights: Matrix, optima: list[Option], worth: Matrix) -> Vector:
        """Return what the best option found is worth to each row of weights, to the last digit."""
        values = np.array([option.value for option in optima])[:, self.relevant]
        result: Vector = np.maximum(worth_of_each(weights, values), worth.max(axis=1))
        return result
