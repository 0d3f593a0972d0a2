"""The laws of a strategy, to be run against your own.

    from tradeoff.testing.strategies import check_strategy

    def test_my_strategy():
        check_strategy(my_strategy)

Every check takes a function that makes the problem, so that nothing is found in a cache: laws must hold for the first
person who is asked as well as for the second. A law that does not hold raises an AssertionError that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tradeoff.errors import ArgumentError
from tradeoff.evidence import Answer, half_spaces
from tradeoff.mdp.model import MDP
from tradeoff.model import (
    NOTHING,
    SKIP,
    Criterion,
    Objective,
    Option,
    Question,
    Recommendation,
    Reference,
    Reply,
    Vector,
)
from tradeoff.problem import Problem, slack_of, weight_rows
from tradeoff.problems.catalogue import Catalogue
from tradeoff.problems.pointset import PointSet
from tradeoff.simulation.respondents import LinearRespondent
from tradeoff.strategies import AnyStrategy, Step, start
from tradeoff.strategies.cone import Cone

MakeProblem = Callable[[], Problem]
Person = Callable[[Question], Reply]
Optimum = Callable[[Vector], float]  # what the best option is worth, for weights on gains

ROUNDING = 1e-9  # what a bound may be exceeded by: the rounding of sums of products
RAYS = 100_000  # beyond so many the exact worst case is not checked
EVERYTHING = 2_000  # questions that no strategy may need


# --- problems and people ----------------------------------------------------------------------------------------------


def small_problems(seed: int = 0) -> dict[str, MakeProblem]:
    """Return functions that make a small catalogue, an MDP and a point set, by name."""

    def catalogue() -> Catalogue:
        points = np.abs(np.random.default_rng([seed, 1]).normal(size=(40, 3)))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        return Catalogue(points, reference=Reference("nothing", {f"objective {j + 1}": 0.0 for j in range(3)}))

    def mdp() -> MDP:
        rng = np.random.default_rng([seed, 2])
        moves = rng.dirichlet(np.full(6, 0.3), (6, 3))
        return MDP.from_arrays(moves, rng.random((6, 3, 3)) ** 3, horizon=4, prune=False)

    def point_set() -> PointSet:
        points = np.random.default_rng([seed, 3]).random((25, 3))
        return PointSet(lambda weights: points[int((points @ weights).argmax())], ["a", "b", "c"], gap=0.0)

    return {"catalogue": catalogue, "MDP": mdp, "point set": point_set}


def simulated_person(problem: Problem, seed: int, precision: float = 0.01, error_rate: float = 0.0) -> LinearRespondent:
    """Return somebody with random weights whose best option is worth 1."""
    weights = np.random.default_rng([seed, 4]).dirichlet(np.ones(len(problem.objectives)))
    return LinearRespondent.scaled(problem, weights, precision, error_rate, seed)


@dataclass(frozen=True)
class Moment:
    """What a strategy said before a question was answered, or (without a question) at the end."""

    recommendation: Recommendation
    question: Question | None
    left: int | None
    reply: Reply = SKIP


def interview(
    strategy: AnyStrategy, problem: Problem, person: Person, *, limit: int = EVERYTHING, **options: Any
) -> list[Moment]:
    """Return all moments of an interview; an AssertionError if it does not end within ``limit`` questions."""
    running = start(strategy, problem, **options)
    moments: list[Moment] = []
    try:
        step: Step = next(running)
        while len(moments) < limit:
            reply = person(step.question)
            moments.append(Moment(step.recommend(), step.question, step.left, reply))
            step = running.send(reply)
    except StopIteration as end:
        assert isinstance(end.value, Recommendation), f"a strategy returns a Recommendation, not {end.value!r}"
        return [*moments, Moment(end.value, None, 0)]
    raise AssertionError(f"law 4: the strategy did not end within {limit} questions")


# --- the laws ---------------------------------------------------------------------------------------------------------


def check_strategy(
    strategy: AnyStrategy, problems: Mapping[str, MakeProblem] | None = None, *, people: int = 3, **options: Any
) -> None:
    """Raise an AssertionError unless the strategy keeps laws 3, 4, 6 and 7 on these problems.

    Law 3: the same replies give the same questions and recommendation, bit for bit. Law 4: it ends within the number of
    questions it announces, whatever is skipped. Law 6: no certificate is exceeded by anybody who fits the answers. Law 7:
    units and the order of objectives do not matter.
    """
    for name, make in (small_problems() if problems is None else problems).items():
        for seed in range(people):
            try:
                check_replay(strategy, make, seed, **options)
                check_ends(strategy, make, seed, **options)
                check_certificates(strategy, make, seed, **options)
                check_units(strategy, make, seed, **options)
            except AssertionError as error:
                raise AssertionError(f"{error} (problem {name!r}, person {seed})") from error


def check_replay(strategy: AnyStrategy, make: MakeProblem, seed: int = 0, **options: Any) -> None:
    """Raise an AssertionError unless a fresh problem and the same replies give the same interview (law 3)."""
    problem = make()
    first = interview(strategy, problem, sometimes_skipping(simulated_person(problem, seed), seed), **options)
    replies = iter([moment.reply for moment in first])
    for again_on in (make(), problem):  # nothing in a cache, and everything
        replies = iter([moment.reply for moment in first])
        again = interview(strategy, again_on, lambda question, replies=replies: next(replies), **options)  # type: ignore[misc]
        assert len(again) == len(first), f"law 3: {len(again) - 1} questions in the replay, {len(first) - 1} before"
        for number, (one, two) in enumerate(zip(first, again, strict=True), start=1):
            if one.question is not None and two.question is not None:
                assert one.question.key == two.question.key, f"law 3: question {number} is another one in the replay"
            assert _said(one.recommendation) == _said(two.recommendation), (
                f"law 3: the recommendation at question {number} is another one in the replay"
            )


def check_ends(strategy: AnyStrategy, make: MakeProblem, seed: int = 0, skips: float = 0.2, **options: Any) -> None:
    """Raise an AssertionError unless the announced number of questions falls with each one, answered or skipped (law 4)."""
    problem = make()
    person = simulated_person(problem, seed)
    for share in (0.0, skips):
        held = interview(strategy, problem, sometimes_skipping(person, seed, share), **options)
        for number, (one, two) in enumerate(pairwise(held), start=1):
            if one.left is not None and two.left is not None:
                assert two.left <= one.left - 1, (
                    f"law 4: before question {number} at most {one.left} were announced, after it {two.left}"
                )
        asked = len(held) - 1
        assert held[-1].recommendation.questions == asked, (
            f"law 4: {asked} questions were asked, {held[-1].recommendation.questions} are reported"
        )


def check_certificates(
    strategy: AnyStrategy,
    make: MakeProblem,
    seed: int = 0,
    *,
    precision: float = 0.01,
    error_rate: float = 0.0,
    optimum: Optimum | None = None,
    **options: Any,
) -> None:
    """Raise an AssertionError if anybody who fits the answers loses more than the certificate says (law 6).

    The worst case is worked out anew, over the extreme rays of all (weights, precision) that fit the answers without the
    doubtful ones. ``optimum(weights)`` is the true largest worth; without it, that of ``problem.best``.
    """
    problem = make()
    person = simulated_person(problem, seed, precision, error_rate)
    answers: list[Answer] = []
    for number, moment in enumerate(interview(strategy, problem, person, **options), start=1):
        said = moment.recommendation
        if said.regret_bound is not None:
            trusted = [answer for answer in answers if answer.number not in (*said.doubtful, *said.unexplained)]
            found = worst_regret(problem, trusted, said.option.value, optimum)
            assert found is None or found <= said.regret_bound + ROUNDING, (
                f"law 6: before question {number} the certificate is {said.regret_bound:.3g}, but somebody who fits the "
                f"answers loses {found:.3g}"
            )
        if moment.question is not None and moment.reply != SKIP:
            answers.append(Answer(moment.question, moment.reply, number))


def worst_regret(
    problem: Problem, answers: list[Answer], value: Vector, optimum: Optimum | None = None
) -> float | None:
    """Return the largest relative regret of a value to anybody who fits the answers; None if that cannot be said."""
    k = len(problem.objectives)
    cone = Cone.orthant(k, 1.0, limit=RAYS)
    cone = cone.add_all((answer.number, half_spaces(*answer.certain_terms())) for answer in answers)
    if cone.empty or not cone.complete:
        return None
    weights = cone.rays[:, :-1]
    if optimum is None:
        best = np.array([w @ a.value for w, a in zip(weights, problem.best(weights), strict=True)])
    else:
        best = np.array([optimum(w) for w in weights])
    matters = best > ROUNDING  # all weight on objectives that cannot be changed: nothing can be lost
    return float(np.max(1 - weights[matters] @ value / best[matters], initial=0.0))


def check_units(
    strategy: AnyStrategy, make: MakeProblem, seed: int = 0, tolerance: float = 0.05, **options: Any
) -> None:
    """Raise an AssertionError unless units, goals and the order of objectives make no difference (law 7).

    In other units the same is asked and recommended. In another order ties and random choices may fall otherwise, so that
    the recommendation may be another one, but not one that the person likes less by more than ``tolerance``.
    """
    plain = make()
    person = simulated_person(plain, seed)
    before = interview(strategy, plain, person, **options)
    after = interview(strategy, InOtherUnits(make()), person, **options)
    assert len(before) == len(after), f"law 7: {len(before) - 1} questions, in other units {len(after) - 1}"
    for one, two in zip(before, after, strict=True):
        assert one.recommendation.option.value.tobytes() == two.recommendation.option.value.tobytes(), (
            "law 7: something else is recommended in other units"
        )
    order = np.random.default_rng([seed, 5]).permutation(len(plain.objectives))
    permuted = LinearRespondent(person.weights[order], person.precision)
    turned = interview(strategy, InAnotherOrder(make(), order), permuted, **options)[-1].recommendation
    loss = person.worth(before[-1].recommendation.option.value) - permuted.worth(turned.option.value)
    assert loss <= tolerance, f"law 7: with the objectives in another order the person loses {loss:.3g} more"


# --- problems made of others ------------------------------------------------------------------------------------------


class _Derived:
    """What a problem that is made of another one has in common with it."""

    def __init__(self, inner: Problem) -> None:
        self.inner = inner
        self.objectives = inner.objectives
        self.origin, self.scale, self.slack = inner.origin, inner.scale, slack_of(inner)
        self.fingerprint = f"{type(self).__name__} of {inner.fingerprint}"

    @property
    def nothing(self) -> Option:
        """The reference as an option worth exactly zero."""
        return Option(np.zeros(len(self.objectives)), NOTHING)

    def best(self, weights: ArrayLike) -> list[Option]:
        """Return one optimal option per row of weights."""
        return self.inner.best(weights)


class InOtherUnits(_Derived):
    """A problem whose objectives are measured in other units, and minimised where they were maximised."""

    def __init__(self, inner: Problem) -> None:
        super().__init__(inner)
        factor = -(2.0 ** np.arange(-3, len(inner.objectives) - 3))
        turned: dict[str, Any] = {"max": "min", "min": "max"}
        self.objectives = tuple(Objective(o.name, f"{o.unit}'", turned[o.goal]) for o in inner.objectives)
        self.origin, self.scale = inner.origin * factor, inner.scale * factor


class InAnotherOrder(_Derived):
    """A problem with its objectives in another order."""

    def __init__(self, inner: Problem, order: ArrayLike) -> None:
        super().__init__(inner)
        self.order = np.asarray(order)
        if sorted(self.order.tolist()) != list(range(len(inner.objectives))):
            raise ArgumentError(f"{order!r} is not an order of {len(inner.objectives)} objectives")
        self.objectives = tuple(inner.objectives[j] for j in self.order)
        self.origin, self.scale = inner.origin[self.order], inner.scale[self.order]

    def best(self, weights: ArrayLike) -> list[Option]:
        """Return one optimal option per row of weights."""
        rows = weight_rows(weights, self.objectives)[:, np.argsort(self.order)]
        return [Option(found.value[self.order], found.plan) for found in self.inner.best(rows)]


def sometimes_skipping(person: Person, seed: int, share: float = 0.1) -> Person:
    """Return a person who skips some of the questions."""
    random = np.random.default_rng([seed, 6])
    return lambda question: SKIP if random.random() < share else person(question)


def _said(recommendation: Recommendation) -> tuple[Any, ...]:
    """Return everything that must be the same in a replay, to be compared bit for bit."""

    def parts(values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            if isinstance(value, Criterion):
                yield from parts((value.weights, value.best, value.worst_case))
            else:
                value = value.value if isinstance(value, Option) else value
                yield value.tobytes() if isinstance(value, np.ndarray) else value

    return tuple(parts(vars(recommendation).values()))
