"""The researcher's page: who takes part, how far they are, and the data to download. Its address is a secret."""

from __future__ import annotations

import secrets
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from tradeoff.apps.web import views
from tradeoff.apps.web.pages import form, whole
from tradeoff.apps.web.progress import Person, Progress
from tradeoff.apps.web.threads import aside
from tradeoff.errors import ArgumentError
from tradeoff.presentation.groups import choices_of, group_words
from tradeoff.sources import AnyProblem
from tradeoff.studies import Sessions
from tradeoff.studies.compiled import kept
from tradeoff.studies.export import FORMATS, Format, files_of, zip_bytes
from tradeoff.studies.together import finished_people

MOST_LINKS = 1_000
MENU = 2  # plans


class Overview:
    """The page, rendered again only when a log has grown."""

    def __init__(self, sessions: Sessions, problem: AnyProblem) -> None:
        self.sessions = sessions
        self.progress = Progress(sessions.store, sessions.study.name, problem)
        self._rendered = ("", "")  # the version and the page

    def version(self) -> str:
        """Return a text that changes when the page does."""
        return self.progress.version()

    def page(self) -> str:
        """Return the page as it is now."""
        version, people = self.progress.people()
        rendered = self._rendered
        if rendered[0] != version or any(person.damage for person in people):
            rendered = self._rendered = version, self._render(version, people)
        return rendered[1]

    def _render(self, version: str, people: list[Person]) -> str:
        study, here = self.sessions.study, f"/admin/{self.sessions.study.admin}"
        shown: dict[str, Any] = {
            "name": study.name,
            "problem": study.problem,
            "strategy": study.strategy,
            "settings": dict(study.settings),
            "seed": study.seed,
            "checks": study.checks,
            "open": study.open,
            "created": study.created,
        }
        participants = [_participant(i, one) for i, one in enumerate(people, start=1) if not one.damage]
        unreadable = [(i, one.damage) for i, one in enumerate(people, start=1) if one.damage]
        exports = [(f"everything as {format}", f"{here}/export.zip?format={format}") for format in FORMATS]
        exports.append(("one choice for all", f"{here}/together"))
        view = views.admin_view(study=shown, participants=participants, exports=exports, unreadable=unreadable)
        return views.render(
            "admin.html", **view, links_action=f"{here}/links", version=version, version_address=f"{here}/version"
        )


def _participant(number: int, person: Person) -> dict[str, Any]:
    return {
        "number": number,
        "link": f"/i/{person.token}",
        "begun": person.begun,
        "last seen": person.last,
        "answers": person.answers,
        "finished": person.finished,
        "flags": person.failed,
    }


async def overview(request: Request) -> Response:
    """Show all participants."""
    checked(request)
    shown: Overview = request.app.state.overview
    return HTMLResponse(await aside(shown.page))


async def version(request: Request) -> Response:
    """Tell the page whether it is still up to date, which costs far less than the page."""
    checked(request)
    shown: Overview = request.app.state.overview
    return PlainTextResponse(await aside(shown.version))


async def links(request: Request) -> Response:
    """Make links to hand out."""
    sessions, _ = checked(request)
    count = whole(await form(request), "count")
    if not 1 <= count <= MOST_LINKS:
        raise HTTPException(422, f"the number of links must be between 1 and {MOST_LINKS}")
    await aside(lambda: [sessions.invite() for _ in range(count)])
    return RedirectResponse(f"/admin/{request.path_params['secret']}", status_code=303)


async def export(request: Request) -> Response:
    """Send all data as one file."""
    sessions, problem = checked(request)
    format = request.query_params.get("format", "csv")
    if format not in FORMATS:
        raise HTTPException(422, f"data is written as {', '.join(FORMATS)}")
    data = await aside(_zip, sessions, problem, format)
    disposition = {"content-disposition": f'attachment; filename="{sessions.study.name}.zip"'}
    return Response(data, media_type="application/zip", headers=disposition)


async def together(request: Request) -> Response:
    """Show one choice for everybody who has finished, and what it costs each."""
    sessions, problem = checked(request)
    return HTMLResponse(await aside(together_page, sessions, problem))


def together_page(sessions: Sessions, problem: AnyProblem) -> str:
    """Return the page with one choice for all."""
    logs = sessions.store.logs(sessions.study.name)
    told, refused = None, ""
    try:
        people = finished_people(problem, logs)
        with sessions.queue.slot("together", long=True):
            told = group_words(problem, people, choices_of(people, problem, MENU, None))
    except ArgumentError as error:
        refused = f"{str(error)[:1].upper()}{str(error)[1:]}."
    back = f"/admin/{sessions.study.admin}"
    return views.render(
        "together.html", title=sessions.study.name, told=told, total=len(logs), refused=refused, back=back
    )


def _zip(sessions: Sessions, problem: AnyProblem, format: Format) -> bytes:
    store, study = sessions.store, sessions.study
    return zip_bytes(files_of(study, problem, store.logs(study.name), format, kept(store, study, problem)))


def checked(request: Request) -> tuple[Sessions, AnyProblem]:
    """Return the study's people and problem if the address holds the secret; a wrong one is not found, like any other."""
    sessions: Sessions = request.app.state.sessions
    given: str = request.path_params["secret"]
    if not secrets.compare_digest(given.encode(), sessions.study.admin.encode()):
        raise HTTPException(404)
    return sessions, request.app.state.problem


routes = [
    Route("/admin/{secret}", overview),
    Route("/admin/{secret}/version", version),
    Route("/admin/{secret}/links", links, methods=["POST"]),
    Route("/admin/{secret}/export.zip", export),
    Route("/admin/{secret}/together", together),
]
