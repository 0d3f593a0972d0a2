"""The log of an interview: its events as frozen values, one reader, one writer and one fold.

A log is an append-only list of events. On disk and in databases an event is a JSON object (``Event``); here it is a typed
value (``Header``, ``Asked``, ``Answered``, ...). ``fold`` turns events into a ``LogState``: what was asked, answered and
taken back, and what the person sees now. Interviews, sessions, exports and the list of studies all use it.
"""

from tradeoff.log.events import (
    ACTIONS,
    CHECKS,
    FORMAT,
    READABLE,
    SAID,
    Answered,
    Asked,
    CheckAnswered,
    CheckKind,
    CheckRetracted,
    CheckShown,
    Ended,
    Event,
    Header,
    LogEvent,
    Reply,
    Retracted,
    Said,
    Shown,
    Side,
    Skipped,
    event_of,
    header_of,
    side_of,
    word,
)
from tradeoff.log.lines import Lines, read_log, unfinished, write_log
from tradeoff.log.state import Given, LogState, SteadyClock, fold

__all__ = [
    "ACTIONS",
    "CHECKS",
    "FORMAT",
    "READABLE",
    "SAID",
    "Answered",
    "Asked",
    "CheckAnswered",
    "CheckKind",
    "CheckRetracted",
    "CheckShown",
    "Ended",
    "Event",
    "Given",
    "Header",
    "Lines",
    "LogEvent",
    "LogState",
    "Reply",
    "Retracted",
    "Said",
    "Shown",
    "Side",
    "Skipped",
    "SteadyClock",
    "event_of",
    "fold",
    "header_of",
    "read_log",
    "side_of",
    "unfinished",
    "word",
    "write_log",
]
