"""A result to keep and to share: the report as a file, and as a page that whoever has its link can only read."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from tradeoff.apps.web import pages, views
from tradeoff.apps.web.decision import ranking_for
from tradeoff.apps.web.threads import aside, visit
from tradeoff.presentation.report import Report, report, report_html
from tradeoff.studies import Session, Sessions
from tradeoff.studies.sharing import share, shared_token


async def own_report(request: Request) -> Response:
    """Send a person their result as one file."""
    made = await _report(request, request.path_params["token"])
    disposition = {"content-disposition": 'attachment; filename="my-result.html"'}
    return HTMLResponse(report_html(made), headers=disposition)


async def make_link(request: Request) -> Response:
    """Share a person's result, or stop sharing it."""
    sessions: Sessions = request.app.state.sessions
    token, fields = request.path_params["token"], await pages.form(request)
    await aside(lambda: share(sessions.store, sessions.study, token, stop="stop" in fields))
    return RedirectResponse(f"/i/{token}/result", status_code=303)


async def shared(request: Request) -> Response:
    """Show a result that somebody shares. Nothing can be answered here, and nothing is recorded."""
    sessions: Sessions = request.app.state.sessions
    token = await aside(shared_token, sessions.store, sessions.study, request.path_params["name"])
    made = await _report(request, token)
    return HTMLResponse(views.render("shared.html", report=made, title=made.title))


async def _report(request: Request, token: str) -> Report:
    sessions: Sessions = request.app.state.sessions

    def make(session: Session) -> Report:
        interview = session.interview
        ranked = ranking_for(session.problem, interview)
        with interview.thinking():
            return report(session.problem, interview, ranked, title=sessions.study.texts.get("title", ""))

    return await visit(sessions, token, make, caller=request.scope.get("visitor"), long=True)


routes = [
    Route("/i/{token}/report", own_report),
    Route("/i/{token}/share", make_link, methods=["POST"]),
    Route("/r/{name}", shared),
]
