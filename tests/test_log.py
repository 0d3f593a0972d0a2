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
from tradeoff import Answer, Interview, LogError, load
from tradeoff.apps.cli.main import main
from tradeoff.errors import StoreError, TradeoffError
from tradeoff.interview import VERSION
from tradeoff.log import Asked, Shown, SteadyClock, event_of, fold, header_of, read_log, write_log
from tradeoff.studies import Session
from tradeoff.studies.export import answer_rows, participant_rows, unreadable

NOW = datetime(2026, 5, 1, tzinfo=UTC)
LOGS = sorted(HERE.glob("log-*.jsonl"))


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_an_event_is_written_as_it_was_read(path: Path) -> None:
    header, *events = read_log(path.read_text(encoding="utf-8"))
    written = [event_of(event, place).to_json() for place, event in enumerate(events, start=2)]
    for event, again in zip(events, written, strict=True):
        if "left" not in event:
            again.pop("left", None)
        assert json.dumps(again) == json.dumps(event)
    again = header_of(header).to_json()
    assert json.dumps({key: again[key] for key in header}) == json.dumps(header)
    assert read_log(write_log([header, *events])) == [header, *events]


@pytest.mark.parametrize("left", ["first", "second"])
def test_sides_are_turned_there_and_back(left: Any) -> None:
    question = Interview(load("dependent"), "paper").ask()
    assert question is not None
    shown = Shown(question, left)
    other = {"first": "second", "second": "first"}[left]
    assert shown.reply("left") is Answer(left) and shown.reply("right") is Answer(other)
    assert shown.a is getattr(question, left) and shown.b is getattr(question, other)
    for said in ("left", "right", "same", "skip"):
        assert shown.said(shown.reply(said)) == said
    asked = Asked(number=1, first=(0.0,), second=(1.0,), left=left, at=NOW)
    assert asked.said(Answer.FIRST) == ("left" if left == "first" else "right")


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
        session.tell(asked.turn, Answer.FIRST)
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
def test_an_edited_question_is_refused_unless_another_version_asked_it(strategy: str) -> None:
    events = interviewed(strategy)
    events[3]["first"] = [0.5] * 5
    with pytest.raises(LogError, match=r"event 4 of the log: the question was about .* it was edited"):
        Interview.resume(load("coffee"), events)
    for version in ("0.1.0", None, "99.0"):
        events[0]["version"] = version
        if strategy == "paper":
            with pytest.raises(LogError, match="event 4 of the log"):
                Interview.resume(load("coffee"), events)
        else:
            resumed = Interview.resume(load("coffee"), events)
            assert len(resumed.answers) == 4 or resumed.finished  # it counts, and may be enough to be sure
    assert events[0]["version"] != VERSION


CHANGES: list[Any] = [
    None, True, 0, -1, 1, 3, 2**70, 1e308, -1e308, 0.5, "", "x", "first", "skip", "second", [], {}, [[]], [{}], [0.5] * 5,
    [1e308] * 5, [None] * 5, ["a"] * 5, {"event": "answer"}, "2026-01-01", "9999-12-31T23:59:59-23:59",
    "0001-01-01T00:00+23:00", "header", "question", "answer", "retraction", "check", "check-answer", "check-retraction",
    "end", "problem",
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
            name = chance.choice([*event["settings"], "seed", "target", "basis", "theorem", "problem"])
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
            session.history()

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


@pytest.mark.parametrize("text", ['{"event": NaN}\n', '{"event": Infinity}\n', "3\n", "null\n", '{"a": ' * 5000 + "\n"])
def test_what_is_not_json_is_not_an_event(text: str) -> None:
    with pytest.raises(LogError, match="line 1"):
        read_log(text)


def test_the_fold_refuses_what_cannot_follow() -> None:
    events = interviewed("paper", 2)
    time = events[0]["time"]
    check = {"event": "check", "kind": "dominated", "first": [1.0] * 5, "second": [0.0] * 5, "left": "first",
             "expected": "first", "time": time}  # fmt: skip
    answer = {"event": "check-answer", "kind": "dominated", "answer": "first", "time": time}
    back = {"event": "check-retraction", "kind": "dominated", "time": time}
    assert fold([*events, check, answer]).flags["dominated"] == "passed"
    assert fold([*events, check, answer, back]).flags["dominated"] == "not asked"
    for wrong in (
        [answer],
        [check, answer, answer],
        [back],
        [check, back],
        [{**check, "first": [1.0]}],
        [{**check, "kind": "x"}],
    ):
        with pytest.raises(LogError):
            fold([*events, *wrong])
