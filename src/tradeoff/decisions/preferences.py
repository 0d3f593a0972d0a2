"""All preferences that are still possible: the weights that fit the answers, and points spread evenly over them.

An answer is about weights w and a precision e, the smallest difference that a person notices. Weights fit if some precision
goes with them: then every difference that was noticed is at least as large as every one that was not. That is a convex set
of weights, and "all preferences still possible" means this set, where every weight vector counts the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tradeoff.interview import Interview
from tradeoff.model import Indices, Matrix, Vector
from tradeoff.problem import Problem
from tradeoff.running import Record
from tradeoff.strategies.polytope import Cone, half_spaces

Answers = tuple[tuple[int, Vector, int], ...]  # number in the log, difference of gains, +1, 0 or -1

SWEEPS = 12  # per objective, and as many again: steps of every point before the points count
CORNERS = 8  # directions, beside the objectives, whose extreme points are looked for: the points start between them
LEAST_STEP = 1e-14  # of a direction: what is smaller is rounding and bounds nothing


@dataclass(frozen=True, eq=False)
class Preferences:
    """The weights that fit the trusted answers.

    ``answers`` are about the ``relevant`` objectives, those that what is chosen can change; the weights of the others
    cannot matter and are 0. ``set_aside`` are the numbers of answers that are not trusted: probable slips, and answers that
    contradict each other.
    """

    objectives: int
    relevant: Indices
    answers: Answers
    set_aside: tuple[int, ...] = ()

    @classmethod
    def of(cls, interview: Interview) -> Preferences:
        """Return the preferences that fit the trusted answers of an interview."""
        recommendation = interview.recommendation
        return cls.given(interview.problem, interview.answers, recommendation.doubtful)

    @classmethod
    def given(cls, problem: Problem, answers: Sequence[Record], doubtful: Sequence[int] = ()) -> Preferences:
        """Return the preferences that fit these answers without the doubtful ones.

        Where the others contradict each other, a smallest set of them that does is set aside as well, until some fit.
        """
        matters = getattr(problem, "matters", None)
        relevant = np.arange(len(problem.objectives)) if matters is None else np.flatnonzero(np.asarray(matters))
        labelled = tuple(
            (number, question.difference[relevant], answer.sign) for number, question, answer in answers if answer
        )
        aside = {int(number) for number in doubtful}
        while True:
            trusted = tuple(one for one in labelled if one[0] not in aside)
            conflict = _cone(trusted, len(relevant)).irreducible_conflict()
            if not conflict:
                return cls(len(problem.objectives), relevant, trusted, tuple(sorted(aside)))
            aside |= set(conflict)  # type: ignore[arg-type]

    @property
    def d(self) -> int:
        """The number of objectives that can be changed."""
        return len(self.relevant)

    @cached_property
    def half_spaces(self) -> Matrix:
        """The rows a with ``a @ w >= 0`` for all rows exactly where the weights >= 0 on the relevant objectives fit."""
        strict = [sign * difference for _, difference, sign in self.answers if sign]
        same = [difference for _, difference, sign in self.answers if not sign]
        rows = [np.eye(self.d), *(row[None, :] for row in strict)]
        rows += [np.stack([noticed - unnoticed, noticed + unnoticed]) for noticed in strict for unnoticed in same]
        return np.vstack(rows)

    def fit(self, weights: Matrix) -> NDArray[np.bool_]:
        """Return which rows of weights on all objectives fit the answers."""
        return np.asarray((weights[:, self.relevant] @ self.half_spaces.T >= -1e-12).all(axis=1))

    def on_all(self, weights: Matrix) -> Matrix:
        """Return weights on the relevant objectives as weights on all of them."""
        rows = np.zeros((len(weights), self.objectives))
        rows[:, self.relevant] = weights
        return rows

    def interval(self) -> tuple[float, float]:
        """Return the least and the largest share of the first of two relevant objectives."""
        # (s, 1 - s) @ a = a1 + s (a0 - a1) >= 0
        slope = self.half_spaces[:, 0] - self.half_spaces[:, 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            at = -self.half_spaces[:, 1] / slope
        low = max([0.0, *at[slope > LEAST_STEP].tolist()])
        return low, max(min([1.0, *at[slope < -LEAST_STEP].tolist()]), low)

    def spread(self, count: int, seed: int = 0) -> Matrix:
        """Return weights on all objectives that are spread evenly over all that fit: [count, k], each row summing to 1.

        With two relevant objectives they are equally far apart. With more they are drawn: every point takes steps to
        anywhere on a line through it, in the direction from one to another of points that do not move meanwhile. That
        leaves the uniform distribution as it is, however narrow the set. ``count`` must be even.
        """
        if self.d == 1:
            return self.on_all(np.ones((count, 1)))
        if self.d == 2:
            low, high = self.interval()
            first = low + (high - low) * (np.arange(count) + 0.5) / count
            return self.on_all(np.stack([first, 1 - first], axis=1))
        random = np.random.default_rng(seed)
        corners = self._corners(random)
        points = random.dirichlet(np.ones(len(corners)), count) @ corners
        halves = points[: count // 2], points[count // 2 :]
        for _ in range(SWEEPS * (self.d + 1)):
            for moving, still in (halves, halves[::-1]):
                self._step(moving, still, random)
        return self.on_all(points)

    def _step(self, moving: Matrix, still: Matrix, random: np.random.Generator) -> None:
        """Move every point to a random place on its line through the set."""
        n, rows = len(moving), self.half_spaces
        one = random.integers(len(still), size=n)
        other = (one + random.integers(1, len(still), size=n)) % len(still)
        direction = still[one] - still[other]
        direction /= np.maximum(np.abs(direction).max(axis=1, keepdims=True), 1e-300)
        rise, height = direction @ rows.T, np.maximum(moving @ rows.T, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = height / -rise
        ahead = np.where(rise < -LEAST_STEP, reach, np.inf).min(axis=1)
        behind = np.where(rise > LEAST_STEP, reach, -np.inf).max(axis=1)
        bounded = np.isfinite(ahead) & np.isfinite(behind)
        step = np.where(bounded, behind + random.random(n) * (ahead - behind), 0.0)
        moving += step[:, None] * direction
        np.maximum(moving, 0.0, out=moving)
        moving /= moving.sum(axis=1, keepdims=True)

    def _corners(self, random: np.random.Generator) -> Matrix:
        """Return corners of the set in many directions."""
        from scipy.optimize import linprog

        directions = np.vstack([np.eye(self.d), -np.eye(self.d), random.standard_normal((CORNERS, self.d))])
        answered = self.half_spaces[self.d :]
        found = []
        for direction in directions:
            done = linprog(
                direction, A_ub=-answered if len(answered) else None, b_ub=np.zeros(len(answered)) if len(answered) else None,
                A_eq=np.ones((1, self.d)), b_eq=[1.0],
            )  # fmt: skip
            assert done.x is not None, done.message  # the set is not empty, and bounded
            found.append(done.x)
        return np.array(found)


def _cone(answers: Answers, d: int) -> Cone:
    """Return the cone of (weights, precision) that fit these answers."""
    cone = Cone.orthant(d, 1.0)
    for number, difference, sign in answers:
        cone = cone.add(half_spaces(difference, sign), number)
    return cone
