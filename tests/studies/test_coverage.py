"""A coverage that version 0.3 stored with a study: interviews that began with it go on with it, all others with the model."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from pathlib import Path

import numpy as np
import pytest

from tests.studies.test_service import kinds, says, service_of
from tradeoff import Interview, cover, load
from tradeoff.errors import LogError
from tradeoff.model import FIRST
from tradeoff.problems.coverage import Coverage
from tradeoff.sources.files.npz import write_plans
from tradeoff.stores import DamagedError, Store
from tradeoff.stores.memory import InMemoryStore
from tradeoff.studies import Session, Study
from tradeoff.studies.coverage import FORMAT, LOG, stored_coverage
from tradeoff.studies.export import files_of


def keep(store: Store, study: Study, content: bytes) -> None:
    """Store a coverage as version 0.3 did."""
    folder = f"compiled-{hashlib.sha256(study.name.encode()).hexdigest()}"
    header = {"event": "header", "format": FORMAT, "time": study.created, "problem": study.fingerprint}
    store.create(folder, LOG, [header, {"event": "coverage", "npz": base64.b64encode(content).decode()}])


def content_of(coverage: Coverage, folder: Path) -> bytes:
    write_plans(coverage, folder / "plans.npz")
    return (folder / "plans.npz").read_bytes()


def test_an_interview_stays_with_what_it_began_with_and_every_process_replays_it_alike(tmp_path: Path) -> None:
    model, store = load("commute"), InMemoryStore()
    study = Study.of(model, "tasting", checks=False, strategy="certified")
    coverage = cover(model, 0.001)
    keep(store, study, content_of(coverage, tmp_path))
    begun = Session.begin(coverage, checks=False, order_seed=3, **study.interview_settings())
    store.create("tasting", "x" * 22, begun.events)

    async def run() -> None:
        people = service_of(study, store, model)
        own, theirs = await people.begin(), "x" * 22
        assert store.read("tasting", own)[0]["problem"] == model.fingerprint != coverage.fingerprint
        for token, about in ((own, model), (theirs, coverage)):
            expected = Interview(about, order_seed=3, **study.interview_settings())
            for turn in (1, 2):
                elsewhere = service_of(study, store, load("commute"))  # a process that was started since then
                position = await elsewhere.question(token, begin=True)
                question = expected.ask()
                assert position.prompt is not None and question is not None
                assert position.prompt.question.key == question.key and position.fingerprint == about.fingerprint
                await elsewhere.answer(token, turn, says(FIRST))
                expected.tell(FIRST)
        assert kinds(store, theirs).count("answer") == kinds(store, own).count("answer") == 2

    asyncio.run(run())
    files = files_of(study, model, store.logs("tasting"), "csv", stored_coverage(store, study, model))
    assert len(files["participants.csv"]().splitlines()) == 3 and len(files["answers.csv"]().splitlines()) == 5
    (tmp_path / "compiled.npz").write_bytes(files["compiled.npz"]())
    assert coverage.fingerprint in files["README.txt"]().decode()
    again = Interview.resume(load(tmp_path / "compiled.npz"), store.read("tasting", "x" * 22))
    assert len(again.answers) == 2


def test_a_coverage_is_read_exactly_and_a_damaged_one_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model, store = load("dependent"), InMemoryStore()
    study = Study.of(model, "tasting", strategy="paper")
    assert stored_coverage(store, study, model) is None
    coverage = cover(model, 0.01)
    content = content_of(coverage, tmp_path)
    keep(store, study, content)
    found = stored_coverage(store, study, model)
    assert found is not None and found.fingerprint == coverage.fingerprint
    assert np.array_equal(found.plans.values, coverage.plans.values)
    with pytest.raises(DamagedError, match="damaged"):
        stored_coverage(store, study, load("commute"))
    broken = InMemoryStore()
    keep(broken, study, content[: len(content) // 2])
    with pytest.raises(DamagedError, match="the compiled plans of the study 'tasting' are damaged"):
        stored_coverage(broken, study, model)

    async def run() -> None:
        people = service_of(study, broken, model)
        token = await people.begin()  # who does not need it is not affected
        assert await people.answer(token, 1, says(FIRST)) == 2
        begun = Session.begin(coverage, checks=False, **study.interview_settings())
        broken.create("tasting", "x" * 22, begun.events)
        with pytest.raises(LogError, match="another problem"):
            await people.question("x" * 22, begin=True)

    asyncio.run(run())
    assert "damaged" in caplog.text
