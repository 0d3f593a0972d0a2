"""Law 9: what a person is told is true, and no two sentences contradict each other."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tradeoff
from tests.strategies.people import random_catalogue
from tradeoff import Interview, LinearRespondent
from tradeoff.decisions import Preferences
from tradeoff.model import NOTHING, Option, Reason, Recommendation
from tradeoff.presentation.certainty import (
    REASONS,
    certainty,
    certificate,
    certificate_while_asking,
    reason_words,
    stated,
    statements,
)
from tradeoff.presentation.result import because_words
from tradeoff.problem import Problem, with_share
from tradeoff.simulation.respondents import random_respondent, relative_regret
from tradeoff.simulation.results import exceeded_statements
from tradeoff.simulation.run import Settings, interview_respondents, respondent_at

SHARE = st.one_of(st.none(), st.just(0.0), st.floats(0, 1), st.floats(0, 0.02))
MAXIMA = ("proved", "one slip", "very likely")


def read(words: str) -> float:
    """Return the share that a person reads in a sentence."""
    numbers = re.findall(r"([\d.]+)%", words)
    assert len(numbers) == 1 or "no plan is better" in words.lower()
    return float(numbers[0]) / 100 if numbers else 0.0


def check_no_contradiction(found: Recommendation) -> None:
    said = {one.kind: one for one in statements(found)}
    for one in said.values():
        assert one.share < 1 and one.words
    maxima = [read(said[kind].words) for kind in MAXIMA if kind in said]
    average = found.likely_regret
    if "average" in said:  # it looks smaller than every maximum beside it, but not smaller than it is
        assert average is not None and average - 1e-9 <= read(said["average"].words) < min(maxima, default=1.0)
    elif found.fits and average is not None:  # it is left out only where it is no smaller
        assert average >= min((one.share for one in said.values()), default=1.0) * (1 - 1e-5)
    for kind, share in (
        ("proved", found.regret_bound),
        ("one slip", found.robust_bound),
        ("very likely", found.likely_worst),
    ):
        if kind in said:  # what is stated is never less than what is known
            assert share is not None and said[kind].share >= share - 1e-9
    assert certificate(found) in {*(one.words for one in said.values()), ""}


@given(SHARE, SHARE, SHARE, SHARE, st.integers(0, 9), st.sampled_from([(), (2,)]))
@settings(max_examples=200, deadline=None)
def test_no_two_sentences_contradict_each_other(
    bound: float | None,
    robust: float | None,
    worst: float | None,
    average: float | None,
    questions: int,
    doubtful: tuple[int, ...],
) -> None:
    known = {"regret_bound": bound, "robust_bound": robust, "likely_worst": worst, "likely_regret": average}
    found = Recommendation(Option([1.0], NOTHING), [1.0], questions, "", doubtful=doubtful, target=0.01, **known)  # type: ignore[arg-type]
    check_no_contradiction(found)
    nothing_better = bound is not None and bound <= 1e-9
    if nothing_better and worst is None:
        assert certificate_while_asking(found) == ""  # no question may follow "no plan is better"


def interviews(count: int) -> list[tuple[Problem, LinearRespondent, Interview]]:
    """Return interviews with people of all kinds, on catalogues of three and four objectives and a bundled MDP."""
    made: list[tuple[Problem, LinearRespondent, Interview]] = []
    for i in range(count):
        rng = np.random.default_rng([8, i])
        problem: Problem = random_catalogue(rng, 3 + i % 2)
        weights = rng.dirichlet(np.ones(len(problem.objectives)))
        person = LinearRespondent.scaled(
            problem, weights, (0.01, 0.05, 0.2)[i % 3], (0.0, 0.1, 0.2)[i // 3 % 3], seed=i
        )
        made.append((problem, person, Interview(problem, ("careful", "careful", "certified")[i % 3])))
    return made


def test_real_interviews_say_nothing_that_contradicts_itself() -> None:
    for _, person, interview in interviews(12):
        while question := interview.ask():
            check_estimate(interview.recommendation)
            interview.tell(person(question))
        check_estimate(interview.recommendation)
        assert reason_words(interview.recommendation) and Reason(interview.recommendation.reason) in REASONS


def check_estimate(found: Recommendation) -> None:
    check_no_contradiction(found)
    assert found.importance_if_right is not None and (found.importance is not None) == found.fits
    if found.fits:
        assert found.likely_regret is not None and found.likely_worst is not None
        assert found.likely_regret <= found.likely_worst + 1e-12
    else:  # nothing is likely where no weights explain the answers
        assert found.likely_regret is None and found.likely_worst is None
    if found.robust_bound is not None and found.regret_bound is not None:
        assert found.regret_bound <= found.robust_bound
    assert found.weights.sum() == pytest.approx(1)  # the estimate fits the trusted answers
    low, high = found.importance_if_right.T
    assert np.all(found.weights >= low - 1e-9) and np.all(found.weights <= high + 1e-9)
    why, target = found.reason, found.target
    assert target is not None
    if why == Reason.VERY_LIKELY_WITHIN:
        assert found.likely_worst is not None and found.likely_worst <= target
    if why in (Reason.PROBABLY_WITHIN, Reason.VERY_LIKELY_EITHER, Reason.PROBABLY_EITHER):
        assert found.likely_worst is not None and found.likely_worst > target  # otherwise more would be said
    if why == Reason.PROVED:
        assert found.regret_bound is not None and found.regret_bound <= target


def at_most(rate: float, people: int) -> int:
    """Return how many of so many people may differ if each does with this probability; more are seen once in a million."""
    chance, total = (1 - rate) ** people, 0.0
    for count in range(people + 1):
        total += chance
        if 1 - total < 1e-6:
            return count
        chance *= (people - count) / (count + 1) * rate / (1 - rate)
    return people


@pytest.mark.parametrize(("precision", "wrong"), [(0.01, 0.0), (0.01, 0.2), (0.05, 0.1), (0.2, 0.2)])
def test_very_likely_is_exceeded_by_at_most_one_in_twenty(precision: float, wrong: float) -> None:
    problem, people = tradeoff.load("coffee"), 20
    given = Settings(precision, "careful", wrong, seed=3)
    rows = interview_respondents(problem, range(people), given)
    found = exceeded_statements(rows, precision)
    assert found["very likely"].stated > people / 3  # not of those whom no weights fit
    assert found["very likely"].exceeded <= at_most(0.05, people)
    if not wrong:
        assert found["proved"].exceeded == found["proved with one slip"].exceeded == 0


def test_nothing_in_a_wide_interval_would_change_the_recommendation() -> None:
    said = 0
    for i in range(24):
        rng, k = np.random.default_rng([22, i]), 3 + i % 3
        problem = random_catalogue(rng, k)
        person = LinearRespondent.scaled(problem, rng.dirichlet(np.full(k, 0.6)), 0.01)
        interview = Interview(problem, ("certified", "careful")[i % 2], target=0.03)
        while question := interview.ask():
            interview.tell(person(question))
        found = interview.recommendation
        assert found.importance is not None
        fitting = Preferences.of(interview).spread(300)
        for j in (j for j, o in enumerate(problem.objectives) if o.name in found.unidentified):
            said += 1
            low, high = np.floor(100 * found.importance[j, 0]) / 100, np.ceil(100 * found.importance[j, 1]) / 100
            slider = with_share(found.weights, np.eye(k)[j], np.linspace(low, high, 50))
            inside = fitting[(fitting[:, j] >= low) & (fitting[:, j] <= high)]
            for weights in (*slider, *inside):
                best = float((problem.gains @ weights).max())
                assert 1 - found.option.value @ weights / best <= 0.03 + 1e-9
    assert said > 10


def outside(weights: np.ndarray, intervals: np.ndarray) -> int:
    return int(((weights < intervals[:, 0]) | (weights > intervals[:, 1])).sum())


def test_stated_intervals_of_importance_hold_for_respondents_who_err() -> None:
    problem, stated, false, false_if_right = tradeoff.load("coffee"), 0, 0, 0
    for i in range(16):
        person = random_respondent(problem, ("thurstone-15", "side-strong", "logistic-10", "slips-10")[i % 4], 300 + i)
        interview = Interview(problem)
        while question := interview.ask():
            interview.tell(person(question))
        found = interview.recommendation
        assert (found.importance is None) == (not found.fits) and found.importance_if_right is not None
        if found.importance is not None:
            stated += len(found.importance)
            false += outside(person.weights, found.importance)
            false_if_right += outside(person.weights, found.importance_if_right)
    assert stated > 40 and false <= at_most(0.05, stated) and 2 * false < false_if_right


@pytest.mark.parametrize(("strategy", "people", "false_share"), [("certified", 24, 0.0), ("careful", 40, 0.05)])
def test_what_is_said_to_matter_most_does(strategy: str, people: int, false_share: float) -> None:
    """Under "if your answers are right" there is no exception if they are; under "very likely", at most one in twenty."""
    said = false = 0
    for name in ("coffee", "commute"):
        problem = tradeoff.load(name)
        for i in range(people):
            person = respondent_at(problem, i, Settings(0.02, seed=9))
            interview = Interview(problem, strategy)
            while question := interview.ask():
                interview.tell(person(question))
            words, _ = because_words(problem, interview.recommendation)
            if "matters" not in words:
                continue
            said += 1
            shares = {o.name: w / person.weights.sum() for o, w in zip(problem.objectives, person.weights, strict=True)}
            first, rest = words.split(" matters ")
            others = [o for o in shares if o != first and o in rest]
            assert others
            compared = list(shares) if "matters most" in words else others
            false += any(shares[first] < shares[o] for o in compared)
    assert said > people / 2 and false <= false_share * said


@pytest.mark.parametrize(("questions", "people"), [("pairs", 20), ("best-worst-4", 9)])
def test_about_how_many_questions_is_about_right(questions: str, people: int) -> None:
    close = []
    for i in range(people):
        rng = np.random.default_rng([80, i])
        problem = random_catalogue(rng, 3 + i % 3)
        person = LinearRespondent.scaled(
            problem, rng.dirichlet(np.ones(len(problem.objectives))), (0.01, 0.05, 0.2)[i % 3]
        )
        interview, expected = Interview(problem, questions=questions), []
        while question := interview.ask():
            left = interview.recommendation.expected_left
            assert left is not None and math.isfinite(left)
            expected.append(round(left))
            interview.tell(person(question))
        close += [abs(left - (len(expected) - place)) <= 3 for place, left in enumerate(expected)]
    assert np.mean(close) > 0.7


def test_a_percentage_is_rounded_up() -> None:
    for share in (0.0, 1e-12, 0.001, 0.0101, 0.5, 0.999):
        assert stated(share) >= share - 1e-9


def test_regret_is_what_the_sentences_are_about() -> None:
    problem = tradeoff.load("coffee")
    person = respondent_at(problem, 0, Settings(0.01))
    (best,) = problem.best([person.weights])
    assert relative_regret(problem, person, best) == 0
    assert certainty("nothing", Recommendation(best, [1.0], 1, "")) == []
