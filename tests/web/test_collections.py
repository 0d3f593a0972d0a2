"""Garbage collections of a server stay short: they look only at what is new.

That nothing is left behind for that is in tests/studies/test_sessions.py.
"""

from __future__ import annotations

import sys

from tests import processes

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
