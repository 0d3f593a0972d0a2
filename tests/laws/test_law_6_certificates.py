"""Law 6: nobody who fits the trusted answers loses more than the certificate says, for what people get."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.laws.asking import ASKING, PROBLEMS
from tests.strategies.people import random_catalogue
from tradeoff import LinearRespondent, PointSet, Question, Recommendation, Reply
from tradeoff.evidence import QUESTIONS, Answer
from tradeoff.model import EQUAL
from tradeoff.problem import Problem
from tradeoff.strategies import Step, Strategy
from tradeoff.strategies.careful import Careful
from tradeoff.strategies.certified import Certified
from tradeoff.strategies.elicitation import elicit
from tradeoff.strategies.solutions import Certifier
from tradeoff.strategies.tuning import CAREFUL, CERTIFIED
from tradeoff.testing.strategies import check_certificates, interview, simulated_person, worst_regret

CERTIFYING = ["certified", "careful"]


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("asking", ASKING)
def test_certificates_hold(asking: str, problem: str) -> None:
    strategy, options = ASKING[asking]
    for seed in range(3):
        check_certificates(strategy, PROBLEMS[problem], seed, **options)


@pytest.mark.parametrize("asking", CERTIFYING)
@pytest.mark.parametrize("k", [3, 5])
def test_certificates_hold_in_deep_interviews(asking: str, k: int) -> None:
    """A tiny target and a fine precision: as many questions as the strategy ever asks."""
    for seed in range(2):
        check_certificates(
            asking, lambda seed=seed: random_catalogue(np.random.default_rng([k, seed]), k, kind="sphere"), seed,
            precision=1e-4, target=1e-5,
        )  # fmt: skip


@pytest.mark.parametrize(("limit", "error_rate"), [(15, 0.0), (60, 0.0), (15, 0.25), (40, 0.25)])
def test_certificates_hold_where_rays_are_too_many(limit: int, error_rate: float) -> None:
    """The certificate rests on trusted answers only, also when some of them do not fit into the list of rays (B2).

    If a cone were kept that has an answer which is doubtful now, seeds 2, 6 and 9 would be exceeded with 40 rays.
    """

    def careful(problem: Problem) -> Strategy:
        tuning = replace(CAREFUL, max_rays=limit)
        return elicit(Careful(problem, Certifier.of(problem), 0.01, False, "pairs", 0, tuning))

    def certified(problem: Problem) -> Strategy:
        tuning = replace(CERTIFIED, max_rays=limit)
        return elicit(Certified(problem, Certifier.of(problem), 0.01, False, "pairs", 0, tuning))

    for seed in range(10 if error_rate else 4):
        for asking in [certified, careful] if error_rate == 0 else [careful]:
            check_certificates(
                asking, lambda seed=seed: random_catalogue(np.random.default_rng([6, seed]), 5, kind="sphere"), seed,
                error_rate=error_rate,
            )  # fmt: skip


class NamesAnythingNear(LinearRespondent):
    """Names as best any option within the precision of the best, and as worst any within it of the worst.

    These two may be too close to tell apart, and the worst may even be the better one. With ``forced``, this respondent never
    says "about equal" of a menu.
    """

    forced = False

    def __call__(self, question: Question) -> Reply:
        if question.is_pair:
            return super().__call__(question)
        worth = question.values @ self.weights
        if np.ptp(worth) <= self.precision and not self.forced:
            return EQUAL
        replies = [
            reply
            for reply in question.replies
            if reply.best is not None
            and worth[reply.best] >= worth.max() - self.precision
            and (reply.worst is None or worth[reply.worst] <= worth.min() + self.precision)
        ]
        return replies[self._random.integers(len(replies))]


@pytest.mark.parametrize("questions", [name for name in QUESTIONS if name != "pairs"])
@pytest.mark.parametrize("asking", CERTIFYING)
def test_certificates_of_menus_hold_for_every_way_to_name_best_and_worst(asking: str, questions: str) -> None:
    """If the best were taken to beat the worst by more than the precision, some of these would be exceeded."""
    checked = 0
    for seed, precision in enumerate([0.0, 0.01, 0.05, 0.15, 0.15, 0.3, 0.3]):
        rng = np.random.default_rng([seed, 22])
        problem = random_catalogue(rng, 2 + seed % 2, items=15, kind="sphere")
        weights = LinearRespondent.scaled(problem, rng.dirichlet(np.ones(len(problem.objectives)))).weights
        person = NamesAnythingNear(weights, precision, seed=seed)
        person.forced = seed % 2 == 0
        worth = problem.gains @ weights
        for moment in interview(asking, problem, person, questions=questions, max_questions=8):
            said = moment.recommendation
            assert said.regret_bound is not None or asking == "careful"  # no reply contradicts another one
            if said.regret_bound is not None:
                checked += 1
                assert 1 - said.option.value @ weights / worth.max() <= said.regret_bound + 1e-9
    assert checked >= 10


def inexact(seed: int, k: int, gap: float) -> tuple[PointSet, np.ndarray]:
    """Return a point set whose optimiser misses the optimum by up to ``gap`` of the range, and all its points."""
    rng = np.random.default_rng([seed, k])
    points = np.abs(rng.normal(size=(400, k)))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    points = (points - points.min(axis=0)) / np.ptp(points, axis=0)

    def best(weights: np.ndarray) -> np.ndarray:
        worth = points @ weights
        near = np.flatnonzero(worth >= worth.max() - gap * np.abs(weights).max())
        if np.count_nonzero(weights) == 1:  # the ranges are right, so that gains are what they seem
            near = near[worth[near] == worth.max()]
        return points[near[worth[near].argmin()]]

    return PointSet(best, [f"objective {j + 1}" for j in range(k)]), points


@pytest.mark.parametrize("asking", CERTIFYING)
@pytest.mark.parametrize("k", [2, 3])
def test_certificates_hold_with_an_inexact_optimiser(asking: str, k: int) -> None:
    """The optimiser's gap (B5): every bound allows for what it may have missed."""
    for seed in range(6):
        points = inexact(seed, k, 8e-4)[1]
        check_certificates(
            asking, lambda seed=seed: inexact(seed, k, 8e-4)[0], seed,
            optimum=lambda weights, points=points: float((points @ weights).max()),
        )  # fmt: skip


def test_a_target_below_the_optimisers_gap_is_not_sought_for_ever() -> None:
    problem = inexact(0, 3, 8e-4)[0]
    assert problem.slack >= 8e-4
    held = interview("certified", problem, simulated_person(problem, 0, precision=1e-6), target=5e-4)
    said = held[-1].recommendation
    assert said.regret_bound is not None and said.regret_bound > 5e-4 and said.complete
    assert "no answer could prove more" in said.reason and len(held) < 18


def test_the_robust_bound_is_the_worst_without_any_one_answer() -> None:
    """Against the definition: each answer in turn is left out, and the worst case worked out anew."""
    checked = 0
    for seed in range(8):
        problem = random_catalogue(np.random.default_rng([4, seed]), 4, kind="sphere")
        person = simulated_person(problem, seed, error_rate=0.1)
        held = interview("careful", problem, person)
        said = held[-1].recommendation
        answers = [
            Answer(m.question, m.reply, i)
            for i, m in enumerate(held[:-1], start=1)
            if i not in (*said.doubtful, *said.unexplained)
        ]
        found = [
            worst_regret(problem, [other for other in answers if other is not left_out], said.option.value)
            for left_out in answers
        ]
        if said.robust_bound is not None and None not in found:
            checked += 1
            assert abs(max(found) - said.robust_bound) <= 1e-9  # type: ignore[type-var]
    assert checked >= 5


def test_the_check_finds_a_false_certificate() -> None:
    """What the tests above rely on."""

    def boastful(problem: Problem) -> Strategy:
        optima = problem.best(np.eye(len(problem.objectives)))
        weights = np.full(len(optima), 1 / len(optima))

        def recommend() -> Recommendation:
            return Recommendation(optima[0], weights, 0, "trust me", regret_bound=0.001)

        yield Step(Question((optima[0], optima[1])), recommend, 1)
        return recommend()

    with pytest.raises(AssertionError, match="law 6"):
        check_certificates(boastful, PROBLEMS["catalogue"])
