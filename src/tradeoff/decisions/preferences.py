"""All preferences that are still possible: the weights that fit the answers, and points spread evenly over them.

An answer is about weights w and a precision e, the smallest difference that a person notices. Weights fit if some precision
goes with them: then every difference that was noticed is at least as large as every one that was not. That is a convex set
of weights, and "all preferences still possible" means this set, where every weight vector counts the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from tradeoff.decisions.linear_program import minimise
from tradeoff.evidence import EXCEEDS, NOT_WORSE, PREFERRED, SAME, Answer, half_spaces
from tradeoff.interview import Interview
from tradeoff.model import SKIP, Indices, Matrix
from tradeoff.problem import Problem
from tradeoff.strategies.cone import Cone

# Number in the log, and what the answer says: differences of gains [q, d], and how each comparison came out.
Answers = tuple[tuple[int, Matrix, NDArray[np.int64]], ...]

STEPS = 5  # times the square of the number of objectives: how often a point moves before it counts
AT_ONCE = 256  # points that walk together: few enough for the processor's cache
CORNERS = 8  # directions, beside the objectives, whose extreme points are looked for: the points start between them
LEAST_STEP = 1e-14  # of a direction: what is smaller is rounding and bounds nothing
ACCURATE = 1e-12  # how far outside a corner may lie
NO_HEIGHT, NO_RATE = 1e-14, 1e-12  # a point on the border, and a line that never meets it


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
        set_aside = (*recommendation.doubtful, *recommendation.unexplained)
        return cls.given(interview.problem, interview.answers, set_aside)

    @classmethod
    def given(cls, problem: Problem, answers: Sequence[Answer], doubtful: Sequence[int] = ()) -> Preferences:
        """Return the preferences that fit these answers without the doubtful ones.

        Best and worst of a menu are taken to differ noticeably, as in the posterior. Where that contradicts other answers, the
        menus among them are read as in a certificate. If answers contradict each other even so, all of an irreducible set of
        them are set aside, because any of them may be the wrong one.
        """
        matters = getattr(problem, "matters", None)
        relevant = np.arange(len(problem.objectives)) if matters is None else np.flatnonzero(np.asarray(matters))
        aside, cautious = {int(number) for number in doubtful}, set[int]()
        while True:
            trusted = tuple(
                (answer.number, differences[:, relevant], outcomes)
                for answer in answers
                if answer.reply != SKIP and answer.number not in aside
                for differences, outcomes in [
                    answer.certain_terms() if answer.number in cautious else answer.likelihood_terms()
                ]
            )
            conflict = set(_cone(trusted, len(relevant)).irreducible_conflict()) if len(relevant) else set()
            if not conflict:
                return cls(len(problem.objectives), relevant, trusted, tuple(sorted(aside)))
            menus = {
                number for number, _, outcomes in trusted if number in conflict and NOT_WORSE in outcomes
            } - cautious
            cautious |= menus
            if not menus:
                aside |= conflict

    @property
    def d(self) -> int:
        """The number of objectives that can be changed."""
        return len(self.relevant)

    @cached_property
    def half_spaces(self) -> Matrix:
        """The rows a with ``a @ w >= 0`` for all rows exactly where the weights >= 0 on the relevant objectives fit."""
        differences = np.vstack([np.zeros((0, self.d)), *(differences for _, differences, _ in self.answers)])
        outcomes = np.concatenate([np.zeros(0, dtype=np.int64), *(outcomes for _, _, outcomes in self.answers)])
        noticed, stated = differences[outcomes == PREFERRED], differences[outcomes == EXCEEDS]
        same, placed = differences[outcomes == SAME], differences[outcomes == NOT_WORSE]
        unnoticed = np.vstack([same, -same, placed])  # with what was noticed added, each is at least 0
        rows = [difference + unnoticed for difference in noticed]
        return np.vstack([np.eye(self.d), stated, noticed, *rows])

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

        With two relevant objectives they are equally far apart. With more they are drawn by hit-and-run: every point takes
        steps to anywhere on a random line through it, which leaves the uniform distribution as it is. The directions are
        those in which the set is wide, so that it may be narrow in others.
        """
        if self.d < 2:
            return self.on_all(np.ones((count, self.d)))
        if self.d > 2 and not self.answers:
            return self.on_all(_over_all(self.d, count, seed))
        if self.d == 2:
            low, high = self.interval()
            first = low + (high - low) * (np.arange(count) + 0.5) / count
            return self.on_all(np.stack([first, 1 - first], axis=1))
        return self.on_all(self._drawn(count, seed))

    def _drawn(self, count: int, seed: int) -> Matrix:
        """Return weights on the relevant objectives drawn by hit-and-run."""
        random = np.random.default_rng(seed)
        corners = self._corners(random)
        begun = (random.dirichlet(np.ones(len(corners)), max(count, AT_ONCE)) @ corners).T
        shape = _root(np.cov(self._walked(begun[:, :AT_ONCE], _root(np.cov(begun)), random)))
        parts = [begun[:, i : min(i + AT_ONCE, count)] for i in range(0, count, AT_ONCE)]
        result: Matrix = np.hstack([self._walked(part, shape, random) for part in parts]).T
        return result

    def _walked(self, points: Matrix, shape: Matrix, random: np.random.Generator) -> Matrix:
        """Return the points, one per column, after many steps, each to anywhere on a line through the point.

        The lines' directions are spread like the columns of ``shape``, whatever has happened before.
        """
        rows = self.half_spaces
        for _ in range(STEPS * self.d**2):
            direction = shape @ random.standard_normal(points.shape)
            # Along the line the height over a half-space becomes height * (1 + t * rate); the line ends where that is 0.
            rate = (rows @ direction) / np.maximum(rows @ points, NO_HEIGHT)
            ahead, behind = -1 / np.minimum(rate.min(axis=0), -NO_RATE), -1 / np.maximum(rate.max(axis=0), NO_RATE)
            moved = points + (behind + random.random(points.shape[1]) * (ahead - behind)) * direction
            np.maximum(moved, 0.0, out=moved)
            points = moved / moved.sum(axis=0)
        return points

    def _corners(self, random: np.random.Generator) -> Matrix:
        """Return corners of the set in many directions."""
        directions = np.vstack([np.eye(self.d), -np.eye(self.d), random.standard_normal((CORNERS, self.d))])
        known = self._known_corners()
        if len(known):
            extreme: Matrix = known[(known @ directions.T).argmin(axis=0)]
            return extreme
        answered = self.half_spaces[self.d :]
        found = []
        for direction in directions:
            done = minimise(direction, answered, np.zeros(len(answered)), self.d)
            assert done is not None  # the set is not empty, and bounded
            found.append(done.x)
        return np.array(found)

    def _known_corners(self) -> Matrix:
        """Return all corners of the set, perhaps with other points of it; none where they are too many, or not accurate."""
        cone = _cone(self.answers, self.d)
        weights = cone.rays[:, :-1]
        accurate = cone.complete and bool(np.all(weights @ self.half_spaces.T >= -ACCURATE))
        return weights if accurate else np.zeros((0, self.d))


@lru_cache(16)
def _over_all(d: int, count: int, seed: int) -> Matrix:
    """Return what is drawn before any answer: the same for everybody."""
    found = Preferences(d, np.arange(d), ())._drawn(count, seed)
    found.flags.writeable = False
    return found


def _root(covariance: Matrix) -> Matrix:
    """Return a matrix whose product with its transpose is this covariance, whose rows sum to 0."""
    sizes, directions = np.linalg.eigh(covariance)
    root = directions * np.sqrt(np.maximum(sizes, 0.0))
    result: Matrix = root - root.mean(axis=0)
    return result


def _cone(answers: Answers, d: int) -> Cone:
    """Return the cone of (weights, precision) that fit these answers."""
    cone = Cone.orthant(d, 1.0)
    return cone.add_all((number, half_spaces(differences, outcomes)) for number, differences, outcomes in answers)
