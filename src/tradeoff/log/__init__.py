"""The log of an interview: its events as frozen values, one reader, one writer and one fold.

A log is an append-only list of events. On disk and in databases an event is a JSON object (``Event``); here it is a typed
value (``Header``, ``Asked``, ``Answered``, ...). ``fold`` turns events into a ``LogState``: what was asked, answered and
taken back, and what the person sees now. Interviews, sessions, exports and the list of studies all use it.
"""

from tradeoff.log.events import (
    ACTIONS,
    FOR_SESSIONS,
    FORMAT,
    READABLE,
    SAID,
    Answered,
    Asked,
    CheckAnswered,
    CheckRetracted,
    CheckShown,
    Chosen,
    Ended,
    Event,
    Header,
    LogEvent,
    MenuAsked,
    Reply,
    Retracted,
    Said,
    Shown,
    Side,
    Skipped,
    Stated,
    event_of,
    header_of,
    side_of,
    word,
)
from tradeoff.log.fields import CHECKS, CheckKind, PairReply
from tradeoff.log.lines import Lines, read_log, unfinished, write_log
from tradeoff.log.places import ShownMenu, order_of
from tradeoff.log.state import Given, LogState, SteadyClock, fold

__all__ = [
    "ACTIONS",
    "CHECKS",
    "FORMAT",
    "FOR_SESSIONS",
    "READABLE",
    "SAID",
    "Answered",
    "Asked",
    "CheckAnswered",
    "CheckKind",
    "CheckRetracted",
    "CheckShown",
    "Chosen",
    "Ended",
    "Event",
    "Given",
    "Header",
    "Lines",
    "LogEvent",
    "LogState",
    "MenuAsked",
    "PairReply",
    "Reply",
    "Retracted",
    "Said",
    "Shown",
    "ShownMenu",
    "Side",
    "Skipped",
    "Stated",
    "SteadyClock",
    "event_of",
    "fold",
    "header_of",
    "order_of",
    "read_log",
    "side_of",
    "unfinished",
    "word",
    "write_log",
]
