"""A compute service: a cache, one computation per key, a fair queue, and worker processes.

``Compute.get`` looks for a result in the cache, then among the computations in flight, and else lets a worker compute it. A
worker is one process that computes one job at a time. One that dies or hangs is killed and replaced, and its job repeated once.
Results are cached pickled: their size is known, and no caller can change what others receive.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import zlib
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from cachetools import LRUCache

from tradeoff.errors import TradeoffError

log = logging.getLogger("tradeoff.compute")

CACHE_BYTES = 64 << 20
MAX_WAITING = 500  # computations that may wait
REQUEST_TIMEOUT = 50.0  # seconds until a request is refused; the client tries again; proxies give up after 60
JOB_TIMEOUT = 60.0  # seconds after which a worker counts as hung
START_TIMEOUT = 120.0  # seconds in which one imports everything and reads the problem
MAX_WORKERS = 4  # each has the model and its own caches in memory
NICENESS = 5  # workers leave the processor to the process that replies

Prepare = Callable[..., Any]  # returns the context that every job receives first
Job = Callable[..., Any]


class BusyError(TradeoffError):
    """Too many computations are waiting; try again in a moment."""

    def __init__(self, waiting: int) -> None:
        super().__init__(f"{waiting} requests are waiting to be computed; try again in a moment")


class SlowError(TradeoffError):
    """A computation takes too long for one request; it goes on, and a later request finds its result."""


class WorkerError(TradeoffError):
    """A job raised an error that it should not raise."""


class WorkerLostError(TradeoffError):
    """Two worker processes died or hung, one after the other, at the same job."""


def default_workers() -> int:
    """Return how many worker processes to use: one for each core but one, which replies."""
    return max(1, min(MAX_WORKERS, (os.cpu_count() or 1) - 1))


class Compute:
    """Computes jobs ``job(context, *arguments)`` in worker processes; use it from one event loop."""

    def __init__(
        self, prepare: Prepare, arguments: tuple[Any, ...] = (), *, workers: int = 0, cache_bytes: int = CACHE_BYTES,
        job_timeout: float = JOB_TIMEOUT,
    ) -> None:  # fmt: skip
        """``prepare(*arguments)`` makes the context in each worker. Without ``workers``, a thread of this process computes."""
        self.workers = [
            _ProcessWorker(prepare, arguments, job_timeout) if workers else _ThreadWorker(prepare, arguments)
            for _ in range(workers or 1)
        ]
        self._queues = [_FairQueue(worker) for worker in self.workers]
        self._cache: LRUCache[Hashable, bytes] = LRUCache(cache_bytes, getsizeof=len)
        self._in_flight: dict[Hashable, asyncio.Task[bytes]] = {}
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many computations wait for a worker."""
        return sum(len(queue) for queue in self._queues)

    def check(self) -> None:
        """Raise a BusyError if no further computation may wait."""
        if self._closed or self.waiting >= MAX_WAITING:
            raise BusyError(self.waiting)

    def worker_of(self, near: bytes) -> int:
        """Return the number of the worker that computes jobs with this ``near`` unless it is busy."""
        return zlib.crc32(near) % len(self._queues)

    def cached(self, key: Hashable) -> Any | None:
        """Return a result if it is in the cache."""
        content = self._cache.get(key)
        return None if content is None else pickle.loads(content)

    async def get(
        self, key: Hashable, job: Job, *arguments: Any, near: bytes = b"", caller: Hashable = None,
        timeout: float | None = None,
    ) -> Any:  # fmt: skip
        """Return the result of ``job(context, *arguments)``, which ``key`` identifies.

        Jobs with the same ``near`` go to the same worker, which has computed what they have in common; if that one is busy,
        they go to an idle one. Callers take turns.
        Raise a BusyError if too many wait, and a SlowError after ``timeout`` (``REQUEST_TIMEOUT``) seconds.
        """
        timeout = REQUEST_TIMEOUT if timeout is None else timeout
        content = self._cache.get(key)
        if content is None:
            task = self._in_flight.get(key)
            if task is None:
                self.check()
                own = self._queues[self.worker_of(near)]
                queue = next((candidate for candidate in (own, *self._queues) if not candidate.busy), own)
                task = asyncio.ensure_future(queue.compute(job, arguments, caller))
                self._in_flight[key] = task
                task.add_done_callback(lambda done: self._finished(key, done))
            try:
                async with asyncio.timeout(timeout):
                    content = await asyncio.shield(task)  # a request that ends early does not end the computation
            except TimeoutError:
                raise SlowError(f"not ready after {timeout:g} seconds") from None
        return pickle.loads(content)

    def _finished(self, key: Hashable, task: asyncio.Task[bytes]) -> None:
        del self._in_flight[key]
        if not task.cancelled() and task.exception() is None:
            with contextlib.suppress(ValueError):  # larger than the cache
                self._cache[key] = task.result()

    def close(self) -> None:
        """End the workers, and refuse everything that waits or comes later."""
        self._closed = True
        for queue in self._queues:
            queue.refuse()
        for worker in self.workers:
            worker.close()


class _FairQueue:
    """The jobs that wait for one worker. Callers take turns."""

    def __init__(self, worker: _ProcessWorker | _ThreadWorker) -> None:
        self._worker, self.busy, self._closed = worker, False, False
        self._turns: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._turns.values()))

    async def compute(self, job: Job, arguments: tuple[Any, ...], caller: Hashable) -> bytes:
        """Return the pickled result of a job, once it is this caller's turn."""
        loop = asyncio.get_running_loop()
        if self.busy:
            turn = loop.create_future()
            self._turns.setdefault(caller, deque()).append(turn)
            await turn
        self.busy = True
        try:
            if self._closed:
                raise BusyError(0)
            return await loop.run_in_executor(self._worker.thread, self._worker.run, job, arguments)
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        """Give the worker to the caller whose turn it is."""
        self.busy = False
        while self._turns and not self.busy:
            caller, turns = self._turns.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._turns[caller] = turns  # this caller comes last from now on
            if not turn.done():
                self.busy = True
                turn.set_result(None)

    def refuse(self) -> None:
        """Refuse all jobs that wait or come later."""
        self._closed = True
        count = len(self)
        for turn in [turn for turns in self._turns.values() for turn in turns]:
            if not turn.done():
                turn.get_loop().call_soon_threadsafe(_refuse, turn, count)
        self._turns.clear()


def _refuse(turn: asyncio.Future[None], count: int) -> None:
    if not turn.done():
        turn.set_exception(BusyError(count))


class _ThreadWorker:
    """Computes in a thread of this process: for tests, and for problems that no other process can load."""

    def __init__(self, prepare: Prepare, arguments: tuple[Any, ...]) -> None:
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="tradeoff compute")
        self._prepare, self._arguments, self._context = prepare, arguments, None
        self.restarts = 0

    def run(self, job: Job, arguments: tuple[Any, ...]) -> bytes:
        """Return the pickled result of a job."""
        try:
            if self._context is None:
                self._context = self._prepare(*self._arguments)
            return pickle.dumps(job(self._context, *arguments))
        except Exception as error:
            raise _job_error(error) from error

    def memory(self) -> int:
        """It has no memory of its own."""
        return 0

    def close(self) -> None:
        """Let the thread end."""
        self.thread.shutdown(wait=False, cancel_futures=True)


class _ProcessWorker:
    """One worker process, and the thread that talks to it."""

    def __init__(self, prepare: Prepare, arguments: tuple[Any, ...], job_timeout: float) -> None:
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="tradeoff compute")
        self._target, self._job_timeout = (prepare, arguments), job_timeout
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._ready = False  # whether the process has made its context
        self._closed, self._lock = False, threading.Lock()  # no process is started once it is closed
        self.restarts = -1  # the first start is none

    def run(self, job: Job, arguments: tuple[Any, ...]) -> bytes:
        """Return the pickled result of a job; a process that dies or hangs is replaced, and the job repeated once."""
        for _ in range(2):
            try:
                connection = self._connected()
                if not self._ready and not connection.poll(START_TIMEOUT):
                    raise TimeoutError(f"not started after {START_TIMEOUT:g} seconds")
                if not self._ready:
                    self._ready = bool(connection.recv())
                connection.send((job, arguments))
                if not connection.poll(self._job_timeout):
                    raise TimeoutError(f"no result after {self._job_timeout:g} seconds")
                succeeded, content = connection.recv()
            except (EOFError, OSError) as error:
                if not self._closed:
                    log.warning("a worker process is replaced: %r", error)
                with self._lock:
                    self._stop()
                continue
            if succeeded:
                return bytes(content)
            raise content
        if self._closed:
            raise BusyError(0)
        raise WorkerLostError("two worker processes died or hung, one after the other, at the same job")

    def _connected(self) -> Connection:
        with self._lock:
            if self._closed:
                raise BusyError(0)
            if self._process is None or self._connection is None or not self._process.is_alive():
                self._stop()
                context = multiprocessing.get_context("spawn")
                self._connection, other = context.Pipe()
                self._process = context.Process(target=_work, args=(other, os.getpid(), *self._target), daemon=True)
                self._ready = False
                start_uninterrupted(self._process)
                other.close()
                self.restarts += 1
            return self._connection

    def memory(self) -> int:
        """Return the resident memory of the process in bytes, or 0 on systems that do not say."""
        return 0 if self._process is None else resident_memory(self._process.pid)

    def _stop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.join(timeout=5)
        self._connection = self._process = None

    def close(self) -> None:
        """Kill the process: what it computes is not lost, because answers are stored before anything is computed."""
        with self._lock:
            self._closed = True
            if self._process is not None:
                self._process.kill()  # which ends the wait for its result
                self._process.join(timeout=5)
        self.thread.shutdown(wait=False, cancel_futures=True)


def start_uninterrupted(process: BaseProcess) -> None:
    """Start a process with Ctrl-C blocked until it ignores it: before that, it could only print a traceback."""
    if sys.platform == "win32":
        process.start()
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # now, because starting it unblocks the signal again in some versions of Python
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _work(connection: Connection, parent: int, prepare: Prepare, arguments: tuple[Any, ...]) -> None:
    """Compute jobs in a worker process until the process that started it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one ends this one
    threading.Thread(target=_exit_with_parent, args=(parent,), daemon=True).start()
    with contextlib.suppress(AttributeError, OSError):  # Windows has no such priorities
        os.nice(NICENESS)
    context: Any = None
    reply: tuple[bool, bytes | TradeoffError]
    with contextlib.suppress(Exception):  # the first job tries again, and reports it
        context = prepare(*arguments)
    with contextlib.suppress(EOFError, OSError):
        connection.send(True)
        while True:
            job, given = connection.recv()
            try:
                context = prepare(*arguments) if context is None else context
                reply = True, pickle.dumps(job(context, *given))
            except Exception as error:
                reply = False, _job_error(error)
            connection.send(reply)


def _job_error(error: Exception) -> TradeoffError:
    """Return the error that the caller gets; one that no job should raise is logged."""
    if isinstance(error, TradeoffError):
        return error
    log.error("a job failed", exc_info=error)
    return WorkerError(f"{type(error).__name__}: {error}")


def _exit_with_parent(parent: int) -> None:
    """End this process when its parent has ended, also in the middle of a job."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def resident_memory(pid: int | None = None) -> int:
    """Return the resident memory of a process, by default this one, in bytes; 0 on systems that do not say."""
    try:
        with open(f"/proc/{pid or 'self'}/statm", encoding="ascii") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
