"""What every strategy is: a generator that yields steps and receives answers; and what can be done to any of them.

A strategy never prints, reads a key or knows what an MDP is. It sees a ``Problem``. The functions here wrap a running
strategy in another: they answer for the person what need not be asked, and stop when enough was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from tradeoff.model import Answer, Question, Recommendation
from tradeoff.strategies.polytope import Cone, half_spaces

# What a strategy receives: an answer, or None for "skip": nothing was said, and something else should be asked.
Reply: TypeAlias = Answer | None


@dataclass(frozen=True, eq=False)
class Step:
    """A question a strategy wants answered, and what it would say if it had to stop here.

    ``recommend`` is called only when somebody looks. ``left`` is the most questions that can still come, this one
    included, where the strategy can tell. ``knows`` says whether what follows a reply was worked out before, by somebody
    who gave the same answers.
    """

    question: Question
    recommend: Callable[[], Recommendation]
    left: int | None = None
    knows: Callable[[Reply], bool] = lambda reply: False


@dataclass(frozen=True, eq=False)
class ForeignAnswer:
    """A reply to another question than the one that is asked: an earlier version of the strategy has asked it.

    Only strategies that learn from any answer can be sent one.
    """

    question: Question
    reply: Reply


Strategy: TypeAlias = Generator[Step, Reply | ForeignAnswer, Recommendation]

# Two alternatives whose gains differ by less than this are the same to anybody.
IDENTICAL = 1e-12


# A bound over the consistent set this close to zero is zero: an answer given twice must imply itself.
ROUNDING = 1e-12


def without_identical(inner: Strategy) -> Strategy:
    """Yield the inner strategy's steps, except that two identical alternatives are answered "about equal" unasked."""

    def known(question: Question) -> Answer | None:
        return Answer.SAME if np.abs(question.difference).max(initial=0.0) <= IDENTICAL else None

    return (yield from _answering(inner, known, lambda question, answer: None))


def without_implied(inner: Strategy, dimensions: int) -> Strategy:
    """Yield the inner strategy's steps, except those whose answer follows from earlier ones.

    An answer follows if every (weights, precision) consistent with what was said gives it. Once answers contradict
    each other nothing follows from them, and everything is asked.
    """
    # Gains are at most 1, so a precision of |w| makes everything about equal: no person's can be larger.
    cone = Cone.orthant(dimensions, 1.0)

    def known(question: Question) -> Answer | None:
        if cone.empty:
            return None
        difference = question.difference
        low, upper = cone.bounds(np.append(difference, -1.0))
        if low >= -ROUNDING:  # <w, d> >= e for all consistent (w, e)
            return Answer.FIRST
        lower, high = cone.bounds(np.append(difference, 1.0))
        if high <= ROUNDING:
            return Answer.SECOND
        return Answer.SAME if upper <= ROUNDING and lower >= -ROUNDING else None

    def learn(question: Question, answer: Answer) -> None:
        nonlocal cone
        cone = cone.add(half_spaces(question.difference, answer.sign), len(cone.labels))

    return (yield from _answering(inner, known, learn))


def _answering(
    inner: Strategy, known: Callable[[Question], Answer | None], learn: Callable[[Question, Answer], None]
) -> Strategy:
    """Yield the steps whose answer is not known, and tell what was learned from the others."""
    try:
        step = next(inner)
        while True:
            reply: Reply | ForeignAnswer = known(step.question)
            if reply is None:
                reply = yield step
                told = reply if isinstance(reply, ForeignAnswer) else ForeignAnswer(step.question, reply)
                if told.reply is not None:
                    learn(told.question, told.reply)
            step = inner.send(reply)
    except StopIteration as end:
        result: Recommendation = end.value
        return result


def counted(inner: Strategy, max_questions: int | None) -> Strategy:
    """Yield at most ``max_questions`` of the inner strategy's steps, then return the best estimate so far and say so.

    Also puts the number of questions that a person was asked into every recommendation.
    """
    asked = 0

    def now(step: Step) -> Callable[[], Recommendation]:
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
            reply = yield replace(step, recommend=now(step), left=left)
            asked += 1  # skipped ones too: a person who skips for ever comes to an end
            step = inner.send(reply)
    except StopIteration as end:
        final: Recommendation = end.value
        return replace(final, questions=asked)
