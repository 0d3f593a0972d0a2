"""Samples from the posterior of a respondent whose replies are noisy, and sometimes wrong.

The model of a reply: a respondent feels the difference m in worth between two options with logistic noise of scale s, and
notices it beyond the precision e. So the first option is preferred with probability F((m - e) / s), the second with
F((-m - e) / s), and otherwise they are about equal. Somebody who has to place one option above another and notices no
difference does so at random. With a small probability, the lapse, a reply is one that the respondent does not mean. Before
each answer the respondent may change their mind; what was said before that tells nothing.

A reply to three or more options makes several comparisons, which are not independent: their joint likelihood counts for a
share (``Evidence.shares``), and a lapse or a change of mind is one of the whole reply.

Sampling is resample-move: samples are drawn again in proportion to the likelihood of the newest answer, and then take
Metropolis steps along differences of other samples (differential evolution), all samples at once. Weights are moved as
logarithms. The randomness is passed in: the same generator gives the same samples.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from math import inf, lgamma, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.special import expit

from tradeoff.errors import ArgumentError
from tradeoff.evidence import EXCEEDS, NOT_WORSE, SAME, Answer, Evidence
from tradeoff.model import Indices, Matrix, Vector
from tradeoff.numerics import worths
from tradeoff.strategies.tuning import Tuning

SPARSE = 0.3  # the Dirichlet parameter of the half of the default prior that expects few objectives to matter
SMALLEST = 1e-9  # no weight is drawn smaller than this,
SMALLEST_LOG = -40.0  # and none moves below this logarithm
SHARPNESS = 1e6  # a statement about weights holds, noticeably or not: any difference is multiplied by this
STATED_SLACK = 0.005  # of all importance: samples have no weight of exactly 0% or 100%, which respondents may state
RARE = 0.02  # of the samples: fewer are hardly any
WRONG_REPLIES = 10.0  # about as many replies as a menu has


class DirichletMixture(NamedTuple):
    """A mixture of Dirichlet distributions of weights: the share of each part, and its parameters, one per weight."""

    shares: tuple[float, ...]
    parameters: tuple[tuple[float, ...], ...]

    @classmethod
    def default(cls, d: int) -> DirichletMixture:
        """Return what is supposed of anybody: Dirichlet(1) or Dirichlet(0.3), evenly."""
        return cls((0.5, 0.5), ((1.0,) * d, (SPARSE,) * d))

    def draw(self, n: int, rng: np.random.Generator) -> Matrix:
        """Return n draws of weights."""
        parts = rng.choice(len(self.shares), n, p=np.array(self.shares) / sum(self.shares))
        gammas = rng.standard_gamma(np.array(self.parameters)[parts])
        weights: Matrix = np.maximum(gammas / np.maximum(gammas.sum(axis=1, keepdims=True), 1e-300), SMALLEST)
        weights /= weights.sum(axis=1, keepdims=True)
        return weights

    def log_coefficients(self) -> Vector:
        """Return the logarithm of each part's share and of its normalising constant."""
        parameters = np.array(self.parameters)
        constants = [lgamma(row.sum()) - sum(map(lgamma, row)) for row in parameters]
        result: Vector = np.log(self.shares) + constants
        return result


@dataclass(frozen=True)
class ResponseModel:
    """How respondents are supposed to reply: each trait is uniform on a logarithmic scale between two numbers, or known.

    ``precision`` is the difference in worth that goes unnoticed, ``noise`` the scale of the logistic noise, both relative to
    weights that sum to 1; None means no noise at all. ``lapse`` is how often a reply is not meant, and ``change`` the
    probability that the mind is changed before an answer.
    """

    precision: tuple[float, float] = (1e-4, 1.0)
    noise: tuple[float, float] | None = None
    lapse: tuple[float, float] = (0.05, 0.05)
    change: float = 0.0

    def __post_init__(self) -> None:
        for name in ("precision", "noise", "lapse"):
            low, high = getattr(self, name) or (1.0, 1.0)
            if not 0 < low <= high < inf or (name == "lapse" and high >= 2 / 3):
                raise ArgumentError(
                    f"the range of the {name} is {low} to {high}; it must be above 0"
                    + (" and below 2/3" if name == "lapse" else "")
                )
        if not 0 <= self.change < 1:
            raise ArgumentError(f"the chance of a changed mind is {self.change!r}; it must be 0 or more, and below 1")

    @property
    def log_ranges(self) -> tuple[Vector, Vector]:
        """The lowest and highest logarithm of precision, noise and lapse."""
        low, high = np.log(np.array([self.precision, self.noise or (1.0, 1.0), self.lapse])).T.copy()
        return low, high


SLIPS = ResponseModel()  # respondents who mean what they say, but for slips
# What is supposed of real people. Chosen on the respondents of benchmarks/people.py, so that those who answer exactly are asked
# at most two questions more than if that were known, and what is said of the others is true.
PEOPLE = ResponseModel(noise=(1e-4, 0.3), lapse=(0.01, 0.25), change=0.01)


class Samples(NamedTuple):
    """Posterior samples of a respondent."""

    weights: Matrix  # [n, d], each row summing to 1
    precision: Vector  # [n]
    noise: Vector  # [n]; 0 without noise
    lapse: Vector  # [n]
    since: NDArray[np.int64]  # [n]: the first answer of their present mind

    def __len__(self) -> int:
        return len(self.weights)


def consistent(samples: Samples, differences: Matrix, outcomes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return ``[n, q]``: whether comparison j is what sample i means, without noise or lapse.

    >>> some = Samples(np.array([[1.0, 0.0], [0.5, 0.5]]), np.full(2, 0.1), np.zeros(2), np.zeros(2), np.zeros(2, int))
    >>> consistent(some, np.array([[1.0, -1.0]]), np.array([1])).tolist()
    [[True], [False]]
    """
    gain, least = worths(samples.weights, differences), samples.precision[:, None]
    fits = np.where(outcomes == SAME, np.abs(gain) <= least, gain >= least)
    fits = np.where(outcomes == NOT_WORSE, gain >= -least, fits)
    return np.where(outcomes == EXCEEDS, gain >= -STATED_SLACK, fits)


def pair_chances(samples: Samples, differences: Matrix) -> NDArray[np.float64]:
    """Return ``[3, n, q]``: how likely each sample replies "the first", "about equal", "the second" to each pair."""
    gain, least = worths(samples.weights, differences), samples.precision[:, None]
    first, second = _logistic(gain - least, samples.noise), _logistic(-gain - least, samples.noise)
    lapse = samples.lapse[:, None]
    meant = np.stack([first, np.maximum(1 - first - second, 0.0), second])
    result: NDArray[np.float64] = (1 - 1.5 * lapse) * meant + lapse / 2
    return result


def _logistic(gap: Matrix, noise: Vector) -> Matrix:
    """Return F(gap / noise), the probability that a difference is felt to be above 0."""
    if not noise.any():
        return (gap >= 0).astype(np.float64)
    result: Matrix = expit(gap / noise[:, None])
    return result


def comparison_likelihood(samples: Samples, differences: Matrix, outcomes: NDArray[np.int64]) -> Matrix:
    """Return ``[n, q]``: how likely it is that sample i means comparison j, without lapses."""
    gain, least = worths(samples.weights, differences), samples.precision[:, None]
    if EXCEEDS in outcomes:
        gain = np.where(outcomes == EXCEEDS, SHARPNESS * (gain + STATED_SLACK), gain)
    better = _logistic(gain - least, samples.noise)
    same, placed = outcomes == SAME, outcomes == NOT_WORSE
    if not (same | placed).any():
        return better
    not_worse = _logistic(gain + least, samples.noise)
    return np.where(same, not_worse - better, np.where(placed, (better + not_worse) / 2, better))


def reply_likelihood(samples: Samples, evidence: Evidence, first: int = 0) -> Matrix:
    """Return ``[n, r]``: how likely each sample gives each reply, from answer number ``first`` on.

    Answers that compare nothing are left out.
    """
    since = int(np.searchsorted(evidence.owners, first))
    meant = comparison_likelihood(samples, evidence.differences[since:], evidence.outcomes[since:])
    starts = evidence.starts[evidence.starts >= since] - since
    single = np.diff(starts, append=meant.shape[1]) == 1
    if not single.all():
        with np.errstate(divide="ignore"):
            logs = np.log(meant) * evidence.shares[since:]
        meant = np.exp(np.add.reduceat(logs, starts, axis=1))
    lapse = samples.lapse[:, None]
    result: Matrix = (1 - np.where(single, 1.5, 1.0) * lapse) * meant + lapse * np.where(single, 0.5, 1 / WRONG_REPLIES)
    return result


def sample_prior(n: int, model: ResponseModel, prior: DirichletMixture, rng: np.random.Generator) -> Samples:
    """Return n samples before any answer."""
    weights = prior.draw(n, rng)
    precision, noise, lapse = np.exp(rng.uniform(*model.log_ranges, (n, 3))).T
    return Samples(weights, precision, noise if model.noise else np.zeros(n), lapse, np.zeros(n, dtype=np.int64))


def update_samples(
    samples: Samples,
    evidence: Evidence,
    seen: int,
    n: int,
    model: ResponseModel,
    prior: DirichletMixture,
    rng: np.random.Generator,
    steps: float,
) -> Samples:
    """Return n posterior samples, given samples for the first ``seen`` answers of the evidence.

    ``steps`` is the number of Metropolis steps per coordinate: fewer are faster, and leave samples less independent.
    """
    coordinates = samples.weights.shape[1] + 3
    for count in range(seen + 1, len(evidence.answers) + 1):
        if not np.any(evidence.owners == count - 1):
            continue
        so_far = evidence.first(count)
        samples = _pulled(samples, so_far)
        newest = reply_likelihood(samples, so_far, count - 1)[:, 0]
        # Systematic resampling has the least noise.
        total = np.cumsum(newest)
        ticks = (np.arange(n) + rng.random()) * (total[-1] / n)
        drawn = np.minimum(np.searchsorted(total, ticks, side="right"), len(total) - 1)
        resampled = Samples(*(part[drawn] for part in samples))
        share = 1.0 if count == len(evidence.answers) else 0.5
        samples = _move(resampled, so_far, round(share * steps * coordinates), model, prior, rng)
    return samples


def _pulled(samples: Samples, evidence: Evidence) -> Samples:
    """Return the samples moved to where the statements about weights hold, if hardly any is there.

    The likelihood of a statement is flat where it does not hold, so that no Metropolis step would lead there.
    """
    stated = evidence.differences[evidence.outcomes == EXCEEDS]
    if not len(stated) or consistent(samples, stated, np.full(len(stated), EXCEEDS)).all(axis=1).mean() >= RARE:
        return samples
    d = stated.shape[1]
    # The weights at which the statement that holds by least holds by most.
    found = linprog(
        np.r_[np.zeros(d), -1.0], A_ub=np.hstack([-stated, np.ones((len(stated), 1))]), b_ub=np.full(len(stated), 0.0),
        A_eq=np.r_[np.ones(d), 0.0][None], b_eq=[1.0], bounds=[(SMALLEST, 1)] * d + [(None, 1)],
    )  # fmt: skip
    if found.x is None or found.status != 0 or found.x[-1] < -STATED_SLACK:  # they contradict each other
        return samples
    inside = found.x[:-1]
    short, margin = worths(samples.weights, stated), worths(inside[None, :], stated)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(short < 0, short / (short - margin), 0.0).max(axis=1)[:, None]
    weights = samples.weights + np.clip(share, 0.0, 1.0) * (inside - samples.weights)
    return Samples(weights, samples.precision, samples.noise, samples.lapse, samples.since)


class _Chain:
    """A Metropolis chain for every sample at once: a point is the logarithms of its weights and of its traits.

    Weights may be scaled: only their proportions count.
    """

    def __init__(self, samples: Samples, evidence: Evidence, model: ResponseModel, prior: DirichletMixture) -> None:
        self.evidence, self.model = evidence, model
        self.low, self.high = model.log_ranges
        self.coefficients, self.powers = prior.log_coefficients(), np.array(prior.parameters).T
        self.d = samples.weights.shape[1]
        noise = samples.noise if model.noise else np.ones(len(samples))
        traits = np.log(np.stack([samples.precision, noise, samples.lapse], axis=1))
        self.points = np.hstack([np.log(np.maximum(samples.weights, 1e-300)), np.clip(traits, self.low, self.high)])
        self.owners = evidence.owners[evidence.starts]  # the answers that compare anything
        self.since = np.searchsorted(self.owners, samples.since)  # the first of these of the present mind
        sizes = np.diff(evidence.starts, append=len(evidence.owners))
        self.log_guess = np.log(np.where(sizes == 1, 1 / 3, 1 / WRONG_REPLIES))
        self.log_prior, self.each = self._density(self.points)
        self.log_likelihood = self._of_present_mind(self.each)

    def samples(self) -> Samples:
        """Return the points as samples."""
        weights, _ = _normalised(self.points[:, : self.d])
        first = self.owners[np.minimum(self.since, len(self.owners) - 1)]
        return self._samples(weights, self.points, np.where(self.since > 0, first, 0))

    def _samples(self, weights: Matrix, points: Matrix, since: NDArray[np.int64]) -> Samples:
        precision, noise, lapse = np.exp(points[:, self.d :]).T
        return Samples(weights, precision, noise if self.model.noise else np.zeros(len(noise)), lapse, since)

    def _density(self, points: Matrix) -> tuple[Vector, Matrix]:
        """Return the log prior of points, and the log likelihood of each reply [n, r]."""
        traits = points[:, self.d :]
        weights, logs = _normalised(points[:, : self.d])
        inside = ((traits >= self.low) & (traits <= self.high)).all(axis=1) & (logs.min(axis=1) > SMALLEST_LOG)
        # The density of logarithms: its powers are the parameters, because the Jacobian is the product of the weights.
        parts = self.coefficients + logs @ self.powers
        highest = parts.max(axis=1)
        log_prior = highest + np.log(np.exp(parts - highest[:, None]).sum(axis=1))
        likelihood = reply_likelihood(self._samples(weights, points, self.since), self.evidence)
        return np.where(inside, log_prior, -inf), np.log(likelihood)

    def _of_present_mind(self, each: Matrix) -> Vector:
        """Return the log likelihood of all replies; those of an earlier mind are guesses."""
        if not self.since.any():
            everything: Vector = each.sum(axis=1)
            return everything
        present = np.arange(each.shape[1]) >= self.since[:, None]
        result: Vector = np.where(present, each, self.log_guess).sum(axis=1)
        return result

    def step(self, moves: Matrix, rng: np.random.Generator) -> None:
        """Take a Metropolis step: move each point, or leave it where it is."""
        proposed = self.points + moves
        traits = proposed[:, self.d :]
        np.abs(traits - self.low, out=traits)  # reflected at both ends
        traits += self.low
        np.abs(self.high - traits, out=traits)
        np.subtract(self.high, traits, out=traits)
        log_prior, each = self._density(proposed)
        log_likelihood = self._of_present_mind(each)
        gained = log_prior + log_likelihood - self.log_prior - self.log_likelihood
        taken = np.log(rng.random(len(gained))) < gained
        self.points[taken], self.each[taken] = proposed[taken], each[taken]
        self.log_prior[taken], self.log_likelihood[taken] = log_prior[taken], log_likelihood[taken]

    def draw_changes(self, rng: np.random.Generator) -> None:
        """Draw when each respondent last changed their mind, given all else (Gibbs)."""
        if self.each.shape[1] < 2 or not self.model.change:
            return
        before = np.cumsum(self.log_guess - self.each, axis=1)[:, :-1] + log(self.model.change)
        odds = np.hstack([np.zeros((len(before), 1)), before])
        chances = np.cumsum(np.exp(odds - odds.max(axis=1, keepdims=True)), axis=1)
        self.since = (chances < (rng.random(len(chances)) * chances[:, -1])[:, None]).sum(axis=1)
        self.log_likelihood = self._of_present_mind(self.each)


def _normalised(logs: Matrix) -> tuple[Matrix, Matrix]:
    """Return weights that sum to 1 from the logarithms of their proportions, and their logarithms."""
    logs = logs - logs.max(axis=1, keepdims=True)
    weights = np.exp(logs)
    total = weights.sum(axis=1, keepdims=True)
    return weights / total, logs - np.log(total)


def _move(
    samples: Samples, evidence: Evidence, steps: int, model: ResponseModel, prior: DirichletMixture,
    rng: np.random.Generator,
) -> Samples:  # fmt: skip
    """Return samples after Metropolis steps that leave the posterior as it is.

    Directions are differences of two of the samples as they were before the first step: along all coordinates, along some of
    them, or along one.
    """
    chain = _Chain(samples, evidence, model, prior)
    reference = chain.points.copy()
    reference[:, : chain.d] -= reference[:, : chain.d].mean(axis=1, keepdims=True)
    n, size = reference.shape
    scale = 2.38 / np.sqrt(2 * size)
    for step in range(steps):
        one, two = rng.integers(n, size=(2, n))
        moves = reference[one] - reference[two]
        match step % 3:
            case 0:
                moves *= scale * rng.uniform(0.3, 1.2, (n, 1))
            case 1:
                alone = np.zeros((n, size))
                alone[np.arange(n), rng.integers(size, size=n)] = 1.7
                moves *= alone * rng.uniform(0.3, 1.2, (n, 1))
            case _:
                moves *= 1.4 * scale * (rng.random((n, size)) < 0.4) * rng.uniform(0.3, 1.2, (n, 1))
        chain.step(moves, rng)
        if step % 6 == 5:
            chain.draw_changes(rng)
    return chain.samples()


@dataclass(frozen=True, eq=False)
class Posterior:
    """Samples of a respondent for all answers so far, under a response model and a prior."""

    samples: Samples
    model: ResponseModel
    prior: DirichletMixture
    random: np.random.Generator  # never advanced: a copy is, so that a posterior stays what it is
    count: int  # of samples after an answer
    steps: float  # of the sampler per coordinate

    @classmethod
    def before_answers(
        cls, prior: DirichletMixture, model: ResponseModel, tuning: Tuning, seed: int, count: int
    ) -> Posterior:
        """Return the prior as ``count`` samples; the first answer leaves as many as usual."""
        random = np.random.default_rng(seed)
        return cls(sample_prior(count, model, prior, random), model, prior, random, tuning.samples, tuning.steps)

    def update(self, evidence: Evidence) -> Posterior:
        """Return the posterior after the newest answer of the evidence; the others are known already."""
        random = deepcopy(self.random)
        seen = len(evidence.answers) - 1
        samples = update_samples(self.samples, evidence, seen, self.count, self.model, self.prior, random, self.steps)
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
