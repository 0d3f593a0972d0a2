"""A random number generator that enumerates its outcomes, each with its exact probability."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from tradeoff.model import Vector

MOST_OUTCOMES = 20_000  # of one step
ROUNDING = 1e-14  # probabilities below this are the last digit of a sum


class NotExactError(Exception):
    """The environment cannot be enumerated exactly; the message says why."""


class BranchingRandom:
    """A stand-in for a random number generator: code run repeatedly with it sees every combination of outcomes once.

    >>> branching = BranchingRandom()
    >>> [(chance, coin) for chance, coin in branching.outcomes(lambda: bool(branching.random() < 0.25))]
    [(0.25, True), (0.75, False)]
    """

    def __init__(self) -> None:
        self._way: list[tuple[int, Sequence[float]]] = []  # the outcome of each draw in this run, and the probabilities
        self._draws = 0

    def outcomes(self, run: Callable[[], Any]) -> Iterator[tuple[float, Any]]:
        """Yield the probability and the result of each possible run; the next run starts when the next pair is requested."""
        self._way = []
        for _ in range(MOST_OUTCOMES):
            self._draws = 0
            result = run()
            chance = 1.0
            for index, chances in self._way:
                chance *= chances[index]
            yield chance, result
            while self._way and not self._next_way():
                self._way.pop()
            if not self._way:
                return
        raise NotExactError(f"a single step has more than {MOST_OUTCOMES:,} random outcomes")

    def _next_way(self) -> bool:
        """Advance the last draw to its next possible outcome; return whether there is one."""
        index, chances = self._way[-1]
        for later in range(index + 1, len(chances)):
            if chances[later] > 0:
                self._way[-1] = (later, chances)
                return True
        return False

    def draw(self, chances: Sequence[float]) -> int:
        """Return the index of the outcome that occurs in this run, given their probabilities."""
        if self._draws == len(self._way):
            first = next(i for i, chance in enumerate(chances) if chance > 0)
            self._way.append((first, chances))
        self._draws += 1
        return self._way[self._draws - 1][0]

    # --- the generator's methods whose outcomes can be enumerated -----------------------------------------------------

    def random(self, size: object = None) -> Uniform:
        """Return a number between 0 and 1 of which only the results of comparisons are decided."""
        return self.uniform(size=size)

    def uniform(self, low: float = 0.0, high: float = 1.0, size: object = None) -> Uniform:
        """Return a number in an interval of which only the results of comparisons are decided."""
        if size not in (None, ()) or np.ndim(low) or np.ndim(high):
            raise NotExactError("it draws an array of continuous random numbers")
        return Uniform(self, float(low), float(high))

    def integers(
        self, low: int, high: int | None = None, size: object = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> Any:
        """Return a whole number below ``high``, each equally likely."""
        if size not in (None, ()) or np.ndim(low) or np.ndim(high if high is not None else 0):
            raise NotExactError("it draws an array of random whole numbers")
        first, last = (0, int(low)) if high is None else (int(low), int(high))
        count = last - first + bool(endpoint)
        if not 0 < count <= MOST_OUTCOMES:
            raise NotExactError(f"it draws one of {count:,} whole numbers")
        return np.dtype(dtype).type(first + self.draw([1 / count] * count))

    def choice(
        self,
        a: Any,
        size: object = None,
        replace: bool = True,
        p: Sequence[float] | None = None,
        axis: int = 0,
        shuffle: bool = True,
    ) -> Any:
        """Return one of several things, equally likely or with probabilities ``p``."""
        if size not in (None, ()) or axis:
            raise NotExactError("it draws several things together")
        things = np.arange(a) if np.ndim(a) == 0 else np.asarray(a)
        chances = np.full(len(things), 1 / len(things)) if p is None else np.asarray(p, dtype=float)
        if things.ndim > 1:
            return things[self.draw(chances.tolist())]
        distinct, number = np.unique(things, return_inverse=True)  # equal things are one outcome
        return distinct[self.draw(np.bincount(number, weights=chances).tolist())]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotExactError(f"it draws random numbers with {name}(), whose outcomes cannot be listed")

    # --- the module functions of random and numpy.random --------------------------------------------------------------

    def pick(self, things: Sequence[Any]) -> Any:
        """Return one of several things itself, as ``random.choice`` does."""
        return things[self.draw([1 / len(things)] * len(things))]

    @contextmanager
    def everywhere(self) -> Iterator[None]:
        """Replace the global generators in this thread, and check that neither was used in any other way."""
        stand_ins: list[tuple[Any, str, Callable[..., Any]]] = [
            (random, "random", self.random),
            (random, "choice", self.pick),
            (random, "randint", lambda a, b: int(self.integers(a, b, endpoint=True))),
            (random, "randrange", lambda a, b=None: int(self.integers(a, b))),
            (np.random, "random", self.random),
            (np.random, "rand", lambda *size: self.uniform(size=size)),
            (np.random, "uniform", self.uniform),
            (np.random, "choice", self.choice),
            (np.random, "randint", lambda low, high=None, size=None, dtype=int: self.integers(low, high, size, dtype)),
        ]
        originals = [getattr(module, name) for module, name, _ in stand_ins]
        before = _global_states()
        try:
            for (module, name, stand_in), original in zip(stand_ins, originals, strict=True):
                setattr(module, name, _in_this_thread(stand_in, original))
            yield
        finally:
            for (module, name, _), original in zip(stand_ins, originals, strict=True):
                setattr(module, name, original)
        if _global_states() != before:
            raise NotExactError("it uses Python's or NumPy's global random numbers in a way that cannot be followed")


def _global_states() -> tuple[object, str]:
    """Return the states of Python's and NumPy's global generators."""
    legacy = np.random.get_state(legacy=True)  # noqa: NPY002
    return random.getstate(), repr([part.tolist() if isinstance(part, np.ndarray) else part for part in legacy])


def _in_this_thread(stand_in: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls the stand-in in this thread and the original in all others."""
    mine = threading.get_ident()

    def call(*given: Any, **options: Any) -> Any:
        return (stand_in if threading.get_ident() == mine else original)(*given, **options)

    return call


class Uniform:
    """A random number in an interval, known only through the comparisons made with it so far."""

    __array_ufunc__ = None  # NumPy leaves comparisons with arrays to this class
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, branching: BranchingRandom, low: float, high: float) -> None:
        self._branching, self._low, self._high = branching, low, high

    def _below(self, bound: Any) -> bool:
        share = (float(bound) - self._low) / (self._high - self._low) if self._high > self._low else 0.0
        if share <= ROUNDING or share >= 1 - ROUNDING:
            return share > 0.5
        below = self._branching.draw((share, 1 - share)) == 0
        if below:
            self._high = float(bound)
        else:
            self._low = float(bound)
        return below

    def _all_below(self, bounds: Any) -> Any:
        if isinstance(bounds, Uniform):
            raise NotExactError("it compares two continuous random numbers")
        if np.ndim(bounds) == 0:
            return self._below(bounds)
        array: Vector = np.asarray(bounds)
        return np.array([self._below(bound) for bound in array.ravel()], dtype=bool).reshape(array.shape)

    def __lt__(self, other: Any) -> Any:
        return self._all_below(other)

    def __gt__(self, other: Any) -> Any:
        return np.logical_not(found) if np.ndim(found := self._all_below(other)) else not found

    __le__ = __lt__  # being exactly equal has probability 0
    __ge__ = __gt__

    def _used(self, *_: object) -> NoReturn:
        raise NotExactError("it computes with a continuous random number")

    __float__ = __int__ = __index__ = __bool__ = __round__ = _used
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _used
    __neg__ = __abs__ = __pow__ = __rpow__ = __floordiv__ = __mod__ = __array__ = _used
    __eq__ = __ne__ = _used
