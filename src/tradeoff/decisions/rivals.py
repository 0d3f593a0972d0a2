"""Why not another one: whether an alternative can be the best, for which weights, and which answers say otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

import numpy as np

from tradeoff.decisions.preferences import Answers, Preferences
from tradeoff.decisions.programs import least
from tradeoff.decisions.ranked import SAME, Ranking, left_out, ranking
from tradeoff.errors import ArgumentError
from tradeoff.interview import Interview
from tradeoff.model import Alternative, Item, Matrix, Vector
from tradeoff.problem import Problem, slack_of
from tradeoff.problems.catalogue import Catalogue
from tradeoff.sensitivity import shares_of
from tradeoff.strategies.polytope import half_spaces

# recommended: it is what is recommended      same: it comes to the same
# dominated: another one is at least as good in everything and better in something
# never: no weights make it better than all others, because for any weights one of a few others is at least as good
# ruled out: the best for some weights, but for none that fit the answers      possible: also for some that fit
Verdict = Literal["recommended", "same", "dominated", "never", "ruled out", "possible"]

BETTER = 1e-6  # in gains: what is ahead by less is as good
MOST_CUTS = 400  # alternatives that are compared with the one in question before the search is given up


@dataclass(frozen=True, eq=False)
class Rival:
    """An alternative that was asked about, and what can be said of it beside the recommendation."""

    alternative: Alternative
    recommended: Alternative
    verdict: Verdict
    loss: float  # the part of the best possible gain that it loses on average over all preferences still possible
    beaten_by: tuple[
        Alternative, ...
    ] = ()  # dominated: by this one; never: one of these is better, whatever the weights, or the only one as good
    weights: Vector | None = None  # for which it is the best: those nearest to what is known of the person
    answers: tuple[
        int, ...
    ] = ()  # ruled out: the numbers of answers that together do so, none of which can be left out


def why_not(interview: Interview, rival: Alternative | str | int, ranked: Ranking | None = None) -> Rival:
    """Return why an alternative is not what is recommended: an item by its name, or a plan of the ranking by its place.

    Everything said is about linear preferences, and about the answers that are trusted. ``ranked`` is a ranking of the same
    interview, if there is one already.

    >>> import tradeoff
    >>> shop = tradeoff.Catalogue([[9, 1], [4, 4], [1, 9]], ["speed", "range"], ["fast", "middle", "far"])
    >>> found = why_not(Interview(shop), "middle")
    >>> found.verdict, sorted(one.plan.name for one in found.beaten_by)
    ('never', ['far', 'fast'])
    """
    ranked = ranking(interview) if ranked is None else ranked
    alternative = rival if isinstance(rival, Alternative) else find_alternative(interview.problem, rival, ranked)
    recommendation = interview.recommendation
    search = _Search(interview.problem, alternative, ranked.preferences, shares_of(recommendation.weights))
    return search.verdict(recommendation.alternative, ranked)


def find_alternative(problem: Problem, wanted: str | int, ranked: Ranking) -> Alternative:
    """Return an item by its name, also one that was left out because another beats it; or a place of the ranking."""
    text = str(wanted).strip()
    if text.isdigit() and 1 <= int(text) <= len(ranked.ranked) and text not in getattr(problem, "names", ()):
        return ranked.ranked[int(text) - 1].alternative
    places = f"a place of the ranking, 1 to {len(ranked.ranked)}"
    if not isinstance(problem, Catalogue):
        raise ArgumentError(f"there is no plan {text[:80]!r} in the ranking; give {places}")
    names = [*problem.names, *problem.beaten]
    found = [name for name in names if name == text] or [name for name in names if name.lower() == text.lower()]
    found = found or [name for name in names if text and text.lower() in name.lower()]
    if len(found) != 1:
        near = (found or get_close_matches(text, names, 5, 0.4))[:5]
        known = f"did you mean {', '.join(near)}?" if near else f"give one of its {len(names):,} names, or {places}"
        several = "more than one item is" if found else "no item is"
        raise ArgumentError(f"{several} called {text[:80]!r}; {known}")
    name = found[0]
    if name in problem.beaten:
        return left_out(problem, name)
    return problem.alternative(name)


class _Search:
    """Looks for weights that make one alternative the best: a linear program against the others, found as needed."""

    def __init__(self, problem: Problem, alternative: Alternative, preferences: Preferences, near: Vector) -> None:
        self.problem, self.alternative, self.preferences = problem, alternative, preferences
        self.near = near[preferences.relevant]
        self.mine = alternative.value[preferences.relevant]
        self.others: list[Alternative] = []  # that it was compared with, best somewhere
        self.allowed = SAME + slack_of(problem)
        self.ahead = self.mine  # by how much it is better than what is recommended

    def verdict(self, recommended: Alternative, ranked: Ranking) -> Rival:
        """Return what can be said of the alternative."""
        loss = max(ranked.loss(self.alternative), 0.0)
        if _same_plan(self.alternative, recommended):
            return Rival(self.alternative, recommended, "recommended", loss)
        if np.abs(self.alternative.value - recommended.value).max() <= SAME:
            return Rival(self.alternative, recommended, "same", loss)
        beaten_by = self._dominating()
        if beaten_by is not None:
            return Rival(self.alternative, recommended, "dominated", loss, (beaten_by,))
        never = self._better_ones()
        if never is not None:
            return Rival(self.alternative, recommended, "never", loss, never)
        self.ahead = self.mine - recommended.value[self.preferences.relevant]
        wins = self._nearest(())
        if wins is None:  # as good as others for some weights, and never better
            return Rival(self.alternative, recommended, "never", loss, (recommended,))
        trusted = self.preferences.answers
        fitting = self._nearest(trusted)
        if fitting is not None:
            return Rival(self.alternative, recommended, "possible", loss, weights=fitting)
        return Rival(self.alternative, recommended, "ruled out", loss, weights=wins, answers=self._against(trusted))

    def _dominating(self) -> Alternative | None:
        """Return the alternative that is at least as good in everything and better in something; the best of these."""
        if not isinstance(self.problem, Catalogue):
            return None  # what a problem with an optimiser returns is never dominated
        gains, mine = self.problem.gains, self.alternative.value
        above = np.flatnonzero((gains >= mine - SAME).all(axis=1) & (gains > mine + SAME).any(axis=1))
        return self.problem.alternative(int(above[gains[above].sum(axis=1).argmax()])) if len(above) else None

    # --- linear programs ----------------------------------------------------------------------------------------------

    def _compared(self) -> Matrix:
        """Return by how much the alternative is better than each of the others, in gains."""
        found = np.array([self.mine - other.value[self.preferences.relevant] for other in self.others])
        return found.reshape(len(self.others), self.preferences.d)

    def _met(self, weights: Vector) -> bool:
        """Return whether the alternative is the best for these weights; if not, what is best there is kept in mind."""
        (best,) = self.problem.best(self.preferences.on_all(weights[None, :]))
        if float(weights @ (best.value[self.preferences.relevant] - self.mine)) <= self.allowed:
            return True
        self.others.append(best)
        return False

    def _better_ones(self) -> tuple[Alternative, ...] | None:
        """Return a few others of which one is better whatever the weights; None if there are weights that make it best.

        The weights for which the alternative is least behind the others are found, and what is best for these is added to
        the others, until the alternative is the best there or is behind some mixture of the others in everything.
        """
        d = self.preferences.d
        if self._met(np.full(d, 1 / d)):
            return None
        for _ in range(MOST_CUTS):
            behind = self._compared()
            ahead_by = np.hstack(
                [behind, np.full((len(behind), 1), -1.0)]
            )  # w @ behind - t >= 0, with t as large as can be
            done = least(np.r_[np.zeros(d), -1.0], ahead_by, np.zeros(len(behind)), d, free=1)
            if done is None:
                break
            mixed = done.prices / max(done.prices.sum(), 1e-300)
            # A proof that needs no solver: the mixture is better in everything.
            if float((mixed @ behind).max()) < -self.allowed:
                return _distinct(other for other, part in zip(self.others, mixed.tolist(), strict=True) if part > SAME)
            if self._met(np.maximum(done.x[:d], 0.0)):
                return None
        return None

    def _nearest(self, answers: Answers) -> Vector | None:
        """Return the weights nearest to the estimate that fit these answers and make the alternative best; None: none do.

        Nearest is by the sum of all changes, so that few of the weights change. It must be better than what is recommended:
        on the border of what fits an answer, the two that were compared are often as good as each other.
        """
        d = self.preferences.d
        fits = [half_spaces(differences, kinds) for _, differences, kinds in answers]
        answered = np.vstack([np.zeros((0, d + 1)), *fits])
        # (w, e, |w - near|): the answers' rows, this alternative's rows, and what makes the last d absolute values
        rows = np.hstack([np.vstack([answered, np.r_[self.ahead, 0.0]]), np.zeros((len(answered) + 1, d))])
        apart = np.vstack([np.hstack([sign * np.eye(d), np.zeros((d, 1)), np.eye(d)]) for sign in (1.0, -1.0)])
        bounds = np.r_[np.zeros(len(answered)), BETTER, self.near, -self.near]
        for _ in range(MOST_CUTS):
            mine = np.hstack([self._compared(), np.zeros((len(self.others), d + 1))])
            limits = np.r_[bounds, np.full(len(mine), -SAME / 2)]
            done = least(np.r_[np.zeros(d + 1), np.ones(d)], np.vstack([rows, apart, mine]), limits, d)
            if done is None:
                return None
            weights = np.maximum(done.x[:d], 0.0)
            weights /= weights.sum()
            if self._met(weights):
                found: Vector = self.preferences.on_all(weights[None, :])[0]
                return found
        return None

    def _against(self, answers: Answers) -> tuple[int, ...]:
        """Return the numbers of answers that rule the alternative out together, none of which can be left out."""
        needed = list(answers)
        for one in reversed(answers):  # what was said first is kept
            fewer = tuple(other for other in needed if other is not one)
            if self._nearest(fewer) is None:
                needed = list(fewer)
        return tuple(number for number, _, _ in needed)


def _same_plan(one: Alternative, other: Alternative) -> bool:
    if isinstance(one.plan, Item) and isinstance(other.plan, Item):
        return one.plan == other.plan
    return one is other


def _distinct(alternatives: Iterable[Alternative]) -> tuple[Alternative, ...]:
    found: Sequence[Alternative] = list(alternatives)
    return tuple({np.round(one.value, 9).tobytes(): one for one in found}.values())
