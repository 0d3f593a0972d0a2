"""Copy the logs of a ``folder:`` store, which versions up to 0.3 could write, into another store."""

from __future__ import annotations

from pathlib import Path

from tradeoff.errors import ArgumentError
from tradeoff.log import Event
from tradeoff.stores.base import ConflictError, Store
from tradeoff.stores.jsonlines import JsonLines


def import_folder(path: Path, store: Store) -> int:
    """Copy every log ``PATH/folder/name.jsonl`` into a store, the oldest first, and return how many were copied.

    All files are read before anything is written. A log that the store has already is left alone if it is the same, so that
    an interrupted import can be repeated.
    """
    logs: dict[tuple[str, str], list[Event]] = {}
    for file in sorted(path.glob("*/*.jsonl")):
        if b"\n" in file.read_bytes():  # a crash left anything shorter; it was never acknowledged
            with JsonLines.open(file) as log:
                logs[file.parent.name, file.stem] = log.read()
    if not logs:
        raise ArgumentError(f"{path} holds no logs; name the folder that was given as folder:PATH")
    copied = 0
    for (folder, name), events in sorted(logs.items(), key=lambda item: str(item[1][0].get("time", ""))):
        try:
            store.create(folder, name, events)
            copied += 1
        except ConflictError:
            if store.read(folder, name) != events:
                raise ArgumentError(
                    f"the store has another log in the place of {path / folder}/{name}.jsonl; copy into a new database"
                ) from None
    return copied
