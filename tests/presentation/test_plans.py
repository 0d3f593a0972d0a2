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
from tradeoff.presentation import plans
from tradeoff.presentation.data import recommendation_data
from tradeoff.presentation.decision_data import change_data
from tradeoff.presentation.plans import RULES, guide, names_beside, plan_name, plan_names, recommended_name
from tradeoff.presentation.ranking import ranking_table
from tradeoff.presentation.result import result, what_ifs
from tradeoff.problem import dilute
from tradeoff.wording import Wording


def holds(rule, problem, situation) -> bool:
    """Return whether a line's condition holds in a situation, by its words alone."""
    words = [*problem.wording.parts(situation.state).values()]
    when = rule.when
    for part in sorted(words, key=len, reverse=True):
        when = when.replace(part, "", 1)
    when = when.strip(", ")
    if not when:
        return True
    steps = set()
    match = re.fullmatch(r"(?:at step|in quarter) (.+)", when)
    if match is None:
        return False
    for run in re.split(r", | and (?=\d+ to)|(?<!to) and ", match[1]):
        first, _, last = run.partition(" to ")
        steps |= set(range(int(first), int(last or first) + 1))
    return situation.step + 1 in steps


def check(problem, option) -> None:
    found = guide(problem, option)
    assert found is not None and 1 <= len(found.rules) <= RULES
    decisions = [s for s in problem.details(option.plan).situations if s.free] or list(
        problem.details(option.plan).situations
    )
    right = 0.0
    for situation in decisions:
        told = [rule for rule in found.rules if rule.when != "as a rule" and holds(rule, problem, situation)]
        usual = [rule for rule in found.rules if rule.when == "as a rule"]
        assert all(rule.do == situation.action for rule in told)  # no line is ever wrong
        right += situation.probability * any(rule.do == situation.action for rule in told or usual)
    share = right / sum(s.probability for s in decisions)
    said = re.search(r"(\d+)%", found.covered)
    assert share >= (int(said[1]) / 100 if said else 1) - 1e-9
    assert bool(said) or share > 1 - 1e-9


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


def named_first(problem, option) -> str:
    """Return what a plan decides first, by its own account."""
    situations = problem.details(option.plan).situations
    decided = [one for one in situations if one.free] or list(situations)
    return min(decided, key=lambda one: one.step).action


@pytest.mark.parametrize("name", ["commute", "vacuum", "portfolio"])
def test_plans_that_stand_together_have_names_that_tell_them_apart_and_say_how_they_begin(name: str) -> None:
    problem = tradeoff.load(name)
    rows = np.random.default_rng(3).dirichlet(np.ones(len(problem.objectives)), size=12)
    found = list({best.value.round(9).tobytes(): best for best in problem.best(rows)}.values())
    for size in (2, 3, 4):  # menus have no more
        for beside in zip(*(found[i:] for i in range(size)), strict=False):
            names = names_beside(problem, beside)
            assert len(set(names)) == size and max(map(len, names)) <= 120
            firsts = [named_first(problem, one) for one in beside]
            for i, (called, first) in enumerate(zip(names, firsts, strict=True)):
                begun, cut, _ = called.partition("…; ")  # only what would be too long is cut
                assert called.startswith(first) or (cut and first.startswith(begun) and len(called) > 110)
                assert (called == first) or firsts.count(
                    first
                ) > 1  # nothing is added where the first decision says enough
                if called != first and size == 2:  # what is added is what the other does not do there
                    state, step, action = likeliest_difference(problem, beside[i], beside[1 - i])
                    where = next(iter(problem.wording.parts(state).values()))
                    said = called.removeprefix(first)
                    assert said == f", then {action}" or said.startswith(f"; {action} if {where}"), (called, state)
                    assert step == 0 or called != names[1 - i]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("home after good news", "if home after good news"),
        ("in a crowded subway", "if in a crowded subway"),
        ("when it rains", "when it rains"),  # one "if" or "when" is enough
        ("after the third question", "after the third question"),
        ("s3", "if s3"),
        ("row 2, column 3", "if row 2, column 3"),
        ("at the rug, with 12 of 16 battery units left, with toys still dirty", "if at the rug …"),
        ("row 2, column 3, with 12 of 16 battery units left", "if row 2, column 3 …"),  # what is left out is not denied
        ("a very long name of a single situation, which is never cut", "if a very long name of a single situation …"),
    ],
)
def test_a_situation_in_a_name_reads_as_a_condition(state: str, words: str) -> None:
    problem = began_alike(state)
    names = plan_names(problem, *problem.best([[1.0, 0.0], [0.0, 1.0]]))
    assert set(names) == {f"go out; walk {words}", f"go out; ride {words}"}


def began_alike(state: str) -> tradeoff.MDP:
    """Return a problem whose plans all begin with going out, and differ in a state that may follow."""
    rows = [
        ("start", "go out", 0.5, "end", [0.0, 0.0]),
        ("start", "go out", 0.5, state, [0.0, 0.0]),
        ("start", "stay", 1.0, "end", [-1.0, -1.0]),
        (state, "walk", 1.0, "end", [1.0, 0.0]),
        (state, "ride", 1.0, "end", [0.0, 1.0]),
    ]
    return tradeoff.MDP.from_rows(rows, ends=["end"], horizon=2, start="start")


def likeliest_difference(problem, one, other) -> tuple[str, int, str]:
    """Return where two plans first do something else, of the likeliest such situations, by looking at all of them."""
    theirs = {(s.step, s.state): s for s in problem.details(other.plan).situations if s.free}
    differing = [
        (-round(min(s.probability, theirs[s.step, s.state].probability), 9), s.step, s)
        for s in problem.details(one.plan).situations
        if s.free and (s.step, s.state) in theirs and theirs[s.step, s.state].action != s.action
    ]
    chosen = min(differing, key=lambda row: row[:2])[2]
    return chosen.state, chosen.step, chosen.action


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
    assert told is not None and told.lead == "With a chance of 30% this is what is done:"


def test_plans_are_told_apart_by_the_same_decision_whether_all_are_kept_or_few(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    weights = np.vstack([rng.dirichlet(np.ones(4), size=5), np.eye(4)])
    found = []
    for most in (10**6, 300, 3, 1):
        monkeypatch.setattr(plans, "LIKELIEST", most)
        problem = tradeoff.load("vacuum")  # of which nothing is known yet
        told = problem.best(weights)
        found.append([plan_names(problem, one, other) for one in told for other in told])
    assert found[0] == found[1] == found[2] == found[3]
    assert len(set(found[0])) > 5


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
