"""Limits on what may be chosen: ``price <= 500``, ``balcony = yes``, ``brand != Acme``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Literal, TypeAlias

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.model import Objective
from tradeoff.objective import YES_NO

Relation: TypeAlias = Literal["<=", ">=", "=", "!="]
# The best amount that can be had of what a limit is about while other limits hold, or None where they cannot all hold.
Attainable: TypeAlias = Callable[["Limit", Sequence["Limit"]], float | None]

_LIMIT = re.compile(r"\s*(?P<name>.+?)\s*(?P<relation><=|>=|!=|=|≤|≥|≠|<|>)\s*(?P<amount>.+?)\s*")
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
    """Return what to say where nothing keeps all limits: which to relax, and by how much."""
    alone = [(limit, attainable(limit, [one for one in limits if one is not limit])) for limit in limits]
    ways = [_relaxed(limit, amount, objectives) for limit, amount in alone if amount is not None]
    if ways:
        return ProblemError(f"nothing in {name!r} keeps all limits; relax one: {'; or '.join(ways)}")
    kept: list[Limit] = []
    together: list[str] = []
    for limit in limits:
        amount = attainable(limit, kept)
        if amount is None:  # cannot be, because what is kept can be kept
            continue
        if _keeps(limit, amount):
            kept.append(limit)
            continue
        together.append(_relaxed(limit, amount, objectives))
        if limit.objective is not None:
            kept.append(Limit(limit.name, _side(limit, amount), repr(amount), limit.objective, amount))
    return ProblemError(f"nothing in {name!r} keeps all limits; relax these together: {'; and '.join(together)}")


def _side(limit: Limit, amount: float) -> Relation:
    return limit.relation if limit.relation != "=" else "<=" if amount > limit.amount else ">="


def _keeps(limit: Limit, amount: float) -> bool:
    if limit.objective is None:
        return amount == 0
    slack = 1e-9 * max(1.0, abs(limit.amount))
    above, below = amount > limit.amount + slack, amount < limit.amount - slack
    return {"<=": not above, ">=": not below, "=": not (above or below), "!=": above or below}[limit.relation]


def _relaxed(limit: Limit, amount: float, objectives: Sequence[Objective]) -> str:
    if limit.objective is None or limit.relation == "!=":
        return f"leave out '{limit}'"
    objective = objectives[limit.objective]
    side = _side(limit, amount)
    reached = _rounded(amount, up=side == "<=")
    by = objective.text(abs(reached - limit.amount))
    return f"'{limit}' by {by}, to {limit.name} {side} {f'{reached:.12g} {objective.unit}'.rstrip()}"


def _rounded(amount: float, up: bool) -> float:
    """Return an amount with about four digits, rounded so that what was possible stays possible.

    >>> _rounded(42.9251, up=True), _rounded(42.9251, up=False), _rounded(1299.0, up=True)
    (42.93, 42.92, 1299.0)
    """
    digits = Decimal(repr(amount))
    step = Decimal(1).scaleb(min(0, digits.adjusted() - 3))
    return float(digits.quantize(step, ROUND_CEILING if up else ROUND_FLOOR))
