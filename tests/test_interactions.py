"""Every kind of problem on every surface: terminal, JSON, report, plot, page and API state the same facts.

A row is a kind of problem with one finished interview, a column is a surface. What is not supported is in ``REFUSED``.
"""

from __future__ import annotations

import asyncio
import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from click.testing import CliRunner

import tradeoff
from tests.docs.test_snippets import DATA
from tests.strategies.people import random_mdp
from tradeoff import Interview, ranking
from tradeoff.apps.cli.main import main
from tradeoff.apps.web.app import make_app
from tradeoff.decisions import Ranking
from tradeoff.log import read_log
from tradeoff.presentation.certainty import certainty
from tradeoff.presentation.data import recommended_data
from tradeoff.presentation.numbers import amount
from tradeoff.presentation.plans import ranked_names
from tradeoff.presentation.text import one_line
from tradeoff.stores.memory import InMemoryStore
from tradeoff.studies import Study
from tradeoff.studies.compute import Compute
from tradeoff.studies.service import Context, StudyService
from tradeoff.studies.study import new_token

FLATS = """name,rent [EUR] (min),size [m2] (max),noise [dB] (min)
Anna,700,40,50
Bert,840,62,45
Cara,800,75,60
Dora,760,50,40
Emil,900,90,55
Fred,650,35,62
Gina,905,60,61
Hugo,720,55,58
"""
POINTS = """import numpy as np
from tradeoff import Objective, PointSet
AMOUNTS = np.array([[9.0, 1.0, 3.0], [7.0, 6.0, 5.0], [1.0, 9.0, 4.0], [4.0, 4.0, 1.0], [2.0, 8.0, 2.0]])
def best(weights):
    number = int((AMOUNTS @ weights).argmax())
    return AMOUNTS[number], ["hut", "inn", "camp", "bench", "boat"][number]
problem = PointSet(best, [Objective("comfort"), Objective("fun"), Objective("weight", "kg", "min")], gap=0)
"""
TOWN = ("--objectives", "length:min,travel_time:min,climb:min", "--with", "origin=A1", "--with", "destination=E5")
ITEMS = ("plain", "curves", "monotone", "limit", "compiled")
KINDS = (*ITEMS, "mdp", "routes", "points")
PIECE = re.compile(r"(rent|size|noise) \((up to|down to|\d)|, part \d")  # how the pieces of a curve are called
# What cannot be combined, and what the error says.
REFUSED = {
    ("compile", "flats.csv", "--curves", "concave", "-o", "no.npz"): "a file cannot hold curves",
    ("compile", "python:points:problem", "-o", "no.npz"): "exists only in the program",
    ("show", "c.npz", "--curves", "concave"): "was compiled",
    ("show", "c.npz", "--limit", "rent <= 800"): "compile the problem with the limits",
    ("show", "mdp.npz", "--curves", "concave"): "is not a table of items",
    ("show", "python:points:problem", "--limit", "fun >= 2"): "limits cannot be put on",
}


def run(*words: str, code: int = 0) -> str:
    done = CliRunner(env={"COLUMNS": "400"}).invoke(main, list(words))
    assert done.exit_code == code, (words, done.output)
    assert not PIECE.search(done.output), (words, done.output)
    return done.stdout if code == 0 else done.output


@dataclass
class Row:
    """A finished interview about one kind of problem."""

    source: tuple[str, ...]
    log: str
    interview: Interview
    app: Any
    token: str

    @property
    def problem(self) -> Any:
        return self.interview.problem

    @property
    def objectives(self) -> list[str]:
        return [o.name for o in self.problem.original.objectives]

    @property
    def name(self) -> str:
        return str(recommended_data(self.problem, self.interview.recommendation)["name"])

    @cached_property
    def ranking(self) -> Ranking:
        return ranking(self.interview)

    @cached_property
    def ranked(self) -> list[str]:
        return ranked_names(self.problem, [one.option for one in self.ranking.ranked])

    def amounts(self, name: str, option: Any) -> list[float]:
        """Return what something comes to: an item as its table has it, anything else as the problem computes it."""
        for line in FLATS.splitlines()[1:]:
            if line.split(",")[0] == name and "rent" in self.objectives:
                return [float(cell) for cell in line.split(",")[1:]]
        return self.problem.original.outcome(self.problem.as_read(option).value).tolist()

    @property
    def words(self) -> list[str]:
        """What is recommended, in the amounts that people read."""
        found = self.amounts(self.name, self.interview.recommendation.option)
        return [amount(o, one) for o, one in zip(self.problem.original.objectives, found, strict=True)]

    def get(self, path: str) -> str:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                return await client.get(path.format(self.token))

        done = asyncio.run(ask())
        assert done.status_code == 200, done.text[:500]
        text = (
            html.unescape(re.sub(r"<[^>]*>", " ", done.text)) if "html" in done.headers["content-type"] else done.text
        )
        assert not PIECE.search(text)
        return " ".join(text.split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = tmp_path_factory.mktemp("kinds")
    (made / "flats.csv").write_text(FLATS)
    (made / "points.py").write_text(POINTS)
    tradeoff.save(random_mdp(np.random.default_rng(5), 3, states=4, horizon=3), made / "mdp.npz")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        run("compile", "flats.csv", "-o", "c.npz", "--tolerance", "0.001")
        yield made


@pytest.fixture(scope="module", params=KINDS)
def row(request: pytest.FixtureRequest, folder: Path) -> Iterator[Row]:
    kind = request.param
    source = {
        "plain": ("flats.csv",),
        "curves": ("flats.csv", "--curves", "concave"),
        "monotone": ("flats.csv", "--curves", "monotone:2"),
        "limit": ("flats.csv", "--limit", "rent <= 850"),
        "compiled": ("c.npz",),
        "mdp": ("mdp.npz",),
        "routes": (str(DATA / "town.graphml"), *TOWN),
        "points": ("python:points:problem",),
    }[kind]
    log = f"{kind}.jsonl"
    names = [one["name"] for one in json.loads(run("show", *source, "--json"))["objectives"]]
    run("ask", *source, "--simulate", ",".join(f"{name}={3 - i}" for i, name in enumerate(names)), "--log", log)
    events = read_log((folder / log).read_text())
    options = {"curves": source[2]} if "--curves" in source else {"limit": source[2]} if "--limit" in source else {}
    if kind == "routes":
        options = {"objectives": TOWN[1], "origin": "A1", "destination": "E5"}
    problem = tradeoff.load(source[0], **options)
    study, store, token = Study.of(problem, "study", checks=False), InMemoryStore(), new_token()
    store.create(study.name, token, events)
    compute = Compute(Context.of, (store, study, problem))
    app = make_app(StudyService(study, problem, store, compute))
    yield Row(source, log, Interview.resume(problem, events), app, token)
    compute.close()


def check_option(row: Row, data: dict[str, Any], name: str, option: Any) -> None:
    """Check the name and the amounts of an option as data."""
    assert data["name"] == name
    assert [one["objective"] for one in data["average"]] == row.objectives
    assert [one["amount"] for one in data["average"]] == pytest.approx(row.amounts(name, option), abs=1e-6)


def check_recommendation(row: Row, data: dict[str, Any]) -> None:
    found = row.interview.recommendation
    check_option(row, data["option"], row.name, found.option)
    assert data["finished"] == row.interview.finished and data["questions"] == found.questions
    for key in ("regret_bound", "robust_bound", "likely_regret", "likely_worst"):
        assert data[key] == pytest.approx(getattr(found, key), rel=1e-9), key
    assert list(data["weights"]) == row.objectives and sum(data["weights"].values()) == pytest.approx(1)
    for key in ("importance", "importance_if_right"):
        assert data[key] is None or list(data[key]) == row.objectives
    assert set(data["unidentified"]) <= set(row.objectives)
    assert data["certainty"] == certainty(row.problem.reference_name, found)


def check_ranking(row: Row, data: dict[str, Any]) -> None:
    for one, place, name in zip(data["ranking"], row.ranking.ranked, row.ranked, strict=True):
        check_option(row, one, name, place.option)
        assert (one["share"], one["loss"]) == pytest.approx((place.share, place.loss), abs=1e-9)


def test_show(row: Row) -> None:
    assert [one["name"] for one in json.loads(run("show", *row.source, "--json"))["objectives"]] == row.objectives
    assert all(name in run("show", *row.source) for name in row.objectives)


def test_solve(row: Row) -> None:
    weights = dict.fromkeys(row.objectives, 1.0)
    call = ("solve", *row.source, "--weights", ",".join(f"{name}=1" for name in weights))
    data = json.loads(run(*call, "--json"))
    assert data["weights"] == pytest.approx(weights)
    straight = getattr(row.problem, "straight", np.eye(len(weights)))
    (best,) = row.problem.best(np.ones((1, len(weights))) @ straight)
    check_option(row, data["option"] | {"name": ""}, "", best)
    assert all(name in run(*call) for name in weights)


def test_ask(row: Row) -> None:
    check_recommendation(row, json.loads(run("ask", *row.source, "--resume", row.log, "--json"))["recommendation"])
    said = run("ask", *row.source, "--resume", row.log)
    assert all(words in said for words in row.words)
    question = CliRunner(env={"COLUMNS": "400"}).invoke(main, ["ask", *row.source], input="q\n")
    assert question.exit_code == 0 and not PIECE.search(question.output)


def test_rank(row: Row) -> None:
    check_ranking(row, json.loads(run("rank", *row.source, row.log, "--json")))
    said = run("rank", *row.source, row.log)
    places = [said.index(f"{place}. {one_line(name)}"[:60]) for place, name in enumerate(row.ranked, start=1)]
    assert places == sorted(places)


def test_why_not(row: Row) -> None:
    if len(row.ranked) < 2:
        return
    other = row.ranked[1] if "rent" in row.objectives else "2"  # items have names
    data = json.loads(run("rank", *row.source, row.log, "--why-not", other, "--json"))["why_not"][0]
    found = tradeoff.why_not(row.interview, other, row.ranking)
    check_option(row, data, row.ranked[1], found.option)
    assert data["verdict"] == found.verdict and data["loss"] == pytest.approx(found.loss, abs=1e-9)
    assert json.loads(row.get(f"/api/interviews/{{}}/why-not?name={other}"))["verdict"] == found.verdict
    for name in getattr(row.problem, "beaten", {}):
        told = json.loads(run("rank", *row.source, row.log, "--why-not", name, "--json"))["why_not"][0]
        assert told["verdict"] == "dominated" and [one["amount"] for one in told["average"]] == row.amounts(name, None)


def test_what_if(row: Row) -> None:
    data = json.loads(run("rank", *row.source, row.log, "--what-if", "--json"))["what_if"]
    assert [one["objective"] for one in data] == row.objectives
    for one in data:
        stretches = one["stretches"]
        assert row.name in [each["name"] for each in stretches if each["from"] <= one["share"] <= each["to"]]
        assert stretches[0]["from"] == 0 and stretches[-1]["to"] == pytest.approx(1)
        for stretch in stretches:
            assert [each["objective"] for each in stretch["average"]] == row.objectives
    said = run("rank", *row.source, row.log, "--what-if")
    assert all(f"each share that {name} could have" in said for name in row.objectives)
    assert said.count("as recommended") >= len(row.objectives)


def test_report_plot_and_page(row: Row) -> None:
    run("report", *row.source, row.log, "-o", f"{row.log}.html")
    run("plot", *row.source, row.log, "-o", f"{row.log}.svg")
    report, plot = (Path(f"{row.log}.{end}").read_text() for end in ("html", "svg"))
    report, plot = (" ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split()) for text in (report, plot))
    page = row.get("/i/{}/result")
    for text in (report, plot, page):
        assert row.name[:30] in text and not PIECE.search(text)
    for text in (report, page):
        assert all(words in text for words in row.words)
        assert all(sentence in text for sentence in certainty(row.problem.reference_name, row.interview.recommendation))
        places = [text.index(name[:40], text.index("The best few")) for name in row.ranked]
        assert places == sorted(places)
    assert sum(words in plot for words in row.words) >= 2


def test_api(row: Row) -> None:
    check_recommendation(row, json.loads(row.get("/api/interviews/{}/recommendation")))
    check_ranking(row, json.loads(row.get("/api/interviews/{}/ranking")))


@pytest.mark.parametrize("call", REFUSED, ids=" ".join)
def test_what_cannot_be_combined_is_refused(folder: Path, call: tuple[str, ...]) -> None:
    done = CliRunner().invoke(main, list(call))
    assert done.exit_code not in (0, 1) and REFUSED[call] in " ".join(done.output.split()), done.output


def test_curves_and_compiled_items_have_the_facts_of_the_table(folder: Path) -> None:
    plain = tradeoff.load("flats.csv")
    for problem in (tradeoff.load("c.npz"), tradeoff.load("flats.csv", curves="concave")):
        assert problem.items is not None and set(problem.items.names) == set(plain.names)
        for name in plain.names:
            read = problem.as_read(problem.items.option(name))
            assert problem.original.outcome(read.value) == pytest.approx(plain.outcome(plain.option(name).value))
