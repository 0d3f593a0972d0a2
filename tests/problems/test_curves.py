"""Curves: pieces add up to every curve they promise, items that linear preferences never choose can win, and answers tell."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from tradeoff import ArgumentError, Catalogue, Interview, Objective, load
from tradeoff.apps.cli.main import main
from tradeoff.evidence import Answer
from tradeoff.model import EQUAL, FIRST, SKIP, Option, Question, Reply
from tradeoff.presentation.linearity import curves_that_fit, linear_words
from tradeoff.presentation.question import objective_rows
from tradeoff.problems.curves import CurvedCatalogue, curved, fits, never_best

COMPROMISE = "name,comfort (max),speed (max)\nA,10,0\nB,0,10\nC,4.8,4.8\nD,9,1.5\nE,1.5,9\n"


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_pieces_add_up_to_curves(data: st.DataObject) -> None:
    values = data.draw(st.lists(st.integers(0, 20), min_size=3, max_size=8))
    goal = data.draw(st.sampled_from(["max", "min"]))
    plain = Catalogue(np.array(values, dtype=float)[:, None], [Objective("x", "h", goal)])
    shape = data.draw(st.sampled_from(["concave", "monotone"]))
    bent = curved(plain, f"{shape}:{data.draw(st.integers(2, 4))}")
    weights = np.array(
        data.draw(st.lists(st.floats(0, 1), min_size=len(bent.objectives), max_size=len(bent.objectives)))
    )
    order = np.argsort(plain.gains[:, 0], kind="stable")
    goods, worth = plain.gains[order, 0], (bent.gains @ weights)[order]
    assert np.all(np.diff(worth) >= -1e-12)  # more is never worth less
    slopes = [(b - a) / (y - x) for x, y, a, b in zip(goods, goods[1:], worth, worth[1:], strict=False) if y > x + 1e-9]
    if shape == "concave":
        assert all(later <= sooner + 1e-9 for sooner, later in itertools.pairwise(slopes))
        assert np.allclose(bent.gains[:, -1], plain.gains[:, 0])  # a straight line is such a curve
    else:
        sizes = np.abs(bent.scale) / np.abs(plain.scale[0])
        assert np.allclose(bent.gains @ np.where(bent.matters, sizes, 0.0), plain.gains[:, 0])


def test_a_compromise_can_win_with_curves(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(COMPROMISE)
    plain, bent = load(path), load(path, curves="concave:2")
    assert isinstance(plain, Catalogue) and isinstance(bent, CurvedCatalogue)
    assert never_best(plain) == 1 and bent.fingerprint == plain.curved("concave:2").fingerprint != plain.fingerprint
    assert "1 item that nothing beats can never win" in linear_words(plain)
    assert "diminishing returns" in linear_words(bent) and linear_words(load(path, curves="monotone:2")) == ""
    every = np.random.default_rng(0).random((300, 2))
    assert "C" not in {a.plan.name for a in plain.best(every)}  # type: ignore[union-attr]
    first = [1.0 if "up to" in o.name else 0.0 for o in bent.objectives]
    assert bent.best([first])[0].plan.name == "C"  # type: ignore[union-attr]
    a, c = bent.option("A"), bent.option("C")
    assert [row.name for row in objective_rows(bent, [a, c])] == ["comfort", "speed"]  # people read what they know


def test_interviews_with_curves_end_and_find_the_compromise() -> None:
    plain = Catalogue(
        [[10, 0], [0, 10], [4.8, 4.8], [9, 1.5], [1.5, 9]], ["comfort", "speed"], ["A", "B", "C", "D", "E"]
    )
    worth = np.minimum(plain.gains, 0.48).sum(axis=1)
    found = {}
    for name, problem in (("linear", plain), ("curves", curved(plain, "concave:2"))):
        interview = Interview(problem)
        while (question := interview.ask()) is not None:
            first, second = (worth[option.plan.index] for option in question.options)  # type: ignore[union-attr]
            gap = first - second
            interview.tell("equal" if abs(gap) < 0.01 else "first" if gap > 0 else "second")
        found[name] = interview.recommendation.option.plan.name  # type: ignore[union-attr]
    assert found["linear"] != "C" and found["curves"] == "C"


def test_answers_tell_when_curves_are_needed() -> None:
    plain = Catalogue([[10, 0], [0, 10], [4.8, 4.8]], ["x", "y"], ["A", "B", "C"])
    a, b, c = (plain.option(name) for name in "ABC")

    def answered(*given: tuple[Option, Option, Reply]) -> list[Answer]:
        return [Answer(Question((one, other)), reply) for one, other, reply in given]

    assert curves_that_fit(plain, answered((c, a, FIRST), (c, b, FIRST))) == "concave"
    assert curves_that_fit(plain, answered((c, a, FIRST), (a, b, EQUAL), (a, b, SKIP))) is None
    assert curves_that_fit(plain, answered((a, b, FIRST), (b, a, FIRST))) is None  # no curves fit that
    assert fits(plain.gains, [(0, 2), (1, 2)])


def test_the_terminal_offers_curves_and_takes_them(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("name,comfort (max),speed (max)\nA,10,0\nB,0,10\nC,4.8,4.8\nD,6,4.5\nE,4.5,6\n")
    done = CliRunner(env={"COLUMNS": "150"}).invoke(main, ["ask", str(path)], input="q\n")
    assert "We assume that each unit counts the same" in done.output, done.output
    bent = CliRunner(env={"COLUMNS": "150"}).invoke(main, ["ask", str(path), "--curves", "concave"], input="a\nq\n")
    assert bent.exit_code == 0 and "We assume that" not in bent.output and "--curves concave --log" in bent.output


@pytest.mark.parametrize("shape", ["convex", "concave:1", "concave:99", "concave:x", ""])
def test_other_curves_are_refused(shape: str) -> None:
    with pytest.raises(ArgumentError, match="write concave or monotone"):
        load("coffee", curves=shape)


def test_only_tables_have_curves() -> None:
    with pytest.raises(ArgumentError, match="is not a table of items"):
        load("dependent", curves="concave")
