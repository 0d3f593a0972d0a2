"""How much memory there is, and the refusal of what would not fit in it."""

from __future__ import annotations

import os
from pathlib import Path

from tradeoff.errors import ArgumentError, TooLargeError

GIB = 1 << 30


def memory_limit() -> int:
    """Return how many bytes one computation may use.

    That is ``TRADEOFF_MEMORY`` (in GiB) where it is set, else nine tenths of what is available now.
    """
    setting = os.environ.get("TRADEOFF_MEMORY")
    if setting is not None:
        try:
            limit = float(setting)
        except ValueError:
            limit = -1.0
        if not limit > 0:
            raise ArgumentError(f"TRADEOFF_MEMORY is {setting!r}; it must be a positive number of GiB, such as 4")
        return int(limit * GIB)
    return int(0.9 * _available())


def _available() -> int:
    """Return the bytes that can be had without swapping; 4 GiB where the system does not say."""
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError, OSError):
        return 4 * GIB


def check_fits(size: int, what: str) -> None:
    """Raise a TooLargeError if ``what`` needs more bytes than may be used."""
    limit = memory_limit()
    if size > limit:
        raise TooLargeError(
            f"{what} would need about {size / GIB:.3g} GiB, and {limit / GIB:.3g} GiB may be used; make the model "
            "smaller (fewer states, actions or steps), or allow more through the environment variable "
            "TRADEOFF_MEMORY (in GiB)"
        )
