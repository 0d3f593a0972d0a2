from __future__ import annotations

import json
import time
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tests.messages import refused
from tests.models import Arrays, random_arrays, small_arrays
from tests.processes import QUICK
from tradeoff import MDP, Catalogue, Objective, ProblemError, Reference, load, save
from tradeoff.sources import EXAMPLES, examples
from tradeoff.sources.files import documents

seeds = st.integers(0, 2**32 - 1)


def assert_same(a: MDP | Catalogue, b: MDP | Catalogue) -> None:
    """Two problems are the same to the last bit."""
    assert (a.objectives, a.title, a.about) == (b.objectives, b.title, b.about)
    assert a.fingerprint == b.fingerprint
    assert a.reference.name == b.reference.name and a.reference.outcome == b.reference.outcome
    if isinstance(a, Catalogue):
        assert isinstance(b, Catalogue)
        assert a.names == b.names and a.labels == b.labels
        assert a.values.tobytes() == b.values.tobytes()
        return
    assert isinstance(b, MDP)
    assert list(a.states) == list(b.states) and a.actions == b.actions
    assert (a.horizon, a.nothing_action, a.places) == (b.horizon, b.nothing_action, b.places)
    assert a.start.tobytes() == b.start.tobytes()
    assert len(a.layers) == len(b.layers)
    for one, other in zip(a.layers, b.layers, strict=True):
        for name in ("state_ptr", "action", "choice_ptr", "target", "prob", "reward", "branch_reward"):
            first, second = getattr(one, name), getattr(other, name)
            assert (first is None) == (second is None), name
            if first is not None:
                assert_array_equal(first, second, err_msg=name, strict=True)


@pytest.mark.filterwarnings("ignore::tradeoff.ProblemWarning")
@given(small_arrays(), st.sampled_from([".toml", ".json", ".npz"]))
def test_mdps_survive_the_round_trip(tmp_path_factory: pytest.TempPathFactory, arrays: Arrays, suffix: str) -> None:
    mdp = MDP.from_arrays(
        arrays.transitions, arrays.rewards, start=arrays.start, objectives=arrays.objectives,
        rewards_on="step and next", title="Ein Titel, mit \"Anführung\" \\ und\nZeile", name="x",
    )  # fmt: skip
    path = tmp_path_factory.mktemp("trip") / f"model{suffix}"
    save(mdp, path)
    assert_same(mdp, load(path))


@pytest.mark.parametrize("suffix", [".toml", ".json", ".npz"])
@pytest.mark.parametrize("name", examples())
def test_bundled_problems_survive_the_round_trip(tmp_path: Path, name: str, suffix: str) -> None:
    problem = load(name)
    save(problem, tmp_path / f"copy{suffix}")
    assert_same(problem, load(tmp_path / f"copy{suffix}"))


@given(seeds, st.sampled_from([".toml", ".json", ".npz"]), st.integers(1, 5))
def test_catalogues_survive_the_round_trip(
    tmp_path_factory: pytest.TempPathFactory, seed: int, suffix: str, k: int
) -> None:
    rng = np.random.default_rng(seed)
    names = ['<b>"x"</b>, & co', "=cmd|' /C calc'!A0", "naïve\tname", "ÅÄÖ"]
    values = rng.normal(size=(4, k)) * 10.0 ** rng.integers(-300, 300, size=(4, k))
    reference = Reference("nichts", {f"o{j}": -1.7e308 for j in range(k)}) if seed % 2 else None
    catalogue = Catalogue(
        values, [Objective(f"o{j}", "€") for j in range(k)], names, labels={"colour": list("rgbw")}, reference=reference
    )
    path = tmp_path_factory.mktemp("trip") / f"items{suffix}"
    save(catalogue, path)
    assert_same(catalogue, load(path))


@pytest.mark.parametrize("name", examples())
def test_bundled_problems_satisfy_the_schema(name: str) -> None:
    document = documents.read_document(EXAMPLES / f"{name}.toml")
    jsonschema.Draft202012Validator(json.loads(documents.SCHEMA.read_text())).validate(document)


@pytest.mark.filterwarnings("ignore::tradeoff.ProblemWarning")
def test_a_large_model_survives_as_npz(tmp_path: Path) -> None:
    arrays = random_arrays(np.random.default_rng(1), states=300, actions=3, objectives=3, horizon=5)
    mdp = MDP.from_arrays(arrays.transitions[0], arrays.rewards[0], horizon=5, rewards_on="next")
    save(mdp, tmp_path / "big.npz")
    back = load(tmp_path / "big.npz")
    assert isinstance(back, MDP)
    assert_array_equal(back.best([[1, 2, 3]])[0].value, mdp.best([[1, 2, 3]])[0].value)
    assert list(back.states)[:3] == list(mdp.states)[:3]


TINY = """
format = "tradeoff-problem/1"
kind = "mdp"
horizon = 2
start = "a"
transitions = [["a", "go", 1.0, "a", 1.0], ["a", "stay", 1.0, "a", 2.0]]
[[objectives]]
name = "fun"
"""


def test_inline_tables(tmp_path: Path) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    mdp = load(path)
    assert mdp.name == "tiny" and mdp.outcome(mdp.best([[1.0]])[0].value) == [4.0]
    items = tmp_path / "items.json"
    items.write_text(
        json.dumps(
            {
                "format": "tradeoff-problem/1",
                "kind": "catalogue",
                "objectives": [{"name": "x"}, {"name": "y", "goal": "min"}],
                "items": [["one", 1, 2], ["two", 2, 3]],
                "labels": {"colour": ["red", "blue"]},
            }
        )
    )
    catalogue = load(items)
    assert isinstance(catalogue, Catalogue) and catalogue.names == ("one", "two")


def broken(path: Path, text: str | bytes) -> str:
    """Return the message of the ProblemError that reading this file raises."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    begin = time.process_time()
    with pytest.raises(ProblemError) as caught:
        load(path)
    assert time.process_time() - begin < QUICK
    assert str(path.parent) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('kind = "mdp"', 'kind = "MDP"', "kind: 'MDP' is not one of"),
        ('format = "tradeoff-problem/1"', "", "its format is None; this version reads 'tradeoff-problem/1'"),
        ('problem/1"', 'problem/9"', "its format is 'tradeoff-problem/9'"),
        ("horizon = 2", "", "'horizon' is a required property"),
        ("horizon = 2", "horizon = 0", "horizon: 0 is less than the minimum of 1"),
        ("horizon = 2", "horizon = 2.5", "horizon: 2.5 is not of type 'integer'"),
        ("horizon = 2", "horizn = 2\nhorizon = 2", "horizn"),
        ('start = "a"', "start = {a = nan}", "start: a is nan"),
        ('start = "a"', 'start = "b"', "the start state 'b' does not exist; known are 'a'"),
        ('1.0, "a", 1.0]', '0.7, "a", 1.0]', "state 'a', action 'go' sum to 0.7, not 1"),
        ('1.0, "a", 1.0]', '-1.0, "a", 1.0]', "which is negative"),
        ('1.0, "a", 1.0]', 'inf, "a", 1.0]', "inf"),
        ('1.0, "a", 1.0]', '1.0, "b", 1.0]', "next state 'b' (reached from state 'a' by action 'go') is unknown"),
        ('1.0, "a", 1.0]', '1.0, "a", nan]', "nan"),
        ('1.0, "a", 1.0]', '1.0, "a", "x"]', "'x' is not a number"),
        ('1.0, "a", 1.0]', '1.0, "a", 1.0, 3]', "row 1: 6 entries, but 5 are needed"),
        ('name = "fun"', 'name = "fun"\n[[objectives]]\nname = "fun"', "row 1: 5 entries, but 6 are needed"),
        ('name = "fun"', 'name = "probability"', "cannot be called 'probability'"),
        ('name = "fun"', 'name = "fun"\ngoal = "up"', "objectives[0].goal: 'up' is not one of ['max', 'min']"),
        ('name = "fun"', 'nme = "fun"', "objectives[0]"),
        ('[["a"', '[[["a"', "not TOML"),
        ("horizon = 2", "horizon = 2\nhorizon = 3", "not TOML"),
    ],
)
def test_mistakes_in_a_file_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in TINY
    assert message in broken(tmp_path / "bad.toml", TINY.replace(old, new, 1))


@pytest.mark.parametrize("suffix", [".json", ".toml"])
def test_rubbish_is_refused_quickly(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"bad{suffix}"
    rng = np.random.default_rng(0)
    assert "not text" in broken(path, b"\xff" + rng.bytes(10 << 20))
    assert "not " in broken(path, rng.integers(33, 126, size=10 << 20, dtype=np.uint8).tobytes())
    assert ("not JSON" if suffix == ".json" else "its format is None") in broken(path, "")
    assert "nested too deeply" in broken(path, ("" if suffix == ".json" else "a = ") + "[" * 200_000)
    deep = "[" * 200_000 + "]" * 200_000
    assert "nested too deeply" in broken(path, deep if suffix == ".json" else f"a = {deep}")


def test_rubbish_json(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    document = json.dumps({"format": "tradeoff-problem/1", "kind": "mdp"})
    assert "the name 'kind' is given twice" in broken(path, document[:-1] + ', "kind": "mdp"}')
    assert "a problem file is a table" in broken(path, "[1, 2]")
    assert "line 1, column 2" in broken(path, "{nonsense}")
    valid = {
        "format": "tradeoff-problem/1",
        "kind": "mdp",
        "horizon": 1,
        "start": "a",
        "objectives": [{"name": "x"}],
        "transitions": [["a", "go", 1, "a", 1]],
    }
    text = json.dumps(valid)
    for number in ("1e999", "NaN", "-Infinity"):
        assert "transitions" in broken(path, text.replace('"a", 1]', f'"a", {number}]'))


def test_mistakes_in_tables_are_named(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("")
    head = TINY.replace(TINY[TINY.index("transitions") : TINY.index("[[obj")], 'transitions = "t.csv"\n')
    table = tmp_path / "t.csv"

    def message(text: str | None) -> str:
        table.unlink(missing_ok=True)
        if text is not None:
            table.write_text(text)
        return broken(tmp_path / "bad.toml", head)

    assert "t.csv does not exist" in message(None)
    assert "t.csv is empty" in message("")
    assert "there is no column 'fun'" in message("state,action,probability,next\n")
    assert "the column 'fun' is named twice" in message("state,action,probability,next,fun,fun\n")
    assert "has no rows" in message("state,action,probability,next,fun\n")
    good = "state,action,probability,next,fun\na,go,1,a,1\n"
    assert "t.csv, line 3: 4 cells, but the header in line 1 names 5" in message(good + "a,stay,1,a\n")
    assert "t.csv, line 3, column 'fun': 'lots' is not a number" in message(good + "a,stay,1,a,lots\n")
    assert "t.csv, line 3, column 'probability': '' is not a number" in message(good + "a,stay,,a,1\n")
    assert "t.csv, line 3: not readable" in message(good + 'a,"stay,1,a,1\n')
    assert "action 'stay' sum to 0.5" in message(good + "a,stay,0.5,a,1\n")


def test_npz_files_are_checked(tmp_path: Path) -> None:
    mdp = load("commute")
    path = tmp_path / "m.npz"
    save(mdp, path)
    whole = path.read_bytes()
    assert "not a tradeoff .npz file" in broken(path, whole[: len(whole) // 2])
    assert "not a tradeoff .npz file" in broken(path, b"PK" + bytes(1000))
    with np.load(__import__("io").BytesIO(whole)) as stored:
        arrays = dict(stored)

    def changed(**changes: np.ndarray) -> str:
        with path.open("wb") as file:
            np.savez_compressed(file, **(arrays | changes))
        with pytest.raises(ProblemError) as caught:
            load(path)
        return str(caught.value)

    prob, target = arrays["prob_0"].copy(), arrays["target_0"].copy()
    prob[0] += 0.1
    assert "sum to 1.1" in changed(prob_0=prob)
    target[0] = 10**6
    assert "outside" in changed(target_0=target)
    assert "wrong types" in changed(prob_0=prob.astype(np.float32))
    assert "pointers" in changed(state_ptr_0=arrays["state_ptr_0"][::-1].copy())
    assert "shape" in changed(reward_0=arrays["reward_0"][:-1])
    reward = arrays["reward_0"].copy()
    reward[3, 2] = np.nan
    assert "comfort" in changed(reward_0=reward)
    assert "holds objects" in changed(extra=np.array([{}], dtype=object))


def test_an_npz_bomb_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, header=np.zeros(200 << 20, dtype=np.uint8))
    assert path.stat().st_size < 1 << 20
    monkeypatch.setenv("TRADEOFF_MEMORY", "0.1")
    with pytest.raises(ProblemError, match=r"would need about 0\.391 GiB"):
        load(path)
    import zipfile

    from numpy.lib import format as npy

    with zipfile.ZipFile(path, "w") as archive, archive.open("header.npy", "w") as file:
        npy.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": (1 << 50,)})
    with refused(ProblemError, "header.npy", f"{1 << 50:,} bytes"):
        load(path)


def test_sources_that_do_not_exist(tmp_path: Path) -> None:
    with refused(ProblemError, "'comute'", "coffee, commute"):
        load("comute")
    with refused(ProblemError, str(tmp_path), "folder"):
        load(tmp_path)
    (tmp_path / "x.yaml").write_text("")
    with refused(ProblemError, "x.yaml", "'.yaml'", ".toml"):
        load(tmp_path / "x.yaml")
    with refused(ProblemError, "x.pkl", "'.pkl'", ".toml, .json or .npz"):
        save(load("dependent"), tmp_path / "x.pkl")


def test_a_table_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "LARGEST_FILE", 100)
    assert "use the .npz form" in broken(tmp_path / "bad.toml", TINY)
