from __future__ import annotations

import itertools
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tradeoff
from tests.messages import refused
from tradeoff.errors import ArgumentError
from tradeoff.model import Lottery, Objective, Trajectory
from tradeoff.representation.drawing import SHOWN, lottery_html, lottery_picture
from tradeoff.representation.picture import Box, Picture, Rectangle, Text, inert, text_width, wrap
from tradeoff.representation.words import heading_words, heaviest_first, outcome_words, path_words, share_words

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
names = st.sampled_from(HOSTILE) | st.text(min_size=1, max_size=60).filter(lambda text: bool(text.strip()))


@st.composite
def lotteries(draw: st.DrawFn) -> Lottery:
    k = draw(st.integers(1, 6))
    named = draw(st.lists(names, min_size=k, max_size=k, unique=True))
    goals, units = st.sampled_from(["max", "min"]), st.sampled_from(["", "min", "micromorts per year", *HOSTILE])
    objectives = tuple(Objective(name, draw(units), draw(goals)) for name in named)
    count = draw(st.integers(1, k + 1))
    stories = []
    for _ in range(count):
        length = draw(st.integers(0, 6))
        states = tuple(draw(st.lists(names, min_size=length + 1, max_size=length + 1)))
        actions = tuple(draw(st.lists(names, min_size=length, max_size=length)))
        amounts = st.sampled_from([0.0, 1.0, -1e6]) | st.floats(-1e12, 1e12)
        outcome = np.array(draw(st.lists(amounts, min_size=k, max_size=k)))
        stories.append(Trajectory(states, actions, draw(st.sampled_from([1.0, 0.3])), outcome))
    shares = np.array(draw(st.lists(st.floats(1e-9, 1), min_size=count, max_size=count)))
    return Lottery(objectives, shares / shares.sum(), tuple(stories))


@st.composite
def pictures(draw: st.DrawFn) -> tuple[Lottery, str, Picture]:
    lottery, title = draw(lotteries()), draw(st.just("") | names)
    states = sorted({state for story in lottery.trajectories for state in story.states})
    points = st.floats(-1e3, 1e3) | st.sampled_from([0.0, 1.0, 1e300, -1e300])
    places = {state: (draw(points), draw(points)) for state in states if draw(st.booleans())}
    width = draw(st.sampled_from([280, 360, 640, 900]))
    return lottery, title, lottery_picture(lottery, title, places or None, width=width)


def squeezed(text: str) -> str:
    return "".join(inert(text).split())


def expected_texts(lottery: Lottery) -> list[str]:
    lottery = heaviest_first(lottery)
    outcomes, average = outcome_words(lottery)
    paths = [step for story in lottery.trajectories for step in path_words(story)]
    named = [objective.name for objective in lottery.objectives]
    return [*share_words(lottery.weights), *paths, *itertools.chain(*outcomes), *average, *named]


def overlap(one: Box, other: Box) -> bool:
    slack = 1e-6
    apart = one[2] <= other[0] + slack or other[2] <= one[0] + slack
    return not (apart or one[3] <= other[1] + slack or other[3] <= one[1] + slack)


def inside(one: Box, other: Box) -> bool:
    slack = 1e-6
    begins = one[0] >= other[0] - slack and one[1] >= other[1] - slack
    return begins and one[2] <= other[2] + slack and one[3] <= other[3] + slack


# --- what a picture holds --------------------------------------------------------------------------------------------


@given(pictures())
def test_the_svg_is_xml_that_holds_every_text_and_nothing_active(drawn: tuple[Lottery, str, Picture]) -> None:
    lottery, title, picture = drawn
    root = ET.fromstring(picture.svg())
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        "svg", "title", "desc", "rect", "polyline", "circle", "text",
    }  # fmt: skip
    for element in root.iter():
        assert not {name for name in element.attrib if name.startswith("on") or "href" in name or name == "style"}
        assert "url(" not in " ".join(element.attrib.values())
    told = squeezed("".join(element.text or "" for element in root.iter(f"{SVG}text")))
    for text in [title, heading_words(lottery), *expected_texts(lottery)]:
        assert squeezed(text) in told
    assert root[0].tag == f"{SVG}title" and root[0].text == inert(title or "What can happen")
    assert root[1].tag == f"{SVG}desc" and root[1].text is not None
    assert all(squeezed(text) in squeezed(root[1].text) for text in expected_texts(lottery))


@given(pictures())
def test_no_text_overlaps_another_or_leaves_the_picture(drawn: tuple[Lottery, str, Picture]) -> None:
    picture = drawn[2]
    boxes = [text.box for text in picture.texts]
    assert all(inside(box, (0, 0, picture.width, picture.height)) for box in boxes)
    for one, other in itertools.combinations(boxes, 2):
        assert not overlap(one, other)
    for shape in picture.shapes:
        if isinstance(shape, Rectangle):
            area = (shape.x, shape.y, shape.x + shape.width, shape.y + shape.height)
            assert inside(area, (0, 0, picture.width, picture.height))
            assert all(inside(box, area) or not overlap(box, area) for box in boxes)


def test_a_long_path_leaves_out_its_middle() -> None:
    states = tuple(f"stop {i}" for i in range(1001))
    story = Trajectory(states, ("on",) * 1000, 1.0, np.zeros(1))
    picture = lottery_picture(Lottery((Objective("x"),), [1.0], (story,)))
    told = [text.text for text in picture.texts]
    assert "… 972 more …" in told and "stop 0: on" in told and "stop 1000" in told
    assert picture.height < 60 * SHOWN


def commute() -> tuple[Lottery, dict[str, tuple[float, float]]]:
    trip = tradeoff.load("commute")
    (best,) = trip.best([[3, 0, 1, 0, 0]])
    return trip.show(best), trip.places  # type: ignore[union-attr]


def test_each_trajectory_has_a_map_with_its_start_and_end() -> None:
    lottery, places = commute()
    told = [text.text for text in lottery_picture(lottery, places=places).texts]
    assert told.count("start") == told.count("end") == len(lottery.trajectories)
    assert "start" not in [text.text for text in lottery_picture(lottery).texts]
    only_home = [text.text for text in lottery_picture(lottery, places={"home": (1.0, 2.0)}).texts]
    assert "start" in only_home and "end" not in only_home
    elsewhere = {"nowhere": (0.0, 0.0)}
    assert "start" not in [text.text for text in lottery_picture(lottery, places=elsewhere).texts]


def test_what_cannot_be_drawn_is_refused() -> None:
    lottery, _ = commute()
    with refused(ArgumentError, "width", 280, 100):
        lottery_picture(lottery, width=100)
    with refused(ArgumentError, "x and y"):
        lottery_picture(lottery, places={"home": (float("nan"), 0.0)})


# --- measuring and wrapping ------------------------------------------------------------------------------------------


@given(st.text(max_size=200), st.floats(60, 400), st.booleans())
def test_wrapping_loses_nothing_and_fits(text: str, width: float, bold: bool) -> None:
    lines = wrap(text, width, 14, bold)
    assert squeezed("".join(lines)) == squeezed(text)
    assert lines and all(text_width(line, 14, bold) <= width + 1e-9 for line in lines)
    if all(text_width(word, 14, bold) <= width for word in inert(text).split()):
        assert " ".join(lines) == " ".join(inert(text).split())  # broken between words only


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


# --- PNG and HTML ----------------------------------------------------------------------------------------------------


def test_a_png_has_the_size_asked_for(tmp_path: Path) -> None:
    lottery, places = commute()
    picture = lottery_picture(lottery, "Getting to the airport", places, width=400)
    picture.png(tmp_path / "x.png", zoom=1.5)
    data = (tmp_path / "x.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    width, height = (int.from_bytes(data[i : i + 4]) for i in (16, 20))
    assert width == 600 and height == pytest.approx(1.5 * picture.height, abs=2)


def test_hostile_names_stay_inert_in_a_png(tmp_path: Path) -> None:
    stories = tuple(Trajectory((name,), (), 1.0, np.array([float(i)])) for i, name in enumerate(HOSTILE))
    lottery = Lottery((Objective("$x^$"),), np.full(len(stories), 1 / len(stories)), stories)
    lottery_picture(lottery, "$\\oops$").png(tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_too_tall_for_the_painter_is_made_coarser(tmp_path: Path) -> None:
    Picture(300, 90_000, (Text(10, 20, "x"),), "tall").png(tmp_path / "x.png")
    data = (tmp_path / "x.png").read_bytes()
    assert int.from_bytes(data[20:24]) <= 30_000


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with refused(ArgumentError, "matplotlib", "pip install '.[plot]'"):
        Picture(10, 10, (), "").png(tmp_path / "x.png")


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@given(lotteries())
def test_the_table_holds_every_text_and_nothing_active(lottery: Lottery) -> None:
    seen = Seen()
    seen.feed(lottery_html(lottery))
    seen.close()
    assert seen.open == []
    assert seen.tags <= {"table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td", "br"}
    for text in expected_texts(lottery):
        assert squeezed(text) in squeezed(seen.text)
