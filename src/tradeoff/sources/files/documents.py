"""Problem files of our own: one TOML or JSON document, its tables inline or as CSV beside it.

The format is described by ``problem.schema.json`` and in docs/problem-files.md.
"""

from __future__ import annotations

import json
import math
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from tradeoff.errors import ProblemError
from tradeoff.model import Matrix, Objective, Reference, check_distinct
from tradeoff.problems.building import Numbered
from tradeoff.problems.catalogue import Catalogue
from tradeoff.problems.mdp import MDP
from tradeoff.problems.solving import branches
from tradeoff.sources.tables.columns import Table, first_repeated, number, read_table, shortened, table_name, write_table

FORMAT = "tradeoff-problem/1"
SCHEMA = Path(__file__).with_name("problem.schema.json")
LARGEST_FILE = 256 << 20
MOST_KEYS = 1_000  # of a document, and of objectives
MOST_ENTRIES = 100_000  # names with values in a TOML file, whose reader is slow
LONG_TEXT = 1 << 20  # characters of a TOML file from which on it is worth a closer look
MOST_TABLES = 5_000  # tables in a TOML file
DEEPEST_KEY = 100  # dots in a TOML key
LONGEST = 1_000_000  # steps
MOST_WORK = 2 * 10**10  # branches times steps that one solution would go through
TOO_DEEP = "brackets are nested too deeply to be a problem file"
TRANSITION_COLUMNS = ("state", "action", "probability", "next")


# --- reading ---------------------------------------------------------------------------------------------------------


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
            check_characters(document, text)
        else:
            document = _toml_document(text)
    except json.JSONDecodeError as error:
        raise ProblemError(f"{path}, line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from None
    except tomllib.TOMLDecodeError as error:
        raise ProblemError(f"{path}: not TOML: {shortened(str(error))[1:-1]}") from None
    except RecursionError:
        raise ProblemError(f"{path}: {TOO_DEEP}") from None
    except ProblemError as error:
        raise ProblemError(f"{path}: {error}") from None
    except ValueError:  # Python converts whole numbers of at most so many digits
        raise ProblemError(
            f"{path}: a whole number has more than {sys.get_int_max_str_digits():,} digits; correct it"
        ) from None
    if not isinstance(document, dict):
        raise ProblemError(
            f"{path}: a problem file is a table of names and values, but {shortened(document)} was found"
        )
    return document


_LONG_TABLE = re.compile(r"^(items|transitions)[ \t]*=[ \t]*(?=\[)", re.MULTILINE)
_PLACEHOLDER = "read as JSON"


def _toml_document(text: str) -> dict[str, Any]:
    """Return the document in a TOML text; a long table in it that is also JSON is read as such, which is far faster."""
    found = _LONG_TABLE.search(text) if len(text) > LONG_TEXT else None
    rows, end = (None, 0) if found is None else _json_rows(text, found.end())
    if found is not None and rows is not None:
        rest = f'{text[: found.end()]}"{_PLACEHOLDER}"{text[end:]}'
        _check_toml(rest)
        document = tomllib.loads(rest)
        if document.get(found[1]) == _PLACEHOLDER:  # and it was not in a text or in another table
            check_characters(rows, text)
            return document | {found[1]: rows}
    _check_toml(text)
    return tomllib.loads(text)


def _json_rows(text: str, begin: int) -> tuple[list[Any] | None, int]:
    """Return the JSON list that begins there and where it ends; None where there is none."""
    decoder = json.JSONDecoder(parse_constant=_not_toml)
    try:
        rows, end = decoder.raw_decode(text, begin)
    except json.JSONDecodeError as error:
        # A comma after the last row is TOML, but not JSON.
        comma = text.rfind(",", begin, error.pos + 1)
        bracket = text.find("]", comma)
        if comma < 0 or text[comma + 1 : bracket].strip():
            return None, begin
        try:
            rows, end = json.loads(f"{text[begin:comma]}]", parse_constant=_not_toml), bracket + 1
        except json.JSONDecodeError:
            return None, begin
    return (rows, end) if isinstance(rows, list) else (None, begin)


def _not_toml(word: str) -> None:
    raise json.JSONDecodeError(f"{word} is not TOML", word, 0)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        twice = first_repeated(name for name, _ in pairs)
        raise ProblemError(f"the name {shortened(twice)} is given twice in one table; keep one of them")
    return result


def check_characters(document: object, text: str) -> None:
    """Raise a ProblemError if a JSON text holds half a character, which can be escaped but never be written."""
    if "\\ud" in text or "\\uD" in text:
        try:
            json.dumps(document, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            around = error.object[max(0, error.start - 20) : error.end + 20]
            raise ProblemError(f"half a character (a lone surrogate) was found in {around!r}; correct it") from None


# A key of several parts, as a + b + c with dots for the plus signs; quoted texts, to be skipped; and lines like [this].
_DOTTED = re.compile(r"""(?:(?:(?<![\w-])[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){3,}+""")
_QUOTED_OR_EQUALS = re.compile(r"""=|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'""")
_TABLE = re.compile(r"^[ \t]*+\[[^,\n]*\][ \t]*+(?:#.*)?$", re.MULTILINE)


def _check_toml(text: str) -> None:
    """Refuse what the TOML reader would take very long for, or not survive."""
    for found in _DOTTED.finditer(text):
        dots = found.group().count(".")
        if dots > DEEPEST_KEY:
            line = text.count("\n", 0, found.start()) + 1
            raise ProblemError(f"line {line}: a name with {dots:,} dots is nested too deeply to be in a problem file")
    tables = sum(1 for _ in _TABLE.finditer(text)) if text.count("[") > MOST_TABLES else 0
    if tables > MOST_TABLES:
        raise ProblemError(
            f"it has {tables:,} tables; at most {MOST_TABLES:,} are read: write long tables as CSV files beside it"
        )
    if text.count("=") > MOST_ENTRIES:
        entries = sum(1 for found in _QUOTED_OR_EQUALS.finditer(text) if found.group() == "=")
        if entries > MOST_ENTRIES:
            raise ProblemError(
                f"it has {entries:,} names with values; at most {MOST_ENTRIES:,} are read: "
                "write long tables as CSV files beside it, or use the .npz form"
            )


def check_document(document: Mapping[str, Any], source: str) -> None:
    """Raise a ProblemError that names the place where a document departs from the schema."""
    import jsonschema

    if document.get("format") != FORMAT:
        raise ProblemError(
            f"{source}: its format is {shortened(document.get('format'))}; this version reads {FORMAT!r}: "
            f'begin the file with format = "{FORMAT}"'
        )
    objectives = document.get("objectives")
    for what, count in (
        ("names at its top", len(document)),
        ("objectives", len(objectives) if isinstance(objectives, list) else 0),
    ):
        if count > MOST_KEYS:
            raise ProblemError(
                f"{source}: it has {count:,} {what}; at most {MOST_KEYS:,} are read: is it the right file?"
            )
    # What is long is checked below or when its rows are read; the schema, which is slow, sees the beginning of it.
    sample = {key: value if key == "objectives" else _beginning(value) for key, value in document.items()}
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    errors = list(validator.iter_errors(sample))
    # A mistake in one entry also makes its neighbours "unevaluated": say the mistake itself.
    causes = [error for error in errors if error.validator != "unevaluatedProperties"] or errors
    found = jsonschema.exceptions.best_match(causes)
    if found is not None:
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in found.absolute_path)
        message = found.message if len(found.message) <= 300 else found.message[:297] + "..."
        raise ProblemError(f"{source}: {place.lstrip('.') or 'the file'}: {message}")
    _check_finite(sample, source)
    _check_all(document, source)


def _beginning(value: Any) -> Any:
    """Return a value with only the first entries of its lists and tables."""
    if isinstance(value, list):
        return value[:3]
    if isinstance(value, dict):
        # All the names of "reference" are looked at, and the first of the names that a file may choose itself.
        return {key: _beginning(value[key]) for key in islice(value, 10)}
    return value


def _check_all(document: Mapping[str, Any], source: str) -> None:
    """Check every entry of what may be long; the schema has seen that the first are right."""
    for key in ("states", "actions", "ends"):
        _check_texts(document.get(key, ()), f"{source}: {key}")
    for label, texts in document.get("labels", {}).items():
        _check_texts(texts, f"{source}: labels.{shortened(label)}")
    start, reference, places = document.get("start"), document.get("reference", {}), document.get("places")
    for what, table in (("start", start), ("reference.outcome", reference.get("outcome"))):
        for name, amount in table.items() if isinstance(table, dict) else ():
            _check_number(amount, f"{source}: {what}: {shortened(name)}")
    for name, place in places.items() if isinstance(places, dict) else ():
        if not isinstance(place, list) or len(place) != 2:
            raise ProblemError(f"{source}: places: {shortened(name)}: {shortened(place)} is not a pair of numbers x, y")
        for amount in place:
            _check_number(amount, f"{source}: places: {shortened(name)}")


def _check_texts(texts: Any, where: str) -> None:
    if not isinstance(texts, Sequence) or isinstance(texts, str):
        raise ProblemError(f"{where}: {shortened(texts)} is not a list of texts")
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise ProblemError(f"{where}[{i}]: {shortened(text)} is not a text; put it in quotes")


def _check_number(amount: Any, where: str) -> None:
    if not isinstance(amount, int | float):
        raise ProblemError(f"{where}: {shortened(amount)} is not a number")
    number(amount, where)


def check_length(horizon: int, branches: int) -> None:
    """Raise a ProblemError if so many steps through so many branches could never be worked out."""
    if horizon > LONGEST or horizon * max(1, branches) > MOST_WORK:
        raise ProblemError(
            f"the horizon is {shortened(horizon)} steps through {branches:,} branches; at most {LONGEST:,} steps, and "
            f"steps times branches of at most {MOST_WORK:,}, can be worked out: correct the horizon"
        )


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


def _check_columns(objectives: Sequence[Objective], taken: Sequence[str]) -> None:
    """Raise a ProblemError if an objective is called like another column of the table."""
    for o in objectives:
        if o.name in taken:
            raise ProblemError(f"an objective cannot be called {o.name!r}: that is a column of its own; rename it")


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
    _check_columns(objectives, ("name",))
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
    _check_columns(objectives, (*TRANSITION_COLUMNS, "step"))
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
        table = read_table(path.parent / table_name(given, "places"), ["state", "x", "y"])
        return dict(zip(table.texts("state"), zip(table.numbers("x"), table.numbers("y"), strict=True), strict=True))
    return {state: (float(x), float(y)) for state, (x, y) in given.items()}


# --- writing ---------------------------------------------------------------------------------------------------------


def write(problem: Catalogue | MDP, path: Path) -> None:
    """Write a problem as TOML or JSON with its tables beside it; reading it back gives the same problem exactly.

    Everything is checked before anything is written, and the document is written last.
    """
    document: dict[str, Any] = {"format": FORMAT, "kind": "catalogue" if isinstance(problem, Catalogue) else "mdp"}
    document["title"] = problem.title
    if problem.about:
        document["about"] = problem.about
    if isinstance(problem, Catalogue):
        part, tables = _catalogue_parts(problem, path)
    else:
        part, tables = _mdp_parts(problem, path)
    document |= part
    document["objectives"] = [{"name": o.name, "unit": o.unit, "goal": o.goal} for o in problem.objectives]
    reference: dict[str, Any] = {"name": problem.reference.name}
    if problem.reference.outcome is not None:
        reference["outcome"] = {name: float(amount) for name, amount in problem.reference.outcome.items()}
    document["reference"] = reference

    check_document(document, f"{path} cannot be written")
    as_json = path.suffix.lower() == ".json"
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n" if as_json else toml_text(document)
    try:
        if not as_json:
            _check_toml(text)
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
    """A table that is going to be written."""

    path: Path
    header: Sequence[str]
    rows: Iterable[Sequence[object]]


def _check_own(table: Path, document: Path) -> None:
    """Raise a ProblemError if a table exists that is not named by an earlier version of the document."""
    name = json.dumps(table.name, ensure_ascii=False)[1:-1].encode()
    if table.exists() and not (document.is_file() and name in document.read_bytes()):
        raise ProblemError(
            f"there is a file {table} already, which is not a table of {document.name}; "
            "move it away, or choose another name for the problem"
        )


def _catalogue_parts(catalogue: Catalogue, path: Path) -> tuple[dict[str, Any], list[_Written]]:
    """Return a catalogue's part of the document and its table."""
    _check_columns(catalogue.objectives, ("name",))
    header = ["name", *(o.name for o in catalogue.objectives), *catalogue.labels]
    labels = zip(*catalogue.labels.values(), strict=True) if catalogue.labels else [()] * len(catalogue.names)
    rows = zip(catalogue.names, catalogue.values.tolist(), labels, strict=True)
    table = _Written(
        path.with_name(f"{path.stem}.csv"), header, ([name, *amounts, *texts] for name, amounts, texts in rows)
    )
    return {"items": table.path.name}, [table]


def _mdp_parts(mdp: MDP, path: Path) -> tuple[dict[str, Any], list[_Written]]:
    """Return an MDP's part of the document and its tables."""
    _check_columns(mdp.objectives, (*TRANSITION_COLUMNS, "step"))
    check_length(mdp.horizon, sum(len(layer.target) for layer in mdp.layers) if len(mdp.layers) == 1 else 1)
    timed = len(mdp.layers) > 1
    header = [*(["step"] if timed else []), *TRANSITION_COLUMNS, *(o.name for o in mdp.objectives)]

    def rows() -> Iterator[list[object]]:
        for step, layer in enumerate(mdp.layers):
            state, action, prob, target, reward = (column.tolist() for column in branches(layer))
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
        del part["states"]  # the rows name them all, in order
    if mdp.nothing_action is not None:
        part["nothing_action"] = mdp.actions[mdp.nothing_action]
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
    """Return the places of the states that there are; those left out as unreachable may have had one, too."""
    known = set(mdp.states) if mdp.places else set()
    return {state: (float(x), float(y)) for state, (x, y) in mdp.places.items() if state in known}


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
