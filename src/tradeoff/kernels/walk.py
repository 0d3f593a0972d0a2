"""Particles that move by slice sampling (Neal 2003, shrinking); every move leaves the posterior as it is.

A particle is a person: weights on the simplex, traits (the logarithms of precision, noise and lapse) and the first answer
that their present mind gave. Margins of answers are linear along a line, so a point on it costs one multiply-add per answer,
not one per answer and weight.

What a person answers: they feel the margin m between two alternatives with logistic noise of scale s, and say "about equal"
if what they feel is within their precision e. So the first is said with probability F((m - e) / s), the second with
F((-m - e) / s); and with a small probability, the lapse, one of the answers that they do not mean.

Who prefers one and adds by how much says "a lot" if what they feel is beyond c = e + much, and "a little" otherwise. Given that
the first is preferred, "a lot" has probability F((m - c) / b) / F((m - e) / b) with b = s + BLUR * c, wider than the noise
alone, since the line between two words is never sharp; and now and then it is either word, whatever was felt. That is a factor
of its own, so that both words together are as likely as the answer alone: a strength never speaks against its side.
"""

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import float64, int64, types, uint64

from tradeoff.kernels.jit import compiled, helper

FLOOR = 1e-9  # weights stay above this, where the sparse prior's density would have a pole
SHRINKS = 8  # a particle that has found no better point after as many tries stays, which is as valid and much cheaper
BRACKET = 9.0  # the width of the search for one weight: a factor of 8,000 in odds
FREE = 0.2  # of the directions are arbitrary, because the population may lie in a plane
TINY = 1e-200  # a product of likelihoods below this is turned into its logarithm before it underflows
PRECISION, NOISE, LAPSE, MUCH = 0, 1, 2, 3  # the places of the traits
TRAITS = 4
GUESS = math.log(1.0 / 3.0)  # what an answer of a mind that was changed since is worth: it tells nothing
REPLIES = 10.0  # about as many replies a menu has: 7 if three are ranked, 13 if the best and worst of four are named

# The kind of a comparison with a strength: 1 or -1, ten times the strength farther from 0 (1: a little, 2: a lot).
GRADED = 10
BLUR = 0.2  # how wide the line between a little and a lot is, as a part of where it lies
CARELESS = 0.1  # of the strengths are either word, whatever is felt


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
def prior(logs: Any, coefficients: Any, powers: Any) -> Any:
    """Return the logarithm of the prior density of weights with these logarithms: of a mixture of Dirichlets."""
    largest, total = -np.inf, 0.0
    for c in range(coefficients.shape[0]):
        value = coefficients[c]
        for j in range(logs.shape[0]):
            value += powers[c, j] * logs[j]
        if value > largest:
            total, largest = total * math.exp(largest - value) + 1.0, value
        else:
            total += math.exp(value - largest)
    return largest + math.log(total)


@helper
def said(margin: Any, kind: Any, precision: Any, noise: Any, lapse: Any) -> Any:
    """Return how likely a person gives an answer to a question with this margin.

    Who had to place one above the other (kind 2) and feels no difference did so by chance.
    """
    if abs(kind) > GRADED:
        kind = 1 if kind > 0 else -1
    if kind == 2:
        above = 1.0 / (1.0 + math.exp(-(margin + precision) / noise)) + 1.0 / (
            1.0 + math.exp(-(margin - precision) / noise)
        )
        return 0.5 * ((1.0 - lapse) * above + lapse)
    if kind == 0:
        meant = 1.0 / (1.0 + math.exp(-(margin + precision) / noise)) - 1.0 / (
            1.0 + math.exp(-(margin - precision) / noise)
        )
    else:
        meant = 1.0 / (1.0 + math.exp(-(kind * margin - precision) / noise))
    return (1.0 - 1.5 * lapse) * meant + 0.5 * lapse


@helper
def word_said(margin: Any, kind: Any, precision: Any, noise: Any, lapse: Any, much: Any) -> Any:
    """Return how likely a strength is said of a side that was named; 1 where none was. Of a slip it is either word."""
    if abs(kind) <= GRADED:
        return 1.0
    towards = margin if kind > 0 else -margin
    blurred = noise + BLUR * (precision + much)
    x = math.exp(min((towards - precision) / blurred, 50.0))
    lot = (x + 1.0) / (x + math.exp(much / blurred))
    slip = 0.5 * lapse / max(said(margin, kind, precision, noise, lapse), 1e-300)
    either = slip + (1.0 - slip) * CARELESS
    return 0.5 * either + (1.0 - either) * (lot if abs(kind) > 2 * GRADED else 1.0 - lot)


@helper
def replied(together: Any, share: Any, lapse: Any) -> Any:
    """Return how likely a reply to a menu is, whose comparisons are meant with probability ``together`` if independent."""
    return (1.0 - lapse) * together**share + lapse / REPLIES


@helper
def likelihood(slack: Any, slope: Any, t: Any, kinds: Any, shares: Any, since: Any, traits: Any) -> Any:
    """Return the logarithm of how likely the answers of the present mind are, ``t`` along a line.

    A reply to a menu makes several comparisons, which are not independent: its noise counts for the share of each, and a lapse
    is one of the whole reply. Their shares are negative where the same reply goes on.
    """
    precision, noise, lapse = math.exp(traits[PRECISION]), math.exp(traits[NOISE]), math.exp(traits[LAPSE])
    product, logarithm, together, several = 1.0, 0.0, 1.0, False
    for q in range(since, kinds.shape[0]):
        several = several or shares[q] < 0.0
        chance = said(slack[q] + t * slope[q], kinds[q], precision, noise, 0.0 if several else lapse)
        if several:
            together *= chance
            if shares[q] < 0.0:
                continue
            chance, together, several = replied(together, shares[q], lapse), 1.0, False
        product *= chance
        if product < TINY:
            product, logarithm = 1.0, logarithm + math.log(max(product, 1e-300))
    for q in range(since, kinds.shape[0]):
        if abs(kinds[q]) > GRADED:
            word = word_said(slack[q] + t * slope[q], kinds[q], precision, noise, lapse, math.exp(traits[MUCH]))
            logarithm += math.log(word)
    return logarithm + math.log(product)


@helper
def line_density(
    w: Any, direction: Any, traits: Any, rise: Any, slack: Any, slope: Any, kinds: Any, shares: Any, since: Any, t: Any,
    coefficients: Any, powers: Any, logs: Any, there: Any,
) -> Any:  # fmt: skip
    """Return the logarithm of the posterior density, ``t`` along a line of weights and traits."""
    for j in range(w.shape[0]):
        logs[j] = math.log(max(w[j] + t * direction[j], FLOOR))
    for j in range(TRAITS):
        there[j] = traits[j] + t * rise[j]
    return prior(logs, coefficients, powers) + likelihood(slack, slope, t, kinds, shares, since, there)


@helper
def one_density(
    w: Any, j: Any, x: Any, least: Any, slack: Any, slope: Any, kinds: Any, shares: Any, since: Any, traits: Any,
    coefficients: Any,
    powers: Any, logs: Any,
) -> Any:  # fmt: skip
    """Return the logarithm of the density where weight j is x and the others keep their proportions.

    ``least`` is the smallest of the others' shares of the rest, ``slack + x * slope`` each answer's margin there.
    """
    d = w.shape[0]
    if x < FLOOR or (1.0 - x) * least < FLOOR:
        return -np.inf
    rest = (1.0 - x) / (1.0 - w[j])
    for i in range(d):
        logs[i] = math.log(x if i == j else w[i] * rest)
    # x (1 - x) for the scale and (1 - x)^(d - 2) for lines that meet in a corner
    measure = math.log(x) + (d - 1) * math.log1p(-x)
    return prior(logs, coefficients, powers) + likelihood(slack, slope, x, kinds, shares, since, traits) + measure


@helper
def along_others(
    w: Any, traits: Any, since: Any, others: Any, other_traits: Any, differences: Any, kinds: Any, shares: Any,
    low: Any, high: Any,
    coefficients: Any, powers: Any, direction: Any, rise: Any, logs: Any, there: Any, slack: Any, slope: Any, state: Any,
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
    for j in range(d):
        if direction[j] > 0.0:
            lowest = max(lowest, (FLOOR - w[j]) / direction[j])
        elif direction[j] < 0.0:
            highest = min(highest, (FLOOR - w[j]) / direction[j])
    for j in range(TRAITS):
        if rise[j] > 0.0:
            lowest, highest = max(lowest, (low[j] - traits[j]) / rise[j]), min(highest, (high[j] - traits[j]) / rise[j])
        elif rise[j] < 0.0:
            lowest, highest = max(lowest, (high[j] - traits[j]) / rise[j]), min(highest, (low[j] - traits[j]) / rise[j])
    lowest, highest = min(lowest, 0.0), max(highest, 0.0)
    for q in range(kinds.shape[0]):
        slack[q], slope[q] = 0.0, 0.0
        for j in range(d):
            slack[q] += differences[q, j] * w[j]
            slope[q] += differences[q, j] * direction[j]
    least = line_density(
        w, direction, traits, rise, slack, slope, kinds, shares, since, 0.0, coefficients, powers, logs, there
    )
    least += math.log(1.0 - uniform(state))
    for _ in range(SHRINKS):
        t = lowest + (highest - lowest) * uniform(state)
        found = line_density(
            w, direction, traits, rise, slack, slope, kinds, shares, since, t, coefficients, powers, logs, there
        )
        if found >= least:
            for j in range(d):
                w[j] = max(w[j] + t * direction[j], FLOOR)
            for j in range(TRAITS):
                traits[j] += t * rise[j]
            return
        if t < 0.0:
            lowest = t
        else:
            highest = t


@helper
def one_weight(
    w: Any, traits: Any, since: Any, differences: Any, kinds: Any, shares: Any, coefficients: Any, powers: Any,
    logs: Any, slack: Any,
    slope: Any, state: Any,
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
    least = one_density(w, j, x, least_share, slack, slope, kinds, shares, since, traits, coefficients, powers, logs)
    if least == -np.inf:  # below the floor, where every point would be as good: the other moves lead out of there
        return
    least += math.log(1.0 - uniform(state))
    for _ in range(SHRINKS):
        t = lowest + (highest - lowest) * uniform(state)
        moved = 1.0 / (1.0 + math.exp(-(scale + t)))
        if (
            one_density(
                w, j, moved, least_share, slack, slope, kinds, shares, since, traits, coefficients, powers, logs
            )
            >= least
        ):
            for i in range(d):
                w[i] = moved if i == j else w[i] * (1.0 - moved) / (1.0 - x)
            return
        if t < 0.0:
            lowest = t
        else:
            highest = t


@helper
def one_trait(
    traits: Any,
    which: Any,
    since: Any,
    kinds: Any,
    shares: Any,
    low: Any,
    high: Any,
    there: Any,
    slack: Any,
    slope: Any,
    state: Any,
) -> Any:
    """Move one trait alone; ``slack`` are the margins."""
    for j in range(TRAITS):
        there[j] = traits[j]
    least = likelihood(slack, slope, 0.0, kinds, shares, since, traits) + math.log(1.0 - uniform(state))
    lowest, highest = min(low[which] - traits[which], 0.0), max(high[which] - traits[which], 0.0)
    for _ in range(SHRINKS):
        t = lowest + (highest - lowest) * uniform(state)
        there[which] = traits[which] + t
        if likelihood(slack, slope, 0.0, kinds, shares, since, there) >= least:
            traits[which] = there[which]
            return
        if t < 0.0:
            lowest = t
        else:
            highest = t


@helper
def changed_mind(traits: Any, kinds: Any, shares: Any, change: Any, slack: Any, slope: Any, state: Any) -> Any:
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
    left = uniform(state) * total - math.exp(-largest)
    found = 0
    for q in range(1, count):
        if left <= 0.0:
            break
        if slope[q] > -np.inf:
            left -= math.exp(slope[q] - largest)
            found = q
    for q in range(count):
        slope[q] = 0.0
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
    float64[::1], float64[::1], float64[::1], float64[::1], float64[:, ::1], float64, int64, uint64,
)  # fmt: skip


def move_all(
    weights: Any, traits: Any, since: Any, others: Any, other_traits: Any, differences: Any, kinds: Any, shares: Any,
    low: Any, high: Any,
    coefficients: Any, powers: Any, change: Any, rounds: Any, seed: Any,
) -> None:  # fmt: skip
    """Move every particle for some rounds: twice along differences of others, in one weight, in each trait, in the mind.

    ``others`` are the particles as they were at first, which do not move: directions that depended on where the
    particles are now would not leave the posterior as it is. A trait whose range is a point stays there. ``change`` is the
    logarithm of how likely the mind is changed before any one answer; minus infinity for people who never do.
    """
    n, d = weights.shape
    state = np.empty(1, np.uint64)
    direction, logs, slack, slope = np.empty(d), np.empty(d), np.empty(kinds.shape[0]), np.empty(kinds.shape[0])
    rise, there = np.empty(TRAITS), np.empty(TRAITS)
    for p in range(n):
        state[0] = seed + uint64(p) * uint64(0xD1342543DE82EF95)
        w, own = weights[p], traits[p]
        for _ in range(rounds):
            if d > 1:
                for _ in range(2):
                    along_others(w, own, since[p], others, other_traits, differences, kinds, shares, low, high,
                    coefficients, powers,
                                 direction, rise, logs, there, slack, slope, state)  # fmt: skip
                one_weight(
                    w, own, since[p], differences, kinds, shares, coefficients, powers, logs, slack, slope, state
                )
            for q in range(kinds.shape[0]):
                slack[q], slope[q] = 0.0, 0.0
                for j in range(d):
                    slack[q] += differences[q, j] * w[j]
            if change > -np.inf:
                since[p] = changed_mind(own, kinds, shares, change, slack, slope, state)
            for j in range(TRAITS):
                if low[j] < high[j]:
                    one_trait(own, j, since[p], kinds, shares, low, high, there, slack, slope, state)
        total = 0.0
        for j in range(d):
            total += w[j]
        for j in range(d):
            w[j] /= total
