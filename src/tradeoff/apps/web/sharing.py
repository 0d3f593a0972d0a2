"""A result to keep and to share: the report as a file, and as a page that anyone with its link can only read."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from tradeoff.apps.web import jobs
from tradeoff.apps.web.pages import form, service_of, visitor
from tradeoff.studies import TurnError
from tradeoff.studies.sharing import share, shared_token


async def own_report(request: Request) -> Response:
    """Send participants their result as one file."""
    file, _ = await _report(request, request.path_params["token"])
    disposition = {"content-disposition": 'attachment; filename="my-result.html"'}
    return HTMLResponse(file, headers=disposition)


async def make_link(request: Request) -> Response:
    """Share a participant's result, or stop sharing it."""
    service, token, fields = service_of(request), request.path_params["token"], await form(request)
    await service.on_disk(lambda: share(service.store, service.study, token, stop="stop" in fields))
    return RedirectResponse(f"/i/{token}/result#share", status_code=303)


async def shared(request: Request) -> Response:
    """Show a result that somebody shares. Nothing can be answered here, and nothing is recorded."""
    service = service_of(request)
    token = await service.on_disk(shared_token, service.store, service.study, request.path_params["name"])
    _, page = await _report(request, token)
    return HTMLResponse(page)


async def _report(request: Request, token: str) -> tuple[str, str]:
    found: tuple[str, str] | None = await service_of(request).result(token, jobs.result_report, caller=visitor(request))
    if found is None:
        raise TurnError("this interview has not begun")
    return found


routes = [
    Route("/i/{token}/report", own_report),
    Route("/i/{token}/share", make_link, methods=["POST"]),
    Route("/r/{name}", shared),
]
