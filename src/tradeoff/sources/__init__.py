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
    from tradeoff.sources import files, npz

    if isinstance(source, str) and source in examples():
        return files.read(EXAMPLES / f"{source}.toml", renormalise=renormalise)
    path = Path(source)
    if not path.exists():
        raise ProblemError(
            f"there is no file {str(source)!r} and no bundled problem of that name; bundled are {', '.join(examples())}"
        )
    if path.is_dir():
        raise ProblemError(f"{str(source)!r} is a folder; name a .toml, .json or .npz file")
    match path.suffix.lower():
        case ".toml" | ".json":
            return files.read(path, renormalise=renormalise)
        case ".npz":
            return npz.read(path)
        case suffix:
            raise ProblemError(f"{path}: files ending in {suffix!r} are not known; use .toml, .json or .npz")


def save(problem: AnyProblem, path: str | Path) -> None:
    """Write a problem to a .toml or .json file (with its tables beside it as .csv) or to a compact .npz file."""
    from tradeoff.sources import files, npz

    path = Path(path)
    match path.suffix.lower():
        case ".toml" | ".json":
            files.write(problem, path)
        case ".npz":
            npz.write(problem, path)
        case suffix:
            raise ProblemError(f"{path}: problems are written to .toml, .json or .npz, not to {suffix!r}")
