"""The results of simulated users as columns, and their files: CSV, Parquet, and the parts of an unfinished run.

Rows that are finished are kept in ``<out>.shards/`` with a manifest that identifies the run, so that it can be interrupted at
any time and continued later, but only with the same settings.
"""

from __future__ import annotations

import csv
import json
import math
import os
import shutil
import sys
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tradeoff.errors import ArgumentError, StoreError
from tradeoff.model import Matrix, Vector

FORMAT = "tradeoff-population/2"

SUFFIXES = (".csv", ".parquet")

# What a strategy may state about its recommendation; files of earlier versions have only the first of these columns.
STATED = ("bound", "robust", "likely_worst", "likely_regret", "target")
# The columns of a file except the weights, which follow the first column.
COLUMNS: dict[str, type] = {
    "index": int, "questions": int, "regret": float, "complete": bool, "reason": str, "bound": float, "errors": int,
    "seconds": float, **dict.fromkeys(STATED[1:], float),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One simulated user: their weights on the gains (scaled so that their best is worth 1) and the result."""

    index: int
    weights: tuple[float, ...]
    questions: int
    regret: float  # relative: the share of the best possible value that was lost
    complete: bool
    reason: str
    bound: float | None  # the strategy's own certificate
    errors: int  # wrong answers that this user gave
    seconds: float
    robust: float | None = None  # the stated bound if one more answer is wrong
    likely_worst: float | None = None  # the stated "very likely within"
    likely_regret: float | None = None  # the stated average
    target: float | None = None  # the limit named by the reason for stopping


@dataclass(frozen=True, eq=False)
class Results:
    """Many rows as columns; NaN where the strategy states nothing."""

    index: NDArray[np.int64]
    weights: Matrix
    questions: NDArray[np.int64]
    regret: Vector
    complete: NDArray[np.bool_]
    reason: tuple[str, ...]
    bound: Vector
    errors: NDArray[np.int64]
    seconds: Vector
    robust: Vector
    likely_worst: Vector
    likely_regret: Vector
    target: Vector

    def __len__(self) -> int:
        return len(self.index)

    @classmethod
    def from_rows(cls, rows: Iterable[Row], objectives: int) -> Results:
        """Return the rows as columns."""
        given = list(rows)
        found: dict[str, Any] = {name: [getattr(row, name) for row in given] for name in COLUMNS}
        found["reason"] = tuple(map(sys.intern, found["reason"]))
        for name in STATED:
            found[name] = [math.nan if share is None else share for share in found[name]]
        columns: dict[str, Any] = {
            name: np.array(found[name], dtype=np.int64 if kind is int else kind)
            for name, kind in COLUMNS.items()
            if kind is not str
        }
        weights = np.array([row.weights for row in given], dtype=float).reshape(len(given), objectives)
        return cls(**found | columns, weights=weights)

    @classmethod
    def joined(cls, parts: Sequence[Results]) -> Results:
        """Return the rows of all parts, in that order."""
        columns: dict[str, Any] = {}
        for field in fields(cls):
            pieces = [getattr(part, field.name) for part in parts]
            columns[field.name] = tuple(chain(*pieces)) if field.name == "reason" else np.concatenate(pieces)
        return cls(**columns)

    def by_index(self) -> Results:
        """Return the rows in the order of the users' numbers."""
        order = np.argsort(self.index, kind="stable")
        columns: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        columns = {name: column[order] for name, column in columns.items() if name != "reason"}
        return Results(**columns, reason=tuple(self.reason[i] for i in order))

    def row(self, position: int) -> Row:
        """Return one row."""
        cells: dict[str, Any] = {name: kind(getattr(self, name)[position]) for name, kind in COLUMNS.items()}
        for name in STATED:
            cells[name] = None if math.isnan(cells[name]) else cells[name]
        return Row(weights=tuple(self.weights[position].tolist()), **cells)


# --- files ------------------------------------------------------------------------------------------------------------

BEFORE, *AFTER = COLUMNS


def columns_of(objectives: Sequence[str]) -> list[str]:
    """Return a file's column names; with the prefix, "regret" is not taken for that column, nor "=..." for a formula."""
    return [BEFORE, *(f"weight_{name}" for name in objectives), *AFTER]


def check_out(path: str | Path) -> Path:
    """Check the path of a results file before anything is computed, and return it."""
    out = Path(path)
    if out.suffix.lower() not in SUFFIXES:
        raise ArgumentError(f"results are written to files ending in {' or '.join(SUFFIXES)}, not to {str(out)!r}")
    if not out.absolute().parent.is_dir():
        raise ArgumentError(f"the folder of {str(out)!r} does not exist; create it, or write elsewhere")
    if out.is_dir():
        raise ArgumentError(f"{str(out)!r} is a folder; name a file for the results")
    if out.suffix.lower() == ".parquet":
        _pyarrow()
    return out


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ArgumentError(
            "Parquet files need pyarrow, which is not installed; install the extra 'data' "
            "(in a clone: pip install '.[data]'), or write a .csv"
        ) from None
    return pyarrow


def write_results(results: Results, objectives: Sequence[str], path: str | Path, about: object = None) -> None:
    """Write a .csv or .parquet file completely or not at all; ``about`` becomes the metadata of a Parquet file."""
    out = check_out(path)
    if out.suffix.lower() == ".csv":
        _atomically(out, lambda file: _write_csv(results, objectives, file))
        return
    arrow = _pyarrow()
    arrays: list[Any] = [results.index, *results.weights.T]
    for name in AFTER:
        column = getattr(results, name)
        missing = np.isnan(column) if name in STATED else None
        arrays.append(arrow.array(column, mask=missing))
    names = columns_of(objectives)
    table = arrow.Table.from_arrays([arrow.array(a) if isinstance(a, np.ndarray) else a for a in arrays], names=names)
    table = table.replace_schema_metadata({"tradeoff": json.dumps(about)})
    part = _part(out)
    arrow.parquet.write_table(table, part)
    part.replace(out)


def _write_csv(results: Results, objectives: Sequence[str], file: IO[str]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns_of(objectives))
    # A number is written as its repr, which reads back as exactly the same number.
    columns = [results.index.tolist(), *results.weights.T.tolist(), *(_cells(results, name) for name in AFTER)]
    writer.writerows(zip(*columns, strict=True))


def _cells(results: Results, name: str) -> Sequence[object]:
    """Return the cells of a column of a CSV file."""
    if name == "reason":
        return results.reason
    cells = getattr(results, name).tolist()
    if name == "complete":
        return ["true" if complete else "false" for complete in cells]
    return ["" if math.isnan(cell) else cell for cell in cells] if name in STATED else cells


def read_results(path: str | Path) -> Results:
    """Return the rows of a .csv or .parquet file that ``write_results`` wrote."""
    source = Path(path)
    cells: list[Any]
    try:
        if source.suffix.lower() == ".parquet":
            columns = _pyarrow().parquet.read_table(source).to_pydict()
            names, cells = list(columns), list(zip(*columns.values(), strict=True))
        else:
            with source.open(newline="", encoding="utf-8") as file:
                names, *cells = csv.reader(file)
        if names[-1] == "seconds":  # by an earlier version
            cells = [(*cell, *[None] * len(STATED[1:])) for cell in cells]
            names = [*names, *STATED[1:]]
        width = len(names) - len(COLUMNS)
        return Results.from_rows((_row(cell, width) for cell in cells), width)
    except (ValueError, IndexError, TypeError, csv.Error) as error:
        raise ArgumentError(f"{str(source)!r} is not a file of simulated users: {error}") from None


def _row(cells: Sequence[Any], width: int) -> Row:
    """Return a row, given strings (CSV) or values (Parquet)."""
    names = dict(zip(COLUMNS, [cells[0], *cells[1 + width :]], strict=True))
    if names["complete"] not in (True, False, "true", "false"):
        raise ValueError(f"complete is {names['complete']!r}")
    complete, stated = names.pop("complete") in (True, "true"), {name: names.pop(name) for name in STATED}
    found: dict[str, Any] = {name: COLUMNS[name](cell) for name, cell in names.items()}
    found |= {name: None if share in (None, "") else float(share) for name, share in stated.items()}
    return Row(
        weights=tuple(map(float, cells[1 : 1 + width])),
        complete=complete,
        **found,
    )


def _part(path: Path) -> Path:
    """Return the temporary path of a file that is being written: in the same folder, so that renaming it is atomic."""
    return path.with_name(f".{path.name}.part")


def _atomically(path: Path, write: Callable[[IO[str]], None]) -> None:
    part = _part(path)
    with part.open("w", newline="", encoding="utf-8") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


# --- picture ----------------------------------------------------------------------------------------------------------

PICTURES = (".svg", ".png", ".pdf")


def check_picture(path: str | Path) -> Path:
    """Check the path of a picture before anything is computed, and return it."""
    out = Path(path)
    if out.suffix.lower() not in PICTURES:
        raise ArgumentError(f"pictures are written to files ending in {', '.join(PICTURES)}, not to {str(out)!r}")
    if not out.absolute().parent.is_dir():
        raise ArgumentError(f"the folder of {str(out)!r} does not exist; create it, or write elsewhere")
    _matplotlib()
    return out


def _matplotlib() -> Any:
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError:
        raise ArgumentError(
            "pictures need Matplotlib, which is not installed; install the extra 'plot' (in a clone: pip install '.[plot]')"
        ) from None
    return matplotlib


def plot_results(results: Results, baseline: Vector, path: str | Path, title: str = "") -> None:
    """Draw how many questions were asked (left) and the cumulative distribution of the users' regret (right)."""
    out = check_picture(path)
    matplotlib = _matplotlib()
    with matplotlib.rc_context({"svg.hashsalt": "tradeoff", "font.size": 9}):  # the same picture for the same rows
        figure = matplotlib.figure.Figure(figsize=(9, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        asked = results.questions
        width = max(1, math.ceil((asked.max() - asked.min() + 1) / 40))
        left.hist(asked, bins=np.arange(asked.min(), asked.max() + width + 1, width) - 0.5, color="#3b6ea8")
        left.axvline(asked.mean(), color="black", linewidth=1, linestyle="--", label=f"mean {asked.mean():.1f}")
        left.set(xlabel="questions", ylabel="users")
        left.legend(frameon=False)
        lowest = min((float(r[r > 0].min()) for r in (results.regret, baseline) if (r > 0).any()), default=1e-3)
        for regret, color, label in ((results.regret, "#3b6ea8", "asked"), (baseline, "#b5651d", "not asked")):
            # A logarithmic axis has no zero: the curve begins at the share of users who lost nothing.
            losses = np.sort(regret[regret > 0])
            share = 1 - np.arange(len(losses), -1, -1) / len(regret)
            label = f"{label}: {100 * share[0]:.3g}% lost nothing"
            right.step([lowest / 2, *losses], share, where="post", color=color, label=label)
        right.set(xscale="log", xlabel="relative regret", ylabel="share of users with at most this", ylim=(0, 1.02))
        right.legend(frameon=False, loc="center left")
        figure.suptitle(title)
        stamp = {"Date": None} if out.suffix.lower() == ".svg" else None
        part = _part(out)
        figure.savefig(part, format=out.suffix[1:].lower(), metadata=stamp)
    part.replace(out)


# --- unfinished runs --------------------------------------------------------------------------------------------------


def _folder(out: Path) -> Path:
    return out.with_name(f"{out.name}.shards")


@contextmanager
def held(out: Path) -> Iterator[None]:
    """Lock the folder of a results file's shards; raise a StoreError immediately if another run has it locked.

    Nothing is locked if the system or the file system does not support it.
    """
    folder = _folder(out)
    if sys.platform == "win32":
        yield
        return
    descriptor = _locked(folder)
    try:
        yield
    finally:
        with suppress(OSError):  # an empty folder has nothing to continue from
            folder.rmdir()
        os.close(descriptor)


def _locked(folder: Path) -> int:
    """Create the folder if necessary, lock it, and return its descriptor; closing that releases the lock."""
    import fcntl

    while True:
        folder.mkdir(exist_ok=True)
        try:
            descriptor = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:  # another run has just ended and removed it
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise StoreError(
                f"{folder} is in use by another process (another run writes its results there); wait for that one or "
                "end it, or choose another file for the results"
            ) from None
        except OSError:  # a file system without locks
            return descriptor
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), folder.stat()):
                return descriptor
        os.close(descriptor)  # it was removed, and perhaps created again, before it was locked


class Parts:
    """The folder beside a results file in which a run keeps finished rows, part by part, until it has all of them."""

    def __init__(self, out: Path, manifest: dict[str, Any]) -> None:
        """``manifest`` identifies the run; a folder left by the same run is continued, another run's is refused."""
        self.folder = _folder(out)
        self.manifest = json.loads(json.dumps({"format": FORMAT, **manifest}))
        path = self.folder / "manifest.json"
        if path.exists():
            self._check(path)
        else:
            self.folder.mkdir(exist_ok=True)
            _atomically(path, lambda file: json.dump(self.manifest, file, indent=2))

    def _check(self, path: Path) -> None:
        """Raise an ArgumentError unless the existing manifest belongs to the same run."""
        advice = "choose another file for the results, or remove that folder to start again"
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(found, dict) or "format" not in found:
                raise ValueError("no manifest")
        except (ValueError, RecursionError):
            raise ArgumentError(f"{path} is damaged, so its run cannot be continued; {advice}") from None
        there, here = _flat(found), _flat(self.manifest)
        differing = [key for key in {**there, **here} if there.get(key) != here.get(key)]
        if differing:
            what = ", ".join(f"{key} is {there.get(key)!r} there and {here.get(key)!r} here" for key in differing)
            raise ArgumentError(
                f"{self.folder} holds the unfinished results of another run ({what}); "
                f"repeat that run's command to finish it, {advice}"
            )

    def read(self, users: int) -> list[Results]:
        """Return what is finished; a part that is damaged is left out, and simulated again."""
        found, left = [], np.ones(users, dtype=bool)
        for path in sorted(self.folder.glob("*.npz")):
            part = _read_part(path)
            if part is not None and part.index.min() >= 0 and part.index.max() < users and left[part.index].all():
                left[part.index] = False
                found.append(part)
        return found

    def keep(self, results: Results) -> None:
        """Keep finished rows."""
        part = self.folder / "unfinished"
        with part.open("wb") as file:
            columns: dict[str, Any] = {
                field.name: np.asarray(getattr(results, field.name)) for field in fields(results)
            }
            np.savez(file, **columns)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self.folder / f"{time.time_ns():020}.npz")

    def remove(self) -> None:
        """Remove the folder, once everything is in the results file."""
        shutil.rmtree(self.folder)


def _read_part(path: Path) -> Results | None:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            columns: dict[str, Any] = {field.name: stored[field.name] for field in fields(Results)}
        columns["reason"] = tuple(map(sys.intern, columns["reason"].tolist()))
        lengths = {len(column) for column in columns.values()}
        return Results(**columns) if len(lengths) == 1 and lengths != {0} else None
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile, zlib.error):
        return None


def _flat(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest with its settings at the top level, so that a difference can be named."""
    settings = manifest.get("settings")
    return {**manifest, **(settings if isinstance(settings, dict) else {})} | {"settings": None}
