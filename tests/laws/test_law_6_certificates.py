"""Law 6: nobody who fits the trusted answers loses more than the certificate says, for what people get."""

from __future__ import annotations

import numpy as np
import pytest

from tests.laws.asking import ASKING, PROBLEMS
from tests.strategies.people import random_catalogue
from tradeoff import PointSet, Recommendation
from tradeoff.problem import Problem
from tradeoff.strategies import Step, Strategy, elicitation
from tradeoff.testing.strategies import check_certificates, interview, simulated_person

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


@pytest.mark.parametrize("error_rate", [0.0, 0.15])
@pytest.mark.parametrize("limit", [15, 60])
def test_certificates_hold_where_rays_are_too_many(
    error_rate: float, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The certificate rests on trusted answers only, also when some of them do not fit into the list of rays."""
    monkeypatch.setattr(elicitation, "RAY_LIMIT", limit)
    for seed in range(6):
        for asking in CERTIFYING if error_rate == 0 else ["careful"]:
            check_certificates(
                asking, lambda seed=seed: random_catalogue(np.random.default_rng([6, seed]), 5, kind="sphere"), seed,
                error_rate=error_rate,
            )  # fmt: skip


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
    from tradeoff.testing.strategies import worst_regret

    checked = 0
    for seed in range(8):
        problem = random_catalogue(np.random.default_rng([4, seed]), 4, kind="sphere")
        person = simulated_person(problem, seed, error_rate=0.1)
        held = interview("careful", problem, person)
        said = held[-1].recommendation
        answers = [(i, m.question, m.reply) for i, m in enumerate(held[:-1], start=1) if i not in said.doubtful]
        found = [
            worst_regret(problem, [other for other in answers if other is not left_out], said.alternative.value)
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

        from tradeoff import Question

        yield Step(Question(optima[0], optima[1]), recommend, 1)
        return recommend()

    with pytest.raises(AssertionError, match="law 6"):
        check_certificates(boastful, PROBLEMS["catalogue"])
