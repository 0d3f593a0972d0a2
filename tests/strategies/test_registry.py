"""Strategies are open: a name, a specification, a callable, or an entry point of an installed package."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from tests.strategies.people import run
from tradeoff import ArgumentError, Interview, LinearRespondent, Question, Recommendation, load
from tradeoff.model import SECOND
from tradeoff.problem import Problem
from tradeoff.strategies import Step, Strategy, StrategySpec, name_of, spec_of, start, strategy_names
from tradeoff.strategies.registry import BUILT_IN


def favourite(problem: Problem, *, rounds: int = 3) -> Strategy:
    """Keep the winner of a few comparisons of random optima."""
    k = len(problem.objectives)
    optima = problem.best(np.random.default_rng(0).dirichlet(np.ones(k), rounds + 1))
    winner = optima[0]

    def recommend(complete: bool = False) -> Recommendation:
        return Recommendation(winner, np.full(k, 1 / k), 0, "the favourite so far", complete=complete)

    for count, other in enumerate(optima[1:]):
        reply = yield Step(Question((winner, other)), recommend, rounds - count)
        winner = other if reply == SECOND else winner
    return recommend(True)


def test_a_callable_is_a_strategy() -> None:
    problem = load("coffee")
    user = LinearRespondent.scaled(problem, [1, 2, 3, 4, 5], 0.001)
    for strategy in (favourite, StrategySpec(favourite)):
        interview = Interview(problem, strategy, rounds=5)
        result = run(interview, user)
        assert 1 <= result.questions <= 5 and result.reason == "the favourite so far"
        seen = [value for answer in interview.answers for value in answer.question.values]
        assert user.worth(result.option.value) >= max(user.worth(value) for value in seen) - 0.005
        assert interview.log[0]["strategy"] == name_of(strategy) == f"{__name__}:favourite"
        assert run(Interview(problem, strategy, max_questions=1), user).questions == 1
    with pytest.raises(ArgumentError, match="does not take these options"):
        Interview(problem, favourite, volume=11)


def test_specifications_replace_checks_of_names() -> None:
    for name, seeded in (("careful", True), ("certified", True), ("paper", False)):
        assert spec_of(name).seeded is spec_of(name).accepts_observations is seeded
        assert name_of(spec_of(name)) == name_of(spec_of(name).make) == name
    assert spec_of("paper").skip_implied({"basis": "spanner"}) and not spec_of("paper").skip_implied({})
    assert not spec_of(favourite).seeded and not spec_of(favourite).accepts_observations
    assert tuple(BUILT_IN) == strategy_names()[: len(BUILT_IN)]


@pytest.mark.parametrize("wrong", ["oracle", "", 3, None])
def test_what_is_no_strategy_is_refused(wrong) -> None:
    with pytest.raises(ArgumentError, match="strategy"):
        start(wrong, load("dependent"))


def installed(folder: Path, code: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package with one entry point, as pip would leave it."""
    (folder / "my_strategies.py").write_text(code, encoding="utf-8")
    info = folder / "my_strategies-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-strategies\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[tradeoff.strategies]\nmine = {target}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "my_strategies", raising=False)


def test_an_installed_package_adds_a_strategy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "from tradeoff.strategies import StrategySpec, paper\n"
        "spanner = StrategySpec(lambda problem: paper(problem, basis='spanner'), skip_implied=lambda options: True)\n"
        "nonsense = 3\n"
    )
    installed(tmp_path, code, "my_strategies:spanner", monkeypatch)
    assert strategy_names() == ("careful", "certified", "paper", "mine")
    problem = load("coffee")
    user = LinearRespondent.scaled(problem, [1, 2, 3, 4, 5], 0.001)
    mine, same = Interview(problem, "mine"), Interview(problem, "paper", basis="spanner")
    assert run(mine, user).weights.tolist() == run(same, user).weights.tolist()
    assert Interview.resume(problem, mine.log).recommendation.weights.tolist() == mine.recommendation.weights.tolist()
    with pytest.raises(ArgumentError, match="there are careful, certified, paper, mine"):
        spec_of("yours")


def test_an_entry_point_that_is_no_strategy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, "nonsense = 3\n", "my_strategies:nonsense", monkeypatch)
    with pytest.raises(ArgumentError, match="the entry point 'mine' of my-strategies is 3"):
        spec_of("mine")


def test_a_strategy_may_name_an_option_that_asks_fewer_questions() -> None:
    assert spec_of("paper").fewer({}) == "basis=spanner"
    assert spec_of("paper").fewer({"basis": "spanner"}) == "" == spec_of("careful").fewer({})
