"""Find the few trajectories whose outcomes are distributed most like the plan's own.

Every vertex of {x >= 0, sum of x = 1, mean exact} over a set of possible trajectories is a choice of at most k+1 of them
with exactly the plan's mean. Beginning with the vertex found by Algorithm 4, this searches for one whose outcomes are close
to the true distribution: it moves to neighbouring vertices while that helps, and starts again from a few random vertices
nearby. Closeness is the mean over the objectives of the 1-Wasserstein distance in standard deviations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tradeoff.errors import ProblemError
from tradeoff.mdp.stories.compress import compress
from tradeoff.mdp.stories.outcomes import draw, outcomes_of
from tradeoff.mdp.stories.process import Following, Int, Process, path_probability, trajectories
from tradeoff.model import Lottery, Matrix, Outcomes, Vector

CANDIDATES = 300  # trajectories drawn as candidates
KICKS = 3  # searches from random vertices near the best one; more gained nothing on the bundled problems
PIVOT = 1e-9  # entries of a direction below this are rounding
STEP = 1e-12  # a step that gains less ends the search
PARTS = (0.25, 0.5, 0.75)  # shares of the step to a neighbour at which a candidate is tried as an extra


def most_faithful(
    process: Process,
    followings: Sequence[tuple[float, Following]],
    hypothetical: float,
    lottery: Lottery,
    value: Vector,
) -> Lottery:
    """Return a lottery with the same mean whose outcomes are as close to the plan's distribution as the search can find.

    ``hypothetical`` is the share of the reference in a mixture, if the reference is not a policy.
    """
    parts: list[tuple[float, Following | None]] = [*followings]
    truth = outcomes_of(process, [*parts, (hypothetical, None)] if hypothetical > 0 else parts)
    lottery = replace(lottery, truth=truth)
    drawn = [draw(process, following, max(1, round(share * CANDIDATES)), seed=1) for share, following in followings]
    shown = len(lottery.trajectories)
    points = np.concatenate([lottery.outcomes, *(paths.returns for paths in drawn)])
    _, first = np.unique(points, axis=0, return_index=True)
    candidates = np.concatenate([np.arange(shown), np.sort(first[first >= shown])])
    rows, weights, independent = closest(
        truth, points[candidates], np.arange(shown), lottery.weights, value, len(process.objectives) + 1
    )
    rows = candidates[rows]
    # Solve for the weights of the independent ones again, to full precision.
    extra = float(weights[independent:].sum())
    rest = value - weights[independent:] @ points[rows[independent:]]
    basis = weights[:independent] > 0
    try:
        kept, shares = compress(
            points[rows[:independent][basis]],
            weights[:independent][basis] / weights[:independent][basis].sum(),
            target=rest / (1 - extra),
        )
    except ProblemError:  # too ill-conditioned for the search's arithmetic
        return lottery
    rows = np.append(rows[:independent][basis][kept], rows[independent:])
    shares = np.append(shares * (1 - extra), weights[independent:])
    # Accept it if it is at least as exact as the paper's choice, or exact up to rounding.
    allowed = np.maximum(np.abs(lottery.average - value), 4 * np.finfo(float).eps * np.abs(points[rows]).max(axis=0))
    exact = bool(np.all(np.abs(shares @ points[rows] - value) <= allowed))
    distance = Distance(truth)
    if not exact or distance.of(points[rows], shares) >= distance.of(lottery.outcomes, lottery.weights):
        return lottery
    stories = []
    for row in rows.tolist():
        if row < shown:
            stories.append(lottery.trajectories[row])
            continue
        row -= shown
        for paths in drawn:
            if row < len(paths.weights):
                chance = sum(share * path_probability(process, other, paths, row) for share, other in followings)
                stories += trajectories(process, paths, {row: chance})
                break
            row -= len(paths.weights)
    return Lottery(tuple(process.objectives), shares, tuple(stories), truth)


class Distance:
    """How far a few weighted outcomes are from a true distribution.

    >>> coin = Outcomes(np.array([[0.0], [2.0]]), np.array([0.5, 0.5]))
    >>> distance = Distance(coin)
    >>> distance.of(np.array([[1.0]]), np.array([1.0])), distance.of(np.array([[0.0], [2.0]]), np.array([0.5, 0.5]))
    (1.0, 0.0)
    """

    def __init__(self, truth: Outcomes) -> None:
        self.varying = np.flatnonzero(truth.spread > 0)
        self.centre, self.scale = truth.mean[self.varying], truth.spread[self.varying]
        self._tables = []
        for column in self.standard(truth.points).T:
            order = np.argsort(column, kind="stable")
            sorted_, chance = column[order], truth.probabilities[order]
            reached = np.concatenate([[0.0], np.cumsum(chance)])
            reached[-1] = 1.0
            self._tables.append((sorted_, reached, np.concatenate([[0.0], np.cumsum(sorted_ * chance)])))

    def standard(self, points: Matrix) -> Matrix:
        """Return the varying objectives in standard deviations from the mean."""
        result: Matrix = (points[:, self.varying] - self.centre) / self.scale
        return result

    def levels(self, standard: Matrix) -> Matrix:
        """Return, for each entry, the true probability of that value or less."""
        columns = [
            reached[np.searchsorted(sorted_, column, side="right")]
            for (sorted_, reached, _), column in zip(self._tables, standard.T, strict=True)
        ]
        return np.stack(columns, axis=1) if columns else np.zeros((len(standard), 0))

    def of(self, points: Matrix, weights: Vector) -> float:
        """Return the distance of one set of weighted outcomes."""
        standard = self.standard(points)
        return float(self.of_many(weights[None], standard[None], self.levels(standard)[None])[0])

    def of_many(self, weights: Matrix, standard: Matrix, levels: Matrix) -> Vector:
        """Return the distances of n sets of m outcomes: weights [n, m], standard outcomes and their levels [n, m, d].

        Between two cumulative weights a and b the shown quantile is a constant g, and the true one crosses it at its level
        u: the integral of their difference needs only the integral of the true quantile at a, b and u.
        """
        total = np.zeros(len(weights))
        for j, (_, reached, integral) in enumerate(self._tables):
            order = np.argsort(standard[:, :, j], axis=1)
            shown = np.take_along_axis(standard[:, :, j], order, axis=1)
            end = np.minimum(np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1), 1.0)
            end[:, -1] = 1.0
            begin = np.concatenate([np.zeros((len(weights), 1)), end[:, :-1]], axis=1)
            crossing = np.clip(np.take_along_axis(levels[:, :, j], order, axis=1), begin, end)
            at_end, at_crossing = np.interp(end, reached, integral), np.interp(crossing, reached, integral)
            at_begin = np.concatenate([np.zeros((len(weights), 1)), at_end[:, :-1]], axis=1)
            total += (shown * (2 * crossing - begin - end) - 2 * at_crossing + at_begin + at_end).sum(axis=1)
        result: Vector = total / max(1, len(self._tables))
        return result


@dataclass(frozen=True, eq=False)
class _Choice:
    """Candidates with weight: a basis of m rows, whose weights follow from the mean, and extras."""

    rows: Int  # the basis first
    weights: Vector
    distance: float


def closest(
    truth: Outcomes, points: Matrix, rows: Int, weights: Vector, mean: Vector, most: int
) -> tuple[Int, Vector, int]:
    """Return rows of the points and weights with the same mean, as close to the truth as the search can find.

    ``rows`` and ``weights`` are a first such choice; ``mean`` is the mean, which the weights match only up to rounding. At
    most ``most`` rows are returned. The last number says how many of them, from the first on, are affinely independent.
    """
    distance = Distance(truth)
    search = _Search(distance, points, mean, most)
    best = search.begin(rows, weights)
    if not len(distance.varying) or best is None:
        return rows, weights, len(rows)
    best = search.descend(best)
    random = np.random.default_rng(0)
    for _ in range(KICKS):
        found = search.descend(search.kicked(best, random))
        best = found if found.distance < best.distance else best
    return best.rows, best.weights, search.size


class _Search:
    """A search among the choices of candidates that have the mean."""

    def __init__(self, distance: Distance, points: Matrix, mean: Vector, most: int) -> None:
        self.distance, self.most = distance, most
        self.standard = distance.standard(points)
        self.levels = distance.levels(self.standard)
        lifted = np.concatenate([self.standard - distance.standard(mean[None]), np.ones((len(points), 1))], axis=1)
        # Dependent objectives would make every basis singular, so work in the subspace that they span.
        left, sizes, _ = np.linalg.svd(lifted.T, full_matrices=False)
        axes = left[:, sizes > 1e-9 * sizes[0]].T
        self.columns = axes @ lifted.T  # [size, n]
        self.size = len(axes)

    def begin(self, rows: Int, weights: Vector) -> _Choice | None:
        """Return the choice of these rows, completed to a basis with candidates of weight 0; None if there is no basis."""
        if len(rows) > self.size:
            return None
        basis = list(rows)
        orthonormal, _ = np.linalg.qr(self.columns[:, rows])
        rest = self.columns - orthonormal @ (orthonormal.T @ self.columns)
        while len(basis) < self.size:
            furthest = int(np.square(rest).sum(axis=0).argmax())
            direction = rest[:, furthest] / max(float(np.linalg.norm(rest[:, furthest])), 1e-300)
            rest = rest - np.outer(direction, direction @ rest)
            basis.append(furthest)
        if len(set(basis)) < self.size:
            return None
        return self._choice(np.array(basis), np.append(weights, np.zeros(self.size - len(rows))))

    def _choice(self, rows: Int, weights: Vector) -> _Choice:
        distance = self.distance.of_many(weights[None], self.standard[rows][None], self.levels[rows][None])
        return _Choice(rows, weights, float(distance[0]))

    def _steps(self, choice: _Choice) -> tuple[Int, Int, Vector, Matrix]:
        """Return the possible steps: candidates, the slot of the basis each would take, its weight there, and directions."""
        basis, weights = choice.rows[: self.size], choice.weights[: self.size]
        try:
            directions = np.linalg.solve(self.columns[:, basis], self.columns).T
        except np.linalg.LinAlgError:
            directions = np.zeros(self.columns.T.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(directions > PIVOT, weights / directions, np.inf)
        slot = reach.argmin(axis=1)
        length = reach[np.arange(len(slot)), slot]
        usable = np.isfinite(length) & (length > PIVOT)
        usable[choice.rows] = False
        entering = np.flatnonzero(usable)
        return entering, slot[entering], length[entering], directions[entering]

    def descend(self, choice: _Choice) -> _Choice:
        """Return the choice reached by moving to the closest neighbour as long as it is closer to the truth.

        A neighbour gives weight of the basis to one more candidate: either until one of the basis has no weight left and is
        replaced, or only part of it, as an extra or instead of another extra.
        """
        while True:
            tried = [self._closest_step(choice, (1.0,))]
            if len(choice.rows) < self.most:
                tried.append(self._closest_step(choice, PARTS))
            for slot in range(self.size, len(choice.rows)):
                tried.append(self._closest_step(self._without(choice, slot), PARTS))
            found = min(tried, key=lambda one: one.distance)
            if found.distance >= choice.distance - STEP:
                return choice
            choice = found

    def _without(self, choice: _Choice, slot: int) -> _Choice:
        """Return the choice with an extra's weight given back to the basis, which may make it infeasible."""
        basis = self.columns[:, choice.rows[: self.size]]
        weights = choice.weights.copy()
        weights[: self.size] += weights[slot] * np.linalg.solve(basis, self.columns[:, choice.rows[slot]])
        return _Choice(np.delete(choice.rows, slot), np.delete(weights, slot), np.inf)

    def _closest_step(self, choice: _Choice, parts: Sequence[float]) -> _Choice:
        """Return the closest choice with one more candidate, given these shares of the weight it could have."""
        entering, slot, length, directions = self._steps(choice)
        best = _Choice(choice.rows, choice.weights, np.inf)
        if not len(entering) or choice.weights.min() < 0:
            return best
        for part in parts:
            rows = np.repeat(choice.rows[None], len(entering), axis=0)
            weights = np.repeat(choice.weights[None], len(entering), axis=0)
            weights[:, : self.size] = np.maximum(weights[:, : self.size] - part * length[:, None] * directions, 0.0)
            if part == 1.0:
                each = np.arange(len(entering))
                rows[each, slot], weights[each, slot] = entering, length
            else:
                rows = np.append(rows, entering[:, None], axis=1)
                weights = np.append(weights, part * length[:, None], axis=1)
            distances = self.distance.of_many(weights, self.standard[rows], self.levels[rows])
            i = int(distances.argmin())
            if distances[i] < best.distance:
                best = _Choice(rows[i], weights[i], float(distances[i]))
        return best

    def kicked(self, choice: _Choice, random: np.random.Generator) -> _Choice:
        """Return a choice that is a few random replacements away."""
        rows, weights = choice.rows, choice.weights
        for _ in range(self.size):
            entering, slot, length, directions = self._steps(_Choice(rows, weights, np.inf))
            if not len(entering):
                break
            i = int(random.integers(len(entering)))
            rows, weights = rows.copy(), weights.copy()
            weights[: self.size] = np.maximum(weights[: self.size] - length[i] * directions[i], 0.0)
            rows[slot[i]], weights[slot[i]] = entering[i], length[i]
        return self._choice(rows, weights)
