"""Turns at computing: fair between callers, bounded, and only for what has to be computed."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tradeoff
from tests import processes
from tradeoff import Answer
from tradeoff.apps.web.app import make_app
from tradeoff.apps.web.threads import visit
from tradeoff.log import read_log
from tradeoff.stores.memory import InMemoryStore
from tradeoff.studies import Session, Sessions, Study
from tradeoff.studies.computing import SHORT_FIRST, BusyError, ComputeQueue


def until_waiting(queue: ComputeQueue, count: int) -> None:
    done = threading.Event()
    while queue.waiting < count:
        done.wait(0.001)


def test_callers_take_turns_and_each_is_served_in_order() -> None:
    queue, order = ComputeQueue(slots=1), []
    wanted = [("crowd", i) for i in range(5)] + [("ann", 0), ("ann", 1), ("bob", 0)]

    def work(caller: str, number: int) -> None:
        with queue.slot(caller):
            order.append((caller, number))

    with queue.slot("first"):
        threads = []
        for count, pair in enumerate(wanted, start=1):
            threads.append(threading.Thread(target=work, args=pair))
            threads[-1].start()
            until_waiting(queue, count)
    for thread in threads:
        thread.join()
    assert order == [
        ("crowd", 0), ("ann", 0), ("bob", 0), ("crowd", 1), ("ann", 1), ("crowd", 2), ("crowd", 3), ("crowd", 4),
    ]  # fmt: skip
    with queue.slot("again"), queue.slot("again"):  # a thread that has its turn does not wait for itself
        pass


def test_long_computations_wait_for_short_ones_but_not_for_ever() -> None:
    queue, order = ComputeQueue(slots=1), []
    wanted = [("result", True), ("other", True), *((f"ann {i}", False) for i in range(SHORT_FIRST + 3))]

    def work(caller: str, long: bool) -> None:
        with queue.slot(caller, long=long):
            order.append(caller)

    with queue.slot("report", long=True):
        threads = []
        for count, given in enumerate(wanted, start=1):
            threads.append(threading.Thread(target=work, args=given))
            threads[-1].start()
            until_waiting(queue, count)
    for thread in threads:
        thread.join()
    short = [f"ann {i}" for i in range(SHORT_FIRST + 3)]
    assert order == [*short[:SHORT_FIRST], "result", *short[SHORT_FIRST:], "other"]


@given(st.integers(1, 3), st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=24))
def test_nobody_is_forgotten_and_long_ones_leave_a_slot(slots: int, wanted: list[tuple[str, bool]]) -> None:
    queue, lock = ComputeQueue(slots=slots), threading.Lock()
    running: list[bool] = []
    seen: list[tuple[int, int]] = []
    done: list[tuple[str, bool]] = []

    def work(caller: str, long: bool) -> None:
        with queue.slot(caller, long=long):
            with lock:
                running.append(long)
                seen.append((len(running), sum(running)))
            with lock:
                running.remove(long)
                done.append((caller, long))

    threads = [threading.Thread(target=work, args=one) for one in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == sorted(wanted) and queue.waiting == 0
    assert all(count <= slots and long <= max(1, slots - 1) for count, long in seen)
    assert queue._free == slots  # all of them again


def test_too_many_that_wait_are_refused_and_nothing_is_lost() -> None:
    queue = ComputeQueue(slots=2, waiting=1)
    with queue.slot("a"):
        entered, leave = threading.Event(), threading.Event()

        def hold() -> None:
            with queue.slot("b"):
                entered.set()
                leave.wait()

        holder = threading.Thread(target=hold)
        holder.start()
        entered.wait()
        waiter = threading.Thread(target=lambda: queue.slot("c").__enter__())
        waiter.start()
        until_waiting(queue, 1)
        refused = []

        def refuse() -> None:
            with pytest.raises(BusyError), queue.slot("d"):
                pass
            refused.append(True)

        last = threading.Thread(target=refuse)
        last.start()
        last.join()
        assert refused == [True]
        leave.set()
        holder.join()
        waiter.join()
    assert queue.waiting == 0


def made(queue: ComputeQueue, **given: Any) -> Sessions:
    problem = tradeoff.load("coffee")  # of which nothing is known yet
    study = Study.of(problem, "tasting", checks=False, **given)
    store = InMemoryStore()
    study.keep(store, problem)
    return Sessions(study, problem, store, queue=queue)


def test_what_needs_no_computing_does_not_wait_for_those_who_compute() -> None:
    """Every slot is taken and nobody may wait: what still works did not ask for one."""
    queue = ComputeQueue(slots=1, waiting=0)
    people = made(queue)
    ann, bob = people.open(), people.open()
    with people.session(ann) as session:
        before = session.recommendation
    with people.session(bob) as session:
        session.ask()
    done = threading.Event()

    def busy() -> None:
        with queue.slot("heavy"):
            done.wait()

    heavy = threading.Thread(target=busy)
    heavy.start()
    while queue._free:
        done.wait(0.001)
    try:
        with people.session(ann) as session:  # a page, a result
            assert session.ready and session.ask() is not None and session.recommendation is before
        assert len(people.events(bob)) == 2  # a log to take away
        people.answer(bob, 1, Answer.FIRST)  # an answer is recorded; what follows from it has to be computed
        with pytest.raises(BusyError), people.session(bob) as session:
            session.ask()
        with pytest.raises(BusyError):
            people.open()
        restarted = Sessions(people.study, people.problem, people.store, queue=queue)
        restarted.undo(bob)  # nor does the log have to be replayed to add to it
        assert [e["event"] for e in people.events(bob)] == ["header", "question", "answer", "retraction"]
    finally:
        done.set()
        heavy.join()
    with restarted.session(bob) as session:
        asked = session.ask()
        assert asked is not None and asked.turn == 3


def test_the_page_and_the_api_say_that_they_are_busy_and_the_rest_is_served() -> None:
    queue = ComputeQueue(slots=1, waiting=0)
    people = made(queue)
    ann, bob = people.open(), people.open()
    app = make_app(people, people.problem)

    async def ask() -> None:
        transport = httpx.ASGITransport(app=app, client=("192.0.2.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            page, result = await client.get(f"/i/{ann}"), await client.get(f"/i/{ann}/result")
            assert page.status_code == result.status_code == 200
            with queue.slot("heavy"):
                assert (await client.get("/health")).status_code == 200
                assert (await client.get(f"/i/{ann}")).text == page.text  # drawn before
                assert (await client.get(f"/i/{ann}/result")).text == result.text
                assert len(read_log((await client.get(f"/i/{bob}/log")).text)) == 2
                done = await client.post(f"/i/{ann}/answer", data={"turn": "1", "answer": "left"})
                assert done.status_code == 303 and [e["event"] for e in people.events(ann)][-1] == "answer"
                sent = await client.post(f"/api/interviews/{bob}/answers", json={"turn": 1, "answer": "first"})
                assert [e["event"] for e in people.events(bob)][-1] == "answer"  # recorded, though not thought about
                begun = await client.post("/start")
                for busy in (await client.get(f"/i/{ann}"), sent, begun):
                    assert busy.status_code == 503 and int(busy.headers["retry-after"]) > 0
            assert (await client.get(f"/i/{ann}")).status_code == 200
            assert (await client.get(f"/api/interviews/{bob}/question")).json()["turn"] == 2

    asyncio.run(ask())


def test_a_page_that_several_people_wait_for_is_computed_once() -> None:
    people = made(ComputeQueue(slots=2))
    tokens, other = [people.open() for _ in range(5)], people.open()
    people.answer(other, 1, Answer.FIRST)
    begun, known, worked = threading.Event(), threading.Event(), []

    def work(session: Session) -> None:
        where = "loop" if threading.current_thread() is threading.main_thread() else "thread"
        if not known.is_set() and not session.answered:
            begun.set()
            assert known.wait(processes.PATIENCE)
        worked.append((where, session.answered))

    async def all_at_once() -> None:
        waiting = [asyncio.create_task(visit(people, token, work, quick=lambda _: known.is_set())) for token in tokens]
        while not begun.is_set():
            await asyncio.sleep(0.01)
        await visit(people, other, work)  # who has said something else does not wait
        assert worked == [("thread", 1)]
        known.set()
        await asyncio.gather(*waiting)

    asyncio.run(all_at_once())
    assert sorted(worked[1:]) == [("loop", 0)] * 4 + [("thread", 0)]


def test_what_is_never_quick_is_waited_for_only_once() -> None:
    """A store that others write to has to be read for everybody: nobody waits until all the others have read it."""
    people = made(ComputeQueue(slots=2))
    tokens, first, together = [people.open() for _ in range(5)], threading.Event(), threading.Barrier(4)

    def work(session: Session) -> None:
        if first.is_set():
            together.wait(processes.PATIENCE)
        first.set()

    async def all_at_once() -> None:
        await asyncio.gather(*(visit(people, token, work) for token in tokens))

    asyncio.run(all_at_once())


def test_whoever_waits_when_the_server_ends_is_sent_away() -> None:
    queue, told = ComputeQueue(slots=1), []

    def work(long: bool) -> None:
        try:
            with queue.slot("ann", long=long):
                told.append("computed")
        except BusyError:
            told.append("sent away")

    with queue.slot("first"):
        threads = [threading.Thread(target=work, args=(long,)) for long in (False, True, False)]
        for count, thread in enumerate(threads, start=1):
            thread.start()
            until_waiting(queue, count)
        queue.close()
        for thread in threads:
            thread.join()
        with pytest.raises(BusyError):
            queue.check()
    assert told == ["sent away"] * 3 and not queue.waiting and not queue.busy
