"""The sweeps of ``bellman`` on a graphics card (CUDA through CuPy), with the same bits.

IEEE arithmetic is the same everywhere: as in ``bellman``, each sum is computed in the order of the arrays, one fused
multiply-add at a time; only different states and weight vectors are computed in parallel. A forward step gathers what
arrives in a state, in the order in which ``bellman.forward`` would push it there. So values, policies and questions stay
the same.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tradeoff.numerics import SUM_STATES

HELD = 8  # objectives whose sums one thread holds in registers
THREADS = 256  # in a block
CHOICE = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int"}

SOURCE = r"""
#define MINUS_INFINITY __longlong_as_double(0xfff0000000000000LL)
typedef long long Long;

__device__ double worth(const Long choice, const int b, const int B, const int k, const Long* choice_ptr,
        const int* target, const double* prob, const double* reward, const double* weights, const double* after) {
    double value = 0.0;
    for (int i = 0; i < k; i++) value = fma(reward[choice * k + i], weights[i * B + b], value);
    for (Long e = choice_ptr[choice]; e < choice_ptr[choice + 1]; e++)
        value = fma(prob[e], after[(Long)target[e] * B + b], value);
    return value;
}

extern "C" __global__ void backward(const int S, const int B, const int k, const int* __restrict__ state_ptr,
        const Long* __restrict__ choice_ptr, const int* __restrict__ target, const double* __restrict__ prob,
        const double* __restrict__ reward, const double* __restrict__ weights, const double* __restrict__ after,
        double* __restrict__ before, Choice* __restrict__ policy) {
    const int s = blockIdx.x * blockDim.y + threadIdx.y;
    if (s >= S) return;
    const int first = state_ptr[s], last = state_ptr[s + 1];
    for (int b = threadIdx.x; b < B; b += blockDim.x) {
        double best = MINUS_INFINITY;
        int picked = 0;
        for (int c = first; c < last; c++) {
            const double value = worth(c, b, B, k, choice_ptr, target, prob, reward, weights, after);
            if (value > best) { best = value; picked = c - first; }
        }
        before[(Long)s * B + b] = first == last ? 0.0 : best;
        policy[(Long)s * B + b] = (Choice)picked;
    }
}

extern "C" __global__ void lexicographic(const int S, const int B, const int k, const int* __restrict__ state_ptr,
        const Long* __restrict__ choice_ptr, const int* __restrict__ target, const double* __restrict__ prob,
        const double* __restrict__ reward, const double* __restrict__ weights, const double* __restrict__ after,
        double* __restrict__ before, Choice* __restrict__ policy, const double* __restrict__ second_weights,
        const double* __restrict__ tolerance, const double* __restrict__ second_after,
        double* __restrict__ second_before) {
    const int s = blockIdx.x * blockDim.y + threadIdx.y;
    if (s >= S) return;
    const int first = state_ptr[s], last = state_ptr[s + 1];
    for (int b = threadIdx.x; b < B; b += blockDim.x) {
        double best = MINUS_INFINITY;
        for (int c = first; c < last; c++) {
            const double value = worth(c, b, B, k, choice_ptr, target, prob, reward, weights, after);
            if (value > best) best = value;
        }
        const double floor = best - tolerance[b];
        double chosen = MINUS_INFINITY, kept = 0.0;
        int picked = 0;
        for (int c = first; c < last; c++) {
            // The same sum again has the same bits, and costs less than keeping every choice's value.
            const double value = worth(c, b, B, k, choice_ptr, target, prob, reward, weights, after);
            if (!(value >= floor)) continue;
            const double second = worth(c, b, B, k, choice_ptr, target, prob, reward, second_weights, second_after);
            if (second > chosen) { chosen = second; kept = value; picked = c - first; }
        }
        before[(Long)s * B + b] = kept;
        second_before[(Long)s * B + b] = first == last ? 0.0 : chosen;
        policy[(Long)s * B + b] = (Choice)picked;
    }
}

extern "C" __global__ void forward(const int S, const int B, const Long* __restrict__ into_ptr,
        const int* __restrict__ source, const int* __restrict__ local, const double* __restrict__ prob,
        const Choice* __restrict__ policy, const double* __restrict__ now, double* __restrict__ later) {
    const int s = blockIdx.x * blockDim.y + threadIdx.y;
    if (s >= S) return;
    for (int b = threadIdx.x; b < B; b += blockDim.x) {
        double mass = 0.0;
        for (Long e = into_ptr[s]; e < into_ptr[s + 1]; e++) {
            const Long from = (Long)source[e] * B + b;
            if (policy[from] == (Choice)local[e]) mass = fma(now[from], prob[e], mass);
        }
        later[(Long)s * B + b] = mass;
    }
}

extern "C" __global__ void earn(const int S, const int B, const int k, const int* __restrict__ state_ptr,
        const double* __restrict__ reward, const Choice* __restrict__ policy, const double* __restrict__ now,
        double* __restrict__ parts) {
    const int part = blockIdx.x * blockDim.y + threadIdx.y;
    if ((Long)part * SUM_STATES >= S) return;
    const int end = min((Long)S, (Long)(part + 1) * SUM_STATES);
    for (int b = threadIdx.x; b < B; b += blockDim.x)
        for (int i = 0; i < k; i += HELD) {
            double total[HELD];
            #pragma unroll
            for (int j = 0; j < HELD; j++) total[j] = 0.0;
            #pragma unroll 4
            for (int s = part * SUM_STATES; s < end; s++) {
                const double mass = now[(Long)s * B + b];
                const int first = state_ptr[s];
                if (mass == 0.0 || first == state_ptr[s + 1]) continue;
                const double* row = reward + ((Long)first + policy[(Long)s * B + b]) * k + i;
                #pragma unroll
                for (int j = 0; j < HELD; j++) if (i + j < k) total[j] = fma(mass, row[j], total[j]);
            }
            #pragma unroll
            for (int j = 0; j < HELD; j++) if (i + j < k) parts[((Long)part * B + b) * k + i + j] = total[j];
        }
}

extern "C" __global__ void add_up(const int count, const int lanes, const double* __restrict__ parts,
        double* __restrict__ totals) {
    const int lane = blockIdx.x * blockDim.x + threadIdx.x;
    if (lane >= lanes) return;
    double total = 0.0;
    for (int part = 0; part < count; part++) total = total + parts[(Long)part * lanes + lane];
    totals[lane] = totals[lane] + total;
}
"""


class CardLayer(NamedTuple):
    """A layer on the card: the five arrays of ``bellman``, and its branches sorted by target."""

    state_ptr: Any
    choice_ptr: Any
    target: Any
    prob: Any
    reward: Any
    into_ptr: Any  # int64[S + 1]: where the branches into each state begin
    source: Any  # int32: the state each comes from, in the order in which ``bellman.forward`` pushes
    local: Any  # int32: the local number of its choice
    into_prob: Any


def card_layer(
    state_ptr: NDArray[Any], choice_ptr: NDArray[Any], target: NDArray[Any], prob: NDArray[Any], reward: NDArray[Any]
) -> CardLayer:
    """Return a layer's arrays on the card. An end leads to itself, because what arrives there stays there."""
    import cupy

    states, counts = len(state_ptr) - 1, np.diff(state_ptr)
    ends = np.flatnonzero(counts == 0).astype(np.int32)
    of_choice = np.repeat(np.arange(states, dtype=np.int32), counts)
    local = np.arange(len(of_choice), dtype=np.int32) - state_ptr[of_choice]
    widths = np.diff(choice_ptr)
    source = np.concatenate([np.repeat(of_choice, widths), ends])
    leads_to = np.concatenate([target, ends])
    # By target, then by source; the branches of one state keep their order (lexsort is stable).
    order = np.lexsort((source, leads_to))
    into_ptr = np.concatenate([[0], np.cumsum(np.bincount(leads_to, minlength=states))]).astype(np.int64)
    choices = np.concatenate([np.repeat(local, widths), np.zeros(len(ends), np.int32)])
    chances = np.concatenate([prob, np.ones(len(ends))])
    arrays = (
        state_ptr,
        choice_ptr,
        target,
        prob,
        reward,
        into_ptr,
        source[order],
        choices[order].astype(np.int32),
        chances[order],
    )
    return CardLayer(*(cupy.asarray(array) for array in arrays))


@cache
def _function(name: str, size: int) -> Any:
    import cupy

    # With contraction, the compiler would add fused operations of its own to those written above.
    head = f"typedef {CHOICE[size]} Choice;\n#define SUM_STATES {SUM_STATES}\n#define HELD {HELD}\n"
    return cupy.RawModule(code=head + SOURCE, options=("--std=c++17", "--fmad=false")).get_function(name)


def _shape(states: int, lanes: int) -> tuple[tuple[int], tuple[int, int]]:
    """Return the grid and the block for this many rows and lanes per row."""
    across = min(lanes, 32)
    rows = THREADS // across
    return (-(-states // rows),), (across, rows)


def backward(layer: CardLayer, weights: Any, values: Any, policy: Any) -> None:
    """Replace `values` as ``bellman.backward`` does; all arrays are on the card, C-contiguous."""
    import cupy

    states, count = values.shape
    by_objective = cupy.ascontiguousarray(weights.T)
    numbers = (np.int32(states), np.int32(count), np.int32(len(by_objective)))
    source, sink = values, cupy.empty_like(values)
    for step in range(len(policy) - 1, -1, -1):
        arguments = (*numbers, *layer[:5], by_objective, source, sink, policy[step])
        _function("backward", policy.itemsize)(*_shape(states, count), arguments)
        source, sink = sink, source
    if source is not values:
        values[...] = source


def backward_lexicographic(
    layer: CardLayer, weights: Any, second: Any, tolerance: Any, values: Any, seconds: Any, policy: Any
) -> None:
    """Replace `values` and `seconds` as ``bellman.backward_lexicographic`` does."""
    import cupy

    states, count = values.shape
    by_objective = cupy.ascontiguousarray(weights.T)
    second_rows = cupy.ascontiguousarray(cupy.repeat(second[:, None], count, axis=1))
    numbers = (np.int32(states), np.int32(count), np.int32(len(by_objective)))
    now, later = (values, seconds), (cupy.empty_like(values), cupy.empty_like(seconds))
    for step in range(len(policy) - 1, -1, -1):
        arguments = (*numbers, *layer[:5], by_objective, now[0], later[0], policy[step])
        more = (second_rows, tolerance, now[1], later[1])
        _function("lexicographic", policy.itemsize)(*_shape(states, count), (*arguments, *more))
        now, later = later, now
    if now[0] is not values:
        values[...], seconds[...] = now


def forward(layer: CardLayer, policy: Any, occupancy: Any, totals: Any) -> None:
    """Replace `occupancy` and add to `totals` as ``bellman.forward`` does."""
    import cupy

    states, count = occupancy.shape
    objectives, size = totals.shape[1], policy.itemsize
    numbers = (np.int32(states), np.int32(count))
    lanes = count * objectives
    parts = cupy.empty((-(-states // SUM_STATES), lanes))
    now, later = occupancy, cupy.empty_like(occupancy)
    for step in range(len(policy)):
        arguments = (*numbers, np.int32(objectives), layer.state_ptr, layer.reward, policy[step], now, parts)
        _function("earn", size)(*_shape(len(parts), count), arguments)
        added = (np.int32(len(parts)), np.int32(lanes), parts, totals)
        _function("add_up", size)((-(-lanes // 32),), (32,), added)
        _function("forward", size)(*_shape(states, count), (*numbers, *layer[5:], policy[step], now, later))
        now, later = later, now
    if now is not occupancy:
        occupancy[...] = now
