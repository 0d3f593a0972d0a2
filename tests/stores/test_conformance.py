"""One suite over every store: what is taken is there, in order, exactly; nothing is changed; the quicker one wins."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tradeoff.errors import ArgumentError, StoreError
from tradeoff.stores import ConflictError, MissingError, Store, open_store

HEADER = {"event": "header", "format": "tradeoff-log/2", "time": "2026-01-01T00:00:00+00:00"}

Reopen = Callable[[], Store]


@pytest.fixture(params=["memory", "folder", "sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    match request.param:
        case "memory":
            return "memory:"
        case "folder":
            return f"folder:{tmp_path / 'logs'}"
        case "sqlite":
            return f"sqlite:///{tmp_path / 'logs.db'}"
        case _:
            database: str = request.getfixturevalue("postgresql_address")
            return database


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    with open_store(address) as opened:
        yield opened


def test_what_is_appended_is_read_back_in_order_and_exactly(store: Store) -> None:
    events: list[dict[str, Any]] = [
        HEADER,
        {"event": "question", "first": [0.1, 1 / 3, 5e-324], "name": 'é\n"=cmd\u202e\x1b[31m'},
        {"event": "answer", "answer": None, "number": 2**53},
    ]
    store.create("people", "ann", events[:1])
    store.append("people", "ann", events[1:], after=1)
    store.append("people", "ann", [], after=3)
    assert store.read("people", "ann") == events
    assert store.read("people", "ann", after=1) == events[1:]
    assert store.read("people", "ann", after=3) == []


def test_names_come_in_the_order_they_were_begun_and_folders_are_apart(store: Store) -> None:
    for i, name in enumerate(["zoe", "ann", "bob"]):
        store.create("people", name, [{**HEADER, "time": f"2026-01-01T00:00:0{i}+00:00"}])
    store.create("others", "ann", [HEADER])
    assert store.names("people") == ["zoe", "ann", "bob"]
    assert store.names("others") == ["ann"] and store.names("nobody") == []
    assert list(store.logs("people")) == ["zoe", "ann", "bob"] and store.logs("others") == {"ann": [HEADER]}
    assert store.logs("nobody") == {}


def test_lengths_are_those_of_the_logs_in_the_same_order(store: Store) -> None:
    for i, name in enumerate(["zoe", "ann", "bob"]):
        store.create("people", name, [{**HEADER, "time": f"2026-01-01T00:00:0{i}+00:00"}])
        store.append("people", name, [{"event": "note", "text": "a\nb"}] * i, after=1)
    store.create("others", "ann", [HEADER] * 7)
    assert list(store.lengths("people").items()) == [("zoe", 1), ("ann", 2), ("bob", 3)]
    store.append("people", "zoe", [HEADER, HEADER], after=1)
    assert store.lengths("people")["zoe"] == 3 and store.lengths("nobody") == {}


def test_what_is_not_there_is_missing(store: Store) -> None:
    store.create("people", "ann", [HEADER])
    for folder, name in (("people", "bob"), ("others", "ann")):
        with pytest.raises(MissingError):
            store.read(folder, name)
        with pytest.raises(MissingError):
            store.append(folder, name, [HEADER], after=0)


def test_a_writer_who_missed_something_changes_nothing(store: Store) -> None:
    store.create("people", "ann", [HEADER])
    store.append("people", "ann", [{"event": "answer"}], after=1)
    for after in (0, 1, 3):
        with pytest.raises(ConflictError):
            store.append("people", "ann", [{"event": "late"}], after=after)
    with pytest.raises(ConflictError):
        store.create("people", "ann", [{"event": "other"}])
    assert store.read("people", "ann") == [HEADER, {"event": "answer"}]


def test_of_many_who_write_at_once_exactly_one_wins_each_place(store: Store) -> None:
    store.create("people", "ann", [HEADER])
    store.create("people", "bob", [HEADER])
    won: list[tuple[str, int, int]] = []

    def write(who: int) -> None:
        for place in range(1, 6):
            for name in ("ann", "bob"):
                try:
                    store.append("people", name, [{"event": "answer", "by": who, "place": place}], after=place)
                    won.append((name, place, who))
                except ConflictError:
                    pass

    threads = [threading.Thread(target=write, args=(who,)) for who in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in ("ann", "bob"):
        kept = store.read("people", name)[1:]
        acknowledged = {(place, who) for winner, place, who in won if winner == name}
        assert {(e["place"], e["by"]) for e in kept} == acknowledged
        assert [e["place"] for e in kept] == sorted({place for place, _ in acknowledged})


def test_everything_is_there_after_opening_it_again(address: str) -> None:
    with open_store(address) as store:
        store.create("people", "ann", [HEADER])
        store.append("people", "ann", [{"event": "answer", "x": 0.1}], after=1)
    with open_store(address) as store:
        if address == "memory:":  # which forgets, as it says
            assert store.names("people") == []
            return
        assert store.read("people", "ann") == [HEADER, {"event": "answer", "x": 0.1}]
        store.append("people", "ann", [{"event": "end"}], after=2)
    with open_store(address, write=False) as store:
        assert len(store.read("people", "ann")) == 3


@pytest.mark.parametrize("name", ["", "..", "a/b", "a b", "é", "x" * 129, "a\n"])
def test_names_that_could_be_something_else_are_refused(store: Store, name: str) -> None:
    with pytest.raises(ArgumentError):
        store.create("people", name, [HEADER])
    with pytest.raises(ArgumentError):
        store.create(name, "ann", [HEADER])


def test_what_is_not_json_is_refused_and_nothing_is_written(store: Store) -> None:
    store.create("people", "ann", [HEADER])
    for bad in ({"x": float("nan")}, {"x": {1, 2}}):
        with pytest.raises((ValueError, TypeError)):
            store.append("people", "ann", [{"event": "fine"}, bad], after=1)
    assert store.read("people", "ann") == [HEADER]


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | st.text(
        st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=8
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(
    batches=st.lists(st.lists(st.dictionaries(st.text("xyz", min_size=1), values, max_size=3), max_size=3), max_size=4)
)
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_any_event_comes_back_as_it_was(store: Store, batches: list[list[dict[str, Any]]]) -> None:
    name = f"log-{len(store.names('random'))}"
    store.create("random", name, [HEADER])
    kept: list[dict[str, Any]] = [HEADER]
    for batch in batches:
        store.append("random", name, batch, after=len(kept))
        kept += batch
    assert json.dumps(store.read("random", name)) == json.dumps(kept)


@pytest.mark.parametrize("address", ["mysql://x", "sqlite://", "sqlite:///:memory:", "nonsense", "folder:"])
def test_an_address_of_nothing_is_refused(address: str) -> None:
    with pytest.raises((ArgumentError, StoreError)):
        open_store(address)
