"""Export the data of a study: a row per answer, a row per participant, and everything needed to replay them."""

from __future__ import annotations

import csv
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tradeoff.errors import ArgumentError, LogError, StoreError
from tradeoff.evidence import QUESTIONS
from tradeoff.log import FORMAT, Asked, Event, Given, Header, LogState, fold
from tradeoff.model import SKIP
from tradeoff.stores import DamagedError, Log
from tradeoff.studies.study import Study, problem_bytes

if TYPE_CHECKING:
    from tradeoff.sources import AnyProblem

Format = Literal["csv", "jsonl", "parquet"]
FORMULA_STARTS = tuple("=+-@\t\r\n＝＋－＠")  # full-width signs, too
FORMATS: tuple[Format, ...] = ("csv", "jsonl", "parquet")
Row = dict[str, Any]

README = """Data of the study {name!r}.

answers.{format}        one row per answer, skip, attention check and statement; gains (0 is the reference, 1 the best
                   attainable) and outcomes (in units) of the options, in which order they were shown ("2 1": the second
                   option on the left), which option was best and which worst (by number), or the reply in a word (equal,
                   skip) or the statement, and whether it was undone
participants.{format}   one row per participant
events.jsonl       every event of every participant, in order, with their number: Interview.resume replays them
study.json         strategy, settings, texts and seed
problem.npz        the problem: tradeoff.load("problem.npz")
"""
COMPILED = """compiled.npz       the compiled problem, which interviews are about whose header names {fingerprint}
"""


def folded(problem: AnyProblem, logs: Mapping[str, Log]) -> tuple[dict[int, LogState], dict[int, str]]:
    """Return the state of each log that can be read and the reason for each that cannot, by participant number.

    The number is the position among all logs, so that a damaged log does not change the others' numbers.
    """
    states: dict[int, LogState] = {}
    damaged: dict[int, str] = {}
    names = tuple(o.name for o in problem.objectives)
    for number, log in enumerate(logs.values(), start=1):
        try:
            if isinstance(log, DamagedError):
                raise log
            state = fold(log)
            if state.header.objectives != names:
                raise LogError(f"the log is about other objectives ({', '.join(state.header.objectives)[:200]})")
            states[number] = state
        except (DamagedError, LogError) as error:
            damaged[number] = str(error)
    return states, damaged


def unreadable(problem: AnyProblem, logs: Mapping[str, Log]) -> dict[int, str]:
    """Return why some participants cannot be exported, by their number."""
    return folded(problem, logs)[1]


def readable(problem: AnyProblem, logs: Mapping[str, Log]) -> dict[int, list[Event]]:
    """Return the logs that can be exported, by the participant's number."""
    states, every = folded(problem, logs)[0], list(logs.values())
    return {number: log for number in states if not isinstance(log := every[number - 1], DamagedError)}


def answer_rows(problem: AnyProblem, logs: Mapping[str, Log], most: int = 2) -> list[Row]:
    """Return one row per answer, skip, check, observation and statement of every readable participant, in order.

    Every row has columns for ``most`` options, or for as many as the largest question had.
    """
    states = folded(problem, logs)[0]
    most = max([most, *(len(given.options) for state in states.values() for given in state.given)])
    return [
        _answer(problem, number, ordinal, given, most)
        for number, state in states.items()
        for ordinal, given in enumerate(state.given, start=1)
    ]


def _answer(problem: AnyProblem, participant: int, ordinal: int, given: Given, most: int) -> Row:
    reply = SKIP if given.kind == "statement" else given.reply
    row: Row = {
        "participant": participant,
        "place": ordinal,
        "kind": given.kind,
        "number": given.number,
        "asks": getattr(given.shown, "asks", None),
        "order": " ".join(str(position + 1) for position in given.order) or None,
        "best": None if reply.best is None else reply.best + 1,
        "worst": None if reply.worst is None else reply.worst + 1,
        "reply": getattr(given.shown, "text", reply.word),
        "undone": given.undone,
        "asked": given.shown.at.isoformat(),
        "answered": given.at.isoformat(),
        "seconds": round(given.seconds, 3),
    }
    for place, gains in zip_longest(range(most), given.options):
        outcome = None if gains is None else problem.outcome(np.array(gains))
        for j, objective in enumerate(problem.objectives):
            row[f"option {place + 1} gain {objective.name}"] = gains and gains[j]
            row[f"option {place + 1} {objective.name}"] = None if outcome is None else float(outcome[j])
    return row


def participant_rows(problem: AnyProblem, logs: Mapping[str, Log]) -> list[Row]:
    """Return one row per readable participant: when, how many answers, results of the checks, recommendation."""
    return [_participant(problem, number, state) for number, state in folded(problem, logs)[0].items()]


def _participant(problem: AnyProblem, number: int, state: LogState) -> Row:
    standing = [one for one in state.standing if one.check is None]
    found, end, begun = state.flags, state.ended, state.begun
    row: Row = {
        "participant": number,
        "invited": state.header.at.isoformat(),
        "begun": begun and begun.isoformat(),  # a link may be created long before its first question is shown
        "last": begun and state.last.isoformat(),
        "seconds": begun and round(max(0.0, (state.last - begun).total_seconds()), 3),
        "answers": sum(given.reply != SKIP for given in standing),
        "skipped": sum(given.reply == SKIP for given in standing),
        "undone": sum(given.undone and given.check is None for given in state.given),
        "finished": end is not None,
        "check dominated": found["dominated"],
        "check repeat": found["repeat"],
        "flagged": "failed" in found.values(),
        "order seed": state.header.order_seed,
        "reason": end and end.reason,
        "regret bound": end and end.regret_bound,
        "likely regret": end and end.likely_regret,
    }
    outcome = problem.outcome(np.array(end.value)) if end is not None else None
    for j, objective in enumerate(problem.objectives):
        row[f"weight {objective.name}"] = end and end.weights[j]
        row[f"recommended {objective.name}"] = None if outcome is None else float(outcome[j])
    return row


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
            writer.writerow([without_formulas(name) for name in columns])
            writer.writerows([without_formulas(row[name]) for name in columns] for row in rows)
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
            "Parquet needs the package 'pyarrow'; install it, in the folder of tradeoff, with: pip install '.[data]'"
        ) from None
    table = pyarrow.table({name: [row[name] for row in rows] for name in columns})
    out = io.BytesIO()
    parquet.write_table(table, out)
    return out.getvalue()


def without_formulas(cell: object) -> object:
    """Return a cell that spreadsheets do not interpret as a formula.

    >>> without_formulas("=1+1"), without_formulas(-3.5), without_formulas("a-b")
    ("'=1+1", -3.5, 'a-b')
    """
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell


def largest_question(study: Study) -> int:
    """Return how many options the largest question of a study has."""
    kind = study.settings.get("questions", "pairs")
    largest = max(size for size, _ in QUESTIONS.values())  # of a kind of an earlier version
    return QUESTIONS[kind][0] if kind in QUESTIONS else largest


def columns_of(problem: AnyProblem, most: int = 2) -> tuple[list[str], list[str]]:
    """Return the column names of both tables, which an empty table needs too."""
    nothing, time = (0.0,) * len(problem.objectives), datetime.fromtimestamp(0, UTC)
    given = Given(shown=Asked(number=1, options=(nothing, nothing), order=(0, 1), at=time), reply=SKIP, at=time)
    empty = LogState(Header(format=FORMAT, problem="", strategy="", settings={}, at=time))
    return list(_answer(problem, 1, 1, given, most)), list(_participant(problem, 1, empty))


def files_of(
    study: Study, problem: AnyProblem, logs: Mapping[str, Log], format: Format, coverage: AnyProblem | None = None
) -> dict[str, Callable[[], bytes]]:
    """Return the files of an export by name; calling one returns its content.

    ``coverage`` is what some of the interviews are about, if version 0.3 compiled the study while it was served.
    """
    if format not in FORMATS:
        raise ArgumentError(f"data is written as {', '.join(FORMATS)}, not as {format!r:.40}")
    most = largest_question(study)
    answers, participants = columns_of(problem, most)
    readme = README.format(name=study.name, format=format)
    public = {key: value for key, value in asdict(study).items() if key != "admin"}
    files: dict[str, Callable[[], bytes]] = {
        f"answers.{format}": lambda: table_bytes(answer_rows(problem, logs, most), answers, format),
        f"participants.{format}": lambda: table_bytes(participant_rows(problem, logs), participants, format),
        "events.jsonl": lambda: "".join(f"{line}\n" for line in event_lines(readable(problem, logs))).encode(),
        "study.json": lambda: (json.dumps(public, indent=2, ensure_ascii=False) + "\n").encode(),
        "README.txt": lambda: (readme + missing_lines(problem, logs)).encode(),
    }
    if problem.storable:
        files["problem.npz"] = lambda: problem_bytes(problem)
    if coverage is not None and problem.storable:
        files["compiled.npz"] = lambda: problem_bytes(coverage)
        readme += COMPILED.format(fingerprint=coverage.fingerprint)
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
    study: Study, problem: AnyProblem, logs: Mapping[str, Log], path: Path, format: Format = "csv",
    coverage: AnyProblem | None = None,
) -> list[Path]:  # fmt: skip
    """Write a study's data to one .zip file or into a folder, and return the paths; nothing is overwritten."""
    files = files_of(study, problem, logs, format, coverage)
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
        raise ArgumentError(f"{error.filename} already exists; nothing was written: choose another name") from None
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}; choose another path") from None


def _write_private(path: Path, data: bytes) -> None:
    """Write a new file that only its owner can read, since it holds people's answers."""
    with os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600), "wb"
    ) as file:
        file.write(data)
