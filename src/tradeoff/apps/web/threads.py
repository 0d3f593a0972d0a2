"""Quick work runs in the event loop, everything else in threads."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from tradeoff.stores import ConflictError
from tradeoff.studies import Session, Sessions
from tradeoff.studies.computing import WAITING

Result = TypeVar("Result")

# At most WAITING of these threads wait for their turn to compute, so some are always left for work that need not wait.
SESSION_THREADS = WAITING + 64
DISK_THREADS = 32

_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
_computing: dict[Hashable, asyncio.Future[None]] = {}  # by what was told: done when somebody's page is computed
_pool = ThreadPoolExecutor(SESSION_THREADS, thread_name_prefix="tradeoff session")
_disk = ThreadPoolExecutor(DISK_THREADS, thread_name_prefix="tradeoff disk")


async def aside(work: Callable[..., Result], *given: Any) -> Result:
    """Return the result of work that needs the disk, but no turn to compute."""
    return await asyncio.get_running_loop().run_in_executor(_disk, partial(work, *given))


async def begin(sessions: Sessions, caller: Hashable = None) -> str:
    """Return the token of a new session."""
    return await asyncio.get_running_loop().run_in_executor(_pool, sessions.open, caller)


async def visit(
    sessions: Sessions,
    token: str,
    work: Callable[[Session], Result],
    *,
    turn: int | None = None,
    quick: Callable[[Session], bool] = lambda session: False,
    caller: Hashable = None,
    long: bool = False,
) -> Result:
    """Return the result of ``work(session)``; what it recorded is durable by then. ``long`` work waits for other people's.

    ``turn`` is the turn that the person has reached, if known. If ``quick(session)`` is true there is nothing to compute,
    and the work runs in the event loop: passing it to a thread and back takes longer, above all while others compute. People
    with the same answers wait for one computation: once the first of them has the page, it is quick for the others.
    """
    loop = asyncio.get_running_loop()
    for last in (False, True):
        done = sessions.at_once(token, turn, work, quick)
        if done is not None:
            result, saved = done
            if saved is None:
                return result
            with contextlib.suppress(ConflictError):  # another process wrote first: read the log again
                await asyncio.wrap_future(saved)
                return result
        told = sessions.told(token)
        same = None if told is None else _computing.get((told, long))
        if same is None or last:  # what is still not quick has to be read again from a store that others write to
            break
        await asyncio.wait([same])
    finished = loop.create_future()
    if told is not None:
        _computing[told, long] = finished
    try:
        # One thread at a time for each person: a hundred requests at once hold up only the person who sent them.
        async with _locks.setdefault(token, asyncio.Lock()):
            return await loop.run_in_executor(_pool, partial(sessions.do, token, work, caller, long=long))
    finally:
        if _computing.get((told, long)) is finished:
            del _computing[told, long]
        finished.set_result(None)
