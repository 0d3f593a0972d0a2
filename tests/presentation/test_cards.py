from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradeoff.model import Objective
from tradeoff.presentation.cards import amounts, card, changes
from tradeoff.presentation.question import advantages, objective_rows, question_table
from tradeoff.presentation.stories import heaviest_first
from tradeoff.problem import dilute
from tradeoff.problems.catalogue import Catalogue

OBJECTIVES = (Objective("time", "min", "min"), Objective("joy", "points", "max"), Objective("late", "%", "min"))
OTHER = {"A": "B", "B": "A", "": ""}

values = st.floats(-1e6, 1e6).map(lambda x: round(x, 6))
tables = st.lists(st.tuples(values, values, values), min_size=2, max_size=4, unique=True)


@given(tables)
def test_swapping_the_sides_swaps_everything(table: list[tuple[float, ...]]) -> None:
    problem = Catalogue(table, OBJECTIVES)
    first, second = problem.option(0), problem.option(1)
    for one, other in zip(
        objective_rows(problem, [first, second]), objective_rows(problem, [second, first]), strict=True
    ):
        assert (one.amounts, one.lengths) == (other.amounts[::-1], other.lengths[::-1])
        assert (one.better, one.comparative, one.pull) == (OTHER[other.better], other.comparative, -other.pull)


@given(tables)
def test_the_better_side_is_better_and_rounding_is_no_difference(table: list[tuple[float, ...]]) -> None:
    problem = Catalogue(table, OBJECTIVES)
    rows = objective_rows(problem, [problem.option(0), problem.option(1)])
    for j, row in enumerate(rows):
        left, right = table[0][j], table[1][j]
        gain = (right - left) * OBJECTIVES[j].sign
        if row.better:
            assert (gain > 0) == (row.better == "B") == (row.pull > 0)  # a longer bar is always better
        else:
            assert abs(gain) <= 1e-9 * max(abs(left), abs(right), abs(problem.scale[j]))
        assert min(row.lengths) >= 0 and max(row.lengths) <= 1
        assert abs(row.pull) == pytest.approx(row.part, abs=1e-9)
    better = {row.better for row in rows} - {""}
    assert [line[0] for line in advantages(rows)] == sorted(better)


@given(tables)
def test_an_option_differs_from_itself_in_nothing(table: list[tuple[float, ...]]) -> None:
    problem = Catalogue(table, OBJECTIVES)
    one = problem.option(0)
    assert {row.better for row in objective_rows(problem, [one, one])} == {""}
    assert changes(problem, one, one) == [""] * 3


def test_differences_are_seen_from_the_better_side() -> None:
    problem = Catalogue([[40, 5, 0], [60, 7, 0]], OBJECTIVES)
    rows = objective_rows(problem, [problem.option(0), problem.option(1)])
    assert [(row.better, row.comparative if row.better else "") for row in rows] == [
        ("A", "20 min less"), ("B", "2 points more"), ("", ""),
    ]  # fmt: skip
    assert changes(problem, problem.option(0), problem.option(1)) == ["20 min more", "2 points more", ""]
    assert changes(problem, problem.option(0), problem.option(1), least=2.0) == ["", "", ""]
    assert [row.amount for row in amounts(problem, problem.option(1))] == ["60 min", "7 points", "0 %"]


def test_both_sides_of_a_pair_count_out_of_the_same_number() -> None:
    problem = Catalogue(np.diag([10.0, 5.0, 3.0]), OBJECTIVES, ["x", "y", "z"], labels={"kind": ["p", "q", "r"]})
    left, right = dilute(problem.option(0), 0.005), problem.option(1)
    lotteries = [heaviest_first(problem.show(option)) for option in (left, right)]
    found = question_table(problem, [left, right], "best", lotteries)
    assert [one.total for one in found.cards] == [1000, 1000]
    assert [one.counts for one in found.cards] == [(995, 5), (1000,)]
    assert found.cards[1].title == "y" and found.cards[0].title == ""
    assert found.cards[0].stories[1].labels == (("kind", "p"),)
    assert found.average == "on average" and "how often" in found.lead
    assert len(found.differing) + len(found.same) == 3
    alone = card(problem, problem.show(right), None)
    assert alone.counts == () and alone.stories[0].share == "" and alone.summary == "y"
