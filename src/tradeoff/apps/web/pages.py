"""The pages that people see: read the request, advance the session, render."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, quote

import numpy as np
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from tradeoff.apps.web import threads, views
from tradeoff.apps.web.decision import decision
from tradeoff.apps.web.rendering import render_cache
from tradeoff.apps.web.threads import aside, visit
from tradeoff.errors import ArgumentError
from tradeoff.log import SAID, Asked, CheckShown, MenuAsked, Reply, write_log
from tradeoff.menus import STRENGTHS, Choice, Strength, graded
from tradeoff.model import Alternative, Answer
from tradeoff.presentation.result import as_shown
from tradeoff.sources import AnyProblem
from tradeoff.stores.base import missing
from tradeoff.stores.memory import InMemoryStore
from tradeoff.studies import MenuPrompt, Page, Session, Sessions, Study, TurnError
from tradeoff.studies.checks import dominated_pair
from tradeoff.studies.sharing import shared_name

NOTICES = {
    "answered": "This question has already been answered, perhaps in another window. You can take the answer back.",
    "choose": "Please choose the best and, where it is asked for, the worst of them: two different ones.",
    "nothing": "There is no answer to take back.",
    "changed": "Something was answered or taken back in another window. This is the current question.",
}


async def start(request: Request) -> Response:
    """Show what the study is about, and a button to begin."""
    sessions = _sessions(request)
    if not sessions.study.open:
        return message(
            "By invitation", "Only people who were given a link can take part in this study. Please use your link.", 200
        )
    study = sessions.study
    questions = study.settings.get("questions")
    view = views.start_view(request.app.state.problem, texts=study.texts, action="/start", questions=questions)
    return HTMLResponse(views.render("start.html", **view))


async def begin(request: Request) -> Response:
    """Begin an interview and redirect to its first question."""
    sessions = _sessions(request)
    if not sessions.study.open:
        raise HTTPException(403, "this study is open only to those who were given a link")
    token = await threads.begin(sessions, request.scope.get("visitor"))
    return _to(f"/i/{token}")


async def question(request: Request) -> Response:
    """Show the question to be answered, or redirect to the result when none is left."""
    sessions, token, notice = _sessions(request), _token(request), _notice(request)
    page = await visit(
        sessions, token, lambda session: _question_page(sessions, token, session, notice), turn=_turn(request),
        quick=partial(_drawn, sessions), caller=request.scope.get("visitor"),
    )  # fmt: skip
    return _to(f"/i/{token}/result") if page is None else HTMLResponse(page)


def _question_page(sessions: Sessions, token: str, session: Session, notice: str) -> str | None:
    if not _drawn(sessions, session):
        # One turn in the queue for all of it; nothing is left to compute after this.
        with session.interview.thinking():
            sessions.ask_helpers(session, "question")
            due = session.work_out()
            if due is not None:
                views.draw(session.problem, due, _picture(sessions))
    asked = session.ask()
    if asked is None:
        return None
    known: dict[str, Any] = {
        "turn": asked.turn,
        "at_most": session.at_most,
        "recommendation": session.recommendation,
        "links": _links(sessions, token),
        "answered": session.answered,
        "texts": sessions.study.texts,
        "notice": notice,
        "strengths": session.state.strengths,
    }
    if isinstance(asked, MenuPrompt):
        return views.render("menu.html", **views.menu_view(session.problem, asked, **known))
    return views.render(
        "question.html", **views.question_view(session.problem, asked.a, asked.b, again=asked.again, **known)
    )


def _drawn(sessions: Sessions, session: Session) -> bool:
    """Return whether the next question is known and has been drawn before."""
    if not session.ready:
        return False
    asked = session.next()
    return asked is None or views.drawn_before(session.problem, asked, _picture(sessions))


async def answer(request: Request) -> Response:
    """Record an answer, which is durable before the reply is sent. The next page works out what to ask."""
    sessions, token, fields = _sessions(request), _token(request), await form(request)
    turn = whole(fields, "turn")

    def tell(session: Session) -> int:
        session.tell(turn, _reply(session.shown(turn), fields))
        session.ask_if_known()
        return session.turn

    try:
        now = await visit(sessions, token, tell, turn=turn, quick=lambda session: session.state.shown is not None)
    except TurnError:
        return _to(f"/i/{token}?notice=answered")
    except NotChosenError:
        return _to(f"/i/{token}?notice=choose")
    return _to(f"/i/{token}?turn={now}")  # tells the process that serves the next page how far the log must be


class NotChosenError(ArgumentError):
    """A menu was sent without a best and a worst, or with the same for both."""


def _reply(shown: Asked | MenuAsked | CheckShown, fields: Mapping[str, str]) -> Reply:
    """Return the reply that a form means: a side of a pair, or the best and the worst of a menu."""
    given = fields.get("answer", "")
    if isinstance(shown, MenuAsked):
        if given in ("same", "skip"):
            return Choice.about_equal(len(shown.order)) if given == "same" else None
        if given != "choice":
            raise ArgumentError(f"{given[:40]!r} is not an answer to a menu; it is choice, same or skip")
        best, worst = (whole(fields, name) if name in fields else None for name in ("best", "worst"))
        try:
            return graded(shown.chosen(shown.asks, best, worst), _strength(fields.get("strength", "")))
        except ArgumentError as error:
            raise NotChosenError(str(error)) from None
    side, _, much = given.partition(" ")  # a button can send one value: "left", or "left a lot"
    said = next((one for one in SAID if one == side), None)
    reply = None if said is None else shown.reply(said)
    if said is None or (much and not isinstance(reply, Answer)):
        raise ArgumentError(
            f"{given[:40]!r} is not an answer; it is {', '.join(SAID)}, or left or right with a strength"
        )
    return graded(reply, _strength(much)) if isinstance(reply, Answer) else reply


def _strength(text: str) -> Strength | None:
    """Return a strength as a form has it; "" where none was chosen."""
    found = next((one for one in STRENGTHS if one == text), None)
    if text and found is None:
        raise ArgumentError(f"{text[:40]!r} is not a strength; it is {' or '.join(STRENGTHS)}, or left out")
    return found


async def undo(request: Request) -> Response:
    """Take back the last answer, or one by its number."""
    token, fields = _token(request), await form(request)
    number = whole(fields, "number") if "number" in fields else None
    turn = whole(fields, "turn") if "turn" in fields else None
    try:
        await visit(_sessions(request), token, lambda session: session.undo(number, turn=turn))
    except TurnError:
        return _to(f"/i/{token}?notice=changed")
    except ArgumentError:
        return _to(f"/i/{token}?notice=nothing")
    return _to(f"/i/{token}")


async def result(request: Request) -> Response:
    """Show the result so far."""
    sessions, token, notice = _sessions(request), _token(request), _notice(request)
    query, shared = dict(request.query_params), ""
    if sessions.study.sharing:
        name = await aside(shared_name, sessions.store, sessions.study, token)
        shared = f"/r/{name}" if name else ""
    return HTMLResponse(
        await visit(
            sessions,
            token,
            lambda session: _result_page(sessions, token, session, notice, query, shared),
            quick=lambda session: not query and _result_known(session),
            caller=request.scope.get("visitor"),
            long=True,
        )
    )


def _result_page(
    sessions: Sessions, token: str, session: Session, notice: str, query: Mapping[str, str], shared: str
) -> str:
    if not query and not _result_known(session):
        with session.interview.thinking():
            sessions.ask_helpers(session, "result")
    session.ask()
    problem, found = session.problem, session.recommendation
    cache, key = render_cache(problem), _result_key(session)

    def make() -> views.ResultBody:
        told = decision(problem, session.interview, query)
        return views.result_body(problem, found, finished=session.finished, picture=_picture(sessions), decision=told)

    with contextlib.nullcontext() if not query and key in cache.parts else session.interview.thinking():
        view = views.result_view(
            problem,
            found,
            make() if query else cache.parts.once(key, make),
            finished=session.finished,
            links=_links(sessions, token),
            answers=[as_shown(*given) for given in session.history()],
            conflicts=_conflicts(session),
            texts=sessions.study.texts,
            notice=notice,
            shared=shared,
        )
    return views.render("result.html", **view)


def _conflicts(session: Session) -> list[int]:
    """Return the numbers of the answers that contradict each other."""
    if session.recommendation.complete:  # a strategy that allows for slips has dealt with contradictions
        return []
    return [number for number, _, _ in session.interview.conflicts()]


def _result_key(session: Session) -> Hashable:
    """Return all that the body of a result page depends on, unless something is asked about it."""
    told = tuple((number, question.key, repr(reply)) for number, question, reply in session.interview.answers)
    return "result", told, tuple(map(_content, vars(session.recommendation).values())), session.finished


def _content(value: Any) -> Hashable:
    """Return a part of a recommendation in a form that is equal for equal parts."""
    if isinstance(value, Alternative):
        return value.value.tobytes(), value.plan
    return value.tobytes() if isinstance(value, np.ndarray) else value


def _result_known(session: Session) -> bool:
    """Return whether somebody with the same answers has seen the result."""
    return session.ready and _result_key(session) in render_cache(session.problem).parts


async def own_log(request: Request) -> Response:
    """Send a person their own log."""
    events = await aside(_sessions(request).events, _token(request))
    disposition = {"content-disposition": 'attachment; filename="my-answers.jsonl"'}
    return Response(write_log(events), media_type="application/jsonl", headers=disposition)


async def picture(request: Request) -> Response:
    """Send the picture that the problem has of a state."""
    state = request.query_params.get("state", "")
    pictures: Mapping[str, bytes] = getattr(request.app.state.problem, "pictures", {})
    found = await aside(pictures.get, state) if pictures else None
    if found is None:
        raise missing("pictures", state[:40])
    return Response(found, media_type="image/png", headers={"cache-control": "private, max-age=86400"})


async def health(request: Request) -> Response:
    """Report that the server is up."""
    return Response("ok\n", media_type="text/plain")


def warm_up(study: Study, problem: AnyProblem) -> None:
    """Ask and draw one question in advance, so that the first visitor does not wait for compilers and caches."""
    sessions = Sessions(study, problem, InMemoryStore())
    if study.checks:
        dominated_pair(problem)
    token = sessions.open()
    sessions.do(token, lambda session: _question_page(sessions, token, session, ""))


def prepare(sessions: Sessions, session: Session, page: Page) -> None:
    """Make a page and drop it, so that all it needs is kept. A "state" is what every page rests on."""
    match page:
        case "state":
            session.work_out()
        case "question":
            _question_page(sessions, "", session, "")
        case "result":
            _result_page(sessions, "", session, "", {}, "")


def message(title: str, sentence: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    """Return a page with a single message."""
    return HTMLResponse(
        views.render("message.html", **views.message_view(title, sentence)), status, dict(headers or {})
    )


# --- reading what was sent -------------------------------------------------------------------------------------------


def _sessions(request: Request) -> Sessions:
    sessions: Sessions = request.app.state.sessions
    return sessions


def _token(request: Request) -> str:
    token: str = request.path_params["token"]
    return token


def _notice(request: Request) -> str:
    return NOTICES.get(request.query_params.get("notice", ""), "")


def _turn(request: Request) -> int | None:
    """Return the turn that the person has reached, as the redirect after an answer says."""
    text = request.query_params.get("turn", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


async def form(request: Request) -> dict[str, str]:
    """Return the fields of a form."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    if body and kind != "application/x-www-form-urlencoded":
        raise HTTPException(415, "a form of this page is sent as application/x-www-form-urlencoded")
    try:
        return dict(parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=20))
    except ValueError:
        raise HTTPException(400, "this is not a form of this page") from None


def whole(fields: Mapping[str, str], name: str) -> int:
    """Return a field that is a whole number."""
    text = fields.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ArgumentError(f"the field {name!r} is {text[:40]!r}; it must be a whole number")
    return int(text)


def _links(sessions: Sessions, token: str) -> views.Links:
    here = f"/i/{token}"
    return views.Links(
        answer=f"{here}/answer",
        undo=f"{here}/undo",
        result=f"{here}/result",
        log=f"{here}/log",
        question=here,
        picture=_picture(sessions),
        report=f"{here}/report",
        share=f"{here}/share" if sessions.study.sharing else "",
    )


def _picture(sessions: Sessions) -> Callable[[str], str] | None:
    """Return the function from a state to the address of its picture, where the problem has pictures."""
    return (
        (lambda state: f"/picture?state={quote(state, safe='')}")
        if getattr(sessions.problem, "pictures", None)
        else None
    )


def _to(address: str) -> Response:
    return RedirectResponse(address, status_code=303)


routes = [
    Route("/", start),
    Route("/start", begin, methods=["POST"]),
    Route("/health", health),
    Route("/picture", picture),
    Route("/i/{token}", question),
    Route("/i/{token}/answer", answer, methods=["POST"]),
    Route("/i/{token}/undo", undo, methods=["POST"]),
    Route("/i/{token}/result", result),
    Route("/i/{token}/log", own_log),
]
