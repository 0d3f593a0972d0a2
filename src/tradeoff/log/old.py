"""Events of the formats 1 and 2, of versions before 0.4, as events of the present format.

They had two kinds of question: pairs ("question", "answer" with first, second or same) and menus ("menu", "choice" with tiers).
An event that has the present form is returned as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]

REMOVED_KINDS = ("best-of-3", "best-of-4", "rank-3")  # of question
REMOVED_SETTINGS = ("strengths",)


def upgrade_settings(settings: Json) -> dict[str, Any]:
    """Return a strategy's settings without what was removed; a removed kind of question becomes the one that remains."""
    kept = {name: value for name, value in settings.items() if name not in REMOVED_SETTINGS}
    if kept.get("questions") in REMOVED_KINDS:
        kept["questions"] = "best-worst-4"
    return kept


def upgrade_header(event: Json) -> Json:
    """Return a header in the present form."""
    settings = event.get("settings")
    if event.get("format") not in ("tradeoff-log/1", "tradeoff-log/2") or not isinstance(settings, dict):
        return event
    settings = upgrade_settings(settings)
    rest = {name: value for name, value in event.items() if name != "sides"}
    return {**rest, "settings": settings, "order_seed": event.get("sides", event.get("order_seed"))}


def upgrade(event: Json) -> Json:
    """Return an event in the present form."""
    rest = {name: value for name, value in event.items() if name in ("time", "number")}
    match event.get("event"):
        case "question" if "first" in event:
            return {**rest, "event": "question", **_pair(event)}
        case "answer" if "answer" in event:
            return {**rest, "event": "answer", **_pair_reply(event.get("answer"))}
        case "menu":
            placed = {"asks": event.get("asks"), "options": event.get("alternatives"), "order": event.get("order")}
            return {**rest, "event": "question", **placed}
        case "choice":
            return {**rest, "event": "answer", **_menu_reply(event.get("tiers"))}
        case "skip":
            return {**rest, "event": "answer", "reply": "skip"}
        case "retraction":
            return {**rest, "event": "undo"}
        case "check":
            expected = _pair_reply(event.get("expected"))
            expected = {"word": expected["reply"]} if "reply" in expected else expected
            return {**rest, "event": "question", "check": event.get("kind"), "expected": expected, **_pair(event)}
        case "check-answer":
            return {**rest, "event": "answer", "check": event.get("kind"), **_pair_reply(event.get("answer"))}
        case "check-retraction":
            return {**rest, "event": "undo", "check": event.get("kind")}
    return event


def _pair(event: Json) -> Json:
    order = [1, 0] if event.get("left") == "second" else [0, 1]
    return {"options": [event.get("first"), event.get("second")], "order": order}


def _pair_reply(word: object) -> dict[str, Any]:
    match word:
        case "first" | "second":
            return {"best": 0 if word == "first" else 1}
        case "same":
            return {"reply": "equal"}
    return {"reply": word}


def _menu_reply(tiers: object) -> dict[str, Any]:
    """Return a reply in tiers, from the best to the worst, as best and worst."""
    if not isinstance(tiers, list) or not tiers or not all(isinstance(tier, list) and tier for tier in tiers):
        return {"reply": tiers}  # which is refused
    if len(tiers) == 1:
        return {"reply": "equal"}
    named = {"best": tiers[0][0]}
    # Where only the best was asked for, all others are the second and last tier.
    return named if len(tiers) == 2 and len(tiers[1]) > 1 else {**named, "worst": tiers[-1][0]}
