"""Where problems come from: ``load`` finds a bundled example or reads a file."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from tradeoff.errors import ProblemError
from tradeoff.problems.catalogue import Catalogue
from tradeoff.problems.mdp import MDP

AnyProblem: TypeAlias = Catalogue | MDP

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def examples() -> list[str]:
    """Return the names of the bundled problems."""
    return sorted(path.stem for path in EXAMPLES.glob("*.toml"))


def load(source: str | Path, *, renormalise: bool = False) -> AnyProblem:
    """Return the problem called ``source``: a bundled one by name, or a .toml, .json or .npz file.

    >>> load("dependent")
    <MDP 'dependent': 2 states, 5 actions, 3 objectives, 1 steps>
    """
    from tradeoff.sources import files

    if isinstance(source, str) and source in examples():
        return files.read(EXAMPLES / f"{source}.toml", renormalise=renormalise)
    path = Path(source)
    try:
        return _load_file(path, source, renormalise)
    except OSError as error:
        name = str(source) if len(str(source)) <= 300 else str(source)[:297] + "..."
        raise ProblemError(f"{name} cannot be read: {error.strerror}; check the name and the permissions") from None


def _load_file(path: Path, source: str | Path, renormalise: bool) -> AnyProblem:
    from tradeoff.sources import files, npz

    if not path.exists():
        raise ProblemError(
            f"there is no file {str(source)!r} and no bundled problem of that name; bundled are {', '.join(examples())}"
        )
    if path.is_dir():
        raise ProblemError(f"{str(source)!r} is a folder; name a .toml, .json or .npz file")
    if not path.is_file():
        raise ProblemError(f"{str(source)!r} is a device or a pipe, which has no end; name a .toml, .json or .npz file")
    match path.suffix.lower():
        case ".toml" | ".json":
            return files.read(path, renormalise=renormalise)
        case ".npz":
            return npz.read(path)
        case suffix:
            raise ProblemError(f"{path}: files ending in {suffix!r} are not known; use .toml, .json or .npz")


def save(problem: AnyProblem, path: str | Path) -> None:
    """Write a problem to a .toml or .json file (with its tables beside it as .csv) or to a compact .npz file.

    An earlier file of that name is replaced together with its tables; a table that is not its own is never touched.
    """
    from tradeoff.sources import files, npz

    path = Path(path)
    try:
        match path.suffix.lower():
            case ".toml" | ".json" | ".npz" if not path.parent.is_dir():
                raise ProblemError(f"{path} cannot be written: there is no folder {str(path.parent)!r}; make it first")
            case ".toml" | ".json":
                files.write(problem, path)
            case ".npz":
                npz.write(problem, path)
            case suffix:
                raise ProblemError(f"{path}: problems are written to .toml, .json or .npz, not to {suffix!r}")
    except OSError as error:
        raise ProblemError(f"{path} cannot be written: {error.strerror}; check the name and the permissions") from None
    except UnicodeEncodeError as error:
        text = error.object[max(0, error.start - 20) : error.end + 20]
        raise ProblemError(f"{path} cannot be written: {text!r} holds half a character; correct that text") from None
