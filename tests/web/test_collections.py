"""Garbage collections of a server stay short: they look only at what is new.

That nothing is left behind for that is in tests/studies/test_service.py.
"""

from __future__ import annotations

import sys

from tests import processes

SERVED = """
import gc
from tradeoff import load
from tradeoff.apps.web.app import make_app
from tradeoff.apps.web.server import keep_collections_short
from tradeoff.stores.memory import InMemoryStore
from tradeoff.studies import Study
from tradeoff.studies.compute import Compute
from tradeoff.studies.service import Context, StudyService

problem, store = load("commute"), InMemoryStore()
study = Study.of(problem, "many", strategy="careful")
app = make_app(StudyService(study, problem, store, Compute(Context.of, (store, study, problem))))
keep_collections_short()
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
