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
    from tradeoff.decisions import group, ranking, what_if, why_not
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
    from tradeoff.evidence import Answer
    from tradeoff.interview import Interview
    from tradeoff.mdp.model import MDP
    from tradeoff.mdp.rollouts import Rollouts
    from tradeoff.mdp.stories import compress, represent
    from tradeoff.model import (
        NOTHING,
        Item,
        Lottery,
        Mixture,
        Objective,
        OptimalPolicy,
        Option,
        Policy,
        Question,
        Recommendation,
        Reference,
        Reply,
        StochasticPolicy,
        Trajectory,
    )
    from tradeoff.problem import Problem, dilute
    from tradeoff.problems.catalogue import Catalogue
    from tradeoff.problems.coverage import Coverage
    from tradeoff.problems.pointset import PointSet
    from tradeoff.simulation.respondents import LinearRespondent
    from tradeoff.sources import examples, load, save
    from tradeoff.strategies.prior import learn_prior

# Each public name and the module it lives in. They are imported when first used: `tradeoff --help` needs none of them.
_HOME = {
    "MDP": "mdp.model",
    "NOTHING": "model",
    "Option": "model",
    "Answer": "evidence",
    "ArgumentError": "errors",
    "Catalogue": "problems.catalogue",
    "Coverage": "problems.coverage",
    "Interview": "interview",
    "Item": "model",
    "LinearRespondent": "simulation.respondents",
    "LogError": "errors",
    "Lottery": "model",
    "Mixture": "model",
    "Objective": "model",
    "OptimalPolicy": "model",
    "PointSet": "problems.pointset",
    "Policy": "model",
    "Problem": "problem",
    "ProblemError": "errors",
    "ProblemWarning": "errors",
    "Question": "model",
    "Recommendation": "model",
    "Reference": "model",
    "Reply": "model",
    "Rollouts": "mdp.rollouts",
    "StochasticPolicy": "model",
    "StoreError": "errors",
    "TooLargeError": "errors",
    "TradeoffError": "errors",
    "Trajectory": "model",
    "UndecidedError": "errors",
    "compress": "mdp.stories",
    "cover": "covering",
    "dilute": "problem",
    "examples": "sources",
    "group": "decisions",
    "learn_prior": "strategies.prior",
    "load": "sources",
    "ranking": "decisions",
    "represent": "mdp.stories",
    "save": "sources",
    "what_if": "decisions",
    "why_not": "decisions",
}

__all__ = [
    "MDP",
    "NOTHING",
    "Answer",
    "ArgumentError",
    "Catalogue",
    "Coverage",
    "Interview",
    "Item",
    "LinearRespondent",
    "LogError",
    "Lottery",
    "Mixture",
    "Objective",
    "OptimalPolicy",
    "Option",
    "PointSet",
    "Policy",
    "Problem",
    "ProblemError",
    "ProblemWarning",
    "Question",
    "Recommendation",
    "Reference",
    "Reply",
    "Rollouts",
    "StochasticPolicy",
    "StoreError",
    "TooLargeError",
    "TradeoffError",
    "Trajectory",
    "UndecidedError",
    "compress",
    "cover",
    "dilute",
    "examples",
    "group",
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
        return getattr(import_module(f"tradeoff.{_HOME[name]}"), name)
    raise AttributeError(f"module 'tradeoff' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*(name for name in globals() if name.startswith("__")), *__all__]
