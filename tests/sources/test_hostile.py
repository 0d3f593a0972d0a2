"""Files that are wrong in ways nobody writes by hand: each is refused quickly, with its name and what to do."""

from __future__ import annotations

import io
import json
import os
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.lib import format as npy

from tests.processes import QUICK
from tradeoff import ProblemError, load, save
from tradeoff.sources.files import documents

VALID: dict[str, Any] = {
    "format": "tradeoff-problem/1",
    "kind": "mdp",
    "horizon": 1,
    "start": "a",
    "objectives": [{"name": "x"}],
    "transitions": [["a", "go", 1, "a", 1]],
}
HEAD = 'format = "tradeoff-problem/1"\nkind = "mdp"\nhorizon = 1\nstart = "a"\n'
TAIL = 'transitions = [["a", "go", 1, "a", 1]]\n[[objectives]]\nname = "x"\n'


def refused(path: Path, text: str | bytes | None = None) -> str:
    """Return why a file is refused, which is quick and names the file or its folder."""
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    begin = time.process_time()
    with pytest.raises(ProblemError) as caught:
        load(path)
    assert time.process_time() - begin < QUICK
    message = str(caught.value)
    assert str(path.parent) in message and len(message) < 1000
    return message


def document(**changes: Any) -> str:
    return json.dumps(VALID | changes)


def marked(change: Callable[[str], dict[str, Any]], number: str) -> str:
    """Return a document with a number that Python itself would not write."""
    return document(**change("@")).replace('"@"', number)


ROW = ["a", "go", 1, "a"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (marked(lambda n: {"horizon": n}, "1" * 10_000), "a whole number has more than 4,300 digits"),
        (marked(lambda n: {"transitions": [[*ROW, n]]}, "1" * 400), "is too large for a number"),
        (marked(lambda n: {"transitions": [["a", "go", n, "a", 1]]}, "1" * 400), "is too large for a number"),
        (marked(lambda n: {"start": {"a": n}}, "1" * 400), "is too large for a number"),
        (marked(lambda n: {"places": {"a": [n, 1]}}, "1" * 400), "is too large for a number"),
        (marked(lambda n: {"reference": {"name": "r", "outcome": {"x": n}}}, "1" * 400), "is too large for a number"),
        (document(horizon=10**10), "correct the horizon"),
        (document(horizon=10**30), "correct the horizon"),
        (document(horizon=10**9, transitions=[["a", str(i), 1, "a", 1] for i in range(2000)]), "correct the horizon"),
        (document(transitions="."), "transitions names the table '.'"),
        (document(transitions=".."), "transitions names the table '..'"),
        (document(transitions=""), "transitions names the table ''"),
        (document(transitions="../../etc/passwd"), "transitions names the table '../../etc/passwd'"),
        (document(transitions="/etc/passwd"), "transitions names the table '/etc/passwd'"),
        (document(transitions="..\\passwd"), "transitions names the table '..\\\\passwd'"),
        (document(transitions="a\0b"), "transitions names the table 'a\\x00b'"),
        (document(transitions="folder"), "is a folder, a device or a pipe"),
        (document(transitions="pipe"), "is a folder, a device or a pipe"),
        (document(transitions="zero"), "is a folder, a device or a pipe"),
        (document(transitions="t" * 5000), "a table with 5,000 characters"),
        (document(transitions="t" * 255), "does not exist"),
        (document(places="../places.csv"), "places names the table '../places.csv'"),
        (document(title="\ud800"), "half a character"),
        (document(**{f"k{i}": 1 for i in range(500_000)}), "500,006 names at its top"),
        (document(**{f"k{i}": 1 for i in range(900)}), "Unevaluated properties"),
        (document(objectives=[{"name": f"o{i}"} for i in range(200_000)]), "200,000 objectives"),
        (document(objectives=[{"name": f"o{i}"} for i in range(900)]), "5 entries, but 904 are needed"),
        (document(states=[f"s{i}" for i in range(300_000)]), "state 'a' is unknown"),
        (document(states=["a", "b", "c", "d", *range(300_000)]), "states[4]: 0 is"),
        (document(actions=["go", "b", "c", "d", None]), "actions[4]: None is"),
        (document(ends=["b", "c", "d", "e", ["f"]]), "ends[4]: ['f'] is"),
        (document(start={f"s{i}": 1e-9 for i in range(300_000)} | {"t": "1"}), "start: 't': '1' is not a number"),
        (document(places={f"s{i}": [0, 1] for i in range(100_000)} | {"t": [1]}), "is not a pair of numbers"),
        (document(places={f"s{i}": [0, 1] for i in range(20)} | {"t": ["1", 1]}), "'1' is not a number"),
        (document(objectives={"name": "x"}), "objectives"),
        (document(reference=[]), "reference"),
        ("{" + ",".join(f'"k{i}": 1' for i in range(300_000)) + ', "k299999": 1}', "'k299999' is given twice"),
        (document(x=json.loads("[" * 900 + "]" * 900)), "x"),
    ],
)
def test_json(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "zero").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe")
    assert message in refused(tmp_path / "bad.json", text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".".join("a" * 200_000) + " = 1", "line 1: a name with 199,999 dots is nested too deeply"),
        ("b = 1\n[" + ".".join("a" * 100_000) + "]", "line 2: a name with 99,999 dots is nested too deeply"),
        (" . ".join(['"a"', "'b'"] * 50_000) + " = 1", "nested too deeply"),
        ("b = {" + ".".join("a" * 50_000) + " = 1}", "nested too deeply"),
        ("b = " + "{a=" * 50_000, "nested too deeply"),
        ("a = " + "1" * 10_000, "a whole number has more than 4,300 digits"),
        (HEAD + "\n".join(f"k{i} = 1" for i in range(500_000)), "500,004 names with values"),
        (HEAD + "a = {" + ", ".join(f"k{i} = 1" for i in range(500_000)) + "}", "500,005 names with values"),
        (HEAD + "\n".join(f"[k{i}]" for i in range(600_000)), "600,000 tables"),
        (HEAD + "\n".join("[[k]]" for _ in range(600_000)), "600,000 tables"),
        (HEAD + "states = [" + ",".join(f'"s{i}"' for i in range(300_000)) + "]\n" + TAIL, "is unknown"),
        (HEAD + "\n".join(f"[[objectives]]\nname = 'o{i}'" for i in range(200_000)), "200,000 tables"),
        (HEAD + TAIL.replace(", 1]]", f", {'1' * 400}]]"), "is too large for a number"),
        ("a" * (10 << 20), "not TOML"),
        ("a.b," * (2 << 20), "not TOML"),
        ('"' * (10 << 20), "not TOML"),
    ],
)
def test_toml(tmp_path: Path, text: str, message: str) -> None:
    assert message in refused(tmp_path / "bad.toml", text)


def test_many_numbers_and_dots_are_no_deep_names(tmp_path: Path) -> None:
    rows = ", ".join(f'["a", "v1.{i}", 1.0, "a", 0.5]' for i in range(200))
    (tmp_path / "good.toml").write_text(f"{HEAD}transitions = [{rows}]\n" + TAIL[TAIL.index("[[obj") :])
    assert len(load(tmp_path / "good.toml").actions) == 200  # type: ignore[union-attr]


def test_tables(tmp_path: Path) -> None:
    table, path = tmp_path / "t.csv", tmp_path / "bad.json"
    path.write_text(document(transitions="t.csv"))
    table.write_text(f"state,action,probability,next,x\na,go,1,a,{'1' * 400}\n")
    assert "t.csv, line 2, column 'x'" in refused(path)
    table.write_text(",".join(f"c{i}" for i in range(100_000)) + ",c99999\n")
    assert "'c99999' is named twice" in refused(path)
    path.write_text(document(transitions="t.csv", horizon=10**10))
    table.write_text("step,state,action,probability,next,x\n0,a,go,1,a,1\n")
    assert "correct the horizon" in refused(path)


def test_files_that_have_no_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    for name in ("pipe.json", "zero.toml"):
        assert "is a device or a pipe" in refused(tmp_path / name)
    assert "cannot be read" in refused(tmp_path / ("x" * 5000 + ".json"))[:600]


# --- npz -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def stored(tmp_path: Path) -> dict[str, Any]:
    save(load("commute"), tmp_path / "good.npz")
    with np.load(tmp_path / "good.npz") as arrays:
        return dict(arrays)


def packed(arrays: dict[str, Any], **header: Any) -> bytes:
    if header:
        old = json.loads(arrays["header"].tobytes())
        arrays = arrays | {"header": np.frombuffer(json.dumps(old | header).encode(), dtype=np.uint8)}
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"places": [1, 2]}, "places = [1, 2], but must have a table of pairs"),
        ({"places": {"home": [1]}}, "places"),
        ({"places": {"home": [1, 10**400]}}, "places"),
        ({"title": 3}, "title = 3, but must have a text"),
        ({"about": None}, "about = None"),
        ({"kind": "x"}, "kind = 'x'"),
        ({"kind": "catalogue"}, "names = None"),
        ({"format": "x"}, "its format is 'x'"),
        ({"horizon": 10**10}, "correct the horizon"),
        ({"horizon": 10**30}, "correct the horizon"),
        ({"horizon": "3"}, "horizon = '3'"),
        ({"horizon": True}, "horizon = True"),
        ({"horizon": 0}, "the horizon is 0"),
        ({"layers": 0}, "layers = 0"),
        ({"layers": 10**9}, "'state_ptr_1' is missing"),
        ({"actions": "abc"}, "actions = 'abc'"),
        ({"actions": ["x"] * 100}, "the action name 'x' is used twice"),
        ({"states": ["x"] * 100}, "the state name 'x' is used twice"),
        ({"states": ["x"]}, "shape"),
        ({"states": {}}, "states = {}"),
        ({"nothing_action": -1}, "nothing_action = -1"),
        ({"nothing_action": 10**6}, "nothing_action = 1000000"),
        ({"nothing_action": "x"}, "nothing_action = 'x'"),
        ({"nothing_action": True}, "nothing_action = True"),
        ({"objectives": []}, "objectives = []"),
        ({"objectives": [["time", "min", "up"]]}, "goal"),
        ({"objectives": [["a", "", "max"]] * 2}, "the objective name 'a' is used twice"),
        ({"objectives": [["a", "", "max"]] * 200_000}, "objectives"),
        ({"reference": ["x"]}, "reference = ['x']"),
        ({"reference": ["x", {"time": float("nan")}]}, "reference"),
        ({"title": "\ud800"}, "half a character"),
    ],
)
def test_npz_headers(tmp_path: Path, stored: dict[str, Any], header: dict[str, Any], message: str) -> None:
    assert message in refused(tmp_path / "bad.npz", packed(stored, **header))


def test_npz_arrays(tmp_path: Path, stored: dict[str, Any]) -> None:
    path = tmp_path / "bad.npz"
    for name in ("prob_0", "start", "choice_ptr_0"):
        rest = {key: array for key, array in stored.items() if key != name}
        assert f"the array {name!r} is missing" in refused(path, packed(rest))
    text = np.frombuffer(b"[" * 200_000, dtype=np.uint8)
    assert "not a tradeoff .npz file" in refused(path, packed(stored | {"header": text}))
    assert "its format is [1]" in refused(path, packed(stored | {"header": np.frombuffer(b"[1]", dtype=np.uint8)}))
    assert "type" in refused(path, packed(stored | {"start": stored["start"].astype(complex)}))
    assert "type" in refused(path, packed(stored | {"prob_0": np.array("x")}))
    states = len(stored["start"])
    for numbers in (np.zeros(states, dtype=np.int64), np.arange(2 * states).reshape(-1, 2)):
        assert "not a list of distinct numbers" in refused(path, packed(stored | {"state_numbers": numbers}))
    pointers = stored["state_ptr_0"].copy()
    pointers[1:4] = [2**31 - 1, -(2**31), -1]
    assert "negative" in refused(path, packed(stored | {"state_ptr_0": pointers}))


def test_a_transposed_array_in_an_npz_file_is_put_right(tmp_path: Path, stored: dict[str, Any]) -> None:
    path = tmp_path / "turned.npz"
    path.write_bytes(packed(stored | {"reward_0": np.asfortranarray(stored["reward_0"])}))
    mdp, original = load(path), load("commute")
    assert mdp.layers[0].reward.flags.c_contiguous  # type: ignore[union-attr]
    assert mdp.fingerprint == original.fingerprint
    assert mdp.best([[1] * 5])[0].value.tolist() == original.best([[1] * 5])[0].value.tolist()


@pytest.mark.parametrize("name", ["header", "prob_0"])
def test_a_bomb_that_would_fit_is_refused_before_it_is_read(tmp_path: Path, name: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("TRADEOFF_MEMORY", "64")
    path = tmp_path / "bomb.npz"
    size = 300 << 20
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(f"{name}.npy", "w") as file:
        npy.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": (size,)})
        for _ in range(size >> 20):
            file.write(bytes(1 << 20))
    assert "to 300 MB, which no model does" in refused(path)


def test_reading_the_document_itself_is_linear() -> None:
    begin = time.process_time()
    with pytest.raises(ProblemError, match="twice"):
        documents._without_repeats([(str(i), 1) for i in range(300_000)] + [("299999", 1)])
    assert time.process_time() - begin < QUICK
