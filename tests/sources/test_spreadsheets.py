"""Tables of items: what is written is what is read, and rubbish is refused with its place."""

from __future__ import annotations

import csv
import datetime
import io
import itertools
import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.messages import refused
from tradeoff import ArgumentError, Catalogue, Objective, ProblemError, UndecidedError, load, save
from tradeoff.apps.cli.main import main
from tradeoff.problems.dominance import AT_ONCE, undominated
from tradeoff.sources.tables import sheets, text
from tradeoff.sources.tables.cells import amount, heading

LAPTOPS = """model,price [EUR] (min),battery [h] (max),weight [kg] (min),colour
Alto,1199,14,1.2,grey
Brio,649,7,1.9,red
Cara,899,11,1.4,blue
Duo,1649,9,1.5,black
Foro,479,6,2.1,black
Giro,1299,18,1.1,silver
"""  # Duo is beaten by Cara, and by others

words = st.text(st.characters(blacklist_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=8).map(str.strip)
amounts = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**6), 10**6).map(float)
short_amounts = amounts.map(lambda x: float(f"{x:.15g}") + 0.0).filter(
    np.isfinite
)  # openpyxl writes no more digits, and no -0


@st.composite
def catalogues(draw: st.DrawFn, amounts: st.SearchStrategy[float] = amounts) -> Catalogue:
    names = draw(st.lists(words.filter(bool), min_size=2, max_size=6, unique=True))
    count = draw(st.integers(1, 4))
    aims = [Objective(f"o{j}", draw(st.sampled_from(["", "EUR", "h", "min", "m/s^2"])), draw(st.sampled_from(["max", "min"])))
            for j in range(count)]  # fmt: skip
    values = draw(st.lists(st.lists(amounts, min_size=count, max_size=count), min_size=len(names), max_size=len(names)))
    return Catalogue(values, aims, names)


def table_of(catalogue: Catalogue) -> list[list[Any]]:
    heads = [f"{o.name} [{o.unit}] ({o.goal})" if o.unit else f"{o.name} ({o.goal})" for o in catalogue.objectives]
    rows = zip(catalogue.names, catalogue.values.tolist(), strict=True)
    return [["name", *heads], *([name, *row] for name, row in rows)]


def write(path: Path, rows: list[list[Any]], separator: str = ",") -> Path:
    """Write rows, the first of which is the head, as the kind of file that the name says."""
    if path.suffix == ".xlsx":
        book = openpyxl.Workbook()
        for i, row in enumerate(rows, start=1):
            for j, value in enumerate(row, start=1):
                cell = book.active.cell(i, j, value)
                if isinstance(value, str):
                    cell.data_type = "s"  # texts that begin with "=" are no formulas
        book.save(path)
        book.close()
    elif path.suffix == ".parquet":
        columns = [pa.array(column) for column in zip(*rows[1:], strict=True)]
        pq.write_table(pa.Table.from_arrays(columns, names=rows[0]), path)
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, delimiter=separator).writerows(rows)
    return path


@pytest.mark.parametrize(
    ("file", "separator"),
    [("a.csv", ","), ("a.csv", ";"), ("a.csv", "\t"), ("a.tsv", "\t"), ("a.xlsx", ","), ("a.parquet", ",")],
)
def test_what_is_written_is_read(file: str, separator: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("tables")

    @settings(max_examples=40, deadline=None)
    @given(catalogues(short_amounts if file == "a.xlsx" else amounts))
    def law(catalogue: Catalogue) -> None:
        path = write(folder / file, table_of(catalogue), separator)
        found = load(path, keep_dominated=True, decimal=".")
        assert isinstance(found, Catalogue)
        assert found.objectives == catalogue.objectives and found.names == catalogue.names
        assert np.array_equal(found.values, catalogue.values) and found.labels == {}
        assert found.fingerprint == catalogue.fingerprint

    law()


def test_a_table_can_be_saved_as_a_problem_file_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "laptops.csv"
    path.write_text(LAPTOPS)
    found = load(path)
    for name in ("mine.toml", "mine.npz"):
        save(found, tmp_path / name)
        again = load(tmp_path / name)
        assert again.fingerprint == found.fingerprint and again.labels == found.labels
    assert path.read_text() == LAPTOPS


# --- what is beaten ---------------------------------------------------------------------------------------------------


def beaten_by_hand(gains: np.ndarray) -> list[bool]:
    return [any(np.all(other >= row) and np.any(other > row) for other in gains) for row in gains]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_the_filter_keeps_what_comparing_all_pairs_keeps(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 4))
    entry = (
        st.sampled_from([-np.inf, -1e308, -1.0, -0.0, 0.0, 5e-324, 1.0, 1e308]) if data.draw(st.booleans()) else amounts
    )
    entry = entry.filter(np.isfinite)
    values = np.array(data.draw(st.lists(st.lists(entry, min_size=count, max_size=count), min_size=1, max_size=12)))
    goals = [data.draw(st.sampled_from(["max", "min"])) for _ in range(count)]
    aims = [Objective(f"o{j}", "", goal) for j, goal in enumerate(goals)]
    signs = np.array([o.sign for o in aims])
    assert (~undominated(values, aims)).tolist() == beaten_by_hand(values * signs)


@pytest.mark.parametrize(("kinds", "objectives"), [(6, 3), (10**6, 3), (10**6, 6)])
def test_the_filter_is_right_for_more_rows_than_are_compared_at_once(kinds: int, objectives: int) -> None:
    rng = np.random.default_rng(kinds + objectives)
    values = rng.integers(0, kinds, (2 * AT_ONCE + 77, objectives)).astype(float)
    by_hand = [bool(np.any(np.all(values >= row, axis=1) & np.any(values > row, axis=1))) for row in values]
    kept = undominated(values, [Objective(f"o{j}") for j in range(objectives)])
    assert (~kept).tolist() == by_hand and 0 < kept.sum() < len(values)


def test_rows_that_all_trade_off_are_all_kept() -> None:
    across = np.arange(3.0 * AT_ONCE)
    values = np.stack([across, -across], axis=1)
    assert undominated(values, [Objective("a"), Objective("b")]).all()
    assert undominated(values, [Objective("a"), Objective("b", "", "min")]).sum() == 1


def test_beaten_rows_are_left_out_with_a_note_unless_kept(tmp_path: Path) -> None:
    path = tmp_path / "laptops.csv"
    path.write_text(LAPTOPS + "Zwei,649,7,1.9,green\n")
    fewer, all_of_them = load(path), load(f"table:{path}", keep_dominated="true")
    assert fewer.names == ("Alto", "Brio", "Cara", "Foro", "Giro", "Zwei")  # those like Brio are not beaten by it
    assert fewer.labels == {"colour": ("grey", "red", "blue", "black", "silver", "green")}
    assert [note for note in fewer.notes if "1 of 7 items were left out" in note and "keep_dominated" in note]
    assert len(all_of_them.names) == 7 and not any("left out" in note for note in all_of_them.notes)
    assert all(fewer.names.count(a.plan.name) for a in all_of_them.best(np.random.default_rng(0).random((50, 3))))


# --- heads, names, directions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "unit", "goal"),
    [
        ("price [EUR] (min)", "price", "EUR", "min"),
        ("price (MIN) [EUR]", "price", "EUR", "min"),
        ("  battery   life [h] ", "battery life", "h", None),
        ("time [min]", "time", "min", None),
        ("size (inch)", "size (inch)", "", None),
        ("[EUR]", "[EUR]", "", None),
        ("(min)", "(min)", "", None),
        ("a [b] [c]", "a [b]", "c", None),
        ("a (min) (max)", "a (min)", "", "max"),
        ("price [EUR] ( MIN )", "price", "EUR", "min"),
        ("weight (minimum)", "weight", "", "min"),
        ("battery (Maximum) [h]", "battery", "h", "max"),
        ("price (minimise)", "price", "", "min"),
        ("price(minimize)", "price", "", "min"),
        ("speed (maximize)", "speed", "", "max"),
        ("speed (maximise)", "speed", "", "max"),
    ],
)
def test_heads(text: str, name: str, unit: str, goal: str | None) -> None:
    found = heading(text)
    assert (found.name, found.unit, found.goal) == (name, unit, goal)


@pytest.mark.parametrize(
    "head",
    [
        "p (lower is better)",
        "p (low) [EUR]",
        "p (minimal)",
        "p (Less)",
        "p (min) EUR",
        "p [EUR (min)]",
        "p (more!)",
        "p (highest)",
    ],
)
def test_what_is_almost_a_direction_is_refused_unless_one_is_given(tmp_path: Path, head: str) -> None:
    for cells in ("a,1,5\nb,2,7\n", "a,1,5\nb,2,tbd\n"):
        with pytest.raises(ProblemError) as caught:
            read(tmp_path, f"name,y (max),{head}\n{cells}")
        assert "table.csv does not say clearly whether less or more is better for 'p" in str(caught.value)
        assert "End each head with (min) or (max)" in str(caught.value)
    text = f"name,y (max),{head}\na,1,5\nb,2,7\n"
    with pytest.raises(UndecidedError):
        read(tmp_path, text, objectives=[head])
    assert [o.goal for o in read(tmp_path, text, objectives={"y": "max", head: "min"}).objectives] == ["max", "min"]


def read(tmp_path: Path, text: str, **options: Any) -> Catalogue:
    path = tmp_path / "table.csv"
    path.write_text(text)
    found = load(path, **options)
    assert isinstance(found, Catalogue)
    return found


def test_objectives_choose_columns_order_and_direction(tmp_path: Path) -> None:
    found = read(tmp_path, LAPTOPS, objectives="battery:min, price [EUR] (min):max,weight", keep_dominated=True)
    assert [(o.name, o.unit, o.goal) for o in found.objectives] == [
        ("battery", "h", "min"), ("price", "EUR", "max"), ("weight", "kg", "min"),
    ]  # fmt: skip
    assert found.values[0].tolist() == [14, 1199, 1.2]
    assert found.notes == ("items are called what the column 'model' says",)
    some = read(tmp_path, LAPTOPS, objectives=[Objective("battery", "hours")], keep_dominated=True)
    assert some.objectives == (Objective("battery", "hours"),)
    assert some.labels["price [EUR] (min)"] == ("1199", "649", "899", "1649", "479", "1299")  # shown all the same


@pytest.mark.parametrize(
    ("text", "options", "names", "note"),
    [
        ("x,NAME,y (max)\na,1,1\nb,2,0\n", {}, ["1", "2"], ""),
        ("colour,model,y (max)\nred,a,1\nred,b,0\n", {}, ["a", "b"], "items are called what the column 'model' says"),
        ("colour,y (max)\nred,1\nred,0\n", {}, ["row 1", "row 2"], "called after their rows"),
        ("colour,y (max)\nred,1\n,0\n", {}, ["row 1", "row 2"], "called after their rows"),
        ("name,code,y (max)\na,p,1\nb,q,0\n", {"name_column": "code"}, ["p", "q"], ""),
        ("id,y (max)\n7,1\n8,0\n", {"name_column": "id"}, ["7", "8"], ""),
    ],
)
def test_names(tmp_path: Path, text: str, options: dict[str, str], names: list[str], note: str) -> None:
    found = read(tmp_path, text, keep_dominated=True, **options)
    assert list(found.names) == names
    assert any(note in said for said in found.notes) if note else not any("called" in said for said in found.notes)


@pytest.mark.parametrize(
    ("column", "note"),
    [
        (["yes", "no", "yes"], "other heads say what is better, and this one does not; to weigh it, end its head with"),
        (["8", "text", "other"], "1 of its cells are numbers, 2 are texts"),
        (["1TB", "512GB", "8GB"], "not all of its cells have the same unit; write all of them in one"),
        (["3-4", "5-6", "7"], "1 of its cells are numbers, 2 are texts"),
        (["3-4", "5-6", "7-8"], "it holds texts such as '3-4'; write numbers alone"),
        (["", "", ""], "the column 'c' is empty"),
        (["n/a", "-", "?"], "the column 'c' is empty"),
    ],
)
def test_columns_that_are_shown_but_not_weighed_are_noted(tmp_path: Path, column: list[str], note: str) -> None:
    rows = "".join(f"i{i},{i},{cell}\n" for i, cell in enumerate(column))
    found = read(tmp_path, "name,y (max),c\n" + rows, keep_dominated=True)
    assert [o.name for o in found.objectives] == ["y"] and any(note in said for said in found.notes)


@pytest.mark.parametrize("cell", ["=1+1", "=cmd|' /C calc'!A0", "@SUM(A1)", "+A1", "<b>x</b>", "\x1b[31m"])
def test_formulas_and_escapes_are_just_texts(tmp_path: Path, cell: str) -> None:
    path = write(tmp_path / "t.csv", [["name", "y (max)", "c"], [cell, 1, cell], ["b", 2, "x"]])
    found = load(path, keep_dominated=True)
    assert found.names[0] == cell and found.labels["c"][0] == cell
    done = CliRunner().invoke(main, ["solve", str(path), "--weights", "y=1", "--keep-dominated"])
    assert done.exit_code == 0 and "\x1b" not in done.output


def test_a_constant_column_is_kept_and_noted(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", [["name", "x (max)", "same (max)"], ["a", 1, 5], ["b", 2, 5]])
    found = load(path, keep_dominated=True)
    assert [o.name for o in found.irrelevant] == ["same"]
    done = CliRunner().invoke(main, ["check", str(path), "--json"])
    said = json.loads(done.stdout)["notes"]
    assert any(note.startswith("same comes out the same") for note in said) and any("left out" in note for note in said)


# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "plain", "with_point", "with_comma"),
    [
        ("1299", 1299, 1299, 1299),
        (" -1299.50 ", -1299.5, -1299.5, None),
        ("1,299", None, 1299, 1.299),
        ("1.299", 1.299, 1.299, 1299),
        ("1.299,00", None, None, 1299),
        ("1,299.00", None, 1299, None),
        ("1 299", None, 1299, 1299),
        ("1\u00a0299,5", None, None, 1299.5),
        ("1'299'000", None, 1299000, 1299000),
        ("1,29,900", None, None, None),
        ("1,299'000", None, None, None),
        ("1e3", 1000, 1000, 1000),
        ("\u22125", -5, -5, -5),
        ("\u22121,299", None, -1299, -1.299),
        ("1e\u22123", 0.001, 0.001, 0.001),
        ("5\u22123", None, None, None),
        ("\u2212", None, None, None),
        (".5", 0.5, 0.5, None),
        ("5.", 5, 5, None),
        ("1_000", None, None, None),
        ("١٢", None, None, None),
        ("0x10", None, None, None),
        ("", None, None, None),
        ("nan", None, None, None),
        ("1e999", None, None, None),
        ("15%", None, None, None),
        (True, None, None, None),
        (10**400, None, None, None),
        (float("inf"), None, None, None),
        (7, 7, 7, 7),
    ],
)
def test_a_number_is_read_only_where_there_is_one_reading(
    cell: object, plain: float | None, with_point: float | None, with_comma: float | None
) -> None:
    assert (amount(cell), amount(cell, "."), amount(cell, ",")) == (plain, with_point, with_comma)


GOOD = "name,price (min),y (max)\na,1,2\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; its first line must name the columns"),
        ("\n \n,,\n", "is empty"),
        ("name,y\n", "has no rows under its head"),
        ("name,y\na,1\n", "has one row under its head; a choice needs at least two items"),
        ("name,colour\na,red\nb,blue\n", "has no column of numbers to weigh; it has 'name', 'colour'"),
        (GOOD + "b,,3\n", "line 3, column 'price (min)': the cell is empty; fill it in, or remove the row"),
        (GOOD + "b,n/a,3\n", "line 3, column 'price (min)': 'n/a' is not a value"),
        (GOOD + 'b,"1,299",3\n', "line 3, column 'price (min)': '1,299' can be read in several ways"),
        (GOOD + 'b,"1.299,00",3\nc,1.5,1\n', "'1.299,00' can be read in several ways"),
        (GOOD + 'b,"1,299",3\n', "decimal='.' or decimal=','"),
        (GOOD + "b,$5,3\n", "'$5' has a sign; write the number alone, and the unit in the header"),
        (GOOD + "b,5 €,3\n", "'5 €' has a sign"),
        (GOOD + "b,15%,3\n", "'15%' has a sign"),
        (GOOD + "b,nan,3\n", "'nan' is not a finite number"),
        (GOOD + "b,-inf,3\n", "'-inf' is not a finite number"),
        (GOOD + "b,1e999,3\n", "'1e999' is not a finite number"),
        (GOOD + "b,#DIV/0!,3\n", "'#DIV/0!' is the error of a formula"),
        (GOOD + "b,cheap,3\nc,3,3\n", "line 3, column 'price (min)': 'cheap' is not a number"),
        (GOOD + "b,2024-01-31,3\nc,3,3\n", "'2024-01-31' is not a number"),
        (GOOD + "b,true,3\nc,3,3\n", "'true' is not a number"),
        (GOOD + "b,n.a.,3\nc,tbd,1\nd,ask,2\n", "line 3, column 'price (min)': 'n.a.' is not a number"),
        ("name,p [EUR] (min),y (max)\na,ask,1\nb,tbd,2\n", "line 2, column 'p [EUR] (min)': 'ask' is not a number"),
        ("name,p (min),y (max)\na,=1+1,1\nb,=1+2,2\n", "line 2, column 'p (min)': '=1+1' is not a number"),
        ("name,p (min),y (max)\na,,1\nb,,2\n", "line 2, column 'p (min)': the cell is empty"),
        ("name;y (max)\na;\u22121.299\nb;2.100\n", "'\u22121.299' can be read in several ways where semicolons"),
        ("sep=:\nname:y\na:1\nb:2\n", "line 1: cells are separated by ':'; save the table with a comma"),
        ("sep=;\nname;y (max)\na;1\nb;\n", "line 4, column 'y (max)': the cell is empty"),
        (GOOD + "a,2,3\n", "line 3, column 'name': the name 'a' is already used in line 2"),
        (GOOD + ",2,3\n", "line 3, column 'name': the item has no name"),
        ("name,y,y\na,1,1\nb,2,2\n", "line 1: columns 2 and 3 are both called 'y'"),
        ("name,y (min),y (max)\na,1,1\nb,2,2\n", "'y (min)' and 'y (max)' are both called 'y'"),
        ("name,Name,y\na,1,1\nb,2,2\n", "has 2 columns called 'name'; choose one with name_column"),
        ("y,\n0,1\n1,2\n", "line 1: column 2 has no name"),
        (GOOD + "b,1\n", "line 3: 2 cells, but the header in line 1 names 3 columns"),
        (GOOD + "b,1,2,3\n", "line 3: 4 cells"),
        (GOOD + '"b,1,2\n', "line 3: not readable"),
        (GOOD + '"b"c,1,2\n', "line 3: not readable"),
        (
            "name;y (max)\na;1.299\nb;2.100\n",
            "line 2, column 'y (max)': '1.299' can be read in several ways where semicolons",
        ),
        ("a;b,c\n1;2,3\n2;3,1\n", "cells could be separated by a comma or by a semicolon"),
        (
            "episode,step,state,action,next,y\ne,0,a,go,b,1\nf,0,a,go,b,1\n",
            "looks like a log of steps; name it log:FILE",
        ),
        ("state,action,probability,next,y\na,go,1,b,1\nb,go,1,a,1\n", "looks like the transitions of a problem file"),
        ("name,y\n" + "x" * 200_000 + ",1\nb,2\n", "not readable: field larger than field limit"),
        (",".join(f"c{i}" for i in range(1001)) + "\n" + 2 * (",".join("1" * 1001) + "\n"), "1,001 columns of numbers"),
        (",".join(f"c{i}" for i in range(20_000)) + "\n", "16,384 columns"),
    ],
)
def test_rubbish_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(text.encode())
    with pytest.raises(ProblemError) as caught:
        load(path)
    said = str(caught.value)
    assert message in said and str(path) in said and len(said) < 700
    done = CliRunner().invoke(main, ["ask", str(path)])
    assert done.exit_code == 3 and done.stdout == ""


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (
            GOOD.encode() + b"caf\xe9\x81,1,2\n",
            "line 3: the byte 0xe9 is not UTF-8; save the table as 'CSV UTF-8'",
        ),
        ("n\u00e4me,y\n".encode("utf-16-be").replace(b"\0", b"\x01"), "is not UTF-8"),
        (GOOD.encode("utf-16")[:-1], "is not text"),
        (GOOD.encode() + b"b\0,1,2\n", "is not text"),
        (b"PK\x03\x04" + bytes(100), "is not text"),
    ],
)
def test_bytes_that_are_not_text_are_refused(tmp_path: Path, raw: bytes, message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(raw)
    with pytest.raises(ProblemError) as caught:
        load(path)
    assert message in str(caught.value).replace("'CSV UTF-8', or", "'CSV UTF-8'") and str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objectives": "weight:min"}, "has no column 'weight'; it has 'name', 'price (min)', 'y (max)'"),
        ({"objectives": "y,y (max)"}, "is chosen twice"),
        ({"objectives": "price:min,price:max"}, "given twice"),
        ({"name_column": "title"}, "has no column 'title'"),
        ({"name_column": "y", "objectives": "y"}, "cannot be both the name of the items and an objective"),
        ({"sheet": "Sheet1"}, "is not a workbook"),
        ({"separator": ":"}, "separator is ':'; it must be comma, semicolon, tab or bar"),
        ({"decimal": ";"}, "decimal is ';'; it must be a point or a comma"),
        ({"keep_dominated": "perhaps"}, "must be true or false"),
        ({"colour": "red"}, "'colour' is not an option of the source"),
    ],
)
def test_bad_options_are_refused(tmp_path: Path, options: dict[str, str], message: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(GOOD + "b,2,3\n")
    with pytest.raises(ArgumentError) as caught:
        load(path, **options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("\ufeffname,y,z\r\na,1.5,1\r\nb,2,0\r\n", {}),
        ("name;y;z\na;1.5;1\nb;2;0\n", {}),
        ("name;y;z\na;1,5;1\nb;2;0\n", {"decimal": ","}),
        ("name;y;z, in all\na;1.5;1\nb;2;0\n", {}),
        ("name\ty\tz\na\t1.5\t1\n\n\nb\t2\t0\n", {}),
        ('"name";"y";"z"\n"a";"1.5";"1"\n"b";"2";"0"\n', {}),
        ("name,y,z,\na,1.5,1,\nb,2,0,\n", {}),
        ("name;y;z, in all\na;1.5;1, roughly\nb;2;0\n", {"separator": "semicolon", "objectives": "y:max"}),
        ("\ufeffsep=;\r\nname;y;z, in all\r\na;1.5;1, roughly\r\nb;2;0\r\n", {"objectives": "y:max"}),
        ('"sep=\t"\nname\ty\tz\na\t1.5\t1\nb\t2\t0\n', {}),
        ("SEP=,\nname;y;z\na;1.5;1\nb;2;0\n", {"separator": "semicolon"}),
        (" name , y , z \n a , 1.5 , 1 \n b , 2 , 0 \n", {}),
    ],
)
def test_what_has_one_reading_is_read(tmp_path: Path, text: str, options: dict[str, str]) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    found = load(path, keep_dominated=True, **{"objectives": "y:max", **options})
    assert found.names == ("a", "b") and found.values[:, 0].tolist() == [1.5, 2.0]


def test_the_decimal_mark_holds_for_every_cell(tmp_path: Path) -> None:
    for cell, said in (("1.25", "'1.25' is not written with decimal=','"), ("1e999", "'1e999' is not a finite number")):
        with pytest.raises(ProblemError) as caught:
            read(tmp_path, f"name;y (max)\na;1,5\nb;{cell}\n", decimal=",")
        assert f"line 3, column 'y (max)': {said}" in str(caught.value)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet=st.sampled_from('ab1,;\t"\n\r.%$-é=[]()'), max_size=60) | st.text(max_size=40))
def test_any_text_is_a_catalogue_or_refused(text: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            found = load(path)
        except ProblemError as error:
            assert str(path) in str(error)
        else:
            assert np.isfinite(found.values).all()


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


ITEMS = [["name", "price (min)", "y (max)"], ["a", 1, 2], ["b", 2.5, 3]]
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
    for said in ("'touch' is shown, but not weighed: other heads say what is better",
                 "'since' is shown, but not weighed: it holds dates",
                 "'size' is shown, but not weighed: 1 of its cells are numbers, 1 are texts"):  # fmt: skip
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
        ([*ITEMS, ["a", 3, 3]], "row 4, column 'name': the name 'a' is already used in row 2"),
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
    said = "the column 'p' is empty (a formula has no value until a spreadsheet program has saved it)"
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
    assert any("'__index_level_0__' is shown, but not weighed: it numbers the rows" in note for note in found.notes)


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


# --- whole interviews -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["laptops.csv", "laptops.tsv", "laptops.xlsx", "laptops.parquet"])
def test_a_simulated_person_is_served_from_a_table(tmp_path: Path, file: str) -> None:
    rows = [
        [amount(cell) if amount(cell) is not None else cell for cell in row] for row in csv.reader(LAPTOPS.splitlines())
    ]
    path = write(tmp_path / file, rows, "\t" if file.endswith("tsv") else ",")
    call = ["ask", str(path), "--simulate", "price=3,battery=1,weight=1", "--precision", "0.001", "--json"]
    done = CliRunner(env={"COLUMNS": "100"}).invoke(main, call)
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["recommendation"]["finished"] and 0 <= result["relative_regret"] <= 0.01
    found = load(path)
    (best,) = found.best([[3, 1, 1]])
    average = {one["objective"]: one["amount"] for one in result["recommendation"]["alternative"]["average"]}
    assert average == dict(zip(("price", "battery", "weight"), found.outcome(best.value).tolist(), strict=True))
    other = CliRunner(env={"COLUMNS": "100"}).invoke(
        main,
        ["ask", str(path), "--objectives", "battery:max,weight:min", "--keep-dominated", "--simulate", "battery=1"],
    )
    assert other.exit_code == 0 and re.search(r"Giro\nprice \[EUR\] \(min\): 1299(\.0)?, colour: silver", other.stdout)


def test_limits_hold_for_texts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_text("name,y\n" + "".join(f"i{i},{i}\n" for i in range(50)))
    for limit, value in (("MOST_ROWS", 40), ("MOST_CELLS", 90), ("LARGEST_TABLE", 100)):
        with monkeypatch.context() as patched:
            patched.setattr(text if limit == "LARGEST_TABLE" else sheets, limit, value)
            with pytest.raises(ProblemError, match=r"too large|at most"):
                load(path)
    monkeypatch.setenv("TRADEOFF_MEMORY", "0.000001")
    with refused(ProblemError, "GiB"):
        load(path)


@pytest.mark.parametrize(
    ("library", "extra", "file"), [("openpyxl", "excel", "t.xlsx"), ("pyarrow", "data", "t.parquet")]
)
def test_a_missing_library_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str, extra: str, file: str
) -> None:
    path = write(tmp_path / file, ITEMS)
    monkeypatch.setitem(sys.modules, library, None)
    with refused(ProblemError, f"pip install 'tradeoff[{extra}]'"):
        load(path)
