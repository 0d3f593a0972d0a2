"""What people type, turned into what the library takes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tradeoff.errors import ArgumentError
from tradeoff.model import Objective, Vector


def weights_from(text: str, objectives: Sequence[Objective]) -> Vector:
    """Return the weights written as ``time=3,comfort=1``; objectives left out count 0.

    >>> weights_from("b = 2", [Objective("a"), Objective("b")]).tolist()
    [0.0, 2.0]
    """
    names = [o.name for o in objectives]
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
        raise ArgumentError(f"all weights are 0, so every plan is as good as any other; try {names[0]}=1")
    return weights
