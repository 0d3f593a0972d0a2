"""A fair queue for computing: one computation per core at a time, and callers take turns."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from tradeoff.errors import TradeoffError

WAITING = 500  # computations that may wait


class BusyError(TradeoffError):
    """Too many computations are waiting; try again in a moment."""

    def __init__(self, waiting: int) -> None:
        super().__init__(f"{waiting} requests are waiting to be computed; try again in a moment")


class ComputeQueue:
    """Limits how many computations run at once. Callers take turns, one computation each."""

    def __init__(self, slots: int | None = None, waiting: int = WAITING) -> None:
        self._free = slots or os.cpu_count() or 1
        self._most = waiting
        self._lock = threading.Lock()
        self._waiting: OrderedDict[Hashable, deque[threading.Event]] = OrderedDict()
        self._thread = threading.local()  # whether this thread holds a slot

    @property
    def waiting(self) -> int:
        """The number of waiting computations."""
        with self._lock:
            return self._count()

    def _count(self) -> int:
        return sum(map(len, self._waiting.values()))

    @contextmanager
    def slot(self, caller: Hashable) -> Iterator[None]:
        """Wait for this caller's turn and hold a slot; raise a BusyError if too many are waiting."""
        if getattr(self._thread, "computes", False):
            yield  # this thread holds a slot
            return
        self._enter(caller)
        self._thread.computes = True
        try:
            yield
        finally:
            self._thread.computes = False
            with self._lock:
                self._leave()

    def _enter(self, caller: Hashable) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            if (count := self._count()) >= self._most:
                raise BusyError(count)
            turn = threading.Event()
            self._waiting.setdefault(caller, deque()).append(turn)
        try:
            turn.wait()
        except BaseException:  # interrupted: pass on a slot that was handed over in the meantime
            with self._lock:
                if turn.is_set():
                    self._leave()
                else:
                    self._remove(caller, turn)
            raise

    def _leave(self) -> None:
        """Pass the slot to the caller whose turn it is. Call this with the lock held."""
        if not self._waiting:
            self._free += 1
            return
        caller = next(iter(self._waiting))
        turn = self._waiting[caller][0]
        self._remove(caller, turn)
        if caller in self._waiting:
            self._waiting.move_to_end(caller)
        turn.set()

    def _remove(self, caller: Hashable, turn: threading.Event) -> None:
        self._waiting[caller].remove(turn)
        if not self._waiting[caller]:
            del self._waiting[caller]
