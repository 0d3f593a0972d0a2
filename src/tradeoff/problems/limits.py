"""Limits on what may be chosen: ``price <= 500``, ``balcony = yes``, ``brand != Acme``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from itertools import combinations
from typing import Literal, TypeAlias

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.model import Objective
from tradeoff.objective import YES_NO

Relation: TypeAlias = Literal["<=", ">=", "=", "!="]
# The best amount that can be had of what a limit is about while other limits hold, or None where they cannot all hold.
Attainable: TypeAlias = Callable[["Limit", Sequence["Limit"]], float | None]

_LIMIT = re.compile(r"\s*(?P<name>.+?)\s*(?P<relation><=|>=|!=|=|≤|≥|≠|<|>)\s*(?P<amount>.+?)\s*")
MOST_LIMITS = 12  # for which every set of limits is tried, to find which to relax
_SIGNS = {"≤": "<=", "≥": ">=", "≠": "!="}


@dataclass(frozen=True)
class Limit:
    """A limit on an objective (``objective`` is its number, ``amount`` a number in its unit), or on a text beside items."""

    name: str
    relation: Relation
    text: str  # what it is compared with, as it was written
    objective: int | None = None
    amount: float = 0.0

    def __str__(self) -> str:
        return f"{self.name} {self.relation} {self.text}"


def split(limits: object) -> list[str]:
    """Return limits that are given as texts, or as one text with semicolons between them.

    >>> split("price <= 500; balcony = yes")
    ['price <= 500', 'balcony = yes']
    """
    given = [limits] if isinstance(limits, str) else list(limits) if isinstance(limits, list | tuple) else [str(limits)]
    return [part.strip() for text in given for part in str(text).split(";") if part.strip()]


def parse(limits: Sequence[str], objectives: Sequence[Objective], labels: Sequence[str] = ()) -> list[Limit]:
    """Return limits on objectives and labels, checked to make sense.

    >>> parse(["time <= 40 min", "Colour != red"], [Objective("time", "min", "min")], ["colour"])[1]
    Limit(name='colour', relation='!=', text='red', objective=None, amount=0.0)
    """
    return [_parsed(text, objectives, labels) for text in split(list(limits))]


def _parsed(text: str, objectives: Sequence[Objective], labels: Sequence[str]) -> Limit:
    found = _LIMIT.fullmatch(text)
    if found is None:
        raise ArgumentError(f"the limit {text!r:.80} is not of the form NAME <= NUMBER, NAME >= NUMBER or NAME = TEXT")
    relation = _SIGNS.get(found["relation"], found["relation"])
    if relation in ("<", ">"):
        raise ArgumentError(
            f"the limit {text!r:.80} leaves open whether {found['amount']} itself is allowed; write {relation}="
        )
    names = {o.name: j for j, o in enumerate(objectives)}
    name = _known(found["name"], [*names, *labels])
    if name is None:
        raise ArgumentError(
            f"the limit {text!r:.80} is about {found['name']!r}, which is neither an objective nor shown beside items; there "
            f"are {', '.join(map(repr, [*names, *labels]))}"
        )
    if name not in names:
        if relation not in ("=", "!="):
            raise ArgumentError(
                f"the limit {text!r:.80} compares texts; write {name} = TEXT, {name} != TEXT, or weigh {name}"
            )
        return Limit(name, relation, found["amount"])  # type: ignore[arg-type]
    objective = objectives[names[name]]
    amount = _amount(found["amount"], objective)
    if amount is None:
        raise ArgumentError(
            f"the limit {text!r:.80} compares {name} with {found['amount']!r}; write a number"
            f"{f' of {objective.unit}' if objective.unit else ''}"
        )
    return Limit(name, relation, found["amount"], names[name], amount)  # type: ignore[arg-type]


def _known(name: str, names: Sequence[str]) -> str | None:
    """Return which of the names is meant; capitals and what stands in brackets are ignored."""
    if name in names:
        return name
    for shorter in (str.casefold, lambda text: re.sub(r"\s*[(\[].*", "", text).casefold()):
        meant = [known for known in names if shorter(known) == name.casefold()]
        if len(meant) == 1:
            return meant[0]
    return None


def _amount(text: str, objective: Objective) -> float | None:
    if objective.unit == YES_NO and text.casefold() in ("yes", "no"):
        return float(text.casefold() == "yes")
    number = text.casefold().removesuffix(objective.unit.casefold()).strip() if objective.unit else text
    try:
        found = float(number.replace("\u2212", "-"))
    except ValueError:
        return None
    return found if abs(found) < float("inf") else None


def only_bounds(limits: Sequence[Limit], what: str) -> None:
    """Refuse limits with !=, which leave a gap among the values that are allowed."""
    for limit in limits:
        if limit.relation == "!=":
            raise ArgumentError(f"the limit '{limit}' cannot be kept by {what}; use <=, >= or =")


# --- limits that cannot be kept ---------------------------------------------------------------------------------------


def infeasible(
    name: str, limits: Sequence[Limit], objectives: Sequence[Objective], attainable: Attainable
) -> ProblemError:
    """Return what to say where nothing keeps all limits: the smallest number of limits to relax, and by how much.

    Where one limit is enough, every such limit is named. The advice does not depend on the order of the limits.
    """
    if len(limits) > MOST_LIMITS:
        return ProblemError(f"nothing in {name!r} keeps all {len(limits)} limits; leave out some of them")
    ordered = sorted(limits, key=lambda limit: (limit.objective is None, limit.objective or 0, str(limit)))
    alone = [way for limit in ordered if (way := _ways([limit], ordered, objectives, attainable))]
    if alone:
        return ProblemError(f"nothing in {name!r} keeps all limits; relax one: {'; or '.join(way for (way,) in alone)}")
    sets = (chosen for size in range(2, len(limits) + 1) for chosen in combinations(ordered, size))
    together = next(way for chosen in sets if (way := _ways(chosen, ordered, objectives, attainable)))
    return ProblemError(f"nothing in {name!r} keeps all limits; relax these together: {'; and '.join(together)}")


def _ways(
    chosen: Sequence[Limit], limits: Sequence[Limit], objectives: Sequence[Objective], attainable: Attainable
) -> list[str]:
    """Return how to relax each chosen limit, as little as the others and those before it allow; nothing if that fails."""
    kept = [limit for limit in limits if limit not in chosen]
    ways = []
    for limit in chosen:
        amount = attainable(limit, kept)
        if amount is None:
            return []
        if limit.objective is None or limit.relation == "!=":
            ways.append(f"leave out '{limit}'")
            continue
        side = _side(limit, amount)
        reached = _rounded(amount, up=side == "<=")
        kept.append(Limit(limit.name, side, repr(reached), limit.objective, reached))
        objective = objectives[limit.objective]
        to = f"{limit.name} {side} {f'{reached:.12g} {objective.unit}'.rstrip()}"
        ways.append(f"'{limit}' by {objective.text(abs(reached - limit.amount))}, to {to}")
    return ways


def _side(limit: Limit, amount: float) -> Relation:
    return limit.relation if limit.relation != "=" else "<=" if amount > limit.amount else ">="


def _rounded(amount: float, up: bool) -> float:
    """Return an amount with about four digits, rounded so that what was possible stays possible.

    >>> _rounded(42.9251, up=True), _rounded(42.9251, up=False), _rounded(1299.0, up=True)
    (42.93, 42.92, 1299.0)
    """
    digits = Decimal(repr(amount))
    step = Decimal(1).scaleb(min(0, digits.adjusted() - 3))
    return float(digits.quantize(step, ROUND_CEILING if up else ROUND_FLOOR))
