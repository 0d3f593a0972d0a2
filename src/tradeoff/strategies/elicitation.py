"""The loop that `certified` and `careful` share: an immutable state per list of replies, kept in the problem's cache."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tradeoff.errors import ArgumentError
from tradeoff.menus import (
    AnyAnswer,
    AnyQuestion,
    Occasion,
    Statement,
    comparisons,
    members,
    plain,
    share_of_each,
    strength_of,
    strengths,
)
from tradeoff.model import Alternative, Answer, Matrix, Reason, Recommendation, Vector
from tradeoff.problem import Problem
from tradeoff.strategies.base import ForeignAnswer, Reply, Step, Strategy, replies_in
from tradeoff.strategies.basis import bases_of
from tradeoff.strategies.belief import Belief
from tradeoff.strategies.cache import Candidates
from tradeoff.strategies.certifier import Certificate, Certifier
from tradeoff.strategies.consistency import ConsistentSet, LabelledAnswer
from tradeoff.strategies.doubt import Rival
from tradeoff.strategies.sampling import consistent

# Questions per objective after which the asking ends, target or not. Chosen by hand: more than twice what any row of
# benchmarks/questions.py needs, so that it only stops people whose answers lead nowhere.
MOST_PER_OBJECTIVE = 6
# Extreme rays up to which they are listed. The problem is solved once for every ray.
RAY_LIMIT = 20_000
# The most objectives that can be asked about. Up to 12 are measured (benchmarks/latency.py).
MOST_OBJECTIVES = 20
FRESH = 24  # particles whose optimum is looked up after every answer: rays alone miss what is best in the middle
# An importance anywhere from below the first to above the second number is called open in a good recommendation.
OPEN_IMPORTANCE = (0.02, 0.3)
# Of the belief: what so many particles agree on is called very likely, and may be wrong for 1 person in 20. It is less than
# that here, because 300 particles are few and nobody is exactly as the belief supposes (benchmarks/people.py).
VERY_LIKELY = 0.98
# A runner-up differs by at least this much of some objective's range: nearly the same plan again would tell nothing.
DIFFERENT = 0.02


class Answered(NamedTuple):
    """An answer, and where it stands among all questions put, skipped ones included."""

    question: Occasion
    answer: AnyAnswer
    ordinal: int


@dataclass(frozen=True, eq=False)
class State:
    """What is known after some replies; the same replies always lead to the same state."""

    answers: tuple[Answered, ...]
    unanswered: frozenset[frozenset[bytes]]  # pairs and menus that were skipped, which are not asked about again
    foreign: frozenset[bytes]  # keys of questions of other versions, which cannot be shown again
    candidates: Candidates
    belief: Belief
    consistent: ConsistentSet
    certificate: Certificate
    enough: float = np.inf  # answers after which no more are asked for, sure or not
    content_in_row: int = 0  # answers in a row after which nearly all of the belief was content
    rival: Rival | None = None  # what else the person may be than somebody who weighs objectives

    @property
    def asked(self) -> int:
        """How many questions were answered, without what was stated unasked."""
        return sum(not isinstance(given.question, Statement) for given in self.answers)

    @cached_property
    def said(self) -> list[tuple[Matrix, NDArray[np.int64]]]:
        """What each answer says: the differences of gains [q, d] that it compares, and how each comparison came out."""
        relevant = self.candidates.relevant
        found = (comparisons(given.question, given.answer) for given in self.answers)
        return [(differences[:, relevant], kinds) for differences, kinds in found]

    @cached_property
    def differences(self) -> Matrix:
        """The differences of gains of all comparisons [q, d], answer by answer."""
        return np.vstack([np.zeros((0, len(self.candidates.relevant))), *(differences for differences, _ in self.said)])

    @cached_property
    def kinds(self) -> NDArray[np.int64]:
        """How each comparison came out, as ``half_spaces`` has it."""
        return np.concatenate([np.zeros(0, dtype=np.int64), *(kinds for _, kinds in self.said)])

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """Which answer each comparison belongs to."""
        return np.repeat(np.arange(len(self.said)), [len(kinds) for _, kinds in self.said])

    @cached_property
    def shares(self) -> Vector:
        """For how much each comparison counts in the belief."""
        counted = zip(self.answers, self.said, strict=True)
        found = (np.full(len(kinds), share_of_each(given.question, len(kinds))) for given, (_, kinds) in counted)
        return np.concatenate([np.ones(0), *found])

    @cached_property
    def strengths(self) -> NDArray[np.int64]:
        """By how much one side of each comparison was said to be better, as ``menus.strengths`` has it."""
        found = (strengths(given.answer, len(kinds)) for given, (_, kinds) in zip(self.answers, self.said, strict=True))
        return np.concatenate([np.zeros(0, dtype=np.int64), *found])

    def chance_wrong(self, belief: Belief) -> Vector:
        """Return for each answer how likely it is not what the person means: that of its likeliest wrong comparison."""
        wrong = np.zeros(len(self.answers))
        np.maximum.at(wrong, self.owners, belief.chance_wrong(self.differences, self.kinds))
        return wrong

    def labelled(self, which: range | list[int]) -> list[LabelledAnswer]:
        """Return some answers, each with its index for a label."""
        return [(i, *self.said[i]) for i in which]


class Approach(Protocol):
    """What makes one strategy differ from another: how it learns, when it stops, what it asks and what it says."""

    @property
    def certifier(self) -> Certifier:
        """What solves the problem and certifies recommendations."""

    @property
    def identity(self) -> Hashable:
        """What tells this approach with its settings from others."""

    def begin(self) -> State:
        """Return the state before any reply."""

    def learn(self, state: State) -> State:
        """Return the state with belief, consistent set and certificate brought up to date after its last answer."""

    def reason_to_stop(self, state: State) -> Reason | None:
        """Return why to stop here, or None to go on."""

    def choose(self, state: State) -> AnyQuestion | None:
        """Return the question to ask next, or None if no answer could tell anything."""

    def recommend(self, state: State, reason: Reason, complete: bool) -> Recommendation:
        """Return what is recommended in a state."""


@dataclass(frozen=True, eq=False)
class Turn:
    """A state under its key, and what comes next there."""

    key: bytes
    state: State
    next: AnyQuestion | Recommendation


def check_settings(problem: Problem, target: float) -> None:
    """Raise an ArgumentError if the target is not a relative regret, or the problem has too many objectives."""
    if not 0 < target < 1:
        raise ArgumentError(f"the target is {target!r}; it is a relative regret between 0 and 1, such as 0.01")
    count = len(bases_of(problem).relevant)
    if count > MOST_OBJECTIVES:
        raise ArgumentError(
            f"{count} objectives can be changed by what is chosen; this strategy asks about at most {MOST_OBJECTIVES}: "
            "combine some of them, or leave out those that matter least"
        )


def elicit(approach: Approach) -> Strategy:
    """Ask until the approach has a reason to stop, or nothing more can be learned."""
    cache = approach.certifier.cache
    turn = _first_turn(approach)
    left, ordinal = MOST_PER_OBJECTIVE * approach.certifier.d, 0
    while left > 0:
        if isinstance(turn.next, Recommendation):
            return turn.next
        here, question = turn, turn.next

        def so_far(here: Turn = here) -> Recommendation:
            key = here.key + b"so far"
            found: Recommendation | None = cache.states.get(key)
            if found is None:
                found = approach.recommend(here.state, Reason.EARLY, complete=False)
                cache.states.keep(key, found)
            return found

        def knows(reply: Reply, here: Turn = here, question: AnyQuestion = question) -> bool:
            given = ForeignAnswer(question, reply, own=True)
            return _key_after(here.key, here.state, given) in cache.states

        reply = yield Step(question, so_far, left, knows)
        given = replies_in(question, reply)
        turn = _turn_after(approach, turn, given, ordinal)
        ordinal += len(given)
        left -= sum(not isinstance(one.question, Statement) for one in given)
    if isinstance(turn.next, Recommendation):
        return replace(turn.next, complete=False)
    return approach.recommend(turn.state, Reason.TOO_MANY, complete=False)


def _first_turn(approach: Approach) -> Turn:
    key = hashlib.sha256(repr(approach.identity).encode()).digest()
    found: Turn | None = approach.certifier.cache.states.get(key)
    return found or _decided(approach, key, approach.begin())


def _turn_after(approach: Approach, turn: Turn, replies: Sequence[ForeignAnswer], ordinal: int) -> Turn:
    """Return what follows replies, the first of which has the number after ``ordinal``; from the cache if it is there."""
    key, state = turn.key, turn.state
    for number, given in enumerate(replies, start=ordinal + 1):
        key = _key_after(key, state, given)
        found: Turn | None = approach.certifier.cache.states.get(key)
        state = _state_after(approach, state, given, number) if found is None else found.state
    return _decided(approach, key, state) if found is None else found


def _state_after(approach: Approach, state: State, given: ForeignAnswer, ordinal: int) -> State:
    """Return the state after a reply."""
    if not given.own:
        state = replace(state, foreign=state.foreign | {given.question.key})
    if given.reply is None:
        return replace(state, unanswered=state.unanswered | {members(given.question)})
    return approach.learn(replace(state, answers=(*state.answers, Answered(given.question, given.reply, ordinal))))


def _decided(approach: Approach, key: bytes, state: State) -> Turn:
    """Return the state with the next question, or with the recommendation if nothing is left to ask; and keep it."""
    reason = approach.reason_to_stop(state)
    question = approach.choose(state) if reason is None else None
    if question is None:
        reason = reason or Reason.NOTHING_TO_ASK
        turn = Turn(key, state, approach.recommend(state, reason, complete=True))
    else:
        turn = Turn(key, state, question)
    approach.certifier.cache.states.keep(key, turn)
    return turn


def _key_after(key: bytes, state: State, given: ForeignAnswer) -> bytes:
    """Return what tells the state after this reply, to the state of this key, from all others."""
    question, reply = given.question, plain(given.reply)
    said = b"skip" if reply is None else (reply.value if isinstance(reply, Answer) else repr(reply.tiers)).encode()
    said += (strength_of(given.reply) or "").encode()
    foreign = not given.own or question.key in state.foreign
    return hashlib.sha256(key + question.key + said + (b"/foreign" if foreign else b"")).digest()


# --- what both approaches do ------------------------------------------------------------------------------------------

Pick = Callable[[Belief, Candidates], int]


def first_state(
    problem: Problem, certifier: Certifier, belief: Belief, pick: Pick | None = None, look_up: int = FRESH
) -> State:
    """Return the state before any reply: everybody is possible."""
    spanner = bases_of(problem).spanner().alternatives
    candidates = Candidates.none(certifier.objectives, certifier.relevant).with_found(spanner)
    everything = ConsistentSet.everything(certifier.d, RAY_LIMIT)
    candidates = certifier.look_up(candidates, belief, look_up)
    certificate, candidates = certify(certifier, belief, everything, candidates, pick)
    return State((), frozenset(), frozenset(), candidates, belief, everything, certificate)


def certify(
    certifier: Certifier, belief: Belief, consistent: ConsistentSet, candidates: Candidates, pick: Pick | None = None
) -> tuple[Certificate, Candidates]:
    """Return the certificate, and the candidates with the optima of all rays and of some particles."""
    candidates = certifier.look_up(candidates, belief, FRESH)
    chosen = None if pick is None else partial(pick, belief)
    return certifier.certify(consistent.rays, candidates, chosen)


def recommendation(
    problem: Problem,
    certifier: Certifier,
    state: State,
    belief: Belief,
    target: float,
    reason: Reason,
    complete: bool,
    sure: float = VERY_LIKELY,
) -> Recommendation:
    """Return what is recommended in a state, and what is known of it; what is likely is said from ``belief``.

    What ``sure`` of the belief agrees on is called very likely.
    """
    certificate, candidates, empty = state.certificate, state.candidates, state.consistent.empty
    mine = belief.regrets(candidates, certifier.slack)[:, certificate.number]
    likely = float(mine.mean())
    importance = np.zeros((certifier.objectives, 2))
    least, most = certificate.rays.min(axis=0), certificate.rays.max(axis=0)
    importance[certifier.relevant] = np.stack([least, most], axis=1)
    little, much = OPEN_IMPORTANCE
    unknown = (importance[:, 0] < little) & (importance[:, 1] > much) & (certificate.bound <= target)
    unknown[np.setdiff1d(np.arange(certifier.objectives), certifier.relevant)] = True
    return Recommendation(
        candidates.alternatives[certificate.number],
        certifier.directions(_estimate(state)[None, :])[0],
        len(state.answers),
        reason,
        complete=complete and not empty,
        regret_bound=None if empty else certificate.bound,
        likely_regret=likely,
        likely_worst=max(float(np.quantile(mine, sure)), likely),  # a few large regrets can make the mean larger
        importance=importance,
        unidentified=tuple(o.name for o, not_known in zip(problem.objectives, unknown, strict=True) if not_known),
        runner_up=_runner_up(state),
        target=target,
    )


def _estimate(state: State) -> Vector:
    """Return the weights of a person who fits the trusted answers: so they lie in the band that is stated."""
    trusted = np.isin(state.owners, sorted(state.consistent.trusted))
    belief = state.belief
    fits = consistent(belief.weights, belief.precision, state.differences[trusted], state.kinds[trusted]).all(axis=1)
    result: Vector = (belief.weights[fits] if fits.any() else state.certificate.rays).mean(axis=0)
    return result


def _runner_up(state: State) -> Alternative | None:
    """Return the candidate of least expected regret that is another plan than the recommended one, not nearly the same."""
    gains, mine = state.candidates.gains, state.certificate.number
    others = np.flatnonzero(np.abs(gains - gains[mine]).max(axis=1) >= DIFFERENT)
    if not len(others):
        return None
    mean = state.belief.regrets(state.candidates)[:, others].mean(axis=0)
    return state.candidates.alternatives[int(others[mean.argmin()])]
