"""Load problems: bundled examples, files, and objects of other libraries.

Each source is a function ``read(name, *, options)`` or ``read(name, options: SomeDataclass)``, whose module is imported on
first use. The tables below list the sources in this package. Plug-ins register theirs as entry points
(docs/how-to/new-source.md); those of tradeoff's own distribution, ``tradeoff_gym`` and ``tradeoff_checkers``, do the same.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeAlias, cast

from tradeoff.errors import ArgumentError, ProblemError, TradeoffError
from tradeoff.mdp.model import MDP
from tradeoff.problem import ScaledProblem
from tradeoff.problems.catalogue import Catalogue
from tradeoff.problems.coverage import Coverage
from tradeoff.problems.curves import curved
from tradeoff.problems.limits import split
from tradeoff.problems.pointset import PointSet

AnyProblem: TypeAlias = Catalogue | MDP | PointSet | Coverage
Reader: TypeAlias = Callable[..., AnyProblem]

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
# Groups of entry points: sources, those among them that never run code chosen by the name, and readers of objects by class.
SOURCES, DATA_SOURCES, OBJECT_READERS = "tradeoff.sources", "tradeoff.data_sources", "tradeoff.objects"

# For each scheme in "scheme:name", the function in this package that reads it.
SCHEMES = {
    "file": "files.reading.read",
    "npz": "files.npz.read",
    "table": "tables.catalogues.read_table",
    "log": "tables.logged.read_log",
    "minari": "tables.logged.read_minari",
    "network": "networks.reading.read_network",
    "python": "code.read_python",
}

# The scheme that reads a file, by the end of its name.
SUFFIXES = {
    ".toml": "file", ".json": "file", ".npz": "npz",
    ".csv": "table", ".tsv": "table", ".xlsx": "table", ".parquet": "table",
    ".graphml": "network",
}  # fmt: skip

OTHER_TABLES = (".xls", ".ods", ".numbers")  # which are not read

# Objects of other libraries, by library and base class. A library that is not loaded cannot have any.
OBJECTS = {
    ("networkx", "Graph"): "networks.reading.from_graph",
    ("minari", "MinariDataset"): "tables.logged.from_minari",
    ("pandas", "DataFrame"): "tables.frames.from_frame",
    ("polars", "DataFrame"): "tables.frames.from_frame",
}

NAMES_OF_FILES = set(SUFFIXES.values()) | {"log"}

# Loading these runs code chosen by the name. The others only read data: files are parsed, and a Minari dataset is refused if
# reading it would mean creating its environment.
RUN_CODE = {"python"}


def examples() -> list[str]:
    """Return the names of the bundled problems."""
    return sorted(path.stem for path in EXAMPLES.glob("*.toml"))


def load(source: object, **options: Any) -> AnyProblem:
    """Return the problem called ``source``.

    ``source`` is the name of a bundled problem, a file, "scheme:name" for anything else (``gym:FrozenLake-v1``), or an
    object of another library: a pandas or polars frame, a networkx graph, a gymnasium environment, an Optuna study, a
    pymoo result, a CVXPY problem, anything with ``best(weights)``.
    Which ``options`` there are depends on the source; an unknown option is an error. ``limit`` ("price <= 500; balcony =
    yes", or a list) works with every source that supports limits, ``curves`` ("concave" or "monotone") with tables of items.

    >>> load("dependent")
    <MDP 'dependent': 2 states, 5 actions, 3 objectives, 1 steps>
    """
    limits, curves = options.pop("limit", None), options.pop("curves", None)
    if limits is not None or curves is not None:
        found: ScaledProblem = load(source, **options)
        found = found if limits is None else found.limited(*split(limits))
        return cast(AnyProblem, found if curves is None else curved(found, curves))
    if not isinstance(source, str | Path):
        return _call(_reader_of_object(source), source, options)
    if isinstance(source, str) and source in examples():
        return _call(_built_in(SCHEMES["file"]), EXAMPLES / f"{source}.toml", options, source)
    scheme, name = _split(source)
    if scheme in SCHEMES and scheme not in NAMES_OF_FILES:
        return _call(_built_in(SCHEMES[scheme]), name, options)
    others = plugins()
    if scheme and scheme not in SCHEMES and not _reads_files(others[scheme], others):
        return _call(_registered(others[scheme]), name, options)
    path = Path(name)
    try:
        _check_file(path)
        return _call(_reader_of_scheme(scheme) if scheme else _reader_of_file(path), path, options)
    except OSError as error:
        shown = str(source) if len(str(source)) <= 300 else str(source)[:297] + "..."
        raise ProblemError(f"{shown} cannot be read: {error.strerror}; check the name and the permissions") from None


def runs_code(source: str | Path) -> bool:
    """Return whether ``load(source)`` would run code chosen by the name.

    Such a name may come from the command line or from Python, but must not be loaded if it was read from a file, a log
    or a database. Plug-ins count as running code, unless they are registered as data sources.

    >>> runs_code("python:os:abort"), runs_code("gym:FrozenLake-v1"), runs_code("coffee"), runs_code("python.toml")
    (True, True, False, False)
    """
    if isinstance(source, str) and source in examples():
        return False
    scheme, name = _split(source)
    suffix = Path(name).suffix.lower()
    if scheme in SCHEMES or (suffix in SUFFIXES and not scheme):
        return scheme in RUN_CODE
    point = plugins().get(scheme or suffix or "-")
    return point is not None and point.group != DATA_SOURCES


def plugins() -> dict[str, EntryPoint]:
    """Return the sources of plug-ins, by scheme or by file name ending (".corridor")."""
    points = [point for group in (DATA_SOURCES, SOURCES) for point in entry_points(group=group)]
    points.sort(
        key=lambda point: point.dist is not None and point.dist.name == "tradeoff"
    )  # its own cannot be replaced
    return {point.name: point for point in points}


def _reads_files(scheme: EntryPoint, others: dict[str, EntryPoint]) -> bool:
    """Return whether the scheme of a plug-in is followed by the name of a file: it is registered for an ending as well."""
    endings = (point for name, point in others.items() if name.startswith(".") and name not in SUFFIXES)
    return any(point.value == scheme.value for point in endings)


def _split(source: str | Path) -> tuple[str, str]:
    """Return the scheme of a source ("" for a file) and its name."""
    scheme, colon, name = str(source).partition(":")
    if isinstance(source, str) and colon and (scheme in SCHEMES or (scheme and scheme in plugins())):
        return scheme, name
    return "", str(source)


def _check_file(path: Path) -> None:
    scheme, colon, _ = str(path).partition(":")
    if not path.exists() and colon and scheme.replace("-", "").isalpha() and len(scheme) > 1:
        known = [*SCHEMES, *(name for name in plugins() if not name.startswith("."))]
        raise ProblemError(
            f"there is no file {str(path)!r}, and no kind of source is called {scheme!r}; before the colon, write one of: "
            f"{', '.join(known)}"
        )
    if not path.exists():
        raise ProblemError(
            f"there is no file {str(path)!r} and no bundled problem of that name; the bundled problems are "
            f"{', '.join(examples())}"
        )
    if path.is_dir():
        raise ProblemError(f"{str(path)!r} is a folder; name a .toml, .json or .npz file, or another supported file")
    if not path.is_file():
        raise ProblemError(f"{str(path)!r} is a device or a pipe, which may never end; name a file")


def _reader_of_file(path: Path) -> Reader:
    suffix = path.suffix.lower()
    if suffix in SUFFIXES:
        return _built_in(SCHEMES[SUFFIXES[suffix]])
    if suffix in OTHER_TABLES:
        raise ProblemError(f"{path}: files ending in {suffix!r} are not supported; save the table as .xlsx or .csv")
    others = plugins()
    if suffix in others and suffix:
        return _registered(others[suffix])
    known = [*SUFFIXES, *(name for name in others if name.startswith("."))]
    raise ProblemError(f"{path}: files ending in {suffix!r} are not supported; use one of {', '.join(known)}")


def _reader_of_scheme(scheme: str) -> Reader:
    return _built_in(SCHEMES[scheme]) if scheme in SCHEMES else _registered(plugins()[scheme])


def _reader_of_object(source: object) -> Reader:
    for (library, name), reader in OBJECTS.items():
        if library in sys.modules and isinstance(source, getattr(sys.modules[library], name, ())):
            return _built_in(reader)
    for point in entry_points(group=OBJECT_READERS):  # by class: "gymnasium.Env"
        library, _, name = point.name.rpartition(".")
        if library in sys.modules and isinstance(source, getattr(sys.modules[library], name, ())):
            return _registered(point)
    if callable(getattr(source, "best", None)):
        return _built_in("code.from_object")
    raise ArgumentError(
        f"a problem cannot be made from {type(source).__name__!r}; give a name, a file, a pandas or polars frame, a networkx "
        "graph, a gymnasium environment, an Optuna study, a pymoo result, a CVXPY problem, or an object with best(weights)"
    )


def _built_in(reader: str) -> Reader:
    """Import and return a reader in this package."""
    module, _, function = reader.rpartition(".")
    found: Reader = getattr(import_module(f"tradeoff.sources.{module}"), function)
    return found


def _registered(point: EntryPoint) -> Reader:
    """Import and return a reader that a plug-in has registered."""
    try:
        found: Reader = point.load()
    except TradeoffError:
        raise
    except Exception as error:
        origin = f" of the distribution {point.dist.name!r}" if point.dist else ""
        raise ProblemError(
            f"the source {point.name!r}{origin} ({point.value}) cannot be imported: {type(error).__name__}: {error}; "
            "reinstall it, or tell its authors"
        ) from error
    return found


def _call(read: Reader, source: Any, options: dict[str, Any], name: str | None = None) -> AnyProblem:
    """Call a reader, after checking that it knows the options."""
    kind, known = _options_of(read)
    for option in options:
        if option not in known:
            advice = f"its options are {', '.join(known)}" if known else "it has none"
            raise ArgumentError(f"{option!r} is not an option of the source {name or str(source)!r:.120}; {advice}")
    return read(source, **options) if kind is None else read(source, kind(**options))


def _options_of(read: Reader) -> tuple[Callable[..., Any] | None, list[str]]:
    """Return the dataclass of a reader's options (None if they are keyword arguments) and their names."""
    parameters = list(inspect.signature(read).parameters.values())
    named = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    if len(parameters) != 2 or named:
        return None, named
    kind = parameters[1].annotation
    if isinstance(kind, str):
        kind = getattr(sys.modules[read.__module__], kind)
    return kind, [field.name for field in fields(kind)]


def save(problem: AnyProblem, path: str | Path) -> None:
    """Write a problem to a .toml or .json file (with its tables beside it as .csv) or to a compact .npz file.

    An existing file of that name is replaced together with its tables; tables that belong to other files are not touched.
    """
    from tradeoff.sources.files import npz, writing

    path = Path(path)
    if isinstance(problem, PointSet) or not problem.storable:
        raise ProblemError(f"{path} cannot be written: {problem.name!r}: {problem.why_not_storable}")
    try:
        match path.suffix.lower():
            case ".toml" | ".json" | ".npz" if not path.parent.is_dir():
                raise ProblemError(
                    f"{path} cannot be written: there is no folder {str(path.parent)!r}; create it first"
                )
            case ".toml" | ".json":
                if isinstance(problem, Coverage):
                    raise ProblemError(f"{path}: a coverage is written to .npz, not to {path.suffix!r}")
                writing.write(problem, path)
            case ".npz":
                npz.write(problem, path)
            case suffix:
                raise ProblemError(f"{path}: problems are written to .toml, .json or .npz, not to {suffix!r}")
    except OSError as error:
        raise ProblemError(f"{path} cannot be written: {error.strerror}; check the name and the permissions") from None
    except UnicodeEncodeError as error:
        text = error.object[max(0, error.start - 20) : error.end + 20]
        raise ProblemError(
            f"{path} cannot be written: {text!r} contains half a character (a lone surrogate); correct that text"
        ) from None
