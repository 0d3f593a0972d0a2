"""What if only the worst objective counts? How likely that is, given the answers, and what it means for what may be said.

Some people judge a plan by where it is worst (Chebyshev), and often answer as if they weighed their objectives. A belief in
weights is then sure of itself and wrong. So people of that taste are fitted to the same answers, as particles of their own;
how much likelier they make the answers than the belief does says how far the belief may be trusted. Only what is said
depends on it: the questions do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from tradeoff.kernels.worst import worst_density
from tradeoff.menus import AnyAnswer, Choice, Occasion, Statement, implied
from tradeoff.model import Indices, Matrix, Question, Vector
from tradeoff.strategies.sampling import Answering, Dirichlets, _particles, copied, log_likelihood

OTHERS = 0.02  # of all people are supposed to look at their worst objective alone
PARTICLES = 300
MOVES = 9  # of every particle after every answer
STEP = 0.6  # part of the difference of two particles by which a third is moved, times a random factor around 1
SPREAD = 0.05  # standard deviation of the noise that is added to each move
LEAST = -20.0  # the logarithm of the smallest weight
# Densities only decide who is moved. They are worked out roughly, and again to the last digit where their logarithms are closer
# than this to what decides, or than the least noise or lapse lets rounding make them.
CLOSE, ROUNDING = 1e-6, 1e-12


class Sides(NamedTuple):
    """The gains of the two alternatives of every comparison, [q, d] each, and which are statements about weights."""

    first: Matrix
    second: Matrix
    plain: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Doubt:
    """How likely only the worst objective counts, and what the recommendation then costs."""

    share: float
    regrets: Vector  # of people of that taste, relative
    unnoticed: NDArray[np.bool_]  # who would not notice that anything is better

    def mean(self, linear: Vector | NDArray[np.bool_], other: Vector | NDArray[np.bool_]) -> float:
        """Return the mean of something over people of both tastes."""
        return float((1 - self.share) * linear.mean() + self.share * other.mean())

    def quantile(self, linear: Vector, sure: float) -> float:
        """Return the least regret that at least ``sure`` of the people of both tastes do not exceed.

        >>> Doubt(0.5, np.array([0.3, 0.4]), np.zeros(2, dtype=bool)).quantile(np.array([0.0, 0.1]), 0.75)
        0.3
        """
        values = np.concatenate([linear, self.regrets])
        each = [(1 - self.share) / len(linear), self.share / len(self.regrets)]
        weights = np.repeat(each, [len(linear), len(self.regrets)])
        order = np.argsort(values, kind="stable")
        reached = np.searchsorted(np.cumsum(weights[order]), sure - 1e-9)
        return float(values[order[min(int(reached), len(order) - 1)]])


@dataclass(frozen=True, eq=False)
class Rival:
    """People who look at their worst objective, as particles, and the odds that the person is one of them."""

    logs: Matrix  # [n, d]: of the weights
    traits: Matrix  # [n, 3]: the logarithms of precision, noise and lapse
    log_odds: float
    answering: Answering
    random: np.random.Generator  # never advanced: a copy is

    @classmethod
    def before_answers(cls, d: int, answering: Answering, seed: int) -> Rival:
        """Return such people before any answer."""
        random = np.random.default_rng([seed, 1])
        low, high = answering.ranges
        traits = random.uniform(low, high, (PARTICLES, len(low)))
        logs = np.log(Dirichlets.usual(d).draw(PARTICLES, random))
        return cls(logs, traits, float(np.log(OTHERS / (1 - OTHERS))), answering, random)

    def given(
        self, sides: Sides, kinds: NDArray[np.int64], shares: Vector, new: int, predicted: float, most: Vector
    ) -> Rival:
        """Return them after one more answer; all comparisons are given, the ``new`` ones of the answer last.

        ``predicted`` is the logarithm of how likely the belief in weights thought the answer; ``most`` is the most that can be
        had of each objective.
        """
        random, n = copied(self.random), len(self.logs)
        low, high = self.answering.ranges
        coefficients, powers = Dirichlets.usual(self.logs.shape[1]).terms()
        shown = Sides(sides.first / most, sides.second / most, sides.plain)
        every = np.eye(len(kinds))
        first, second = (
            np.ascontiguousarray(np.where(sides.plain[:, None], gains, 1 - share))
            for gains, share in ((sides.first, shown.first), (sides.second, shown.second))
        )
        anywhere, allowed = (np.full_like(low, -np.inf), np.full_like(high, np.inf), -np.inf), (low, high, LEAST)
        compared = first, second, sides.plain, kinds, shares, coefficients, powers
        close = max(CLOSE, ROUNDING / np.exp(low[1:]).min())

        def likelihoods(logs: Matrix, traits: Matrix) -> Matrix:
            felt = _particles(_margins(np.exp(logs), shown, sides), traits, np.zeros(len(logs), dtype=np.int64))
            result: Matrix = log_likelihood(felt, every, kinds) * shares
            return result

        def density(logs: Matrix, traits: Matrix) -> Vector:  # with respect to the logarithms of the weights
            prior = np.logaddexp.reduce(coefficients + logs @ (powers + 1).T, axis=1)
            result: Vector = likelihoods(logs, traits).sum(axis=1) + prior
            return result

        found = likelihoods(self.logs, self.traits)
        newest = found[:, len(kinds) - new :].sum(axis=1)
        log_odds = self.log_odds + float(np.logaddexp.reduce(newest)) - np.log(n) - predicted
        chances = np.cumsum(np.exp(newest - newest.max()))
        ticks = (np.arange(n) + random.random()) * (chances[-1] / n)  # systematic: the least noise
        drawn = np.minimum(np.searchsorted(chances, ticks, side="right"), n - 1)
        others, other_traits = self.logs[drawn], self.traits[drawn]
        logs, traits = others.copy(), other_traits.copy()
        likely = worst_density(logs, traits, *anywhere, *compared)
        for move in range(MOVES):
            one, two = random.integers(n, size=(2, n))
            step = STEP * np.exp(random.normal(0, 0.5, (n, 1)))
            moved, moved_traits = logs, traits
            if move % 3 != 1:
                moved = logs + step * (others[one] - others[two]) + SPREAD * random.normal(size=logs.shape)
                moved = moved - np.log(np.exp(moved).sum(axis=1, keepdims=True))
            if move % 3 != 2:
                moved_traits = traits + step * (other_traits[one] - other_traits[two])
            level, then = np.log(random.random(n)), worst_density(moved, moved_traits, *allowed, *compared)
            passed = then - likely - level
            if not (np.abs(passed) > close).all():
                inside = then > -np.inf
                exact = density(np.where(inside[:, None], moved, logs), np.where(inside[:, None], moved_traits, traits))
                passed = np.where(inside, exact - density(logs, traits) - level, -np.inf)
            taken = passed > 0
            logs = np.where(taken[:, None], moved, logs)
            traits = np.where(taken[:, None], moved_traits, traits)
            likely = np.where(taken, then, likely)
        return replace(self, logs=logs, traits=traits, log_odds=log_odds, random=random)

    def doubt(self, gains: Matrix, number: int) -> Doubt:
        """Return how likely that taste is, and what recommending this alternative would then cost."""
        worth = at_worst(np.exp(self.logs), gains / most_of(gains))
        best, mine = worth.max(axis=1), worth[:, number]
        regrets = 1 - mine / np.maximum(best, 1e-12)
        return Doubt(float(1 / (1 + np.exp(-self.log_odds))), regrets, best - mine <= np.exp(self.traits[:, 0]))


def most_of(gains: Matrix) -> Vector:
    """Return the most that can be had of each objective."""
    result: Vector = np.maximum(gains.max(axis=0), 1e-12)
    return result


def at_worst(weights: Matrix, shares: Matrix) -> Matrix:
    """Return what alternatives [K, d] are worth to people who look at the worst, [n, K]; they are shares of the most there is.

    >>> at_worst(np.array([[0.5, 0.5], [0.9, 0.1]]), np.array([[0.8, 0.4], [1.0, 0.0]])).round(3).tolist()
    [[0.4, 0.0], [0.8, 0.889]]
    """
    scaled = weights / weights.max(axis=1, keepdims=True)
    missing = np.zeros((len(weights), len(shares)))
    for weight, share in zip(scaled.T, shares.T, strict=True):  # one objective at a time: no array of all three
        np.maximum(missing, weight[:, None] * (1 - share), out=missing)
    result: Matrix = 1 - missing
    return result


def _margins(weights: Matrix, shown: Sides, sides: Sides) -> Matrix:
    """Return by how much the first of each comparison is worth more, [n, q]; statements are about the weights themselves."""
    margins = at_worst(weights, shown.first) - at_worst(weights, shown.second)
    if sides.plain.any():
        margins[:, sides.plain] = weights @ (sides.first - sides.second)[sides.plain].T
    return margins


def sides_of(answers: Sequence[tuple[Occasion, AnyAnswer]], differences: Sequence[Matrix], relevant: Indices) -> Sides:
    """Return what the comparisons of all answers compare; ``differences`` are those of each answer."""
    first: list[Matrix] = [np.zeros((0, len(relevant)))]
    second: list[Matrix] = [np.zeros((0, len(relevant)))]
    plain: list[bool] = []
    for (question, answer), said in zip(answers, differences, strict=True):
        if isinstance(question, Statement):
            pair = said, np.zeros_like(said)
        elif isinstance(question, Question):
            pair = question.first.value[None, relevant], question.second.value[None, relevant]
        else:
            values, found = question.values[:, relevant], implied(cast(Choice, answer))
            pair = values[[one.first for one in found]], values[[one.second for one in found]]
        first.append(pair[0])
        second.append(pair[1])
        plain += [isinstance(question, Statement)] * len(said)
    return Sides(np.concatenate(first), np.concatenate(second), np.array(plain, dtype=bool))
