"""A study is fixed when it is created, and stored with its problem."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.studies.test_session import COFFEE
from tradeoff.errors import ArgumentError, StoreError
from tradeoff.stores import open_store
from tradeoff.stores.memory import InMemoryStore
from tradeoff.studies import Study


@pytest.mark.parametrize("name", ["", "Studies", "studies", "a b", "x" * 65, "../x", "é"])
def test_a_study_needs_a_plain_name(name: str) -> None:
    with pytest.raises(ArgumentError, match="cannot be called"):
        Study.of(COFFEE, name)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"strategy": "magic"}, "no strategy"),
        ({"settings": {"colour": 1}}, "colour"),
        ({"texts": {"subtitle": "x"}}, "no text called"),
        ({"texts": {"title": "x" * 30_000}}, "at most"),
        ({"settings": {"max_questions": -1}}, "max_questions"),
    ],
)
def test_a_study_that_cannot_work_is_refused_when_it_is_made(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Study.of(COFFEE, "tasting", **given)


def test_a_study_is_stored_once_with_its_problem(tmp_path: Path) -> None:
    made = Study.of(COFFEE, "tasting", seed=7, texts={"title": "=1+1"})
    with open_store(f"sqlite:///{tmp_path / 'study.db'}") as store:
        made.save(store, COFFEE)
        with pytest.raises(ArgumentError, match="already"):
            made.save(store, COFFEE)
    with open_store(f"sqlite:///{tmp_path / 'study.db'}", write=False) as store:
        assert Study.names(store) == ["tasting"] and Study.read(store, "tasting") == made
        assert Study.problem_of(store, "tasting").fingerprint == COFFEE.fingerprint
        with pytest.raises(ArgumentError, match="no study 'other'"):
            Study.read(store, "other")


def test_a_study_keeps_to_the_problem_it_was_made_for() -> None:
    store = InMemoryStore()
    study = Study.of(COFFEE, "tasting", source={"name": "dependent", "options": {}})
    store.create("studies", "tasting", [{"event": "header", "format": "tradeoff-study/1", "time": "", **vars(study)}])
    with pytest.raises(StoreError, match="not what it was"):
        Study.problem_of(store, "tasting")


def test_a_study_with_a_removed_kind_of_question_goes_on() -> None:
    store = InMemoryStore()
    old = replace(Study.of(COFFEE, "tasting"), settings={"questions": "rank-3", "strengths": True})
    old.save(store, COFFEE)
    read = Study.read(store, "tasting")
    assert read.settings == {"questions": "best-worst-4"}
    read.check(COFFEE)
