"""The pages that participants see: read the request, call the service, render."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from tradeoff.apps.web import jobs, views
from tradeoff.errors import ArgumentError
from tradeoff.log import ACTIONS, Asked, ShownQuestion, write_log
from tradeoff.model import REPLY_WORDS, Reply
from tradeoff.stores.base import missing
from tradeoff.studies import TurnError
from tradeoff.studies.compute import Job
from tradeoff.studies.service import ParticipantState, StudyService
from tradeoff.studies.sharing import shared_name
from tradeoff.studies.study import new_token

NOTICES = {
    "answered": "This question has already been answered, perhaps in another window. You can undo the answer.",
    "choose": "Please choose the best and, where it is asked for, the worst of them: two different ones.",
    "nothing": "There is no answer to undo.",
    "changed": "Something was answered or undone in another window. This is the current question.",
}


async def start(request: Request) -> Response:
    """Show what the study is about, and a button to begin."""
    service = service_of(request)
    if not service.study.open:
        return message(
            "By invitation", "Only people who were given a link can take part in this study. Please use your link.", 200
        )
    return HTMLResponse(_start_page(service, "/start", key=new_token()))


def _start_page(service: StudyService, action: str, key: str = "") -> str:
    study = service.study
    questions = study.settings.get("questions")
    view = views.start_view(service.problem, texts=study.texts, action=action, questions=questions, key=key)
    return views.render("start.html", **view)


async def begin(request: Request) -> Response:
    """Begin an interview and redirect to its first question."""
    service = service_of(request)
    if not service.study.open:
        raise HTTPException(403, "this study is open only to those who were given a link")
    key = (await form(request)).get("key") or None
    token = await service.begin(visitor(request), key)
    if key is not None and any(event["event"] in ACTIONS for event in await service.events(token)):
        token = await service.begin(visitor(request))  # the start page was opened again to begin once more
    return _to(f"/i/{token}")


async def begin_invited(request: Request) -> Response:
    """Begin the interview of somebody who was given a link; sent again, it changes nothing."""
    token = _token(request)
    await service_of(request).question(token, visitor(request), begin=True)
    return _to(f"/i/{token}")


async def question(request: Request) -> Response:
    """Show the question to be answered, or redirect to the result when none is left.

    Before an interview has begun this is the start page: looking at a link records nothing.
    """
    service, token = service_of(request), _token(request)
    if request.method == "HEAD":
        return await only_headers(service, token)
    position = await service.question(token, visitor(request))
    if not position.begun:
        return HTMLResponse(_start_page(service, f"/i/{token}/start"))
    if position.prompt is None:
        return _to(f"/i/{token}/result")
    drawn: jobs.DrawnQuestion = await about_question(request, jobs.draw_question, position)
    view = views.question_view(
        service.problem,
        position,
        drawn,
        links=_links(service, token),
        texts=service.study.texts,
        notice=_notice(request),
    )
    return HTMLResponse(views.render("question.html", **view))


async def about_question(request: Request, job: Job, position: ParticipantState) -> Any:
    """Return what a job makes of a question, the same for everybody who sees these options in this order."""
    prompt = position.prompt
    assert prompt is not None
    shown = ShownQuestion(prompt.question, prompt.order)
    plans = [(option.value.tobytes(), option.plan) for option in shown.options]
    digest = hashlib.sha256(pickle.dumps((position.fingerprint, shown.question.asks, plans))).digest()
    compute = service_of(request).compute
    return await compute.get(
        (job.__name__, digest), job, position.fingerprint, shown, near=position.near, caller=visitor(request)
    )


async def only_headers(service: StudyService, token: str, media_type: str = "text/html") -> Response:
    """Reply to HEAD: whether there is such an interview. Nothing is computed or recorded."""
    await service.events(token)
    reply = Response(media_type=media_type)
    del reply.headers["content-length"]  # that of the page is not known
    return reply


async def answer(request: Request) -> Response:
    """Record an answer, which is durable before the reply is sent. The next page computes what to ask."""
    token, fields = _token(request), await form(request)
    turn = whole(fields, "turn")
    try:
        await service_of(request).answer(token, turn, lambda shown: reply_from(shown, fields))
    except TurnError:
        return _to(f"/i/{token}?notice=answered")
    except NotChosenError:
        return _to(f"/i/{token}?notice=choose")
    return _to(f"/i/{token}")


class NotChosenError(ArgumentError):
    """A question was answered without a best and, where it is asked for, another worst option."""


def reply_from(shown: Asked, fields: Mapping[str, str]) -> Reply:
    """Return the reply that a form means: a word, or the places of the best and the worst option, counted from 1."""
    text = fields.get("reply")
    if text is not None:
        word = next((word for word in REPLY_WORDS if word == text), None)
        if word is None:
            raise ArgumentError(f"{text[:40]!r} is not a reply; it is {', '.join(REPLY_WORDS)}, or best and worst")
        return Reply(word=word)
    best, worst = (whole(fields, name) - 1 if name in fields else None for name in ("best", "worst"))
    wanted = (best, worst) if shown.asks == "best-worst" else (best,)
    if None in wanted or len(set(wanted)) < len(wanted):
        raise NotChosenError("the best and the worst are two different options")
    return Reply(best, worst)


async def undo(request: Request) -> Response:
    """Undo the last answer, or one by its number."""
    token, fields = _token(request), await form(request)
    number = whole(fields, "number") if "number" in fields else None
    turn = whole(fields, "turn") if "turn" in fields or number is None else None
    try:
        await service_of(request).undo(token, number, turn)
    except TurnError:
        return _to(f"/i/{token}?notice=changed")
    except ArgumentError:
        return _to(f"/i/{token}?notice=nothing")
    return _to(f"/i/{token}")


async def result(request: Request) -> Response:
    """Show the result so far."""
    service, token = service_of(request), _token(request)
    if request.method == "HEAD":
        return await only_headers(service, token)
    position = await service.question(token, visitor(request))
    if not position.begun:
        return _to(f"/i/{token}")
    shared = ""
    if service.study.sharing:
        name = await service.on_disk(shared_name, service.store, service.study, token)
        shared = f"/r/{name}" if name else ""
    query = tuple(sorted((name, text) for name, text in request.query_params.items() if name != "notice"))
    parts = await service.result(token, jobs.result_parts, query, caller=visitor(request))
    view = views.result_view(
        service.problem, parts, finished=position.prompt is None, links=_links(service, token), texts=service.study.texts,
        notice=_notice(request), shared=shared,
    )  # fmt: skip
    return HTMLResponse(views.render("result.html", **view))


async def own_log(request: Request) -> Response:
    """Send participants their own log."""
    events = await service_of(request).events(_token(request))
    disposition = {"content-disposition": 'attachment; filename="my-answers.jsonl"'}
    return Response(write_log(events), media_type="application/jsonl", headers=disposition)


async def picture(request: Request) -> Response:
    """Send the picture that the problem has of a state."""
    state, service = request.query_params.get("state", ""), service_of(request)
    pictures: Mapping[str, bytes] = getattr(service.problem, "pictures", {})
    found = await service.on_disk(pictures.get, state) if pictures else None
    if found is None:
        raise missing("pictures", state[:40])
    return Response(found, media_type="image/png", headers={"cache-control": "private, max-age=86400"})


def message(title: str, sentence: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    """Return a page with a single message."""
    return HTMLResponse(
        views.render("message.html", **views.message_view(title, sentence)), status, dict(headers or {})
    )


# --- reading a request -----------------------------------------------------------------------------------------------


def service_of(request: Request) -> StudyService:
    """Return the service of the study."""
    service: StudyService = request.app.state.service
    return service


def visitor(request: Request) -> str | None:
    """Return who takes turns with others in the queue: the address of a visitor, where that is known."""
    found: str | None = request.scope.get("visitor")
    return found


def _token(request: Request) -> str:
    token: str = request.path_params["token"]
    return token


def _notice(request: Request) -> str:
    return NOTICES.get(request.query_params.get("notice", ""), "")


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
    """Return a field that is a whole number, 1 or more."""
    text = fields.get(name, "")
    if not (text.isascii() and text.isdigit() and int(text[:10]) > 0 and len(text) < 10):
        raise ArgumentError(f"the field {name!r} is {text[:40]!r}; it must be a whole number, 1 or more")
    return int(text)


def _links(service: StudyService, token: str) -> views.Links:
    here = f"/i/{token}"
    return views.Links(here, f"{here}/share" if service.study.sharing else "")


def _to(address: str) -> Response:
    return RedirectResponse(address, status_code=303)


routes = [
    Route("/", start),
    Route("/start", begin, methods=["POST"]),
    Route("/picture", picture),
    Route("/i/{token}", question),
    Route("/i/{token}/start", begin_invited, methods=["POST"]),
    Route("/i/{token}/answer", answer, methods=["POST"]),
    Route("/i/{token}/undo", undo, methods=["POST"]),
    Route("/i/{token}/result", result),
    Route("/i/{token}/log", own_log),
]
