"""Law 8: a pair is asked about again only on purpose: said, turned round, once, and never twice in a row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tradeoff
from tradeoff.interview import Interview
from tradeoff.model import EQUAL, FIRST, SECOND, SKIP, Objective, Reply
from tradeoff.problems.catalogue import Catalogue

CONCAVE = Catalogue([[10, 0], [0, 10], [4.8, 4.8]], [Objective("comfort"), Objective("speed")], ["X", "Y", "Z"])
REPLIES = [FIRST, SECOND, EQUAL]
replies = st.lists(st.sampled_from([*REPLIES, SKIP]), min_size=40, max_size=40)


def asked(interview: Interview, answers: list[Reply]) -> int:
    """Answer until the end; return how many questions were asked again, and check each."""
    shown_as: dict[frozenset[bytes], list[bytes]] = {}
    last, again = None, 0
    for answer in answers:
        shown = interview.next()
        question = interview.ask()
        if shown is None or question is None:
            break
        pair, left = question.members, shown.options[0].value.tobytes()
        before = shown_as.setdefault(pair, [])
        assert pair != last
        assert shown.again == bool(before)
        if before:
            again += 1
            assert before[-1] != left and len(before) == 1
        interview.tell(answer)
        before.append(left)
        last = pair
    return again


@given(replies, st.sampled_from(["careful", "certified"]), st.integers(0, 9), st.integers(0, 2**31))
@settings(max_examples=25)
def test_whatever_is_answered(answers: list[Reply], strategy: str, order_seed: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 5))
    problem = Catalogue(rng.random((12, k)).round(2), [Objective(f"o{j}") for j in range(k)])
    interview = Interview(problem, strategy, order_seed=order_seed, seed=0)
    asked(interview, answers)
    again = Interview.resume(problem, interview.log)
    assert again.display_orders() == interview.display_orders()
    ahead, mine = again.next(), interview.next()
    assert (ahead is None) == (mine is None)
    if ahead is not None and mine is not None:
        assert (ahead.order, ahead.again) == (mine.order, mine.again)


@pytest.mark.parametrize("order_seed", range(4))
def test_two_extremes_are_not_asked_about_twice_in_a_row(order_seed: int) -> None:
    assert asked(Interview(CONCAVE, order_seed=order_seed, seed=0), [EQUAL] * 9) == 0


def test_an_inconsistent_person_is_asked_again_the_other_way_round() -> None:
    problem = tradeoff.load(str(Path(__file__).parents[2] / "docs" / "how-to" / "data" / "laptops.csv"))
    found = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        answers = [REPLIES[i] for i in rng.integers(0, 3, 40)]
        found += asked(Interview(problem, order_seed=seed, seed=0), list(answers))
    assert found  # or the law would be empty


def test_a_question_that_comes_back_after_taking_back_looks_the_same() -> None:
    problem = tradeoff.load("coffee")
    for order_seed in range(4):
        interview = Interview(problem, order_seed=order_seed, seed=0)
        first = interview.next()
        interview.ask()
        interview.tell("first")
        interview.undo()
        second = interview.next()
        assert first is not None and second is not None
        assert (first.order, second.again) == (second.order, False)
