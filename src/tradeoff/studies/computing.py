"""A fair queue for computing: one computation per core at a time, callers take turns, and long ones wait for short ones."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from tradeoff.errors import TradeoffError

WAITING = 500  # computations that may wait
SHORT_FIRST = 8  # short computations that begin, one after the other, before a long one that waits


class BusyError(TradeoffError):
    """Too many computations are waiting; try again in a moment."""

    def __init__(self, waiting: int) -> None:
        super().__init__(f"{waiting} requests are waiting to be computed; try again in a moment")


class _Line:
    """Computations that wait; callers take turns."""

    def __init__(self) -> None:
        self._turns: OrderedDict[Hashable, deque[threading.Event]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._turns.values()))

    def join(self, caller: Hashable) -> threading.Event:
        turn = threading.Event()
        self._turns.setdefault(caller, deque()).append(turn)
        return turn

    def next(self) -> threading.Event:
        """Take out the one whose turn it is; its caller comes last from now on."""
        caller = next(iter(self._turns))
        turn = self._turns[caller][0]
        self.leave(caller, turn)
        if caller in self._turns:
            self._turns.move_to_end(caller)
        return turn

    def leave(self, caller: Hashable, turn: threading.Event) -> None:
        self._turns[caller].remove(turn)
        if not self._turns[caller]:
            del self._turns[caller]


class ComputeQueue:
    """Limits how many computations run at once. Callers take turns, one computation each.

    Short ones, which work out and draw a question, go before long ones, such as a result with its ranking; but after some of
    them a long one has its turn. Long ones never hold all slots, where there are several.
    """

    def __init__(self, slots: int | None = None, waiting: int = WAITING) -> None:
        self._free = self._slots = slots or os.cpu_count() or 1
        self._most = waiting
        self._most_long = max(1, self._free - 1)
        self._running_long = 0
        self._in_row = 0  # short ones that were let in since the last long one
        self._lock = threading.Lock()
        self._short, self._long = _Line(), _Line()
        self._sent_away: set[threading.Event] = set()
        self._thread = threading.local()  # whether this thread holds a slot

    @property
    def busy(self) -> bool:
        """Whether anything is being computed."""
        with self._lock:
            return self._free < self._slots

    @property
    def waiting(self) -> int:
        """The number of waiting computations."""
        with self._lock:
            return self._count()

    def check(self) -> None:
        """Raise a BusyError if nobody else may wait, without waiting."""
        with self._lock:
            if not self._free:
                self._check_room()

    def close(self) -> None:
        """Refuse whoever waits or comes from now on, so that the process can end soon; what is being computed goes on."""
        with self._lock:
            self._most = 0
            for line in (self._short, self._long):
                while len(line):
                    turn = line.next()
                    self._sent_away.add(turn)
                    turn.set()

    def _check_room(self) -> None:
        if (count := self._count()) >= self._most:
            raise BusyError(count)

    def _count(self) -> int:
        return len(self._short) + len(self._long)

    @contextmanager
    def slot(self, caller: Hashable, *, long: bool = False) -> Iterator[None]:
        """Wait for this caller's turn and hold a slot; raise a BusyError if too many are waiting."""
        if getattr(self._thread, "computes", False):
            yield  # this thread holds a slot
            return
        self._enter(caller, long)
        self._thread.computes = True
        try:
            yield
        finally:
            self._thread.computes = False
            with self._lock:
                self._leave(long)

    def _enter(self, caller: Hashable, long: bool) -> None:
        with self._lock:
            if self._free and not (long and self._running_long >= self._most_long):
                self._begin(long)
                return
            self._check_room()
            line = self._long if long else self._short
            turn = line.join(caller)
        try:
            turn.wait()
            if turn in self._sent_away:
                raise BusyError(len(self._sent_away))
        except BaseException:  # interrupted: pass on a slot that was handed over in the meantime
            with self._lock:
                if turn in self._sent_away:
                    self._sent_away.discard(turn)
                elif turn.is_set():
                    self._leave(long)
                else:
                    line.leave(caller, turn)
            raise

    def _begin(self, long: bool) -> None:
        self._free -= 1
        self._running_long += long
        self._in_row = 0 if long else self._in_row + 1

    def _leave(self, long: bool) -> None:
        """Give the slot back, and let in whoever may come now. Call this with the lock held."""
        self._free += 1
        self._running_long -= long
        while self._free:
            may = len(self._long) and self._running_long < self._most_long
            if may and (self._in_row >= SHORT_FIRST or not len(self._short)):
                self._begin(True)
                self._long.next().set()
            elif len(self._short):
                self._begin(False)
                self._short.next().set()
            else:
                return
