"""What is shared between all people who are asked about one problem, and the alternatives that one interview knows.

``SolutionCache`` holds solved directions and the states of interviews by what was answered. Neither depends on who is
asked, so a question never depends on who was asked before.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np

from tradeoff.keeping import Kept
from tradeoff.model import Alternative, Indices, Matrix, Question, Recommendation
from tradeoff.problem import Problem

# Solved directions per problem; the oldest are dropped. An alternative of an MDP takes about a kilobyte. Most directions are
# looked up again by the same person a few answers later, if at all: a tenth of this costs 20 people 6% more solving.
DIRECTIONS = 50_000
# States of interviews per problem, in number and in bytes: about 50 KB each with few objectives, megabytes with ten.
STATES = 8_000
STATE_BYTES = 128 << 20
# Alternatives whose gains agree to this many digits are one alternative.
DIGITS = 10


class SolutionCache:
    """Solved directions and interview states of one problem; safe to share between threads."""

    def __init__(self, problem: Problem) -> None:
        self._problem = ref(problem)  # the cache must not keep its problem alive
        self._found: OrderedDict[bytes, Alternative] = OrderedDict()
        self.states: Kept[bytes, Any] = Kept(STATES, STATE_BYTES, lambda state: 2_000 + _array_bytes(state))
        self._lock = threading.Lock()
        self.solved = 0

    def best(self, weights: Matrix) -> list[Alternative]:
        """Return an optimal alternative for each row, solving only the directions that are not in the cache."""
        keys = [row.tobytes() for row in weights]
        with self._lock:
            known = [self._found.get(key) for key in keys]
        missing = [i for i, alternative in enumerate(known) if alternative is None]
        if missing:
            problem = self._problem()
            if problem is None:
                raise ReferenceError("the problem of this cache no longer exists")
            found = problem.best(weights[missing])
            looked_up = getattr(problem, "looked_up", None)  # a coverage solves few of them
            with self._lock:
                self.solved += len(missing) - (0 if looked_up is None else looked_up(weights[missing]))
                for i, alternative in zip(missing, found, strict=True):
                    known[i] = self._found[keys[i]] = alternative
                while len(self._found) > DIRECTIONS:
                    self._found.popitem(last=False)
        return known  # type: ignore[return-value]


_caches: WeakKeyDictionary[Problem, SolutionCache] = WeakKeyDictionary()
_lock = threading.Lock()


def cache_of(problem: Problem) -> SolutionCache:
    """Return the cache of a problem, shared by everybody who is asked about it."""
    with _lock:
        if problem not in _caches:
            _caches[problem] = SolutionCache(problem)
        return _caches[problem]


@dataclass(frozen=True, eq=False)
class Candidates:
    """The different alternatives that one interview has come across, in that order; never changed."""

    alternatives: tuple[Alternative, ...]
    relevant: Indices  # the objectives that can be changed
    values: Matrix  # [K, k]

    @classmethod
    def none(cls, objectives: int, relevant: Indices) -> Candidates:
        """Return the candidates before any was found."""
        return cls((), relevant, np.zeros((0, objectives)))

    def with_found(self, found: Sequence[Alternative]) -> Candidates:
        """Return these candidates and those of the found alternatives that are new."""
        known = self._keys
        fresh: dict[bytes, Alternative] = {}
        seen: set[int] = set()
        for alternative in found:
            if id(alternative) not in seen:
                seen.add(id(alternative))
                key = _key(alternative)
                if key not in known:
                    fresh.setdefault(key, alternative)
        if not fresh:
            return self
        values = np.concatenate([self.values, [alternative.value for alternative in fresh.values()]])
        more = Candidates((*self.alternatives, *fresh.values()), self.relevant, values)
        vars(more)["_keys"] = known.union(fresh)
        return more

    @cached_property
    def gains(self) -> Matrix:
        """The gains in the relevant objectives, [K, d]."""
        return self.values[:, self.relevant]

    @cached_property
    def _keys(self) -> frozenset[bytes]:
        return frozenset(_key(alternative) for alternative in self.alternatives)


def _array_bytes(value: Any) -> int:
    """Return about how many bytes the arrays in a value take, its parts and theirs included."""
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    if is_dataclass(value) and not isinstance(value, type | Alternative | Question | Recommendation):
        return sum(_array_bytes(getattr(value, part.name)) for part in fields(value))
    return 0


def _key(alternative: Alternative) -> bytes:
    return (np.round(alternative.value, DIGITS) + 0.0).tobytes()
