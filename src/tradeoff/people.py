"""Simulated people as people are: who err near ties, tire, favour a side, change their minds, or weigh nothing linearly.

A ``Person`` has a taste (what alternatives are worth to them) and habits (what they say of it). ``KINDS`` are populations of
them, by name: ``simulate(people=...)``, ``tradeoff simulate --people`` and ``benchmarks/people.py`` use the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, log
from typing import Literal, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike

from tradeoff.errors import ArgumentError
from tradeoff.menus import AnyAnswer, AnyQuestion, Choice, Graded, Menu, has_ends, shapes
from tradeoff.model import Alternative, Answer, Matrix, Question, Vector
from tradeoff.problem import SAME, Problem
from tradeoff.users import LinearUser, _checked_weights, _chosen, _verdict, relative_regret

Shape: TypeAlias = Literal["linear", "concave", "multiplicative", "threshold", "Chebyshev", "lexicographic"]

MUCH = (0.03, 0.3)  # where people draw the line between a little and a lot better, evenly on a logarithmic scale
MUST = 0.6  # of the most that is attainable in their main objective, or it is worth half to a person with a threshold
OTHER_ANSWERS = {answer: [other for other in Answer if other is not answer] for answer in Answer}


@dataclass(frozen=True)
class Habits:
    """How somebody answers. Amounts are shares of what the best alternative is worth to them.

    ``precision``: what they do not notice. ``uneven``: how much that differs from question to question (the deviation of its
    logarithm). ``logistic`` and ``thurstone``: the scale of noise in a difference, the deviation of noise in each alternative.
    ``favours_first``: how much they favour what is shown first. ``slips``: how often another answer is given, whichever;
    ``flips``: how often the opposite. ``tiring``: by how much slips grow with each answer. ``changes_after``: how many answers
    come before their weights are others. ``much``: what must be felt to be called a lot better, where that is said; None:
    everybody has a line of their own. ``fickle``: how much that line moves from question to question (as in ``uneven``).
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
    much: float | None = None
    fickle: float = 0.0


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
    "lavish": Kind(Habits(much=0.0)),  # as exact, but for what they call a lot better: everything,
    "sparing": Kind(Habits(much=1.0)),  # nothing at all,
    "fickle": Kind(Habits(fickle=1.0)),  # now this and now that
    "concave": Kind(shape="concave"),
    "multiplicative": Kind(shape="multiplicative"),
    "threshold": Kind(shape="threshold"),
    "chebyshev": Kind(shape="Chebyshev"),
    "lexicographic": Kind(shape="lexicographic"),
}


class Taste:
    """What alternatives of a problem are worth to somebody: 1 for the best."""

    def __init__(self, problem: Problem, weights: ArrayLike, shape: Shape = "linear") -> None:
        self.weights: Vector = _checked_weights(weights) / np.sum(weights)
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
                    "choose a catalogue, or people whose tastes are linear"
                )
            largest = float(self.all(gains).max())
        self._scale = 1 / largest if largest > 0 else 1.0

    def __call__(self, value: ArrayLike) -> float:
        """Return what an alternative with these gains is worth."""
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

    def gap(self, question: Question, precision: float) -> float:
        """Return by how much the first is worth more than the second; a lexicographic person looks at one objective.

        That is the most important one in which the two differ by more than the precision.
        """
        if self.shape != "lexicographic":
            return self(question.first.value) - self(question.second.value)
        difference = question.difference / self._most
        for j in np.argsort(-self.weights, kind="stable"):
            if abs(difference[j]) > precision:
                return float(difference[j])
        return 0.0


class Person:
    """Somebody with a taste and habits, who answers questions.

    >>> import tradeoff
    >>> problem = tradeoff.load("coffee")
    >>> someone = Person(problem, [3, 1, 2, 1, 0.5], KINDS["logistic-10"], seed=1)
    >>> round(someone.regret(problem.best([someone.weights])[0]), 12)
    0.0
    """

    def __init__(
        self,
        problem: Problem,
        weights: ArrayLike,
        kind: Kind,
        seed: int,
        later: ArrayLike | None = None,
        strengths: bool = False,
    ) -> None:
        """``later`` are the weights of those who change their minds, for what they choose in the end.

        With ``strengths`` they add by how much they prefer something; what they prefer is the same without.
        """
        self.kind, self._random = kind, np.random.default_rng(seed)
        self._words = (
            np.random.default_rng([seed, 1]) if strengths else None
        )  # of its own, so that nothing else changes
        self.much = kind.habits.much
        if self._words is not None and self.much is None:
            self.much = float(np.exp(self._words.uniform(*np.log(MUCH))))
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

    def regret(self, alternative: Alternative) -> float:
        """Return the share of what the best is worth to this person that they lose with this one."""
        lost = 1.0 - self.now(alternative.value)
        return 0.0 if abs(lost) <= SAME else lost

    @overload
    def __call__(self, question: Question) -> Answer | Graded: ...
    @overload
    def __call__(self, question: AnyQuestion) -> AnyAnswer: ...
    def __call__(self, question: AnyQuestion) -> AnyAnswer:
        """Return what this person answers."""
        habits, random = self.kind.habits, self._random
        self.asked += 1
        if isinstance(question, Menu):
            return self._to_menu(question)
        gap = felt = self.now.gap(question, habits.precision)
        least = habits.precision
        meant = said = _verdict(gap, least)
        if habits.uneven:
            said = _verdict(gap, least * exp(random.normal(0.0, habits.uneven)))
        if habits.logistic:
            share = random.random()
            said = _verdict(felt := gap + habits.logistic * log(max(share, 1e-12) / max(1 - share, 1e-12)), least)
        if habits.thurstone:
            said = _verdict(felt := gap + habits.thurstone * float(np.diff(random.normal(size=2))[0]), least)
        if habits.favours_first:
            said = _verdict(felt := gap + habits.favours_first, least)
        if random.random() < habits.flips:
            said = said.swapped
        if random.random() < habits.slips + habits.tiring * (self.asked - 1):
            said = OTHER_ANSWERS[said][random.integers(2)]
        self.errors += said is not meant
        return self._graded(said, abs(felt))

    def _graded(self, said: Answer | Choice, felt: float) -> AnyAnswer:
        """Return an answer with its strength, by what was felt between the two; who slips says of the slip what was felt."""
        if self._words is None or self.much is None or not has_ends(said):
            return said
        line = self.much * exp(self._words.normal(0.0, self.kind.habits.fickle))
        return Graded(said, "a lot" if felt > line else "a little")

    def _to_menu(self, menu: Menu) -> AnyAnswer:
        """Return the reply to a menu: noise is felt of each alternative, so that two of them compare as in a pair."""
        habits, random, size = self.kind.habits, self._random, len(menu.alternatives)
        worth = self.now.all(menu.values)
        meant = _chosen(worth, habits.precision, menu)
        felt = worth + habits.thurstone * random.normal(size=size) + habits.logistic * random.gumbel(size=size)
        felt[0] += habits.favours_first
        if random.random() < habits.flips:
            felt = -felt
        said = _chosen(felt, habits.precision * exp(random.normal(0.0, habits.uneven)), menu)
        if random.random() < habits.slips + habits.tiring * (self.asked - 1):
            others = [other for other in shapes(size, menu.asks) if other != said]
            said = others[random.integers(len(others))]
        self.errors += said != meant
        return self._graded(said, float(np.ptp(felt)))


def kind_of(name: str, precision: float | None = None, slips: float = 0.0) -> Kind:
    """Return a kind by its name, with another precision and more slips where they are given.

    >>> kind_of("slips-10", precision=0.05, slips=0.1).habits.slips
    0.2
    """
    if name not in KINDS:
        raise ArgumentError(f"there are no people of the kind {name!r}; there are {', '.join(KINDS)}")
    kind = KINDS[name]
    least = kind.habits.precision if precision is None else precision
    return replace(kind, habits=replace(kind.habits, precision=least, slips=kind.habits.slips + slips))


def person_of(problem: Problem, kind: str, *seed: int, strengths: bool = False) -> Person:
    """Return a person of a kind with weights drawn evenly: everything about them follows from the seed.

    >>> import tradeoff
    >>> person_of(tradeoff.load("coffee"), "tired", 4).kind.habits.tiring
    0.015
    """
    taste, noise = np.random.SeedSequence(seed).spawn(2)
    drawn = np.random.default_rng(taste).dirichlet(np.ones(len(problem.objectives)))
    return Person(problem, drawn, kind_of(kind), int(noise.generate_state(1, np.uint64)[0]), strengths=strengths)


def regret_of(problem: Problem, user: LinearUser | Person, alternative: Alternative) -> float:
    """Return the share of what the best is worth to somebody that they lose with this one."""
    return user.regret(alternative) if isinstance(user, Person) else relative_regret(problem, user, alternative)
