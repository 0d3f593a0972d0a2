"""Law 9 for people as they are: what is said to be very likely is exceeded by few, or it is not said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import tradeoff
from tests.laws.test_law_9_statements import at_most
from tests.strategies.people import random_catalogue
from tradeoff import ArgumentError, Question
from tradeoff.model import EQUAL, FIRST, NOTHING, SECOND, Option, Reason, Recommendation, Reply
from tradeoff.presentation.certainty import NO_FIT, certainty, certificate, statements
from tradeoff.problem import Problem
from tradeoff.simulation.respondents import KINDS, Habits, Kind, Respondent, random_respondent
from tradeoff.strategies import Strategy, start
from tradeoff.strategies.careful import Careful
from tradeoff.strategies.elicitation import elicit
from tradeoff.strategies.solutions import Certifier
from tradeoff.strategies.tuning import CAREFUL

PEOPLE = 5  # of each kind
CHECKED = ("exact", "slips-20", "logistic-10", "thurstone-5", "side", "changing-5", "chebyshev")


def recommended(who: Respondent, problem: Problem, **options: str) -> Recommendation:
    return conducted(start("careful", problem, **options), who)


def conducted(running: Strategy, who: Respondent) -> Recommendation:
    try:
        step = next(running)
        while True:
            step = running.send(who(step.question))
    except StopIteration as end:
        found: Recommendation = end.value
        return found


@pytest.fixture(scope="module")
def interviews() -> dict[str, list[tuple[float, Recommendation]]]:
    problems = [tradeoff.load("coffee"), random_catalogue(np.random.default_rng(5), 4, items=60, kind="sphere")]
    made: dict[str, list[tuple[float, Recommendation]]] = {}
    for kind in CHECKED:
        made[kind] = []
        for i in range(PEOPLE):
            problem = problems[i % 2]
            who = random_respondent(problem, kind, 90, i)
            found = recommended(who, problem)
            made[kind].append((who.regret(found.option), found))
    return made


def test_very_likely_is_true_of_people_as_they_are(
    interviews: dict[str, list[tuple[float, Recommendation]]],
) -> None:
    for linear, rate in ((True, 0.05), (False, 0.1)):
        rows = [one for kind, made in interviews.items() for one in made if KINDS[kind].linear is linear]
        said = [(regret, found.likely_worst) for regret, found in rows if found.likely_worst is not None]
        assert len(said) > len(rows) / 2 or not linear  # whom no weights describe may be told that instead
        assert sum(regret > worst + 1e-9 for regret, worst in said) <= at_most(rate, len(said))


def test_very_likely_is_true_of_people_who_are_asked_in_menus() -> None:
    coffee = tradeoff.load("coffee")
    said = []
    for kind in ("exact", "slips-10", "logistic-10"):
        for i in range(PEOPLE):
            who = random_respondent(coffee, kind, 91, i)
            found = recommended(who, coffee, questions="best-worst-4")
            if found.likely_worst is not None:
                said.append((who.regret(found.option), found.likely_worst))
    assert len(said) > 2 * PEOPLE
    assert sum(regret > worst + 1e-9 for regret, worst in said) <= at_most(0.05, len(said))


def test_one_reply_that_all_are_about_equal_ends_nothing() -> None:
    """It makes six comparisons, and may be a single slip."""
    interview = tradeoff.Interview(tradeoff.load("coffee"), questions="best-worst-4")
    interview.ask()
    interview.tell(Reply(1, 3))
    interview.ask()
    interview.tell(EQUAL)
    assert interview.ask() is not None


def test_noise_makes_the_statement_weaker_and_not_the_interview_long(
    interviews: dict[str, list[tuple[float, Recommendation]]],
) -> None:
    def questions(kind: str) -> float:
        return float(np.mean([found.questions for _, found in interviews[kind]]))

    def told(kind: str) -> float:
        shares = [found.likely_worst for _, found in interviews[kind] if found.likely_worst is not None]
        return float(np.median(shares))

    for kind in ("logistic-10", "thurstone-5", "side"):
        assert questions(kind) <= 1.6 * questions("exact")
        assert told(kind) > told("exact")
    assert np.mean([regret for regret, _ in interviews["exact"]]) < 0.005


@pytest.mark.parametrize(("odd", "fits"), [((), True), ((3,), True), (range(1, 9), False)])
def test_answers_that_no_weights_explain_are_noticed(odd: Sequence[int], fits: bool) -> None:
    """A respondent who says what hardly anybody would say is told no number; one slip is no reason for that."""
    rng, problem = np.random.default_rng(0), random_catalogue(np.random.default_rng(1), 3)
    interview = tradeoff.Interview(problem)
    for number in range(1, 9):
        worse = rng.random(3) / 2
        better = worse + rng.random(3) / 2  # in everything
        interview.observe([better, worse], "second" if number in odd else "first")
    assert interview.recommendation.fits == fits
    assert (interview.recommendation.likely_worst is not None) == fits


def test_a_person_whom_nothing_fits_is_told_so() -> None:
    problem = random_catalogue(np.random.default_rng(1), 2, items=30)
    tuning = replace(CAREFUL, misfit=-100.0)  # as if all answers were too unlikely
    approach = Careful(problem, Certifier.of(problem), 0.01, False, "pairs", 0, tuning=tuning)
    found = conducted(elicit(approach), random_respondent(problem, "exact", 1))
    assert not found.fits and found.likely_worst is None and found.likely_regret is None
    assert found.reason == Reason.NO_FIT
    assert certainty("nothing", found) == list(NO_FIT)


def test_what_is_said_where_nothing_fits() -> None:
    known = {"regret_bound": 0.01, "robust_bound": 0.02, "likely_worst": None, "likely_regret": None}
    found = Recommendation(Option([1.0], NOTHING), [1.0], 5, Reason.NOT_SURER, fits=False, target=0.01, **known)  # type: ignore[arg-type]
    assert statements(found) == [] and certificate(found) == ""
    assert certainty("nothing", found) == list(NO_FIT)
    assert not any(character.isdigit() for character in "".join(NO_FIT))


def test_every_kind_answers_and_is_the_same_again() -> None:
    problem = tradeoff.load("coffee")
    first, second = problem.best([[1, 0, 0, 0, 0], [0, 1, 1, 0, 0]])
    question = Question((first, second))
    for kind in KINDS:
        one, two = random_respondent(problem, kind, 3), random_respondent(problem, kind, 3)
        assert [one(question) for _ in range(12)] == [two(question) for _ in range(12)]
        assert -1e-9 <= one.regret(first) <= 1 and one.weights.sum() == pytest.approx(1)
    changing = random_respondent(problem, "changing-3", 3)
    before, after = changing.before, changing.taste
    assert not np.allclose(before.weights, after.weights)
    with pytest.raises(ArgumentError, match="there are no respondents of the kind 'nobody'; there are exact"):
        random_respondent(problem, "nobody", 1)
    with pytest.raises(ArgumentError, match="catalogues only"):
        random_respondent(tradeoff.load("vacuum"), "chebyshev", 1)


def test_the_best_of_a_taste_is_worth_one_and_nothing_is_worth_more() -> None:
    problem = random_catalogue(np.random.default_rng(2), 4)
    for kind in KINDS.values():
        someone = Respondent(problem, [0.4, 0.3, 0.2, 0.1], kind, seed=1)
        assert someone.taste.all(problem.gains).max() == pytest.approx(1.0)


def test_habits_do_what_they_are_called() -> None:
    problem = random_catalogue(np.random.default_rng(3), 3)
    alike = Question((problem.option(0), problem.option(0)))
    assert Respondent(problem, [1, 1, 1], Kind(Habits(favours_first=0.1)), seed=0)(alike) == FIRST
    assert Respondent(problem, [1, 1, 1], Kind(Habits(slips=1.0)), seed=0)(alike) != EQUAL
    better = Question((problem.best([[1, 1, 1]])[0], Option(np.zeros(3), NOTHING)))
    assert Respondent(problem, [1, 1, 1], Kind(Habits(flips=1.0)), seed=0)(better) == SECOND
    noisy = Respondent(problem, [1, 1, 1], Kind(Habits(logistic=0.1)), seed=0)
    said = [noisy(alike) for _ in range(400)]
    assert abs(said.count(FIRST) - said.count(SECOND)) < 100 and noisy.errors > 300


def test_one_reply_is_never_called_a_misfit() -> None:
    interview = tradeoff.Interview(tradeoff.Catalogue([[10, 0], [0, 10]]))
    interview.ask()
    interview.tell("equal")
    assert interview.recommendation.fits
