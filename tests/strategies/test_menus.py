"""Questions of more than two: what a reply says, against brute force over simulated people; and interviews of them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies.people import random_catalogue
from tradeoff import Interview, LinearUser, Question, load
from tradeoff.decisions.preferences import Preferences
from tradeoff.errors import ArgumentError, LogError
from tradeoff.menus import (
    QUESTIONS,
    Asks,
    Choice,
    Menu,
    check_choice,
    comparisons,
    implied,
    members,
    possible,
    shapes,
)
from tradeoff.model import NOTHING, Alternative, Answer
from tradeoff.strategies.offering import reply_chances
from tradeoff.strategies.polytope import Cone, half_spaces
from tradeoff.strategies.sampling import consistent
from tradeoff.testing.strategies import check_certificates, check_ends, check_replay, interview, small_problems
from tradeoff.users import relative_regret

MENUS = [name for name in QUESTIONS if name != "pairs"]
KINDS: list[tuple[int, Asks]] = [QUESTIONS[name] for name in MENUS]


def menu_of(values: np.ndarray, asks: Asks) -> Menu:
    return Menu(tuple(Alternative(value, NOTHING) for value in values), asks)


class AnyTaker(LinearUser):
    """Takes at random one of the replies that fit what they can tell apart: the law allows every one of them."""

    def __init__(self, weights: np.ndarray, precision: float, seed: int) -> None:
        super().__init__(weights, precision, seed=seed)

    def _to_menu(self, menu: Menu) -> Choice:
        found = possible(menu.values @ self.weights, self.precision, menu.asks)
        return found[self._random.integers(len(found))]


# --- what a reply says ------------------------------------------------------------------------------------------------


@given(st.sampled_from(KINDS), st.integers(0, 10_000), st.floats(0, 0.5))
def test_every_possible_reply_is_true_of_the_person_and_leaves_them_in_the_cone(
    kind: tuple[int, Asks], seed: int, precision: float
) -> None:
    """Law: whatever somebody says of what they cannot tell apart, no half-space of it cuts them off."""
    size, asks = kind
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(3))
    values = rng.integers(0, 4, (size, 3)) / 3 if seed % 2 else rng.random((size, 3))  # with ties, and without
    replies = possible(values @ weights, precision, asks)
    assert replies and all(reply in shapes(size, asks) for reply in replies)
    for reply in replies:
        differences, kinds = comparisons(menu_of(values, asks), reply)
        assert (half_spaces(differences, kinds) @ np.append(weights, precision) >= -1e-12).all()
        assert consistent(weights[None], [precision + 1e-12], differences, kinds)[0, kinds != 1].all()


@given(st.sampled_from(KINDS), st.integers(0, 10_000))
def test_what_cannot_be_said_is_false_of_the_person(kind: tuple[int, Asks], seed: int) -> None:
    """Nobody without a doubt gives two replies, and what they did not say contradicts who they are."""
    size, asks = kind
    rng = np.random.default_rng(seed)
    weights, values = rng.dirichlet(np.ones(4)), rng.random((size, 4))
    (said,) = possible(values @ weights, 0.0, asks)
    for other in shapes(size, asks):
        rows = half_spaces(*comparisons(menu_of(values, asks), other))
        assert (rows @ np.append(weights, 0.0) >= 0).all() == (other == said)


@given(st.integers(0, 10_000), st.floats(0, 0.5))
def test_a_pair_is_the_menu_of_two(seed: int, precision: float) -> None:
    rng = np.random.default_rng(seed)
    weights, values = rng.dirichlet(np.ones(3)), rng.random((2, 3))
    question = Question(Alternative(values[0], NOTHING), Alternative(values[1], NOTHING))
    answer = LinearUser(weights, precision)(question)
    as_choice = {
        Answer.FIRST: Choice.of_best(0, 2),
        Answer.SECOND: Choice.of_best(1, 2),
        Answer.SAME: Choice.about_equal(2),
    }[answer]
    assert possible(values @ weights, precision, "best") == [as_choice]
    (said,) = implied(as_choice)
    differences, kinds = comparisons(question, answer)
    assert np.array_equal((values[said.first] - values[said.second]) * said.outcome, differences[0] * kinds[0])


@given(st.sampled_from(KINDS), st.integers(0, 1000))
def test_predicted_replies_are_the_possible_ones(kind: tuple[int, Asks], seed: int) -> None:
    size, asks = kind
    rng = np.random.default_rng(seed)
    worth, precision = rng.random((5, 3, size)), rng.choice([0.0, 0.05, 0.3, 1.0], 5)
    chances = reply_chances(worth, precision, asks)
    assert np.allclose(chances.sum(axis=0), 1)
    for m in range(5):
        for q in range(3):
            found = {reply for reply, chance in zip(shapes(size, asks), chances[:, m, q], strict=True) if chance > 0}
            assert found == set(possible(worth[m, q], float(precision[m]), asks))


# --- interviews -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("questions", MENUS)
@pytest.mark.parametrize("strategy", ["certified", "careful"])
def test_no_certificate_is_exceeded(strategy: str, questions: str) -> None:
    """Also by those who take anything of what they cannot tell apart, at a coarse precision."""
    checked = 0
    for seed in range(2):
        rng = np.random.default_rng([seed, 8])
        problem = random_catalogue(rng, 3, kind="sphere")
        weights, precision = rng.dirichlet(np.ones(3)), [0.01, 0.1][seed]
        person = AnyTaker(LinearUser.scaled(problem, weights).weights, precision, seed)
        for moment in interview(strategy, problem, person, questions=questions, seed=seed):
            said = moment.recommendation
            if said.regret_bound is not None and not said.doubtful:
                checked += 1
                assert relative_regret(problem, person, said.alternative) <= said.regret_bound + 1e-9
    assert checked >= 4


@pytest.mark.parametrize("strategy", ["certified", "careful"])
def test_the_laws_of_strategies_hold_with_menus(strategy: str) -> None:
    make = small_problems()["catalogue"]
    check_replay(strategy, make, 1, questions="best-worst-4")
    check_ends(strategy, make, 1, questions="best-worst-4")
    check_certificates(strategy, make, 1, questions="best-worst-4")


def test_menus_need_far_fewer_rounds() -> None:
    problem, rounds = load("coffee"), {}
    for questions in ("pairs", "best-worst-4"):
        held = [
            interview("careful", problem, LinearUser.scaled(problem, weights, 0.01), questions=questions)
            for weights in np.random.default_rng(6).dirichlet(np.ones(5), 6)
        ]
        rounds[questions] = np.mean([len(moments) - 1 for moments in held])
    assert rounds["best-worst-4"] < 0.7 * rounds["pairs"]


def asked(**settings: object) -> Interview:
    return Interview(load("coffee"), questions="best-worst-4", sides=3, **settings)


def test_an_interview_of_menus_is_kept_resumed_and_taken_back() -> None:
    interview, person = asked(), LinearUser([3, 1, 2, 1, 0.5], 0.01)
    first = interview.ask()
    assert isinstance(first, Menu) and len(members(first)) == 4
    shown = interview.next()
    assert sorted(shown.order) == [0, 1, 2, 3]
    interview.tell(person(first))
    interview.ask()
    interview.skip()
    third = interview.ask()
    assert members(third) != members(first)
    interview.tell(person(third))
    log = json.loads(json.dumps(interview.log))
    again = Interview.resume(load("coffee"), log)
    assert again.ask() is None if interview.finished else again.ask().key == interview.ask().key
    assert [record[2] for record in again.answers] == [person(first), None, person(third)]
    assert again.recommendation.regret_bound == interview.recommendation.regret_bound
    again.undo()  # a whole screen
    assert again.ask().key == third.key
    assert len(again.answers) == 2
    again.tell(Choice.about_equal(4))
    assert again.answers[-1][2] == Choice.about_equal(4)


def test_answers_that_fit_no_menu_are_refused_and_change_nothing() -> None:
    interview = asked()
    interview.ask()
    before = interview.log
    for wrong in (
        "first",
        Answer.FIRST,
        Choice.of_best(0, 4),
        Choice(((0,), (1,), (2,), (3,))),
        Choice(((7,), (0, 1), (2,))),
    ):
        with pytest.raises(ArgumentError, match="does not answer a menu of 4"):
            interview.tell(wrong)
    assert interview.log == before
    interview.tell("same")
    assert interview.log[-1]["tiers"] == [[0, 1, 2, 3]]
    with pytest.raises(ArgumentError, match="questions is 'triples'"):
        Interview(load("coffee"), questions="triples")
    assert check_choice("same", 3, "best-worst").equal


@pytest.mark.parametrize(
    ("position", "changes", "says"),
    [
        (1, {"order": [0, 1, 2, 2]}, "in the order"),
        (1, {"order": "ab"}, "'order' is"),
        (1, {"asks": "all"}, "'asks' is"),
        (1, {"alternatives": [[0.5] * 5] * 2}, "menu of 2"),
        (1, {"alternatives": [[0.5] * 5] * 4}, "would ask about"),
        (1, {"alternatives": [[0.5] * 4] * 4}, "4 numbers, but there are 5"),
        (2, {"tiers": [[0], [1]]}, "no reply to question 1"),
        (2, {"tiers": [["a"]]}, "'tiers' is"),
        (2, {"event": "answer", "answer": "first"}, "no reply to question 1"),
    ],
)
def test_edited_menus_are_found(position: int, changes: dict[str, object], says: str) -> None:
    interview = asked()
    interview.tell(LinearUser([3, 1, 2, 1, 0.5], 0.01)(interview.ask()))
    log = json.loads(json.dumps(interview.log))
    log[position] |= changes
    with pytest.raises(LogError, match=says):
        Interview.resume(load("coffee"), log)


def test_contradicting_rankings_are_found_whole() -> None:
    """One answer is one label, however many comparisons it makes."""
    interview = Interview(load("coffee"), "certified", questions="best-worst-4")
    person, contrary = LinearUser([3, 1, 2, 1, 0.5], 0.01), LinearUser([0, 5, 0, 1, 1], 0.01)
    for i in range(12):
        question = interview.ask()
        if question is None:
            break
        interview.tell((contrary if i % 2 else person)(question))
    conflict = interview.conflicts()
    assert conflict and not interview.recommendation.complete
    cone = Cone.orthant(5, 1.0)
    for number, question, answer in conflict:
        cone = cone.add(half_spaces(*comparisons(question, answer)), number)
    assert cone.empty


@given(st.integers(0, 1000))
def test_the_weights_that_fit_choices_are_those_of_the_cone(seed: int) -> None:
    """A ranking counts exactly the weights with which some precision explains every answer."""
    rng = np.random.default_rng(seed)
    problem = random_catalogue(rng, 3, items=12)
    person = AnyTaker(
        LinearUser.scaled(problem, rng.dirichlet(np.ones(3))).weights, float(rng.choice([0.01, 0.2])), seed
    )
    records, cone = [], Cone.orthant(3, 1.0)
    for number in range(1, 4):
        menu = Menu(tuple(problem.alternative(int(i)) for i in rng.choice(12, 4, replace=False)), "best-worst")
        records.append((number, menu, person(menu)))
        cone = cone.add(half_spaces(*comparisons(menu, records[-1][2])), number)
    fitting = Preferences.given(problem, records)
    assert not fitting.set_aside
    for weights in rng.dirichlet(np.ones(3), 20):
        rows = cone.half_spaces  # a @ (w, e) >= 0: is there such an e?
        least, most = 0.0, 1.0
        at, slope = rows[:, :-1] @ weights, rows[:, -1]
        assert np.all(at[np.abs(slope) < 1e-15] >= 0)
        least = max([least, *(-at[slope > 1e-15] / slope[slope > 1e-15])])
        most = min([most, *(at[slope < -1e-15] / -slope[slope < -1e-15])])
        if abs(least - most) > 1e-9:
            assert bool(fitting.fit(weights[None])[0]) == (least <= most)
