"""Names and instructions: what a line says holds wherever the plan leads, and the lines cover what they say."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tradeoff
from tests.laws.test_law_2_show import models
from tradeoff import Mixture
from tradeoff.decisions import what_if
from tradeoff.errors import ProblemError
from tradeoff.presentation.data import recommendation_data
from tradeoff.presentation.decision_data import change_data
from tradeoff.presentation.decision_list import STEP, DecisionList, opening
from tradeoff.presentation.plans import (
    RESULT_LINES,
    guide,
    names_beside,
    plan_name,
    plan_names,
    ranked_names,
    recommended_name,
)
from tradeoff.presentation.ranking import ranking_table
from tradeoff.presentation.result import result, what_ifs
from tradeoff.problem import dilute
from tradeoff.wording import Wording


def fits(condition, problem, situation) -> bool:
    parts = {**problem.wording.parts(situation.state), STEP: str(situation.step + 1)}
    return all(parts.get(name) in values for name, values in condition.values)


def decisions_of(problem, option) -> list:
    situations = problem.details(option.plan).situations
    return [one for one in situations if one.free] or list(situations)


def check(problem, option) -> None:
    """The first line that fits a decision is right: always, or in 95% of what it fits where it says "nearly always"."""
    found = guide(problem, option)
    assert found is not None and 1 <= len(found.rules) <= RESULT_LINES
    first = opening(problem.details(option.plan).situations)
    assert all(one.probability > 1 - 1e-9 for one in first)
    later = [one for one in decisions_of(problem, option) if one not in first]
    lines = DecisionList(later, problem.wording).lines() if later else []
    rules = [rule for rule in (*found.rules, *found.rest) if rule.when not in ("first", "then")]
    assert [rule.do for rule in rules] == [line.action for line in lines]
    reached = dict.fromkeys(range(len(lines)), 0.0)
    right = dict.fromkeys(range(len(lines)), 0.0)
    for one in later:
        at = next((i for i, line in enumerate(lines) if fits(line.condition, problem, one)), None)
        if at is not None:
            reached[at] += one.probability
            right[at] += one.probability * (one.action == lines[at].action)
            assert one.action == lines[at].action or "nearly always" in rules[at].when
    assert all(right[at] >= 0.95 * reached[at] - 1e-9 for at in reached)
    shown = RESULT_LINES - bool(first)
    share = (sum(list(right.values())[:shown]) + len(first)) / (sum(one.probability for one in later) + len(first))
    said = re.search(r"(\d+)%", found.covered)
    assert share >= (int(said[1]) / 100 if said else 1) - 1e-9


def check_name(problem, option, name: str) -> None:
    """Every phrase of a name is true of all decisions that it is about."""
    made = decisions_of(problem, option)
    total = sum(one.probability for one in made)
    for phrase in re.split(r", (?=\w+ \S+ ?\S*$)", name)[0].split("; "):
        for action in {one.action for one in made}:
            mass: dict[int, float] = {}
            for one in made:
                mass[one.step] = mass.get(one.step, 0.0) + one.probability * (one.action == action)
            truths = {
                action: max(mass.values()) > 1 - 1e-9,
                f"always {action}": {one.action for one in made} == {action},
                f"mostly {action}": sum(mass.values()) > total / 2,
                f"usually {action}": max(mass.values()) >= 0.5,
                f"sometimes {action}": sum(mass.values()) > 0,
            }
            if phrase in truths:
                assert truths[phrase], (name, phrase)
                break
            if phrase.startswith(f"{action} "):
                where = phrase.removeprefix(f"{action} ").removeprefix("if ").split(", ")
                ends = [(one, [*problem.wording.parts(one.state).values()]) for one in made]
                covered = [one for one, parts in ends if all(any(p.endswith(w) for p in parts) for w in where)]
                assert covered and {one.action for one in covered} == {action}, (name, phrase)
                break
        else:
            raise AssertionError(f"{phrase!r} of {name!r} is about no action of the plan")


@pytest.mark.parametrize("name", ["commute", "vacuum", "portfolio"])
def test_what_to_do_when_is_what_the_plan_does(name: str) -> None:
    problem = tradeoff.load(name)
    for best in problem.best(np.random.default_rng(1).dirichlet(np.ones(len(problem.objectives)), size=12)):
        check(problem, best)


@given(models())
def test_the_lines_of_random_plans_are_true(drawn) -> None:
    mdp, rng = drawn
    (best,) = mdp.best([rng.normal(size=len(mdp.objectives))])
    if mdp.details(best.plan).situations:
        check(mdp, best)


@pytest.mark.parametrize("name", ["commute", "vacuum", "portfolio", "coffee"])
def test_the_two_sides_of_a_question_have_different_names(name: str) -> None:
    problem = tradeoff.load(name)
    rows = np.random.default_rng(2).dirichlet(np.ones(len(problem.objectives)), size=12)
    found = problem.best(rows)
    for one, other in pairwise(found):
        names = plan_names(problem, one, other)
        assert all(names)
        assert (names[0] != names[1]) == (np.abs(one.value - other.value).max() > 1e-9)


@pytest.mark.parametrize("name", ["commute", "vacuum", "portfolio"])
def test_names_of_plans_that_stand_together_differ_and_are_true(name: str) -> None:
    problem = tradeoff.load(name)
    rows = np.random.default_rng(3).dirichlet(np.ones(len(problem.objectives)), size=12)
    found = list({best.value.round(9).tobytes(): best for best in problem.best(rows)}.values())
    for size in (1, 2, 3, 4, len(found)):
        for beside in zip(*(found[i:] for i in range(size)), strict=False):
            for names in (names_beside(problem, beside), ranked_names(problem, beside)):
                assert len(set(names)) == size and not any("…" in each or "(" in each for each in names)
                for option, each in zip(beside, names, strict=True):
                    check_name(problem, option, each)


@given(models())
def test_names_of_random_plans_differ_and_are_true(drawn) -> None:
    mdp, rng = drawn
    best = mdp.best(rng.normal(size=(4, len(mdp.objectives))))
    found = [one for one in {each.value.round(6).tobytes(): each for each in best}.values() if decisions_of(mdp, one)]
    names = names_beside(mdp, found)
    assert len(set(names)) == len(found)
    for option, name in zip(found, names, strict=True):
        check_name(mdp, option, name)


def test_a_recommended_plan_has_one_name_everywhere() -> None:
    problem = tradeoff.load("commute")
    alike = 0
    for seed in range(4):
        interview = tradeoff.Interview(problem, seed=0)
        person = tradeoff.LinearRespondent.scaled(problem, np.random.default_rng(seed).dirichlet(np.ones(5)), 0.01)
        while (question := interview.ask()) is not None:
            interview.tell(person(question))
        found = interview.recommendation
        data = recommendation_data(problem, found, True, [])
        name = recommended_name(problem, found.option, found.runner_up)
        assert f"“{name}”" in result(problem, found, problem.show(found.option), True).sentence
        assert data["option"]["name"] == data["guide"]["name"] == name
        changes = what_if(problem, found)
        for change, told in zip(changes, change_data(problem, interview), strict=True):
            unchanged = change.stretches.index(change.unchanged)
            assert change.unchanged.option is found.option and told["stretches"][unchanged]["name"] == name
        for one in what_ifs(problem, found, changes):
            assert [switch.plan for switch in one.switches if switch.recommended] == [f"“{name}”"]
        if found.runner_up is not None:
            rows = ranking_table(problem, tradeoff.ranking(interview), {}).rows
            assert rows[0].name == name, [row.name for row in rows]
            alike += name != plan_name(problem, found.option)
    assert alike  # some runner-up begins as the recommended plan does


def test_a_mixture_is_named_with_its_chance() -> None:
    problem = tradeoff.load("commute")
    first, second = problem.best([[1, 0, 0, 0, 0], [0, 1, 0, 0, 0]])
    assert plan_name(problem, dilute(first, 0.3)).endswith(
        ", with a chance of 30%, otherwise the worst trip imaginable"
    )
    both = problem.option(Mixture((0.6, 0.4), (first.plan, second.plan)))
    assert plan_name(problem, both).startswith(plan_name(problem, first))
    told = guide(problem, dilute(first, 0.3))
    assert told is not None and told.lead == "With a chance of 30% this is done:"


def test_an_item_is_simply_taken() -> None:
    problem = tradeoff.load("coffee")
    (best,) = problem.best([[1, 0, 0, 0, 0]])
    assert guide(problem, best) is None and plan_name(problem, best) == best.plan.name


def test_long_names_of_items_stay_and_only_routes_are_told_by_their_streets() -> None:
    long = [
        "Charming two-room flat in the old town, with a view over the river, bright",
        "Attic, with a view over the river",
    ]
    flats = tradeoff.Catalogue([[1, 2], [2, 1]], names=long)
    one, other = flats.best(np.eye(2))
    assert {*plan_names(flats, one, other)} == {*long}
    routes = tradeoff.Catalogue([[1, 2], [2, 1]], names=long)
    routes.roads = (("a", "b"),)
    assert {*plan_names(routes, one, other)} == {
        "by Attic",
        f"by {long[0].replace(', with a view over the river', '')}",
    }


def test_the_parts_of_a_solution_are_listed_as_they_are() -> None:
    def best(weights):
        number = int(np.argmax([[9.0, 1.0], [1.0, 9.0]] @ weights))
        return [[9.0, 1.0], [1.0, 9.0]][number], [["tent", "stove: gas"], ["book", "guitar"]][number]

    bag = tradeoff.PointSet(best, ["comfort", "fun"], gap=0)
    told = guide(bag, bag.best([[1, 0]])[0])
    assert told is not None and told.lines == ("tent", "stove: gas") and "start" not in told.lead


def test_states_are_said_in_phrases() -> None:
    said = tradeoff.load("vacuum").wording
    assert said.words("kitchen table 12/16 dirty rug and table") == (
        "at the kitchen table, with rug and table still dirty, with 12 of 16 battery units left"
    )
    assert said.words("docked") == "docked"
    assert Wording().words("row 2, column 3, with gold") == "row 2, column 3, with gold"
    assert Wording().parts("row 2, column 3") == {"row #": "row 2", "column #": "column 3"}
    assert Wording().words("(1, 2)") == "(1, 2)"


@given(st.text(max_size=30))
def test_any_name_can_be_said(name: str) -> None:
    assert isinstance(Wording().words(name), str)
    parts = Wording({"states": "{a} {b}", "b": "b is {b}"}).parts(name)
    assert parts.keys() in ({""}, {"a", "b"})


@pytest.mark.parametrize(
    "description",
    [
        {"states": "no variable"},
        {"states": "{a} {a}"},
        {"states": "{step}"},
        {"states": "{a}", "b": "x"},
        {"states": "{a}", "a": "{c}"},
        {"states": ["{a}"], "a": 3},
    ],
)
def test_a_description_that_cannot_be_meant_is_refused(description) -> None:
    with pytest.raises(ProblemError):
        Wording(description)
