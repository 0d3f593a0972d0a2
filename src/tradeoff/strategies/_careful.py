"""For people: real questions, and every answer may be wrong.

A belief in which answers are noisy, and sometimes wrong or no longer meant, decides what to ask, when to stop and what is
said to be likely. An answer that is probably wrong is set aside and reported as doubtful; the certificate is
that of the other answers.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tradeoff.menus import AnyQuestion, Menu, checked_questions, checked_strengths, members, plain
from tradeoff.model import Answer, Matrix, Question, Reason, Recommendation, Vector
from tradeoff.problem import Problem
from tradeoff.strategies.base import Strategy
from tradeoff.strategies.belief import Belief
from tradeoff.strategies.cache import Candidates
from tradeoff.strategies.certifier import Certifier
from tradeoff.strategies.choosing import (
    Pool,
    candidate_questions,
    contenders,
    cover,
    easiest,
    entropy,
    information,
    value_of_asking,
)
from tradeoff.strategies.consistency import ConsistentSet
from tradeoff.strategies.doubt import Doubt, Rival, most_of, sides_of
from tradeoff.strategies.earlier import Prior, dirichlets_of
from tradeoff.strategies.elicitation import (
    VERY_LIKELY,
    State,
    certify,
    check_settings,
    elicit,
    first_state,
    recommendation,
)
from tradeoff.strategies.offering import Offer, offer
from tradeoff.strategies.sampling import PEOPLE, WITH_STRENGTHS, Answering, Dirichlets

# All constants were chosen by hand on random catalogues and on the people of benchmarks/people.py.
CONFIDENCE = 0.93  # of the belief must be content with the recommendation,
PATIENCE = 2  # as many times in a row, the last time after a question that could have changed it;
OVERWHELMING = 0.98  # of the belief being content is enough at once
# Questions that people without noise need: so many per objective and per bit that is open at first, fitted to interviews on the
# bundled problems and random catalogues; 2 off on average. Whoever needs half as many again hears how sure it is, and is asked
# no more: more questions would help less than they cost.
USUAL_PER_OBJECTIVE, USUAL_PER_BIT = 1.0, 2.0
LONGEST = 1.5
# Of as many pairs, so many questions of each kind are usual.
AS_MANY = {"pairs": 1.0, "best-of-3": 0.8, "best-of-4": 0.7, "rank-3": 0.7, "best-worst-4": 0.55}
# Of the belief, where it is not content: whoever it does not know yet may be less like what it supposes. Most of those whose
# preferences are not linear are among them.
VERY_LIKELY_IF_OPEN = 0.99
MISFIT = 1.5  # nats: if the answers were less likely than they should have been by this factor, no weights explain them
HARDLY = 0.5  # and if it is likelier than this that only the worst objective counts, none do either
DOUBTFUL = 0.6  # an answer more likely wrong than this is set aside
QUESTIONABLE = 0.15  # one more likely wrong than this may be asked again, the other way round
REPEATED = 0.03  # and one more likely wrong than this, where a question is to confirm
LOOKED_UP = 100  # particles whose optimum is looked up before the asking may end,
ANYBODY = (
    1200  # particles before the first question, whose optima are all looked up: everybody after that finds them ready
)
# Among questions worth nearly as much as the best, one of few differing objectives is asked, and of these the clearest: people
# err near ties. While the recommendation is still poor, what it gains by the best question is worth more than that.
NEARLY = 0.9
POOR = 0.03  # expected regret
WORTHLESS = 0.01  # bits: nothing is left to learn
ROBUST_RAYS = 40_000  # that all answers share for the bound with one more wrong; a second at 12 objectives
# Questions to come, this one included: a line in the bits that are open about which recommendation is good enough, fitted
# to interviews of people with and without slips: 397 states of pairs on the bundled problems (at most 2 off in 73 of 100), and
# 59 to 109 states of each other kind on coffee (58 to 83 of 100).
LEFT = {
    "pairs": (0.3, 3.8),
    "best-of-3": (1.1, 2.2),
    "best-of-4": (1.3, 1.7),
    "rank-3": (1.6, 2.6),
    "best-worst-4": (1.0, 2.0),
}
SURPRISE = 0.3  # what a bit of any answer is worth beside a bit about the recommendation
VALUE = 30.0  # and what a recommendation that is better by all of the best possible gain
TIE_BREAK = 1e-3  # what a bit is worth where a question is to confirm


def careful(
    problem: Problem, *, target: float = 0.01, lotteries: bool = False, questions: str = "pairs", seed: int = 0,
    prior: Prior | None = None, strengths: bool = False,
) -> Strategy:  # fmt: skip
    """Return the strategy for people, who make mistakes; it stops when the recommendation is very likely good enough.

    ``lotteries`` allows questions about an alternative that comes only with some probability. ``questions`` is one of
    ``tradeoff.menus.QUESTIONS``; with menus, a pair is still asked where it tells nearly as much. ``prior`` is what is
    supposed of the person before the first answer, as ``learn_prior`` returns it; certificates never use it. With
    ``strengths``, an answer may say "a lot" or "a little" better (``tradeoff.menus.Graded``), which only the belief uses.
    """
    check_settings(problem, target)
    chooser = InformationChooser(target, lotteries, checked_questions(questions))
    answering = WITH_STRENGTHS if checked_strengths(strengths) else PEOPLE
    return elicit(Careful(problem, Certifier.of(problem), chooser, seed, dirichlets_of(prior, problem), answering))


@dataclass(frozen=True)
class InformationChooser:
    """Chooses questions that tell most about which recommendation is good enough, wrong answers allowed for."""

    target: float
    lotteries: bool
    questions: str = "pairs"

    def choose(self, state: State) -> AnyQuestion | None:
        """Return the question to ask next, or None if no answer could tell anything."""
        belief, candidates = state.belief, state.candidates
        regrets = belief.regrets(candidates)
        numbers = contenders(state.certificate, belief, candidates, regrets, self.target)
        alternatives = [candidates.alternatives[i] for i in numbers]
        pool = candidate_questions(alternatives, candidates.relevant, belief, self.lotteries)
        if len(state.answers) % 2:  # who favours one side favours neither alternative
            pool = pool.turned
        # Nearly sure, it tests itself: what is asked last is what would change the recommendation if an answer were wrong.
        confirming = state.content_in_row > 0
        questionable = np.flatnonzero(state.chance_wrong(belief) > (REPEATED if confirming else QUESTIONABLE))
        pool = self._with_questionable(state, pool, questionable)
        answers = belief.answers(pool.differences)
        labels = cover(belief.content(candidates, self.target))
        learned, scores = _judged(answers, labels, regrets, confirming)
        fresh = self._not_asked(state, pool, questionable)
        menus = offer(self.questions, numbers, candidates, belief)
        if menus is not None:
            chances = menus.with_lapses(belief.lapse)
            judged = _judged(chances, labels, regrets, confirming)
            menu = self._menu(state, menus, *judged, least=float(scores[fresh].max(initial=0.0)))
            if menu is not None:
                return menu
        if not fresh.any() or learned[fresh].max() < WORTHLESS:
            return None
        poor = regrets.mean(axis=0).min() > POOR
        return pool.questions[easiest(scores, pool, belief, allowed=fresh, nearly=1.0 if poor else NEARLY)]

    def _menu(self, state: State, menus: Offer, learned: Vector, scores: Vector, least: float) -> Menu | None:
        """Return the menu that is worth most, unless a pair, which is worth ``least``, is worth nearly as much."""
        done = state.unanswered | {members(given.question) for given in state.answers}
        fresh = menus.fresh(state.candidates, done)
        if not fresh.any() or learned[fresh].max() < WORTHLESS or NEARLY * scores[fresh].max() <= least:
            return None
        chosen = menus.menu(menus.easiest(scores, state.candidates, allowed=fresh, nearly=NEARLY), state.candidates)
        return chosen.turned(len(state.answers))  # who favours one place favours no alternative

    def _with_questionable(self, state: State, pool: Pool, questionable: NDArray[np.intp]) -> Pool:
        """Return the pool with the questions of questionable answers added, the other way round; of a menu, its two ends."""
        again = [two for i in questionable if (two := asked_again(state, int(i))) is not None]
        if not again:
            return pool
        differences = np.array([q.difference[state.candidates.relevant] for q in again])
        return Pool(
            [*pool.questions, *again],
            np.concatenate([pool.differences, differences]),
            np.append(pool.pure, np.ones(len(again), dtype=bool)),
        )

    def _not_asked(self, state: State, pool: Pool, questionable: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which questions are new: a pair comes back at most once, the other way round and if questionable.

        It does not come back at once: a person would only repeat the answer.
        """
        asked = [given.question for given in state.answers]
        keys = {question.key for question in asked}
        again = set(questionable.tolist()) - {len(asked) - 1}
        settled = state.unanswered | {members(q) for i, q in enumerate(asked) if i not in again}
        just_now = asked_again(state, len(asked) - 1) if asked else None
        settled |= set() if just_now is None else {just_now.pair}
        return np.array([q.key not in keys and q.pair not in settled for q in pool.questions], dtype=bool)


def _judged(
    answers: NDArray[np.float64], labels: NDArray[np.int64], regrets: Matrix, confirming: bool
) -> tuple[Vector, Vector]:
    """Return how many bits each question tells that count, and what it is worth to ask it.

    ``answers[A, M, Q]``: how likely each particle is to give each answer.
    """
    about_anything = entropy(answers.mean(axis=1)) - entropy(answers).mean(axis=0)
    learned = information(answers, labels) + SURPRISE * about_anything
    value = value_of_asking(answers, regrets)
    return learned, value + TIE_BREAK * learned if confirming else learned + VALUE * value


def asked_again(state: State, number: int) -> Question | None:
    """Return the pair by which an answer is asked about again: the other way round, or the two ends of a choice."""
    given = state.answers[number]
    if given.question.key in state.foreign:
        return None
    if isinstance(given.question, Question):
        return Question(given.question.second, given.question.first)
    if (
        not isinstance(given.question, Menu)
        or isinstance(answer := plain(given.answer), Answer)
        or answer.best is None
        or answer.worst is None
    ):
        return None
    alternatives = given.question.alternatives
    return Question(alternatives[answer.worst], alternatives[answer.best])


@dataclass(frozen=True, eq=False)
class Careful:
    """Likely answers are trusted; the recommendation is the alternative of least expected regret."""

    problem: Problem
    certifier: Certifier
    chooser: InformationChooser
    seed: int
    prior: Dirichlets | None = None
    answering: Answering = PEOPLE

    @property
    def identity(self) -> Hashable:
        """What tells this approach with its settings from others."""
        return "careful", self.chooser, self.seed, self.prior, self.answering

    def begin(self) -> State:
        """Return the state before any reply."""
        belief = Belief.prior(self.certifier.d, self.answering, self.seed, self.prior, ANYBODY)
        state = first_state(self.problem, self.certifier, belief, _least_expected_regret, ANYBODY)
        usual = USUAL_PER_OBJECTIVE * self.certifier.d + USUAL_PER_BIT * self._open_bits(state)
        usual *= AS_MANY[self.chooser.questions]
        rival = Rival.before_answers(self.certifier.d, PEOPLE, self.seed)
        return replace(state, enough=LONGEST * usual, rival=rival)

    def learn(self, state: State) -> State:
        """Return the state brought up to date after its last answer, with all answers judged anew."""
        target, certifier = self.chooser.target, self.certifier
        new = len(state.said[-1][1])
        shares, owners = state.shares, state.owners
        belief = state.belief.given(state.differences, state.kinds, new, shares, owners, state.strengths)
        consistent = _trusted(state, state.chance_wrong(belief))
        certificate, candidates = certify(certifier, belief, consistent, state.candidates, _least_expected_regret)
        if _share_content(belief, candidates, target, certificate.number) >= CONFIDENCE:
            # Regrets are against the candidates. Before they count, the own optimum of many particles is looked up.
            candidates = certifier.look_up(candidates, belief, LOOKED_UP)
            certificate, candidates = certify(certifier, belief, consistent, candidates, _least_expected_regret)
        content = _share_content(belief, candidates, target, certificate.number)
        # "All about equal" may be a slip, which would then be many comparisons: another answer has to confirm it.
        newest = state.said[-1][1]
        at_once = content >= OVERWHELMING and (len(newest) == 1 or bool(newest.any()))
        in_row = PATIENCE if at_once else state.content_in_row + 1 if content >= CONFIDENCE else 0
        return replace(
            state, belief=belief, consistent=consistent, certificate=certificate, candidates=candidates,
            content_in_row=in_row, rival=_rival(state),
        )  # fmt: skip

    def reason_to_stop(self, state: State) -> Reason | None:
        """Return that it is time to stop, or None to go on; ``recommend`` says what exactly holds then."""
        target = self.chooser.target
        if state.content_in_row >= PATIENCE or (not state.answers and state.certificate.resolvable <= target):
            return Reason.PROBABLY_EITHER
        return Reason.NOT_SURER if state.asked >= state.enough else None

    def choose(self, state: State) -> AnyQuestion | None:
        """Return the question to ask next, or None if no answer could tell anything."""
        return self.chooser.choose(state)

    def recommend(self, state: State, reason: Reason, complete: bool) -> Recommendation:
        """Return what is likely best, with all three levels of certainty."""
        belief, trusted = state.belief, state.consistent.trusted
        if complete:  # regrets are against the candidates
            state = replace(state, candidates=self.certifier.look_up(state.candidates, belief, LOOKED_UP))
        sure = VERY_LIKELY if state.content_in_row else VERY_LIKELY_IF_OPEN
        made = recommendation(self.problem, self.certifier, state, belief, self.chooser.target, reason, complete, sure)
        assert state.rival is not None
        feared = state.rival.doubt(state.candidates.gains, state.certificate.number)
        mine = belief.regrets(state.candidates, self.certifier.slack)[:, state.certificate.number]
        likely = feared.mean(mine, feared.regrets)
        made = replace(made, likely_regret=likely, likely_worst=max(feared.quantile(mine, sure), likely))
        # Then the belief is about nobody, or the person is more likely somebody whom no weights describe.
        if belief.surprise(state.differences, state.kinds, state.shares) > MISFIT or feared.share > HARDLY:
            made = replace(made, fits=False, likely_regret=None, likely_worst=None)
        if reason in (Reason.PROBABLY_EITHER, Reason.NOT_SURER):
            made = replace(made, reason=self._what_holds(state, made, reason, feared))
        doubtful = sorted(given.ordinal for i, given in enumerate(state.answers) if i not in trusted)
        made = replace(made, doubtful=tuple(doubtful), expected_left=0.0 if complete else self._expected_left(state))
        if not complete:  # on the way, where one bound per answer would take too long
            return made
        limit = min(state.consistent.cone.limit, ROBUST_RAYS // max(1, len(trusted)))
        rays = state.consistent.if_one_were_wrong(state.labelled(sorted(trusted)), limit)
        robust = self.certifier.worst_regret(rays, state.candidates, state.certificate.number) if trusted else 1.0
        return replace(made, robust_bound=max(robust, made.regret_bound or 0.0))

    def _open_bits(self, state: State) -> float:
        """Return how many bits are open about which recommendation is good enough."""
        labels = cover(state.belief.content(state.candidates, self.chooser.target))
        return float(entropy(np.bincount(labels) / len(labels)))

    def _expected_left(self, state: State) -> float:
        """Return about how many questions are still to come."""
        most = max(1.0, np.ceil(state.enough) - state.asked)
        least, per_bit = LEFT[self.chooser.questions]
        return float(min(least + per_bit * self._open_bits(state), most))

    def _what_holds(self, state: State, made: Recommendation, reason: Reason, feared: Doubt) -> Reason:
        """Return what can be said of the recommendation: something very likely, or probable, or else why the asking ended."""
        target, number, slack, belief = (
            self.chooser.target,
            state.certificate.number,
            self.certifier.slack,
            state.belief,
        )
        if made.likely_worst is None:
            return Reason.NOT_SURER
        if made.likely_worst <= target:
            return Reason.VERY_LIKELY_WITHIN
        within = belief.regrets(state.candidates, slack)[:, number] <= target
        unnoticed = belief.unnoticed(state.candidates, number, slack)
        for_worst = feared.regrets <= target
        share_within = feared.mean(within, for_worst)
        share_unnoticed = feared.mean(unnoticed, feared.unnoticed)
        share_either = feared.mean(within | unnoticed, for_worst | feared.unnoticed)
        for enough, said, share in (
            (VERY_LIKELY, Reason.VERY_LIKELY_UNNOTICED, share_unnoticed),
            (VERY_LIKELY, Reason.VERY_LIKELY_EITHER, share_either),
            (CONFIDENCE, Reason.PROBABLY_WITHIN, share_within),
            (CONFIDENCE, Reason.PROBABLY_UNNOTICED, share_unnoticed),
            (CONFIDENCE, Reason.PROBABLY_EITHER, share_either),
        ):
            if share >= enough:
                return said
        if reason is Reason.NOT_SURER:
            return reason
        # It was content among the candidates known then, and without the slack of the problem's own solutions.
        return Reason.PROBABLY_EITHER if share_either > 0.5 else Reason.INEXACT


def _least_expected_regret(belief: Belief, candidates: Candidates) -> int:
    return int(belief.regrets(candidates).mean(axis=0).argmin())


def _share_content(belief: Belief, candidates: Candidates, target: float, number: int) -> float:
    """Return the share of the belief that would be content with a candidate."""
    return float(belief.content(candidates, target)[:, number].mean())


def _rival(state: State) -> Rival:
    """Return those who look at their worst objective, after the newest answer; the state has the belief from before it."""
    assert state.rival is not None
    new = len(state.said[-1][1])
    predicted = state.belief.chance(state.differences[-new:], state.kinds[-new:], state.shares[-new:])
    given = [(one.question, plain(one.answer)) for one in state.answers]
    sides = sides_of(given, [differences for differences, _ in state.said], state.candidates.relevant)
    return state.rival.given(sides, state.kinds, state.shares, new, predicted, most_of(state.candidates.gains))


def _trusted(state: State, wrong: Vector) -> ConsistentSet:
    """Return everything that fits the trusted answers: all but the likely wrong, as far as they do not contradict."""
    newest = len(state.answers) - 1
    doubtful = {i for i, chance in enumerate(wrong) if chance > DOUBTFUL}
    before = state.consistent
    while True:
        trusted = [i for i in range(newest + 1) if i not in doubtful]
        if before.trusted | {newest} == set(trusted):
            consistent = before.given(state.labelled([newest]))
        else:
            everything = ConsistentSet.everything(before.cone.d, before.cone.limit)
            consistent = everything.given(state.labelled(trusted))
        if not consistent.empty:
            return consistent
        conflict = [int(label) for label in consistent.cone.irreducible_conflict()]  # type: ignore[call-overload]
        doubtful.add(max(conflict, key=lambda i: wrong[i]))
