"""Limits on what reading a problem may cost."""

from __future__ import annotations

import json
import math
import os

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.sources.messages import shortened

MOST_KEYS = 1_000  # in a document; also the largest number of objectives
LONGEST = 1_000_000  # steps
MOST_WORK = 2 * 10**10  # branches times steps in one solution


def seconds_limit(default: float) -> float:
    """Return how many seconds of processor time building a model may take: ``TRADEOFF_SECONDS``, or the default."""
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


def check_length(horizon: int, branches: int) -> None:
    """Raise a ProblemError if so many steps through so many branches could never be solved."""
    if horizon > LONGEST or horizon * max(1, branches) > MOST_WORK:
        raise ProblemError(
            f"the horizon is {shortened(horizon)} steps through {branches:,} branches; the limits are {LONGEST:,} steps, "
            f"and {MOST_WORK:,} for steps times branches: correct the horizon"
        )


def check_characters(document: object, text: str) -> None:
    """Raise a ProblemError if a JSON text holds a lone surrogate, which JSON can escape but UTF-8 cannot encode."""
    if "\\ud" in text or "\\uD" in text:
        try:
            json.dumps(document, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            around = error.object[max(0, error.start - 20) : error.end + 20]
            raise ProblemError(f"half a character (a lone surrogate) was found in {around!r}; correct it") from None
