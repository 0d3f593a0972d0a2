"""Model check: compare the linear model with a Chebyshev respondent, who judges an option by its worst objective.

Such respondents often answer as if they weighed their objectives; a linear posterior is then sure and wrong. The check computes
how much better a Chebyshev respondent explains the answers (a Bayes factor, by importance sampling from the prior), and weakens
what is called very likely by what the recommendation would cost them. The questions do not depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tradeoff.evidence import Evidence
from tradeoff.model import Matrix, Vector
from tradeoff.numerics import worths
from tradeoff.strategies.sampler import PEOPLE, DirichletMixture, Samples, reply_likelihood, sample_prior

PRIOR_SHARE = 0.02  # of all respondents are supposed to be Chebyshev respondents
SAMPLES = 20_000  # with fewer the share is off by a factor of 2 now and then


@dataclass(frozen=True, eq=False)
class ChebyshevCheck:
    """How likely the respondent is a Chebyshev respondent, and the relative regrets of such respondents, each as likely."""

    share: float
    regrets: Vector

    def quantile(self, linear: Vector, sure: float) -> float:
        """Return the regret that at least ``sure`` of both kinds of respondent do not exceed.

        >>> ChebyshevCheck(0.5, np.array([0.3, 0.4])).quantile(np.array([0.0, 0.1]), 0.75)
        0.3
        """
        values = np.concatenate([linear, self.regrets])
        sizes = [len(linear), len(self.regrets)]
        weights = np.repeat([(1 - self.share) / sizes[0], self.share / sizes[1]], sizes)
        order = np.argsort(values, kind="stable")
        at = np.searchsorted(np.cumsum(weights[order]), sure - 1e-9)
        return float(values[order[min(int(at), len(order) - 1)]])


def check_chebyshev(evidence: Evidence, gains: Matrix, number: int, seed: int) -> ChebyshevCheck:
    """Return the check after some answers, for the candidate of this number; ``gains`` [K, d] are those of all candidates."""
    rng = np.random.default_rng([seed, 1])
    everybody = sample_prior(SAMPLES, PEOPLE, DirichletMixture.default(gains.shape[1]), rng)
    most = np.maximum(gains.max(axis=0), 1e-12)
    # The likelihood reads "weights" times "differences": here, margins times one.
    margins = _margins(everybody.weights, evidence, most)
    as_margins = replace(evidence, differences=np.eye(len(evidence.outcomes)))
    judging = Samples(margins, everybody.precision, everybody.noise, everybody.lapse, everybody.since)
    with np.errstate(divide="ignore"):
        chebyshev = np.log(reply_likelihood(judging, as_margins)).sum(axis=1)
        linear = np.log(reply_likelihood(everybody, evidence)).sum(axis=1)
    odds = np.log(PRIOR_SHARE / (1 - PRIOR_SHARE)) + np.logaddexp.reduce(chebyshev) - np.logaddexp.reduce(linear)
    likelihood = np.exp(chebyshev - chebyshev.max())
    drawn = rng.choice(SAMPLES, 1_000, p=likelihood / likelihood.sum())
    worth = worst_worths(everybody.weights[drawn], gains / most)
    regrets = 1 - worth[:, number] / np.maximum(worth.max(axis=1), 1e-12)
    return ChebyshevCheck(float(1 / (1 + np.exp(-odds))), regrets)


def worst_worths(weights: Matrix, shares: Matrix) -> Matrix:
    """Return what options [K, d] are worth to Chebyshev respondents [n, K]; ``shares`` are parts of the most attainable.

    >>> worst_worths(np.array([[0.5, 0.5], [0.9, 0.1]]), np.array([[0.8, 0.4], [1.0, 0.0]])).round(3).tolist()
    [[0.4, 0.0], [0.8, 0.889]]
    """
    scaled = weights / weights.max(axis=1, keepdims=True)
    missing = np.zeros((len(weights), len(shares)))
    for weight, share in zip(scaled.T, shares.T, strict=True):  # one objective at a time: no array of all three
        np.maximum(missing, weight[:, None] * (1 - share), out=missing)
    result: Matrix = 1 - missing
    return result


def _margins(weights: Matrix, evidence: Evidence, most: Vector) -> Matrix:
    """Return by how much the first option of each comparison is worth more [n, q]; statements are about weights themselves."""
    columns = [np.zeros((len(weights), 0))]
    for index, answer in enumerate(evidence.answers):
        pairs = answer.compared()
        if answer.statement is not None:
            columns.append(worths(weights, evidence.of([index])[0]))
        elif pairs:
            first = np.array([option.value[evidence.relevant] for option, _, _ in pairs]) / most
            second = np.array([option.value[evidence.relevant] for _, option, _ in pairs]) / most
            columns.append(worst_worths(weights, first) - worst_worths(weights, second))
    return np.concatenate(columns, axis=1)
