"""A study's data to take away: one row per answer, one per person, and everything that is needed to replay it."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tradeoff.errors import ArgumentError, StoreError
from tradeoff.interview import Event
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


def answer_rows(problem: AnyProblem, logs: Mapping[str, Sequence[Event]]) -> list[Row]:
    """Return one row per answer, skip and check of everybody, in order."""
    rows: list[Row] = []
    for number, events in enumerate(logs.values(), start=1):
        rows += _answers(problem, number, events)
    return rows


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


def participant_rows(problem: AnyProblem, logs: Mapping[str, Sequence[Event]]) -> list[Row]:
    """Return one row per person: when, how many answers, what the checks came to, and what was found."""
    return [_participant(problem, number, events) for number, events in enumerate(logs.values(), start=1)]


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


def event_lines(logs: Mapping[str, Sequence[Event]]) -> Iterable[str]:
    """Return every event as a line of JSON, with the number of the person; secret links stay where they are."""
    for number, events in enumerate(logs.values(), start=1):
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
    study: Study, problem: AnyProblem, logs: Mapping[str, Sequence[Event]], format: Format
) -> dict[str, Callable[[], bytes]]:
    """Return the files of an export by name, each made when it is asked for."""
    if format not in FORMATS:
        raise ArgumentError(f"data is written as {', '.join(FORMATS)}, not as {format!r:.40}")
    answers, participants = columns_of(problem)
    public = {key: value for key, value in asdict(study).items() if key != "admin"}
    files: dict[str, Callable[[], bytes]] = {
        f"answers.{format}": lambda: table_bytes(answer_rows(problem, logs), answers, format),
        f"participants.{format}": lambda: table_bytes(participant_rows(problem, logs), participants, format),
        "events.jsonl": lambda: "".join(f"{line}\n" for line in event_lines(logs)).encode(),
        "study.json": lambda: (json.dumps(public, indent=2, ensure_ascii=False) + "\n").encode(),
        "README.txt": lambda: README.format(name=study.name, format=format).encode(),
    }
    from tradeoff.problems.pointset import PointSet

    if not isinstance(problem, PointSet):
        files["problem.npz"] = lambda: problem_bytes(problem)
    return files


def zip_bytes(files: Mapping[str, Callable[[], bytes]]) -> bytes:
    """Return the files as one zip file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content())
    return out.getvalue()


def export(
    study: Study, problem: AnyProblem, logs: Mapping[str, Sequence[Event]], path: Path, format: Format = "csv"
) -> list[Path]:
    """Write a study's data to one .zip file or into a folder, and return what was written; nothing is overwritten."""
    files = files_of(study, problem, logs, format)
    try:
        if path.suffix.lower() == ".zip":
            data = zip_bytes(files)
            with path.open("xb") as file:
                file.write(data)
            return [path]
        path.mkdir(parents=True, exist_ok=True)
        written = [path / name for name in files]
        for target in written:
            if target.exists():
                raise FileExistsError(17, "File exists", str(target))
        for target, content in zip(written, files.values(), strict=True):
            target.write_bytes(content())
        return written
    except FileExistsError as error:
        raise ArgumentError(f"{error.filename} exists already, and nothing was written; choose another name") from None
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}; choose another place") from None
