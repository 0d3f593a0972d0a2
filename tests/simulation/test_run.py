"""Laws of simulation: any row alone, any division, any number of processes, any interruption: the same rows."""

from __future__ import annotations

import json
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib._parallel_backends import ThreadingBackend

import tradeoff
from tests import processes
from tests.messages import refused
from tests.simulation.rows import assert_same_rows
from tradeoff import simulation
from tradeoff.errors import ArgumentError
from tradeoff.evidence import possible_replies
from tradeoff.model import Asks, Option, Question, Recommendation
from tradeoff.problem import Problem
from tradeoff.simulation import KINDS, Results, Settings, interview_respondents, read_results, run
from tradeoff.simulation.respondents import regret_of
from tradeoff.simulation.results import empty_rows, join_rows, part_path
from tradeoff.simulation.run import divide, first_replies, respondent_at

COFFEE = tradeoff.load("coffee")
# Four catalogues, so that what their interviews have in common is computed once.
SMALL = [
    tradeoff.Catalogue(np.random.default_rng(seed).random((size, k)).round(2))
    for seed, size, k in ((1, 4, 2), (2, 12, 2), (3, 9, 3), (4, 30, 3))
]
# The paper's strategy takes the least time, and most of what is tested here does not depend on it.
simulate = partial(simulation.simulate, strategy="paper")


# --- one by one and together ------------------------------------------------------------------------------------------


def interview_alone(problem: Problem, index: int, given: Settings) -> Results:
    """Return a respondent's row by the book: one respondent, one strategy, one answer after the other."""
    respondent, running = respondent_at(problem, index, given), given.begin(problem)
    try:
        step = next(running)
        while True:
            step = running.send(respondent(step.question))
    except StopIteration as end:
        found: Recommendation = end.value
    rows = empty_rows(1, len(problem.objectives))
    equal, nothing = problem.best(np.ones((1, len(problem.objectives))))[0], float("nan")
    for name, cell in {
        "index": index, "weights": respondent.weights, "questions": found.questions,
        "regret": regret_of(problem, respondent, found.option), "baseline": regret_of(problem, respondent, equal),
        "complete": found.complete, "reason": str(found.reason), "errors": respondent.errors, "seconds": 0.0,
        "bound": found.regret_bound, "robust": found.robust_bound, "likely_worst": found.likely_worst,
        "likely_regret": found.likely_regret, "target": found.target,
    }.items():  # fmt: skip
        rows[name] = nothing if cell is None else cell
    return rows


STRATEGIES: list[tuple[str, dict[str, Any]]] = [
    ("paper", {}),
    ("paper", {"basis": "spanner"}),
    ("certified", {}),
    ("careful", {}),
    ("careful", {"questions": "best-worst-4"}),
    ("certified", {"questions": "best-worst-4"}),
]


@settings(max_examples=12)
@given(
    problem=st.sampled_from(SMALL),
    strategy=st.sampled_from(STRATEGIES),
    kind=st.one_of(st.just("exact"), st.sampled_from(sorted(KINDS))),
    error_rate=st.sampled_from([0.0, 0.0, 0.2, 1.0]),
    precision=st.sampled_from([0.0, 0.01, 0.2]),
    most=st.sampled_from([None, None, 0, 3]),
    seed=st.integers(0, 3),
    cuts=st.lists(st.integers(0, 6), max_size=2),
)
def test_together_everybody_gets_the_row_that_they_get_alone(
    problem: Problem, strategy: tuple[str, dict[str, Any]], kind: str, error_rate: float, precision: float,
    most: int | None, seed: int, cuts: list[int],
) -> None:  # fmt: skip
    name, options = strategy
    given = Settings(precision, name, error_rate, seed, most, options, kind)
    expected = join_rows([interview_alone(problem, index, given) for index in range(6)])
    assert_same_rows(interview_respondents(problem, range(6), given), expected)
    order = np.random.default_rng(seed).permutation(6)
    parts = [part.tolist() for part in np.split(order, sorted(cuts)) if len(part)]
    assert_same_rows(join_rows([interview_respondents(problem, part, given) for part in parts]), expected)


def test_a_compiled_problem_gives_the_rows_of_its_coverage() -> None:
    coverage = tradeoff.cover(SMALL[2], tolerance=0.05)
    given = Settings(strategy="certified", error_rate=0.1)
    expected = join_rows([interview_alone(coverage, index, given) for index in range(8)])
    assert_same_rows(interview_respondents(coverage, range(8), given), expected)


def test_respondents_with_identical_answers_share_the_computation(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[object] = []
    begin = Settings.begin
    monkeypatch.setattr(Settings, "begin", lambda *given: begun.append(given) or begin(*given))
    rows = interview_respondents(SMALL[3], range(400), Settings(strategy="certified"))
    assert len(begun) < 100 and rows.questions.sum() > 10 * len(begun)


def test_the_seconds_add_up_to_the_time_that_was_spent() -> None:
    begin = time.perf_counter()
    rows = interview_respondents(SMALL[3], range(40), Settings(strategy="paper"))
    spent = time.perf_counter() - begin
    assert (rows.seconds > 0).all() and rows.seconds.sum() <= spent


@given(
    worth=st.lists(
        st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.3, 1.0]), min_size=4, max_size=4), min_size=1, max_size=5
    ),
    precision=st.sampled_from([0.0, 0.1, 0.2]),
    asked=st.sampled_from([(2, "best"), (3, "best"), (4, "best"), (3, "best-worst"), (4, "best-worst")]),
)
def test_many_reply_to_a_question_as_each_would(
    worth: list[list[float]], precision: float, asked: tuple[int, Asks]
) -> None:
    count, asks = asked
    rows, question = np.array(worth)[:, :count], Question((Option([0.0]),) * count, asks)
    found = [question.replies[place] for place in first_replies(rows, precision, question).tolist()]
    assert found == [possible_replies(row, precision, asks)[0] for row in rows]


@given(count=st.integers(1, 60), size=st.integers(1, 20), k=st.integers(1, 4))
def test_everybody_is_in_exactly_one_part(count: int, size: int, k: int) -> None:
    parts = list(divide(np.random.default_rng(0).random((count, k)).round(1), size))
    assert sorted(index for part in parts for index in part) == list(range(count))
    assert all(min(size, count) / 2 <= len(part) + 1 and len(part) <= size for part in parts)


# --- processes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["coffee", "commute"])
def test_processes_change_nothing_but_the_seconds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = tradeoff.load(name)
    expected = simulate(problem, 40, error_rate=0.05, jobs=1)
    assert expected.results.index.tolist() == list(range(40))
    monkeypatch.setattr(run, "ALONE", 0.0)
    for smallest in (3, 30):
        monkeypatch.setattr(run, "SMALLEST_PART", smallest)
        assert_same_rows(simulate(problem, 40, error_rate=0.05, jobs=2).results, expected.results)
    assert_same_rows(simulate(problem, 15, error_rate=0.05, jobs=1).results, expected.results[:15])


def test_a_dask_cluster_gives_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    import distributed

    expected = simulate(COFFEE, 50, jobs=1).results
    monkeypatch.setattr(run, "ALONE", 0.0)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        assert joblib.effective_n_jobs(None) == 2
        assert_same_rows(simulate(COFFEE, 50).results, expected)


def test_all_that_a_back_end_has_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray's back end has the processors of its cluster, but is as large as one processor unless it is asked for all."""
    together, rows = threading.Barrier(5), simulate(COFFEE, 50, jobs=1).results

    class Cluster(ThreadingBackend):  # type: ignore[misc]  # joblib has no types
        def effective_n_jobs(self, n_jobs: int) -> int:
            return 5 if n_jobs == -1 else int(super().effective_n_jobs(n_jobs))

    def interview(problem: Problem, indices: list[int], settings: Settings) -> Results:
        together.wait(processes.PATIENCE)  # until all five are at work
        return rows[indices]

    monkeypatch.setattr(run, "interview_respondents", interview)
    monkeypatch.setattr(run, "ALONE", 0.0)
    monkeypatch.setattr(run, "divide", lambda *_: [list(range(first, 50, 5)) for first in range(5)])
    joblib.register_parallel_backend("cluster", Cluster)
    with joblib.parallel_config(backend="cluster"):
        assert_same_rows(simulate(COFFEE, 50).results, rows)


def test_a_back_end_that_only_returns_lists_works() -> None:
    """Ray's is one; joblib's own multiprocessing back end behaves like it."""
    code = (
        "import joblib, tradeoff\n"
        "from tradeoff.simulation import run\n"
        "run.ALONE = 0.0\n"
        "with joblib.parallel_config(backend='multiprocessing', n_jobs=2):\n"
        "    print(run.simulate(tradeoff.load('coffee'), 50, strategy='paper').results.questions.tolist())"
    )
    done = processes.run([sys.executable, "-c", code], check=True)
    assert json.loads(done.stdout) == simulate(COFFEE, 50, jobs=1).results.questions.tolist()


# --- figures ----------------------------------------------------------------------------------------------------------


def test_regret_is_never_negative_and_small_without_errors() -> None:
    found = simulate(COFFEE, 200, precision=0.001, jobs=1)
    assert found.results.regret.min() >= 0.0 and found.results.baseline.min() >= 0.0
    summary = found.summary()
    assert summary.regret.mean < 0.01 < summary.baseline.mean
    assert summary.complete == 1.0 and summary.bound is None and summary.exceeded == {}
    assert 0 < summary.seconds_per_respondent < 1 and summary.precomputation > 0
    assert summary.questions.p50 <= summary.questions.p95 <= summary.questions.worst
    assert not found.results.errors.any()


def test_errors_and_budgets_are_counted() -> None:
    found = simulate(COFFEE, 100, error_rate=0.2, max_questions=10, jobs=1).results
    assert found.questions.max() <= 10
    assert not found.complete.all() and "budget of 10" in found.reason[0]
    assert 0.1 < found.errors.sum() / found.questions.sum() < 0.3


# --- interruptions ----------------------------------------------------------------------------------------------------


def test_an_interrupted_run_skips_what_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(done: int, total: int) -> None:
        assert total == 80
        if done >= 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(COFFEE, 80, jobs=1, out=tmp_path / "rows", progress=stop)
    before, asked = read_results(tmp_path / "rows"), list[int]()
    assert 30 <= len(before) < 80
    with refused(ArgumentError, "respondents is 80 there and 90 here"):
        simulate(COFFEE, 90, jobs=1, out=tmp_path / "rows")
    interview = interview_respondents

    def observed(problem: Problem, indices: list[int], settings: Settings) -> Results:
        asked.extend(indices)
        return interview(problem, indices, settings)

    monkeypatch.setattr(run, "interview_respondents", observed)
    seen: list[int] = []
    after = simulate(COFFEE, 80, jobs=1, out=tmp_path / "rows", progress=lambda done, _: seen.append(done)).results
    assert seen[0] == len(before) and seen[-1] == 80 and seen == sorted(seen)
    assert sorted([*asked, *before.index.tolist()]) == list(range(80)), "only the rest is asked"
    assert after.seconds[before.index].tolist() == before.seconds.tolist()
    assert_same_rows(after, simulate(COFFEE, 80, jobs=1).results)
    asked.clear()
    assert_same_rows(simulate(COFFEE, 80, jobs=1, out=tmp_path / "rows").results, after)
    assert not asked


def test_a_damaged_part_can_be_removed_and_simulated_again(tmp_path: Path) -> None:
    expected, first = simulate(COFFEE, 40, jobs=1, out=tmp_path / "rows").results, part_path(tmp_path / "rows", 0)
    first.write_bytes(first.read_bytes()[:300])
    with refused(ArgumentError, first, "remove it"):
        simulate(COFFEE, 40, jobs=1, out=tmp_path / "rows")
    first.unlink()
    assert_same_rows(simulate(COFFEE, 40, jobs=1, out=tmp_path / "rows").results, expected)


def test_nonsense_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    for wrong, *facts in [
        ({"respondents": 0}, "respondents", 0),
        ({"respondents": True}, "respondents", True),
        ({"jobs": 0}, "jobs", 0),
        ({"precision": -1.0}, "precision", -1.0),
        ({"precision": float("nan")}, "precision", "nan"),
        ({"error_rate": 1.5}, "error rate", 1.5),
        ({"seed": -1}, "seed", -1),
        ({"max_questions": -1}, "max_questions", -1),
        ({"strategy": "guess"}, "'guess'", "careful", "certified", "paper"),
        ({"kind": "nobody"}, "'nobody'", "exact"),
        ({"nonsense": 1}, "nonsense"),
        ({"basis": "other"}, "basis", "'other'"),
    ]:
        with refused(ArgumentError, *facts):
            simulate(COFFEE, out=tmp_path / "rows", **wrong)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_a_problem_in_which_nothing_matters_is_refused() -> None:
    with pytest.raises(ArgumentError, match="nothing to ask"):
        simulate(tradeoff.Catalogue([[1.0, 2.0], [1.0, 2.0]]), 5)
