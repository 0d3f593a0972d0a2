"""Laws of crowds: everybody's row is what an interview with them alone gives, however the crowd is divided."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tradeoff
from tradeoff.crowds import Settings, Waiting, interview_all, run_user, user_of
from tradeoff.menus import QUESTIONS, Asks, Choice, first_possible, possible, shapes
from tradeoff.model import Recommendation
from tradeoff.people import KINDS, Person
from tradeoff.population import simulate
from tradeoff.problem import Problem
from tradeoff.results import Results, Row
from tradeoff.strategies import start
from tradeoff.users import LinearUser, relative_regret, weighed

# Four catalogues, so that what their interviews have in common is worked out once.
SMALL = [
    tradeoff.Catalogue(np.random.default_rng(seed).random((size, k)).round(2))
    for seed, size, k in ((1, 4, 2), (2, 12, 2), (3, 9, 3), (4, 30, 3))
]


def alone(problem: Problem, index: int, settings: Settings) -> Row:
    """Return somebody's row by the book: one person, one strategy, one answer after the other."""
    user = user_of(problem, index, settings)
    running = start(settings.strategy, problem, max_questions=settings.max_questions, **settings.options)
    try:
        step = next(running)
        while True:
            step = running.send(user(step.question))
    except StopIteration as end:
        found: Recommendation = end.value
    lost = user.regret if isinstance(user, Person) else lambda plan: relative_regret(problem, user, plan)
    return Row(
        index, tuple(user.weights.tolist()), found.questions, lost(found.alternative), found.complete, str(found.reason),
        found.regret_bound, user.errors, 0.0, found.robust_bound, found.likely_worst, found.likely_regret, found.target,
    )  # fmt: skip


def timeless(results: Results) -> list[Row]:
    return [replace(results.row(i), seconds=0.0) for i in range(len(results))]


STRATEGIES: list[tuple[str, dict[str, Any]]] = [
    ("paper", {}),
    ("paper", {"basis": "spanner"}),
    ("certified", {}),
    ("careful", {}),
    ("careful", {"questions": "best-of-3"}),
    ("certified", {"questions": "best-worst-4"}),
]


@settings(max_examples=12)
@given(
    problem=st.sampled_from(SMALL),
    strategy=st.sampled_from(STRATEGIES),
    kind=st.one_of(st.just("exact"), st.sampled_from(sorted(KINDS))),
    error_rate=st.sampled_from([0.0, 0.0, 0.2, 1.0]),
    precision=st.sampled_from([0.0, 0.01, 0.2]),
    most=st.sampled_from([None, None, 0, 3]),
    seed=st.integers(0, 3),
    cuts=st.lists(st.integers(0, 6), max_size=2),
)
def test_together_everybody_gets_the_row_that_they_get_alone(
    problem: Problem, strategy: tuple[str, dict[str, Any]], kind: str, error_rate: float, precision: float,
    most: int | None, seed: int, cuts: list[int],
) -> None:  # fmt: skip
    name, options = strategy
    given = Settings(precision, name, error_rate, seed, most, options, kind)
    expected = [alone(problem, index, given) for index in range(6)]
    everybody = Waiting.of(np.arange(6), len(problem.objectives))
    walked = interview_all(problem, everybody, given)
    assert not len(walked.left) and timeless(walked.rows.by_index()) == expected
    # In any order, in any groups, as often as you like stopped in between.
    left = everybody[np.random.default_rng(seed).permutation(6)]
    done = []
    while len(left):
        parts = [
            part for part in np.split(np.arange(len(left)), sorted(min(cut, len(left)) for cut in cuts)) if len(part)
        ]
        walked_parts = [interview_all(problem, left[part], given, until=0.0) for part in parts]
        done += [one.rows for one in walked_parts]
        left = Waiting.joined([one.left for one in walked_parts])
    assert timeless(Results.joined(done).by_index()) == expected
    assert replace(run_user(problem, 4, given), seconds=0.0) == expected[4]


def test_whoever_answers_alike_is_asked_what_was_worked_out_once() -> None:
    run = simulate(SMALL[3], 400, strategy="certified", jobs=1)
    assert 0 < run.worked_out < 100 and run.results.questions.sum() > 10 * run.worked_out


def test_the_seconds_add_up_to_the_time_that_was_spent() -> None:
    begin = time.perf_counter()
    walked = interview_all(SMALL[3], Waiting.of(np.arange(40), 3), Settings(strategy="paper"), until=0.0)
    again = interview_all(SMALL[3], walked.left, Settings(strategy="paper"))
    spent = time.perf_counter() - begin
    assert (again.rows.seconds > 0).all()
    assert 0 < walked.rows.seconds.sum() + again.rows.seconds.sum() <= spent


@given(
    worth=st.lists(
        st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.3, 1.0]), min_size=4, max_size=4), min_size=1, max_size=5
    ),
    precision=st.sampled_from([0.0, 0.1, 0.2]),
    asked=st.sampled_from(sorted(set(QUESTIONS.values()) - {(2, "best")})),
)
def test_many_reply_to_a_menu_as_each_would(
    worth: list[list[float]], precision: float, asked: tuple[int, Asks]
) -> None:
    count, asks = asked
    rows = np.array(worth)[:, :count]
    found = [shapes(count, asks)[place] for place in first_possible(rows, precision, asks).tolist()]
    assert found == [possible(row, precision, asks)[0] for row in rows]
    assert all(isinstance(choice, Choice) for choice in found)


@given(seed=st.integers(0, 100), n=st.integers(1, 40), k=st.integers(1, 9))
def test_no_persons_worth_depends_on_the_others(seed: int, n: int, k: int) -> None:
    random = np.random.default_rng(seed)
    weights, value = random.random((n, k)), random.random(k)
    together = weighed(weights, value)
    assert together.tolist() == [LinearUser(row).worth(value) for row in weights]
    assert together.tolist() == weighed(weights, np.tile(value, (n, 1))).tolist()
    np.testing.assert_allclose(together, weights @ value, rtol=1e-12)


def test_a_compiled_file_gives_the_rows_of_its_coverage(tmp_path: Any) -> None:
    coverage = tradeoff.cover(SMALL[2], tolerance=0.05)
    given = Settings(strategy="certified", error_rate=0.1)
    walked = interview_all(coverage, Waiting.of(np.arange(8), 3), given)
    assert timeless(walked.rows.by_index()) == [alone(coverage, index, given) for index in range(8)]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_people_of_every_kind_are_drawn_as_before(kind: str) -> None:
    """The first user of seed 0, drawn by what the documentation says: a sequence of the seed, spawned for the user."""
    taste, slips = np.random.SeedSequence(0, spawn_key=(5,)).spawn(2)
    weights = np.random.default_rng(taste).dirichlet(np.ones(3))
    user = user_of(SMALL[2], 5, Settings(people=kind))
    expected = user._random.bit_generator.state
    assert np.allclose(getattr(user, "before", user).weights / user_sum(user), weights)
    if kind not in ("changing-3", "changing-5"):  # who have drawn from it already
        assert expected == np.random.default_rng(int(slips.generate_state(1, np.uint64)[0])).bit_generator.state


def user_sum(user: LinearUser | Person) -> float:
    return float(np.sum((user.before if isinstance(user, Person) else user).weights))
