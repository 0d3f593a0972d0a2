"""Tables of items: what is written is what is read, and rubbish is refused with its place."""

from __future__ import annotations

import csv
import json
import re
import sys
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
from tradeoff import Catalogue, Objective, ProblemError, UndecidedError, load, save
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

ITEMS = [["name", "price (min)", "y (max)"], ["a", 1, 2], ["b", 2.5, 3]]

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
    assert [note for note in fewer.notes if "left out" in note and "'Duo'" in note and "keep_dominated" in note]
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
    assert found.notes[0] == "items are called what the column 'model' says" and "'colour'" in found.notes[1]
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
        (["8", "text", "other"], "1 of 3 cells can be read as numbers, 'text' cannot"),
        (["1TB", "512GB", "8GB"], "not all of its cells have the same unit ('1TB', '512GB', ...)"),
        (["3-4", "5-6", "7"], "1 of 3 cells can be read as numbers, '3-4' cannot"),
        (["3-4", "5-6", "7-8"], "it holds texts such as '3-4'; write numbers alone"),
        (["", "", ""], "the column 'c' is not weighed: it is empty"),
        (["n/a", "-", "?"], "the column 'c' is not weighed: it is empty"),
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
    average = {one["objective"]: one["amount"] for one in result["recommendation"]["option"]["average"]}
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
    with refused(ProblemError, f"pip install '.[{extra}]'"):
        load(path)
