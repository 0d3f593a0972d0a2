"""What takes no time is done at once, what takes its time beside the event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from tradeoff.stores import ConflictError
from tradeoff.studies import Desk, Session

Result = TypeVar("Result")

THREADS = 100  # most of them wait for the disk, or for their turn to compute

_queues: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
_pool = ThreadPoolExecutor(THREADS, thread_name_prefix="tradeoff")


async def aside(work: Callable[..., Result], *given: Any) -> Result:
    """Return the result of some work, done by one of the threads."""
    return await asyncio.get_running_loop().run_in_executor(_pool, partial(work, *given))


async def visit(
    desk: Desk,
    token: str,
    work: Callable[[Session], Result],
    *,
    turn: int | None = None,
    quick: Callable[[Session], bool] = lambda session: False,
) -> Result:
    """Return what some work with the session of somebody who has come to a turn gives; it is durable then.

    Where ``quick`` says that there is nothing to work out it is done at once: handing it to a thread and back would take
    longer than doing it, above all when other threads compute.
    """
    done = desk.at_once(token, turn, work, quick)
    if done is not None:
        result, saved = done
        if saved is None:
            return result
        with contextlib.suppress(ConflictError):  # another process wrote in the meantime: look again
            await asyncio.wrap_future(saved)
            return result
    # One thread at a time for each person: somebody who sends a hundred requests at once waits for themselves only.
    turns = _queues.setdefault(token, asyncio.Lock())
    async with turns:
        return await aside(desk.do, token, work)
