"""Laws of population runs: any row alone, any number of processes, any interruption: the same rows."""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from joblib._parallel_backends import ThreadingBackend

import tradeoff
from tests import processes
from tests.messages import refused
from tradeoff import population
from tradeoff.crowds import Waiting, Walked
from tradeoff.errors import ArgumentError, StoreError
from tradeoff.model import Reason
from tradeoff.population import exceeded_statements, run_user, user_of
from tradeoff.problem import Problem
from tradeoff.results import Parts, Results, Row, check_out, held, read_results, write_results
from tradeoff.users import LinearUser, relative_regret

COFFEE = tradeoff.load("coffee")
# The paper's strategy takes the least time, and what is tested here does not depend on it.
simulate = partial(population.simulate, strategy="paper")
Settings = partial(population.Settings, strategy="paper")


# Every process comes back after each interview: then there are as many rounds and parts as can be.
HASTY = (0.0,)


def timeless(results: Results) -> list[Row]:
    """Return the rows without the one column that no two runs share."""
    return [replace(results.row(i), seconds=0.0) for i in range(len(results))]


def test_a_users_best_is_worth_exactly_one() -> None:
    for problem in (COFFEE, tradeoff.load("dependent")):
        for index in range(20):
            user = user_of(problem, index, Settings(seed=7))
            (best,) = problem.best([user.weights])
            assert user.worth(best.value) == pytest.approx(1, abs=1e-14)
            assert user.weights.min() >= 0


def test_relative_regret_is_the_share_of_the_best_that_is_lost() -> None:
    problem = tradeoff.Catalogue([[4.0, 0.0], [0.0, 4.0], [2.0, 0.0], [0.0, 0.0]])
    for weights in ([1.0, 0.0], [7.0, 0.0]):
        user = LinearUser.scaled(problem, weights, precision=0.25, error_rate=0.5, seed=1)
        assert (user.precision, user.error_rate) == (0.25, 0.5)
        assert user.weights.tolist() == [1.0, 0.0]
        (best,) = problem.best([[1.0, 0.0]])
        (other,) = problem.best([[0.0, 1.0]])
        assert relative_regret(problem, user, best) == 0.0
        assert relative_regret(problem, LinearUser(weights), best) == 0.0
        assert relative_regret(problem, user, other) == 1.0
    flat = tradeoff.Catalogue([[1.0, 0.0], [1.0, 4.0]])
    lost = LinearUser.scaled(flat, [2.0, 0.0])  # nothing that matters to them can be changed
    assert lost.weights.tolist() == [2.0, 0.0] and relative_regret(flat, lost, flat.best([[0.0, 1.0]])[0]) == 0.0


def test_users_are_drawn_uniformly_and_independently() -> None:
    """Dirichlet(1) has mean 1/k and variance (k-1) / (k^2 (k+1))."""
    k = len(COFFEE.objectives)
    drawn = np.array([user_of(COFFEE, i, Settings(seed=1)).weights for i in range(2000)])
    shares = drawn / drawn.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares.mean(axis=0), 1 / k, atol=0.02)
    np.testing.assert_allclose(shares.var(axis=0), (k - 1) / (k * k * (k + 1)), rtol=0.15)
    assert len({row.tobytes() for row in shares}) == len(shares)


@pytest.mark.parametrize(
    "settings",
    [Settings(seed=3), Settings(error_rate=0.1, seed=5, max_questions=12), Settings(options={"basis": "spanner"})],
    ids=["plain", "errors", "spanner"],
)
def test_a_row_alone_is_the_row_of_the_run(settings: population.Settings) -> None:
    run = simulate(
        COFFEE, 60, precision=settings.precision, error_rate=settings.error_rate, seed=settings.seed,
        max_questions=settings.max_questions, jobs=1, **settings.options,
    )  # fmt: skip
    assert run.results.index.tolist() == list(range(60))
    rows = timeless(run.results)
    for index in (0, 1, 17, 59):
        assert rows[index] == replace(run_user(COFFEE, index, settings), seconds=0.0)
    assert timeless(simulate(COFFEE, 20, precision=settings.precision, error_rate=settings.error_rate,
                             seed=settings.seed, max_questions=settings.max_questions, jobs=1,
                             **settings.options).results) == rows[:20]  # fmt: skip


@pytest.mark.parametrize("name", ["coffee", "commute"])
def test_processes_change_nothing_but_the_seconds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = tradeoff.load(name)
    expected = timeless(simulate(problem, 40, error_rate=0.05, jobs=1).results)
    monkeypatch.setattr(population, "ROUNDS", (0.0, 0.5))
    for at_once in (3, 1000):
        monkeypatch.setattr(population, "AT_ONCE", at_once)
        assert timeless(simulate(problem, 40, error_rate=0.05, jobs=2).results) == expected


def test_many_are_drawn_in_all_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = timeless(simulate(COFFEE, 30, jobs=1).results)
    monkeypatch.setattr(population, "MANY", 10)
    monkeypatch.setattr(population, "ROUNDS", (0.0, 0.5))
    assert timeless(simulate(COFFEE, 30, jobs=2).results) == expected


def test_a_dask_cluster_gives_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    import distributed

    expected = timeless(simulate(COFFEE, 50, jobs=1).results)
    monkeypatch.setattr(population, "ROUNDS", (0.0, 0.5))  # what is left after one interview goes to the cluster
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        assert joblib.effective_n_jobs(None) == 2
        assert timeless(simulate(COFFEE, 50).results) == expected


def test_all_that_a_back_end_has_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray's back end has the processors of its cluster, but is as large as one processor unless it is asked for all."""

    class Cluster(ThreadingBackend):  # type: ignore[misc]  # joblib has no types
        def effective_n_jobs(self, n_jobs: int) -> int:
            return 5 if n_jobs == -1 else int(super().effective_n_jobs(n_jobs))

    parts: list[int] = []
    interview, one_at_a_time = population._interview, threading.Lock()

    def noted(*given: Any) -> Any:
        with one_at_a_time:
            parts.append(len(given[2]))
            return interview(*given)

    monkeypatch.setattr(population, "_interview", noted)
    monkeypatch.setattr(population, "ROUNDS", (0.0, 1e9))
    joblib.register_parallel_backend("cluster", Cluster)
    with joblib.parallel_config(backend="cluster"):
        run = simulate(COFFEE, 20)
    assert len(parts) == 5 and max(parts) - min(parts) <= 1
    assert timeless(run.results) == timeless(simulate(COFFEE, 20, jobs=1).results)


def test_a_back_end_that_returns_everything_at_once_works() -> None:
    """Ray's is one; joblib's own multiprocessing back end behaves like it."""
    code = (
        "import joblib, tradeoff\n"
        "from tradeoff import population\n"
        "population.ROUNDS = (0.0, 0.5)\n"
        "with joblib.parallel_config(backend='multiprocessing', n_jobs=2):\n"
        "    print(population.simulate(tradeoff.load('coffee'), 30, strategy='paper').results.questions.tolist())"
    )
    done = processes.run([sys.executable, "-c", code], check=True)
    assert json.loads(done.stdout) == simulate(COFFEE, 30, jobs=1).results.questions.tolist()


def test_regret_is_never_negative_and_small_without_errors() -> None:
    run = simulate(COFFEE, 200, precision=0.001, jobs=1)
    assert run.results.regret.min() >= 0.0
    assert run.baseline().min() >= 0.0
    summary = run.summary()
    assert summary.regret.mean < 0.01 < summary.baseline.mean
    assert summary.complete == 1.0 and summary.bound is None and summary.exceeded == {}
    assert 0 < summary.seconds_per_user < 1 and summary.precomputation > 0
    assert summary.questions.p50 <= summary.questions.p95 <= summary.questions.worst
    assert not run.results.errors.any()


def test_errors_and_budgets_are_counted() -> None:
    run = simulate(COFFEE, 100, error_rate=0.2, max_questions=10, jobs=1)
    assert run.results.questions.max() <= 10
    assert not run.results.complete.all() and "budget of 10" in run.results.reason[0]
    assert 0.1 < run.results.errors.sum() / run.results.questions.sum() < 0.3


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_file_reads_back_bit_for_bit(tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"rows{suffix}"
    run = simulate(COFFEE, 25, error_rate=0.1, jobs=1, out=out)
    assert [p.name for p in tmp_path.iterdir()] == [out.name]
    found = read_results(out)
    assert [found.row(i) for i in range(25)] == [run.results.row(i) for i in range(25)]


def test_bounds_are_empty_only_where_there_are_none(tmp_path: Path) -> None:
    row = Row(0, (0.1, 1 / 3), 4, 0.0, True, 'a "reason", with\nlines', None, 0, 0.5)
    results = Results.from_rows([row, replace(row, index=1, bound=0.25, complete=False)], 2)
    for path in (tmp_path / "a.csv", tmp_path / "a.parquet"):
        write_results(results, ["=cmd", "regret"], path)
        found = read_results(path)
        assert [found.row(0), found.row(1)] == [results.row(0), results.row(1)]
    header = (tmp_path / "a.csv").read_text().splitlines()[0]
    before = "index,weight_=cmd,weight_regret,questions,regret,complete,reason,bound,errors,seconds"
    assert header == f"{before},robust,likely_worst,likely_regret,target"


def test_a_file_of_an_earlier_version_can_be_read(tmp_path: Path) -> None:
    old = tmp_path / "old.csv"
    old.write_text(
        "index,weight_a,questions,regret,complete,reason,bound,errors,seconds\n0,1.0,4,0.5,true,done,0.25,0,0.1\n"
    )
    assert read_results(old).row(0) == Row(0, (1.0,), 4, 0.5, True, "done", 0.25, 0, 0.1)


def test_statements_that_were_exceeded_are_counted() -> None:
    row = Row(
        0, (1.0,), 4, 0.05, True, "done", 0.04, 0, 0.1, robust=0.06, likely_worst=0.04, likely_regret=0.06, target=0.01
    )
    reasons = [Reason.VERY_LIKELY_WITHIN, Reason.PROBABLY_UNNOTICED, Reason.PROBABLY_EITHER, "a text"]
    rows = Results.from_rows([replace(row, index=i, reason=str(reason)) for i, reason in enumerate(reasons)], 1)
    found = {kind: (one.stated, one.exceeded) for kind, one in exceeded_statements(rows, precision=0.1).items()}
    assert found == {
        "proved": (4, 4), "proved with one slip": (4, 0), "very likely": (4, 4), "reason": (3, 1), "average": (1, 0),
    }  # fmt: skip


class Stop(Exception):
    """Somebody stopped the run."""


def interrupted(out: Path, users: int = 80, at: int = 30, **settings: object) -> None:
    def progress(done: int, total: int) -> None:
        if done >= at:
            raise Stop

    with pytest.MonkeyPatch.context() as patched, pytest.raises(Stop):
        patched.setattr(population, "ROUNDS", HASTY)
        simulate(COFFEE, users, jobs=1, out=out, progress=progress, **settings)  # type: ignore[arg-type]


def parts_of(out: Path) -> list[Path]:
    return sorted(out.with_name(f"{out.name}.shards").glob("*.npz"))


def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "rows.csv"
    interrupted(out)
    kept = Parts(out, json.loads((tmp_path / "rows.csv.shards" / "manifest.json").read_text())).read(80)
    assert len(kept) > 1 and not out.exists()
    asked: list[int] = []
    real = population.interview_all

    def observed(problem: Problem, people: Waiting, *more: Any) -> Walked:
        asked.extend(people.index.tolist())
        return real(problem, people, *more)

    monkeypatch.setattr(population, "interview_all", observed)
    monkeypatch.setattr(population, "ROUNDS", (1e9,))
    simulate(COFFEE, 80, jobs=1, out=out)
    assert not (tmp_path / "rows.csv.shards").exists()
    before, after = Results.joined(kept), read_results(out)
    taken = [after.row(i) for i in before.index.tolist()]
    assert taken == [before.row(i) for i in range(len(before))], "what was finished is taken over, seconds and all"
    assert sorted([*asked, *before.index.tolist()]) == list(range(80)), "only the rest is asked"
    assert timeless(after) == timeless(simulate(COFFEE, 80, jobs=1).results)


def test_a_damaged_part_is_simulated_again(tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    interrupted(out)
    first, second, third, fourth, *_ = parts_of(out)
    first.write_bytes(first.read_bytes()[:300])
    second.write_bytes(b"")
    third.write_bytes(third.read_bytes().replace(b"NUMPY", b"BUMPY"))
    (fourth.parent / "copy.npz").write_bytes(fourth.read_bytes())  # nobody's row counts twice
    simulate(COFFEE, 80, jobs=1, out=out)
    assert timeless(read_results(out)) == timeless(simulate(COFFEE, 80, jobs=1).results)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"precision": 0.02}, ["precision", "0.01", "0.02"]),
        ({"seed": 1}, ["seed", "0", "1"]),
        ({"basis": "spanner"}, ["basis", "None", "'spanner'"]),
        ({"users": 90}, ["users", "80", "90"]),
    ],
)
def test_another_run_is_refused_and_nothing_is_lost(
    tmp_path: Path, change: dict[str, object], named: list[str]
) -> None:
    out = tmp_path / "rows.csv"
    interrupted(out)
    before = sorted((tmp_path / "rows.csv.shards").iterdir())
    settings: dict[str, object] = {"users": 80, **change}
    with refused(ArgumentError, *named, f"{out}.shards", "remove that folder"):
        simulate(COFFEE, out=out, jobs=1, **settings)  # type: ignore[arg-type]
    assert sorted((tmp_path / "rows.csv.shards").iterdir()) == before


def test_a_damaged_manifest_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    for text in ("", "[]", '{"users": 1}', "[" * 100_000):
        (tmp_path / "rows.csv.shards").mkdir(exist_ok=True)
        (tmp_path / "rows.csv.shards" / "manifest.json").write_text(text)
        with refused(ArgumentError, tmp_path / "rows.csv.shards" / "manifest.json", "damaged"):
            Parts(out, {"users": 1})


@pytest.mark.skipif(sys.platform == "win32", reason="folders cannot be locked there")
def test_a_second_run_on_the_same_file_is_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "rows.csv"
    with held(out):
        with monkeypatch.context() as patched:
            patched.setattr("tradeoff.population.prepare", lambda *_: pytest.fail("something was worked out"))
            with refused(StoreError, f"{out}.shards", "in use"):
                simulate(COFFEE, 10, jobs=1, out=out)
        assert len(simulate(COFFEE, 10, jobs=1, out=tmp_path / "others.csv")) == 10
    assert [p.name for p in tmp_path.iterdir()] == ["others.csv"]  # nothing was kept, so no folder is left
    with refused(ArgumentError, "nonsense"):
        simulate(COFFEE, 10, jobs=1, out=out, nonsense=1)
    assert not (tmp_path / "rows.csv.shards").exists()
    assert len(simulate(COFFEE, 10, jobs=1, out=out)) == 10


def test_nonsense_is_refused_before_anything_is_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for settings, facts in [
        ({"users": 0}, ["users", 0]),
        ({"users": True}, ["users", True]),
        ({"jobs": 0}, ["jobs", 0]),
        ({"precision": -1.0}, ["precision", -1.0]),
        ({"precision": float("nan")}, ["precision", "nan"]),
        ({"error_rate": 1.5}, ["error rate", 1.5]),
        ({"seed": -1}, ["seed", -1]),
        ({"max_questions": -1}, ["max_questions", -1]),
        ({"strategy": "guess"}, ["'guess'", "careful", "certified", "paper"]),
        ({"nonsense": 1}, ["nonsense"]),
        ({"basis": "other"}, ["basis", "'other'"]),
        ({"out": tmp_path / "rows.xlsx"}, ["rows.xlsx", ".csv", ".parquet"]),
        ({"out": tmp_path / "no" / "rows.csv"}, [tmp_path / "no" / "rows.csv", "folder"]),
    ]:
        with refused(ArgumentError, *facts):
            simulate(COFFEE, **settings)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
    (tmp_path / "folder.csv").mkdir()
    with refused(ArgumentError, tmp_path / "folder.csv", "folder"):
        check_out(tmp_path / "folder.csv")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with refused(ArgumentError, "pyarrow", "pip install '.[data]'"):
        simulate(COFFEE, 10, out=tmp_path / "rows.parquet")


def test_a_problem_in_which_nothing_matters_is_refused() -> None:
    with pytest.raises(ArgumentError, match="nothing to ask"):
        simulate(tradeoff.Catalogue([[1.0, 2.0], [1.0, 2.0]]), 5)


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    for text in ("", "a,b\n1,2\n", "index,questions,regret,complete,reason,bound,errors,seconds\n0,1,0,maybe,x,,0,0\n"):
        (tmp_path / "x.csv").write_text(text)
        with refused(ArgumentError, tmp_path / "x.csv"):
            read_results(tmp_path / "x.csv")


def test_the_page_of_theory_and_practice_can_be_made(tmp_path: Path) -> None:
    tool = Path(__file__).resolve().parents[1] / "tools" / "theory_and_practice.py"
    processes.run([sys.executable, str(tool), "--quick", "--to", str(tmp_path)], check=True)
    page = (tmp_path / "theory-and-practice.md").read_text()
    assert "--quick --seed 0" in page and "Violations: 0 of" in page and "nan" not in page
    for picture in ("theory-precision.svg", "theory-objectives.svg"):
        assert f"pictures/{picture}" in page and (tmp_path / "pictures" / picture).exists()
