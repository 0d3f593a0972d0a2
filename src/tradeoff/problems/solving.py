"""Backward induction for many weight vectors at once, within the memory there is.

One pass over the model serves a whole chunk of weight vectors (the weights are innermost in every array). Policies are
kept as the local number of the chosen action, in the smallest integer type. Where a chunk's policies would not fit, the
horizon is cut into segments: the first sweep keeps only the values at their borders, and each segment's policies are
worked out again from there when the forward pass needs them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tradeoff.kernels import bellman
from tradeoff.model import Matrix, Vector
from tradeoff.problem import SAME, unit_rows
from tradeoff.problems.layer import Int, Layer
from tradeoff.problems.memory import check_fits, memory_limit

if TYPE_CHECKING:
    from tradeoff.problems.mdp import MDP

# A weight this small beside the largest cannot be told from zero by the values' last digits: such rows take the slower
# sweep that breaks ties towards the largest total gain, and so never return a dominated policy. (With all weights
# positive an optimal policy cannot be dominated.)
NEARLY_ZERO = 1e-6

# Weight vectors that one pass over the model serves; a thread takes one such chunk at a time.
CHUNK = 16

Choices = NDArray[np.unsignedinteger]


@dataclass(frozen=True)
class _Rows:
    """Weight vectors of one kind, ready for the kernels."""

    raw: Matrix  # on outcomes in the person's units
    second: Vector | None  # the tie-break on outcomes, for rows with zeros
    tolerance: Vector  # what counts as a tie, per row

    def part(self, begin: int, end: int) -> _Rows:
        return _Rows(np.ascontiguousarray(self.raw[begin:end]), self.second, self.tolerance[begin:end])

    def __len__(self) -> int:
        return len(self.raw)


def optimal_scores(mdp: MDP, raw: Matrix) -> Vector:
    """Return the largest expectation of each row's weighted outcome (weights on outcomes, in the person's units)."""
    rows = _Rows(np.ascontiguousarray(raw), None, np.zeros(len(raw)))
    result = np.empty(len(raw))
    for begin, end, plan in _chunks(mdp, len(raw), keep_policies=False):
        sweep = _Sweep(mdp, rows.part(begin, end), plan)
        result[begin:end] = mdp.start @ sweep.backward()
    return result


def optimal_outcomes(mdp: MDP, weights: Matrix) -> Matrix:
    """Return the expected outcomes [B, k], in the person's units, of a policy optimal for each row of gain weights."""
    result = np.empty(weights.shape)
    for at, rows in _kinds(mdp, weights):
        for begin, end, plan in _chunks(mdp, len(rows), keep_policies=True):
            sweep = _Sweep(mdp, rows.part(begin, end), plan)
            sweep.backward()
            result[at[begin:end]] = sweep.forward()
    return result


def optimal_choices(mdp: MDP, weights: Matrix) -> list[Choices]:
    """Return the optimal policy of each row of gain weights as local choice numbers [H, S]."""
    result: dict[int, Choices] = {}
    size = mdp.horizon * len(mdp.states) * len(weights) * _choice_type(mdp)().itemsize
    check_fits(size, f"{len(weights)} policy tables for {mdp.horizon} steps and {len(mdp.states):,} states")
    for at, rows in _kinds(mdp, weights):
        for begin, end, plan in _chunks(mdp, len(rows), keep_policies=True):
            sweep = _Sweep(mdp, rows.part(begin, end), plan)
            sweep.backward()
            tables = sweep.tables()
            for column, row in enumerate(at[begin:end]):
                result[int(row)] = np.ascontiguousarray(tables[:, :, column])
    return [result[row] for row in range(len(weights))]


def branches(layer: Layer) -> tuple[Int, Int, Vector, Int, Matrix]:
    """Return a layer's branches as columns: state, action, probability, target, rewards."""
    choice = np.repeat(np.arange(len(layer.action)), np.diff(layer.choice_ptr))
    return (
        layer.state_of_choice[choice].astype(np.int64),
        layer.action[choice].astype(np.int64),
        layer.prob,
        layer.target.astype(np.int64),
        layer.outcomes_of_branches(),
    )


def _kinds(mdp: MDP, weights: Matrix) -> Iterator[tuple[Int, _Rows]]:
    """Yield the row numbers and the rows that need no tie-break, then those that do."""
    frame = mdp.gain_scale
    weights = unit_rows(weights)
    raw = np.ascontiguousarray(frame.raw_weights(weights))
    relevant = weights[:, frame.matters]
    size = np.abs(relevant).max(axis=1, initial=0.0)
    ties = np.any(relevant <= NEARLY_ZERO * size[:, None], axis=1)
    # Gains lie in [0, 1]; sums of rewards are exact to their last digit only.
    tolerance = SAME * np.abs(relevant).sum(axis=1) + 1e-15 * np.abs(raw) @ mdp.largest_total
    second = np.where(frame.matters, 1.0 / frame.scale, 0.0)
    for at, tie_break in ((np.flatnonzero(~ties), None), (np.flatnonzero(ties), second)):
        if len(at):
            yield at, _Rows(np.ascontiguousarray(raw[at]), tie_break, np.ascontiguousarray(tolerance[at]))


@dataclass(frozen=True)
class _Plan:
    """How one chunk is swept: its width, the length of a segment, and whether its policies will be asked for."""

    width: int
    segment: int
    keep_policies: bool


def _most_choices(mdp: MDP) -> int:
    """Return the largest number of choices that a state has."""
    return max(int(np.diff(layer.state_ptr).max(initial=0)) for layer in mdp.layers)


def _choice_type(mdp: MDP) -> type[np.uint8] | type[np.uint16] | type[np.uint32]:
    """Return the smallest type that holds the local number of every choice; a layer numbers them with 32 bits."""
    most = _most_choices(mdp)
    return np.uint8 if most <= 1 << 8 else np.uint16 if most <= 1 << 16 else np.uint32


def _chunks(mdp: MDP, count: int, *, keep_policies: bool) -> Iterator[tuple[int, int, _Plan]]:
    """Yield (begin, end, plan) of chunks as wide as memory allows."""
    states, horizon = len(mdp.states), mdp.horizon
    item = _choice_type(mdp)().itemsize
    limit = memory_limit() // 2  # the other half is for the model and its caller
    threads = max(1, mdp.threads)
    scratch = 128 * _most_choices(mdp) * threads  # the values of one state's choices, in the sweep that breaks ties
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
    plan = _Plan(width, segment if keep_policies else 1, keep_policies)
    for begin in range(0, count, width):
        yield begin, min(count, begin + width), plan


class _Sweep:
    """One chunk of weight vectors swept through the horizon: backwards once, then forwards once."""

    def __init__(self, mdp: MDP, rows: _Rows, plan: _Plan) -> None:
        self.mdp, self.rows, self.keep_policies = mdp, rows, plan.keep_policies
        length = plan.segment
        self.segments = [(b, min(b + length, mdp.horizon)) for b in range(0, mdp.horizon, length)]
        self.borders: dict[int, tuple[Matrix, Matrix]] = {}
        self.policy = np.empty((length, len(mdp.states), len(rows)), dtype=_choice_type(mdp))

    def backward(self) -> Matrix:
        """Return the values [S, B] at step 0; keeps the borders' values and the first segment's policies."""
        shape = (len(self.mdp.states), len(self.rows))
        values, seconds = np.zeros(shape), np.zeros(shape if self.rows.second is not None else (0, 0))
        for begin, end in reversed(self.segments):
            if begin > 0 and self.keep_policies:
                self.borders[end] = (values.copy(), seconds.copy())
            self._segment(begin, end, values, seconds)
        return values

    def _segment(self, begin: int, end: int, values: Matrix, seconds: Matrix) -> None:
        """Sweep one segment backwards, in place, and keep its policies."""
        mdp, rows = self.mdp, self.rows
        # A model that does not change is swept in one call; one that does, a step at a time.
        stride = end - begin if len(mdp.layers) == 1 else 1
        for step in range(end - stride, begin - 1, -stride):
            policy = self.policy[step - begin : step - begin + stride]
            layer = mdp.layer(step)
            arrays = layer.arrays
            if rows.second is None:
                arranged = layer.arrangement if len(rows) == 1 and stride > 1 else None
                bellman.backward(*arrays, rows.raw, values, policy, threads=mdp.threads, arranged=arranged)
            else:
                bellman.backward_lexicographic(
                    *arrays, rows.raw, rows.second, rows.tolerance, values, seconds, policy, threads=mdp.threads
                )

    def _policies(self) -> Iterator[tuple[int, int, Choices]]:
        """Yield (begin, end, policies) of each segment in order; all but the first are worked out again."""
        for begin, end in self.segments:
            if begin > 0:  # the first segment was swept last, so its policies are still there
                self._segment(begin, end, *self.borders.pop(end))
            yield begin, end, self.policy[: end - begin]

    def forward(self) -> Matrix:
        """Return the expected outcomes [B, k] of the chunk's policies."""
        mdp = self.mdp
        occupancy = np.repeat(mdp.start[:, None], len(self.rows), axis=1)
        totals = np.zeros((len(self.rows), len(mdp.objectives)))
        for begin, end, policy in self._policies():
            stride = end - begin if len(mdp.layers) == 1 else 1
            for step in range(begin, end, stride):
                at = step - begin
                bellman.forward(
                    *mdp.layer(step).arrays, policy[at : at + stride], occupancy, totals, threads=mdp.threads
                )
        return totals

    def tables(self) -> Choices:
        """Return the chunk's policies [H, S, B]."""
        if len(self.segments) == 1:
            return self.policy
        return np.concatenate([policy.copy() for _, _, policy in self._policies()])
