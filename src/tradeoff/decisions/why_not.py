"""Why not another one: whether an option can be the best, for which weights, and which answers say otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

import numpy as np

from tradeoff.decisions.best_along import SAME
from tradeoff.decisions.linear_program import minimise
from tradeoff.decisions.preferences import Answers, Preferences
from tradeoff.decisions.ranking import Ranking, ranking
from tradeoff.decisions.what_if import shares_of
from tradeoff.errors import ArgumentError
from tradeoff.evidence import half_spaces
from tradeoff.interview import Interview
from tradeoff.model import Item, Matrix, Option, Vector
from tradeoff.problem import Problem, items_of, slack_of

# recommended: it is what is recommended      same: it comes to the same
# dominated: another one is at least as good in everything and better in something
# never: no weights make it better than all others, because for any weights one of a few others is at least as good
# ruled out: the best for some weights, but for none that fit the answers      possible: also for some that fit
# unknown: the search was given up after too many options
Verdict = Literal["recommended", "same", "dominated", "never", "ruled out", "possible", "unknown"]

BETTER = 1e-6  # in gains: what is ahead by less is as good
MOST_CUTS = 400  # options that are compared with the one in question before the search is given up


@dataclass(frozen=True, eq=False)
class Rival:
    """An option that was asked about, and what can be said of it beside the recommendation."""

    option: Option
    recommended: Option
    verdict: Verdict
    loss: float  # the part of the best possible gain that it loses on average over all preferences still possible
    beaten_by: tuple[
        Option, ...
    ] = ()  # dominated: by this one; never: one of these is better, whatever the weights, or the only one as good
    weights: Vector | None = None  # for which it is the best: those nearest to what is known of the person
    answers: tuple[
        int, ...
    ] = ()  # ruled out: the numbers of answers that together do so, none of which can be left out


def why_not(interview: Interview, rival: Option | str | int, ranked: Ranking | None = None) -> Rival:
    """Return why an option is not what is recommended: an item by its name, or a plan of the ranking by its place.

    Everything said is about linear preferences, and about the answers that are trusted. ``ranked`` is a ranking of the same
    interview, if there is one already.

    >>> import tradeoff
    >>> shop = tradeoff.Catalogue([[9, 1], [4, 4], [1, 9]], ["speed", "range"], ["fast", "middle", "far"])
    >>> found = why_not(Interview(shop), "middle")
    >>> found.verdict, sorted(one.plan.name for one in found.beaten_by)
    ('never', ['far', 'fast'])
    """
    ranked = ranking(interview) if ranked is None else ranked
    option = rival if isinstance(rival, Option) else find_option(interview.problem, rival, ranked)
    recommendation = interview.recommendation
    search = _Search(interview.problem, option, ranked.preferences, shares_of(recommendation.weights))
    return search.verdict(recommendation.option, ranked)


def find_option(problem: Problem, wanted: str | int, ranked: Ranking) -> Option:
    """Return an item by its name, also one that was left out because another beats it; or a place of the ranking."""
    text, items = str(wanted).strip(), items_of(problem)
    names = [] if items is None else [*items.names, *items.beaten]
    if text.isdigit() and 1 <= int(text) <= len(ranked.ranked) and text not in names:
        return ranked.ranked[int(text) - 1].option
    places = f"a place of the ranking, 1 to {len(ranked.ranked)}"
    if items is None:
        raise ArgumentError(f"there is no plan {text[:80]!r} in the ranking; give {places}")
    found = [name for name in names if name == text] or [name for name in names if name.lower() == text.lower()]
    found = found or [name for name in names if text and text.lower() in name.lower()]
    if len(found) != 1:
        near = (found or get_close_matches(text, names, 5, 0.4))[:5]
        known = f"did you mean {', '.join(near)}?" if near else f"give one of its {len(names):,} names, or {places}"
        several = "more than one item is" if found else "no item is"
        raise ArgumentError(f"{several} called {text[:80]!r}; {known}")
    return items.left_out(found[0]) if found[0] in items.beaten else items.option(found[0])


class _GaveUp(Exception):
    """Too many options were compared."""


class _Search:
    """Looks for weights that make one option the best: a linear program against the others, found as needed."""

    def __init__(self, problem: Problem, option: Option, preferences: Preferences, near: Vector) -> None:
        self.problem, self.option, self.preferences = problem, option, preferences
        self.near = near[preferences.relevant]
        self.mine = option.value[preferences.relevant]
        self.others: list[Option] = []  # that it was compared with, best somewhere
        self.allowed = SAME + slack_of(problem)
        self.ahead = self.mine  # over the recommendation; set before it is needed

    def verdict(self, recommended: Option, ranked: Ranking) -> Rival:
        """Return what can be said of the option."""
        loss = max(ranked.loss(self.option), 0.0)
        if _same_plan(self.option, recommended):
            return Rival(self.option, recommended, "recommended", loss)
        if np.abs(self.option.value - recommended.value).max() <= SAME:
            return Rival(self.option, recommended, "same", loss)
        beaten_by = self._dominating()
        if beaten_by is not None:
            return Rival(self.option, recommended, "dominated", loss, (beaten_by,))
        try:
            return self._by_weights(recommended, loss)
        except _GaveUp:
            return Rival(self.option, recommended, "unknown", loss)

    def _by_weights(self, recommended: Option, loss: float) -> Rival:
        """Return the verdict where it depends on weights."""
        never = self._better_ones()
        if never is not None:
            return Rival(self.option, recommended, "never", loss, never)
        self.ahead = self.mine - recommended.value[self.preferences.relevant]
        wins = self._nearest(())
        if wins is None:  # as good as others for some weights, and never better
            return Rival(self.option, recommended, "never", loss, (recommended,))
        trusted = self.preferences.answers
        fitting = self._nearest(trusted)
        if fitting is not None:
            return Rival(self.option, recommended, "possible", loss, weights=fitting)
        return Rival(self.option, recommended, "ruled out", loss, weights=wins, answers=self._against(trusted))

    def _dominating(self) -> Option | None:
        """Return the option that is at least as good in everything and better in something; the best of these."""
        items = items_of(self.problem)
        if items is None:
            return None  # what a problem with an optimiser returns is never dominated
        gains, mine = items.gains, self.option.value
        above = np.flatnonzero((gains >= mine - SAME).all(axis=1) & (gains > mine + SAME).any(axis=1))
        return items.option(int(above[gains[above].sum(axis=1).argmax()])) if len(above) else None

    # --- linear programs ----------------------------------------------------------------------------------------------

    def _compared(self) -> Matrix:
        """Return by how much the option is better than each of the others, in gains."""
        found = np.array([self.mine - other.value[self.preferences.relevant] for other in self.others])
        return found.reshape(len(self.others), self.preferences.d)

    def _met(self, weights: Vector) -> bool:
        """Return whether the option is the best for these weights; if not, what is best there is kept in mind."""
        (best,) = self.problem.best(self.preferences.on_all(weights[None, :]))
        if float(weights @ (best.value[self.preferences.relevant] - self.mine)) <= self.allowed:
            return True
        self.others.append(best)
        return False

    def _better_ones(self) -> tuple[Option, ...] | None:
        """Return a few others of which one is better whatever the weights; None if there are weights that make it best.

        The weights for which the option is least behind the others are found, and what is best for these is added to
        the others, until the option is the best there or is behind some mixture of the others in everything.
        """
        d = self.preferences.d
        if self._met(np.full(d, 1 / d)):
            return None
        for _ in range(MOST_CUTS):
            behind = self._compared()
            ahead_by = np.hstack(
                [behind, np.full((len(behind), 1), -1.0)]
            )  # w @ behind - t >= 0, with t as large as can be
            done = minimise(np.r_[np.zeros(d), -1.0], ahead_by, np.zeros(len(behind)), d, free=1)
            if done is None:
                break
            mixed = done.prices / max(done.prices.sum(), 1e-300)
            # A proof that needs no solver: the mixture is better in everything.
            if float((mixed @ behind).max()) < -self.allowed:
                return _distinct(other for other, part in zip(self.others, mixed.tolist(), strict=True) if part > SAME)
            if self._met(np.maximum(done.x[:d], 0.0)):
                return None
        raise _GaveUp

    def _nearest(self, answers: Answers) -> Vector | None:
        """Return the weights nearest to the estimate that fit these answers and make the option best; None: none do.

        Nearest is by the sum of all changes, so that few of the weights change. It must be better than what is recommended:
        on the border of what fits an answer, the two that were compared are often as good as each other.
        """
        d = self.preferences.d
        fits = [half_spaces(differences, outcomes) for _, differences, outcomes in answers]
        answered = np.vstack([np.zeros((0, d + 1)), *fits])
        # (w, e, |w - near|): the answers' rows, this option's rows, and what makes the last d absolute values
        rows = np.hstack([np.vstack([answered, np.r_[self.ahead, 0.0]]), np.zeros((len(answered) + 1, d))])
        apart = np.vstack([np.hstack([sign * np.eye(d), np.zeros((d, 1)), np.eye(d)]) for sign in (1.0, -1.0)])
        bounds = np.r_[np.zeros(len(answered)), BETTER, self.near, -self.near]
        for _ in range(MOST_CUTS):
            mine = np.hstack([self._compared(), np.zeros((len(self.others), d + 1))])
            limits = np.r_[bounds, np.full(len(mine), -SAME / 2)]
            done = minimise(np.r_[np.zeros(d + 1), np.ones(d)], np.vstack([rows, apart, mine]), limits, d)
            if done is None:
                return None
            weights = np.maximum(done.x[:d], 0.0)
            weights /= weights.sum()
            if self._met(weights):
                found: Vector = self.preferences.on_all(weights[None, :])[0]
                return found
        raise _GaveUp

    def _against(self, answers: Answers) -> tuple[int, ...]:
        """Return the numbers of answers that rule the option out together, none of which can be left out."""
        needed = list(answers)
        for one in reversed(answers):  # what was said first is kept
            fewer = tuple(other for other in needed if other is not one)
            try:
                ruled_out = self._nearest(fewer) is None
            except _GaveUp:
                ruled_out = False
            if ruled_out:
                needed = list(fewer)
        return tuple(number for number, _, _ in needed)


def _same_plan(one: Option, other: Option) -> bool:
    if isinstance(one.plan, Item) and isinstance(other.plan, Item):
        return one.plan == other.plan
    return one is other


def _distinct(alternatives: Iterable[Option]) -> tuple[Option, ...]:
    found: Sequence[Option] = list(alternatives)
    return tuple({np.round(one.value, 9).tobytes(): one for one in found}.values())
