"""Densities to some ten digits, in a fraction of the time: enough to tell nearly always which of two is the larger.

Slice sampling asks nothing else of a density. So the moves of ``walk.py`` compare these, and turn to those of ``density.py``
where two are so close that the last digits count (``doubt``). Where particles go is the same, bit for bit.
"""

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import float64, int64
from numba.extending import intrinsic

from tradeoff.kernels.density import GRADED, LAPSE, NOISE
from tradeoff.kernels.jit import folded

CLOSE = 1e-6  # densities whose ratio is this close to 1 are compared to the last digit,
TOO_CLOSE = 1e-2  # and all are if rounding could change their ratio by this much
ROUNDINGS = 4 * 2.0**-52  # per term of a margin: what its value here and that of ``density.py`` may differ by
SMALLEST = 1e-250  # a density below this has lost digits
SATURATED = 45.0  # the exponential of more than this, or less than minus this, changes no chance that could be noticed

# exp(x) = 2^n exp(r): adding SHIFT rounds to a whole number, whose bits are then the last ones.
LOG2_E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10
SHIFT = 1.5 * 2.0**52
LN_2, SQRT_2 = math.log(2.0), math.sqrt(2.0)

# The rows of a table of comparisons: margins along a line, their ends (1 or -1 times the precision), how likely one is felt to
# be beyond its end, and how likely each answer is.
SLACK, SLOPE, END, FELT, CHANCE = range(5)


def _bits_of(_: Any, number: Any) -> Any:
    """Return the bits of a number, as an integer."""
    return int64(number), lambda _, builder, __, given: builder.bitcast(given[0], ir.IntType(64))


def _number_of(_: Any, bits: Any) -> Any:
    """Return the number with these bits."""
    return float64(bits), lambda _, builder, __, given: builder.bitcast(given[0], ir.DoubleType())


bits_of: Any = intrinsic(_bits_of)
number_of: Any = intrinsic(_number_of)


@folded
def exponential(x: Any) -> Any:
    """Return exp(x) to 14 digits, for -700 <= x <= 700; without branches, so that a loop takes several at once."""
    shifted = x * LOG2_E + SHIFT
    n = shifted - SHIFT
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    r2 = r * r
    r4 = r2 * r2
    value = (
        ((1.0 + r) + r2 * (1.0 / 2.0 + r * (1.0 / 6.0)))
        + r4 * ((1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * (1.0 / 720.0 + r * (1.0 / 5040.0)))
        + (r4 * r4) * ((1.0 / 40320.0 + r * (1.0 / 362880.0)) + r2 * (1.0 / 3628800.0 + r * (1.0 / 39916800.0)))
    )
    return value * number_of((bits_of(shifted) + 1023) << 52)


@folded
def logarithm(x: Any) -> Any:
    """Return log(x) to 14 digits, for a normal number x > 0."""
    bits = bits_of(x)
    m = number_of((bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000)  # x = m 2^n, 1 <= m < 2
    n = float((bits >> 52) - 1023)
    f = (m - SQRT_2) / (m + SQRT_2)  # log(m) = log(sqrt(2)) + 2 atanh(f)
    s = f * f
    s2 = s * s
    series = (
        ((1.0 + s * (1.0 / 3.0)) + s2 * (1.0 / 5.0 + s * (1.0 / 7.0)))
        + (s2 * s2) * ((1.0 / 9.0 + s * (1.0 / 11.0)) + s2 * (1.0 / 13.0 + s * (1.0 / 15.0)))
        + (s2 * s2) * (s2 * s2) * (1.0 / 17.0)
    )
    return (n + 0.5) * LN_2 + 2.0 * f * series


@folded
def doubt(differences: Any, kinds: Any, shares: Any, low: Any) -> Any:
    """Return how close to 1 the ratio of two densities must be before their last digits count; 0 if they always do.

    They do for menus, whose replies can be as unlikely as a difference of two rounded numbers, and for strengths, which are
    too rare to be worth it. ``low`` are the lowest logarithms of the traits.
    """
    count, d = differences.shape
    size = 0.0
    for q in range(count):
        if shares[q] < 0.0 or abs(kinds[q]) > GRADED:
            return 0.0
        for j in range(d):
            size = max(size, abs(differences[q, j]))
    close = CLOSE + count * (d + 8) * ROUNDINGS * ((size + 2.0) / math.exp(low[NOISE]) + 1.0 / math.exp(low[LAPSE]))
    return close if close < TOO_CLOSE else 0.0


@folded
def exponents(powers: Any, even: Any) -> Any:
    """Put the power of the product of all weights in each part of the prior into ``even``; return whether each has just one."""
    for c in range(powers.shape[0]):
        even[c] = powers[c, 0]
        for j in range(powers.shape[1]):
            if powers[c, j] != even[c]:
                return False
    return True


@folded
def quick_prior(w: Any, coefficients: Any, powers: Any, even: Any, symmetric: Any) -> Any:
    """Return the prior density of these weights, as ``density.prior`` returns its logarithm."""
    total = 0.0
    if symmetric:
        product = 1.0
        for j in range(w.shape[0]):
            product *= w[j]
        log = logarithm(product)
        for c in range(coefficients.shape[0]):
            total += exponential(coefficients[c] + even[c] * log)
        return total
    for c in range(coefficients.shape[0]):
        value = coefficients[c]
        for j in range(w.shape[0]):
            value += powers[c, j] * math.log(w[j])
        total += math.exp(value)
    return total


@folded
def table_of(kinds: Any, partner: Any) -> Any:
    """Return a table for ``put``: a column for each comparison, and another for each that has two ends (``partner``)."""
    count = kinds.shape[0]
    columns = count
    for q in range(count):
        partner[q] = q
        if kinds[q] == 0 or kinds[q] == 2:
            partner[q] = columns
            columns += 1
    table = np.zeros((5, (columns + 3) // 4 * 4))  # fours are taken at once
    for q in range(count):
        table[END, q] = 1.0
        if partner[q] != q:
            table[END, partner[q]] = -1.0
    return table


@folded
def put(table: Any, slack: Any, slope: Any, kinds: Any, partner: Any) -> None:
    """Put margins along a line into the table, each towards what was said."""
    for q in range(kinds.shape[0]):
        if kinds[q] < 0:
            table[SLACK, q], table[SLOPE, q] = -slack[q], -slope[q]
        else:
            table[SLACK, q], table[SLOPE, q] = slack[q], slope[q]
            table[SLACK, partner[q]], table[SLOPE, partner[q]] = slack[q], slope[q]


@folded
def feel(table: Any, t: Any, since: Any, precision: Any, noise: Any) -> None:
    """Work out how likely each margin is felt to be beyond its end, ``t`` along the line."""
    steep = 1.0 / noise
    for q in range(since // 4 * 4, table.shape[1]):
        x = (table[END, q] * precision - (table[SLACK, q] + t * table[SLOPE, q])) * steep
        table[FELT, q] = 1.0 / (1.0 + exponential(min(max(x, -SATURATED), SATURATED)))


@folded
def told(table: Any, kinds: Any, partner: Any, since: Any, lapse: Any) -> Any:
    """Return how likely the answers of the present mind are, after ``feel``; put how likely each is into the table."""
    meant, slip, product = 1.0 - 1.5 * lapse, 0.5 * lapse, 1.0
    for q in range(since, kinds.shape[0]):
        felt, other = table[FELT, q], table[FELT, partner[q]]
        if kinds[q] == 0:
            one = meant * (other - felt) + slip
        elif kinds[q] == 2:
            one = 0.5 * ((1.0 - lapse) * (other + felt) + lapse)
        else:
            one = meant * felt + slip
        table[CHANCE, q] = one
        product *= one
    return product


@folded
def compared(one: Any, other: Any, close: Any) -> Any:
    """Return 1 where the first density is surely the larger, -1 where it is surely the smaller, and 0 where it is not sure."""
    if not SMALLEST < other < 1.0 / SMALLEST:
        return 0
    if one > other * (1.0 + close):
        return 1
    if one < other * (1.0 - close):
        return -1
    return 0
