"""Few, real questions and an exact certificate at every moment.

Everything a person may be, given their answers, is a cone of (weights, precision). How much a recommendation may lose
against the best is quasi-convex over it, so the worst case is at one of its extreme rays: solving the problem in the
directions of all rays, one batched call, gives the certificate. It holds for every linear preference with weights >= 0
that is consistent with the answers, however the questions were chosen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tradeoff.errors import ArgumentError
from tradeoff.model import Answer, Matrix, Question, Recommendation, Vector
from tradeoff.problem import Problem
from tradeoff.strategies.base import Step, Strategy
from tradeoff.strategies.basis import bases_of
from tradeoff.strategies.choosing import (
    ANSWERS,
    KINDS,
    Pool,
    cover,
    easiest,
    entropy,
    information,
    pool_of,
    predicted,
)
from tradeoff.strategies.oracle import Known, memory_of
from tradeoff.strategies.polytope import Cone, TooManyRays
from tradeoff.strategies.sampling import half_spaces, posterior_particles

PARTICLES = 300
# For answers that are always right: a lapse so rare that no particle survives a contradiction if any other exists.
NO_LAPSE = 1e-6
RAY_LIMIT = 20_000

CHALLENGERS = 5  # worst-case rivals of the recommendation that take part in questions
FAVOURITES = 10  # alternatives that are best for the most particles
FRESH = 24  # particles whose true optimum is looked up each time
LOOK_AHEAD = 10  # questions whose answers are followed through exactly
USEFUL = 0.03  # bits: a question whose answer is surer than this tells nothing


@dataclass(frozen=True, eq=False)
class Certificate:
    """The worst case over everything consistent with the answers."""

    rays: Matrix  # [n, d] weights
    precision: Vector  # [n]
    best: Vector  # [n]: what the best alternative is worth at each ray
    worth: Matrix  # [n, K]: what each known alternative is worth there
    number: int  # the alternative of least worst-case regret
    bound: float  # its worst relative regret
    noticeable: float  # its worst loss in units of the person's precision

    @property
    def regrets(self) -> Vector:
        """The relative regret of the recommendation at each ray."""
        result: Vector = 1 - self.worth[:, self.number] / self.best
        return result


def certified(problem: Problem, *, target: float = 0.01, lotteries: bool = False, seed: int = 0) -> Strategy:
    """Return the strategy for people whose answers are always right; it stops at a certified relative regret.

    ``lotteries`` allows questions about an alternative that is had only with some probability.
    """
    if not 0 < target < 1:
        raise ArgumentError(f"the target is {target!r}; it is a relative regret between 0 and 1, such as 0.01")
    return Certified(problem, target, lotteries, seed).run()


class Certified:
    """One interview: the cone, the belief, and what is known of the problem."""

    lapse = NO_LAPSE

    def __init__(self, problem: Problem, target: float, lotteries: bool, seed: int) -> None:
        self.problem, self.target, self.lotteries = problem, target, lotteries
        self.memory = memory_of(problem)
        bases = bases_of(problem)
        self.relevant: NDArray[np.int64] = np.array(bases.relevant, dtype=np.int64)
        self.k, self.d = len(problem.objectives), len(bases.relevant)
        self.random = np.random.default_rng(seed)
        self.known = Known(self.k)
        self.known.add(list(bases.spanner().alternatives))
        self.cone = Cone.orthant(self.d, 1.0, limit=RAY_LIMIT)
        self.asked: list[tuple[Question, Answer]] = []
        self.unanswered: set[bytes] = set()  # skipped: not to be asked again
        self.particles = posterior_particles(
            np.zeros((0, self.d)), np.zeros(0, dtype=int), PARTICLES, self.random, lapse=self.lapse
        )
        self.certificate = self.certify()

    # --- asking -------------------------------------------------------------------------------------------------------

    def run(self) -> Strategy:
        """Ask until the target is certified, or nothing more can be learned."""
        while True:
            reason = self.reached()
            if reason is not None:
                return self.recommend(reason)
            question = self.choose()
            if question is None:
                return self.recommend("no question is left whose answer could tell more")
            reply = yield Step(question, lambda: self.recommend("stopped early", complete=False))
            if reply is None:
                self.unanswered.add(question.key)
            else:
                self.learn(question, reply)

    def reached(self) -> str | None:
        """Return why to stop, if there is a reason to."""
        if self.cone.empty:
            return "the answers contradict each other; take one of them back to go on"
        if self.certificate.bound <= self.target:
            return f"certified: at most {100 * self.target:g}% of the best possible gain can be lost"
        if self.certificate.noticeable <= 1:
            return "nothing could be better by as much as you would notice"
        return None

    def learn(self, question: Question, answer: Answer) -> None:
        """Take an answer in: cut the cone, renew the belief, renew the certificate."""
        self.asked.append((question, answer))
        difference = question.difference[self.relevant]
        smaller = self.cone.add(half_spaces(difference, KINDS[answer]), len(self.asked))
        if _listed(smaller):  # otherwise there are too many rays: the larger cone is still a valid certificate
            self.cone = smaller
        if self.cone.empty:
            return
        differences = np.array([q.difference[self.relevant] for q, _ in self.asked])
        kinds = np.array([KINDS[a] for _, a in self.asked])
        self.particles = posterior_particles(
            differences, kinds, PARTICLES, self.random, self.particles, len(kinds) - 1, lapse=self.lapse
        )
        self.certificate = self.certify()

    # --- knowing ------------------------------------------------------------------------------------------------------

    def directions(self, weights: Matrix) -> Matrix:
        """Return weights on the relevant objectives as weights on all of them."""
        rows = np.zeros((len(weights), self.k))
        rows[:, self.relevant] = weights
        return rows

    def certify(self) -> Certificate:
        """Return the exact worst case, by one batched call in the directions of the rays."""
        rays = self.cone.rays
        weights, precision = rays[:, :-1], rays[:, -1]
        found = self.memory.best(self.directions(weights))
        self.known.add(found)
        # Some particles' optima too: rays alone may miss what is best in the middle.
        picked = self.particles[0][:: max(1, PARTICLES // FRESH)]
        self.known.add(self.memory.best(self.directions(picked)))
        best = np.einsum("nk,nk->n", weights, np.array([a.value for a in found])[:, self.relevant])
        worth = weights @ self.known.values[:, self.relevant].T
        best = np.maximum(best, worth.max(axis=1))  # the oracle's own optimum, to the last digit
        bounds = (1 - worth / best[:, None]).max(axis=0)
        number = int(bounds.argmin())
        loss = best - worth[:, number]
        with np.errstate(divide="ignore", invalid="ignore"):
            noticeable = np.where(loss > 1e-12, loss / precision, 0.0).max()
        return Certificate(weights, precision, best, worth, number, float(bounds[number]), float(noticeable))

    def recommend(self, reason: str, complete: bool = True) -> Recommendation:
        """Return the alternative of least worst-case regret, and what is known of it."""
        certificate = self.certificate
        empty = self.cone.empty
        return Recommendation(
            self.known.alternatives[certificate.number],
            self.directions(self.particles[0].mean(axis=0)[None, :])[0],
            len(self.asked),
            reason,
            complete=complete and not empty,
            regret_bound=None if empty else certificate.bound,
        )

    # --- choosing -----------------------------------------------------------------------------------------------------

    def contenders(self, regrets: Matrix) -> list[int]:
        """Return the alternatives that questions are made of: the recommendation, its rivals, the favourites."""
        certificate = self.certificate
        order = np.argsort(-certificate.regrets, kind="stable")
        rivals = list(dict.fromkeys(certificate.worth[order[:400]].argmax(axis=1).tolist()))[:CHALLENGERS]
        counts = np.bincount(regrets.argmin(axis=1), minlength=len(self.known.alternatives))
        favourites = [i for i in np.argsort(-counts, kind="stable")[:FAVOURITES].tolist() if counts[i]]
        return list(dict.fromkeys([certificate.number, *rivals, *favourites]))

    def choose(self) -> Question | None:
        """Return the question to ask next, or None if no answer could tell anything."""
        worth = self.particles[0] @ self.known.values[:, self.relevant].T
        regrets = 1 - worth / worth.max(axis=1, keepdims=True)
        numbers = self.contenders(regrets)
        alternatives = [self.known.alternatives[i] for i in numbers]
        pool = pool_of(alternatives, self.relevant, self.particles, self.lotteries)
        open_ = np.array([q.key not in self.unanswered for q in pool.questions], dtype=bool)
        if not open_.any():
            return None
        answers = predicted(self.particles, pool.differences)
        shares = answers.mean(axis=1)
        surprise = entropy(shares)
        sure = np.quantile(regrets[:, self.certificate.number], 0.95) <= self.target / 2
        useful = open_ & (surprise >= USEFUL)
        if not sure and useful.any():
            labels = cover(regrets <= self.target / 2 + 1e-12)
            scores = information(answers.astype(float), labels) + 0.3 * surprise
            return pool.questions[easiest(scores, pool, self.particles, allowed=useful)]
        return self.prove(pool, open_, shares, surprise)

    def prove(
        self, pool: Pool, open_: NDArray[np.bool_], shares: NDArray[np.float64], surprise: Vector
    ) -> Question | None:
        """Return the question that does most for the certificate: which rays each answer would cut off, looked up exactly."""
        certificate = self.certificate
        excess = np.maximum(certificate.regrets - 0.8 * self.target, 0.0)
        gains = certificate.rays @ pool.differences.T
        least = certificate.precision[:, None]
        stays = (gains >= least - 1e-9, np.abs(gains) <= least + 1e-9, gains <= -least + 1e-9)
        kept = sum(share * (excess @ stay) for share, stay in zip(shares, stays, strict=True)) / max(
            excess.sum(), 1e-12
        )
        removed = 1 - np.asarray(kept)
        useful = open_ & ((surprise >= USEFUL) | (removed > 0.02))
        if not useful.any():
            return None
        order = np.argsort(-np.where(useful, removed + 0.1 * surprise, -np.inf), kind="stable")[:LOOK_AHEAD]
        order = order[useful[order]]
        before = self.left_to_refute(certificate.rays)
        scores = np.full(len(pool), -np.inf)
        for i in order:
            after = 0.0
            for answer, share in zip(ANSWERS, shares[:, i], strict=True):
                if share < 0.15:  # too unlikely to matter for the choice
                    after += share * before
                    continue
                smaller = self.cone.add(half_spaces(pool.differences[i], KINDS[answer]), -1)
                if _listed(smaller) and not smaller.empty:
                    after += share * self.left_to_refute(smaller.rays[:, :-1])
            scores[i] = 1 - after / max(before, 1e-12) + 0.05 * surprise[i]
        return pool.questions[easiest(scores, pool, self.particles, allowed=scores > -np.inf)]

    def left_to_refute(self, rays: Matrix) -> float:
        """Return how much is left to be proved: by how much each known alternative may still beat the recommendation."""
        worth = rays @ self.known.values[:, self.relevant].T
        mine = worth[:, [self.certificate.number]]
        worst = (1 - mine / np.maximum(worth, 1e-12)).max(axis=0)
        return float(np.maximum(worst - 0.8 * self.target, 0.0).sum())


def _listed(cone: Cone) -> bool:
    """Return whether the rays of a cone are few enough to be listed."""
    try:
        return cone.rays is not None
    except TooManyRays:
        return False
