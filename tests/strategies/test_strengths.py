"""By how much something is better: evidence for the belief alone, which learns what the words mean to a person."""

from __future__ import annotations

from math import exp
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tests.strategies.people import random_catalogue
from tradeoff import Answer, ArgumentError, Graded, Interview, LogError, load
from tradeoff.kernels import density
from tradeoff.menus import A_LITTLE, A_LOT, STRENGTHS, UNSAID, Choice, comparisons, strengths
from tradeoff.model import Alternative, Item, Question
from tradeoff.people import KINDS, Person, kind_of
from tradeoff.strategies.polytope import half_spaces
from tradeoff.strategies.sampling import (
    PEOPLE,
    WITH_STRENGTHS,
    Particles,
    log_words,
    posterior_particles,
)

COFFEE = load("coffee")
TRAIT = st.floats(1e-4, 1.0)


def brute(margin: float, kind: int, strength: int, precision: float, noise: float, lapse: float, much: float) -> float:
    """How likely a word is of a side that was named, spelled out: of what is felt, given that it is noticed, or of a slip."""

    def passed(by: float, blur: float) -> float:
        return 0.0 if by / blur < -700 else 1 / (1 + exp(-by / blur))

    towards, line = kind * margin, precision + much
    blurred = noise + 0.2 * line
    near = towards - line > -600 * blurred  # far below, the ratio of two logistic tails
    felt = passed(towards - line, blurred) / passed(towards - precision, blurred) if near else exp(-much / blurred)
    lot = 0.05 + 0.9 * felt
    meant, slipped = (1 - 1.5 * lapse) * passed(towards - precision, noise), 0.5 * lapse
    lot = (meant * lot + slipped / 2) / (meant + slipped)
    return {UNSAID: 1.0, A_LOT: lot, A_LITTLE: 1 - lot}[strength]


@given(
    st.floats(-1.0, 1.0), st.sampled_from([1, -1]), st.sampled_from([UNSAID, A_LITTLE, A_LOT]), TRAIT, TRAIT,
    st.floats(0.01, 0.25), TRAIT,
)  # fmt: skip
def test_the_likelihood_is_what_is_written_down(margin, kind, strength, precision, noise, lapse, much) -> None:
    expected = brute(margin, kind, strength, precision, noise, lapse, much)
    traits = np.array([[precision], [noise], [lapse]])
    someone = Particles(np.array([[1.0]]), *traits, np.array([0]), np.array([much]))
    found = np.exp(log_words(someone, [[margin]], [kind], [strength]))[0, 0]
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)
    packed = kind * (1 + density.GRADED * strength)
    # A strength never speaks against its side: whatever was said by how much, the side is as likely as before, and both
    # words together are the answer alone.
    if (abs(margin) + precision) / noise < 600:  # plain Python cannot take larger exponentials, compiled code can
        with patch.object(density, "said", density.said.py_func):
            assert density.word_said.py_func(margin, packed, precision, noise, lapse, much) == pytest.approx(
                expected, rel=1e-9, abs=1e-12
            )
            sides = [density.said(margin, code, precision, noise, lapse) for code in (kind, packed)]
        assert sides[0] == sides[1]
    assert sum(brute(margin, kind, word, precision, noise, lapse, much) for word in (A_LITTLE, A_LOT)) == pytest.approx(
        1.0
    )


def test_a_lot_is_likelier_of_more_and_alike_for_both_sides() -> None:
    rng = np.random.default_rng(0)
    some = posterior_particles(np.zeros((0, 4)), [], 60, rng, answering=WITH_STRENGTHS)
    differences, kinds = rng.normal(size=(9, 4)) * 0.2, rng.choice([-1, 1], 9)
    there, back = (log_words(some, sign * differences, sign * kinds, np.full(9, A_LOT)) for sign in (1, -1))
    assert_allclose(there, back, atol=1e-12)
    ever_better = np.linspace(-0.5, 0.9, 9)[:, None] * np.ones(4)
    without_slips = some._replace(lapse=np.zeros(60))
    lot = np.exp(log_words(without_slips, ever_better, np.ones(9, dtype=np.int64), np.full(9, A_LOT)))
    assert (np.diff(lot, axis=1) >= -1e-12).all() and lot.min() > 0.04 and lot.max() < 0.96


@pytest.mark.parametrize("strength", STRENGTHS)
def test_a_strength_states_no_other_half_space(strength) -> None:
    two = Question(Alternative([1.0, 0.2], Item(0, "")), Alternative([0.1, 0.9], Item(1, "")))
    for side in (Answer.FIRST, Answer.SECOND):
        plain, graded = comparisons(two, side), comparisons(two, Graded(side, strength))
        assert_array_equal(half_spaces(*graded), half_spaces(*plain))
    assert strengths(Answer.FIRST, 1).tolist() == [UNSAID]
    for bad in (Answer.SAME, Choice.about_equal(3), Choice.of_best(0, 3)):
        with pytest.raises(ArgumentError, match="preferred to another one"):
            Graded(bad, strength)
    with pytest.raises(ArgumentError, match="is not a strength"):
        Graded(Answer.FIRST, "enormously")  # type: ignore[arg-type]


def test_the_belief_learns_what_a_lot_is() -> None:
    """Who says "a lot" of a tenth has a line below it; who says "a little" of a half has one above."""
    differences, kinds = np.tile([[0.1, 0.1], [0.5, 0.5]], (3, 1)), np.ones(6, dtype=np.int64)
    found = {}
    for word in (A_LITTLE, A_LOT):
        rng = np.random.default_rng(1)
        words = np.full(6, word)
        found[word] = posterior_particles(differences, kinds, 400, rng, answering=WITH_STRENGTHS, strengths=words)
    assert np.median(found[A_LOT].much) < 0.1 and np.median(found[A_LITTLE].much) > 0.4
    with pytest.raises(ArgumentError, match="neither side is preferred"):
        posterior_particles(differences, [0] * 6, 10, rng, strengths=[1] * 6)
    with pytest.raises(ArgumentError, match="strengths are as many"):
        posterior_particles(differences, kinds, 10, rng, strengths=[3] * 6)


def test_unsaid_strengths_change_no_bit() -> None:
    rng = np.random.default_rng(2)
    differences, kinds = rng.normal(size=(5, 3)), np.array([1, -1, 0, 2, 1])
    drawn = [
        posterior_particles(differences, kinds, 60, np.random.default_rng(3), answering=PEOPLE, strengths=words)
        for words in (None, [0] * 5)
    ]
    for one, other in zip(*drawn, strict=True):
        assert_array_equal(one, other)
    assert set(drawn[0].much) == {PEOPLE.much[0]} or np.ptp(drawn[0].much) < 1e-12


# --- interviews -------------------------------------------------------------------------------------------------------


def someone(kind: str = "exact", weights=(3, 1, 2, 1, 2), problem=COFFEE, seed: int = 5) -> Person:
    return Person(problem, weights, kind_of(kind), seed, strengths=True)


@pytest.fixture(scope="module")
def answered() -> dict[str, Interview]:
    """A finished interview in which strengths are said, of pairs and of menus."""
    made = {}
    for questions in ("pairs", "best-worst-4"):
        interview, who = Interview(COFFEE, questions=questions, strengths=True, sides=1), someone()
        while question := interview.ask():
            interview.tell(who(question))
        made[questions] = interview
    return made


@pytest.mark.parametrize("questions", ["pairs", "best-worst-4"])
def test_a_log_with_strengths_replays_exactly(answered: dict[str, Interview], questions: str) -> None:
    before = answered[questions]
    assert any("strength" in event for event in before.log)
    again = Interview.resume(COFFEE, before.log)
    assert [(n, a) for n, _, a in again.answers] == [(n, a) for n, _, a in before.answers]
    assert_array_equal(again.recommendation.weights, before.recommendation.weights)
    assert again.recommendation.likely_worst == before.recommendation.likely_worst
    assert not again.conflicts()
    again.undo()
    question = again.ask()
    assert question is not None
    again.skip()
    assert again.ask() is None or again.ask().key != question.key


@pytest.mark.parametrize("questions", ["pairs", "best-worst-4"])
def test_without_strengths_nothing_is_taken_and_nothing_changes(questions: str) -> None:
    """A person who never says how much is asked the same questions whether or not they may; nothing is in the log."""
    off, who = Interview(COFFEE, questions=questions), Person(COFFEE, [3, 1, 2, 1, 2], KINDS["exact"], 5)
    question = off.ask()
    ends = Answer.FIRST if questions == "pairs" else Choice.of_best_and_worst(0, 1, 4)
    for told in [(Graded(ends, "a lot"),), (ends, "a little")]:
        with pytest.raises(ArgumentError, match="strengths=True"):
            off.tell(*told)
    off.tell(who(question))
    assert [event["event"] for event in off.log][2:] == ["answer" if questions == "pairs" else "choice"]
    assert "strength" not in off.log[-1] and "strengths" not in off.log[0]["settings"]


def test_what_is_no_strength_is_refused_and_changes_nothing() -> None:
    on = Interview(COFFEE, strengths=True)
    on.ask()
    for told, message in [
        (("same", "a lot"), "preferred to another one"),
        (("first", "much"), "is not a strength"),
        (("third", "a lot"), "is not an answer"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            on.tell(*told)
    assert len(on.log) == 2
    on.tell("first", "a lot")
    assert on.answers[0][2] == Graded(Answer.FIRST, "a lot")
    damaged = [*on.log[:-1], {**on.log[-1], "strength": "very"}]
    with pytest.raises(LogError, match="'strength' is 'very'; it must be one of a lot, a little"):
        Interview.resume(COFFEE, damaged)
    with pytest.raises(LogError, match="is no reply to question 1"):
        Interview.resume(COFFEE, [*on.log[:-1], {**on.log[-1], "answer": "same"}])
    for strategy in ("certified", "paper"):
        with pytest.raises(ArgumentError, match="strengths"):
            Interview(COFFEE, strategy, strengths=True)
    with pytest.raises(ArgumentError, match="strengths is 'yes'"):
        Interview(COFFEE, strengths="yes")


def test_no_certificate_is_exceeded_however_odd_the_words() -> None:
    for number, kind in enumerate(["exact", "lavish", "sparing", "fickle"]):
        rng = np.random.default_rng(number)
        problem = random_catalogue(rng, 3, 40, "sphere")
        who = someone(kind, rng.dirichlet(np.ones(3)), problem, number)
        interview = Interview(problem, strengths=True)
        while question := interview.ask():
            interview.tell(who(question))
            found = interview.recommendation
            assert (
                found.regret_bound is None
                or found.doubtful
                or who.regret(found.alternative) <= found.regret_bound + 1e-9
            )
        assert who.errors == 0 and not interview.conflicts()
        assert found.likely_worst is not None and who.regret(found.alternative) <= found.likely_worst + 1e-9


def test_contradictions_are_found_as_without_strengths() -> None:
    interview = Interview(COFFEE, strengths=True)
    interview.know("price >= 90%")
    interview.know("price <= 10%")
    assert [number for number, _, _ in interview.conflicts()] == [1, 2]


def test_people_prefer_the_same_with_and_without_words() -> None:
    for kind in ("slips-20", "logistic-10", "side"):
        silent = Person(COFFEE, [3, 1, 2, 1, 2], KINDS[kind], 9)
        telling = Person(COFFEE, [3, 1, 2, 1, 2], KINDS[kind], 9, strengths=True)
        interview = Interview(COFFEE, strengths=True, max_questions=6)
        while question := interview.ask():
            said = telling(question)
            assert silent(question) == (said.answer if isinstance(said, Graded) else said)
            interview.tell(said)
