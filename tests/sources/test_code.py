"""Problems that Python programs make, from Python and from the command line."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import tradeoff
from tests.messages import refused
from tradeoff import ArgumentError, Objective, PointSet, ProblemError, load
from tradeoff.apps.cli.main import main

KNAPSACK = """
import sys

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from tradeoff import Objective, PointSet

THINGS = np.array(["tent", "stove", "book", "camera", "rain coat", "rope"])
AMOUNTS = np.array([[9.0, 6, 2, 1, 5, 2], [2.0, 1, 6, 8, 1, 5], [4.0, 2, 1, 2, 1, 3]])
OBJECTIVES = [Objective("comfort"), Objective("fun"), Objective("weight", "kg", "min")]

def best(weights):
    found = milp(-weights @ AMOUNTS, integrality=np.ones(6), bounds=Bounds(0, 1),
                 constraints=LinearConstraint(AMOUNTS[2], 0, 7), options={"mip_rel_gap": 0})
    packed = found.x > 0.5
    return AMOUNTS @ packed, THINGS[packed]

problem = PointSet(best, OBJECTIVES, name="knapsack")

def make():
    return problem

class Packing:
    objectives = ["comfort", "fun:max", Objective("weight", "kg", "min")]
    title = "What to pack"
    def best(self, weights):
        return best(weights)

packing = Packing()
plain = lambda: None
number = 5

def broken():
    raise OSError("no solver")

def leaving():
    sys.exit(4)

class Nothing:
    def best(self, weights):
        return weights

class Quitter:
    objectives = ["a", "b"]
    def best(self, weights):
        sys.exit(7)
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "packing_list.py").write_text(KNAPSACK)
    (tmp_path / "half_written.py").write_text("def x(:\n")
    (tmp_path / "script.py").write_text("import sys\nsys.exit(5)\n")
    (tmp_path / "needy.py").write_text("import no_such_package\n")
    (tmp_path / "outdated.py").write_text("from json import no_such_name\n")
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    yield tmp_path
    sys.path[:] = path
    for name in ("packing_list", "half_written", "script", "needy", "outdated"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", ["problem", "make", "Packing", "packing"])
def test_a_knapsack_is_packed_as_trying_everything_does(here: Path, name: str) -> None:
    problem = load(f"python:packing_list:{name}")
    assert isinstance(problem, PointSet) and [o.name for o in problem.objectives] == ["comfort", "fun", "weight"]
    amounts = sys.modules["packing_list"].AMOUNTS
    packs = np.array(list(itertools.product([0, 1], repeat=6))) @ amounts.T
    gains = problem.gain_scale.gains(packs[packs[:, 2] <= 7])
    rows = np.random.default_rng(0).normal(size=(20, 3))
    for row, found in zip(rows, problem.best(rows), strict=True):
        assert found.value @ row == pytest.approx((gains @ row).max(), abs=1e-9)


def test_an_object_is_a_problem_with_its_options(here: Path) -> None:
    load("python:packing_list:problem")
    packing = sys.modules["packing_list"].packing
    problem = load(packing)
    assert problem.title == "What to pack" and problem.name == "Packing"
    assert problem.notes == ["more comfort is taken to be better, because nothing else was said"]
    other = load(packing, objectives={"joy": "max", "fun": "max", "load": "min"}, name="mine", both_ways="false")
    assert [(o.name, o.goal) for o in other.objectives] == [("joy", "max"), ("fun", "max"), ("load", "min")]
    assert other.name == "mine" and isinstance(other, PointSet) and not other.both_ways
    assert load(problem) is problem
    with refused(ArgumentError, "objectives", "both_ways"):
        load(problem, objectives="a,b,c")
    assert load("python:packing_list:Nothing", objectives="a,b").objectives == (Objective("a"), Objective("b"))


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("packing_list", ("python:packing_list", "python:MODULE:NAME")),
        ("packing_list:", ("python:MODULE:NAME",)),
        ("no_such_list:problem", ("'no_such_list'", "without its .py")),
        ("no_such.list:problem", ("'no_such.list'", "without its .py")),
        ("packing_list.py:problem", ("'packing_list.py'", "without its .py")),
        ("needy:problem", ("'needy' imports 'no_such_package'", "install")),
        ("outdated:problem", ("cannot import name", "'outdated'")),
        ("script:problem", ("'script'", "SystemExit: 5", "if __name__ == '__main__':")),
        ("packing_list:leaving", ("SystemExit: 4",)),
        ("half_written:problem", ("'half_written'", "SyntaxError")),
        ("packing_list:nobody", ("'nobody'", "'packing_list'")),
        ("packing_list:number", ("5", "best(weights)")),
        ("packing_list:plain", ("None", "best(weights)")),
        ("packing_list:broken", ("OSError: no solver",)),
        ("packing_list:Nothing", ("'Nothing'", "objectives")),
    ],
)
def test_what_is_no_problem_is_said(here: Path, name: str, facts: tuple[str, ...]) -> None:
    with refused(ProblemError, *facts):
        load(f"python:{name}")


def test_an_optimiser_that_ends_the_program_is_an_error(here: Path) -> None:
    problem = load("python:packing_list:Quitter")
    with refused(ProblemError, "'Quitter'", "SystemExit: 7"):
        problem.best([[1.0, 1.0]])
    for source in ("python:packing_list:Quitter", "python:script:problem"):
        done = CliRunner().invoke(main, ["check", source])
        assert done.exit_code == 3 and "SystemExit" in done.stderr


def run(*arguments: str) -> Result:
    done = CliRunner(env={"COLUMNS": "100"}).invoke(main, arguments)
    assert done.exit_code == 0, done.output
    return done


def test_every_command_knows_point_sets(here: Path) -> None:
    source = "python:packing_list:problem"
    assert "valid" in run("check", source).stdout
    shown = json.loads(run("show", source, "--json").stdout)
    assert shown["kind"] == "points" and [o["best"] for o in shown["objectives"]] == [20, 20, 0]
    solved = json.loads(run("solve", source, "--weights", "fun=1", "--json").stdout)
    assert solved["option"]["average"][1]["amount"] == 20 and "camera" in solved["solution"]
    assert "camera" in run("solve", source, "--weights", "fun=1").stdout
    assert "camera" in run("explain", source, "--weights", "fun=1").stdout
    call = ("ask", source, "--simulate", "comfort=1,weight=2", "--precision", "0.001")
    asked: dict[str, Any] = json.loads(run(*call, "--json").stdout)
    assert asked["recommendation"]["finished"] and asked["relative_regret"] <= 0.02
    assert "The best plan for you" in run(*call).stdout
    summary = json.loads(run("simulate", source, "--respondents", "10", "--jobs", "2", "--json").stdout)
    assert summary["respondents"] == 10 and summary["regret"]["worst"] < 0.05


def test_a_point_set_is_not_written_to_a_file(here: Path) -> None:
    with pytest.raises(ProblemError, match="exists only in the program"):
        tradeoff.save(load("python:packing_list:problem"), here / "problem.toml")
