"""An LRU cache per problem: what is drawn and named for one respondent is drawn and named for many."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from cachetools import LRUCache

from tradeoff.problem import Presentable

Value = TypeVar("Value")


class ProblemCache(Generic[Value]):
    """Values by problem and key, at most so many of each problem; dropped with the problem. Threads can share it."""

    def __init__(self, maxsize: int) -> None:
        self._maxsize = maxsize
        self._caches: WeakKeyDictionary[Presentable, LRUCache[Hashable, Value]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def get(self, problem: Presentable, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value of a key, made now if it is not in the cache."""
        with self._lock:
            cache = self._caches.setdefault(problem, LRUCache(self._maxsize))
            if key in cache:
                found: Value = cache[key]
                return found
        value = make()
        with self._lock:
            cache[key] = value
        return value
