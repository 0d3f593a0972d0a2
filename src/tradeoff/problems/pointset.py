"""A set of points given by an optimiser that finds the best point for any weights (the paper's section 5)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from tradeoff.errors import ArgumentError, ProblemError, TradeoffError
from tradeoff.model import (
    Details,
    Item,
    Matrix,
    Objective,
    Option,
    Plan,
    Reference,
    Vector,
    frozen_array,
)
from tradeoff.problem import ROUNDING, SAME, GainScale, fingerprint_of, objectives_from, unit_rows, weight_rows
from tradeoff.problems.catalogue import Catalogue
from tradeoff.problems.choice import SingleChoice
from tradeoff.problems.supported_solutions import BEYOND, LEAST, find_supported, ranges_of

# To break ties, the optimiser is called again with this much of every weight added, and with less if that yields a
# solution that does not tie.
NUDGES = (1e-6, 1e-9)
# By default an optimiser may miss the optimum by this share of the range, as integer solvers do.
GAP = 1e-3
# If the search for supported solutions stopped early, the reference lies below the worst found by this share of the range.
MARGIN = 0.25
# Directions whose solution is cached (about 20 MB); in a long-running server the oldest are dropped.
KNOWN = 100_000

Steps: TypeAlias = tuple[str, ...]  # what to do


class PointSet(SingleChoice):
    """A choice among solutions that an optimiser finds: a knapsack, a route, a schedule.

    ``best(weights)`` maximises ``weights @ outcome`` over all solutions, where ``outcome`` holds the amounts in the
    person's units and ``weights`` may have any sign: an objective to be minimised has a negative weight. It returns the
    outcome, or the outcome and what to do: a string, or a list of strings.

    An interview looks up hundreds of weights. So the supported solutions (each optimal for some weights >= 0) are found
    first, with at most ``most_asked`` calls of the optimiser; if that finds all of them, it is not called again. It is
    never called from two threads at once.

    With ``both_ways=False`` the optimiser is never called to find the worst of anything (the longest route, the dearest
    plan), which many cannot do. The choice is then among the supported solutions, and the worst of them is the reference.

    ``gap`` says how far ``best`` may be from the optimum, as a share of the range of each objective; it is 0 for an exact
    optimiser. A larger error is refused if it is noticed, and every proven bound allows for the gap (``slack``).

    >>> corners = [(0.0, 3.0), (2.0, 2.0), (3.0, 0.0)]
    >>> problem = PointSet(lambda w: max(corners, key=lambda c: w @ c), ["speed", "range"])
    >>> [problem.outcome(a.value).tolist() for a in problem.best([[1, 0], [1, 1]])]
    [[3.0, 0.0], [2.0, 2.0]]
    """

    kind = "points"

    def __init__(
        self,
        best: Callable[[Vector], Any],
        objectives: Sequence[Objective | str],
        *,
        both_ways: bool = True,
        gap: float = GAP,
        most_asked: int = 1000,
        reference: Reference | None = None,
        places: Mapping[str, tuple[float, float]] | None = None,
        name: str = "points",
        title: str = "",
        about: str = "",
    ) -> None:
        if not callable(best):
            raise ArgumentError(f"a point set needs a function best(weights), but {best!r:.80} was given")
        self._optimise = best
        self.objectives = objectives_from(objectives, len(objectives))
        if not self.objectives:
            raise ProblemError("a point set needs at least one objective; give the names of its objectives")
        if not 0 <= gap < 1:
            raise ArgumentError(f"gap is {gap!r}; it must be a share of the range, from 0 to less than 1")
        self.both_ways, self.gap, self.most_asked = both_ways, float(gap), most_asked
        self.reference = reference or Reference()
        self.reference.check(self.objectives)
        self.places = dict(places or {})
        self.notes: list[str] = []
        self.name, self.title, self.about = name, title or name, about
        self._sign = np.array([o.sign for o in self.objectives])
        self._known: dict[bytes, int] = {}  # weights on outcomes -> which solution is best
        self._numbers: dict[tuple[bytes, Steps], int] = {}
        self._solutions: list[tuple[Vector, Steps]] = []  # outcome, what to do
        self.complete = False  # whether all supported solutions were found
        self._supported_numbers: list[int] = []
        self._supported: Catalogue | None = None
        self._lock = threading.RLock()  # guards the attributes above, and the optimiser

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}: {len(self.objectives)} objectives>"

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle; an optimiser that cannot be pickled is replaced by one that raises an error."""
        from joblib.externals.loky.backend.reduction import dumps

        with self._lock:
            state = {name: copy(value) for name, value in self.__dict__.items() if name != "_lock"}
        try:
            dumps(self._optimise)
        except Exception as error:
            state["_optimise"] = _UnpicklableOptimiser(self.name, str(error))
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._lock = threading.RLock()

    # --- the optimiser ------------------------------------------------------------------------------------------------

    def _ask(self, weights: Vector) -> int:
        """Return the number of the solution that the optimiser finds for weights on outcomes; cached by direction."""
        length = np.abs(weights).max()
        weights = np.ascontiguousarray(weights / length if length > 0 else weights) + 0.0
        key = weights.tobytes()
        with self._lock:
            if key not in self._known:
                found = self._number(self._optimum(weights), weights)
                if len(self._known) >= KNOWN:
                    del self._known[next(iter(self._known))]
                self._known[key] = found
            return self._known[key]

    def _optimum(self, weights: Vector) -> Any:
        try:
            return self._optimise(weights.copy())
        except TradeoffError:
            raise
        except (Exception, SystemExit) as error:
            raise ProblemError(
                f"best({weights.tolist()}) of {self.name!r} failed with {type(error).__name__}: {error!s:.200}; it "
                f"must find an optimum for {'any' if self.both_ways else 'these'} weights"
            ) from error

    def _number(self, found: Any, weights: Vector) -> int:
        k = len(self.objectives)
        # A pair whose first part is a list of numbers is an outcome with what to do.
        told: Any = ()
        if isinstance(found, tuple) and len(found) == 2 and np.ndim(found[0]) == 1:
            found, told = found
        try:
            outcome = np.array(found, dtype=float)
        except (TypeError, ValueError):
            outcome = np.empty(0)
        if outcome.shape != (k,) or not np.isfinite(outcome).all():
            raise ProblemError(
                f"best({weights.tolist()}) of {self.name!r} returned {found!r:.120}; it must return {k} finite numbers, "
                f"one for each of {', '.join(o.name for o in self.objectives)}, or a pair of these and what to do"
            )
        outcome = frozen_array(outcome + 0.0)
        try:
            steps = (told,) if isinstance(told, str) else tuple(str(step) for step in told)
        except TypeError:
            raise ProblemError(
                f"best({weights.tolist()}) of {self.name!r} returned {told!r:.80} as what to do; that must be a string or "
                "a list of strings"
            ) from None
        key = (outcome.tobytes(), steps)
        if key not in self._numbers:
            self._numbers[key] = len(self._solutions)
            self._solutions.append((outcome, steps or (self._words(outcome),)))
        return self._numbers[key]

    def _words(self, outcome: Vector) -> str:
        return ", ".join(f"{o.name} {o.text(float(x))}" for o, x in zip(self.objectives, outcome, strict=True))

    def _without_ties(self, weights: Vector, everything: Vector) -> int:
        """Return the best solution for weights on outcomes; the largest ``everything @ outcome`` breaks ties."""
        plain = self._ask(weights)
        size = np.abs(weights / everything).max() or 1.0
        worth = float(weights @ self._solutions[plain][0])
        for nudge in NUDGES:
            nudged = self._ask(weights + nudge * size * everything)
            outcome = self._solutions[nudged][0]
            if weights @ outcome >= worth - SAME * float(np.abs(weights) @ np.abs(outcome)):
                return nudged
        return plain

    # --- the scale ----------------------------------------------------------------------------------------------------

    @cached_property
    def gain_scale(self) -> GainScale:
        """The reference and the scale of each gain; it takes 2 k calls of the optimiser, or those of ``supported``."""
        if not self.both_ways:
            return self.supported.gain_scale
        unit = np.eye(len(self.objectives))
        highest = np.array([self._solutions[self._ask(e)][0][j] for j, e in enumerate(unit)])
        lowest = np.array([self._solutions[self._ask(-e)][0][j] for j, e in enumerate(unit)])
        slack = SAME * np.maximum(np.abs(lowest), np.abs(highest))
        for j in np.flatnonzero(lowest > highest + slack):
            raise ProblemError(
                f"{self.name!r} returned {lowest[j]:.6g} as the least {self.objectives[j].name} and {highest[j]:.6g} as "
                "the most; best(weights) must maximise weights @ outcome, for negative weights too"
            )
        return GainScale(self.objectives, np.minimum(lowest, highest), highest, self.reference)

    @property
    def supported(self) -> Catalogue:
        """The supported solutions found, as a catalogue, which can be searched for any weights."""
        with self._lock:
            if self._supported is None:
                self._supported = self._find_supported()
            return self._supported

    def _find_supported(self) -> Catalogue:
        optima = [self._ask(row) for row in np.diag(self._sign)]
        goods = self._goods(optima)
        size = np.ptp(goods, axis=0)
        everything = self._sign / np.where(size > 0, size, np.maximum(np.abs(goods).max(axis=0), 1.0))
        optima = [self._without_ties(row, everything) for row in np.diag(self._sign)]
        self._check_optima(optima, size)

        def ask(weights: Vector) -> tuple[int, Vector]:
            number = self._ask(self._sign * weights)
            return number, self._goods([number])[0]

        first = list(dict.fromkeys(optima))
        self._first_ranges = ranges_of(self._goods(first))
        self._supported_numbers, self.complete = find_supported(ask, first, self._goods(first), self.most_asked)
        outcomes = np.array([self._solutions[number][0] for number in self._supported_numbers])
        return Catalogue(outcomes, self.objectives, reference=self._supported_reference(outcomes), name=self.name)

    def _supported_reference(self, outcomes: Matrix) -> Reference:
        """Return the reference, given the outcomes of the supported solutions."""
        worst = (self._sign * outcomes).min(axis=0)
        if self.both_ways:
            lower = np.minimum(worst, self._sign * self.gain_scale.origin)
        elif self.complete or self.reference.outcome is not None:
            return self.reference
        else:
            lower = worst - MARGIN * np.ptp(outcomes, axis=0)
            self.notes.append(
                f"{len(outcomes):,} solutions that are best for some weights were found in {self.most_asked:,} calls of the "
                "optimiser; there may be more, which are found when they are needed"
            )
        amounts = {o.name: float(x) for o, x in zip(self.objectives, self._sign * lower, strict=True)}
        return Reference(self.reference.name, amounts)

    def _goods(self, numbers: Sequence[int]) -> Matrix:
        """Return the outcomes of solutions, with signs such that more is better."""
        result: Matrix = np.array([self._sign * self._solutions[number][0] for number in numbers])
        return result

    def _check_optima(self, optima: Sequence[int], size: Vector) -> None:
        """Raise a ProblemError if a solution is better in an objective than the one returned as the best in it."""
        goods = self._goods(optima)
        gaps = goods - np.diag(goods)
        for i, j in np.argwhere(gaps > max(self.gap, ROUNDING) * np.maximum(size, SAME * np.abs(goods).max(axis=0))):
            best, better = (self._solutions[optima[n]][0][j] for n in (j, i))
            raise ProblemError(
                f"{self.name!r} returned {best:.6g} as the best {self.objectives[j].name}, but {better:.6g} when asked for "
                f"the best {self.objectives[i].name}; best(weights) must maximise weights @ outcome"
            )

    @cached_property
    def slack(self) -> float:  # type: ignore[override]
        """The gap of the optimiser plus what the search for supported solutions may miss, in gains."""
        # The search used weights of at least LEAST, on goods divided by the range of the first optima.
        _ = self.supported
        ratio = np.abs(self.scale) / self._first_ranges
        return self.gap + BEYOND + LEAST * float(ratio[self.gain_scale.matters].sum())

    # --- the problem --------------------------------------------------------------------------------------------------

    @cached_property
    def fingerprint(self) -> str:
        """A string that identifies this set by the first solutions found."""
        outcome = self.reference.outcome and sorted(self.reference.outcome.items())
        ends = (np.array(self.gain_scale.ideal), np.array(self.gain_scale.nadir))
        known = () if self.both_ways else (self.supported.values,)
        return fingerprint_of("points", self.name, self.objectives, *ends, outcome, *known)

    def best(self, weights: ArrayLike) -> list[Option]:
        """Return the best solution for each row of weights on gains; ties are broken so that none is dominated."""
        rows = unit_rows(weight_rows(weights, self.objectives))
        return [self.option(number) for number in self._winners(rows)]

    def _winners(self, rows: Matrix) -> list[int]:
        """Return the number of the best solution for each row of weights on gains."""
        # How a row is looked up depends only on the row, so that no result depends on earlier calls.
        listed = [self._supported_numbers[a.plan.index] for a in self.supported.best(rows)]  # type: ignore[union-attr]
        against = np.any(rows < 0, axis=1)
        known = np.where(against, not self.both_ways, self.complete)
        winners = [n if k else self._best(row) for row, n, k in zip(rows, listed, known, strict=True)]
        if self.both_ways:
            return winners
        return [self._allowed(number, n) for number, n in zip(winners, listed, strict=True)]

    def _best(self, row: Vector) -> int:
        """Return the number of the best solution for one row of weights on gains."""
        scale, relevant = self.gain_scale, np.abs(row[self.gain_scale.matters])
        if len(relevant) and np.all(relevant > SAME * relevant.max()):
            number = self._ask(scale.raw_weights(row))  # with no weight 0, an optimum cannot be dominated
        else:
            everything = np.where(scale.matters, 1 / scale.scale, 0.0)
            number = self._ask(everything) if not relevant.any() else self._tied(row, everything)
        if self.both_ways:
            self._check_within(number)
        return number

    def _tied(self, row: Vector, everything: Vector) -> int:
        # Constant objectives have weight 0 here; use 1 to avoid dividing by it.
        at = np.where(self.gain_scale.matters, everything, 1.0)
        return self._without_ties(self.gain_scale.raw_weights(row), at)

    def _allowed(self, number: int, otherwise: int) -> int:
        """Return the first solution, or the other if the first is worse than the reference in any objective."""
        gap = self._sign * (self._solutions[number][0] - self.gain_scale.origin)
        return number if np.all(gap >= -SAME * np.abs(self.gain_scale.origin)) else otherwise

    def _check_within(self, number: int) -> None:
        """Raise a ProblemError if a solution lies outside the range of an objective."""
        outcome = self._solutions[number][0]
        ends = np.sort([self.ideal, self.nadir], axis=0)
        slack = np.maximum(max(self.gap, ROUNDING) * np.ptp(ends, axis=0), SAME * np.abs(ends).max(axis=0))
        for j in np.flatnonzero((outcome < ends[0] - slack) | (outcome > ends[1] + slack)):
            raise ProblemError(
                f"{self.name!r} found a solution with {self.objectives[j].name} {outcome[j]:.6g}, but earlier results limit it "
                f"to {ends[0][j]:.6g} to {ends[1][j]:.6g}; best(weights) must find an optimum, not just a good solution "
                "(set the gap of an integer solver to 0)"
            )

    def option(self, number: int) -> Option:
        """Return a solution found earlier, by its number."""
        outcome, steps = self._solution(number)
        return Option(self.gain_scale.gains(outcome), Item(number, self.label(steps)))

    def _solution(self, number: int) -> tuple[Vector, Steps]:
        if not 0 <= number < len(self._solutions):
            raise ArgumentError(f"there is no solution number {number}; {len(self._solutions)} were found so far")
        return self._solutions[number]

    def label(self, steps: Steps) -> str:
        """Return what to do as one string."""
        return ", ".join(steps)

    def steps(self, plan: Plan) -> Steps:
        """Return what to do for a solution, as returned by the optimiser."""
        if not isinstance(plan, Item):
            raise ArgumentError(f"a point set has solutions, not policies; {plan!r} has no steps")
        return self._solution(plan.index)[1]

    def lines(self, plan: Plan) -> list[str]:
        """Return what to do for a solution as lines of text."""
        return list(self.steps(plan))

    def details(self, plan: Plan) -> Details:
        """Return the details of a solution: what to do, as lines of text."""
        return Details(lines=tuple(self.lines(plan))) if isinstance(plan, Item) else Details()

    def outcome_of(self, item: Item) -> Vector:
        """Return the outcome of a solution, in the person's units."""
        return self._solution(item.index)[0]


class _UnpicklableOptimiser:
    """Takes the place of an optimiser that could not be pickled; calling it raises an error."""

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason

    def __call__(self, weights: Vector) -> Any:
        raise ProblemError(
            f"the optimiser of {self.name!r} is needed in another process, but cannot be sent there ({self.reason}); use one "
            "process: jobs=1"
        )
