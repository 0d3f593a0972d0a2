"""What every strategy is: a generator that yields steps and receives replies; and wrappers around any of them.

A strategy never prints, reads a key or knows what an MDP is. It sees a ``Problem``. The wrappers answer for the person
what need not be asked, and stop when the budget is used up.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from tradeoff.menus import AnyAnswer, AnyQuestion, Occasion, Statement, comparisons
from tradeoff.model import Answer, Question, Recommendation
from tradeoff.strategies.polytope import Cone, half_spaces

# What a strategy receives: an answer, or None for "skip": nothing was said, and something else should be asked.
Reply: TypeAlias = AnyAnswer | None


@dataclass(frozen=True, eq=False)
class Step:
    """A question a strategy wants answered, and what it would say if it had to stop here.

    ``recommend`` is called only when the recommendation is shown. ``left`` is the most questions that can still come, this
    one included, where the strategy can tell. ``knows`` says whether what follows a reply is in the cache, because the
    same answers were given before.
    """

    question: AnyQuestion
    recommend: Callable[[], Recommendation]
    left: int | None = None
    knows: Callable[[Reply], bool] = lambda reply: False


@dataclass(frozen=True, eq=False)
class ForeignAnswer:
    """A reply to a question that another version of the strategy asked, or a statement, instead of a reply to the one asked.

    Only strategies that can use any answer are sent one (``StrategySpec.accepts_foreign_answers``). ``before`` are replies to
    take in first, with no decision in between, so that what is stated after the end is used as well. A reply among them is
    ``own`` if it answers a question that this strategy asked.
    """

    question: Occasion
    reply: Reply
    before: tuple[ForeignAnswer, ...] = ()
    own: bool = False


def replies_in(question: AnyQuestion, reply: Reply | ForeignAnswer) -> tuple[ForeignAnswer, ...]:
    """Return each reply of what was sent when this question was asked, in order."""
    if not isinstance(reply, ForeignAnswer):
        return (ForeignAnswer(question, reply, own=True),)
    return *reply.before, reply


Strategy: TypeAlias = Generator[Step, Reply | ForeignAnswer, Recommendation]

# Two alternatives whose gains differ by less than this are identical.
IDENTICAL = 1e-12


# A bound over the consistent set this close to zero is zero: an answer given twice must imply itself.
ROUNDING = 1e-12


def without_identical(inner: Strategy) -> Strategy:
    """Yield the inner strategy's steps, except that two identical alternatives are answered "about equal" unasked."""

    def known(question: AnyQuestion) -> Answer | None:
        if not isinstance(question, Question):
            return None
        return Answer.SAME if np.abs(question.difference).max(initial=0.0) <= IDENTICAL else None

    return (yield from _answering(inner, known, lambda question, answer: None))


def without_implied(inner: Strategy, dimensions: int) -> Strategy:
    """Yield the inner strategy's steps, except those whose answer follows from earlier ones.

    An answer follows if every (weights, precision) consistent with what was said gives it. Once answers contradict
    each other nothing follows from them, and everything is asked.
    """
    # Gains are at most 1, so a precision of |w| makes everything about equal: no person's can be larger.
    cone = Cone.orthant(dimensions, 1.0)

    def known(question: AnyQuestion) -> Answer | None:
        if cone.empty or not isinstance(question, Question):  # what is known of a menu is seldom all of it
            return None
        difference = question.difference
        low, upper = cone.bounds(np.append(difference, -1.0))
        if low >= -ROUNDING:  # <w, d> >= e for all consistent (w, e)
            return Answer.FIRST
        lower, high = cone.bounds(np.append(difference, 1.0))
        if high <= ROUNDING:
            return Answer.SECOND
        return Answer.SAME if upper <= ROUNDING and lower >= -ROUNDING else None

    def learn(question: Occasion, answer: AnyAnswer) -> None:
        nonlocal cone
        cone = cone.add(half_spaces(*comparisons(question, answer)), len(cone.labels))

    return (yield from _answering(inner, known, learn))


def _answering(
    inner: Strategy,
    known: Callable[[AnyQuestion], Answer | None],
    learn: Callable[[Occasion, AnyAnswer], None],
) -> Strategy:
    """Yield the steps whose answer is not known, and pass what is answered to ``learn``."""
    try:
        step = next(inner)
        while True:
            reply: Reply | ForeignAnswer = known(step.question)
            if reply is None:
                reply = yield step
                for given in replies_in(step.question, reply):
                    if given.reply is not None:
                        learn(given.question, given.reply)
            step = inner.send(reply)
    except StopIteration as end:
        result: Recommendation = end.value
        return result


def counted(inner: Strategy, max_questions: int | None) -> Strategy:
    """Yield at most ``max_questions`` of the inner strategy's steps, then return the best estimate so far and say so.

    Every recommendation then states the number of questions that the person was asked.
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
            # Skips count too, so that an interview in which everything is skipped still ends. Only what was asked counts.
            asked += sum(not isinstance(one.question, Statement) for one in replies_in(step.question, reply))
            step = inner.send(reply)
    except StopIteration as end:
        final: Recommendation = end.value
        return replace(final, questions=asked)
