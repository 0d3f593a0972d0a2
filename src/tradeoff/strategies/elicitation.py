"""The loop that `certified` and `careful` share: an immutable state per list of answers, in the problem's cache."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tradeoff.errors import ArgumentError
from tradeoff.evidence import Answer, DirectChoices, Evidence, identity
from tradeoff.model import CERTAINTY, SKIP, Criterion, Matrix, Option, Question, Reason, Recommendation, Reply, Vector
from tradeoff.numerics import worths
from tradeoff.problem import Problem, pieces_of, with_share
from tradeoff.strategies.cone import Cone
from tradeoff.strategies.posterior import Posterior
from tradeoff.strategies.replay import Step, Strategy, answers_in
from tradeoff.strategies.solutions import Candidates, Certificate, Certifier, solutions_of
from tradeoff.strategies.tuning import Tuning

MAX_OBJECTIVES = 20  # that can be asked about; up to 12 are measured (benchmarks/latency.py)
WORTH_DIGITS = 12  # worths that agree to so many digits are equal, whatever the machine


@dataclass(frozen=True, eq=False)
class State:
    """What is known after some answers; the same answers always lead to the same state."""

    evidence: Evidence
    skipped: frozenset[frozenset[bytes]]  # the options of questions that were skipped, which are not asked about again
    candidates: Candidates
    posterior: Posterior
    cone: Cone  # of the trusted answers, labelled by their positions in the evidence
    certificate: Certificate
    expected: Criterion | None = None  # by which options are compared on average; None: by their worst case
    enough: float = np.inf  # answers after which no more are asked for, sure or not
    satisfied_in_row: int = 0  # answers in a row after which nearly all of the posterior was satisfied
    log_odds_of_chance: float = 0.0  # by which replying at random explains the answers better than the posterior did

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The answers, without skips."""
        return self.evidence.answers

    @property
    def asked(self) -> list[Question]:
        """The questions that were answered."""
        return [answer.asked for answer in self.answers if answer.asked is not None]

    @property
    def settled(self) -> set[frozenset[bytes]]:
        """The options of every question that was answered or skipped."""
        return {*self.skipped, *(question.members for question in self.asked)}

    @property
    def criterion(self) -> Criterion:
        """How options are compared."""
        if self.expected is not None:
            return self.expected
        weights = np.zeros((len(self.certificate.rays), self.candidates.values.shape[1]))
        weights[:, self.candidates.relevant] = self.certificate.rays
        return Criterion(weights, self.certificate.best + self.certificate.slack, worst_case=True)

    @cached_property
    def choices(self) -> DirectChoices:
        """Which options were directly placed above which others."""
        return DirectChoices.of(self.answers)

    @cached_property
    def objection(self) -> Objection | None:
        """The respondent's own choice against the option that the model favours."""
        return objection_to(self.certificate.number, self.choices, self.candidates, self.criterion)

    def labelled(self, indices: Sequence[int]) -> list[tuple[int, Matrix]]:
        """Return the half-spaces of some answers, each under its position."""
        return [(i, self.evidence.half_spaces(i)) for i in indices]


# The model infers weights from all answers and may then favour an option that the respondent has rejected: people have reasons
# that are not among the objectives. A strategy therefore asks such a pair before it stops. If the respondent confirms the
# choice, it recommends the option they preferred.


@dataclass(frozen=True)
class Objection:
    """The respondent chose an option over the one that the model favours; both by their numbers among the candidates."""

    favourite: int
    chosen: int
    confirmed: bool


def objection_to(
    favourite: int, choices: DirectChoices, candidates: Candidates, criterion: Criterion
) -> Objection | None:
    """Return the choice that speaks against what the model favours; None if there is none.

    The chosen option was never rejected itself. Among several, a confirmed one comes first, then the one that loses least.
    """
    option = identity(candidates.options[favourite])
    objections = []
    for better in choices.preferred_to(option):
        number = candidates.number_of(better)
        if number is not None:
            loss = float(criterion.losses(candidates.values[[number]])[0])
            objections.append((not choices.is_confirmed(better, option), loss, number))
    if not objections:
        return None
    unconfirmed, _, number = min(objections)
    return Objection(favourite, number, not unconfirmed)


@dataclass(frozen=True, eq=False)
class Approach(ABC):
    """A strategy's settings; how it learns, when it stops, what it asks and what it recommends."""

    problem: Problem
    certifier: Certifier
    target: float
    lotteries: bool
    questions: str
    seed: int
    tuning: Tuning

    @property
    def identity(self) -> Hashable:
        """Distinguishes this approach with its settings from others."""
        return type(self).__name__, self.target, self.lotteries, self.questions, self.seed, self.tuning

    @abstractmethod
    def begin(self) -> State:
        """Return the state before any answer."""

    @abstractmethod
    def learn(self, state: State) -> State:
        """Return the state with posterior, cone and certificate brought up to date after its last answer."""

    @abstractmethod
    def reason_to_stop(self, state: State) -> Reason | None:
        """Return why to stop here, or None to go on."""

    @abstractmethod
    def choose(self, state: State) -> Question | None:
        """Return the question to ask next, or None if no answer could tell anything."""

    @abstractmethod
    def recommend(self, state: State, reason: Reason, complete: bool) -> Recommendation:
        """Return the recommendation in a state."""

    # --- shared by the approaches -------------------------------------------------------------------------------------

    def add_optima(self, candidates: Candidates, posterior: Posterior, count: int) -> Candidates:
        """Return the candidates with the optima of about ``count`` samples."""
        return self.certifier.add_optima(candidates, posterior, count, self.tuning.optima_grid)

    def first_state(self, posterior: Posterior, *, expected: bool = False, optima: int | None = None) -> State:
        """Return the state before any answer: everybody is possible."""
        certifier, tuning = self.certifier, self.tuning
        spanner = certifier.solutions.spanner().options
        candidates = Candidates.none(certifier.objectives, certifier.relevant).add(spanner)
        candidates = self.add_optima(candidates, posterior, optima or tuning.optima)
        cone = Cone.orthant(certifier.d, 1.0, limit=tuning.max_rays)
        certify = self.certify_expected if expected else self.certify_worst_case
        certificate, candidates, criterion = certify(posterior, cone, candidates)
        evidence = Evidence.none(certifier.relevant)
        return State(evidence, frozenset(), candidates, posterior, cone, certificate, criterion)

    def certify_worst_case(
        self, posterior: Posterior, cone: Cone, candidates: Candidates
    ) -> tuple[Certificate, Candidates, None]:
        """Return the certificate of the candidate of least worst-case regret.

        The candidates come back with the optima of all rays and of some samples.
        """
        candidates = self.add_optima(candidates, posterior, self.tuning.optima)
        return *self.certifier.certify(cone.rays, candidates), None

    def certify_expected(
        self, posterior: Posterior, cone: Cone, candidates: Candidates
    ) -> tuple[Certificate, Candidates, Criterion]:
        """Return the certificate of the option of least expected regret, the candidates, and the criterion.

        Expected regret is linear in an option's gains, so the option that minimises it is the optimum for some weights.
        """
        certifier = self.certifier
        candidates = self.add_optima(candidates, posterior, self.tuning.optima)
        best = worths(posterior.weights, candidates.gains).max(axis=1)
        criterion = Criterion(certifier.directions(posterior.weights), best)
        candidates = candidates.add(certifier.solutions.best(criterion.mean_weights[None, :]))
        worth = worths(candidates.values, criterion.mean_weights[None, :])[:, 0]
        number = int(np.round(worth, WORTH_DIGITS).argmax())
        return *certifier.certify(cone.rays, candidates, number), criterion

    def describe(
        self, state: State, reason: Reason, complete: bool, very_likely: float | None = None
    ) -> Recommendation:
        """Return the recommendation in a state, and what is known of it.

        What the share ``very_likely`` of the posterior agrees on is called very likely. If the respondent chose another option
        over the one that the model favours, and the choice stands, that option is recommended.
        """
        certifier, objection = self.certifier, state.objection
        state = respect_choice(state, complete)
        certificate, candidates, empty = state.certificate, state.candidates, state.cone.empty
        options = candidates.options
        regrets = state.posterior.regrets(candidates.gains, certifier.slack)[:, certificate.number]
        likely, worst = float(regrets.mean()), float(np.quantile(regrets, very_likely or self.tuning.very_likely))
        shares = certificate.rays @ pieces_of(self.problem)[certifier.relevant]
        made = Recommendation(
            options[certificate.number],
            certifier.directions(_estimate(state)[None, :])[0],
            len(state.answers),
            reason,
            complete=complete and not empty,
            regret_bound=None if empty else certificate.bound,
            likely_regret=likely,
            likely_worst=max(worst, likely),  # a few large regrets can make the mean larger
            importance_if_right=None if empty else np.stack([shares.min(axis=0), shares.max(axis=0)], axis=1),
            runner_up=_runner_up(state, self.tuning.different),
            target=self.target,
            criterion=state.criterion,
            loss_probabilities=loss_probabilities(regrets),
        )
        if objection is None:
            return made
        if certificate.number == objection.chosen:
            favourite = options[objection.favourite]
            return replace(made, model_choice=favourite, runner_up=favourite)
        return replace(made, contested_by=options[objection.chosen], runner_up=options[objection.chosen])

    def credible_importance(self, state: State) -> Matrix:
        """Return the interval [k, 2] in which the importance of each original objective very likely is.

        What the respondent stated about importance itself is taken as it is: it was not a slip.
        """
        tail, posterior = (1 - self.tuning.credible) / 2, state.posterior
        stated = [i for i, answer in enumerate(state.answers) if answer.statement and answer.statement.about_weights]
        meant = posterior.consistent(*state.evidence.of(stated)).all(axis=1)
        fitting = posterior.weights[meant] if meant.sum() >= self.tuning.min_samples else posterior.weights
        shares = fitting @ pieces_of(self.problem)[self.certifier.relevant]
        result: Matrix = np.quantile(shares, [tail, 1 - tail], axis=0).T
        return result

    def with_importance(self, made: Recommendation, importance: Matrix | None) -> Recommendation:
        """Return the recommendation with the intervals that are stated, and the objectives whose interval need not be smaller.

        Of these the answers prove that the recommendation is within the target, and so it is where the objective's share is
        anywhere in its interval and the others keep their estimated proportions. The shares for which that holds are an
        interval: the best gain is convex in the share, that of the recommendation linear. So both ends are enough.
        """
        certifier, pieces, target = self.certifier, pieces_of(self.problem), made.target or 0.0
        relevant: NDArray[np.bool_] = np.asarray(pieces[certifier.relevant].sum(axis=0) > 0)
        unidentified: NDArray[np.bool_] = ~relevant
        if importance is not None and made.regret_bound is not None and made.regret_bound <= target:
            little, much = self.tuning.wide_importance
            for j in np.flatnonzero(relevant & (importance[:, 0] < little) & (importance[:, 1] > much)):
                ends = (
                    np.floor(100 * importance[j, 0]) / 100,
                    np.ceil(100 * importance[j, 1]) / 100,
                )  # as they are worded
                rows = with_share(made.weights, pieces[:, j], np.clip(ends, 0.0, 1.0))
                best = np.array([option.value for option in certifier.solutions.best(rows)])
                most = np.einsum("nk,nk->n", rows, best) + certifier.slack
                unidentified[j] = (1 - rows @ made.option.value / most).max() <= target
        names = (o.name for o in getattr(self.problem, "original", self.problem).objectives)
        unidentified_names = tuple(name for name, is_open in zip(names, unidentified.tolist(), strict=True) if is_open)
        return replace(made, importance=importance, unidentified=unidentified_names)


@dataclass(frozen=True, eq=False)
class Turn:
    """A state under its key, and what comes next there."""

    key: bytes
    state: State
    next: Question | Recommendation


def check_settings(problem: Problem, target: float) -> None:
    """Raise an ArgumentError if the target is not a relative regret, or the problem has too many objectives."""
    if isinstance(target, str) or not 0 < target < 1:
        raise ArgumentError(f"the target is {target!r}; it is a relative regret between 0 and 1, such as 0.01")
    count = len(solutions_of(problem).relevant)
    if count > MAX_OBJECTIVES:
        raise ArgumentError(
            f"{count} objectives can be changed by what is chosen; this strategy asks about at most {MAX_OBJECTIVES}: "
            "combine some of them, or choose those that matter most (of a table, with objectives)"
        )


def elicit(approach: Approach) -> Strategy:
    """Ask until the approach has a reason to stop, or nothing more can be learned."""
    cache = approach.certifier.solutions
    turn = _first_turn(approach)
    left, ordinal = approach.tuning.max_questions_per_objective * approach.certifier.d, 0
    while left > 0:
        if isinstance(turn.next, Recommendation):
            return turn.next
        here, question = turn, turn.next

        def so_far(here: Turn = here) -> Recommendation:
            key = here.key + b"so far"
            found: Recommendation | None = cache.state(key)
            if found is None:
                found = approach.recommend(here.state, Reason.EARLY, complete=False)
                cache.put_state(key, found)
            return found

        def in_cache(reply: Reply, here: Turn = here, question: Question = question) -> bool:
            return cache.state(_key_after(here.key, Answer(question, reply))) is not None

        received = yield Step(question, so_far, left, in_cache)
        answers = answers_in(question, received)
        turn = _turn_after(approach, turn, answers, ordinal)
        ordinal += len(answers)
        left -= sum(answer.was_asked for answer in answers)
    if isinstance(turn.next, Recommendation):
        return replace(turn.next, complete=False)
    return approach.recommend(turn.state, Reason.TOO_MANY, complete=False)


def _first_turn(approach: Approach) -> Turn:
    key = hashlib.sha256(repr(approach.identity).encode()).digest()
    turn: Turn | None = approach.certifier.solutions.state(key)
    return turn or _decide(approach, key, approach.begin())


def _turn_after(approach: Approach, turn: Turn, answers: Sequence[Answer], ordinal: int) -> Turn:
    """Return what follows answers, the first of which has the number after ``ordinal``; from the cache if it is there."""
    key, state = turn.key, turn.state
    known: Turn | None = None
    for number, answer in enumerate(answers, start=ordinal + 1):
        key = _key_after(key, answer)
        known = approach.certifier.solutions.state(key)
        state = _state_after(approach, state, replace(answer, number=number)) if known is None else known.state
    return _decide(approach, key, state) if known is None else known


def _state_after(approach: Approach, state: State, answer: Answer) -> State:
    """Return the state after an answer."""
    if answer.reply == SKIP:
        return replace(state, skipped=state.skipped | {answer.asked.members}) if answer.asked else state
    return approach.learn(replace(state, evidence=state.evidence.update(answer)))


def _decide(approach: Approach, key: bytes, state: State) -> Turn:
    """Return the state with the next question, or with the recommendation if nothing is left to ask; and cache it."""
    reason = approach.reason_to_stop(state)
    question = approach.choose(state) if reason is None else None
    if question is None:
        question = _pair_to_confirm(approach, state, stopping=reason is not None)
    if question is None:
        reason = reason or Reason.NOTHING_TO_ASK
        turn = Turn(key, state, approach.recommend(state, reason, complete=True))
    else:
        turn = Turn(key, state, question)
    approach.certifier.solutions.put_state(key, turn)
    return turn


def _pair_to_confirm(approach: Approach, state: State, stopping: bool) -> Question | None:
    """Return what to ask before stopping, because the respondent chose another option over the one that the model favours.

    That is the pair of the two, but not more than twice, and not twice in a row: there is another question in between, if
    there is one.
    """
    objection, asked = state.objection, state.asked
    if objection is None or objection.confirmed:
        return None
    options = state.candidates.options
    pair = Question((options[objection.favourite], options[objection.chosen]))
    before = [question for question in asked if question.is_pair and question.members == pair.members]
    if pair.members in state.skipped or len(before) > 1:
        return None
    if not before:
        return pair
    if asked[-1] is before[-1]:
        return approach.choose(state) if stopping and not state.cone.empty else None
    return before[0].rotated(1)


def _key_after(key: bytes, answer: Answer) -> bytes:
    """Return what tells the state after this answer, to the state of this key, from all others."""
    origin = b"/elsewhere" if answer.elsewhere else b"/observed" if answer.observed else b""
    return hashlib.sha256(key + answer.question.key + repr(answer.reply).encode() + origin).digest()


# --- what a state says -----------------------------------------------------------------------------------------------


def loss_probabilities(regrets: Vector) -> tuple[float, float]:
    """Return how likely each of the losses that decide between "sure" and "not sure" is exceeded."""
    first, second = (float((regrets > loss).mean()) for loss in CERTAINTY.losses)
    return first, second


def respect_choice(state: State, complete: bool) -> State:
    """Return the state in which the option that the respondent chose over the model's favourite is recommended, if any.

    The choice stands if it was confirmed, or if the pair was asked and cannot be asked again.
    """
    objection = state.objection
    if objection is None:
        return state
    both = frozenset(identity(state.candidates.options[i]) for i in (objection.favourite, objection.chosen))
    if objection.confirmed or (complete and state.choices.as_pair.get(both, 0)):
        return replace(state, certificate=state.certificate.recommending(objection.chosen, state.candidates))
    return state


def _estimate(state: State) -> Vector:
    """Return weights that fit the trusted answers, so that the estimate lies within the stated intervals."""
    posterior = state.posterior
    fits = posterior.consistent(*state.evidence.of(state.cone.labels)).all(axis=1)
    result: Vector = (posterior.weights[fits] if fits.any() else state.certificate.rays).mean(axis=0)
    return result


def _runner_up(state: State, different: float) -> Option | None:
    """Return the candidate of least expected regret that is another option than the recommended one, not nearly the same."""
    gains, mine = state.candidates.gains, state.certificate.number
    others = np.flatnonzero(np.abs(gains - gains[mine]).max(axis=1) >= different)
    if not len(others):
        return None
    mean = state.posterior.regrets(gains)[:, others].mean(axis=0)
    return state.candidates.options[int(others[mean.argmin()])]
