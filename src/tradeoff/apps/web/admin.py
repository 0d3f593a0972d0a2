"""The researcher's page: who takes part, how far they are, and the data to download. Its address is a secret."""

from __future__ import annotations

import secrets
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from tradeoff.apps.web import jobs, views
from tradeoff.apps.web.pages import form, service_of, whole
from tradeoff.apps.web.progress import Person, Progress
from tradeoff.stores import Log
from tradeoff.studies.coverage import stored_coverage
from tradeoff.studies.export import FORMATS, Format, files_of, zip_bytes
from tradeoff.studies.service import StudyService
from tradeoff.studies.study import new_token

MOST_LINKS = 1_000


class Overview:
    """The page, rendered again only when a log has grown."""

    def __init__(self, service: StudyService) -> None:
        self.study = service.study
        self.progress = Progress(service.store, service.study.name, service.problem)
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
        study, here = self.study, f"/admin/{self.study.admin}"
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
            "admin.html", **view, links_action=f"{here}/links", key=new_token(), version=version,
            version_address=f"{here}/version",
        )  # fmt: skip


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
    service, shown = checked(request), request.app.state.overview
    return HTMLResponse(await service.on_disk(shown.page))


async def version(request: Request) -> Response:
    """Tell the page whether it is still up to date, which costs far less than the page."""
    service, shown = checked(request), request.app.state.overview
    return PlainTextResponse(await service.on_disk(shown.version))


async def links(request: Request) -> Response:
    """Make links to hand out."""
    service = checked(request)
    fields = await form(request)
    count, key = whole(fields, "count"), fields.get("key", "")
    if not 1 <= count <= MOST_LINKS:
        raise HTTPException(422, f"the number of links must be between 1 and {MOST_LINKS}")
    # Sent again, the form of one page makes the same links.
    await service.on_disk(lambda: [service.invite(f"{key}/{count}/{i}" if key else None) for i in range(count)])
    return RedirectResponse(f"/admin/{request.path_params['secret']}", status_code=303)


async def export(request: Request) -> Response:
    """Send all data as one file."""
    service = checked(request)
    format = request.query_params.get("format", "csv")
    if format not in FORMATS:
        raise HTTPException(422, f"data is written as {', '.join(FORMATS)}")
    data = await service.on_disk(_zip, service, format)
    disposition = {"content-disposition": f'attachment; filename="{service.study.name}.zip"'}
    return Response(data, media_type="application/zip", headers=disposition)


async def together(request: Request) -> Response:
    """Show one choice for everybody who has finished, and what it costs each."""
    service = checked(request)
    version, logs = await service.on_disk(_logs, service)
    return HTMLResponse(await service.compute.get(("together", version), jobs.group_page, logs, caller="together"))


def _logs(service: StudyService) -> tuple[tuple[tuple[str, int], ...], dict[str, Log]]:
    """Return all logs of a study, and what changes when they do."""
    logs = service.store.logs(service.study.name)
    return tuple((name, len(log) if isinstance(log, list) else -1) for name, log in logs.items()), logs


def _zip(service: StudyService, format: Format) -> bytes:
    store, study, problem = service.store, service.study, service.problem
    return zip_bytes(files_of(study, problem, store.logs(study.name), format, stored_coverage(store, study, problem)))


def checked(request: Request) -> StudyService:
    """Return the service of the study if the address holds its secret; a wrong one is not found, like any other."""
    service = service_of(request)
    given: str = request.path_params["secret"]
    if not secrets.compare_digest(given.encode(), service.study.admin.encode()):
        raise HTTPException(404)
    return service


routes = [
    Route("/admin/{secret}", overview),
    Route("/admin/{secret}/version", version),
    Route("/admin/{secret}/links", links, methods=["POST"]),
    Route("/admin/{secret}/export.zip", export),
    Route("/admin/{secret}/together", together),
]
