"""Which strategies there are, and what the rest of the program has to know about each of them.

A strategy is any callable that takes a problem and options and returns a generator. ``StrategySpec`` adds the few facts
that interviews, studies and simulations need; a plain callable gets the defaults. Installed packages add strategies by
an entry point in the group ``tradeoff.strategies`` whose object is a ``StrategySpec`` or a callable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, TypeAlias

import numpy as np

from tradeoff.errors import ArgumentError
from tradeoff.model import Recommendation
from tradeoff.problem import Problem
from tradeoff.strategies.careful import careful
from tradeoff.strategies.certified import certified
from tradeoff.strategies.paper import paper, prepare_bases
from tradeoff.strategies.replay import Strategy, within_budget, without_identical, without_implied
from tradeoff.strategies.solutions import solutions_of

GROUP = "tradeoff.strategies"

Options: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class StrategySpec:
    """A strategy and what is to be known about it before it runs.

    - ``make(problem, **options)`` returns the generator.
    - ``seeded``: it takes a ``seed``; studies and the command line give it theirs.
    - ``accepts_observations``: it can be sent answers that it did not ask for, and statements.
    - ``menus``: it takes ``questions``, and can ask about more than two options at once.
    - ``skip_implied(options)``: whether questions whose answer follows from earlier ones are left out by default.
    - ``fewer(options)``: an option, such as "basis=spanner", with which it asks fewer questions than with these; or "".
    - ``prepare(problem, options)`` works out what all people who are asked about the problem share.
    """

    make: Callable[..., Strategy]
    seeded: bool = False
    accepts_observations: bool = False
    menus: bool = False
    skip_implied: Callable[[Options], bool] = lambda options: False
    fewer: Callable[[Options], str] = lambda options: ""
    prepare: Callable[[Problem, Options], None] = lambda problem, options: None


# A name, a specification, or any callable problem -> generator.
AnyStrategy: TypeAlias = str | StrategySpec | Callable[..., Strategy]

BUILT_IN: dict[str, StrategySpec] = {
    "careful": StrategySpec(careful, seeded=True, accepts_observations=True, menus=True),
    "certified": StrategySpec(certified, seeded=True, accepts_observations=True, menus=True),
    # The paper's own basis asks what the pseudo-code asks; a spanner has no pseudo-code to be true to.
    "paper": StrategySpec(
        paper,
        skip_implied=lambda options: options.get("basis") == "spanner",
        fewer=lambda options: "basis=spanner" if options.get("basis", "paper") == "paper" else "",
        prepare=prepare_bases,
    ),
}


def strategy_names() -> tuple[str, ...]:
    """Return the names of all strategies: the built-in ones, then those of installed packages."""
    return tuple(dict.fromkeys([*BUILT_IN, *sorted(entry_points(group=GROUP).names)]))


def spec_of(strategy: AnyStrategy) -> StrategySpec:
    """Return the specification of a strategy that is given by name, as a specification or as a callable.

    >>> spec_of("paper").seeded
    False
    """
    if isinstance(strategy, StrategySpec):
        return strategy
    if callable(strategy):
        return StrategySpec(strategy)
    if not isinstance(strategy, str):
        raise ArgumentError(f"a strategy is a name or a callable that takes a problem; {strategy!r} is neither")
    if strategy in BUILT_IN:
        return BUILT_IN[strategy]
    for point in entry_points(group=GROUP, name=strategy):
        found = point.load()
        if isinstance(found, StrategySpec) or callable(found):
            return spec_of(found)
        raise ArgumentError(
            f"the entry point {strategy!r} of {point.dist.name if point.dist else 'a package'} is {found!r}; "
            f"an entry point in the group {GROUP} must be a StrategySpec or a callable"
        )
    raise ArgumentError(f"there is no strategy {strategy!r}; there are {', '.join(strategy_names())}")


def name_of(strategy: AnyStrategy) -> str:
    """Return what a log calls a strategy: its name, or where its callable is defined.

    >>> def mine(problem): ...
    >>> name_of("careful"), name_of(mine).endswith("mine")
    ('careful', True)
    """
    if isinstance(strategy, str):
        return strategy
    make = strategy.make if isinstance(strategy, StrategySpec) else strategy
    for name, spec in BUILT_IN.items():
        if make is spec.make:
            return name
    return f"{getattr(make, '__module__', '?')}:{getattr(make, '__qualname__', type(make).__qualname__)}"


def start(
    strategy: AnyStrategy,
    problem: Problem,
    *,
    max_questions: int | None = None,
    skip_implied: bool | None = None,
    **options: Any,
) -> Strategy:
    """Return a strategy, ready to be asked: never two identical options, within its budget.

    ``strategy`` is a name, a ``StrategySpec`` or any callable that takes the problem and returns a generator of steps.
    ``skip_implied`` leaves out what follows from earlier answers; by default the strategy decides. Where no choice
    changes any objective, as where one item beats all others, nothing is asked.
    """
    spec = spec_of(strategy)
    if not solutions_of(problem).changeable:
        return nothing_to_ask(problem)
    try:
        running = spec.make(problem, **options)
    except TypeError as error:
        raise ArgumentError(f"the strategy {name_of(strategy)!r} does not take these options: {error}") from None
    if spec.skip_implied(options) if skip_implied is None else skip_implied:
        running = without_implied(running, len(problem.objectives))
    return within_budget(without_identical(running), max_questions)


def nothing_to_ask(problem: Problem) -> Strategy:
    """Return the strategy for a problem in which nothing can be changed: it recommends what there is, without asking."""
    k = len(problem.objectives)
    (only,) = problem.best(np.full((1, k), 1 / k))
    return Recommendation(
        only, np.full(k, 1 / k), 0, "nothing is better in anything that is weighed, so there was nothing to ask",
        regret_bound=0.0, robust_bound=0.0, likely_regret=0.0, likely_worst=0.0,
        unidentified=tuple(o.name for o in problem.objectives),
    )  # fmt: skip
    yield  # never reached: it makes this a generator
