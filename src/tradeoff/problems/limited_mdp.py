"""A Markov decision process with limits on expected outcomes: the best plan is a mixture of a few policies.

The expected outcomes of all policies, and of mixtures that are drawn once at the start, form a polytope, and the same oracle
that solves the MDP for any weights finds its corners. So a linear program over the corners known so far gives weights
(its duals) for which the oracle finds a better corner, until there is none: the optimum is exact, and mixes at most one more
policy than there are limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.model import Alternative, Matrix, Mixture, Nothing, OptimalPolicy, Plan, Policy, Vector
from tradeoff.problem import GainScale, fingerprint_of, unit_rows, weight_rows
from tradeoff.problems.limits import Limit, infeasible, only_bounds, parse
from tradeoff.problems.mdp import MDP
from tradeoff.problems.solver import NEARLY_ZERO, Weights

TOLERANCE = 1e-11  # in gains: a corner that improves on the optimum by less is not counted as better
FEASIBLE = 1e-10  # of the range: a limit that is missed by less is kept
MOST_ROUNDS = 500
KNOWN = 20_000  # optima that are remembered


def limited(mdp: MDP, limits: Sequence[str]) -> MDP:
    """Return the MDP whose plans keep these limits on average."""
    found = parse(limits, mdp.objectives)
    only_bounds(found, "an average")
    earlier = mdp.limits if isinstance(mdp, LimitedMDP) else ()
    made = mdp.replace()
    made.__class__ = LimitedMDP
    assert isinstance(made, LimitedMDP)
    made.limit_by((*earlier, *found))
    return made


class LimitedMDP(MDP):
    """An MDP with limits; gains are counted from the worst to the best that can be expected within them.

    The weights of an ``OptimalPolicy`` are on the gains without limits (``free``): policies are those of the MDP itself.
    """

    storable = False  # files have no room for limits
    limits: tuple[Limit, ...]

    def limit_by(self, limits: tuple[Limit, ...]) -> None:
        """Set the limits; raise a ProblemError if no plan keeps them."""
        self.limits = limits
        self._optima: dict[bytes, Alternative] = {}
        rows, bounds = self._bounds(limits)
        self._rows, self._limits_at = rows, bounds
        corners, shares = self._nearest(rows, bounds)
        if float(np.max(rows @ (shares @ corners.values) - bounds, initial=0.0)) > FEASIBLE:
            raise infeasible(self.name, limits, self.objectives, self._attainable)
        self._corners = corners
        self.notes.append(
            f"{'; '.join(map(str, limits))}: kept on average, over what chance decides and over the policies that are mixed"
        )

    @cached_property
    def free(self) -> GainScale:
        """The scale of gains without limits."""
        found: GainScale = MDP.gain_scale.func(self)  # type: ignore[attr-defined]
        return found

    def _bounds(self, limits: Sequence[Limit]) -> tuple[Matrix, Vector]:
        """Return the limits as ``rows @ free gains <= bounds``."""
        rows, bounds = [], []
        for limit in limits:
            j = limit.objective
            assert j is not None
            unit = np.eye(len(self.objectives))[j]
            for sign in {"<=": (1.0,), ">=": (-1.0,), "=": (1.0, -1.0)}[limit.relation]:
                size = abs(self.free.scale[j])
                rows.append(sign * unit * np.sign(self.free.scale[j]))
                bounds.append(sign * (limit.amount - self.free.origin[j]) / size)
        return np.array(rows).reshape(-1, len(self.objectives)), np.array(bounds)

    # --- the oracle, without limits -----------------------------------------------------------------------------------

    def _on_outcomes(self, rows: Matrix) -> Weights:
        return Weights.on_gains(rows, self.free, self.largest_total)

    def _free_gains(self, weights: Matrix) -> Matrix:
        """Return what the optimal policies for weights on free gains are worth, in free gains."""
        found: Matrix = (self.solver.optimal_outcomes(self.dynamics, self._on_outcomes(weights)) - self.free.origin) / (
            self.free.scale
        )
        return np.where(self.free.matters, found, 0.0)

    # --- linear programs over corners ---------------------------------------------------------------------------------

    def _first_corners(self) -> Corners:
        k = len(self.objectives)
        weights = np.concatenate([np.eye(k) + 1e-3, np.ones((1, k))])
        return Corners(weights, self._free_gains(weights))

    def _nearest(self, rows: Matrix, bounds: Vector) -> tuple[Corners, Vector]:
        """Return corners, and the mixture of them that misses the limits by the smallest total."""
        corners = self._first_corners()
        for _ in range(MOST_ROUNDS):
            missed = np.eye(len(bounds))
            worth = np.concatenate([np.zeros(len(corners)), -np.ones(len(bounds))])
            shares, duals, level = _program(worth, np.hstack([rows @ corners.values.T, -missed]), bounds, len(corners))
            if not self._grown(corners, -duals @ rows, level):
                break
        return corners, shares[: len(corners)]

    def _grown(self, corners: Corners, weights: Vector, level: float) -> bool:
        """Add the best corner for these weights if it is better than what is known; return whether it was."""
        if not np.any(weights):
            return False
        value = self._free_gains(weights[None])[0]
        if weights @ value <= level + TOLERANCE * max(1.0, float(np.abs(weights).sum())):
            return False
        return corners.add(weights, value)

    def _maximum(self, weights: Vector, rows: Matrix, bounds: Vector, corners: Corners) -> tuple[float, Vector]:
        """Return the largest weighted free gain within limits, and the shares of the corners, which grow on the way."""
        for _ in range(MOST_ROUNDS):
            shares, duals, level = _program(corners.values @ weights, rows @ corners.values.T, bounds, len(corners))
            if not self._grown(corners, weights - duals @ rows, level):
                return float(shares @ (corners.values @ weights)), shares
        raise ProblemError(
            f"the limits of {self.name!r} could not be kept exactly in {MOST_ROUNDS} rounds; relax them a little"
        )

    def _attainable(self, limit: Limit, others: Sequence[Limit]) -> float | None:
        """Return the amount nearest to a limit that can be expected while others are kept."""
        rows, bounds = self._bounds(others)
        corners, shares = self._nearest(rows, bounds)
        if float(np.max(rows @ (shares @ corners.values) - bounds, initial=0.0)) > FEASIBLE:
            return None
        assert limit.objective is not None
        towards, at = self._bounds([limit])
        found = []
        for row, bound in zip(towards, at, strict=True):
            _, shares = self._maximum(-row, rows, bounds + FEASIBLE, corners)
            value = shares @ corners.values
            outcome = float(self.free.outcomes(value)[limit.objective])
            if row @ value > bound:
                return outcome
            found.append(outcome)
        return limit.amount if limit.relation == "=" else found[0]

    # --- the problem --------------------------------------------------------------------------------------------------

    @cached_property
    def gain_scale(self) -> GainScale:
        """The reference and the scale of each gain, from the best and the worst expectation within the limits."""
        ends = []
        for sign in (1.0, -1.0):
            rows = np.diag(sign * np.sign(self.free.scale))
            ends.append([self._optimum(row)[1][j] for j, row in enumerate(rows)])
        noise = FEASIBLE * np.abs(self.free.scale) + 1e-15 * self.largest_total
        return GainScale(self.objectives, np.array(ends[1]), np.array(ends[0]), self.reference, noise)

    @cached_property
    def fingerprint(self) -> str:
        """A text that identifies the model and its limits."""
        told = [(limit.name, limit.relation, limit.amount) for limit in self.limits]
        model: str = MDP.fingerprint.func(self)  # type: ignore[attr-defined]
        return fingerprint_of("limited", model, told)

    def _optimum(self, weights: Vector) -> tuple[Plan, Vector]:
        """Return the best plan for weights on free gains, and its expected outcome."""
        corners = self._corners.copy()
        bounds = self._limits_at + FEASIBLE
        largest, shares = self._maximum(weights, self._rows, bounds, corners)
        relevant = np.abs(weights[self.free.matters])
        if np.any(relevant <= NEARLY_ZERO * relevant.max(initial=0.0)):
            # Of plans that are equally good, one that nothing beats in everything.
            rows = np.vstack([self._rows, -weights])
            least = np.append(bounds, -largest + TOLERANCE * max(1.0, float(np.abs(weights).sum())))
            signs = np.where(self.free.matters, 1.0, 0.0)
            _, shares = self._maximum(signs, rows, least, corners)
        used = np.flatnonzero(shares > 1e-12)
        part = shares[used] / shares[used].sum()
        outcome = self.free.outcomes(part @ corners.values[used])
        plans = tuple(OptimalPolicy(corners.weights[i]) for i in used.tolist())
        return plans[0] if len(plans) == 1 else Mixture(tuple(part.tolist()), plans), outcome

    def best(self, weights: ArrayLike) -> list[Alternative]:
        """Return a plan that is optimal within the limits for each row of weights: a policy, or a mixture of a few."""
        rows = unit_rows(weight_rows(weights, self.objectives))
        return [self._best(row) for row in np.ascontiguousarray(rows)]

    def _best(self, row: Vector) -> Alternative:
        key = row.tobytes()
        if key not in self._optima:
            raw = self.gain_scale.raw_weights(row)
            scaled = np.where(self.free.matters, raw * self.free.scale, 0.0)
            size = np.abs(scaled).max(initial=0.0)
            plan, outcome = self._optimum(scaled / size if size > 0 else scaled)
            found = Alternative(self.gain_scale.gains(outcome), plan)
            if len(self._optima) >= KNOWN:
                self._optima = {}
            self._optima[key] = found
        return self._optima[key]

    def solve(self, weights: ArrayLike) -> list[Policy]:
        """Refuse: what is best within limits is a mixture, and no table of actions."""
        raise ArgumentError(
            f"the best plan of {self.name!r} within its limits may be a mixture of policies; use best(weights)"
        )

    def evaluate(self, policy: object) -> Vector:
        """Return the expected gains of a policy, a mixture, or the reference."""
        return self.gain_scale.gains(self._outcome(self.plan(policy)))

    def _outcome(self, plan: Plan) -> Vector:
        match plan:
            case Nothing():
                return self.origin
            case Mixture():
                mean: Vector = np.array(plan.probabilities) @ np.array([self._outcome(part) for part in plan.plans])
                return mean
            case OptimalPolicy():
                return self.free.outcomes(self._free_gains(plan.weights[None])[0])
        return self._expected(plan)


class Corners:
    """Policies that are optimal for some weights, and what they are worth."""

    def __init__(self, weights: Matrix, values: Matrix) -> None:
        self.weights, self.values = weights, values

    def __len__(self) -> int:
        return len(self.values)

    def copy(self) -> Corners:
        """Return a copy of these corners, to which others can be added."""
        return Corners(self.weights, self.values)

    def add(self, weights: Vector, value: Vector) -> bool:
        """Add a corner; return False if it is known already."""
        if np.any(np.all(np.abs(self.values - value) <= 1e-14, axis=1)):
            return False
        self.weights, self.values = np.vstack([self.weights, weights]), np.vstack([self.values, value])
        return True


def _program(worth: Vector, rows: Matrix, bounds: Vector, corners: int) -> tuple[Vector, Vector, float]:
    """Return the best shares of corners, which sum to 1, within the limits, the limits' prices, and the optimum's level.

    Variables beyond the corners are how much each limit is missed by.
    """
    from scipy.optimize import linprog

    ones: Matrix = np.zeros((1, len(worth)))
    ones[0, :corners] = 1.0
    tight: Any = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(
        -worth, A_ub=rows if len(bounds) else None, b_ub=bounds if len(bounds) else None, A_eq=ones, b_eq=[1.0],
        method="highs", options=tight,
    )  # fmt: skip
    if found.x is None:
        raise ProblemError(f"the linear program of the limits could not be solved: {found.message}")
    prices = np.maximum(-found.ineqlin.marginals, 0.0) if len(bounds) else np.zeros(0)
    return np.maximum(found.x, 0.0), prices, float(-found.eqlin.marginals[0])
