"""Rankings, pictures, reports and groups as people read them: what they say, and that no name can do harm."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import numpy as np
import pytest

import tradeoff
from tests.presentation.test_drawings import HOSTILE
from tradeoff.decisions import Group, ranking, why_not
from tradeoff.decisions.weighing import options
from tradeoff.errors import ArgumentError
from tradeoff.interview import Interview
from tradeoff.presentation.decision_data import change_data, ranking_data, rival_data
from tradeoff.presentation.groups import choices_of, group_data, group_words
from tradeoff.presentation.pareto import pareto_picture, pareto_svg, ticks
from tradeoff.presentation.ranking import ordinals, ranking_table, why_not_words
from tradeoff.presentation.report import report, report_html
from tradeoff.presentation.weighing import weighing
from tradeoff.problems.catalogue import Catalogue
from tradeoff.simulation.respondents import LinearRespondent


def interviewed(problem, weights=None) -> Interview:
    interview = Interview(problem)
    person = LinearRespondent.scaled(
        problem, np.arange(1, len(problem.objectives) + 1) if weights is None else weights, 0.02
    )
    while (question := interview.ask()) is not None:
        interview.tell(person(question))
    return interview


@pytest.fixture(scope="module")
def laptops() -> Interview:
    prices = [1199, 649, 899, 1649, 479, 1299, 799]
    rest = [(14, 1.2, 71), (7, 1.9, 48), (11, 1.4, 60), (9, 1.5, 96), (6, 2.1, 35), (18, 1.1, 58), (8, 1.3, 52)]
    goals = [("price", "EUR", "min"), ("battery", "h", "max"), ("weight", "kg", "min"), ("speed", "", "max")]
    names = ["Alto", "Brio", "Cara", "Duo", "Foro", "Giro", "Halo"]
    shop = Catalogue(
        [(p, *r) for p, r in zip(prices, rest, strict=True)],
        [tradeoff.Objective(*one) for one in goals],
        names,
        name="laptops",
    )
    shop.beaten = {"Elan": [999, 10, 1.6, 60]}
    return interviewed(shop, [2, 2, 1, 0])


@pytest.fixture(scope="module")
def commute() -> Interview:
    return interviewed(tradeoff.load("commute"))


def test_a_ranking_says_what_each_wins_and_loses_and_what_shares_are_of(laptops: Interview) -> None:
    table = ranking_table(laptops.problem, ranking(laptops), ordinals(laptops))
    assert [row.place for row in table.rows] == [1, 2, 3, 4, 5]
    assert table.rows[0].name == "Giro" and not table.rows[0].wins and not table.rows[0].loses
    (alto,) = [row for row in table.rows if row.name == "Alto"]
    assert alto.wins == ("price 100 EUR less", "speed 13 more") and alto.loses == (
        "battery 4 h less",
        "weight 0.1 kg more",
    )
    assert "300 samples" in table.basis and "6 percentage points, 19 times in 20" in table.basis


def test_every_verdict_is_said(laptops: Interview) -> None:
    problem, found, numbers = laptops.problem, ranking(laptops), ordinals(laptops)

    def said(name: str) -> tuple[str, str]:
        rival = why_not(laptops, name, found)
        return rival.verdict, " ".join(
            why_not_words(problem, rival, found, numbers, laptops.recommendation.weights).sentences
        )

    verdict, words = said("Elan")
    assert verdict == "dominated" and "“Cara” is at least as good in everything" in words
    assert said("Giro") == ("recommended", "“Giro” is what is recommended.")
    verdict, words = said("duo")
    assert verdict == "ruled out" and re.search(r"Your answers? \d.* rules? that out", words)
    assert "It would be the best if things mattered like this: price" in words
    with pytest.raises(ArgumentError, match="no item is called 'Gira'; did you mean Giro"):
        why_not(laptops, "Gira", found)
    with pytest.raises(ArgumentError, match="more than one item is called 'ro'"):
        why_not(laptops, "ro", found)


def test_compromises_that_can_never_win_are_said_to() -> None:
    shop = Catalogue([[10, 0], [0, 10], [4.8, 4.8]], ["comfort", "speed"], ["A", "B", "Compromise"])
    interview = Interview(shop)
    found = ranking(interview)
    rival = why_not(interview, "Compromise", found)
    words = why_not_words(shop, rival, found, {}, interview.recommendation.weights).sentences
    assert "for any weights one of “A” and “B” is better" in words[0].replace("“B” and “A”", "“A” and “B”")
    assert "adds up" in words[0]


def test_data_is_json(laptops: Interview, commute: Interview) -> None:
    for interview in (laptops, commute):
        found = ranking(interview)
        data = ranking_data(interview.problem, interview, found)
        assert [one["place"] for one in data["ranking"]] == list(range(1, len(found.ranked) + 1))
        rival = rival_data(interview.problem, interview, why_not(interview, 2, found), found)
        json.dumps([data, rival, change_data(interview.problem, interview)], allow_nan=False)


# --- pictures --------------------------------------------------------------------------------------------------------


def test_the_picture_has_every_option_and_marks_two(laptops: Interview) -> None:
    picture = pareto_picture(laptops.problem, laptops.recommendation, ("price", "battery"))
    assert picture is not None
    drawn = ET.fromstring(pareto_svg(laptops.problem, picture))
    paths = {node.get("class"): node for node in drawn.iter() if node.get("class") in ("option", "beaten")}
    assert len(re.findall("M", paths["option"].get("d", ""))) in (1, 7)  # the key has one
    dots = [node.get("d", "") for node in drawn.iter() if node.get("class") == "option"]
    assert sorted(len(re.findall("M", d)) for d in dots) == [1, 7]
    assert len([node for node in drawn.iter() if node.get("class") == "chosen"]) == 2
    assert (
        "Recommended: Giro (price 1299 EUR, battery 18 h)" in picture.words
        and "Not drawn: weight, speed" in picture.words
    )
    with pytest.raises(ArgumentError, match="no objective 'colour'"):
        pareto_picture(laptops.problem, None, ("price", "colour"))
    with pytest.raises(ArgumentError, match="two different axes"):
        pareto_picture(laptops.problem, None, ("price", "price"))


def test_better_is_to_the_right_and_up() -> None:
    aims = [tradeoff.Objective("price", "", "min"), tradeoff.Objective("battery")]
    shop = Catalogue([[1, 1], [2, 2]], aims, ["cheap", "dear"])
    picture = pareto_picture(shop)
    assert picture is not None
    found = re.search(r'class="option" d="M([\d.]+) ([\d.]+)h0M([\d.]+) ([\d.]+)h0"', picture.drawing)
    assert found is not None
    (left, up), (right, down) = sorted((float(found[i]), float(found[i + 1])) for i in (1, 3))
    assert left < right and up < down  # the dear one has more battery: further left, and further up


def test_ticks_are_round_and_few() -> None:
    for low, high in ((0.0, 1.0), (-3.7, 12.2), (1e-6, 1.3e-6), (1e9, 7e9)):
        found = ticks(low, high)
        assert 1 <= len(found) <= 6 and min(found) >= low - 1e-9 * abs(low) and max(found) <= high * (1 + 1e-9)


def hostile_catalogue() -> Catalogue:
    random = np.random.default_rng(0)
    aims = [tradeoff.Objective(name, HOSTILE[1]) for name in HOSTILE[:3]]
    made = Catalogue(random.random((len(HOSTILE), 3)), aims, HOSTILE, title=HOSTILE[0])
    made.beaten = {"<b>left out</b>": [-1.0, -1.0, -1.0]}
    return made


class Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


@pytest.mark.parametrize("name", ["hostile", "laptops", "commute"])
def test_a_report_needs_nothing_else_and_runs_nothing(name: str, laptops: Interview, commute: Interview) -> None:
    interview = {"laptops": laptops, "commute": commute}.get(name) or interviewed(hostile_catalogue())
    problem = interview.problem
    html = report_html(report(problem, interview, ranking(interview), repeat="tradeoff report ..."))
    tags = Tags(html).found
    names = {tag for tag, _ in tags}
    assert not names & {"script", "link", "img", "iframe", "object", "form", "a", "b"}
    for tag, attrs in tags:
        assert not any(key.startswith("on") or key in ("src", "href", "style") for key in attrs), (tag, attrs)
    ids = [attrs["id"] for _, attrs in tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert "url(" not in html and "@import" not in html and "default-src 'none'" in html
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\u202a-\u202e\u2066-\u2069]", html)
    parts = (
        "decision",
        "best few",
        "All options",
        "How sure is this",
        "questions and the answers",
        "How to repeat it",
    )
    assert all(heading in html for heading in parts)
    assert problem.fingerprint in html
    assert len(re.findall("You preferred|About equal to you|Skipped", html)) == len(interview.answers)
    picture = pareto_picture(problem, interview.recommendation)
    assert picture is not None
    ET.fromstring(pareto_svg(problem, picture))


# --- weights to try, groups ------------------------------------------------------------------------------------------


def test_options_come_in_the_order_of_the_weights(laptops: Interview, commute: Interview) -> None:
    for interview in (laptops, commute):
        problem, found = interview.problem, ranking(interview)
        given = options(problem, interview.recommendation, found)
        weights = np.arange(len(problem.objectives), 0.0, -1.0)
        shown = weighing(problem, given, interview.recommendation.option, "the one", weights)
        scores = [row.score for row in shown.rows]
        assert scores == sorted(scores, reverse=True) and scores[0] == pytest.approx(1)
        assert max(field.weight for field in shown.fields) == 100 and sum(row.recommended for row in shown.rows) == 1
        names = [row.name for row in shown.rows]
        assert len(names) == len(set(names))
        (best,) = problem.best([weights])
        assert best.value @ weights == pytest.approx(max(one.value @ weights for one in given.alternatives), rel=0.03)


def test_what_does_not_meet_a_limit_comes_last_and_is_marked(laptops: Interview) -> None:
    problem, recommended = laptops.problem, laptops.recommendation.option
    given = options(problem, laptops.recommendation, ranking(laptops))
    shown = weighing(problem, given, recommended, "Giro", np.array([0.0, 1.0, 0, 0]), {0: 899.0, 1: 7.0})
    assert [row.name for row in shown.rows if row.within] == ["Cara", "Halo", "Brio"] and shown.within == 3
    assert [row.within for row in shown.rows] == [True] * 3 + [False] * 4
    assert [(field.word, field.limit) for field in shown.fields[:3]] == [
        ("at most", 899),
        ("at least", 7),
        ("at most", None),
    ]
    assert shown.rows[0].score == 1 and shown.rows[0].amounts == (899, 11, 1.4, 60)
    assert not weighing(problem, given, recommended, "Giro", np.ones(4), {0: 1.0}).within


def test_only_what_can_be_recommended_is_weighed_and_nothing_is_worth_less_than_nothing() -> None:
    aims = [tradeoff.Objective("price", "EUR", "min"), tradeoff.Objective("quality")]
    values, names = [[100, 9], [90, 7], [400, 2], [900, 1]], ["good", "fair", "poor", "awful"]
    labels = {"colour": ["red", "blue", "red", "red"], "same": ["x"] * 4}
    shop = Catalogue(values, aims, names, labels=labels).without_beaten()
    interview = Interview(shop)
    given = options(shop, interview.recommendation, ranking(interview))
    shown = weighing(shop, given, shop.option("good"), "good", np.ones(2))
    assert {row.name for row in shown.rows} == {"good", "fair"} and given.total == 2
    assert all(0 <= row.score <= 1 for row in shown.rows)
    found = weighing(shop, given, shop.option("good"), "good", np.ones(2), wanted={0: 0})
    assert [kind.name for kind in found.kinds] == ["colour"] and found.kinds[0].texts == ("blue", "red")
    assert [row.name for row in found.rows if row.within] == ["fair"] and found.rows[0].score == 1


def test_a_group_is_told_what_each_keeps(laptops: Interview, commute: Interview) -> None:
    shop = laptops.problem
    people = Group(shop, ("Ann", "Bo"), np.array([[0.9, 0.1, 0.0, 0.0], [0.0, 0.0, 0.1, 0.9]]))
    choices = choices_of(people, shop, 2, None)
    told = group_words(shop, people, choices)
    assert told.people == ("Ann", "Bo") and told.own == ("Foro", "Duo")
    menu = told.choices[-1]
    assert menu.title == "a menu of 2 plans" and menu.shares == ("100%", "100%")
    assert "Everybody keeps all of it." in menu.sentence
    assert any("a lot, drawn once" in one.sentence for one in told.choices)
    json.dumps(group_data(shop, people, choices), allow_nan=False)
    trip = commute.problem
    both = Group(trip, ("x", "y"), np.array([[1.0, 0, 0, 0, 0], [0, 1.0, 0, 0, 0]]))
    assert len(group_words(trip, both, choices_of(both, trip, 1, 0.05)).choices) == 3
