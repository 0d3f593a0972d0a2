"""Where interviews are kept: an event that a store has taken survives a crash."""

from tradeoff.stores.jsonlines import JsonLines

__all__ = ["JsonLines"]
