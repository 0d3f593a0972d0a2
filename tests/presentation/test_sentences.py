"""One test per sentence: elsewhere, tests look at fields."""

from __future__ import annotations

import numpy as np
import pytest

import tradeoff
from tradeoff.decisions import what_if
from tradeoff.evidence import Answer
from tradeoff.model import FIRST, NOTHING, SKIP, Objective, Option, Question, Reason, Recommendation, Reply
from tradeoff.presentation import sentences
from tradeoff.presentation.answers import answer_lines
from tradeoff.presentation.certainty import certainty, certificate, reason_words
from tradeoff.presentation.problems import extent, notes
from tradeoff.presentation.result import because_words, result, what_ifs
from tradeoff.presentation.stories import heaviest_first
from tradeoff.problems.catalogue import Catalogue

WORTH = Option([1.0], NOTHING)
SHOP = Catalogue([[10.0, 0.0, 3.0], [0.0, 10.0, 4.0]], ["speed", "range", "looks"], ["fast", "far"])


def recommended(**more: object) -> Recommendation:
    known = {"option": SHOP.option(0), "weights": [0.6, 0.3, 0.1], "questions": 3, "reason": "done"}
    return Recommendation(**{**known, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("bound", "line"),
    [
        (None, ""),
        (1.0, ""),
        (0.04, "If your answers are right, at most 4% is lost."),
        (0.0401, "If your answers are right, at most 5% is lost."),
        (0.00123, "If your answers are right, at most 0.2% is lost."),
        (0.0, "If your answers are right, no plan is better for you."),
    ],
)
def test_the_certificate_is_rounded_up(bound: float | None, line: str) -> None:
    assert certificate(Recommendation(WORTH, [1.0], 3, "", regret_bound=bound)) == line


def test_what_is_proved_names_what_it_takes_for_granted() -> None:
    aside = Recommendation(WORTH, [1.0], 3, "", regret_bound=0.02, doubtful=(2,))
    assert certificate(aside) == "If your other answers are right, at most 2% is lost."
    assert certificate(Recommendation(WORTH, [1.0], 0, "", regret_bound=0.02)) == "At most 2% is lost."


def test_three_levels_of_certainty() -> None:
    known = {"regret_bound": 0.02, "robust_bound": 0.1, "likely_worst": 0.05, "likely_regret": 0.003}
    assert certainty(SHOP.reference_name, recommended(**known)) == [
        "Very likely within 5% of the best plan for you, slips allowed for.",
        "For people who answer as you did, about 0.3% is lost on average.",
        "If your answers are right, at most 2% is lost.",
        "Even if any one of your answers were a slip, at most 10% would be lost.",
        "Percentages are of what the best plan for you gains over “the worst of everything”.",
    ]
    assert certainty(SHOP.reference_name, recommended()) == []


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_words(reason: Reason) -> None:
    words = reason_words(recommended(reason=reason, target=0.05))
    assert words and "{" not in words and "the person" not in words
    assert ("5%" in words) == ("target" in reason)
    assert reason_words(recommended(reason=str(reason), target=0.05)) == words  # as an old file or a log has it


def test_because_is_said_only_where_the_bands_show_it() -> None:
    sure = recommended(importance=np.array([[0.5, 0.7], [0.2, 0.25], [0.0, 0.2]]))
    assert because_words(SHOP, sure) == (
        "speed matters most, at least twice as much as range",
        "Counted for the whole way from the worst to the best that is considered: speed from 0 to 10, range from 0 to 10, "
        "looks from 3 to 4.",
    )
    partly = recommended(importance=np.array([[0.3, 0.7], [0.2, 0.6], [0.0, 0.2]]))
    assert because_words(SHOP, partly)[0] == "speed matters more than looks"
    unsure = recommended(importance=np.array([[0.1, 0.7], [0.1, 0.8], [0.0, 0.2]]))
    for nothing in (unsure, recommended(), recommended(questions=0, importance=sure.importance)):
        assert because_words(SHOP, nothing) == ("", "")


def test_a_length_is_what_to_expect_and_not_the_most() -> None:
    assert sentences.progress(1, 30, 6.3) == "Question 1 of about 6"
    assert sentences.progress(4, 27, 4.2) == "Question 4, about 3 more"
    assert sentences.progress(4, 2, 9.0) == "Question 4, about 1 more"  # a budget leaves no more
    assert sentences.bar_length(3, 27, 4.2) == 7 and sentences.bar_length(3, 2, 4.2) == 5
    assert sentences.bar_length(3, None, None) is None


def test_an_interval_of_importance_is_always_shown_with_its_premise() -> None:
    ranges = np.array([[0.5, 0.7], [0.0, 1.0], [0.0, 0.93]])
    found = recommended(importance=ranges, unidentified=("looks",), target=0.01)
    shown = result(SHOP, found, SHOP.show(found.option), finished=True)
    assert [row.words for row in shown.importance] == ["50% to 70%", sentences.NOT_KNOWN, "at most 93%"]
    assert [row.band is None for row in shown.importance] == [False, True, False]
    assert "if your answers are" in shown.premise and "looks" in shown.left_open and "1%" in shown.left_open
    likely = recommended(importance=ranges, importance_if_right=ranges / 2)
    assert "very likely" in result(SHOP, likely, SHOP.show(found.option), finished=True).premise


def test_nothing_is_said_of_priorities_that_do_not_fit() -> None:
    ranges = np.array([[0.5, 0.7], [0.2, 0.25], [0.0, 0.2]])
    found = recommended(importance=None, importance_if_right=ranges, fits=False)
    shown = result(SHOP, found, SHOP.show(found.option), finished=True)
    assert because_words(SHOP, found) == ("", "") and shown.heading == "A suggestion for you"
    assert all(row.band is None and row.words == sentences.NOT_KNOWN for row in shown.importance)
    unsure = result(SHOP, recommended(reason=Reason.NOT_SURER), SHOP.show(found.option), finished=True)
    assert unsure.heading == shown.heading


def test_a_result() -> None:
    found = recommended(runner_up=SHOP.option(1), doubtful=(2,))
    shown = result(SHOP, found, SHOP.show(found.option), finished=True)
    assert shown.heading == "The best plan for you"
    assert shown.sentence == "We would recommend “fast”."
    assert shown.reason == "3 questions: done."
    assert shown.runner_up == "Another good choice, “far”, would mean: speed 10 less, range 10 more, looks 1 more."
    assert (shown.lead, shown.average) == ("", "")
    assert [row.words for row in shown.importance] == ["about 60%", "about 30%", "about 10%"]
    early = result(SHOP, recommended(questions=1), SHOP.show(found.option), finished=False)
    assert early.heading == "The best plan for you, so far" and early.reason == "1 question so far."


def test_a_plan_is_called_by_its_first_decision_and_read_as_an_average() -> None:
    trip = tradeoff.load("commute")
    (best,) = trip.best([[3, 0, 1, 0, 0]])
    shown = result(trip, Recommendation(best, [1, 0, 0, 0, 0], 0, ""), heaviest_first(trip.show(best)), finished=True)
    assert shown.sentence == "We would recommend “drive to the highway ramp”."
    assert shown.lead == "These are all the ways it can go, and how often:"
    assert shown.average == "on average" and shown.card.total == 100


def test_answers_are_told_from_the_side_they_were_shown_on() -> None:
    question = Question((SHOP.option(0), SHOP.option(1)))
    answers = [Answer(question, FIRST, 1), Answer(question, FIRST, 2), Answer(question, SKIP, 7)]
    orders = {1: (0, 1), 2: (1, 0), 7: (0, 1)}
    lines = answer_lines(SHOP, answers, orders, conflicts=[1], recommendation=recommended(doubtful=(2,)))
    assert [(line.number, line.ordinal, line.reply) for line in lines] == [(1, 1, "A"), (2, 2, "B"), (7, 3, "skipped")]
    assert [line.sentence for line in lines] == ["You preferred A.", "You preferred B.", "Skipped."]
    assert lines[0].differences == ["A better: speed 10", "B better: range 10, looks 1"]
    assert lines[1].differences == ["A better: range 10, looks 1", "B better: speed 10"]
    assert [line.conflict for line in lines] == [True, False, False]
    assert [line.doubtful for line in lines] == [False, True, False]


def test_answers_to_menus_list_the_options_where_they_were_shown() -> None:
    shop = Catalogue([[3, 1], [2, 2], [1, 3]], ["speed", "range"], ["fast", "middle", "far"])
    question = Question(tuple(shop.option(i) for i in range(3)), "best-worst")
    (line,) = answer_lines(shop, [Answer(question, Reply(best=0, worst=2), 1)], {1: (1, 2, 0)})
    assert (line.reply, line.sentence) == ("3 best, 2 worst", "You said that 3 is best and 2 worst.")
    assert line.differences == [
        "1 middle: speed 2, range 2", "2 (worst) far: speed 1, range 3", "3 (best) fast: speed 3, range 1",
    ]  # fmt: skip


def test_what_would_change() -> None:
    found = recommended()
    speed, reach, _ = what_ifs(SHOP, found, what_if(SHOP, found))
    assert [switch.plan for switch in reach.switches] == ["“fast”", "“far”"] and reach.name == "range"
    assert [switch.plan for switch in speed.switches] == ["“far”", "“fast”"]
    assert [switch.recommended for switch in speed.switches] == [False, True]
    assert [row.change for row in reach.switches[1].rows] == ["10 less", "10 more", "1 more"]
    trip = tradeoff.load("commute")
    (best,) = trip.best([[3, 0, 1, 0, 0]])
    other = Recommendation(best, [0.75, 0, 0.25, 0, 0], 1, "")
    told = {s.plan for one in what_ifs(trip, other, what_if(trip, other)) for s in one.switches}
    assert told == {"“drive to the highway ramp”", "a plan with these averages"}


def test_contradictions() -> None:
    assert sentences.contradiction(2) == (
        "These answers contradict each other: no set of priorities fits all of them. Which one would you change?"
    )
    assert (
        sentences.contradiction(1) == "This answer cannot be right: no set of priorities fits it. Would you change it?"
    )


def test_problems_say_how_large_they_are_and_what_cannot_be_changed() -> None:
    same = Catalogue([[1.0, 3.0], [2.0, 3.0]], [Objective("x"), Objective("fixed")])
    assert extent(same) == "a catalogue of 2 items"
    assert notes(same) == ["fixed comes out the same whatever is done; it is kept, but its weight cannot matter"]
