from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import tradeoff
from tradeoff.apps.cli.explain import explain
from tradeoff.apps.cli.main import Commands

app = Commands("tradeoff", commands={"explain": explain})
COMMUTE = ("commute", "--weights", "time=3,comfort=1")


def run(*arguments: str, columns: int = 80, **environment: str) -> Result:
    return CliRunner(env={"COLUMNS": str(columns)} | environment).invoke(app, ["explain", *arguments])


def hostile_problem(path: Path, kind: str) -> Path:
    document = {
        "format": "tradeoff-problem/1",
        "kind": kind,
        "title": "\x1b]0;owned\x07 [link=x]y[/link]",
        "objectives": [{"name": "[red]a[/red]"}, {"name": "b\x1b[2J", "unit": "[bold]"}],
    }
    if kind == "catalogue":
        document["items"] = [["\x1b[31m[bold]x[/bold]<script>", 1, 2], ["plain", 0, 3]]
    else:
        moves = [
            ["[i]s[/i]", "\x1b[2Jgo<b>", 0.5, "[i]s[/i]", 1, 2],
            ["[i]s[/i]", "\x1b[2Jgo<b>", 0.5, "end\x07", 3, 1],
        ]
        document |= {"horizon": 3, "start": "[i]s[/i]", "ends": ["end\x07"], "transitions": moves}
        document["places"] = {"[i]s[/i]": [0, 0], "end\x07": [1, 1]}
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("options", [(), ("--method", "flow")])
def test_the_shares_and_outcomes_average_to_those_of_the_plan(options: tuple[str, ...]) -> None:
    done = run(*COMMUTE, "--json", *options)
    assert done.exit_code == 0 and done.stderr == ""
    found = json.loads(done.stdout)
    trip = tradeoff.load("commute")
    (best,) = trip.best([[found["weights"][o.name] for o in trip.objectives]])
    plan = found["option"]
    assert plan["gains"] == best.value.tolist()
    average = [one["amount"] for one in plan["average"]]
    assert average == pytest.approx(trip.outcome(best.value).tolist())
    stories = plan["stories"]
    assert sum(story["share"] for story in stories) == pytest.approx(1)
    assert sum(story["count"] for story in stories) == stories[0]["of"]
    assert [story["share"] for story in stories] == sorted((story["share"] for story in stories), reverse=True)
    for j, amount in enumerate(average):
        assert sum(story["share"] * story["outcome"][j]["amount"] for story in stories) == pytest.approx(amount)
    assert all(story["states"][0] == "home" and 0 < story["probability"] <= 1 for story in stories)


def test_people_read_everything_within_80_columns() -> None:
    found = json.loads(run(*COMMUTE, "--json").stdout)
    page = run(*COMMUTE).stdout
    flowing = " ".join(page.split())
    assert max(map(len, page.splitlines())) <= 80
    assert all(c.isprintable() or c == "\n" for c in page)
    for story in found["option"]["stories"]:
        assert f"{100 * story['probability']:.2g}% of the time" in flowing
        assert all(words in flowing for words in story["words"])
    assert "time 40 min" in flowing and "90% of the time" in flowing
    assert "on average" in flowing and "42.9 min" in flowing
    narrow = run(*COMMUTE, columns=40).stdout
    assert max(map(len, narrow.splitlines())) <= 40


def test_a_catalogue_has_one_certain_story() -> None:
    page = run("coffee", "--weights", "body=1").stdout
    assert "every time" in page and "10 points" in page and "at worst" not in page
    for option in (("--method", "flow"), ("--method", "expand")):
        refused = run("coffee", "--weights", "body=1", *option)
        assert refused.exit_code == 2 and refused.stdout == ""
        assert f"{option[0]} {option[1]}" in refused.stderr


@pytest.mark.parametrize("kind", ["catalogue", "mdp"])
def test_hostile_names_stay_inert(kind: str, tmp_path: Path) -> None:
    path = hostile_problem(tmp_path / "hostile.json", kind)
    done = run(str(path), "--weights", "[red]a[/red]=1")
    assert done.exit_code == 0, done.output
    assert "\x1b" not in done.output and "\x07" not in done.output
    assert "[red]a[/red]" in done.stdout and "[link=x]y[/link]" in done.stdout
    assert ("[i]s[/i]: " if kind == "mdp" else "[bold]x[/bold]<script>") in done.stdout


def test_no_colour_when_asked_for_none() -> None:
    coloured = run(*COMMUTE, FORCE_COLOR="1", TERM="xterm-256color").stdout
    without = run(*COMMUTE, FORCE_COLOR="1", TERM="xterm-256color", NO_COLOR="1").stdout
    assert "\x1b[" in coloured and "\x1b[3" not in without


def test_bad_arguments_are_usage_errors() -> None:
    assert run("commute").exit_code == 2
    assert run("commute", "--weights", "speed=1").exit_code == 2
    assert run(*COMMUTE, "--method", "magic").exit_code == 2
    assert run("nowhere", "--weights", "x=1").exit_code == 3
