"""The question benchmark itself: its instances are what it says, its verdicts are right, and it runs."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from tests import processes

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "questions.py"


@pytest.fixture(scope="module")
def questions():
    spec = importlib.util.spec_from_file_location("benchmark_questions", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.mark.parametrize("kind", ["random", "frontier", "positive", "negative"])
@pytest.mark.parametrize("number", [0, 1])
def test_catalogues_are_the_same_every_time_and_scaled(questions, kind, number):
    problem, weights = questions.catalogue(kind, 3, number)
    again, same = questions.catalogue(kind, 3, number)
    assert problem.fingerprint == again.fingerprint
    assert np.array_equal(weights, same)
    assert np.array_equal(problem.origin, np.zeros(3))
    assert np.array_equal(problem.gains.max(axis=0), np.ones(3))
    assert problem.gains.min() >= 0
    assert weights.min() >= 0
    assert (problem.gains @ weights).max() == pytest.approx(1, abs=1e-12)
    other, _ = questions.catalogue(kind, 3, number + 2)
    assert other.fingerprint != problem.fingerprint


def test_correlated_catalogues_are_correlated(questions):
    for kind, sign in (("positive", 1), ("negative", -1)):
        table = questions.points(kind, 4, np.random.default_rng(0))
        between = np.corrcoef(table.T)[np.triu_indices(4, 1)]
        assert (sign * between > 0.1).all()


def test_decision_processes_are_the_same_every_time_and_scaled(questions):
    problem, weights = questions.decision_process(3, 1)
    again, same = questions.decision_process(3, 1)
    assert problem.fingerprint == again.fingerprint
    assert np.array_equal(weights, same)
    assert problem.nothing_is_reference
    optima = np.array([a.value for a in problem.best(np.eye(3))])
    assert np.diag(optima) == pytest.approx(np.ones(3), abs=1e-12)
    assert weights @ problem.best([weights])[0].value == pytest.approx(1, abs=1e-12)


def test_the_floor_counts_alternatives_that_must_be_told_apart(questions):
    from tradeoff import Catalogue

    assert questions.floor(Catalogue([[0.0, 1.0], [1.0, 0.0]])) == 1
    assert questions.floor(Catalogue([[0.0, 1.0], [1.0, 0.0], [0.8, 0.8], [0.8, 0.799]])) == pytest.approx(np.log2(3))
    assert questions.floor(Catalogue([[1.0, 1.0], [0.0, 0.0]])) == 0


def test_one_interview_is_counted_rightly(questions):
    row = questions.Row("here", "random", 3, error_rate=0.3, strategies=("careful", "paper"))
    clean = questions.Row("there", "random", 3, strategies=("certified",))
    for outcome in questions.outcomes(row, 1):
        assert 0 <= outcome["caught"] <= min(outcome["wrong"], outcome["flagged"])
        assert outcome["wrong"] <= outcome["questions"]
        assert outcome["questions"] > 0
    asked, nothing = questions.outcomes(clean, 1)
    assert asked["exceeded"] == asked["wrong"] == asked["flagged"] == 0
    assert asked["checked"] == asked["questions"] + 1
    assert asked["regret"] <= asked["bound"] + 1e-9
    assert (nothing["strategy"], nothing["questions"]) == ("nothing asked", 0)


def line(**changes):
    return {
        "name": "random k=4", "kind": "random", "k": 4, "eps": 0.01, "error_rate": 0.0, "strategy": "certified",
        "questions": 7.0, "standard_error": 0.25, "regret": 0.0, "checked": 10, "exceeded": 0, **changes,
    }  # fmt: skip


def test_verdicts(questions):
    met, certificates = questions.verdicts([line()], [])
    assert "at most 7.5: met (2.0 standard errors below)" in met
    assert "not yet" in met
    assert certificates.endswith("10 checked, none exceeded: met")
    missed, certificates = questions.verdicts([line(questions=8.0, exceeded=2)], [])
    assert "at most 7.5: MISSED (2.0 standard errors above)" in missed
    assert certificates.endswith("2 exceeded: MISSED")
    assert "reached" in questions.verdicts([line(questions=5.0)], [])[0]
    # Other rows have no target.
    others = [line(strategy="paper"), line(eps=0.1), line(kind="frontier"), line(k=5)]
    assert len(questions.verdicts(others, [])) == 1


def test_verdicts_with_errors(questions):
    careful = line(k=6, error_rate=0.05, strategy="careful", questions=12.0, regret=0.002, exceeded=3)
    behind = [{"row": careful["name"], "strategy": "careful", "regret": regret} for regret in (0.001, 0.003)]
    asked, regret, certificates = questions.verdicts([careful], behind)
    assert "at most 13: met" in asked
    assert "0.2%, at most 0.1%: MISSED (1.0 standard errors above)" in regret
    # A wrong answer may make any certificate false.
    assert "none exceeded" in certificates


def test_quick_runs(tmp_path):
    target = tmp_path / "out.json"
    command = [sys.executable, str(SCRIPT), "--quick", "--instances", "2", "--jobs", "2", "--json", str(target)]
    done = processes.run(command)
    assert done.returncode == 0, done.stderr
    assert "random k=2" in done.stdout and "flags right" in done.stdout
    assert "none exceeded: met" in done.stdout
    written = json.loads(target.read_text())
    strategies = {found["strategy"] for found in written["lines"]}
    assert strategies == {"certified", "certified, lotteries", "careful", "paper", "paper, spanner", "nothing asked"}
    assert len(written["interviews"]) == sum(found["instances"] for found in written["lines"])


def test_nonsense_is_refused(questions, capsys):
    with pytest.raises(SystemExit):
        questions.main(["--quick", "--only", "no such row"])
    assert "no row is left" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        questions.main(["--quick", "--strategies", "psychic"])
    assert "there is no strategy 'psychic'" in capsys.readouterr().err
