from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tradeoff
from tradeoff import Catalogue, Interview, LinearRespondent
from tradeoff.errors import ArgumentError
from tradeoff.log import Asked
from tradeoff.model import EQUAL, FIRST, NONE, SECOND, SKIP, Question, Reply
from tradeoff.studies import Session, TurnError
from tradeoff.studies.checks import dominated_pair, flags
from tradeoff.studies.session import MOST_STATEMENTS

COFFEE = tradeoff.load("coffee")


def person(problem: Any = COFFEE, seed: int = 1) -> LinearRespondent:
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(problem.objectives)))
    return LinearRespondent.scaled(problem, weights, 0.01)


def held(session: Session, user: Any, most: int = 200) -> list[Question]:
    """Answer until nothing is left to ask; return what was asked, checks included."""
    asked = []
    for _ in range(most):
        shown = session.ask()
        if shown is None:
            return asked
        asked.append(shown.question)
        session.tell(shown.turn, shown.by_place(user(shown.question)))
    raise AssertionError("it never ends")


def questions(events: Any, *, checks: bool = False) -> list[dict[str, Any]]:
    return [e for e in events if e["event"] == "question" and (checks or "check" not in e)]


@pytest.mark.parametrize(
    "options",
    [
        {"strategy": "careful"},
        {"strategy": "careful", "questions": "best-worst-4"},
        {"strategy": "certified"},
        {"strategy": "paper"},
    ],
    ids=lambda options: "-".join(options.values()),
)
@pytest.mark.parametrize("checks", [True, False])
def test_a_session_asks_what_the_interview_asks_with_the_checks_in_between(
    options: dict[str, Any], checks: bool
) -> None:
    plain, user = Interview(COFFEE, **options), person()
    alone = []
    while (question := plain.ask()) is not None:
        alone.append(question.key)
        plain.tell(user(question))
    session = Session.begin(COFFEE, checks=checks, order_seed=5, **options)
    asked = held(session, user)
    assert [e["options"] for e in questions(session.events)] == [e["options"] for e in questions(plain.log)]
    assert len(asked) == len(alone) + (2 if checks else 0)
    assert session.events[-1]["event"] == "end" and session.next() is None
    assert session.view().recommendation.option.value.tolist() == plain.recommendation.option.value.tolist()
    found = flags(session.events)
    assert found == ({"dominated": "passed", "repeat": "passed"} if checks else dict.fromkeys(found, "not asked"))
    # What a session has written is a log of an interview too.
    again = Interview.resume(COFFEE, session.events)
    assert list(again.log) == session.events and again.finished


@given(
    st.lists(st.sampled_from(["first", "second", "equal", "skip", "undo", "undo some"]), max_size=14),
    st.integers(0, 99),
)
@settings(max_examples=15)
def test_whatever_is_done_the_log_brings_it_back_exactly(moves: list[str], seed: int) -> None:
    """A resumed session asks the same; one that only receives views computed elsewhere logs the same."""
    settings: dict[str, Any] = {"strategy": "paper"} if seed % 3 else {"strategy": "careful"}  # which takes longer
    if not seed % 6:
        settings["questions"] = "best-worst-4"
    session = Session.begin(COFFEE, checks=True, order_seed=seed, max_questions=6, **settings)
    for move in moves:
        make_move(session, move)
        log = json.loads(json.dumps(session.events))
        again, served = (Session.resume(COFFEE, log, checks=True) for _ in range(2))
        assert again.events == served.events == session.events  # also nothing new
        view = pickle.loads(pickle.dumps(session.view()))
        shown = session.ask(), again.ask(), served.ask(view)
        assert timeless(again) == timeless(served) == timeless(session)
        assert again.turn == session.turn and again.answered == session.answered
        before = shown[0]
        for after in shown[1:]:
            assert (before is None) == (after is None)
            if before is not None and after is not None:
                assert (before.turn, before.order, before.check) == (after.turn, after.order, after.check)
                assert before.question.key == after.question.key
        assert again.view().recommendation.option.value.tolist() == view.recommendation.option.value.tolist()


def timeless(session: Session) -> list[dict[str, Any]]:
    return [{key: value for key, value in event.items() if key != "time"} for event in session.events]


def reply_of(word: str, question: Question) -> Reply:
    """Return the reply to a question that a word means: the first or the last option is best, equal, or skip."""
    if word in ("equal", "skip"):
        return EQUAL if word == "equal" else SKIP
    ends = (0, len(question.options) - 1)
    best, worst = ends if word == "first" else ends[::-1]
    return Reply(best, worst if question.asks == "best-worst" else None)


def make_move(session: Session, move: str) -> None:
    """Ask, and then answer or undo."""
    asked = session.ask()
    if move == "undo":
        if session.answered:
            session.undo()
    elif move == "undo some":
        standing = [given.number for given in session.state.standing if given.number is not None]
        if standing:
            session.undo(standing[len(standing) // 2])
    elif asked is not None:
        session.tell(asked.turn, asked.by_place(reply_of(move, asked.question)))


@given(st.lists(st.sampled_from(["first", "equal", "skip", "undo"]), min_size=1, max_size=8), st.data())
@settings(max_examples=8)
def test_another_process_catches_up_with_what_was_written(moves: list[str], data: st.DataObject) -> None:
    one = Session.begin(COFFEE, checks=True, order_seed=3, max_questions=4)
    two = Session.resume(COFFEE, one.events, checks=True)
    for move in moves:
        actor, other = (one, two) if data.draw(st.booleans()) else (two, one)
        known = len(actor.events)
        make_move(actor, move)
        other.catch_up(json.loads(json.dumps(actor.events[known:])))
        assert one.events == two.events and one.turn == two.turn and one.answered == two.answered


def test_every_question_has_a_turn_of_its_own_and_answers_count_once() -> None:
    session = Session.begin(COFFEE, checks=False)
    first = session.ask()
    assert first is not None and first.turn == 1
    session.tell(1, FIRST)
    events = len(session.events)
    with pytest.raises(TurnError, match="already"):
        session.tell(1, SECOND)
    with pytest.raises(TurnError):
        session.tell(7, SECOND)
    assert len(session.events) == events
    session.undo()
    again = session.ask()
    assert again is not None and again.turn == 3 and again.question.key == first.question.key
    for stale in (1, 2):
        with pytest.raises(TurnError):
            session.tell(stale, FIRST)
    with pytest.raises(TurnError):
        session.undo(turn=1)
    with pytest.raises(ArgumentError, match="no answer"):
        session.undo()


@pytest.mark.parametrize("reply", [Reply(best=2), Reply(best=0, worst=1), NONE])
def test_what_is_no_reply_to_a_pair_is_refused_and_not_recorded(reply: Reply) -> None:
    session = Session.begin(COFFEE, checks=False, questions="pairs")
    session.ask()
    before = session.events
    with pytest.raises(ArgumentError):
        session.tell(1, reply)
    assert session.events == before


def test_replies_are_by_place_and_logged_by_position() -> None:
    for seed in range(6):
        session = Session.begin(COFFEE, checks=False, order_seed=seed, questions="best-worst-4")
        shown = session.ask()
        assert shown is not None and sorted(shown.order) == [0, 1, 2, 3]
        session.tell(1, Reply(best=1, worst=3))
        assert (session.events[-1]["best"], session.events[-1]["worst"]) == (shown.order[1], shown.order[3])


def test_the_order_is_drawn_per_question_and_the_repeat_shows_the_sides_swapped() -> None:
    in_order = []
    for seed in range(30):
        session = Session.begin(COFFEE, checks=True, order_seed=seed, strategy="paper", max_questions=5)
        held(session, person())
        shown = questions(session.events, checks=True)
        in_order += [e["order"] == [0, 1] for e in shown]
        repeat = next(e for e in shown if e.get("check") == "repeat")
        original = next(e for e in shown if "check" not in e and e["options"] == repeat["options"])
        assert repeat["order"] == original["order"][::-1]
    assert 0.4 < np.mean(in_order) < 0.6


@pytest.mark.parametrize("strategy", ["careful", "paper"])
def test_checks_flag_whoever_does_not_look(strategy: str) -> None:
    session = Session.begin(COFFEE, checks=True, strategy=strategy, max_questions=8, order_seed=1)
    while (asked := session.ask()) is not None:
        session.tell(asked.turn, Reply(best=0))  # always the left one
    found = flags(session.events)
    assert found["repeat"] == "failed"  # it was on the other side
    dominated = next(e for e in session.events if e.get("check") == "dominated")
    assert found["dominated"] == ("passed" if dominated["order"] == [0, 1] else "failed")


@given(st.integers(0, 10_000))
@settings(max_examples=40)
def test_the_dominated_pair_is_dominated(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = Catalogue(rng.integers(0, 4, size=(rng.integers(1, 9), rng.integers(1, 5))).astype(float))
    difference = dominated_pair(problem).difference
    assert difference.min() >= 0
    matters = problem.gain_scale.matters
    assert difference.max() > 0 or not matters.any()


@pytest.mark.parametrize("kind", ["pairs", "best-worst-4"])
def test_a_check_can_be_undone_and_is_asked_again(kind: str) -> None:
    session = Session.begin(COFFEE, checks=True, questions=kind)
    while (asked := session.ask()) is not None and asked.check is None:
        session.tell(asked.turn, reply_of("first", asked.question))
    assert asked is not None and asked.check == "dominated"
    with pytest.raises(ArgumentError):
        session.tell(asked.turn, Reply(best=0, worst=1))  # a check is a pair
    session.tell(asked.turn, SECOND)
    assert flags(session.events)["dominated"] == "failed"
    session.undo()
    assert flags(session.events)["dominated"] == "not asked"
    again = session.ask()
    assert again is not None and again.check == "dominated" and again.turn > asked.turn
    session.tell(again.turn, again.by_place(FIRST))
    assert flags(session.events)["dominated"] == "passed"


def test_a_check_that_was_shown_when_an_answer_was_undone_is_logged_again() -> None:
    """Whether or not the server was restarted in between, the check has its own event before its answer."""
    session = Session.begin(COFFEE, checks=True, strategy="paper")
    for turn in (1, 2, 3):
        session.ask()
        session.tell(turn, FIRST)
    prompt = session.ask()
    assert prompt is not None and prompt.check == "dominated"
    session.undo(3)
    session = Session.resume(COFFEE, session.events, checks=True)
    while (asked := session.ask()) is not None and asked.check is None:
        session.tell(asked.turn, FIRST)
    assert asked is not None
    session.tell(asked.turn, FIRST)
    question, answer = session.events[-2:]
    assert question["event"] == "question" and answer["event"] == "answer"
    assert question["check"] == answer["check"] == "dominated"


@pytest.mark.parametrize("flip", [False, True])
def test_the_best_and_the_worst_of_a_larger_question_are_compared_again(flip: bool) -> None:
    session = Session.begin(COFFEE, checks=True, questions="best-worst-4", order_seed=2)
    user = LinearRespondent.scaled(COFFEE, [3, 1, 2, 1, 2], 0.01)
    while (prompt := session.ask()) is not None:
        reply = SECOND if prompt.check == "repeat" and flip else user(prompt.question)
        session.tell(prompt.turn, prompt.by_place(reply))
    state = session.state
    assert state.flags == {"dominated": "passed", "repeat": "failed" if flip else "passed"}
    larger = next(one for one in state.given if one.reply.worst is not None)
    repeat = next(one.shown for one in state.given if one.check == "repeat")
    assert isinstance(larger.shown, Asked) and isinstance(repeat, Asked)
    assert larger.reply.best is not None and larger.reply.worst is not None
    assert repeat.options == (larger.shown.options[larger.reply.best], larger.shown.options[larger.reply.worst])
    assert repeat.expected_reply == FIRST


def distinct(count: int) -> list[str]:
    return [f"price >= {share / 100:g}%" for share in range(1, count + 1)]


def test_statements_are_limited_and_a_standing_one_is_not_recorded_again() -> None:
    session = Session.begin(COFFEE, checks=False, questions="pairs")
    said = distinct(MOST_STATEMENTS)
    for text in [*said, *said, f"  {said[3]} ", said[0].replace(" ", "")]:
        session.know(text)
    assert session.answered == MOST_STATEMENTS == 30
    for _ in range(2):
        with pytest.raises(ArgumentError, match="at most 30 statements"):
            session.know("aroma > crema")
        assert session.answered == MOST_STATEMENTS
    session.undo(7)
    session.know("aroma > crema")
    assert session.answered == MOST_STATEMENTS
    with pytest.raises(ArgumentError, match="at most 30 statements"):
        session.know(said[6])  # it stands no more
    assert Interview.resume(COFFEE, session.events).state.answered == MOST_STATEMENTS + 1
