from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import processes
from tests.messages import refused
from tradeoff.errors import StoreError
from tradeoff.stores import InUseError, JsonLines

HEADER = {"event": "header", "format": "tradeoff-log/1"}
EVENTS: list[dict[str, Any]] = [
    HEADER,
    {"event": "question", "first": [0.1, 1 / 3]},
    {"event": "answer", "answer": "é\n"},
]


def written(path: Path, events: list[dict[str, Any]] = EVENTS) -> bytes:
    with JsonLines.create(path) as store:
        store.append(events)
    return path.read_bytes()


def test_what_is_appended_is_read_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with JsonLines.create(path) as store:
        for event in EVENTS:
            store.append([event])
            on_disk = json.loads(path.read_bytes().splitlines()[-1])  # and not only in a buffer
            assert on_disk.pop("crc") and on_disk.pop("checksums", "") in ("crc32", "") and on_disk == event
        store.append([])
        assert store.read() == EVENTS
    with JsonLines.open(path) as store:
        assert store.read() == EVENTS
        store.append(EVENTS[1:])
    with JsonLines.open(path) as store:
        assert store.read() == EVENTS + EVENTS[1:]


def test_an_event_cut_anywhere_is_dropped_and_written_over(tmp_path: Path) -> None:
    """The law of a crash in the middle of a write: the events before it are there, and the next one follows them."""
    path = tmp_path / "log"
    whole = written(path)
    before = whole.rindex(b"\n", 0, -1) + 1
    for end in range(before, len(whole)):
        path.write_bytes(whole[:end])
        with JsonLines.open(path) as store:
            # Only the end of its line is missing when everything else is there: then it is a whole event.
            kept = EVENTS if end == len(whole) - 1 else EVENTS[:-1]
            assert store.read() == kept
            assert path.read_bytes() == whole[:end]  # looking changes nothing
            store.append([{"event": "skip"}])
            assert store.read() == [*kept, {"event": "skip"}]


@pytest.mark.parametrize("tail", [b"\0" * 300, b"\xff\xfe", b'{"event": "answer"', b"[1, 2]"])
def test_rubbish_after_the_last_line_is_not_read(tail: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(written(path) + tail)
    with JsonLines.open(path) as store:
        store.append([{"event": "skip"}])
    with JsonLines.open(path) as store:
        assert store.read() == [*EVENTS, {"event": "skip"}]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello\n",
        b"\x00\xff" * 1000,
        b"{}\n",
        b"[]\n",
        b'{"event": "answer"}\n',
        b'{"event": "header"',
        b"[" * 200_000,
    ],
)
def test_what_is_not_a_log_is_refused_and_never_changed(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_bytes(content)
    with refused(StoreError, "mine.txt", "header"):
        JsonLines.open(path)
    if content:
        with refused(StoreError, "mine.txt", "not empty"):
            JsonLines.create(path)
    assert path.read_bytes() == content
    JsonLines.create(tmp_path / "another").close()  # nothing is still held


SMALL: list[dict[str, Any]] = [
    {"event": "header", "format": "tradeoff-log/2", "settings": {"max_questions": None}, "time": "2026-01-01"},
    {"event": "question", "number": 1, "first": [0.25, 1.0], "second": [1.0, 1e-05], "left": "first"},
    {"event": "answer", "answer": "second", "number": 1},
]


@pytest.mark.parametrize("count", [1, 3])
def test_every_damaged_byte_is_noticed(count: int, tmp_path: Path) -> None:
    """Any byte of a log, replaced by any other of a few: nothing that was acknowledged changes or vanishes unnoticed."""
    path = tmp_path / "log"
    whole = written(path, SMALL[:count])
    for place in range(len(whole)):
        for other in {ord(b"0"), ord(b"7"), ord(b" "), ord(b"\n"), ord(b'"'), ord(b"}"), 0, 255, whole[place] ^ 1}:
            if other == whole[place]:
                continue
            path.write_bytes(whole[:place] + bytes([other]) + whole[place + 1 :])
            with pytest.raises(StoreError), JsonLines.open(path) as store:
                store.read()


def test_a_line_that_is_missing_doubled_or_moved_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    header, question, answer = written(path, SMALL).splitlines(keepends=True)
    damaged = [[header, answer], [header, question, question, answer], [header, answer, question], [header, header]]
    without = [json.dumps(event).encode() + b"\n" for event in SMALL]
    damaged += [
        [header, question, without[2]],
        [without[0], question],
        [header, question.replace(b', "crc"', b',"crc"')],
    ]
    for lines in damaged:
        path.write_bytes(b"".join(lines))
        with pytest.raises(StoreError, match="checksum"), JsonLines.open(path) as store:
            store.read()


def test_a_log_of_an_earlier_version_is_read_and_goes_on_without_checksums(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(json.dumps(event) + "\n" for event in SMALL), encoding="utf-8")
    with JsonLines.open(path) as store:
        assert store.read() == SMALL
        store.append([{"event": "skip"}])
    assert b"crc" not in path.read_bytes()
    with JsonLines.open(path) as store:
        assert store.read() == [*SMALL, {"event": "skip"}]


def test_damage_in_the_middle_is_said_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "log"
    lines = written(path).splitlines(keepends=True)
    for middle, message in ((b"{broken\n", "line 2"), (b"\xff\n", "is not text")):
        content = lines[0] + middle + lines[2]
        path.write_bytes(content)
        with JsonLines.open(path) as store, pytest.raises(StoreError, match=message) as caught:
            store.append([{"event": "skip"}])
        assert str(path) in str(caught.value) and path.read_bytes() == content


def test_a_log_is_held_by_one_process_only(tmp_path: Path) -> None:
    path = tmp_path / "log"
    code = f"from tradeoff.stores import JsonLines\nJsonLines.open({str(path)!r})"
    with JsonLines.create(path) as store:
        store.append(EVENTS)
        for again in (JsonLines.open, JsonLines.create):
            with refused(InUseError, path):
                again(path)
        other = processes.run([sys.executable, "-c", code])
        assert other.returncode == 1 and "in use by another process" in other.stderr
        assert store.read() == EVENTS
    assert processes.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("place", ["", "nowhere/log"])
def test_a_place_where_nothing_can_be_kept_is_said(place: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"a writable file|name a file"):
        JsonLines.create(tmp_path / place)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with refused(StoreError, "pipe"):
        JsonLines.open(tmp_path / "pipe")


def test_a_full_disk_loses_nothing_that_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log"
    whole = written(path)
    real = os.write

    def half(descriptor: int, data: memoryview) -> int:
        if len(data) < 10:
            raise OSError(28, "No space left on device")
        return real(descriptor, data[: len(data) // 2])

    with JsonLines.open(path) as store:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", half)
            with refused(StoreError, "not saved", path, "No space left"):
                store.append([{"event": "skip"}])
        assert path.read_bytes() == whole
        store.append([{"event": "skip"}])  # and once there is room again, it goes on
        assert store.read() == [*EVENTS, {"event": "skip"}]
