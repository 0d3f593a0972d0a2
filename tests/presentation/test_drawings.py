"""Drawings: what they hold, that they are safe whatever things are called, and that everything in them has a style."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tradeoff
from tradeoff.mdp.model import MDP
from tradeoff.presentation import svg
from tradeoff.presentation.maps import location_name, map_layout
from tradeoff.presentation.risk import risks
from tradeoff.presentation.text import one_line, text_width, wrap

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "<script>alert(1)</script>",
    "</text></svg><img src=x onerror=alert(1)>",
    "]]>&amp;&#x41;",
    "\x1b[31mred\x00\x07",
    "\ud800\ufffe\u202eevil",
    "$\\frac{1}{0}$ 100% $HOME",
    '" onload="x',
    "=cmd()|' /C calc'!A0",
    "漢字の名前" * 9,
    "W" * 120,
    "a b" * 40,
]


def squeezed(text: str) -> str:
    return "".join(one_line(text).split())


# --- measuring and wrapping ------------------------------------------------------------------------------------------


@given(st.text(max_size=200), st.floats(60, 400), st.booleans())
def test_wrapping_loses_nothing_and_fits(text: str, width: float, bold: bool) -> None:
    lines = wrap(text, width, 14, bold)
    assert squeezed("".join(lines)) == squeezed(text)
    assert lines and all(text_width(line, 14, bold) <= width + 1e-9 for line in lines)
    if all(text_width(word, 14, bold) <= width for word in one_line(text).split()):
        assert " ".join(lines) == " ".join(one_line(text).split())  # broken between words only


def test_no_letter_is_wider_than_it_is_taken_to_be() -> None:
    from matplotlib.font_manager import FontProperties, findfont, get_font
    from matplotlib.ft2font import LoadFlags

    for weight in ("normal", "bold"):
        font = get_font(findfont(FontProperties(family="DejaVu Sans", weight=weight)))
        font.set_size(100, 72)
        letters = [chr(code) for code in (*range(32, 127), *range(161, 384), *range(0x410, 0x450))]
        for letter in filter(str.isprintable, letters):
            glyph = font.load_char(ord(letter), flags=LoadFlags.NO_HINTING)
            assert glyph.linearHoriAdvance / 65536 <= text_width(letter, 100, weight == "bold"), letter


# --- drawings of the page --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("counts", "total"), [([90, 8, 2], 100), ([100], 100), ([34, 33, 33], 100)])
def test_a_hundred_icons_are_shared_out_as_the_counts_say(counts: list[int], total: int) -> None:
    drawn = str(svg.icon_array(counts, total, "words"))
    paths = re.findall(r'class="s(\d)" d="([^"]*)"', drawn)
    assert [path.count("M") for _, path in paths] == counts
    assert len(set(re.findall(r"M(\d+) (\d+)", drawn))) == 100


def test_a_thousand_squares_are_shared_out_as_the_counts_say() -> None:
    drawn = str(svg.icon_array([790, 128, 82], 1000, "words"))
    paths = re.findall(r' d="([^"]*)"', drawn)
    assert [sum((int(run) + 1) // 4 for run in re.findall(r"h(\d+)", path)) for path in paths] == [790, 128, 82]


def test_bars_are_on_the_scale_they_are_given() -> None:
    def filled(drawn: svg.Svg) -> tuple[str, ...]:
        return re.search(r'class="fill" x="([\d.]+)" width="([\d.]+)"', drawn).groups()  # type: ignore[union-attr]

    assert filled(svg.bar(10, (0, 40), True)) == ("0", "25")
    assert filled(svg.bar(-10, (-10, 30), False)) == ("0", "25")
    assert 'class="bar better"' in svg.bar(1, (0, 1), True) and 'class="bar other"' in svg.bar(1, (0, 1), False)
    assert "band" in svg.range_bar(0.5, (0.2, 0.7)) and "band" not in svg.range_bar(0.5, None)


def test_hostile_names_stay_inert_in_a_map() -> None:
    start, *ends = (f"x{HOSTILE[i]}x" for i in (0, 2, 8))
    rows = [(start, f"x{HOSTILE[i]}x", 0.5, end, (i, j)) for i in (1, 4) for j, end in enumerate(ends)]
    places = {name: (i, i % 2) for i, name in enumerate((start, *ends))}
    objectives = [tradeoff.Objective(HOSTILE[0], HOSTILE[1]), tradeoff.Objective(HOSTILE[3], HOSTILE[8], "min")]
    layout = map_layout(MDP.from_rows(rows, ends=ends, start=start, horizon=2, objectives=objectives, places=places))
    assert layout is not None
    drawn = [svg.map_defs(layout), svg.map_of(layout, [(start, ends[0])], HOSTILE[6])]
    for root in (ET.fromstring(one) for one in drawn if one is not None):
        tags = {element.tag.removeprefix(SVG) for element in root.iter()}
        assert tags <= {"svg", "title", "desc", "rect", "path", "circle", "text", "tspan", "defs", "g", "use"}
        for element in root.iter():
            assert not {name for name in element.attrib if name.startswith("on") or name == "style"}
            assert element.get("href", "#").startswith("#") and "url(" not in " ".join(element.attrib.values())


def test_every_class_of_a_drawing_has_a_style() -> None:
    trip = tradeoff.load("commute")
    layout = map_layout(trip)
    (best,) = trip.best([[3, 0, 1, 0, 0]])
    lottery = trip.show(best)
    paths = [trajectory.states for trajectory in lottery.trajectories]
    assert layout is not None
    drawn = [svg.icon_array([90, 8, 2], 100, "words"), svg.map_defs(layout), svg.map_of(layout, paths, "words")]
    drawn += [svg.bar(1, (0, 2), True), svg.range_bar(0.5, (0.2, 0.7)), *map(svg.quantile_dots, risks(lottery))]
    shapes = re.findall(r'<(?:path|circle|rect)[^>]* class="([^"]+)"', "".join(map(str, drawn)))
    used = {name for classes in shapes for name in classes.split()}
    assert {"s0", "l0", "way", "case", "roads", "dots", "start", "end", "track", "fill"} <= used
    rules = (svg.STATIC / "drawing.css").read_text()
    assert all(re.search(rf"\.{name}\b", rules) for name in used)


def test_the_flat_is_drawn_as_a_floor_plan_and_the_town_as_a_map() -> None:
    flat, town = map_layout(tradeoff.load("vacuum")), map_layout(tradeoff.load("commute"))
    assert flat is not None and town is not None
    assert flat.tile > 40 and town.tile == 0
    named = {" ".join(label.lines) for label in flat.labels if label}
    assert {"bookshelf", "rug", "kitchen table", "linen cupboard"} <= named
    assert {"home", "airport"} <= {" ".join(label.lines) for label in town.labels if label}
    for layout in (flat, town):
        assert all(0 < x < 360 and 0 < y < layout.height for x, y in layout.nodes)
    assert map_layout(tradeoff.load("portfolio")) is None and map_layout(tradeoff.load("coffee")) is None


def test_a_map_marks_where_stories_start_and_end() -> None:
    layout = map_layout(tradeoff.load("commute"))
    assert layout is not None
    drawn = svg.map_of(layout, [("home", "at the airport")], "words")
    assert drawn is not None and drawn.count('class="start"') == drawn.count('class="end"') == 1
    assert svg.map_of(layout, [("nowhere",)], "words") is None


def test_locations_are_called_by_what_their_states_have_in_common() -> None:
    assert location_name(["rug 12/16 dirty", "rug 11/16"]) == "rug"
    assert location_name(["in a half-empty subway", "in a crowded subway"]) == "subway"
    assert location_name(["half-way by bicycle in the sun", "half-way by bicycle in the rain"]) == "half-way by bicycle"
    assert location_name(["the", "a"])  # never nothing


def roads_of(drawing: str, name: str) -> set[str]:
    """Return the pieces of the path of this class."""
    found = re.search(rf'<path class="{name}" d="([^"]*)"', drawing)
    return set(re.findall(r"M[^M]*", found[1])) if found else set()


def test_one_map_shows_where_two_plans_differ() -> None:
    trip = tradeoff.load("commute")
    layout = map_layout(trip)
    assert layout is not None
    drive = ["home", "at the highway ramp", "on the free highway", "at the airport"]
    ride = ["home", "at the subway station", "in a half-empty subway", "at the airport"]
    found = svg.compared_map(layout, [drive], [ride])
    assert found is not None
    drawing, words = found
    assert "Only A" in words and roads_of(drawing, "l0 way") and roads_of(drawing, "l1 way")
    assert not roads_of(drawing, "l0 way") & roads_of(drawing, "l1 way") and not roads_of(drawing, "way both")
    both = svg.compared_map(layout, [drive, ride], [ride])
    assert both is not None and roads_of(both[0], "way both") == roads_of(drawing, "l1 way")
    assert roads_of(both[0], "l0 way") == roads_of(drawing, "l0 way") and not roads_of(both[0], "l1 way")
    same = svg.compared_map(layout, [drive], [drive])
    assert same is not None and "the same ways" in same[1]
    assert svg.compared_map(layout, [["nowhere"]], [["nowhere"]]) is None


def test_dots_are_twenty() -> None:
    trip = tradeoff.load("commute")
    (best,) = trip.best([[1, 1, 1, 1, 1]])
    for risk in risks(trip.show(best)):
        drawing = svg.quantile_dots(risk)
        chances = re.search(r'class="chances"[^>]* d="([^"]*)"', drawing)
        assert chances is not None and chances[1].count("M") == 20
        assert risk.words in drawing


def test_tiles_are_not_labelled_with_their_coordinates() -> None:
    names = [f"row {r}, column {c}" for r in range(3) for c in range(3)]
    rows = [(names[i], "go", 1.0, names[(i + 1) % 9], 1.0) for i in range(9)]
    places = {name: (float(i % 3), -float(i // 3)) for i, name in enumerate(names)}
    layout = map_layout(MDP.from_rows(rows, horizon=9, start=names[0], places=places))
    assert layout is not None and layout.tile and not any(layout.labels)
