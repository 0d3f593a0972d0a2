from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.messages import refused
from tradeoff.errors import ArgumentError
from tradeoff.model import Lottery, Objective, Trajectory
from tradeoff.representation.difference import difference

OBJECTIVES = (Objective("time", "min", "min"), Objective("joy", "points", "max"), Objective("late", "%", "min"))

amounts = st.floats(-1e6, 1e6).map(lambda x: round(x, 6))
trajectories = st.builds(
    lambda name, outcome: Trajectory((name, "end"), ("go",), 0.5, np.array(outcome)),
    st.sampled_from("abcd"),
    st.tuples(amounts, amounts, amounts) | st.just((1.0, 2.0, 3.0)),
)


@st.composite
def lotteries(draw: st.DrawFn) -> Lottery:
    stories = draw(st.lists(trajectories, min_size=1, max_size=4))
    shares = np.array(draw(st.lists(st.floats(0.01, 1), min_size=len(stories), max_size=len(stories))))
    return Lottery(OBJECTIVES, shares / shares.sum(), tuple(stories))


scales = st.none() | st.tuples(*[st.floats(0.1, 1e4)] * 3)
OTHER = {"first": "second", "second": "first", "same": "same"}


@given(lotteries(), lotteries(), scales)
def test_swapping_the_sides_swaps_everything(first: Lottery, second: Lottery, scale: tuple[float, ...] | None) -> None:
    there, back = difference(first, second, scale), difference(second, first, scale)
    for one, other in zip(there.objectives, back.objectives, strict=True):
        assert (one.first, one.second, one.amount) == (other.second, other.first, -other.amount)
        assert one.relative == other.relative and one.better == OTHER[other.better]
        assert one.words("A", "B") == other.words("B", "A")
    assert there.ranking == back.ranking
    assert len(there.shared) == len(back.shared)


@given(lotteries(), lotteries(), scales)
def test_amounts_ranking_and_advantage_agree(first: Lottery, second: Lottery, scale: tuple[float, ...] | None) -> None:
    found = difference(first, second, scale)
    assert sorted(found.ranking) == [0, 1, 2]
    sizes = [part.relative for part in found.ranked]
    assert sizes == sorted(sizes, reverse=True)
    for j, part in enumerate(found.objectives):
        assert part.first == first.average[j] and part.second == second.average[j]
        gain = (part.second - part.first) * part.objective.sign
        if part.better == "same":
            assert part.relative == 0 == part.amount
            gauge = max(abs(part.first), abs(part.second), scale[j] if scale else 0)
            assert abs(gain) <= 1e-9 * gauge
        else:
            assert part.amount == part.second - part.first
            assert (gain > 0) == (part.better == "second")
    for i, j in found.shared:
        assert first.trajectories[i].same_as(second.trajectories[j])
    for side in (0, 1):
        assert len({pair[side] for pair in found.shared}) == len(found.shared)


@given(lotteries(), scales)
def test_a_lottery_differs_from_itself_in_nothing(lottery: Lottery, scale: tuple[float, ...] | None) -> None:
    found = difference(lottery, lottery, scale)
    assert {part.better for part in found.objectives} == {"same"}
    assert all(part.words().endswith("same for both") for part in found.objectives)
    assert len(found.shared) == len(lottery.trajectories)


def single(*outcome: float) -> Lottery:
    return Lottery(OBJECTIVES, [1.0], (Trajectory(("a",), (), 1.0, np.array(outcome)),))


def test_the_words_are_seen_from_the_better_side() -> None:
    found = difference(single(40, 5, 0), single(60, 7, 0), scale=[100, -4, 0])
    assert [part.words("A", "B") for part in found.ranked] == [
        "joy: 2 points more with B",
        "time: 20 min less with A",
        "late: same for both",
    ]
    assert found.shared == ()


def test_rounding_is_no_difference() -> None:
    assert difference(single(0.1 + 0.2, 1, 1), single(0.3, 1, 1)).objectives[0].better == "same"
    assert difference(single(0, 1e-10, 0), single(0, 0, 0)).objectives[1].better == "first"
    assert difference(single(0, 1e-10, 0), single(0, 0, 0), [1, 1, 1]).objectives[1].better == "same"


def test_what_cannot_be_compared_is_refused() -> None:
    other = Lottery((Objective("time", "h", "min"),), [1.0], (Trajectory(("a",), (), 1.0, np.array([1.0])),))
    with refused(ArgumentError, "time (min, min)", "time (h, min)"):
        difference(single(1, 2, 3), other)
    for scale in ([1, 2], [1, 2, np.nan], 3):
        with refused(ArgumentError, "scale", "3 objectives", scale):
            difference(single(1, 2, 3), single(1, 2, 3), scale)
