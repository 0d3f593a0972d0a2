"""Checks for authors of stores: everything that tradeoff relies on."""

from __future__ import annotations

import json
import random
import threading
import uuid
from collections.abc import Callable
from typing import Any

from tradeoff.errors import ArgumentError, TradeoffError
from tradeoff.stores import ConflictError, MissingError, Store

HEADER = {"event": "header", "format": "tradeoff-log/3", "time": "2026-01-01T00:00:00+00:00"}
UNSAFE_NAMES = ("", "..", "a/b", "a b", "é", "x" * 129, "a\n")

OpenStore = Callable[[], Store]


def check_store(open_store: OpenStore, *, durable: bool = True) -> None:
    """Raise an AssertionError unless a store does what ``tradeoff.stores.Store`` promises.

    ``open_store`` is called several times and opens the same store each time. Logs are created in folders with new random
    names, so a store that is in use can be checked. ``durable=False`` is for a store that forgets when it is closed.
    """
    for check in CHECKS:
        try:
            check(open_store, f"check-{uuid.uuid4().hex[:16]}")
        except TradeoffError as error:
            raise AssertionError(f"{check.__name__}: {error!r} was raised, though nothing was wrong") from error
    folder = f"check-{uuid.uuid4().hex[:16]}"
    with open_store() as store:
        store.create(folder, "ann", [HEADER])
        store.close()  # and once more at the end of the block
    with open_store() as store:
        _equal(store.names(folder), ["ann"] if durable else [], "the logs after opening the store again")


def check_contents(open_store: OpenStore, folder: str) -> None:
    """Check that events come back in order and unchanged."""
    with open_store() as store:
        events: list[dict[str, Any]] = [
            HEADER,
            {"event": "question", "first": [0.1, 1 / 3, 5e-324], "name": 'é\n"=cmd\u202e\x1b[31m'},
            {"event": "answer", "answer": None, "number": 2**53},
        ]
        store.create(folder, "ann", events[:1])
        store.append(folder, "ann", events[1:], after=1)
        store.append(folder, "ann", [], after=3)
        _equal(store.read(folder, "ann"), events, "the events of a log")
        _equal(store.read(folder, "ann", after=1), events[1:], "the events after the first")
        _equal(store.read(folder, "ann", after=3), [], "the events after the last")
        rng = random.Random(20231207)
        for number in range(20):
            name, written = f"random-{number}", [HEADER]
            store.create(folder, name, written)
            for _ in range(rng.randrange(4)):
                batch = [
                    {f"key{i}": _random_value(rng) for i in range(rng.randrange(3))} for _ in range(rng.randrange(3))
                ]
                store.append(folder, name, batch, after=len(written))
                written = [*written, *batch]
            _equal(json.dumps(store.read(folder, name)), json.dumps(written), "random events as JSON")


def check_mutation(open_store: OpenStore, folder: str) -> None:
    """Check that changing what was given or returned does not change the store."""
    with open_store() as store:
        event: dict[str, Any] = {**HEADER, "list": [1]}
        store.create(folder, "ann", [event])
        event["list"].append(2)
        store.read(folder, "ann")[0]["list"].append(3)
        _equal(store.read(folder, "ann")[0]["list"], [1], "an event after the caller has changed theirs")


def check_folders(open_store: OpenStore, folder: str) -> None:
    """Check that names come oldest first, and that folders are separate."""
    with open_store() as store:
        names = ["zoe", "ann", "bob"]
        for second, name in enumerate(names):
            store.create(folder, name, [{**HEADER, "time": f"2026-01-01T00:00:0{second}+00:00"}])
        store.create(f"{folder}-other", "ann", [HEADER])
        store.append(folder, "ann", [{"event": "answer"}], after=1)
        _equal(store.names(folder), names, "the names of a folder's logs")
        _equal(list(store.logs(folder)), names, "the names in logs()")
        _equal(store.lengths(folder), {"zoe": 1, "ann": 2, "bob": 1}, "lengths()")
        _equal(store.names(f"{folder}-other"), ["ann"], "the names in another folder")
        _equal(store.logs(f"{folder}-other"), {"ann": [HEADER]}, "the logs of another folder")
        for look in (store.names, store.logs, store.lengths):
            _equal(len(look(f"{folder}-empty")), 0, "the number of logs in a folder without any")


def check_missing(open_store: OpenStore, folder: str) -> None:
    """Check that a log that does not exist is a MissingError."""
    with open_store() as store:
        store.create(folder, "ann", [HEADER])
        for where, name in ((folder, "bob"), (f"{folder}-other", "ann")):
            _raises(MissingError, store.read, where, name)
            _raises(MissingError, store.append, where, name, [HEADER], after=0)


def check_conflicts(open_store: OpenStore, folder: str) -> None:
    """Check that a writer with an outdated length changes nothing."""
    with open_store() as store:
        store.create(folder, "ann", [HEADER])
        store.append(folder, "ann", [{"event": "answer"}], after=1)
        for after in (0, 1, 3):
            _raises(ConflictError, store.append, folder, "ann", [{"event": "late"}], after=after)
        _raises(ConflictError, store.create, folder, "ann", [{"event": "other"}])
        _equal(store.read(folder, "ann"), [HEADER, {"event": "answer"}], "a log after refused writes")


def check_later(open_store: OpenStore, folder: str) -> None:
    """Check that ``append_later`` does what ``append`` does."""
    with open_store() as store:
        store.create(folder, "ann", [HEADER])
        store.append_later(folder, "ann", [{"event": "answer"}], after=1).result(timeout=60)
        _equal(store.read(folder, "ann"), [HEADER, {"event": "answer"}], "a log after append_later")
        late = store.append_later(folder, "ann", [{"event": "late"}], after=1)
        _raises(ConflictError, late.result, timeout=60)


def check_names(open_store: OpenStore, folder: str) -> None:
    """Check that unsafe names are refused."""
    with open_store() as store:
        for name in UNSAFE_NAMES:
            _raises(ArgumentError, store.create, folder, name, [HEADER])
            _raises(ArgumentError, store.create, name, "ann", [HEADER])


def check_json(open_store: OpenStore, folder: str) -> None:
    """Check that nothing is written of a batch with something that is not JSON."""
    with open_store() as store:
        store.create(folder, "ann", [HEADER])
        for bad in ({"x": float("nan")}, {"x": {1, 2}}):
            _raises((ValueError, TypeError), store.append, folder, "ann", [{"event": "fine"}, bad], after=1)
        _equal(store.read(folder, "ann"), [HEADER], "a log after a batch that is not JSON")


def check_concurrency(open_store: OpenStore, folder: str) -> None:
    """Check that of several writers at the same position exactly one succeeds: threads, and other users of a shared store."""
    with open_store() as store:
        check_writers([store] * 6, folder)
        if store.shared:
            with open_store() as other:
                check_writers([store, other], f"{folder}-shared")


def check_writers(stores: list[Store], folder: str) -> None:
    """Check that of several writers at the same position exactly one succeeds, and the others get a ConflictError."""
    for name in ("ann", "bob"):
        stores[0].create(folder, name, [HEADER])
    saved: list[tuple[str, int, int]] = []
    errors: list[BaseException] = []

    def write(store: Store, writer: int) -> None:
        for position in range(1, 6):
            for name in ("ann", "bob"):
                event = {"event": "answer", "by": writer, "position": position}
                try:
                    store.append(folder, name, [event], after=position)
                    saved.append((name, position, writer))
                except ConflictError:
                    pass
                except BaseException as error:
                    errors.append(error)

    threads = [threading.Thread(target=write, args=(store, writer)) for writer, store in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise AssertionError(f"concurrent writers may only get a ConflictError, not {errors[0]!r}") from errors[0]
    for name in ("ann", "bob"):
        events = stores[-1].read(folder, name)[1:]
        acknowledged = sorted((position, writer) for log, position, writer in saved if log == name)
        _equal([(event["position"], event["by"]) for event in events], acknowledged, "what concurrent writers saved")


CHECKS: tuple[Callable[[OpenStore, str], None], ...] = (
    check_contents,
    check_mutation,
    check_folders,
    check_missing,
    check_conflicts,
    check_later,
    check_names,
    check_json,
    check_concurrency,
)


def _random_value(rng: random.Random, depth: int = 0) -> Any:
    match rng.randrange(8 if depth < 3 else 6):
        case 0:
            return None
        case 1:
            return rng.random() < 0.5
        case 2:
            return rng.randrange(-(2**60), 2**60)
        case 3:
            return rng.gauss(0, 1) * 10.0 ** rng.randrange(-300, 300)
        case 4 | 5:
            return "".join(chr(rng.choice((rng.randrange(1, 128), rng.randrange(0xE000, 0x11000)))) for _ in range(6))
        case 6:
            return [_random_value(rng, depth + 1) for _ in range(rng.randrange(4))]
        case _:
            return {f"k{i}": _random_value(rng, depth + 1) for i in range(rng.randrange(4))}


def _equal(found: object, expected: object, what: str) -> None:
    if found != expected:
        raise AssertionError(f"{what}: expected {expected!r:.500}, found {found!r:.500}")


def _raises(
    expected: type[Exception] | tuple[type[Exception], ...],
    call: Callable[..., object],
    *arguments: Any,
    **options: Any,
) -> None:
    names = expected.__name__ if isinstance(expected, type) else " or ".join(one.__name__ for one in expected)
    try:
        result = call(*arguments, **options)
    except expected:
        return
    except Exception as error:
        raise AssertionError(f"expected {names}, but {error!r} was raised") from error
    raise AssertionError(f"expected {names}, but {result!r:.200} was returned")
