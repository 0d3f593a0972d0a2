"""The best few alternatives for a person, and for how many of the preferences still possible each is the best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradeoff.decisions.preferences import Preferences
from tradeoff.errors import ArgumentError
from tradeoff.interview import Interview
from tradeoff.model import Alternative, Item, Matrix, Recommendation, Vector
from tradeoff.problem import Problem
from tradeoff.problems.catalogue import Catalogue

PLACES = 5
# Weights that shares are counted over: an error of at most 1.6 percentage points, 19 times in 20. Fewer for plans, because
# a model is solved for each.
DRAWN, DRAWN_FOR_PLANS = 4_000, 1_000
# Plans that differ by less than this part of the range of every objective count as one. Items have names and never do.
ALIKE = 0.02
SAME = 1e-9  # gains that differ by less are the same


@dataclass(frozen=True, eq=False)
class Ranked:
    """An alternative in its place.

    ``share`` is the part of all preferences still possible for which it is the best (it, or for plans one that is nearly the
    same), and ``loss`` the part of the best possible gain that it loses on average over them.
    """

    alternative: Alternative
    share: float
    loss: float


@dataclass(frozen=True, eq=False)
class Ranking:
    """What is recommended, what comes next, and then the others that lose least on average."""

    ranked: tuple[Ranked, ...]
    preferences: Preferences
    considered: int  # alternatives that were compared
    drawn: int | None  # weights that the shares were counted over; None where the shares are exact
    weights: Vector  # on all objectives: an alternative x loses 1 - weights @ x on average

    @property
    def error(self) -> float:
        """How far off a share may be, 19 times in 20; 0 where shares are exact."""
        return 0.0 if self.drawn is None else 0.98 / self.drawn**0.5

    def loss(self, alternative: Alternative) -> float:
        """Return the part of the best possible gain that an alternative loses on average."""
        return float(1 - self.weights @ alternative.value)


def ranking(interview: Interview, *, places: int = PLACES, draws: int | None = None, seed: int = 0) -> Ranking:
    """Return the best few alternatives for the person of an interview.

    What is recommended comes first and its runner-up second; the others follow by what they lose on average. Shares and
    losses are over all weights that fit the trusted answers, each counted the same: exactly with two objectives, and
    otherwise over so many ``draws``, by default 4,000, or 1,000 for plans. Two calls give the same numbers.

    >>> import tradeoff
    >>> shop = tradeoff.Catalogue([[9, 1], [6, 6], [1, 9]], ["speed", "range"], ["fast", "middle", "far"])
    >>> found = ranking(Interview(shop))
    >>> [(one.alternative.plan.name, round(one.share, 2)) for one in found.ranked]
    [('middle', 0.25), ('far', 0.38), ('fast', 0.38)]
    """
    return ranking_of(interview.problem, interview.recommendation, Preferences.of(interview), places, draws, seed)


def ranking_of(
    problem: Problem,
    recommendation: Recommendation,
    preferences: Preferences,
    places: int = PLACES,
    draws: int | None = None,
    seed: int = 0,
) -> Ranking:
    """Return the best few alternatives, given what is recommended and which preferences are possible."""
    if places < 1 or (draws is not None and draws < 2):
        raise ArgumentError(f"places must be 1 or more and draws 2 or more; they are {places!r} and {draws!r}")
    if draws is None:
        draws = DRAWN_FOR_PLANS if getattr(problem, "has_paths", False) else DRAWN
    weights = preferences.spread(draws, seed)
    best = problem.best(weights)
    exact = preferences.d <= 2
    won = shares_between(problem, preferences) if exact else [(one, 1 / draws) for one in best]
    most = np.einsum("nk,nk->n", weights, np.array([one.value for one in best]))
    mean: Vector = (weights / np.maximum(most, 1e-300)[:, None]).mean(axis=0)
    listed, shares = _listed(problem, recommendation, won)
    gains = listed.problem.gains if isinstance(listed, _Items) else np.array([one.value for one in listed])
    order = _order(problem, recommendation, listed, gains, mean)[:places]
    ranked = tuple(Ranked(listed[i], float(shares[i]), float(max(1 - mean @ gains[i], 0.0))) for i in order)
    return Ranking(ranked, preferences, len(listed), None if exact else draws, mean)


def left_out(problem: Catalogue, name: str) -> Alternative:
    """Return an item that is not in a catalogue because another beats it; its gains may be below 0."""
    return Alternative((np.asarray(problem.beaten[name]) - problem.origin) / problem.scale, Item(-1, name))


class _Items:
    """The items of a catalogue as a list, made when they are needed: there may be a hundred thousand."""

    def __init__(self, problem: Catalogue) -> None:
        self.problem = problem

    def __len__(self) -> int:
        return len(self.problem.names)

    def __getitem__(self, number: int) -> Alternative:
        return self.problem.alternative(number)


def _listed(
    problem: Problem, recommendation: Recommendation, won: list[tuple[Alternative, float]]
) -> tuple[list[Alternative] | _Items, Vector]:
    """Return the alternatives that are compared, and the share of each.

    They are the items of a catalogue. Of plans they are those that are best for some of the weights.
    """
    if isinstance(problem, Catalogue):
        shares = np.zeros(len(problem.names))
        for alternative, share in won:
            shares[alternative.plan.index] += share  # type: ignore[union-attr]
        return _Items(problem), shares
    return merged(recommendation, won)


def merged(recommendation: Recommendation, won: list[tuple[Alternative, float]]) -> tuple[list[Alternative], Vector]:
    """Return plans that differ, what is recommended first, each with the share of all that are nearly the same."""
    counted: dict[bytes, float] = {}
    plans: dict[bytes, Alternative] = {}
    for alternative, share in won:
        key = np.round(alternative.value, 9).tobytes()
        plans.setdefault(key, alternative)
        counted[key] = counted.get(key, 0.0) + share
    first = [one for one in (recommendation.alternative, recommendation.runner_up) if one is not None]
    kept, sums = list(first), [0.0] * len(first)
    values = np.empty((len(first) + len(plans), len(recommendation.alternative.value)))
    values[: len(first)] = [one.value for one in first]
    for key in sorted(plans, key=lambda key: -counted[key]):
        value = plans[key].value
        alike = np.abs(values[: len(kept)] - value).max(axis=1) < ALIKE
        at = int(alike.argmax()) if len(kept) else 0
        if len(kept) and alike[at]:
            sums[at] += counted[key]
        else:
            values[len(kept)] = value
            kept.append(plans[key])
            sums.append(counted[key])
    return kept, np.array(sums)


def _order(
    problem: Problem, recommendation: Recommendation, listed: list[Alternative] | _Items, gains: Matrix, mean: Vector
) -> list[int]:
    """Return the places: what is recommended, the runner-up, then whatever loses least on average."""
    first = []
    for one in (recommendation.alternative, recommendation.runner_up):
        if one is not None:
            index = getattr(one.plan, "index", None) if isinstance(problem, Catalogue) else None
            at = index if index is not None else int(np.abs(gains - one.value).max(axis=1).argmin())
            first += [at] if at not in first else []
    rest = np.lexsort((np.arange(len(gains)), -(gains @ mean)))
    return first + [i for i in rest.tolist() if i not in first]


def shares_between(problem: Problem, preferences: Preferences) -> list[tuple[Alternative, float]]:
    """Return what is best for which share of the preferences, exactly; at most two objectives can be changed.

    Between two weights with different optima there is one where both are worth the same. Either both are optimal there,
    or something better is, and each part is looked at in the same way.
    """
    if preferences.d < 2:
        return [(problem.best(preferences.spread(2)[:1])[0], 1.0)]
    low, high = preferences.interval()

    def best(share: float) -> Alternative:
        return problem.best(preferences.on_all(np.array([[share, 1 - share]])))[0]

    found: list[tuple[Alternative, float]] = []

    def part(left: float, right: float, one: Alternative, other: Alternative) -> None:
        row = preferences.relevant
        gap = (one.value - other.value)[row]
        slope = float(gap[0] - gap[1])
        if np.abs(gap).max() <= SAME or abs(slope) <= SAME:
            found.append((one, right - left))
            return
        at = min(max(-float(gap[1]) / slope, left), right)
        between = best(at)
        weights = np.array([at, 1 - at])
        if weights @ between.value[row] <= weights @ one.value[row] + SAME:
            found.extend([(one, at - left), (other, right - at)])
            return
        part(left, at, one, between)
        part(at, right, between, other)

    if high - low <= LEAST_INTERVAL:
        return [(best((low + high) / 2), 1.0)]
    part(low, high, best(low), best(high))
    return [(one, share / (high - low)) for one, share in found]


LEAST_INTERVAL = 1e-12  # weights nearer to each other than this are one preference
