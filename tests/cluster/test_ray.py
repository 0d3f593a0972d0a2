"""Ray changes nothing but the seconds. Collected only where Ray is installed."""

from __future__ import annotations

from pathlib import Path

import joblib
import pytest
import ray
from ray.util.joblib import register_ray

import tradeoff
from tests.simulation.rows import assert_same_rows
from tradeoff.simulation import read_results, run


def test_ray_gives_the_same_rows_and_all_its_processors_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coffee, used = tradeoff.load("coffee"), tmp_path / "used"
    used.mkdir()
    monkeypatch.setattr(run, "ALONE", 0.0)
    interview = run._interview_part

    def noted(*given: object) -> object:
        (used / ray.get_runtime_context().get_worker_id()).touch()
        return interview(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(run, "_interview_part", noted)
    ray.init(num_cpus=3, include_dashboard=False, configure_logging=False)  # whatever this machine has
    try:
        register_ray()
        with joblib.parallel_config(backend="ray"):
            found = run.simulate(coffee, 40, strategy="paper", out=tmp_path / "rows").results
    finally:
        ray.shutdown()
    assert len(list(used.iterdir())) == 3
    monkeypatch.undo()
    expected = run.simulate(coffee, 40, strategy="paper", jobs=1).results
    assert_same_rows(found, expected)
    assert_same_rows(read_results(tmp_path / "rows"), expected)
