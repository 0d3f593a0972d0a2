"""Who the person may be, as particles: weights, precision and noise drawn from the posterior given all answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tradeoff.model import Matrix, Vector
from tradeoff.strategies.cache import Candidates
from tradeoff.strategies.sampling import (
    Answering,
    Dirichlets,
    Particles,
    chances,
    consistent,
    copied,
    log_likelihood,
    posterior_particles,
)

# Particles. Chosen by hand: 300 give the same advice as 1,000 on random catalogues, in a third of the time.
PARTICLES = 300


@dataclass(frozen=True, eq=False)
class Belief:
    """Particles for all answers so far, under an assumption of how people answer and a prior of who they are."""

    weights: Matrix  # [PARTICLES, d], each row summing to 1
    precision: Vector  # [PARTICLES]
    noise: Vector  # [PARTICLES]
    lapse: Vector  # [PARTICLES]
    since: NDArray[np.int64]  # [PARTICLES]: the first answer of their present mind
    much: Vector  # [PARTICLES]
    answering: Answering
    mixture: Dirichlets | None  # what weights were supposed before any answer; None for the usual
    random: np.random.Generator  # never advanced: a copy is, so that a belief stays what it is

    @classmethod
    def prior(
        cls, d: int, answering: Answering, seed: int, mixture: Dirichlets | None = None, count: int = PARTICLES
    ) -> Belief:
        """Return the belief before any answer, with ``count`` particles; the first answer leaves as many as usual."""
        return cls.posterior(np.zeros((0, d)), np.zeros(0, dtype=np.int64), answering, seed, mixture, count)

    @classmethod
    def posterior(
        cls,
        differences: Matrix,
        kinds: NDArray[np.int64],
        answering: Answering,
        seed: int,
        mixture: Dirichlets | None = None,
        count: int = PARTICLES,
    ) -> Belief:
        """Return the belief after all of these answers, worked out anew with ``count`` particles."""
        random = np.random.default_rng(seed)
        found = posterior_particles(differences, kinds, count, random, answering=answering, prior=mixture)
        return cls(*found, answering, mixture, random)

    @property
    def particles(self) -> Particles:
        """The particles alone."""
        return Particles(self.weights, self.precision, self.noise, self.lapse, self.since, self.much)

    def given(
        self, differences: Matrix, kinds: NDArray[np.int64], new: int = 1, shares: Vector | None = None,
        replies: NDArray[np.int64] | None = None, strengths: NDArray[np.int64] | None = None,
    ) -> Belief:  # fmt: skip
        """Return the belief after one more answer; all comparisons are given, those ``new`` ones of the answer last.

        ``shares``, ``replies`` and ``strengths`` are as ``posterior_particles`` takes them.
        """
        random = copied(self.random)
        moved = posterior_particles(
            differences, kinds, PARTICLES, random, self.particles, len(kinds) - new, answering=self.answering,
            prior=self.mixture, shares=shares, replies=replies, strengths=strengths,
        )  # fmt: skip
        return Belief(*moved, self.answering, self.mixture, random)

    def some(self, count: int) -> Matrix:
        """Return the weights of about ``count`` particles."""
        return self.weights[:: max(1, len(self.weights) // count)]

    def answers(self, differences: Matrix) -> NDArray[np.float64]:
        """Return how likely each particle gives each answer to each question: [3, M, Q], first, about equal, second.

        Whether a strength will be said is ignored: questions that count on it are no better (benchmarks/people.py),
        and nobody has to say one.
        """
        return chances(self.particles, differences)

    def regrets(self, candidates: Candidates, slack: float = 0.0) -> Matrix:
        """Return the relative regret [M, K] of every candidate to every particle, against the best candidate."""
        worth = self.weights @ candidates.gains.T
        regrets: Matrix = 1 - worth / (worth.max(axis=1, keepdims=True) + slack)
        return regrets

    def content(self, candidates: Candidates, target: float) -> NDArray[np.bool_]:
        """Return which particle would be content with which candidate: within the target, or no loss they notice."""
        worth = self.weights @ candidates.gains.T
        best = worth.max(axis=1, keepdims=True)
        result: NDArray[np.bool_] = (1 - worth / best <= target) | (best - worth <= self.precision[:, None])
        return result

    def unnoticed(self, candidates: Candidates, number: int, slack: float) -> NDArray[np.bool_]:
        """Return which particle would not notice that anything is better than a candidate."""
        worth = self.weights @ candidates.gains.T
        result: NDArray[np.bool_] = worth.max(axis=1) + slack - worth[:, number] <= self.precision
        return result

    def chance_wrong(self, differences: Matrix, kinds: NDArray[np.int64]) -> Vector:
        """Return for each comparison how likely it is not what the person means."""
        result: Vector = 1 - consistent(self.weights, self.precision, differences, kinds).mean(axis=0)
        return result

    def chance(self, differences: Matrix, kinds: NDArray[np.int64], shares: Vector) -> float:
        """Return the logarithm of how likely the belief thinks an answer that makes these comparisons."""
        each = log_likelihood(self.particles, differences, kinds) @ shares
        return float(np.logaddexp.reduce(each) - np.log(len(each)))

    def surprise(self, differences: Matrix, kinds: NDArray[np.int64], shares: Vector | float = 1.0) -> float:
        """Return by how many nats the answers were less likely than answers of such people are on average.

        That is what the belief is checked with: noise that is learned explains any answers, but not how unlikely they were.
        What strengths were said is left out: it is the preferences that may fit no weights.
        """
        answers = self.answers(differences)
        expected = np.sum(answers * np.log(answers), axis=0)
        found = log_likelihood(self.particles, differences, kinds)
        counts = np.arange(len(kinds)) >= self.since[:, None]  # those of the present mind
        return float(np.mean(np.sum((expected - found) * shares * counts, axis=1)))
