"""The participants of a study: nothing acknowledged is lost, whatever stores, processes and strategies do."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

import tradeoff
from tests.processes import PATIENCE
from tests.studies.test_session import COFFEE, distinct, person
from tradeoff.errors import ArgumentError, LogError, StoreError
from tradeoff.log import ACTIONS, Asked
from tradeoff.model import EQUAL, FIRST, SECOND, SKIP, Reply
from tradeoff.stores import MissingError, Store, open_store
from tradeoff.stores.memory import InMemoryStore
from tradeoff.strategies import Strategy, StrategySpec, paper, registry
from tradeoff.studies import Study, TurnError
from tradeoff.studies import compute as compute_module
from tradeoff.studies import service as module
from tradeoff.studies.checks import flags
from tradeoff.studies.compute import BusyError, Compute, WorkerError
from tradeoff.studies.service import Context, StudyService, answers_key
from tradeoff.studies.session import MOST_STATEMENTS


def new_service(store: Store | None = None, problem: Any = COFFEE, **given: Any) -> StudyService:
    """Return the service of a new study; by default a quick strategy."""
    study = Study.of(problem, "tasting", **{"strategy": "paper", **given})
    store = store or InMemoryStore()
    study.save(store, problem)
    return service_of(study, store, problem)


def service_of(study: Study, store: Store, problem: Any = COFFEE) -> StudyService:
    """Return another service of a study, as another process or a restarted one has it."""
    return StudyService(study, problem, store, Compute(Context.of, (store, study, problem)))


def says(reply: Reply) -> Callable[[Asked], Reply]:
    """Return the reader of a reply about positions."""
    return lambda shown: shown.by_place(reply)


def replies(store: Store, token: str) -> list[Any]:
    events = store.read("tasting", token)
    return [event.get("best", event.get("reply")) for event in events if event["event"] == "answer"]


def kinds(store: Store, token: str) -> list[str]:
    return [event["event"] for event in store.read("tasting", token)]


# --- durable before it is acknowledged -------------------------------------------------------------------------------


def test_what_was_answered_is_in_the_store_before_anybody_hears_of_it() -> None:
    async def run() -> None:
        people = new_service()
        token = await people.begin()
        for turn in (1, 2, 3):
            assert await people.answer(token, turn, says(FIRST)) == turn + 1
            assert replies(people.store, token) == [0] * turn
        await people.undo(token)
        assert kinds(people.store, token)[-1] == "undo"

    asyncio.run(run())


class Later(InMemoryStore):
    """A store whose appends are durable only when they are released."""

    def __init__(self) -> None:
        super().__init__()
        self.released, self.asked = threading.Event(), threading.Event()
        self.released.set()

    def append(self, *given: Any, **named: Any) -> None:
        self.asked.set()
        assert self.released.wait(PATIENCE)
        super().append(*given, **named)


@pytest.mark.parametrize("act", ["answer", "undo", "state", "begin"])
def test_nothing_is_acknowledged_while_it_is_being_written(act: str) -> None:
    async def run() -> None:
        store = Later()
        people = new_service(store, strategy="careful", checks=False)
        token = await people.begin()
        await people.answer(token, 1, says(FIRST))
        await people.question(token)
        store.released.clear()
        store.asked.clear()
        calls = {
            "answer": lambda: people.answer(token, 2, says(SECOND)),
            "undo": lambda: people.undo(token, turn=2),
            "state": lambda: people.add_statement(token, "price > aroma"),
            "begin": lambda: people.begin(),
        }
        acting = asyncio.ensure_future(calls[act]())
        while not store.asked.is_set():
            await asyncio.sleep(0.001)
        for _ in range(20):
            await asyncio.sleep(0.002)
            assert not acting.done()
        store.released.set()
        made = await acting
        if act == "begin":
            assert kinds(store, made) == ["header", "question"]
        else:
            assert kinds(store, token)[4] == {"state": "statement"}.get(act, act)

    asyncio.run(run())


def test_an_answer_is_kept_when_its_request_is_dropped() -> None:
    """A client disconnects while its answer is being written: the write goes on, and the next request sees it."""

    async def run() -> None:
        store = Later()
        people = new_service(store)
        token = await people.begin()
        store.released.clear()
        store.asked.clear()
        dropped = asyncio.ensure_future(people.answer(token, 1, says(FIRST)))
        while not store.asked.is_set():
            await asyncio.sleep(0.001)
        dropped.cancel()
        await asyncio.gather(dropped, return_exceptions=True)
        store.released.set()
        while len(kinds(store, token)) < 3:
            await asyncio.sleep(0.001)
        assert (await people.question(token)).turn == 2
        assert await people.answer(token, 2, says(SECOND)) == 3
        assert replies(store, token) == [0, 1]

    asyncio.run(run())


# --- stores that fail ------------------------------------------------------------------------------------------------


class Full(InMemoryStore):
    full = False

    def append(self, *given: Any, **named: Any) -> None:
        if self.full:
            raise StoreError("the disk is full")
        super().append(*given, **named)


def test_what_could_not_be_written_did_not_happen() -> None:
    async def run() -> None:
        store = Full()
        people = new_service(store, strategy="careful", checks=False)
        token = await people.begin()
        await people.answer(token, 1, says(FIRST))
        await people.question(token)
        store.full = True
        for act in (
            lambda: people.answer(token, 2, says(SECOND)),
            lambda: people.undo(token),
            lambda: people.add_statement(token, "price > aroma"),
            lambda: people.begin(),
        ):
            with pytest.raises(StoreError, match="full"):
                await act()
        store.full = False
        position = await people.question(token)
        assert (position.turn, position.answered) == (2, 1) and position.prompt is not None
        await people.answer(token, 2, says(FIRST))
        assert replies(store, token) == [0, 0]

    asyncio.run(run())


class NoQuestions(InMemoryStore):
    """A store that stores what people do, and fails to store what they are shown."""

    failing = False

    def append(self, folder: str, name: str, events: Any, *, after: int) -> None:
        if self.failing and ACTIONS.isdisjoint(event["event"] for event in events):
            raise StoreError("the disk is full")
        super().append(folder, name, events, after=after)


def test_an_answer_counts_when_only_the_next_question_could_not_be_written() -> None:
    """The question is shown all the same, and stored together with its answer."""

    async def run() -> None:
        store = NoQuestions()
        people = new_service(store, checks=False)
        token = await people.begin()
        store.failing = True
        with pytest.raises(StoreError, match="full"):
            await people.begin()
        for turn in (1, 2, 3):
            await people.answer(token, turn, says(FIRST))
            position = await people.question(token)
            assert position.prompt is not None and position.turn == turn + 1
        store.failing = False
        await people.question(token)
        assert kinds(store, token) == ["header", *["question", "answer"] * 3, "question"]
        assert replies(store, token) == [0] * 3

    asyncio.run(run())


def test_a_store_that_cannot_be_read_is_an_error_and_the_session_goes_on_later() -> None:
    class Unreadable(InMemoryStore):
        broken = False
        shared = True

        def read(self, *given: Any, **named: Any) -> list[dict[str, Any]]:
            if self.broken:
                raise StoreError("the database does not answer")
            return super().read(*given, **named)

    async def run() -> None:
        store = Unreadable()
        people = new_service(store)
        token = await people.begin()
        store.broken = True
        for act in (lambda: people.answer(token, 1, says(FIRST)), lambda: people.question(token)):
            with pytest.raises(StoreError, match="does not answer"):
                await act()
        store.broken = False
        assert await people.answer(token, 1, says(FIRST)) == 2
        assert replies(store, token) == [0]

    asyncio.run(run())


# --- requests and processes at the same time -------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["memory:", "sqlite:///{}/a.db"])
def test_of_several_answers_to_one_turn_one_counts(address: str, tmp_path: Path) -> None:
    async def run(store: Store) -> None:
        people = new_service(store)
        token = await people.begin()
        for turn in range(1, 7):
            given = [FIRST, SECOND, EQUAL, SKIP]
            asked = (people.answer(token, turn, says(reply)) for reply in given)
            done = await asyncio.gather(*asked, return_exceptions=True)
            assert sorted(map(str, map(type, done))) == sorted([str(int), *[str(TurnError)] * 3])
            taken = given[next(i for i, one in enumerate(done) if one == turn + 1)]
            last = [event for event in store.read("tasting", token) if event["event"] == "answer"][-1]
            assert last.get("best", last.get("reply")) == (taken.word or taken.best)
            await people.question(token)

    with open_store(address.format(tmp_path)) as store:
        asyncio.run(run(store))


class SharedStore(InMemoryStore):
    """A store that several processes write to."""

    shared = True  # type: ignore[assignment]


def test_two_services_on_one_store_never_both_take_a_turn() -> None:
    async def run(store: Store) -> None:
        one = new_service(store)
        two = service_of(one.study, store)
        token = await one.begin()
        for turn in range(1, 7):
            asked = [(one, FIRST), (two, SECOND), (one, EQUAL), (two, SKIP)]
            calls = (people.answer(token, turn, says(reply)) for people, reply in asked)
            done = await asyncio.gather(*calls, return_exceptions=True)
            assert [one for one in done if not isinstance(one, TurnError)] == [turn + 1]
            reply = asked[done.index(turn + 1)][1]
            last = [event for event in store.read("tasting", token) if event["event"] == "answer"][-1]
            assert last.get("best", last.get("reply")) == (reply.word or reply.best)

    asyncio.run(run(SharedStore()))


@pytest.mark.parametrize("shared", [True, False])
def test_a_log_that_another_process_extended_is_caught_up_with(shared: bool) -> None:
    """A shared store is looked at before every request; in any other, a write that is too late finds out."""

    async def run() -> None:
        store = SharedStore() if shared else InMemoryStore()
        one = new_service(store, checks=False)
        two = service_of(one.study, store)
        token = await one.begin()
        for turn in (1, 2, 3):
            await two.answer(token, turn, says(FIRST))
            await two.question(token)
            if shared:
                position = await one.question(token)
                assert (position.turn, position.answered) == (turn + 1, turn)
        with pytest.raises(TurnError):
            await one.answer(token, 1, says(SECOND))
        assert await one.answer(token, 4, says(SECOND)) == 5
        with pytest.raises(TurnError):
            await two.answer(token, 4, says(FIRST))
        await two.undo(token, turn=5)
        assert (await two.question(token)).answered == 3
        assert replies(store, token) == [0, 0, 0, 1]

    asyncio.run(run())


def test_two_processes_that_get_the_same_request_at_the_same_moment_begin_once() -> None:
    """The second one finds nobody, and then the log that the first has just made."""

    async def run() -> None:
        one = new_service()
        other = service_of(one.study, one.store)
        other._exists = lambda token: False  # type: ignore[method-assign]
        tokens = [await people.begin(key="the same") for people in (one, other, one)]
        assert len(set(tokens)) == 1 and one.store.names("tasting") == tokens[:1]
        assert (await other.question(tokens[0])).turn == 1
        assert await one.begin(key="another") not in tokens

    asyncio.run(run())


# --- views are computed once, and elsewhere --------------------------------------------------------------------------


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the number of answers whenever a view is computed."""
    computed: list[int] = []
    original = module.compute_view

    def compute_view(context: Context, events: Any) -> Any:
        computed.append(sum(event["event"] == "answer" for event in events))
        return original(context, events)

    monkeypatch.setattr(module, "compute_view", compute_view)
    return computed


def test_people_with_the_same_answers_share_one_computation(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = counted(monkeypatch)

    async def run() -> None:
        people = new_service()
        tokens = await asyncio.gather(*(people.begin() for _ in range(30)))
        for turn in (1, 2, 3):
            await asyncio.gather(*(people.answer(token, turn, says(FIRST)) for token in tokens))
            positions = await asyncio.gather(*(people.question(token) for token in tokens))
            assert len({one.prompt and one.prompt.question.key for one in positions}) == 1
        # An answer that leads to a known question is stored together with it.
        late = await people.begin()
        await people.answer(late, 1, says(FIRST))
        assert kinds(people.store, late) == ["header", "question", "answer", "question"]
        other = await people.begin()
        await people.answer(other, 1, says(SECOND))
        await people.question(other)

    asyncio.run(run())
    assert computed == [0, 1, 2, 3, 1]  # the last one said something else


def test_people_with_the_same_answers_see_their_own_order() -> None:
    async def run() -> None:
        people = new_service()
        tokens = [await people.begin() for _ in range(20)]
        shown = [(await people.question(token)).prompt for token in tokens]
        assert len({prompt.order for prompt in shown if prompt is not None}) == 2
        for token, prompt in zip(tokens, shown, strict=True):
            assert prompt is not None
            await people.answer(token, 1, lambda _: Reply(best=0))  # the one on the left
            assert replies(people.store, token) == [prompt.order[0]]

    asyncio.run(run())


def test_the_serving_process_runs_no_strategy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the thread or process of the compute service does."""
    original, where = tradeoff.Interview.position.fget, set()  # type: ignore[attr-defined]

    def position(interview: Any) -> Any:
        where.add(threading.current_thread().name.rpartition("_")[0])
        return original(interview)

    async def run() -> None:
        people = new_service(strategy="careful")
        token = await people.begin()
        monkeypatch.setattr(tradeoff.Interview, "position", property(position))
        user, done = person(), False
        while not done:
            found = await people.question(token)
            if (prompt := found.prompt) is not None:
                await people.answer(token, found.turn, says(user(prompt.question)))
            done = prompt is None
        with pytest.raises(TurnError):
            await people.answer(token, found.turn, says(FIRST))  # nothing is asked in this turn
        await people.undo(token, 2)
        await people.add_statement(token, "price > aroma")
        await people.question(token)

    asyncio.run(run())
    assert where == {"tradeoff compute"}


def test_what_needs_no_computing_does_not_wait_for_those_who_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker is busy and nobody else may wait: what still works did not need it."""

    async def run() -> None:
        people = new_service()
        ann, bob = await people.begin(), await people.begin()
        shown = await people.question(ann)
        result = await people.result(ann, events_seen)
        free, entered = threading.Event(), threading.Event()

        def hold(context: Context) -> None:
            entered.set()
            assert free.wait(PATIENCE)

        heavy = asyncio.ensure_future(people.compute.get("heavy", hold))
        while not entered.is_set():
            await asyncio.sleep(0.001)
        monkeypatch.setattr(compute_module, "MAX_WAITING", 0)
        try:
            again = await people.question(ann)
            assert again.prompt is not None and shown.prompt is not None and again.view is not None
            assert again.prompt.question.key == shown.prompt.question.key
            assert await people.result(ann, events_seen) == result
            assert len(await people.events(bob)) == 2
            await people.answer(bob, 1, says(FIRST))  # is recorded; what follows from it has to be computed
            for busy in (people.question(bob), people.begin(), people.result(bob, events_seen)):
                with pytest.raises(BusyError):
                    await busy
            restarted = StudyService(people.study, COFFEE, people.store, people.compute)
            await restarted.undo(bob)  # nor does the log have to be replayed to add to it
            assert kinds(people.store, bob) == ["header", "question", "answer", "undo"]
        finally:
            free.set()
        await heavy
        monkeypatch.undo()
        assert (await restarted.question(bob)).turn == 3

    asyncio.run(run())


def events_seen(context: Context, events: Any, *more: Any) -> int:
    return len(events)


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

    async def run(store: Store) -> None:
        nonlocal broken
        people = new_service(store, strategy="fragile")
        token = await people.begin()
        broken = True
        await people.answer(token, 1, says(FIRST))
        for again in (people, service_of(people.study, store)):  # also after a restart
            with pytest.raises(WorkerError, match="no room"):
                await again.question(token)
            assert [event["event"] for event in await again.events(token)] == ["header", "question", "answer"]
        broken = False
        position = await people.question(token)  # and once it works again, it goes on
        assert (position.turn, position.answered) == (2, 1)
        await people.answer(token, 2, says(SECOND))
        assert replies(store, token) == [0, 1]

    with open_store(f"sqlite:///{tmp_path / 'x.db'}") as store:
        asyncio.run(run(store))


# --- what people do --------------------------------------------------------------------------------------------------


def test_nothing_is_asked_or_answered_before_somebody_begins() -> None:
    async def run() -> None:
        people = new_service()
        token = people.invite()
        position = await people.question(token)
        assert not position.begun and position.prompt is None
        assert await people.result(token, events_seen) is None
        with pytest.raises(TurnError):
            await people.answer(token, 1, says(FIRST))
        with pytest.raises(ArgumentError, match="no answer"):
            await people.undo(token)
        assert kinds(people.store, token) == ["header"]
        assert (await people.question(token, begin=True)).prompt is not None
        assert await people.answer(token, 1, says(FIRST)) == 2

    asyncio.run(run())


@pytest.mark.parametrize("questions", ["pairs", "best-worst-4"])
def test_a_whole_interview_with_checks_undo_and_statements(questions: str) -> None:
    async def run() -> None:
        people = new_service(strategy="careful", settings={"questions": questions})
        token, user = await people.begin(), person()
        undone = False
        while (position := await people.question(token)).prompt is not None:
            prompt = position.prompt
            await people.answer(token, position.turn, says(user(prompt.question)))
            if prompt.check == "dominated" and not undone:
                await people.undo(token)  # the check
                await people.undo(token, 2)
                await people.add_statement(token, "price >= 1%")
                with pytest.raises(TurnError):
                    await people.add_statement(token, "aroma >= 1%", position.turn)
                with pytest.raises(TurnError):
                    await people.undo(token, turn=position.turn)
                undone = True
        assert undone and flags(people.store.read("tasting", token)) == {"dominated": "passed", "repeat": "passed"}
        assert kinds(people.store, token)[-1] == "end" and position.view is not None and position.view.at_most == 0
        before = len(kinds(people.store, token))
        await people.question(token)  # the end is logged once
        assert len(kinds(people.store, token)) == before
        await people.undo(token)
        assert (await people.question(token)).prompt is not None  # asked again

    asyncio.run(run())


def test_statements_are_limited_in_number() -> None:
    async def run() -> None:
        people = new_service(strategy="careful", settings={"questions": "pairs"}, checks=False)
        token = await people.begin()
        for text in distinct(MOST_STATEMENTS):
            await people.add_statement(token, text)
        before = len(kinds(people.store, token))
        with pytest.raises(ArgumentError, match="at most 30 statements"):
            await people.add_statement(token, "aroma > crema")
        await people.add_statement(token, distinct(1)[0])  # it stands already
        assert len(kinds(people.store, token)) == before

    asyncio.run(run())


def test_a_link_that_nobody_has_is_missing_and_takes_no_memory() -> None:
    async def run() -> None:
        people = new_service()
        for token in ("a" * 22, "../x", "", "x" * 300, "é"):
            for act in (
                lambda token=token: people.question(token),
                lambda token=token: people.events(token),
                lambda token=token: people.answer(token, 1, says(FIRST)),
                lambda token=token: people.result(token, events_seen),
            ):
                with pytest.raises(MissingError):
                    await act()
        assert not people._live

    asyncio.run(run())


def test_an_interview_about_something_else_is_refused() -> None:
    async def run() -> None:
        people = new_service()
        events = people.store.read("tasting", await people.begin())
        people.store.create("tasting", "x" * 22, [{**events[0], "problem": "of another model"}, *events[1:]])
        with pytest.raises(LogError, match="another problem"):
            await people.question("x" * 22)

    asyncio.run(run())


# --- sessions in memory ----------------------------------------------------------------------------------------------


def test_the_oldest_session_in_memory_is_forgotten_and_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LIVE", 2)

    async def run() -> None:
        people = new_service()
        tokens = [await people.begin() for _ in range(4)]
        for turn, reply in ((1, FIRST), (2, SECOND)):
            for token in tokens:
                await people.answer(token, turn, says(reply))
        assert len(people._live) == 2
        assert all(replies(people.store, token) == [0, 1] for token in tokens)

    asyncio.run(run())


@pytest.mark.parametrize("strategy", ["careful", "certified", "paper"])
def test_a_session_that_is_dropped_leaves_memory_without_the_garbage_collector(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's collector does not examine what has lived for long, so a session in a reference cycle would stay."""
    gone: list[weakref.ref[object]] = []
    original = Context.session

    def session(context: Context, events: Any) -> Any:
        made = original(context, events)
        gone.extend((weakref.ref(made), weakref.ref(made.interview)))
        return made

    monkeypatch.setattr(Context, "session", session)

    async def run() -> None:
        people = new_service(strategy=strategy)
        for i in range(3):
            token, user = await people.begin(), person(seed=i)
            while (position := await people.question(token)).prompt is not None:
                await people.answer(token, position.turn, says(user(position.prompt.question)))
                if position.turn == 3:
                    await people.undo(token)
                with pytest.raises(TurnError):
                    await people.answer(token, 1_000, says(EQUAL))
        with pytest.raises(ValueError, match="as it happens"):
            await people.answer(await people.begin(), 1, fails)
        people._live.clear()
        del position
        # A worker's thread may hold the arguments of its last job until the next one.
        await people.compute.get("the last", events_seen, [])

    gc.collect()
    gc.disable()
    try:
        asyncio.run(run())
        assert len(gone) > 20 and [one() for one in gone if one() is not None] == []
    finally:
        gc.enable()


def fails(shown: Asked) -> Reply:
    raise ValueError("as it happens")


def test_append_later_is_used_so_that_writes_of_many_people_share_a_commit() -> None:
    class Counting(InMemoryStore):
        later = 0

        def append_later(self, *given: Any, **named: Any) -> Future[None]:
            self.later += 1
            return super().append_later(*given, **named)

    async def run() -> None:
        store = Counting()
        people = new_service(store)
        token = await people.begin()
        await people.answer(token, 1, says(FIRST))
        assert store.later == 2

    asyncio.run(run())


def test_an_observation_and_an_answer_to_the_same_question_have_different_keys() -> None:
    """A strategy does not read them alike: only an answer to its own question can end an interview."""
    own = tradeoff.Interview(tradeoff.load("coffee"))
    other = tradeoff.Interview(tradeoff.load("coffee"))
    question = own.ask()
    assert question is not None
    own.tell(FIRST)
    other.observe(question, FIRST)
    assert own.answers[0].question.key == other.answers[0].question.key
    assert answers_key(own.state) != answers_key(other.state)
