"""The rows of an export against the events themselves, and against logs that are damaged or old."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.studies.test_session import COFFEE
from tradeoff import Answer
from tradeoff.log import fold
from tradeoff.stores import DamagedError
from tradeoff.studies import Session
from tradeoff.studies.export import answer_rows, participant_rows, unreadable

MOVES = ["first", "second", "same", "skip", "undo", "undo", "undo some"]


def lived(moves: list[str], sides: int, restarts: bool) -> list[dict[str, Any]]:
    """Return the log of a session that was moved like this, with or without a restart of the server after every move."""
    session = Session.begin(COFFEE, checks=True, sides=sides, strategy="paper", max_questions=6)
    for move in moves:
        if restarts:
            session = Session.resume(COFFEE, json.loads(json.dumps(session.events)), checks=True)
        asked = session.ask()
        if move == "undo":
            if session.answered:
                session.undo()
        elif move == "undo some":
            standing = [number for number, *_ in session.history()]
            if standing:
                session.undo(standing[len(standing) // 2])
        elif asked is not None:
            session.tell(asked.turn, None if move == "skip" else Answer(move))
    session.ask()
    return session.events


def by_hand(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the rows must say, looked up event by event."""
    rows = []
    for place, event in enumerate(events):
        before, after = events[:place], events[place + 1 :]
        if event["event"] in ("answer", "skip"):
            number = event["number"]
            (*_, shown) = [e for e in before if e["event"] == "question" and e["number"] == number]
            back = any(e["event"] == "retraction" and e["number"] == number for e in after)
        elif event["event"] == "check-answer":
            number = None
            (*_, shown) = [e for e in before if e["event"] == "check" and e["kind"] == event["kind"]]
            again = [e["event"] for e in after if e.get("kind") == event["kind"] and e["event"] != "check"]
            back = again[:1] == ["check-retraction"]
        else:
            continue
        answer = event.get("answer", "skip")
        sides = (
            {"first": "left", "second": "right"} if shown["left"] == "first" else {"first": "right", "second": "left"}
        )
        row = {
            "kind": shown.get("kind", "question"), "number": number, "left": shown["left"], "answer": answer,
            "chosen": sides.get(answer, answer), "retracted": back, "asked": shown["time"], "answered": event["time"],
        }  # fmt: skip
        for side in ("first", "second"):
            row |= {f"{side} gain {o.name}": shown[side][j] for j, o in enumerate(COFFEE.objectives)}
        rows.append(row)
    return rows


@given(st.lists(st.sampled_from(MOVES), max_size=30), st.integers(0, 99), st.booleans())
@settings(max_examples=60, deadline=None)
def test_every_row_rests_on_the_question_or_check_that_was_answered(
    moves: list[str], sides: int, restarts: bool
) -> None:
    events = lived(moves, sides, restarts)
    rows = answer_rows(COFFEE, {"ann": events})
    expected = by_hand(events)
    assert [{key: row[key] for key in wanted} for row, wanted in zip(rows, expected, strict=True)] == expected
    assert all(row["seconds"] >= 0 for row in rows)
    (person,) = participant_rows(COFFEE, {"ann": events})
    standing = [row for row in expected if row["kind"] == "question" and not row["retracted"]]
    assert person["answers"] + person["skipped"] == len(standing)
    assert person["taken back"] == sum(row["kind"] == "question" and row["retracted"] for row in expected)
    for kind in ("dominated", "repeat"):
        last = [row for row in expected if row["kind"] == kind and not row["retracted"]]
        assert (person[f"check {kind}"] == "not asked") == (not last)


def test_a_check_taken_back_while_a_question_waits_leaves_the_question_s_row_alone() -> None:
    """Three answers, the check, a question is shown, the check is taken back and answered, then the question."""
    session = Session.begin(COFFEE, checks=True, sides=3, strategy="paper")
    for _ in range(3):
        session.tell(session.turn, Answer.FIRST)
    asked = session.ask()
    assert asked is not None and asked.check == "dominated"
    session.tell(asked.turn, Answer.FIRST)
    assert session.ask() is not None
    session.undo()
    session.tell(session.turn, Answer.SECOND)
    session.tell(session.turn, Answer.FIRST)
    last = answer_rows(COFFEE, {"ann": session.events})[-1]
    (*_, question) = [e for e in session.events if e["event"] == "question" and e["number"] == 4]
    assert (last["kind"], last["number"], last["asked"]) == ("question", 4, question["time"])
    assert [last[f"first gain {o.name}"] for o in COFFEE.objectives] == question["first"]


def test_damaged_people_are_named_by_number_and_shift_nobody() -> None:
    whole = lived(["first", "skip", "second"], 1, False)
    logs: dict[str, Any] = {
        "ann": whole,
        "bob": DamagedError("event 3 of the log is missing"),
        "eve": [*whole[:2], {**whole[2], "answer": []}],
        "dan": [{key: value for key, value in event.items() if key != "time"} for event in whole],
        "joe": [{**whole[0], "objectives": ["one"]}, *whole[1:]],
        "zoe": whole,
    }
    assert list(unreadable(COFFEE, logs)) == [2, 3, 4, 5]
    assert {row["participant"] for row in answer_rows(COFFEE, logs)} == {1, 6}
    assert [row["participant"] for row in participant_rows(COFFEE, logs)] == [1, 6]


def test_a_clock_that_was_set_back_gives_no_negative_seconds() -> None:
    """Old logs hold such times; new ones do not (see test_interview)."""
    events = lived(["first", "second"], 1, False)
    for place, event in enumerate(events):
        event["time"] = f"20{60 - place:02}-01-01T00:00:00+00:00"
    assert all(row["seconds"] == 0 for row in answer_rows(COFFEE, {"ann": events}))
    assert participant_rows(COFFEE, {"ann": events})[0]["seconds"] == 0


@pytest.mark.parametrize("events", [[], [{}], [{"event": "header"}], [[]]])
def test_what_is_no_log_at_all_is_unreadable(events: Any) -> None:
    assert list(unreadable(COFFEE, {"ann": events})) == [1]


def test_the_fold_counts_what_the_session_counts() -> None:
    events = lived(["first", "same", "skip", "second", "undo", "first", "undo some", "first"], 2, False)
    session, state = Session.resume(COFFEE, events, checks=True), fold(events)
    assert (session.turn, session.answered) == (state.turn, len(state.standing))
