"""Links to share: a second, unguessable name under which a person's result can be seen, and nothing else be done.

A share is a log of its own in the store. Its name is worked out from the person's link and a secret of the study, so that
nobody can get from one to the other, and a person who shares twice gets the same link.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import UTC, datetime

from tradeoff.errors import ArgumentError
from tradeoff.stores import ConflictError, MissingError, Store
from tradeoff.stores.base import NAME, missing
from tradeoff.studies.study import Study

FORMAT = "tradeoff-share/1"
SHARED, STOPPED = "shared", "stopped"  # events; the last one counts


def share_name(study: Study, token: str) -> str:
    """Return the name of a person's share: 22 characters that are safe in an address."""
    digest = hmac.new(study.admin.encode(), f"share/{study.name}/{token}".encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest[:16]).decode().rstrip("=")


def _folder(study: Study) -> str:
    # Longer than the name of any study may be, so that no study's people are in it.
    return f"shared-{hashlib.sha256(study.name.encode()).hexdigest()}"


def share(store: Store, study: Study, token: str, *, stop: bool = False) -> None:
    """Make a person's result visible under its share's name, or stop that; durable when this returns."""
    if not study.sharing:
        raise ArgumentError("results of this study cannot be shared")
    store.read(study.name, token)  # there is such a person
    folder, name = _folder(study), share_name(study, token)
    now = datetime.now(UTC).isoformat()
    event = {"event": STOPPED if stop else SHARED, "time": now}
    try:
        events = store.read(folder, name)
    except MissingError:
        if not stop:
            store.create(folder, name, [{"event": "header", "format": FORMAT, "time": now, "token": token}, event])
        return
    if events[-1]["event"] != event["event"]:
        try:
            store.append(folder, name, [event], after=len(events))
        except ConflictError:
            share(store, study, token, stop=stop)


def shared_name(store: Store, study: Study, token: str) -> str:
    """Return the name under which a person's result can be seen; "" if it cannot."""
    name = share_name(study, token)
    try:
        return name if study.sharing and store.read(_folder(study), name)[-1]["event"] == SHARED else ""
    except MissingError:
        return ""


def shared_token(store: Store, study: Study, name: str) -> str:
    """Return whose result is shared under a name; raise a MissingError if none is, or not any more."""
    if not study.sharing or not NAME.fullmatch(name):
        raise missing(study.name, name[:40])
    events = store.read(_folder(study), name)
    token = events[0].get("token")
    if events[-1]["event"] != SHARED or not isinstance(token, str):
        raise missing(study.name, name[:40])
    return token
