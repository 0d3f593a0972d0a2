from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.messages import refused
from tradeoff.errors import ArgumentError
from tradeoff.model import Lottery, Objective, Trajectory
from tradeoff.representation.words import (
    LONGEST_CYCLE,
    chance_words,
    fold,
    heading_words,
    heaviest_first,
    outcome_words,
    path_words,
    share_counts,
    share_words,
    steps_of,
    unfold,
)

few_names = st.sampled_from(["a", "b"])
steps = st.lists(st.tuples(few_names, few_names | st.none()), max_size=40)
weights = st.lists(st.floats(1e-12, 1.0) | st.sampled_from([1.0, 0.01, 1e-3, 1e-4, 1e-6]), min_size=1, max_size=13)


def story(states: str, actions: str, probability: float = 1.0, outcome: tuple[float, ...] = (0.0,)) -> Trajectory:
    return Trajectory(tuple(states), tuple(actions), probability, np.array(outcome))


@given(steps)
def test_unfolding_what_was_folded_gives_the_path_back(path: list[tuple[str, str | None]]) -> None:
    parts = fold(path)
    assert unfold(parts) == path
    assert all(1 <= len(part.steps) <= LONGEST_CYCLE and part.times >= 1 for part in parts)
    assert sum(len(part.steps) for part in parts) <= len(path)
    # Nothing that repeats at once is left side by side.
    for one, next_one in itertools.pairwise(parts):
        assert one.steps != next_one.steps


@given(steps.filter(bool), st.integers(2, 9))
def test_a_path_walked_again_and_again_is_not_longer_to_read(path: list[tuple[str, str | None]], times: int) -> None:
    path = path[:LONGEST_CYCLE]
    parts = fold(path * times)
    assert sum(len(part.steps) for part in parts) <= len(path)


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
    assert path_words(story("abababc", "xyxyxy")) == ["a: x; b: y (these 2 steps, 3 times)", "c"]
    assert path_words(story("a", "")) == ["a"]
    assert path_words(story("aa", "xx")) == ["a: x (2 times)"]
    assert len(path_words(story("a" * 2001, "x" * 2000))) == 2


@pytest.mark.parametrize(("states", "actions"), [("abc", "x"), ("a", "xy")])
def test_a_path_with_steps_missing_is_refused(states: str, actions: str) -> None:
    with refused(ArgumentError, f"{len(states)} states", f"{len(actions)} actions"):
        steps_of(story(states, actions))


@given(weights, st.lists(weights, max_size=2))
def test_counts_add_up_and_are_near_the_shares(mine: list[float], others: list[list[float]]) -> None:
    counts, total = share_counts(mine, *others)
    assert sum(counts) == total and min(counts) >= 0
    assert total in (100, 1000, 10_000)
    exact = np.array(mine) / sum(mine)
    assert np.all(np.abs(np.array(counts) - exact * total) < 1 + 1e-6)
    smallest = min(min(w) / sum(w) for w in [mine, *others])
    assert total == 10_000 or smallest * total >= 1 - 1e-6  # coarse only where every share is at least one time


@given(weights, weights)
def test_both_sides_of_a_question_are_out_of_the_same_number(mine: list[float], other: list[float]) -> None:
    told = [*share_words(mine, other), *share_words(other, mine)]
    assert len({re.search(r"of ([\d,]+) times", words).group(1) for words in told}) == 1  # type: ignore[union-attr]
    assert not any("1 in " in words for words in told)
    for words, share in zip(told, [*np.array(mine) / sum(mine), *np.array(other) / sum(other)], strict=True):
        assert ("100% (" in words) == (share == 1)
        assert not words.startswith("0%")


@pytest.mark.parametrize(
    ("shares", "told"),
    [
        ([0.9, 0.1], ["90% (90 of 100 times)", "10% (10 of 100 times)"]),
        ([1.0], ["100% (100 of 100 times)"]),
        ([0.99, 0.01], ["99% (99 of 100 times)", "1% (1 of 100 times)"]),
        ([0.995, 0.005], ["99.5% (995 of 1,000 times)", "0.5% (5 of 1,000 times)"]),
        ([0.9995, 0.0005], ["99.95% (9,995 of 10,000 times)", "0.05% (5 of 10,000 times)"]),
        (
            [1 - 1e-7, 1e-7],
            ["more than 99.99% (more than 9,999 of 10,000 times)", "less than 0.01% (less than 1 of 10,000 times)"],
        ),
    ],
)
def test_shares_are_told_as_people_want_them(shares: list[float], told: list[str]) -> None:
    assert share_words(shares) == told


@pytest.mark.parametrize("shares", [[], [-0.1, 1.1], [np.nan], [0.0], [[1.0]]])
def test_what_is_not_a_share_is_refused(shares: list[float]) -> None:
    with refused(ArgumentError, "shares", shares):
        share_words(shares)


@given(st.floats(0, 1))
def test_chances_are_near_and_never_certain_unless_they_are(chance: float) -> None:
    told = chance_words(chance)
    number = float(re.search(r"([\d.]+)%", told).group(1))  # type: ignore[union-attr]
    assert number == pytest.approx(100 * chance, rel=0.06, abs=0.011)
    if 1e-6 < chance < 1 - 1e-6:
        assert told not in ("0%", "100%")


def test_amounts_that_are_only_rounding_are_told_as_nothing() -> None:
    objectives = (Objective("time", "min", "min"), Objective("joy"))
    lottery = Lottery(
        objectives, [0.25, 0.75], (story("a", "", 0.25, (30.0, -3.0)), story("b", "", 0.75, (1e-15, 1.0)))
    )
    assert outcome_words(lottery) == ([["30 min", "-3"], ["0 min", "1"]], ["7.5 min", "0"])
    assert [t.states for t in heaviest_first(lottery).trajectories] == [("b",), ("a",)]
    assert "100 times" in heading_words(lottery)
    assert "every time" in heading_words(Lottery(objectives, [1.0], (story("a", "", 1.0, (1.0, 1.0)),)))
    assert "average" in heading_words(Lottery(objectives, [1.0], (story("a", "", 0.5, (1.0, 1.0)),)))
