"""For answers that are always right: few, real questions, and a proof of how good the recommendation is.

Every question is judged by how much its answer tells about which recommendation to make and, for the most promising ones, by
how much of the proof would be left after each answer: the cone is cut and its rays listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tradeoff.evidence import Answer, check_question_kind, half_spaces
from tradeoff.model import EQUAL, Matrix, Question, Reason, Recommendation, Vector
from tradeoff.numerics import worths
from tradeoff.problem import Problem
from tradeoff.strategies.acquisition import (
    SCORE_DIGITS,
    Pool,
    all_pairs,
    contenders,
    information_about_labels,
    information_about_respondent,
    largest_first,
    menu_pool,
    pair_pool,
    possible_menu_replies,
    set_cover,
)
from tradeoff.strategies.elicitation import Approach, State, check_settings, elicit
from tradeoff.strategies.posterior import DirichletMixture, Posterior, ResponseModel
from tradeoff.strategies.replay import Strategy
from tradeoff.strategies.solutions import Certifier
from tradeoff.strategies.tuning import CERTIFIED, CertifiedTuning

# No noise, and a lapse so rare that no sample survives a contradiction if any other exists.
EXACT = ResponseModel(lapse=(1e-6, 1e-6))
# "About equal" puts rays where a loss is exactly the precision: equality counts as unnoticed, whatever its last digit.
EQUALITY = 1e-9


def certified(
    problem: Problem, *, target: float = 0.01, lotteries: bool = False, questions: str = "pairs", seed: int = 0
) -> Strategy:
    """Return the strategy for respondents whose answers are always right; it stops at a certified relative regret.

    ``lotteries`` allows questions about an option that comes only with some probability. ``questions`` is one of
    ``tradeoff.evidence.QUESTIONS``; with menus, a pair is still asked where it brings the proof forward as much.
    """
    check_settings(problem, target)
    return elicit(Certified(problem, Certifier.of(problem), target, lotteries, check_question_kind(questions), seed))


@dataclass(frozen=True, eq=False)
class Certified(Approach):
    """All answers are trusted; the recommendation is the option of least worst-case regret."""

    tuning: CertifiedTuning = CERTIFIED

    def begin(self) -> State:
        """Return the state before any answer."""
        prior = DirichletMixture.default(self.certifier.d)
        return self.first_state(Posterior.before_answers(prior, EXACT, self.tuning, self.seed, self.tuning.samples))

    def learn(self, state: State) -> State:
        """Return the state brought up to date after its last answer."""
        newest = len(state.answers) - 1
        state = replace(state, cone=state.cone.add_all(state.labelled([newest])))
        if state.cone.empty:
            return state
        posterior = state.posterior.update(state.evidence)
        certificate, candidates, _ = self.certify_worst_case(posterior, state.cone, state.candidates)
        return replace(state, posterior=posterior, certificate=certificate, candidates=candidates)

    def reason_to_stop(self, state: State) -> Reason | None:
        """Return why to stop here, or None to go on."""
        certificate = state.certificate
        if state.cone.empty:
            return Reason.CONTRADICTION
        if certificate.bound <= self.target:
            return Reason.PROVED
        if certificate.noticeable <= 1 + EQUALITY:
            return Reason.UNNOTICEABLE
        return Reason.INEXACT if certificate.resolvable <= self.target else None

    def recommend(self, state: State, reason: Reason, complete: bool) -> Recommendation:
        """Return the recommendation in a state, with its proof."""
        made = self.describe(state, reason, complete)
        made = self.with_importance(made, made.importance_if_right)
        proved = (Reason.PROVED, Reason.UNNOTICEABLE, Reason.INEXACT)
        # That was proved of the option that the model favours.
        return replace(made, reason=Reason.CONFIRMED) if made.model_choice is not None and reason in proved else made

    # --- which question brings the proof forward most ------------------------------------------------------------------

    def choose(self, state: State) -> Question | None:
        """Return the question to ask next, or None if no answer could tell anything."""
        certificate, candidates = state.certificate, state.candidates
        regrets = state.posterior.regrets(candidates.gains)
        numbers = contenders(state, regrets, self.target, self.tuning)
        pair, pair_score = self._best(state, self._pairs(state, numbers), regrets)
        menus = menu_pool(
            self.questions, numbers[: self.tuning.menu_contenders], candidates, state.posterior, noisy=False
        )
        menu, menu_score = (None, -np.inf) if menus is None else self._best(state, menus, regrets)
        if menu is not None and round(menu_score - pair_score, SCORE_DIGITS) > 0:
            return menu
        if pair is None:  # look further afield before giving up
            everybody = [
                certificate.number,
                *worths(certificate.rays, candidates.gains).argmax(axis=1).tolist(),
                *regrets.argmin(axis=1).tolist(),
                *largest_first(-regrets.mean(axis=0))[: self.tuning.wide].tolist(),
            ]
            wide = list(dict.fromkeys(everybody))[: 2 * self.tuning.wide]
            pair, _ = self._best(state, self._pairs(state, wide), regrets)
        return pair

    def _pairs(self, state: State, numbers: Sequence[int]) -> Pool:
        """Return all pairs of these candidates."""
        relevant, posterior = state.candidates.relevant, state.posterior
        options = [state.candidates.options[i] for i in numbers]
        return pair_pool(all_pairs(options, relevant, posterior, self.lotteries), relevant, posterior, noisy=False)

    def _best(self, state: State, pool: Pool, regrets: Matrix) -> tuple[Question | None, float]:
        """Return the question of a pool that brings the proof forward most, and its score; None if none is of use."""
        if not len(pool):
            return None, -np.inf
        tuning, certificate = self.tuning, state.certificate
        shares, bits = pool.chances.mean(axis=1), information_about_respondent(pool)
        removed = self._excess_removed(state, pool, shares)
        useful = (bits >= tuning.useful) | (removed > tuning.cuts)
        useful &= ~pool.among(state.settled)  # an exact answer tells all at once
        if not useful.any():
            return None, -np.inf
        labels = set_cover(regrets <= self.target / 2 + 1e-12)
        told = information_about_labels(pool, labels) + tuning.any_information * bits
        sure = np.quantile(regrets[:, certificate.number], 0.95) <= self.target / 2
        most = tuning.look_ahead if pool.asks == "best" else tuning.look_ahead_menus
        ahead = max(1, min(most, tuning.look_ahead_rays // len(certificate.rays)))
        cutting = removed + tuning.any_in_cuts * bits
        shortlist = {
            int(i)
            for score in ([cutting] if sure else [cutting, told])
            for i in largest_first(np.where(useful, score, -np.inf))[:ahead]
            if useful[i]
        }
        before = max(self._unproved(state, certificate.rays), 1e-12)
        scores = np.full(len(pool), -np.inf)
        for i in sorted(shortlist):
            after = self._expected_unproved(state, pool.question(i), shares[:, i], before)
            scores[i] = 1 - after / before + tuning.any_in_proof * bits[i]
            scores[i] += 0.0 if sure else tuning.information * told[i]
        if pool.asks == "best" and self._is_stalled(state):
            scores -= tuning.stall_penalty * shares[-1]
        chosen = pool.easiest(scores, scores > -np.inf, tuning.nearly)
        return pool.question(chosen), float(scores[chosen])

    def _is_stalled(self, state: State) -> bool:
        """Return whether the last answers were all "about equal"."""
        recent = [answer.reply for answer in state.answers[-self.tuning.stall :]]
        return len(recent) == self.tuning.stall and all(reply == EQUAL for reply in recent)

    def _excess_removed(self, state: State, pool: Pool, shares: NDArray[np.float64]) -> Vector:
        """Return the expected share of the bad rays' excess regret that the reply to each question cuts off."""
        certificate = state.certificate
        worst = largest_first(certificate.regrets)[: self.tuning.challenger_rays]
        excess = np.maximum(certificate.regrets[worst] - self.tuning.margin * self.target, 0.0)
        rays, precision = certificate.rays[worst], certificate.precision[worst] + 1e-9
        count, size = pool.values.shape[:2]
        worth = worths(rays, pool.values.reshape(count * size, -1)).reshape(len(worst), count, size)
        if size == 2:
            gap, least = worth[:, :, 0] - worth[:, :, 1], certificate.precision[worst][:, None]
            stays = np.stack([gap >= least - 1e-9, gap <= -least + 1e-9, np.abs(gap) <= least + 1e-9])
        else:
            stays = possible_menu_replies(worth, precision)
        kept = np.sum(shares * np.einsum("r,arq->aq", excess, stays), axis=0)
        result: Vector = 1 - kept / max(float(excess.sum()), 1e-12)
        return result

    def _expected_unproved(self, state: State, question: Question, shares: Vector, before: float) -> float:
        """Return how much will be left to prove after a question, on average over its replies."""
        after, relevant = 0.0, state.candidates.relevant
        for reply, share in zip(question.replies, shares, strict=True):
            if share < self.tuning.unlikely:
                after += share * before
                continue
            differences, outcomes = Answer(question, reply).certain_terms()
            smaller = state.cone.add(half_spaces(differences[:, relevant], outcomes), -1)
            if not smaller.complete:
                after += share * before
            elif not smaller.empty:
                after += share * self._unproved(state, smaller.rays[:, :-1])
        return after

    def _unproved(self, state: State, rays: Matrix) -> float:
        """Return how much is left to prove over some rays: over every rival, the root of how much it may still win by.

        The recommendation may change with the answer, so the best of a few candidates for it counts.
        """
        worth = worths(rays, state.candidates.gains)
        shares = (worth / worth.max(axis=1, keepdims=True)).min(axis=0)
        safe = np.maximum(worth, 1e-12)
        wins = []
        for candidate in largest_first(shares)[: self.tuning.recommendations]:
            rivals = (worth[:, [candidate]] / safe).min(axis=0)
            wins.append(np.sqrt(np.maximum(1 - rivals - self.tuning.margin * self.target, 0.0)).sum())
        return float(min(wins))
