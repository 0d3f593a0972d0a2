"""The results of simulated respondents: rows, their summary, a folder of Parquet files, and a picture.

The folder has one file for each part of the respondents, and ``settings.json``, which is written first. A part is written under
another name and renamed, so that a part that exists is complete.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tradeoff.errors import ArgumentError
from tradeoff.model import Reason, Vector
from tradeoff.problem import SAME

# One row for each respondent, with the columns of ``empty_rows``: ``rows.regret``, ``rows[3].regret``.
Results: TypeAlias = "np.recarray[Any, np.dtype[np.void]]"

# What a strategy may state about its recommendation; NaN (in files: null) if it does not.
STATED = ("bound", "robust", "likely_worst", "likely_regret", "target")
COLUMNS: dict[str, type] = {
    "questions": np.int64,
    "regret": float,  # relative: the share of the best possible worth that was lost
    "baseline": float,  # the regret of asking nothing and weighting all objectives equally
    "complete": bool,
    "reason": object,
    "errors": np.int64,  # wrong answers that the respondent gave
    "seconds": float,
    **dict.fromkeys(STATED, float),
}


def empty_rows(count: int, objectives: int) -> Results:
    """Return as many rows; the weights are scaled so that the respondent's best option is worth 1."""
    columns = [("index", np.int64), ("weights", float, (objectives,)), *COLUMNS.items()]
    return np.recarray(count, dtype=columns)


def join_rows(parts: Sequence[Results]) -> Results:
    """Return the rows of all parts, in the order of the respondents' numbers."""
    rows: Results = np.concatenate(parts).view(np.recarray)
    rows.sort(order="index")
    return rows


# --- summary ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spread:
    """The distribution of a quantity over all respondents."""

    mean: float
    p50: float
    p95: float
    worst: float

    @classmethod
    def of(cls, amounts: Vector | NDArray[np.int64]) -> Spread:
        """Return the spread of these amounts; each percentile is the amount of an actual respondent."""
        p50, p95 = np.percentile(amounts, [50, 95], method="inverted_cdf")
        return cls(float(np.mean(amounts)), float(p50), float(p95), float(np.max(amounts)))


@dataclass(frozen=True)
class Exceeded:
    """How often a kind of statement was made, and for how many respondents it did not hold."""

    stated: int
    exceeded: int


def exceeded_statements(rows: Results, precision: float) -> dict[str, Exceeded]:
    """Return, for each kind of statement, how often it was made and how often it did not hold.

    The reason for stopping is a statement if it names a limit: the target, what the respondent notices, or the larger of the
    two. An average is one statement about all respondents: it is exceeded if they lose more than that on average.
    """
    limits = {"proved": rows.bound, "proved with one slip": rows.robust, "very likely": rows.likely_worst}
    found = {}
    for kind, limit in (limits | {"reason": _limits(rows, precision)}).items():
        made = ~np.isnan(limit)
        if made.any():
            found[kind] = Exceeded(int(made.sum()), int(np.sum(rows.regret[made] > limit[made] + SAME)))
    made = ~np.isnan(rows.likely_regret)
    if made.any():
        found["average"] = Exceeded(1, int(rows.regret[made].mean() > rows.likely_regret[made].mean() + SAME))
    return found


def _limits(rows: Results, precision: float) -> Vector:
    """Return the largest loss that each reason for stopping allows; the best is worth 1, so precision is a share too."""
    limits = np.full(len(rows), np.nan)
    within = (Reason.PROVED, Reason.VERY_LIKELY_WITHIN, Reason.PROBABLY_WITHIN)
    unnoticed = (Reason.UNNOTICEABLE, Reason.VERY_LIKELY_UNNOTICED, Reason.PROBABLY_UNNOTICED)
    either = (Reason.VERY_LIKELY_EITHER, Reason.PROBABLY_EITHER)
    for reasons, limit in (
        (within, rows.target),
        (unnoticed, np.full(len(rows), precision)),
        (either, np.maximum(rows.target, precision)),
    ):
        named = np.isin(rows.reason.astype(str), list(map(str, reasons)))
        limits[named] = limit[named]
    return limits


@dataclass(frozen=True)
class Summary:
    """The figures of a run; regrets are relative (0.01 is 1% of what the respondent could have had)."""

    respondents: int
    questions: Spread
    regret: Spread
    baseline: Spread  # the regret of asking nothing and weighting all objectives equally
    complete: float  # share of the respondents whose interview the strategy completed
    bound: Spread | None  # the strategy's certificates, if it gives any
    exceeded: Mapping[str, Exceeded]  # by kind of statement, for those that were made
    seconds_per_respondent: float  # after the shared precomputation
    precomputation: float  # seconds, once per process


def summarize(rows: Results, precision: float, precomputation: float) -> Summary:
    """Return the figures that summarise a run."""
    certified = ~np.isnan(rows.bound)
    return Summary(
        respondents=len(rows),
        questions=Spread.of(rows.questions),
        regret=Spread.of(rows.regret),
        baseline=Spread.of(rows.baseline),
        complete=float(rows.complete.mean()),
        bound=Spread.of(rows.bound[certified]) if certified.any() else None,
        exceeded=exceeded_statements(rows, precision),
        seconds_per_respondent=float(rows.seconds.mean()),
        precomputation=precomputation,
    )


# --- folder -----------------------------------------------------------------------------------------------------------


def check_out(path: str | Path) -> Path:
    """Check the path of a folder of results before anything is computed, and return it."""
    out = Path(path)
    if out.suffix.lower() in (".csv", ".parquet") or (out.exists() and not out.is_dir()):
        raise ArgumentError(f"results are written to a folder of Parquet files; name a folder instead of {str(out)!r}")
    if not out.absolute().parent.is_dir():
        raise ArgumentError(f"the folder of {str(out)!r} does not exist; create it, or write elsewhere")
    _pyarrow()
    return out


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ArgumentError(
            "Parquet files need pyarrow, which is not installed; install the extra 'data' "
            "(in a clone: pip install '.[data]')"
        ) from None
    return pyarrow


def open_folder(folder: Path, settings: Mapping[str, object]) -> None:
    """Create a folder of results, or check that an existing one has the same settings."""
    path, text = folder / "settings.json", json.dumps(settings, indent=2)
    if not path.exists():
        folder.mkdir(exist_ok=True)
        if any(folder.glob("[!.]*")):
            raise ArgumentError(f"{folder} has files but no settings.json; choose a new folder for the results")
        _write_whole(path, text.encode())
        return
    try:
        found, here = dict(json.loads(path.read_text(encoding="utf-8"))), json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise ArgumentError(f"{path} is damaged; choose another folder for the results, or remove this one") from None
    differing = [key for key in found | here if found.get(key) != here.get(key)]
    if differing:
        what = ", ".join(f"{key} is {found.get(key)!r} there and {here.get(key)!r} here" for key in differing)
        raise ArgumentError(
            f"{folder} holds the results of another run ({what}); repeat that run's command to finish it, choose another "
            "folder for the results, or remove this one to start again"
        )


def part_path(folder: Path, number: int) -> Path:
    """Return the path of a part of the results."""
    return folder / f"part-{number:05}.parquet"


def write_part(rows: Results, objectives: Sequence[str], path: Path) -> None:
    """Write a part of the results."""
    arrow = _pyarrow()
    columns = {"index": rows.index}
    # With the prefix, an objective named "regret" is not taken for that column.
    columns |= {f"weight_{name}": rows.weights[:, j] for j, name in enumerate(objectives)}
    columns |= {name: rows[name] for name in COLUMNS}
    table = arrow.table({name: arrow.array(column, from_pandas=True) for name, column in columns.items()})
    sink = arrow.BufferOutputStream()
    arrow.parquet.write_table(table, sink)
    _write_whole(path, sink.getvalue())


def read_results(folder: str | Path) -> Results:
    """Return the rows of all finished parts in a folder, in the order of the respondents' numbers."""
    paths = sorted(Path(folder).glob("part-*.parquet"))
    if not paths:
        raise ArgumentError(f"{str(folder)!r} has no results of simulated respondents (part-00000.parquet, ...)")
    return join_rows([_read_part(path) for path in paths])


def _read_part(path: Path) -> Results:
    arrow = _pyarrow()
    try:
        table = arrow.parquet.read_table(path)
        weights = [name for name in table.column_names if name.startswith("weight_")]
        rows = empty_rows(len(table), len(weights))
        for name in ("index", *COLUMNS):
            rows[name] = table[name].to_numpy()
        rows.reason = [sys.intern(reason) for reason in rows.reason]
        for j, name in enumerate(weights):
            rows.weights[:, j] = table[name].to_numpy()
    except (arrow.ArrowException, KeyError, TypeError) as error:
        raise ArgumentError(
            f"{path} is not a part of simulated results ({error}); remove it, and repeat the command that wrote it"
        ) from None
    return rows


def _write_whole(path: Path, content: Any) -> None:
    """Write a file completely or not at all; several processes may write the same one."""
    temporary = _temporary(path)
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")


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


def plot_results(rows: Results, path: str | Path, title: str = "") -> None:
    """Draw how many questions were asked (left) and the cumulative distribution of the regret (right)."""
    out = check_picture(path)
    matplotlib = _matplotlib()
    with matplotlib.rc_context({"svg.hashsalt": "tradeoff", "font.size": 9}):  # the same picture for the same rows
        figure = matplotlib.figure.Figure(figsize=(9, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        asked = rows.questions
        width = max(1, math.ceil((asked.max() - asked.min() + 1) / 40))
        left.hist(asked, bins=np.arange(asked.min(), asked.max() + width + 1, width) - 0.5, color="#3b6ea8")
        left.axvline(asked.mean(), color="black", linewidth=1, linestyle="--", label=f"mean {asked.mean():.1f}")
        left.set(xlabel="questions", ylabel="respondents")
        left.legend(frameon=False)
        lowest = min((float(r[r > 0].min()) for r in (rows.regret, rows.baseline) if (r > 0).any()), default=1e-3)
        for regret, color, label in ((rows.regret, "#3b6ea8", "asked"), (rows.baseline, "#b5651d", "not asked")):
            # A logarithmic axis has no zero: the curve begins at the share of respondents who lost nothing.
            losses = np.sort(regret[regret > 0])
            share = 1 - np.arange(len(losses), -1, -1) / len(regret)
            label = f"{label}: {100 * share[0]:.3g}% lost nothing"
            right.step([lowest / 2, *losses], share, where="post", color=color, label=label)
        right.set(
            xscale="log", xlabel="relative regret", ylabel="share of respondents with at most this", ylim=(0, 1.02)
        )
        right.legend(frameon=False, loc="center left")
        figure.suptitle(title)
        stamp = {"Date": None} if out.suffix.lower() == ".svg" else None
        temporary = _temporary(out)
        figure.savefig(temporary, format=out.suffix[1:].lower(), metadata=stamp)
    temporary.replace(out)
