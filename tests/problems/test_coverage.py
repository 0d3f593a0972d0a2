"""The law of a coverage: for all weights >= 0 the best of its plans is within what it guarantees, at every moment."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from tests.models import Arrays, all_policies, small_arrays
from tradeoff import (
    MDP,
    ArgumentError,
    Catalogue,
    Coverage,
    Interview,
    LinearRespondent,
    PointSet,
    ProblemError,
    cover,
    examples,
    load,
    save,
)
from tradeoff.covering import better_coverages
from tradeoff.problem import ScaledProblem
from tradeoff.testing.problems import check_problem


def weights_of_all_kinds(k: int, count: int, seed: int = 0) -> np.ndarray:
    """Draw weights everywhere on the simplex: inside, near its faces, on them, and at its corners."""
    rng = np.random.default_rng(seed)
    near = rng.dirichlet(np.full(k, 0.2), count // 2)
    on = rng.dirichlet(np.ones(k), count // 4) * (rng.random((count // 4, k)) < 0.6)
    drawn = np.concatenate([rng.dirichlet(np.ones(k), count // 4), near, on[on.sum(axis=1) > 0], np.eye(k)])
    return drawn / drawn.sum(axis=1, keepdims=True)


def check_guarantee(coverage: Coverage, weights: np.ndarray, best: np.ndarray) -> None:
    """``best`` is what the best possible plan is worth to each row."""
    got = (weights @ coverage.plans.values.T).max(axis=1)
    assert np.all(best - got <= coverage.slack)
    assert np.all(best - got <= coverage.guarantee * best + 1e-12 * (best <= 0))


def optimal_worth(problem: ScaledProblem, weights: np.ndarray) -> np.ndarray:
    return np.einsum("nk,nk->n", weights, np.array([a.value for a in problem.best(weights)]))


@settings(deadline=None, max_examples=25)
@given(small_arrays(), st.sampled_from([0.2, 0.02, 1e-5]), st.integers(0, 2**32 - 1))
def test_every_guarantee_on_the_way_holds_against_all_policies(arrays: Arrays, tolerance: float, seed: int) -> None:
    mdp = arrays.mdp()
    everything = mdp.gain_scale.gains(all_policies(arrays)[1])
    weights = weights_of_all_kinds(len(mdp.objectives), 400, seed) * np.array(mdp.matters)
    best = (weights @ everything.T).max(axis=1)
    for found in better_coverages(mdp, tolerance):
        check_guarantee(found, weights, best)
    assert found.guarantee <= tolerance or not any(mdp.matters)


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 5), st.integers(1, 25), st.booleans(), st.integers(0, 2**32 - 1))
def test_a_tight_coverage_is_the_convex_coverage_set(k: int, items: int, ties: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 4, (items, k)).astype(float) if ties else rng.random((items, k))
    catalogue = Catalogue(table)
    found = cover(catalogue, 1e-6)
    weights = weights_of_all_kinds(k, 400, seed)
    check_guarantee(found, weights, (weights @ catalogue.gains.T).max(axis=1))
    relevant = np.array(catalogue.matters)
    if relevant.any():
        assert found.guarantee <= 1e-6
        points = np.unique(catalogue.gains[:, relevant], axis=0)
        true = sum(is_best_by(points, i) > 1e-7 for i in range(len(points)))
        if not ties:  # several sets of plans are enough where plans tie
            assert true <= len(found.plans.values) <= sum(is_best_by(points, i) > -1e-9 for i in range(len(points)))


def is_best_by(points: np.ndarray, number: int) -> float:
    """Return by how much a point can be better than all others for some weights that sum to 1: a linear program."""
    others = np.delete(points, number, axis=0)
    if not len(others):
        return np.inf
    d = points.shape[1]
    rows = np.hstack([others - points[number], np.ones((len(others), 1))])
    result = linprog(
        np.r_[np.zeros(d), -1.0], A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=np.r_[np.ones(d), 0.0][None], b_eq=[1.0],
        bounds=[(0, None)] * d + [(None, None)],
    )  # fmt: skip
    return float(-result.fun)


@pytest.fixture(scope="module", params=examples())
def bundled(request: pytest.FixtureRequest) -> tuple[ScaledProblem, Coverage]:
    problem = load(request.param)
    return problem, cover(problem, 0.002)


def test_the_guarantee_of_bundled_problems_holds_for_ten_thousand_weights(
    bundled: tuple[ScaledProblem, Coverage],
) -> None:
    problem, found = bundled
    assert found.guarantee <= 0.002 and found.slack <= 0.002
    weights = weights_of_all_kinds(len(problem.objectives), 10_000)
    check_guarantee(found, weights, optimal_worth(problem, weights))


def test_a_coverage_keeps_the_laws_of_a_problem(bundled: tuple[ScaledProblem, Coverage]) -> None:
    check_problem(bundled[1], rows=15)


def test_a_file_gives_the_same_coverage_and_the_work_goes_on_from_it(
    bundled: tuple[ScaledProblem, Coverage], tmp_path: Path
) -> None:
    problem, found = bundled
    save(found, tmp_path / "compiled.npz")
    again = load(tmp_path / "compiled.npz")
    assert isinstance(again, Coverage)
    assert again.fingerprint == found.fingerprint
    assert (again.guarantee, again.slack) == (found.guarantee, found.slack)
    assert np.array_equal(again.origin, problem.origin) and np.array_equal(again.scale, problem.scale)
    continued = cover(again, 0.001)
    weights = weights_of_all_kinds(len(problem.objectives), 2_000)
    check_guarantee(continued, weights, optimal_worth(problem, weights))
    assert continued.guarantee <= 0.001
    assert np.array_equal(continued.plans.values[: len(found.plans.values)], found.plans.values)


def test_nothing_is_solved_again_when_a_finished_coverage_is_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    found = cover(load("vacuum"), 0.01)
    monkeypatch.setattr(MDP, "best", lambda *_: pytest.fail("solved"))
    again = cover(found, 0.01)
    assert again.guarantee == found.guarantee


@pytest.mark.parametrize("strategy", ["careful", "certified"])
def test_an_interview_on_a_coverage_solves_nothing(
    strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = load("commute")
    save(cover(problem, 0.005), tmp_path / "compiled.npz")
    compiled = load(tmp_path / "compiled.npz")
    weights = np.array([3.0, 1.0, 1.0, 0.5, 0.2])
    person = LinearRespondent.scaled(problem, weights, precision=0.001)
    with monkeypatch.context() as without:
        without.setattr(type(problem.solver), "optimal_outcomes", lambda *_: pytest.fail("solved"))
        without.setattr(type(problem.solver), "optimal_values", lambda *_: pytest.fail("solved"))
        interview = Interview(compiled, strategy)
        while question := interview.ask():
            interview.tell(person(question))
        advice = interview.recommendation
    best = float(optimal_worth(problem, weights[None])[0])
    assert advice.regret_bound is not None
    assert 1 - weights @ advice.option.value / best <= advice.regret_bound  # against the best of all plans
    assert advice.regret_bound >= compiled.slack  # what the coverage leaves open is in every bound
    assert len(compiled.show(advice.option).trajectories) >= 1
    assert compiled.details(advice.option.plan).situations


def test_the_slack_of_the_problem_is_part_of_the_guarantee() -> None:
    points = np.random.default_rng(0).random((40, 3))
    rough = PointSet(lambda w: points[np.argmax(points @ w)], ["a", "b", "c"], gap=0.05)
    found = cover(rough, 0.01)
    assert found.guarantee > 0.05 and found.slack >= 0.05  # and the search ended all the same
    with pytest.raises(ProblemError, match="exists only in the program"):
        _ = found.storable_model


def test_a_limit_on_corners_leaves_a_true_guarantee(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tradeoff.covering.CORNER_LIMIT", 60)
    problem = load("commute")
    found = cover(problem, 1e-4)
    assert found.guarantee > 1e-4
    weights = weights_of_all_kinds(5, 2_000)
    check_guarantee(found, weights, optimal_worth(problem, weights))


def test_bad_tolerances_and_problems_are_refused() -> None:
    for tolerance in (0.0, 1.0, -1, float("nan"), "x"):
        with pytest.raises(ArgumentError, match="the tolerance is"):
            cover(load("coffee"), tolerance)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="cannot be covered"):
        cover(object())  # type: ignore[arg-type]


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "compiled.npz"
    save(cover(load("dependent"), 0.01), path)
    with np.load(path) as file:
        arrays = dict(file)
    (header,) = (bytes(arrays["coverage"]).decode(),)

    def refused(match: str, **changes: np.ndarray) -> None:
        np.savez(path, **arrays | changes)
        with pytest.raises(ProblemError, match=match):
            load(path)

    def text(changed: str) -> np.ndarray:
        return np.frombuffer(changed.encode(), np.uint8)

    refused("another model", coverage=text(header.replace('"fingerprint": "', '"fingerprint": "0')))
    refused("this version reads", coverage=text(header.replace("coverage/1", "coverage/9")))
    refused("must have a number from 0 to 1", coverage=text(header.replace('"slack": ', '"slack": -1, "other": ')))
    refused("negative or not finite", coverage_plan_values=-arrays["coverage_plan_values"])
    refused("1 is the most", coverage_plan_values=2 * arrays["coverage_plan_values"] + 1)
    refused("numbers per row", coverage_plan_weights=arrays["coverage_plan_weights"][:, :1].copy())
    refused("differ", coverage_plan_weights=arrays["coverage_plan_weights"][1:])


@pytest.mark.parametrize("name", ["commute", "coffee"])
@pytest.mark.parametrize("lie", ["a smaller guarantee", "fewer plans", "fewer plans and points of the proof"])
def test_a_guarantee_is_checked_not_believed(name: str, lie: str, tmp_path: Path) -> None:
    path = tmp_path / "compiled.npz"
    save(cover(load(name), 0.05), path)
    arrays = dict(np.load(path))
    header = json.loads(arrays["coverage"].tobytes())
    if lie == "a smaller guarantee":
        header["guarantee"] = 0.0
    else:
        worst = [int(arrays["coverage_plan_values"].sum(axis=1).argmin())]
        for part in ("values", "weights"):
            arrays[f"coverage_plan_{part}"] = arrays[f"coverage_plan_{part}"][worst]
        header["guarantee"] = 1e-6
    if lie == "fewer plans and points of the proof":
        for part in ("values", "weights", "most"):
            arrays[f"coverage_proof_{part}"] = arrays[f"coverage_proof_{part}"][:0]
    arrays["coverage"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(tmp_path / "lying.npz", **arrays)
    assert load(path).guarantee > 0
    with pytest.raises(ProblemError, match="of the best possible gain for some weights, but it says at most"):
        load(tmp_path / "lying.npz")
