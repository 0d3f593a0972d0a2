"""Sums in a fixed order: the same bits on every machine."""

from __future__ import annotations

import numpy as np

from tradeoff.model import Matrix, Vector

# The rewards of a step are added up over this many states at a time, and then those sums: threads, or a graphics card, can
# add in the same order.
SUM_STATES = 256


def worths(weights: Matrix, gains: Matrix) -> Matrix:
    """Return ``weights @ gains.T``, added up in a fixed order.

    The order of a matrix product's sums depends on the processor and its library. Where products decide what is asked, the
    last bit would make logs of one machine differ from those of another.

    >>> worths(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [5.0, 6.0]])).tolist()
    [[11.0, 17.0]]
    """
    total = np.zeros((len(weights), len(gains)))
    for weight, gain in zip(weights.T, gains.T, strict=True):
        total += np.multiply.outer(weight, gain)
    return total


def worth_of_each(weights: Matrix, gains: Matrix) -> Vector:
    """Return the worth of each row of gains to the same row of weights, added up in a fixed order.

    >>> worth_of_each(np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([[3.0, 4.0], [5.0, 6.0]])).tolist()
    [11.0, 6.0]
    """
    total = np.zeros(len(weights))
    for weight, gain in zip(weights.T, gains.T, strict=True):
        total += weight * gain
    return total
