"""Move particles by slice sampling (Neal 2003, with shrinking); every move leaves the posterior invariant.

A particle consists of weights on the simplex and the logarithm of a precision. The margins of answers are linear along a
line, so a point on it costs one multiply-add per answer, not one per answer and weight.
"""

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import float64, int64, types, uint64

from tradeoff.kernels.jit import compiled, helper

SPARSE = 0.3  # the Dirichlet parameter of the half of the prior that expects few objectives to matter
FLOOR = 1e-9  # weights stay above this, because the density of the sparse prior has a pole at 0
SHRINKS = 8  # a particle that finds no acceptable point in this many tries stays, which is valid and much cheaper
BRACKET = 9.0  # the width of the search for one weight: a factor of 8,000 in odds
FREE = 0.2  # share of arbitrary directions, needed because the population may lie in a plane
TINY = 1e-200  # a product of weights below this is replaced by its logarithm before it underflows


@helper
def uniform(state: Any) -> Any:
    """Return the next number in [0, 1) of a SplitMix64 generator (Steele, Lea and Flood 2014)."""
    state[0] += uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> uint64(27))) * uint64(0x94D049BB133111EB)
    z = z ^ (z >> uint64(31))
    return (z >> uint64(11)) * (1.0 / 9007199254740992.0)


@helper
def normal(state: Any) -> Any:
    """Return a normally distributed number (Box and Muller)."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(state)))
    return radius * math.cos(2.0 * math.pi * uniform(state))


@helper
def prior(log_product: Any, log_sparse: Any) -> Any:
    """Return the logarithm of the prior density of weights with this product: log(1 + sparse * product^(SPARSE - 1))."""
    ratio = log_sparse + (SPARSE - 1.0) * log_product
    return ratio + math.log1p(math.exp(-ratio)) if ratio > 0.0 else math.log1p(math.exp(ratio))


@helper
def wrong_along(slack: Any, slope: Any, offsets: Any, count: Any, t: Any, precision: Any) -> Any:
    """Return how many answers do not fit the weights at ``t`` along a line."""
    found = 0
    for q in range(count):
        found += slack[q] + t * slope[q] + offsets[q] * precision < 0.0
    return found


@helper
def line_density(
    w: Any, direction: Any, level: Any, rise: Any, slack: Any, slope: Any, offsets: Any, t: Any, penalty: Any,
    log_sparse: Any,
) -> Any:  # fmt: skip
    """Return the logarithm of the posterior density at ``t`` along a line of weights and precision."""
    product, logarithm = 1.0, 0.0
    for j in range(w.shape[0]):
        product *= max(w[j] + t * direction[j], FLOOR)
        if product < TINY:
            product, logarithm = 1.0, logarithm + math.log(product)
    wrong = wrong_along(slack, slope, offsets, offsets.shape[0], t, math.exp(level + t * rise))
    return prior(logarithm + math.log(product), log_sparse) - penalty * wrong


@helper
def one_density(
    w: Any, j: Any, x: Any, least: Any, slack: Any, slope: Any, offsets: Any, precision: Any, penalty: Any,
    log_sparse: Any,
) -> Any:  # fmt: skip
    """Return the logarithm of the density if weight j is x and the others keep their proportions.

    ``least`` is the smallest of the others' shares of the rest, ``slack + x * slope`` each answer's margin there.
    """
    d = w.shape[0]
    if x < FLOOR or (1.0 - x) * least < FLOOR:
        return -np.inf
    rest = (1.0 - x) / (1.0 - w[j])
    product, logarithm = x, 0.0
    for i in range(d):
        if i != j:
            product *= w[i] * rest
            if product < TINY:
                product, logarithm = 1.0, logarithm + math.log(product)
    wrong = wrong_along(slack, slope, offsets, offsets.shape[0], x, precision)
    # x (1 - x) for the scale and (1 - x)^(d - 2) for lines that meet in a corner
    return prior(logarithm + math.log(product), log_sparse) - penalty * wrong + math.log(x) + (d - 1) * math.log1p(-x)


@helper
def along_others(
    w: Any, level: Any, others: Any, levels: Any, rows: Any, offsets: Any, low: Any, high: Any, penalty: Any, log_sparse: Any,
    direction: Any, slack: Any, slope: Any, state: Any,
) -> Any:  # fmt: skip
    """Move the weights along the difference of two other particles, and return the new level."""
    d, n = w.shape[0], others.shape[0]
    one, two = int64(uniform(state) * n), int64(uniform(state) * n)
    rise = levels[one] - levels[two]
    size = 0.0
    for j in range(d):
        direction[j] = others[one, j] - others[two, j]
        size = max(size, abs(direction[j]))
    if uniform(state) < FREE or size < 1e-13:  # two equal particles have no direction
        rise = 0.0
        mean = 0.0
        for j in range(d):
            direction[j] = normal(state)
            mean += direction[j] / d
        for j in range(d):
            direction[j] -= mean
    # The line ends where a weight reaches its floor, or the precision an end of its range.
    lowest, highest = -np.inf, np.inf
    for j in range(d):
        if direction[j] > 0.0:
            lowest = max(lowest, (FLOOR - w[j]) / direction[j])
        elif direction[j] < 0.0:
            highest = min(highest, (FLOOR - w[j]) / direction[j])
    if rise > 0.0:
        lowest, highest = max(lowest, (low - level) / rise), min(highest, (high - level) / rise)
    elif rise < 0.0:
        lowest, highest = max(lowest, (high - level) / rise), min(highest, (low - level) / rise)
    lowest, highest = min(lowest, 0.0), max(highest, 0.0)
    for q in range(offsets.shape[0]):
        slack[q], slope[q] = 0.0, 0.0
        for j in range(d):
            slack[q] += rows[q, j] * w[j]
            slope[q] += rows[q, j] * direction[j]
    least = line_density(w, direction, level, rise, slack, slope, offsets, 0.0, penalty, log_sparse)
    least += math.log(1.0 - uniform(state))
    for _ in range(SHRINKS):
        t = lowest + (highest - lowest) * uniform(state)
        if line_density(w, direction, level, rise, slack, slope, offsets, t, penalty, log_sparse) >= least:
            for j in range(d):
                w[j] = max(w[j] + t * direction[j], FLOOR)
            return level + t * rise
        if t < 0.0:
            lowest = t
        else:
            highest = t
    return level


@helper
def one_weight(
    w: Any, level: Any, rows: Any, offsets: Any, penalty: Any, log_sparse: Any, slack: Any, slope: Any, state: Any
) -> Any:
    """Move one weight on the scale of log(x / (1 - x)); the others keep their proportions."""
    d = w.shape[0]
    j = int64(uniform(state) * d)
    x = w[j]
    least_share = np.inf
    for i in range(d):
        if i != j:
            least_share = min(least_share, w[i] / (1.0 - x))
    for q in range(offsets.shape[0]):  # the margin is linear in x: (1 - x) of the others' and x of its own
        rest = 0.0
        for i in range(d):
            if i != j:
                rest += rows[q, i] * w[i]
        rest /= 1.0 - x
        slack[q], slope[q] = rest, rows[q, j] - rest
    precision = math.exp(level)
    scale = math.log(x) - math.log1p(-x)
    lowest = -BRACKET * uniform(state)  # Neal's bracket of fixed width, randomly placed around the particle
    highest = lowest + BRACKET
    least = one_density(w, j, x, least_share, slack, slope, offsets, precision, penalty, log_sparse)
    if least == -np.inf:  # below the floor all points look equal; the other moves lead out of there
        return
    least += math.log(1.0 - uniform(state))
    for _ in range(SHRINKS):
        t = lowest + (highest - lowest) * uniform(state)
        moved = 1.0 / (1.0 + math.exp(-(scale + t)))
        if one_density(w, j, moved, least_share, slack, slope, offsets, precision, penalty, log_sparse) >= least:
            for i in range(d):
                w[i] = moved if i == j else w[i] * (1.0 - moved) / (1.0 - x)
            return
        if t < 0.0:
            lowest = t
        else:
            highest = t


@helper
def one_precision(
    w: Any, level: Any, rows: Any, offsets: Any, low: Any, high: Any, penalty: Any, slack: Any, slope: Any, state: Any
) -> Any:
    """Move only the precision, and return its new level."""
    for q in range(offsets.shape[0]):
        slack[q], slope[q] = 0.0, 0.0
        for j in range(w.shape[0]):
            slack[q] += rows[q, j] * w[j]
    count = offsets.shape[0]
    least = -penalty * wrong_along(slack, slope, offsets, count, 0.0, math.exp(level)) + math.log(1.0 - uniform(state))
    lowest, highest = min(low - level, 0.0), max(high - level, 0.0)
    for _ in range(SHRINKS):
        t = lowest + (highest - lowest) * uniform(state)
        if -penalty * wrong_along(slack, slope, offsets, count, 0.0, math.exp(level + t)) >= least:
            return level + t
        if t < 0.0:
            lowest = t
        else:
            highest = t
    return level


_compiling = threading.Lock()
_mover: list[Callable[..., None]] = []


def mover() -> Callable[..., None]:
    """Return the kernel that moves particles; it is compiled on first use, since the first question does not need it.

    Another thread may call this in advance.
    """
    with _compiling:
        if not _mover:
            _mover.append(compiled(SIGNATURE)(move_all))
    return _mover[0]


SIGNATURE = types.void(
    float64[:, ::1], float64[::1], float64[:, ::1], float64[::1], float64[:, ::1], float64[::1], float64, float64,
    float64, float64, int64, uint64,
)  # fmt: skip


def move_all(
    weights: Any, levels: Any, others: Any, other_levels: Any, rows: Any, offsets: Any, low: Any, high: Any, penalty: Any,
    log_sparse: Any, rounds: Any, seed: Any,
) -> None:  # fmt: skip
    """Move every particle for some rounds: twice along differences of others, once in one weight, once in precision.

    ``others`` are the particles as they were at first, which do not move: directions that depended on the current
    particles would not leave the posterior invariant.
    """
    n, d = weights.shape
    state = np.empty(1, np.uint64)
    direction, slack, slope = np.empty(d), np.empty(offsets.shape[0]), np.empty(offsets.shape[0])
    for p in range(n):
        state[0] = seed + uint64(p) * uint64(0xD1342543DE82EF95)
        w, level = weights[p], levels[p]
        for _ in range(rounds):
            if d > 1:
                for _ in range(2):
                    level = along_others(w, level, others, other_levels, rows, offsets, low, high, penalty, log_sparse,
                                         direction, slack, slope, state)  # fmt: skip
                one_weight(w, level, rows, offsets, penalty, log_sparse, slack, slope, state)
            level = one_precision(w, level, rows, offsets, low, high, penalty, slack, slope, state)
        total = 0.0
        for j in range(d):
            total += w[j]
        for j in range(d):
            w[j] /= total
        levels[p] = level
