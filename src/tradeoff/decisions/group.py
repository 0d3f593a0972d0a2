"""One choice for several people: the most for all on average, the fairest, or a small menu in which everybody finds something.

What a plan is worth to a person is counted as the share of what their own best plan gains them, by the estimated weights of
their interview. So nobody counts more because they care more, or use a larger scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np

from tradeoff.decisions.linear_program import minimise
from tradeoff.decisions.what_if import shares_of
from tradeoff.errors import ArgumentError
from tradeoff.interview import Interview
from tradeoff.model import SKIP, Matrix, Mixture, Option, Vector
from tradeoff.problem import Problem, items_of

ROUNDING = 1e-9
MOST_COLUMNS = 500  # plans that are added, at most, in the search for the fairest lot
MOST_MENUS = 200_000  # that are compared with each other; beyond, one is improved plan by plan
MOST_MIXED = 200  # mixed tastes for which the plans of a model are looked for, for a menu


@dataclass(frozen=True, eq=False)
class Choice:
    """One or several plans, and what they come to for each person: a share of what their own best plan gains them."""

    plans: tuple[Option, ...]
    shares: Vector  # of each person, with the plan that is best for them
    served: tuple[int, ...]  # which of the plans that is

    @property
    def least(self) -> float:
        """The share of the person who keeps least."""
        return float(self.shares.min())

    @property
    def average(self) -> float:
        """The average share."""
        return float(self.shares.mean())


@dataclass(frozen=True, eq=False)
class Group:
    """Several people who choose together about one problem; ``weights[n, k]`` on gains, a row per person."""

    problem: Problem
    names: tuple[str, ...]
    weights: Matrix

    @cached_property
    def own(self) -> tuple[Option, ...]:
        """What would be best for each person alone."""
        return tuple(self.problem.best(self.weights))

    @cached_property
    def tastes(self) -> Matrix:
        """The weights, scaled so that a person's own best plan is worth 1 to them."""
        worth = np.einsum("nk,nk->n", self.weights, np.array([one.value for one in self.own]))
        if not worth.min() > 0:
            name = self.names[int(worth.argmin())]
            raise ArgumentError(f"nothing that can be chosen is worth anything to {name}; leave {name} out")
        result: Matrix = self.weights / worth[:, None]
        return result

    def choice(self, *plans: Option) -> Choice:
        """Return what some plans come to for everybody, each taking the one that is best for them."""
        shares = self.tastes @ np.array([one.value for one in plans]).T
        served = shares.argmax(axis=1)
        return Choice(plans, np.minimum(shares.max(axis=1), 1.0), tuple(served.tolist()))

    def on_average(self) -> Choice:
        """Return the plan with the largest average share; it is exact for every kind of problem."""
        (best,) = self.problem.best(self.tastes.mean(axis=0, keepdims=True))
        return self.choice(best)

    def fairest(self) -> Choice:
        """Return the choice with which the person who keeps least keeps most.

        Of a catalogue it is one item, found by looking at all. Elsewhere it may be a lot, drawn once, as in ``by_lot``.
        """
        items = items_of(self.problem)
        if items is None:
            return self.by_lot()
        shares = items.gains @ self.tastes.T
        # Among equally fair ones the one that is best on average, so never a dominated one.
        order = np.lexsort((-shares.mean(axis=1), -np.round(shares.min(axis=1), 12)))
        return self.choice(items.option(int(order[0])))

    def by_lot(self) -> Choice:
        """Return the fairest lot among plans: a linear program over mixtures.

        The plans that are mixed are found as they are needed: the program's prices weigh the people, and the plan that is
        best for that weighted group is added, until it is worth no more to them than the lot.
        """
        plans, found = list(self.own), self.own[0]
        n = len(self.names)
        for _ in range(MOST_COLUMNS):
            shares = self.tastes @ np.array([one.value for one in plans]).T  # [people, plans]
            done = minimise(
                np.r_[np.zeros(len(plans)), -1.0],
                np.hstack([shares, -np.ones((n, 1))]),
                np.zeros(n),
                len(plans),
                free=1,
            )
            assert done is not None  # mixing is always possible, and shares are bounded
            say, found = done.prices, _mixed(plans, done.x[:-1])
            (best,) = self.problem.best((say @ self.tastes)[None, :])
            if float(say @ self.tastes @ best.value) <= float(done.x[-1]) + ROUNDING:
                break
            plans.append(best)
        return self.choice(found)

    def menu(self, size: int) -> Choice:
        """Return at most so many plans of which everybody takes one, chosen by leximin.

        The person who keeps least keeps most; among such menus the next one keeps most, and so on, so that no other menu is
        better for somebody and worse for nobody. It is exact for tables while there are few enough menus to compare.
        Elsewhere it is the best menu of plans that are best for somebody or for some mixture of tastes; what it says of
        everybody's share is exact all the same.
        """
        if size < 1:
            raise ArgumentError(f"a menu has at least one plan; {size!r} were asked for")
        offered, shares = self._offered
        return self.choice(*(offered[i] for i in self._leximin(shares, min(size, len(offered)))))

    def smallest_menu(self, regret: float) -> Choice:
        """Return the fewest plans with which everybody loses at most this part of what their own best plan gains them."""
        if not 0 <= regret < 1:
            raise ArgumentError(f"the regret is {regret!r}; it is a share, 0 or more and below 1")
        offered, shares = self._offered
        fewest = self._cover(shares, 1 - regret)
        assert fewest is not None  # everybody's own best plan is offered
        return self.choice(*(offered[i] for i in self._leximin(shares, len(fewest))))

    def _leximin(self, shares: Matrix, size: int) -> list[int]:
        """Return the menu of this size whose sorted shares are lexicographically largest."""
        if comb(shares.shape[1], size) <= MOST_MENUS:
            menus = np.array(list(combinations(range(shares.shape[1]), size)))
            best: list[int] = menus[_largest(shares[:, menus].max(axis=2))].tolist()
            return best
        menu = self._largest_least_share(shares, size)
        while True:  # exchange one plan at a time while that is better
            others = [i for i in range(shares.shape[1]) if i not in menu]
            neighbours = np.array([menu] + [[*menu[:j], i, *menu[j + 1 :]] for j in range(size) for i in others])
            best = neighbours[_largest(shares[:, neighbours].max(axis=2))].tolist()
            if best == menu:
                return menu
            menu = best

    def _largest_least_share(self, shares: Matrix, size: int) -> list[int]:
        """Return a menu of this size with which the person who keeps least keeps most, by set covers of rising shares."""
        levels = np.unique(np.round(shares, 12))
        low, high = 0, len(levels) - 1  # the least share at the lowest level is always reached
        menu = self._cover(shares, float(levels[0])) or [0]
        while low < high:
            middle = (low + high + 1) // 2
            cover = self._cover(shares, float(levels[middle]))
            if cover is not None and len(cover) <= size:
                low, menu = middle, cover
            else:
                high = middle - 1
        rest = [i for i in range(shares.shape[1]) if i not in menu]
        return sorted(menu + rest[: size - len(menu)])

    @cached_property
    def _offered(self) -> tuple[list[Option], Matrix]:
        """Return the plans that a menu is made of, and everybody's share of each; what serves nobody best is left out."""
        items = items_of(self.problem)
        if items is not None:
            shares = self.tastes @ items.gains.T
            kept = _useful(shares)
            return [items.option(int(i)) for i in kept], shares[:, kept]
        random = np.random.default_rng(0)
        mixed = random.dirichlet(np.full(len(self.names), 0.5), MOST_MIXED) @ self.tastes
        plans = [*self.own, *self.problem.best(mixed), *self.on_average().plans]
        found = list({np.round(one.value, 9).tobytes(): one for one in plans}.values())
        shares = self.tastes @ np.array([one.value for one in found]).T
        kept = _useful(shares)
        return [found[int(i)] for i in kept], shares[:, kept]

    def _cover(self, shares: Matrix, wanted: float) -> list[int] | None:
        """Return the fewest plans that give everybody at least this share (set cover); None if no plans do."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        serves = (shares >= wanted - ROUNDING).astype(float)
        if not serves.any(axis=1).all():
            return None
        count = shares.shape[1]
        done = milp(
            np.ones(count) - 1e-6 * shares.mean(axis=0) / count, integrality=np.ones(count, dtype=np.int64),
            bounds=Bounds(0, 1), constraints=LinearConstraint(serves, 1, np.inf),
        )  # fmt: skip
        assert done.x is not None, done.message
        return np.flatnonzero(done.x > 0.5).tolist()


def group(interviews: Sequence[Interview], names: Sequence[str] | None = None) -> Group:
    """Return the people of several interviews about one problem, to choose together.

    >>> import tradeoff
    >>> shop = tradeoff.Catalogue([[9, 1], [6, 6], [1, 9]], ["speed", "range"], ["fast", "middle", "far"])
    >>> people = Group(shop, ("Ann", "Bo"), np.array([[0.8, 0.2], [0.2, 0.8]]))
    >>> [one.plan.name for one in people.fairest().plans], [one.plan.name for one in people.menu(2).plans]
    (['middle'], ['fast', 'far'])
    """
    if not interviews:
        raise ArgumentError("a group has at least one person; no interviews were given")
    called = tuple(f"person {i + 1}" for i in range(len(interviews))) if names is None else tuple(map(str, names))
    if len(called) != len(interviews) or len(set(called)) != len(called):
        raise ArgumentError(
            f"each of the {len(interviews)} interviews needs a name of its own; {list(called)!r:.200} are given"
        )
    problem = interviews[0].problem
    for name, one in zip(called, interviews, strict=True):
        if one.problem.fingerprint != problem.fingerprint:
            raise ArgumentError(f"the interview of {name} is about another problem than that of {called[0]}")
        if all(answer.reply == SKIP for answer in one.answers):
            raise ArgumentError(f"{name} has answered nothing; leave {name} out")
    return Group(problem, called, np.array([shares_of(one.recommendation.weights) for one in interviews]))


def _mixed(plans: Sequence[Option], parts: Vector) -> Option:
    """Return a lot among plans; a single plan where that is all there is."""
    used = [i for i, part in enumerate(parts.tolist()) if part > ROUNDING]
    chances = parts[used] / parts[used].sum()
    if len(used) == 1:
        return plans[used[0]]
    value = chances @ np.array([plans[i].value for i in used])
    return Option(value, Mixture(tuple(chances.tolist()), tuple(plans[i].plan for i in used)))


def _largest(shares: Matrix) -> int:
    """Return the column of shares [people, menus] that is largest by leximin, and among equals on average."""
    ascending = np.round(np.sort(shares, axis=0), 12)
    order = np.lexsort((-shares.mean(axis=0), *(-ascending[::-1])))
    return int(order[0])


def _useful(shares: Matrix) -> Vector:
    """Return the columns that no other column matches for everybody; of equal ones, the first."""
    order = np.argsort(-shares.sum(axis=0), kind="stable")
    kept: list[int] = []
    for i in order.tolist():
        if not kept or not (shares[:, kept] >= shares[:, [i]] - 1e-15).all(axis=0).any():
            kept.append(i)
    return np.array(sorted(kept))
