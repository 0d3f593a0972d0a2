from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import tradeoff
from tests import processes
from tradeoff import population
from tradeoff.apps.cli.main import main
from tradeoff.apps.cli.simulate import simulate
from tradeoff.results import Results, Row, held, read_results

PAPER = ("--strategy", "paper")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["simulate", *arguments])


def rows(results: Results) -> list[Row]:
    return [replace(results.row(i), seconds=0.0) for i in range(len(results))]


def test_the_command_is_registered() -> None:
    assert main.commands["simulate"] is simulate


def test_the_table_and_the_files(tmp_path: Path) -> None:
    out, picture = tmp_path / "rows.csv", tmp_path / "rows.svg"
    done = run("coffee", *PAPER, "--users", "50", "--jobs", "1", "--out", str(out), "--plot", str(picture))
    assert done.exit_code == 0, done.output
    for words in ("50 users", "precision 1%", "questions", "regret, %", "regret without asking, %", "ms per user"):
        assert words in done.output
    with out.open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [row["index"] for row in table] == [str(i) for i in range(50)]
    assert {f"weight_{o.name}" for o in tradeoff.load("coffee").objectives} <= set(table[0])
    assert picture.read_text().startswith("<?xml")


def test_json_agrees_with_the_library_and_the_rows(tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    done = run("coffee", "--users", "40", "--precision", "0.05", "--strategy", "paper", "-o", "basis=spanner",
               "-o", "skip_implied=False",
               "--error-rate", "0.1", "--max-questions", "15", "--seed", "3", "--jobs", "1", "--out", str(out),
               "--json")  # fmt: skip
    found = json.loads(done.output)
    options = {"basis": "spanner", "skip_implied": False}
    expected = population.simulate(
        tradeoff.load("coffee"),
        40,
        precision=0.05,
        strategy="paper",
        error_rate=0.1,
        max_questions=15,
        seed=3,
        jobs=1,
        **options,
    )
    assert rows(read_results(out)) == rows(expected.results)
    assert found["questions"]["mean"] == expected.results.questions.mean()
    assert found["regret"]["worst"] == expected.results.regret.max()
    assert found["settings"] == {"precision": 0.05, "strategy": "paper", "error_rate": 0.1, "seed": 3,
                                 "max_questions": 15, "options": options, "people": "exact"}  # fmt: skip


def test_csv_and_parquet_hold_the_same(tmp_path: Path) -> None:
    import pyarrow.parquet as pyarrow

    for name in ("rows.csv", "rows.parquet"):
        assert run("coffee", *PAPER, "--users", "30", "--jobs", "1", "--out", str(tmp_path / name)).exit_code == 0
    assert rows(read_results(tmp_path / "rows.csv")) == rows(read_results(tmp_path / "rows.parquet"))
    table = pyarrow.read_table(tmp_path / "rows.parquet")
    assert table.column_names == (tmp_path / "rows.csv").read_text().splitlines()[0].split(",")
    assert table["bound"].null_count == 30
    assert json.loads(table.schema.metadata[b"tradeoff"])["settings"]["precision"] == 0.01


def test_duckdb_reads_the_parquet(tmp_path: Path) -> None:
    import duckdb

    out = tmp_path / "rows.parquet"
    assert run("coffee", *PAPER, "--users", "30", "--jobs", "1", "--out", str(out)).exit_code == 0
    found = read_results(out)
    query = f"select count(*), sum(questions), max(regret), count(bound), bool_and(complete) from '{out}'"
    expected = (30, found.questions.sum(), found.regret.max(), 0, bool(found.complete.all()))
    assert duckdb.sql(query).fetchall() == [expected]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "rows.xls"], "ending in .csv or .parquet"),
        (["--plot", "rows.bmp"], "ending in .svg"),
        (["--users", "0"], "users is 0"),
        (["--strategy", "guess"], "no strategy 'guess'"),
        (["-o", "basis"], "NAME=VALUE"),
        ([*PAPER, "-o", "basis=3"], "basis is 3"),
        (["-o", "basis=spanner", "-o", "basis=paper"], "given twice"),
        (["-o", "seed=3"], "use --seed for it"),
        (["-o", "max_questions=3"], "use --max-questions for it"),
        (["-o", "problem=3"], "use PROBLEM for it"),
        (["-o", "users=3"], "use --users for it"),
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

    monkeypatch.setattr("tradeoff.results.Parts.keep", full)
    done = run("coffee", *PAPER, "--users", "20", "--jobs", "1", "--out", str(tmp_path / "rows.csv"))
    assert done.exit_code == 4 and "No space left" in done.output


@pytest.mark.skipif(sys.platform == "win32", reason="folders cannot be locked there")
def test_a_second_run_on_the_same_file_is_exit_code_4(tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    with held(out):
        done = run("coffee", "--users", "20", "--out", str(out))
    assert done.exit_code == 4 and f"{out}.shards is in use by another process" in done.stderr
    assert run("coffee", *PAPER, "--users", "20", "--jobs", "1", "--out", str(out)).exit_code == 0


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
    program = f"{first}\nfrom tradeoff import population; population.ROUNDS = (0.0,)\n"
    program += "from tradeoff.apps.cli.main import main; main()"
    command = ["simulate", "coffee", *PAPER, "--users", "100", "--jobs", "2", "--out", str(tmp_path / "rows.csv")]
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
    out = tmp_path / "rows.csv"
    shards = tmp_path / "rows.csv.shards"
    users = ["coffee", *PAPER, "--out", str(out), "--users"]
    # The first round ends as soon as somebody's interview has, and the second never: so there are finished people to keep,
    # and others to go on with, however late the signal comes.
    endless = (
        "from tradeoff import population; population.ROUNDS = (0.0,)\n"
        "interview = population._interview\n"
        "def again_and_again(*given):\n"
        "    while True: interview(*given)\n"
        "population._interview = again_and_again\n"
        "from tradeoff.apps.cli.main import main; main()"
    )
    command = [sys.executable, "-c", endless, "simulate", *users, "100", "--jobs", jobs]

    with processes.Child(command, stderr=subprocess.PIPE, text=True) as started:
        processes.until(lambda: list(shards.glob("*.npz")) or started.poll() is not None, "the first rows")
        os.killpg(started.pid, sent)
        _, said = started.communicate(timeout=processes.PATIENCE)
    if sent is signal.SIGINT:
        assert started.returncode == 130, said
        assert "the same command continues" in said and "interrupted" in said and "Traceback" not in said
    assert list(shards.glob("*.npz")) and not out.exists()

    assert "users is 100 there and 200 here" in run(*users, "200").output
    done = run(*users, "100", "--jobs", "1")
    assert done.exit_code == 0, done.output
    assert not shards.exists()
    expected = population.simulate(tradeoff.load("coffee"), 100, strategy="paper", jobs=1).results
    assert rows(read_results(out)) == rows(expected)


def test_people_as_they_are_and_a_prior(tmp_path: Path) -> None:
    prior, broken = tmp_path / "prior.json", tmp_path / "broken.json"
    prior.write_text(json.dumps([[0.5, [2.0, 1.0, 1.0, 1.0, 1.0]], [0.5, [1.0] * 5]]))
    broken.write_text("{")
    few = ("coffee", "--users", "3", "--jobs", "1")
    done = run(*few, "--people", "lexicographic", "--prior", str(prior))
    assert done.exit_code == 0, done.output
    told = " ".join(done.output.split())
    assert "people of the kind lexicographic" in told and "with a prior" in told
    summary = json.loads(run(*few, "--people", "slips-20", "--json").output)
    assert summary["settings"]["people"] == "slips-20"
    for wrong, words in (
        (("--people", "nobody"), "there are no people of the kind 'nobody'; there are exact"),
        (("--prior", str(broken)), "cannot be read"),
        (("--option", "prior=3"), "use --prior for it"),
    ):
        refused = run(*few, *wrong)
        assert refused.exit_code != 0 and words in " ".join(refused.output.split())
