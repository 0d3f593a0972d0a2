"""Draws from the posterior of a person whose answers are noisy, and sometimes wrong.

Arrays in, arrays out, randomness passed in: the same generator gives the same points, bit for bit on one machine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, lgamma, log
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tradeoff.errors import ArgumentError
from tradeoff.kernels.density import BLUR, CARELESS, FLOOR, GRADED, REPLIES
from tradeoff.kernels.walk import mover
from tradeoff.menus import A_LITTLE, A_LOT, NOT_WORSE, UNSAID
from tradeoff.model import frozen_array
from tradeoff.strategies.polytope import checked_answers

__all__ = [
    "PEOPLE",
    "SLIPS",
    "WITH_STRENGTHS",
    "Answering",
    "Dirichlets",
    "Particles",
    "chances",
    "consistent",
    "log_likelihood",
    "log_words",
    "posterior_particles",
]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

SPARSE = 0.3  # the Dirichlet parameter of the half of the usual prior that expects few objectives to matter
NO_NOISE = 1e-9  # a noise scale at which nobody errs


class Dirichlets(NamedTuple):
    """A mixture of Dirichlet distributions of weights: the share of each part, and its parameters, one per weight."""

    shares: tuple[float, ...]
    parameters: tuple[tuple[float, ...], ...]

    @classmethod
    def usual(cls, d: int) -> Dirichlets:
        """Return what is supposed of anybody: Dirichlet(1) or Dirichlet(0.3), evenly."""
        return cls((0.5, 0.5), ((1.0,) * d, (SPARSE,) * d))

    def draw(self, n: int, rng: np.random.Generator) -> Matrix:
        """Return n draws of weights."""
        parts = rng.choice(len(self.shares), n, p=np.array(self.shares) / sum(self.shares))
        gammas = rng.standard_gamma(np.array(self.parameters)[parts])
        weights: Matrix = np.maximum(gammas / np.maximum(gammas.sum(axis=1, keepdims=True), 1e-300), FLOOR)
        weights /= weights.sum(axis=1, keepdims=True)
        return weights

    def terms(self) -> tuple[Vector, Matrix]:
        """Return the logarithm of each part's coefficient, and the powers of the weights in its density."""
        parameters = np.array(self.parameters)
        scale = [lgamma(row.sum()) - sum(lgamma(a) for a in row) for row in parameters]
        return np.log(self.shares) + np.array(scale), np.ascontiguousarray(parameters - 1.0)


@dataclass(frozen=True)
class Answering:
    """How people are supposed to answer: each trait is uniform on a logarithmic scale between two numbers, or known.

    ``precision`` is the difference in worth that goes unnoticed, ``noise`` the scale of the logistic noise with which a
    difference is felt, both where weights sum to 1; ``lapse`` is how often an answer is given that is not meant at all.
    ``much`` is by how much more than the precision something must be better to be "a lot" better, where that is said.
    Before any answer, the mind is changed with probability ``change``: what was said before it tells nothing.
    """

    precision: tuple[float, float] = (1e-4, 1.0)
    noise: tuple[float, float] = (NO_NOISE, NO_NOISE)
    lapse: tuple[float, float] = (0.05, 0.05)
    change: float = 0.0
    much: tuple[float, float] = (0.1, 0.1)

    def __post_init__(self) -> None:
        for name in ("precision", "noise", "lapse", "much"):
            low, high = getattr(self, name)
            if not 0 < low <= high < inf or (name == "lapse" and high >= 2 / 3):
                raise ArgumentError(
                    f"the range of the {name} is {low} to {high}; it must be above 0"
                    + (" and below 2/3" if name == "lapse" else "")
                )
        if not 0 <= self.change < 1:
            raise ArgumentError(f"the chance of a changed mind is {self.change!r}; it must be 0 or more, and below 1")

    @property
    def strengths(self) -> bool:
        """Whether people may say by how much something is better, so that it has to be learned what that means."""
        return self.much[0] < self.much[1]

    @property
    def ranges(self) -> tuple[Vector, Vector]:
        """The lowest and highest logarithm of precision, noise and lapse."""
        low, high = np.log(np.array([self.precision, self.noise, self.lapse])).T.copy()
        return low, high


SLIPS = Answering()  # people who mean what they say, but for slips
# What is supposed of real people. Chosen by hand on the people of benchmarks/people.py, so that those who answer exactly are
# asked at most two questions more than if that were known, and what is said of the others is true.
PEOPLE = Answering(noise=(1e-4, 0.3), lapse=(0.01, 0.25), change=0.01)
# The same where they say by how much: to some nearly everything is a lot better, to others nothing ever is.
WITH_STRENGTHS = replace(PEOPLE, much=(0.003, 1.0))


def copied(random: np.random.Generator) -> np.random.Generator:
    """Return a generator that will draw the same: what ``deepcopy`` returns, in a tenth of the time."""
    bits = type(random.bit_generator)(0)
    bits.state = random.bit_generator.state
    return np.random.Generator(bits)


class Particles(NamedTuple):
    """Draws of who a person may be."""

    weights: Matrix  # [n, d], each row summing to 1
    precision: Vector  # [n]
    noise: Vector  # [n]
    lapse: Vector  # [n]
    since: NDArray[np.int64]  # [n]: the first answer of their present mind
    much: Vector = frozen_array([0.1])  # [n], or the same for all where nobody says by how much


def consistent(weights: ArrayLike, precision: ArrayLike, differences: ArrayLike, kinds: ArrayLike) -> NDArray[np.bool_]:
    """Return ``[n, q]``: whether answer j is what particle i means, without noise or lapse.

    >>> consistent([[1.0, 0.0], [0.5, 0.5]], [0.1, 0.1], [[1.0, -1.0]], [+1]).tolist()
    [[True], [False]]
    """
    difference, kind = checked_answers(differences, kinds)
    gain = np.asarray(weights, np.float64) @ difference.T
    least = np.asarray(precision, np.float64)[:, None]
    fits = np.where(kind == 0, np.abs(gain) <= least, gain * kind >= least)
    return np.where(kind == NOT_WORSE, gain >= -least, fits)


def chances(particles: Particles, differences: Matrix) -> NDArray[np.float64]:
    """Return ``[3, n, q]``: how likely each particle says "the first", "about equal", "the second" to each question."""
    gain = particles.weights @ differences.T
    least, noise = particles.precision[:, None], particles.noise[:, None]
    with np.errstate(over="ignore"):  # the exponential of a clear difference is infinite, and its chance 0 or 1
        first, second = (1 / (1 + np.exp((least - sign * gain) / noise)) for sign in (1, -1))
    meant = np.stack([first, 1 - first - second, second])
    lapse = particles.lapse[:, None]
    result: NDArray[np.float64] = (1 - 1.5 * lapse) * np.maximum(meant, 0.0) + lapse / 2
    return result


def log_likelihood(particles: Particles, differences: ArrayLike, kinds: ArrayLike) -> Matrix:
    """Return ``[n, q]``: the logarithm of how likely particle i gives answer j, if its present mind does.

    >>> someone = Particles(np.array([[1.0, 0.0]]), np.array([0.1]), np.array([1e-9]), np.array([0.02]), np.array([0]))
    >>> np.exp(log_likelihood(someone, [[1.0, -1.0], [0.05, 0.3]], [+1, -1])).round(3).tolist()
    [[0.98, 0.01]]
    """
    difference, kind = checked_answers(differences, kinds)
    said = chances(particles, difference)
    placed = (1 - particles.lapse[:, None]) * (said[0] - said[2]) / (1 - 1.5 * particles.lapse[:, None])
    likelihood = np.where(
        kind == NOT_WORSE, (1 + placed) / 2, np.choose(np.where(kind == NOT_WORSE, 0, 1 - kind), said)
    )
    with np.errstate(divide="ignore"):  # without lapses, some answers are never given
        result: Matrix = np.log(likelihood)
    return result


def log_words(particles: Particles, differences: ArrayLike, kinds: ArrayLike, strengths: ArrayLike) -> Matrix:
    """Return ``[n, q]``: the logarithm of how likely particle i, who named a side, says by so much; 0 where nothing was said.

    >>> someone = Particles(np.array([[1.0]]), *np.array([[0.01], [1e-9], [0.02]]), np.array([0]), np.array([0.2]))
    >>> np.exp(log_words(someone, [[0.5], [0.5], [0.1]], [1, 1, 1], [0, 2, 2])).round(2).tolist()
    [[1.0, 0.94, 0.12]]
    """
    difference, kind = checked_answers(differences, kinds)
    words = _checked_strengths(strengths, kind)
    least, much = particles.precision[:, None], np.asarray(particles.much)[:, None]
    blurred = particles.noise[:, None] + BLUR * (least + much)
    x = np.exp(np.minimum((particles.weights @ (kind * difference.T) - least) / blurred, 50.0))
    slip = 0.5 * particles.lapse[:, None] / np.maximum(np.exp(log_likelihood(particles, difference, kind)), 1e-300)
    either = slip + (1 - slip) * CARELESS
    lot = 0.5 * either + (1 - either) * (x + 1) / (x + np.exp(much / blurred))
    result: Matrix = np.log(np.where(words == UNSAID, 1.0, np.where(words == A_LOT, lot, 1 - lot)))
    return result


def posterior_particles(
    differences: ArrayLike,
    kinds: ArrayLike,
    n: int,
    rng: np.random.Generator,
    start: Particles | None = None,
    seen: int = 0,
    *,
    answering: Answering = SLIPS,
    prior: Dirichlets | None = None,
    shares: ArrayLike | None = None,
    replies: ArrayLike | None = None,
    strengths: ArrayLike | None = None,
    moves: int = 8,
) -> Particles:
    """Return n draws of who the person is, given answers as in :func:`half_spaces`.

    ``start`` are particles for the first ``seen`` answers, such as an earlier result, as many as there may be: then only the
    new answers cost anything. For each new answer particles are drawn again in proportion to its likelihood and then take
    ``moves`` rounds (half as many for all but the last). A round is two slice-sampling moves along the difference of two other
    particles, one of a single weight on a logarithmic scale, one of each trait, and a draw of when the mind was changed;
    each leaves the posterior as it is, so more rounds only mean more independent particles. ``shares`` says for how much the
    noise of each comparison counts, where one answer makes several that are not independent, and ``replies`` the number of the
    answer that each belongs to; by default each is an answer. ``strengths`` says by how much one was said to be better
    (``menus.strengths``); by default nothing was said.

    >>> rng = np.random.default_rng(0)
    >>> found = posterior_particles([[1.0, -1.0]], [+1], 400, rng)
    >>> bool((found.weights[:, 0] > found.weights[:, 1]).mean() > 0.9), found.weights.shape, found.precision.shape
    (True, (400, 2), (400,))
    """
    difference, kind = checked_answers(differences, kinds)
    d = difference.shape[1]
    last = _last_of_each(replies, len(kind))
    counts = np.where(last, 1.0, -1.0) * (1.0 if shares is None else np.asarray(shares, np.float64))
    how_much = np.full(len(kind), UNSAID) if strengths is None else _checked_strengths(strengths, kind)
    graded = kind * (1 + GRADED * how_much)
    if n < 4:
        raise ArgumentError(f"particles need n >= 4; found {n}")
    prior = Dirichlets.usual(d) if prior is None else prior
    low, high = (np.append(end, log(much)) for end, much in zip(answering.ranges, answering.much, strict=True))
    if start is None:
        seen = 0
        weights = prior.draw(n, rng)
        traits = np.column_stack([rng.uniform(low[:-1], high[:-1], (n, len(low) - 1)), np.full(n, low[-1])])
        if answering.strengths:  # drawn last and only where it counts: nobody else's particles depend on it
            traits[:, -1] = rng.uniform(low[-1], high[-1], n)
        since = np.zeros(n, dtype=np.int64)
    else:
        picked = np.arange(n) * len(start.weights) // n if seen == len(kind) else slice(None)
        weights = np.maximum(np.array(start.weights, np.float64)[picked], FLOOR)
        weights /= weights.sum(axis=1, keepdims=True)
        much = np.broadcast_to(start.much, start.precision.shape)
        found = np.stack([start.precision, start.noise, start.lapse, much], axis=1)
        traits = np.clip(np.log(found[picked]), low, high)
        since = np.array(start.since)[picked]
    coefficients, powers = prior.terms()
    change = log(answering.change) if answering.change > 0 else -inf
    for count in (np.flatnonzero(last) + 1).tolist():
        if count <= seen:
            continue
        now, new = _particles(weights, traits, since), slice(seen, count)
        newest = _reply(now, difference[new], kind[new], counts[new])
        if how_much[new].any():
            newest = newest * np.exp(log_words(now, difference[new], kind[new], how_much[new]).sum(axis=1))
        likelihood, seen = np.cumsum(newest), count
        ticks = (np.arange(n) + rng.random()) * (likelihood[-1] / n)  # systematic: the least noise
        drawn = np.minimum(np.searchsorted(likelihood, ticks, side="right"), len(likelihood) - 1)
        others, other_traits = weights[drawn], traits[drawn]
        weights, traits, since = others.copy(), other_traits.copy(), since[drawn]
        mover()(
            weights, traits, since, others, other_traits, np.ascontiguousarray(difference[:count]),
            np.ascontiguousarray(graded[:count]), np.ascontiguousarray(counts[:count]), low, high, coefficients, powers, change,
            moves if count == len(kind) else (moves + 1) // 2, rng.integers(1 << 63, dtype=np.uint64), True,
        )  # fmt: skip
    return _particles(weights, traits, since)


def _last_of_each(replies: ArrayLike | None, count: int) -> NDArray[np.bool_]:
    """Return which comparisons are the last of their answer; without ``replies`` each is an answer of its own."""
    number = np.arange(count) if replies is None else np.asarray(replies)
    return np.append(number[1:] != number[:-1], True)[:count]


def _reply(particles: Particles, differences: Matrix, kinds: NDArray[np.int64], shares: Vector) -> Vector:
    """Return how likely each particle gives one answer, which makes one comparison or several, as the kernel counts it."""
    if len(kinds) == 1:
        single: Vector = np.exp(log_likelihood(particles, differences, kinds)[:, 0])
        return single
    meant = log_likelihood(particles._replace(lapse=np.zeros(len(particles.lapse))), differences, kinds)
    together: Vector = np.exp(meant.sum(axis=1) * shares[-1])
    return (1 - particles.lapse) * together + particles.lapse / REPLIES


def _particles(weights: Matrix, traits: Matrix, since: NDArray[np.int64]) -> Particles:
    precision, noise, lapse, *much = np.exp(traits).T
    return Particles(weights, precision, noise, lapse, since, *much)


def _checked_strengths(strengths: ArrayLike, kind: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the strengths, one for each comparison; raise an ArgumentError if one has none that could be said."""
    found = np.asarray(strengths).astype(np.int64)
    if found.shape != kind.shape or not np.isin(found, (UNSAID, A_LITTLE, A_LOT)).all():
        raise ArgumentError(
            f"strengths are as many of 0, 1 and 2 as there are comparisons, {len(kind)}; found {found!r:.80}"
        )
    if (np.abs(kind[found != UNSAID]) != 1).any():
        raise ArgumentError(
            "a strength was given of a comparison in which neither side is preferred; it must be 0 there"
        )
    return found
