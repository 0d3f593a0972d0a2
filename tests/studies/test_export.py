"""The rows of an export against the events themselves, and against logs that are damaged or old."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tradeoff
from tests.studies.test_session import COFFEE, held, make_move, person
from tradeoff import Interview
from tradeoff.errors import ArgumentError
from tradeoff.log import fold, read_log
from tradeoff.model import FIRST, SECOND, Reply
from tradeoff.stores import DamagedError
from tradeoff.studies import Session, Study
from tradeoff.studies.export import (
    answer_rows,
    columns_of,
    export,
    largest_question,
    participant_rows,
    table_bytes,
    unreadable,
    without_formulas,
)  # fmt: skip

MOVES = ["first", "second", "equal", "skip", "undo", "undo", "undo some"]


def lived(moves: list[str], seed: int, restarts: bool, **given: Any) -> list[dict[str, Any]]:
    """Return the log of a session that was moved like this, with or without a restart of the server after every move."""
    settings = {"strategy": "paper", **given}
    session = Session.begin(COFFEE, checks=True, order_seed=seed, max_questions=6, **settings)
    for move in moves:
        if restarts:
            session = Session.resume(COFFEE, json.loads(json.dumps(session.events)), checks=True)
        make_move(session, move)
    session.ask()
    return session.events


def by_hand(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the rows must say, looked up event by event."""
    rows = []
    for place, event in enumerate(events):
        if event["event"] != "answer":
            continue
        before, after = events[:place], events[place + 1 :]
        number, check = event.get("number"), event.get("check")
        same = [e for e in before if (e.get("number"), e.get("check")) == (number, check)]
        (*_, shown) = [e for e in same if e["event"] == "question"]
        later = [e["event"] for e in after if (e.get("number"), e.get("check")) == (number, check)]
        later = [kind for kind in later if kind != "question"]
        row = {
            "kind": check or "question", "number": number, "asks": shown.get("asks", "best"),
            "order": " ".join(str(position + 1) for position in shown["order"]),
            "best": event["best"] + 1 if "best" in event else None, "reply": event.get("reply"),
            "worst": event["worst"] + 1 if "worst" in event else None,
            "undone": later[:1] == ["undo"], "asked": isoformat(shown["time"]), "answered": isoformat(event["time"]),
        }  # fmt: skip
        for i, gains in enumerate(shown["options"], start=1):
            row |= {f"option {i} gain {o.name}": gains[j] for j, o in enumerate(COFFEE.objectives)}
        rows.append(row)
    return rows


def isoformat(text: str) -> str:
    return text.replace("Z", "+00:00")


@given(st.lists(st.sampled_from(MOVES), max_size=30), st.integers(0, 99), st.booleans())
@settings(max_examples=60, deadline=None)
def test_every_row_rests_on_the_question_or_check_that_was_answered(
    moves: list[str], seed: int, restarts: bool
) -> None:
    events = lived(moves, seed, restarts)
    rows = answer_rows(COFFEE, {"ann": events})
    expected = by_hand(events)
    assert [{key: row[key] for key in wanted} for row, wanted in zip(rows, expected, strict=True)] == expected
    assert all(row["seconds"] >= 0 for row in rows)
    (participant,) = participant_rows(COFFEE, {"ann": events})
    standing = [row for row in expected if row["kind"] == "question" and not row["undone"]]
    assert participant["answers"] + participant["skipped"] == len(standing)
    assert participant["undone"] == sum(row["kind"] == "question" and row["undone"] for row in expected)
    for kind in ("dominated", "repeat"):
        last = [row for row in expected if row["kind"] == kind and not row["undone"]]
        assert (participant[f"check {kind}"] == "not asked") == (not last)


def test_a_check_undone_while_a_question_waits_leaves_the_question_s_row_alone() -> None:
    """Three answers, the check, a question is shown, the check is undone and answered, then the question."""
    session = Session.begin(COFFEE, checks=True, order_seed=3, strategy="paper")
    for _ in range(3):
        session.tell(session.turn, FIRST)
    asked = session.ask()
    assert asked is not None and asked.check == "dominated"
    session.tell(asked.turn, FIRST)
    assert session.ask() is not None
    session.undo()
    session.tell(session.turn, SECOND)
    session.tell(session.turn, FIRST)
    last = answer_rows(COFFEE, {"ann": session.events})[-1]
    (*_, question) = [e for e in session.events if e["event"] == "question" and e.get("number") == 4]
    assert (last["kind"], last["number"], last["asked"]) == ("question", 4, isoformat(question["time"]))
    assert [last[f"option 1 gain {o.name}"] for o in COFFEE.objectives] == question["options"][0]


def test_damaged_people_are_named_by_number_and_shift_nobody() -> None:
    whole = lived(["first", "skip", "second"], 1, False)
    logs: dict[str, Any] = {
        "ann": whole,
        "bob": DamagedError("event 3 of the log is missing"),
        "eve": [*whole[:2], {**whole[2], "best": []}],
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
    events = lived(["first", "equal", "skip", "second", "undo", "first", "undo some", "first"], 2, False)
    session, state = Session.resume(COFFEE, events, checks=True), fold(events)
    assert (session.turn, session.answered) == (state.turn, len(state.standing))


def answered(study: Study, seed: int) -> list[dict[str, Any]]:
    """Return the log of somebody who has finished; the first one changes their mind, skips, and leaves."""
    settings = study.interview_settings()
    session = Session.begin(COFFEE, checks=study.checks, order_seed=study.order_seed(str(seed)), **settings)
    if seed:
        held(session, person(seed=seed))
        return session.events
    for move in ("first", "undo", "skip", "equal"):
        make_move(session, move)
    return session.events


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("questions", ["pairs", "best-worst-4"])
def test_an_export_replays_every_interview_exactly(tmp_path: Path, format: Any, questions: str) -> None:
    made = Study.of(COFFEE, "tasting", settings={"questions": questions}, seed=7, texts={"title": "=1+1"})
    logs = {f"token {i}": answered(made, i) for i in range(4)}
    (path,) = export(made, COFFEE, logs, tmp_path / "data.zip", format)
    folder = tmp_path / "unpacked"
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    problem = tradeoff.load(folder / "problem.npz")
    study = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    assert "admin" not in study and study["seed"] == 7
    rows = read_table(folder / f"answers.{format}")
    people = read_table(folder / f"participants.{format}")
    assert len(people) == len(logs) == 4
    by_person: dict[int, list[dict[str, Any]]] = {}
    for event in read_log((folder / "events.jsonl").read_text(encoding="utf-8")):
        by_person.setdefault(event.pop("participant"), []).append(event)
    for number, token in enumerate(logs, start=1):
        assert by_person[number] == logs[token]  # the log is all there, but for the secret link
        live = Interview.resume(COFFEE, logs[token])
        # From the table alone: the settings, and the answers that stand, in their order.
        again = Interview(problem, study["strategy"], seed=study["seed"], **study["settings"])
        own = [row for row in rows if int(row["participant"]) == number and row["kind"] == "question"]
        for row in own:
            if truth(row["undone"]):
                continue
            question = again.ask()
            assert question is not None and row["asks"] == question.asks
            for i, option in enumerate(question.options, start=1):
                assert [float(row[f"option {i} gain {o.name}"]) for o in problem.objectives] == option.value.tolist()
            best, worst = (int(row[name]) - 1 if row[name] else None for name in ("best", "worst"))
            again.tell(Reply(best, worst, row["reply"] or None))
        assert again.recommendation.weights.tolist() == live.recommendation.weights.tolist()
        assert again.recommendation.option.value.tolist() == live.recommendation.option.value.tolist()
        found = people[number - 1]
        assert truth(found["finished"]) == live.finished == (number > 1)
        if live.finished:
            assert [
                float(found[f"weight {o.name}"]) for o in problem.objectives
            ] == live.recommendation.weights.tolist()


def truth(cell: Any) -> bool:
    return cell in (True, "True")


def read_table(path: Path) -> list[dict[str, Any]]:
    match path.suffix:
        case ".csv":
            return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
        case ".jsonl":
            return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        case _:
            from pyarrow import parquet

            rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
            return rows


def test_an_export_overwrites_nothing_and_an_empty_one_has_its_columns(tmp_path: Path) -> None:
    study = Study.of(COFFEE, "tasting")
    (tmp_path / "x.zip").write_bytes(b"mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "events.jsonl").write_bytes(b"mine")
    for path in (tmp_path / "x.zip", tmp_path / "folder"):
        with pytest.raises(ArgumentError, match="already exists"):
            export(study, COFFEE, {}, path)
    assert (tmp_path / "x.zip").read_bytes() == b"mine" and len(list((tmp_path / "folder").iterdir())) == 1
    written = export(study, COFFEE, {}, tmp_path / "new")
    assert "participant,place,kind" in written[0].read_text(encoding="utf-8")


def test_no_cell_is_taken_for_a_formula() -> None:
    rows = [{"=a": "=cmd()", "b": -1.5}, {"=a": "@x", "b": 2.0}]
    assert table_bytes(rows, ["=a", "b"], "csv").decode().splitlines() == ["'=a,b", "'=cmd(),-1.5", "'@x,2.0"]
    starts = [*"=+-@\t\r\n", "＝", "＋", "－", "＠"]
    assert [without_formulas(f"{start}x") for start in starts] == [f"'{start}x" for start in starts]
    for cell in ("", "x=1", "ä", None, True, -2, -0.5):
        assert without_formulas(cell) is cell


def test_people_who_fail_a_check_are_flagged_and_kept() -> None:
    session = Session.begin(COFFEE, checks=True, strategy="paper")
    while (asked := session.ask()) is not None:
        session.tell(asked.turn, asked.by_place(SECOND if asked.check else FIRST))
    (row,) = participant_rows(COFFEE, {"ann": session.events})
    assert row["flagged"] and row["check dominated"] == "failed" and row["finished"]


def test_an_export_has_columns_for_each_option_and_pairs_leave_some_empty() -> None:
    study = Study.of(COFFEE, "tasting", settings={"questions": "best-worst-4"})
    events = answered(study, 1)
    rows = answer_rows(COFFEE, {"ann": events})
    columns = columns_of(COFFEE, largest_question(study))[0]
    assert all(list(row) == columns for row in rows)
    menu, pair = (next(row for row in rows if row["asks"] == asks) for asks in ("best-worst", "best"))
    assert pair["option 4 price"] is None and pair["order"] in ("1 2", "2 1") and pair["kind"] == "dominated"
    given = next(one for one in fold(events).given if one.check is None)
    assert menu["order"] == " ".join(str(i + 1) for i in given.shown.order)
    assert (menu["best"], menu["worst"]) == (given.reply.best + 1, given.reply.worst + 1)
    outcome = COFFEE.outcome(np.array(given.shown.options[given.reply.best]))
    assert menu[f"option {menu['best']} price"] == pytest.approx(float(outcome[4]))


def test_statements_are_in_the_data() -> None:
    session = Session.begin(COFFEE, checks=False)
    session.know("price > aroma")
    (row,) = answer_rows(COFFEE, {"ann": session.events})
    assert row["kind"] == "statement" and row["reply"] == "price > aroma" and row["option 1 price"] is None
    session.undo()
    assert session.answered == 0
