"""How much better something is, in a terminal: keys, lines, help, logs that are resumed, simulated people."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tests.apps.test_menus import events, run
from tradeoff import load
from tradeoff.apps.cli.main import Commands
from tradeoff.apps.cli.questions import PROMPT, pair_keys, prompt_lines
from tradeoff.apps.cli.simulate import simulate
from tradeoff.apps.cli.study import study
from tradeoff.population import Settings, user_of
from tradeoff.stores import open_store
from tradeoff.studies import Study

PAIRS = ("coffee", "--strengths", "--questions", "pairs")


def command(*arguments: str) -> Result:
    app = Commands("tradeoff", commands={"simulate": simulate, "study": study})
    return CliRunner(env={"COLUMNS": "100"}).invoke(app, list(arguments))


def test_a_pair_is_answered_on_a_scale(tmp_path: Path) -> None:
    log = tmp_path / "a.jsonl"
    done = run(*PAIRS, "--log", str(log), lines="1\n3\n5\na\n?\nu\n=\nq\n")
    assert done.exit_code == 0, done.output
    assert "You preferred A, by a lot." in done.output and "You preferred B, by a little." in done.output
    assert "'5' is not an answer; press a, b, 1 to 4 (by how much), = (about equal)" in done.output
    assert "2        A, but it is only a little better" in done.output
    answers = [event for event in events(log) if event["event"] == "answer"]
    assert [event.get("strength") for event in answers] == ["a lot", "a little", None, None]
    again = run("coffee", "--resume", str(log), lines="4\nq\n")
    assert again.exit_code == 0 and "You preferred B, by a lot." in again.output
    refused = run("coffee", "--resume", str(log), "--strengths", lines="q\n")
    assert refused.exit_code != 0 and "--strengths" in refused.output


def test_without_the_flag_there_are_no_such_keys(tmp_path: Path) -> None:
    done = run("coffee", "--questions", "pairs", lines="1\nq\n")
    assert "'1' is not an answer; press a, b, = (about equal)" in done.output and "a lot" not in done.output
    assert prompt_lines(200) == ["  ".join(PROMPT)] or "a lot" not in " ".join(prompt_lines(200))
    assert "a lot" in pair_keys(True) and "a lot" not in pair_keys(False)


def test_after_a_menu_it_is_asked_by_how_much(tmp_path: Path) -> None:
    log = tmp_path / "a.jsonl"
    done = run("coffee", "--strengths", "--log", str(log), lines="2 4\n7\n1\n1 3\nu\n3 1\n0\n2 1\nq\n")
    assert done.exit_code == 0, done.output
    assert "You said that 2 is best and 4 worst, by a lot." in done.output
    assert "'7' is not an answer; press 1 (a lot), 2 (a little), 0 (rather not say)" in done.output
    assert "You said that 3 is best and 1 worst." in done.output
    choices = [event for event in events(log) if event["event"] == "choice"]
    assert [event.get("strength") for event in choices] == ["a lot", None]  # the last one was given up


def test_simulated_people_say_it_too(tmp_path: Path) -> None:
    done = run(*PAIRS, "--simulate", "price=1,aroma=2", "--max-questions", "3", "--json")
    data = json.loads(done.stdout)
    assert {one.get("strength") for one in data["answers"]} & {"a lot", "a little"} and "relative_regret" in data
    out = tmp_path / "out.csv"
    options = ("--users", "3", "--strengths", "--jobs", "1", "--out", str(out), "--max-questions", "4")
    told = command("simulate", "coffee", *options)
    assert told.exit_code == 0, told.output
    assert "with strengths" in told.output and len(out.read_text().splitlines()) == 4
    refused = command("simulate", "coffee", "--users", "2", "--strategy", "certified", "--strengths")
    assert refused.exit_code != 0 and "learns nothing from how much better" in refused.output
    coffee = load("coffee")
    silent = user_of(coffee, 1, Settings())
    telling = user_of(coffee, 1, Settings(options={"strengths": True}))
    assert np.allclose(silent.weights / silent.weights.sum(), telling.weights)


@pytest.mark.parametrize("strengths", [True, False])
def test_a_study_asks_for_it_if_it_was_made_so(tmp_path: Path, strengths: bool) -> None:
    store = f"sqlite:///{tmp_path / 'a.db'}"
    made = command("study", "create", "mine", "coffee", "--store", store, *(["--strengths"] if strengths else []))
    assert made.exit_code == 0, made.output
    with open_store(store) as opened:
        assert Study.read(opened, "mine").settings.get("strengths", False) is strengths
