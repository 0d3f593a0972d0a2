"""Answers that were given elsewhere: they hold here, whatever the references, scales and orders, and count as no question."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.messages import refused
from tradeoff import (
    NOTHING,
    Catalogue,
    Interview,
    LinearRespondent,
    Objective,
    Option,
    Question,
    Reference,
    Reply,
    load,
)
from tradeoff.errors import ArgumentError
from tradeoff.evidence import Statement, half_spaces
from tradeoff.model import EQUAL, Vector
from tradeoff.problem import question_about
from tradeoff.simulation.respondents import relative_regret

AIMS = (Objective("price", "EUR", "min"), Objective("range", "km"), Objective("noise", "dB", "min"))
COFFEE = load("coffee")
UNITS = np.array([700, 100, 40])  # of price, range and noise: about the same


def catalogue(rng: np.random.Generator, items: int = 8) -> Catalogue:
    """A catalogue with the objectives in any order, its own ranges, and perhaps a reference far below everything."""
    aims = [AIMS[j] for j in rng.permutation(3)]
    ranges = {"price": (200, 900), "range": (20, 120), "noise": (30, 70)}
    spans = [np.sort(rng.uniform(*ranges[aim.name], 2)) for aim in aims]
    values = np.array([rng.uniform(*span, items) for span in spans]).T
    worst = {aim.name: float(2000 if aim.goal == "min" else 0) for aim in aims}
    return Catalogue(values, aims, reference=Reference("the worst", worst) if rng.random() < 0.5 else None)


def on_gains(problem: Catalogue, worth: dict[str, float]) -> Vector:
    """The weights on a problem's gains of somebody to whom a unit of each objective is worth this much."""
    return np.array([worth[o.name] for o in problem.objectives]) * np.abs(problem.scale)


def wanted(rng: np.random.Generator) -> dict[str, float]:
    return dict(zip((aim.name for aim in AIMS), rng.dirichlet(np.ones(3)) / UNITS, strict=True))


def outcomes(rng: np.random.Generator, count: int) -> list[dict[str, float]]:
    """Outcomes in the respondent's units, within and beyond what any catalogue here has."""
    rows = rng.uniform([0, 0, 0], [1500, 200, 100], (count, 3))
    return [dict(zip((aim.name for aim in AIMS), row, strict=True)) for row in rows.tolist()]


@given(st.integers(0, 100_000), st.floats(0, 0.3), st.sampled_from([(2, "best"), (3, "best"), (4, "best-worst")]))
def test_whoever_answered_elsewhere_fits_what_is_known_here(
    seed: int, precision: float, shape: tuple[int, Any]
) -> None:
    rng = np.random.default_rng(seed)
    problem, worth = catalogue(rng), wanted(rng)
    question = Question(question_about(problem, outcomes(rng, shape[0])).options, shape[1])
    weights = on_gains(problem, worth)
    interview = Interview(problem, "certified")
    assume(interview.ask() is not None)  # otherwise nothing needs to be learned
    interview.observe(question, LinearRespondent(weights, precision)(question))
    (answer,) = interview.answers
    rows = half_spaces(*answer.certain_terms())
    assert (rows @ np.append(weights, precision) >= -1e-9 * np.abs(rows).max()).all()


@settings(max_examples=8)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.02, 0.1]))
def test_exact_answers_from_elsewhere_never_contradict_and_certificates_hold(seed: int, precision: float) -> None:
    rng = np.random.default_rng(seed)
    problem, worth = catalogue(rng), wanted(rng)
    person = LinearRespondent(on_gains(problem, worth), precision)
    interview = Interview(problem, "certified")
    assume(interview.ask() is not None)  # otherwise nothing needs to be learned
    for _ in range(6):
        pair = outcomes(rng, 2)
        interview.observe(pair, person(question_about(problem, pair)))
    while True:
        assert interview.conflicts() == ()
        found = interview.recommendation
        assert relative_regret(problem, person, found.option) <= found.regret_bound + 1e-9
        question = interview.ask()
        if question is None:
            break
        interview.tell(person(question))
    assert found.questions == interview.questions_answered == len(interview.answers) - 6


@pytest.mark.parametrize("strategy", ["certified", "careful"])
def test_observations_are_kept_resumed_undone_and_not_counted(strategy: str) -> None:
    names, person = COFFEE.names, LinearRespondent.scaled(COFFEE, [1, 1, 1, 1, 6], 0.01)
    interview = Interview(COFFEE, strategy, max_questions=4)
    before = interview.at_most
    for number in range(6):
        pair = names[2 * number : 2 * number + 2]
        interview.observe(pair, person(question_about(COFFEE, pair)))
    assert [answer.number for answer in interview.answers] == [1, 2, 3, 4, 5, 6]
    assert [option.plan.name for option in interview.answers[1].question.options] == list(names[2:4])
    assert interview.recommendation.questions == interview.questions_answered == 0 and interview.at_most == before
    again = Interview.resume(COFFEE, json.loads(json.dumps(interview.log)))
    mine, theirs = interview.ask(), again.ask()
    assert mine is not None and theirs is not None and mine.key == theirs.key
    interview.undo(1)
    assert 1 not in [answer.number for answer in interview.answers]
    while (question := interview.ask()) is not None:
        interview.tell(person(question))
    assert interview.recommendation.questions == interview.questions_answered == len(interview.answers) - 5


def test_however_much_is_known_questions_can_be_asked() -> None:
    interview = Interview(COFFEE)
    before = interview.at_most
    assert before is not None and before <= 30
    for number in range(31):  # more than the strategy asks at most; by somebody who is hard to understand
        interview.observe(COFFEE.names[2 * number : 2 * number + 2], "first" if number % 3 else "second")
    assert interview.at_most == before and interview.ask() is not None
    for _ in range(31):
        interview.know("price >= 1%")
    assert interview.at_most == before and interview.recommendation.questions == 0


def test_an_observation_after_the_end_counts_and_a_contradiction_is_named() -> None:
    interview = Interview(COFFEE, "certified")
    person = LinearRespondent.scaled(COFFEE, [1, 1, 1, 1, 6])
    while (question := interview.ask()) is not None:
        interview.tell(person(question))
    asked = interview.recommendation.questions
    interview.know("price <= 1%")
    assert interview.recommendation.reason.startswith("the answers contradict")
    conflict = interview.conflicts()
    texts = [answer.statement.text for answer in conflict if answer.statement is not None]
    assert texts == ["price <= 1%"] and len(conflict) > 1
    assert interview.recommendation.questions == asked
    again = Interview.resume(COFFEE, json.loads(json.dumps(interview.log)))
    assert [answer.number for answer in again.conflicts()] == [answer.number for answer in conflict]
    interview.undo()
    assert interview.conflicts() == () and interview.finished


def test_options_are_given_by_name_by_amounts_or_in_order() -> None:
    (name, other), k = COFFEE.names[:2], len(COFFEE.objectives)
    amounts = COFFEE.outcome(COFFEE.option(name).value)
    by_name = dict(zip((o.name for o in COFFEE.objectives), amounts.tolist(), strict=True))
    for option in (name, amounts.tolist(), amounts, by_name, COFFEE.option(name)):
        question = question_about(COFFEE, [option, other])
        np.testing.assert_allclose(question.values[0], COFFEE.option(name).value, atol=1e-12)
    # Only differences count: objectives that no option names are the same for all.
    question = question_about(COFFEE, [{"price": 19, "crema": 6}, {"price": 16.5, "crema": 4}])
    np.testing.assert_allclose(question.difference * COFFEE.scale, [0, 0, 2, 0, 2.5], atol=1e-12)
    assert question.values.shape == (2, k)


def test_items_that_are_not_asked_about_can_be_compared() -> None:
    whole = Catalogue([[300, 50, 40], [200, 40, 50], [400, 30, 60]], AIMS, names=["Alto", "Brio", "Dull"])
    kept = whole.subset(np.array([0, 1]))
    kept.beaten = {"Dull": [400.0, 30.0, 60.0]}
    question = question_about(kept, ["Brio", "Dull"])
    np.testing.assert_allclose(question.difference * kept.scale, [-200, 10, -10])


@pytest.mark.parametrize(
    ("options", "reply", "facts"),
    [
        ("first", "first", ["two or more options"]),
        ([COFFEE.names[0]], 0, ["two or more options"]),
        ([COFFEE.names[0], "Atlantis"], 0, ["Atlantis"]),
        ([{"price": 1}, {"crema": 1}], 0, ["the same objectives"]),
        ([{"speed": 1}, {"speed": 2}], 0, ["no objective 'speed'", "'crema'"]),
        ([{"price": "cheap"}, {"price": 2}], 0, ["5 numbers", "cheap"]),
        ([[1, 2], [3, 4]], 0, ["5 numbers", "[1, 2]"]),
        ([[1, 2, 3, 4, float("nan")], [1, 2, 3, 4, 5]], 0, ["5 numbers", "nan"]),
        ([None, None], 0, ["5 numbers", "None"]),
        ([{"price": 1e300}, {"price": 1}], 0, ["1e+09"]),
        (Question((Option([1.0]), Option([0.0]))), 0, ["5 gains"]),
        (Question((Option([np.nan] * 5), Option([0.0] * 5))), 0, ["5 gains", "nan"]),
        (list(COFFEE.names[:2]), "perhaps", ["perhaps", "2 options"]),
        (list(COFFEE.names[:2]), Reply(0, 1), ["2 options"]),
        (list(COFFEE.names[:3]), 3, ["3 options"]),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_and_changes_nothing(options: Any, reply: Any, facts: list[str]) -> None:
    interview = Interview(COFFEE)
    with refused(ArgumentError, *facts):
        interview.observe(options, reply)
    assert len(interview.log) == 1


def test_statements_of_another_problem_are_refused_and_change_nothing() -> None:
    interview = Interview(COFFEE)
    for differences in ([[1.0, 2.0]], [[1e10] * 5]):
        with refused(ArgumentError, "5 gains"):
            interview.know(Statement("mine", np.array(differences), np.array([3])))
    assert len(interview.log) == 1


def test_strategies_that_learn_only_from_what_they_ask_refuse() -> None:
    with refused(ArgumentError, "use careful or certified"):
        Interview(COFFEE, "paper").observe(COFFEE.names[:2], EQUAL)


def test_nothing_is_an_option_too() -> None:
    """Of a lottery with nothing, only the gains are in the log."""
    interview = Interview(COFFEE)
    interview.observe([COFFEE.names[0], Option(np.zeros(5), NOTHING)], "first")
    again = Interview.resume(COFFEE, json.loads(json.dumps(interview.log)))
    assert again.answers[0].question.key == interview.answers[0].question.key
