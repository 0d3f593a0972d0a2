"""Particles that move by slice sampling (Neal 2003, shrinking); every move leaves the posterior as it is.

A particle is a person: weights on the simplex, traits (the logarithms of precision, noise and lapse) and the first answer
that their present mind gave. Margins of answers are linear along a line, so a point on it costs one multiply-add per answer,
not one per answer and weight.

A move compares densities, and what they are is not used for anything else. So they are compared roughly (``quick.py``) and,
only where that does not decide, to the last digit (``density.py``). ``known`` has the rough prior and likelihood of where a
particle is, and ``felt`` its traits, with which the next move begins.
"""

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import float64, int64, types, uint64

from tradeoff.kernels.density import (
    FLOOR,
    LAPSE,
    NOISE,
    PRECISION,
    TRAITS,
    likelihood,
    line_density,
    one_density,
)
from tradeoff.kernels.draws import STRIDE, normal, propose, uniform
from tradeoff.kernels.jit import compiled, folded
from tradeoff.kernels.lanes import at_least, borrowed, lowest_bit
from tradeoff.kernels.mind import changed_mind, quickly_changed_mind
from tradeoff.kernels.quick import (
    ALL,
    AT,
    CHANCE,
    FOUR,
    LAPSE_AT,
    LIKELY_AT,
    NOISE_AT,
    PRECISION_AT,
    PRIOR_AT,
    SLACK,
    SLOPE,
    chances,
    compared,
    doubt,
    exponents,
    feel,
    logarithm,
    priors,
    said_after,
    short_exponential,
    signed,
    told,
    weigh,
)
from tradeoff.kernels.vector import broadcast, load, store

SHRINKS = 8  # a particle that has found no better point after as many tries stays, which is as valid and much cheaper
BRACKET = 9.0  # the width of the search for one weight: a factor of 8,000 in odds
FREE = 0.2  # of the directions are arbitrary, because the population may lie in a plane
PRIOR, LIKELIHOOD = 0, 1  # the places in ``known``


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
    slope: Any, state: Any, close: Any, even: Any, symmetric: Any, table: Any, turned: Any, places: Any, known: Any, felt: Any,
    four_logs: Any,
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
    share = 1.0 - uniform(state)
    level, least = known[PRIOR] * known[LIKELIHOOD] * share, np.nan
    if close > 0.0:
        weigh(turned, w, table, SLACK)
        weigh(turned, direction, table, SLOPE)
    left = SHRINKS
    while left > 0:
        left, tried = left - FOUR, FOUR
        lowest, highest = propose(places, lowest, highest, state[0])
        maybe, surely = int64(ALL), int64(0)
        if close > 0.0:
            t = load(places, AT * FOUR, 4)
            product = broadcast(1.0, 4)
            for j in range(d):
                weight = at_least(w[j] + t * direction[j], FLOOR)
                product = product * weight
                if not symmetric:
                    store(four_logs, FOUR * j, logarithm(weight))
            prior = priors(product, four_logs, coefficients, powers, even, symmetric)
            precision = short_exponential(traits[PRECISION] + t * rise[PRECISION])
            noise = short_exponential(traits[NOISE] + t * rise[NOISE])
            lapse = short_exponential(traits[LAPSE] + t * rise[LAPSE])
            likely = told(table, kinds, since, t, precision, noise, lapse)
            maybe, surely = compared(prior * likely, level, close)
            store(places, PRIOR_AT * FOUR, prior)
            store(places, LIKELY_AT * FOUR, likely)
            store(places, PRECISION_AT * FOUR, precision)
            store(places, NOISE_AT * FOUR, noise)
            store(places, LAPSE_AT * FOUR, lapse)
        while maybe != 0:
            k = lowest_bit(maybe)
            at, taken = places[AT, k], (surely >> k) & 1 == 1
            if not taken:
                first = least != least
                if first:
                    for q in range(kinds.shape[0]):
                        margin, steep = 0.0, 0.0
                        for j in range(d):
                            margin += differences[q, j] * w[j]
                            steep += differences[q, j] * direction[j]
                        slack[q], slope[q] = margin, steep
                for here in range(0 if first else 1, 2):
                    found = line_density(
                        w, direction, traits, rise, slack, slope, kinds, shares, since, at if here else 0.0, coefficients,
                        powers, logs, there,
                    )  # fmt: skip
                    least = least if here else found + math.log(share)
                    taken = found >= least
            if taken:
                for j in range(d):
                    w[j] = max(w[j] + at * direction[j], FLOOR)
                for j in range(TRAITS):
                    traits[j] += at * rise[j]
                known[PRIOR], known[LIKELIHOOD] = places[PRIOR_AT, k], places[LIKELY_AT, k]
                felt[PRECISION], felt[NOISE] = places[PRECISION_AT, k], places[NOISE_AT, k]
                felt[LAPSE] = places[LAPSE_AT, k]
                left, tried = 0, k + 1
            maybe = int64(0) if taken else maybe & (maybe - 1)
        state[0] += uint64(STRIDE) * uint64(tried)


@folded
def one_weight(
    w: Any, traits: Any, since: Any, differences: Any, kinds: Any, shares: Any, coefficients: Any, powers: Any,
    logs: Any, slack: Any, slope: Any, state: Any, close: Any, even: Any, symmetric: Any, table: Any, turned: Any,
    places: Any, known: Any, felt: Any, four_logs: Any, rest: Any,
) -> Any:  # fmt: skip
    """Move one weight on the scale of log(x / (1 - x)), the others keeping their proportions."""
    d = w.shape[0]
    j = int64(uniform(state) * d)
    x = w[j]
    least_share = np.inf
    for i in range(d):
        if i != j:
            least_share = min(least_share, w[i] / (1.0 - x))
    scale = math.log(x) - math.log1p(-x)
    lowest = -BRACKET * uniform(state)  # Neal's bracket of fixed width, randomly placed around the particle
    highest = lowest + BRACKET
    # Below the floor every point would be as good: the other moves lead out of there.
    left = 0 if x < FLOOR or (1.0 - x) * least_share < FLOOR else SHRINKS
    share = 1.0 - uniform(state) if left > 0 else 1.0
    level, least = known[PRIOR] * known[LIKELIHOOD] * share, np.nan
    if close > 0.0:  # the margin is linear in x: (1 - x) of the others' and x of its own
        for i in range(d):
            rest[i] = 0.0 if i == j else w[i] / (1.0 - x)
            # x (1 - x) for the scale, and (1 - x)^(d - 2) for lines that meet in a corner
            level *= x if i == j else 1.0 - x
        weigh(turned, rest, table, SLACK)
        width = table.shape[1]
        for q in range(0, width, FOUR):
            store(table, SLOPE * width + q, load(turned, j * width + q, 4) - load(table, SLACK * width + q, 4))
    while left > 0:
        left, tried = left - FOUR, FOUR
        lowest, highest = propose(places, lowest, highest, state[0])
        maybe, surely, inside = int64(ALL), int64(0), int64(0)
        for k in range(FOUR):
            there = 1.0 / (1.0 + math.exp(-(scale + places[AT, k])))
            places[AT, k] = there
            inside |= int64(not (there < FLOOR or (1.0 - there) * least_share < FLOOR)) << k
        if close > 0.0:
            at = load(places, AT * FOUR, 4)
            others = 1.0 - at
            product, measure = at, at
            for i in range(d):
                if i == j:
                    weight = at
                else:
                    weight = others * rest[i]
                    product, measure = product * weight, measure * others
                if not symmetric:
                    store(four_logs, FOUR * i, logarithm(weight))
            prior = priors(product, four_logs, coefficients, powers, even, symmetric)
            likely = told(
                table,
                kinds,
                since,
                at,
                broadcast(felt[PRECISION], 4),
                broadcast(felt[NOISE], 4),
                broadcast(felt[LAPSE], 4),
            )
            maybe, surely = compared(prior * likely * measure, level, close)
            store(places, PRIOR_AT * FOUR, prior)
            store(places, LIKELY_AT * FOUR, likely)
        maybe &= inside
        while maybe != 0:
            k = lowest_bit(maybe)
            there, taken = places[AT, k], (surely >> k) & 1 == 1
            if not taken:
                first = least != least
                if first:
                    for q in range(kinds.shape[0]):
                        margin = 0.0
                        for i in range(d):
                            if i != j:
                                margin += differences[q, i] * w[i]
                        margin /= 1.0 - x
                        slack[q], slope[q] = margin, differences[q, j] - margin
                for here in range(0 if first else 1, 2):
                    found = one_density(
                        w, j, there if here else x, least_share, slack, slope, kinds, shares, since, traits, coefficients,
                        powers, logs,
                    )  # fmt: skip
                    least = least if here else found + math.log(share)
                    taken = found >= least
            if taken:
                for i in range(d):
                    w[i] = there if i == j else w[i] * (1.0 - there) / (1.0 - x)
                known[PRIOR], known[LIKELIHOOD] = places[PRIOR_AT, k], places[LIKELY_AT, k]
                left, tried = 0, k + 1
            maybe = int64(0) if taken else maybe & (maybe - 1)
        state[0] += uint64(STRIDE) * uint64(tried)


@folded
def one_trait(
    traits: Any, which: Any, since: Any, kinds: Any, shares: Any, low: Any, high: Any, there: Any, slack: Any, slope: Any,
    state: Any, close: Any, table: Any, places: Any, known: Any, felt: Any,
) -> Any:  # fmt: skip
    """Move one trait alone; ``slack`` are the margins, which the table has as well."""
    if close > 0.0 and which >= LAPSE:  # what is felt does not depend on how often it is not what is said
        feel(table, felt[PRECISION], felt[NOISE])
    share = 1.0 - uniform(state)
    level, least = known[LIKELIHOOD] * share, np.nan
    lowest, highest = min(low[which] - traits[which], 0.0), max(high[which] - traits[which], 0.0)
    left = SHRINKS
    while left > 0:
        left, tried = left - FOUR, FOUR
        lowest, highest = propose(places, lowest, highest, state[0])
        maybe, surely = int64(ALL), int64(0)
        if close > 0.0:
            trait = short_exponential(traits[which] + load(places, AT * FOUR, 4))
            precision, noise, lapse = (
                broadcast(felt[PRECISION], 4), broadcast(felt[NOISE], 4), broadcast(felt[LAPSE], 4)
            )  # fmt: skip
            if which == PRECISION:
                precision = trait
            elif which == NOISE:
                noise = trait
            elif which == LAPSE:
                lapse = trait
            if which >= LAPSE:
                likely = said_after(table, kinds, since, lapse)
            else:
                likely = told(table, kinds, since, broadcast(0.0, 4), precision, noise, lapse)
            maybe, surely = compared(likely, level, close)
            store(places, LIKELY_AT * FOUR, likely)
            store(places, PRIOR_AT * FOUR, trait)
        while maybe != 0:
            k = lowest_bit(maybe)
            taken = (surely >> k) & 1 == 1
            if not taken:
                for here in range(0 if least != least else 1, 2):
                    for j in range(TRAITS):
                        there[j] = traits[j]
                    there[which] = traits[which] + places[AT, k] if here else traits[which]
                    found = likelihood(slack, slope, 0.0, kinds, shares, since, there)
                    least = least if here else found + math.log(share)
                    taken = found >= least
            if taken:
                traits[which] += places[AT, k]
                felt[which], known[LIKELIHOOD] = places[PRIOR_AT, k], places[LIKELY_AT, k]
                left, tried = 0, k + 1
            maybe = int64(0) if taken else maybe & (maybe - 1)
        state[0] += uint64(STRIDE) * uint64(tried)


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
    direction, logs, slack, slope = np.empty(d), np.empty(d), np.empty(count), np.empty(count)
    rise, there, felt, rest = np.empty(TRAITS), np.empty(TRAITS), np.empty(TRAITS), np.empty(d)
    known, even, places = np.empty(2), np.empty(powers.shape[0]), np.empty((6, FOUR))
    close = doubt(differences, kinds, shares, low, coefficients, powers) if quick else 0.0
    symmetric, turned = exponents(powers, even), signed(differences, kinds)
    table, four_logs = np.zeros((5, turned.shape[1])), np.empty(FOUR * d)
    # References to what is borrowed are not counted. Its owners live until they are last named, which is below.
    owners = (
        state, direction, logs, slack, slope, rise, there, felt, rest, known, even, places, turned, table, four_logs,
    )  # fmt: skip
    weights, traits, since, others = borrowed(weights), borrowed(traits), borrowed(since), borrowed(others)
    other_traits, differences, kinds = borrowed(other_traits), borrowed(differences), borrowed(kinds)
    shares, low, high, coefficients = borrowed(shares), borrowed(low), borrowed(high), borrowed(coefficients)
    powers, state, direction, logs = borrowed(powers), borrowed(state), borrowed(direction), borrowed(logs)
    slack, slope, rise, there = borrowed(slack), borrowed(slope), borrowed(rise), borrowed(there)
    felt, rest = borrowed(felt), borrowed(rest)
    known, even, places, turned = borrowed(known), borrowed(even), borrowed(places), borrowed(turned)
    table, four_logs = borrowed(table), borrowed(four_logs)
    for p in range(n):
        state[0] = seed + uint64(p) * uint64(0xD1342543DE82EF95)
        w, own = weights[p], traits[p]
        if close > 0.0:
            weigh(turned, w, table, SLACK)
            for j in range(TRAITS):
                felt[j] = math.exp(own[j])
            product = broadcast(1.0, 4)
            for j in range(d):
                weight = broadcast(max(w[j], FLOOR), 4)
                product = product * weight
                store(four_logs, FOUR * j, logarithm(weight))
            store(places, PRIOR_AT * FOUR, priors(product, four_logs, coefficients, powers, even, symmetric))
            feel(table, felt[PRECISION], felt[NOISE])
            chances(table, kinds, felt[LAPSE])
            known[PRIOR], known[LIKELIHOOD] = places[PRIOR_AT, 0], 1.0
            for q in range(since[p], count):
                known[LIKELIHOOD] *= table[CHANCE, q]
        for _ in range(rounds):
            if d > 1:
                for _ in range(2):
                    along_others(
                        w, own, since[p], others, other_traits, differences, kinds, shares, low, high, coefficients, powers,
                        direction, rise, logs, there, slack, slope, state, close, even, symmetric, table, turned, places,
                        known, felt, four_logs,
                    )  # fmt: skip
                one_weight(
                    w, own, since[p], differences, kinds, shares, coefficients, powers, logs, slack, slope, state, close,
                    even, symmetric, table, turned, places, known, felt, four_logs, rest,
                )  # fmt: skip
            margins(w, differences, slack, slope)
            if close > 0.0:
                weigh(turned, w, table, SLACK)
            if change > -np.inf:
                share, found = uniform(state), int64(-1)
                if close > 0.0:
                    feel(table, felt[PRECISION], felt[NOISE])
                    chances(table, kinds, felt[LAPSE])
                    found = quickly_changed_mind(table, count, change, share, close, slope)
                since[p] = found if found >= 0 else changed_mind(own, kinds, shares, change, share, slack, slope)
                known[LIKELIHOOD] = 1.0
                for q in range(count):
                    slope[q] = 0.0
                    known[LIKELIHOOD] *= table[CHANCE, q] if q >= since[p] else 1.0
            for j in range(TRAITS):
                if low[j] < high[j]:
                    one_trait(
                        own, j, since[p], kinds, shares, low, high, there, slack, slope, state, close, table, places, known,
                        felt,
                    )  # fmt: skip
        total = 0.0
        for j in range(d):
            total += w[j]
        for j in range(d):
            w[j] /= total
    known[0] = owners[0][0]
