"""Simulated people: those the theory assumes, and some who break its assumptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike

from tradeoff.errors import ArgumentError
from tradeoff.menus import AnyAnswer, AnyQuestion, Choice, Menu, possible, shapes
from tradeoff.model import Alternative, Answer, Matrix, Question, Vector, frozen_array
from tradeoff.problem import SAME, Problem, unit_rows

User: TypeAlias = Callable[[Question], Answer]


def _checked_weights(weights: ArrayLike) -> Vector:
    vector = frozen_array(weights)
    if vector.ndim != 1 or not np.all(np.isfinite(vector)) or vector.min() < 0 or not vector.any():
        raise ArgumentError(f"a person's weights are numbers >= 0, not all of them 0; {vector.tolist()} was given")
    return vector


def weighed(weights: Matrix, values: ArrayLike) -> Vector:
    """Return <w, V> for each row of weights, with one V for all or one for each.

    It is added up in a fixed order, so that no row depends on the others, not even in its last digit.
    """
    total = np.zeros(len(weights))
    for weight, value in zip(weights.T, np.asarray(values).T, strict=True):
        total += weight * value
    return total


def _verdict(gap: float, precision: float) -> Answer:
    """Return what a person says to a difference in worth: the paper's comparative feedback."""
    if gap > precision:
        return Answer.FIRST
    return Answer.SECOND if gap < -precision else Answer.SAME


def _chosen(worth: ArrayLike, precision: float, menu: Menu) -> Choice:
    """Return what a person replies to a menu; of what they cannot tell apart they place first what comes first."""
    return possible(np.asarray(worth, dtype=np.float64), precision, menu.asks)[0]


class LinearUser:
    """The paper's person: prefers the larger <w, V>, and cannot tell what differs by at most ``precision``.

    With ``error_rate`` each answer is replaced, that often, by another one at random. Menus are answered as well.

    >>> from tradeoff.model import Alternative, NOTHING
    >>> more, less = Alternative([1.0, 0.0], NOTHING), Alternative([0.0, 0.9], NOTHING)
    >>> LinearUser([1, 1], precision=0.05)(Question(more, less)), LinearUser([1, 1], precision=0.2)(Question(more, less))
    (<Answer.FIRST: 'first'>, <Answer.SAME: 'same'>)
    """

    def __init__(
        self, weights: ArrayLike, precision: float = 0.0, error_rate: float = 0.0, seed: int | None = None
    ) -> None:
        self.weights = _checked_weights(weights)
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
        """Return a person with these weights, scaled so that their best alternative of the problem is worth 1 to them.

        With that scale the precision is relative: 0.01 is 1% of the best that this person can get. Weights for which
        nothing can be gained stay as they are.

        >>> import tradeoff
        >>> problem = tradeoff.load("coffee")
        >>> person = LinearUser.scaled(problem, [3, 1, 2, 1, 0.5], precision=0.01)
        >>> round(person.worth(problem.best([person.weights])[0].value), 12)
        1.0
        """
        (vector,) = unit_rows(_checked_weights(weights)[None, :])
        (best,) = problem.best(vector[None, :])
        worth = float(weighed(vector[None, :], best.value)[0])
        return cls(vector / worth if worth > 0 else vector, precision, error_rate, seed)

    def worth(self, value: ArrayLike) -> float:
        """Return the personalised value <w, V>."""
        return float(weighed(self.weights[None, :], value)[0])

    @overload
    def __call__(self, question: Question) -> Answer: ...
    @overload
    def __call__(self, question: AnyQuestion) -> AnyAnswer: ...
    def __call__(self, question: AnyQuestion) -> AnyAnswer:
        """Return what this person answers."""
        if isinstance(question, Menu):
            return self._to_menu(question)
        answer = _verdict(self.worth(question.difference), self.precision)
        if self.error_rate and self._random.random() < self.error_rate:
            self.errors += 1
            return [other for other in Answer if other is not answer][self._random.integers(2)]
        return answer

    def _to_menu(self, menu: Menu) -> Choice:
        choice = _chosen(weighed(menu.values, self.weights), self.precision, menu)
        if self.error_rate and self._random.random() < self.error_rate:
            self.errors += 1
            others = [other for other in shapes(len(menu.alternatives), menu.asks) if other != choice]
            return others[self._random.integers(len(others))]
        return choice


def relative_regret(problem: Problem, user: LinearUser, alternative: Alternative) -> float:
    """Return the share of what the person's best alternative is worth to them that they lose with this one."""
    (weights,) = unit_rows(user.weights[None, :])
    (best,) = problem.best(weights[None, :])
    most, worth = weighed(np.stack([best.value, alternative.value]), weights).tolist()
    lost = 1.0 - worth / most if most > 0 else 0.0
    return 0.0 if abs(lost) <= SAME else lost  # less than this is the rounding of a sum


class RandomUser:
    """Answers at random."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = np.random.default_rng(seed)

    def __call__(self, question: Question) -> Answer:
        """Return what this person answers."""
        return list(Answer)[self._random.integers(3)]


class StubbornUser:
    """Always gives the same answer; with SAME, a person to whom everything is about equal."""

    def __init__(self, answer: Answer = Answer.FIRST) -> None:
        self.answer = answer

    def __call__(self, question: Question) -> Answer:
        """Return what this person answers."""
        return self.answer


class ContraryUser:
    """Says the opposite of what a person with these weights means."""

    def __init__(self, weights: ArrayLike, precision: float = 0.0) -> None:
        self._honest = LinearUser(weights, precision)

    def __call__(self, question: Question) -> Answer:
        """Return what this person answers."""
        return self._honest(question).swapped


class DriftingUser:
    """Changes their mind: the weights move from ``before`` to ``after`` over the first ``questions`` answers."""

    def __init__(self, before: ArrayLike, after: ArrayLike, questions: int = 20, precision: float = 0.0) -> None:
        self.before, self.after = _checked_weights(before), _checked_weights(after)
        self.questions, self.precision, self.asked = questions, precision, 0

    def __call__(self, question: Question) -> Answer:
        """Return what this person answers."""
        share = min(1.0, self.asked / self.questions)
        self.asked += 1
        weights = (1 - share) * self.before + share * self.after
        return _verdict(float(weights @ question.difference), self.precision)


class ConcaveUser:
    """Values the first bit of each gain more than the last: worth = sum w_j * V_j ** power, with power < 1."""

    def __init__(self, weights: ArrayLike, power: float = 0.5, precision: float = 0.0) -> None:
        if not 0 < power <= 1:
            raise ArgumentError(f"the power of a concave person lies between 0 and 1; {power!r} was given")
        self.weights, self.power, self.precision = _checked_weights(weights), power, precision

    def worth(self, value: ArrayLike) -> float:
        """Return the (non-linear) personalised value."""
        return float(self.weights @ np.maximum(np.asarray(value), 0.0) ** self.power)

    def __call__(self, question: Question) -> Answer:
        """Return what this person answers."""
        return _verdict(self.worth(question.first.value) - self.worth(question.second.value), self.precision)
