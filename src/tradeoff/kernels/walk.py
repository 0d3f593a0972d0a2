"""Particles that move by slice sampling (Neal 2003, shrinking); every move leaves the posterior as it is.

A particle is a person: weights on the simplex, traits (the logarithms of precision, noise and lapse) and the first answer
that their present mind gave. Margins of answers are linear along a line, so a point on it costs one multiply-add per answer,
not one per answer and weight.

A move compares densities, and what they are is not used for anything else. So they are compared roughly (``quick.py``) and,
only where that does not decide, to the last digit (``density.py``). ``known`` has the rough prior and likelihood of where a
particle is, which the next move begins with; they are not numbers (nan) where nothing is decided roughly.
"""

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import float64, int64, types, uint64

from tradeoff.kernels.density import (
    FLOOR,
    GRADED,
    GUESS,
    LAPSE,
    MUCH,
    NOISE,
    PRECISION,
    REPLIES,
    TRAITS,
    likelihood,
    line_density,
    one_density,
    replied,
    said,
    word_said,
)
from tradeoff.kernels.jit import compiled, folded, helper
from tradeoff.kernels.quick import (
    CHANCE,
    compared,
    doubt,
    exponential,
    exponents,
    feel,
    put,
    quick_prior,
    table_of,
    told,
)

SHRINKS = 8  # a particle that has found no better point after as many tries stays, which is as valid and much cheaper
BRACKET = 9.0  # the width of the search for one weight: a factor of 8,000 in odds
FREE = 0.2  # of the directions are arbitrary, because the population may lie in a plane
PRIOR, LIKELIHOOD = 0, 1  # the places in ``known``


@folded
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


@folded
def margins(w: Any, differences: Any, slack: Any, slope: Any) -> None:
    """Put the margin of each comparison into ``slack``; the slope is 0."""
    for q in range(differences.shape[0]):
        margin = 0.0
        for j in range(w.shape[0]):
            margin += differences[q, j] * w[j]
        slack[q], slope[q] = margin, 0.0


@folded
def along_others(
    w: Any, traits: Any, since: Any, others: Any, other_traits: Any, differences: Any, kinds: Any, shares: Any,
    low: Any, high: Any, coefficients: Any, powers: Any, direction: Any, rise: Any, logs: Any, there: Any, slack: Any,
    slope: Any, state: Any, close: Any, even: Any, symmetric: Any, table: Any, partner: Any, known: Any, felt: Any,
    felt_there: Any, moved: Any,
) -> Any:  # fmt: skip
    """Move the weights and traits along the difference of two other particles."""
    d, n = w.shape[0], others.shape[0]
    one, two = int64(uniform(state) * n), int64(uniform(state) * n)
    for j in range(TRAITS):
        rise[j] = other_traits[one, j] - other_traits[two, j]
    size = 0.0
    for j in range(d):
        direction[j] = others[one, j] - others[two, j]
        size = max(size, abs(direction[j]))
    if uniform(state) < FREE or size < 1e-13:  # a pair that coincides has no direction
        mean = 0.0
        for j in range(TRAITS):
            rise[j] = 0.0
        for j in range(d):
            direction[j] = normal(state)
            mean += direction[j] / d
        for j in range(d):
            direction[j] -= mean
    # From each weight down to its floor, and from each trait down and up to the ends of its range.
    lowest, highest = -np.inf, np.inf
    for j in range(d):  # without branches, which nobody could predict
        end = (FLOOR - w[j]) / direction[j]
        lowest = end if direction[j] > 0.0 and end > lowest else lowest
        highest = end if direction[j] < 0.0 and end < highest else highest
    for j in range(TRAITS):
        down, up = (low[j] - traits[j]) / rise[j], (high[j] - traits[j]) / rise[j]
        down, up = (down, up) if rise[j] > 0.0 else (up, down)
        lowest = down if rise[j] != 0.0 and down > lowest else lowest
        highest = up if rise[j] != 0.0 and up < highest else highest
    lowest, highest = min(lowest, 0.0), max(highest, 0.0)
    for q in range(kinds.shape[0]):
        margin, steep = 0.0, 0.0
        for j in range(d):
            margin += differences[q, j] * w[j]
            steep += differences[q, j] * direction[j]
        slack[q], slope[q] = margin, steep
    share = 1.0 - uniform(state)
    level, least = known[PRIOR] * known[LIKELIHOOD] * share, np.nan
    if close > 0.0:
        put(table, slack, slope, kinds, partner)
    for _ in range(SHRINKS):
        t = lowest + (highest - lowest) * uniform(state)
        prior, likely, sure = np.nan, np.nan, 0
        if close > 0.0:
            for j in range(d):
                moved[j] = max(w[j] + t * direction[j], FLOOR)
            for j in range(TRAITS):
                felt_there[j] = exponential(traits[j] + t * rise[j])
            prior = quick_prior(moved, coefficients, powers, even, symmetric)
            feel(table, t, since, felt_there[PRECISION], felt_there[NOISE])
            likely = told(table, kinds, partner, since, felt_there[LAPSE])
            sure = compared(prior * likely, level, close)
        if sure == 0:
            if least != least:
                least = line_density(
                    w, direction, traits, rise, slack, slope, kinds, shares, since, 0.0, coefficients, powers, logs, there
                ) + math.log(share)  # fmt: skip
            found = line_density(
                w, direction, traits, rise, slack, slope, kinds, shares, since, t, coefficients, powers, logs, there
            )
            sure = 1 if found >= least else -1
        if sure > 0:
            for j in range(d):
                w[j] = max(w[j] + t * direction[j], FLOOR)
            for j in range(TRAITS):
                traits[j] += t * rise[j]
                felt[j] = felt_there[j]
            known[PRIOR], known[LIKELIHOOD] = prior, likely
            return
        if t < 0.0:
            lowest = t
        else:
            highest = t


@folded
def measure(x: Any, d: Any) -> Any:
    """Return x (1 - x) for the scale of one weight, times (1 - x)^(d - 2) for lines that meet in a corner."""
    result = x
    for _ in range(d - 1):
        result *= 1.0 - x
    return result


@folded
def one_weight(
    w: Any, traits: Any, since: Any, differences: Any, kinds: Any, shares: Any, coefficients: Any, powers: Any,
    logs: Any, slack: Any, slope: Any, state: Any, close: Any, even: Any, symmetric: Any, table: Any, partner: Any,
    known: Any, felt: Any, moved: Any,
) -> Any:  # fmt: skip
    """Move one weight on the scale of log(x / (1 - x)), the others keeping their proportions."""
    d = w.shape[0]
    j = int64(uniform(state) * d)
    x = w[j]
    least_share = np.inf
    for i in range(d):
        if i != j:
            least_share = min(least_share, w[i] / (1.0 - x))
    for q in range(kinds.shape[0]):  # the margin is linear in x: (1 - x) of the others' and x of its own
        rest = 0.0
        for i in range(d):
            if i != j:
                rest += differences[q, i] * w[i]
        rest /= 1.0 - x
        slack[q], slope[q] = rest, differences[q, j] - rest
    scale = math.log(x) - math.log1p(-x)
    lowest = -BRACKET * uniform(state)  # Neal's bracket of fixed width, randomly placed around the particle
    highest = lowest + BRACKET
    if x < FLOOR or (1.0 - x) * least_share < FLOOR:
        return  # below the floor, where every point would be as good: the other moves lead out of there
    share = 1.0 - uniform(state)
    level, least = known[PRIOR] * known[LIKELIHOOD] * measure(x, d) * share, np.nan
    if close > 0.0:
        put(table, slack, slope, kinds, partner)
    for _ in range(SHRINKS):
        t = lowest + (highest - lowest) * uniform(state)
        there = 1.0 / (1.0 + math.exp(-(scale + t)))
        prior, likely, sure = np.nan, np.nan, 0
        if there < FLOOR or (1.0 - there) * least_share < FLOOR:
            sure = -1
        elif close > 0.0:
            rest = (1.0 - there) / (1.0 - x)
            for i in range(d):
                moved[i] = there if i == j else w[i] * rest
            prior = quick_prior(moved, coefficients, powers, even, symmetric)
            feel(table, there, since, felt[PRECISION], felt[NOISE])
            likely = told(table, kinds, partner, since, felt[LAPSE])
            sure = compared(prior * likely * measure(there, d), level, close)
        if sure == 0:
            if least != least:
                least = one_density(
                    w, j, x, least_share, slack, slope, kinds, shares, since, traits, coefficients, powers, logs
                ) + math.log(share)  # fmt: skip
            found = one_density(
                w, j, there, least_share, slack, slope, kinds, shares, since, traits, coefficients, powers, logs
            )
            sure = 1 if found >= least else -1
        if sure > 0:
            for i in range(d):
                w[i] = there if i == j else w[i] * (1.0 - there) / (1.0 - x)
            known[PRIOR], known[LIKELIHOOD] = prior, likely
            return
        if t < 0.0:
            lowest = t
        else:
            highest = t


@folded
def one_trait(
    traits: Any, which: Any, since: Any, kinds: Any, shares: Any, low: Any, high: Any, there: Any, slack: Any, slope: Any,
    state: Any, close: Any, table: Any, partner: Any, known: Any, felt: Any, felt_there: Any,
) -> Any:  # fmt: skip
    """Move one trait alone; ``slack`` are the margins, which the table has as well."""
    for j in range(TRAITS):
        there[j], felt_there[j] = traits[j], felt[j]
    if close > 0.0 and which == LAPSE:
        feel(table, 0.0, since, felt[PRECISION], felt[NOISE])
    share = 1.0 - uniform(state)
    level, least = known[LIKELIHOOD] * share, np.nan
    lowest, highest = min(low[which] - traits[which], 0.0), max(high[which] - traits[which], 0.0)
    for _ in range(SHRINKS):
        t = lowest + (highest - lowest) * uniform(state)
        there[which] = traits[which] + t
        likely, sure = np.nan, 0
        if close > 0.0:
            felt_there[which] = exponential(there[which])
            if which != LAPSE:  # what is felt does not depend on how often it is not what is said
                feel(table, 0.0, since, felt_there[PRECISION], felt_there[NOISE])
            likely = told(table, kinds, partner, since, felt_there[LAPSE])
            sure = compared(likely, level, close)
        if sure == 0:
            if least != least:
                least = likelihood(slack, slope, 0.0, kinds, shares, since, traits) + math.log(share)
            sure = 1 if likelihood(slack, slope, 0.0, kinds, shares, since, there) >= least else -1
        if sure > 0:
            traits[which], felt[which] = there[which], felt_there[which]
            known[LIKELIHOOD] = likely
            return
        if t < 0.0:
            lowest = t
        else:
            highest = t


@helper
def quickly_changed_mind(table: Any, count: Any, change: Any, share: Any, close: Any, slope: Any) -> Any:
    """Return what ``changed_mind`` draws, from how likely the table says each answer is; -1 where the last digits decide."""
    # How much likelier it is that the mind was changed before answer q than that it never was: a running product.
    so_far, total = math.exp(change), 1.0
    for q in range(1, count):
        so_far *= (1.0 / 3.0) / table[CHANCE, q - 1]
        slope[q] = so_far
        total += so_far
    left, found = share * total - 1.0, 0
    for q in range(1, count):
        if not abs(left) > close * total:
            return -1
        if left <= 0.0:
            break
        left -= slope[q]
        found = q
    return found


@helper
def changed_mind(traits: Any, kinds: Any, shares: Any, change: Any, share: Any, slack: Any, slope: Any) -> Any:
    """Draw the first answer of the present mind from what is likely, given all else (Gibbs); ``slope`` is overwritten."""
    precision, noise, lapse = math.exp(traits[PRECISION]), math.exp(traits[NOISE]), math.exp(traits[LAPSE])
    count = kinds.shape[0]
    # How much likelier it is that the mind was changed before answer q than that it never was: a running product.
    so_far, largest, together, several = 0.0, 0.0, 1.0, False
    for q in range(1, count):
        several = several or shares[q - 1] < 0.0
        chance = said(slack[q - 1], kinds[q - 1], precision, noise, 0.0 if several else lapse)
        slope[q] = -np.inf  # nobody changes their mind in the middle of a reply
        if several:
            together *= chance
            if shares[q - 1] < 0.0:
                continue
            so_far -= math.log(REPLIES * replied(together, shares[q - 1], lapse))
            together, several = 1.0, False
        else:
            so_far += GUESS - math.log(chance)
        slope[q] = change + so_far
        largest = max(largest, slope[q])
    words, largest = 0.0, 0.0  # what was said before the change, either word would have been as likely
    for q in range(1, count):
        if abs(kinds[q - 1]) > GRADED:
            word = word_said(slack[q - 1], kinds[q - 1], precision, noise, lapse, math.exp(traits[MUCH]))
            words -= math.log(2.0 * word)
        slope[q] += words
        largest = max(largest, slope[q])
    total = math.exp(-largest)
    for q in range(1, count):
        total += math.exp(slope[q] - largest)
    left = share * total - math.exp(-largest)
    found = 0
    for q in range(1, count):
        if left <= 0.0:
            break
        if slope[q] > -np.inf:
            left -= math.exp(slope[q] - largest)
            found = q
    return found


_compiling = threading.Lock()
_mover: list[Callable[..., None]] = []


def mover() -> Callable[..., None]:
    """Return the kernel that moves particles, compiled when it is first needed: no question before the first answer needs it.

    It can be asked for from another thread beforehand, to have it ready.
    """
    with _compiling:
        if not _mover:
            _mover.append(compiled(SIGNATURE)(move_all))
    return _mover[0]


SIGNATURE = types.void(
    float64[:, ::1], float64[:, ::1], int64[::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], int64[::1],
    float64[::1], float64[::1], float64[::1], float64[::1], float64[:, ::1], float64, int64, uint64, types.boolean,
)  # fmt: skip


def move_all(
    weights: Any, traits: Any, since: Any, others: Any, other_traits: Any, differences: Any, kinds: Any, shares: Any,
    low: Any, high: Any, coefficients: Any, powers: Any, change: Any, rounds: Any, seed: Any, quick: Any,
) -> None:  # fmt: skip
    """Move every particle for some rounds: twice along differences of others, in one weight, in each trait, in the mind.

    ``others`` are the particles as they were at first, which do not move: directions that depended on where the
    particles are now would not leave the posterior as it is. A trait whose range is a point stays there. ``change`` is the
    logarithm of how likely the mind is changed before any one answer; minus infinity for people who never do. Whether it
    is ``quick`` changes no bit.
    """
    n, d = weights.shape
    count = kinds.shape[0]
    state = np.empty(1, np.uint64)
    direction, logs, moved, slack, slope = np.empty(d), np.empty(d), np.empty(d), np.empty(count), np.empty(count)
    rise, there, felt, felt_there = np.empty(TRAITS), np.empty(TRAITS), np.empty(TRAITS), np.empty(TRAITS)
    known, even, partner = np.full(2, np.nan), np.empty(powers.shape[0]), np.empty(count, np.int64)
    close, symmetric = doubt(differences, kinds, shares, low) if quick else 0.0, exponents(powers, even)
    table = table_of(kinds, partner)
    for p in range(n):
        state[0] = seed + uint64(p) * uint64(0xD1342543DE82EF95)
        w, own = weights[p], traits[p]
        if close > 0.0:
            margins(w, differences, slack, slope)
            put(table, slack, slope, kinds, partner)
            for j in range(TRAITS):
                felt[j] = exponential(own[j])
            for j in range(d):
                moved[j] = max(w[j], FLOOR)
            feel(table, 0.0, since[p], felt[PRECISION], felt[NOISE])
            known[PRIOR] = quick_prior(moved, coefficients, powers, even, symmetric)
            known[LIKELIHOOD] = told(table, kinds, partner, since[p], felt[LAPSE])
        for _ in range(rounds):
            if d > 1:
                for _ in range(2):
                    along_others(
                        w, own, since[p], others, other_traits, differences, kinds, shares, low, high, coefficients, powers,
                        direction, rise, logs, there, slack, slope, state, close, even, symmetric, table, partner, known,
                        felt, felt_there, moved,
                    )  # fmt: skip
                one_weight(
                    w, own, since[p], differences, kinds, shares, coefficients, powers, logs, slack, slope, state, close,
                    even, symmetric, table, partner, known, felt, moved,
                )  # fmt: skip
            margins(w, differences, slack, slope)
            if close > 0.0:
                put(table, slack, slope, kinds, partner)
            if change > -np.inf:
                share, found = uniform(state), int64(-1)
                if close > 0.0:
                    feel(table, 0.0, 0, felt[PRECISION], felt[NOISE])
                    told(table, kinds, partner, 0, felt[LAPSE])
                    found = quickly_changed_mind(table, count, change, share, close, slope)
                since[p] = found if found >= 0 else changed_mind(own, kinds, shares, change, share, slack, slope)
                known[LIKELIHOOD] = 1.0
                for q in range(count):
                    slope[q] = 0.0
                    known[LIKELIHOOD] *= table[CHANCE, q] if q >= since[p] else 1.0
            for j in range(TRAITS):
                if low[j] < high[j]:
                    one_trait(
                        own, j, since[p], kinds, shares, low, high, there, slack, slope, state, close, table, partner, known,
                        felt, felt_there,
                    )  # fmt: skip
        total = 0.0
        for j in range(d):
            total += w[j]
        for j in range(d):
            w[j] /= total
