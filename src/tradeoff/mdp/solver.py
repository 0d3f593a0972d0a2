"""The protocol of MDP solvers. Another solver is plugged in with ``MDP(solver=...)``, and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tradeoff.mdp.dynamics import Dynamics
from tradeoff.mdp.layer import Int, Layer
from tradeoff.model import Matrix, Vector
from tradeoff.problem import SAME, GainScale, unit_rows

# A weight this small relative to the largest may be lost in rounding, so it is treated as zero when looking for ties.
# (If all weights are positive, an optimal policy cannot be dominated.)
NEARLY_ZERO = 1e-6

Choices = NDArray[np.unsignedinteger]  # [H, S]: the number of the chosen action among those of its state, 0 at an end


@dataclass(frozen=True, eq=False)
class Weights:
    """Weight vectors on outcomes in the person's units, and how ties between actions are broken.

    In rows with ``may_tie``, the actions within ``tolerance`` of the best tie at every step, and the one with the largest
    expected sum of ``tie_break @ reward`` is chosen. In other rows, or if that ties too, the first of the best is chosen.
    """

    rows: Matrix  # [B, k]
    may_tie: NDArray[np.bool_]  # [B]
    tolerance: Vector  # [B], of the weighted outcome
    tie_break: Vector  # [k]

    @classmethod
    def on_gains(cls, rows: Matrix, scale: GainScale, largest_total: Vector) -> Weights:
        """Return weights on outcomes that order plans in the same way as weights on gains.

        The largest total gain breaks ties, so that no result is dominated.
        """
        rows = unit_rows(rows)
        raw = np.ascontiguousarray(scale.raw_weights(rows))
        relevant = rows[:, scale.matters]
        size = np.abs(relevant).max(axis=1, initial=0.0)
        # Gains lie in [0, 1]; sums of rewards are exact only up to rounding.
        tolerance = SAME * np.abs(relevant).sum(axis=1) + 1e-15 * np.abs(raw) @ largest_total
        may_tie = np.any(relevant <= NEARLY_ZERO * size[:, None], axis=1)
        return cls(raw, may_tie, tolerance, np.where(scale.matters, 1.0 / scale.scale, 0.0))


class Solver(Protocol):
    """Backward induction over a finite horizon, and related computations.

    ``problems.textbook`` defines what each method returns, in NumPy; ``problems.compiled`` is the default. The bits of the
    result for one weight vector must not depend on the others in its batch, because an optimal policy is stored as its
    weights and solved for again. It is enough to add up the branches of a choice in order, whatever the batch size.
    """

    threads: int  # how many threads one call may use

    def optimal_values(self, dynamics: Dynamics, weights: Matrix) -> Vector:
        """Return the largest expected weighted outcome from the start, for each row of weights."""

    def optimal_outcomes(self, dynamics: Dynamics, weights: Weights) -> Matrix:
        """Return the expected outcome [B, k] of an optimal policy for each row of weights."""

    def optimal_choices(self, dynamics: Dynamics, weights: Weights) -> list[Choices]:
        """Return an optimal policy for each row of weights."""

    def policy_values(self, layer: Layer, chance: Vector, after: Matrix) -> Matrix:
        """Return the expected outcome from each state on [S, k], given that after this step; ``chance`` [C] is per choice."""

    def next_distribution(self, layer: Layer, chance: Vector, now: Vector) -> Vector:
        """Return how likely each state is after this step, given how likely it is before; ends lead to themselves."""

    def sample_step(
        self, layer: Layer, chance: Vector, states: Int, action_draws: Vector, branch_draws: Vector
    ) -> tuple[Int, Int, Int]:
        """Return the choice, the branch (both -1 at an end) and the next state of each walker, drawn with uniform numbers.

        Nothing of probability 0 is ever drawn, even if sums are rounded.
        """
