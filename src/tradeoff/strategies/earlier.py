"""What people who were asked before tell about the next one: a mixture of Dirichlets fitted to their answers.

The fit is robust in three ways. Nobody's weights are taken for known: each person is a cloud of particles, and EM weighs
them. A part of the mixture always stays the usual prior, so that somebody unlike all others is learned nearly as fast as
without. And no type is taken to be narrower than a few dozen people could show.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any, TypeAlias

import numpy as np
from scipy.special import digamma, gammaln, logsumexp, polygamma

from tradeoff.errors import ArgumentError
from tradeoff.menus import AnyAnswer, Occasion, comparisons, share_of_each
from tradeoff.model import Matrix, Vector
from tradeoff.problem import Problem
from tradeoff.strategies.basis import bases_of
from tradeoff.strategies.sampling import PEOPLE, Dirichlets, posterior_particles

# A share and a Dirichlet parameter per objective, for each part of a mixture: plain numbers, as a log's header holds them.
Prior: TypeAlias = tuple[tuple[float, tuple[float, ...]], ...]
# An answered question as ``Interview.answers`` has it: its number, what was asked, and the reply (None: skipped).
Record: TypeAlias = tuple[int, Occasion, AnyAnswer | None]

MOST_TYPES = 4
OUTSIDERS = 0.15  # of the next people at least are supposed to be like nobody before
UNSEEN = 3  # people like nobody before, who are imagined beside those who were asked
NARROWEST = 50.0  # the largest sum of a part's parameters: a type whose weights vary by about a tenth
PEOPLE_PARTICLES = 300
ROUNDS = 60  # of EM
DIGITS = 4  # to which parameters are written down: more would be noise


def learn_prior(problem: Problem, interviews: Iterable[Sequence[Record]], *, seed: int = 0) -> Prior:
    """Return what earlier interviews about a problem tell of the next person, for ``careful``'s option ``prior``.

    ``interviews`` are the ``answers`` of each. The result is made of plain numbers: it can be written down, and an
    interview that begins with it says so in its log, so that replay is exact.

    >>> import tradeoff
    >>> coffee = tradeoff.load("coffee")
    >>> prior = learn_prior(coffee, [])
    >>> round(sum(share for share, _ in prior), 9)
    1.0
    """
    relevant = list(bases_of(problem).relevant)
    d = len(relevant)
    clouds: list[Matrix] = []
    for number, records in enumerate(interviews):
        said = [(question, *comparisons(question, reply)) for _, question, reply in records if reply is not None]
        if not said:
            continue
        differences = np.concatenate([one for _, one, _ in said])[:, relevant]
        kinds = np.concatenate([one for _, _, one in said])
        shares = np.concatenate([np.full(len(one), share_of_each(question, len(one))) for question, _, one in said])
        rng = np.random.default_rng([seed, number])
        replies = np.repeat(np.arange(len(said)), [len(one) for _, _, one in said])
        found = posterior_particles(
            differences, kinds, PEOPLE_PARTICLES, rng, answering=PEOPLE, shares=shares, replies=replies
        )
        clouds.append(np.log(found.weights))
    mixture = _fitted(np.array(clouds), d, seed) if clouds else Dirichlets.usual(d)
    everything = np.ones((len(mixture.shares), len(problem.objectives)))
    everything[:, relevant] = mixture.parameters
    rows = zip(np.round(mixture.shares, 9), np.round(everything, DIGITS), strict=True)
    return tuple((float(share), tuple(row.tolist())) for share, row in rows)


def dirichlets_of(prior: Any, problem: Problem) -> Dirichlets | None:
    """Return a prior, as it was given or read from a log, for the objectives that can be changed; None for the usual."""
    if prior is None:
        return None
    k, relevant = len(problem.objectives), list(bases_of(problem).relevant)
    try:
        parts = [(float(share), [float(number) for number in row]) for share, row in prior]
    except (TypeError, ValueError):
        parts = []
    good = all(0 < share <= 1 and len(row) == k and all(isfinite(x) and x > 0 for x in row) for share, row in parts)
    if not parts or not good or abs(sum(share for share, _ in parts) - 1) > 1e-6:
        raise ArgumentError(
            f"a prior is a list of parts, each a share and {k} positive numbers, one per objective, with shares that sum to 1, "
            f"as learn_prior returns it; {prior!r:.120} was given"
        )
    shares, rows = zip(*parts, strict=True)
    return Dirichlets(tuple(shares), tuple(tuple(row[j] for j in relevant) for row in rows))


def _fitted(logs: Matrix, d: int, seed: int) -> Dirichlets:
    """Return the mixture that fits clouds of particles [people, particles, d], given as logarithms, best for their number."""
    people = len(logs)
    usual = Dirichlets.usual(d)
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
    logs: Matrix, particle: Matrix, types: int, usual: Dirichlets, rng: np.random.Generator
) -> tuple[Dirichlets, float]:
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
    return Dirichlets(everything, (*map(tuple, parameters.tolist()), *usual.parameters)), likelihood


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
