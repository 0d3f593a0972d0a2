"""Turn a problem file into a catalogue or a Markov decision process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tradeoff.errors import ProblemError
from tradeoff.mdp.model import MDP
from tradeoff.model import Matrix, Objective, Reference
from tradeoff.problems.catalogue import Catalogue
from tradeoff.sources.files.columns import Table, number, read_table, table_name
from tradeoff.sources.files.documents import TOO_DEEP, check_document, read_document
from tradeoff.sources.limits import check_length
from tradeoff.sources.messages import shortened

OBJECTIVE_TEXTS = ("description", "better", "worse")
TRANSITION_COLUMNS = ("state", "action", "probability", "next")


def read(path: Path, *, renormalise: bool = False) -> Catalogue | MDP:
    """Return the problem in a .toml or .json file."""
    document = read_document(path)
    try:
        check_document(document, str(path))
        if document["kind"] == "catalogue":
            return _catalogue(document, path)
        return _mdp(document, path, renormalise)
    except RecursionError:
        raise ProblemError(f"{path}: {TOO_DEEP}") from None
    except ProblemError as error:
        raise error if str(path.with_suffix("")) in str(error) else type(error)(f"{path}: {error}") from None


def _objectives(document: Mapping[str, Any]) -> list[Objective]:
    return [
        Objective(o["name"], o.get("unit", ""), o.get("goal", "max"), *(o.get(key, "") for key in OBJECTIVE_TEXTS))
        for o in document["objectives"]
    ]


def _reference(document: Mapping[str, Any]) -> Reference | None:
    given = document.get("reference")
    return None if given is None else Reference(given["name"], given.get("outcome"))


def _texts(document: Mapping[str, Any], path: Path) -> dict[str, Any]:
    texts = {"title": document.get("title", path.stem), "about": document.get("about", "").strip()}
    return texts | {"name": path.stem, "noun": document.get("noun", "")}


def _amounts(table: Table, objectives: Sequence[Objective]) -> Matrix:
    return np.array([table.numbers(o.name) for o in objectives]).T


def check_columns(objectives: Sequence[Objective], taken: Sequence[str]) -> None:
    """Raise a ProblemError if an objective has the name of another column of the table."""
    for o in objectives:
        if o.name in taken:
            raise ProblemError(f"an objective cannot be called {o.name!r}: another column has that name; rename it")


def _inline(rows: Sequence[Sequence[Any]], header: Sequence[str], what: str) -> Table:
    """Return inline rows as a table."""
    for i, row in enumerate(rows, start=1):
        if not isinstance(row, list) or len(row) != len(header):
            found = len(row) if isinstance(row, list) else shortened(row)
            names = ", ".join(header[:20]) + (", ..." if len(header) > 20 else "")
            raise ProblemError(f"{what}, row {i}: {found} entries, but {len(header)} are needed: {names}")
    columns = {name: [row[i] for row in rows] for i, name in enumerate(header)}
    return Table(what, list(header), columns, list(range(1, len(rows) + 1)))


def _catalogue(document: Mapping[str, Any], path: Path) -> Catalogue:
    objectives = _objectives(document)
    check_columns(objectives, ("name",))
    columns = ["name", *(o.name for o in objectives)]
    if isinstance(document["items"], str):
        table = read_table(path.parent / table_name(document["items"], "items"), columns)
        labels = {name: table.texts(name) for name in table.header if name not in columns}
    else:
        table, labels = _inline(document["items"], columns, "items"), document.get("labels", {})
    if not len(table):
        raise ProblemError(f"{table.source} has no items; add at least one")
    names = [str(name) for name in table.texts("name")]
    return Catalogue(
        _amounts(table, objectives), objectives, names, labels=labels, reference=_reference(document),
        **_texts(document, path),
    )  # fmt: skip


def _mdp(document: Mapping[str, Any], path: Path, renormalise: bool) -> MDP:
    objectives = _objectives(document)
    check_columns(objectives, (*TRANSITION_COLUMNS, "step"))
    columns = [*TRANSITION_COLUMNS, *(o.name for o in objectives)]
    given = document["transitions"]
    if isinstance(given, str):
        table = read_table(path.parent / table_name(given, "transitions"), columns)
    else:
        table = _inline(given, columns, "transitions")
    if not len(table):
        raise ProblemError(f"{table.source} has no rows; a model needs at least one transition")
    step = None
    check_length(document["horizon"], 1 if "step" in table.columns else len(table))
    if "step" in table.columns:
        step = [_whole(text, f"{table.location(i)}, column 'step'") for i, text in enumerate(table.texts("step"))]
    mdp = MDP.from_columns(
        [str(name) for name in table.texts("state")],
        [str(name) for name in table.texts("action")],
        np.array(table.numbers("probability")),
        [str(name) for name in table.texts("next")],
        _amounts(table, objectives),
        step,
        horizon=document["horizon"],
        start=document["start"],
        ends=document.get("ends", ()),
        objectives=objectives,
        states=document.get("states"),
        actions=document.get("actions"),
        renormalise=renormalise,
        reference=_reference(document),
        places=_places(document.get("places", {}), path),
        nothing_action=document.get("nothing_action"),
        describe=document.get("describe"),
        **_texts(document, path),
    )
    return mdp.with_nothing(document["nothing"]) if "nothing" in document else mdp


def _whole(text: object, where: str) -> int:
    value = number(text, where)
    if value != int(value):
        raise ProblemError(f"{where}: {text!r} is not a whole number")
    return int(value)


def _places(given: str | Mapping[str, Sequence[float]], path: Path) -> dict[str, tuple[float, float]]:
    if isinstance(given, str):
        table = read_table(path.parent / table_name(given, "places"), ["state", "x", "y"])
        return dict(zip(table.texts("state"), zip(table.numbers("x"), table.numbers("y"), strict=True), strict=True))
    return {state: (float(x), float(y)) for state, (x, y) in given.items()}
