"""The pages that people see: read what was sent, move the session on, render. Nothing is computed here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from urllib.parse import parse_qsl, quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from tradeoff.apps.web import views
from tradeoff.apps.web.threads import aside, visit
from tradeoff.errors import ArgumentError
from tradeoff.model import Alternative, Answer
from tradeoff.presentation.result import as_shown
from tradeoff.sources import AnyProblem
from tradeoff.stores.base import missing
from tradeoff.stores.memory import InMemoryStore
from tradeoff.studies import Desk, Session, Study, TurnError
from tradeoff.studies.checks import dominated_pair
from tradeoff.studies.session import Asked

# What the buttons say; the left one is for the alternative that is shown there.
SAID = {"left": Answer.FIRST, "right": Answer.SECOND, "same": Answer.SAME, "skip": None}

NOTICES = {
    "answered": "This question was answered already, maybe in another window. You can take the answer back.",
    "nothing": "There is no answer to take back.",
    "changed": "Something was answered or taken back in another window; this is the question now.",
}


async def start(request: Request) -> Response:
    """Show what this is, and a button to begin."""
    desk = _desk(request)
    if not desk.study.open:
        return message("By invitation", "This study is open to those who were given a link. Please use yours.", 200)
    view = views.start_view(request.app.state.problem, texts=desk.study.texts, action="/start")
    return HTMLResponse(views.render("start.html", **view))


async def begin(request: Request) -> Response:
    """Begin an interview, and go to its first question."""
    desk = _desk(request)
    if not desk.study.open:
        raise HTTPException(403, "this study is open only to those who were given a link")
    token = await aside(desk.open)
    return _to(f"/i/{token}")


async def question(request: Request) -> Response:
    """Show the question to be answered, or go on to the result when there is none."""
    desk, token, notice = _desk(request), _token(request), _notice(request)
    page = await visit(
        desk, token, lambda session: _question_page(desk, token, session, notice), turn=_turn(request),
        quick=partial(_drawn, desk),
    )  # fmt: skip
    return _to(f"/i/{token}/result") if page is None else HTMLResponse(page)


def _question_page(desk: Desk, token: str, session: Session, notice: str) -> str | None:
    asked = session.ask()
    if asked is None:
        return None
    view = views.question_view(
        desk.problem,
        *_sides(asked),
        turn=asked.turn,
        at_most=session.at_most,
        recommendation=session.recommendation,
        links=_links(desk, token),
        answered=session.answered,
        texts=desk.study.texts,
        notice=notice,
    )
    return views.render("question.html", **view)


def _sides(asked: Asked) -> tuple[Alternative, Alternative]:
    """Return A and B, as they are shown."""
    question = asked.question
    return (question.first, question.second) if asked.left == "first" else (question.second, question.first)


def _drawn(desk: Desk, session: Session) -> bool:
    """Return whether the question was drawn before, for somebody else."""
    asked = session.ask()
    return asked is None or views.drawn_before(desk.problem, *_sides(asked), _picture(desk))


async def answer(request: Request) -> Response:
    """Take an answer. When this has answered, it is on the disk."""
    desk, token, fields = _desk(request), _token(request), await form(request)
    turn, said = whole(fields, "turn"), fields.get("answer", "")
    if said not in SAID:
        raise ArgumentError(f"{said[:40]!r} is not an answer; it is {', '.join(SAID)}")

    def tell(session: Session) -> int:
        session.tell(turn, _reply(session, said))
        return session.turn

    try:
        now = await visit(
            desk, token, tell, turn=turn, quick=lambda session: session.knows(_reply(session, said))
        )  # fmt: skip
    except TurnError:
        return _to(f"/i/{token}?notice=answered")
    return _to(f"/i/{token}?turn={now}")  # so that whoever serves the next page knows how far it must be


def _reply(session: Session, said: str) -> Answer | None:
    """Return what is meant by a side of the question that is shown."""
    reply = SAID[said]
    asked = session.ask()
    return reply.swapped if reply is not None and asked is not None and asked.left == "second" else reply


async def undo(request: Request) -> Response:
    """Take back the last answer, or one by its number."""
    token, fields = _token(request), await form(request)
    number = whole(fields, "number") if "number" in fields else None
    turn = whole(fields, "turn") if "turn" in fields else None
    try:
        await visit(_desk(request), token, lambda session: session.undo(number, turn=turn))
    except TurnError:
        return _to(f"/i/{token}?notice=changed")
    except ArgumentError:
        return _to(f"/i/{token}?notice=nothing")
    return _to(f"/i/{token}")


async def result(request: Request) -> Response:
    """Show what was found out so far."""
    desk, token, notice = _desk(request), _token(request), _notice(request)
    return HTMLResponse(await visit(desk, token, lambda session: _result_page(desk, token, session, notice)))


def _result_page(desk: Desk, token: str, session: Session, notice: str) -> str:
    session.ask()
    found = session.recommendation
    settled = found.complete  # a strategy that allows for slips has dealt with what contradicts the rest
    conflicts = [] if settled else [number for number, _, _ in session.interview.conflicts()]
    view = views.result_view(
        desk.problem,
        found,
        finished=session.finished,
        links=_links(desk, token),
        answers=[as_shown(*given) for given in session.history()],
        conflicts=conflicts,
        texts=desk.study.texts,
        notice=notice,
    )
    return views.render("result.html", **view)


async def own_log(request: Request) -> Response:
    """Give a person everything that was kept of them."""

    def lines(session: Session) -> str:
        return "".join(json.dumps(event) + "\n" for event in session.events)

    disposition = {"content-disposition": 'attachment; filename="my-answers.jsonl"'}
    return Response(
        await visit(_desk(request), _token(request), lines), media_type="application/jsonl", headers=disposition
    )


async def picture(request: Request) -> Response:
    """Give the problem's own picture of a state."""
    state = request.query_params.get("state", "")
    pictures: Mapping[str, bytes] = getattr(request.app.state.problem, "pictures", {})
    found = await aside(pictures.get, state) if pictures else None
    if found is None:
        raise missing("pictures", state[:40])
    return Response(found, media_type="image/png", headers={"cache-control": "private, max-age=86400"})


async def health(request: Request) -> Response:
    """Say that the server is there."""
    return Response("ok\n", media_type="text/plain")


def warm_up(study: Study, problem: AnyProblem) -> None:
    """Ask and draw one question that nobody sees, so that the first person need not wait for compilers and caches."""
    desk = Desk(study, problem, InMemoryStore())
    if study.checks:
        dominated_pair(problem)
    token = desk.open()
    desk.do(token, lambda session: _question_page(desk, token, session, ""))


def message(title: str, sentence: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    """Return a page that says one thing."""
    return HTMLResponse(
        views.render("message.html", **views.message_view(title, sentence)), status, dict(headers or {})
    )


# --- reading what was sent -------------------------------------------------------------------------------------------


def _desk(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


def _token(request: Request) -> str:
    token: str = request.path_params["token"]
    return token


def _notice(request: Request) -> str:
    return NOTICES.get(request.query_params.get("notice", ""), "")


def _turn(request: Request) -> int | None:
    """Return the turn that somebody has come to, as an answer has told them."""
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


def _links(desk: Desk, token: str) -> views.Links:
    here = f"/i/{token}"
    return views.Links(
        answer=f"{here}/answer",
        undo=f"{here}/undo",
        result=f"{here}/result",
        log=f"{here}/log",
        question=here,
        picture=_picture(desk),
    )


def _picture(desk: Desk) -> Callable[[str], str] | None:
    """Return the function from a state to the address of its picture, where the problem has pictures."""
    return (
        (lambda state: f"/picture?state={quote(state, safe='')}") if getattr(desk.problem, "pictures", None) else None
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
