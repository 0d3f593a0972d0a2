"""A file of each version of each format, kept as it was written: it loads for ever, and comes to what it came to."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.golden import make
from tests.golden.make import HERE
from tradeoff import Coverage, Interview, cover, load
from tradeoff.errors import LogError
from tradeoff.interview import FORMAT, READABLE, read_log
from tradeoff.log import Stated, fold
from tradeoff.model import EQUAL, FIRST
from tradeoff.stores import JsonLines, open_store
from tradeoff.studies import Session, Study
from tradeoff.studies.checks import flags
from tradeoff.studies.compute import Compute
from tradeoff.studies.export import answer_rows, participant_rows
from tradeoff.studies.service import Context, StudyService

EXPECTED: dict[str, dict[str, Any]] = json.loads((HERE / "expected.json").read_text(encoding="utf-8"))
LOGS = sorted(path.name for path in HERE.glob("log-*.jsonl"))
# Written when "careful" and "certified" chose their questions in another way: these ask something else at some place now.
# What was answered then still counts, and they are gone on with; "paper" leaves nothing to chance.
DRAWN_ANEW = {"log-1-careful.jsonl", "log-1-walk.jsonl", "log-2-careful.jsonl"}
REPLAYED = [name for name in LOGS if name not in DRAWN_ANEW]
# Of every compiled file: plans, guarantee and slack.
COMPILED = {"coverage-1.npz": (8, 0.003789, 0.002627), "coverage-1-items.npz": (10, 0.009107, 0.008412)}


def copied(name: str, folder: Path) -> Path:
    return Path(shutil.copy(HERE / name, folder / name))


def same(interview: Interview, expected: dict[str, Any]) -> None:
    found = make.came_to(interview)
    assert found.keys() == expected.keys()
    for what, then in expected.items():
        if what == "weights" and not expected["finished"]:
            continue  # an estimate on the way, which later versions may improve; the answers and the plan stay
        if isinstance(then, list | float):
            np.testing.assert_allclose(found[what], then, rtol=0, atol=1e-9, err_msg=what)
        else:
            assert found[what] == then, what


def problem_of(header: dict[str, Any]) -> Any:
    name: str = header["problem_name"]
    return load(HERE / f"{name}{'.json' if name.endswith('bicycles') else '.toml'}")


# --- problems --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(path.name for path in HERE.glob("*-walk.[tn]*")))
def test_a_model_is_what_it_was(name: str) -> None:
    found, made = load(HERE / name), make.mdp()
    assert found.fingerprint == made.fingerprint == "2c0f32a6d88128a8b66bfae43c9e2a69"
    assert found.title == made.title and dict(found.places) == dict(made.places)
    weights = np.array([[1.0, 0.0, 0.0], [1.0, 2.0, 3.0]])
    assert [a.value.tolist() for a in found.best(weights)] == [a.value.tolist() for a in made.best(weights)]


@pytest.mark.parametrize("name", sorted(path.name for path in HERE.glob("problem-*-bicycles.json")))
def test_a_catalogue_is_what_it_was(name: str) -> None:
    found, made = load(HERE / name), make.catalogue()
    assert found.fingerprint == made.fingerprint == "a15423e2412e535dd6b9602ed6630b61"
    assert found.values.tolist() == made.values.tolist() and found.names == made.names and found.labels == made.labels
    assert (found.title, found.about, found.objectives) == (made.title, made.about, made.objectives)


@pytest.mark.parametrize("name", sorted(path.name for path in HERE.glob("coverage-*.npz")))
def test_a_compiled_file_is_what_it_was(name: str) -> None:
    found, made = load(HERE / name), make.catalogue() if name.endswith("-items.npz") else make.mdp()
    assert isinstance(found, Coverage) and found.model.fingerprint == made.fingerprint
    assert (len(found.plans.values), round(found.guarantee, 6), round(found.slack, 6)) == COMPILED[name]
    weights = np.random.default_rng(5).dirichlet(np.ones(3), 300)
    worth, most = (
        np.array([row @ option.value for row, option in zip(weights, problem.best(weights), strict=True)])
        for problem in (found, made)
    )
    assert (worth >= (1 - found.guarantee) * most).all()
    (plan,) = found.best([[1.0, 2.0, 3.0]])
    np.testing.assert_allclose(found.show(plan).average, made.show(plan).average)
    assert cover(found, tolerance=0.001).guarantee <= 0.001  # what proves it is there to go on from


# --- logs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REPLAYED)
def test_a_log_replays_to_the_end_that_was_recorded(name: str, tmp_path: Path) -> None:
    with JsonLines.open(copied(name, tmp_path)) as log:
        events = log.read()
    assert events == read_log((HERE / name).read_text(encoding="utf-8"))
    version = name.removesuffix(".jsonl").split("-")[1]
    assert events[0]["format"] == f"tradeoff-log/{version}"
    interview = Interview.resume(problem_of(events[0]), events)
    same(interview, EXPECTED[name])
    assert list(interview.log) == events  # what is there is what was written
    if events[-1]["event"] == "end":
        np.testing.assert_allclose(events[-1]["weights"], interview.recommendation.weights, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", REPLAYED)
def test_a_log_can_be_gone_on_with_wherever_it_broke_off(name: str) -> None:
    events = read_log((HERE / name).read_text(encoding="utf-8"))
    problem = problem_of(events[0])
    for end in range(1, len(events), 5):
        interview = Interview.resume(problem, events[:end])
        interview.extend(events[end:])
        same(interview, EXPECTED[name])
    half = Interview.resume(problem, events[: len(events) // 2])
    while half.ask() is not None:
        half.tell(half.ask().replies[0])
    assert half.finished


@pytest.mark.parametrize("name", REPLAYED)
def test_a_log_is_a_session_too(name: str) -> None:
    events = read_log((HERE / name).read_text(encoding="utf-8"))
    checks = any(event["event"] == "check" or "check" in event for event in events)
    session = Session.resume(problem_of(events[0]), events, checks=checks)
    assert session.ask() is None and session.events[: len(events)] == events
    same(session.interview, EXPECTED[name])
    assert set(flags(events).values()) == ({"passed"} if checks else {"not asked"})


@pytest.mark.parametrize("name", LOGS)
def test_the_answers_of_a_log_are_data_for_ever(name: str, tmp_path: Path) -> None:
    with JsonLines.open(copied(name, tmp_path)) as log:
        events = log.read()
    assert events[0]["format"] in READABLE
    problem = problem_of(events[0])
    rows = answer_rows(problem, {"ann": events})
    standing = [
        f"{given.number}:{'statement' if isinstance(given.shown, Stated) else make.word_of(given.reply)}"
        for given in fold(events).standing
        if given.check is None
    ]
    counted = [row for row in rows if row["kind"] in ("question", "statement", "observation") and not row["undone"]]
    assert [row["number"] for row in counted] == [int(one.split(":")[0]) for one in standing]
    used = EXPECTED[name]["answers"].split()
    assert sorted(standing) == sorted(used) and len(used) > 4
    (person,) = participant_rows(problem, {"ann": events})
    assert person["answers"] + person["skipped"] == len(used) and person["skipped"] == 1
    if events[-1]["event"] == "end":
        assert [person[f"weight {o.name}"] for o in problem.objectives] == EXPECTED[name]["weights"]


@pytest.mark.parametrize("name", sorted(DRAWN_ANEW))
def test_a_log_of_questions_that_would_not_be_asked_now_still_counts(name: str) -> None:
    events = read_log((HERE / name).read_text(encoding="utf-8"))
    problem = problem_of(events[0])
    interview = Interview.resume(problem, events)
    undone = {event["number"] for event in events if event["event"] == "retraction"}
    given = {e["number"]: e.get("answer", "skip") for e in events if e["event"] in ("answer", "skip")}
    standing = {number: answer for number, answer in given.items() if number not in undone}
    assert {answer.number: make.word_of(answer.reply) for answer in interview.answers} == standing
    assert interview.questions_answered == interview.recommendation.questions == len(standing)
    # It advises about what it did then, and goes on: with a person who answers as before it comes to an end.
    now, then = interview.recommendation, EXPECTED[name]
    assert np.dot(np.array(then["weights"]), now.option.value) > 0.8 * np.dot(then["weights"], then["value"])
    for _ in range(60):
        if interview.ask() is None:
            break
        interview.tell(EQUAL)
    assert interview.finished
    again = Interview.resume(problem, interview.log)
    assert again.log == interview.log
    assert again.recommendation.weights.tolist() == interview.recommendation.weights.tolist()
    for number in standing:  # anything can be undone, whoever asked
        Interview.resume(problem, interview.log).undo(number)


def test_the_first_version_was_shown_as_it_was_asked() -> None:
    """It knew no sides: what was asked first was shown first."""
    events = read_log((HERE / "log-1.jsonl").read_text(encoding="utf-8"))
    assert not any({"sides", "left"} & event.keys() for event in events)
    interview = Interview.resume(problem_of(events[0]), events)
    assert set(interview.display_orders().values()) == {(0, 1)} and interview.order_seed is None


def test_golden_logs_hold_everything_that_a_log_can_hold() -> None:
    kinds = {version: set[str]() for version in READABLE}
    for name in LOGS:
        events = read_log((HERE / name).read_text(encoding="utf-8"))
        kinds[events[0]["format"]] |= {event["event"] for event in events}
    plain = {"header", "question", "answer", "skip", "retraction"}
    assert kinds["tradeoff-log/1"] == plain
    assert kinds["tradeoff-log/2"] == plain | {"check", "check-answer", "check-retraction", "end"}
    assert kinds["tradeoff-log/3"] == {"header", "question", "answer", "undo", "end", "statement", "observation"}


@pytest.mark.parametrize("change", ["format", "problem", "question"])
def test_a_log_that_was_changed_is_not_taken_for_golden(change: str) -> None:
    """What the tests above rely on: replay notices."""
    events = read_log((HERE / "log-1.jsonl").read_text(encoding="utf-8"))
    problem = problem_of(events[0])
    if change == "question":
        events[3]["first"][0] += 1e-6
    else:
        events[0][change] += "0"
    with pytest.raises(LogError):
        Interview.resume(problem, events)


# --- studies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(path.name for path in HERE.glob("study-*.jsonl")))
def test_a_study_is_read_with_its_problem_and_goes_on(name: str) -> None:
    with open_store("memory:") as store:
        store.create("studies", "cycling", read_log((HERE / name).read_text(encoding="utf-8")))
        assert Study.names(store) == ["cycling"]
        study, problem = Study.read(store, "cycling"), Study.problem_of(store, "cycling")
        assert problem.fingerprint == make.catalogue().fingerprint == study.fingerprint
        assert (study.strategy, study.settings, study.seed) == ("paper", {"max_questions": 30}, 7)
        assert study.texts == {"title": "Bicycles é"} and study.checks and study.open
        compute = Compute(Context.of, (store, study, problem))
        service = StudyService(study, problem, store, compute)

        async def answered() -> str:
            token = await service.begin()
            await service.answer(token, 1, lambda shown: FIRST)
            return token

        token = asyncio.run(answered())
        compute.close()
        assert [event["event"] for event in store.read("cycling", token)][:3] == ["header", "question", "answer"]
        assert store.read("cycling", token)[0]["settings"]["max_questions"] == 30


@pytest.mark.parametrize("name", sorted(path.name for path in HERE.glob("store-*.db")))
def test_a_database_opens_replays_and_goes_on(name: str, tmp_path: Path) -> None:
    path = copied(name, tmp_path)
    with open_store(f"sqlite:///{path}") as store:  # the newest tables are made of the older ones
        study, problem = Study.read(store, "cycling"), Study.problem_of(store, "cycling")
        logs = store.logs("cycling")
        ann, bob = logs.values()
        same(Interview.resume(problem, ann), EXPECTED[f"{name} ann"])
        same(Interview.resume(problem, bob), EXPECTED[f"{name} bob"])
        first, second = participant_rows(problem, logs)
        assert first["finished"] and not second["finished"] and not first["flagged"] and second["answers"] == 3
        assert len(answer_rows(problem, logs)) == first["answers"] + 2 + 3
        session = Context.of(store, study, problem).session(bob)
        while (asked := session.ask()) is not None:
            session.tell(asked.turn, asked.by_place(FIRST))
        store.append("cycling", list(logs)[1], session.events[len(bob) :], after=len(bob))
    with open_store(f"sqlite:///{path}", write=False) as store:
        assert store.logs("cycling")[list(logs)[1]][: len(bob)] == bob
        assert all(row["finished"] for row in participant_rows(problem, store.logs("cycling")))


@pytest.mark.parametrize("name", sorted(path.name for path in HERE.glob("store-*.db")))
def test_a_database_can_be_read_without_being_changed(name: str, tmp_path: Path) -> None:
    path = copied(name, tmp_path)
    with open_store(f"sqlite:///{path}", write=False) as store:
        assert [len(log) for log in store.logs("cycling").values()] == list(store.lengths("cycling").values())
        assert all(store.read("cycling", token) == log for token, log in store.logs("cycling").items())
        assert store.unchecked("cycling") == (2 if name == "store-0001.db" else 0)
    assert path.read_bytes() == (HERE / name).read_bytes()


@pytest.mark.parametrize("name", sorted(path.name for path in HERE.glob("store-*.db")))
def test_a_database_is_of_the_version_in_its_name(name: str, tmp_path: Path) -> None:
    path = copied(name, tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        (version,) = connection.execute("SELECT version_num FROM tradeoff_version").fetchone()
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)  # nothing is missing beside it
    assert name == f"store-{version}.db"


# --- who changes a format --------------------------------------------------------------------------------------------


def test_every_format_that_is_written_has_a_golden_file() -> None:
    """Whoever raises a version runs ``python -m tests.golden.make`` and keeps what it wrote."""
    for kind, name in make.versions().items():
        assert (HERE / name).exists(), f"there is no golden file of the current format of {kind}: {name}"
    assert {f"log-{version.rpartition('/')[2]}.jsonl" for version in READABLE} <= set(LOGS)
    assert READABLE[-1] == FORMAT and set(LOGS) <= EXPECTED.keys()
