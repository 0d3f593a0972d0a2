"""Extract paths from a layered flow, one at a time."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba import types

from tradeoff.kernels.jit import compiled_when_called

Array: TypeAlias = np.ndarray[Any, Any]

_INTS, _FLOATS = types.int64[::1], types.float64[::1]


@compiled_when_called(types.int64(_INTS, _INTS, _FLOATS, _INTS, _INTS, _FLOATS, types.int64[:, ::1], _FLOATS))
def take_paths(
    edge_ptr: Array, head: Array, flow: Array, cursor: Array, source: Array, supply: Array, paths: Array, weights: Array
) -> int:
    """Extract up to `paths.shape[0]` paths from a flow and return how many were found; 0 once none is left.

    edge_ptr  int64[nodes + 1]  the edges out of node v are edge_ptr[v]:edge_ptr[v + 1], in the order they are used
    head      int64[edges]      the node an edge leads to (any number at the last step)
    flow      float64[edges]    the flow left on each edge; modified
    cursor    int64[nodes]      the first edge of each node that may have flow left; modified
    source    int64[sources]    the nodes that paths start from
    supply    float64[sources]  the flow left to start there; modified
    paths     int64[n, H]       the edges of each path
    weights   float64[n]        the flow that went along it

    Every path uses up an edge or a source, so there are at most as many as both together.
    """
    steps = paths.shape[1]
    found = 0
    first = 0
    while found < paths.shape[0]:
        while first < source.shape[0] and supply[first] <= 0.0:
            first += 1
        if first == source.shape[0]:
            break
        node = source[first]
        least = supply[first]
        stuck = -1
        for step in range(steps):
            edge = cursor[node]
            while edge < edge_ptr[node + 1] and flow[edge] <= 0.0:
                edge += 1
            cursor[node] = edge
            if edge == edge_ptr[node + 1]:
                stuck = step
                break
            paths[found, step] = edge
            least = min(least, flow[edge])
            node = head[edge]
        if stuck >= 0:
            # Rounding left a tiny flow into a node whose own flow is used up: drop it.
            if stuck == 0:
                supply[first] = 0.0
            else:
                flow[paths[found, stuck - 1]] = 0.0
            continue
        supply[first] -= least
        for step in range(steps):
            flow[paths[found, step]] -= least
        weights[found] = least
        found += 1
    return found
