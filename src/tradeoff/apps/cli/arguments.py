"""Values typed on the command line, parsed for the library."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tradeoff.errors import ArgumentError
from tradeoff.model import Matrix, Vector
from tradeoff.problem import Presentable

# What is not an option of a strategy, and the argument or flag that each command has for it instead.
_BOTH = {"problem": "PROBLEM", "strategy": "--strategy", "max_questions": "--max-questions"}
NOT_OPTIONS: Mapping[str, Mapping[str, str | None]] = {
    "ask": {**_BOTH, "clock": None, "order_seed": "--seed"},
    "simulate": {
        **_BOTH, "respondents": "--respondents", "precision": "--precision", "error_rate": "--error-rate", "seed": "--seed",
        "kind": "--kind", "prior": "--prior", "jobs": "--jobs",
        "out": "--out", "progress": None,
    },
}  # fmt: skip


def weights_from(text: str, problem: Presentable) -> Vector:
    """Return the weights written as ``time=3,comfort=1``; 0 for objectives left out, and straight lines for curves.

    >>> from tradeoff import Catalogue
    >>> weights_from("b = 2", Catalogue([[1, 2], [2, 1]], ["a", "b"])).tolist()
    [0.0, 2.0]
    """
    names = [o.name for o in problem.original.objectives]
    weights = np.zeros(len(names))
    given: set[str] = set()
    for part in text.split(","):
        name, equals, amount = part.rpartition("=")
        name = name.strip()
        if not equals:
            raise ArgumentError(f"the weight {part.strip()!r} is not of the form NAME=NUMBER, such as {names[0]}=1")
        if name not in names:
            raise ArgumentError(f"there is no objective {name!r}; there are {', '.join(names)}")
        if name in given:
            raise ArgumentError(f"the weight of {name!r} is given twice; keep one of them")
        given.add(name)
        try:
            weight = float(amount)
        except ValueError:
            weight = math.nan
        if not math.isfinite(weight):
            raise ArgumentError(f"the weight of {name!r} is {amount.strip()!r}, which is not a number")
        weights[names.index(name)] = weight
    if not weights.any():
        raise ArgumentError(f"all weights are 0, so all plans are equally good; try {names[0]}=1")
    straight: Matrix | None = getattr(problem, "straight", None)
    return weights if straight is None else weights @ straight


def prior_from(path: Path) -> Any:
    """Return what is supposed of people before the first answer, as ``learn_prior`` made it and a file holds it as JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ArgumentError(
            f"the prior in {str(path)!r} cannot be read: {error}; write what learn_prior returns to it, with json.dump"
        ) from None


def settings_from(options: Sequence[str], command: str) -> dict[str, Any]:
    """Return the strategy's options written as ``basis=spanner``; those that the command has a flag for are refused.

    >>> settings_from(["basis=spanner", "theorem=2", "skip_implied=False"], "ask")
    {'basis': 'spanner', 'theorem': 2, 'skip_implied': False}
    """
    found: dict[str, Any] = {}
    for text in options:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier():
            raise ArgumentError(f"the option {text!r} is not of the form NAME=VALUE, such as basis=spanner")
        if name in NOT_OPTIONS[command]:
            flag = NOT_OPTIONS[command][name]
            advice = f"use {flag} for it" if flag else "leave it out"
            raise ArgumentError(f"{name!r} is not an option of a strategy; {advice}")
        if name in found:
            raise ArgumentError(f"the option {name!r} is given twice; keep one of them")
        found[name] = value_from(value.strip())
    return found


def value_from(text: str) -> bool | int | float | str:
    """Return true, false or a number where the text is one, and the text itself otherwise."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def questions_for(
    problem: Presentable, strategy: str, settings: Mapping[str, Any], wished: str | None
) -> dict[str, Any]:
    """Return the setting of what questions are about: as wished, or four at a time where each is one line per objective.

    A plan of many steps is told in stories, and four of those are too much to read at once.
    """
    from tradeoff.strategies import spec_of

    if wished is not None:
        return {"questions": wished}
    fits = spec_of(strategy).menus and not problem.has_paths and "questions" not in settings
    return {"questions": "best-worst-4"} if fits and not settings.get("lotteries") else {}
