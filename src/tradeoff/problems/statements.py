"""Statements: what a respondent says without being asked, such as "price > speed", "price 20% to 40%" or "Alto > Brio".

A statement is about how much objectives matter, over the full range from the worst to the best amount of each, or about two
options: items of a table, or amounts ("price 9, crema 6 > price 7, crema 4"). It comes down to comparisons, as every answer
does. A statement about two options counts like the answer to a question about them. A statement about weights holds whatever
the respondent can tell apart; a share counts as far as it is stated, so that "price <= 0%" means less than half a percent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from tradeoff.errors import ArgumentError
from tradeoff.evidence import EXCEEDS, PREFERRED, SAME, Statement
from tradeoff.model import Vector
from tradeoff.objective import YES_NO
from tradeoff.problem import Problem, gains_at, pieces_of

FORMS = (
    '"A > B" (A matters more, or is preferred), "A >= 20%", "A <= 40%", "A 20% to 40%" or, of items, "A = B"; amounts are '
    'compared with "price 9, size 2 > price 7, size 1"'
)
LONGEST = 400  # characters

_BETWEEN = re.compile(r"(?P<name>.+?)\s+(?P<low>[\d.]+)\s*%\s*(?:to|-)\s*(?P<high>[\d.]+)\s*%")
_LIMIT = re.compile(r"(?P<name>.+?)\s*(?P<sign>>=|<=)\s*(?P<share>[\d.]+)\s*%")
_NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)(e-?\d+)?")
_ORDER = re.compile(r"(?P<first>.+?)\s+(?P<sign>[>=])\s+(?P<second>.+)")


def parse_statement(problem: Problem, text: str) -> Statement:
    """Return what a text says about the objectives or the items of a problem, or raise an ArgumentError.

    >>> import tradeoff
    >>> parse_statement(tradeoff.load("coffee"), "price > aroma").differences.tolist()
    [[0.0, -1.0, 0.0, 0.0, 1.0]]
    """
    said = " ".join(text.split()) if isinstance(text, str) else ""
    if not said or len(said) > LONGEST:
        raise ArgumentError(f"{text!r:.80} says nothing that can be used; say {FORMS}")
    if found := _BETWEEN.fullmatch(said):
        (low, below), (high, above) = (_share(found[end], said) for end in ("low", "high"))
        if low > high:
            raise ArgumentError(
                f"{said!r}: {found['low']}% is more than {found['high']}%; give the smaller share first"
            )
        objective = _objective(problem, found["name"], said)
        ends = [objective - (low - below), high + above - objective]
        return Statement(said, np.array(ends), np.full(2, EXCEEDS))
    if found := _LIMIT.fullmatch(said):
        objective, (share, margin) = _objective(problem, found["name"], said), _share(found["share"], said)
        difference = objective - (share - margin) if found["sign"] == ">=" else share + margin - objective
        return Statement(said, difference[None, :], np.array([EXCEEDS]))
    if found := _ORDER.fullmatch(said):
        names = found["first"], found["second"]
        equal = found["sign"] == "="
        if all(_is_item(problem, name) for name in names):
            return compared(problem, *names, equal=equal)
        if amounts := [one for name in names if (one := _amounts(problem, name, said)) is not None]:
            return _compares(problem, _between(problem, amounts, said), said, equal)
        items = [name for name in names if _is_item(problem, name)]
        if len(items) == 1:
            (unknown,) = (name for name in names if name not in items)
            raise ArgumentError(f"{said!r}: {items[0]!r:.60} is an item, but no item is called {unknown!r:.60}")
        if equal:
            raise ArgumentError(
                f"{said!r}: only items and amounts can be about equal; of objectives say, for example, a share: {FORMS}"
            )
        difference = np.subtract(*(_objective(problem, name, said) for name in names))
        _check_differ(difference, said)
        return Statement(said, difference[None, :], np.array([EXCEEDS]))
    raise ArgumentError(
        f"{said!r:.80} is not understood; say {FORMS}, with the names of objectives, or of items with > or ="
    )


def compared(problem: Problem, better: str, worse: str, *, equal: bool = False) -> Statement:
    """Return that one item is preferred to another, by their names, or that they are about equal."""
    said = f"{better} {'=' if equal else '>'} {worse}"
    for name in (better, worse):
        if not _is_item(problem, name):
            raise ArgumentError(f"there is no item {name!r:.80} in {getattr(problem, 'name', 'the problem')!r}")
    return _compares(problem, _gains(problem, better) - _gains(problem, worse), said, equal)


def _compares(problem: Problem, difference: Vector, said: str, equal: bool) -> Statement:
    """Return that a difference of gains is an advantage, or too small to notice, if something follows from that.

    Weights on what is the same for every plan are left open, so nothing follows where two differ in that. A precision is
    counted as at most all that can be gained, so nothing follows where more than that is about equal.
    """
    for j in open_objectives(problem):
        if difference[j]:
            raise ArgumentError(
                f"{said!r} depends on {problem.objectives[j].name!r}, which is the same for all that can be chosen here"
            )
    _check_differ(difference, said)
    if equal and np.abs(difference).max() > 1:
        raise ArgumentError(
            f"{said!r}: these differ by more than anything that can be chosen here; nothing follows from that"
        )
    return Statement(said, difference[None, :], np.array([SAME if equal else PREFERRED]))


def open_objectives(problem: Problem) -> list[int]:
    """Return the objectives whose weights stay open, because they are the same for every plan."""
    return [j for j, matters in enumerate(getattr(problem, "matters", ())) if not matters]


def _check_differ(difference: Vector, said: str) -> None:
    if not difference.any():
        raise ArgumentError(f"{said!r} compares something with itself, or with its equal; nothing follows from that")


def _share(text: str, said: str) -> tuple[float, float]:
    """Return a share and how precisely it is stated: "30%" is anything that rounds to it, from 29.5% to 30.5%."""
    try:
        share = float(text) / 100
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ArgumentError(f"{said!r}: {text}% is no share; it lies between 0% and 100%")
    digits = len(text.partition(".")[2])
    return share, 0.005 * 10.0**-digits


def _objective(problem: Problem, name: str, said: str) -> Vector:
    """Return the unit vector of an objective."""
    names = [o.name for o in _read(problem).objectives]
    same = [j for j, one in enumerate(names) if one == name] or [
        j for j, one in enumerate(names) if one.casefold() == name.casefold()
    ]
    if len(same) != 1:
        raise ArgumentError(f"{said!r}: there is no objective {name!r:.60}; there are {', '.join(map(repr, names))}")
    if same[0] in open_objectives(_read(problem)):
        raise ArgumentError(
            f"{said!r}: {names[same[0]]!r} is the same for all that can be chosen here, so that it does not matter"
        )
    vector: Vector = pieces_of(problem)[:, same[0]]  # the pieces of a curve count together
    return vector


def _is_item(problem: Problem, name: str) -> bool:
    """Return whether the problem has an item of this name, left out or not, and no objective is called so."""
    if not hasattr(problem, "option") or name in (o.name for o in _read(problem).objectives):
        return False
    return name in getattr(problem, "names", ()) or name in getattr(problem, "beaten", ())


def _gains(problem: Problem, name: str) -> Vector:
    """Return the gains of an item; where others beat it, they may be below 0."""
    beaten: Mapping[str, Sequence[float]] = getattr(problem, "beaten", {})
    if name in beaten:
        return gains_at(problem, np.array(beaten[name]))
    return np.array(problem.option(name).value)  # type: ignore[attr-defined]


def _amounts(problem: Problem, text: str, said: str) -> dict[int, float] | None:
    """Return the amounts that a text such as "price 9 EUR, size 2" names, by objective; None if it names none."""
    parts = [_amount(problem, part.strip()) for part in text.split(",")]
    if all(part is None for part in parts):
        return None
    found = dict(part for part in parts if part is not None)
    if len(found) != len(parts):
        raise ArgumentError(f"{said!r}: {text!r:.80} does not give an amount to each of some objectives; say {FORMS}")
    return found


def _amount(problem: Problem, text: str) -> tuple[int, float] | None:
    """Return the objective and the amount of "price 9 EUR" or "price 9"; None if it is something else."""
    for j, objective in sorted(enumerate(_read(problem).objectives), key=lambda one: -len(one[1].name)):
        name, rest = text[: len(objective.name)], text[len(objective.name) :].strip()
        if name.casefold() != objective.name.casefold():
            continue
        if objective.unit == YES_NO and rest in ("yes", "no"):
            return j, float(rest == "yes")
        number = rest.removesuffix(objective.unit).strip() if objective.unit else rest
        return (j, float(number)) if _NUMBER.fullmatch(number) else None
    return None


def _between(problem: Problem, amounts: list[dict[int, float]], said: str) -> Vector:
    """Return what the first of two lists of amounts gains over the second."""
    if len(amounts) != 2 or amounts[0].keys() != amounts[1].keys():
        raise ArgumentError(
            f"{said!r}: give amounts of the same objectives on both sides; those that are left out count as the same"
        )
    first, second = np.zeros((2, len(_read(problem).objectives)))
    for j in amounts[0]:
        first[j], second[j] = amounts[0][j], amounts[1][j]
    cut = getattr(problem, "cut", lambda amounts: amounts)
    difference: Vector = (cut(first) - cut(second)) / problem.scale
    return difference


def _read(problem: Problem) -> Problem:
    """Return the problem in the objectives that people read; they may be cut into pieces of curves."""
    found: Problem = getattr(problem, "original", problem)
    return found
