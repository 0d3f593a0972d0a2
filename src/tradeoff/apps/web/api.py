"""The JSON API for other front ends: the same sessions and questions as the pages."""

from __future__ import annotations

import json
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tradeoff.apps.web import threads
from tradeoff.apps.web.decision import LONGEST, ranking_for
from tradeoff.apps.web.openapi import ANSWERS, document
from tradeoff.apps.web.threads import visit
from tradeoff.decisions import why_not as reason_why_not
from tradeoff.errors import ArgumentError
from tradeoff.log import Asked, CheckShown, MenuAsked, Reply
from tradeoff.menus import STRENGTHS, Choice, Graded, plain
from tradeoff.model import Answer
from tradeoff.presentation.data import recommendation_data, shown_data
from tradeoff.presentation.decision_data import ranking_data, rival_data
from tradeoff.studies import Session, Sessions

LARGEST_TURN = 10**9


async def begin(request: Request) -> Response:
    """Begin an interview."""
    sessions = _sessions(request)
    if not sessions.study.open:
        raise HTTPException(403, "this study is open only to those who were given a link")
    await _body(request, {})

    token = await threads.begin(sessions, request.scope.get("visitor"))
    data = await visit(sessions, token, state_data)
    return JSONResponse({"id": token, **data}, 201)


async def question(request: Request) -> Response:
    """Send the question to be answered now."""
    return await _next_question(request)


async def answers(request: Request) -> Response:
    """Record an answer and send the next question. The answer is durable before the next question is worked out."""
    fields = {"turn": int, "answer": str, "best": int, "worst": int, "strength": str}
    given = await _body(request, fields, required=("turn",))
    turn, said = given["turn"], given.get("answer")
    if (said is None) == ("best" not in given) or (said is not None and "worst" in given):
        raise HTTPException(422, "give either answer, or best and worst")
    if said is not None and said not in ANSWERS:
        raise HTTPException(422, f"answer must be one of {', '.join(ANSWERS)}")
    if "strength" in given and given["strength"] not in STRENGTHS:
        raise HTTPException(422, f"strength must be one of {', '.join(STRENGTHS)}")
    await visit(
        _sessions(request), request.path_params["id"],
        lambda session: _tell(session, given), turn=turn,
        quick=lambda session: session.state.shown is not None,
    )  # fmt: skip
    return await _next_question(request)


def _tell(session: Session, given: dict[str, Any]) -> None:
    """Record a reply in a session; what cannot be said to this question, though it is well-formed, is a conflict."""
    turn = given["turn"]
    reply, strength = _reply(session.shown(turn), given), given.get("strength")
    if strength is None:
        session.tell(turn, reply)
        return
    if not session.state.strengths:
        raise HTTPException(409, "this interview does not ask by how much something is better; leave strength out")
    if reply is None:
        raise HTTPException(409, "what is skipped has no strength; leave strength out")
    try:
        session.tell(turn, Graded(plain(reply), strength))
    except ArgumentError as error:
        raise HTTPException(409, str(error)) from None


def _reply(shown: Asked | MenuAsked | CheckShown, given: dict[str, Any]) -> Reply:
    """Return the reply that was sent: a word, or the places of the best and the worst."""
    said = given.get("answer")
    if said == "skip":
        return None
    if isinstance(shown, MenuAsked):
        if said not in (None, "same"):
            raise HTTPException(409, "this is a menu; answer with best and worst, same or skip")
        try:
            same = Choice.about_equal(len(shown.order))
            return same if said else shown.chosen(shown.asks, given.get("best"), given.get("worst"))
        except ArgumentError as error:
            raise HTTPException(409, str(error)) from None
    if said is None:
        raise HTTPException(409, f"this is a pair; answer must be one of {', '.join(ANSWERS)}")
    return Answer(said)


async def statements(request: Request) -> Response:
    """Record what a person says without being asked, and send the question that follows."""
    given = await _body(request, {"text": str}, required=("text",))
    try:
        await visit(_sessions(request), request.path_params["id"], lambda session: session.know(given["text"]))
    except ArgumentError as error:  # a valid request, but this interview cannot use it
        raise HTTPException(409, str(error)) from None
    return await _next_question(request)


async def undo(request: Request) -> Response:
    """Take back the last answer, or one by its number, and send the question that follows."""
    given = await _body(request, {"turn": int, "number": int})
    try:
        await visit(
            _sessions(request), request.path_params["id"],
            lambda session: session.undo(given.get("number"), turn=given.get("turn")),
        )  # fmt: skip
    except ArgumentError as error:  # a valid request, but there is no such answer now
        raise HTTPException(409, str(error)) from None
    return await _next_question(request)


async def recommendation(request: Request) -> Response:
    """Send the current recommendation."""
    found = await visit(
        _sessions(request), request.path_params["id"],
        recommended_data, caller=request.scope.get("visitor"),
    )  # fmt: skip
    return JSONResponse(found)


async def ranking(request: Request) -> Response:
    """Send the best few, and what each wins and loses against the first."""

    def make(session: Session) -> dict[str, Any]:
        return ranking_data(session.problem, session.interview, ranking_for(session.problem, session.interview))

    found = await visit(
        _sessions(request), request.path_params["id"], make, caller=request.scope.get("visitor"), long=True
    )
    return JSONResponse(found)


async def why_not(request: Request) -> Response:
    """Send why something is not what is recommended."""
    name = request.query_params.get("name", "")
    if not 0 < len(name) <= LONGEST:
        raise HTTPException(
            422, f"name must be the name of an item or a place of the ranking, 1 to {LONGEST} characters"
        )

    def make(session: Session) -> dict[str, Any]:
        ranked = ranking_for(session.problem, session.interview)
        with session.interview.thinking():
            rival = reason_why_not(session.interview, name, ranked)
            return rival_data(session.problem, session.interview, rival, ranked)

    try:
        found = await visit(
            _sessions(request), request.path_params["id"], make, caller=request.scope.get("visitor"), long=True
        )
    except ArgumentError as error:  # a valid request, but nothing is called that
        return JSONResponse({"error": f"{error}."}, 404)
    return JSONResponse(found)


async def openapi(request: Request) -> Response:
    """Send the description of this API."""
    return JSONResponse(document())


async def _next_question(request: Request) -> Response:
    sessions = _sessions(request)

    def make(session: Session) -> dict[str, Any]:
        if not session.ready:
            with session.interview.thinking():
                sessions.ask_helpers(session, "state")
        return state_data(session)

    return JSONResponse(await visit(sessions, request.path_params["id"], make, caller=request.scope.get("visitor")))


# --- data ------------------------------------------------------------------------------------------------------------


def state_data(session: Session) -> dict[str, Any]:
    """Return the state of an interview: the question to be answered, or that there is none."""
    asked = session.ask()
    return {
        "finished": asked is None,
        "turn": session.turn,
        "answered": session.answered,
        "at_most": session.at_most,
        "question": None if asked is None else shown_data(session.problem, asked),
        **({"strengths": list(STRENGTHS)} if session.state.strengths else {}),
    }


def recommended_data(session: Session) -> dict[str, Any]:
    """Return the current recommendation."""
    conflicts = [number for number, _, _ in session.interview.conflicts()]
    return recommendation_data(session.problem, session.recommendation, session.finished, conflicts)


# --- reading what was sent -------------------------------------------------------------------------------------------


def _sessions(request: Request) -> Sessions:
    sessions: Sessions = request.app.state.sessions
    return sessions


async def _body(request: Request, fields: dict[str, type], required: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the JSON object that was sent, checked. It may be left out where no field is required."""
    raw = await request.body()
    if not raw and not required:
        return {}
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "send JSON, with the content-type application/json")
    try:
        given = json.loads(raw)
    except (ValueError, RecursionError):
        raise HTTPException(400, "this is not JSON") from None
    if not isinstance(given, dict):
        raise HTTPException(422, "send a JSON object")
    for name, value in given.items():
        if name not in fields:
            raise HTTPException(422, f"{name[:40]!r} is not known here; known are: {', '.join(fields) or 'none'}")
        whole = fields[name] is int and isinstance(value, float) and value.is_integer()  # 1.0 is an integer in JSON
        given[name] = value = int(value) if whole else value
        if type(value) is not fields[name] or (isinstance(value, int) and not 1 <= value <= LARGEST_TURN):
            kinds = {int: f"a whole number from 1 to {LARGEST_TURN}", str: "a text"}
            raise HTTPException(422, f"{name!r} must be {kinds[fields[name]]}")
    for name in required:
        if name not in given:
            raise HTTPException(422, f"{name!r} is missing")
    return given


routes = [
    Route("/openapi.json", openapi),
    Route("/interviews", begin, methods=["POST"]),
    Route("/interviews/{id}/question", question),
    Route("/interviews/{id}/answers", answers, methods=["POST"]),
    Route("/interviews/{id}/statements", statements, methods=["POST"]),
    Route("/interviews/{id}/undo", undo, methods=["POST"]),
    Route("/interviews/{id}/recommendation", recommendation),
    Route("/interviews/{id}/ranking", ranking),
    Route("/interviews/{id}/why-not", why_not),
]
