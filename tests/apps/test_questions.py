"""Questions in a terminal: they fit the screen, what is cut can be opened, and lines and single keys answer them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

import tradeoff
from tradeoff.apps.cli.ask import LoggedInterview, ask
from tradeoff.apps.cli.cards import lottery_of
from tradeoff.apps.cli.main import Commands
from tradeoff.apps.cli.questions import QuestionScreen, prompt_lines, question_details, question_lines
from tradeoff.apps.cli.source import KINDS
from tradeoff.evidence import QUESTIONS
from tradeoff.presentation.cards import Card
from tradeoff.presentation.question import (
    LabelRow,
    ObjectiveRow,
    QuestionTable,
    how_it_works,
    place_names,
    question_table,
    question_words,
    welcome,
)
from tradeoff.presentation.result import certificate_while_asking
from tradeoff.presentation.sentences import ASKED_AGAIN, progress
from tradeoff.presentation.stories import Repeat, Story
from tradeoff.simulation.respondents import LinearRespondent

app = Commands("tradeoff", commands={"ask": ask})
DATA = Path(__file__).parents[2] / "docs" / "how-to" / "data"
SIZES = [(80, 24), (40, 24), (120, 50)]
TOWN = {"objectives": "length:min,travel_time:min,climb:min", "origin": "A1", "destination": "E5"}
PROBLEMS: dict[str, dict[str, Any]] = {
    "commute": {}, "portfolio": {}, "vacuum": {}, "coffee": {}, str(DATA / "laptops.csv"): {}, str(DATA / "town.graphml"): TOWN,
}  # fmt: skip


# --- layout ----------------------------------------------------------------------------------------------------------


def opened(table: QuestionTable, width: int) -> str:
    """Return the details as one line, however they are wrapped."""
    out = Console(width=width, height=24, no_color=True)
    with out.capture() as found:
        out.print(question_details(table, width))
    return "".join(c for c in found.get() if not c.isspace() and c not in "│┌┐└┘─┬┴├┤┼")


def check(table: QuestionTable, heading: str, width: int, height: int, note: str = "", certainty: str = "") -> None:
    lines = question_lines(table, heading, width, height, note=note, certainty=certainty)
    prompts = prompt_lines(table, width)
    assert "d details" in " ".join(prompts)
    prompts += [] if table.asks == "best" else prompt_lines(table, width, 0)  # one below the other
    assert len(lines) + len(prompts) <= height, "\n".join(line.plain for line in lines)
    assert max(map(cell_len, [*(line.plain for line in lines), *prompts])) <= width
    whole, inside = "".join("".join(line.plain for line in lines).split()), opened(table, width)
    texts = [*table.names, *(name for name, _ in table.same), *(text for _, text in table.same)]
    for row in table.differing:
        texts += [row.name, *row.amounts, *([row.comparative] if table.is_pair else [])]
    texts += [text for row in table.differing_labels for text in (row.name, *row.texts)]
    for text in ("".join(text.split()) for text in texts):
        assert text in inside
        assert text in whole or "..." in whole or "(dshowsall)" in whole, (text, whole)
    for row in table.rows:
        assert "".join(row.description.split()) in inside


@pytest.mark.parametrize("kind", QUESTIONS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_question_of_an_interview_fits_one_screen(name: str, kind: str) -> None:
    problem = tradeoff.load(name, **PROBLEMS[name])
    for seed in range(2):
        weights = [1.0 + (3 * j + 2 * seed) % 4 for j in range(len(problem.objectives))]
        person = LinearRespondent.scaled(problem, weights, 0.01)
        interview = tradeoff.Interview(problem, order_seed=seed, seed=seed, questions=kind)
        asked = 0
        while (shown := interview.next()) is not None:
            question = interview.ask()
            assert question is not None
            asked += 1
            lotteries = [lottery_of(problem, option) for option in shown.options]
            table = question_table(problem, shown.options, question.asks, lotteries)
            heading = progress(asked, interview.at_most)
            for width, height in SIZES:
                certainty = certificate_while_asking(interview.recommendation)
                note = ASKED_AGAIN if shown.again else ""
                check(table, heading, width, height, note, certainty)
            lines = question_lines(table, heading, 80, 24)
            plain = " ".join(" ".join(line.plain for line in lines).split())
            for row in table.differing:  # of the bundled problems everything fits
                assert all(text in plain for text in ([row.comparative] if table.is_pair else row.amounts))
            interview.tell(person(question))
        assert asked > 1


texts = st.text(st.characters(categories=["L", "N", "Zs"]), min_size=1, max_size=200).map(
    lambda text: " ".join(text.split()) or "x"
)


@st.composite
def tables(draw: st.DrawFn) -> QuestionTable:
    count, asks = draw(st.sampled_from([(2, "best"), (4, "best"), (4, "best-worst")]))
    places = range(count)
    rows = tuple(
        ObjectiveRow(
            name=f"{j}{draw(texts)}",
            goal="more is better",
            amounts=tuple(f"{j + i} x" for i in places),
            lengths=tuple((j + i) / 50 for i in places),
            best=draw(st.sampled_from([frozenset[int](), frozenset({0}), frozenset({1}), frozenset({count - 1})])),
            part=draw(st.floats(0, 1)),
            gap="1 x",
            comparative="1 x more",
            description=draw(st.just("") | texts),
        )
        for j in range(draw(st.integers(1, 30)))
    )
    some = st.integers(0, 12).map(range)
    labels = tuple(LabelRow(f"label {j}", tuple(draw(texts) for _ in places)) for j in draw(some))
    card = Card("", (Story("", "", False, (Repeat((("here", "go"),)),), (), ("here",)),), (), None)
    return QuestionTable(
        words=question_words(count, asks), asks=asks, places=place_names(count), names=tuple(draw(texts) for _ in places),
        lead="", average="on average", cards=(card,) * count, rows=rows, labels=labels, shared="", guides=(), chances=(),
    )  # fmt: skip


@given(tables(), st.sampled_from([(80, 24), (40, 24), (60, 16), (100, 40)]), texts)
def test_whatever_it_is_about_a_question_fits_and_can_be_opened(
    table: QuestionTable, size: tuple[int, int], words: str
) -> None:
    check(table, "Question 1, at most 29 more", *size, ASKED_AGAIN, words)


@pytest.mark.parametrize(("name", "chance"), [("coffee", False), ("commute", True)])
def test_help_speaks_of_chance_only_where_there_is_any(name: str, chance: bool) -> None:
    problem = tradeoff.load(name)
    logged = LoggedInterview(tradeoff.Interview(problem, questions="best-worst-4"), None)
    shown = logged.ask()
    assert shown is not None and len(shown.options) == 4
    screen = QuestionScreen(logged, problem, shown, Console(file=io.StringIO()))
    words = screen.help().plain
    assert "1 to 4" in words and ("Each plan is told as a few of the ways it can go" in words) == chance


def test_what_is_said_beforehand_is_true_of_each_kind() -> None:
    assert tuple(QUESTIONS) == KINDS
    assert "two" in welcome(None) and "worst" not in welcome("pairs") and "worst" in welcome("best-worst-4")
    assert "two" in how_it_works(None, "options")[0] and "four" in how_it_works("best-worst-4", "options")[0]


# --- answers ---------------------------------------------------------------------------------------------------------


def run(*arguments: str, lines: str = "") -> Result:
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, ["ask", *arguments], input=lines)


def test_items_are_asked_about_four_at_a_time_and_lines_answer(tmp_path: Path) -> None:
    log = tmp_path / "a.jsonl"
    done = run("coffee", "--log", str(log), lines="9\n2 4\n1\n1\n3\nu\n= \nu\n1,3\ns\nq\n")
    assert done.exit_code == 0, done.output
    assert "Which of these four is best for you, and which worst?" in done.output
    assert "'9' is not an answer; press 1 to 4" in done.output
    assert "'1' is not an answer; press the number of the worst (not 1)" in done.output
    for best, worst in ((2, 4), (1, 3)):
        assert f"You said that {best} is best and {worst} worst." in done.output
    events = [json.loads(line) for line in log.read_text().splitlines()]
    answers = [event for event in events if event["event"] == "answer"]
    assert [event.get("reply") for event in answers] == [None, None, "equal", None, "skip"]
    assert sum(event["event"] == "undo" for event in events) == 2
    first = next(event for event in events if event["event"] == "question")
    assert first["asks"] == "best-worst" and len(first["options"]) == 4
    assert (answers[0]["best"], answers[0]["worst"]) == (first["order"][1], first["order"][3])
    again = run("coffee", "--resume", str(log), lines="q\n")
    assert again.exit_code == 0 and "Question 4" in again.output


def test_the_best_can_be_chosen_again_before_the_worst_is() -> None:
    done = run("coffee", "--max-questions", "1", "--json", lines="1\nu\n3\n2\n")
    (answer,) = json.loads(done.stdout)["answers"]
    assert answer["asks"] == "best-worst" and set(answer["reply"]) == {"best", "worst"}
    assert "You said that 3 is best and 2 worst." in done.stderr and len(answer["options"]) == 4


def test_knowledge_is_given_beforehand_and_contradictions_are_refused_in_words() -> None:
    done = run("coffee", "--know", "price >= 40%", "--know", "crema <= 10%", "--json", lines="q\n")
    found = json.loads(done.stdout)
    assert [answer["statement"] for answer in found["answers"]] == ["price >= 40%", "crema <= 10%"]
    assert found["recommendation"]["importance"]["price"][0] > 0.39 and found["recommendation"]["questions"] == 0
    wrong = run("coffee", "--know", "speed > price")
    assert wrong.exit_code == 2 and "there is no objective 'speed'" in wrong.output


def test_a_simulated_person_answers_menus() -> None:
    done = run("coffee", "--simulate", "price=3,aroma=1")
    assert done.exit_code == 0 and " best, " in done.output and "(worst)" in done.output


def test_plans_of_many_steps_stay_pairs() -> None:
    assert "Which would you rather have, A or B?" in run("commute", lines="q\n").output
    assert "Which would you rather have, A or B?" in run("coffee", "--questions", "pairs", lines="q\n").output
    assert tradeoff.Interview(tradeoff.load("coffee")).log[0]["settings"].get("questions") is None


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("objectives", [2, 12])
def test_a_menu_with_long_names_fits_the_screen(width: int, objectives: int) -> None:
    values = np.random.default_rng(0).random((9, objectives)) * 1000
    names = [f"a rather long name of item number {i} that goes on and on and on" for i in range(9)]
    problem = tradeoff.Catalogue(values, [f"objective with words {j}" for j in range(objectives)], names=names)
    shown = [problem.option(i) for i in range(4)]
    table = question_table(problem, shown, "best-worst", [lottery_of(problem, one) for one in shown])
    check(table, "Question 1 of about 3", width, 24, certainty="Very likely within 10% of the best.")
