from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradeoff.errors import ArgumentError
from tradeoff.model import Lottery, Objective, Trajectory
from tradeoff.presentation.stories import (
    LONGEST_CYCLE,
    Repeat,
    average,
    common_total,
    fold,
    heaviest_first,
    is_certain,
    outcomes,
    path_words,
    steps_of,
    stories,
)

few_names = st.sampled_from(["a", "b"])
steps = st.lists(st.tuples(few_names, few_names | st.none()), max_size=40)
TIME, JOY = Objective("time", "min", "min"), Objective("joy")


def path(states: str, actions: str, probability: float = 1.0, outcome: tuple[float, ...] = (0.0,)) -> Trajectory:
    return Trajectory(tuple(states), tuple(actions), probability, np.array(outcome))


def unfold(parts: list[Repeat]) -> list[tuple[str, str | None]]:
    return [step for part in parts for _ in range(part.times) for step in part.steps]


# --- paths -----------------------------------------------------------------------------------------------------------


@given(steps)
def test_unfolding_what_was_folded_gives_the_path_back(walked: list[tuple[str, str | None]]) -> None:
    parts = fold(walked)
    assert unfold(parts) == walked
    assert all(1 <= len(part.steps) <= LONGEST_CYCLE and part.times >= 1 for part in parts)
    assert sum(len(part.steps) for part in parts) <= len(walked)
    # Nothing that repeats at once is left side by side.
    for one, next_one in itertools.pairwise(parts):
        assert one.steps != next_one.steps


@cache
def fewest(walked: tuple[tuple[str, str | None], ...]) -> int:
    """Return how few steps are left to read, by trying every folding."""
    if not walked:
        return 0
    found = 1 + fewest(walked[1:])
    for size in range(1, LONGEST_CYCLE + 1):
        times = 2
        while len(walked) >= size * times and walked[:size] * times == walked[: size * times]:
            found = min(found, size + fewest(walked[size * times :]))
            times += 1
    return found


@given(st.lists(st.tuples(few_names, st.just("go")), max_size=12))
def test_folding_leaves_the_fewest_steps_to_read(walked: list[tuple[str, str | None]]) -> None:
    assert sum(len(part.steps) for part in fold(walked)) == fewest(tuple(walked))


def test_a_repeat_gives_way_to_the_cycle_after_it() -> None:
    assert [(len(part.steps), part.times) for part in fold([(name, "go") for name in "pppqpq"])] == [(1, 2), (2, 2)]


@given(steps.filter(bool), st.integers(2, 9))
def test_a_path_walked_again_and_again_is_not_longer_to_read(walked: list[tuple[str, str | None]], times: int) -> None:
    walked = walked[:LONGEST_CYCLE]
    parts = fold(walked * times)
    assert sum(len(part.steps) for part in parts) <= len(walked)


def test_the_words_of_a_path() -> None:
    taxi = Trajectory(
        ("home", "at the kerb", "at the kerb", "at the kerb", "in a taxi", "at the airport"),
        ("call a taxi", "keep waiting", "keep waiting", "keep waiting", "ask for the highway"),
        0.1,
        np.zeros(1),
    )
    assert path_words(taxi) == [
        "home: call a taxi",
        "at the kerb: keep waiting (3 times)",
        "in a taxi: ask for the highway",
        "at the airport",
    ]
    assert path_words(path("abababc", "xyxyxy")) == ["a: x; b: y (these 2 steps, 3 times)", "c"]
    assert path_words(path("a", "")) == ["a"]
    assert path_words(path("aa", "xx")) == ["a: x (2 times)"]
    assert len(path_words(path("a" * 2001, "x" * 2000))) == 2


@pytest.mark.parametrize(("states", "actions"), [("abc", "x"), ("a", "xy")])
def test_a_path_with_steps_missing_is_refused(states: str, actions: str) -> None:
    with pytest.raises(ArgumentError, match=f"{len(states)} states and {len(actions)} actions"):
        steps_of(path(states, actions))


# --- stories ---------------------------------------------------------------------------------------------------------


def told(*paths: tuple[str, ...]) -> list[tuple[bool, str]]:
    """Return the stories of trajectories, each written as state, action, state, ...: whether short, and their steps."""
    ways = tuple(Trajectory(p[::2], p[1::2], 1 / len(paths), [float(i)]) for i, p in enumerate(paths))
    lottery = Lottery((Objective("x"),), [1 / len(paths)] * len(paths), ways)
    found = stories(lottery, common_total(lottery))
    return [(story.like_above, " > ".join(part.words() for part in story.parts)) for story in found]


def test_a_story_tells_only_what_differs_from_the_one_above() -> None:
    jam = ("home", "drive", "jam", "walk", "airport")
    assert told(jam, ("home", "drive", "lost"))[1] == (True, "lost")
    assert told(jam, ("home", "drive", "road", "drive on", "airport"))[1] == (True, "road: drive on > airport")
    assert told(jam, ("home", "walk", "airport"))[1] == (False, "walk > airport")


def test_a_story_that_only_lacks_steps_is_told_in_full() -> None:
    jam = ("home", "drive", "jam", "walk", "airport")
    assert told(jam, ("home", "drive", "airport")) == [
        (False, "drive > jam: walk > airport"),
        (False, "drive > airport"),
    ]


def test_a_single_story_has_no_share_and_no_amounts_unless_the_other_side_has_several() -> None:
    lottery = Lottery((TIME,), [1.0], (path("ab", "x", outcome=(3.0,)),))
    other = Lottery((TIME,), [0.5, 0.5], (path("ab", "y"), path("ac", "y", outcome=(1.0,))))
    assert common_total(lottery) is None and common_total(lottery, other) == 100
    (alone,), (beside,) = stories(lottery, None), stories(lottery, 100)
    assert (alone.share, alone.amounts) == ("", ())
    assert (beside.share, beside.amounts) == ("100% of the time", (("time", "3 min"),))


def test_a_weight_is_called_how_often_only_where_it_is() -> None:
    true = Lottery((TIME,), [0.25, 0.75], (path("a", "", 0.25), path("b", "", 0.75)))
    assert [(one.share, one.chance) for one in stories(true, 100)] == [("25% of the time", ""), ("75% of the time", "")]
    other = Lottery((TIME,), [0.25, 0.75], (path("a", "", 0.001), path("b", "", 0.75)))
    assert [(one.share, one.chance) for one in stories(other, 100)] == [
        ("weight 25%", "exactly this happens 0.1% of the time"),
        ("weight 75%", "exactly this happens 75% of the time"),
    ]


def test_amounts_that_are_only_rounding_are_told_as_nothing() -> None:
    lottery = Lottery((TIME, JOY), [0.25, 0.75], (path("a", "", 0.25, (30.0, -3.0)), path("b", "", 0.75, (1e-15, 1.0))))
    assert outcomes(lottery) == [(("time", "30 min"), ("joy", "-3")), (("time", "0 min"), ("joy", "1"))]
    assert average(lottery) == (("time", "7.5 min"), ("joy", "0"))
    assert [t.states for t in heaviest_first(lottery).trajectories] == [("b",), ("a",)]
    assert not is_certain(lottery) and is_certain(Lottery((TIME,), [1.0], (path("a", ""),)))
    assert not is_certain(Lottery((TIME,), [1.0], (path("a", "", 0.5),)))
