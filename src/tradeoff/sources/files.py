"""Problem files of our own: one TOML or JSON document, its tables inline or as CSV beside it.

The format is described by ``problem.schema.json`` and in docs/problem-files.md.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tradeoff.errors import ProblemError
from tradeoff.model import Matrix, Objective, Reference
from tradeoff.problems.building import Numbered
from tradeoff.problems.catalogue import Catalogue
from tradeoff.problems.mdp import MDP
from tradeoff.problems.solving import branches
from tradeoff.sources.tables import Table, number, read_table, shortened, write_table

FORMAT = "tradeoff-problem/1"
SCHEMA = Path(__file__).with_name("problem.schema.json")
LARGEST_FILE = 256 << 20
TRANSITION_COLUMNS = ("state", "action", "probability", "next")


# --- reading ---------------------------------------------------------------------------------------------------------


def read(path: Path, *, renormalise: bool = False) -> Catalogue | MDP:
    """Return the problem in a .toml or .json file."""
    document = read_document(path)
    check_document(document, str(path))
    try:
        if document["kind"] == "catalogue":
            return _catalogue(document, path)
        return _mdp(document, path, renormalise)
    except ProblemError as error:
        raise error if str(path.with_suffix("")) in str(error) else type(error)(f"{path}: {error}") from None


def read_document(path: Path) -> dict[str, Any]:
    """Return the document in a file as it stands, or say where it cannot be read."""
    size = path.stat().st_size
    if size > LARGEST_FILE:
        raise ProblemError(
            f"{path} has {size / 2**20:,.0f} MB; problem files of at most {LARGEST_FILE >> 20} MB are read: "
            "use the .npz form for large models"
        )
    raw = path.read_bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProblemError(f"{path} is not text: byte {error.start} is not UTF-8; is it the right file?") from None
    try:
        if path.suffix.lower() == ".json":
            document = json.loads(text, object_pairs_hook=_without_repeats)
        else:
            document = tomllib.loads(text)
    except json.JSONDecodeError as error:
        raise ProblemError(f"{path}, line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from None
    except tomllib.TOMLDecodeError as error:
        raise ProblemError(f"{path}: not TOML: {shortened(str(error))[1:-1]}") from None
    except RecursionError:
        raise ProblemError(f"{path}: brackets are nested too deeply to be a problem file") from None
    except ProblemError as error:
        raise ProblemError(f"{path}: {error}") from None
    if not isinstance(document, dict):
        raise ProblemError(
            f"{path}: a problem file is a table of names and values, but {shortened(document)} was found"
        )
    return document


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ProblemError(f"the name {twice!r} is given twice in one table; keep one of them")
    return result


def check_document(document: Mapping[str, Any], source: str) -> None:
    """Raise a ProblemError that names the place where a document departs from the schema."""
    import jsonschema

    if document.get("format") != FORMAT:
        raise ProblemError(
            f"{source}: its format is {shortened(document.get('format'))}; this version reads {FORMAT!r}: "
            f'begin the file with format = "{FORMAT}"'
        )
    # Long tables are checked row by row when they are read; the schema sees their first rows.
    sample = {key: value[:3] if isinstance(value, list) else value for key, value in document.items()}
    for key in ("objectives", "ends", "states", "actions"):
        if key in document:
            sample[key] = document[key]
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    errors = list(validator.iter_errors(sample))
    # A mistake in one entry also makes its neighbours "unevaluated": say the mistake itself.
    causes = [error for error in errors if error.validator != "unevaluatedProperties"] or errors
    found = jsonschema.exceptions.best_match(causes)
    if found is not None:
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in found.absolute_path)
        message = found.message if len(found.message) <= 300 else found.message[:297] + "..."
        raise ProblemError(f"{source}: {place.lstrip('.') or 'the file'}: {message}")
    _check_finite(sample, source)


def _check_finite(value: Any, where: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ProblemError(f"{where} is {value}; every number must be finite")
    if isinstance(value, dict):
        for key, part in value.items():
            _check_finite(part, f"{where}: {key}")
    elif isinstance(value, list):
        for i, part in enumerate(value):
            _check_finite(part, f"{where}[{i}]")


def _objectives(document: Mapping[str, Any]) -> list[Objective]:
    return [Objective(o["name"], o.get("unit", ""), o.get("goal", "max")) for o in document["objectives"]]


def _reference(document: Mapping[str, Any]) -> Reference | None:
    given = document.get("reference")
    return None if given is None else Reference(given["name"], given.get("outcome"))


def _texts(document: Mapping[str, Any], path: Path) -> dict[str, str]:
    return {"name": path.stem, "title": document.get("title", path.stem), "about": document.get("about", "").strip()}


def _amounts(table: Table, objectives: Sequence[Objective]) -> Matrix:
    return np.array([table.numbers(o.name) for o in objectives]).T


def _inline(rows: Sequence[Sequence[Any]], header: Sequence[str], what: str) -> Table:
    """Return inline rows as a table."""
    for i, row in enumerate(rows, start=1):
        if not isinstance(row, list) or len(row) != len(header):
            found = len(row) if isinstance(row, list) else shortened(row)
            raise ProblemError(f"{what}, row {i}: {found} entries, but {len(header)} are needed: {', '.join(header)}")
    columns = {name: [row[i] for row in rows] for i, name in enumerate(header)}
    return Table(what, list(header), columns, list(range(1, len(rows) + 1)))


def _catalogue(document: Mapping[str, Any], path: Path) -> Catalogue:
    objectives = _objectives(document)
    columns = ["name", *(o.name for o in objectives)]
    if isinstance(document["items"], str):
        table = read_table(path.parent / document["items"], columns)
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
    for o in objectives:
        if o.name in (*TRANSITION_COLUMNS, "step"):
            raise ProblemError(f"an objective cannot be called {o.name!r}: that is a column of its own; rename it")
    columns = [*TRANSITION_COLUMNS, *(o.name for o in objectives)]
    given = document["transitions"]
    table = (
        read_table(path.parent / given, columns) if isinstance(given, str) else _inline(given, columns, "transitions")
    )
    if not len(table):
        raise ProblemError(f"{table.source} has no rows; a model needs at least one transition")
    step = None
    if "step" in table.columns:
        step = [_whole(text, f"{table.place(i)}, column 'step'") for i, text in enumerate(table.texts("step"))]
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
        table = read_table(path.parent / given, ["state", "x", "y"])
        return dict(zip(table.texts("state"), zip(table.numbers("x"), table.numbers("y"), strict=True), strict=True))
    return {state: (float(x), float(y)) for state, (x, y) in given.items()}


# --- writing ---------------------------------------------------------------------------------------------------------


def write(problem: Catalogue | MDP, path: Path) -> None:
    """Write a problem as TOML or JSON with its tables beside it; reading it back gives the same problem exactly."""
    document: dict[str, Any] = {"format": FORMAT, "kind": "catalogue" if isinstance(problem, Catalogue) else "mdp"}
    document["title"] = problem.title
    if problem.about:
        document["about"] = problem.about
    if isinstance(problem, Catalogue):
        document["items"] = f"{path.stem}.csv"
        header = ["name", *(o.name for o in problem.objectives), *problem.labels]
        labels = zip(*problem.labels.values(), strict=True) if problem.labels else [()] * len(problem.names)
        rows = zip(problem.names, problem.values.tolist(), labels, strict=True)
        write_table(path.with_name(f"{path.stem}.csv"), header, ([name, *row, *texts] for name, row, texts in rows))
    else:
        document |= _write_mdp(problem, path)
    document["objectives"] = [{"name": o.name, "unit": o.unit, "goal": o.goal} for o in problem.objectives]
    reference: dict[str, Any] = {"name": problem.reference.name}
    if problem.reference.outcome is not None:
        reference["outcome"] = {name: float(amount) for name, amount in problem.reference.outcome.items()}
    document["reference"] = reference
    as_json = path.suffix.lower() == ".json"
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n" if as_json else toml_text(document))


def _write_mdp(mdp: MDP, path: Path) -> dict[str, Any]:
    """Write the tables of an MDP and return its part of the document."""
    timed = len(mdp.layers) > 1
    header = [*(["step"] if timed else []), *TRANSITION_COLUMNS, *(o.name for o in mdp.objectives)]

    def rows() -> Any:
        for step, layer in enumerate(mdp.layers):
            state, action, prob, target, reward = (column.tolist() for column in branches(layer))
            for s, a, p, t, r in zip(state, action, prob, target, reward, strict=True):
                yield [*([step] if timed else []), mdp.states[s], mdp.actions[a], p, mdp.states[t], *r]

    write_table(path.with_name(f"{path.stem}.csv"), header, rows())
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
        del part["states"]  # the rows name them all, in order
    if mdp.nothing_action is not None:
        part["nothing_action"] = mdp.actions[mdp.nothing_action]
    if mdp.places:
        part["places"] = f"{path.stem}.places.csv"
        write_table(
            path.with_name(f"{path.stem}.places.csv"),
            ["state", "x", "y"],
            ([s, x, y] for s, (x, y) in mdp.places.items()),
        )
    return part


def toml_text(document: Mapping[str, Any]) -> str:
    """Return a document of texts, numbers, lists and tables as TOML."""
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
