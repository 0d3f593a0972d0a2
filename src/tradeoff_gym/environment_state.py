"""Save and restore the state of an environment: the attributes that change, and which of those a step reads.

Copying a whole environment would not save its state: some environments start again from the first state when copied.
"""

from __future__ import annotations

import copy
import hashlib
import random
import types
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from tradeoff_gym.branching import BranchingRandom, NotExactError, Uniform

PLAIN = (type(None), bool, int, float, complex, str, bytes, np.generic, Enum)
RANDOMNESS = (random.Random, np.random.RandomState, np.random.Generator, np.random.BitGenerator)
ABSENT = "no such attribute"
OFTEN = 50  # the first steps are all checked thoroughly, later ones once in RARELY
RARELY = 200
LARGE = 1 << 14  # bytes; of larger arrays, such as pictures, only a digest is kept


class RestartExploration(Exception):
    """Something new was learned about an attribute: exploration must start again."""


@dataclass(frozen=True)
class Digest:
    """A digest of a large observation, enough to tell it from others."""

    content: Any


def kept(observation: Any) -> Any:
    """Return a copy of an observation, with large arrays replaced by digests."""
    if isinstance(observation, np.ndarray):
        return Digest(frozen(observation)) if is_large(observation) else observation.copy()
    if isinstance(observation, dict):
        return {key: kept(part) for key, part in observation.items()}
    if type(observation) is tuple:
        return tuple(map(kept, observation))
    return copy.deepcopy(observation)


def is_large(value: object) -> bool:
    """Return whether this is an array too large to be kept for every state."""
    return isinstance(value, np.ndarray) and value.nbytes > LARGE


class CounterProxy:
    """A number that may only be increased; any other use of it is reported."""

    __array_ufunc__ = None

    def __init__(self, number: float, notice: Callable[[], None]) -> None:
        self.number, self.notice = number, notice

    def __add__(self, other: Any) -> Any:
        if is_number(other):
            return CounterProxy(self.number + other, self.notice)
        return self.plain() + other

    __radd__ = __iadd__ = __add__

    def plain(self) -> float:
        """Return the number and report that it was used."""
        self.notice()
        return self.number


def _used_as(method: str) -> Callable[..., Any]:
    def use(self: CounterProxy, *others: Any) -> Any:
        plain = [other.plain() if isinstance(other, CounterProxy) else other for other in others]
        return getattr(self.plain(), method)(*plain)

    return use


_USES = [
    "eq", "ne", "lt", "le", "gt", "ge", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv",
    "mod", "rmod", "pow", "rpow", "neg", "abs", "bool", "int", "float", "index", "round", "str", "repr", "format", "hash",
]  # fmt: skip
for _name in _USES:
    setattr(CounterProxy, f"__{_name}__", _used_as(f"__{_name}__"))
setattr(CounterProxy, "__array__", lambda self, *_, **__: np.array(self.plain()))  # noqa: B010


def frozen(value: Any, inside: tuple[int, ...] = ()) -> Any:
    """Return a hashable value that is equal for equal contents."""
    if isinstance(value, PLAIN):
        return "not a number" if isinstance(value, float | np.floating) and value != value else value
    if isinstance(value, tuple):
        return tuple([frozen(part, inside) for part in value])
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            return frozen(value.tolist(), inside)
        content = value.tobytes()
        return value.dtype.str, value.shape, hashlib.blake2b(content).digest() if is_large(value) else content
    if isinstance(value, Digest):
        return value.content
    if isinstance(value, CounterProxy):
        return value.plain()
    if isinstance(value, Uniform):
        raise NotExactError("it keeps a continuous random number in its state")
    if id(value) in inside:
        return "itself"
    return _frozen_object(value, (*inside, id(value)))


def _frozen_object(value: Any, inside: tuple[int, ...]) -> Any:
    if isinstance(value, list | deque):
        return ("list", *[frozen(part, inside) for part in value])
    if isinstance(value, dict):
        return ("dict", *[(frozen(key, inside), frozen(part, inside)) for key, part in value.items()])
    if isinstance(value, set | frozenset):
        return frozenset(frozen(part, inside) for part in value)
    if isinstance(value, random.Random):
        return value.getstate()
    if isinstance(value, np.random.RandomState | np.random.Generator):
        # Hundreds of numbers: frozen as an array, because listing them would take longer than a step.
        return frozen(value.bit_generator.state if hasattr(value, "bit_generator") else value.get_state(), inside)
    if isinstance(value, type | types.ModuleType | types.FunctionType | types.MethodType | BranchingRandom) or is_space(
        value
    ):
        return ("object", id(value))
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    if hasattr(value, "__dict__") or slots:
        contents = {name: getattr(value, name, ABSENT) for name in slots if not name.startswith("__")}
        return (type(value).__qualname__, frozen(contents | dict(getattr(value, "__dict__", {})), inside))
    return ("object", id(value))


def is_space(value: object) -> bool:
    """Return whether a value is a space of actions or observations."""
    return any(kind.__name__ == "Space" and kind.__module__.startswith("gymnasium.") for kind in type(value).__mro__)


class EnvironmentState:
    """The attributes of an environment, by how they are used.

    ``changing`` attributes are saved and restored. Of these, a step reads the ``known`` before it sets them:
    only they determine what happens next, so they identify the state. ``counted`` ones are only ever increased. An
    attribute moves from one group to the next when a use is noticed, and then exploration starts again.
    """

    def __init__(self, env: Any, branching: BranchingRandom) -> None:
        self.env, self.branching = env, branching
        self.attributes: dict[str, Any] = vars(env)
        self.changing: list[str] = []
        self.known: list[str] = []
        self.counted: list[str] = []
        self.steps = 0
        self.partly_saved = False  # whether pictures that no step reads were not saved
        self._noticed: set[str] = set()
        self._set: set[str] = set()
        self._kind = type(env)
        self._generators: list[tuple[dict[str, Any], str, Any]] = []

    def begin(self) -> None:
        """Replace every generator by the branching one, and remember the first state."""
        spaces = [vars(value) for value in self.attributes.values() if is_space(value)]
        for owner in (self.attributes, *spaces):
            names = {name for name, value in owner.items() if isinstance(value, np.random.Generator)}
            for name in names | {"_np_random"}:
                self._generators.append((owner, name, owner.get(name, ABSENT)))
                owner[name] = self.branching
        self.first = dict(self.attributes)
        self.first_frozen = {name: frozen(value) for name, value in self.first.items()}
        self.first_copies = {name: self._copy_or_none(value) for name, value in self.first.items()}

    def end(self) -> None:
        """Leave the environment as it was found."""
        self.env.__class__ = self._kind
        for name in list(self.attributes):
            if name not in self.first:
                del self.attributes[name]
        for name in self.first:
            self._put_first(name)
        for owner, name, value in self._generators:
            if value is ABSENT:
                owner.pop(name, None)
            else:
                owner[name] = value

    def first_state(self) -> None:
        """Restore the state from before the first reset."""
        for name in self.changing:
            self._put_first(name)
        self._forget()

    def _put_first(self, name: str) -> None:
        if name not in self.first:
            self.attributes.pop(name, None)
        elif name in self.changing and self.first_copies[name] is not None:
            self.attributes[name] = self.copied(self.first_copies[name])
        else:
            self.attributes[name] = self.first[name]

    def save(self) -> dict[str, Any]:
        """Return the changing attributes as they are now."""
        values = {name: self.attributes[name] for name in self.changing if name in self.attributes}
        unread = [name for name, value in values.items() if is_large(value) and name not in self.known]
        for name in unread:
            del values[name]
            self.partly_saved = True
        for name in self.counted:
            if isinstance(values.get(name), CounterProxy):
                values[name] = values[name].number
        if all(map(_unchangeable, values.values())):
            return values
        found: dict[str, Any] = self.copied(values)
        return found

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore the changing attributes; the environment cannot alter the saved values."""
        values = saved if all(map(_unchangeable, saved.values())) else self.copied(saved)
        self._forget()
        for name in self.changing:
            if name not in values:
                self.attributes.pop(name, None)
            elif name in self.counted:
                self.attributes[name] = self._tally(name, values[name])
            else:
                self.attributes[name] = values[name]

    def _tally(self, name: str, value: Any) -> Any:
        """Return a number as a counter proxy; a value that is no longer a number was not only counted."""
        if not is_number(value):
            self._noticed.add(name)
            return value
        return CounterProxy(value, lambda: self._noticed.add(name))

    def _forget(self) -> None:
        self._noticed.clear()
        self._set.clear()

    def state(self) -> tuple[Any, ...]:
        """Return the attributes that determine everything that can happen from now on."""
        return tuple([frozen(self.attributes.get(name, ABSENT)) for name in self.known])

    def check(self, thoroughly: bool = False) -> None:
        """Raise RestartExploration if an attribute was used in a way that its group does not allow."""
        self.steps += 1
        thoroughly = thoroughly or self.steps <= OFTEN or self.steps % RARELY == 0
        changed = [
            name
            for name, value in self.attributes.items()
            if not (value is self.first.get(name, ABSENT) and (not thoroughly or isinstance(value, PLAIN)))
            and name not in self.changing
            and (name not in self.first or frozen(value) != self.first_frozen[name])
        ]
        if not changed and not self._noticed:
            return
        for name in changed:
            if isinstance(self.attributes[name], RANDOMNESS):
                raise NotExactError(f"it has a random number generator of its own, {name!r}")
            if self.attributes[name] is not None and self._copy_or_none(self.attributes[name]) is None:
                raise NotExactError(f"its attribute {name!r} ({type(self.attributes[name]).__name__}) cannot be saved")
        self.changing += changed
        for name in sorted(self._noticed):  # a number is first taken for a counter, until another use of it is noticed
            value = self.attributes.get(name)
            if name in self.counted or not is_number(value):
                self.known.append(name)
                self.counted = [other for other in self.counted if other != name]
            else:
                self.counted.append(name)
        self._watch()
        raise RestartExploration

    def _watch(self) -> None:
        """Watch for reads of attributes that change but that no step has read so far."""
        unread = [name for name in self.changing if name not in self.known and name not in self.counted]
        self.env.__class__ = self._kind
        try:
            watched = {name: self._watched(name) for name in unread}
            self.env.__class__ = type(self._kind.__name__, (self._kind,), watched)
        except TypeError:  # the class does not allow it: treat everything that changes as read
            self.known += unread

    def _watched(self, name: str) -> property:
        def get(env: Any) -> Any:
            if name not in self._set:
                self._noticed.add(name)
            return vars(env)[name] if name in vars(env) else getattr(self._kind, name)

        def put(env: Any, value: Any) -> None:
            self._set.add(name)
            vars(env)[name] = value

        return property(get, put)

    def copied(self, value: Any) -> Any:
        """Return a copy of a value in which the environment itself and its generator are not copied."""
        try:
            return copy.deepcopy(value, {id(self.env): self.env, id(self.branching): self.branching})
        except Exception as error:
            raise NotExactError(f"its state cannot be saved ({error})") from None

    def _copy_or_none(self, value: Any) -> Any:
        try:
            return self.copied(value)
        except NotExactError:
            return None


def is_number(value: object) -> bool:
    """Return whether a value is a number other than a bool."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _unchangeable(value: Any) -> bool:
    """Return whether a value can be kept without a copy."""
    return isinstance(value, PLAIN) or (isinstance(value, tuple) and all(map(_unchangeable, value)))


def check_single(env: Any) -> None:
    """Raise a NotExactError if an environment holds another one, whose state would not be seen."""
    for name, value in vars(env).items():
        kinds = {f"{kind.__module__}.{kind.__name__}" for kind in type(value).__mro__}
        if value is not env and "gymnasium.core.Env" in kinds:
            raise NotExactError(f"it holds another environment, {name!r}")
