"""Processes that make pages for the one that serves: the same pages, whatever happens to them, and nothing made twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import tradeoff
from tests.processes import PATIENCE, until
from tests.web.servers import Server, begin, turn_of
from tradeoff.apps.cli.serve import think_for
from tradeoff.apps.web import pages, thinkers
from tradeoff.apps.web.thinkers import Thinkers, spare_cores
from tradeoff.model import Alternative, Answer, Item
from tradeoff.sources import AnyProblem
from tradeoff.stores import open_store
from tradeoff.stores.memory import InMemoryStore
from tradeoff.strategies._careful import Careful
from tradeoff.studies import Session, Sessions, Study

ANSWERS = [Answer.FIRST, Answer.SECOND, Answer.SAME, Answer.FIRST, Answer.SECOND, Answer.FIRST]


def study_of(problem: AnyProblem) -> Study:
    return Study.of(problem, "trips", checks=True)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with a study in it."""
    found = f"sqlite:///{tmp_path_factory.mktemp('thinkers') / 'study.db'}"
    problem = tradeoff.load("commute")
    with open_store(found) as store:
        study_of(problem).keep(store, problem)
    return found


@pytest.fixture(scope="module")
def helped(address: str) -> Iterator[Thinkers]:
    """A thinker that is there."""
    made = Thinkers(think_for, (address, "trips", None, None), 1)
    assert made.start() and made.start()
    until(lambda: made._lines[0] is not None, "a thinker's start")
    yield made
    made.stop()


def interviewed(found: Thinkers | None, answers: list[Answer]) -> Iterator[str]:
    """Yield the pages that a person sees; the result is the last."""
    problem = tradeoff.load("commute")
    study = study_of(problem)
    sessions = Sessions(study, problem, InMemoryStore())
    sessions.helpers = found
    session = Session.begin(problem, checks=study.checks, **study.interview_settings(), sides=7)
    for answer in answers:
        yield str(pages._question_page(sessions, "token", session, ""))
        session.tell(session.turn, answer)
    yield pages._result_page(sessions, "token", session, "", {}, "")


@pytest.fixture(scope="module")
def alone() -> list[str]:
    """The pages without any thinker."""
    return list(interviewed(None, ANSWERS))


def test_pages_are_the_same_and_made_elsewhere(
    helped: Thinkers, alone: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Careful, "learn", lambda *given: pytest.fail("this was to be worked out elsewhere"))
    assert list(interviewed(helped, ANSWERS)) == alone


def test_a_state_alone_is_worked_out_elsewhere_too(helped: Thinkers, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = tradeoff.load("commute")
    session = Session.begin(problem, checks=False, **study_of(problem).interview_settings())
    session.ask()
    session.tell(1, Answer.SECOND)
    helped.think(session, "state")
    monkeypatch.setattr(Careful, "learn", lambda *given: pytest.fail("this was to be worked out elsewhere"))
    assert session.ready and session.work_out() is not None


def test_a_thinker_that_dies_is_not_missed_and_is_replaced(helped: Thinkers, alone: list[str]) -> None:
    workers = helped._workers
    assert workers is not None
    (process,) = workers._running
    seen = interviewed(helped, ANSWERS)
    assert [next(seen), next(seen)] == alone[:2]
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    assert list(seen) == alone[2:]
    another = until(lambda: helped._lines[0], "another thinker")
    assert process not in workers._running and list(interviewed(helped, ANSWERS)) == alone
    (process,) = workers._running
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)  # while nobody asks
    until(lambda: helped._lines[0] is not another, "a third thinker")
    assert list(interviewed(helped, ANSWERS)) == alone


def test_what_cannot_be_made_is_left_to_the_one_that_serves() -> None:
    problem = tradeoff.load("commute")
    sessions = Sessions(study_of(problem), problem, InMemoryStore())
    other = Session.begin(tradeoff.load("coffee"), checks=False)
    for events in (other.events, [], [{"event": "nonsense"}]):
        assert thinkers._made(sessions, events, "question") == []


def test_without_any_everything_is_computed_here(alone: list[str]) -> None:
    none = Thinkers(think_for, (), 0)
    assert not none.start()
    assert list(interviewed(none, ANSWERS[:1])) == [alone[0], *list(interviewed(None, ANSWERS[:1]))[1:]]
    none.leave()
    none.stop()
    assert spare_cores(2) == 0 <= spare_cores(1) <= thinkers.MOST


def test_an_alternative_is_sent_once_and_stays_the_same_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thinkers, "NUMBERED", 5)
    some = [Alternative(np.array([float(i)]), Item(i, f"item {i}")) for i in range(9)]
    numbers, sent = thinkers._Numbers(), 0
    known: list[Alternative] = []
    seen: dict[str, Any] = {}
    for first in (0, 2, 0, 4, 6, 0, 5):
        state: thinkers.Found = [("states", b"key", {"all": some[first : first + 3], "best": some[first + 1]})]
        fresh, new, content = numbers.packed(state)
        known = [*([] if fresh else known), *new]
        seen, sent = ({} if fresh else seen), sent + len(new)
        ((_, _, found),) = thinkers._Unpickler(content, known).load()
        assert [one.plan for one in found["all"]] == [one.plan for one in some[first : first + 3]]
        assert found["best"] is found["all"][1]
        for one in found["all"]:
            assert seen.setdefault(one.plan.name, one) is one
    assert sent < 7 * 3
    fresh, new, content = numbers.packed([("states", b"key", [some[0], lambda: 0])])  # which cannot be sent
    assert fresh and new == [] and thinkers._Unpickler(content, []).load() == []


def test_a_server_with_thinkers_serves_and_ends_with_all_of_them(tmp_path: Path) -> None:
    with Server(tmp_path, "serve", "vacuum", "--compile", "--thinkers", "2") as server:
        process = psutil.Process(server.process.pid)
        until(lambda: len(_spawned(process)) == 2, "two thinkers")
        thinking = _spawned(process)
        with server.client() as client:
            person = begin(client)
            for _ in range(3):
                turn = turn_of(client.get(person).text)
                assert client.post(f"{person}/answer", data={"turn": turn, "answer": "left"}).status_code == 303
            assert "Continue answering" in client.get(f"{person}/result").text
        assert server.stop() == 0
        assert not any(one.is_running() for one in thinking)


def test_ctrl_c_while_thinkers_start_is_quiet(tmp_path: Path) -> None:
    with Server(tmp_path, "serve", "vacuum", "--compile", "--thinkers", "1") as server:
        (thinker,) = until(lambda: _spawned(psutil.Process(server.process.pid)), "a thinker")
        until(lambda: thinker.cpu_times().user > 0.02, "its imports")
        os.killpg(server.process.pid, signal.SIGINT)  # as a terminal does: all processes are told
        assert server.process.wait(timeout=PATIENCE) == 0
        assert "Traceback" not in server.output.read_text() and "worker process" not in server.output.read_text()


def _spawned(process: psutil.Process) -> list[psutil.Process]:
    return [one for one in process.children() if any("spawn_main" in word for word in one.cmdline())]
