"""The best few options for a respondent: how likely each is the best one, and what it loses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradeoff.decisions.best_along import best_along
from tradeoff.decisions.preferences import Preferences
from tradeoff.errors import ArgumentError
from tradeoff.interview import Interview
from tradeoff.model import Criterion, Matrix, Option, Recommendation, Vector
from tradeoff.problem import Items, Problem, items_of

PLACES = 5
# Weights that shares are counted over: an error of at most 1.6 percentage points, 19 times in 20. Fewer for plans, because
# a model is solved for each.
DRAWN, DRAWN_FOR_PLANS = 4_000, 1_000
# Plans that differ by less than this part of the range of every objective count as one. Items have names and never do.
ALIKE = 0.02
DIGITS = 12  # losses that agree to so many digits are equal


@dataclass(frozen=True, eq=False)
class Ranked:
    """An option in its place.

    ``share`` is the probability that it is the best option (it, or for plans one that is nearly the same), given the
    answers. ``loss`` is the share of the best possible gain that it loses by the strategy's criterion: on average, or at most.
    """

    option: Option
    share: float
    loss: float


@dataclass(frozen=True, eq=False)
class Ranking:
    """The recommended option, then the others in the order of the criterion that decided the recommendation."""

    ranked: tuple[Ranked, ...]
    preferences: Preferences
    criterion: Criterion
    considered: int  # alternatives that were compared
    drawn: int | None  # weights that the shares were counted over; None where the shares are exact
    sampled: bool = (
        False  # whether those are samples of a posterior; otherwise they are spread evenly over all that fit
    )
    confirmed: bool = False  # whether the first is there because the respondent preferred it

    @property
    def error(self) -> float:
        """How far off a share may be, 19 times in 20; 0 where shares are exact."""
        return 0.0 if self.drawn is None else 0.98 / self.drawn**0.5

    def loss(self, option: Option) -> float:
        """Return the share of the best possible gain that an option loses by the criterion."""
        return float(self.criterion.losses(option.value[None, :])[0])


def ranking(interview: Interview, *, places: int = PLACES, draws: int | None = None, seed: int = 0) -> Ranking:
    """Return the best few options for the respondent of an interview.

    The criterion that decided the recommendation orders all of them: the mean relative regret over the posterior for
    "careful", the largest one over everything that fits the answers for "certified", and otherwise the regret at the
    estimated weights. An option that the respondent preferred and confirmed comes first all the same. For "certified",
    options that cannot be the best follow those that can.

    Shares are probabilities under the posterior. Strategies without one count all weights that fit the trusted answers the
    same: exactly with two objectives, otherwise over ``draws`` samples, by default 4,000, or 1,000 for plans. Two calls give
    the same numbers.

    >>> import tradeoff
    >>> shop = tradeoff.Catalogue([[9, 1], [6, 6], [1, 9]], ["speed", "range"], ["fast", "middle", "far"])
    >>> found = ranking(Interview(shop, "certified"))
    >>> [(one.option.plan.name, round(one.share, 2)) for one in found.ranked]
    [('middle', 0.25), ('fast', 0.38), ('far', 0.38)]
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
    criterion = recommendation.criterion
    if criterion is None:  # the strategy has estimated the weights, and nothing else
        estimate = recommendation.weights[None, :]
        criterion = Criterion(estimate, estimate @ recommendation.option.value)
    sampled = recommendation.criterion is not None and not criterion.worst_case
    weights = criterion.weights if sampled else preferences.spread(draws, seed)
    exact = preferences.d <= 2 and not sampled
    won = shares_between(problem, preferences) if exact else [(one, 1 / len(weights)) for one in problem.best(weights)]
    listed, shares = _listed(problem, recommendation, won)
    gains = listed.items.gains if isinstance(listed, _Items) else np.array([one.value for one in listed])
    losses = criterion.losses(gains)
    first = _place_of(recommendation.option, listed, gains)
    after = np.lexsort((np.round(losses, DIGITS), (shares == 0) & criterion.worst_case, np.arange(len(gains)) != first))
    ranked = tuple(Ranked(listed[i], float(shares[i]), float(losses[i])) for i in after[:places].tolist())
    return Ranking(
        ranked,
        preferences,
        criterion,
        considered=len(listed),
        drawn=None if exact else len(weights),
        sampled=sampled,
        confirmed=recommendation.model_choice is not None,
    )


class _Items:
    """Items as a list, made when they are needed: there may be a hundred thousand."""

    def __init__(self, items: Items) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items.names)

    def __getitem__(self, number: int) -> Option:
        return self.items.option(number)


def _listed(
    problem: Problem, recommendation: Recommendation, won: list[tuple[Option, float]]
) -> tuple[list[Option] | _Items, Vector]:
    """Return the alternatives that are compared, and the share of each.

    They are all items. Of plans they are those that are best for some of the weights.
    """
    items = items_of(problem)
    if items is not None:
        shares = np.zeros(len(items.names))
        for option, share in won:
            shares[option.plan.index] += share  # type: ignore[union-attr]
        return _Items(items), shares
    return merged(recommendation, won)


def merged(recommendation: Recommendation, won: list[tuple[Option, float]]) -> tuple[list[Option], Vector]:
    """Return plans that differ, what is recommended first, each with the share of all that are nearly the same."""
    counted: dict[bytes, float] = {}
    plans: dict[bytes, Option] = {}
    for option, share in won:
        key = np.round(option.value, 9).tobytes()
        plans.setdefault(key, option)
        counted[key] = counted.get(key, 0.0) + share
    first = [one for one in (recommendation.option, recommendation.runner_up) if one is not None]
    kept, sums = list(first), [0.0] * len(first)
    values = np.empty((len(first) + len(plans), len(recommendation.option.value)))
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


def _place_of(option: Option, listed: list[Option] | _Items, gains: Matrix) -> int:
    """Return where an option stands in the list."""
    index = getattr(option.plan, "index", None) if isinstance(listed, _Items) else None
    return int(np.abs(gains - option.value).max(axis=1).argmin()) if index is None else int(index)


def shares_between(problem: Problem, preferences: Preferences) -> list[tuple[Option, float]]:
    """Return what is best for which share of the preferences, exactly; at most two objectives can be changed."""
    if preferences.d < 2:
        return [(problem.best(preferences.spread(2)[:1])[0], 1.0)]
    low, high = preferences.interval()
    start, end = preferences.on_all(np.array([[low, 1 - low], [high, 1 - high]]))
    return [(stretch.option, stretch.high - stretch.low) for stretch in best_along(problem, start, end)]
