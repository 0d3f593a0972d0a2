"""rank, plot, report and group on the command line, and the keys at the end of an interview."""

from __future__ import annotations

import io
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

import tradeoff
from tests.apps.test_views import checked
from tests.docs.test_snippets import DATA
from tradeoff.apps.cli import afterwards
from tradeoff.apps.cli.main import main
from tradeoff.apps.web.jobs import group_page
from tradeoff.interview import Interview
from tradeoff.log import write_log
from tradeoff.presentation.pareto import LETTERS, WIDTH, pareto_picture
from tradeoff.presentation.text import text_width
from tradeoff.simulation.respondents import LinearRespondent
from tradeoff.stores import JsonLines, open_store
from tradeoff.studies import Session, Study
from tradeoff.studies.service import Context
from tradeoff.studies.together import finished_people

LAPTOPS = str(DATA / "laptops.csv")
OBJECTIVES = ("--objectives", "price:min,battery:max,weight:min,speed:max")


def run(*words: str, columns: int = 80) -> Result:
    return CliRunner(env={"COLUMNS": str(columns)}).invoke(main, list(words))


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three people's interviews about laptops, as files."""
    folder = tmp_path_factory.mktemp("logs")
    problem = tradeoff.load(LAPTOPS, objectives=OBJECTIVES[1])
    found = []
    for name, weights in {"ann": [3, 1, 0, 0], "bo": [0, 3, 0, 1], "cy": [1, 0, 2, 3]}.items():
        interview = Interview(problem)
        person = LinearRespondent.scaled(problem, weights, 0.02)
        while (question := interview.ask()) is not None:
            interview.tell(person(question))
        path = folder / f"{name}.jsonl"
        path.write_text(write_log(interview.log))
        found.append(path)
    return found


def test_rank_prints_the_best_few_and_why_not(logs: list[Path]) -> None:
    done = run("rank", LAPTOPS, *OBJECTIVES, str(logs[1]))
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith("1. Giro") and "likely the best" in lines[0]
    assert all(len(line) <= 80 for line in lines)
    assert sum(line[:2] in ("1.", "2.", "3.", "4.", "5.") for line in lines) == 5
    done = run("rank", LAPTOPS, *OBJECTIVES, str(logs[1]), "--why-not", "Elan", "--why-not", "2", "--what-if")
    assert "Why not Elan?" in done.stdout and "It can never be the best: “Cara”" in done.stdout
    assert "Best for each share that price could have" in done.stdout and "1. Giro" not in done.stdout
    data = json.loads(
        run("rank", LAPTOPS, *OBJECTIVES, str(logs[1]), "--json", "--why-not", "Foro", "--places", "3").stdout
    )
    assert len(data["ranking"]) == 3 and data["why_not"][0]["name"] == "Foro"


def test_an_unfinished_log_is_said_to_be_unfinished(logs: list[Path], tmp_path: Path) -> None:
    begun = tmp_path / "begun.jsonl"
    interview = Interview(tradeoff.load(LAPTOPS, objectives=OBJECTIVES[1]))
    interview.ask()
    interview.tell("first")
    begun.write_text(write_log(interview.log))
    for command in ("rank", "group"):
        for log in (begun, logs[0]):
            done = run(command, LAPTOPS, *OBJECTIVES, str(log), "--json")
            assert done.exit_code == 0 and json.loads(done.stdout)
            assert ("is not finished" in done.stderr) == (log == begun)


def test_one_person_is_no_group(logs: list[Path]) -> None:
    done = run("group", LAPTOPS, *OBJECTIVES, str(logs[0]))
    assert done.exit_code == 0 and "ann keeps 100%" in done.stdout and "least" not in done.stdout


def test_the_key_of_a_picture_fits_into_it(logs: list[Path], tmp_path: Path) -> None:
    problem = tradeoff.load(LAPTOPS, objectives=OBJECTIVES[1])
    picture = pareto_picture(problem, Interview.resume(problem, logs[0]).recommendation)
    assert picture is not None and len(picture.key) == 4
    assert all(14 + 26 + text_width(words, LETTERS) <= WIDTH for words, _ in picture.key)


def test_plot_and_report_write_files(logs: list[Path], tmp_path: Path) -> None:
    picture, page = tmp_path / "a.svg", tmp_path / "a.html"
    done = run("plot", LAPTOPS, *OBJECTIVES, str(logs[0]), "-o", str(picture), "--axes", "price,speed")
    assert done.exit_code == 0 and f"written: {picture}" in done.stderr
    assert "price and speed of 7 options and of 1 that another one beats" in done.stdout
    assert ET.parse(picture).getroot().tag.endswith("svg")
    done = run("report", LAPTOPS, *OBJECTIVES, str(logs[0]), "-o", str(page), "--title", "A laptop for Ann")
    assert done.exit_code == 0 and "A laptop for Ann" in page.read_text()
    assert "price:min,battery:max" in page.read_text()  # the command that makes it again
    done = run("plot", "coffee", "-o", str(tmp_path / "missing" / "a.svg"))
    assert done.exit_code == 2 and "No such file or directory; choose another file" in done.stderr


def test_logs_of_other_problems_and_other_files_are_refused(logs: list[Path], tmp_path: Path) -> None:
    done = run("rank", "coffee", str(logs[0]))
    assert done.exit_code == 4 and "the log is about another problem ('laptops'" in done.stderr
    done = run("report", "coffee", str(tmp_path / "none.jsonl"), "-o", str(tmp_path / "x.html"))
    assert done.exit_code == 4 and "none.jsonl: the file cannot be read" in done.stderr
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    done = run("rank", "coffee", str(tmp_path / "binary"))
    assert done.exit_code == 4 and "it is not text" in done.stderr


def test_group_prints_what_each_keeps(logs: list[Path], tmp_path: Path) -> None:
    done = run("group", LAPTOPS, *OBJECTIVES, *map(str, logs), "--menu", "3")
    assert done.exit_code == 0, done.output
    for words in ("Most on average", "Fairest", "A menu of 3 plans", "ann", "bo", "cy", "Everybody keeps all of it."):
        assert words in done.stdout
    data = json.loads(run("group", LAPTOPS, *OBJECTIVES, *map(str, logs), "--within", "0.3", "--json").stdout)
    assert data["choices"][-1]["least"] >= 0.7 and [one["name"] for one in data["people"]] == ["ann", "bo", "cy"]


def test_a_study_chooses_for_those_who_have_finished(tmp_path: Path) -> None:
    problem = tradeoff.load(LAPTOPS, objectives=OBJECTIVES[1])
    store = f"sqlite:///{tmp_path / 'study.db'}"
    with open_store(store) as opened:
        study = Study.of(problem, "mine", checks=False)
        study.save(opened, problem)
        for number, weights in enumerate(([3, 1, 0, 0], [0, 3, 0, 1], None)):
            session = Session.begin(problem, checks=False, order_seed=number, **study.interview_settings())
            if weights is not None:
                person = LinearRespondent.scaled(problem, weights, 0.02)
                while (prompt := session.ask()) is not None:
                    session.tell(prompt.turn, prompt.by_place(person(prompt.question)))
            opened.create("mine", f"token-{number}", session.events)
        context = Context.of(opened, study, problem)
        page = checked(group_page(context, opened.logs("mine")))
        assert "2 of 3 have finished" in page.text and "person 2" in page.text and "token" not in page.text
        assert "Nobody has finished yet; 0 have a link." in checked(group_page(context, {})).text
    with open_store(store) as opened:
        empty = Study.of(problem, "empty")
        empty.save(opened, problem)
        found = finished_people(problem, opened.logs("mine"))
        assert found.names == ("person 1", "person 2") and found.weights.sum(axis=1).tolist() == pytest.approx([1, 1])
    done = run("study", "group", "empty", "--store", store)
    assert done.exit_code == 2 and "nobody has finished yet; 0 have a link" in done.stderr
    done = run("study", "group", "mine", "--store", store)
    assert done.exit_code == 0, done.output
    assert (
        "note: 1 of 3 have not finished" in done.stderr and "person 2" in done.stdout and "person 3" not in done.stdout
    )


def test_keys_at_the_end_open_the_ranking_why_not_and_what_if(logs: list[Path]) -> None:
    problem = tradeoff.load(LAPTOPS, objectives=OBJECTIVES[1])
    with JsonLines.open(logs[1]) as store:
        interview = Interview.resume(problem, store.read())
    pressed = iter(["r", "w", *"Elax", "\x7f", "n", "\n", "w", *"zzz", "\r", "w", "\x1b", "i", "u"])

    def next_key(prompt):
        if prompt is not None:
            prompt()
        return next(pressed)

    out = Console(width=80, height=24, record=True, file=io.StringIO(), highlight=False)
    assert afterwards.look_around(interview, problem, out, next_key)
    shown = out.export_text()
    assert "1. Giro" in shown and "Why not Elan?" in shown and "no item is called 'zzz'" in shown
    assert "Best for each share that price could have" in shown and shown.count(afterwards.LAST_PROMPT) == 6
    assert len(afterwards.LAST_PROMPT) <= 80
    assert next(pressed, None) is None
