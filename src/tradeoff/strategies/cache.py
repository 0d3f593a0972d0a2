"""What the strategies know of a problem: alternatives found so far, and a memory of what was worked out before.

The memory is shared by everybody who is asked about the problem. It holds results of ``best``, and where a strategy was
after the same answers: neither depends on who asks, so that a question never depends on who was asked before. What a
strategy *knows* is its own.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np

from tradeoff.model import Alternative, Matrix
from tradeoff.problem import Problem

# Directions remembered per problem; the oldest are forgotten. An alternative of an MDP takes under a kilobyte.
REMEMBERED = 200_000
# Places in interviews remembered per problem, and what they may take: some 50 KB each with few objectives, megabytes with ten.
PLACES = 8_000
PLACES_BYTES = 256 << 20
# Alternatives whose gains agree to this many digits are one.
DIGITS = 10


class Memory:
    """Solved directions of one problem; safe to share between threads."""

    def __init__(self, problem: Problem) -> None:
        self._problem = ref(problem)  # whoever asks holds the problem; its memory must not keep it alive
        self._found: OrderedDict[bytes, Alternative] = OrderedDict()
        self._places: OrderedDict[bytes, tuple[Mapping[str, Any], int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()
        self.solved = 0

    def recall(self, place: bytes) -> Mapping[str, Any] | None:
        """Return how things stood at this place of an interview, if anybody was there lately."""
        with self._lock:
            found = self._places.get(place)
            if found is None:
                return None
            self._places.move_to_end(place)
            return found[0]

    def remember(self, place: bytes, standing: Mapping[str, Any]) -> None:
        """Remember how things stand at a place; nobody may change it afterwards."""
        size = _size(standing)
        with self._lock:
            self._bytes += size - self._places.pop(place, ({}, 0))[1]
            self._places[place] = standing, size
            while len(self._places) > 1 and (len(self._places) > PLACES or self._bytes > PLACES_BYTES):
                self._bytes -= self._places.popitem(last=False)[1][1]

    def best(self, weights: Matrix) -> list[Alternative]:
        """Return an optimal alternative for each row, solving only those that nobody has needed before."""
        keys = [row.tobytes() for row in weights]
        with self._lock:
            known = [self._found.get(key) for key in keys]
        missing = [i for i, alternative in enumerate(known) if alternative is None]
        if missing:
            problem = self._problem()
            if problem is None:
                raise ReferenceError("the problem of this memory is gone")
            found = problem.best(weights[missing])
            with self._lock:
                self.solved += len(missing)
                for i, alternative in zip(missing, found, strict=True):
                    known[i] = self._found[keys[i]] = alternative
                while len(self._found) > REMEMBERED:
                    self._found.popitem(last=False)
        return known  # type: ignore[return-value]


_memories: WeakKeyDictionary[Problem, Memory] = WeakKeyDictionary()
_lock = threading.Lock()


def memory_of(problem: Problem) -> Memory:
    """Return the memory of a problem, shared by everybody who is asked about it."""
    with _lock:
        if problem not in _memories:
            _memories[problem] = Memory(problem)
        return _memories[problem]


class Known:
    """The different alternatives that one interview has come across, in the order it did."""

    def __init__(self, objectives: int) -> None:
        self.alternatives: list[Alternative] = []
        self.values: Matrix = np.zeros((0, objectives))
        self._numbers: dict[bytes, int] | None = None  # by value; made when it is first needed

    def copy(self) -> Known:
        """Return the same again, to be added to independently."""
        other = Known(self.values.shape[1])
        other.alternatives, other.values = list(self.alternatives), self.values
        return other

    def add(self, found: list[Alternative]) -> list[int]:
        """Return the number of each alternative, new or not."""
        if self._numbers is None:
            self._numbers = {_key(alternative): i for i, alternative in enumerate(self.alternatives)}
        numbers = []
        fresh = []
        for alternative in found:
            key = _key(alternative)
            number = self._numbers.get(key)
            if number is None:
                number = self._numbers[key] = len(self.alternatives)
                self.alternatives.append(alternative)
                fresh.append(alternative.value)
            numbers.append(number)
        if fresh:
            self.values = np.concatenate([self.values, fresh])
        return numbers


def _size(standing: Mapping[str, Any]) -> int:
    """Return about how many bytes it takes: its arrays, and those of the objects in it."""
    held = [standing, *(vars(value) for value in standing.values() if hasattr(value, "__dict__"))]
    parts = [
        part
        for values in held
        for value in values.values()
        for part in (value if isinstance(value, tuple) else [value])
    ]
    return 2_000 + sum(part.nbytes for part in parts if isinstance(part, np.ndarray))


def _key(alternative: Alternative) -> bytes:
    return (np.round(alternative.value, DIGITS) + 0.0).tobytes()
