"""What a reply says, against brute force over simulated respondents; and interviews of questions about several options."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies.people import random_catalogue
from tradeoff import Answer, Interview, LinearRespondent, Option, Question, Reply, load
from tradeoff.decisions.preferences import Preferences
from tradeoff.errors import ArgumentError, LogError
from tradeoff.evidence import PREFERRED, QUESTIONS, check_reply, half_spaces, possible_replies
from tradeoff.model import EQUAL, FIRST, NONE, SKIP, Asks
from tradeoff.simulation.respondents import relative_regret
from tradeoff.strategies.acquisition import possible_menu_replies
from tradeoff.strategies.cone import Cone
from tradeoff.testing.strategies import check_certificates, check_ends, check_replay, interview, small_problems

MENUS = [name for name in QUESTIONS if name != "pairs"]
# Everything that can be asked: also what no strategy asks, because answers may come from elsewhere.
SHAPES: list[tuple[int, Asks]] = [(2, "best"), (3, "best"), (4, "best"), (3, "best-worst"), (4, "best-worst")]


def question_of(values: np.ndarray, asks: Asks) -> Question:
    return Question(tuple(Option(value) for value in values), asks)


class AnyTaker(LinearRespondent):
    """Takes at random one of the replies that fit what they can tell apart: the law allows every one of them."""

    def __init__(self, weights: np.ndarray, precision: float, seed: int) -> None:
        super().__init__(weights, precision, seed=seed)

    def __call__(self, question: Question) -> Reply:
        found = possible_replies(question.values @ self.weights, self.precision, question.asks)
        return found[self._random.integers(len(found))]


# --- what a reply says ------------------------------------------------------------------------------------------------


@given(st.sampled_from(SHAPES), st.integers(0, 10_000), st.floats(0, 0.5))
def test_every_possible_reply_is_true_of_the_person_and_leaves_them_in_the_cone(
    shape: tuple[int, Asks], seed: int, precision: float
) -> None:
    """Law: whatever somebody says of what they cannot tell apart, no half-space of it cuts them off."""
    size, asks = shape
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(3))
    values = rng.integers(0, 4, (size, 3)) / 3 if seed % 2 else rng.random((size, 3))  # with ties, and without
    question = question_of(values, asks)
    replies = possible_replies(values @ weights, precision, asks)
    assert replies and all(reply in question.replies for reply in replies)
    for reply in replies:
        answer = Answer(question, reply)
        assert (half_spaces(*answer.certain_terms()) @ np.append(weights, precision) >= -1e-12).all()
        differences, outcomes = answer.likelihood_terms()
        rows = half_spaces(differences[outcomes != PREFERRED], outcomes[outcomes != PREFERRED])
        assert (rows @ np.append(weights, precision) >= -1e-12).all()


@given(st.sampled_from(SHAPES), st.integers(0, 10_000))
def test_what_cannot_be_said_is_false_of_the_person(shape: tuple[int, Asks], seed: int) -> None:
    """Nobody without a doubt gives two replies, and what they did not say contradicts who they are."""
    size, asks = shape
    rng = np.random.default_rng(seed)
    weights, values = rng.dirichlet(np.ones(4)), rng.random((size, 4))
    question = question_of(values, asks)
    (said,) = possible_replies(values @ weights, 0.0, asks)
    for other in question.replies:
        rows = half_spaces(*Answer(question, other).likelihood_terms())
        assert (rows @ np.append(weights, 0.0) >= 0).all() == (other == said)


@pytest.mark.parametrize("word", [SKIP, NONE])
def test_a_reply_that_names_nothing_says_nothing(word: Reply) -> None:
    for size, asks in SHAPES:
        answer = Answer(question_of(np.eye(size), asks), word)
        for differences, outcomes in (answer.certain_terms(), answer.likelihood_terms()):
            assert differences.shape == (0, size) and not len(outcomes)


@given(st.integers(3, 4), st.integers(0, 1000))
def test_predicted_replies_are_the_possible_ones(size: int, seed: int) -> None:
    """Of respondents who can tell the best from the worst that they name, as the posterior supposes."""
    rng = np.random.default_rng(seed)
    worth, precision = rng.random((5, 3, size)), rng.choice([0.0, 0.05, 0.3, 1.0], 5)
    replies = question_of(np.eye(size), "best-worst").replies
    predicted = possible_menu_replies(worth, precision)
    for m in range(5):
        for q in range(3):
            found = {reply for reply, can_be in zip(replies, predicted[:, m, q], strict=True) if can_be}
            expected = {
                reply
                for reply in possible_replies(worth[m, q], float(precision[m]), "best-worst")
                if reply == EQUAL or worth[m, q, reply.best] - worth[m, q, reply.worst] > precision[m]
            }
            assert found == expected


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
        person = AnyTaker(LinearRespondent.scaled(problem, weights).weights, precision, seed)
        for moment in interview(strategy, problem, person, questions=questions, seed=seed):
            said = moment.recommendation
            if said.regret_bound is not None and not said.doubtful:
                checked += 1
                assert relative_regret(problem, person, said.option) <= said.regret_bound + 1e-9
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
            interview("careful", problem, LinearRespondent.scaled(problem, weights, 0.01), questions=questions)
            for weights in np.random.default_rng(6).dirichlet(np.ones(5), 6)
        ]
        rounds[questions] = np.mean([len(moments) - 1 for moments in held])
    assert rounds["best-worst-4"] < 0.7 * rounds["pairs"]


def asked(**settings: object) -> Interview:
    return Interview(load("coffee"), questions="best-worst-4", order_seed=3, **settings)


def test_an_interview_of_menus_is_kept_resumed_and_undone() -> None:
    interview, person = asked(), LinearRespondent([3, 1, 2, 1, 0.5], 0.01)
    first = interview.ask()
    assert len(first.options) == 4 and first.asks == "best-worst"
    assert sorted(interview.next().order) == [0, 1, 2, 3]
    interview.tell(person(first))
    interview.ask()
    interview.skip()
    third = interview.ask()
    assert third.members != first.members
    interview.tell(person(third))
    log = json.loads(json.dumps(interview.log))
    again = Interview.resume(load("coffee"), log)
    assert again.ask() is None if interview.finished else again.ask().key == interview.ask().key
    assert [answer.reply for answer in again.answers] == [person(first), SKIP, person(third)]
    assert again.recommendation.regret_bound == interview.recommendation.regret_bound
    again.undo()  # a whole screen
    assert again.ask().key == third.key
    assert len(again.answers) == 2
    again.tell(EQUAL)
    assert again.answers[-1].reply == EQUAL


@pytest.mark.parametrize("wrong", ["first", FIRST, 0, Reply(0, 7), Reply(7, 0), "same", "", None, [0, 1]], ids=repr)
def test_replies_that_do_not_fit_a_menu_are_refused_and_change_nothing(wrong: object) -> None:
    interview = asked()
    interview.ask()
    before = interview.log
    with pytest.raises(ArgumentError, match="4 options"):
        interview.tell(wrong)
    assert interview.log == before
    interview.tell("equal")
    assert interview.log[-1]["reply"] == "equal"


@pytest.mark.parametrize(("best", "worst", "word"), [
    (None, None, None), (None, 1, None), (1, 1, None), (-1, None, None), (0.5, None, None), (True, None, None),
    (0, None, "equal"), (None, None, "same"), (None, None, ["equal"]),
])  # fmt: skip
def test_what_is_no_reply_is_refused(best: object, worst: object, word: object) -> None:
    with pytest.raises(ArgumentError, match="a reply names the best option"):
        Reply(best, worst, word)


def test_kinds_of_question_that_do_not_exist_are_refused() -> None:
    for kind in ("triples", "best-of-3", "rank-3", None):
        with pytest.raises(ArgumentError, match=f"questions is {kind!r}"):
            Interview(load("coffee"), questions=kind)
    for options, asks in ((1, "best"), (2, "best-worst"), (3, "all")):
        with pytest.raises(ArgumentError, match="a question has at least 2 options"):
            question_of(np.eye(3)[:options], asks)
    assert check_reply("equal", 3, "best-worst") == EQUAL


@pytest.mark.parametrize(
    ("position", "changes", "says"),
    [
        (1, {"order": [0, 1, 2, 2]}, "in the order"),
        (1, {"order": "ab"}, "order"),
        (1, {"asks": "all"}, "asks"),
        (1, {"options": [[0.5] * 5] * 2, "order": [0, 1]}, "has 2 options"),
        (1, {"options": [[0.5] * 4] * 4}, "4 numbers, but there are 5"),
        (2, {"worst": None}, "does not name the best and the worst"),
        (2, {"best": 4}, "does not name the best and the worst"),
        (2, {"best": "a"}, "best"),
        (2, {"best": 1, "worst": 1}, "a reply names the best option"),
        (2, {"reply": "equal"}, "a reply names the best option"),
        (2, {"reply": "perhaps"}, "reply"),
    ],
)
def test_edited_menus_are_found(position: int, changes: dict[str, object], says: str) -> None:
    interview = asked()
    interview.tell(LinearRespondent([3, 1, 2, 1, 0.5], 0.01)(interview.ask()))
    log = json.loads(json.dumps(interview.log))
    log[position] |= changes
    with pytest.raises(LogError, match=f"event {position + 1} of the log.*{says}"):
        Interview.resume(load("coffee"), log)


def test_contradicting_replies_are_found_whole() -> None:
    """One answer is one label, however many comparisons it makes: "best" contradicts "the worst is noticeably better"."""
    problem = load("coffee")
    interview = Interview(problem, questions="best-worst-4")
    menu = interview.ask()
    interview.tell(Reply(0, 3))
    best, worst = (menu.options[i].plan.name for i in (0, 3))
    interview.know(f"{worst} > {best}")
    assert [answer.number for answer in interview.conflicts()] == [1, 2]
    interview.undo(2)
    interview.know(f"{worst} = {best}")  # they may be too close to tell
    assert interview.conflicts() == ()


@given(st.sampled_from([(2, "best"), (4, "best-worst")]), st.integers(0, 1000))
def test_the_weights_that_fit_answers_are_those_of_the_cone(shape: tuple[int, Asks], seed: int) -> None:
    """A ranking counts exactly the weights with which some precision explains every answer."""
    size, asks = shape
    rng = np.random.default_rng(seed)
    problem = random_catalogue(rng, 3, items=12)
    person = AnyTaker(
        LinearRespondent.scaled(problem, rng.dirichlet(np.ones(3))).weights, float(rng.choice([0.01, 0.2])), seed
    )
    answers, cone = [], Cone.orthant(3, 1.0)
    for number in range(1, 4):
        chosen = rng.choice(12, size, replace=False)
        question = Question(tuple(problem.option(int(i)) for i in chosen), asks)
        answers.append(Answer(question, person(question), number))
        cone = cone.add(half_spaces(*answers[-1].likelihood_terms()), number)
    fitting = Preferences.given(problem, answers)
    assert not fitting.set_aside
    if cone.empty:  # best and worst were too close to tell apart, which the ranking does not suppose then
        return
    for weights in rng.dirichlet(np.ones(3), 20):
        rows = cone.half_spaces  # a @ (w, e) >= 0: is there such an e?
        at, slope = rows[:, :-1] @ weights, rows[:, -1]
        assert np.all(at[np.abs(slope) < 1e-15] >= 0)
        least = max([0.0, *(-at[slope > 1e-15] / slope[slope > 1e-15])])
        most = min([1.0, *(at[slope < -1e-15] / -slope[slope < -1e-15])])
        if abs(least - most) > 1e-9:
            assert bool(fitting.fit(weights[None])[0]) == (least <= most)
