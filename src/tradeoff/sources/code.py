"""Problems defined in Python: ``python:module:name``, or any object with ``best(weights)``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tradeoff.errors import ArgumentError, ProblemError, TradeoffError
from tradeoff.model import Objective
from tradeoff.problem import ScaledProblem
from tradeoff.problems.pointset import GAP, PointSet
from tradeoff.sources.options import flag, parse_objectives

if TYPE_CHECKING:
    from tradeoff.sources import AnyProblem

OURS = ScaledProblem  # instances of its subclasses are problems already


def read_python(name: str, *, objectives: object = None, both_ways: object = None) -> AnyProblem:
    """Return the problem ``name``, given as "module:name": an object, or a function or class that returns one.

    The module is imported, so its code runs: name only modules you trust.
    """
    module, colon, attribute = name.partition(":")
    if not colon or not module or not attribute:
        raise ProblemError(f"python:{name} is not of the form python:MODULE:NAME, such as python:knapsack:problem")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = import_module(module)
    except TradeoffError:
        raise
    except ImportError as error:
        raise ProblemError(f"the module {module!r} cannot be imported: {error}; {_remedy(error, module)}") from error
    except SystemExit as error:
        raise ProblemError(
            f"importing the module {module!r} ends the program with SystemExit: {error!s:.200}; put what only a script "
            "should do under: if __name__ == '__main__':"
        ) from error
    except Exception as error:
        raise ProblemError(f"importing {module!r} fails with {type(error).__name__}: {error!s:.200}") from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ProblemError(f"there is no {part!r} in {module!r}; check the name after the second colon")
        found = getattr(found, part)
    if callable(found) and (isinstance(found, type) or not hasattr(found, "best")):
        found = _made(found, name)
    return from_object(found, objectives=objectives, both_ways=both_ways)


def _remedy(error: ImportError, module: str) -> str:
    """Return what to do when a module, or something it imports, cannot be imported."""
    if error.name is not None and f"{module}.".startswith(f"{error.name}."):
        return "name a file in this folder, without its .py"
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        return f"{module!r} imports {error.name!r}: install it, or put it in this folder"
    return f"check what {module!r} imports"


def _made(make: Any, name: str) -> Any:
    """Call a function or class without arguments, and return the result."""
    try:
        return make()
    except TradeoffError:
        raise
    except (Exception, SystemExit) as error:
        raise ProblemError(
            f"{name} was called to make a problem and failed with {type(error).__name__}: {error!s:.200}"
        ) from error


def from_object(source: Any, *, objectives: object = None, both_ways: object = None, name: object = None) -> AnyProblem:
    """Return an object with ``best(weights)`` as a problem; its ``objectives`` describe the values it returns.

    ``both_ways=False``, as an argument or an attribute, means that it cannot minimise an objective it normally maximises,
    or the reverse. An attribute ``gap`` says how far its results may be from the optimum.
    """
    if isinstance(source, OURS):
        if objectives is not None or both_ways is not None:
            raise ArgumentError(f"{source!r} has its objectives already; leave out objectives and both_ways")
        return cast("AnyProblem", source)
    if not callable(getattr(source, "best", None)):
        raise ProblemError(f"{source!r:.80} has no method best(weights); see tradeoff.PointSet")
    given: Any = getattr(source, "objectives", None) if objectives is None else objectives
    if given is None:
        raise ProblemError(
            f"{type(source).__name__!r} does not say what its numbers mean; give it a list `objectives`, or pass "
            "objectives=..."
        )
    named, notes = _objectives(given)
    both = getattr(source, "both_ways", True) if both_ways is None else both_ways
    made = PointSet(
        source.best,
        named,
        both_ways=flag("both_ways", both),
        gap=getattr(source, "gap", GAP),
        reference=getattr(source, "reference", None),
        name=str(name or getattr(source, "name", type(source).__name__)),
        title=getattr(source, "title", ""),
        about=getattr(source, "about", ""),
    )
    made.notes += notes
    return made


def _objectives(given: Any) -> tuple[list[Objective], list[str]]:
    """Return the objectives (given as Objective, as "price:min", or as a mapping) and notes on what was assumed."""
    found: list[Objective] = []
    notes: list[str] = []
    for part in [given] if isinstance(given, str | Mapping) else given:
        if isinstance(part, Objective):
            found.append(part)
            continue
        for name, goal in parse_objectives(part).items():
            found.append(Objective(name, "", goal or "max"))
            if goal is None:
                notes.append(f"more {name} is taken to be better, because nothing else was said")
    return found, notes
