"""What a person says without being asked: "price > speed", "price 20% to 40%", "Alto > Brio".

A statement is about how much objectives matter, counted for the whole way from the worst to the best amount of each, or about
two items of a catalogue. It comes down to comparisons, as every answer does. What is said of two items is like the answer to a
question about them; what is said of weights is taken exactly, whatever the person can tell apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from tradeoff.errors import ArgumentError
from tradeoff.menus import PREFERRED, SAME, WORTH_MORE, Statement
from tradeoff.model import Vector
from tradeoff.problem import Problem

FORMS = '"A > B" (A matters more, or is preferred), "A >= 20%", "A <= 40%", "A 20% to 40%" or, of items, "A = B"'
LONGEST = 400  # characters

_BETWEEN = re.compile(r"(?P<name>.+?)\s+(?P<low>[\d.]+)\s*%\s*(?:to|-)\s*(?P<high>[\d.]+)\s*%")
_LIMIT = re.compile(r"(?P<name>.+?)\s*(?P<sign>>=|<=)\s*(?P<share>[\d.]+)\s*%")
_ORDER = re.compile(r"(?P<first>.+?)\s+(?P<sign>[>=])\s+(?P<second>.+)")


def statement(problem: Problem, text: str) -> Statement:
    """Return what a text says about the objectives or the items of a problem, or raise an ArgumentError.

    >>> import tradeoff
    >>> statement(tradeoff.load("coffee"), "price > aroma").differences.tolist()
    [[0.0, -1.0, 0.0, 0.0, 1.0]]
    """
    said = " ".join(text.split()) if isinstance(text, str) else ""
    if not said or len(said) > LONGEST:
        raise ArgumentError(f"{text!r:.80} says nothing that can be used; say {FORMS}")
    if found := _BETWEEN.fullmatch(said):
        low, high = (_share(found[end], said) for end in ("low", "high"))
        if low > high:
            raise ArgumentError(
                f"{said!r}: {found['low']}% is more than {found['high']}%; give the smaller share first"
            )
        objective = _objective(problem, found["name"], said)
        return Statement(said, np.array([objective - low, high - objective]), np.full(2, WORTH_MORE))
    if found := _LIMIT.fullmatch(said):
        objective, share = _objective(problem, found["name"], said), _share(found["share"], said)
        difference = objective - share if found["sign"] == ">=" else share - objective
        return Statement(said, difference[None, :], np.array([WORTH_MORE]))
    if found := _ORDER.fullmatch(said):
        names = found["first"], found["second"]
        items = [_item(problem, name) for name in names]
        equal = found["sign"] == "="
        if items[0] is not None and items[1] is not None:
            difference, noticed = items[0] - items[1], PREFERRED
        elif equal:
            raise ArgumentError(
                f"{said!r}: only items can be about equal; of objectives say, for example, a share: {FORMS}"
            )
        else:
            difference, noticed = np.subtract(*(_objective(problem, name, said) for name in names)), WORTH_MORE
        if not difference.any():
            raise ArgumentError(
                f"{said!r} compares something with itself, or with its equal; nothing follows from that"
            )
        return Statement(said, difference[None, :], np.array([SAME if equal else noticed]))
    raise ArgumentError(
        f"{said!r:.80} is not understood; say {FORMS}, with the names of objectives, or of items with > or ="
    )


def _share(text: str, said: str) -> float:
    try:
        share = float(text) / 100
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ArgumentError(f"{said!r}: {text}% is no share; it lies between 0% and 100%")
    return share


def _objective(problem: Problem, name: str, said: str) -> Vector:
    """Return the unit vector of an objective."""
    names = [o.name for o in problem.objectives]
    same = [j for j, one in enumerate(names) if one == name] or [
        j for j, one in enumerate(names) if one.casefold() == name.casefold()
    ]
    if len(same) != 1:
        raise ArgumentError(f"{said!r}: there is no objective {name!r:.60}; there are {', '.join(map(repr, names))}")
    vector: Vector = np.eye(len(names))[same[0]]
    return vector


def _item(problem: Problem, name: str) -> Vector | None:
    """Return the gains of an item, if the problem has one of this name and no objective is called so."""
    alternative: Callable[[str], object] | None = getattr(problem, "alternative", None)
    if alternative is None or name in (o.name for o in problem.objectives) or name not in getattr(problem, "names", ()):
        return None
    return np.array(alternative(name).value)  # type: ignore[attr-defined]
