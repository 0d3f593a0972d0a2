"""A study's data to take away: one row per answer, one per person, and everything that is needed to replay it."""

from __future__ import annotations

import csv
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tradeoff.errors import ArgumentError, StoreError
from tradeoff.interview import Event
from tradeoff.stores import DamagedError, Log
from tradeoff.studies.checks import flags
from tradeoff.studies.study import Study, problem_bytes

if TYPE_CHECKING:
    from tradeoff.sources import AnyProblem

Format = Literal["csv", "jsonl", "parquet"]
FORMATS: tuple[Format, ...] = ("csv", "jsonl", "parquet")
Row = dict[str, Any]

README = """Data of the study {name!r}.

answers.{format}        one row per answer, skip and attention check; gains (0 is the reference, 1 the best attainable)
                   and outcomes (in units) of both alternatives, which was shown on the left, and whether it was taken back
participants.{format}   one row per person
events.jsonl       every event of every person, in order, with their number: Interview.resume replays them
study.json         strategy, settings, texts and seed
problem.npz        the problem: tradeoff.load("problem.npz")
"""


def unreadable(problem: AnyProblem, logs: Mapping[str, Log]) -> dict[int, str]:
    """Return why some participants cannot be exported, by their number."""
    found: dict[int, str] = {}
    for number, log in enumerate(logs.values(), start=1):
        if isinstance(log, DamagedError):
            found[number] = str(log)
            continue
        try:
            _answers(problem, number, log), _participant(problem, number, log)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            found[number] = f"an event of the log cannot be used ({type(error).__name__}: {error})"
    return found


def readable(problem: AnyProblem, logs: Mapping[str, Log]) -> dict[int, list[Event]]:
    """Return the logs that can be exported by the participant's number: their position among all logs."""
    without = unreadable(problem, logs)
    return {
        number: log
        for number, log in enumerate(logs.values(), start=1)
        if number not in without and not isinstance(log, DamagedError)
    }


def answer_rows(problem: AnyProblem, logs: Mapping[str, Log]) -> list[Row]:
    """Return one row per answer, skip and check of every participant whose log can be read, in order."""
    return [row for number, log in readable(problem, logs).items() for row in _answers(problem, number, log)]


def _answers(problem: AnyProblem, participant: int, events: Sequence[Event]) -> list[Row]:
    rows: list[Row] = []
    by_number: dict[Any, Row] = {}
    shown: Event = {}
    for event in events:
        match event["event"]:
            case "question" | "check":
                shown = event
            case "answer" | "skip" | "check-answer":
                row = _answer(problem, participant, len(rows) + 1, shown, event)
                rows.append(row)
                by_number[event.get("number", event.get("kind"))] = row
            case "retraction" | "check-retraction":
                by_number[event.get("number", event.get("kind"))]["retracted"] = True
    return rows


def _answer(problem: AnyProblem, participant: int, place: int, shown: Event, event: Event) -> Row:
    answer = event.get("answer", "skip")
    left = shown.get("left", "first")
    chosen = answer if answer in ("same", "skip") else "left" if answer == left else "right"
    row: Row = {
        "participant": participant,
        "place": place,
        "kind": shown.get("kind", "question"),
        "number": event.get("number"),
        "left": left,
        "answer": answer,
        "chosen": chosen,
        "retracted": False,
        "asked": shown["time"],
        "answered": event["time"],
        "seconds": round(_seconds(shown["time"], event["time"]), 3),
    }
    for side in ("first", "second"):
        outcome = problem.outcome(np.array(shown[side]))
        for j, objective in enumerate(problem.objectives):
            row[f"{side} gain {objective.name}"] = shown[side][j]
            row[f"{side} {objective.name}"] = float(outcome[j])
    return row


def participant_rows(problem: AnyProblem, logs: Mapping[str, Log]) -> list[Row]:
    """Return one row per readable participant: when, how many answers, results of the checks, recommendation."""
    return [_participant(problem, number, log) for number, log in readable(problem, logs).items()]


def _participant(problem: AnyProblem, number: int, events: Sequence[Event]) -> Row:
    taken_back = {event["number"] for event in events if event["event"] == "retraction"}
    given = [e for e in events if e["event"] in ("answer", "skip") and e["number"] not in taken_back]
    end = events[-1] if events[-1]["event"] == "end" else {}
    found = flags(events)
    # A link may be made long before it is opened: somebody begins with the first question.
    begun = next((event["time"] for event in events if event["event"] == "question"), None)
    row: Row = {
        "participant": number,
        "invited": events[0]["time"],
        "begun": begun,
        "last": events[-1]["time"] if begun else None,
        "seconds": round(_seconds(begun, events[-1]["time"]), 3) if begun else None,
        "answers": sum(e["event"] == "answer" for e in given),
        "skipped": sum(e["event"] == "skip" for e in given),
        "taken back": len(taken_back),
        "finished": bool(end),
        "check dominated": found["dominated"],
        "check repeat": found["repeat"],
        "flagged": "failed" in found.values(),
        "sides": events[0].get("sides"),
        "reason": end.get("reason"),
        "regret bound": end.get("regret_bound"),
        "likely regret": end.get("likely_regret"),
    }
    outcome = problem.outcome(np.array(end["value"])) if end else None
    for j, objective in enumerate(problem.objectives):
        row[f"weight {objective.name}"] = end["weights"][j] if end else None
        row[f"recommended {objective.name}"] = float(outcome[j]) if outcome is not None else None
    return row


def _seconds(begin: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()


def event_lines(logs: Mapping[int, Sequence[Event]]) -> Iterable[str]:
    """Return every event as a line of JSON with the participant's number; secret links are left out."""
    for number, events in logs.items():
        for event in events:
            yield json.dumps({"participant": number, **event})


# --- files -----------------------------------------------------------------------------------------------------------


def table_bytes(rows: Sequence[Row], columns: Sequence[str], format: Format) -> bytes:
    """Return rows as the bytes of a file."""
    match format:
        case "csv":
            out = io.StringIO(newline="")
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow([inert(name) for name in columns])
            writer.writerows([inert(row[name]) for name in columns] for row in rows)
            return out.getvalue().encode()
        case "jsonl":
            return "".join(json.dumps(row) + "\n" for row in rows).encode()
        case "parquet":
            return _parquet(rows, columns)
    raise ArgumentError(f"data is written as {', '.join(FORMATS)}, not as {format!r:.40}")


def _parquet(rows: Sequence[Row], columns: Sequence[str]) -> bytes:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ArgumentError(
            "Parquet needs the package 'pyarrow'; install it with: pip install 'tradeoff[data]'"
        ) from None
    table = pyarrow.table({name: [row[name] for row in rows] for name in columns})
    out = io.BytesIO()
    parquet.write_table(table, out)
    return out.getvalue()


def inert(cell: object) -> object:
    """Return a cell that no spreadsheet takes for a formula.

    >>> inert("=1+1"), inert(-3.5), inert("a-b")
    ("'=1+1", -3.5, 'a-b')
    """
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


def columns_of(problem: AnyProblem) -> tuple[list[str], list[str]]:
    """Return the names of the columns of both tables, also when there is no row yet."""
    k = len(problem.objectives)
    time = "2000-01-01T00:00:00+00:00"
    shown = {"first": [0.0] * k, "second": [0.0] * k, "time": time}
    answers = _answer(problem, 1, 1, shown, {"time": time})
    return list(answers), list(_participant(problem, 1, [{"event": "header", "time": time}]))


def files_of(
    study: Study, problem: AnyProblem, logs: Mapping[str, Log], format: Format
) -> dict[str, Callable[[], bytes]]:
    """Return the files of an export by name, each made when it is asked for."""
    if format not in FORMATS:
        raise ArgumentError(f"data is written as {', '.join(FORMATS)}, not as {format!r:.40}")
    answers, participants = columns_of(problem)
    public = {key: value for key, value in asdict(study).items() if key != "admin"}
    files: dict[str, Callable[[], bytes]] = {
        f"answers.{format}": lambda: table_bytes(answer_rows(problem, logs), answers, format),
        f"participants.{format}": lambda: table_bytes(participant_rows(problem, logs), participants, format),
        "events.jsonl": lambda: "".join(f"{line}\n" for line in event_lines(readable(problem, logs))).encode(),
        "study.json": lambda: (json.dumps(public, indent=2, ensure_ascii=False) + "\n").encode(),
        "README.txt": lambda: (README.format(name=study.name, format=format) + missing_lines(problem, logs)).encode(),
    }
    from tradeoff.problems.pointset import PointSet

    if not isinstance(problem, PointSet):
        files["problem.npz"] = lambda: problem_bytes(problem)
    return files


def missing_lines(problem: AnyProblem, logs: Mapping[str, Log]) -> str:
    """Return a line for each participant who could not be exported, and why."""
    lines = [f"participant {number}: {reason}\n" for number, reason in unreadable(problem, logs).items()]
    return "\nLeft out, because their logs are damaged:\n" + "".join(lines) if lines else ""


def zip_bytes(files: Mapping[str, Callable[[], bytes]]) -> bytes:
    """Return the files as one zip file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content())
    return out.getvalue()


def export(
    study: Study, problem: AnyProblem, logs: Mapping[str, Log], path: Path, format: Format = "csv"
) -> list[Path]:
    """Write a study's data to one .zip file or into a folder, and return what was written; nothing is overwritten."""
    files = files_of(study, problem, logs, format)
    try:
        if path.suffix.lower() == ".zip":
            data = zip_bytes(files)
            _write_private(path, data)
            return [path]
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        written = [path / name for name in files]
        for target in written:
            if target.exists():
                raise FileExistsError(17, "File exists", str(target))
        for target, content in zip(written, files.values(), strict=True):
            _write_private(target, content())
        return written
    except FileExistsError as error:
        raise ArgumentError(f"{error.filename} exists already, and nothing was written; choose another name") from None
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}; choose another place") from None


def _write_private(path: Path, data: bytes) -> None:
    """Write a new file that only its owner can read: it holds what people answered."""
    with os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600), "wb"
    ) as file:
        file.write(data)
