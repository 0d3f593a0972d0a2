from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tradeoff
from tradeoff import Answer, Catalogue, Interview, LinearUser
from tradeoff.errors import ArgumentError
from tradeoff.model import Question
from tradeoff.studies import Session, TurnError
from tradeoff.studies.checks import dominated_pair, flags

COFFEE = tradeoff.load("coffee")


def person(problem: Any = COFFEE, seed: int = 1) -> LinearUser:
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(problem.objectives)))
    return LinearUser.scaled(problem, weights, 0.01)


def held(session: Session, user: Any, most: int = 200) -> list[Question]:
    asked = []
    for _ in range(most):
        shown = session.ask()
        if shown is None:
            return asked
        asked.append(shown.question)
        session.tell(shown.turn, user(shown.question))
    raise AssertionError("it never ends")


@pytest.mark.parametrize("strategy", ["careful", "certified", "paper"])
@pytest.mark.parametrize("checks", [True, False])
def test_a_session_asks_what_the_interview_asks_with_the_checks_in_between(strategy: str, checks: bool) -> None:
    plain, user = Interview(COFFEE, strategy), person()
    alone = []
    while (question := plain.ask()) is not None:
        alone.append(question.key)
        plain.tell(user(question))
    session = Session.begin(COFFEE, checks=checks, strategy=strategy, sides=5)
    asked = held(session, user)
    own = [e for e in session.events if e["event"] == "question"]
    assert [(e["first"], e["second"]) for e in own] == [
        (e["first"], e["second"]) for e in plain.log if e["event"] == "question"
    ]
    assert len(asked) == len(alone) + (2 if checks else 0)
    assert session.events[-1]["event"] == "end" and session.finished
    assert session.recommendation.alternative.value.tolist() == plain.recommendation.alternative.value.tolist()
    found = flags(session.events)
    assert found == ({"dominated": "passed", "repeat": "passed"} if checks else dict.fromkeys(found, "not asked"))
    # What a session has written is a log of an interview too.
    again = Interview.resume(COFFEE, session.events)
    assert list(again.log) == session.events and again.finished


@given(
    st.lists(st.sampled_from(["first", "second", "same", "skip", "undo", "undo some"]), max_size=14), st.integers(0, 99)
)
@settings(max_examples=15)
def test_whatever_is_done_the_log_brings_it_back_exactly(moves: list[str], sides: int) -> None:
    strategy = "paper" if sides % 3 else "careful"  # which takes longer
    session = Session.begin(COFFEE, checks=True, sides=sides, strategy=strategy, max_questions=6)
    for move in moves:
        _move(session, move)
        log = json.loads(json.dumps(session.events))
        again = Session.resume(COFFEE, log, checks=True)
        assert again.events == session.events  # also nothing new
        before, after = session.ask(), again.ask()
        assert timeless(again) == timeless(session)
        assert again.turn == session.turn and again.answered == session.answered
        assert (before is None) == (after is None)
        if before is not None and after is not None:
            assert (before.turn, before.left, before.check) == (after.turn, after.left, after.check)
            assert before.question.key == after.question.key
        assert again.recommendation.alternative.value.tolist() == session.recommendation.alternative.value.tolist()


def timeless(session: Session) -> list[dict[str, Any]]:
    return [{key: value for key, value in event.items() if key != "time"} for event in session.events]


def _move(session: Session, move: str) -> None:
    asked = session.ask()
    if move == "undo":
        if session.answered:
            session.undo()
    elif move == "undo some":
        standing = [number for number, *_ in session.history()]
        if standing:
            session.undo(standing[len(standing) // 2])
    elif asked is not None:
        session.tell(asked.turn, None if move == "skip" else Answer(move))


@given(st.lists(st.sampled_from(["first", "same", "skip", "undo"]), min_size=1, max_size=8), st.data())
@settings(max_examples=8)
def test_another_process_catches_up_with_what_was_written(moves: list[str], data: st.DataObject) -> None:
    one = Session.begin(COFFEE, checks=True, sides=3, max_questions=4)
    two = Session.resume(COFFEE, one.events, checks=True)
    for move in moves:
        actor, other = (one, two) if data.draw(st.booleans()) else (two, one)
        known = len(actor.events)
        _move(actor, move)
        other.catch_up(json.loads(json.dumps(actor.events[known:])))
        assert one.events == two.events and one.turn == two.turn and one.answered == two.answered


def test_every_question_has_a_turn_of_its_own_and_answers_count_once() -> None:
    session = Session.begin(COFFEE, checks=False)
    first = session.ask()
    assert first is not None and first.turn == 1
    session.tell(1, Answer.FIRST)
    events = len(session.events)
    with pytest.raises(TurnError, match="already"):
        session.tell(1, Answer.SECOND)
    with pytest.raises(TurnError):
        session.tell(7, Answer.SECOND)
    assert len(session.events) == events
    session.undo()
    again = session.ask()
    assert again is not None and again.turn == 3 and again.question.key == first.question.key
    for stale in (1, 2):
        with pytest.raises(TurnError):
            session.tell(stale, Answer.FIRST)
    with pytest.raises(TurnError):
        session.undo(turn=1)
    with pytest.raises(ArgumentError, match="no answer"):
        session.undo()


def test_sides_are_drawn_per_question_and_the_repeat_shows_them_the_other_way_round() -> None:
    lefts = []
    for sides in range(30):
        session = Session.begin(COFFEE, checks=True, sides=sides, strategy="paper", max_questions=5)
        held(session, person())
        shown = [e for e in session.events if e["event"] in ("question", "check")]
        lefts += [e["left"] for e in shown]
        repeat = next(e for e in shown if e.get("kind") == "repeat")
        original = next(e for e in shown if e["event"] == "question" and e["first"] == repeat["first"]
                        and e["second"] == repeat["second"])  # fmt: skip
        assert {repeat["left"], original["left"]} == {"first", "second"}
    assert 0.4 < np.mean([left == "first" for left in lefts]) < 0.6


def test_checks_flag_whoever_does_not_look() -> None:
    for strategy in ("careful", "paper"):
        session = Session.begin(COFFEE, checks=True, strategy=strategy, max_questions=8, sides=1)
        turns = 0
        while (asked := session.ask()) is not None:
            left = Answer.FIRST if asked.left == "first" else Answer.SECOND
            session.tell(asked.turn, left)  # always the left one
            turns += 1
        found = flags(session.events)
        assert found["repeat"] == "failed"  # it was on the other side
        assert found["dominated"] == (
            "passed" if next(e for e in session.events if e["event"] == "check")["left"] == "first" else "failed"
        )


@given(st.integers(0, 10_000))
@settings(max_examples=40)
def test_the_dominated_pair_is_dominated(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = Catalogue(rng.integers(0, 4, size=(rng.integers(1, 9), rng.integers(1, 5))).astype(float))
    difference = dominated_pair(problem).difference
    assert difference.min() >= 0
    matters = problem.gain_scale.matters
    assert difference.max() > 0 or not matters.any()


def test_a_check_can_be_taken_back_and_is_asked_again() -> None:
    session = Session.begin(COFFEE, checks=True)
    while (asked := session.ask()) is not None and asked.check is None:
        session.tell(asked.turn, Answer.FIRST)
    assert asked is not None and asked.check == "dominated"
    session.tell(asked.turn, Answer.SECOND)
    assert flags(session.events)["dominated"] == "failed"
    session.undo()
    assert flags(session.events)["dominated"] == "not asked"
    again = session.ask()
    assert again is not None and again.check == "dominated" and again.turn > asked.turn
    session.tell(again.turn, Answer.FIRST)
    assert flags(session.events)["dominated"] == "passed"
