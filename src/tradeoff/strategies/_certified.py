"""For answers that are always right: few, real questions, and a proof of how good the recommendation is."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

from tradeoff.menus import AnyQuestion, checked_questions
from tradeoff.model import Reason, Recommendation
from tradeoff.problem import Problem
from tradeoff.strategies.base import Strategy
from tradeoff.strategies.belief import Belief
from tradeoff.strategies.certifier import Certifier
from tradeoff.strategies.elicitation import State, certify, check_settings, elicit, first_state, recommendation
from tradeoff.strategies.proving import ProofChooser
from tradeoff.strategies.sampling import Answering

# No noise, and a lapse so rare that no particle survives a contradiction if any other exists.
EXACT = Answering(lapse=(1e-6, 1e-6))
# "About equal" puts rays where a loss is exactly the precision: equality counts as unnoticed, whatever its last digit.
EQUALITY = 1e-9


def certified(
    problem: Problem, *, target: float = 0.01, lotteries: bool = False, questions: str = "pairs", seed: int = 0
) -> Strategy:
    """Return the strategy for people whose answers are always right; it stops at a certified relative regret.

    ``lotteries`` allows questions about an alternative that comes only with some probability. ``questions`` is one of
    ``tradeoff.menus.QUESTIONS``; with menus, a pair is still asked where it brings the proof forward as much.
    """
    check_settings(problem, target)
    chooser = ProofChooser(target, lotteries, checked_questions(questions))
    return elicit(Certified(problem, Certifier.of(problem), chooser, seed))


@dataclass(frozen=True, eq=False)
class Certified:
    """All answers are trusted; the recommendation is the alternative of least worst-case regret."""

    problem: Problem
    certifier: Certifier
    chooser: ProofChooser
    seed: int

    @property
    def identity(self) -> Hashable:
        """What tells this approach with its settings from others."""
        return "certified", self.chooser, self.seed

    def begin(self) -> State:
        """Return the state before any reply."""
        return first_state(self.problem, self.certifier, Belief.prior(self.certifier.d, EXACT, self.seed))

    def learn(self, state: State) -> State:
        """Return the state brought up to date after its last answer."""
        newest = state.labelled([len(state.answers) - 1])
        state = replace(state, consistent=state.consistent.given(newest))
        if state.consistent.empty:
            return state
        belief = state.belief.given(state.differences, state.kinds, len(state.said[-1][1]))
        certificate, candidates = certify(self.certifier, belief, state.consistent, state.candidates)
        return replace(state, belief=belief, certificate=certificate, candidates=candidates)

    def reason_to_stop(self, state: State) -> Reason | None:
        """Return why to stop here, or None to go on."""
        target, certificate = self.chooser.target, state.certificate
        if state.consistent.empty:
            return Reason.CONTRADICTION
        if certificate.bound <= target:
            return Reason.PROVED
        if certificate.noticeable <= 1 + EQUALITY:
            return Reason.UNNOTICEABLE
        if certificate.resolvable <= target:
            return Reason.INEXACT
        return None

    def choose(self, state: State) -> AnyQuestion | None:
        """Return the question to ask next, or None if no answer could tell anything."""
        return self.chooser.choose(state)

    def recommend(self, state: State, reason: Reason, complete: bool) -> Recommendation:
        """Return what is recommended in a state, with its proof."""
        return recommendation(self.problem, self.certifier, state, state.belief, self.chooser.target, reason, complete)
