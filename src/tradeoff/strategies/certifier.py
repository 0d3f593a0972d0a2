"""The certificate: how much a recommendation can lose at most, for everybody who fits the answers.

Everything a person may be, given their answers, is a cone of (weights, precision). The relative regret of an alternative
is quasi-convex over it, so its worst case is at an extreme ray: solving the problem in the directions of all rays, in one
batched call, gives the certificate. It holds for every linear preference with weights >= 0 that fits the answers, however
the questions were chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tradeoff.errors import ArgumentError
from tradeoff.kernels.ratios import least_shares
from tradeoff.model import Alternative, Indices, Matrix, Vector
from tradeoff.problem import Problem, slack_of
from tradeoff.strategies.basis import bases_of
from tradeoff.strategies.belief import Belief
from tradeoff.strategies.cache import Candidates, SolutionCache, cache_of

# Cells across the belief, to which looked-up directions are rounded: finer than the belief is wide, coarse enough that
# people who are alike share them. Chosen by hand on random catalogues.
GRID = 16


@dataclass(frozen=True, eq=False)
class Certificate:
    """The worst case over everything that fits the answers."""

    rays: Matrix  # [n, d] weights, each row summing to 1
    precision: Vector  # [n]
    best: Vector  # [n]: what the best alternative found is worth at each ray
    worth: Matrix  # [n, K]: what each candidate is worth there
    number: int  # the candidate that is recommended
    slack: float  # what the best alternative may be worth more than ``best``
    bound: float  # the largest relative regret of the recommendation
    noticeable: float  # its largest loss in units of the person's precision

    @property
    def regrets(self) -> Vector:
        """The relative regret of the recommendation at each ray, against the best alternative found."""
        result: Vector = 1 - self.worth[:, self.number] / self.best
        return result

    @property
    def resolvable(self) -> float:
        """The part of the bound that answers can bring down: without what the problem itself leaves open."""
        return float(self.regrets.max())


@dataclass(frozen=True, eq=False)
class Certifier:
    """Finds optima and certifies recommendations of one problem, whose optima are exact up to ``slack``."""

    cache: SolutionCache
    objectives: int
    relevant: Indices
    slack: float

    @classmethod
    def of(cls, problem: Problem) -> Certifier:
        """Return the certifier of a problem."""
        relevant = np.array(bases_of(problem).relevant, dtype=np.int64)
        slack = slack_of(problem)
        if not 0 <= slack < np.inf:
            raise ArgumentError(f"the slack of the problem is {slack!r}; it must be a finite number, 0 or more")
        return cls(cache_of(problem), len(problem.objectives), relevant, float(slack))

    @property
    def d(self) -> int:
        """The number of objectives that can be changed."""
        return len(self.relevant)

    def directions(self, weights: Matrix) -> Matrix:
        """Return weights on the relevant objectives as weights on all of them."""
        rows = np.zeros((len(weights), self.objectives))
        rows[:, self.relevant] = weights
        return rows

    def look_up(self, candidates: Candidates, belief: Belief, count: int) -> Candidates:
        """Return the candidates with the optima of about ``count`` particles, or of weights very near theirs."""
        width = float(np.ptp(belief.weights, axis=0).max())
        cells = max(4 * self.d, 2 ** int(np.ceil(np.log2(GRID / max(width, 1e-6)))))
        rows = np.unique(np.round(belief.some(count) * cells), axis=0) / cells
        return candidates.with_found(self.cache.best(self.directions(rows)))

    def certify(
        self, rays: Matrix, candidates: Candidates, pick: Callable[[Candidates], int] | None = None
    ) -> tuple[Certificate, Candidates]:
        """Return the worst case over the rays of a cone, and the candidates with the optima that were found there.

        ``pick`` chooses the candidate to recommend; without it, that is the one of least worst-case regret.
        """
        weights, precision = rays[:, :-1], rays[:, -1]
        found = self.cache.best(self.directions(weights))
        candidates = candidates.with_found(found)
        worth = weights @ candidates.gains.T
        best = self._largest(weights, found, worth)
        most = best + self.slack  # of everything attainable; the weights of a ray sum to 1
        number = int((1 - least_shares(worth, most)).argmin()) if pick is None else pick(candidates)
        loss = most - worth[:, number]
        with np.errstate(divide="ignore", invalid="ignore"):
            noticeable = np.where(loss > 1e-12, loss / precision, 0.0).max()
        bound = float((1 - worth[:, number] / most).max())
        return Certificate(weights, precision, best, worth, number, self.slack, bound, float(noticeable)), candidates

    def worst_regret(self, rays: Matrix, candidates: Candidates, number: int) -> float:
        """Return the largest relative regret of a candidate over some rays; 0 if there are none."""
        if not len(rays):
            return 0.0
        weights = rays[:, :-1]
        found = self.cache.best(self.directions(weights))
        worth = weights @ candidates.gains.T
        most = self._largest(weights, found, worth) + self.slack
        return float((1 - worth[:, number] / most).max())

    def _largest(self, weights: Matrix, found: list[Alternative], worth: Matrix) -> Vector:
        """Return what the best alternative found is worth to each row of weights, to the last digit."""
        values = np.array([alternative.value for alternative in found])[:, self.relevant]
        result: Vector = np.maximum(np.einsum("nk,nk->n", weights, values), worth.max(axis=1))
        return result
