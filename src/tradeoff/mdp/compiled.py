"""The default solver: compiled, for many weight vectors at once, within the available memory.

One pass over the model serves a whole chunk of weight vectors (the weights are innermost in every array). A policy stores
the local number of the chosen action, in the smallest integer type. If a chunk's policies would not fit, the horizon is
cut into segments: the first sweep keeps only the values at their borders, and the forward pass computes each segment's
policies again from there.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from tradeoff.mdp.dynamics import Dynamics
from tradeoff.mdp.kernels import bellman
from tradeoff.mdp.layer import Int, Layer
from tradeoff.mdp.solver import Choices, Weights
from tradeoff.memory import check_fits, memory_limit
from tradeoff.model import Matrix, Vector

# Weight vectors that one pass over the model serves; a thread takes one such chunk at a time.
CHUNK = 16


class Device(Protocol):
    """Where the sweeps run: the processor, or a graphics card (``problems.card``). All devices give the same bits."""

    arrays: Any  # the module for its arrays: numpy, or one with the same interface

    def memory(self, dynamics: Dynamics) -> int:
        """Return how many bytes the sweeps of a model may use."""

    def backward(self, layer: Layer, rows: Rows, values: Any, seconds: Any, policy: Any, threads: int) -> None:
        """Sweep ``len(policy)`` steps of one layer backwards, in place."""

    def forward(self, layer: Layer, policy: Any, occupancy: Any, totals: Any, threads: int) -> None:
        """Follow the policies through ``len(policy)`` steps of one layer, in place."""

    def fetch(self, array: Any) -> Any:
        """Return an array of the device as one of NumPy."""


class Processor:
    """The processor, using compiled kernels."""

    arrays: Any = np

    def __init__(self) -> None:
        self._incoming: WeakKeyDictionary[Layer, bellman.Incoming] = WeakKeyDictionary()

    def __reduce__(self) -> tuple[type[Processor], tuple[()]]:
        return Processor, ()

    def memory(self, dynamics: Dynamics) -> int:
        """Return half of the available memory; the other half is for the model and its caller."""
        return memory_limit() // 2

    def backward(self, layer: Layer, rows: Rows, values: Any, seconds: Any, policy: Any, threads: int) -> None:
        """Sweep backwards, in place."""
        if rows.second is None:
            bellman.backward(*layer_arrays(layer), rows.raw, values, policy, threads=threads)
        else:
            second = (rows.second, rows.tolerance)
            bellman.backward_lexicographic(
                *layer_arrays(layer), rows.raw, *second, values, seconds, policy, threads=threads
            )

    def forward(self, layer: Layer, policy: Any, occupancy: Any, totals: Any, threads: int) -> None:
        """Follow the policies, in place."""

        def incoming() -> bellman.Incoming:
            if layer not in self._incoming:  # kept, because single solves are frequent
                self._incoming[layer] = bellman.incoming(*layer_arrays(layer)[:4])
            return self._incoming[layer]

        # Sorting takes longer than a step on one thread, and more memory than the layer: not for a layer of one step.
        again = incoming if len(policy) > 1 else None
        bellman.forward(*layer_arrays(layer), policy, occupancy, totals, threads, again)

    def fetch(self, array: Any) -> Any:
        """Return the array itself."""
        return array


class CompiledSolver:
    """Backward induction in compiled code, on a device; one call uses at most ``threads`` threads of the processor."""

    def __init__(self, threads: int | None = None, device: Device | None = None) -> None:
        self.threads = threads or os.cpu_count() or 1
        self.device: Device = Processor() if device is None else device

    def __reduce__(self) -> tuple[type[CompiledSolver], tuple[int, Device]]:
        return CompiledSolver, (self.threads, self.device)

    def optimal_values(self, dynamics: Dynamics, weights: Matrix) -> Vector:
        """Return the largest expected weighted outcome from the start, for each row of weights."""
        rows = Rows(np.ascontiguousarray(weights), None, np.zeros(len(weights)))
        result = np.empty(len(weights))
        starts = np.flatnonzero(dynamics.start)
        for begin, end, plan in self._chunks(dynamics, len(weights), keep_policies=False):
            sweep = _Sweep(self, dynamics, rows.part(begin, end), plan)
            result[begin:end] = dynamics.start[starts] @ self.device.fetch(sweep.backward()[starts])
        return result

    def optimal_outcomes(self, dynamics: Dynamics, weights: Weights) -> Matrix:
        """Return the expected outcome [B, k] of an optimal policy for each row of weights."""
        result = np.empty(weights.rows.shape)
        for at, rows in _kinds(weights):
            for begin, end, plan in self._chunks(dynamics, len(rows), keep_policies=True):
                sweep = _Sweep(self, dynamics, rows.part(begin, end), plan)
                sweep.backward()
                result[at[begin:end]] = sweep.forward()
        return result

    def _chunks(self, dynamics: Dynamics, count: int, *, keep_policies: bool) -> Iterator[tuple[int, int, Plan]]:
        return chunks(dynamics, count, self.threads, self.device.memory(dynamics), keep_policies=keep_policies)

    def optimal_choices(self, dynamics: Dynamics, weights: Weights) -> list[Choices]:
        """Return an optimal policy for each row of weights."""
        result: dict[int, Choices] = {}
        count, states = len(weights.rows), len(dynamics.states)
        size = dynamics.horizon * states * count * choice_type(dynamics)().itemsize
        check_fits(size, f"{count} policy tables for {dynamics.horizon} steps and {states:,} states")
        for at, rows in _kinds(weights):
            for begin, end, plan in self._chunks(dynamics, len(rows), keep_policies=True):
                sweep = _Sweep(self, dynamics, rows.part(begin, end), plan)
                sweep.backward()
                tables = sweep.tables()
                for column, row in enumerate(at[begin:end]):
                    result[int(row)] = np.ascontiguousarray(tables[:, :, column])
        return [result[row] for row in range(count)]

    def policy_values(self, layer: Layer, chance: Vector, after: Matrix) -> Matrix:
        """Return the expected outcome from each state on [S, k], given the expected outcome after this step."""
        values = np.empty_like(after)
        bellman.evaluate_step(*layer_arrays(layer), chance, after, values, self.threads)
        return values

    def next_distribution(self, layer: Layer, chance: Vector, now: Vector) -> Vector:
        """Return how likely each state is after this step."""
        after = np.empty_like(now)
        bellman.occupancy_step(*layer_arrays(layer)[:4], chance, now, after)
        return after

    def sample_step(
        self, layer: Layer, chance: Vector, states: Int, action_draws: Vector, branch_draws: Vector
    ) -> tuple[Int, Int, Int]:
        """Return the choice, the branch (both -1 at an end) and the next state of each walker."""
        choices, branches, after = (np.empty(len(states), dtype=np.int64) for _ in range(3))
        bellman.rollout_step(
            *layer_arrays(layer)[:4], chance, states, action_draws, branch_draws, choices, branches, after
        )
        return choices, branches, after


def layer_arrays(layer: Layer) -> bellman.LayerArrays:
    """Return the arrays that every kernel takes, in that order."""
    return layer.state_ptr, layer.choice_ptr, layer.target, layer.prob, layer.reward


@dataclass(frozen=True)
class Rows:
    """Weight vectors that all need a tie-break, or all need none, ready for the kernels."""

    raw: Matrix  # on outcomes in the person's units
    second: Vector | None  # weights on outcomes that break ties; None for rows that cannot tie
    tolerance: Vector  # per row: values this close are a tie

    def part(self, begin: int, end: int) -> Rows:
        """Return the rows from ``begin`` to ``end``."""
        return Rows(np.ascontiguousarray(self.raw[begin:end]), self.second, self.tolerance[begin:end])

    def __len__(self) -> int:
        return len(self.raw)


def _kinds(weights: Weights) -> Iterator[tuple[Int, Rows]]:
    """Yield the numbers and rows that need no tie-break, then those that do."""
    for at, tie_break in (
        (np.flatnonzero(~weights.may_tie), None),
        (np.flatnonzero(weights.may_tie), weights.tie_break),
    ):
        if len(at):
            yield (
                at,
                Rows(np.ascontiguousarray(weights.rows[at]), tie_break, np.ascontiguousarray(weights.tolerance[at])),
            )


@dataclass(frozen=True)
class Plan:
    """How one chunk is swept: its width, the length of a segment, and whether its policies will be needed."""

    width: int
    segment: int
    keep_policies: bool


def choice_type(dynamics: Dynamics) -> type[np.uint8] | type[np.uint16] | type[np.uint32]:
    """Return the smallest type that holds the local number of every choice; 32 bits always do."""
    most = dynamics.most_choices
    return np.uint8 if most <= 1 << 8 else np.uint16 if most <= 1 << 16 else np.uint32


def chunks(
    dynamics: Dynamics, count: int, threads: int, limit: int, *, keep_policies: bool
) -> Iterator[tuple[int, int, Plan]]:
    """Yield (begin, end, plan) for chunks as wide as the memory limit allows."""
    states, horizon = len(dynamics.states), dynamics.horizon
    item = choice_type(dynamics)().itemsize
    threads = max(1, threads)
    scratch = 128 * dynamics.most_choices * threads  # the tie-breaking sweep needs the values of a state's choices
    # Border values and policies of a segment: S*W*8*(H/L) + S*W*item*L bytes, least at L = sqrt(8H/item).
    thrifty = min(horizon, math.ceil(math.sqrt(8 * horizon / item)))
    candidates = [(CHUNK * threads, horizon), (CHUNK, horizon), (CHUNK, thrifty), (1, thrifty)]
    for width, segment in candidates:
        width = min(width, count)
        borders = math.ceil(horizon / segment) - 1
        policies = segment * item if keep_policies else item
        size = states * width * (8 * (4 + borders) + policies) + scratch
        if size <= limit:
            break
    else:
        check_fits(2 * size, f"solving a model with {states:,} states over {horizon} steps")
    plan = Plan(width, segment if keep_policies else 1, keep_policies)
    for begin in range(0, count, width):
        yield begin, min(count, begin + width), plan


class _Sweep:
    """One chunk of weight vectors, swept through the horizon backwards and then forwards."""

    def __init__(self, solver: CompiledSolver, dynamics: Dynamics, rows: Rows, plan: Plan) -> None:
        self.solver, self.dynamics, self.rows, self.keep_policies = solver, dynamics, rows, plan.keep_policies
        length, horizon = plan.segment, dynamics.horizon
        self.segments = [(b, min(b + length, horizon)) for b in range(0, horizon, length)]
        self.borders: dict[int, tuple[Any, Any]] = {}
        self.arrays = solver.device.arrays
        self.policy = self.arrays.empty((length, len(dynamics.states), len(rows)), dtype=choice_type(dynamics))

    def backward(self) -> Any:
        """Return the values [S, B], on the device, at step 0; keeps the borders' values and the first segment's policies."""
        shape = (len(self.dynamics.states), len(self.rows))
        zeros = self.arrays.zeros
        values, seconds = zeros(shape), zeros(shape if self.rows.second is not None else (0, 0))
        for begin, end in reversed(self.segments):
            if begin > 0 and self.keep_policies:
                self.borders[end] = (values.copy(), seconds.copy())
            self._segment(begin, end, values, seconds)
        return values

    def _segment(self, begin: int, end: int, values: Any, seconds: Any) -> None:
        """Sweep one segment backwards, in place, and keep its policies."""
        # A stationary model is swept in one call, any other a step at a time.
        stride = end - begin if self.dynamics.stationary else 1
        for step in range(end - stride, begin - 1, -stride):
            policy = self.policy[step - begin : step - begin + stride]
            layer, threads = self.dynamics.layer(step), self.solver.threads
            self.solver.device.backward(layer, self.rows, values, seconds, policy, threads)

    def _policies(self) -> Iterator[tuple[int, int, Any]]:
        """Yield (begin, end, policies) of each segment in order; all but the first are computed again."""
        for begin, end in self.segments:
            if begin > 0:  # the first segment was swept last, so its policies are still there
                self._segment(begin, end, *self.borders.pop(end))
            yield begin, end, self.policy[: end - begin]

    def forward(self) -> Matrix:
        """Return the expected outcomes [B, k] of the chunk's policies."""
        dynamics, device = self.dynamics, self.solver.device
        occupancy = self.arrays.repeat(self.arrays.asarray(dynamics.start)[:, None], len(self.rows), axis=1)
        totals = self.arrays.zeros((len(self.rows), dynamics.objectives))
        for begin, end, policy in self._policies():
            stride = end - begin if dynamics.stationary else 1
            for step in range(begin, end, stride):
                taken = policy[step - begin : step - begin + stride]
                device.forward(dynamics.layer(step), taken, occupancy, totals, self.solver.threads)
        found: Matrix = device.fetch(totals)
        return found

    def tables(self) -> Any:
        """Return the chunk's policies [H, S, B]."""
        fetch = self.solver.device.fetch
        if len(self.segments) == 1:
            return fetch(self.policy)
        return np.concatenate([fetch(policy.copy()) for _, _, policy in self._policies()])
