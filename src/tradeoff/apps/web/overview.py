"""A study as its admin page shows it: the participants, its settings, and links to the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tradeoff.presentation.text import clipped as shown

TOTALS = ("opened", "answering", "finished", "flagged")
HEADED = frozenset({"title", "name", "problem", *TOTALS})  # shown apart from the settings


def admin_view(
    study: Mapping[str, Any],
    participants: Sequence[Mapping[str, Any]],
    exports: Sequence[tuple[str, str]],
    unreadable: Sequence[tuple[int, str]] = (),
) -> dict[str, Any]:
    """Return the values of admin.html.

    ``study`` has a title (or a name), a problem, and any settings to show; each participant has number, link, begun,
    last seen, answers, finished and flags. ``unreadable`` has the number of each participant whose log is damaged, and the
    reason. Totals that the study does not give are counted.
    """
    people = [_person(person) for person in participants]
    counted = {
        "opened": sum(bool(one["begun"]) for one in people),
        "answering": sum(bool(one["answers"]) and not one["finished"] for one in people),
        "finished": sum(one["finished"] for one in people),
        "flagged": sum(bool(one["flags"]) for one in people),
    }
    return {
        "title": shown(str(study.get("title") or study.get("name") or "Study")),
        "problem": shown(str(study["problem"])),
        "settings": [(shown(str(key)), _words(value)) for key, value in study.items() if key not in HEADED],
        "totals": [(name, int(study.get(name, counted[name]))) for name in TOTALS],
        "participants": people,
        "unreadable": [(number, shown(reason)) for number, reason in unreadable],
        "exports": [(shown(label), href) for label, href in exports],
    }


def _person(person: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "number": shown(str(person["number"])),
        "link": str(person["link"]),
        "begun": _minute(person["begun"]),
        "last_seen": _minute(person["last seen"]),
        "answers": int(person["answers"]),
        "finished": bool(person["finished"]),
        "flags": [shown(str(flag)) for flag in person["flags"]],
    }


def _minute(time: object) -> str:
    """Return a time to the minute."""
    return str(time or "")[:16].replace("T", " ")


def _words(value: object) -> str:
    """Return a setting as a person reads it."""
    match value:
        case None | "":
            return ""
        case bool():
            return "yes" if value else "no"
        case Mapping():
            return shown(", ".join(f"{key}: {_words(one)}" for key, one in value.items()) or "as usual")
        case str():
            return shown(value)
        case Sequence():
            return shown(", ".join(map(_words, value)))
        case _:
            return shown(str(value))
