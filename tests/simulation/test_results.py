"""Files and figures of simulated respondents."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.messages import refused
from tests.simulation.rows import assert_same_rows
from tradeoff.errors import ArgumentError
from tradeoff.model import Reason
from tradeoff.simulation import Results, read_results
from tradeoff.simulation.results import check_out, empty_rows, exceeded_statements, open_folder, part_path, write_part


def some_rows(count: int) -> Results:
    rows = empty_rows(count, 2)
    rows.index = np.arange(count)
    rows.weights = np.random.default_rng(0).random((count, 2))
    rows.questions, rows.errors, rows.complete, rows.reason = 4, 0, True, "done"
    rows.regret, rows.baseline, rows.seconds = 0.05, 0.1, 0.1
    rows.bound, rows.robust, rows.likely_worst, rows.likely_regret, rows.target = 0.04, 0.06, 0.04, 0.06, 0.01
    return rows


def test_parts_read_back_bit_for_bit_and_null_where_nothing_is_stated(tmp_path: Path) -> None:
    import pyarrow.parquet as parquet

    rows = some_rows(4)
    rows.reason[1], rows.complete[2], rows.bound[3], rows.target[:] = 'a "reason", with\nlines', False, np.nan, np.nan
    write_part(rows[[3, 1]].view(np.recarray), ["=cmd", "regret"], part_path(tmp_path, 0))
    write_part(rows[[0, 2]].view(np.recarray), ["=cmd", "regret"], part_path(tmp_path, 1))
    found = read_results(tmp_path)
    assert_same_rows(found, rows)
    assert found.seconds.tolist() == rows.seconds.tolist()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["part-00000.parquet", "part-00001.parquet"]
    table = parquet.read_table(part_path(tmp_path, 0))
    assert table.column_names == [
        "index", "weight_=cmd", "weight_regret", "questions", "regret", "baseline", "complete", "reason", "errors",
        "seconds", "bound", "robust", "likely_worst", "likely_regret", "target",
    ]  # fmt: skip
    assert (table["bound"].null_count, table["target"].null_count, table["robust"].null_count) == (1, 2, 0)


def test_statements_that_were_exceeded_are_counted() -> None:
    rows = some_rows(4)
    rows.reason = [str(Reason.VERY_LIKELY_WITHIN), str(Reason.PROBABLY_UNNOTICED), str(Reason.PROBABLY_EITHER), "text"]
    found = {kind: (one.stated, one.exceeded) for kind, one in exceeded_statements(rows, precision=0.1).items()}
    assert found == {
        "proved": (4, 4), "proved with one slip": (4, 0), "very likely": (4, 4), "reason": (3, 1), "average": (1, 0),
    }  # fmt: skip


def test_what_is_not_a_result_is_refused(tmp_path: Path) -> None:
    with refused(ArgumentError, tmp_path, "no results"):
        read_results(tmp_path)
    for content in (b"", b"a,b\n1,2\n"):
        part_path(tmp_path, 0).write_bytes(content)
        with refused(ArgumentError, part_path(tmp_path, 0), "remove it"):
            read_results(tmp_path)


def test_a_folder_of_another_run_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    settings = {"respondents": 80, "precision": 0.01, "strategy": "paper"}
    for _ in range(2):
        open_folder(folder, settings)
    assert json.loads((folder / "settings.json").read_text()) == settings
    for change, *facts in (
        ({"precision": 0.02}, "precision", "0.01", "0.02"),
        ({"option basis": "spanner"}, "basis", "None", "'spanner'"),
    ):
        with refused(ArgumentError, *facts, folder, "remove this one"):
            open_folder(folder, settings | change)
    assert json.loads((folder / "settings.json").read_text()) == settings
    for text in ("", "[1]", "[" * 100_000):
        (folder / "settings.json").write_text(text)
        with refused(ArgumentError, folder / "settings.json", "damaged"):
            open_folder(folder, settings)
    (folder / "settings.json").rename(folder / "manifest.json")  # as an earlier version named it
    with refused(ArgumentError, folder, "new folder"):
        open_folder(folder, settings)


def test_paths_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "rows.csv", tmp_path / "rows.parquet"):
        with refused(ArgumentError, path, "name a folder"):
            check_out(path)
    with refused(ArgumentError, tmp_path / "no" / "rows", "does not exist"):
        check_out(tmp_path / "no" / "rows")
    assert check_out(tmp_path) == tmp_path and check_out(tmp_path / "rows") == tmp_path / "rows"
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with refused(ArgumentError, "pyarrow", "pip install '.[data]'"):
        check_out(tmp_path / "rows")
