"""The fields of an event as JSON has them, each checked when it is taken."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias, get_args

from tradeoff.errors import LogError
from tradeoff.menus import ASKS, STRENGTHS, Graded
from tradeoff.model import Answer

CheckKind: TypeAlias = Literal["dominated", "repeat"]
PairReply: TypeAlias = Answer | Graded | None  # None: skipped
CHECKS: tuple[CheckKind, ...] = get_args(CheckKind)

LARGEST = 1e9  # gains are at most about 1: a number beyond this is damage, and would overflow later


class Reader:
    """The fields of one event, each checked when it is taken."""

    def __init__(self, event: Mapping[str, Any], where: str) -> None:
        self.event, self.where = event, where

    def wrong(self, name: str, wanted: str) -> LogError:
        """Return the error of a field that is not what it must be."""
        found = f"is {self.event[name]!r:.80}" if name in self.event else "is missing"
        return LogError(f"{self.where}: {name!r} {found}; it must be {wanted}. The log is damaged or was edited")

    def text(self, name: str) -> str:
        """Return a text."""
        value = self.event.get(name)
        if not isinstance(value, str):
            raise self.wrong(name, "a string")
        return value

    def one_of(self, name: str, words: Sequence[str]) -> str:
        """Return one of some words."""
        value = self.event.get(name)
        if not isinstance(value, str) or value not in words:
            raise self.wrong(name, f"one of {', '.join(words)}")
        return value

    def count(self, name: str) -> int:
        """Return a whole number from 1."""
        value = self.event.get(name)
        if type(value) is not int or value < 1:
            raise self.wrong(name, "a whole number, 1 or more")
        return value

    def number(self, name: str) -> float | None:
        """Return a number, or None."""
        value = self.event.get(name)
        if value is None:
            return None
        if not _is_number(value):
            raise self.wrong(name, "a number")
        return float(value)

    def numbers(self, name: str) -> tuple[float, ...]:
        """Return a list of numbers."""
        values = self.event.get(name)
        if not isinstance(values, list) or not values or not all(map(_is_number, values)):
            raise self.wrong(name, "a list of numbers, one per objective")
        return tuple(float(value) for value in values)

    def time(self) -> datetime:
        """Return the time of the event."""
        try:
            found = datetime.fromisoformat(self.text("time"))
            return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            raise self.wrong("time", "a date and time such as 2026-01-31T12:00:00+00:00") from None

    def flag(self, name: str) -> bool:
        """Return whether something is so."""
        value = self.event.get(name)
        if type(value) is not bool:
            raise self.wrong(name, "true or false")
        return value

    def measures(self, count: int) -> dict[str, tuple[Any, ...]]:
        """Return what gains are in the person's units, for so many objectives; empty where the header does not say it."""
        kinds: dict[str, Callable[[object], bool]] = {
            "units": lambda value: isinstance(value, str),
            "goals": lambda value: value in ("min", "max"),
            "origin": _is_finite,
            "scale": lambda value: _is_finite(value) and value != 0,
        }
        if not any(self.event.get(name) for name in kinds):
            return {}
        for name, fits in kinds.items():
            values = self.event.get(name)
            if not isinstance(values, list) or len(values) != count or not all(map(fits, values)):
                raise self.wrong(name, f"a list of {count}, one per objective")
        if any(
            (scale > 0) != (goal == "max") for scale, goal in zip(self.event["scale"], self.event["goals"], strict=True)
        ):
            raise self.wrong("scale", "above 0 where more is better, and below 0 where less is")
        return {name: tuple(self.event[name]) for name in kinds}

    def lists(self, name: str, wanted: str, kind: type) -> tuple[tuple[Any, ...], ...]:
        """Return a list of lists of numbers."""
        rows = self.event.get(name)
        fits = _is_number if kind is float else _is_small
        if not isinstance(rows, list) or not rows or not all(
            isinstance(row, list) and row and all(map(fits, row)) for row in rows
        ):  # fmt: skip
            raise self.wrong(name, wanted)
        return tuple(tuple(kind(one) for one in row) for row in rows)

    def places(self, name: str) -> tuple[int, ...]:
        """Return a list of small whole numbers."""
        order = self.event.get(name)
        if not isinstance(order, list) or not all(map(_is_small, order)):
            raise self.wrong(name, "a list of small whole numbers")
        return tuple(order)

    def reply(self, name: str, *, skip: bool) -> PairReply:
        """Return a reply to a pair."""
        found = self.one_of(name, ("first", "second", "same", *(("skip",) if skip else ())))
        return None if found == "skip" else Answer(found)

    def field(self, name: str) -> Any:
        """Return the value of an event's field of this name."""
        match name:
            case "number":
                return self.count(name)
            case "first" | "second" | "value" | "weights":
                return self.numbers(name)
            case "left":
                return self.one_of(name, ("first", "second")) if name in self.event else "first"
            case "alternatives" | "differences":
                return self.lists(name, "a list of lists of numbers, one per objective", float)
            case "tiers":
                return self.lists(name, "a list of lists of alternatives' numbers", int)
            case "order" | "outcomes":
                return self.places(name)
            case "asks":
                return self.one_of(name, ASKS)
            case "at":
                return self.time()
            case "check":
                return self.one_of("kind", CHECKS)
            case "answer" | "expected":
                return self.reply(name, skip=self.event["event"] != "answer")
            case "strength":
                return self.one_of(name, STRENGTHS) if name in self.event else None
            case "regret_bound" | "likely_regret":
                return self.number(name)
            case "complete":
                return self.flag(name)
        return self.text(name)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST  # and no NaN


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_small(value: object) -> bool:
    return type(value) is int and 0 <= value < 100  # far more than a menu has
