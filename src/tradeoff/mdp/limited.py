"""A Markov decision process with limits on expected outcomes: the best plan is a mixture of a few policies.

The expected outcomes of all policies, and of mixtures that are drawn once at the start, form a polytope, and the same oracle
that solves the MDP for any weights finds its corners. ``Simplex`` is the simplex method over mixtures of corners: its prices
are weights for which the oracle finds the next corner, until none improves the mixture. A basis has one entry per limit and
one more, so the optimum mixes at most one policy more than there are limits. The prices also bound the optimum from above,
and every result is checked against that bound.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.mdp.model import MDP
from tradeoff.mdp.solver import NEARLY_ZERO, Weights
from tradeoff.model import Matrix, Mixture, Nothing, OptimalPolicy, Option, Plan, Policy, Vector
from tradeoff.problem import SAME, GainScale, fingerprint_of, unit_rows, weight_rows
from tradeoff.problems.limits import Limit, infeasible, only_bounds, parse

FEASIBLE = 1e-10  # of the range without limits: a limit that is missed by less is kept
TOLERANCE = 1e-11  # of the weighted gain without limits: a corner that improves it by less does not count as better
FIXED = 1e-6  # of the range without limits: an objective with a smaller range within the limits counts as fixed
LARGEST_GAP = 1e-10  # of the weighted gain without limits: an optimum that is farther from its bound is an error
TIES = 1e-9  # of the range without limits: mixtures that are equally good and differ by less are not told apart
STARTS = 32  # optima that are found first, so that others are near one (chosen with benchmarks/limited.py)
MOST_ROUNDS = 500
KNOWN = 20_000  # optima that are remembered

_sums = np.add.reduce  # no product is left to a BLAS, so that results have the same bits on every machine


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
        self._optima: dict[bytes, Option] = {}
        start = self._within(limits)
        if start is None:
            raise infeasible(self.name, limits, self.objectives, self._attainable)
        self._start = start
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

    def _within(self, limits: Sequence[Limit], tighter: float = 0.0) -> Simplex | None:
        """Return a mixture that keeps the limits, or None where there is none; they may be missed by less if tighter."""
        rows, bounds = self._bounds(limits)
        weights = np.ones((1, len(self.objectives)))
        start = Simplex(rows, bounds - tighter * FEASIBLE, weights[0], self._free_gains(weights)[0])
        self._maximise([start], Corners(start.found))
        return start if start.keeps_limits() else None

    def _maximise(self, programs: Sequence[Simplex], known: Corners) -> None:
        """Solve programs together, so that the oracle is asked for many weights at once; ``known`` corners come first.

        Each program's result depends on nothing but its own start and the known corners.
        """
        waiting = list(programs)
        for _ in range(MOST_ROUNDS):
            for program in waiting:
                program.improve(known)
            directions = np.array([program.direction() for program in waiting])
            values = self._free_gains(directions)
            waiting = [
                program for program, weights, value in zip(waiting, directions, values, strict=True)
                if not program.finish(weights, value)
            ]  # fmt: skip
            if not waiting:
                break
        gap = max((program.gap for program in programs), default=0.0)
        if waiting or gap > LARGEST_GAP:
            raise ProblemError(
                f"the best plan of {self.name!r} within its limits could not be proved to be the best (it may miss "
                f"{gap:.2g} of the gain); relax the limits a little"
            )

    def _attainable(self, limit: Limit, others: Sequence[Limit]) -> float | None:
        """Return the amount nearest to a limit that can be expected while others are kept."""
        start = self._within(others, tighter=0.5)  # so that limits with this amount can be kept despite rounding
        if start is None:
            return None
        assert limit.objective is not None
        towards, at = self._bounds([limit])
        ends = [start.towards(-row) for row in towards]
        self._maximise(ends, Corners(start.found))
        outcomes = [float(self.free.outcomes(end.value)[limit.objective]) for end in ends]
        digits = 1 - int(np.floor(np.log10(FEASIBLE * abs(self.free.scale[limit.objective]))))
        for row, bound, end, outcome in zip(towards, at, ends, outcomes, strict=True):
            if (row * end.value).sum() > bound:
                return round(outcome, digits)
        return limit.amount if limit.relation == "=" else outcomes[0]

    # --- the problem --------------------------------------------------------------------------------------------------

    @cached_property
    def _solved_before(self) -> tuple[list[Simplex], Corners]:
        """Optima from which others start: the best and the worst of each objective, then some in between; and their corners."""
        k = len(self.objectives)
        between = np.random.default_rng(0).dirichlet(np.ones(k), STARTS)
        solved = [self._start.towards(row) for row in np.concatenate([np.eye(k), -np.eye(k), between])]
        self._maximise(solved, Corners(self._start.found))
        return solved, Corners([pair for program in (self._start, *solved) for pair in program.found])

    @cached_property
    def gain_scale(self) -> GainScale:
        """The reference and the scale of each gain, from the best and the worst expectation within the limits."""
        k = len(self.objectives)
        ends = self._solved_before[0][: 2 * k]
        outcomes = np.array([self.free.outcomes(end.value)[j % k] for j, end in enumerate(ends)])
        # What was gained only because limits may be missed by FEASIBLE is no range.
        bought = np.array([end.bought for end in ends])
        noise = (FIXED + bought[:k] + bought[k:]) * np.abs(self.free.scale)
        low, high = np.minimum(outcomes[:k], outcomes[k:]), np.maximum(outcomes[:k], outcomes[k:])
        return GainScale(self.objectives, low, high, self.reference, noise)

    def _solver_loss(self, wider: float = 1.0) -> float:
        """Return what breaking ties may lose, and by how much an optimum may be below its dual bound."""
        matters = self.gain_scale.matters
        wider = float(np.max(np.abs(self.free.scale / self.scale)[matters], initial=wider))
        return super()._solver_loss(wider) + (wider - 1) * LARGEST_GAP

    @cached_property
    def fingerprint(self) -> str:
        """A text that identifies the model and its limits."""
        told = [(limit.name, limit.relation, limit.amount) for limit in self.limits]
        model: str = MDP.fingerprint.func(self)  # type: ignore[attr-defined]
        return fingerprint_of("limited", model, told)

    def best(self, weights: ArrayLike) -> list[Option]:
        """Return a plan that is optimal within the limits for each row of weights: a policy, or a mixture of a few."""
        rows = unit_rows(weight_rows(weights, self.objectives))
        keys = [row.tobytes() for row in rows]
        found = {key: self._optima[key] for key in keys if key in self._optima}
        new = {key: row for key, row in zip(keys, rows, strict=True) if key not in found}
        if new:
            found.update(zip(new, self._best(np.array(list(new.values()))), strict=True))
            if len(self._optima) + len(new) > KNOWN:
                self._optima = {}
            self._optima.update((key, found[key]) for key in new)
        return [found[key] for key in keys]

    def _best(self, rows: Matrix) -> list[Option]:
        scaled = np.where(self.free.matters, self.gain_scale.raw_weights(rows) * self.free.scale, 0.0)
        scaled /= np.maximum(np.abs(scaled).max(axis=1, keepdims=True), 1e-300)
        tie_break = np.where(self.gain_scale.matters, np.abs(self.free.scale / self.scale), 0.0)
        tie_break /= max(tie_break.max(initial=0.0), 1e-300)
        solved, known = self._solved_before
        worth = (scaled[:, None, :] * [one.value for one in solved]).sum(axis=2)
        programs = [solved[i].towards(row, tie_break) for i, row in zip(worth.argmax(axis=1), scaled, strict=True)]
        self._maximise(programs, known)
        return [Option(self.gain_scale.gains(self.free.outcomes(one.value)), one.plan) for one in programs]

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
    """Policies that are optimal for some weights, and what they are worth in free gains."""

    def __init__(self, found: Sequence[tuple[Vector, Vector]]) -> None:
        once = {value.tobytes(): (weights, value) for weights, value in found}
        self.weights = np.array([weights for weights, _ in once.values()])
        self.values = np.array([value for _, value in once.values()])


class Simplex:
    """The simplex method for the best mixture of corners within limits: ``rows @ mixture <= bounds``.

    Its variables are the shares of corners, the slack of each limit, and at first by how much each limit is missed.
    """

    def __init__(self, rows: Matrix, bounds: Vector, weights: Vector, value: Vector) -> None:
        """Begin with one corner, and maximise how little the limits are missed."""
        count, k = rows.shape
        self.rows = rows
        # Limits may be missed by FEASIBLE, and each by another amount, so that every step of the method makes progress.
        self.right = np.append(bounds + FEASIBLE * (1 + np.arange(count) / (8 * count + 8)), 1.0)
        amounts = _sums(rows * value, axis=1)
        self.limit_of = np.append(np.arange(count), -1)  # per entry of the basis: its limit, or -1 for a corner
        self.missed = np.append(amounts > self.right[:-1], False)
        self.weights, self.values = np.zeros((count + 1, k)), np.zeros((count + 1, k))
        self.weights[-1], self.values[-1] = weights, value
        signs = np.where(self.missed, -1.0, 1.0)
        self.inverse = np.diag(signs)
        self.inverse[:-1, -1] = -signs[:-1] * amounts
        self.shares = _sums(self.inverse * self.right, axis=1)
        self.found = [(weights, value)]
        self._aim(np.zeros(k), np.zeros(k))

    def towards(self, weights: Vector, tie_break: Vector | None = None) -> Simplex:
        """Return a copy that maximises these weights on free gains and, among what is equally good, ``tie_break``."""
        made = copy.copy(self)
        made.found = []
        made._aim(weights, np.zeros(len(weights)) if tie_break is None else tie_break)
        return made

    def _aim(self, weights: Vector, tie_break: Vector) -> None:
        self.aim, self.tie_break = weights, tie_break
        self.may_tie = bool(np.any(weights[tie_break > 0] <= NEARLY_ZERO * np.abs(weights).max(initial=0.0)))
        self.breaking_ties, self.step, self.upper = False, 1e-6, np.inf
        self._set_prices()

    # --- the result ---------------------------------------------------------------------------------------------------

    def keeps_limits(self) -> bool:
        """Return whether the limits are kept; if so, what they are missed by, which is rounding, becomes slack."""
        if _sums(self.shares * self.missed) > SAME:
            return False
        self.inverse = np.where(self.missed[:, None], -self.inverse, self.inverse)
        self.shares = np.where(self.missed, 0.0, self.shares)
        self.missed = np.zeros(len(self.missed), dtype=bool)
        return True

    def _settle(self) -> None:
        """Set the mixture: the probability of each corner of the basis, and what it is worth in free gains."""
        parts = np.where((self.limit_of < 0) & (self.shares > SAME), self.shares, 0.0)
        self.parts = parts / parts.sum()
        self.value = _sums(self.parts[:, None] * self.values, axis=0)

    @property
    def plan(self) -> Plan:
        """The mixture as a plan."""
        used = np.flatnonzero(self.parts)
        plans = tuple(OptimalPolicy(self.weights[i]) for i in used)
        return plans[0] if len(plans) == 1 else Mixture(tuple(self.parts[used].tolist()), plans)

    @property
    def gap(self) -> float:
        """How far the mixture may be below the optimum, which prices bound from above, or how far it misses a limit."""
        missed = np.zeros(len(self.rows))
        missed[self.limit_of[self.missed]] = self.shares[self.missed]
        over = _sums(self.rows * self.value, axis=1) - missed - self.right[:-1]
        lower = _sums(self.aim * self.value) - _sums(missed)
        below = (self.upper - lower) / max(1.0, _sums(np.abs(self.aim)))
        return float(max(below, over.max(initial=0.0)))

    @property
    def bought(self) -> float:
        """How much of the optimum there is only because limits may be missed by FEASIBLE."""
        return float(2 * FEASIBLE * _sums(self.prices[:-1]))

    # --- the method ---------------------------------------------------------------------------------------------------

    def _set_prices(self) -> None:
        """Set the prices of the limits and of the mixture (last), and the weights that are left after paying them."""
        costs = _sums(self.values * self.aim, axis=1) - self.missed
        self.prices = _sums(costs[:, None] * self.inverse, axis=0)
        self.left = self.aim - _sums(self.prices[:-1, None] * self.rows, axis=0)
        self.tolerance = TOLERANCE * max(1.0, float(_sums(np.abs(self.left))))
        if self.breaking_ties:
            costs = _sums(self.values * self.tie_break, axis=1)
            self.tie_prices = _sums(costs[:, None] * self.inverse, axis=0)
            self.tie_left = self.tie_break - _sums(self.tie_prices[:-1, None] * self.rows, axis=0)

    def direction(self) -> Vector:
        """Return the weights on free gains for which the next corner is wanted."""
        wanted: Vector = self.left
        if self.breaking_ties:
            size = float(np.abs(self.left).max())
            if size <= TIES:  # all mixtures within the limits are equally good: only rounding is left
                wanted = self.tie_left
            else:
                wanted = self.left + self.step * size * self.tie_left / max(float(np.abs(self.tie_left).max()), SAME)
        return wanted

    def _improvements(self, values: Matrix) -> Vector:
        """Return how much a unit of each corner improves the mixture; 0 if not at all."""
        first = _sums(values * self.left, axis=1) - self.prices[-1]
        if not self.breaking_ties:
            return np.where(first > self.tolerance, first, 0.0)
        second = _sums(values * self.tie_left, axis=1) - self.tie_prices[-1]
        return np.where((first >= -2 * self.tolerance) & (second > TIES), second, 0.0)

    def _slack_improvements(self) -> Vector:
        """Return how much a unit of each limit's slack improves the mixture; 0 if not at all."""
        if not self.breaking_ties:
            return np.where(self.prices[:-1] < -self.tolerance, -self.prices[:-1], 0.0)
        useful = (self.prices[:-1] <= 2 * self.tolerance) & (self.tie_prices[:-1] < -TIES)
        return np.where(useful, -self.tie_prices[:-1], 0.0)

    def improve(self, known: Corners) -> None:
        """Use slacks and known corners until none of them improves the mixture."""
        for _ in range(MOST_ROUNDS):
            improvements = np.concatenate([self._slack_improvements(), self._improvements(known.values)])
            entering = int(improvements.argmax())
            if improvements[entering] <= 0:
                return
            if entering < len(self.rows):
                self._enter(entering, np.eye(len(self.right))[entering], 0.0, 0.0)
            else:
                self.enter_corner(known.weights[entering - len(self.rows)], known.values[entering - len(self.rows)])

    def finish(self, weights: Vector, value: Vector) -> bool:
        """Use the corner that the oracle found for ``direction``; return whether the mixture is optimal without it."""
        if self._improvements(value[None])[-1] > 0:
            self.found.append((weights, value))
            self.enter_corner(weights, value)
            return False
        above = float(_sums(value * self.left) - self.prices[-1])
        if not self.breaking_ties:
            self.upper = float(_sums(self.prices * self.right)) + max(above, 0.0)
            if self.may_tie:
                self.breaking_ties = True
                self._set_prices()
                return False
        elif above < -2 * self.tolerance and self.step > TIES:
            # A corner that is worse for what is maximised says nothing about ties: the step towards them was too large.
            self.step /= 30
            return False
        self._settle()
        return True

    def enter_corner(self, weights: Vector, value: Vector) -> None:
        """Bring a corner into the basis."""
        self._enter(-1, np.append(_sums(self.rows * value, axis=1), 1.0), weights, value)

    def _enter(self, limit: int, column: Vector, weights: ArrayLike, value: ArrayLike) -> None:
        rates = _sums(self.inverse * column, axis=1)
        falling = rates > SAME * np.abs(rates).max()
        ratios = np.where(falling, self.shares / np.where(falling, rates, 1.0), np.inf)
        # Of entries that reach zero together, the one with the largest rate leaves: dividing by it is the most accurate.
        leaving = int(np.argmax(np.where(ratios <= ratios.min() + 1e-14, rates, -np.inf)))
        pivot = self.inverse[leaving] / rates[leaving]
        self.inverse = self.inverse - rates[:, None] * pivot
        self.inverse[leaving] = pivot
        self.limit_of, self.missed = self.limit_of.copy(), self.missed.copy()
        self.weights, self.values = self.weights.copy(), self.values.copy()
        self.limit_of[leaving], self.missed[leaving] = limit, False
        self.weights[leaving], self.values[leaving] = weights, value
        self.shares = np.maximum(_sums(self.inverse * self.right, axis=1), 0.0)
        self._set_prices()
