"""A coverage kept beside a study: new interviews begin with it, others stay with the model, and all go on anywhere."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tests import processes
from tradeoff import MDP, Interview, cover, load
from tradeoff.apps.web.compiling import Compiler
from tradeoff.errors import LogError, ProblemError
from tradeoff.model import Answer
from tradeoff.problem import slack_of
from tradeoff.stores import DamagedError, open_store
from tradeoff.stores.memory import InMemoryStore
from tradeoff.studies import Sessions, Study, compiled
from tradeoff.studies.export import files_of


def leading_anywhere(states: int, horizon: int, objectives: int = 2) -> MDP:
    """Return a model in which every state has two actions that lead anywhere."""
    rng = np.random.default_rng(states)
    transitions = rng.dirichlet(np.ones(states), size=(states, 2))
    return MDP.from_arrays(transitions, rng.random((states, 2, objectives)), horizon=horizon)


def test_who_began_before_stays_with_the_model_and_every_process_replays_both_alike(tmp_path: Path) -> None:
    model, store = load("commute"), InMemoryStore()
    study = Study.of(model, "trips", checks=False, strategy="certified")
    first = Sessions(study, model, store)
    before = first.open()
    coverage = cover(model, compiled.tolerance_for(study))
    compiled.keep(store, study, compiled.content_of(coverage))
    assert compiled.kept(store, study, model) is not None
    first.begin_with(coverage)
    after = first.open()
    about = {token: first.events(token)[0]["problem"] for token in (before, after)}
    assert (
        about == {before: model.fingerprint, after: coverage.fingerprint} and model.fingerprint != coverage.fingerprint
    )
    for turn in (1, 2):
        for token in (before, after):
            elsewhere = Sessions(study, load("commute"), store)  # a process that has not heard of the coverage
            asked = [sessions.do(token, lambda s: s.ask()) for sessions in (first, elsewhere)]
            assert asked[0] is not None and asked[1] is not None
            assert asked[0].question.key == asked[1].question.key
            elsewhere.answer(token, turn, Answer.FIRST)
            first = Sessions(study, model, store)  # restarted
    bounds = [first.do(token, lambda s: s.recommendation.regret_bound) for token in (before, after)]
    assert first.do(after, lambda s: slack_of(s.problem)) == coverage.slack <= compiled.tolerance_for(study)
    assert all(bound is not None for bound in bounds)
    assert first.do(before, lambda s: s.problem) is model and first.begins_with is model
    files = files_of(study, model, store.logs(study.name), "csv", compiled.kept(store, study, model))
    assert len(files["participants.csv"]().splitlines()) == 3 and len(files["answers.csv"]().splitlines()) == 5
    (tmp_path / "compiled.npz").write_bytes(files["compiled.npz"]())
    assert coverage.fingerprint in files["README.txt"]().decode()
    again = Interview.resume(load(tmp_path / "compiled.npz"), first.events(after))
    assert len(again.answers) == 2


def test_the_first_coverage_that_is_kept_stays_and_a_damaged_one_is_said() -> None:
    model, store = load("dependent"), InMemoryStore()
    study = Study.of(model, "walks", strategy="paper")
    one, other = (compiled.content_of(cover(model, tolerance)) for tolerance in (0.01, 0.001))
    compiled.keep(store, study, one)
    compiled.keep(store, study, other)
    found = compiled.kept(store, study, model)
    assert found is not None and found.fingerprint == cover(model, 0.01).fingerprint
    assert np.array_equal(found.plans.values, cover(model, 0.01).plans.values)
    assert compiled.kept(store, Study.of(model, "others", strategy="paper"), model) is None
    with pytest.raises(DamagedError, match="damaged"):
        compiled.kept(store, study, load("commute"))
    with pytest.raises(ProblemError, match="MB"):
        compiled.keep(store, study, bytes(compiled.LARGEST_PROBLEM + 1))
    broken = InMemoryStore()
    compiled.keep(broken, study, one[: len(one) // 2])
    with pytest.raises(DamagedError, match="the compiled plans of the study 'walks' are damaged"):
        compiled.kept(broken, study, model)
    sessions = Sessions(study, model, broken)
    token = sessions.open()
    assert sessions.do(token, lambda s: s.problem) is model  # nothing of it is needed here


def test_an_interview_about_something_else_is_refused_as_before() -> None:
    model, store = load("dependent"), InMemoryStore()
    study = Study.of(model, "walks", strategy="paper")
    sessions = Sessions(study, model, store)
    events = sessions.events(sessions.open())
    store.create(study.name, "x" * 22, [{**events[0], "problem": "of another model"}, *events[1:]])
    with pytest.raises(LogError, match="another problem"):
        sessions.do("x" * 22, lambda s: s.turn)


def test_compiling_is_for_large_models_and_strategies_that_look_up_many_weights() -> None:
    large, small = leading_anywhere(30, 60), leading_anywhere(30, 20)  # 30 x 2 x 30 branches, 60 and 20 steps
    for problem, strategy, pays, possible in (
        (large, "careful", True, True),
        (large, "paper", False, True),
        (small, "certified", False, True),
        (leading_anywhere(30, 60, objectives=1), "careful", False, False),
        (load("commute"), "careful", False, True),
        (load("coffee"), "careful", False, False),
        (cover(load("dependent"), 0.01), "careful", False, False),
    ):
        study = Study("asked", problem.name, problem.fingerprint, strategy=strategy)
        assert compiled.worth_compiling(study, problem) is pays and compiled.can_compile(problem) is possible


def test_the_plans_may_miss_a_tenth_of_what_interviews_aim_at() -> None:
    problem = load("dependent")
    assert compiled.tolerance_for(Study.of(problem, "a")) == pytest.approx(0.001)
    assert compiled.tolerance_for(Study.of(problem, "a", settings={"target": 0.05})) == pytest.approx(0.005)


def test_a_small_model_is_compiled_before_anybody_is_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    model, store = load("commute"), InMemoryStore()
    study = Study.of(model, "trips", checks=False)
    with monkeypatch.context() as patched:
        patched.setattr(compiled, "FIRST_WORK", 1)
        assert not compiled.compile_first(store, study, model)  # too large to let people wait
    with monkeypatch.context() as patched:
        patched.setattr(compiled, "FIRST_SECONDS", 0.0)
        assert not compiled.compile_first(store, study, model)  # not reached in time
    assert compiled.kept(store, study, model) is None
    monkeypatch.setattr(compiled, "FIRST_SECONDS", math.inf)  # however busy this machine is
    assert compiled.compile_first(store, study, model)
    found = compiled.kept(store, study, model)
    assert found is not None and found.guarantee <= compiled.tolerance_for(study)


def test_a_large_model_is_compiled_in_a_process_of_its_own(tmp_path: Path) -> None:
    model, said = load("commute"), []
    study = Study.of(model, "trips", checks=False)
    with open_store(f"sqlite:///{tmp_path / 'study.db'}") as store:
        study.keep(store, model)
        compiler = Compiler(store, study, load, ("commute",), said.append)
        compiler.start()
        try:
            processes.until(lambda: len(said) == 2, "compiling")
        finally:
            compiler.stop()
        assert said[0].startswith("Compiling in the background") and said[1].startswith("Compiled. ")
        found = compiled.kept(store, study, model)
        assert found is not None and found.guarantee <= compiled.tolerance_for(study)
