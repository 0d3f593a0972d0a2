"""How likely people are who look at their worst objective, given their answers: roughly, as in ``quick.py``."""

from typing import Any

import numpy as np
from numba import types

from tradeoff.kernels.density import LAPSE, NOISE, PRECISION, TINY
from tradeoff.kernels.jit import FixedMatrix, FixedVector, compiled_when_called, float64, folded, int64
from tradeoff.kernels.quick import SATURATED, exponential, logarithm

FixedIndices = types.Array(int64, 1, "C", readonly=True)
FixedFlags = types.Array(types.boolean, 1, "C", readonly=True)


@folded
def beyond(x: Any) -> Any:
    """Return 1 / (1 + exp(x))."""
    return 1.0 / (1.0 + exponential(min(max(x, -SATURATED), SATURATED)))


@compiled_when_called(
    (
        FixedMatrix, FixedMatrix, FixedVector, FixedVector, float64, FixedMatrix, FixedMatrix, FixedFlags, FixedIndices,
        FixedVector, FixedVector, FixedMatrix,
    )
)  # fmt: skip
def worst_density(
    logs: Any, traits: Any, low: Any, high: Any, least: Any, first: Any, second: Any, plain: Any, kinds: Any, shares: Any,
    coefficients: Any, powers: Any,
) -> Any:  # fmt: skip
    """Return the logarithm of the posterior density of each person [n], with respect to the logarithms of their weights.

    It is minus infinity where one of these is not above ``least``, or a trait's logarithm not between ``low`` and ``high``.
    ``first`` and ``second`` are what the alternatives of each comparison miss of the most there is; where it is ``plain``, they
    are compared as they are. Each comparison counts for its share.
    """
    n, d = logs.shape
    result, weights = np.empty(n), np.empty(d)
    for i in range(n):
        largest, smallest = -np.inf, np.inf
        for j in range(d):
            largest, smallest = max(largest, logs[i, j]), min(smallest, logs[i, j])
        inside = smallest > least
        for j in range(low.shape[0]):
            inside = inside and traits[i, j] >= low[j] and traits[i, j] <= high[j]
        if not inside:
            result[i] = -np.inf
            continue
        for j in range(d):
            weights[j] = exponential(logs[i, j] - largest)
        precision, lapse = exponential(traits[i, PRECISION]), exponential(traits[i, LAPSE])
        steep, size = 1.0 / exponential(traits[i, NOISE]), exponential(largest)
        value, product = 0.0, 1.0
        for q in range(kinds.shape[0]):
            margin = 0.0
            if plain[q]:
                for j in range(d):
                    margin += size * weights[j] * (first[q, j] - second[q, j])
            else:
                worst, other = 0.0, 0.0
                for j in range(d):
                    worst = max(worst, weights[j] * first[q, j])
                    other = max(other, weights[j] * second[q, j])
                margin = other - worst
            if kinds[q] == 2:
                above, below = beyond((precision - margin) * steep), beyond((precision + margin) * steep)
                chance = 0.5 * (1.0 + (1.0 - lapse) * (above - below))
            else:
                if kinds[q] == 0:
                    meant = max(1.0 - beyond((precision - margin) * steep) - beyond((precision + margin) * steep), 0.0)
                else:
                    meant = beyond((precision - kinds[q] * margin) * steep)
                chance = (1.0 - 1.5 * lapse) * meant + 0.5 * lapse
            if shares[q] == 1.0:
                product *= chance
                if product < TINY:
                    value, product = value + logarithm(product), 1.0
            else:
                value += shares[q] * logarithm(chance)
        most, total = -np.inf, 0.0
        for c in range(coefficients.shape[0]):
            term = coefficients[c]
            for j in range(d):
                term += (powers[c, j] + 1.0) * logs[i, j]
            if term > most:
                total, most = total * np.exp(most - term) + 1.0, term
            else:
                total += np.exp(term - most)
        result[i] = value + most + logarithm(total * product)
    return result
