"""For people: the same questions, but every answer may be a slip.

A belief over (weights, precision) in which each answer is wrong with a small probability decides what to ask and when to
stop. An answer that is more likely wrong than right is set aside, and said so; the certificate is that of the others.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tradeoff.model import Answer, Matrix, Question, Recommendation
from tradeoff.problem import Problem
from tradeoff.strategies._certified import PARTICLES, Certificate, Certified, check_target
from tradeoff.strategies.base import Strategy
from tradeoff.strategies.choosing import Pool, cover, easiest, entropy, information, pool_of, predicted
from tradeoff.strategies.polytope import Cone
from tradeoff.strategies.sampling import consistent, half_spaces

LAPSE = 0.08  # how often a person answers what they do not mean
CONFIDENCE = 0.95  # of the belief must be content with the recommendation
PATIENCE = 2  # times in a row
OVERWHELMING = 0.99  # of the belief being content is enough at once
NEARLY = 0.9  # among questions that tell nearly as much as the best, the easiest is asked
DOUBTFUL = 0.5  # an answer more likely wrong than this is set aside
QUESTIONABLE = 0.15  # one more likely wrong than this may be asked again, the other way round
LOOKED_UP = 100  # particles whose own optimum is looked up before the asking may end
WORTHLESS = 0.01  # bits: nothing left to learn


def careful(problem: Problem, *, target: float = 0.01, lotteries: bool = False, seed: int = 0) -> Strategy:
    """Return the strategy for people, who make mistakes; it stops when the recommendation is very likely good enough."""
    check_target(target)
    return Careful(problem, target, lotteries, seed).run()


class Careful(Certified):
    """One interview with a person who may err."""

    lapse = LAPSE

    def __init__(self, problem: Problem, target: float, lotteries: bool, seed: int) -> None:
        self.flagged: frozenset[int] = frozenset()
        self.in_row = 0
        super().__init__(problem, target, lotteries, seed)

    # --- knowing ------------------------------------------------------------------------------------------------------

    def believe(self) -> Matrix:
        """Return the relative regret [M, K] of every known alternative to every particle."""
        worth = self.particles[0] @ self.known.values[:, self.relevant].T
        regrets: Matrix = 1 - worth / worth.max(axis=1, keepdims=True)
        return regrets

    def content(self, regrets: Matrix) -> NDArray[np.bool_]:
        """Return which particle would be content with which alternative: within the target, or no loss they notice."""
        worth = self.particles[0] @ self.known.values[:, self.relevant].T
        loss = worth.max(axis=1, keepdims=True) - worth
        result: NDArray[np.bool_] = (regrets <= self.target) | (loss <= self.particles[1][:, None])
        return result

    def pick(self, bounds: NDArray[np.float64]) -> int:
        """Return the alternative of least expected regret."""
        return int(self.believe().mean(axis=0).argmin())

    def learn(self, question: Question, answer: Answer) -> None:
        """Take an answer in, and think again about which of all answers to trust."""
        self.asked.append((question, answer))
        self.update_belief()
        wrong = self.chance_wrong()
        flagged = {i for i, chance in enumerate(wrong) if chance > DOUBTFUL}
        cone = self.cone_without(flagged)
        while cone.empty:  # trust the likely ones: give up the least likely of those that cannot all hold
            flagged.add(max((int(i) for i in cone.conflict()), key=lambda i: wrong[i]))  # type: ignore[call-overload]
            cone = self.cone_without(flagged)
        self.flagged = frozenset(flagged)
        if self.listed(cone):
            self.cone = cone
        self.certificate = self.certify()
        if self.share_content() >= CONFIDENCE:
            # Regrets are against what is known. Before that counts, the own optimum of many is looked up.
            self.look_up(self.particles[0][:: PARTICLES // LOOKED_UP])
            self.certificate = self.certify()
        content = self.share_content()
        self.in_row = PATIENCE if content >= OVERWHELMING else self.in_row + 1 if content >= CONFIDENCE else 0

    def share_content(self) -> float:
        """Return the share of the belief that would be content with the recommendation."""
        return float(self.content(self.believe())[:, self.certificate.number].mean())

    def chance_wrong(self) -> NDArray[np.float64]:
        """Return for each answer how likely it is not what the person means."""
        differences, kinds = self.answered()
        result: NDArray[np.float64] = 1 - consistent(*self.particles, differences, kinds).mean(axis=0)
        return result

    def cone_without(self, flagged: set[int] | frozenset[int]) -> Cone:
        """Return everything that fits the answers except these."""
        if flagged == self.flagged and len(self.asked) - 1 not in flagged and self.listed(self.cone):
            cone, first = self.cone, len(self.asked) - 1
        else:
            cone, first = self.everything(), 0
        for i in range(first, len(self.asked)):
            if i not in flagged:
                question, answer = self.asked[i]
                cone = cone.add(half_spaces(question.difference[self.relevant], answer.sign), i)
        return cone

    # --- asking -------------------------------------------------------------------------------------------------------

    def reached(self) -> str | None:
        """Return why to stop, if there is a reason to."""
        if self.in_row >= PATIENCE or (not self.asked and self.certificate.bound <= self.target):
            return f"very likely within {100 * self.target:g}% of the best possible gain"
        return None

    def choose(self) -> Question | None:
        """Return the question that tells most about which recommendation to make, slips allowed for."""
        regrets = self.believe()
        numbers = self.contenders(regrets)
        pool = pool_of([self.known.alternatives[i] for i in numbers], self.relevant, self.particles, self.lotteries)
        pool = self.with_doubtful(pool)
        meant = predicted(self.particles, pool.differences).astype(np.float64)
        answers = meant * (1 - 1.5 * self.lapse) + self.lapse / 2
        slips = float(entropy(np.array([1 - self.lapse, self.lapse / 2, self.lapse / 2])))
        told = information(answers, cover(self.content(regrets)))
        scores = told + 0.3 * np.maximum(entropy(answers.mean(axis=1)) - slips, 0.0)
        fresh = self.not_asked(pool)
        if not fresh.any() or scores[fresh].max() < WORTHLESS:
            return None
        return pool.questions[easiest(scores, pool, self.particles, allowed=fresh, nearly=NEARLY)]

    def with_doubtful(self, pool: Pool) -> Pool:
        """Return the pool with the questionable answers' questions added, the other way round."""
        if not self.asked:
            return pool
        again = [
            Question(self.asked[i][0].second, self.asked[i][0].first)
            for i in np.flatnonzero(self.chance_wrong() > QUESTIONABLE)
            if self.asked[i][0].key not in self.elsewhere  # which cannot be shown again
        ]
        if not again:
            return pool
        differences = np.array([q.difference[self.relevant] for q in again])
        return Pool(
            [*pool.questions, *again],
            np.concatenate([pool.differences, differences]),
            np.append(pool.pure, np.ones(len(again), dtype=bool)),
        )

    def not_asked(self, pool: Pool) -> NDArray[np.bool_]:
        """Return which questions are new: the same pair may come back once, the other way round and when doubtful."""
        keys = {question.key for question, _ in self.asked} | self.unanswered
        doubtful = set(np.flatnonzero(self.chance_wrong() > QUESTIONABLE).tolist()) if self.asked else set()
        settled = {
            Question(question.second, question.first).key
            for i, (question, _) in enumerate(self.asked)
            if i not in doubtful
        }
        return np.array([q.key not in keys and q.key not in settled for q in pool.questions], dtype=bool)

    # --- telling ------------------------------------------------------------------------------------------------------

    def recommend(self, reason: str, complete: bool = True) -> Recommendation:
        """Return what is likely best, with all three levels of certainty."""
        made = super().recommend(reason, complete)
        made = replace(made, doubtful=tuple(sorted(self.places[i] for i in self.flagged)))
        if not complete:  # looked at on the way, where one bound per answer would take too long
            return made
        trusted = [i for i in range(len(self.asked)) if i not in self.flagged]
        robust = max((self.bound_without(i) for i in trusted), default=1.0)
        return replace(made, robust_bound=max(robust, made.regret_bound or 0.0))

    def bound_without(self, i: int) -> float:
        """Return the worst regret of the recommendation if one more answer were wrong."""
        smaller = self.cone.without(i)
        if not self.listed(smaller):
            return 1.0
        certificate: Certificate = self.certify_cone(smaller, remember=False)
        return float(certificate.regrets_of(self.certificate.number).max())
