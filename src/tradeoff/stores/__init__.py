"""Where interviews are kept: an event that a store has taken survives a crash."""

from tradeoff.stores.base import ConflictError, DamagedError, Log, MissingError, Store, open_store
from tradeoff.stores.jsonlines import JsonLines

__all__ = ["ConflictError", "DamagedError", "JsonLines", "Log", "MissingError", "Store", "open_store"]
