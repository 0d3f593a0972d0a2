"""Replay: run a strategy over answers, up to the first question without one."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile

import numpy as np

from tradeoff.evidence import Answer
from tradeoff.model import Question, Recommendation
from tradeoff.strategies.step import Received, Step, Strategy

DIGITS = 9  # of gains that every machine agrees on


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
