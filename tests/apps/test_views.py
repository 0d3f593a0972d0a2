"""The pages: what they hold, and that they are safe whatever things are called."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser

import numpy as np
import pandas
import pytest
from markupsafe import Markup
from starlette.requests import Request

import tradeoff
from tests import processes
from tradeoff.apps.web import jobs, views
from tradeoff.apps.web.app import _unprocessable
from tradeoff.apps.web.jobs import ResultBody, ResultParts
from tradeoff.apps.web.rendering import evenly
from tradeoff.evidence import QUESTIONS, Answer
from tradeoff.interview import Interview
from tradeoff.log import ShownQuestion
from tradeoff.mdp.model import MDP
from tradeoff.model import EQUAL, FIRST, SECOND, SKIP, Objective, Question, Recommendation, Reply
from tradeoff.presentation.answers import answer_lines
from tradeoff.presentation.numbers import amounts_together
from tradeoff.presentation.sentences import contradiction
from tradeoff.problem import dilute
from tradeoff.problems.catalogue import Catalogue
from tradeoff.simulation.respondents import LinearRespondent
from tradeoff.studies import Prompt, Session, Study, View
from tradeoff.studies.service import Context, ParticipantState

LINKS = views.Links("/i/x")
PROBLEMS = ["commute", "vacuum", "coffee", "portfolio"]
VOID = {"meta", "link", "input", "img", "br"}
SVG_EMPTY = {"path", "rect", "circle", "use"}

EVIL = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "\x1b[31mred\x00\x07",
    "\u202egnirts desrever",
    "{{ 4321 * 1234 }}{% raw %}",
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


def context_of(problem) -> Context:
    return Context(Study.of(problem, "study"), {problem.fingerprint: problem})


def asked(problem, question, recommendation=None, answered=0, **more) -> str:
    order = tuple(range(len(question.options)))
    drawn = jobs.draw_question(context_of(problem), problem.fingerprint, ShownQuestion(question, order))
    known = recommendation or Recommendation(question.options[0], np.ones(len(problem.objectives)), answered, "")
    position = ParticipantState(True, 1, answered, Prompt(question, order, turn=1), View(question, known, 9))
    return views.render(
        "question.html", **views.question_view(problem, position, drawn, **({"links": LINKS, "texts": {}} | more))
    )


def pair(one, other) -> Question:
    return Question((one, other))


def interviewed(name: str, questions: int = 4, kind: str = "pairs") -> tuple:
    problem = tradeoff.load(name)
    interview = Interview(problem, questions=kind, order_seed=1)
    person = LinearRespondent.scaled(problem, np.arange(1, len(problem.objectives) + 1), 0.01)
    shown = []
    while len(shown) < questions and (question := interview.ask()) is not None:
        shown.append(question)
        interview.tell(person(question))
    return problem, interview, shown


def result(problem, parts: ResultParts, **more) -> str:
    values = {"finished": True, "links": LINKS, "texts": {}} | more
    return views.render("result.html", **views.result_view(problem, parts, **values))


# --- the question ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", QUESTIONS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_question_shows_all_options_in_units_and_can_be_answered_without_scripts(name, kind):
    problem, interview, questions = interviewed(name, kind=kind)
    for question in questions:
        html = asked(problem, question, interview.recommendation, answered=2)
        page = checked(html)
        assert len(html) < 24_000 * len(question.options)  # a few tens of KB with everything drawn
        answers = [(attrs["name"], attrs["value"]) for attrs in page.all("button") if "name" in attrs]
        answers += [(attrs["name"], attrs["value"]) for attrs in page.all("input") if attrs.get("type") == "radio"]
        ends = ["best", "worst"] if question.asks == "best-worst" else ["best"]
        places = [str(place + 1) for place in range(len(question.options))]
        words = [("reply", "equal"), ("reply", "skip")]
        assert sorted(answers) == sorted([*((end, place) for end in ends for place in places), *words])
        forms = {attrs["action"]: attrs["method"] for attrs in page.all("form")}
        assert forms == {"/i/x/answer": "post", "/i/x/undo": "post"}
        outcomes = problem.outcome(question.values)
        for objective, amounts in zip(problem.objectives, outcomes.T.tolist(), strict=True):
            assert all(text in page.text for text in amounts_together(objective, amounts)), (objective.name, amounts)
        (bar,) = page.all("progress")
        assert bar["value"] == "2" and 3 <= int(bar["max"]) <= 11  # as many as are expected
        assert "very likely" not in page.text.lower()  # how certain it is so far is not said while asking


def test_sides_change_places_and_nothing_else_does():
    problem, _, (question, *_) = interviewed("commute", 1)
    one, other = (Page(asked(problem, q)).text.split() for q in (question, pair(*question.options[::-1])))
    assert one != other
    bare = [sorted({word.strip(",;:") for word in words} - {"A", "B"}) for words in (one, other)]
    assert bare[0] == bare[1] and len(one) == len(other)


def test_shares_have_the_same_denominator_on_both_sides():
    problem, _, questions = interviewed("commute")
    for question in questions:
        found = set(re.findall(r"of ([\d,]+)\)", asked(problem, question)))
        assert len(found) <= 1, found


def test_objectives_that_are_the_same_are_named_below_the_others():
    problem = Catalogue(
        [[10.0, 5.0, 3.0], [40.0, 20.0, 3.0]],
        [Objective("time", "min", "min"), Objective("fun", "points"), Objective("noise")],
    )
    page = checked(asked(problem, pair(problem.option(0), problem.option(1))))
    assert "A 30 min less" in page.text and "B 15 points more" in page.text
    assert "same for both: noise" in page.text


def test_items_of_a_catalogue_show_their_labels_and_no_icons():
    problem = tradeoff.load("coffee")
    one, other = problem.best([[1, 0, 0, 0, 0], [0, 1, 0, 0, 0]])
    html = asked(problem, pair(one, other))
    assert 'class="array' not in html
    page = checked(html)
    for side in (one, other):
        assert side.plan.name in page.text
        assert all(texts[side.plan.index] in page.text for texts in problem.labels.values())
    mixed = asked(problem, pair(dilute(one, 0.3), other))
    assert mixed.count('class="array"') == 2  # both sides alike
    page = checked(mixed)
    assert (
        "30% of the time" in page.text
        and "100% of the time" in page.text
        and "the worst coffee imaginable" in page.text
    )


def test_pictures_of_states_are_shown_where_there_is_no_map():
    problem, _, (question, *_) = interviewed("portfolio", 1)
    assert not checked(asked(problem, question)).all("img")
    problem.pictures = dict.fromkeys(problem.states, b"")
    images = checked(asked(problem, question)).all("img")
    assert images and all(i["loading"] == "lazy" and i["alt"] and i["src"].startswith("/picture?") for i in images)
    assert evenly([str(i) for i in range(100)], 8) == ("0", "14", "28", "42", "57", "71", "85", "99")


# --- maps ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "places", [{"a": (0, 0), "b": (0, 0)}, {"a": (1e308, -1e308), "b": (-1e308, 1e308)}, {"a": (3, 4)}]
)
def test_maps_of_odd_places_are_drawn_or_left_out(places):
    problem = MDP.from_rows(
        [("a", "go", 0.5, "b", (1, 0)), ("a", "go", 0.5, "a", (0, 1)), ("a", "stay", 1, "a", (2, 0))],
        ends=["b"], horizon=3, start="a", places=places,
    )  # fmt: skip
    html = asked(problem, pair(*problem.best([[1, 0], [0, 1]])))
    checked(html)
    assert "nan" not in html and "inf" not in html


# --- the result ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_result_says_what_why_and_how_sure(name):
    problem, interview, _ = interviewed(name, 30)
    parts = jobs.result_parts(context_of(problem), list(interview.log), ())
    html = result(problem, parts)
    page = checked(html)
    for part in ("say", "importance", "thanks", "amounts"):
        assert f'class="{part}"' in html, part
    assert {"plan", "matters", "sure"} <= {attrs.get("id") for attrs in page.all("h2")}
    assert "/i/x/log" in {attrs.get("href") for attrs in page.all("a")}
    undone = [attrs["value"] for attrs in page.all("input") if attrs.get("name") == "number"]
    assert sorted(set(undone), key=int) == [str(one.number) for one in interview.answers]  # a slip stands there twice
    for slider in page.all("input"):
        if slider.get("type") == "range":
            assert int(slider["max"]) >= 1
    assert "/i/x" not in {attrs.get("href") for attrs in page.all("a")}
    unfinished = checked(result(problem, parts, finished=False))
    assert "/i/x" in {attrs.get("href") for attrs in unfinished.all("a")}


def test_contradictions_and_probable_slips_stand_apart_and_can_be_undone():
    problem = Catalogue([[10.0, 0.0], [0.0, 10.0]], ["speed", "range"])
    question = pair(problem.option(0), problem.option(1))
    given = [Answer(question, reply, number) for number, reply in ((1, FIRST), (2, SECOND), (3, SKIP))]
    recommendation = Recommendation(problem.option(0), [0.7, 0.3], 3, "done", doubtful=(2,))
    lines = answer_lines(problem, given, {}, conflicts=[1], recommendation=recommendation)
    html = result(problem, ResultParts(ResultBody("heading", "sentence", "", Markup("")), lines, contradiction(1), []))
    page = checked(html)
    numbers = [attrs["value"] for attrs in page.all("input") if attrs.get("name") == "number"]
    assert html.count('class="warning"') == 2 and numbers == ["1", "2", "1", "2", "3"]


# --- other pages -----------------------------------------------------------------------------------------------------


def test_the_first_page_names_what_a_table_leaves_out():
    frame = pandas.DataFrame({"name": ["a", "b"], "cost (min)": [1, 2], "time": ["3h 20m", "1h 05m"]})
    page = views.render("start.html", **views.start_view(tradeoff.load(frame), texts={}, action="/begin"))
    _, is_open, said = page.partition('<details class="about" open>')
    assert is_open and "&#39;time&#39;" in said and "3h 20m" in said and "&#39;b&#39;" in said


def test_a_refusal_begins_with_a_capital():
    request = Request({"type": "http", "method": "POST", "path": "/i/x", "headers": []})
    assert (
        "The target is wrong." in _unprocessable(request, tradeoff.ArgumentError("the target is wrong")).body.decode()
    )


def test_start_and_message_pages():
    page = checked(views.render("start.html", **views.start_view(tradeoff.load("vacuum"), texts={}, action="/begin")))
    assert [(f["method"], f["action"]) for f in page.all("form")] == [("post", "/begin")]
    assert len(page.all("pre")) == 1 and "no wrong answers" in page.text
    page = checked(views.render("message.html", **views.message_view("Gone", "One.\n\nTwo.", action=("Home", "/"))))
    assert "One." in page.text and {"class": "button", "href": "/"} in page.all("a")


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
        interview = Interview(problem)
        interview.ask()
        interview.tell("first")
        parts = jobs.result_parts(context_of(problem), list(interview.log), ())
        pages = [
            asked(problem, pair(dilute(one, 0.5), other), texts=texts, notice=EVIL[0] + EVIL[2]),
            result(problem, parts, texts=texts, notice=EVIL[0]),
            views.render("start.html", **views.start_view(problem, texts=texts, action="/s")),
        ]
        for html in pages:
            page = checked(html)
            assert page.text.count("{{ 4321 * 1234 }}") and "5332114" not in page.text
            assert "<script>alert" not in html and "onerror=alert" not in re.sub(r"&[^;]+;[^<]*", "", html)
            assert len(html) < 120_000
        assert "<script>alert(1)</script>" in Page(pages[0]).text


# --- work done once ----------------------------------------------------------------------------------------------------


def test_an_option_is_drawn_once(monkeypatch):
    problem, interview, questions = interviewed("vacuum", 3)
    show, shown = type(problem).show, []
    monkeypatch.setattr(type(problem), "show", lambda self, drawn: shown.append(drawn) or show(self, drawn))
    first = asked(problem, questions[0], interview.recommendation)
    count = len(shown)
    assert count >= 2
    assert asked(problem, questions[0], interview.recommendation) == first and len(shown) == count


# --- imports ---------------------------------------------------------------------------------------------------------


def test_the_page_needs_neither_rich_nor_click():
    code = (
        "import sys; sys.modules['rich'] = sys.modules['click'] = None\n"
        "import tradeoff.apps.web.app, tradeoff.apps.web.server, tradeoff.presentation.data"
    )
    done = processes.run([sys.executable, "-c", code])
    assert done.returncode == 0, done.stderr


def test_people_with_the_same_answers_share_what_is_made_of_them_and_nothing_else(monkeypatch):
    problem = tradeoff.load("coffee")
    context = context_of(problem)
    made, make = [], jobs.decision
    monkeypatch.setattr(jobs, "decision", lambda *given, **named: made.append(1) or make(*given, **named))

    def page(seed: int, reply: Reply) -> str:
        """Return the result of somebody who always gives the same reply, whatever stands where."""
        session = Session.begin(problem, checks=False, strategy="paper", basis="spanner", order_seed=seed)
        while (prompt := session.ask()) is not None:
            session.tell(prompt.turn, prompt.by_place(reply))
        return result(problem, jobs.result_parts(context, session.events, ()))

    pages = [page(seed, FIRST) for seed in range(6)]  # so many that A is not the same for all of them
    assert len(made) == 1
    assert len(set(pages)) > 1  # "You preferred A" is of each one's own
    assert page(0, FIRST) == pages[0] and len(made) == 1
    page(0, EQUAL)
    assert len(made) == 2
