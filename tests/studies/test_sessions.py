from __future__ import annotations

import csv
import gc
import io
import json
import threading
import weakref
import zipfile
from pathlib import Path
from typing import Any

import pytest

import tradeoff
from tests.studies.test_session import COFFEE, held, person
from tradeoff import Answer, Interview
from tradeoff.errors import ArgumentError, StoreError
from tradeoff.interview import read_log
from tradeoff.stores import MissingError, open_store
from tradeoff.stores.memory import InMemoryStore
from tradeoff.strategies import Strategy, StrategySpec, paper, registry
from tradeoff.studies import Sessions, Study, TurnError
from tradeoff.studies.export import export, participant_rows, table_bytes
from tradeoff.studies.sessions import REST


def sessions(store: Any = None, **given: Any) -> Sessions:
    study = Study.of(COFFEE, "tasting", **{"strategy": "paper", **given})
    opened = store or InMemoryStore()
    study.keep(opened, COFFEE)
    return Sessions(study, COFFEE, opened)


def test_what_was_answered_is_in_the_store_before_anybody_hears_of_it() -> None:
    people = sessions()
    token = people.open()
    for turn in (1, 2, 3):
        people.answer(token, turn, Answer.FIRST)
        events = people.store.read("tasting", token)
        assert sum(e["event"] == "answer" for e in events) == turn
    people.undo(token)
    assert people.store.read("tasting", token)[-1]["event"] == "retraction"


def test_only_the_first_to_begin_takes_a_turn_in_the_queue() -> None:
    people, turns = sessions(), []
    slot = people.queue.slot
    people.queue.slot = lambda caller, **given: turns.append(caller) or slot(caller, **given)  # type: ignore[assignment,func-returns-value]
    tokens = [people.open("first"), people.open("second")]
    assert turns == ["first"]
    with people.session(tokens[1]) as session:
        assert session.state.shown is not None


def test_a_link_that_nobody_has_is_missing_and_takes_no_memory() -> None:
    people = sessions()
    for token in ("a" * 22, "../x", "", "x" * 300, "é"):
        with pytest.raises(MissingError), people.session(token):
            pass
    assert not people._live


def test_what_could_not_be_written_did_not_happen() -> None:
    class Full(InMemoryStore):
        full = False

        def append(self, *given: Any, **named: Any) -> None:
            if self.full:
                raise StoreError("the disk is full")
            super().append(*given, **named)

    store = Full()
    people = sessions(store)
    token = people.open()
    people.answer(token, 1, Answer.FIRST)
    store.full = True
    with pytest.raises(StoreError, match="full"):
        people.answer(token, 2, Answer.SECOND)
    store.full = False
    with people.session(token) as session:
        asked = session.ask()
        assert asked is not None and asked.turn == 2 and session.answered == 1
    people.answer(token, 2, Answer.FIRST)
    answers = [e["answer"] for e in store.read("tasting", token) if e["event"] == "answer"]
    assert answers == ["first", "first"]


def test_two_desks_on_one_store_never_both_take_a_turn(tmp_path: Path) -> None:
    with open_store(f"folder:{tmp_path}") as store:
        one = sessions(store)
        two = Sessions(one.study, COFFEE, store)
        token = one.open()
        for turn in range(1, 7):
            taken: list[str] = []

            def answer(people: Sessions, reply: Answer, turn: int = turn, taken: list[str] = taken) -> None:
                try:
                    people.answer(token, turn, reply)
                    taken.append(reply.value)
                except TurnError:
                    pass

            threads = [threading.Thread(target=answer, args=pair)
                       for pair in ((one, Answer.FIRST), (two, Answer.SECOND), (one, Answer.SAME))]  # fmt: skip
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(taken) == 1
            last = [e for e in store.read("tasting", token) if e["event"] in ("answer", "check-answer")][-1]
            assert last["answer"] == taken[0]


def test_the_oldest_live_session_is_forgotten_and_read_again() -> None:
    people = sessions()
    small = Sessions(people.study, COFFEE, people.store, live=2)
    tokens = [small.open() for _ in range(4)]
    for token in tokens:
        small.answer(token, 1, Answer.FIRST)
    for token in tokens:
        small.answer(token, 2, Answer.SECOND)
    assert len(small._live) == 2


def test_a_session_that_nobody_uses_is_put_to_rest_and_goes_on_when_it_is_needed() -> None:
    people = sessions()
    idle, busy = people.open(), people.open()
    people.answer(idle, 1, Answer.FIRST)
    for entry in people._live.values():
        entry.used -= REST + 1
    with people._live[busy].lock:  # in use all the time
        other = people.open()
        assert list(people._live) == [busy, other]
    people.answer(idle, 2, Answer.SECOND)
    assert [e["answer"] for e in people.events(idle) if e["event"] == "answer"] == ["first", "second"]
    assert list(people._live) == [other, idle]


@pytest.mark.parametrize("strategy", ["careful", "certified", "paper"])
def test_a_session_that_is_dropped_leaves_memory_without_the_garbage_collector(strategy: str) -> None:
    """The server's collector does not look at what has lived for long, so a session that is part of a cycle would stay."""
    people = sessions(strategy=strategy)
    gone: list[weakref.ref[object]] = []
    gc.collect()
    gc.disable()
    try:
        for i in range(3):
            token = people.open()
            user = person(seed=i)
            while True:
                with people.session(token) as session:
                    prompt = session.ask()
                    if prompt is None:
                        gone += [weakref.ref(session), weakref.ref(session.interview)]
                        break
                    session.tell(prompt.turn, user(prompt.question))
                    if session.turn == 3:
                        session.undo()
                with pytest.raises(TurnError):
                    people.answer(token, 1_000, Answer.SAME)
            del session, prompt
        with pytest.raises(ValueError, match="as it happens"), people.session(token) as session:
            gone.append(weakref.ref(session))
            raise ValueError("as it happens")
        del session
        people._live.clear()
        assert [one() for one in gone] == [None] * 7
    finally:
        gc.enable()


def finished_study(tmp_path: Path, people: int = 4, strategy: str = "careful") -> Sessions:
    study = Study.of(COFFEE, "tasting", strategy=strategy, seed=7, texts={"title": "=1+1"})
    store = open_store(f"sqlite:///{tmp_path / 'study.db'}")
    study.keep(store, COFFEE)
    made = Sessions(study, COFFEE, store)
    for i in range(people):
        token = made.open()
        with made.session(token) as session:
            user = person(seed=i)
            if i == 0:  # somebody who changes their mind, skips, and leaves
                session.tell(1, Answer.FIRST)
                session.undo()
                session.tell(3, None)
                session.tell(4, Answer.SAME)
            else:
                held(session, user)
    return made


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_an_export_replays_every_interview_exactly(tmp_path: Path, format: Any) -> None:
    made = finished_study(tmp_path)
    logs = made.store.logs("tasting")
    (path,) = export(made.study, COFFEE, logs, tmp_path / "data.zip", format)
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
        own = [
            r for r in rows if int(r["participant"]) == number and r["kind"] == "question" and not truth(r["retracted"])
        ]
        for row in own:
            question = again.ask()
            assert question is not None
            for side, value in (("first", question.first.value), ("second", question.second.value)):
                assert [float(row[f"{side} gain {o.name}"]) for o in problem.objectives] == value.tolist()
            again.skip() if row["answer"] == "skip" else again.tell(row["answer"])
        assert again.recommendation.weights.tolist() == live.recommendation.weights.tolist()
        assert again.recommendation.alternative.value.tolist() == live.recommendation.alternative.value.tolist()
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
    people = sessions()
    (tmp_path / "x.zip").write_bytes(b"mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "events.jsonl").write_bytes(b"mine")
    for path in (tmp_path / "x.zip", tmp_path / "folder"):
        with pytest.raises(ArgumentError, match="already exists"):
            export(people.study, COFFEE, people.store.logs("tasting"), path)
    assert (tmp_path / "x.zip").read_bytes() == b"mine" and len(list((tmp_path / "folder").iterdir())) == 1
    written = export(people.study, COFFEE, {}, tmp_path / "new")
    assert "participant,place,kind" in written[0].read_text(encoding="utf-8")


def test_no_cell_is_taken_for_a_formula() -> None:
    rows = [{"=a": "=cmd()", "b": -1.5}, {"=a": "@x", "b": 2.0}]
    assert table_bytes(rows, ["=a", "b"], "csv").decode().splitlines() == ["'=a,b", "'=cmd(),-1.5", "'@x,2.0"]


def test_people_who_fail_a_check_are_flagged_and_kept() -> None:
    people = sessions()
    token = people.open()
    with people.session(token) as session:
        while (asked := session.ask()) is not None:
            session.tell(asked.turn, Answer.SECOND if asked.check else Answer.FIRST)
    (row,) = participant_rows(COFFEE, people.store.logs("tasting"))
    assert row["flagged"] and row["check dominated"] == "failed" and row["finished"]


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


def test_a_study_is_kept_once_with_its_problem(tmp_path: Path) -> None:
    made = finished_study(tmp_path, people=0)
    with pytest.raises(ArgumentError, match="already"):
        made.study.keep(made.store, COFFEE)
    made.store.close()
    with open_store(f"sqlite:///{tmp_path / 'study.db'}", write=False) as store:
        assert Study.names(store) == ["tasting"] and Study.read(store, "tasting") == made.study
        assert Study.problem_of(store, "tasting").fingerprint == COFFEE.fingerprint
        with pytest.raises(ArgumentError, match="no study 'other'"):
            Study.read(store, "other")


def test_a_study_keeps_to_the_problem_it_was_made_for() -> None:
    store = InMemoryStore()
    study = Study.of(COFFEE, "tasting", source={"name": "dependent", "options": {}})
    store.create("studies", "tasting", [{"event": "header", "format": "tradeoff-study/1", "time": "", **vars(study)}])
    with pytest.raises(StoreError, match="not what it was"):
        Study.problem_of(store, "tasting")


def test_an_answer_survives_a_strategy_that_fails_to_take_it_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = False

    def fragile(problem: Any) -> Strategy:
        inner = paper(problem)
        step = next(inner)
        while True:
            reply = yield step
            if broken:
                raise MemoryError("no room")
            try:
                step = inner.send(reply)
            except StopIteration as end:
                return end.value

    monkeypatch.setitem(registry.BUILT_IN, "fragile", StrategySpec(fragile))
    people = sessions(open_store(f"sqlite:///{tmp_path / 'x.db'}"), strategy="fragile")
    token = people.open()
    broken = True
    people.answer(token, 1, Answer.FIRST)
    for again in (people, Sessions(people.study, COFFEE, people.store)):  # also after a restart
        with pytest.raises(MemoryError), again.session(token) as session:
            session.ask()
        assert [e["event"] for e in again.events(token)] == ["header", "question", "answer"]
    broken = False
    with people.session(token) as session:  # and once it works again, it goes on
        asked = session.ask()
        assert asked is not None and asked.turn == 2 and session.answered == 1
    people.answer(token, 2, Answer.SECOND)
    assert [e["answer"] for e in people.store.read("tasting", token) if e["event"] == "answer"] == ["first", "second"]
    people.store.close()


def test_a_check_that_was_shown_when_an_answer_was_taken_back_is_noted_again() -> None:
    """Whether or not the server was restarted in between, the check has an event of its own before its answer."""
    people = sessions()
    token = people.open()
    for turn in (1, 2, 3):
        people.answer(token, turn, Answer.FIRST)
    with people.session(token) as session:
        assert session.ask().check == "dominated"  # type: ignore[union-attr]
        session.undo(3)
    again = Sessions(people.study, COFFEE, people.store)
    with again.session(token) as session:
        while (asked := session.ask()) is not None and asked.check is None:
            session.tell(asked.turn, Answer.FIRST)
        assert asked is not None
        session.tell(asked.turn, Answer.FIRST)
    kinds = [e["event"] for e in people.store.read("tasting", token)]
    assert kinds[kinds.index("check-answer") - 1] == "check"


def test_what_is_quick_is_durable_too(tmp_path: Path) -> None:
    """The way around the threads keeps the same promise: what it says is done is in the store."""
    coffee = tradeoff.load("coffee")  # not the one of the other tests, of which much may be known already
    study = Study.of(coffee, "tasting", checks=False)
    with open_store(f"sqlite:///{tmp_path / 'x.db'}") as store:
        study.keep(store, coffee)
        people = Sessions(study, coffee, store)
        token = people.open()

        def answer(session: Any) -> None:
            session.tell(1, Answer.FIRST)

        done = people.at_once(token, 1, answer, lambda session: session.state.shown is not None)
        assert done is not None and done[1] is not None
        done[1].result()
        with open_store(f"sqlite:///{tmp_path / 'x.db'}", write=False) as other:
            assert [e["event"] for e in other.read("tasting", token)] == ["header", "question", "answer"]
        assert people.at_once(token, 2, lambda session: None, lambda session: session.ready) is None
        people.answer(token, 2, Answer.SECOND)  # and the session was let go
        with pytest.raises(TurnError):
            people.at_once(token, 1, answer, lambda session: True)
        # A second person who gives the same answer is asked the next question at once, in the same write.
        second = people.open()

        def answer_and_ask(session: Any) -> None:
            session.tell(1, Answer.FIRST)
            session.ask_if_known()

        done = people.at_once(second, 1, answer_and_ask, lambda session: session.state.shown is not None)
        assert done is not None and done[1] is not None
        done[1].result()
        assert [e["event"] for e in people.events(second)] == ["header", "question", "answer", "question"]
        with people.session(second) as session:
            assert session.ready
        assert people.at_once("nobody", 1, answer, lambda session: True) is None
