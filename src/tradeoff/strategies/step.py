"""The protocol of strategies, and wrappers around any of them.

A strategy is a generator that yields steps and receives replies::

    reply = yield Step(Question((a, b)), recommend)
    ...
    return recommendation

It never prints, reads a key or knows what an MDP is. It sees a ``Problem``. The wrappers answer for the respondent what need
not be asked, and stop when the budget is used up.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from tradeoff.evidence import Answer, half_spaces
from tradeoff.model import EQUAL, FIRST, SECOND, SKIP, Question, Recommendation, Reply
from tradeoff.strategies.cone import Cone


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
