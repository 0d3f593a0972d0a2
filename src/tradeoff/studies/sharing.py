"""Links to share: a second, unguessable name under which a person's result can be viewed, and nothing else be done.

Each name has a log in the store that says whose result it is. The log of a person's first name also records when they shared
and stopped, and under which name. A name that was stopped stays dead: sharing again makes a new one.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from tradeoff.errors import ArgumentError
from tradeoff.log import Event
from tradeoff.stores import ConflictError, MissingError, Store
from tradeoff.stores.base import NAME, missing
from tradeoff.studies.study import Study, new_token

FORMAT = "tradeoff-share/1"
SHARED, STOPPED = "shared", "stopped"  # events of a person's first name; the last one counts


def share_name(study: Study, token: str) -> str:
    """Return the first name under which a person shares: 22 characters that are safe in an address."""
    return study.token_of("share", token)


def _folder(study: Study) -> str:
    # Longer than the name of any study may be, so that no study's people are in it.
    return f"shared-{hashlib.sha256(study.name.encode()).hexdigest()}"


def share(store: Store, study: Study, token: str, *, stop: bool = False) -> None:
    """Make a person's result visible under a name, or stop that; durable when this returns. Done twice, it changes nothing."""
    if not study.sharing:
        raise ArgumentError("results of this study cannot be shared")
    store.read(study.name, token)  # there is such a person
    folder, first = _folder(study), share_name(study, token)
    if (shared_name(store, study, token) == "") == stop:
        return
    now = datetime.now(UTC).isoformat()
    event = {"event": STOPPED if stop else SHARED, "time": now}
    header = {"event": "header", "format": FORMAT, "time": now, "token": token}
    try:
        events = _events(store, folder, first)
        if not events:
            store.create(folder, first, [header, event])
            return
        if not stop:
            event["name"] = new_token()
            store.create(folder, event["name"], [header])
        store.append(folder, first, [event], after=len(events))
    except ConflictError:  # another window did the same
        share(store, study, token, stop=stop)


def shared_name(store: Store, study: Study, token: str) -> str:
    """Return the name under which a person's result can be viewed; "" if it cannot."""
    first = share_name(study, token)
    events = _events(store, _folder(study), first) if study.sharing else []
    return str(events[-1].get("name", first)) if events and events[-1]["event"] == SHARED else ""


def _events(store: Store, folder: str, name: str) -> list[Event]:
    try:
        return store.read(folder, name)
    except MissingError:
        return []


def shared_token(store: Store, study: Study, name: str) -> str:
    """Return whose result is shared under a name; raise a MissingError if none is, or not any more."""
    if study.sharing and NAME.fullmatch(name):
        token = store.read(_folder(study), name)[0].get("token")
        if isinstance(token, str) and shared_name(store, study, token) == name:
            return token
    raise missing(study.name, name[:40])
