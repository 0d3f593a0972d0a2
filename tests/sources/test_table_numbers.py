"""Numbers in tables: each is read if there is one reading, and refused with its place otherwise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sources.test_spreadsheets import read
from tradeoff import ArgumentError, ProblemError, load
from tradeoff.apps.cli.main import main
from tradeoff.sources.tables.cells import amount

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
