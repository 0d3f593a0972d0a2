"""How likely a person is, given their answers: the prior of their weights and what they say, to the last digit.

What a person answers: they feel the margin m between two alternatives with logistic noise of scale s, and say "about equal"
if what they feel is within their precision e. So the first is said with probability F((m - e) / s), the second with
F((-m - e) / s); and with a small probability, the lapse, one of the answers that they do not mean.

Who prefers one and adds by how much says "a lot" if what they feel is beyond c = e + much, and "a little" otherwise. Given that
the first is preferred, "a lot" has probability F((m - c) / b) / F((m - e) / b) with b = s + BLUR * c, wider than the noise
alone, since the line between two words is never sharp; and now and then it is either word, whatever was felt. That is a factor
of its own, so that both words together are as likely as the answer alone: a strength never speaks against its side.
"""

import math
from typing import Any

import numpy as np

from tradeoff.kernels.jit import helper

FLOOR = 1e-9  # weights stay above this, where the sparse prior's density would have a pole
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
