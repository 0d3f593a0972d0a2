"""A log as text: one JSON object per line, each with a checksum.

A checksum covers its own line and the previous checksum, so that a changed byte, a missing line and lines in the wrong
order are all noticed. The header also says that there are checksums, so that no single damaged byte can hide that. Logs of
earlier versions have none, and continue without.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from tradeoff.errors import LogError
from tradeoff.log.events import Event

MARK = {"checksums": "crc32"}  # in the header
EMPTY = '"crc": "00000000"}'  # the end of a line, while its checksum is computed


def checksum(text: str, before: int = 0) -> int:
    """Return the CRC-32 of a text and of everything before it, whose checksum is ``before``.

    >>> checksum("def", checksum("abc")) == checksum("abcdef")
    True
    """
    return zlib.crc32(text.encode("utf-8", errors="surrogatepass"), before)


class Lines:
    """Reads and writes the lines of one log, in order."""

    def __init__(self) -> None:
        self.number = 0  # of the last line
        self._checksum: int | None = None  # of the last line; None if this log has no checksums

    def write(self, events: Iterable[Mapping[str, Any]]) -> str:
        """Return the next lines.

        >>> Lines().write([{"event": "header"}])
        '{"event": "header", "checksums": "crc32", "crc": "a8ec6379"}\\n'
        """
        written: list[str] = []
        for event in events:
            if self.number == 0:
                event, self._checksum = {**event, **MARK}, 0
            if self._checksum is None:
                line = json.dumps(dict(event), allow_nan=False)
            else:
                line = json.dumps({**event, "crc": "00000000"}, allow_nan=False)
                self._checksum = checksum(line, self._checksum)
                line = f'{line[:-10]}{self._checksum:08x}"}}'
            self.number += 1
            written.append(line + "\n")
        return "".join(written)

    def read(self, text: str) -> list[Event]:
        """Return the events of the next lines; raise a LogError about the first that is damaged."""
        events: list[Event] = []
        lines = text.split("\n")
        for line in lines if lines[-1] else lines[:-1]:
            self.number += 1
            if not line.strip():
                continue
            event = _event(line)
            if event is None:
                raise LogError(f"line {self.number} of the log is not an event; the log is damaged there")
            if self.number == 1 and ("checksums" in event or "crc" in event):
                self._checksum = 0
            if self._checksum is not None or "crc" in event:
                self._check(line, event)
            events.append(event)
        return events

    def _check(self, line: str, event: Event) -> None:
        """Remove the checksum from an event; raise a LogError if it is missing or wrong."""
        found = checksum(f"{line[: -len(EMPTY)]}{EMPTY}", self._checksum or 0)
        unmarked = self.number == 1 and event.get("checksums") != "crc32"
        if self._checksum is None or unmarked or not line.endswith(f'"crc": "{found:08x}"}}'):
            raise LogError(
                f"line {self.number} of the log does not match its checksum: it was changed or damaged, or a line before it "
                "is missing; restore a copy of the file"
            )
        self._checksum = found
        del event["crc"]
        event.pop("checksums", None)


def _event(line: str) -> Event | None:
    """Return the event on a line, or None if there is none."""
    try:
        event = json.loads(line, parse_constant=_refused)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def unfinished(rest: str) -> bool:
    """Return whether the text after the last line end was left by a writer that was interrupted.

    Such a line was never acknowledged and can be dropped. A complete event followed by anything but a line end was
    acknowledged: its line end is damaged, which the reader reports.
    """
    try:
        event, _ = json.JSONDecoder().raw_decode(rest)
    except (ValueError, RecursionError):
        return True
    return not isinstance(event, dict)


def read_log(text: str) -> list[Event]:
    """Return the events of a log written as JSON lines; an unfinished last line is dropped."""
    end = text.rfind("\n") + 1
    return Lines().read(text[:end] if unfinished(text[end:]) else text)


def write_log(events: Iterable[Mapping[str, Any]]) -> str:
    """Return a whole log as JSON lines with checksums; ``read_log`` gives the events back."""
    return Lines().write(events)
