"""The least ratios of what alternatives are worth, over all rays; nothing is added up, so the order changes no digit."""

from typing import Any

import numpy as np
from numba import types

from tradeoff.kernels.jit import FixedMatrix, FixedVector, compiled_when_called, float64, int64

FixedIndices = types.Array(int64, 1, "C", readonly=True)


@compiled_when_called((FixedMatrix, FixedVector))
def least_shares(worth: Any, most: Any) -> Any:
    """Return the least ``worth[r, i] / most[r]`` over all rays r, for each alternative i."""
    rays, count = worth.shape
    least = np.full(count, np.inf)
    for r in range(rays):
        for i in range(count):
            share = worth[r, i] / most[r]
            least[i] = share if share < least[i] else least[i]
    return least


@compiled_when_called((FixedMatrix, FixedIndices, float64))
def least_against(worth: Any, chosen: Any, floor: Any) -> Any:
    """Return the least ``worth[r, c] / max(worth[r, i], floor)`` over all rays r, for each chosen c and alternative i."""
    rays, count = worth.shape
    least = np.full((chosen.shape[0], count), np.inf)
    safe = np.empty(count)
    for r in range(rays):
        for i in range(count):
            safe[i] = worth[r, i] if worth[r, i] > floor else floor
        for c in range(chosen.shape[0]):
            mine, row = worth[r, chosen[c]], least[c]
            for i in range(count):
                share = mine / safe[i]
                row[i] = share if share < row[i] else row[i]
    return least
