"""What takes no time is done in the event loop, everything else in threads beside it."""

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

# Of the threads for sessions at most WAITING wait for their turn to compute; the others are there for what need not wait.
SESSION_THREADS = WAITING + 64
DISK_THREADS = 32

_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
_pool = ThreadPoolExecutor(SESSION_THREADS, thread_name_prefix="tradeoff session")
_disk = ThreadPoolExecutor(DISK_THREADS, thread_name_prefix="tradeoff disk")


async def aside(work: Callable[..., Result], *given: Any) -> Result:
    """Return the result of some work that needs the disk, but no turn to compute."""
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
) -> Result:
    """Return what some work with a person's session gives; what it recorded is durable then.

    ``turn`` is the turn that the person has come to, if known. Where ``quick`` says that there is nothing to compute the
    work is done at once: handing it to a thread and back would take longer, above all while other threads compute.
    """
    done = sessions.at_once(token, turn, work, quick)
    if done is not None:
        result, saved = done
        if saved is None:
            return result
        with contextlib.suppress(ConflictError):  # another process wrote in the meantime: look again
            await asyncio.wrap_future(saved)
            return result
    # One thread at a time for each person: whoever sends a hundred requests at once waits for themselves only.
    lock = _locks.setdefault(token, asyncio.Lock())
    async with lock:
        return await asyncio.get_running_loop().run_in_executor(_pool, sessions.do, token, work, caller)
