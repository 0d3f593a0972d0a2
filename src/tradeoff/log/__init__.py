"""The log of an interview: its events as frozen values, one reader, one writer and one fold.

A log is an append-only list of events. On disk and in databases an event is a JSON object (``Event``); here it is a typed value
(``Header``, ``Asked``, ``Answered``, ...). ``fold`` turns events into a ``LogState``: what was asked, answered and undone, and
what the respondent sees now. Interviews, sessions, exports and the list of studies all use it.
"""

from tradeoff.log.events import (
    ACTIONS,
    CHECKS,
    FORMAT,
    LARGEST,
    READABLE,
    Answered,
    Asked,
    CheckKind,
    Ended,
    Event,
    Header,
    LogEvent,
    Observed,
    Stated,
    Undone,
    answer_event,
    event_of,
    header_of,
    reply_json,
)
from tradeoff.log.lines import Lines, checksum, read_log, unfinished, write_log
from tradeoff.log.old import upgrade_settings
from tradeoff.log.shown import ShownQuestion, display_order
from tradeoff.log.state import Given, LogState, SteadyClock, fold

__all__ = [
    "ACTIONS",
    "CHECKS",
    "FORMAT",
    "LARGEST",
    "READABLE",
    "Answered",
    "Asked",
    "CheckKind",
    "Ended",
    "Event",
    "Given",
    "Header",
    "Lines",
    "LogEvent",
    "LogState",
    "Observed",
    "ShownQuestion",
    "Stated",
    "SteadyClock",
    "Undone",
    "answer_event",
    "checksum",
    "display_order",
    "event_of",
    "fold",
    "header_of",
    "read_log",
    "reply_json",
    "unfinished",
    "upgrade_settings",
    "write_log",
]
