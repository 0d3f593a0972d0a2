from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import tradeoff
from tests import processes
from tradeoff.apps.cli.main import main


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def test_help_teaches_and_names_every_command() -> None:
    shown = run("--help").output
    for name in main.commands:
        assert name in shown
        assert run(name, "--help").exit_code == 0
    assert "tradeoff solve commute --weights time=3,comfort=1" in shown


def test_help_loads_nothing_heavy() -> None:
    """The law behind a quick start: what --help imports is the standard library and click."""
    code = (
        "import sys; from tradeoff.apps.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'numba', 'scipy', 'rich', 'jsonschema'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = processes.run([sys.executable, "-c", code])
    assert done.returncode == 0, done.stderr


COMMANDS = {**main.commands, "study create": main.commands["study"].commands["create"]}  # type: ignore[attr-defined]
TAKES_A_PROBLEM = sorted(n for n, c in COMMANDS.items() if any(p.name == "problem" for p in c.params))


@pytest.mark.parametrize("name", TAKES_A_PROBLEM)
def test_without_a_problem_a_command_says_what_can_be_given(name: str) -> None:
    words = name.split()
    done = run(*words, *(["mine"] if name == "study create" else []))
    assert done.exit_code == 2 and "Missing argument 'PROBLEM'" in done.stderr
    for given in (*tradeoff.sources.examples(), ".csv", ".toml", "gym:"):
        assert given in done.stderr
    example = done.stderr.partition("Example: ")[2].split()
    at = example.index(words[-1]) + 1
    assert example[at - len(words) : at] == words and tradeoff.load(example[at + (name == "study create")])
    COMMANDS[name].make_context(name, example[at:])  # nothing that the command needs is left out


def test_every_command_that_reads_a_problem_is_among_them() -> None:
    assert len(TAKES_A_PROBLEM) == 13 and {"ask", "serve", "solve", "rank", "study create"} <= set(TAKES_A_PROBLEM)


def test_problems_lists_sizes() -> None:
    listed = {row["name"]: row for row in json.loads(run("problems", "--json").output)}
    assert set(listed) >= {"commute", "coffee", "vacuum", "portfolio", "dependent"}
    assert listed["coffee"]["items"] >= 200
    assert listed["commute"]["states"] > 10 and listed["commute"]["horizon"] >= 5
    assert "commute" in run("problems").output


def test_show_gives_best_and_worst_in_units() -> None:
    shown = json.loads(run("show", "commute", "--json").output)
    time = next(o for o in shown["objectives"] if o["name"] == "time")
    assert time["unit"] == "min" and time["goal"] == "min"
    assert time["best"] < 60 < time["worst"] == pytest.approx(time["reference"])
    assert "min" in run("show", "commute").output


def test_solve_agrees_with_the_library() -> None:
    found = json.loads(run("solve", "commute", "--weights", "time=3,comfort=1", "--json").output)
    problem = tradeoff.load("commute")
    weights = [[{"time": 3.0, "comfort": 1.0}.get(o.name, 0.0) for o in problem.objectives]]
    expected = problem.outcome(problem.best(weights)[0].value)
    assert [one["amount"] for one in found["option"]["average"]] == pytest.approx(expected.tolist())
    assert found["plan"][0]["state"] == "home" and found["plan"][0]["probability"] == 1
    people = run("solve", "commute", "--weights", "time=3,comfort=1")
    assert people.exit_code == 0 and "on average" in people.output
    assert "first: drive to the highway ramp, then take the highway" in people.output


def test_solve_a_catalogue() -> None:
    found = json.loads(run("solve", "coffee", "--weights", "price=1", "--json").output)
    coffee = tradeoff.load("coffee")
    price = next(one["amount"] for one in found["option"]["average"] if one["objective"] == "price")
    assert price == coffee.values[:, [o.name for o in coffee.objectives].index("price")].min()
    assert found["item"] in run("solve", "coffee", "--weights", "price=1").output


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("speed=1", "there is no objective 'speed'; there are time,"),
        ("time", "'time' is not of the form NAME=NUMBER"),
        ("time=fast", "weight of 'time' is 'fast', which is not a number"),
        ("time=nan", "is not a number"),
        ("time=1,time=2", "given twice"),
        ("time=0", "all weights are 0"),
    ],
)
def test_bad_weights_exit_with_2(weights: str, message: str) -> None:
    done = run("solve", "commute", "--weights", weights)
    assert done.exit_code == 2 and message in done.stderr and done.stdout == ""


def test_a_bad_problem_exits_with_3_and_says_where(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text("[" * 200_000)
    for command in (["check"], ["show"], ["solve", "--weights", "x=1"]):
        done = run(*command, str(path))
        assert done.exit_code == 3 and "bad.json" in done.stderr and done.stdout == ""
    done = run("check", str(path), "--json")
    said = json.loads(done.stdout)
    assert done.exit_code == 3 and said["valid"] is False and "bad.json" in said["error"]
    assert run("check", "nowhere").exit_code == 3
    assert run("check").exit_code == 2
    assert run("nonsense").exit_code == 2


def test_check_says_what_was_put_right(tmp_path: Path) -> None:
    path = tmp_path / "odd.toml"
    path.write_text(
        'format = "tradeoff-problem/1"\nkind = "mdp"\nhorizon = 1\nstart = "a"\n'
        'transitions = [["a", "go", 0.5, "a", 1, 3], ["a", "stay", 1, "a", 2, 3], ["b", "go", 1, "a", 1, 3]]\n'
        '[[objectives]]\nname = "x"\n[[objectives]]\nname = "fixed"\n'
    )
    assert run("check", str(path)).exit_code == 3
    done = run("check", "--renormalise", str(path))
    assert done.exit_code == 0
    assert "1 state cannot be reached" in done.stdout and "fixed comes out the same" in done.stdout
    found = json.loads(run("check", "--renormalise", "--json", str(path)).output)
    assert found["valid"] is True and len(found["notes"]) == 2


def test_check_says_that_there_are_too_many_objectives_and_how_to_choose(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    heads = [f"c{j} (max)" for j in range(30)]
    rows = [["a", *map(str, range(30))], ["b", *map(str, range(30, 0, -1))]]
    path.write_text("\n".join(",".join(row) for row in [["name", *heads], *rows]) + "\n")
    (note,) = [note for note in json.loads(run("check", str(path), "--json").stdout)["notes"] if "at most 20" in note]
    chosen = note.partition("--objectives ")[2]
    assert not any(
        "at most 20" in note
        for note in json.loads(run("check", str(path), "--json", "--objectives", chosen).stdout)["notes"]
    )
    assert len(tradeoff.load(path, objectives=chosen).objectives) == 20


def test_one_item_is_one_item(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("name,y (max)\na,1\nb,2\n")
    assert "a catalogue of 1 item\n" in run("check", str(path)).stdout


def test_hostile_names_stay_inert(tmp_path: Path) -> None:
    path = tmp_path / "hostile.json"
    names = ["[bold red]x[/]", "\x1b[31mred\x1b[0m", "<script>alert(1)</script>", "=cmd()"]
    path.write_text(
        json.dumps(
            {
                "format": "tradeoff-problem/1",
                "kind": "catalogue",
                "title": "\x1b]0;owned\x07 [link=x]y[/link]",
                "objectives": [{"name": "[red]a[/red]"}, {"name": "b\x1b[2J"}],
                "items": [[name, i, -i] for i, name in enumerate(names)],
            }
        )
    )
    for arguments in (["show", str(path)], ["check", str(path)], ["solve", str(path), "--weights", "[red]a[/red]=1"]):
        done = run(*arguments)
        assert done.exit_code == 0, done.output
        assert "\x1b" not in done.output and "\x07" not in done.output
    assert "[red]a[/red]" in run("show", str(path)).output
    assert "=cmd()" in run("solve", str(path), "--weights", "[red]a[/red]=1").output


def test_public_names_are_listed_once_and_resolve() -> None:
    assert set(tradeoff.__all__) == set(tradeoff._HOME)
    for name in tradeoff.__all__:
        assert getattr(tradeoff, name) is not None
    assert {name for name in dir(tradeoff) if not name.startswith("__")} == set(tradeoff.__all__)
    assert tradeoff.__version__
    with pytest.raises(AttributeError, match="nonsense"):
        tradeoff.nonsense  # noqa: B018
