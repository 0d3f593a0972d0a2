from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.sources.test_files import assert_same
from tradeoff import MDP, Catalogue, Objective, ProblemError, load, save

SUFFIXES = [".toml", ".json", ".npz"]


def unnamed(ends: bool, timed: bool) -> MDP:
    """Return a model whose states are numbers, with gaps where some cannot be reached."""
    rng = np.random.default_rng(3)
    live = [1, 4, 5, 8]
    transitions = np.zeros((3, 10, 2, 10))
    for state in range(10):
        transitions[:, state, :, state] = 1.0
    for state in live:
        transitions[:, state] = 0.0
        transitions[:, state][..., live] = rng.dirichlet(np.ones(4), size=(3, 2))
    if ends:
        transitions[:, 8] = 0.0
    rewards = rng.normal(size=(3, 10, 2, 10, 2))
    if timed:
        return MDP.from_arrays(transitions, rewards, start=4, rewards_on="step and next")
    return MDP.from_arrays(transitions[0], rewards[0], start=4, horizon=3, rewards_on="next")


@pytest.mark.filterwarnings("ignore::tradeoff.ProblemWarning")
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("timed", [False, True])
def test_models_without_state_names_survive(tmp_path: Path, suffix: str, ends: bool, timed: bool) -> None:
    mdp = unnamed(ends, timed)
    assert list(mdp.states) == ["1", "4", "5", "8"]
    save(mdp, tmp_path / f"model{suffix}")
    assert_same(mdp, load(tmp_path / f"model{suffix}"))


@pytest.mark.filterwarnings("ignore::tradeoff.ProblemWarning")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_places_of_states_that_were_left_out_are_not_written(tmp_path: Path, suffix: str) -> None:
    mdp = MDP.from_rows(
        [("a", "go", 1, "a", 1), ("b", "go", 1, "a", 1)], horizon=1, start="a", places={"a": (0, 1), "b": (1, 1)}
    )
    save(mdp, tmp_path / f"model{suffix}")
    assert load(tmp_path / f"model{suffix}").places == {"a": (0.0, 1.0)}  # type: ignore[union-attr]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_labels_keep_every_character(tmp_path: Path, suffix: str) -> None:
    texts = ["  two spaces ", "", "\t", "a\r\nb", "a\rb", "\n", ' "quoted", ', "ÅÄÖ €"]
    names = [f"i{j}" for j in range(8)]
    catalogue = Catalogue(np.eye(8), None, names, labels={"text": texts, "other": [*texts[4:], *texts[:4]]})
    save(catalogue, tmp_path / f"items{suffix}")
    assert_same(catalogue, load(tmp_path / f"items{suffix}"))
    if suffix != ".npz":
        assert (tmp_path / "items.csv").read_bytes().startswith(b"name,objective 1,")


def test_spaces_around_names_and_numbers_do_not_count(tmp_path: Path) -> None:
    document = {"format": "tradeoff-problem/1", "kind": "catalogue", "objectives": [{"name": "x"}], "items": "i.csv"}
    (tmp_path / "i.json").write_text(json.dumps(document))
    (tmp_path / "i.csv").write_text("name, x , label\n one , 1 , red \ntwo,2,blue\n")
    catalogue = load(tmp_path / "i.json")
    assert isinstance(catalogue, Catalogue)
    assert catalogue.names == ("one", "two") and catalogue.labels == {"label": (" red ", "blue")}


def cannot(problem: Any, path: Path) -> str:
    """Return why a problem is not written; nothing is left behind."""
    before = {file: file.read_bytes() for file in path.parent.glob("*") if file.is_file()}
    with pytest.raises(ProblemError) as caught:
        save(problem, path)
    assert {file: file.read_bytes() for file in path.parent.glob("*") if file.is_file()} == before
    return str(caught.value)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_missing_folder(tmp_path: Path, suffix: str) -> None:
    assert "there is no folder" in cannot(load("dependent"), tmp_path / "none" / f"x{suffix}")
    (tmp_path / f"x{suffix}").mkdir()
    with pytest.raises(ProblemError, match="cannot be written"):
        save(load("dependent"), tmp_path / f"x{suffix}")


@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_tables_of_others_are_not_overwritten(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"commute{suffix}"
    for name in ("commute.csv", "commute.places.csv"):
        (tmp_path / name).write_text("precious")
        assert f"{name} already" in cannot(load("commute"), path)
        (tmp_path / name).unlink()
    save(load("commute"), path)
    save(load("commute"), path)  # its own tables are replaced
    other = path.with_suffix(".json" if suffix == ".toml" else ".toml")
    assert "choose another name" in cannot(load("commute"), other)
    path.write_text("something else")
    assert "is not a table of" in cannot(load("commute"), path)


@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_what_could_not_be_read_is_not_written(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    assert "cannot be called 'name'" in cannot(Catalogue([[1], [2]], ["name"]), path)
    for label in ("name", "x", " y", ""):
        labelled = Catalogue([[1], [2]], ["x"], labels={label: ["a", "b"]})
        assert "the column name" in cannot(labelled, path)
    for name in ("step", "state", "next", "probability", "action"):
        mdp = MDP.from_rows([("a", "go", 1, "a", 1)], horizon=1, start="a", objectives=[Objective(name)])
        assert f"cannot be called {name!r}" in cannot(mdp, path)
    mdp = MDP.from_rows([("a", "go", 1, "a", 1)], horizon=10**12, start="a")
    assert "correct the horizon" in cannot(mdp, path)
    assert "half a character" in cannot(Catalogue([[1], [2]], title="\ud800"), path)
    assert "names the table 'a\\\\b.csv'" in cannot(Catalogue([[1], [2]]), tmp_path / f"a\\b{suffix}")


def test_files_are_utf8_everywhere(tmp_path: Path) -> None:
    save(Catalogue([[1], [2]], [Objective("größe", "€")], title="Ä"), tmp_path / "x.toml")
    assert "größe" in (tmp_path / "x.toml").read_bytes().decode("utf-8")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", ["vacuum", "portfolio", "coffee"])
def test_descriptions_survive_and_identify_nothing(tmp_path: Path, suffix: str, name: str) -> None:
    problem = load(name)
    save(problem, tmp_path / f"model{suffix}")
    again = load(tmp_path / f"model{suffix}")
    assert [o.description for o in again.objectives] == [o.description for o in problem.objectives]
    assert all(o.description for o in again.objectives)
    assert again.wording.description == problem.wording.description
    assert again.fingerprint == problem.fingerprint
    plain = type(problem.objectives[0])(
        problem.objectives[0].name, problem.objectives[0].unit, problem.objectives[0].goal
    )
    assert plain == problem.objectives[0] and repr(plain) == repr(problem.objectives[0])


@pytest.mark.parametrize(
    ("describe", "complaint"),
    [
        ({"states": "{a"}, "no variable"),
        ({"states": "{a}", "b": "x"}, "in none"),
        ({"states": "{a}", "a": "{z}"}, "exist"),
    ],
)
def test_a_description_that_says_nothing_is_refused(tmp_path: Path, describe: dict[str, str], complaint: str) -> None:
    document = {
        "format": "tradeoff-problem/1", "kind": "mdp", "horizon": 1, "start": "a", "ends": ["b"],
        "transitions": [["a", "go", 1, "b", 1]], "objectives": [{"name": "x"}], "describe": describe,
    }  # fmt: skip
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ProblemError, match=complaint):
        load(path)
