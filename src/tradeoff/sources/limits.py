"""Limits on what reading a problem may cost."""

from __future__ import annotations

import math
import os

from tradeoff.errors import ArgumentError


def seconds_limit(default: float) -> float:
    """Return how many seconds of computing building a model may take: ``TRADEOFF_SECONDS``, or else the default."""
    setting = os.environ.get("TRADEOFF_SECONDS")
    if setting is None:
        return default
    try:
        limit = float(setting)
    except ValueError:
        limit = math.nan
    if not (limit > 0 and math.isfinite(limit)):
        raise ArgumentError(f"TRADEOFF_SECONDS is {setting!r}; it must be a positive number of seconds, such as 60")
    return limit
