"""Problems that a Python program makes: ``python:module:name``, or any object with ``best(weights)``."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tradeoff.errors import ProblemError
from tradeoff.problems.catalogue import Catalogue
from tradeoff.problems.mdp import MDP
from tradeoff.problems.pointset import PointSet
from tradeoff.sources.options import wishes

if TYPE_CHECKING:
    from tradeoff.sources import AnyProblem


def read_python(name: str) -> AnyProblem:
    """Return the problem (or a function that makes it) called ``name`` in a module: "module:name".

    The module is imported, so its code runs: name only programs you trust.
    """
    module, colon, attribute = name.partition(":")
    if not colon or not module or not attribute:
        raise ProblemError(f"python:{name} is not of the form python:MODULE:NAME, such as python:knapsack:problem")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = import_module(module)
    except ImportError as error:
        raise ProblemError(
            f"the module {module!r} cannot be imported: {error}; name a file here without its .py"
        ) from None
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ProblemError(f"there is no {part!r} in {module!r}; check the name after the second colon")
        found = getattr(found, part)
    if isinstance(found, Catalogue | MDP | PointSet):
        return found
    if callable(found) and not hasattr(found, "best"):
        found = found()
    return from_object(found)


def from_object(source: Any, *, objectives: object = None, name: object = None) -> AnyProblem:
    """Return an object with ``best(weights)`` as a problem; its ``objectives`` say what the numbers mean."""
    if isinstance(source, Catalogue | MDP | PointSet):
        return source
    if not callable(getattr(source, "best", None)):
        raise ProblemError(f"{source!r:.80} has no method best(weights); see tradeoff.PointSet")
    given: Any = getattr(source, "objectives", None) if objectives is None else objectives
    if given is None:
        raise ProblemError(
            f"{type(source).__name__!r} does not say what its numbers mean; give it a list `objectives`, or pass "
            "objectives=..."
        )
    if isinstance(given, str):
        from tradeoff.model import Objective

        given = [Objective(name, "", goal or "max") for name, goal in wishes(given).items()]
    called = str(name or getattr(source, "name", type(source).__name__))
    return PointSet(
        source.best, given, name=called, title=getattr(source, "title", ""), about=getattr(source, "about", "")
    )
