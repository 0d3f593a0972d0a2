"""Jobs for tests of the compute service. Worker processes import this module, so it imports little."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, NoReturn

from tradeoff.errors import ArgumentError, TradeoffError


def folder_of(folder: str) -> Path:
    """Return the context of the jobs: a folder in which they leave marks."""
    return Path(folder)


def broken_context(folder: str) -> NoReturn:
    raise ArgumentError("the problem's file is gone")


def work(folder: Path, name: str, seconds: float = 0.0) -> tuple[str, int]:
    """Leave a mark, and return the name and the process."""
    mark(folder, name)
    time.sleep(seconds)
    return name, os.getpid()


def hold(folder: Path, name: str) -> str:
    """Leave a mark, and wait until there is a file "go"."""
    mark(folder, name)
    while not (folder / "go").exists():
        time.sleep(0.005)
    return name


def hang(folder: Path, name: str, times: int) -> str:
    """Never return the first so many times."""
    if mark(folder, name) <= times:
        time.sleep(100_000)
    return name


def die(folder: Path, name: str, times: int) -> str:
    """Kill the process the first so many times."""
    if mark(folder, name) <= times:
        os.kill(os.getpid(), 9)
    return name


def fail(folder: Path, kind: str) -> Any:
    match kind:
        case "refused":
            raise ArgumentError("there is no such option")
        case "mistake":
            raise ZeroDivisionError("division by zero")
        case "memory":
            raise MemoryError
        case "odd":  # an error that cannot be sent to another process
            raise OddError(1, 2)
    return lambda: kind  # a result that cannot be sent to another process


class OddError(TradeoffError):
    def __init__(self, one: int, two: int) -> None:
        super().__init__("odd")
        self.held = lambda: (one, two)


def mark(folder: Path, name: str) -> int:
    """Record that a job was begun; return how often that has happened."""
    with (folder / "begun.txt").open("a", encoding="utf-8") as file:
        file.write(f"{name}\n")
    return begun(folder).count(name)


def begun(folder: Path) -> list[str]:
    path = folder / "begun.txt"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []
