"""The researcher's page: who takes part, how far they are, and the data to download. Its address is a secret."""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from tradeoff.apps.web import jobs
from tradeoff.apps.web.pages import form, service_of, whole
from tradeoff.apps.web.rendering import render
from tradeoff.stores import Log
from tradeoff.stores.base import or_damaged
from tradeoff.studies.coverage import stored_coverage
from tradeoff.studies.export import FORMATS, Format, files_of, participant_rows, unreadable, zip_bytes
from tradeoff.studies.service import StudyService
from tradeoff.studies.study import new_token

MOST_LINKS = 1_000
FEW = 100  # logs that are read one by one; more are read together


@dataclass(frozen=True)
class Participant:
    """How far one participant is, or why their log cannot be read (``damage``)."""

    token: str
    begun: str = ""
    last: str = ""
    answers: int = 0
    finished: bool = False
    failed: tuple[str, ...] = ()  # attention checks
    damage: str = ""


class Overview:
    """All participants of a study, in the order of their links; only logs that have grown are read again."""

    def __init__(self, service: StudyService) -> None:
        self.study, self._store, self._problem = service.study, service.store, service.problem
        self._known: dict[str, tuple[int, Participant]] = {}  # by token, with the length of the log
        self._lock = threading.Lock()
        self._rendered = ("", "")  # the version and the page
        self.logs_read = 0

    def version(self) -> str:
        """Return a text that changes when a log is begun or grows."""
        return _version(self._store.lengths(self.study.name))

    def participants(self) -> tuple[str, list[Participant]]:
        """Return the version and all participants."""
        with self._lock:
            lengths = self._store.lengths(self.study.name)
            known = {
                name: entry for name, entry in self._known.items() if not entry[1].damage
            }  # damage may be repaired
            changed = [name for name, length in lengths.items() if name not in known or known[name][0] != length]
            for name, participant in self._read(changed).items():
                known[name] = lengths[name], participant
            self._known = {name: known[name] for name in lengths}
            return _version(lengths), [participant for _, participant in self._known.values()]

    def _read(self, names: list[str]) -> dict[str, Participant]:
        study, store = self.study.name, self._store
        every = store.logs(study) if len(names) > FEW else {}
        logs: dict[str, Log] = {name: every.get(name) or or_damaged(store.read, study, name) for name in names}
        self.logs_read += len(logs)
        damage = unreadable(self._problem, logs)
        read = {names[number - 1]: Participant(names[number - 1], damage=why) for number, why in damage.items()}
        for row in participant_rows(self._problem, logs):
            token = names[row["participant"] - 1]
            failed = tuple(check for check in ("dominated", "repeat") if row[f"check {check}"] == "failed")
            read[token] = Participant(
                token, _minute(row["begun"]), _minute(row["last"]), row["answers"], row["finished"], failed
            )
        return read

    def page(self) -> str:
        """Return the page; it is rendered again only when a log has grown."""
        version, participants = self.participants()
        rendered = self._rendered
        if rendered[0] != version or any(one.damage for one in participants):
            rendered = self._rendered = version, self._render(version, list(enumerate(participants, start=1)))
        return rendered[1]

    def _render(self, version: str, numbered: list[tuple[int, Participant]]) -> str:
        study = self.study
        readable = [one for _, one in numbered if not one.damage]
        return render(
            "admin.html",
            title=study.texts.get("title") or study.name,
            here=f"/admin/{study.admin}",
            key=new_token(),
            version=version,
            totals={
                "opened": sum(bool(one.begun) for one in readable),
                "answering": sum(one.answers > 0 and not one.finished for one in readable),
                "finished": sum(one.finished for one in readable),
                "flagged": sum(bool(one.failed) for one in readable),
            },
            settings={
                name: _words(getattr(study, name))
                for name in ("problem", "strategy", "settings", "seed", "checks", "open", "created")
            },
            formats=FORMATS,
            numbered=numbered,
            damaged=len(readable) < len(numbered),
        )


def _version(lengths: Mapping[str, int]) -> str:
    return hashlib.blake2b(repr(lengths).encode(), digest_size=12).hexdigest()


def _minute(time: str | None) -> str:
    return (time or "")[:16].replace("T", " ")


def _words(value: object) -> str:
    """Return a setting in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_words(setting)}" for name, setting in value.items()) or "default"
    return str(value)


async def overview(request: Request) -> Response:
    """Show all participants."""
    service = admin_service(request)
    return HTMLResponse(await service.on_disk(request.app.state.overview.page))


async def version(request: Request) -> Response:
    """Tell the page whether it is still up to date, which costs far less than the page."""
    service = admin_service(request)
    return PlainTextResponse(await service.on_disk(request.app.state.overview.version))


async def links(request: Request) -> Response:
    """Make links to hand out."""
    service = admin_service(request)
    fields = await form(request)
    count, key = whole(fields, "count"), fields.get("key", "")
    if not 1 <= count <= MOST_LINKS:
        raise HTTPException(422, f"the number of links must be between 1 and {MOST_LINKS}")
    # Sent again, the form of one page makes the same links.
    await service.on_disk(lambda: [service.invite(f"{key}/{count}/{i}" if key else None) for i in range(count)])
    return RedirectResponse(f"/admin/{request.path_params['secret']}", status_code=303)


async def export(request: Request) -> Response:
    """Send all data as one file."""
    service = admin_service(request)
    format = request.query_params.get("format", "csv")
    if format not in FORMATS:
        raise HTTPException(422, f"data is written as {', '.join(FORMATS)}")
    data = await service.on_disk(_zip, service, format)
    disposition = {"content-disposition": f'attachment; filename="{service.study.name}.zip"'}
    return Response(data, media_type="application/zip", headers=disposition)


async def together(request: Request) -> Response:
    """Show one choice for everybody who has finished, and what it costs each."""
    service = admin_service(request)
    version, logs = await service.on_disk(_logs, service)
    return HTMLResponse(await service.compute.get(("together", version), jobs.group_page, logs, caller="together"))


def _logs(service: StudyService) -> tuple[tuple[tuple[str, int], ...], dict[str, Log]]:
    """Return all logs of a study, and what changes when they do."""
    logs = service.store.logs(service.study.name)
    return tuple((name, len(log) if isinstance(log, list) else -1) for name, log in logs.items()), logs


def _zip(service: StudyService, format: Format) -> bytes:
    store, study, problem = service.store, service.study, service.problem
    return zip_bytes(files_of(study, problem, store.logs(study.name), format, stored_coverage(store, study, problem)))


def admin_service(request: Request) -> StudyService:
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
