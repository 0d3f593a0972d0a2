"""Tables as people have them load as a person would expect, or ask; none is turned into a choice by a guess."""

from __future__ import annotations

import datetime
import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from tradeoff import ArgumentError, Catalogue, Interview, Objective, ProblemError, ProblemWarning, load
from tradeoff.apps.cli import deciding
from tradeoff.apps.cli.main import main
from tradeoff.apps.cli.source import Source
from tradeoff.errors import UndecidedError
from tradeoff.sources.tables.deciding import decided, objectives_text

PHONES = """name,price,battery,camera
Pixel 9,799,4700,4.5
iPhone 16,949,3561,4.7
Galaxy S24,749,4000,4.4
Nothing 2a,349,5000,3.9
Moto G54,179,5000,3.2
"""
DRONES = """Drone,Price (EUR),Flight time (min),Range (km),Weight (g)
Mini,469,31,10,249
Air,1099,46,20,724
Toy,99,11,0.5,120
"""
LAPTOPS = """model,price,RAM,rating,touchscreen,battery
A,"1,899",16GB,4.6/5,yes,14
B,949,8GB,4.1/5,no,
C,"1,299",16GB,4.4/5,yes,11
D,649,8GB,3.9/5,no,8
"""
FLATS = """id,zip,year,rent [EUR],Balcony
7,10115,2018,900,yes
8,10117,1999,700,no
9,10119,1975,650,yes
"""


def written(tmp_path: Path, content: str | bytes, name: str = "table.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def asks(path: Any, **options: Any) -> dict[str, str | None]:
    """Return what is proposed for each thing that is asked."""
    with pytest.raises(UndecidedError) as caught:
        load(path, **options)
    return {f"{one.column}: {one.topic}": one.proposed for one in caught.value.undecided}


def confirmed(path: Any, **options: Any) -> Catalogue:
    """Return the catalogue where the person takes all proposals."""
    try:
        found = load(path, keep_dominated=True, **options)
    except UndecidedError as error:
        answers = [one.proposed or "" for one in error.undecided]
        found = load(path, keep_dominated=True, **decided(error.undecided, answers, options, error.objectives))
    assert isinstance(found, Catalogue)
    return found


# --- the tables of the review ------------------------------------------------------------------------------------------


def test_a_price_without_a_direction_is_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path, PHONES)
    assert asks(path) == {"price: direction": "min", "battery: direction": "max", "camera: direction": "max"}
    with pytest.raises(ProblemError, match=r"objectives='price:min,battery:max,camera:max'$"):
        load(path)
    done = CliRunner().invoke(main, ["ask", str(path)])
    assert done.exit_code == 3 and "--objectives price:min,battery:max,camera:max" in done.stderr and not done.stdout
    assert confirmed(path).objectives == (Objective("price", "", "min"), Objective("battery"), Objective("camera"))
    assert asks(path, objectives="price,camera:max") == {"price: direction": "min"}


def test_min_after_a_duration_is_ambiguous(tmp_path: Path) -> None:
    path = written(tmp_path, DRONES)
    assert asks(path)["Flight time: direction"] is None
    with pytest.raises(ProblemError, match='"\\(min\\)" may mean minutes, or that less is better'):
        load(path)
    found = load(path, objectives="price:min,Flight time:max,Range (km):max,WEIGHT:min")
    assert found.objectives[1] == Objective("Flight time", "min", "max") and "Toy" in found.names
    for head in ("Pendelzeit (min)", "commute ( MIN )", "trip duration (min)"):
        assert f"{head.split(' (')[0].split('(')[0].strip()}: direction" in asks(
            written(tmp_path, f"name,{head}\na,1\nb,2\n")
        )
    for head in ("time [min] (min)", "time (minimise)", "price (min)"):  # these have one meaning
        assert load(written(tmp_path, f"name,{head}\na,1\nb,2\n")).objectives[0].goal == "min"


def test_all_is_asked_at_once_and_units_are_read(tmp_path: Path) -> None:
    path = written(tmp_path, LAPTOPS)
    asked = asks(path)
    assert asked["battery: gaps"] is None and len(asked) == 6
    chosen = "price:min,RAM:max,rating:max,touchscreen:max,battery:max"
    found = load(path, objectives=chosen, gaps="drop", keep_dominated=True)
    assert found.names == ("A", "C", "D") and found.values[0].tolist() == [1899, 16, 4.6, 1, 14]
    assert [o.unit for o in found.objectives] == ["", "GB", "of 5", "yes/no", ""]
    assert found.objectives[3].text(1) == "yes"
    assert any("left out" in note and "'battery': 'B'" in note for note in found.notes)
    shown = load(path, objectives=chosen, gaps={"battery": "label"}, keep_dominated=True)
    assert len(shown.names) == 4 and shown.labels["battery"] == ("14", "", "11", "8")
    with pytest.raises(ArgumentError, match="it must be drop, label, or NAME:drop,NAME:label"):
        load(path, gaps="fill")


def test_ids_zips_and_years_are_not_weighed_unless_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path, FLATS)
    assert asks(path) == {"rent: direction": "min", "Balcony: direction": "max"}
    found = confirmed(path)
    assert found.names == ("7", "8", "9") and found.labels == {
        "zip": ("10115", "10117", "10119"), "year": ("2018", "1999", "1975"),
    }  # fmt: skip
    assert load(path, objectives="year:max,rent:min").objectives[0] == Objective("year")


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("name;y (max);z (max)\na;1200,5;1\nb;7;2\n", {}),
        ("name,y (max),z (max)\na,1200.5,1\nb,7,2\n".encode("utf-16"), {}),
        ("Our laptops\n\nname,y (max),z (max)\na,1200.5,1\nb,7,2\n", {}),
        ("name|y (max)|z (max)\n a | 1200.5 | 1 \nb|7|2\n", {}),
        ("Laptops;;\nof 2024;;\nname;y (max);z (max)\na;1200,5;1\nb;7;2\n", {}),
        ("| name | y (max) | z (max) |\n|------|:---:|---|\n| a | 1200.5 | 1 |\n| b | 7 | 2 |\n", {}),
        ("x,y,z\nname,y (max),z (max)\na,1200.5,1\nb,7,2\n", {"header": 2}),
        ("name,y (max),z (max)\na,1200.5,1\nb,7,2\n".encode("utf-16-le"), {}),
        (" name , y (max) , z (max) \n a , 1200.5 , 1 \n b , 7 , 2 \n", {}),
        (",name,y (max),z (max)\n0,a,1200.5,1\n1,b,7,2\n", {}),
        ("name;y (max);z (max)\na;€ 1.200,50;1\nb;€ 7,00;2\n", {}),
        ('name,y (max),z (max)\na,"$1,200.50",1\nb,$7.00,2\n', {}),
    ],
)
def test_what_has_one_reading_is_read(tmp_path: Path, content: str | bytes, options: dict[str, Any]) -> None:
    found = load(written(tmp_path, content), keep_dominated=True, **options)
    assert found.names == ("a", "b") and found.values.tolist() == [[1200.5, 1], [7, 2]]


def test_german_excel_is_read_as_windows_1252(tmp_path: Path) -> None:
    raw = "Gerät;Preis [€] (min);Größe (max)\nÄpfel;1200,5;3\nB;7;2\n".encode("cp1252")
    found = load(written(tmp_path, raw), keep_dominated=True)
    assert found.names == ("Äpfel", "B") and [o.name for o in found.objectives] == ["Preis", "Größe"]
    assert any("was read as Windows-1252; check that 'ä' is right" in note for note in found.notes)


# --- more of them ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("Kaltmiete,Wohnfläche\n900 €,70 m²\n700 €,50 m²\n", {"Kaltmiete: direction": "min", "Wohnfläche: direction": "max"}),
        ("hotel,stars,distance\nA,4 stars,2.5 km\nB,3 stars,0.5 km\n",
         {"stars: direction": "max", "distance: direction": "min"}),
        ("fund,return,TER\nA,7.1%,0.2%\nB,5%,0.1%\n", {"return: direction": None, "TER: direction": None}),
        ("job,salary,remote\nA,€50k,true\nB,€60k,false\n", {"salary: direction": "max", "remote: direction": "max"}),
        ("a,b\nx,1\ny,\nz,3\n", {"b: direction": None, "b: gaps": None}),
        ('car,price\nA,"12,900"\nB,"9,500"\n', {"price: direction": "min", "price: decimal": None}),
        ("plan,price (lower is better),speed (higher)\nA,1,2\nB,2,3\n",
         {"price (lower is better): direction": "min", "speed (higher): direction": "max"}),
        ("n,battery weight,price rating\nA,1,2\nB,2,3\n",
         {"battery weight: direction": "min", "price rating: direction": "max"}),
        ("item,score,notes\nA,10/10,good\nB,7/10,bad\n", {"score: direction": "max"}),
        ("uni,rank,fees,founded year\nA,1,100,1900\nB,2,50,1950\n", {"rank: direction": "min", "fees: direction": "min"}),
        ("tool,cost (USD),#\nA,5,1\nB,6,2\n", {"cost (USD): direction": "min"}),
        ("tool,width\nA,5\nB,TBD\nC,7\n", {"width: direction": None, "width: gaps": None}),
    ],
)  # fmt: skip
def test_other_tables_ask_what_a_person_would_ask(
    tmp_path: Path, content: str, expected: dict[str, str | None]
) -> None:
    assert asks(written(tmp_path, content)) == expected


def test_answers_repeat_as_options(tmp_path: Path) -> None:
    path = written(tmp_path, LAPTOPS.replace("price", '"price, net"'))
    with pytest.raises(UndecidedError) as caught:
        load(path)
    answers = {"direction": "max", "gaps": "drop", "decimal": "."}
    options = decided(caught.value.undecided, [answers[one.topic] for one in caught.value.undecided], {},
                      caught.value.objectives)  # fmt: skip
    assert options == {
        "objectives": '"price, net":max,RAM:max,rating:max,touchscreen:max,battery:max', "gaps": "drop",
    }  # fmt: skip
    assert load(path, **options).objectives[0].name == "price, net"


# --- nothing is left out without a word --------------------------------------------------------------------------------

TRAINS = """Connection,Duration,Changes,Price,On time
ICE direct,3h 20m,0,89.90 €,72%
IC + RE,4h 05m,1,49.90 €,81%
Night train,9h 10m,0,59.00 €,93%
Flixbus,5h 45m,0,19.99 €,66%
Flight,1h 20m,2,120.00 €,78%
"""
SWISS = "Wohnung;Miete CHF;Fläche\nA;1'850.-;72\nB;2'400.-;95\nC;1'450.-;58\n"
JOBS = """Company,Salary,Holidays,Home office days,Commute (min),Team size
Acme,60-65k,28,2-3,35,10-15
Bolt,72k,25,0,20,5-8
Cube,55-58k,30,5,0,40-60
Dyno,68-70k,26,1-2,50,3-5
"""
STORAGE = "Laptop,Price,RAM,SSD\nA,899,16 GB,512 GB\nB,1299,32 GB,1 TB\nC,649,8 GB,256 GB\n"


@pytest.mark.parametrize(
    ("content", "objectives", "unused", "left_out"),
    [
        (TRAINS, "Changes:min,Price:min,On time:max", {"Duration": "3h 20m"}, {"ICE direct", "Flight"}),
        (SWISS, "Fläche:max", {"Miete CHF": "1'850.-"}, {"A", "C"}),
        (JOBS, "Holidays:max,Commute:min", {"Salary": "60-65k", "Home office days": "2-3", "Team size": "10-15"},
         {"Acme", "Bolt", "Dyno"}),
        (STORAGE, "Price:min,RAM:max", {"SSD": "unit"}, set()),
        (STORAGE, "Price:min", {"RAM": "not chosen", "SSD": "unit"}, {"A", "B"}),
        ("Course,Cost (min),Level\nA,100,low\nB,200,high\n", None, {"Level": "texts"}, {"B"}),
    ],
)  # fmt: skip
def test_columns_that_are_not_weighed_and_rows_that_are_left_out_are_named(
    tmp_path: Path, content: str, objectives: str | None, unused: dict[str, str], left_out: set[str]
) -> None:
    path = written(tmp_path, content)
    if objectives is not None:
        with pytest.raises(UndecidedError) as caught:
            load(path)
        readable = {head for head, reason in unused.items() if reason == "not chosen"}
        assert {head for head, reason in caught.value.unused.items() if "names" not in reason} == set(unused) - readable
        assert all(repr(head) in str(caught.value) for head in set(unused) - readable)
    found = load(path, **({} if objectives is None else {"objectives": objectives}))
    for head, reason in unused.items():
        assert any(repr(head) in note and reason in note for note in found.notes)
    (beaten,) = [note for note in found.notes if "left out, because another one" in note] or [""]
    assert set(found.beaten) == left_out and all(repr(name) in beaten for name in left_out)
    call = [] if objectives is None else ["--objectives", objectives]
    for command in ("check", "show"):
        done = CliRunner().invoke(main, [command, str(path), "--json", *call])
        assert json.loads(done.stdout)["notes"][: len(found.notes) - 1] == list(found.notes[:-1])
    done = CliRunner().invoke(main, ["solve", str(path), "--weights", f"{found.objectives[0].name}=1", *call])
    assert done.exit_code == 0 and all(repr(name) in done.stderr for name in [*unused, *left_out])


@pytest.mark.parametrize(
    ("head", "cells", "is_year"),
    [
        ("Baujahr", ("1999", "2004", "2010"), True),
        ("founded (year)", ("1999", "", "2010"), None),
        ("founded year", ("1999", "2004", "2010"), True),
        ("Worst year", ("2008", "1974", "2001"), True),
        ("Worst year", ("−25.1%", "−10.3%", "−35%"), False),
        ("Energy per year (kWh)", ("240", "110", "160"), False),
        ("km per year", ("1999", "2004", "2010"), False),
        ("km/year", ("1999", "2004", "2010"), False),
        ("best year", ("1999 EUR", "2004 EUR", "2010 EUR"), False),
        ("year", ("-5", "3", "4"), False),
        ("year", ("1999.5", "2000", "2001"), False),
    ],
)
def test_only_calendar_years_are_taken_for_years(
    tmp_path: Path, head: str, cells: tuple[str, ...], is_year: bool | None
) -> None:
    rows = "".join(f"i{i},{i},{cell}\n" for i, cell in enumerate(cells))
    with pytest.raises(UndecidedError) as caught:
        load(written(tmp_path, f"item,price,{head}\n{rows}"))
    if is_year is not None:
        assert any("a year" in reason for reason in caught.value.unused.values()) == is_year
        assert len({one.column for one in caught.value.undecided}) == 2 - is_year


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Car,y (max)\nGolf,1\nGolf,2\nUp,3\n", ["Golf (1)", "Golf (2)", "Up"]),
        ("name,y (max)\nGolf,1\nGolf,2\nGolf (1),3\n", ["Golf (2)", "Golf (3)", "Golf (1)"]),
        ("name,y (max)\nGolf,\nGolf,2\nUp,3\n", ["Golf (2)", "Up"]),
    ],
)
def test_rows_of_the_same_name_are_numbered(tmp_path: Path, text: str, names: list[str]) -> None:
    found = load(written(tmp_path, text), keep_dominated=True, gaps="drop")
    assert list(found.names) == names and any("are called 'Golf'" in note for note in found.notes)


def test_items_that_do_not_keep_a_limit_are_named(tmp_path: Path) -> None:
    found = load(written(tmp_path, TRAINS), objectives="Changes:min,Price:min", limit="Changes <= 0")
    assert found.names == ("Flixbus",)
    (limit,) = [note for note in found.notes if "3 of 5" in note]
    (beaten,) = [note for note in found.notes if "left out, because another one" in note]
    assert "'IC + RE', 'Flight'" in limit and "'ICE direct', 'Night train'" in beaten


NAMED = [
    "Duration",
    "Price (€)",
    "Energy per year",
    "year",
    "Rent [EUR] (min)",
    "Size (max)",
    "Notes",
    "id",
    "Stars",
    "Wait (min)",
]
WRITTEN = ["1", "2.5", "-3", "3h 20m", "60-65k", "1'850.-", "★★☆", "512 GB", "1 TB", "yes", "no", "10%", "", "n/a", "1999",
           "low", "2-3", "€5", "1:05", "2024-01-31"]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_every_column_and_every_row_is_used_or_named(data: st.DataObject) -> None:
    heads = data.draw(st.lists(st.sampled_from(NAMED), min_size=1, max_size=5, unique=True))
    kinds = [data.draw(st.lists(st.sampled_from(WRITTEN), min_size=1, max_size=3)) for _ in heads]
    count = data.draw(st.integers(2, 6))
    columns = [[data.draw(st.sampled_from(kind)) for _ in range(count)] for kind in kinds]
    items = [data.draw(st.sampled_from(["Golf", "Up", f"i{i}"])) for i in range(count)]
    frame = pd.DataFrame({"Item": items} | dict(zip(heads, columns, strict=True)))
    options: dict[str, Any] = data.draw(st.sampled_from([{}, {"gaps": "drop"}, {"gaps": "label"}]))
    if data.draw(st.booleans()):
        options["objectives"] = dict.fromkeys(
            data.draw(st.lists(st.sampled_from(heads), min_size=1, unique=True)), "max"
        )
    try:
        try:
            found = load(frame, **options)
        except UndecidedError as error:
            weighed = {name for name, _ in error.objectives}
            for head in heads:
                assert head in error.unused or any(head.startswith(name) for name in weighed)
            answers = {"direction": data.draw(st.sampled_from(["min", "max"])), "gaps": "drop", "decimal": "."}
            said = [answers[one.topic] for one in error.undecided]
            found = load(frame, **decided(error.undecided, said, options, error.objectives))
    except (ProblemError, ArgumentError):
        return  # refused in words
    notes = "\n".join(found.notes)
    for head in heads:
        assert any(head.startswith(o.name) for o in found.objectives) or repr(head) in notes
        assert not any(head.startswith(o.name) for o in found.objectives) or head not in found.labels
    left_out = [note for note in found.notes if note.startswith("left out")]
    named = set(found.names) | {name for name in found.whole.names if any(repr(name) in note for note in left_out)} if (
        found.whole) else set(found.names)  # fmt: skip
    dropped = sum(note.split(": ", 1)[1].count("', '") + 1 for note in left_out if "no number" in note)
    assert len(named) + dropped == count


# --- nobody is recommended anything by a guess ------------------------------------------------------------------------

HEADS = [
    "price",
    "cost [EUR]",
    "time (min)",
    "Flight time (min)",
    "rating",
    "x",
    "year",
    "id",
    "(min)",
    "battery [h]",
    "y (low)",
]
CELLS = ["1", "2.5", "-3", "yes", "no", "4/5", "3/5", "10%", "8 GB", "", "1,299", "€5", "text", "n/a"]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_table_without_said_directions_yields_a_problem(data: st.DataObject) -> None:
    heads = data.draw(st.lists(st.sampled_from(HEADS), min_size=1, max_size=4, unique=True))
    rows = data.draw(
        st.lists(st.lists(st.sampled_from(CELLS), min_size=len(heads), max_size=len(heads)), min_size=2, max_size=5)
    )
    separator = data.draw(st.sampled_from([";", "|", "\t"]))
    options = data.draw(st.sampled_from([{}, {"gaps": "drop"}, {"gaps": "label"}, {"decimal": "."}, {"decimal": ","}]))
    chosen = data.draw(st.sampled_from([None, heads]))
    lines = [separator.join(["item", *heads]), *(separator.join([f"i{i}", *row]) for i, row in enumerate(rows))]
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), "\n".join(lines) + "\n")
        with pytest.raises((ProblemError, ArgumentError)):
            load(
                path,
                **options,
                **({} if chosen is None else {"objectives": objectives_text((h, None) for h in chosen)}),
            )
        frame = pd.DataFrame(rows, columns=heads)
        with pytest.raises((ProblemError, ArgumentError)):
            load(frame, **options)


def test_an_objective_in_min_says_that_this_is_its_unit() -> None:
    for unit in ("min", "max"):
        with pytest.warns(ProblemWarning, match="the second argument is the unit"):
            assert Objective("time", unit).goal == "max"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Objective("time", "min", "max").goal == "max" == Objective("time", "h").goal
        assert type(Objective("x").goal) is str and repr(Objective("x")) == "Objective(name='x', unit='', goal='max')"


# --- frames ------------------------------------------------------------------------------------------------------------


def test_frames_load_as_files_do(tmp_path: Path) -> None:
    path, chosen = written(tmp_path, PHONES), {"price": "min", "camera": "max"}
    file = load(path, objectives=chosen)
    for frame in (pd.read_csv(path), pl.read_csv(path), pd.read_csv(path).set_index("name")):
        assert asks(frame)["price: direction"] == "min"
        for found in (load(frame, objectives=chosen), Catalogue.from_frame(frame, objectives=chosen)):
            assert found.fingerprint == file.fingerprint and found.labels == file.labels
    assert Interview(load(pl.read_csv(path), objectives=chosen)).ask() is not None


@pytest.mark.parametrize("library", [pd, pl])
def test_cells_of_frames_are_what_they_are(library: Any) -> None:
    frame = library.DataFrame({
        "name": ["a", "b", "c"], "price (min)": [1, 2, 3], "y (max)": [1.5, None, 0.5], "touch": [True, False, True],
        "since": [datetime.date(2024, 5, 17)] * 3, "tags": [["x"], [], ["y"]],
    })  # fmt: skip
    assert asks(frame) == {"y: gaps": None}
    found = load(frame, gaps="drop", keep_dominated=True)
    assert found.values.tolist() == [[1, 1.5], [3, 0.5]] and found.labels["touch"] == ("true", "true")
    assert any("'tags' holds list" in note for note in found.notes)
    whole = library.DataFrame({"x (max)": np.arange(3), "y (min)": np.arange(3)})
    assert load(whole).names == ("row 1", "row 2", "row 3")


# --- the terminal ------------------------------------------------------------------------------------------------------


class Terminal:
    """Standard input and error that say they are a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_asks_once_and_says_how_to_repeat_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, LAPTOPS)
    said = iter(["l", "", "more", "what", "n", "", "d"])
    asked: list[str] = []

    def prompt(text: str, default: str, **_: Any) -> str:
        asked.append(text)
        return next(said) or default

    monkeypatch.setattr(deciding.click, "prompt", prompt)
    monkeypatch.setattr(deciding, "sys", type("", (), {"stdin": Terminal(), "stderr": Terminal()}))
    source = Source(str(path), {})
    found = source.read()
    assert [(o.name, o.goal) for o in found.objectives] == [
        ("price", "min"), ("RAM", "max"), ("rating", "max"), ("battery", "max"),
    ]  # fmt: skip
    assert asked[0].startswith("price") and asked[1].endswith("8 GB to 16 GB  [more]") and len(asked) == 7
    wanted = f"{path} --objectives price:min,RAM:max,rating:max,battery:max --with gaps=drop"
    assert f"To repeat this: tradeoff ask {wanted}" in capsys.readouterr().err
    assert source.data()["options"] == {"objectives": "price:min,RAM:max,rating:max,battery:max", "gaps": "drop"}
    assert load(path, **source.data()["options"]).fingerprint == found.fingerprint


def test_a_terminal_names_what_is_not_weighed_before_it_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []

    def prompt(text: str, default: str, **_: Any) -> str:
        said.append(capsys.readouterr().err)
        return "less"

    monkeypatch.setattr(deciding.click, "prompt", prompt)
    monkeypatch.setattr(deciding, "sys", type("", (), {"stdin": Terminal(), "stderr": Terminal()}))
    found = Source(str(written(tmp_path, TRAINS)), {}).read()
    assert len(found.objectives) == 3 and "Duration" in said[0] and "'3h 20m'" in said[0]


@pytest.mark.parametrize(
    ("content", "chosen"), [(PHONES, "price:max,battery:max,camera:max"), (PHONES, "camera:max,price:min")]
)
def test_a_log_knows_the_directions_it_was_made_with(tmp_path: Path, content: str, chosen: str) -> None:
    path, log = written(tmp_path, content), tmp_path / "log.jsonl"
    call = ["ask", str(path), "--keep-dominated"]
    begun = CliRunner().invoke(main, [*call, "--objectives", chosen, "--log", str(log)], input="a\nq\n")
    assert begun.exit_code == 0, begun.output
    assert (
        f"--objectives {chosen} --keep-dominated" in begun.output
        or f"--keep-dominated --objectives {chosen}" in begun.output
    )
    resumed = CliRunner().invoke(main, [*call, "--resume", str(log)], input="q\n")
    wanted = 0 if chosen.startswith("price") else 3  # in another order it is another problem, which has to be named
    assert resumed.exit_code == wanted, resumed.output
