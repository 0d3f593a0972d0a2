"""Menus in a terminal: they fit the screen, lines and single numbers answer them, and what is no answer is refused."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from tradeoff import Interview, load
from tradeoff.apps.cli.ask import ask
from tradeoff.apps.cli.cards import lottery_of
from tradeoff.apps.cli.main import Commands
from tradeoff.apps.cli.menus import menu_details, menu_lines, prompt_lines
from tradeoff.apps.cli.questions import help_text
from tradeoff.apps.cli.source import KINDS
from tradeoff.menus import QUESTIONS
from tradeoff.presentation.menus import how_it_works, menu_table, welcome
from tradeoff.problems.catalogue import Catalogue

app = Commands("tradeoff", commands={"ask": ask})


def run(*arguments: str, lines: str = "") -> Result:
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, ["ask", *arguments], input=lines)


def events(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_items_are_asked_about_four_at_a_time_and_lines_answer(tmp_path: Path) -> None:
    log = tmp_path / "a.jsonl"
    done = run("coffee", "--log", str(log), lines="9\n2 4\n1\n1\n3\nu\n= \nu\n1,3\ns\nq\n")
    assert done.exit_code == 0, done.output
    assert "Which of these four is best for you, and which worst?" in done.output
    assert "'9' is not an answer; press 1 to 4" in done.output
    assert "'1' is not an answer; press the number of the worst (not 1)" in done.output
    assert (
        "You said that 2 is best and 4 worst." in done.output and "You said that 1 is best and 3 worst." in done.output
    )
    kinds = [event["event"] for event in events(log)]
    assert kinds.count("choice") == 4 and kinds.count("retraction") == 2 and kinds.count("skip") == 1
    first = next(event for event in events(log) if event["event"] == "menu")
    choice = next(event for event in events(log) if event["event"] == "choice")
    assert choice["tiers"][0] == [first["order"][1]] and choice["tiers"][-1] == [first["order"][3]]
    again = run("coffee", "--resume", str(log), lines="q\n")
    assert again.exit_code == 0 and "Question 4" in again.output


def test_best_of_three_takes_one_number_and_json_tells_it() -> None:
    done = run("coffee", "--questions", "best-of-3", "--max-questions", "1", "--json", lines="3\n")
    answer = json.loads(done.stdout)["answers"][0]
    assert answer["asks"] == "best" and set(answer["answer"]) == {"best"} and len(answer["alternatives"]) == 3


def test_knowledge_is_given_beforehand_and_contradictions_are_refused_in_words() -> None:
    done = run("coffee", "--know", "price >= 40%", "--know", "crema <= 10%", "--json", lines="q\n")
    said = json.loads(done.stdout)
    assert [answer["statement"] for answer in said["answers"]] == ["price >= 40%", "crema <= 10%"]
    assert said["recommendation"]["importance"]["price"][0] > 0.39 and said["recommendation"]["questions"] == 0
    wrong = run("coffee", "--know", "speed > price")
    assert wrong.exit_code == 2 and "there is no objective 'speed'" in wrong.output


def test_a_simulated_person_answers_menus() -> None:
    done = run("coffee", "--simulate", "price=3,aroma=1")
    assert done.exit_code == 0 and " best, " in done.output and "(worst)" in done.output


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("objectives", [2, 12])
def test_a_menu_fits_the_screen_with_both_prompts(width: int, objectives: int) -> None:
    values = np.random.default_rng(0).random((9, objectives)) * 1000
    names = [f"a rather long name of item number {i} that goes on and on and on" for i in range(9)]
    problem = Catalogue(values, [f"objective with words {j}" for j in range(objectives)], names=names)
    shown = [problem.alternative(i) for i in range(4)]
    table = menu_table(problem, shown, "best-worst", [lottery_of(problem, one) for one in shown])
    lines = menu_lines(table, "Question 1 of about 3", width, 24, certainty="Very likely within 10% of the best.")
    prompts = [line for best in (None, 2) for line in prompt_lines(4, width, best)]
    assert len(lines) + len(prompts) <= 24
    assert all(line.cell_len <= width for line in lines) and all(len(line) <= width for line in prompts)
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(menu_details(table, width))
    everything = console.export_text()
    assert all(f"objective with words {j}" in everything.replace("\n", " ") or width == 40 for j in range(objectives))


def test_what_is_said_beforehand_is_true_of_each_kind() -> None:
    assert tuple(QUESTIONS) == KINDS
    assert "two" in welcome(None) and "worst" in welcome("best-worst-4") and "worst" not in welcome("best-of-3")
    assert "three" in how_it_works("rank-3", "alternatives")[0]
    assert "1 to 4" in help_text(load("coffee"), "\n  1 to 4   the best\n")


def test_plans_of_many_steps_stay_pairs() -> None:
    assert "Which would you rather have, A or B?" in run("commute", lines="q\n").output
    assert "Which would you rather have, A or B?" in run("coffee", "--questions", "pairs", lines="q\n").output
    assert Interview(load("coffee")).log[0]["settings"].get("questions") is None
