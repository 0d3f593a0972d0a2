"""Workbooks and Parquet files as tables of items."""

from __future__ import annotations

import datetime
import io
import itertools
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.messages import refused
from tests.sources.test_spreadsheets import ITEMS
from tradeoff import ArgumentError, ProblemError, load

# --- workbooks --------------------------------------------------------------------------------------------------------


def workbook(path: Path, rows: list[list[Any]], **others: list[list[Any]]) -> Path:
    book = openpyxl.Workbook()
    book.active.title = "Items"
    for row in rows:
        book.active.append(row)
    for title, content in others.items():
        sheet = book.create_sheet(title)
        for row in content:
            sheet.append(row)
    book.save(path)
    book.close()
    return path


def repacked(path: Path, name: str, old: bytes, new: bytes) -> Path:
    """Change the text of one member of a workbook."""
    with zipfile.ZipFile(path) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    assert old in members[name]
    members[name] = members[name].replace(old, new)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return path


SHEET = "xl/worksheets/sheet1.xml"


def test_the_sheet_is_asked_for_where_there_are_several(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", [["title"]], Laptops=ITEMS)
    with refused(ProblemError, "2 sheets", "'Items'", "'Laptops'", "sheet='NAME'"):
        load(path)
    with refused(ArgumentError, "'Phones'"):
        load(path, sheet="Phones")
    assert load(path, sheet="Laptops").values.tolist() == [[1, 2], [2.5, 3]]


def test_cells_of_a_workbook_are_what_they_are(tmp_path: Path) -> None:
    day = datetime.datetime(2024, 5, 17)
    rows = [
        [],
        ["name", "price (min)", "text (max)", "touch", "since", "size"],
        ["a", 1, "7", True, day, 13.0],
        ["b", 2.5, "8", False, day, "large"],
        [],
        ["c", 3, "9.5", True, None, None],
    ]
    found = load(workbook(tmp_path / "t.xlsx", rows))
    assert found.values.tolist() == [[1, 7], [2.5, 8], [3, 9.5]]
    assert found.labels["touch"] == ("true", "false", "true") and found.labels["since"] == (
        "2024-05-17",
        "2024-05-17",
        "",
    )
    assert found.labels["size"] == ("13", "large", "")
    notes = "\n".join(found.notes)
    for said in ("'touch' is not weighed: other heads say what is better",
                 "'since' is not weighed: it holds dates",
                 "'size' is not weighed: 1 of 3 cells can be read as numbers"):  # fmt: skip
        assert said in notes


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [*ITEMS, ["c", "=1+1", 3]],
            "row 4, column 'price (min)': the cell is empty; fill it in, or remove the row (a formula",
        ),
        ([*ITEMS, ["c", None, 3]], "sheet 'Items', row 4, column 'price (min)': the cell is empty"),
        ([*ITEMS, ["c", True, 3]], "row 4, column 'price (min)': True is not a number; write 1 or 0"),
        ([*ITEMS, ["c", datetime.datetime(2024, 5, 17), 3]], "2024-05-17 00:00:00 is a date or a time; write a number"),
        ([*ITEMS, ["c", "#DIV/0!", 3]], "'#DIV/0!' is the error of a formula"),
        ([*ITEMS, ["c", 3, 3, 4]], "row 4: 4 cells, but the header in row 1 names 3 columns"),
        ([["name", None, "y"], ["a", 1, 2], ["b", 2, 3]], "row 1: column 2 has no name"),
        ([], "is empty; its first row must name the columns"),
        (
            [["name", "y", "p [EUR]"], ["a", 1, "=1+1"], ["b", 2, "=1+2"]],
            "row 2, column 'p [EUR]': the cell is empty; fill it in, or remove the row (a formula has no value until",
        ),
        ([["name", "p"], ["a", "=1+1"], ["b", "=1+2"]], "has no column of numbers to weigh; it has 'name', 'p'"),
        ([["name", "p"], ["a", "=1+1"], ["b", "=1+2"]], "(a formula has no value until"),
    ],
)
def test_rubbish_in_a_workbook_is_refused_with_its_place(tmp_path: Path, rows: list[list[Any]], message: str) -> None:
    path = workbook(tmp_path / "t.xlsx", rows)
    with pytest.raises(ProblemError) as caught:
        load(path)
    assert message in str(caught.value) and str(path) in str(caught.value)


def test_an_empty_column_of_a_workbook_may_be_one_of_formulas(tmp_path: Path) -> None:
    found = load(workbook(tmp_path / "t.xlsx", [["name", "y (max)", "p"], ["a", 1, "=1+1"], ["b", 2, "=1+2"]]))
    said = (
        "the column 'p' is not weighed: it is empty (a formula has no value until a spreadsheet program has saved it)"
    )
    assert [o.name for o in found.objectives] == ["y"] and said in found.notes


def test_a_workbook_that_lies_about_its_size_is_read_all_the_same(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", ITEMS)
    repacked(path, SHEET, b'<dimension ref="A1:C3"', b'<dimension ref="A1:XFD1048576"')
    assert load(path).values.tolist() == [[1, 2], [2.5, 3]]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'<row r="3"', b'<row r="99999999999"', "is too large; at most 1,048,576 rows"),
        (
            b"<worksheet",
            b'<!DOCTYPE w [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><worksheet',
            "is not a readable workbook",
        ),
        (b"</row>", b"</wor>", "is not a readable workbook"),
        (b"<worksheet", b"<!--" + b" " * (80 << 20) + b"--><worksheet", "would unpack from"),
    ],
)
def test_workbooks_made_to_do_harm_are_refused(tmp_path: Path, old: bytes, new: bytes, message: str) -> None:
    path = repacked(workbook(tmp_path / "t.xlsx", ITEMS), SHEET, old, new)
    with pytest.raises(ProblemError) as caught:
        load(path)
    assert message in str(caught.value) and str(path) in str(caught.value)


def test_damaged_workbooks_are_refused(tmp_path: Path) -> None:
    raw = workbook(tmp_path / "good.xlsx", ITEMS).read_bytes()
    rng = np.random.default_rng(0)
    path = tmp_path / "bad.xlsx"
    named = 0
    for _ in range(60):
        damaged = bytearray(raw)
        for place in rng.integers(0, len(raw), 12):
            damaged[place] = rng.integers(0, 256)
        path.write_bytes(damaged[: rng.integers(1, len(raw))] if rng.random() < 0.3 else damaged)
        try:
            load(path)
        except ProblemError as error:
            named += str(path) in str(error)
    assert named > 30
    for raw in (b"", b"name,y\na,1\n", b"PK\x05\x06" + bytes(18)):
        path.write_bytes(raw)
        with refused(ProblemError, "workbook"):
            load(path)
    (tmp_path / "old.xls").write_bytes(b"\xd0\xcf")
    with refused(ProblemError, ".xlsx", ".csv"):
        load(f"table:{tmp_path / 'old.xls'}")


# --- Parquet ----------------------------------------------------------------------------------------------------------


def test_columns_of_a_parquet_file_are_what_they_are(tmp_path: Path) -> None:
    import decimal

    path = tmp_path / "t.parquet"
    table = pa.table({
        "name": pa.array(["a", "b"]).dictionary_encode(),
        "price (min)": pa.array([decimal.Decimal("1.50"), decimal.Decimal("2.25")]),
        "y (max)": pa.array([1, 2], pa.int8()),
        "touch": [True, False],
        "since": pa.array([datetime.date(2024, 5, 17), None]),
        "__index_level_0__": [4, 9],
    })  # fmt: skip
    pq.write_table(table, path)
    found = load(path)
    assert found.values.tolist() == [[1.5, 1], [2.25, 2]] and found.names == ("a", "b")
    assert found.labels == {"touch": ("true", "false"), "since": ("2024-05-17", ""), "__index_level_0__": ("4", "9")}
    assert any("'__index_level_0__' is not weighed: it numbers the rows" in note for note in found.notes)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"name": ["a", "b"], "y": [1, None]}, "row 2, column 'y': the cell is empty"),
        ({"name": ["a", "b"], "y": [1.0, float("nan")]}, "row 2, column 'y': nan is not a finite number"),
        ({"name": ["a", "b"], "y": [[1], [2]]}, "the column 'y' holds list"),
        ({"name": ["a", "b"], "y": [b"1", b"2"]}, "the column 'y' holds binary"),
        ({"y": [b"1", b"2"]}, "the column 'y' holds binary"),
        ({"name": ["a", "b"], "x": [1, 2], "y (max)": [[1], [2]]}, "the column 'y (max)' holds list"),
        ({"name": ["a", "b"], "a.b": [1, 2], "a": [{"b": 1}, {"b": 2}]}, "the column 'a' holds struct"),
        ({"y": np.zeros(2_000_000)}, "is too large; at most 1,048,576 rows"),
        ({}, "has no rows"),
    ],
)
def test_rubbish_in_a_parquet_file_is_refused(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(columns), path)
    with pytest.raises(ProblemError) as caught:
        load(path)
    assert message in str(caught.value) and str(path) in str(caught.value)


def test_nested_and_binary_columns_of_a_parquet_file_are_left_out_with_a_note(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    columns = {"tags": [["x"], []], "name": ["a", "b"], "p (min)": [1, 2], "raw [B]": [b"1", b"2"],
               "made": [{"y": 1}, None], "y (max)": [0.5, 3]}  # fmt: skip
    pq.write_table(pa.table(columns), path)
    with refused(ProblemError, "'raw [B]'", "binary", "objectives"):
        load(path)
    found = load(path, objectives="p,y:max")
    assert found.values.tolist() == [[1, 0.5], [2, 3]] and found.names == ("a", "b") and found.labels == {}
    assert [note.split(",")[0] for note in found.notes if note.endswith(", and is left out")] == [
        "the column 'tags' holds list<element: string>", "the column 'raw [B]' holds binary",
        "the column 'made' holds struct<y: int64>",
    ]  # fmt: skip
    for name in ("tags", "raw"):
        with refused(ProblemError, f"'{name}"):
            load(path, objectives=f"y:max,{name}:min")
    pq.write_table(pa.table({head: cells for head, cells in columns.items() if head != "raw [B]"}), path)
    assert load(path).values.tolist() == [[1, 0.5], [2, 3]]


def test_a_long_text_in_every_row_is_kept_once(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    rows = 300  # of a megabyte each
    story = pa.DictionaryArray.from_arrays(np.zeros(rows, dtype=np.int32), ["x" * (1 << 20)])
    text = pa.array(["y" * (1 << 18)] * rows)
    pq.write_table(
        pa.table({"a (max)": np.arange(rows), "b (max)": -np.arange(rows), "story": story, "text": text}), path
    )
    assert path.stat().st_size < 4 << 20
    found = load(path)
    for label, length in (("story", 1 << 20), ("text", 1 << 18)):
        assert len(found.labels[label]) == rows and {len(text) for text in found.labels[label]} == {length}
        assert len(set(map(id, found.labels[label]))) == 1


def test_damaged_parquet_files_are_refused(tmp_path: Path) -> None:
    stream = io.BytesIO()
    pq.write_table(pa.table({"name": ["a", "b"], "y": [1.0, 2.0]}), stream)
    raw, path = stream.getvalue(), tmp_path / "bad.parquet"
    for content in (b"", b"PAR1", raw[:-9], raw[:20] + raw[-20:], b"PAR1" + bytes(200) + b"PAR1"):
        path.write_bytes(content)
        with pytest.raises(ProblemError) as caught:
            load(path)
        assert "is not a readable Parquet file" in str(caught.value) and str(path) in str(caught.value)


def test_a_parquet_file_with_any_byte_damaged_is_read_or_refused(tmp_path: Path) -> None:
    """Among these are indices outside the dictionary of texts, and metadata on which pyarrow would abort the process."""
    stream = io.BytesIO()
    table = pa.table({"name": ["a", "b", "c"], "y": [1.0, 2.0, 3.0]})
    pq.write_table(table, stream, compression="none", write_statistics=False, use_dictionary=["name"])
    raw, path = stream.getvalue(), tmp_path / "bad.parquet"
    damaged = 0
    for at, bit in itertools.product(range(len(raw)), (1, 4)):
        path.write_bytes(raw[:at] + bytes([raw[at] ^ bit]) + raw[at + 1 :])
        try:
            load(path)
        except ProblemError:
            damaged += 1
    assert damaged > len(raw)
