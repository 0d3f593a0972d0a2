"""Write a problem as a TOML or JSON document, with its tables beside it as CSV."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tradeoff.errors import ProblemError
from tradeoff.mdp.inputs import Numbered
from tradeoff.mdp.model import MDP
from tradeoff.problem import check_distinct
from tradeoff.problems.catalogue import Catalogue
from tradeoff.sources.files.columns import table_name, write_table
from tradeoff.sources.files.documents import FORMAT, check_document, check_toml
from tradeoff.sources.files.reading import OBJECTIVE_TEXTS, TRANSITION_COLUMNS, check_columns
from tradeoff.sources.limits import check_length


def write(problem: Catalogue | MDP, path: Path) -> None:
    """Write a problem as TOML or JSON with its tables beside it; reading it back gives the same problem exactly.

    Everything is checked before anything is written, and the document is written last.
    """
    document: dict[str, Any] = {"format": FORMAT, "kind": "catalogue" if isinstance(problem, Catalogue) else "mdp"}
    document["title"] = problem.title
    if problem.about:
        document["about"] = problem.about
    if problem.noun:
        document["noun"] = problem.noun
    if isinstance(problem, Catalogue):
        part, tables = _catalogue_parts(problem, path)
    else:
        part, tables = _mdp_parts(problem, path)
    document |= part
    document["objectives"] = [
        {"name": o.name, "unit": o.unit, "goal": o.goal}
        | {key: text for key in OBJECTIVE_TEXTS if (text := getattr(o, key))}
        for o in problem.objectives
    ]
    reference: dict[str, Any] = {"name": problem.reference.name}
    if problem.reference.outcome is not None:
        reference["outcome"] = {name: float(amount) for name, amount in problem.reference.outcome.items()}
    document["reference"] = reference

    check_document(document, f"{path} cannot be written")
    as_json = path.suffix.lower() == ".json"
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n" if as_json else toml_text(document)
    try:
        if not as_json:
            check_toml(text)
        for table in tables:
            check_distinct("column", table.header)
            table_name(table.path.name, "the document")
            _check_own(table.path, path)
    except ProblemError as error:
        raise ProblemError(f"{path} cannot be written: {error}") from None
    raw = text.encode()
    for table in tables:
        write_table(table.path, table.header, table.rows)
    path.write_bytes(raw)


@dataclass(frozen=True)
class _Written:
    """A table to write."""

    path: Path
    header: Sequence[str]
    rows: Iterable[Sequence[object]]


def _check_own(table: Path, document: Path) -> None:
    """Raise a ProblemError if a file of this name exists that the present document does not name as its table."""
    name = json.dumps(table.name, ensure_ascii=False)[1:-1].encode()
    if table.exists() and not (document.is_file() and name in document.read_bytes()):
        raise ProblemError(
            f"the file {table} already exists and is not a table of {document.name}; "
            "move it away, or choose another name for the problem"
        )


def _catalogue_parts(catalogue: Catalogue, path: Path) -> tuple[dict[str, Any], list[_Written]]:
    """Return a catalogue's part of the document and its table."""
    check_columns(catalogue.objectives, ("name",))
    header = ["name", *(o.name for o in catalogue.objectives), *catalogue.labels]
    labels = zip(*catalogue.labels.values(), strict=True) if catalogue.labels else [()] * len(catalogue.names)
    rows = zip(catalogue.names, catalogue.values.tolist(), labels, strict=True)
    table = _Written(
        path.with_name(f"{path.stem}.csv"), header, ([name, *amounts, *texts] for name, amounts, texts in rows)
    )
    return {"items": table.path.name}, [table]


def _mdp_parts(mdp: MDP, path: Path) -> tuple[dict[str, Any], list[_Written]]:
    """Return an MDP's part of the document and its tables."""
    check_columns(mdp.objectives, (*TRANSITION_COLUMNS, "step"))
    check_length(mdp.horizon, sum(len(layer.target) for layer in mdp.layers) if len(mdp.layers) == 1 else 1)
    timed = len(mdp.layers) > 1
    header = [*(["step"] if timed else []), *TRANSITION_COLUMNS, *(o.name for o in mdp.objectives)]

    def rows() -> Iterator[list[object]]:
        for step, layer in enumerate(mdp.layers):
            state, action, prob, target, reward = (column.tolist() for column in layer.branches())
            for s, a, p, t, r in zip(state, action, prob, target, reward, strict=True):
                yield [*([step] if timed else []), mdp.states[s], mdp.actions[a], p, mdp.states[t], *r]

    tables = [_Written(path.with_name(f"{path.stem}.csv"), header, rows())]
    ends = [mdp.states[int(i)] for i in np.flatnonzero(mdp.layers[0].ends)]
    at = np.flatnonzero(mdp.start > 0)
    start = {mdp.states[int(i)]: float(mdp.start[i]) for i in at}
    part: dict[str, Any] = {
        "horizon": mdp.horizon,
        "start": mdp.states[int(at[0])] if list(start.values()) == [1.0] else start,
        "ends": ends,
        "states": list(mdp.states),
        "actions": list(mdp.actions),
        "transitions": f"{path.stem}.csv",
    }
    if isinstance(mdp.states, Numbered) and not ends:
        del part["states"]  # the rows name all states in this order
    if mdp.nothing_action is not None:
        part["nothing_action"] = mdp.actions[mdp.nothing_action]
    if mdp.wording.description:
        part["describe"] = mdp.wording.description
    places = known_places(mdp)
    if places:
        part["places"] = f"{path.stem}.places.csv"
        tables.append(
            _Written(
                path.with_name(f"{path.stem}.places.csv"), ["state", "x", "y"], ([s, *xy] for s, xy in places.items())
            )
        )
    return part, tables


def known_places(mdp: MDP) -> dict[str, tuple[float, float]]:
    """Return the map coordinates of the states, without those left out as unreachable."""
    known = set(mdp.states) if mdp.places else set()
    return {state: (float(x), float(y)) for state, (x, y) in mdp.places.items() if state in known}


def toml_text(document: Mapping[str, Any]) -> str:
    """Return a document of strings, numbers, lists and tables as TOML."""
    lines = [f"{_key(name)} = {_toml(value)}" for name, value in document.items() if name != "objectives"]
    for objective in document.get("objectives", ()):
        lines += ["", "[[objectives]]", *(f"{_key(name)} = {_toml(value)}" for name, value in objective.items())]
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name if name.replace("_", "").isalnum() and name.isascii() else _toml(name)


def _toml(value: Any) -> str:
    match value:
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case int() | float():
            return repr(value)
        case list():
            return "[" + ", ".join(_toml(part) for part in value) + "]"
        case _:
            return "{" + ", ".join(f"{_key(name)} = {_toml(part)}" for name, part in value.items()) + "}"
