"""Whether, and when, a particle changed its mind: a draw from what is likely, given all else."""

import math
from typing import Any

import numpy as np

from tradeoff.kernels.density import GRADED, GUESS, LAPSE, MUCH, NOISE, PRECISION, REPLIES, replied, said, word_said
from tradeoff.kernels.jit import helper
from tradeoff.kernels.quick import CHANCE


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
