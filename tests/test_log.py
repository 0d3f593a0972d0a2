"""Events, the fold, checksums and time; and logs with anything in them."""

from __future__ import annotations

import copy
import json
import random
import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.golden.make import HERE
from tradeoff import Interview, LogError, load
from tradeoff.apps.cli.main import main
from tradeoff.errors import StoreError, TradeoffError
from tradeoff.interview import VERSION
from tradeoff.log import (
    FORMAT,
    Answered,
    Asked,
    ShownQuestion,
    SteadyClock,
    Undone,
    event_of,
    fold,
    header_of,
    read_log,
    write_log,
)
from tradeoff.model import FIRST, SKIP
from tradeoff.studies import Session
from tradeoff.studies.export import answer_rows, participant_rows, unreadable

NOW = datetime(2026, 5, 1, tzinfo=UTC)
LOGS = sorted(HERE.glob("log-*.jsonl"))


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_an_event_is_written_as_it_was_read(path: Path) -> None:
    """Events of earlier formats are read as those of the present one, which read the same again."""
    header, *events = read_log(path.read_text(encoding="utf-8"))
    for position, event in enumerate(events, start=2):
        read = event_of(event, position)
        if header["format"] == FORMAT:
            assert json.dumps(read.to_json()) == json.dumps(event)
        assert event_of(read.to_json(), position) == read
    written = header_of(header).to_json()
    if header["format"] == FORMAT:
        assert json.dumps(written) == json.dumps(header)
    assert header_of(written) == header_of(header)
    assert read_log(write_log([header, *events])) == [header, *events]


def old_event(event: str, **fields: Any) -> dict[str, Any]:
    return {"event": event, "time": "2026-05-01T00:00:00+00:00", **fields}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (old_event("question", number=1, first=[0.0], second=[1.0], left="second"),
         Asked(number=1, options=((0.0,), (1.0,)), order=(1, 0), at=NOW)),
        (old_event("question", number=1, first=[0.0], second=[1.0]),
         Asked(number=1, options=((0.0,), (1.0,)), order=(0, 1), at=NOW)),
        (old_event("answer", number=1, answer="second"), Answered(number=1, best=1, at=NOW)),
        (old_event("answer", number=1, answer="same", strength="much"), Answered(number=1, word="equal", at=NOW)),
        (old_event("skip", number=2), Answered(number=2, word="skip", at=NOW)),
        (old_event("retraction", number=2), Undone(number=2, at=NOW)),
        (old_event("menu", number=1, asks="best-worst", alternatives=[[0.0], [1.0], [2.0]], order=[2, 0, 1]),
         Asked(number=1, asks="best-worst", options=((0.0,), (1.0,), (2.0,)), order=(2, 0, 1), at=NOW)),
        (old_event("choice", number=1, tiers=[[2], [0], [1]]), Answered(number=1, best=2, worst=1, at=NOW)),
        (old_event("choice", number=1, tiers=[[2], [0, 1]]), Answered(number=1, best=2, at=NOW)),
        (old_event("choice", number=1, tiers=[[0, 1, 2]]), Answered(number=1, word="equal", at=NOW)),
        (old_event("check", kind="repeat", first=[1.0], second=[0.0], left="first", expected="same"),
         Asked(check="repeat", options=((1.0,), (0.0,)), order=(0, 1), expected={"word": "equal"}, at=NOW)),
        (old_event("check-answer", kind="repeat", answer="skip"), Answered(check="repeat", word="skip", at=NOW)),
        (old_event("check-retraction", kind="repeat"), Undone(check="repeat", at=NOW)),
    ],
)  # fmt: skip
def test_events_of_earlier_formats_mean_what_they_meant(old: dict[str, Any], new: Any) -> None:
    assert event_of(old, 2) == new


@pytest.mark.parametrize(
    ("questions", "order"), [("pairs", (0, 1)), ("pairs", (1, 0)), ("best-worst-4", (2, 0, 3, 1))], ids=str
)
def test_places_and_positions_are_turned_there_and_back(questions: str, order: tuple[int, ...]) -> None:
    question = Interview(load("coffee"), questions=questions).ask()
    assert question is not None and len(question.options) == len(order)
    values = tuple(map(tuple, question.values.tolist()))
    asked = Asked(number=1, asks=question.asks, options=values, order=order, at=NOW)
    shown = ShownQuestion(question, order)
    assert [option.value.tolist() for option in shown.options] == [list(values[position]) for position in order]
    for reply in [*question.replies, SKIP]:
        for one in (shown, asked):
            placed = one.by_place(reply)
            assert one.by_position(placed) == reply
            if reply.best is not None and placed.best is not None:
                assert order[placed.best] == reply.best


def test_time_never_goes_back_and_goes_on_as_it_passes() -> None:
    wall, passed = [NOW], [0.0]
    clock = SteadyClock(lambda: wall[0], elapsed=lambda: passed[0])
    first = clock.after(None)
    wall[0], passed[0] = NOW - timedelta(days=3650), 2.5  # set back by ten years, and two seconds and a half pass
    second = clock.after(first)
    assert second == NOW + timedelta(seconds=2.5)
    passed[0] = 4.0
    third = clock.after(second)
    assert third == NOW + timedelta(seconds=4)
    wall[0] = NOW + timedelta(hours=1)
    assert clock.after(third) == wall[0]


@pytest.mark.parametrize("jump", [timedelta(days=-3650), timedelta(days=20_000), timedelta(seconds=-1)])
def test_no_event_is_earlier_than_the_one_before_it(jump: timedelta) -> None:
    moments = [NOW + (jump if i % 3 == 1 else timedelta(seconds=i)) for i in range(60)]
    times = iter(moments)
    session = Session.begin(load("coffee"), checks=True, strategy="paper", max_questions=5, clock=lambda: next(times))
    while (asked := session.ask()) is not None:
        session.tell(asked.turn, FIRST)
    again = Session.resume(load("coffee"), session.events, checks=True, clock=lambda: NOW - timedelta(days=9999))
    again.undo()
    found = [datetime.fromisoformat(event["time"]) for event in again.events]
    assert found == sorted(found)
    rows = answer_rows(load("coffee"), {"ann": again.events})
    assert len(rows) == 7 and all(row["seconds"] >= 0 for row in rows)


# --- edited and damaged logs -----------------------------------------------------------------------------------------


def interviewed(strategy: str, count: int = 4) -> list[dict[str, Any]]:
    interview = Interview(load("coffee"), strategy)
    for _ in range(count):
        interview.ask()
        interview.tell("first")
    interview.ask()
    return json.loads(json.dumps(interview.log))


@pytest.mark.parametrize("strategy", ["careful", "certified", "paper"])
@pytest.mark.parametrize("version", [VERSION, "0.1.0", None, "99.0"])
def test_a_question_that_would_not_be_asked_here_is_an_observation(strategy: str, version: str | None) -> None:
    events = interviewed(strategy)
    events[3]["options"][0] = [0.5] * 5
    events[0]["version"] = version
    if strategy == "paper":
        with pytest.raises(LogError, match="event 4 of the log"):
            Interview.resume(load("coffee"), events)
    else:
        resumed = Interview.resume(load("coffee"), events)
        assert [answer.number for answer in resumed.answers] == [1, 2, 3, 4]  # all of them count
        (edited,) = (answer for answer in resumed.answers if answer.number == events[3]["number"])
        assert edited.observed and edited.question.values[0].tolist() == [0.5] * 5
        assert resumed.questions_answered == resumed.recommendation.questions == 4


def test_a_log_edited_against_its_checksums_is_refused() -> None:
    text = write_log(interviewed("careful"))
    assert read_log(text)
    with pytest.raises(LogError, match="line 4"):
        read_log(text.replace('"number": 2', '"number": 3', 1))


CHANGES: list[Any] = [
    None, True, 0, -1, 1, 3, 2**70, 1e308, -1e308, 0.5, "", "x", "first", "skip", "equal", "best", "best-worst", [], {}, [[]],
    [{}], [0, 1], [1, 0], [0.5] * 5, [[0.5] * 5] * 2, [[0.5] * 5] * 4,
    [1e308] * 5, [None] * 5, ["a"] * 5, {"event": "answer"}, "2026-01-01", "9999-12-31T23:59:59-23:59",
    "0001-01-01T00:00+23:00", "header", "question", "answer", "undo", "statement", "observation", "retraction", "menu",
    "choice", "check", "check-answer", "check-retraction", "end", "problem", "dominated", "repeat",
]  # fmt: skip


def mutated(events: list[dict[str, Any]], chance: random.Random) -> list[Any]:
    """Return a log in which something is not as it was."""
    events = copy.deepcopy(events)
    place = chance.randrange(len(events))
    event = events[place]
    match chance.randrange(8):
        case 0:
            del events[place]
        case 1:
            events.insert(chance.randrange(len(events)), event)
        case 2:
            events[place] = chance.choice([{}, [], None, 3, "x", {"event": []}, {"event": {}}])
        case 3:
            del event[chance.choice(list(event))]
        case 4 if any(isinstance(value, list) for value in event.values()):
            values = chance.choice([value for value in event.values() if isinstance(value, list)])
            values[chance.randrange(len(values))] = chance.choice(CHANGES)
        case 5 if place == 0:
            name = chance.choice(
                [*event["settings"], "seed", "target", "basis", "theorem", "problem", "questions", "prior"]
            )
            event["settings"][name] = chance.choice(CHANGES)
        case _:
            event[chance.choice(list(event))] = copy.deepcopy(chance.choice(CHANGES))
    return events


def damaged_logs(count: int) -> list[Any]:
    chance = random.Random(20261115)
    whole = [read_log(path.read_text(encoding="utf-8")) for path in LOGS if "walk" not in path.name]
    fresh = [interviewed("careful", 3), interviewed("paper", 3)]
    return [mutated(chance.choice(whole + fresh), chance) for _ in range(count)]


def refused_or_fine(work: Callable[[], object]) -> bool:
    """Return whether some work was done; anything but an error of ours is a defect."""
    try:
        work()
        return True
    except (LogError, StoreError):
        return False


def test_a_log_with_anything_in_it_ends_in_a_clear_error_or_resumes() -> None:
    problems = {problem.fingerprint: problem for problem in (load("coffee"), load(HERE / "problem-1-bicycles.json"))}
    done = 0
    for events in damaged_logs(300):
        first = events[0] if events and isinstance(events[0], dict) else {}
        fingerprint = first.get("problem")
        problem = problems.get(fingerprint if isinstance(fingerprint, str) else "", load("coffee"))

        def resumed(problem: Any = problem, events: Any = events) -> None:
            interview = Interview.resume(problem, events)
            interview.ask()
            json.dumps(interview.recommendation.weights.tolist(), allow_nan=False)
            interview.conflicts()
            session = Session.resume(problem, events, checks=True)
            session.ask()

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            done += refused_or_fine(resumed)
        if not unreadable(problem, {"ann": events}):
            json.dumps(answer_rows(problem, {"ann": events}), allow_nan=False)
            json.dumps(participant_rows(problem, {"ann": events}), allow_nan=False)
    assert 0 < done < 300


def test_the_command_says_what_is_wrong_with_a_damaged_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    for events in damaged_logs(25):
        path.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
        done = CliRunner().invoke(main, ["ask", "coffee", "--resume", str(path)], input="q\n")
        assert done.exit_code in (0, 4, 5), done.output
        assert done.exception is None or isinstance(done.exception, SystemExit | TradeoffError)


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:00", "2026-13-01", 3, None])
def test_a_time_that_does_not_exist_is_refused(time: object) -> None:
    events = interviewed("paper", 1)
    for position in (0, 1):
        damaged = [event | ({"time": time} if i == position else {}) for i, event in enumerate(events)]
        with pytest.raises(LogError, match="the log"):
            fold(damaged)


@pytest.mark.parametrize("text", ['{"event": NaN}\n', '{"event": Infinity}\n', "3\n", "null\n", '{"a": ' * 5000 + "\n"])
def test_what_is_not_json_is_not_an_event(text: str) -> None:
    with pytest.raises(LogError, match="line 1"):
        read_log(text)


def test_the_fold_refuses_what_cannot_follow() -> None:
    events = interviewed("paper", 2)
    time = events[0]["time"]
    check = {"event": "question", "check": "dominated", "options": [[1.0] * 5, [0.0] * 5], "order": [0, 1],
             "expected": {"best": 0}, "time": time}  # fmt: skip
    answer = {"event": "answer", "check": "dominated", "best": 0, "time": time}
    back = {"event": "undo", "check": "dominated", "time": time}
    assert fold([*events, check, answer]).flags["dominated"] == "passed"
    assert fold([*events, check, answer | {"best": 1}]).flags["dominated"] == "failed"
    skipped = {"event": "answer", "check": "dominated", "reply": "skip", "time": time}
    assert fold([*events, check, skipped]).flags["dominated"] == "skipped"
    assert fold([*events, check, answer, back]).flags["dominated"] == "not asked"
    for wrong in (
        [answer],
        [check, answer, answer],
        [back],
        [check, back],
        [{**check, "options": [[1.0], [0.0]]}],
        [{**check, "check": "x"}],
        [{**check, "order": [0, 0]}],
        *([{**check, "expected": expected}] for expected in (None, {}, {"word": 0.5}, {"left": 0}, {"best": [0]})),
        [check, {**answer, "best": 2}],
        [check, {**answer, "worst": 1}],
    ):
        with pytest.raises(LogError):
            fold([*events, *wrong])
