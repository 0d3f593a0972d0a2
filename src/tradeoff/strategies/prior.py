"""What people who were asked before tell about the next one: a mixture of Dirichlets fitted to their answers.

The fit is robust in three ways. Nobody's weights are taken for known: each person is a cloud of particles, and EM weighs
them. A part of the mixture always stays the usual prior, so that somebody unlike all others is learned nearly as fast as
without. And no type is taken to be narrower than a few dozen people could show.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from scipy.special import digamma, gammaln, logsumexp, polygamma

from tradeoff.errors import ArgumentError
from tradeoff.evidence import Answer, Evidence
from tradeoff.model import SKIP, Matrix, Vector
from tradeoff.problem import Problem
from tradeoff.strategies.posterior import PEOPLE, SMALLEST, DirichletMixture, sample_prior, update_samples
from tradeoff.strategies.solutions import solutions_of
from tradeoff.strategies.tuning import CAREFUL

# A share and a Dirichlet parameter per objective, for each part of a mixture: plain numbers, as a log's header holds them.
Prior: TypeAlias = tuple[tuple[float, tuple[float, ...]], ...]

MOST_TYPES = 4
MOST_PARTS = 50  # of a prior that is given: every part costs time with every answer
CONCENTRATIONS = (0.01, 10_000.0)  # of a prior that is given: beyond these, weights are 0 or 1, or known to a hundredth
OUTSIDERS = 0.15  # of the next people at least are supposed to be like nobody before
UNSEEN = 3  # people like nobody before, who are imagined beside those who were asked
NARROWEST = 50.0  # the largest sum of a part's parameters: a type whose weights vary by about a tenth
RESPONDENT_SAMPLES = 300

ROUNDS = 60  # of EM
DIGITS = 4  # to which parameters are written down: more would be noise


def learn_prior(problem: Problem, interviews: Iterable[Sequence[Answer]], *, seed: int = 0) -> Prior:
    """Return what earlier interviews about a problem tell of the next person, for ``careful``'s option ``prior``.

    ``interviews`` are the ``answers`` of each. The result is made of plain numbers: it can be written down, and an
    interview that begins with it says so in its log, so that replay is exact.

    >>> import tradeoff
    >>> coffee = tradeoff.load("coffee")
    >>> prior = learn_prior(coffee, [])
    >>> round(sum(share for share, _ in prior), 9)
    1.0
    """
    relevant = list(solutions_of(problem).relevant)
    d = len(relevant)
    clouds: list[Matrix] = []
    default = DirichletMixture.default(d)
    for number, answers in enumerate(interviews):
        evidence = Evidence.none(np.array(relevant))
        for answer in answers:
            evidence = evidence if answer.reply == SKIP else evidence.update(answer)
        if evidence.answers:
            rng = np.random.default_rng([seed, number])
            samples = sample_prior(RESPONDENT_SAMPLES, PEOPLE, default, rng)
            samples = update_samples(samples, evidence, 0, RESPONDENT_SAMPLES, PEOPLE, default, rng, CAREFUL.steps)
            clouds.append(np.log(np.maximum(samples.weights, SMALLEST)))
    mixture = _fitted(np.array(clouds), d, seed) if clouds else default
    everything = np.ones((len(mixture.shares), len(problem.objectives)))
    everything[:, relevant] = mixture.parameters
    rows = zip(np.round(mixture.shares, 9), np.round(everything, DIGITS), strict=True)
    return tuple((float(share), tuple(row.tolist())) for share, row in rows)


def mixture_of(prior: Any, problem: Problem) -> DirichletMixture | None:
    """Return a prior, as it was given or read from a log, for the objectives that can be changed; None for the usual.

    At least ``OUTSIDERS`` of it is the usual prior, as in a learned one: nobody is impossible.
    """
    if prior is None:
        return None
    k, relevant = len(problem.objectives), list(solutions_of(problem).relevant)
    try:
        few = len(prior) <= MOST_PARTS and all(len(row) == k for _, row in prior)
        parts = [(float(share), [float(number) for number in row]) for share, row in prior] if few else []
    except (TypeError, ValueError, OverflowError):
        parts = []
    low, high = CONCENTRATIONS
    good = all(0 < share <= 1 and all(low <= x <= high for x in row) for share, row in parts)
    if not parts or not good or abs(sum(share for share, _ in parts) - 1) > 1e-6:
        raise ArgumentError(
            f"a prior is a list of at most {MOST_PARTS} parts, each a share and {k} numbers from {low:g} to {high:,g}, one per "
            f"objective, with shares that sum to 1, as learn_prior returns it; {reprlib.repr(prior)} was given"
        )
    rows = [tuple(row[j] for j in relevant) for _, row in parts]
    return _with_outsiders(DirichletMixture(tuple(share for share, _ in parts), tuple(rows)))


def _with_outsiders(given: DirichletMixture) -> DirichletMixture:
    """Return the mixture as it is if enough of it is the usual prior, and with the usual prior added otherwise."""
    usual = DirichletMixture.default(len(given.parameters[0]))
    found = [sum(s for s, row in zip(*given, strict=True) if row == part) for part in usual.parameters]
    if all(has >= OUTSIDERS * share - 1e-6 for has, share in zip(found, usual.shares, strict=True)):
        return given
    shares = [(1 - OUTSIDERS) * share for share in given.shares] + [OUTSIDERS * share for share in usual.shares]
    return DirichletMixture(tuple(shares), given.parameters + usual.parameters)


def _fitted(logs: Matrix, d: int, seed: int) -> DirichletMixture:
    """Return the mixture that fits clouds of particles [people, particles, d], given as logarithms, best for their number."""
    people = len(logs)
    usual = DirichletMixture.default(d)
    before = _densities(logs, np.array(usual.parameters)) + np.log(usual.shares)
    particle = -logsumexp(before, axis=-1)  # a particle was drawn with the usual prior, which EM takes out again
    best, best_score = usual, -np.inf
    for types in range(1, min(MOST_TYPES, people) + 1):
        mixture, likelihood = _expectation_maximisation(
            logs, particle, types, usual, np.random.default_rng([seed, types])
        )
        score = likelihood - 0.5 * types * (d + 1) * np.log(people)
        if score > best_score:
            best, best_score = mixture, score
    return best


def _expectation_maximisation(
    logs: Matrix, particle: Matrix, types: int, usual: DirichletMixture, rng: np.random.Generator
) -> tuple[DirichletMixture, float]:
    """Return a mixture of so many types and the usual prior, and the logarithm of how likely all answers are with it."""
    people = len(logs)
    outsiders = max(OUTSIDERS, UNSEEN / (people + UNSEEN))
    parameters = 10 * _spread_out(np.exp(logs).mean(axis=1), types, rng) + 0.1
    shares = np.full(types, (1 - outsiders) / types)
    fixed = _densities(logs, np.array(usual.parameters)) + np.log(np.array(usual.shares) * outsiders)
    likelihood = -np.inf
    for _ in range(ROUNDS):
        joint = np.concatenate([_densities(logs, parameters) + np.log(shares), fixed], axis=-1) + particle[..., None]
        total = logsumexp(joint, axis=(1, 2), keepdims=True)
        likelihood = float(total.sum() - people * np.log(logs.shape[1]))
        belongs = np.exp(joint - total)[..., :types]  # [people, particles, types]
        count = belongs.sum(axis=(0, 1))
        shares = (1 - outsiders) * (count + 0.5) / (count + 0.5).sum()
        means = np.einsum("ipt,ipd->td", belongs, logs) / np.maximum(count, 1e-9)[:, None]
        parameters = np.array([
            _dirichlet(mean, start) if n > 0.5 else start for mean, start, n in zip(means, parameters, count, strict=True)
        ])  # fmt: skip
    everything = (*shares, *(share * outsiders for share in usual.shares))
    return DirichletMixture(everything, (*map(tuple, parameters.tolist()), *usual.parameters)), likelihood


def _densities(logs: Matrix, parameters: Matrix) -> Matrix:
    """Return the logarithm of the density of every particle in every part: [people, particles, parts]."""
    scale = gammaln(parameters.sum(axis=1)) - gammaln(parameters).sum(axis=1)
    result: Matrix = logs @ (parameters - 1).T + scale
    return result


def _dirichlet(mean: Vector, start: Vector) -> Vector:
    """Return the parameters whose expected logarithms are ``mean`` (Minka's fixed point), no narrower than allowed."""
    parameters = start
    for _ in range(10):
        parameters = np.clip(_inverse_digamma(digamma(parameters.sum()) + mean), 0.05, None)
        parameters = parameters * min(1.0, NARROWEST / parameters.sum())
    return parameters


def _inverse_digamma(values: Vector) -> Vector:
    """Return where the digamma function has these values, by Newton's method."""
    found: Vector = np.where(values >= -2.22, np.exp(values) + 0.5, -1 / (values - digamma(1.0)))
    for _ in range(5):
        found = found - (digamma(found) - values) / polygamma(1, found)
    return found


def _spread_out(points: Matrix, count: int, rng: np.random.Generator) -> Matrix:
    """Return some of the points, far from each other: the first at random, then always the farthest from those."""
    chosen = [int(rng.integers(len(points)))]
    while len(chosen) < count:
        distance = np.linalg.norm(points[:, None] - points[chosen], axis=2).min(axis=1)
        chosen.append(int(distance.argmax()))
    return points[chosen]
