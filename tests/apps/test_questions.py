"""A question fits one screen of a terminal, and what is cut there can be opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

import tradeoff
from tradeoff.apps.cli.cards import lottery_of
from tradeoff.apps.cli.questions import prompt_lines, question_details, question_lines
from tradeoff.presentation.cards import Card, ComparisonRow, LabelRow, Pair, pair
from tradeoff.presentation.result import certificate_while_asking
from tradeoff.presentation.sentences import ASKED_AGAIN, progress
from tradeoff.presentation.stories import Repeat, Story
from tradeoff.users import LinearUser

DATA = Path(__file__).parents[2] / "docs" / "how-to" / "data"
SIZES = [(80, 24), (40, 24), (120, 50)]
TOWN = {"objectives": "length:min,travel_time:min,climb:min", "origin": "A1", "destination": "E5"}
PROBLEMS: dict[str, dict[str, Any]] = {
    "commute": {}, "portfolio": {}, "vacuum": {}, "coffee": {}, str(DATA / "laptops.csv"): {}, str(DATA / "town.graphml"): TOWN,
}  # fmt: skip


def opened(shown: Pair, width: int) -> str:
    """Return the details as one line, however they are wrapped."""
    out = Console(width=width, height=24, no_color=True)
    with out.capture() as found:
        out.print(question_details(shown, width))
    return "".join(c for c in found.get() if not c.isspace() and c not in "│┌┐└┘─┬┴├┤┼")


def check(shown: Pair, heading: str, width: int, height: int, note: str = "", certainty: str = "") -> None:
    lines = question_lines(shown, heading, width, height, note=note, certainty=certainty)
    assert len(lines) + len(prompt_lines(width)) <= height, "\n".join(line.plain for line in lines)
    assert max(map(cell_len, [*(line.plain for line in lines), *prompt_lines(width)])) <= width
    assert "d details" in " ".join(prompt_lines(width))
    whole, inside = "".join("".join(line.plain for line in lines).split()), opened(shown, width)
    texts = [*shown.names, *(name for name, _ in shown.same), *(text for _, text in shown.same)]
    texts += [text for row in shown.differing for text in (row.name, *row.amounts, row.difference)]
    texts += [text for row in shown.other for text in (row.name, *row.texts)]
    for text in ("".join(text.split()) for text in texts):
        assert text in inside
        assert text in whole or "..." in whole or "(dshowsall)" in whole, (text, whole)
    for row in shown.rows:
        assert "".join(row.description.split()) in inside


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_question_of_an_interview_fits_one_screen(name: str) -> None:
    problem = tradeoff.load(name, **PROBLEMS[name])
    for seed in range(2):
        weights = [1.0 + (3 * j + 2 * seed) % 4 for j in range(len(problem.objectives))]
        person = LinearUser.scaled(problem, weights, 0.01)
        interview = tradeoff.Interview(problem, sides=seed, seed=seed)
        asked = 0
        while (shown := interview.next()) is not None:
            question = interview.ask()
            assert question is not None
            asked += 1
            found = pair(problem, shown.a, shown.b, (lottery_of(problem, shown.a), lottery_of(problem, shown.b)))
            for width, height in SIZES:
                certainty = certificate_while_asking(interview.recommendation)
                note = ASKED_AGAIN if shown.again else ""
                check(found, progress(asked, interview.at_most), width, height, note, certainty)
            lines = question_lines(found, progress(asked, interview.at_most), 80, 24)
            plain = " ".join(" ".join(line.plain for line in lines).split())
            for row in found.differing:  # of the bundled problems everything fits
                assert row.difference in plain
            interview.tell(person(question))
        assert asked > 1


texts = st.text(st.characters(categories=["L", "N", "Zs"]), min_size=1, max_size=200).map(
    lambda text: " ".join(text.split()) or "x"
)


@st.composite
def shown_pairs(draw: st.DrawFn) -> Pair:
    rows = tuple(
        ComparisonRow(
            f"{j}{draw(texts)}", "more is better", (f"{j} x", f"{j + 1} x"), (j, j + 1), (0, 50),
            draw(st.sampled_from(["A", "B", "B", ""])), "1 x", "more", draw(st.floats(0, 1)), draw(st.just("") | texts),
        )
        for j in range(draw(st.integers(1, 30)))
    )  # fmt: skip
    labels = tuple(LabelRow(f"label {j}", (draw(texts), draw(texts))) for j in range(draw(st.integers(0, 12))))
    card = Card("", (Story("", False, (Repeat((("here", "go"),)),), (), ("here",)),), (), None)
    return Pair((draw(texts), draw(texts)), "", "on average", (card, card), rows, labels)


@given(shown_pairs(), st.sampled_from([(80, 24), (40, 24), (60, 16), (100, 40)]), texts)
def test_whatever_it_is_about_a_question_fits_and_can_be_opened(shown: Pair, size: tuple[int, int], words: str) -> None:
    check(shown, "Question 1, at most 29 more", *size, ASKED_AGAIN, words)
