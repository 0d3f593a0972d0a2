"""tradeoff: the plan that is best for one person, found by asking a few easy questions.

>>> import tradeoff
>>> trip = tradeoff.load("commute")
>>> best, = trip.best([[1.0] * len(trip.objectives)])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tradeoff._version import __version__ as __version__

if TYPE_CHECKING:
    from tradeoff.covering import cover
    from tradeoff.decisions import group, ranking, why_not
    from tradeoff.elsewhere import earlier_answers
    from tradeoff.errors import (
        ArgumentError,
        LogError,
        ProblemError,
        ProblemWarning,
        StoreError,
        TooLargeError,
        TradeoffError,
        UndecidedError,
    )
    from tradeoff.interview import Interview
    from tradeoff.menus import Choice, Graded, Menu
    from tradeoff.model import (
        NOTHING,
        Alternative,
        Answer,
        Item,
        Lottery,
        Mixture,
        Objective,
        OptimalPolicy,
        Policy,
        Question,
        Recommendation,
        Reference,
        StochasticPolicy,
        Trajectory,
    )
    from tradeoff.problem import Problem, dilute
    from tradeoff.problems.catalogue import Catalogue
    from tradeoff.problems.coverage import Coverage
    from tradeoff.problems.mdp import MDP
    from tradeoff.problems.pointset import PointSet
    from tradeoff.problems.rollouts import Rollouts
    from tradeoff.representation import compress, represent
    from tradeoff.sensitivity import what_if
    from tradeoff.sources import examples, load, save
    from tradeoff.sources.tables.comparisons import imported_comparisons
    from tradeoff.strategies.earlier import learn_prior
    from tradeoff.users import ConcaveUser, ContraryUser, DriftingUser, LinearUser, RandomUser, StubbornUser

# Each public name and the module it lives in. They are imported when first used: `tradeoff --help` needs none of them.
_HOME = {
    "MDP": "problems.mdp",
    "NOTHING": "model",
    "Alternative": "model",
    "Answer": "model",
    "ArgumentError": "errors",
    "Catalogue": "problems.catalogue",
    "Choice": "menus",
    "ConcaveUser": "users",
    "ContraryUser": "users",
    "Coverage": "problems.coverage",
    "DriftingUser": "users",
    "Graded": "menus",
    "Interview": "interview",
    "Item": "model",
    "LinearUser": "users",
    "LogError": "errors",
    "Lottery": "model",
    "Menu": "menus",
    "Mixture": "model",
    "Objective": "model",
    "OptimalPolicy": "model",
    "PointSet": "problems.pointset",
    "Policy": "model",
    "Problem": "problem",
    "ProblemError": "errors",
    "ProblemWarning": "errors",
    "Question": "model",
    "RandomUser": "users",
    "Recommendation": "model",
    "Reference": "model",
    "Rollouts": "problems.rollouts",
    "StochasticPolicy": "model",
    "StoreError": "errors",
    "StubbornUser": "users",
    "TooLargeError": "errors",
    "TradeoffError": "errors",
    "Trajectory": "model",
    "UndecidedError": "errors",
    "compress": "representation",
    "cover": "covering",
    "dilute": "problem",
    "earlier_answers": "elsewhere",
    "examples": "sources",
    "group": "decisions",
    "imported_comparisons": "sources.tables.comparisons",
    "learn_prior": "strategies.earlier",
    "load": "sources",
    "ranking": "decisions",
    "represent": "representation",
    "save": "sources",
    "what_if": "sensitivity",
    "why_not": "decisions",
}

__all__ = [
    "MDP",
    "NOTHING",
    "Alternative",
    "Answer",
    "ArgumentError",
    "Catalogue",
    "Choice",
    "ConcaveUser",
    "ContraryUser",
    "Coverage",
    "DriftingUser",
    "Graded",
    "Interview",
    "Item",
    "LinearUser",
    "LogError",
    "Lottery",
    "Menu",
    "Mixture",
    "Objective",
    "OptimalPolicy",
    "PointSet",
    "Policy",
    "Problem",
    "ProblemError",
    "ProblemWarning",
    "Question",
    "RandomUser",
    "Recommendation",
    "Reference",
    "Rollouts",
    "StochasticPolicy",
    "StoreError",
    "StubbornUser",
    "TooLargeError",
    "TradeoffError",
    "Trajectory",
    "UndecidedError",
    "compress",
    "cover",
    "dilute",
    "earlier_answers",
    "examples",
    "group",
    "imported_comparisons",
    "learn_prior",
    "load",
    "ranking",
    "represent",
    "save",
    "what_if",
    "why_not",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        import_module("tradeoff.presentation.notebook")  # notebooks show values of the library as tables
        return getattr(import_module(f"tradeoff.{_HOME[name]}"), name)
    raise AttributeError(f"module 'tradeoff' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
