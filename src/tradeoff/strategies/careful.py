"""For people: real questions, and every answer may be wrong.

A posterior in which answers are noisy, and sometimes wrong or no longer meant, decides what to ask, when to stop and what is
said to be likely. An answer that is probably wrong is set aside and reported as doubtful; the certificate is that of the other
answers.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from math import log

import numpy as np
from numpy.typing import NDArray

from tradeoff.evidence import Evidence, check_question_kind, placements
from tradeoff.model import EQUAL, Matrix, Option, Question, Reason, Recommendation, Vector
from tradeoff.numerics import worths
from tradeoff.problem import Problem
from tradeoff.strategies.acquisition import (
    Pool,
    all_pairs,
    contenders,
    entropy,
    information_about_labels,
    information_about_respondent,
    menu_pool,
    pair_pool,
    set_cover,
    value_of_information,
)
from tradeoff.strategies.cone import Cone
from tradeoff.strategies.elicitation import Approach, State, check_settings, elicit, loss_probabilities, respect_choice
from tradeoff.strategies.posterior import (
    PEOPLE,
    DirichletMixture,
    Posterior,
    Samples,
    reply_likelihood,
    sample_prior,
)
from tradeoff.strategies.prior import OUTSIDERS, Prior, mixture_of
from tradeoff.strategies.replay import Strategy
from tradeoff.strategies.solutions import Certifier
from tradeoff.strategies.tuning import CAREFUL, CarefulTuning


def careful(
    problem: Problem, *, target: float = 0.01, lotteries: bool = False, questions: str = "pairs", seed: int = 0,
    prior: Prior | None = None,
) -> Strategy:  # fmt: skip
    """Return the strategy for people, who make mistakes; it stops when the recommendation is very likely good enough.

    ``lotteries`` allows questions about an option that comes only with some probability. ``questions`` is one of
    ``tradeoff.evidence.QUESTIONS``; with menus, a pair is still asked where it tells nearly as much. ``prior`` is what is
    supposed of the respondent before the first answer, as ``learn_prior`` returns it; certificates never use it.
    """
    check_settings(problem, target)
    kind = check_question_kind(questions)
    mixture = None if prior is None else mixture_of(prior, problem)
    return elicit(Careful(problem, Certifier.of(problem), target, lotteries, kind, seed, prior=mixture))


@dataclass(frozen=True, eq=False)
class Careful(Approach):
    """Likely answers are trusted; the recommendation is the option of least expected regret."""

    tuning: CarefulTuning = CAREFUL
    prior: DirichletMixture | None = None

    @property
    def identity(self) -> Hashable:
        """Distinguishes this approach with its settings from others."""
        return super().identity, self.prior

    @property
    def asks_menus(self) -> bool:
        """Whether menus are asked."""
        return self.questions != "pairs"

    def begin(self) -> State:
        """Return the state before any answer."""
        tuning, d = self.tuning, self.certifier.d
        mixture, count = self.prior or DirichletMixture.default(d), tuning.prior_samples
        posterior = Posterior.before_answers(mixture, PEOPLE, tuning, self.seed, count)
        state = self.first_state(posterior, expected=True, optima=count)
        enough = tuning.enough_per_objective * d + tuning.enough_per_bit * self._open_bits(state)
        enough *= tuning.menus_per_pair if self.asks_menus else 1.0
        # A respondent unlike the prior is OUTSIDERS times as likely as without it: that is no misfit.
        return replace(state, enough=enough, log_odds_of_chance=0.0 if self.prior is None else log(OUTSIDERS))

    def learn(self, state: State) -> State:
        """Return the state brought up to date after its last answer, with all answers judged anew."""
        tuning, newest = self.tuning, state.answers[-1]
        posterior = state.posterior.update(state.evidence)
        cone = self._trusted(state, posterior.wrong_answers(state.evidence))
        certificate, candidates, criterion = self.certify_expected(posterior, cone, state.candidates)
        if self._share_satisfied(posterior, candidates.gains, certificate.number) >= tuning.confidence:
            # Regrets are against the candidates. Before they count, the own optimum of many samples is looked up.
            candidates = self.add_optima(candidates, posterior, tuning.final_optima)
            certificate, candidates, criterion = self.certify_expected(posterior, cone, candidates)
        satisfied = self._share_satisfied(posterior, candidates.gains, certificate.number)
        # "About equal" of several options may be a slip, which would then be many comparisons: another answer confirms it.
        confirmed = newest.reply != EQUAL or newest.asked is None or newest.asked.is_pair
        in_row = state.satisfied_in_row + 1 if satisfied >= tuning.confidence else 0
        if satisfied >= tuning.overwhelming and confirmed:
            in_row = tuning.patience
        odds = state.log_odds_of_chance + state.posterior.log_odds_of_chance(newest, candidates.relevant)
        return replace(
            state, posterior=posterior, cone=cone, certificate=certificate, candidates=candidates, expected=criterion,
            satisfied_in_row=in_row, log_odds_of_chance=odds,
        )  # fmt: skip

    def reason_to_stop(self, state: State) -> Reason | None:
        """Return that it is time to stop, or None to go on; ``recommend`` says what exactly holds then."""
        nothing_open = not state.answers and state.certificate.resolvable <= self.target
        if state.satisfied_in_row >= self.tuning.patience or nothing_open:
            return Reason.PROBABLY_EITHER
        return Reason.NOT_SURER if state.evidence.asked >= state.enough else None

    # --- which question to ask ----------------------------------------------------------------------------------------

    def choose(self, state: State) -> Question | None:
        """Return the question to ask next, or None if no answer could tell anything."""
        tuning, posterior, candidates = self.tuning, state.posterior, state.candidates
        regrets = posterior.regrets(candidates.gains)
        numbers = contenders(state, regrets, self.target, tuning)
        # Nearly sure, it tests itself: the last question is one that would change the recommendation if an answer were wrong.
        confirming = state.satisfied_in_row > 0
        wrong = posterior.wrong_answers(state.evidence)
        again = np.flatnonzero(wrong > (tuning.repeated if confirming else tuning.questionable)).tolist()
        pairs = self._pairs(state, numbers, again)
        labels = set_cover(posterior.satisfied(candidates.gains, self.target))
        bits, scores = self._score(pairs, labels, regrets, confirming)
        fresh = self._not_asked(state, pairs, again)
        menus = menu_pool(self.questions, numbers[: tuning.menu_contenders], candidates, posterior, noisy=True)
        if menus is not None:
            best_pair = float(scores[fresh].max(initial=0.0))
            menu = self._menu(state, menus, *self._score(menus, labels, regrets, confirming), best_pair)
            if menu is not None:
                return menu
        if not fresh.any() or bits[fresh].max() < tuning.worthless:
            return None
        poor = regrets.mean(axis=0).min() > tuning.poor
        return pairs.question(pairs.easiest(scores, fresh, 1.0 if poor else tuning.nearly))

    def _pairs(self, state: State, numbers: list[int], again: list[int]) -> Pool:
        """Return all pairs of some candidates, and those of questionable answers, the other way round."""
        posterior, candidates = state.posterior, state.candidates
        options = [candidates.options[i] for i in numbers]
        pairs = all_pairs(options, candidates.relevant, posterior, self.lotteries)
        if len(state.answers) % 2:  # alternate sides, so that a side bias cancels out
            pairs = [pair[::-1] for pair in pairs]
        pairs += [pair for i in again if (pair := repeated_pair(state, i)) is not None]
        return pair_pool(pairs, candidates.relevant, posterior, noisy=True)

    def _score(self, pool: Pool, labels: NDArray[np.int64], regrets: Matrix, confirming: bool) -> tuple[Vector, Vector]:
        """Return how many bits each question tells that count, and what it is worth to ask it."""
        tuning = self.tuning
        bits = information_about_labels(pool, labels) + tuning.any_information * information_about_respondent(pool)
        value = value_of_information(pool, regrets, tuning.compromises)
        return bits, value + tuning.tie_break * bits if confirming else bits + tuning.value * value

    def _menu(self, state: State, menus: Pool, bits: Vector, scores: Vector, best_pair: float) -> Question | None:
        """Return the menu that is worth most, unless a pair is worth nearly as much."""
        tuning, fresh = self.tuning, ~menus.among(state.settled)
        if not fresh.any() or bits[fresh].max() < tuning.worthless or tuning.nearly * scores[fresh].max() <= best_pair:
            return None
        chosen = menus.question(menus.easiest(scores, fresh, tuning.nearly))
        return chosen.rotated(len(state.answers))  # so that a preference for one position cancels out

    def _not_asked(self, state: State, pairs: Pool, again: list[int]) -> NDArray[np.bool_]:
        """Return which pairs are new: one comes back at most once, the other way round and if questionable.

        It does not come back at once: a respondent would only repeat the answer.
        """
        answers = state.answers
        asked = {answer.question.key for answer in answers}
        settled = set(state.skipped)
        for i, answer in enumerate(answers):
            if answer.asked is not None and (i not in again or i == len(answers) - 1):
                settled.add(answer.asked.members)
        just_now = repeated_pair(state, len(answers) - 1) if answers else None
        if just_now is not None:
            settled.add(Question(just_now).members)
        new = np.array([Question(pair).key not in asked for pair in pairs.options], dtype=bool)
        fresh: NDArray[np.bool_] = new & ~pairs.among(settled)
        return fresh

    # --- what to recommend --------------------------------------------------------------------------------------------

    def recommend(self, state: State, reason: Reason, complete: bool) -> Recommendation:
        """Return what is likely best, with all three levels of certainty."""
        tuning, certifier = self.tuning, self.certifier
        if complete:  # regrets are against the candidates
            candidates = self.add_optima(state.candidates, state.posterior, tuning.final_optima)
            state = replace(state, candidates=candidates)
        sure = tuning.very_likely if state.satisfied_in_row else tuning.very_likely_if_open
        made = self.describe(state, reason, complete, sure)
        replies = sum(answer.asked is not None for answer in state.answers)
        fits = state.log_odds_of_chance <= tuning.misfit or replies < tuning.misfit_answers
        if not fits:
            made = replace(made, fits=False, likely_regret=None, likely_worst=None)
        elif complete and state.answers:
            made = self._checked(state, made, sure)
        importance = self.credible_importance(state) if fits else None
        made = self.with_importance(made, importance)
        state = respect_choice(state, complete)
        if reason in (Reason.PROBABLY_EITHER, Reason.NOT_SURER):
            made = replace(made, reason=self._what_holds(state, made, reason))
        doubtful, unexplained = _not_trusted(state)
        left = 0.0 if complete else self._expected_left(state)
        made = replace(made, doubtful=doubtful, unexplained=unexplained, expected_left=left)
        if not complete:  # one bound per answer would take too long during the interview
            return made
        trusted = sorted(state.cone.labels)
        limit = min(state.cone.limit, tuning.robust_rays // max(1, len(trusted)))
        rays = state.cone.rays_if_one_is_wrong(state.labelled(trusted), limit)
        robust = certifier.worst_regret(rays, state.candidates, state.certificate.number) if trusted else 1.0
        return replace(made, robust_bound=max(robust, made.regret_bound or 0.0))

    def _checked(self, state: State, made: Recommendation, sure: float) -> Recommendation:
        """Return what is likely, also if the respondent may judge options by their worst objective."""
        gains, number = state.candidates.gains, respect_choice(state, complete=True).certificate.number
        regrets = state.posterior.regrets(gains, self.certifier.slack)[:, number]
        check = check_chebyshev(state.evidence, gains, number, self.tuning, self.seed)
        either = [
            (1 - check.share) * linear + check.share * chebyshev
            for linear, chebyshev in zip(loss_probabilities(regrets), loss_probabilities(check.regrets), strict=True)
        ]
        worst = max(made.likely_worst or 0.0, check.quantile(regrets, sure))
        return replace(made, likely_worst=worst, loss_probabilities=(either[0], either[1]))

    def _what_holds(self, state: State, made: Recommendation, reason: Reason) -> Reason:
        """Return what can be said of the recommendation: something very likely, or probable, or else why the asking ended."""
        number, slack, gains = state.certificate.number, self.certifier.slack, state.candidates.gains
        if made.likely_worst is None:
            return Reason.NO_FIT if made.model_choice is None else Reason.CONFIRMED
        if made.likely_worst <= self.target:
            return Reason.VERY_LIKELY_WITHIN
        within = state.posterior.regrets(gains, slack)[:, number] <= self.target
        unnoticed = state.posterior.unnoticed(gains, number, slack)
        share_within, share_unnoticed = within.mean(), unnoticed.mean()
        share_either = (within | unnoticed).mean()
        for least, holds, share in (
            (self.tuning.very_likely, Reason.VERY_LIKELY_UNNOTICED, share_unnoticed),
            (self.tuning.very_likely, Reason.VERY_LIKELY_EITHER, share_either),
            (self.tuning.confidence, Reason.PROBABLY_WITHIN, share_within),
            (self.tuning.confidence, Reason.PROBABLY_UNNOTICED, share_unnoticed),
            (self.tuning.confidence, Reason.PROBABLY_EITHER, share_either),
        ):
            if share >= least:
                return holds
        if made.model_choice is not None:
            return Reason.CONFIRMED
        if reason is Reason.NOT_SURER:
            return reason
        # It was satisfied with the candidates known then, and without the slack of the problem's own solutions.
        return Reason.PROBABLY_EITHER if share_either > 0.5 else Reason.INEXACT

    def _share_satisfied(self, posterior: Posterior, gains: Matrix, number: int) -> float:
        """Return the share of the posterior that is satisfied with an option."""
        return float(posterior.satisfied(gains, self.target)[:, number].mean())

    def _open_bits(self, state: State) -> float:
        """Return how many bits are open about which recommendation is good enough."""
        labels = set_cover(state.posterior.satisfied(state.candidates.gains, self.target))
        return float(entropy(np.bincount(labels) / len(labels)))

    def _expected_left(self, state: State) -> float:
        """Return about how many questions are still to come."""
        most = max(1.0, np.ceil(state.enough) - state.evidence.asked)
        least, per_bit = self.tuning.left_menus if self.asks_menus else self.tuning.left_pairs
        return float(min(least + per_bit * self._open_bits(state), most))

    def _trusted(self, state: State, wrong: Vector) -> Cone:
        """Return the cone of the trusted answers: all but the probably wrong, as far as they do not contradict."""
        newest, before = len(state.answers) - 1, state.cone
        doubtful = {i for i, probability in enumerate(wrong) if probability > self.tuning.doubtful}
        while True:
            trusted = [i for i in range(newest + 1) if i not in doubtful]
            if {*before.labels, newest} == set(trusted):
                cone = before.add_all(state.labelled([newest]))
            else:
                cone = Cone.orthant(before.d, before.e_max, before.limit).add_all(state.labelled(trusted))
            if not cone.empty:
                return cone
            doubtful.add(max(cone.irreducible_conflict(), key=lambda i: wrong[i]))


def repeated_pair(state: State, index: int) -> tuple[Option, Option] | None:
    """Return the pair by which an answer is asked about again: the other way round, or the two ends of a menu."""
    answer = state.answers[index]
    question, reply = answer.asked, answer.reply
    if answer.observed or question is None:
        return None
    if question.is_pair:
        return question.options[1], question.options[0]
    if reply.best is None or reply.worst is None:
        return None
    return question.options[reply.worst], question.options[reply.best]


def _not_trusted(state: State) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return which answers the certificate does not use: probable slips, and answers that were confirmed all the same.

    A reply of which the respondent repeated anything in another answer was confirmed: it is no slip.
    """
    doubtful: list[int] = []
    unexplained: list[int] = []
    for i, answer in enumerate(state.answers):
        if i not in state.cone.labels:
            confirmed = any(state.choices.is_repeated(better, worse) for better, worse, _ in placements(answer))
            (unexplained if confirmed else doubtful).append(answer.number)
    return tuple(sorted(doubtful)), tuple(sorted(unexplained))


# --- model check -------------------------------------------------------------------------------------------------------
#
# A Chebyshev respondent judges an option by its worst objective. Such respondents often answer as if they weighed their
# objectives; a linear posterior is then sure and wrong. The check computes how much better a Chebyshev respondent explains the
# answers (a Bayes factor, by importance sampling from the prior), and weakens what is called very likely by what the
# recommendation would cost them. The questions do not depend on it.


@dataclass(frozen=True, eq=False)
class ChebyshevCheck:
    """How likely the respondent is a Chebyshev respondent, and the relative regrets of such respondents, each as likely."""

    share: float
    regrets: Vector

    def quantile(self, linear: Vector, sure: float) -> float:
        """Return the regret that at least ``sure`` of both kinds of respondent do not exceed.

        >>> ChebyshevCheck(0.5, np.array([0.3, 0.4])).quantile(np.array([0.0, 0.1]), 0.75)
        0.3
        """
        values = np.concatenate([linear, self.regrets])
        sizes = [len(linear), len(self.regrets)]
        weights = np.repeat([(1 - self.share) / sizes[0], self.share / sizes[1]], sizes)
        order = np.argsort(values, kind="stable")
        at = np.searchsorted(np.cumsum(weights[order]), sure - 1e-9)
        return float(values[order[min(int(at), len(order) - 1)]])


def check_chebyshev(evidence: Evidence, gains: Matrix, number: int, tuning: CarefulTuning, seed: int) -> ChebyshevCheck:
    """Return the check after some answers, for the candidate of this number; ``gains`` [K, d] are those of all candidates."""
    rng = np.random.default_rng([seed, 1])
    everybody = sample_prior(tuning.chebyshev_samples, PEOPLE, DirichletMixture.default(gains.shape[1]), rng)
    most = np.maximum(gains.max(axis=0), 1e-12)
    # The likelihood reads "weights" times "differences": here, margins times one.
    margins = _margins(everybody.weights, evidence, most)
    as_margins = replace(evidence, differences=np.eye(len(evidence.outcomes)))
    judging = Samples(margins, everybody.precision, everybody.noise, everybody.lapse, everybody.since)
    with np.errstate(divide="ignore"):
        chebyshev = np.log(reply_likelihood(judging, as_margins)).sum(axis=1)
        linear = np.log(reply_likelihood(everybody, evidence)).sum(axis=1)
    prior_odds = np.log(tuning.chebyshev_share / (1 - tuning.chebyshev_share))
    odds = prior_odds + np.logaddexp.reduce(chebyshev) - np.logaddexp.reduce(linear)
    likelihood = np.exp(chebyshev - chebyshev.max())
    drawn = rng.choice(tuning.chebyshev_samples, 1_000, p=likelihood / likelihood.sum())
    worth = worst_worths(everybody.weights[drawn], gains / most)
    regrets = 1 - worth[:, number] / np.maximum(worth.max(axis=1), 1e-12)
    return ChebyshevCheck(float(1 / (1 + np.exp(-odds))), regrets)


def worst_worths(weights: Matrix, shares: Matrix) -> Matrix:
    """Return what options [K, d] are worth to Chebyshev respondents [n, K]; ``shares`` are parts of the most attainable.

    >>> worst_worths(np.array([[0.5, 0.5], [0.9, 0.1]]), np.array([[0.8, 0.4], [1.0, 0.0]])).round(3).tolist()
    [[0.4, 0.0], [0.8, 0.889]]
    """
    scaled = weights / weights.max(axis=1, keepdims=True)
    missing = np.zeros((len(weights), len(shares)))
    for weight, share in zip(scaled.T, shares.T, strict=True):  # one objective at a time: no array of all three
        np.maximum(missing, weight[:, None] * (1 - share), out=missing)
    result: Matrix = 1 - missing
    return result


def _margins(weights: Matrix, evidence: Evidence, most: Vector) -> Matrix:
    """Return by how much the first option of each comparison is worth more [n, q]; statements are about weights themselves."""
    columns = [np.zeros((len(weights), 0))]
    for index, answer in enumerate(evidence.answers):
        pairs = answer.compared()
        if answer.statement is not None:
            columns.append(worths(weights, evidence.of([index])[0]))
        elif pairs:
            first = np.array([option.value[evidence.relevant] for option, _, _ in pairs]) / most
            second = np.array([option.value[evidence.relevant] for _, option, _ in pairs]) / most
            columns.append(worst_worths(weights, first) - worst_worths(weights, second))
    return np.concatenate(columns, axis=1)
