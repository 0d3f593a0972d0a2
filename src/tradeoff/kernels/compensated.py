"""Sums of products in twice the working precision: the mean of a weighted set, and the error of a reduced set.

The mean that Algorithm 3 of the paper ("C4") must preserve is a sum over every point. A plain sum of n products is
wrong by up to n rounding errors, which for equal weights do not cancel; these kernels keep track of the rounding errors
(Ogita, Rump and Oishi 2005, "Accurate sum and dot product"), so that the result is as accurate as if rounded once.
"""

from typing import Any

import numpy as np

from tradeoff.kernels.jit import inlined
from tradeoff.kernels.vector import fma

# Results of ``summarise``; a value of 0 or more is the index of the first weight that is negative or not a number.
SOUND = -1
NOT_FINITE = -2

# Rows of the summary; each has k+1 columns, the last one for the constant 1 of the lifted point. The aim is the mean
# that the weights must have: the points' own, or one that is known more precisely.
MEAN, REST, LOW, HIGH, AIM, AIM_REST, SUMMARY = range(7)


@inlined
def summarise(points: Any, weights: Any, summary: Any) -> Any:
    """Return SOUND; write the weighted mean (in two parts), minimum and maximum of each coordinate to ``summary``.

    Points of weight 0 are ignored; the mean is divided by the sum of the weights, which is written to the last column. Any
    other return value says what is wrong with the input.
    """
    count, size = points.shape
    mean, rest, low, high = summary[MEAN], summary[REST], summary[LOW], summary[HIGH]
    for j in range(size + 1):
        mean[j] = 0.0
        rest[j] = 0.0
        low[j] = np.inf
        high[j] = -np.inf
    total = 0.0
    total_rest = 0.0
    for i in range(count):
        weight = weights[i]
        if not weight >= 0.0:
            return i
        before = total
        total = before + weight
        shift = total - before
        total_rest += (before - (total - shift)) + (weight - shift)
        for j in range(size):
            value = points[i, j]
            product = weight * value
            slip = fma(weight, value, -product)
            old = mean[j]
            new = old + product
            part = new - old
            rest[j] += ((old - (new - part)) + (product - part)) + slip
            mean[j] = new
        if weight > 0.0:
            for j in range(size):
                value = points[i, j]
                low[j] = value if value < low[j] else low[j]
                high[j] = value if value > high[j] else high[j]
    mean[size] = total
    rest[size] = total_rest
    for j in range(size + 1):
        value = mean[j] + rest[j]
        if value - value != 0.0:
            return NOT_FINITE
    if total == 0.0:
        return SOUND
    for j in range(size):
        quotient = mean[j] / total
        remainder = (fma(-quotient, total, mean[j]) + (rest[j] - quotient * total_rest)) / total
        mean[j] = quotient + remainder
        rest[j] = remainder - (mean[j] - quotient)
    return SOUND


@inlined
def shortfall(
    points: Any, support: Any, weights: Any, target: Any, target_rest: Any, missing: Any, scratch: Any
) -> Any:
    """Write target - sum of weights * points to ``missing``, and 1 - sum of weights to its entry k.

    ``support`` holds the rows of the points; a negative one means no point.
    """
    size = points.shape[1]
    for j in range(size):
        missing[j] = target[j]
        scratch[j] = target_rest[j]
    missing[size] = 1.0
    scratch[size] = 0.0
    for s in range(support.shape[0]):
        row = support[s]
        if row < 0:
            continue
        weight = -weights[s]
        for j in range(size):
            value = points[row, j]
            product = weight * value
            slip = fma(weight, value, -product)
            old = missing[j]
            new = old + product
            part = new - old
            scratch[j] += ((old - (new - part)) + (product - part)) + slip
            missing[j] = new
        old = missing[size]
        new = old + weight
        part = new - old
        scratch[size] += (old - (new - part)) + (weight - part)
        missing[size] = new
    for j in range(size + 1):
        missing[j] += scratch[j]
