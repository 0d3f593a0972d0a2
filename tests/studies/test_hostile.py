"""A database or folder that somebody else made: nothing in it is imported or called."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.studies.test_session import COFFEE
from tradeoff.apps.cli.main import main
from tradeoff.errors import StoreError
from tradeoff.stores import open_store
from tradeoff.stores.memory import InMemoryStore
from tradeoff.studies import Study

EVIL = """
from pathlib import Path
Path("ran").touch()

def problem():
    from tradeoff import PointSet
    import numpy as np
    points = np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]])
    return PointSet(lambda weights: points[int(np.argmax(points @ weights))], objectives=["a", "b"])
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "evil.py").write_text(EVIL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "evil", raising=False)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def hostile(source: str, kept: bool) -> None:
    """Write a database with a study whose header names a program."""
    study = Study.of(COFFEE, "tasting", source={"name": source, "options": {}})
    scratch = InMemoryStore()
    study.save(scratch, COFFEE)
    with open_store("sqlite:///sent.db") as store:
        store.create("studies", "tasting", scratch.read("studies", "tasting")[: 2 if kept else 1])


@pytest.mark.parametrize("source", ["python:evil:problem", "gym:evil:Env-v0", "mo-gym:evil:Env-v0"])
@pytest.mark.parametrize(
    ("command", "kept"), [("export", True), ("export", False), ("list", True), ("list", False), ("serve", False)]
)
def test_a_database_that_was_sent_runs_nothing(folder: Path, source: str, kept: bool, command: str) -> None:
    hostile(source, kept)
    words = ["study", command, *([] if command == "list" else ["tasting"]), "--store", "sqlite:///sent.db"]
    done = run(*words)
    assert not (folder / "ran").exists() and "evil" not in sys.modules
    if kept or command == "list":
        assert done.exit_code == 0, done.output
    else:
        assert done.exit_code == 4 and f"--problem {source}" in done.stderr
        with open_store("sqlite:///sent.db", write=False) as store, pytest.raises(StoreError, match="name it yourself"):
            Study.problem_of(store, "tasting")


def test_a_log_that_was_sent_runs_nothing(folder: Path) -> None:
    assert run("ask", "coffee", "--log", "answers.jsonl").exit_code == 0
    lines = (folder / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    events: list[dict[str, Any]] = [json.loads(line) for line in lines]
    for change in (
        {"strategy": "evil:problem"},
        {"strategy": "python:evil:problem"},
        {"problem_name": "python:evil:problem"},
        {"settings": {"basis": "python:evil:problem"}},
    ):
        for event in events:
            event.pop("crc", None), event.pop("checksums", None)
        changed = [{**events[0], **change}, *events[1:]]
        (folder / "sent.jsonl").write_text("".join(json.dumps(e) + "\n" for e in changed), encoding="utf-8")
        done = run("ask", "coffee", "--resume", "sent.jsonl")
        assert done.exit_code in (0, 4) and "Traceback" not in done.output, done.output
        assert not (folder / "ran").exists() and "evil" not in sys.modules


def test_the_program_that_a_person_names_is_run_and_must_be_the_same(folder: Path) -> None:
    made = run("study", "create", "mine", "python:evil:problem", "--strategy", "paper", "--participants", "1")
    assert made.exit_code == 0, made.output
    assert "--problem python:evil:problem" in made.stderr
    (folder / "ran").unlink()
    del sys.modules["evil"]
    refused = run("study", "export", "mine")
    assert refused.exit_code == 4 and not (folder / "ran").exists()
    done = run("study", "export", "mine", "--problem", "python:evil:problem")
    assert done.exit_code == 0 and (folder / "ran").exists(), done.output
    other = run("study", "export", "mine", "--out", "other.zip", "--problem", "coffee")
    assert other.exit_code == 4 and "not what it was" in other.stderr
    assert run("study", "export", "mine", "--with", "a=b").exit_code == 2


@pytest.mark.parametrize(
    "change",
    [
        {"source": {"name": [], "options": {}}}, {"source": {"name": "coffee", "options": 3}}, {"source": []}, {"seed": "x"},
        {"texts": {"title": {}}}, {"settings": []}, {"colour": 1}, {"strategy": {}}, {"format": []}, {"checks": "yes"},
    ],
)  # fmt: skip
def test_a_damaged_study_is_said_to_be_damaged(folder: Path, change: dict[str, Any]) -> None:
    study, scratch = Study.of(COFFEE, "tasting"), InMemoryStore()
    study.save(scratch, COFFEE)
    header, problem = scratch.read("studies", "tasting")
    store = InMemoryStore()
    store.create("studies", "tasting", [{**header, **change}, problem])
    with pytest.raises(StoreError, match="tasting"):
        Study.read(store, "tasting")
    store.create("studies", "other", [header, {**problem, "npz": "?" if "seed" in change else []}])
    with pytest.raises(StoreError, match="damaged"):
        Study.problem_of(store, "other")
    shutil.rmtree(folder, ignore_errors=True)
