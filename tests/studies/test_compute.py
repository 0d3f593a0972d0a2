"""Laws of the compute service, in a thread and in worker processes: once, in turns, and whatever happens to workers."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.processes import PATIENCE, Child, until
from tests.studies import jobs
from tests.studies.jobs import begun
from tradeoff.errors import ArgumentError, TradeoffError
from tradeoff.studies import compute as module
from tradeoff.studies.compute import BusyError, Compute, SlowError, WorkerError, WorkerLostError, default_workers

BOTH = pytest.mark.parametrize("workers", [0, 1])


@contextmanager
def computing(folder: Path, workers: int, **given: Any) -> Iterator[Compute]:
    made = Compute(jobs.folder_of, (str(folder),), workers=workers, **given)
    try:
        yield made
    finally:
        (folder / "go").touch()
        made.close()


async def until_true(found: Callable[[], Any]) -> Any:
    async with asyncio.timeout(PATIENCE):
        while not (result := found()):
            await asyncio.sleep(0.005)
    return result


def near_of(compute: Compute, number: int) -> bytes:
    """Return a key that leads to this worker."""
    return next(key for i in range(1000) if compute.worker_of(key := str(i).encode()) == number)


def processes_of(compute: Compute) -> list[psutil.Process]:
    """Return the worker processes."""
    return [one for one in psutil.Process().children() if any("spawn_main" in word for word in one.cmdline())]


# --- once ------------------------------------------------------------------------------------------------------------


@BOTH
def test_a_hundred_callers_at_once_and_all_later_ones_share_one_computation(tmp_path: Path, workers: int) -> None:
    async def run() -> None:
        with computing(tmp_path, workers) as compute:
            ask = lambda i: compute.get("key", jobs.work, "a", 0.1, caller=i)  # noqa: E731
            found = await asyncio.gather(*(ask(i) for i in range(100)))
            assert len(set(found)) == 1 and await ask(7) == found[0] == compute.cached("key")
            assert compute.cached("other") is None and compute.waiting == 0
            await compute.get("other", jobs.work, "b")
        assert begun(tmp_path) == ["a", "b"]

    asyncio.run(run())


@BOTH
def test_what_one_caller_changes_no_other_sees(tmp_path: Path, workers: int) -> None:
    async def run() -> None:
        with computing(tmp_path, workers) as compute:
            one, two = await asyncio.gather(*(compute.get("key", sorted_names, "b", "a") for _ in range(2)))
            one.clear()
            assert two == ["a", "b"] == await compute.get("key", sorted_names, "b", "a")

    asyncio.run(run())


def sorted_names(folder: Path, *names: str) -> list[str]:
    return sorted(names)


def test_the_cache_is_bounded_and_what_is_too_large_for_it_is_computed_again(tmp_path: Path) -> None:
    async def run() -> None:
        with computing(tmp_path, 0, cache_bytes=1_000) as compute:
            for _ in range(2):
                assert len(await compute.get("large", long_text, "large", 5_000)) == 5_000
            assert begun(tmp_path) == ["large"] * 2
            for name in "abcdef":  # only the last few fit
                await compute.get(name, long_text, name, 300)
            assert compute.cached("f") and compute.cached("e") and compute.cached("a") is None

    asyncio.run(run())


def long_text(folder: Path, name: str, length: int) -> str:
    jobs.mark(folder, name)
    return "x" * length


# --- turns -----------------------------------------------------------------------------------------------------------


@BOTH
def test_callers_take_turns_and_each_is_served_in_order(tmp_path: Path, workers: int) -> None:
    wanted = [("crowd", i) for i in range(5)] + [("ann", 0), ("ann", 1), ("bob", 0)]

    async def run() -> None:
        with computing(tmp_path, workers) as compute:
            tasks = [asyncio.create_task(compute.get("first", jobs.hold, "first", caller="crowd"))]
            await until_true(lambda: begun(tmp_path))
            for caller, number in wanted:
                name = f"{caller} {number}"
                tasks.append(asyncio.create_task(compute.get(name, jobs.work, name, caller=caller)))
            await until_true(lambda: compute.waiting == len(wanted))
            (tmp_path / "go").touch()
            await asyncio.gather(*tasks)
            assert compute.waiting == 0

    asyncio.run(run())
    assert begun(tmp_path) == [
        "first", "crowd 0", "ann 0", "bob 0", "crowd 1", "ann 1", "crowd 2", "crowd 3", "crowd 4",
    ]  # fmt: skip


@BOTH
def test_too_many_that_wait_are_refused_and_nobody_else(
    tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 3)

    async def run() -> None:
        with computing(tmp_path, workers) as compute:
            await compute.get("known", jobs.work, "known")
            tasks = [asyncio.create_task(compute.get(f"key {i}", jobs.hold, str(i))) for i in range(4)]
            await until_true(lambda: compute.waiting == 3)
            with pytest.raises(BusyError, match="3 requests"):
                await compute.get("new", jobs.work, "new")
            with pytest.raises(BusyError):
                compute.check()
            assert (await compute.get("known", jobs.work, "known"))[0] == "known"  # needs no worker
            again = asyncio.create_task(compute.get("key 3", jobs.hold, "3"))  # is computed anyway
            (tmp_path / "go").touch()
            assert await asyncio.gather(*tasks, again) == ["0", "1", "2", "3", "3"]
            compute.check()
            await compute.get("new", jobs.work, "new")
        assert begun(tmp_path) == ["known", "0", "1", "2", "3", "new"]

    asyncio.run(run())


@BOTH
def test_a_slow_computation_goes_on_and_a_later_request_finds_its_result(
    tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        with computing(tmp_path, workers) as compute:
            for _ in range(3):
                with pytest.raises(SlowError, match=r"0\.05 seconds"):
                    await compute.get("key", jobs.hold, "a", timeout=0.05)
            monkeypatch.setattr(module, "REQUEST_TIMEOUT", 0.05)
            with pytest.raises(SlowError):
                await compute.get("key", jobs.hold, "a")
            monkeypatch.undo()
            dropped = asyncio.create_task(compute.get("key", jobs.hold, "a"))  # a request that a client drops
            await asyncio.sleep(0.01)
            dropped.cancel()
            (tmp_path / "go").touch()
            assert await compute.get("key", jobs.hold, "a") == "a"
        assert begun(tmp_path) == ["a"]

    asyncio.run(run())


# --- errors ----------------------------------------------------------------------------------------------------------


@BOTH
def test_errors_of_jobs_reach_every_caller_and_are_not_kept(
    tmp_path: Path, workers: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        with computing(tmp_path, workers) as compute:
            for kind, error, words in (
                ("refused", ArgumentError, "no such option"),
                ("mistake", WorkerError, "ZeroDivisionError: division by zero"),
                ("memory", WorkerError, "MemoryError"),
                ("unpicklable", WorkerError, "pickle"),
                ("odd", TradeoffError, ""),
            ):
                asked = (compute.get(("fails", kind), jobs.fail, kind) for _ in range(3))
                for found in await asyncio.gather(*asked, return_exceptions=True):
                    assert isinstance(found, error) and words in str(found).lower() + str(found), (kind, found)
                assert compute.cached(("fails", kind)) is None
            assert (await compute.get("works", jobs.work, "a"))[0] == "a"

    asyncio.run(run())


@BOTH
def test_a_context_that_cannot_be_made_is_an_error_of_every_job(tmp_path: Path, workers: int) -> None:
    async def run() -> None:
        compute = Compute(jobs.broken_context, (str(tmp_path),), workers=workers)
        try:
            for _ in range(2):
                with pytest.raises(ArgumentError, match="file is gone"):
                    await compute.get("key", jobs.work, "a")
        finally:
            compute.close()

    asyncio.run(run())


# --- processes that die or hang --------------------------------------------------------------------------------------


def test_a_worker_that_is_killed_in_the_middle_is_replaced_and_its_job_repeated(tmp_path: Path) -> None:
    async def run() -> None:
        with computing(tmp_path, 1) as compute:
            (worker,) = compute.workers
            task = asyncio.create_task(compute.get("key", jobs.hold, "a"))
            await until_true(lambda: begun(tmp_path) == ["a"])
            (process,) = processes_of(compute)
            process.send_signal(signal.SIGKILL)
            await until_true(lambda: begun(tmp_path) == ["a", "a"])
            (tmp_path / "go").touch()
            assert await task == "a" and worker.restarts == 1
            (other,) = processes_of(compute)
            assert other.pid != process.pid
            other.send_signal(signal.SIGKILL)  # while nothing is computed
            await until_true(lambda: not other.is_running() or other.status() == psutil.STATUS_ZOMBIE)
            assert (await compute.get("next", jobs.work, "b"))[0] == "b" and worker.restarts == 2
        assert begun(tmp_path) == ["a", "a", "b"]

    asyncio.run(run())


@pytest.mark.parametrize("job", [jobs.die, jobs.hang])
def test_a_job_that_ends_two_workers_is_given_up_and_the_others_go_on(tmp_path: Path, job: Any) -> None:
    async def run() -> None:
        with computing(tmp_path, 1, job_timeout=1.0) as compute:
            await compute.get("before", jobs.work, "before")
            bad = asyncio.create_task(compute.get("bad", job, "bad", 2))
            good = asyncio.create_task(compute.get("good", jobs.work, "good"))
            with pytest.raises(WorkerLostError, match="two worker processes"):
                await bad
            assert (await good)[0] == "good"
            assert await compute.get("bad", job, "bad", 2) == "bad"  # the third time it works
        assert begun(tmp_path) == ["before", "bad", "bad", "good", "bad"]

    asyncio.run(run())


def test_a_job_that_hangs_is_killed_and_the_other_worker_is_not_affected(tmp_path: Path) -> None:
    async def run() -> None:
        with computing(tmp_path, 2, job_timeout=2.0) as compute:
            nears = [near_of(compute, 0), near_of(compute, 1)]
            _, theirs = [(await compute.get(near, jobs.work, "warm", near=near))[1] for near in nears]
            hung = asyncio.create_task(compute.get("hangs", jobs.hang, "hangs", 1, near=nears[0]))
            await until_true(lambda: "hangs" in begun(tmp_path))
            for i in range(20):
                assert (await compute.get(i, jobs.work, "quick", near=nears[1]))[1] == theirs
            assert not hung.done()
            assert await hung == "hangs"  # the second time
            assert [worker.restarts for worker in compute.workers] == [1, 0]
            assert (await compute.get("last", jobs.work, "last", near=nears[1]))[1] == theirs

    asyncio.run(run())


def test_an_idle_worker_helps_a_busy_one(tmp_path: Path) -> None:
    async def run() -> None:
        with computing(tmp_path, 2) as compute:
            near = near_of(compute, 1)
            task = asyncio.create_task(compute.get("long", jobs.hold, "long", near=near))
            await until_true(lambda: begun(tmp_path))
            assert (await compute.get("other", jobs.work, "other", near=near))[0] == "other"
            assert not task.done()
            (tmp_path / "go").touch()
            assert await task == "long"

    asyncio.run(run())


# --- the end ---------------------------------------------------------------------------------------------------------


def test_close_ends_the_processes_and_refuses_what_waits_and_what_comes(tmp_path: Path) -> None:
    async def run() -> None:
        with computing(tmp_path, 2) as compute:
            nears = [near_of(compute, 0), near_of(compute, 1)]
            tasks = [asyncio.create_task(compute.get((i, n), jobs.hold, "a", near=n)) for i in range(3) for n in nears]
            await until_true(lambda: begun(tmp_path) == ["a", "a"] and compute.waiting == 4)
            found = processes_of(compute)
            assert len(found) == 2
            compute.close()
            assert not any(one.is_running() for one in found)
            errors = await asyncio.gather(*tasks, return_exceptions=True)
            assert [type(error) for error in errors] == [BusyError] * 6
            with pytest.raises(BusyError):
                await compute.get("later", jobs.work, "a")
            compute.close()  # again
            assert not processes_of(compute)

    asyncio.run(run())


def test_close_while_a_process_starts_leaves_none(tmp_path: Path) -> None:
    async def run() -> None:
        for delay in (0.0, 0.002, 0.01, 0.05):
            with computing(tmp_path, 1) as compute:
                task = asyncio.create_task(compute.get("key", jobs.hang, "a", 100))
                await asyncio.sleep(delay)
                compute.close()
                with pytest.raises(BusyError):
                    await task
                assert not processes_of(compute)

    asyncio.run(run())


PARENT = """
import asyncio, sys
from tests.studies import jobs
from tradeoff.studies.compute import Compute

if __name__ == "__main__":
    compute = Compute(jobs.folder_of, (sys.argv[1],), workers=1)
    try:
        asyncio.run(compute.get("key", jobs.hang, "a", 100))
    finally:
        compute.close()
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_parent_however_it_ends(tmp_path: Path, how: signal.Signals) -> None:
    (tmp_path / "parent.py").write_text(PARENT, encoding="utf-8")
    root = str(Path(__file__).parents[2])
    command = [sys.executable, str(tmp_path / "parent.py"), str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": root}
    with Child(command, env=env, stderr=subprocess.DEVNULL) as parent:
        until(lambda: begun(tmp_path), "a job")
        children = psutil.Process(parent.pid).children(recursive=True)
        assert children
        os.killpg(parent.pid, how) if how == signal.SIGINT else parent.send_signal(how)
        until(lambda: not any(one.is_running() for one in children), "the end of all processes")


def test_the_number_of_workers_leaves_a_core_to_the_server() -> None:
    assert 1 <= default_workers() <= max(1, (os.cpu_count() or 1) - 1)
