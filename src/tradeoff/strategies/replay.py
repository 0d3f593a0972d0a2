"""The protocol of strategies, wrappers around any of them, and replay: run a strategy over the answers of a log.

A strategy is a generator that yields steps and receives replies::

    reply = yield Step(Question((a, b)), recommend)
    ...
    return recommendation

It never prints, reads a key or knows what an MDP is. It sees a ``Problem``. The wrappers answer questions that need not be
asked, and stop when the budget is used up.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from typing import TypeAlias

import numpy as np

from tradeoff.evidence import Answer, half_spaces
from tradeoff.model import EQUAL, FIRST, SECOND, SKIP, Question, Recommendation, Reply
from tradeoff.strategies.cone import Cone

DIGITS = 9  # of gains that every machine agrees on


@dataclass(frozen=True, eq=False)
class Step:
    """A question a strategy wants answered, and what it would recommend if it had to stop here.

    ``recommend`` is called only when the recommendation is shown. ``left`` is the most questions that can still come, this one
    included, where the strategy can tell. ``in_cache`` says whether what follows a reply is known, because the same answers
    were given before.
    """

    question: Question
    recommend: Callable[[], Recommendation]
    left: int | None = None
    in_cache: Callable[[Reply], bool] = lambda reply: False


# What a strategy receives: the reply to its question; or, if its ``StrategySpec`` accepts observations, answers to take in all
# at once instead, with no decision in between. The latter are not ``observed`` if they answer the strategy's own questions.
Received: TypeAlias = Reply | tuple[Answer, ...]
Strategy: TypeAlias = Generator[Step, Received, Recommendation]

IDENTICAL = 1e-12  # two options whose gains differ by less than this are the same
ROUNDING = 1e-12  # a bound over the consistent set this close to zero is zero: an answer given twice must imply itself


def answers_in(question: Question, received: Received) -> tuple[Answer, ...]:
    """Return the answers in what was received when this question was asked."""
    return (Answer(question, received),) if isinstance(received, Reply) else received


def without_identical(inner: Strategy) -> Strategy:
    """Yield the inner strategy's steps, except that two identical options are answered "about equal" unasked."""

    def known(question: Question) -> Reply | None:
        same = question.is_pair and np.abs(question.difference).max(initial=0.0) <= IDENTICAL
        return EQUAL if same else None

    return (yield from _answering(inner, known, lambda answer: None))


def without_implied(inner: Strategy, dimensions: int) -> Strategy:
    """Yield the inner strategy's steps, except those whose answer follows from earlier ones.

    An answer follows if every (weights, precision) consistent with the answers so far gives it. Once answers contradict each
    other nothing follows from them, and everything is asked.
    """
    # Gains are at most 1, so a precision of |w| makes everything about equal: no respondent's can be larger.
    cone = Cone.orthant(dimensions, 1.0)

    def known(question: Question) -> Reply | None:
        if cone.empty or not question.is_pair:  # of a menu, seldom the whole reply follows
            return None
        difference = question.difference
        low, upper = cone.bounds(np.append(difference, -1.0))
        if low >= -ROUNDING:  # <w, d> >= e for all consistent (w, e)
            return FIRST
        lower, high = cone.bounds(np.append(difference, 1.0))
        if high <= ROUNDING:
            return SECOND
        return EQUAL if upper <= ROUNDING and lower >= -ROUNDING else None

    def learn(answer: Answer) -> None:
        nonlocal cone
        cone = cone.add(half_spaces(*answer.certain_terms()), len(cone.labels))

    return (yield from _answering(inner, known, learn))


def _answering(inner: Strategy, known: Callable[[Question], Reply | None], learn: Callable[[Answer], None]) -> Strategy:
    """Yield the steps whose answer is not known, and pass what is answered to ``learn``."""
    try:
        step = next(inner)
        while True:
            received: Received | None = known(step.question)
            if received is None:
                received = yield step
                for answer in answers_in(step.question, received):
                    if answer.reply != SKIP:
                        learn(answer)
            step = inner.send(received)
    except StopIteration as end:
        result: Recommendation = end.value
        return result


def within_budget(inner: Strategy, max_questions: int | None) -> Strategy:
    """Yield at most ``max_questions`` of the inner strategy's steps, then return the best estimate so far and say so.

    Every recommendation then states the number of questions that the respondent was asked.
    """
    asked = 0

    def counted(step: Step) -> Callable[[], Recommendation]:
        count = asked
        return lambda: replace(step.recommend(), questions=count)

    try:
        step = next(inner)
        while True:
            if max_questions is not None and asked >= max_questions:
                return replace(
                    step.recommend(),
                    questions=asked,
                    complete=False,
                    reason=f"the budget of {max_questions} questions is used up; this is the best estimate so far",
                )
            left = step.left if max_questions is None else min(step.left or max_questions, max_questions - asked)
            received = yield replace(step, recommend=counted(step), left=left)
            # Skips count too, so that an interview in which everything is skipped still ends. What was not asked does not.
            asked += sum(answer.was_asked for answer in answers_in(step.question, received))
            step = inner.send(received)
    except StopIteration as end:
        final: Recommendation = end.value
        return replace(final, questions=asked)


# --- replay -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Position:
    """Where a strategy stands after some answers: its next step, or its final recommendation."""

    step: Step | None  # None at the end
    final: Recommendation | None
    used: tuple[
        Answer, ...
    ]  # in the order in which the strategy used them; own answers with the strategy's own questions

    @property
    def question(self) -> Question | None:
        """The question to ask now; None at the end."""
        return None if self.step is None else self.step.question

    @cached_property
    def recommendation(self) -> Recommendation:
        """The final recommendation, or the best estimate so far. Answers are named by their numbers in the log."""
        made = self.final if self.step is None else self.step.recommend()
        assert made is not None

        def in_log(ordinals: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(sorted(self.used[ordinal - 1].number for ordinal in ordinals if ordinal <= len(self.used)))

        return replace(made, doubtful=in_log(made.doubtful), unexplained=in_log(made.unexplained))


def replay(begin: Callable[[], Strategy], answers: Sequence[Answer], *, observations: bool) -> Position:
    """Return where a new run of a strategy stands after these answers.

    A strategy that accepts ``observations`` takes all answers in their order: each as the reply to its own question if it asks
    just that, and as an observed one otherwise. Any other strategy is given an answer when it asks the question.
    """
    run = _Run(begin)
    if observations:
        run.take_in_order(answers)
    else:
        run.take_when_asked(answers)
    return Position(run.step, run.final, tuple(run.used))


class _Run:
    """One run of a strategy."""

    def __init__(self, begin: Callable[[], Strategy]) -> None:
        self._begin, self.used = begin, list[Answer]()
        self._start()

    def _start(self) -> None:
        self.step: Step | None = None
        self.final: Recommendation | None = None
        self._strategy = self._begin()
        try:
            self.step = next(self._strategy)
        except StopIteration as end:
            self.final = end.value

    def _send(self, received: Received) -> None:
        try:
            self.step = self._strategy.send(received)
        except StopIteration as end:
            self.step, self.final = None, end.value

    def take_when_asked(self, answers: Sequence[Answer]) -> None:
        """Reply to every question whose answer is known, in whatever order they are asked."""
        waiting: dict[bytes, deque[Answer]] = defaultdict(deque)
        for answer in answers:
            if answer.asked is not None:
                waiting[_rounded(answer.asked)].append(answer)
        while self.step is not None and (known := waiting.get(_rounded(self.step.question))):
            answer = known.popleft()
            self.used.append(replace(answer, question=self.step.question))
            self._send(answer.reply)

    def take_in_order(self, answers: Sequence[Answer]) -> None:
        """Take in all answers in their order; those that arrive together count together."""
        rest = list(answers)
        while rest:
            if self.step is None:
                self._start_again(rest)
                return
            if rest[0].observed:
                together = list(takewhile(lambda answer: answer.observed, rest))
                self.used += together
                self._send(tuple(together))
                del rest[: len(together)]
                continue
            answer, question = rest.pop(0), self.step.question
            if answer.asked is not None and _rounded(answer.asked) == _rounded(question):
                self.used.append(replace(answer, question=question))
                self._send(answer.reply)
            else:
                self.used.append(replace(answer, observed=True))
                self._send((self.used[-1],))

    def _start_again(self, rest: Sequence[Answer]) -> None:
        """Take in everything at once: the strategy had ended before these answers came."""
        self._start()
        if self.step is not None:
            self.used += [replace(answer, observed=True) for answer in rest]
            self._send(tuple(self.used))


def _rounded(question: Question) -> bytes:
    """Return what identifies a question on every machine."""
    return question.asks.encode() + (np.round(question.values, DIGITS) + 0.0).tobytes()


def same_question(one: Question, other: Question) -> bool:
    """Return whether two questions are the same, but for the last digits of another machine."""
    if one.asks != other.asks or one.values.shape != other.values.shape:
        return False
    return bool(np.allclose(one.values, other.values, rtol=0, atol=10.0**-DIGITS))
