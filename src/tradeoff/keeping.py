"""What was worked out before, kept so that nobody works it out again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar, cast

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
Made = TypeVar("Made")


class Kept(Generic[Key, Value]):
    """Values by what they depend on; none of them ever changes, so threads can share them.

    When there are too many, or they are too large together, those that were not used for longest are dropped.
    """

    def __init__(
        self, most: int | None = None, largest: int | None = None, size: Callable[[Value], int] = lambda value: 1
    ) -> None:
        """``most`` is how many are kept, ``largest`` how large they may be together, each by ``size``."""
        self._values: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._most, self._largest, self._size = most, largest, size
        self._together = 0
        self._lock = threading.Lock()
        self.watch: Callable[[Key, Value], None] | None = None  # told what is new

    def __contains__(self, key: Key) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Key) -> Value | None:
        """Return the value that was kept under this key; None if there was none, or it was dropped."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def keep(self, key: Key, value: Value) -> None:
        """Keep a value."""
        size = self._size(value)
        with self._lock:
            before = self._values.pop(key, None)
            self._together += size - (0 if before is None else before[1])
            self._values[key] = value, size
            while len(self._values) > 1 and self._too_much():
                self._together -= self._values.popitem(last=False)[1][1]
        if self.watch is not None:
            self.watch(key, value)

    def _too_much(self) -> bool:
        many = self._most is not None and len(self._values) > self._most
        return many or (self._largest is not None and self._together > self._largest)

    def once(self, key: Key, make: Callable[[], Made]) -> Made:
        """Return the value that was kept under this key, or make it now and keep it."""
        with self._lock:
            found = self._values.get(key)
            if found is not None:
                self._values.move_to_end(key)
                return cast(Made, found[0])
        made = make()
        self.keep(key, cast(Value, made))
        return made
