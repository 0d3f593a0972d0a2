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
from tests.models import random_arrays
from tradeoff import Mixture
from tradeoff.decisions import what_if
from tradeoff.errors import ProblemError
from tradeoff.presentation.data import recommendation_data
from tradeoff.presentation.decision_data import change_data, rival_data
from tradeoff.presentation.plans import (
    QUESTION_LINES,
    RESULT_LINES,
    guide,
    guides_beside,
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


def decisions_of(problem, option) -> list:
    situations = problem.details(option.plan).situations
    return [one for one in situations if one.free] or list(situations)


def variables(problem, situation) -> dict[str, str]:
    """Return what is said about each variable in a situation, and the step as a phrase."""
    return {**problem.wording.parts(situation.state), "step": problem.wording.steps([situation.step + 1])}


def clause_readings(problem, clause: str, known: dict[str, set[str]]) -> set[tuple[str, frozenset[str]]]:
    """Return every way to read "with 4, 3 or 2 units left": a variable, and which of its phrases are meant."""
    words = clause.split(" ")
    found = set()
    for begin in range(len(words)):
        for end in range(begin + 1, len(words) + 1):
            middle = re.split(", | or ", " ".join(words[begin:end]))
            phrases = frozenset(" ".join([*words[:begin], each, *words[end:]]) for each in middle)
            if len(phrases) == len(middle):  # nobody means "jams or jams"
                found |= {(name, phrases) for name, all_of_it in known.items() if phrases <= all_of_it}
    before, after = problem.wording.steps([7]).split("7")
    if clause.startswith(before) and clause.endswith(after):
        runs = re.split(", | and ", clause.removeprefix(before).removesuffix(after).replace(" and ", ", "))
        ends = [[int(number) for number in run.split(" to ")] for run in runs if re.fullmatch(r"\d+( to \d+)?", run)]
        numbers = [number for run in ends for number in range(run[0], run[-1] + 1)]
        if numbers and len(ends) == len(runs):
            found.add(("step", frozenset(problem.wording.steps([number]) for number in numbers)))
    return found


def readings(problem, text: str, known: dict[str, set[str]]) -> set[frozenset[tuple[str, frozenset[str]]]]:
    """Return every way to read a printed condition: the phrases that are meant of each variable."""
    parts = text.split(", ")
    found = set()
    for size in range(1, len(parts) + 1):
        first = clause_readings(problem, ", ".join(parts[:size]), known)
        others = readings(problem, ", ".join(parts[size:]), known) if parts[size:] else {frozenset()}
        # A condition speaks of a variable once.
        found |= {frozenset({one, *rest}) for one in first for rest in others if one[0] not in dict(rest)}
    return found


def check_rules(problem, option, found, begun: list[str], most: int) -> None:
    """What is printed is what the plan does: each decision is read as a person would, the first line that fits applies.

    A line is right for all decisions that it fits first, or for 95% of them where it says "nearly always". It has exactly one
    reading, and what is said about how often it applies and how much the lines cover is true.
    """
    assert 1 <= len(found.rules) <= most
    rules, left = [*found.rules, *found.rest], decisions_of(problem, option)
    everything = sum(one.probability for one in left)
    if rules[0].when == "first":
        begun = [*begun, *rules.pop(0).do.split(", then ")]
    for one, action in zip(left, begun, strict=False):
        assert one.action == action and one.probability > 1 - 1e-9
    left = left[len(begun) :]
    if not left:
        assert [rule.words for rule in rules] in ([], ["then: nothing is left to decide"])
        return
    known: dict[str, set[str]] = {}
    for one in left:
        for name, phrase in variables(problem, one).items():
            known.setdefault(name, set()).add(phrase)
    total, covered = sum(one.probability for one in left), float(len(begun))
    for at, rule in enumerate(rules):
        meant = frozenset()
        if rule.when not in ("always", "nearly always", "then", "otherwise"):
            (meant,) = readings(problem, rule.when, known)
        assert at or rule.when != "otherwise"
        fitting = [one for one in left if all(variables(problem, one).get(name) in phrases for name, phrases in meant)]
        right = [one for one in fitting if one.action == rule.do.removeprefix("nearly always ")]
        mass = sum(one.probability for one in right)
        assert right
        if "nearly always" in rule.words:
            assert mass >= 0.95 * sum(one.probability for one in fitting) - 1e-9
        else:
            assert right == fitting
        if said := re.fullmatch(r"(less than 1|\d+) of 20 (times|decisions)", rule.often):
            assert said[2] == "decisions" or len({one.step for one in right}) == 1
            share = mass / total if said[2] == "decisions" else mass
            low, high = (0, 0.5) if said[1] == "less than 1" else (int(said[1]) - 0.5, int(said[1]) + 0.5)
            assert low - 1e-6 <= 20 * share <= high + 1e-6 or (said[1] == "19" and share < 1)
        else:
            assert not rule.often and (rule.when in ("always", "nearly always", "then") or mass > 1 - 1e-6)
        covered += mass if rule in found.rules else 0.0
        left = [one for one in left if one not in fitting]
    said = re.search(r"cover (\d+)%", found.covered)
    assert int(said[1]) == min(99, int(100 * covered / everything + 1e-9)) if said else covered > everything - 1e-6


def check(problem, option) -> None:
    found = guide(problem, option)
    assert found is not None
    check_rules(problem, option, found, [], RESULT_LINES)


def check_beside(problem, options) -> None:
    """The same beside other plans; all of them begin with what is said above."""
    shared, guides = guides_beside(problem, options)
    begun = shared.partition(": ")[2].removesuffix(".").split(", then ") if shared else []
    for option, found in zip(options, guides, strict=True):
        check_rules(problem, option, found, begun, QUESTION_LINES)


def without_amounts(problem, option, name: str) -> str:
    """Return a name without the amounts at its end, which are right to the last digit."""
    shown = problem.original
    objectives = {o.name: amount for o, amount in zip(shown.objectives, shown.outcome(option.value), strict=True)}
    head, *tail = re.split(rf", (?=(?:{'|'.join(map(re.escape, objectives))}) (?:-?\d|almost))", name)
    for part in tail:
        objective = max((each for each in objectives if part.startswith(f"{each} ")), key=len)
        number = re.match(
            r"(-?[\d,]+(?:\.(\d+))?)(?:e(-?\d+))?( million| billion)?", part.removeprefix(f"{objective} ")
        )
        if number is None or number[4]:  # "almost 0"
            continue
        digit = 10.0 ** (int(number[3] or 0) - len(number[2] or ""))
        written = float(number[1].replace(",", "")) * 10.0 ** int(number[3] or 0)
        assert abs(written - objectives[objective]) <= 0.5001 * digit, (name, objectives[objective])
    return head


def check_name(problem, option, name: str) -> None:
    """A name is true of all decisions that it is about."""
    made = decisions_of(problem, option)
    total = sum(one.probability for one in made)
    phrase = without_amounts(problem, option, name)
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
            assert truths[phrase], name
            return
        if phrase.startswith(f"{action} "):
            where = phrase.removeprefix(f"{action} ").removeprefix("if ").split(", ")
            ends = [(one, [*problem.wording.parts(one.state).values()]) for one in made]
            covered = [one for one, parts in ends if all(any(p.endswith(w) for p in parts) for w in where)]
            assert covered and {one.action for one in covered} == {action}, name
            return
    raise AssertionError(f"{name!r} is about no action of the plan")


@st.composite
def factored(draw) -> tuple[tradeoff.MDP, np.random.Generator]:
    """Draw a model whose states have two variables."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows, columns = draw(st.integers(1, 3)), draw(st.integers(2, 4))
    arrays = random_arrays(rng, states=rows * columns, actions=2, objectives=2, horizon=draw(st.integers(1, 6)))
    names = [f"in row {i} of {rows}, door {j}" for i in range(1, rows + 1) for j in "abcd"[:columns]]
    return arrays.mdp(states=names), rng


@pytest.mark.parametrize("name", ["commute", "vacuum", "portfolio"])
def test_what_to_do_when_is_what_the_plan_does(name: str) -> None:
    problem = tradeoff.load(name)
    found = problem.best(np.random.default_rng(1).dirichlet(np.ones(len(problem.objectives)), size=12))
    for best in found:
        check(problem, best)
    for beside in (*pairwise(found), found[:4]):
        check_beside(problem, beside)


@given(st.one_of(models(), factored()))
def test_the_lines_of_random_plans_are_true(drawn) -> None:
    mdp, rng = drawn
    found = mdp.best(rng.normal(size=(2, len(mdp.objectives))))
    if all(mdp.details(best.plan).situations for best in found):
        check(mdp, found[0])
        check_beside(mdp, found)


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
def test_names_of_plans_that_stand_together_are_short_and_true_and_differ(name: str) -> None:
    problem = tradeoff.load(name)
    rows = np.random.default_rng(3).dirichlet(np.ones(len(problem.objectives)), size=12)
    found = list({best.value.round(9).tobytes(): best for best in problem.best(rows)}.values())
    for size in (1, 2, 3, 4, len(found)):
        for beside in zip(*(found[i:] for i in range(size)), strict=False):
            ranked = ranked_names(problem, beside)
            assert all(ranked_names(problem, beside[:n]) == ranked[:n] for n in range(2, size))
            for names in (names_beside(problem, beside), ranked):
                assert len(set(names)) == size and not any("…" in each or "(" in each for each in names)
                for option, each in zip(beside, names, strict=True):
                    check_name(problem, option, each)
                    words = without_amounts(problem, option, each).split(" ")
                    assert len(words) <= 6 and (len(words) >= 3 or each == "dock"), each  # nothing is left to say of it


@given(st.one_of(models(), factored()))
def test_names_of_random_plans_differ_and_are_true(drawn) -> None:
    mdp, rng = drawn
    best = mdp.best(rng.normal(size=(4, len(mdp.objectives))))
    found = [one for one in {each.value.round(6).tobytes(): each for each in best}.values() if decisions_of(mdp, one)]
    for names in (names_beside(mdp, found), ranked_names(mdp, found)) if found else ():
        assert len(set(names)) == len(found)
        for option, name in zip(found, names, strict=True):
            check_name(mdp, option, name)


def test_two_plans_that_do_the_same_most_of_the_time_are_told_apart_by_an_amount() -> None:
    problem = tradeoff.load("portfolio")
    found = problem.best(np.random.default_rng(5).dirichlet(np.ones(4), size=8))
    names = plan_names(problem, found[4], found[5])
    assert names[0] != names[1] and all(re.fullmatch(r"mostly hold stocks, gain \d+ EUR", name) for name in names)


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
            ranked = tradeoff.ranking(interview)
            rows = ranking_table(problem, ranked, {}).rows
            assert rows[0].name == name, [row.name for row in rows]
            for one, row in zip(ranked.ranked[1:], rows[1:], strict=True):
                rival = rival_data(problem, interview, tradeoff.why_not(interview, one.option), ranked)
                assert rival["name"] == row.name
                quoted = {quote for sentence in rival["sentences"] for quote in re.findall("“(.*?)”", sentence)}
                assert quoted <= {name, row.name, *rival["beaten_by"]}
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
