"""Which question brings a proof forward most: the chooser of `certified`.

Every question is judged by how much its answer tells about which recommendation to make and, for the most promising ones,
by how much of the proof would be left after each answer: the cone is cut and its rays listed.

All constants here were chosen by hand on random catalogues and MDPs of 2 to 10 objectives (the rows of
benchmarks/questions.py), one at a time, so that few questions are asked; there is no record of the values tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tradeoff.kernels.ratios import least_against, least_shares
from tradeoff.menus import AnyQuestion, Menu, members
from tradeoff.model import Answer, Matrix, Question, Vector
from tradeoff.strategies.choosing import (
    ANSWERS,
    WORST_RAYS,
    Pool,
    candidate_questions,
    contenders,
    cover,
    easiest,
    entropy,
    information,
    meant,
)
from tradeoff.strategies.elicitation import State
from tradeoff.strategies.offering import offer, reply_chances
from tradeoff.strategies.polytope import half_spaces

LOOK_AHEAD = 10  # questions per criterion whose answers are followed through,
LOOK_AHEAD_MENUS = 4  # and menus, which have more replies each,
LOOK_AHEAD_RAYS = 15_000  # fewer of them, but at least one, where the rays of all would be more than this
USEFUL = 0.03  # bits: a question whose answer is surer than this is of no use,
CUTS = 0.02  # unless it is expected to cut off more than this share of the excess regret
NEARLY = 0.98  # answers are exact here, so almost no information is traded for an easier question
WIDE = 30  # candidates to fall back on when the contenders give no useful question
RECOMMENDATIONS = 4  # candidates for the recommendation after an answer that is followed through
MARGIN = 0.8  # of the target: regret below this counts as proved
STALL = 2  # answers "about equal" in a row after which another answer is sought
STALL_PENALTY = 0.5  # for a question that will surely be answered "about equal" then
UNLIKELY = 0.05  # answers rarer than this are not followed through
INFORMATION = 0.2  # what a bit about the recommendation is worth, beside the share of the proof that is done
SURPRISE = 0.3  # what a bit of any answer is worth beside a bit about the recommendation
SURPRISE_IN_CUTS = 0.1  # and beside the share of the excess regret that is cut off
SURPRISE_IN_PROOF = 0.05  # and beside the share of the proof that is done


@dataclass(frozen=True)
class ProofChooser:
    """Chooses questions that prove a relative regret below ``target``."""

    target: float
    lotteries: bool
    questions: str = "pairs"

    def choose(self, state: State) -> AnyQuestion | None:
        """Return the question to ask next, or None if no answer could tell anything."""
        certificate, regrets = state.certificate, state.belief.regrets(state.candidates)
        numbers = contenders(certificate, state.belief, state.candidates, regrets, self.target)
        question, score = self._choose_among(state, numbers, regrets)
        menu = self._choose_menu(state, numbers, regrets, least=score)
        if menu is not None:
            return menu
        if question is None:  # look further afield before giving up
            everybody = [
                certificate.number,
                *certificate.worth.argmax(axis=1).tolist(),
                *regrets.argmin(axis=1).tolist(),
                *np.argsort(regrets.mean(axis=0), kind="stable")[:WIDE].tolist(),
            ]
            question, _ = self._choose_among(state, list(dict.fromkeys(everybody))[: 2 * WIDE], regrets)
        return question

    def _choose_among(self, state: State, numbers: list[int], regrets: Matrix) -> tuple[Question | None, float]:
        """Return the best question about pairs of these candidates and its score; None if none is of use."""
        belief, candidates, certificate = state.belief, state.candidates, state.certificate
        alternatives = [candidates.alternatives[i] for i in numbers]
        pool = candidate_questions(alternatives, candidates.relevant, belief, self.lotteries)
        if not len(pool):
            return None, -np.inf
        answers = meant(belief, pool.differences)
        shares = answers.mean(axis=1)
        surprise = entropy(shares)
        removed = self._removed(state, pool, shares)
        useful = (surprise >= USEFUL) | (removed > CUTS)
        done = state.unanswered | {
            members(given.question) for given in state.answers
        }  # an exact answer tells all at once
        useful &= np.array([q.pair not in done for q in pool.questions], dtype=bool)
        if not useful.any():
            return None, -np.inf
        told = information(answers.astype(float), cover(regrets <= self.target / 2 + 1e-12)) + SURPRISE * surprise
        sure = np.quantile(regrets[:, certificate.number], 0.95) <= self.target / 2
        ahead = max(1, min(LOOK_AHEAD, LOOK_AHEAD_RAYS // len(certificate.rays)))
        cutting = removed + SURPRISE_IN_CUTS * surprise
        shortlist = {
            int(i)
            for score in ([cutting] if sure else [cutting, told])
            for i in np.argsort(-np.where(useful, score, -np.inf), kind="stable")[:ahead]
            if useful[i]
        }
        scores = np.full(len(pool), -np.inf)
        before = max(self._unproved(state, certificate.rays), 1e-12)
        recent = [given.answer for given in state.answers[-STALL:]]
        stalled = len(recent) == STALL and all(answer is Answer.SAME for answer in recent)
        chosen_ones = sorted(shortlist)
        for i, said in zip(chosen_ones, _said(state, pool.differences[chosen_ones]), strict=True):
            after = self._expected_unproved(state, said, shares[:, i], before)
            scores[i] = 1 - after / before + SURPRISE_IN_PROOF * surprise[i] + (0.0 if sure else INFORMATION * told[i])
            if stalled:
                scores[i] -= STALL_PENALTY * shares[1, i]
        chosen = easiest(scores, pool, belief, allowed=scores > -np.inf, nearly=NEARLY)
        return pool.questions[chosen], float(scores[chosen])

    def _choose_menu(self, state: State, numbers: list[int], regrets: Matrix, least: float) -> Menu | None:
        """Return the menu that brings the proof forward most; None if that is not more than a pair of score ``least`` does."""
        belief, candidates, certificate = state.belief, state.candidates, state.certificate
        menus = offer(self.questions, numbers, candidates, belief)
        if menus is None:
            return None
        shares, surprise = menus.chances.mean(axis=1), menus.surprise(menus.chances)
        worst = np.argsort(-certificate.regrets, kind="stable")[:WORST_RAYS]
        excess = np.maximum(certificate.regrets[worst] - MARGIN * self.target, 0.0)
        worth = certificate.worth[worst][:, menus.numbers]
        stays = reply_chances(worth, certificate.precision[worst] + 1e-9, menus.asks) > 0
        kept = np.einsum("aq,r,arq->q", shares, excess, stays.astype(np.float64), optimize=True)
        removed = 1 - kept / max(float(excess.sum()), 1e-12)
        done = state.unanswered | {members(given.question) for given in state.answers}
        useful = ((surprise >= USEFUL) | (removed > CUTS)) & menus.fresh(candidates, done)
        if not useful.any():
            return None
        labels = cover(regrets <= self.target / 2 + 1e-12)
        told = information(menus.chances, labels) + SURPRISE * surprise
        sure = np.quantile(regrets[:, certificate.number], 0.95) <= self.target / 2
        ahead = max(1, min(LOOK_AHEAD_MENUS, LOOK_AHEAD_RAYS // len(certificate.rays)))
        cutting = removed + SURPRISE_IN_CUTS * surprise
        before = max(self._unproved(state, certificate.rays), 1e-12)
        scores = np.full(len(menus), -np.inf)
        for ranked_by in [cutting] if sure else [cutting, told]:
            for i in np.argsort(-np.where(useful, ranked_by, -np.inf), kind="stable")[:ahead].tolist():
                if useful[i] and scores[i] == -np.inf:
                    said = [
                        None if share < UNLIKELY else half_spaces(*menus.statement(i, reply, candidates))
                        for reply, share in zip(menus.replies, shares[:, i], strict=True)
                    ]
                    cuts = [None if rows is None else state.consistent.listed.scaled(rows) for rows in said]
                    after = self._expected_unproved(state, cuts, shares[:, i], before)
                    scores[i] = 1 - after / before + SURPRISE_IN_PROOF * surprise[i]
                    scores[i] += 0.0 if sure else INFORMATION * told[i]
        if scores.max() <= least:
            return None
        return menus.menu(int(scores.argmax()), candidates)

    def _removed(self, state: State, pool: Pool, shares: NDArray[np.float64]) -> Vector:
        """Return the expected share of the bad rays' excess regret that the answer to each question cuts off."""
        certificate = state.certificate
        excess = np.maximum(certificate.regrets - MARGIN * self.target, 0.0)
        gains = certificate.rays @ pool.differences.T
        least = certificate.precision[:, None]
        stays = (gains >= least - 1e-9, np.abs(gains) <= least + 1e-9, gains <= -least + 1e-9)
        kept = np.sum([share * (excess @ stay) for share, stay in zip(shares, stays, strict=True)], axis=0)
        result: Vector = 1 - kept / max(float(excess.sum()), 1e-12)
        return result

    def _expected_unproved(self, state: State, said: Sequence[Matrix | None], shares: Vector, before: float) -> float:
        """Return how much will be left to prove after a question, on average over what its answers say: scaled half-spaces."""
        after = 0.0
        for rows, share in zip(said, shares, strict=True):
            if rows is None or share < UNLIKELY:
                after += share * before
                continue
            smaller = state.consistent.listed.add(rows, -1, scaled=True)
            if not smaller.has_rays:
                after += share * before
            elif not smaller.empty:
                after += share * self._unproved(state, smaller.rays[:, :-1])
        return after

    def _unproved(self, state: State, rays: Matrix) -> float:
        """Return how much is left to prove over some rays: over every rival, the root of how much it may still win by.

        The recommendation may change with the answer, so the best of a few candidates for it counts.
        """
        worth = rays @ state.candidates.gains.T
        candidates = np.argsort(1 - least_shares(worth, worth.max(axis=1)), kind="stable")[:RECOMMENDATIONS]
        rivals: Matrix = least_against(worth, candidates, 1e-12)
        wins = np.sqrt(np.maximum(1 - rivals - MARGIN * self.target, 0.0))
        return float(min(wins.sum(axis=1)))


def _said(state: State, differences: Matrix) -> list[list[Matrix]]:
    """Return what each answer to some pairs says, in the order of ANSWERS, as scaled half-spaces; all pairs at once."""
    n, scaled = len(differences), state.consistent.listed.scaled
    first, same, second = (scaled(half_spaces(differences, np.full(n, answer.sign))) for answer in ANSWERS)
    return [[first[[i]], same[[i, n + i]], second[[i]]] for i in range(n)]
