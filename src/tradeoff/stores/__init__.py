"""Stores: append-only logs of events that survive a crash of the program and of the machine."""

from __future__ import annotations

from importlib.metadata import entry_points

from tradeoff.errors import ArgumentError
from tradeoff.stores.base import ConflictError, DamagedError, InUseError, Log, MissingError, Store
from tradeoff.stores.jsonlines import JsonLines

# The group of entry points; each name is a scheme, each object a callable(address, write=...).
PLUGINS = "tradeoff.stores"


def open_store(address: str, *, write: bool = True) -> Store:
    """Return the store at an address.

    ``sqlite:///FILE`` is a database file for one server, ``postgresql://USER@HOST/DATABASE`` a database for several, and
    ``memory:`` is lost when the program ends. Installed packages can add other schemes. With ``write=False`` the store can
    only be read, even while a server has it open.

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
            raise ArgumentError(
                f"folder: stores are no longer supported; copy the logs into a database with: "
                f"tradeoff study import-folder {rest or 'PATH'} --store sqlite:///FILE"
            )
        case "sqlite" | "postgresql" | "postgresql+psycopg":
            from tradeoff.stores.sql import SqlStore

            return SqlStore(address, write=write)
    for plugin in entry_points(group=PLUGINS, name=scheme):
        store: Store = plugin.load()(address, write=write)
        return store
    others = sorted({plugin.name for plugin in entry_points(group=PLUGINS)})
    raise ArgumentError(
        f"there is no store {address.rpartition('@')[2]!r:.200}; use sqlite:///FILE, postgresql://USER@HOST/DATABASE "
        f"or memory:{''.join(f', {name}:' for name in others)}"
    )


__all__ = ["ConflictError", "DamagedError", "InUseError", "JsonLines", "Log", "MissingError", "Store", "open_store"]
