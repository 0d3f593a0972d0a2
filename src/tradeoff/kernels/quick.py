"""Densities to some nine digits, four at once: enough to tell nearly always which of two is the larger.

Slice sampling asks nothing else of a density. So the moves of ``walk.py`` compare these, and turn to those of ``density.py``
where two are so close that the last digits count (``doubt``). Where particles go is the same, bit for bit.

A move tries one place after another until one will do, and each is drawn without knowing how good the one before was, only that
it would not do. So four are drawn and looked at together, and the first that will do is taken.
"""

import math
from typing import Any

import numpy as np

from tradeoff.kernels.density import FLOOR, GRADED, LAPSE, NOISE
from tradeoff.kernels.jit import folded, helper
from tradeoff.kernels.lanes import at_least, at_most, bits_of, flags, number_of
from tradeoff.kernels.vector import broadcast, greater, load, not_less, store

FOUR = 4  # places that are looked at together
ALL = (1 << FOUR) - 1
CLOSE = 1e-6  # densities whose ratio is this close to 1 are compared to the last digit,
TOO_CLOSE = 1e-2  # and all are if rounding could change their ratio by this much
ROUNDINGS = 4 * 2.0**-52  # per term of a margin: what its value here and that of ``density.py`` may differ by
ERROR = 1e-9  # of a chance: what an exponential here may make it differ by
SMALLEST = 1e-250  # a density below this has lost digits
STEEPEST = 570.0  # the logarithm of the largest prior density that is sure to be far from overflow
SATURATED = 45.0  # the exponential of more than this, or less than minus this, changes no chance that could be noticed

# exp(x) = 2^n exp(r): adding SHIFT rounds to a whole number, whose bits are then the last ones.
LOG2_E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10
SHIFT = 1.5 * 2.0**52
WHOLE = 2.0**52  # a whole number below this, added to it, is its last bits
LN_2, SQRT_2 = math.log(2.0), math.sqrt(2.0)

# The rows of a table of comparisons: margins along a line, how likely one is felt to be above the precision and above minus the
# precision, and how likely each answer is.
SLACK, SLOPE, FELT, OTHER, CHANCE = range(5)
# The rows of a table of places: how far along the line, and what was found there.
AT, PRIOR_AT, LIKELY_AT, PRECISION_AT, NOISE_AT, LAPSE_AT = range(6)


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
def short_exponential(x: Any) -> Any:
    """Return exp(x) to 9 digits, for -700 <= x <= 700."""
    shifted = x * LOG2_E + SHIFT
    r = x - (shifted - SHIFT) * LN_2
    r2 = r * r
    value = ((1.0 + r) + r2 * (1.0 / 2.0 + r * (1.0 / 6.0))) + (r2 * r2) * (
        (1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * ((1.0 / 720.0 + r * (1.0 / 5040.0)) + r2 * (1.0 / 40320.0))
    )
    return number_of(bits_of(value) + (bits_of(shifted) << 52))


@folded
def logarithm(x: Any) -> Any:
    """Return log(x) to 14 digits, for a normal number x > 0."""
    bits = bits_of(x)
    m = number_of((bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000)  # x = m 2^n, 1 <= m < 2
    n = number_of((bits >> 52) | 0x4330000000000000) - (WHOLE + 1023.0)
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
def above(x: Any) -> Any:
    """Return how likely logistic noise is above x, 1 / (1 + exp(x)), in every lane."""
    return 1.0 / (1.0 + short_exponential(at_least(at_most(x, SATURATED), -SATURATED)))


@helper
def doubt(differences: Any, kinds: Any, shares: Any, low: Any, coefficients: Any, powers: Any) -> Any:
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
    largest = -np.inf
    for c in range(coefficients.shape[0]):
        most = coefficients[c]
        for j in range(powers.shape[1]):
            most += max(powers[c, j] * math.log(FLOOR), 0.0)
        largest = max(largest, most)
    noise, lapse = math.exp(low[NOISE]), math.exp(low[LAPSE])
    close = CLOSE + count * ((d + 8) * ROUNDINGS * ((size + 2.0) / noise + 1.0 / lapse) + ERROR / lapse)
    return close if close < TOO_CLOSE and largest < STEEPEST else 0.0


@helper
def exponents(powers: Any, even: Any) -> Any:
    """Put the power of the product of all weights in each part of the prior into ``even``; return whether each has just one."""
    for c in range(powers.shape[0]):
        even[c] = powers[c, 0]
        for j in range(powers.shape[1]):
            if powers[c, j] != even[c]:
                return False
    return True


@helper
def priors(product: Any, logs: Any, coefficients: Any, powers: Any, even: Any, symmetric: Any) -> Any:
    """Return the prior density of weights in four places, of which their ``product`` is enough if it is ``symmetric``.

    Otherwise ``logs`` has the logarithms of all weights.
    """
    total = broadcast(0.0, 4)
    if symmetric:
        log = logarithm(product)
        for c in range(coefficients.shape[0]):
            total = total + short_exponential(at_least(coefficients[c] + even[c] * log, -STEEPEST))
        return total
    for c in range(coefficients.shape[0]):
        value = broadcast(coefficients[c], 4)
        for j in range(powers.shape[1]):
            value = value + powers[c, j] * load(logs, FOUR * j, 4)
        total = total + short_exponential(at_least(value, -STEEPEST))
    return total


@helper
def signed(differences: Any, kinds: Any) -> Any:
    """Return the differences towards what was said, a row for each objective; fours are taken at once."""
    count, d = differences.shape
    turned = np.zeros((d, (count + FOUR - 1) // FOUR * FOUR))
    for q in range(count):
        for j in range(d):
            turned[j, q] = -differences[q, j] if kinds[q] < 0 else differences[q, j]
    return turned


@folded
def weigh(turned: Any, w: Any, table: Any, row: Any) -> None:
    """Put what weights make of the differences into a row of the table."""
    width = turned.shape[1]
    for q in range(0, width, FOUR):
        margin = broadcast(0.0, 4)
        for j in range(turned.shape[0]):
            margin = margin + w[j] * load(turned, j * width + q, 4)
        store(table, row * width + q, margin)


@helper
def told(table: Any, kinds: Any, since: Any, t: Any, precision: Any, noise: Any, lapse: Any) -> Any:
    """Return how likely the answers of the present mind are in four places, ``t`` along the line."""
    steep, meant, slip, product = 1.0 / noise, 1.0 - 1.5 * lapse, 0.5 * lapse, broadcast(1.0, 4)
    for q in range(since, kinds.shape[0]):
        margin = table[SLACK, q] + t * table[SLOPE, q]
        felt = above((precision - margin) * steep)
        if kinds[q] == 0 or kinds[q] == 2:
            other = above((0.0 - precision - margin) * steep)
            if kinds[q] == 0:
                product = product * (meant * (other - felt) + slip)
            else:
                product = product * (0.5 * ((1.0 - lapse) * (other + felt) + lapse))
        else:
            product = product * (meant * felt + slip)
    return product


@helper
def feel(table: Any, precision: Any, noise: Any) -> None:
    """Work out how likely each margin is felt to be above the precision, and above minus that."""
    width, steep = table.shape[1], 1.0 / noise
    for q in range(0, width, FOUR):
        margin = load(table, SLACK * width + q, 4)
        store(table, FELT * width + q, above((precision - margin) * steep))
        store(table, OTHER * width + q, above((-precision - margin) * steep))


@folded
def said_after(table: Any, kinds: Any, since: Any, lapse: Any) -> Any:
    """Return how likely the answers of the present mind are in four places that differ only in the lapse, after ``feel``."""
    meant, slip, product = 1.0 - 1.5 * lapse, 0.5 * lapse, broadcast(1.0, 4)
    for q in range(since, kinds.shape[0]):
        if kinds[q] == 0:
            product = product * (meant * (table[OTHER, q] - table[FELT, q]) + slip)
        elif kinds[q] == 2:
            product = product * (0.5 * ((1.0 - lapse) * (table[OTHER, q] + table[FELT, q]) + lapse))
        else:
            product = product * (meant * table[FELT, q] + slip)
    return product


@folded
def chances(table: Any, kinds: Any, lapse: Any) -> None:
    """Put how likely each answer is into the table, after ``feel``."""
    meant, slip = 1.0 - 1.5 * lapse, 0.5 * lapse
    for q in range(kinds.shape[0]):
        if kinds[q] == 0:
            table[CHANCE, q] = meant * (table[OTHER, q] - table[FELT, q]) + slip
        elif kinds[q] == 2:
            table[CHANCE, q] = 0.5 * ((1.0 - lapse) * (table[OTHER, q] + table[FELT, q]) + lapse)
        else:
            table[CHANCE, q] = meant * table[FELT, q] + slip


@folded
def compared(densities: Any, level: Any, close: Any) -> Any:
    """Return which places may be as dense as the level, and which surely are, as bits."""
    if not SMALLEST < level < 1.0 / SMALLEST:
        return ALL, 0
    sparse = flags(greater(broadcast(level * (1.0 - close), 4), densities))
    return ALL & ~sparse, flags(not_less(densities, broadcast(level * (1.0 + close), 4)))
