"""The posterior of a respondent, as samples of weights, precision and noise given all answers."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from math import log

import numpy as np
from numpy.typing import NDArray

from tradeoff.evidence import Answer, Evidence
from tradeoff.model import Indices, Matrix, Vector
from tradeoff.numerics import worths
from tradeoff.strategies.sampler import (
    STEPS,
    DirichletMixture,
    ResponseModel,
    Samples,
    consistent,
    pair_chances,
    reply_likelihood,
    sample_prior,
    update_samples,
)

SAMPLES = 300  # give the same advice as 1,000 on random tables, in a third of the time


@dataclass(frozen=True, eq=False)
class Posterior:
    """Samples of a respondent for all answers so far, under a response model and a prior."""

    samples: Samples
    model: ResponseModel
    prior: DirichletMixture
    random: np.random.Generator  # never advanced: a copy is, so that a posterior stays what it is
    steps: float = STEPS

    @classmethod
    def before_answers(
        cls,
        d: int,
        model: ResponseModel,
        seed: int,
        prior: DirichletMixture | None = None,
        count: int = SAMPLES,
        steps: float = STEPS,
    ) -> Posterior:
        """Return the prior as ``count`` samples; the first answer leaves as many as usual."""
        random = np.random.default_rng(seed)
        prior = prior or DirichletMixture.default(d)
        return cls(sample_prior(count, model, prior, random), model, prior, random, steps)

    def update(self, evidence: Evidence) -> Posterior:
        """Return the posterior after the newest answer of the evidence; the others are known already."""
        random = deepcopy(self.random)
        seen = len(evidence.answers) - 1
        samples = update_samples(self.samples, evidence, seen, SAMPLES, self.model, self.prior, random, self.steps)
        return replace(self, samples=samples, random=random)

    @property
    def weights(self) -> Matrix:
        """The weights of each sample, [M, d], each row summing to 1."""
        return self.samples.weights

    @property
    def precision(self) -> Vector:
        """The precision of each sample, [M]."""
        return self.samples.precision

    @property
    def nbytes(self) -> int:
        """About how many bytes it takes."""
        return sum(int(part.nbytes) for part in self.samples)

    def pair_chances(self, differences: Matrix) -> NDArray[np.float64]:
        """Return how likely each sample gives each reply to each pair: [3, M, Q], first, about equal, second."""
        return pair_chances(self.samples, differences)

    def regrets(self, gains: Matrix, slack: float = 0.0) -> Matrix:
        """Return the relative regret [M, K] of every option to every sample, against the best of them."""
        worth = worths(self.weights, gains)
        regrets: Matrix = 1 - worth / (worth.max(axis=1, keepdims=True) + slack)
        return regrets

    def satisfied(self, gains: Matrix, target: float) -> NDArray[np.bool_]:
        """Return which sample is satisfied with which option: within the target, or with no loss that it notices."""
        worth = worths(self.weights, gains)
        best = worth.max(axis=1, keepdims=True)
        result: NDArray[np.bool_] = (1 - worth / best <= target) | (best - worth <= self.precision[:, None])
        return result

    def unnoticed(self, gains: Matrix, number: int, slack: float) -> NDArray[np.bool_]:
        """Return which sample does not notice that anything is better than an option."""
        worth = worths(self.weights, gains)
        result: NDArray[np.bool_] = worth.max(axis=1) + slack - worth[:, number] <= self.precision
        return result

    def consistent(self, differences: Matrix, outcomes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which sample means which comparison, [M, q]."""
        return consistent(self.samples, differences, outcomes)

    def wrong_comparisons(self, evidence: Evidence) -> Vector:
        """Return for each comparison the probability that the respondent does not mean it."""
        result: Vector = 1 - self.consistent(evidence.differences, evidence.outcomes).mean(axis=0)
        return result

    def wrong_answers(self, evidence: Evidence) -> Vector:
        """Return for each answer the probability that it is wrong: the largest of its comparisons."""
        wrong = np.zeros(len(evidence.answers))
        np.maximum.at(wrong, evidence.owners, self.wrong_comparisons(evidence))
        return wrong

    def log_odds_of_chance(self, answer: Answer, relevant: Indices) -> float:
        """Return how much likelier a reply is from somebody who replies at random than from this posterior, in nats."""
        question = answer.asked
        if question is None or answer.reply not in question.replies:
            return 0.0
        likely = np.array([self._likelihood(Answer(question, reply), relevant) for reply in question.replies])
        mine = float(np.mean(likely[question.replies.index(answer.reply)] / likely.sum(axis=0)))
        return -log(mine * len(likely))

    def _likelihood(self, answer: Answer, relevant: Indices) -> Vector:
        """Return how likely each sample gives an answer."""
        return reply_likelihood(self.samples, Evidence.none(relevant).update(answer))[:, 0]
