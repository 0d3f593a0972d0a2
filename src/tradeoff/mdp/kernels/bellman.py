"""Finite-horizon dynamic programming over sparse layers: backward sweeps, forward steps, single steps of a policy.

A *layer* is one step of a decision process: five arrays, which are the first arguments of every function here:

    state_ptr   int32[S + 1]   the choices of state s are state_ptr[s]:state_ptr[s + 1]; none: a terminal state, worth 0
    choice_ptr  int64[C + 1]   the successors of choice c are choice_ptr[c]:choice_ptr[c + 1]
    target      int32[N]       where each successor leads
    prob        float64[N]     how likely it is
    reward      float64[C, k]  what each choice earns on each objective

All arrays must be C-contiguous and of exactly these types (inputs may be read-only). Nothing is checked, and outputs are
written into the caller's arrays. A stationary process uses one layer for several steps; a time-dependent one makes a call
for each step.

There are two guarantees. The result for one weight vector or one policy has the same bits whether it is computed alone or in
any batch, at any position, with any number of threads: every sum is computed in the order of the arrays, one fused
multiply-add at a time. And a kernel is compiled (or read from the cache on disk) only when it is first needed.
"""

from __future__ import annotations

from typing import TypeAlias

from tradeoff.mdp.kernels.batch import backward, backward_lexicographic
from tradeoff.mdp.kernels.layers import Array
from tradeoff.mdp.kernels.policy import Incoming, evaluate_step, forward, incoming, occupancy_step, rollout_step

LayerArrays: TypeAlias = tuple[Array, Array, Array, Array, Array]  # the five above, in that order

__all__ = [
    "Incoming",
    "LayerArrays",
    "backward",
    "backward_lexicographic",
    "evaluate_step",
    "forward",
    "incoming",
    "occupancy_step",
    "rollout_step",
]
