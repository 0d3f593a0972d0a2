"""Studies of Optuna, results of pymoo and models of CVXPY, made by those libraries, are problems."""

from __future__ import annotations

import itertools
from pathlib import Path

import cvxpy
import numpy as np
import optuna
import pytest
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.problem import ElementwiseProblem
from pymoo.optimize import minimize

import tradeoff
from tests.messages import refused
from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.model import Objective

optuna.logging.set_verbosity(optuna.logging.ERROR)


def tuned(study: optuna.Study) -> optuna.Study:
    def objective(trial: optuna.Trial) -> tuple[float, float]:
        size, kind = trial.suggest_float("size", 0, 1), trial.suggest_categorical("kind", ["a", "b"])
        if trial.number == 3:
            raise optuna.TrialPruned
        return size**2 + (kind == "b") * 0.1, 1 - (1 - size) ** 2

    study.optimize(objective, n_trials=30)
    return study


def new_study(**settings: object) -> optuna.Study:
    sampler = optuna.samplers.RandomSampler(seed=1)
    return optuna.create_study(directions=["minimize", "maximize"], sampler=sampler, **settings)  # type: ignore[arg-type]


def test_a_study_is_its_undominated_trials() -> None:
    study = tuned(new_study(study_name="sizes"))
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        study.set_metric_names(["cost", "accuracy"])
    problem = tradeoff.load(study)
    assert [(o.name, o.goal) for o in problem.objectives] == [("cost", "min"), ("accuracy", "max")]
    assert set(problem.names) == {f"trial {trial.number}" for trial in study.best_trials}
    by_name = {f"trial {trial.number}": trial for trial in study.trials}
    for name, values, kind in zip(problem.names, problem.values, problem.labels["kind"], strict=True):
        assert values.tolist() == by_name[name].values and kind == by_name[name].params["kind"]
    assert any("1 trials that are not complete" in note for note in problem.notes)
    assert len(tradeoff.load(study, keep_dominated=True).names) == 29


def test_trials_that_break_a_constraint_are_left_out_and_counted() -> None:
    study = new_study()
    for value, broken in ((1.0, -1.0), (0.0, 0.5), (0.5, 0.0)):
        study.add_trial(optuna.trial.create_trial(values=[value, value], system_attrs={"constraints": [broken]}))
    problem = tradeoff.load(study, objectives="cost,gain")
    assert problem.names == ("trial 0", "trial 2") and problem.objectives[0] == Objective("cost", "", "min")
    assert any("1 trials that break a constraint" in note for note in problem.notes)


def test_a_study_in_a_database_or_a_journal_is_a_source(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/trials.db"
    study = tuned(new_study(study_name="sizes", storage=address))
    assert tradeoff.load(f"optuna:{address}").names == tradeoff.load(study).names
    new_study(study_name="second", storage=address)
    with refused(ProblemError, "2 studies", "second", "sizes", "study="):
        tradeoff.load(f"optuna:{address}")
    assert tradeoff.load(f"optuna:{address}", study="sizes").names == tradeoff.load(study).names
    with refused(ProblemError, "no study 'sizez'"):
        tradeoff.load(f"optuna:{address}", study="sizez")
    with refused(ProblemError, "no complete trial"):
        tradeoff.load(f"optuna:{address}", study="second")
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(tmp_path / "trials.log")))
    journalled = tuned(new_study(study_name="kept", storage=storage))
    assert tradeoff.load(f"optuna:{tmp_path}/trials.log").names == tradeoff.load(journalled).names
    with refused(ProblemError, "cannot be read", "nowhere"):
        tradeoff.load("optuna:nowhere://x")


class Beam(ElementwiseProblem):
    """A cost to be minimised, and a strength to be maximised, which pymoo keeps with its sign turned."""

    def __init__(self) -> None:
        super().__init__(n_var=2, n_obj=2, xl=0.0, xu=1.0)

    def _evaluate(self, x: np.ndarray, out: dict[str, object], *_: object, **__: object) -> None:
        out["F"] = [x[0] + x[1], -(x[0] ** 0.5 + 0.5 * x[1])]


def test_a_pymoo_result_is_its_front() -> None:
    result = minimize(Beam(), NSGA2(pop_size=20), ("n_gen", 10), seed=1)
    problem = tradeoff.load(result, objectives="cost:min,strength:max")
    assert sorted(map(tuple, problem.values)) == sorted(map(tuple, result.F * [1, -1]))
    assert [(o.name, o.goal) for o in problem.objectives] == [("cost", "min"), ("strength", "max")]
    assert set(problem.labels) == {"x1", "x2"}
    option = problem.best([[0.0, 1.0]])[0]
    assert problem.outcome(option.value)[1] == pytest.approx(-result.F[:, 1].min())
    with refused(ArgumentError, "3 objectives", "there are 2"):
        tradeoff.load(result, objectives="a,b,c")


def test_an_interview_about_a_cvxpy_model_ends_at_the_best_portfolio() -> None:
    returns, risks = np.array([0.02, 0.05, 0.09]), np.array([0.01, 0.1, 0.3])
    x = cvxpy.Variable(3, nonneg=True, name="shares")
    model = cvxpy.Problem(cvxpy.Minimize(0), [cvxpy.sum(x) == 1])
    risk, income = cvxpy.sum_squares(cvxpy.multiply(risks, x)), 100 * returns @ x
    goals = {"risk": ("min", risk), Objective("return", "%", "max"): ("max", income)}
    problem = tradeoff.load(model, objectives=goals, solver="HIGHS")
    interview, respondent = tradeoff.Interview(problem, strategy="certified"), tradeoff.LinearRespondent([0.6, 0.4])
    while (question := interview.ask()) is not None:
        interview.tell(respondent(question))
    result = interview.recommendation
    assert result.regret_bound is not None and result.regret_bound <= 0.02


def test_what_cvxpy_cannot_solve_is_refused_with_the_objective() -> None:
    x = cvxpy.Variable(2, nonneg=True)
    model = cvxpy.Problem(cvxpy.Minimize(0), [cvxpy.sum(x) <= 1])
    with refused(ProblemError, "not convex in 'risk'"):
        tradeoff.load(model, objectives={"risk": ("max", cvxpy.sum_squares(x)), "cost": ("min", x[0])})
    with refused(ArgumentError, '("min", expression)', "'risk'"):
        tradeoff.load(model, objectives={"risk": cvxpy.sum_squares(x), "cost": ("min", x[0])})
    y = cvxpy.Variable(2)
    goals = {"a": ("max", y[0]), "b": ("max", y[1])}
    unbounded = tradeoff.load(cvxpy.Problem(cvxpy.Minimize(0), []), objectives=goals, solver="HIGHS")
    with refused(ProblemError, "unbounded"):
        unbounded.best([[1.0, 1.0]])


def test_integer_variables_allow_a_gap() -> None:
    x = cvxpy.Variable(4, boolean=True)
    model = cvxpy.Problem(cvxpy.Minimize(0), [cvxpy.sum(x) <= 2])
    goals = {"fun": ("max", np.array([4, 3, 2, 1]) @ x), "weight": ("min", np.array([5, 2, 2, 1]) @ x)}
    problem = tradeoff.load(model, objectives=goals, solver="HIGHS")
    assert problem.gap == 1e-3 and tradeoff.load(model, objectives=goals, gap="0").gap == 0
    picks = [pick for pick in itertools.product((0, 1), repeat=4) if sum(pick) <= 2]
    points = np.array([[np.dot((4, 3, 2, 1), pick), np.dot((5, 2, 2, 1), pick)] for pick in picks], dtype=float)
    best = problem.best([[0.5, 0.5]])[0].value
    assert best.sum() == pytest.approx(problem.gain_scale.gains(points).sum(axis=1).max())
