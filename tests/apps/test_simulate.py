from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import tradeoff
from tests import processes
from tests.simulation.rows import assert_same_rows
from tradeoff import simulation
from tradeoff.apps.cli.main import main
from tradeoff.apps.cli.simulate import simulate
from tradeoff.simulation import read_results

PAPER = ("--strategy", "paper")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["simulate", *arguments])


def test_the_command_is_registered() -> None:
    assert main.commands["simulate"] is simulate


def test_the_table_and_the_files(tmp_path: Path) -> None:
    out, picture = tmp_path / "rows", tmp_path / "rows.svg"
    done = run("coffee", *PAPER, "--respondents", "50", "--jobs", "1", "--out", str(out), "--plot", str(picture))
    assert done.exit_code == 0, done.output
    for words in (
        "50 respondents",
        "precision 1%",
        "questions",
        "regret, %",
        "regret without asking, %",
        "ms per resp",
    ):
        assert words in done.output
    assert read_results(out).index.tolist() == list(range(50))
    assert picture.read_text().startswith("<?xml")


def test_json_agrees_with_the_library_and_the_rows(tmp_path: Path) -> None:
    out = tmp_path / "rows"
    done = run("coffee", "--respondents", "40", "--precision", "0.05", "--strategy", "paper", "-o", "basis=spanner",
               "-o", "skip_implied=False",
               "--error-rate", "0.1", "--max-questions", "15", "--seed", "3", "--jobs", "1", "--out", str(out),
               "--json")  # fmt: skip
    found = json.loads(done.output)
    options = {"basis": "spanner", "skip_implied": False}
    expected = simulation.simulate(
        tradeoff.load("coffee"), 40, precision=0.05, strategy="paper", error_rate=0.1, max_questions=15, seed=3, jobs=1,
        **options,
    )  # fmt: skip
    assert_same_rows(read_results(out), expected.results)
    assert found["questions"]["mean"] == expected.results.questions.mean()
    assert found["regret"]["worst"] == expected.results.regret.max()
    given = {"precision": 0.05, "strategy": "paper", "error_rate": 0.1, "seed": 3, "max_questions": 15, "kind": "exact"}
    assert found["settings"] == {**given, "options": options}
    written = json.loads((out / "settings.json").read_text())
    assert given.items() <= written.items() and written["respondents"] == 40 and written["option basis"] == "spanner"


def test_duckdb_reads_the_parquet(tmp_path: Path) -> None:
    import duckdb

    out = tmp_path / "rows"
    assert run("coffee", *PAPER, "--respondents", "30", "--jobs", "1", "--out", str(out)).exit_code == 0
    found = read_results(out)
    query = f"select count(*), sum(questions), max(regret), count(bound), bool_and(complete) from '{out}/*.parquet'"
    expected = (30, found.questions.sum(), found.regret.max(), 0, bool(found.complete.all()))
    assert duckdb.sql(query).fetchall() == [expected]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "rows.csv"], "name a folder"),
        (["--plot", "rows.bmp"], "ending in .svg"),
        (["--respondents", "0"], "respondents is 0"),
        (["--strategy", "guess"], "no strategy 'guess'"),
        (["-o", "basis"], "NAME=VALUE"),
        ([*PAPER, "-o", "basis=3"], "basis is 3"),
        (["-o", "basis=spanner", "-o", "basis=paper"], "given twice"),
        (["-o", "seed=3"], "use --seed for it"),
        (["-o", "max_questions=3"], "use --max-questions for it"),
        (["-o", "problem=3"], "use PROBLEM for it"),
        (["-o", "respondents=3"], "use --respondents for it"),
        (["-o", "precision=3"], "use --precision for it"),
        (["-o", "error_rate=1"], "use --error-rate for it"),
        (["-o", "progress=1"], "'progress' is not an option of a strategy; leave it out"),
        (["--error-rate", "2"], "error rate"),
    ],
)
def test_mistakes_are_named_with_exit_code_2(arguments: list[str], message: str) -> None:
    done = run("coffee", *arguments)
    assert done.exit_code == 2
    assert message in done.output


def test_a_disk_that_takes_nothing_is_exit_code_4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tradeoff.simulation.run.write_part", full)
    done = run("coffee", *PAPER, "--respondents", "20", "--jobs", "1", "--out", str(tmp_path / "rows"))
    assert done.exit_code == 4 and "No space left" in done.output


INTERRUPTED_BEFORE_THEY_START = """
import os, signal
from joblib.externals.loky.process_executor import _ExecutorManagerThread as Manager
start = Manager.start
def interrupted(self): os.killpg(os.getpid(), signal.SIGINT); start(self)
Manager.start = interrupted
"""
INTERRUPTED_BY_THE_FIRST_THAT_STARTS = """
import os, signal, sys
if any("LokyProcess-1" in word for word in sys.orig_argv): os.killpg(os.getpgrp(), signal.SIGINT)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals to another process")
@pytest.mark.parametrize(
    ("first", "everywhere"),
    [(INTERRUPTED_BEFORE_THEY_START, ""), ("", INTERRUPTED_BY_THE_FIRST_THAT_STARTS)],
    ids=["before", "by the first"],
)
def test_a_command_interrupted_while_its_processes_start_says_only_that(
    tmp_path: Path, first: str, everywhere: str
) -> None:
    """``everywhere`` is what every process does before anything else, ``first`` what only the first one does."""
    (tmp_path / "sitecustomize.py").write_text(everywhere)
    program = f"{first}\nfrom tradeoff.simulation import run; run.ALONE = 0.0\n"
    program += "from tradeoff.apps.cli.main import main; main()"
    command = ["simulate", "coffee", *PAPER, "--respondents", "100", "--jobs", "2", "--out", str(tmp_path / "rows")]
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    with processes.Child(
        [sys.executable, "-c", program, *command],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    ) as started:
        _, said = started.communicate(timeout=processes.PATIENCE)
    assert started.returncode == 130, said
    assert "the same command continues" in said and "interrupted" in said and "Traceback" not in said


@pytest.mark.skipif(sys.platform == "win32", reason="signals to another process")
@pytest.mark.parametrize(("jobs", "sent"), [("1", signal.SIGINT), ("2", signal.SIGINT), ("1", signal.SIGKILL)])
def test_an_interrupted_command_keeps_what_is_finished_and_goes_on(
    tmp_path: Path, jobs: str, sent: signal.Signals
) -> None:
    """Ctrl-C in a terminal goes to every process of the group, so that is what is sent here."""
    out = tmp_path / "rows"
    respondents = ["coffee", *PAPER, "--out", str(out), "--respondents"]
    # The first part is interviewed here and finished, the others never are: there are finished parts to keep, and others to
    # go on with, however late the signal comes.
    endless = (
        "import time\n"
        "from tradeoff.simulation import run\n"
        "interview, write, begun = run.interview_respondents, run.write_part, []\n"
        "def once(*given):\n"
        "    if begun: time.sleep(1e9)\n"
        "    begun.append(given)\n"
        "    return interview(*given)\n"
        "def write_and_go_on(*given):\n"
        "    write(*given)\n"
        "    run.ALONE = 0.0\n"
        "run.interview_respondents, run.write_part = once, write_and_go_on\n"
        "def forever(*given): time.sleep(1e9)\n"
        "run._interview_part = forever\n"
        "from tradeoff.apps.cli.main import main; main()"
    )
    command = [sys.executable, "-c", endless, "simulate", *respondents, "100", "--jobs", jobs]

    with processes.Child(command, stderr=subprocess.PIPE, text=True) as started:
        processes.until(lambda: list(out.glob("part-*")) or started.poll() is not None, "the first rows")
        os.killpg(started.pid, sent)
        _, said = started.communicate(timeout=processes.PATIENCE)
    if sent is signal.SIGINT:
        assert started.returncode == 130, said
        assert "the same command continues" in said and "interrupted" in said and "Traceback" not in said
    assert len(list(out.glob("part-*"))) == 1

    assert "respondents is 100 there and 200 here" in " ".join(run(*respondents, "200").output.split())
    done = run(*respondents, "100", "--jobs", "1")
    assert done.exit_code == 0, done.output
    expected = simulation.simulate(tradeoff.load("coffee"), 100, strategy="paper", jobs=1).results
    assert_same_rows(read_results(out), expected)


def test_kinds_of_respondents_and_a_prior(tmp_path: Path) -> None:
    prior, broken = tmp_path / "prior.json", tmp_path / "broken.json"
    prior.write_text(json.dumps([[0.5, [2.0, 1.0, 1.0, 1.0, 1.0]], [0.5, [1.0] * 5]]))
    broken.write_text("{")
    few = ("coffee", "--respondents", "3", "--jobs", "1")
    done = run(*few, "--kind", "lexicographic", "--prior", str(prior))
    assert done.exit_code == 0, done.output
    told = " ".join(done.output.split())
    assert "respondents of the kind lexicographic" in told and "with a prior" in told
    summary = json.loads(run(*few, "--kind", "slips-20", "--json").output)
    assert summary["settings"]["kind"] == "slips-20"
    for wrong, words in (
        (("--kind", "nobody"), "there are no respondents of the kind 'nobody'; there are exact"),
        (("--prior", str(broken)), "cannot be read"),
        (("--option", "prior=3"), "use --prior for it"),
    ):
        refused = run(*few, *wrong)
        assert refused.exit_code != 0 and words in " ".join(refused.output.split())
