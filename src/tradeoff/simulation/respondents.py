"""Simulated respondents: exact ones, as the theory assumes, and ones who err, tire, change their minds or are not linear.

A ``LinearRespondent`` has a linear preference and a precision. A ``Respondent`` has a taste (what options are worth to them)
and habits (how they reply). ``KINDS`` are populations of them, by name: ``simulate(kind=...)``, ``tradeoff simulate --kind``
and ``benchmarks/people.py`` use the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp
from typing import Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from tradeoff.errors import ArgumentError
from tradeoff.evidence import possible_replies
from tradeoff.model import Matrix, Option, Question, Reply, Vector, frozen_array
from tradeoff.problem import SAME, Problem, unit_rows

Shape: TypeAlias = Literal["linear", "concave", "multiplicative", "threshold", "Chebyshev", "lexicographic"]

MUST = (
    0.6  # of the most that is attainable in their main objective, or it is worth half to a respondent with a threshold
)


# --- a linear preference ----------------------------------------------------------------------------------------------


def check_weights(weights: ArrayLike) -> Vector:
    """Return a respondent's weights as an array; raise an ArgumentError unless they are valid."""
    vector = frozen_array(weights)
    if vector.ndim != 1 or not np.all(np.isfinite(vector)) or vector.min() < 0 or not vector.any():
        raise ArgumentError(f"a respondent's weights are numbers >= 0, not all of them 0; {vector.tolist()} was given")
    return vector


def weighed(weights: Matrix, values: ArrayLike) -> Vector:
    """Return <w, V> for each row of weights, with one V for all or one for each.

    It is added up in a fixed order, so that no row depends on the others, not even in its last digit.
    """
    total, amounts = np.zeros(len(weights)), np.asarray(values)
    if weights.shape[-1] != amounts.shape[-1]:
        both = sorted((weights.shape[-1], amounts.shape[-1]))
        raise ArgumentError(
            f"weights and objectives differ in number, {both[0]} and {both[1]}; give each objective one weight"
        )
    for weight, value in zip(weights.T, amounts.T, strict=True):
        total += weight * value
    return total


class LinearRespondent:
    """The paper's respondent: prefers the larger <w, V>, and does not notice differences of at most ``precision``.

    ``error_rate`` is the probability that a reply is replaced by another one at random.

    >>> pair = Question((Option([1.0, 0.0]), Option([0.0, 0.9])))
    >>> LinearRespondent([1, 1], precision=0.05)(pair), LinearRespondent([1, 1], precision=0.2)(pair)
    (Reply(best=0), Reply(word='equal'))
    """

    def __init__(
        self, weights: ArrayLike, precision: float = 0.0, error_rate: float = 0.0, seed: int | None = None
    ) -> None:
        self.weights = check_weights(weights)
        if not (np.isfinite(precision) and precision >= 0):
            raise ArgumentError(f"a precision is a number >= 0; {precision!r} was given")
        if not 0 <= error_rate <= 1:
            raise ArgumentError(f"an error rate is a probability; {error_rate!r} was given")
        self.precision, self.error_rate = float(precision), float(error_rate)
        self._random = np.random.default_rng(seed)
        self.errors = 0

    @classmethod
    def scaled(
        cls,
        problem: Problem,
        weights: ArrayLike,
        precision: float = 0.0,
        error_rate: float = 0.0,
        seed: int | None = None,
    ) -> Self:
        """Return a respondent with these weights, scaled so that their best option of the problem is worth 1 to them.

        With that scale the precision is relative: 0.01 is 1% of the best that this respondent can get. Weights for which
        nothing can be gained stay as they are.

        >>> import tradeoff
        >>> problem = tradeoff.load("coffee")
        >>> respondent = LinearRespondent.scaled(problem, [3, 1, 2, 1, 0.5], precision=0.01)
        >>> round(respondent.worth(problem.best([respondent.weights])[0].value), 12)
        1.0
        """
        (vector,) = unit_rows(check_weights(weights)[None, :])
        (best,) = problem.best(vector[None, :])
        worth = float(weighed(vector[None, :], best.value)[0])
        return cls(vector / worth if worth > 0 else vector, precision, error_rate, seed)

    def worth(self, value: ArrayLike) -> float:
        """Return the personalised value <w, V>."""
        return float(weighed(self.weights[None, :], value)[0])

    def __call__(self, question: Question) -> Reply:
        """Return this respondent's reply."""
        reply = possible_replies(weighed(question.values, self.weights), self.precision, question.asks)[0]
        if self.error_rate and self._random.random() < self.error_rate:
            self.errors += 1
            others = [other for other in question.replies if other != reply]
            return others[self._random.integers(len(others))]
        return reply


def relative_regret(problem: Problem, respondent: LinearRespondent, option: Option) -> float:
    """Return the share of what the respondent's best option is worth to them that they lose with this one."""
    (weights,) = unit_rows(respondent.weights[None, :])
    (best,) = problem.best(weights[None, :])
    most, worth = weighed(np.stack([best.value, option.value]), weights).tolist()
    lost = 1.0 - worth / most if most > 0 else 0.0
    return 0.0 if abs(lost) <= SAME else lost  # less than this is the rounding of a sum


# --- tastes and habits ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Habits:
    """How a respondent replies. Amounts are shares of what the best option is worth to them.

    ``precision``: what they do not notice. ``uneven``: how much that differs from question to question (the deviation of its
    logarithm). ``logistic`` and ``thurstone``: the noise in what each option seems worth, as the scale of the logistic noise of
    a difference and as the deviation of normal noise. ``favours_first``: how much they favour the option shown first.
    ``slips``: how often they give another reply at random; ``flips``: how often the opposite one. ``tiring``: by how much the
    rate of slips grows with each answer. ``changes_after``: after how many answers their weights change.
    """

    precision: float = 0.01
    uneven: float = 0.0
    logistic: float = 0.0
    thurstone: float = 0.0
    favours_first: float = 0.0
    slips: float = 0.0
    flips: float = 0.0
    tiring: float = 0.0
    changes_after: int | None = None


@dataclass(frozen=True)
class Kind:
    """A population: the shape of its tastes, and its habits."""

    habits: Habits = Habits()
    shape: Shape = "linear"

    @property
    def linear(self) -> bool:
        """Whether a linear preference, however noisy, is behind all answers that count."""
        return self.shape == "linear"


KINDS: dict[str, Kind] = {
    "exact": Kind(),
    "slips-5": Kind(Habits(slips=0.05)),
    "slips-10": Kind(Habits(slips=0.1)),
    "slips-20": Kind(Habits(slips=0.2)),
    "flips-10": Kind(Habits(flips=0.1)),
    "logistic-3": Kind(Habits(logistic=0.03)),
    "logistic-10": Kind(Habits(logistic=0.1)),
    "thurstone-5": Kind(Habits(thurstone=0.05)),
    "thurstone-15": Kind(Habits(thurstone=0.15)),
    "uneven": Kind(Habits(uneven=1.0)),
    "side": Kind(Habits(favours_first=0.05)),
    "side-strong": Kind(Habits(favours_first=0.15)),
    "tired": Kind(Habits(tiring=0.015)),
    "changing-3": Kind(Habits(changes_after=3)),
    "changing-5": Kind(Habits(changes_after=5)),
    "concave": Kind(shape="concave"),
    "multiplicative": Kind(shape="multiplicative"),
    "threshold": Kind(shape="threshold"),
    "chebyshev": Kind(shape="Chebyshev"),
    "lexicographic": Kind(shape="lexicographic"),
}


class Taste:
    """What the options of a problem are worth to a respondent: 1 for the best."""

    def __init__(self, problem: Problem, weights: ArrayLike, shape: Shape = "linear") -> None:
        self.weights: Vector = check_weights(weights) / np.sum(weights)
        self.shape, self._scale = shape, 1.0
        self._most = np.array([
            max(float(found.value[j]), 1e-12) for j, found in enumerate(problem.best(np.eye(len(self.weights))))
        ])  # fmt: skip
        if shape == "linear":
            (best,) = problem.best(self.weights[None, :])
            largest = float(self(best.value))
        else:
            gains = getattr(problem, "gains", None)
            if gains is None:
                raise ArgumentError(
                    f"what is best for {shape} tastes is known of catalogues only, where every item can be looked at; "
                    "choose a catalogue, or respondents whose tastes are linear"
                )
            largest = float(self.all(gains).max())
        self._scale = 1 / largest if largest > 0 else 1.0

    def __call__(self, value: ArrayLike) -> float:
        """Return what an option with these gains is worth."""
        return float(self.all(np.asarray(value, dtype=np.float64)[None, :])[0])

    def all(self, gains: Matrix) -> Vector:
        """Return what each row of gains is worth."""
        main = int(self.weights.argmax())
        share = np.maximum(gains, 0.0) / self._most
        match self.shape:
            case "linear":
                worth = gains @ self.weights
            case "concave":
                worth = np.sqrt(share) @ self.weights
            case "multiplicative":
                worth = np.exp(np.log(np.maximum(share, 1e-3)) @ self.weights)
            case "threshold":
                worth = (gains @ self.weights) * np.where(share[:, main] >= MUST, 1.0, 0.5)
            case "Chebyshev":
                worth = 1 - ((1 - share) * self.weights).max(axis=1) / self.weights.max()
            case "lexicographic":  # what is lost is counted in their main objective
                worth = share[:, main]
        result: Vector = worth * self._scale
        return result

    def of_options(self, question: Question, precision: float) -> Vector:
        """Return what each option seems worth beside the others; a lexicographic respondent looks at one objective only.

        That is the most important one in which the options differ by more than the precision.
        """
        if self.shape != "lexicographic":
            return self.all(question.values)
        shares: Matrix = question.values / self._most
        order = np.argsort(-self.weights, kind="stable")
        telling = order[np.ptp(shares, axis=0)[order] > precision]
        return shares[:, telling[0]] if len(telling) else np.zeros(len(shares))


class Respondent:
    """A simulated respondent with a taste and habits.

    >>> import tradeoff
    >>> problem = tradeoff.load("coffee")
    >>> respondent = Respondent(problem, [3, 1, 2, 1, 0.5], KINDS["logistic-10"], seed=1)
    >>> round(respondent.regret(problem.best([respondent.weights])[0]), 12)
    0.0
    """

    def __init__(
        self, problem: Problem, weights: ArrayLike, kind: Kind, seed: int, later: ArrayLike | None = None
    ) -> None:
        """``later`` are the weights of those who change their minds, for what they choose in the end."""
        self.kind, self._random = kind, np.random.default_rng(seed)
        self.before = self.taste = Taste(problem, weights, kind.shape)
        if kind.habits.changes_after is not None:
            drawn = self._random.dirichlet(np.ones(len(self.taste.weights))) if later is None else later
            self.taste = Taste(problem, drawn, kind.shape)
        self.asked = self.errors = 0

    @property
    def weights(self) -> Vector:
        """The weights that count in the end."""
        weights: Vector = self.now.weights
        return weights

    @property
    def now(self) -> Taste:
        """The present taste: nobody can know of a mind that is changed after the last answer."""
        after = self.kind.habits.changes_after
        return self.taste if after is None or self.asked > after else self.before

    def regret(self, option: Option) -> float:
        """Return the share of what the best is worth to this respondent that they lose with this one."""
        lost = 1.0 - self.now(option.value)
        return 0.0 if abs(lost) <= SAME else lost

    def __call__(self, question: Question) -> Reply:
        """Return this respondent's reply."""
        habits, random, size = self.kind.habits, self._random, len(question.options)
        self.asked += 1
        worth = self.now.of_options(question, habits.precision)
        meant = possible_replies(worth, habits.precision, question.asks)[0]
        # The difference of two Gumbel variables is logistic.
        felt = worth + habits.thurstone * random.normal(size=size) + habits.logistic * random.gumbel(size=size)
        felt[0] += habits.favours_first
        if random.random() < habits.flips:
            felt = -felt
        noticed = habits.precision * exp(random.normal(0.0, habits.uneven))
        reply = possible_replies(felt, noticed, question.asks)[0]
        if random.random() < habits.slips + habits.tiring * (self.asked - 1):
            others = [other for other in question.replies if other != reply]
            reply = others[random.integers(len(others))]
        self.errors += reply != meant
        return reply


def kind_of(name: str, precision: float | None = None, slips: float = 0.0) -> Kind:
    """Return a kind by its name, with another precision and more slips where they are given.

    >>> kind_of("slips-10", precision=0.05, slips=0.1).habits.slips
    0.2
    """
    if name not in KINDS:
        raise ArgumentError(f"there are no respondents of the kind {name!r}; there are {', '.join(KINDS)}")
    kind = KINDS[name]
    least = kind.habits.precision if precision is None else precision
    return replace(kind, habits=replace(kind.habits, precision=least, slips=kind.habits.slips + slips))


def random_respondent(problem: Problem, kind: str, *seed: int) -> Respondent:
    """Return a respondent of a kind with weights drawn evenly; everything about them follows from the seed.

    >>> import tradeoff
    >>> random_respondent(tradeoff.load("coffee"), "tired", 4).kind.habits.tiring
    0.015
    """
    taste, noise = np.random.SeedSequence(seed).spawn(2)
    drawn = np.random.default_rng(taste).dirichlet(np.ones(len(problem.objectives)))
    return Respondent(problem, drawn, kind_of(kind), int(noise.generate_state(1, np.uint64)[0]))


def regret_of(problem: Problem, respondent: LinearRespondent | Respondent, option: Option) -> float:
    """Return the share of what the best is worth to a respondent that they lose with this one."""
    if isinstance(respondent, Respondent):
        return respondent.regret(option)
    return relative_regret(problem, respondent, option)
