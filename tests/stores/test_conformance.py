"""Every store passes ``tradeoff.testing.check_store``, and a store with a mistake does not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tradeoff.errors import ArgumentError, StoreError
from tradeoff.stores import Store, open_store
from tradeoff.stores.memory import InMemoryStore
from tradeoff.testing import check_store

HEADER = {"event": "header", "format": "tradeoff-log/2", "time": "2026-01-01T00:00:00+00:00"}


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    match request.param:
        case "memory":
            return "memory:"
        case "sqlite":
            return f"sqlite:///{tmp_path / 'logs.db'}"
        case _:
            database: str = request.getfixturevalue("postgresql_address")
            return database


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    with open_store(address) as opened:
        yield opened


def test_a_store_does_what_is_promised(address: str) -> None:
    check_store(lambda: open_store(address), durable=address != "memory:")


def test_a_store_opened_for_reading_reads_and_does_not_write(address: str) -> None:
    with open_store(address) as store:
        store.create("people", "ann", [HEADER])
    if address != "memory:":
        with open_store(address, write=False) as store:
            assert store.read("people", "ann") == [HEADER]


def test_a_log_needs_an_event(store: Store) -> None:
    with pytest.raises(ArgumentError, match="at least one event"):
        store.create("people", "ann", [])
    assert store.names("people") == []


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
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


# --- the checks notice mistakes --------------------------------------------------------------------------------------


class Forgets(InMemoryStore):
    def append(self, folder: str, name: str, events: Any, *, after: int) -> None:
        super().append(folder, name, events[:1], after=after)


class Overwrites(InMemoryStore):
    def append(self, folder: str, name: str, events: Any, *, after: int) -> None:
        super().append(folder, name, events, after=len(self.read(folder, name)))


class Sorts(InMemoryStore):
    def names(self, folder: str) -> list[str]:
        return sorted(super().names(folder))


class Shares(InMemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], list[Mapping[str, Any]]] = {}

    def create(self, folder: str, name: str, events: Any) -> None:
        super().create(folder, name, events)
        self.kept[folder, name] = list(events)

    def append(self, folder: str, name: str, events: Any, *, after: int) -> None:
        super().append(folder, name, events, after=after)
        self.kept[folder, name] += events

    def read(self, folder: str, name: str, *, after: int = 0) -> list[Any]:
        super().read(folder, name)
        return self.kept[folder, name][after:]


class HalfWrites(InMemoryStore):
    def append(self, folder: str, name: str, events: Any, *, after: int) -> None:
        for position, event in enumerate(events, start=after):
            super().append(folder, name, [event], after=position)


class TakesAnyName(InMemoryStore):
    def create(self, folder: str, name: str, events: Any) -> None:
        try:
            super().create(folder, name, events)
        except ArgumentError:
            return


@pytest.mark.parametrize("broken", [Forgets, Overwrites, Sorts, Shares, HalfWrites, TakesAnyName])
def test_a_store_with_a_mistake_is_noticed(broken: type[Store]) -> None:
    with pytest.raises(AssertionError):
        check_store(broken, durable=False)


def test_a_store_that_should_last_and_does_not_is_noticed() -> None:
    with pytest.raises(AssertionError, match="after opening the store again"):
        check_store(InMemoryStore)
