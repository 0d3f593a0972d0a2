"""Where problems come from: ``load`` finds a bundled example, reads a file, or asks another library.

Each source is a module of its own, imported when it is first needed. A source is one function ``read_...(name, *,
options)``; the tables below say which function reads what.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.problems.catalogue import Catalogue
from tradeoff.problems.mdp import MDP
from tradeoff.problems.pointset import PointSet

AnyProblem: TypeAlias = Catalogue | MDP | PointSet

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"

# What is written before the colon of "scheme:name", and the function in this package that reads it.
SCHEMES = {
    "file": "files.reading.read",
    "npz": "files.npz.read",
    "table": "tables.catalogues.read_table",
    "log": "tables.logged.read_log",
    "minari": "tables.logged.read_minari",
    "gym": "environments.reading.read_gym",
    "mo-gym": "environments.reading.read_mo_gym",
    "network": "networks.reading.read_network",
    "umb": "checkers.umb.read_umb",
    "prism": "checkers.storm.read_prism",
    "jani": "checkers.storm.read_jani",
    "drn": "checkers.storm.read_drn",
    "explicit": "checkers.storm.read_explicit",
    "python": "code.read_python",
}

# Files are known by how their names end.
SUFFIXES = {
    ".toml": "file", ".json": "file", ".npz": "npz",
    ".csv": "table", ".tsv": "table", ".xlsx": "table", ".parquet": "table",
    ".graphml": "network", ".umb": "umb", ".prism": "prism", ".nm": "prism", ".pm": "prism", ".jani": "jani",
    ".drn": "drn", ".tra": "explicit",
}  # fmt: skip

# Objects of other libraries, by the library and the class they descend from; a library that is not loaded has none.
OBJECTS = {
    ("networkx", "Graph"): "networks.reading.from_graph",
    ("gymnasium", "Env"): "environments.reading.from_environment",
    ("minari", "MinariDataset"): "tables.logged.from_minari",
}

NAMES_OF_FILES = {"file", "npz", "table", "log", "network", "umb", "prism", "jani", "drn", "explicit"}

# Reading these imports modules that the name chooses, or calls their code. The others only read data: files are parsed,
# Storm builds models in a process of its own, and a Minari dataset is refused where its environment would have to be made.
RUN_CODE = {"python", "gym", "mo-gym"}


def examples() -> list[str]:
    """Return the names of the bundled problems."""
    return sorted(path.stem for path in EXAMPLES.glob("*.toml"))


def load(source: object, **options: Any) -> AnyProblem:
    """Return the problem called ``source``.

    It is the name of a bundled problem, a file, "scheme:name" for what a file name cannot say (``gym:FrozenLake-v1``), or
    an object of another library: a networkx graph, a gymnasium environment, anything with ``best(weights)``.
    ``options`` are the source's own; what it does not know is refused.

    >>> load("dependent")
    <MDP 'dependent': 2 states, 5 actions, 3 objectives, 1 steps>
    """
    if not isinstance(source, str | Path):
        return _call(_reader_of_object(source), source, options)
    if isinstance(source, str) and source in examples():
        return _call("files.reading.read", EXAMPLES / f"{source}.toml", options, source)
    scheme, colon, name = str(source).partition(":")
    if isinstance(source, str) and colon and scheme in SCHEMES:
        if scheme not in NAMES_OF_FILES:
            return _call(SCHEMES[scheme], name, options)
        path: Path = Path(name)
    else:
        scheme, path = "", Path(source)
    try:
        _check_file(path)
        return _call(SCHEMES[scheme or _scheme_of_file(path)], path, options)
    except OSError as error:
        shown = str(source) if len(str(source)) <= 300 else str(source)[:297] + "..."
        raise ProblemError(f"{shown} cannot be read: {error.strerror}; check the name and the permissions") from None


def runs_code(source: str | Path) -> bool:
    """Return whether ``load(source)`` would import or call code that the name chooses.

    A name that comes from a file, a log or a database must not be loaded where this is true: only from the command
    line, or from Python.

    >>> runs_code("python:os:abort"), runs_code("gym:FrozenLake-v1"), runs_code("coffee"), runs_code("python.toml")
    (True, True, False, False)
    """
    scheme, colon, _ = str(source).partition(":")
    return isinstance(source, str) and bool(colon) and scheme in RUN_CODE


def _check_file(path: Path) -> None:
    scheme, colon, _ = str(path).partition(":")
    if not path.exists() and colon and scheme.replace("-", "").isalpha() and len(scheme) > 1:
        raise ProblemError(
            f"there is no file {str(path)!r}, and {scheme!r} is not the name of a kind of source; before the colon can "
            f"stand: {', '.join(SCHEMES)}"
        )
    if not path.exists():
        raise ProblemError(
            f"there is no file {str(path)!r} and no bundled problem of that name; bundled are {', '.join(examples())}"
        )
    if path.is_dir():
        raise ProblemError(f"{str(path)!r} is a folder; name a .toml, .json or .npz file, or another that is known")
    if not path.is_file():
        raise ProblemError(f"{str(path)!r} is a device or a pipe, which has no end; name a file")


def _scheme_of_file(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ProblemError(f"{path}: files ending in {suffix!r} are not known; known are {', '.join(SUFFIXES)}")
    return SUFFIXES[suffix]


def _reader_of_object(source: object) -> str:
    for (library, name), reader in OBJECTS.items():
        if library in sys.modules and isinstance(source, getattr(sys.modules[library], name, ())):
            return reader
    if callable(getattr(source, "best", None)):
        return "code.from_object"
    raise ArgumentError(
        f"a problem cannot be made from {type(source).__name__!r}; give a name, a file, a networkx graph, a gymnasium "
        "environment, or an object with best(weights)"
    )


def _call(reader: str, source: Any, options: dict[str, Any], name: str | None = None) -> AnyProblem:
    """Call the function that reads this kind of source, with options that it knows."""
    module, _, function = reader.rpartition(".")
    read: Callable[..., AnyProblem] = getattr(import_module(f"tradeoff.sources.{module}"), function)
    known = [p.name for p in inspect.signature(read).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for option in options:
        if option not in known:
            advice = f"it knows {', '.join(known)}" if known else "it takes none"
            raise ArgumentError(f"{option!r} is not an option of the source {name or str(source)!r:.120}; {advice}")
    return read(source, **options)


def save(problem: AnyProblem, path: str | Path) -> None:
    """Write a problem to a .toml or .json file (with its tables beside it as .csv) or to a compact .npz file.

    An earlier file of that name is replaced together with its tables; a table that is not its own is never touched.
    """
    from tradeoff.sources.files import npz, writing

    path = Path(path)
    if isinstance(problem, PointSet) or not problem.storable:
        raise ProblemError(f"{path} cannot be written: {problem.name!r} is something that only its program knows")
    try:
        match path.suffix.lower():
            case ".toml" | ".json" | ".npz" if not path.parent.is_dir():
                raise ProblemError(f"{path} cannot be written: there is no folder {str(path.parent)!r}; make it first")
            case ".toml" | ".json":
                writing.write(problem, path)
            case ".npz":
                npz.write(problem, path)
            case suffix:
                raise ProblemError(f"{path}: problems are written to .toml, .json or .npz, not to {suffix!r}")
    except OSError as error:
        raise ProblemError(f"{path} cannot be written: {error.strerror}; check the name and the permissions") from None
    except UnicodeEncodeError as error:
        text = error.object[max(0, error.start - 20) : error.end + 20]
        raise ProblemError(f"{path} cannot be written: {text!r} holds half a character; correct that text") from None
