"""Random numbers of one particle: a generator of its own, and the places that a move tries."""

import math
from typing import Any

from numba import uint64

from tradeoff.kernels.jit import folded, helper
from tradeoff.kernels.quick import AT, FOUR
from tradeoff.kernels.vector import choose

STRIDE = 0x9E3779B97F4A7C15  # from the state of the generator to the next


@folded
def mixed(number: Any) -> Any:
    """Return the number in [0, 1) of a state of a SplitMix64 generator (Steele, Lea and Flood 2014)."""
    z = (number ^ (number >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> uint64(27))) * uint64(0x94D049BB133111EB)
    z = z ^ (z >> uint64(31))
    return (z >> uint64(11)) * (1.0 / 9007199254740992.0)


@folded
def uniform(state: Any) -> Any:
    """Return the next number in [0, 1)."""
    state[0] += uint64(STRIDE)
    return mixed(state[0])


@helper
def normal(state: Any) -> Any:
    """Return a normally distributed number (Box and Muller)."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(state)))
    return radius * math.cos(2.0 * math.pi * uniform(state))


@folded
def propose(places: Any, lowest: Any, highest: Any, number: Any) -> Any:
    """Draw four places between two ends, each as if the one before would not do; return the ends if none does.

    They are the next four of the generator whose state is ``number``.
    """
    for k in range(FOUR):
        number += uint64(STRIDE)
        t = lowest + (highest - lowest) * mixed(number)
        places[AT, k] = t
        lowest, highest = choose(t < 0.0, t, lowest), choose(t < 0.0, highest, t)
    return lowest, highest
