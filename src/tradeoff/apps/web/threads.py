"""Work that takes its time is done beside the event loop, by a few threads.

A few, because they compute: with forty of them at work the loop, which only passes messages on, would rarely get its turn.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

Result = TypeVar("Result")

THREADS = 16  # some compute, most wait for the disk
TURN = 0.001  # seconds after which a computing thread lets others go on; Python's own is five times as long

_pool = ThreadPoolExecutor(THREADS, thread_name_prefix="tradeoff")


async def aside(work: Callable[..., Result], *given: Any) -> Result:
    """Return the result of some work, done by one of the threads."""
    return await asyncio.get_running_loop().run_in_executor(_pool, partial(work, *given))


def take_turns() -> None:
    """Let threads change places often enough for the loop to answer everybody in time."""
    sys.setswitchinterval(TURN)
