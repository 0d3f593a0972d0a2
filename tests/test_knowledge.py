"""What people say without being asked: it is understood, it narrows what is possible, and it is undone like an answer."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tradeoff import Answer, Interview, LinearRespondent, load
from tradeoff.errors import ArgumentError, LogError
from tradeoff.evidence import half_spaces
from tradeoff.model import FIRST
from tradeoff.problems.statements import parse_statement
from tradeoff.simulation.respondents import relative_regret

COFFEE = load("coffee")
NAMES = [o.name for o in COFFEE.objectives]


@given(st.integers(0, 10_000), st.floats(0, 0.1))
def test_true_statements_leave_the_person_in_the_cone(seed: int, precision: float) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(5))
    i, j = rng.choice(5, 2, replace=False)
    more, less = (NAMES[a] for a in ((i, j) if weights[i] >= weights[j] else (j, i)))
    assume(abs(weights[i] - weights[j]) > 1e-6 and weights[i] > 1e-3)
    share = 100 * weights[i]
    true = [
        f"{more} > {less}",
        f"{NAMES[i]} >= {max(share - 1, 0):.1f}%",
        f"{NAMES[i]} <= {min(share + 1, 100):.1f}%",
        f"{NAMES[i]} {max(share - 2, 0):.1f}% to {min(share + 2, 100):.1f}%",
    ]
    a, b = (COFFEE.names[n] for n in rng.choice(len(COFFEE.names), 2, replace=False))
    gap = weights @ (COFFEE.option(a).value - COFFEE.option(b).value)
    assume(abs(abs(gap) - precision) > 1e-9)
    true.append(f"{a} = {b}" if abs(gap) <= precision else f"{a} > {b}" if gap > 0 else f"{b} > {a}")
    for text in true:
        rows = half_spaces(*Answer(parse_statement(COFFEE, text), FIRST).certain_terms())
        assert (rows @ np.append(weights, precision) >= -1e-12).all(), text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "says nothing"),
        ("price", "not understood"),
        ("price > speed", "no objective 'speed'; there are 'body'"),
        ("price = body", "can be about equal"),
        (f"{COFFEE.names[0]} > Atlantis", "no item is called 'Atlantis'"),
        (f"price = {COFFEE.names[0]}", "no item is called 'price'"),
        ("price > price", "compares something with itself"),
        ("price 40% to 20%", "smaller share first"),
        ("price >= 120%", "no share"),
        ("price 1.2.3% to 20%", "no share"),
        ("x" * 500, "says nothing"),
    ],
)
def test_what_cannot_be_used_is_refused_and_changes_nothing(text: str, says: str) -> None:
    interview = Interview(COFFEE)
    with pytest.raises(ArgumentError, match=says):
        interview.know(text)
    assert len(interview.log) == 1


def test_strategies_that_learn_only_from_what_they_ask_refuse() -> None:
    with pytest.raises(ArgumentError, match="use careful or certified"):
        Interview(COFFEE, "paper").know("price > body")


@pytest.mark.parametrize("strategy", ["careful", "certified"])
def test_knowledge_is_learned_kept_resumed_and_undone(strategy: str) -> None:
    person = LinearRespondent.scaled(COFFEE, [1, 1, 1, 1, 6], 0.01)
    interview = Interview(COFFEE, strategy, questions="best-worst-4")
    before = interview.recommendation.importance[4]
    interview.know("price >= 50%")
    interview.know("Price > body")
    after = interview.recommendation.importance[4]
    assert before[0] < 0.1 and after[0] > 0.3
    question = interview.ask()
    interview.know("aroma <= 30%")  # while a question waits: another one may come
    question = interview.ask()
    interview.tell(person(question))
    again = Interview.resume(load("coffee"), json.loads(json.dumps(interview.log)))
    assert [answer.statement is not None for answer in again.answers] == [True] * 3 + [False]
    assert again.answers[-1].question.key == question.key
    assert (again.ask() is None) == (interview.ask() is None)
    if interview.ask() is not None:
        assert again.ask().key == interview.ask().key
    again.undo(1)  # the first statement; the answer to the menu stays, whoever would ask it now
    assert [answer.number for answer in again.answers] == [2, 3, 4]
    again.undo()
    assert [answer.number for answer in again.answers] == [2, 3]
    while (question := interview.ask()) is not None:
        interview.tell(person(question))
    found = interview.recommendation
    assert found.questions == sum(answer.asked is not None for answer in interview.answers)
    assert relative_regret(COFFEE, person, found.option) <= found.regret_bound + 1e-9


def test_a_statement_that_contradicts_is_named() -> None:
    interview = Interview(COFFEE, "certified")
    interview.know("price >= 80%")
    interview.know("body >= 70%")
    assert [answer.statement.text for answer in interview.conflicts()] == ["price >= 80%", "body >= 70%"]
    assert not interview.recommendation.complete
    interview.undo(2)
    assert interview.conflicts() == () and interview.ask() is not None


def test_edited_statements_are_found() -> None:
    interview = Interview(COFFEE)
    interview.know("price > body")
    for changes, says in [
        ({"outcomes": [7]}, "outcomes"),
        ({"outcomes": [3, 3]}, "'outcomes' is"),
        ({"differences": [[1.0, 2.0]]}, "2 numbers, but there are 5"),
        ({"number": 4}, "has the number 4, but the next one is 1"),
    ]:
        log = json.loads(json.dumps(interview.log))
        log[1] |= changes
        with pytest.raises(LogError, match=says):
            Interview.resume(COFFEE, log)


@pytest.mark.parametrize("strategy", ["careful", "certified"])
@pytest.mark.parametrize(
    ("text", "low", "high"),
    [("price >= 100%", 0.98, 1), ("price <= 0%", 0, 0.02), ("price 30% to 30%", 0.28, 0.32)],
)
def test_the_ends_of_the_range_can_be_stated(strategy: str, text: str, low: float, high: float) -> None:
    interview = Interview(COFFEE, strategy)
    interview.know(text)
    found = interview.recommendation
    assert not found.doubtful and not found.unexplained and not interview.conflicts()
    shares = found.importance[NAMES.index("price")]
    assert low <= shares[0] <= shares[1] <= high + 1e-9
