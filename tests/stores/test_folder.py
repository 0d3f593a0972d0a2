"""The logs of a ``folder:`` store of an earlier version can be copied into a database, completely and only once."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.messages import refused
from tradeoff.apps.cli.main import main
from tradeoff.errors import ArgumentError
from tradeoff.stores import DamagedError, JsonLines, open_store
from tradeoff.stores.folder import import_folder
from tradeoff.stores.memory import InMemoryStore

ANSWER = {"event": "answer", "best": 0}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "old"
    for second, (study, name) in enumerate([("studies", "zoo"), ("zoo", "bob"), ("zoo", "ann"), ("ark", "eve")]):
        (path / study).mkdir(parents=True, exist_ok=True)
        with JsonLines.create(path / study / f"{name}.jsonl") as log:
            log.append([{"event": "header", "time": f"2026-01-01T00:00:0{second}+00:00"}, *[ANSWER] * second])
    (path / "zoo" / "cut.jsonl").write_bytes(b'{"event": "hea')  # a crash left this; it was never acknowledged
    return path


def test_all_logs_are_copied_in_their_order_and_a_second_time_nothing_changes(folder: Path, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'new.db'}"
    for copied in (4, 0):
        done = CliRunner().invoke(main, ["study", "import-folder", str(folder), "--store", store])
        assert done.exit_code == 0 and done.output == f"copied: {copied} logs\n"
        with open_store(store, write=False) as opened:
            assert [opened.names(name) for name in ("studies", "zoo", "ark")] == [["zoo"], ["bob", "ann"], ["eve"]]
            assert [len(opened.read("zoo", name)) for name in ("bob", "ann")] == [2, 3]


def test_nothing_is_copied_from_a_folder_with_a_damaged_log(folder: Path) -> None:
    path = folder / "ark" / "eve.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"best": 0', b'"best": 1', 1))
    store = InMemoryStore()
    with pytest.raises(DamagedError, match=r"eve\.jsonl"):
        import_folder(folder, store)
    assert store.names("studies") == []


def test_a_log_of_the_store_is_never_changed(folder: Path) -> None:
    store = InMemoryStore()
    store.create("zoo", "ann", [{"event": "header"}])
    with refused(ArgumentError, "ann.jsonl"):
        import_folder(folder, store)
    assert len(store.read("zoo", "ann")) == 1


def test_what_is_no_such_folder_and_the_old_address_are_refused(tmp_path: Path) -> None:
    with refused(ArgumentError, str(tmp_path)):
        import_folder(tmp_path, InMemoryStore())
    with refused(ArgumentError, "import-folder logs"):
        open_store("folder:logs")
