"""Few, real questions and an exact certificate at every moment.

Everything a person may be, given their answers, is a cone of (weights, precision). How much a recommendation may lose
against the best is quasi-convex over it, so the worst case is at one of its extreme rays: solving the problem in the
directions of all rays, one batched call, gives the certificate. It holds for every linear preference with weights >= 0
that is consistent with the answers, however the questions were chosen.
"""

from __future__ import annotations

import hashlib
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradeoff.errors import ArgumentError
from tradeoff.model import Answer, Matrix, Question, Recommendation, Vector
from tradeoff.problem import Problem
from tradeoff.strategies.base import ForeignAnswer, Reply, Step, Strategy
from tradeoff.strategies.basis import bases_of
from tradeoff.strategies.cache import Known, memory_of
from tradeoff.strategies.choosing import (
    ANSWERS,
    Pool,
    cover,
    easiest,
    entropy,
    information,
    pool_of,
    predicted,
)
from tradeoff.strategies.polytope import Cone, TooManyRays
from tradeoff.strategies.sampling import half_spaces, posterior_particles

PARTICLES = 300
# For answers that are always right: a lapse so rare that no particle survives a contradiction if any other exists.
NO_LAPSE = 1e-6
RAY_LIMIT = 20_000

CHALLENGERS = 5  # worst-case rivals of the recommendation that take part in questions
FAVOURITES = 10  # alternatives that are best for the most particles
FRESH = 24  # particles whose true optimum is looked up each time
GRID = 16  # steps across the belief, between directions that are looked up
LOOK_AHEAD = 10  # questions whose answers are followed through exactly
USEFUL = 0.03  # bits: a question whose answer is surer than this tells nothing
NEARLY = 0.98  # who never errs can be asked the best question, and not an easier one that is nearly as good
WIDE = 30  # alternatives to fall back on when the contenders give no useful question
CANDIDATES = 4  # for the recommendation, when answers are followed through
MARGIN = 0.8  # of the target: what is below counts as proved already
STALL = 2  # answers "about equal" in a row after which others are sought
ALIKE = 0.1  # of the target: alternatives that differ by less to everybody are not worth a question
UNLIKELY = 0.05  # answers rarer than this are not followed through
INFORMATION = 0.2  # what a bit is worth beside the share of the proof that is done


# Questions per objective after which the asking ends, target or not: nobody answers more.
MOST_PER_OBJECTIVE = 6


@dataclass(frozen=True, eq=False)
class Certificate:
    """The worst case over everything consistent with the answers."""

    rays: Matrix  # [n, d] weights
    precision: Vector  # [n]
    best: Vector  # [n]: what the best alternative is worth at each ray
    worth: Matrix  # [n, K]: what each known alternative is worth there
    number: int  # the alternative that is recommended
    bound: float  # its worst relative regret
    noticeable: float  # its worst loss in units of the person's precision

    def regrets_of(self, number: int) -> Vector:
        """Return the relative regret of an alternative at each ray."""
        result: Vector = 1 - self.worth[:, number] / self.best
        return result


def check_target(target: float) -> None:
    """Raise an ArgumentError if the target is not a relative regret."""
    if not 0 < target < 1:
        raise ArgumentError(f"the target is {target!r}; it is a relative regret between 0 and 1, such as 0.01")


def certified(problem: Problem, *, target: float = 0.01, lotteries: bool = False, seed: int = 0) -> Strategy:
    """Return the strategy for people whose answers are always right; it stops at a certified relative regret.

    ``lotteries`` allows questions about an alternative that is had only with some probability.
    """
    check_target(target)
    return Certified(problem, target, lotteries, seed).run()


class Certified:
    """One interview: the cone, the belief, and what is known of the problem."""

    lapse = NO_LAPSE

    def __init__(self, problem: Problem, target: float, lotteries: bool, seed: int) -> None:
        self.problem, self.target, self.lotteries = problem, target, lotteries
        self.memory = memory_of(problem)
        self.place = hashlib.sha256(repr((type(self).__name__, target, lotteries, seed)).encode()).digest()
        if not self.recalled():
            bases = bases_of(problem)
            self.relevant: NDArray[np.int64] = np.array(bases.relevant, dtype=np.int64)
            self.k, self.d = len(problem.objectives), len(bases.relevant)
            self.random = np.random.default_rng(seed)
            self.known = Known(self.k)
            self.known.add(list(bases.spanner().alternatives))
            self.asked: list[tuple[Question, Answer]] = []
            self.places: list[int] = []  # where each of them stands among all questions put, skipped ones included
            self.unanswered: set[bytes] = set()  # skipped: not to be asked again
            self.elsewhere: set[bytes] = set()  # asked by an earlier version: only their values are known
            self.cone = self.everything()
            self.particles = posterior_particles(*self.answered(), PARTICLES, self.random, lapse=self.lapse)
            self.certificate = self.certify()
            self.consider()

    def everything(self) -> Cone:
        """Return the cone before any answer."""
        return Cone.orthant(self.d, 1.0, limit=RAY_LIMIT)

    # --- asking -------------------------------------------------------------------------------------------------------

    def run(self) -> Strategy:
        """Ask until the target is reached, or nothing more can be learned."""
        most = MOST_PER_OBJECTIVE * self.d
        for left in range(most, 0, -1):
            if isinstance(self.next, Recommendation):
                return self.next
            reply = yield Step(self.next, self.so_far, left, self.knows)
            told = reply if isinstance(reply, ForeignAnswer) else ForeignAnswer(self.next, reply)
            if told is reply:
                self.elsewhere.add(told.question.key)
            self.take(told.question, told.reply, most - left + 1)
        if isinstance(self.next, Recommendation):
            return replace(self.next, complete=False)
        return self.recommend(f"{most} questions were not enough to be sure", complete=False)

    def so_far(self) -> Recommendation:
        """Return what would be recommended here; whoever looks again, or comes after, is told the same at once."""
        key = self.place + b"so far"
        found = self.memory.recall(key)
        if found is None:
            found = {"recommendation": self.recommend("stopped early", complete=False)}
            self.memory.remember(key, found)
        made: Recommendation = found["recommendation"]
        return made

    def place_after(self, question: Question, reply: Reply) -> bytes:
        """Return what tells the place after this reply from all others."""
        said = b"skip" if reply is None else reply.value.encode()
        said += b"/elsewhere" if question.key in self.elsewhere else b""
        return hashlib.sha256(self.place + question.key + said).digest()

    def knows(self, reply: Reply) -> bool:
        """Return whether somebody was before where this reply leads."""
        return isinstance(self.next, Question) and self.memory.recall(self.place_after(self.next, reply)) is not None

    def take(self, question: Question, reply: Reply, place: int) -> None:
        """Take a reply in, and make up one's mind what to do next; where somebody was before, that is known."""
        self.place = self.place_after(question, reply)
        if self.recalled():
            return
        if reply is None:
            self.unanswered.add(question.key)
        else:
            self.places.append(place)
            self.learn(question, reply)
        self.consider()

    def consider(self) -> None:
        """Make up one's mind: the next question, or the recommendation if nothing is left to ask."""
        reason = self.reached()
        question = self.choose() if reason is None else None
        self.next: Question | Recommendation = question or self.recommend(
            reason or "no question is left whose answer could tell more"
        )
        self.memory.remember(self.place, self.standing())

    def standing(self) -> dict[str, Any]:
        """Return everything that has changed since the beginning, in copies that stay as they are."""
        kept = {name: value for name, value in vars(self).items() if name not in ("problem", "memory")}
        return kept | {
            "asked": list(self.asked),
            "places": list(self.places),
            "unanswered": set(self.unanswered),
            "elsewhere": set(self.elsewhere),
            "known": self.known.copy(),
            "random": deepcopy(self.random),
        }

    def recalled(self) -> bool:
        """Go where somebody who gave the same answers was before, and return whether there was anybody."""
        found = self.memory.recall(self.place)
        if found is not None:
            vars(self).update(found)
            vars(self).update(self.standing())  # copies again: what is remembered is not ours to change
        return found is not None

    def reached(self) -> str | None:
        """Return why to stop, if there is a reason to."""
        if self.cone.empty:
            return "the answers contradict each other; take one of them back to go on"
        if self.certificate.bound <= self.target:
            return f"certified: at most {100 * self.target:g}% of the best possible gain can be lost"
        # "About equal" puts rays where a loss is exactly the precision: equality must count, whatever its last digit.
        if self.certificate.noticeable <= 1 + 1e-9:
            return "nothing could be better by as much as you would notice"
        return None

    def answered(self) -> tuple[Matrix, NDArray[np.int64]]:
        """Return the differences [q, d] and the kinds of answer (+1, 0, -1) so far."""
        differences = np.array([q.difference[self.relevant] for q, _ in self.asked]).reshape(-1, self.d)
        return differences, np.array([a.sign for _, a in self.asked], dtype=np.int64)

    def update_belief(self) -> None:
        """Renew the particles after one more answer."""
        differences, kinds = self.answered()
        self.particles = posterior_particles(
            differences, kinds, PARTICLES, self.random, self.particles, len(kinds) - 1, lapse=self.lapse
        )

    def learn(self, question: Question, answer: Answer) -> None:
        """Take an answer in: cut the cone, renew the belief, renew the certificate."""
        self.asked.append((question, answer))
        smaller = self.cone.add(half_spaces(question.difference[self.relevant], answer.sign), len(self.asked))
        if self.listed(smaller):  # otherwise there are too many rays: the larger cone is still a valid certificate
            self.cone = smaller
        if not self.cone.empty:
            self.update_belief()
            self.certificate = self.certify()

    # --- knowing ------------------------------------------------------------------------------------------------------

    def directions(self, weights: Matrix) -> Matrix:
        """Return weights on the relevant objectives as weights on all of them."""
        rows = np.zeros((len(weights), self.k))
        rows[:, self.relevant] = weights
        return rows

    def certify(self) -> Certificate:
        """Return the exact worst case, by one batched call in the directions of the rays."""
        # Some particles' optima too: rays alone may miss what is best in the middle.
        self.look_up(self.particles[0][:: max(1, PARTICLES // FRESH)])
        return self.certify_cone(self.cone, remember=True)

    def look_up(self, weights: Matrix) -> None:
        """Get to know what is best for some of the particles, or for somebody very much like them."""
        # Rounded to a grid that is finer than the belief is wide: those who are alike count once, and others who were
        # asked about the same problem have probably been there before.
        width = float(np.ptp(self.particles[0], axis=0).max())
        cells = max(4 * self.d, 2 ** int(np.ceil(np.log2(GRID / max(width, 1e-6)))))
        rows = np.unique(np.round(weights * cells), axis=0) / cells
        self.known.add(self.memory.best(self.directions(rows)))

    def certify_cone(self, cone: Cone, *, remember: bool) -> Certificate:
        """Return the worst case over a cone; the optima at its rays are remembered as contenders if asked to."""
        weights, precision = cone.rays[:, :-1], cone.rays[:, -1]
        found = self.memory.best(self.directions(weights))
        if remember:
            self.known.add(found)
        best = np.einsum("nk,nk->n", weights, np.array([a.value for a in found])[:, self.relevant])
        worth = weights @ self.known.values[:, self.relevant].T
        best = np.maximum(best, worth.max(axis=1))  # the oracle's own optimum, to the last digit
        bounds = (1 - worth / best[:, None]).max(axis=0)
        number = self.pick(bounds)
        loss = best - worth[:, number]
        with np.errstate(divide="ignore", invalid="ignore"):
            noticeable = np.where(loss > 1e-12, loss / precision, 0.0).max()
        return Certificate(weights, precision, best, worth, number, float(bounds[number]), float(noticeable))

    def pick(self, bounds: Vector) -> int:
        """Return the alternative to recommend: the one of least worst-case regret."""
        return int(bounds.argmin())

    def recommend(self, reason: str, complete: bool = True) -> Recommendation:
        """Return what is recommended and what is known of it."""
        certificate, empty = self.certificate, self.cone.empty
        worth = self.particles[0] @ self.known.values[:, self.relevant].T
        regrets = 1 - worth / worth.max(axis=1, keepdims=True)
        mine = regrets[:, certificate.number]
        mean = regrets.mean(axis=0)
        mean[certificate.number] = np.inf
        importance = np.zeros((self.k, 2))
        importance[self.relevant] = np.stack([certificate.rays.min(axis=0), certificate.rays.max(axis=0)], axis=1)
        # Anything from nothing to a good part of the whole fits the answers, and the recommendation is good all the same.
        wide = (importance[:, 0] < 0.02) & (importance[:, 1] > 0.3) & (certificate.bound <= self.target)
        names = [o.name for o in self.problem.objectives]
        fixed = set(range(self.k)) - set(self.relevant.tolist())
        return Recommendation(
            self.known.alternatives[certificate.number],
            self.directions(self.particles[0].mean(axis=0)[None, :])[0],
            len(self.asked),
            reason,
            complete=complete and not empty,
            regret_bound=None if empty else certificate.bound,
            likely_regret=float(mine.mean()),
            likely_worst=float(np.quantile(mine, 0.95)),
            importance=importance,
            unidentified=tuple(names[j] for j in range(self.k) if wide[j] or j in fixed),
            runner_up=self.known.alternatives[int(mean.argmin())] if len(mean) > 1 else None,
            target=self.target,
            expected_left=self.expected_left(),
        )

    def expected_left(self) -> float:
        """Return about how many more questions bring the bound to the target, at the pace so far."""
        bound = max(self.certificate.bound, self.target)
        # A bound falls by a constant factor per question; before any answer, from 1 to 1% in about 2 per objective.
        pace = (np.log(1 / bound) + np.log(100)) / (len(self.asked) + 2 * self.d)
        return float(np.log(bound / self.target) / pace)

    # --- choosing -----------------------------------------------------------------------------------------------------

    def contenders(self, regrets: Matrix) -> list[int]:
        """Return the alternatives that questions are made of: the recommendation, its rivals, the favourites."""
        certificate = self.certificate
        order = np.argsort(-certificate.regrets_of(certificate.number), kind="stable")
        rivals = list(dict.fromkeys(certificate.worth[order[:400]].argmax(axis=1).tolist()))[:CHALLENGERS]
        counts = np.bincount(regrets.argmin(axis=1), minlength=len(self.known.alternatives))
        favourites = [i for i in np.argsort(-counts, kind="stable")[:FAVOURITES].tolist() if counts[i]]
        return self.distinct(list(dict.fromkeys([certificate.number, *rivals, *favourites])))

    def distinct(self, numbers: list[int]) -> list[int]:
        """Return the alternatives without those that nobody could tell from an earlier one: they stall the asking."""
        worth = self.particles[0] @ self.known.values[numbers][:, self.relevant].T
        size = worth.max(axis=1, keepdims=True)
        kept: list[int] = []
        for i in range(len(numbers)):
            if all(np.abs((worth[:, [i]] - worth[:, [j]]) / size).max() > ALIKE * self.target for j in kept):
                kept.append(i)
        return [numbers[i] for i in kept]

    def choose(self) -> Question | None:
        """Return the question to ask next, or None if no answer could tell anything."""
        worth = self.particles[0] @ self.known.values[:, self.relevant].T
        regrets = 1 - worth / worth.max(axis=1, keepdims=True)
        question = self.choose_among(self.contenders(regrets), regrets)
        if question is None:  # look further afield before giving up
            everybody = [
                self.certificate.number,
                *self.certificate.worth.argmax(axis=1).tolist(),
                *regrets.argmin(axis=1).tolist(),
                *np.argsort(regrets.mean(axis=0), kind="stable")[:WIDE].tolist(),
            ]
            question = self.choose_among(list(dict.fromkeys(everybody))[: 2 * WIDE], regrets)
        return question

    def choose_among(self, numbers: list[int], regrets: Matrix) -> Question | None:
        """Return the best question about pairs of these alternatives, if any is of use.

        Every question is judged by how much it tells about which recommendation to make and, for the most promising
        ones, by how much of the proof would be left after each answer: the cone is cut and its rays listed.
        """
        pool = pool_of([self.known.alternatives[i] for i in numbers], self.relevant, self.particles, self.lotteries)
        if not len(pool):
            return None
        answers = predicted(self.particles, pool.differences)
        shares = answers.mean(axis=1)
        surprise = entropy(shares)
        removed = self.removed(pool, shares)
        useful = (surprise >= USEFUL) | (removed > 0.02)
        useful &= np.array([q.key not in self.unanswered for q in pool.questions], dtype=bool)
        if not useful.any():
            return None
        told = information(answers.astype(float), cover(regrets <= self.target / 2 + 1e-12)) + 0.3 * surprise
        sure = np.quantile(regrets[:, self.certificate.number], 0.95) <= self.target / 2
        promising = [removed + 0.1 * surprise] if sure else [removed + 0.1 * surprise, told]
        shortlist = {
            int(i)
            for score in promising
            for i in np.argsort(-np.where(useful, score, -np.inf), kind="stable")[:LOOK_AHEAD]
            if useful[i]
        }
        scores = np.full(len(pool), -np.inf)
        before = max(self.unproved(self.certificate.rays), 1e-12)
        recent = [answer for _, answer in self.asked[-STALL:]]
        stalled = len(recent) == STALL and all(answer is Answer.SAME for answer in recent)
        for i in sorted(shortlist):
            after = self.expected_unproved(pool.differences[i], shares[:, i], before)
            scores[i] = 1 - after / before + 0.05 * surprise[i] + (0.0 if sure else INFORMATION * told[i])
            if stalled:  # "about equal" again and again: ask what will probably get another answer
                scores[i] -= 0.5 * shares[1, i]
        return pool.questions[easiest(scores, pool, self.particles, allowed=scores > -np.inf, nearly=NEARLY)]

    def removed(self, pool: Pool, shares: NDArray[np.float64]) -> Vector:
        """Return the expected share of the bad rays' excess regret that the answer to each question cuts off."""
        certificate = self.certificate
        excess = np.maximum(certificate.regrets_of(certificate.number) - MARGIN * self.target, 0.0)
        gains = certificate.rays @ pool.differences.T
        least = certificate.precision[:, None]
        stays = (gains >= least - 1e-9, np.abs(gains) <= least + 1e-9, gains <= -least + 1e-9)
        kept = np.sum([share * (excess @ stay) for share, stay in zip(shares, stays, strict=True)], axis=0)
        result: Vector = 1 - kept / max(float(excess.sum()), 1e-12)
        return result

    def expected_unproved(self, difference: Vector, shares: Vector, before: float) -> float:
        """Return how much will be left to prove after a question, on average over its answers."""
        after = 0.0
        for answer, share in zip(ANSWERS, shares, strict=True):
            if share < UNLIKELY:
                after += share * before
                continue
            smaller = self.cone.add(half_spaces(difference, answer.sign), -1)
            if self.listed(smaller) and not smaller.empty:
                after += share * self.unproved(smaller.rays[:, :-1])
        return after

    def unproved(self, rays: Matrix) -> float:
        """Return how much is left to prove over some rays: over every rival, the root of how much it may still win by.

        The recommendation may change with the answer, so the best of a few candidates for it counts.
        """
        worth = rays @ self.known.values[:, self.relevant].T
        worst = (1 - worth / worth.max(axis=1, keepdims=True)).max(axis=0)
        safe = np.maximum(worth, 1e-12)
        found = [
            np.sqrt(np.maximum((1 - worth[:, [x]] / safe).max(axis=0) - MARGIN * self.target, 0.0)).sum()
            for x in np.argsort(worst, kind="stable")[:CANDIDATES]
        ]
        return float(min(found))

    @staticmethod
    def listed(cone: Cone) -> bool:
        """Return whether the rays of a cone are few enough to be listed."""
        try:
            return cone.rays is not None
        except TooManyRays:
            return False
