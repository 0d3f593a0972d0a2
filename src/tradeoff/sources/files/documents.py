"""Read and check the document of a problem file: TOML or JSON, with its tables inline or beside it as CSV.

The format is described by ``problem.schema.json`` and in docs/problem-files.md.
"""

from __future__ import annotations

import json
import math
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from tradeoff.errors import ProblemError
from tradeoff.sources.files.columns import first_repeated, number
from tradeoff.sources.limits import MOST_KEYS, check_characters
from tradeoff.sources.messages import shortened

FORMAT = "tradeoff-problem/1"
SCHEMA = Path(__file__).with_name("problem.schema.json")
LARGEST_FILE = 256 << 20
MOST_ENTRIES = 100_000  # names with values in a TOML file, because reading TOML is slow
LONG_TEXT = 1 << 20  # characters; only longer TOML files can have too many entries
MOST_TABLES = 5_000  # tables in a TOML file
DEEPEST_KEY = 100  # dots in a TOML key
TOO_DEEP = "brackets are nested too deeply for a problem file"


def read_document(path: Path) -> dict[str, Any]:
    """Return the document in a file without checking it against the schema."""
    size = path.stat().st_size
    if size > LARGEST_FILE:
        raise ProblemError(
            f"{path} has {size / 2**20:,.0f} MB; problem files may have at most {LARGEST_FILE >> 20} MB: "
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
    except ValueError:  # Python limits the digits of an integer
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
    """Return the document in a TOML text; a long table that is also valid JSON is read as JSON, which is far faster."""
    found = _LONG_TABLE.search(text) if len(text) > LONG_TEXT else None
    rows, end = (None, 0) if found is None else _json_rows(text, found.end())
    if found is not None and rows is not None:
        rest = f'{text[: found.end()]}"{_PLACEHOLDER}"{text[end:]}'
        check_toml(rest)
        document = tomllib.loads(rest)
        if document.get(found[1]) == _PLACEHOLDER:  # otherwise it was in a string or in another table
            check_characters(rows, text)
            return document | {found[1]: rows}
    check_toml(text)
    return tomllib.loads(text)


def _json_rows(text: str, begin: int) -> tuple[list[Any] | None, int]:
    """Return the JSON list that begins at ``begin`` (None if there is none) and where it ends."""
    decoder = json.JSONDecoder(parse_constant=_not_toml)
    try:
        rows, end = decoder.raw_decode(text, begin)
    except json.JSONDecodeError as error:
        # TOML allows a comma after the last row, JSON does not.
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


# A key with many dots, as in a.b.c.d; a quoted string, to be skipped, or an equals sign; a line like [this].
_DOTTED = re.compile(r"""(?:(?:(?<![\w-])[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){3,}+""")
_QUOTED_OR_EQUALS = re.compile(r"""=|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'""")
_TABLE = re.compile(r"^[ \t]*+\[[^,\n]*\][ \t]*+(?:#.*)?$", re.MULTILINE)


def check_toml(text: str) -> None:
    """Raise a ProblemError for a text that would take the TOML reader very long, or crash it."""
    for found in _DOTTED.finditer(text):
        dots = found.group().count(".")
        if dots > DEEPEST_KEY:
            line = text.count("\n", 0, found.start()) + 1
            raise ProblemError(f"line {line}: a name with {dots:,} dots is nested too deeply for a problem file")
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
    """Raise a ProblemError that says where a document departs from the schema."""
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
    # Validation is slow, so it sees only the beginning of long parts; the rest is checked below or when rows are read.
    sample = {key: value if key == "objectives" else _beginning(value) for key, value in document.items()}
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    errors = list(validator.iter_errors(sample))
    # A mistake in one entry also makes its neighbours "unevaluated": report the mistake itself.
    causes = [error for error in errors if error.validator != "unevaluatedProperties"] or errors
    found = jsonschema.exceptions.best_match(causes)
    if found is not None:
        location = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in found.absolute_path)
        message = found.message if len(found.message) <= 300 else found.message[:297] + "..."
        raise ProblemError(f"{source}: {location.lstrip('.') or 'the file'}: {message}")
    _check_finite(sample, source)
    _check_all(document, source)


def _beginning(value: Any) -> Any:
    """Return a value with only the first entries of its lists and tables."""
    if isinstance(value, list):
        return value[:3]
    if isinstance(value, dict):
        # Check all names that the schema fixes (those of "reference"), but only the first of those a file can choose.
        return {key: _beginning(value[key]) for key in islice(value, 10)}
    return value


def _check_all(document: Mapping[str, Any], source: str) -> None:
    """Check every entry of the parts that may be long, of which the schema has checked only the beginning."""
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
        raise ProblemError(f"{where}: {shortened(texts)} is not a list of strings")
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise ProblemError(f"{where}[{i}]: {shortened(text)} is not a string; put it in quotes")


def _check_number(amount: Any, where: str) -> None:
    if not isinstance(amount, int | float):
        raise ProblemError(f"{where}: {shortened(amount)} is not a number")
    number(amount, where)


def _check_finite(value: Any, where: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ProblemError(f"{where} is {value}; every number must be finite")
    if isinstance(value, dict):
        for key, part in value.items():
            _check_finite(part, f"{where}: {key}")
    elif isinstance(value, list):
        for i, part in enumerate(value):
            _check_finite(part, f"{where}[{i}]")
