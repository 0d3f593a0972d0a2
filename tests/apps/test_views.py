"""The pages: what they say, that they are safe whatever things are called, and that they are drawn fast."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import tradeoff
from tradeoff.apps.web import drawings, views
from tradeoff.apps.web.cards import Sketches, evenly
from tradeoff.apps.web.ground import ground_of, place_name
from tradeoff.apps.web.sentences import because_words, range_words
from tradeoff.interview import Interview
from tradeoff.model import Answer, Objective, Question, Recommendation
from tradeoff.problem import dilute
from tradeoff.problems.catalogue import Catalogue
from tradeoff.problems.mdp import MDP
from tradeoff.users import LinearUser

LINKS = views.Links("/answer", "/undo", "/result", "/log", "/question", None)
PROBLEMS = ["commute", "vacuum", "coffee", "portfolio"]
VOID = {"meta", "link", "input", "img", "br"}
SVG_EMPTY = {"path", "rect", "circle", "use"}

EVIL = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "\x1b[31mred\x00\x07",
    "\u202egnirts desrever",
    "{{ 7 * 7 }}{% raw %}",
    "x" * 10_000,
    "javascript:alert(1)",
    "'; DROP TABLE answers; --",
]


class Page(HTMLParser):
    """A page taken apart: its tags must nest, and everything in it is kept."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(html)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs), f"an attribute of <{tag}> is there twice"
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in VOID | SVG_EMPTY, tag
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]


def checked(html: str) -> Page:
    """Return the page, checked for what must hold on every page whatever is on it."""
    page = Page(html)
    for tag, attrs in page.tags:
        assert "style" not in attrs and not any(name.startswith("on") for name in attrs), (tag, attrs)
        for name in ("href", "src", "action"):
            address = attrs.get(name) or "/"
            assert address.startswith(("/", "#")), (tag, attrs)
    assert [attrs["src"].split("?")[0] for attrs in page.all("script")] == ["/static/page.js"]
    assert len(page.all("h1")) == 1 and len(page.all("main")) == 1
    assert page.all("html") == [{"lang": "en"}]
    for attrs in page.all("svg"):
        assert attrs.get("aria-hidden") == "true" or (attrs["role"] == "img" and attrs["aria-label"])
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert "style" not in {tag for tag, _ in page.tags}
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\u202a-\u202e\u2066-\u2069]", html)
    assert "None" not in page.text and "Undefined" not in page.text
    return page


def asked(problem, question, left="first", **more) -> str:
    values = {"turn": 1, "at_most": 9, "recommendation": None, "links": LINKS, "answered": 0, "texts": {}} | more
    return views.render("question.html", **views.question_view(problem, question, left=left, **values))


def interviewed(name: str, questions: int = 4) -> tuple:
    problem = tradeoff.load(name)
    interview = Interview(problem)
    person = LinearUser.scaled(problem, np.arange(1, len(problem.objectives) + 1), 0.01)
    shown = []
    while len(shown) < questions and (question := interview.ask()) is not None:
        shown.append(question)
        interview.tell(person(question))
    return problem, interview, shown


def result(problem, recommendation, answers=(), **more) -> str:
    values = {"finished": True, "links": LINKS, "answers": answers, "conflicts": (), "texts": {}} | more
    return views.render("result.html", **views.result_view(problem, recommendation, **values))


# --- the question ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_question_shows_both_sides_in_units_and_can_be_answered_without_scripts(name):
    problem, interview, questions = interviewed(name)
    for question in questions:
        html = asked(problem, question, recommendation=interview.recommendation, answered=2)
        page = checked(html)
        assert len(html) < 48_000  # a few tens of KB with everything drawn
        buttons = [attrs for attrs in page.all("button") if attrs.get("name") == "answer"]
        assert [b["value"] for b in buttons] == ["left", "right", "same", "skip"]
        forms = {attrs["action"]: attrs["method"] for attrs in page.all("form")}
        assert forms == {"/answer": "post", "/undo": "post"}
        for side in (question.first, question.second):
            for objective, amount in zip(problem.objectives, problem.outcome(side.value), strict=True):
                rounded = float(f"{amount:.3g}") if abs(amount) < 1000 else amount
                assert any(objective.text(x) in page.text for x in (rounded, amount)), (objective.name, amount)
        assert "at most 8 more" in page.text
        assert "best plan for you" in page.text  # the certificate


def test_sides_change_places_and_nothing_else_does():
    problem, _, (question, *_) = interviewed("commute", 1)
    one, other = asked(problem, question), asked(problem, Question(question.second, question.first), "second")
    assert one == other
    assert one != asked(problem, question, "second")


def test_shares_have_the_same_denominator_on_both_sides():
    problem, _, questions = interviewed("commute")
    for question in questions:
        found = set(re.findall(r"of ([\d,]+)\)", asked(problem, question)))
        assert len(found) <= 1, found


@pytest.mark.parametrize(("counts", "total"), [([90, 8, 2], 100), ([100], 100), ([34, 33, 33], 100)])
def test_a_hundred_icons_are_shared_out_as_the_counts_say(counts, total):
    drawn = str(drawings.icon_array(counts, total, "words"))
    paths = re.findall(r'class="s(\d)" d="([^"]*)"', drawn)
    assert [path.count("M") for _, path in paths] == counts
    places = re.findall(r"M(\d+) (\d+)", drawn)
    assert len(set(places)) == 100


def test_a_thousand_squares_are_shared_out_as_the_counts_say():
    drawn = str(drawings.icon_array([790, 128, 82], 1000, "words"))
    runs = [
        sum((int(run) + 1) // 4 for run in re.findall(r"h(\d+)", path)) for path in re.findall(r' d="([^"]*)"', drawn)
    ]
    assert runs == [790, 128, 82]


def test_bars_of_both_sides_are_on_one_scale_and_differences_are_said():
    problem = Catalogue(
        [[10.0, 5.0, 3.0], [40.0, 20.0, 3.0]],
        [Objective("time", "min", "min"), Objective("fun", "points"), Objective("noise")],
    )
    first, second = problem.alternative(0), problem.alternative(1)
    time_row, fun_row, noise_row = Sketches(problem).rows(first, second)
    assert [re.search(r'class="fill" x="0" width="([\d.]+)"', bar).group(1) for bar in time_row.bars] == ["25", "100"]
    assert (time_row.better, time_row.difference) == ("A", "30 min less")
    assert (fun_row.better, fun_row.difference) == ("B", "15 points more")
    assert noise_row.better == ""
    page = checked(asked(problem, Question(first, second)))
    assert "same for both: noise" in page.text


def test_amounts_that_differ_do_not_look_equal():
    problem = Catalogue([[100.1, 1.0], [100.2, 0.0]], ["a", "b"])
    row, _ = Sketches(problem).rows(problem.alternative(0), problem.alternative(1))
    assert row.amounts == ("100.1", "100.2")


def test_items_of_a_catalogue_show_their_labels_and_no_icons():
    problem = tradeoff.load("coffee")
    one, other = problem.best([[1, 0, 0, 0, 0], [0, 1, 0, 0, 0]])
    html = asked(problem, Question(one, other))
    assert 'class="array' not in html
    page = checked(html)
    for side in (one, other):
        assert side.plan.name in page.text
        assert all(texts[side.plan.index] in page.text for texts in problem.labels.values())
    mixed = asked(problem, Question(dilute(one, 0.3), other))
    assert mixed.count('class="array"') == 2  # both sides alike
    page = checked(mixed)
    assert "30% (30 of 100)" in page.text and "100% (100 of 100)" in page.text and "the worst coffee imaginable" in page.text


def test_pictures_of_states_are_shown_where_there_is_no_map():
    problem, _, (question, *_) = interviewed("portfolio", 1)
    links = views.Links("/a", "/u", "/r", "/l", "/q", lambda state: f"/picture/{len(state)}")
    page = checked(asked(problem, question, links=links))
    images = page.all("img")
    assert images and all(i["loading"] == "lazy" and i["alt"] and i["src"].startswith("/picture/") for i in images)
    assert evenly([str(i) for i in range(100)], 8) == ("0", "14", "28", "42", "57", "71", "85", "99")


# --- maps ------------------------------------------------------------------------------------------------------------


def test_the_flat_is_drawn_as_a_floor_plan_and_the_town_as_a_map():
    flat, town = ground_of(tradeoff.load("vacuum")), ground_of(tradeoff.load("commute"))
    assert flat.tile > 40 and town.tile == 0
    named = {" ".join(label.lines) for label in flat.labels if label}
    assert {"bookshelf", "rug", "kitchen table", "linen cupboard"} <= named
    assert {"home", "airport"} <= {" ".join(label.lines) for label in town.labels if label}
    for ground in (flat, town):
        assert all(0 < x < 360 and 0 < y < ground.height for x, y in ground.spots)
    assert ground_of(tradeoff.load("portfolio")) is None and ground_of(tradeoff.load("coffee")) is None


def test_places_are_called_by_what_their_states_have_in_common():
    assert place_name(["rug 12/16 dirty", "rug 11/16"]) == "rug"
    assert place_name(["in a half-empty subway", "in a crowded subway"]) == "subway"
    assert place_name(["half-way by bicycle in the sun", "half-way by bicycle in the rain"]) == "half-way by bicycle"
    assert place_name(["the", "a"])  # never nothing


@pytest.mark.parametrize(
    "places", [{"a": (0, 0), "b": (0, 0)}, {"a": (1e308, -1e308), "b": (-1e308, 1e308)}, {"a": (3, 4)}]
)
def test_maps_of_odd_places_are_drawn_or_left_out(places):
    problem = MDP.from_rows(
        [("a", "go", 0.5, "b", (1, 0)), ("a", "go", 0.5, "a", (0, 1)), ("a", "stay", 1, "a", (2, 0))],
        ends=["b"], horizon=3, start="a", places=places,
    )  # fmt: skip
    html = asked(problem, Question(*problem.best([[1, 0], [0, 1]])))
    checked(html)
    assert "nan" not in html and "inf" not in html


# --- the result ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_result_says_what_why_and_how_sure(name):
    problem, interview, _ = interviewed(name, 30)
    answers = [(number, question, answer, "second") for number, question, answer in interview.answers]
    page = checked(result(problem, interview.recommendation, answers))
    assert "We would recommend" in page.text and "because to you" in page.text
    assert "Thank you" in page.text and "/log" in {attrs.get("href") for attrs in page.all("a")}
    assert "How sure is this?" in page.text and "whatever you would answer next" in page.text
    undone = [attrs["value"] for attrs in page.all("input") if attrs.get("name") == "number"]
    assert sorted(set(undone), key=int) == [str(number) for number, *_ in answers]  # a probable slip stands there twice
    for slider in page.all("input"):
        if slider.get("type") == "range":
            assert int(slider["max"]) >= 1
    assert "Go on answering" not in page.text
    assert "Go on answering" in checked(result(problem, interview.recommendation, answers, finished=False)).text


def test_answers_are_told_from_the_side_they_were_shown_on():
    problem = Catalogue([[10.0, 0.0], [0.0, 10.0]], ["speed", "range"])
    question = Question(problem.alternative(0), problem.alternative(1))
    given = [(1, question, Answer.FIRST, "first"), (2, question, Answer.FIRST, "second"), (3, question, None, "first")]
    values = views.result_view(
        problem, Recommendation(problem.alternative(0), [0.7, 0.3], 3, "done", doubtful=(2,)), finished=True, links=LINKS,
        answers=given, conflicts=[1], texts={},
    )  # fmt: skip
    assert [one["said"] for one in values["answers"]] == ["You preferred A.", "You preferred B.", "Skipped."]
    assert values["answers"][0]["differences"][0] == "speed: 10 more with A"
    assert values["answers"][1]["differences"][0] == "speed: 10 more with B"
    assert [one["conflict"] for one in values["answers"]] == [True, False, False]
    assert [one["doubtful"] for one in values["answers"]] == [False, True, False]
    page = checked(views.render("result.html", **values))
    assert "it cannot be meant" in page.text and "Set aside as probable slips" in page.text


def test_the_reason_given_is_no_surer_than_the_answers_allow():
    problem = Catalogue([[10.0, 0.0, 3.0], [0.0, 10.0, 4.0]], ["speed", "range", "looks"])
    known = {"alternative": problem.alternative(0), "weights": [0.6, 0.3, 0.1], "questions": 3, "reason": "done"}
    sure = Recommendation(**known, importance=np.array([[0.5, 0.7], [0.2, 0.4], [0.0, 0.2]]))
    unsure = Recommendation(**known, importance=np.array([[0.1, 0.7], [0.2, 0.8], [0.0, 0.2]]))
    assert because_words(problem, sure)[0] == (
        "speed matters about twice as much as range, and looks seems to matter less"
    )
    assert "probably matters" in because_words(problem, unsure)[0]
    assert "probably matters" in because_words(problem, Recommendation(**known))[0]
    assert because_words(problem, Recommendation(**{**known, "questions": 0})) == ("", "")
    assert range_words(0.123, 0.456) == "anything from 12% to 46% fits your answers"
    assert range_words(0.0, 1.0) == "your answers leave this open"


# --- other pages -----------------------------------------------------------------------------------------------------


def test_start_message_and_admin_pages():
    page = checked(views.render("start.html", **views.start_view(tradeoff.load("vacuum"), texts={}, action="/begin")))
    assert [(f["method"], f["action"]) for f in page.all("form")] == [("post", "/begin")]
    assert len(page.all("pre")) == 1 and "no wrong answers" in page.text
    page = checked(views.render("message.html", **views.message_view("Gone", "One.\n\nTwo.", action=("Home", "/"))))
    assert "One." in page.text and {"class": "button", "href": "/"} in page.all("a")
    study = {"title": "S", "problem": "commute", "opened": 3, "answering": 1, "finished": 2, "flagged": 0, "seed": 7}
    person = {
        "number": 1,
        "link": "/p/x",
        "begun": "",
        "last seen": None,
        "answers": 4,
        "finished": True,
        "flags": ["slip"],
    }
    page = checked(views.render("admin.html", **views.admin_view(study, [person], [("CSV", "/e.csv")])))
    assert {"http-equiv": "refresh", "content": "5"} in page.all("meta")
    assert "slip" in page.text and "seed 7" in page.text and "opened 3" in page.text
    counted = views.admin_view({"name": "S", "problem": "p", "settings": {"a": None}}, [person], [])
    assert counted["totals"] == [("opened", 0), ("answering", 0), ("finished", 1), ("flagged", 1)]
    page = checked(views.render("admin.html", **counted, links_action="/links"))
    assert [form["action"] for form in page.all("form")] == ["/links"]


# --- hostile names ---------------------------------------------------------------------------------------------------


def evil_problems():
    """Return a catalogue and a process in which everything that has a name has an evil one."""
    objectives = [Objective(f"{EVIL[0]}{EVIL[5]}", EVIL[1]), Objective(EVIL[2] + EVIL[3], EVIL[0] * 50, "min")]
    names = [f"{text}{i}" for i, text in enumerate(EVIL)]
    labels = {EVIL[0]: EVIL, EVIL[4]: EVIL}
    values = np.random.default_rng(1).random((len(names), 2))
    about = "\n\n".join(EVIL)
    yield Catalogue(values, objectives, names, labels=labels, title=EVIL[1], about=about)
    rows = [
        (names[0], EVIL[0] + "a", 0.6, names[1], (1, 0)), (names[0], EVIL[0] + "a", 0.4, names[5], (0, 1)),
        (names[0], EVIL[5] + "b", 1.0, names[2], (2, 3)),
    ]  # fmt: skip
    places = {names[0]: (0, 0), names[1]: (1, 1), names[5]: (2, 0), names[2]: (3, 1)}
    ends = [names[1], names[5], names[2]]
    yield MDP.from_rows(
        rows, ends=ends, horizon=2, start=names[0], objectives=objectives, places=places, title=EVIL[5], about=about
    )


def test_whatever_things_are_called_stays_text_and_short():
    texts = dict.fromkeys(["title", "welcome", "question", "thanks"], "\n\n".join(EVIL))
    for problem in evil_problems():
        one, other = problem.best([[1, 0], [0, 1]])
        question = Question(dilute(one, 0.5), other)
        found = Recommendation(other, [0.4, 0.6], 2, EVIL[0], runner_up=one, importance=np.array([[0, 1], [0.1, 0.7]]))
        pages = [
            asked(problem, question, texts=texts, notice=EVIL[0] + EVIL[2]),
            result(problem, found, [(1, question, Answer.SAME, "first")], texts=texts, conflicts=[1]),
            views.render("start.html", **views.start_view(problem, texts=texts, action="/s")),
        ]
        for html in pages:
            page = checked(html)
            assert page.text.count("{{ 7 * 7 }}") and "49" not in page.text
            assert "<script>alert" not in html and "onerror=alert" not in re.sub(r"&[^;]+;[^<]*", "", html)
            assert len(html) < 120_000
        assert "<script>alert(1)</script>" in Page(pages[0]).text


# --- work done once ----------------------------------------------------------------------------------------------------


def test_an_alternative_is_drawn_once(monkeypatch):
    problem, interview, questions = interviewed("vacuum", 3)
    show, shown = type(problem).show, []
    monkeypatch.setattr(type(problem), "show", lambda self, drawn: shown.append(drawn) or show(self, drawn))
    first = asked(problem, questions[0], recommendation=interview.recommendation)
    count = len(shown)
    assert count >= 2
    assert asked(problem, questions[0], recommendation=interview.recommendation) == first and len(shown) == count
