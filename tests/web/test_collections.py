"""Garbage collections of a server stay short: they look only at what is new, and nothing is left behind for that."""

from __future__ import annotations

import gc
import random
import sys
import weakref

import pytest

from tests import processes
from tradeoff import Answer, load
from tradeoff.studies.session import Session

SERVED = """
import gc
from tradeoff import load
from tradeoff.apps.web.server import application
from tradeoff.stores.memory import InMemoryStore
from tradeoff.studies import Study

problem = load("commute")
study = Study.of(problem, "many", strategy="careful")
app = application(study, problem, InMemoryStore())
for _ in range(3):
    kept = [[i] for i in range(50_000)]  # as long-lived as sessions and solved directions
    gc.collect()
    print(len(gc.get_objects()))  # what the next full collection looks at
    held = kept
"""


def test_a_full_collection_looks_only_at_what_is_new() -> None:
    done = processes.run([sys.executable, "-c", SERVED])
    assert done.returncode == 0, done.stderr
    assert all(int(line) < 5_000 for line in done.stdout.split()), done.stdout


@pytest.mark.parametrize("strategy", ["careful", "certified", "paper"])
def test_a_session_that_is_dropped_is_freed_without_the_collector(strategy: str) -> None:
    """What is frozen is never collected: a session with a reference cycle would stay for ever."""
    problem, rng = load("coffee"), random.Random(1)

    def session() -> list[weakref.ref[object]]:
        made = Session.begin(problem, checks=True, strategy=strategy, sides=1)
        for _ in range(6):
            asked = made.ask()
            if asked is None:
                break
            made.tell(asked.turn, rng.choice(list(Answer)))
        made.undo()
        made.ask()
        assert made.recommendation is not None
        return [weakref.ref(made), weakref.ref(made.interview)]

    session()
    gc.collect()
    gc.disable()
    try:
        assert all(dropped() is None for _ in range(5) for dropped in session())
    finally:
        gc.enable()
