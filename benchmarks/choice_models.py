"""Logit models of recorded choices: one for everybody, and hierarchical Bayes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from choice_data import Task
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import invwishart

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

LARGEST_EXPONENT = 500.0
SCALE_STEP = 0.05  # of the logarithm by which an attribute is scaled


class Normal(NamedTuple):
    """The distribution of part-worths among people."""

    mean: Vector
    covariance: Matrix

    def draw(self, n: int, seed: int) -> Matrix:
        """Return n draws of part-worths."""
        standard = np.random.default_rng(seed).standard_normal((n, len(self.mean)))
        return self.mean + standard @ np.linalg.cholesky(self.covariance).T


class Choices(NamedTuple):
    """Every choice of several people: the options that were not chosen, minus the chosen one."""

    differences: NDArray[np.float64]  # [people, tasks, others, k]
    real: NDArray[
        np.bool_
    ]  # [people, tasks, others]: False fills up people with fewer tasks and tasks with fewer options

    @classmethod
    def of(cls, people: Sequence[Sequence[Task]]) -> Choices:
        """Return the choices of these people."""
        shape = (
            len(people),
            max(len(tasks) for tasks in people),
            max(len(task.options) for tasks in people for task in tasks) - 1,
        )
        differences = np.zeros((*shape, people[0][0].options.shape[1]))
        real = np.zeros(shape, dtype=bool)
        for i, tasks in enumerate(people):
            for j, task in enumerate(tasks):
                others = len(task.options) - 1
                differences[i, j, :others] = task.options[1:] - task.options[0]
                real[i, j, :others] = True
        return cls(differences, real)

    def log_likelihood(self, partworths: Matrix) -> Vector:
        """Return the log probability [people] of all choices of each person, who has a row of part-worths."""
        worth = np.einsum("ptok,pk->pto", self.differences, partworths)
        odds = np.where(self.real, np.exp(np.minimum(worth, LARGEST_EXPONENT)), 0.0).sum(axis=2)
        result: Vector = -np.log1p(odds).sum(axis=1)
        return result


def fit_pooled(people: Sequence[Sequence[Task]], direction: Matrix) -> Vector:
    """Return the part-worths, combinations of ``direction`` [q, k], of one logit for everybody."""
    choices = Choices.of(people)

    def loss(values: Vector) -> float:
        everybody = np.broadcast_to(values @ direction, (len(people), direction.shape[1]))
        return -float(choices.log_likelihood(everybody).sum()) + 1e-3 * float(values @ values)

    fitted: Vector = minimize(loss, np.zeros(len(direction)), method="BFGS").x @ direction
    return fitted


def fit_hierarchical(people: Sequence[Sequence[Task]], k: int, sweeps: int = 2500, discarded: int = 500) -> Normal:
    """Return the posterior mean of the mean and of the covariance of part-worths among people.

    Part-worths are moved by Metropolis steps, everybody's at once; mean and covariance are drawn given them, with a flat prior
    and with an inverse Wishart prior of k + 3 degrees of freedom. These moves alone are slow to find how large an attribute's
    part-worths are, so everything about an attribute is also scaled at once.
    """
    choices, n, rng = Choices.of(people), len(people), np.random.default_rng(0)
    mean: Vector = np.zeros(k)
    covariance: Matrix = 4 * np.eye(k)
    values: Matrix = np.zeros((n, k))
    log_likelihood, step = choices.log_likelihood(values), np.full(n, 0.5)
    means: list[Vector] = []
    covariances: list[Matrix] = []
    for sweep in range(sweeps):
        factor, inverse = np.linalg.cholesky(covariance), np.asarray(np.linalg.inv(covariance), dtype=np.float64)
        proposed = values + step[:, None] * (rng.standard_normal((n, k)) @ factor.T)
        likely = choices.log_likelihood(proposed)
        log_ratio = (
            likely - log_likelihood + _log_normal(proposed - mean, inverse) - _log_normal(values - mean, inverse)
        )
        accepted = np.log(rng.random(n)) < log_ratio
        values = np.where(accepted[:, None], proposed, values)
        log_likelihood = np.where(accepted, likely, log_likelihood)
        if sweep < discarded:
            step *= np.exp(0.05 * (accepted - 0.3))
        for j, factor_j in enumerate(np.exp(rng.normal(0, SCALE_STEP, k))):
            scale = np.where(np.arange(k) == j, factor_j, 1.0)
            likely = choices.log_likelihood(values * scale)
            # The Jacobian of mean and covariance is factor ** (k + 2); the determinant of the covariance has its square.
            log_prior = -(k + 2) * np.log(factor_j) - 0.5 * inverse[j, j] * (factor_j**-2 - 1)
            if np.log(rng.random()) < float((likely - log_likelihood).sum()) + log_prior:
                values, mean, log_likelihood = values * scale, mean * scale, likely
                covariance = covariance * np.outer(scale, scale)
                inverse = inverse / np.outer(scale, scale)
        mean = rng.multivariate_normal(values.mean(axis=0), covariance / n)
        scatter = (values - mean).T @ (values - mean)
        covariance = np.atleast_2d(invwishart.rvs(k + 3 + n, np.eye(k) + scatter, random_state=rng))
        if sweep >= discarded:
            means.append(mean)
            covariances.append(covariance)
    return Normal(np.mean(means, axis=0), np.mean(covariances, axis=0))


def _log_normal(offsets: Matrix, inverse: Matrix) -> Vector:
    """Return the log density of a normal distribution, up to a constant."""
    result: Vector = -0.5 * np.einsum("ij,jk,ik->i", offsets, inverse, offsets)
    return result


def choice_probabilities(values: Matrix, task: Task) -> Matrix:
    """Return the logit probability of each option for each row of part-worths."""
    worth = values @ task.options.T
    result: Matrix = np.exp(worth - logsumexp(worth, axis=1, keepdims=True))
    return result
