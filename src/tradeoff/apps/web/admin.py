"""The researcher's page: who takes part, how far they are, and the data to take away. Its address is a secret."""

from __future__ import annotations

import secrets
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from tradeoff.apps.web import views
from tradeoff.apps.web.pages import form, whole
from tradeoff.apps.web.threads import aside
from tradeoff.sources import AnyProblem
from tradeoff.studies import Desk
from tradeoff.studies.export import FORMATS, Format, files_of, participant_rows, zip_bytes

MOST_LINKS = 1_000


async def overview(request: Request) -> Response:
    """Show everybody who takes part."""
    desk, problem = _checked(request)
    page = await aside(_overview, desk, problem, request.path_params["secret"])
    return HTMLResponse(page)


def _overview(desk: Desk, problem: AnyProblem, secret: str) -> str:
    logs = desk.store.logs(desk.study.name)
    tokens = list(logs)
    participants = [_participant(row, tokens[row["participant"] - 1]) for row in participant_rows(problem, logs)]
    study: dict[str, Any] = {
        "name": desk.study.name,
        "problem": desk.study.problem,
        "strategy": desk.study.strategy,
        "settings": dict(desk.study.settings),
        "seed": desk.study.seed,
        "checks": desk.study.checks,
        "open": desk.study.open,
        "created": desk.study.created,
    }
    exports = [(f"everything as {format}", f"/admin/{secret}/export.zip?format={format}") for format in FORMATS]
    view = views.admin_view(study=study, participants=participants, exports=exports)
    return views.render("admin.html", **view, links_action=f"/admin/{secret}/links")


def _participant(row: dict[str, Any], token: str) -> dict[str, Any]:
    found = [name for name in ("dominated", "repeat") if row[f"check {name}"] == "failed"]
    return {
        "number": row["participant"],
        "link": f"/i/{token}",
        "begun": row["begun"],
        "last seen": row["last"],
        "answers": row["answers"],
        "finished": row["finished"],
        "flags": found,
    }


async def links(request: Request) -> Response:
    """Make links to be given to people."""
    desk, _ = _checked(request)
    count = whole(await form(request), "count")
    if not 1 <= count <= MOST_LINKS:
        raise HTTPException(422, f"the number of links must be between 1 and {MOST_LINKS}")
    await aside(lambda: [desk.invite() for _ in range(count)])
    return RedirectResponse(f"/admin/{request.path_params['secret']}", status_code=303)


async def export(request: Request) -> Response:
    """Give all data as one file."""
    desk, problem = _checked(request)
    format = request.query_params.get("format", "csv")
    if format not in FORMATS:
        raise HTTPException(422, f"data is written as {', '.join(FORMATS)}")
    data = await aside(_zip, desk, problem, format)
    disposition = {"content-disposition": f'attachment; filename="{desk.study.name}.zip"'}
    return Response(data, media_type="application/zip", headers=disposition)


def _zip(desk: Desk, problem: AnyProblem, format: Format) -> bytes:
    return zip_bytes(files_of(desk.study, problem, desk.store.logs(desk.study.name), format))


def _checked(request: Request) -> tuple[Desk, AnyProblem]:
    """Return the desk if the address holds the secret; anything else is not found, like any wrong address."""
    desk: Desk = request.app.state.desk
    given: str = request.path_params["secret"]
    if not secrets.compare_digest(given.encode(), desk.study.admin.encode()):
        raise HTTPException(404)
    return desk, request.app.state.problem


routes = [
    Route("/admin/{secret}", overview),
    Route("/admin/{secret}/links", links, methods=["POST"]),
    Route("/admin/{secret}/export.zip", export),
]
