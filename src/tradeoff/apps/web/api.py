"""The JSON API for other front ends: the same sessions and questions as the pages."""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tradeoff.apps.web import jobs
from tradeoff.apps.web.openapi import (
    LONGEST_NAME,
    AnswerBody,
    BestWorst,
    JsonObject,
    NoBody,
    StatementBody,
    UndoBody,
    document,
)
from tradeoff.apps.web.pages import about_question, only_headers, service_of, visitor
from tradeoff.errors import ArgumentError
from tradeoff.evidence import check_reply
from tradeoff.log import Asked
from tradeoff.model import Reply
from tradeoff.presentation.data import finite, objectives_data
from tradeoff.studies import TurnError
from tradeoff.studies.compute import Job

KEY = re.compile(r"[A-Za-z0-9_-]{22,128}")  # as long as a token, since a key gives access to the interview it began

NOT_BEGUN = "this interview has not begun; send a POST to .../begin when the participant begins"

Body = TypeVar("Body", bound=JsonObject)


async def begin(request: Request) -> Response:
    """Begin an interview; a request that is sent again with the same key returns the interview that it began."""
    service = service_of(request)
    if not service.study.open:
        raise HTTPException(403, "this study is open only to those who were given a link")
    await _body(request, NoBody)
    key = request.headers.get("idempotency-key")
    if key is not None and not KEY.fullmatch(key := key.strip('"')):
        raise HTTPException(
            422, "the header Idempotency-Key must be 22 to 128 random letters, digits, - or _, such as a UUID"
        )
    token = await service.begin(visitor(request), key)
    return JSONResponse({"id": token, **await _state(request, token)}, 201)


async def begin_invited(request: Request) -> Response:
    """Begin an interview that was made as a link to hand out; sent again, it changes nothing."""
    await _body(request, NoBody)
    return await _next_question(request)


async def question(request: Request) -> Response:
    """Send the question to be answered now. Only a POST begins an interview."""
    if request.method == "HEAD":
        return await only_headers(service_of(request), request.path_params["id"], "application/json")
    return await _next_question(request, begin=False)


async def answers(request: Request) -> Response:
    """Record an answer and send the next question. The answer is durable before the next question is computed."""
    body = await _body(request, AnswerBody)
    await service_of(request).answer(request.path_params["id"], body.turn, lambda shown: _reply(shown, body))
    return await _next_question(request)


def _reply(shown: Asked, body: AnswerBody) -> Reply:
    """Return the reply that was sent, by places; one that is well-formed but no reply to this question is a conflict."""
    sent = body.reply
    try:
        if isinstance(sent, BestWorst):
            reply = Reply(sent.best - 1, None if sent.worst is UNSET else sent.worst - 1)
        else:
            reply = Reply(word=sent)
        return check_reply(reply, len(shown.options), shown.asks)
    except ArgumentError:
        worst = ' and the worst: {"best": 1, "worst": 2}' if shown.asks == "best-worst" else ': {"best": 1}'
        raise HTTPException(
            409, f'there are {len(shown.options)} options; reply with the number of the best{worst}, "equal" or "skip"'
        ) from None


async def statements(request: Request) -> Response:
    """Record what a participant says without being asked, and send the question that follows."""
    body, service, token = await _body(request, StatementBody), service_of(request), request.path_params["id"]
    turn = body.turn or None
    try:
        try:
            await service.add_statement(token, body.text, turn)
        except TurnError:  # another process wrote first; a statement without a turn belongs to no question
            if turn is not None:
                raise
            await service.add_statement(token, body.text)
    except ArgumentError as error:  # a valid request, but this interview cannot use it
        raise HTTPException(409, str(error)) from None
    return await _next_question(request)


async def undo(request: Request) -> Response:
    """Undo the last answer, or one by its number, and send the question that follows."""
    body = await _body(request, UndoBody)
    if body.turn is UNSET and body.number is UNSET:  # so that a request that is sent again undoes nothing else
        raise HTTPException(422, "give the turn of the current question, the number of an answer, or both")
    try:
        await service_of(request).undo(request.path_params["id"], body.number or None, body.turn or None)
    except ArgumentError as error:  # a valid request, but there is no such answer now
        raise HTTPException(409, str(error)) from None
    return await _next_question(request)


async def recommendation(request: Request) -> Response:
    """Send the current recommendation."""
    return JSONResponse(await _result(request, jobs.current_recommendation))


async def ranking(request: Request) -> Response:
    """Send the best few, and what each wins and loses against the first."""
    return JSONResponse(await _result(request, jobs.current_ranking))


async def why_not(request: Request) -> Response:
    """Send why something is not what is recommended."""
    name = request.query_params.get("name", "")
    if not 0 < len(name) <= LONGEST_NAME:
        raise HTTPException(
            422, f"name must be the name of an item or a place of the ranking, 1 to {LONGEST_NAME} characters"
        )
    try:
        return JSONResponse(await _result(request, jobs.current_why_not, name))
    except ArgumentError as error:  # a valid request, but nothing is called that
        return JSONResponse({"error": f"{error}."}, 404)


async def openapi(request: Request) -> Response:
    """Send the description of this API."""
    return JSONResponse(document())


async def _result(request: Request, job: Job, *arguments: Any) -> Any:
    service, token = service_of(request), request.path_params["id"]
    found = await service.result(token, job, *arguments, caller=visitor(request))
    if found is None:
        raise TurnError(NOT_BEGUN)
    return found


async def _next_question(request: Request, *, begin: bool = True) -> Response:
    request.state.saved = True  # whatever was sent is recorded before the next question is asked for
    return JSONResponse(await _state(request, request.path_params["id"], begin=begin))


async def _state(request: Request, token: str, *, begin: bool = True) -> dict[str, Any]:
    """Return the state of an interview: the question to be answered, or that there is none."""
    service = service_of(request)
    position = await service.question(token, visitor(request), begin=begin)
    if not position.begun:
        raise TurnError(NOT_BEGUN)
    view, prompt = position.view, position.prompt
    assert view is not None
    return {
        "finished": prompt is None,
        "turn": position.turn,
        "answered": position.answered,
        "at_most": view.at_most,
        "expected_left": finite(view.recommendation.expected_left) if prompt is not None else 0,
        "title": service.study.texts.get("title") or service.problem.title,
        "objectives": objectives_data(service.problem),
        "question": None if prompt is None else await about_question(request, jobs.question_data, position),
    }


async def _body(request: Request, kind: type[Body]) -> Body:
    """Return the JSON object that was sent, checked. It may be left out where no field is required."""
    raw = await request.body()
    required = any(one.required for one in msgspec.structs.fields(kind))
    if not raw and not required:
        return kind()
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "send JSON, with the content-type application/json")
    try:
        sent = json.loads(raw, parse_float=_number)
    except (ValueError, RecursionError):
        raise HTTPException(400, "this is not JSON") from None
    try:
        return msgspec.convert(sent, kind)
    except msgspec.ValidationError as error:
        raise HTTPException(422, str(error)) from None


def _number(text: str) -> int | float:
    """Return a number as JSON means it: 1.0 is an integer."""
    number = float(text)
    return int(number) if number.is_integer() else number


routes = [
    Route("/openapi.json", openapi),
    Route("/interviews", begin, methods=["POST"]),
    Route("/interviews/{id}/begin", begin_invited, methods=["POST"]),
    Route("/interviews/{id}/question", question),
    Route("/interviews/{id}/answers", answers, methods=["POST"]),
    Route("/interviews/{id}/statements", statements, methods=["POST"]),
    Route("/interviews/{id}/undo", undo, methods=["POST"]),
    Route("/interviews/{id}/recommendation", recommendation),
    Route("/interviews/{id}/ranking", ranking),
    Route("/interviews/{id}/why-not", why_not),
]
