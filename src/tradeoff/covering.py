"""Finding a coverage: few plans, the best of which is nearly as good as the best possible for any weights.

Let V(w) be what the best plan is worth to weights w, and L(w) what the best of the plans at hand is worth. Both are convex.
Everything above L over the simplex of weights is a polyhedron. The function (1 - t) V(w) - z is convex in (w, z): if it is
at most 0 at all corners of that polyhedron, it is so everywhere, and the plans at hand miss at most the share t. So the
guarantee is a maximum over corners, and no weights between them need to be looked at.

At a corner V is known if the problem was solved there. Before that it is bounded: a corner arises where a cut crosses the
edge between two older ones, and a convex function is at most the interpolation of its ends. So there is a guarantee at
every moment, and corners that are certainly good enough are never solved for.

A round solves the problem at the worst corners, all in one call, and takes a plan that was found if those at hand are not
good enough there. The corners are kept up to date by the double description of ``strategies/rays.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tradeoff.errors import ArgumentError
from tradeoff.model import Matrix, Option, Vector
from tradeoff.problem import ROUNDING, ScaledProblem, slack_of
from tradeoff.problems.coverage import Coverage, Plans, Proof
from tradeoff.strategies.cone import Skeleton, TooManyRays
from tradeoff.strategies.solutions import solutions_of

# Corners solved for in one call: several times the 16 that one pass over a model serves, so that threads and cards are
# busy; more would solve for corners that the plans found at others make superfluous.
BATCH = 64
CORNER_LIMIT = 1_000_000  # a few hundred MB, and some tenths of a second for every further plan
DIGITS = 12  # corners that agree to so many digits are solved for once
ALLOWED = 2 * ROUNDING  # for ties and rounding of the problem, and of the corners; part of every guarantee
# Tolerances below this are not told from rounding.
LEAST_TOLERANCE = 1e-7


def cover(
    problem: ScaledProblem,
    tolerance: float = 0.001,
    *,
    seconds: float | None = None,
    progress: Callable[[Coverage], None] | None = None,
) -> Coverage:
    """Return plans the best of which misses, for any weights >= 0, at most this share of the best possible gain.

    With many objectives that can take very many plans: after ``seconds``, or if there are too many corners to go on, the
    result is what was found, and its ``guarantee`` says how good that is. ``progress`` is called with the coverage so far
    after every round. A ``Coverage`` given as the problem is continued.

    >>> import tradeoff
    >>> found = tradeoff.cover(tradeoff.load("commute"), 0.01)
    >>> found.guarantee <= 0.01
    True
    """
    begin = time.monotonic()
    for found in better_coverages(problem, tolerance):
        if progress is not None:
            progress(found)
        if seconds is not None and time.monotonic() - begin >= seconds:
            break
    return prepared(found)


def prepared(coverage: Coverage) -> Coverage:
    """Return a coverage that also has the plans which the first questions of an interview compare."""
    recorder = _Recorder(
        coverage.model, coverage.plans, coverage.proof, coverage.guarantee, coverage.slack, coverage.signed
    )
    if any(coverage.matters):
        solutions_of(recorder).spanner()
    signed = Plans(np.array(recorder.rows), np.array(recorder.values)) if recorder.rows else None
    return Coverage(
        coverage.model, coverage.plans, coverage.proof, coverage.guarantee, coverage.slack, signed or coverage.signed
    )


class _Recorder(Coverage):
    """A coverage that notes the weights below 0 it is asked for, and their optima."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.rows: list[Vector] = []
        self.values: list[Vector] = []

    def best(self, weights: ArrayLike) -> list[Option]:
        found = super().best(weights)
        rows = np.asarray(weights, dtype=float)
        for i in np.flatnonzero(self.has_negative(rows)).tolist():
            self.rows.append(rows[i])
            self.values.append(found[i].value)
        return found


def better_coverages(problem: ScaledProblem, tolerance: float = 0.001) -> Iterator[Coverage]:
    """Yield better and better coverages, each with a guarantee that holds, until one is within the tolerance."""
    if not (isinstance(tolerance, int | float) and LEAST_TOLERANCE <= tolerance < 1):
        raise ArgumentError(
            f"the tolerance is {tolerance!r}; it must be a share of the best possible gain, from {LEAST_TOLERANCE:g} to "
            "less than 1, such as 0.001"
        )
    if not isinstance(problem, ScaledProblem):
        raise ArgumentError(
            f"{type(problem).__name__} cannot be covered; derive it from tradeoff.problem.ScaledProblem"
        )
    search = _Search(problem.model if isinstance(problem, Coverage) else problem, float(tolerance))
    if isinstance(problem, Coverage):
        search.repeat(problem)
    else:
        search.begin()
    yield search.coverage()
    while search.improve():
        yield search.coverage()


@dataclass(frozen=True, eq=False)
class _Optimum:
    weights: Vector  # on the relevant objectives
    value: Vector
    most: float  # no plan is worth more


class _Search:
    """The plans at hand, and the corners of what lies above them."""

    def __init__(self, model: ScaledProblem, tolerance: float) -> None:
        self.model, self.tolerance = model, tolerance
        self.relevant = np.flatnonzero(model.matters)
        self.d = len(self.relevant)
        self.slack = slack_of(model)
        self.weights: list[Vector] = []  # of the plans at hand, on all objectives
        self.values: list[Vector] = []
        self.gains: Matrix = np.zeros((0, self.d))  # their values, of the relevant objectives
        self.signed: Plans | None = None  # carried over from the coverage that is continued
        self.solved: dict[bytes, _Optimum] = {}  # by weights on the relevant objectives
        self.taken: set[bytes] = set()  # the weights of the plans at hand
        self.corners: Skeleton | None = None  # weights, then z
        self.full = False

    # --- the beginning ------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Solve for each objective alone, and take these plans."""
        alone = np.eye(self.d) if self.d else np.zeros((1, 0))
        found = self._solve(alone)
        self._set_up()
        for weights, value in zip(alone, found, strict=True):
            self._take_if_needed(weights, value)

    def repeat(self, coverage: Coverage) -> None:
        """Take the plans of a coverage in their order, which gives the same corners again, bit for bit."""
        self.signed, proof = coverage.signed, coverage.proof
        for weights, value, most in zip(
            proof.weights[:, self.relevant], proof.values, proof.most.tolist(), strict=True
        ):
            self.solved[weights.tobytes()] = _Optimum(weights, value, most)
        self._set_up()
        for weights, value in zip(coverage.plans.weights[:, self.relevant], coverage.plans.values, strict=True):
            self._take(weights, value)

    def _set_up(self) -> None:
        """Begin with all weights and every z that the best plan could be worth."""
        if self.d < 2:
            return  # one plan is the best for everybody
        most = np.array([self.solved[row.tobytes()].most for row in np.eye(self.d)])
        prism = Skeleton.prism(self.d, 2 * float(most.max()))  # a lid that no plan touches
        self.corners = replace(prism, above=np.concatenate([most, most]))

    # --- rounds -------------------------------------------------------------------------------------------------------

    def improve(self) -> bool:
        """Solve for the worst corners that were not solved for; return False if there is nothing more to do."""
        if self.corners is None or self.full:
            return False
        regret, _ = self._missing()
        rows = np.flatnonzero(regret > self.tolerance)
        rows = rows[np.argsort(-regret[rows], kind="stable")]
        chosen: dict[bytes, int] = {}  # corners to solve for
        known: list[bytes] = []  # those that were solved for, whose plan was not needed then
        lowered = False
        for row in rows.tolist():
            key = _rounded(self.corners.rays[row, :-1]).tobytes()
            if key not in self.solved:
                chosen.setdefault(key, row)
            else:
                lowered |= self._lower(self.corners, row, key)
                if key not in self.taken:
                    known.append(key)
            if len(chosen) + len(known) >= BATCH:
                break
        if chosen:
            self._solve(_rounded(self.corners.rays[list(chosen.values()), :-1]))
        for key, row in chosen.items():
            self._lower(self.corners, row, key)
        plans = len(self.values)
        for key in [*known, *chosen]:
            self._take_if_needed(self.solved[key].weights, self.solved[key].value)
        return bool(chosen) or lowered or len(self.values) > plans

    def _take_if_needed(self, weights: Vector, value: Vector) -> None:
        """Take the best plan for some weights, unless those at hand are good enough for them."""
        worth = float((self.gains @ weights).max(initial=-1.0))
        most = self.solved[weights.tobytes()].most
        if worth < (1 - self.tolerance) * (most + ALLOWED) and not self.full:
            self._take(weights, value)

    def _lower(self, corners: Skeleton, row: int, key: bytes) -> bool:
        """Lower the bound at a corner that was solved for; return whether it was higher."""
        assert corners.above is not None
        most = self.solved[key].most
        higher = bool(corners.above[row] > most)
        if higher:
            corners.above[row] = most
        return higher

    def _solve(self, at: Matrix) -> list[Vector]:
        """Return the gains of the best plan for each row of weights on the relevant objectives."""
        found = [option.value for option in self.model.best(self._everywhere(at))]
        for weights, value in zip(at, found, strict=True):
            most = float(weights @ value[self.relevant]) + self.slack * float(weights.sum())
            self.solved[weights.tobytes()] = _Optimum(weights, value, most)
        return found

    def _take(self, weights: Vector, value: Vector) -> None:
        self.taken.add(weights.tobytes())
        self.weights.append(self._everywhere(weights[None])[0])
        self.values.append(value)
        self.gains = np.vstack([self.gains, value[self.relevant]])
        if self.corners is None:
            return
        # z >= value @ w, halved so that it is of the size that the skeleton's tolerance is made for.
        row = np.append(-value[self.relevant], 1.0) / 2
        number = self.d + 2 + len(self.values)
        try:
            self.corners = self.corners.cut(row, number, CORNER_LIMIT)
        except TooManyRays:
            self.full = True
            return
        new = np.flatnonzero((self.corners.tight == number).any(axis=1))
        for corner, at in zip(new.tolist(), _rounded(self.corners.rays[new, :-1]), strict=True):
            if at.tobytes() in self.solved:
                self._lower(self.corners, corner, at.tobytes())

    def _everywhere(self, at: Matrix) -> Matrix:
        rows = np.zeros((len(at), len(self.model.objectives)))
        rows[:, self.relevant] = at
        return rows

    # --- the guarantee ------------------------------------------------------------------------------------------------

    def _missing(self) -> tuple[Vector, Vector]:
        """Return what the plans at hand miss at most at each corner, as a share of the best and in gains."""
        assert self.corners is not None and self.corners.above is not None
        most = self.corners.above + ALLOWED
        gap = np.maximum(most - self.corners.rays[:, -1], 0.0)
        share: Vector = gap / most
        return share, gap

    def coverage(self) -> Coverage:
        """Return the plans at hand with what is proved about them."""
        if self.corners is None:
            most = max((optimum.most for optimum in self.solved.values()), default=0.0) + ALLOWED
            gap = self.slack + ALLOWED
            guarantee = min(1.0, gap / most)
        else:
            shares, gaps = self._missing()
            guarantee, gap = float(shares.max()), float(gaps.max())
        optima = list(self.solved.values())
        at = self._everywhere(np.array([one.weights for one in optima]))
        proof = Proof(at, np.array([one.value for one in optima]), np.array([one.most for one in optima]))
        plans = Plans(np.array(self.weights), np.array(self.values))
        return Coverage(self.model, plans, proof, guarantee, gap, self.signed)


def _rounded(weights: Matrix) -> Matrix:
    """Return weights as they are solved for: of few enough digits that corners which coincide are the same."""
    result: Matrix = np.abs(np.round(weights, DIGITS))
    return result
