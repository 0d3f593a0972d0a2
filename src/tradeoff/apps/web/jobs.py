"""Jobs of the compute service: what pages and API show, computed in a worker process.

A job receives the context of its worker first, then a log or a question. It returns a value that can be pickled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from tradeoff.apps.web.decision import decision, ranking_for
from tradeoff.apps.web.rendering import Picture, render, render_cache
from tradeoff.decisions import what_if
from tradeoff.decisions import why_not as reason_why_not
from tradeoff.errors import ArgumentError
from tradeoff.log import Event, ShownQuestion
from tradeoff.presentation import sentences
from tradeoff.presentation.answers import AnswerLine, lines_of
from tradeoff.presentation.data import recommendation_data, shown_data
from tradeoff.presentation.decision_data import ranking_data, rival_data
from tradeoff.presentation.groups import choices_of, group_words
from tradeoff.presentation.memo import ProblemCache
from tradeoff.presentation.problems import notes
from tradeoff.presentation.question import question_table
from tradeoff.presentation.report import report, report_html
from tradeoff.presentation.result import result, what_ifs
from tradeoff.presentation.text import clipped
from tradeoff.sources import AnyProblem
from tradeoff.stores.base import Log
from tradeoff.studies import Session
from tradeoff.studies.checks import dominated_pair
from tradeoff.studies.service import Context, answers_key
from tradeoff.studies.together import finished_people

GROUP_MENU = 2  # options that are offered to a group


def picture_address(problem: AnyProblem) -> Picture | None:
    """Return the function from a state to the address of its picture, where the problem has pictures."""
    if not getattr(problem, "pictures", None):
        return None
    return lambda state: f"/picture?state={quote(state, safe='')}"


# --- the question ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DrawnQuestion:
    """The part of a question page that is the same for everybody who sees these options in this order."""

    table: Markup
    words: str
    names: tuple[str, ...]
    definitions: tuple[tuple[str, str], ...]  # what the objectives are, where the problem says so


def draw_question(context: Context, fingerprint: str, shown: ShownQuestion) -> DrawnQuestion:
    """Return the options of a question side by side."""
    cache = render_cache(context.problem(fingerprint))
    options = shown.options
    table = question_table(cache.problem, options, shown.question.asks, [cache.lottery(one) for one in options])
    is_pair = table.is_pair
    drawings = [cache.drawings(card) | ({"map": None} if is_pair else {}) for card in table.cards]
    html = render(
        "question_table.html",
        table=table,
        drawings=drawings,
        both=cache.compared(*table.cards) if is_pair else None,
        map_defs=cache.map_defs,
        picture=picture_address(context.problem(fingerprint)),
    )
    names = tuple(clipped(name) for name in table.names)
    definitions = tuple((clipped(name), clipped(meaning)) for name, meaning in table.definitions)
    return DrawnQuestion(Markup(html), table.words, names, definitions)  # the template escapes everything


def question_data(context: Context, fingerprint: str, shown: ShownQuestion) -> dict[str, Any]:
    """Return a question as data."""
    return shown_data(context.problem(fingerprint), shown)


# --- the result ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ResultBody:
    """The part of a result page that is the same for everybody with the same answers."""

    heading: str
    sentence: str
    counted: str
    sections: Markup


@dataclass(frozen=True)
class ResultParts:
    """A result page without links and the study's texts."""

    body: ResultBody
    answers: list[AnswerLine]
    contradiction: str
    notes: list[str]


_bodies: ProblemCache[ResultBody] = ProblemCache(500)


def result_parts(context: Context, events: list[Event], query: tuple[tuple[str, str], ...]) -> ResultParts:
    """Return the result of a participant; ``query`` says what they ask about and try."""
    session = context.session(events)
    problem = session.problem
    if query:
        body = _result_body(session, dict(query))
    else:
        key = answers_key(session.state)
        body = _bodies.get(problem, key, lambda: _result_body(session, {}))
    answers = lines_of(problem, session.interview)
    conflicts = sum(line.conflict for line in answers)
    return ResultParts(body, answers, sentences.contradiction(conflicts), notes(problem))


def _result_body(session: Session, query: Mapping[str, str]) -> ResultBody:
    problem, interview = session.problem, session.interview
    recommendation, cache = interview.recommendation, render_cache(problem)
    found = result(problem, recommendation, cache.lottery(recommendation.option), interview.finished)
    changes = what_if(problem, recommendation) if recommendation.questions else ()
    sections = render(
        "result_body.html",
        result=found,
        drawings=cache.drawings(found.card),
        importance=sorted(found.importance, key=lambda row: (not row.matters, -row.share)),
        what_ifs=what_ifs(problem, recommendation, changes) if changes else [],
        map_defs=cache.map_defs,
        picture=picture_address(problem),
        decision=decision(problem, interview, query),
    )
    return ResultBody(found.heading, found.sentence, found.counted, Markup(sections))  # the template escapes everything


def result_report(context: Context, events: list[Event]) -> tuple[str, str]:
    """Return the report of a participant as one file, and as part of a page for others."""
    session = context.session(events)
    ranked = ranking_for(session.problem, session.interview)
    made = report(session.problem, session.interview, ranked, title=context.study.texts.get("title", ""))
    return report_html(made), render("shared.html", report=made, title=made.title)


# --- data ------------------------------------------------------------------------------------------------------------


def current_recommendation(context: Context, events: list[Event]) -> dict[str, Any]:
    """Return the recommendation of a participant as data."""
    session = context.session(events)
    interview = session.interview
    conflicts = [answer.number for answer in interview.conflicts()]
    return recommendation_data(session.problem, interview.recommendation, interview.finished, conflicts)


def current_ranking(context: Context, events: list[Event]) -> dict[str, Any]:
    """Return the ranking of a participant as data."""
    session = context.session(events)
    return ranking_data(session.problem, session.interview, ranking_for(session.problem, session.interview))


def current_why_not(context: Context, events: list[Event], name: str) -> dict[str, Any]:
    """Return why an option is not recommended to a participant, as data."""
    session = context.session(events)
    ranked = ranking_for(session.problem, session.interview)
    rival = reason_why_not(session.interview, name, ranked)
    return rival_data(session.problem, session.interview, rival, ranked)


# --- the study -------------------------------------------------------------------------------------------------------


def group_page(context: Context, logs: Mapping[str, Log]) -> str:
    """Return the page with one choice for everybody who has finished, and what it costs each."""
    study, problem = context.study, context.problem(context.study.fingerprint)
    words, refused = None, ""
    try:
        people = finished_people(problem, logs)
        words = group_words(problem, people, choices_of(people, problem, GROUP_MENU, None))
    except ArgumentError as error:
        refused = f"{str(error)[:1].upper()}{str(error)[1:]}."
    back = f"/admin/{study.admin}"
    return render("together.html", title=study.name, told=words, total=len(logs), refused=refused, back=back)


def warm_up(context: Context) -> None:
    """Ask and draw one question, so that the first visitor does not wait for compilers and caches."""
    study, problem = context.study, context.problem(context.study.fingerprint)
    if study.checks:
        dominated_pair(problem)
    session = Session.begin(problem, checks=study.checks, order_seed=0, **study.interview_settings())
    prompt = session.ask()
    if prompt is not None:
        draw_question(context, problem.fingerprint, ShownQuestion(prompt.question, prompt.order))
