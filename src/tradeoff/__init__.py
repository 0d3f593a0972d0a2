"""tradeoff: the plan that is best for one person, found by asking a few easy questions.

>>> import tradeoff
>>> trip = tradeoff.load("commute")
>>> best, = trip.best([[1.0] * len(trip.objectives)])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tradeoff.errors import ArgumentError, ProblemError, ProblemWarning, TooLargeError, TradeoffError
    from tradeoff.model import (
        NOTHING,
        Alternative,
        Item,
        Lottery,
        Mixture,
        Objective,
        OptimalPolicy,
        Policy,
        Reference,
        StochasticPolicy,
        Trajectory,
    )
    from tradeoff.problem import Problem, dilute
    from tradeoff.problems.catalogue import Catalogue
    from tradeoff.problems.mdp import MDP, Rollouts
    from tradeoff.represent import compress, represent
    from tradeoff.sources import examples, load, save

# Each public name and the module it lives in. They are imported when first used: `tradeoff --help` needs none of them.
_HOME = {
    "MDP": "problems.mdp",
    "NOTHING": "model",
    "Alternative": "model",
    "ArgumentError": "errors",
    "Catalogue": "problems.catalogue",
    "Item": "model",
    "Lottery": "model",
    "Mixture": "model",
    "Objective": "model",
    "OptimalPolicy": "model",
    "Policy": "model",
    "Problem": "problem",
    "ProblemError": "errors",
    "ProblemWarning": "errors",
    "Reference": "model",
    "Rollouts": "problems.mdp",
    "StochasticPolicy": "model",
    "TooLargeError": "errors",
    "TradeoffError": "errors",
    "Trajectory": "model",
    "compress": "represent",
    "dilute": "problem",
    "examples": "sources",
    "load": "sources",
    "represent": "represent",
    "save": "sources",
}

__all__ = [
    "MDP",
    "NOTHING",
    "Alternative",
    "ArgumentError",
    "Catalogue",
    "Item",
    "Lottery",
    "Mixture",
    "Objective",
    "OptimalPolicy",
    "Policy",
    "Problem",
    "ProblemError",
    "ProblemWarning",
    "Reference",
    "Rollouts",
    "StochasticPolicy",
    "TooLargeError",
    "TradeoffError",
    "Trajectory",
    "compress",
    "dilute",
    "examples",
    "load",
    "represent",
    "save",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"tradeoff.{_HOME[name]}"), name)
    if name == "__version__":
        from importlib.metadata import version

        return version("tradeoff")
    raise AttributeError(f"module 'tradeoff' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
