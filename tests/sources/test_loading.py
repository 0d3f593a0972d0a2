"""What ``load`` does with a name before any reader sees it."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.messages import refused
from tradeoff.apps.cli.main import main
from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.sources import SCHEMES, load, plugins, runs_code


@pytest.mark.parametrize(
    "name", ["python:os:abort", "gym:FrozenLake-v1", "mo-gym:deep-sea-treasure-v0", "gym:os:Env-v0"]
)
def test_names_that_import_or_call_code(name):
    assert runs_code(name)


@pytest.mark.parametrize(
    "name", ["coffee", "a.toml", "table:a.csv", "minari:x/y-v0", "prism:a.nm", "Python:os:abort", " python:a:b"]
)
def test_names_that_only_read_data(name):
    assert not runs_code(name)


@pytest.mark.parametrize("name", ["a.ods", "a.XLS", "a.numbers"])
def test_tables_of_other_programs_say_what_to_save_them_as(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"PK")
    with pytest.raises(ProblemError, match=r"save the table as \.xlsx or \.csv"):
        load(tmp_path / name)


def test_what_is_said_to_be_data_imports_nothing(tmp_path, monkeypatch):
    """Every scheme is tried with the name of a module that must not be imported."""
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    for scheme in (*SCHEMES, *(name for name in plugins() if not name.startswith("."))):
        if not runs_code(f"{scheme}:trap"):
            with pytest.raises(ValueError):
                load(f"{scheme}:trap:Env-v0")


# --- sources of other distributions ----------------------------------------------------------------------------------

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "new-source.md"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install the example of the docs, and sources that are wrong, as a distribution would be."""
    page = PAGE.read_text(encoding="utf-8")
    code = page.split("```python\n")[1].split("```")[0]
    registered = page.split('[project.entry-points."tradeoff.sources"]\n')[1].split("```")[0].replace('"', "")
    (tmp_path / "my_corridors.py").write_text(
        code
        + """
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class FileOptions:
    horizon: object = 3


def read_file(path: Path, options: FileOptions) -> MDP:
    return read_corridor(path.read_text(), horizon=options.horizon)
"""
    )
    info = tmp_path / "my_corridors-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-corridors\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[tradeoff.sources]\n{registered}.corridor = my_corridors:read_file\nlost = no_such_module:read\n"
        "gym = my_corridors:read_corridor\n.csv = my_corridors:read_corridor\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("my_corridors", None)


def test_the_source_of_the_docs_is_found_once_it_is_installed(installed: Path) -> None:
    problem = load("corridor:4", horizon="3")
    assert problem.name == "corridor 4" and [o.name for o in problem.objectives] == ["time", "effort"]
    done = CliRunner().invoke(main, ["show", "corridor:5", "--with", "horizon=4", "--json"])
    assert done.exit_code == 0 and json.loads(done.stdout)["horizon"] == 4
    with refused(ArgumentError, "'speed'", "horizon"):
        load("corridor:4", speed=3)
    with refused(ArgumentError, "the number of rooms"):
        load("corridor:many")


def test_files_of_other_distributions_are_known_by_their_ending(installed: Path) -> None:
    (installed / "home.corridor").write_text("6")
    assert load("home.corridor", horizon=5).name == load(installed / "home.corridor").name == "corridor 6"
    with refused(ArgumentError, "'speed'", "horizon"):
        load("home.corridor", speed=3)
    with refused(ProblemError, "'away.corridor'"):
        load("away.corridor")


def test_sources_of_other_distributions_count_as_code(installed: Path) -> None:
    assert (
        runs_code("corridor:4")
        and runs_code("lost:x")
        and runs_code("home.corridor")
        and runs_code(Path("home.corridor"))
    )
    assert not runs_code("a.csv") and not runs_code("other:4") and not runs_code("coffee")


def test_built_in_sources_cannot_be_replaced(installed: Path) -> None:
    (installed / "a.csv").write_text("name,x (max)\na,1\nb,2\n")
    assert load("a.csv", keep_dominated=True).names == ("a", "b")
    with refused(ProblemError, "environment 'No-v0'"):
        load("gym:No-v0")


def test_a_source_that_cannot_be_imported_names_its_distribution(installed: Path) -> None:
    with refused(ProblemError, "'lost'", "'my-corridors'", "no_such_module:read", "ModuleNotFoundError"):
        load("lost:x")
    with pytest.raises(ProblemError, match=r"corridor, lost|lost, corridor"):
        load("unknown:x")
