"""Stores keep logs of events, which survive a crash of the program and of the machine."""

from __future__ import annotations

from importlib.metadata import entry_points

from tradeoff.errors import ArgumentError
from tradeoff.stores.base import ConflictError, DamagedError, InUseError, Log, MissingError, Store
from tradeoff.stores.jsonlines import JsonLines

PLUGINS = (
    "tradeoff.stores"  # the group of entry points; each name is a scheme, each object a callable(address, write=...)
)


def open_store(address: str, *, write: bool = True) -> Store:
    """Return the store at an address.

    ``sqlite:///FILE`` is a database file for one server, ``postgresql://USER@HOST/DATABASE`` a database for several,
    ``folder:PATH`` a file of JSON lines per log, and ``memory:`` is lost when the program ends. Installed packages can
    add schemes of their own. With ``write=False`` the store can only be read, even while a server has it open.

    >>> with open_store("memory:") as store:
    ...     store.create("people", "ann", [{"event": "header"}])
    ...     store.names("people")
    ['ann']
    """
    scheme, _, rest = address.partition(":")
    match scheme:
        case "memory":
            from tradeoff.stores.memory import InMemoryStore

            return InMemoryStore()
        case "folder":
            from tradeoff.stores.folder import FolderStore

            return FolderStore(rest)
        case "sqlite" | "postgresql" | "postgresql+psycopg":
            from tradeoff.stores.sql import SqlStore

            return SqlStore(address, write=write)
    for plugin in entry_points(group=PLUGINS, name=scheme):
        store: Store = plugin.load()(address, write=write)
        return store
    others = sorted({plugin.name for plugin in entry_points(group=PLUGINS)})
    raise ArgumentError(
        f"there is no store {address.rpartition('@')[2]!r:.200}; use sqlite:///FILE, postgresql://USER@HOST/DATABASE, "
        f"folder:PATH or memory:{''.join(f', {name}:' for name in others)}"
    )


__all__ = ["ConflictError", "DamagedError", "InUseError", "JsonLines", "Log", "MissingError", "Store", "open_store"]
