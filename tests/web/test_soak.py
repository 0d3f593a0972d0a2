"""The soak tool finds what is lost, and finds nothing where nothing is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tools.soak import Tally, check

from tradeoff.stores import open_store

TOOL = Path(__file__).resolve().parents[2] / "tools" / "soak.py"
HEADER = {"event": "header", "time": "2026-01-01T00:00:00+00:00"}
LOG: list[dict[str, Any]] = [
    HEADER,
    {"event": "question", "asks": "best", "order": [1, 0], "number": 1},
    {"event": "answer", "best": 1, "number": 1},
    {"event": "question", "asks": "best-worst", "order": [2, 0, 3, 1], "number": 2},
    {"event": "answer", "reply": "skip", "number": 2},
    {"event": "undo", "number": 2},
    {"event": "answer", "best": 0, "worst": 1, "number": 3},
]
SAID = {1: {"best": 1}, 2: "skip", 3: "undo", 4: {"best": 2, "worst": 4}}


def checked(folder: Path, events: list[dict[str, Any]], acknowledged: dict[int, Any]) -> tuple[int, int, list[str]]:
    address = f"sqlite:///{folder / 'soak.db'}"
    with open_store(address) as store:
        store.create("soak", "ann", events)
    return check(address, Tally(actions={"ann": acknowledged}), clients=0)


def test_what_is_all_there_is_not_lost(tmp_path: Path) -> None:
    assert checked(tmp_path, LOG, SAID) == (4, 0, [])


@pytest.mark.parametrize(
    ("events", "acknowledged"),
    [
        (LOG[:-1], SAID),  # the last one is missing
        ([*LOG[:2], *LOG[3:]], SAID),  # one in the middle is
        ([*LOG[:-1], {**LOG[-1], "worst": 2}], SAID),  # one has changed
        (LOG, {**SAID, 5: {"best": 1}}),
    ],
)
def test_what_is_missing_or_changed_is_lost(
    tmp_path: Path, events: list[dict[str, Any]], acknowledged: dict[int, Any]
) -> None:
    _, lost, wrong = checked(tmp_path, events, acknowledged)
    assert lost >= 1 and len(wrong) >= 1


def test_more_than_was_sent_is_wrong(tmp_path: Path) -> None:
    _, lost, wrong = checked(tmp_path, [*LOG, LOG[-1]], SAID)
    assert lost == 0 and "without a reply" in wrong[0]


def test_an_interview_that_is_gone_is_lost(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'soak.db'}"
    with open_store(address) as store:
        store.create("soak", "bob", [HEADER])
    kept, lost, wrong = check(address, Tally(actions={"ann": SAID}), clients=0)
    assert (kept, lost) == (0, len(SAID)) and wrong
