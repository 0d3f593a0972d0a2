"""A session: one participant's interview, with the attention checks of a study in between.

Like an interview, a session is its log; the checks and the end are events in the same log. Every question shown has a *turn*,
a number unique within the session. An answer names its turn, so that a request sent twice, or from an old page, can be told
from a new one.

Recording and computing are separate. ``view`` runs the strategy; everything else only reads and adds to the log. So a server
can compute views in other processes, and share them between participants with the same answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tradeoff.errors import ArgumentError, TradeoffError
from tradeoff.evidence import Answer, check_reply
from tradeoff.interview import Clock, Interview, wall_clock
from tradeoff.log import Asked, CheckKind, Ended, Event, LogState, ShownQuestion, Stated, Undone, answer_event
from tradeoff.log import display_order as order_of
from tradeoff.model import EQUAL, FIRST, NONE, SKIP, UNKNOWN, Question, Recommendation, Reply
from tradeoff.problem import Problem
from tradeoff.problems.statements import parse_statement
from tradeoff.studies.checks import dominated_pair

if TYPE_CHECKING:
    from tradeoff.sources import AnyProblem

DOMINATED_AFTER = 3  # answers
MOST_STATEMENTS = 30  # the time for a question grows with their square


class TurnError(TradeoffError):
    """The answer is not to the current question: that question is already answered, or was undone."""


@dataclass(frozen=True, eq=False)
class View:
    """What follows from a participant's answers: the next question or attention check, and the recommendation.

    It can be pickled, and is the same for all participants with the same answers.
    """

    question: Question | None  # None when nothing is left to ask
    recommendation: Recommendation
    at_most: int | None  # the most questions that can still come, this one included; None if the strategy cannot tell
    check: CheckKind | None = None
    expected: Reply | None = None  # the reply that the check expects
    repeats: int | None = None  # the number of the answer whose pair the check repeats


@dataclass(frozen=True, eq=False, kw_only=True)
class Prompt(ShownQuestion):
    """A question put to a participant: its turn, and which attention check it is, if it is one."""

    turn: int
    check: CheckKind | None = None


class Session:
    """One participant's interview in a study."""

    def __init__(self, interview: Interview, *, checks: bool) -> None:
        """Use ``begin`` for a new session and ``resume`` for one in a store."""
        self.interview, self.checks = interview, checks

    @classmethod
    def begin(cls, problem: Problem, *, checks: bool, clock: Clock = wall_clock, **settings: Any) -> Session:
        """Return a new session, before its first question; ``settings`` are those of an ``Interview``."""
        return cls(Interview(problem, clock=clock, **settings), checks=checks)

    @classmethod
    def resume(
        cls, problem: Problem, events: Sequence[Mapping[str, Any]], *, checks: bool, clock: Clock = wall_clock
    ) -> Session:
        """Return the session that wrote these events; they are replayed when needed."""
        return cls(Interview.loaded(problem, events, clock=clock), checks=checks)

    def catch_up(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Add events that another process has appended to the log."""
        self.interview.extend(events)

    # --- asking -------------------------------------------------------------------------------------------------------

    def view(self) -> View:
        """Run the strategy, and return what it leads to."""
        return _Checks(self).view() if self.checks else _own_view(self.interview)

    def ask(self, view: View | None = None) -> Prompt | None:
        """Return the question to be answered now and log that it was shown; None when nothing is left to ask.

        A ``view`` that was computed before from the same answers saves running the strategy.
        """
        view = self.view() if view is None else view
        prompt = self.next(view)
        if prompt is None:
            self._end(view.recommendation)
            return None
        question, number = prompt.question, None if prompt.check else self.state.answered + 1
        shown = self.state.shown
        repeated = shown is not None and shown.check == prompt.check and np.array_equal(shown.options, question.values)
        if not repeated:
            named = view.expected
            expected = None if named is None else {"word": named.word} if named.word else {"best": named.best}
            self.interview.record(
                Asked(
                    number=number, asks=question.asks, options=tuple(map(tuple, question.values.tolist())),
                    order=prompt.order, check=prompt.check, expected=expected, at=self.interview.now(),
                )
            )  # fmt: skip
        return prompt

    def next(self, view: View | None = None) -> Prompt | None:
        """Return the question to be answered now without logging anything."""
        view = self.view() if view is None else view
        if view.question is None:
            return None
        if view.check is None:
            shown = self.interview.shown(view.question)
            return Prompt(shown.question, shown.order, shown.again, turn=self.turn)
        if view.repeats is not None:  # with the sides swapped
            order = self.interview.display_orders()[view.repeats][::-1]
        else:
            order = order_of(self.interview.order_seed, view.question)
        return Prompt(view.question, order, turn=self.turn, check=view.check)

    # --- answering ----------------------------------------------------------------------------------------------------

    def tell(self, turn: int, placed: Reply) -> None:
        """Record the reply to this turn's question, by the places where options were shown.

        Raise a TurnError if the turn is over. The strategy runs only if no question has been shown in this turn.
        """
        shown = self.shown(turn)
        if placed == NONE:
            raise ArgumentError("'none of these' is not asked here; skip the question instead")
        reply = shown.by_position(check_reply(placed, len(shown.options), shown.asks))
        number = None if shown.check is not None else shown.number
        self.interview.record(answer_event(reply, self.interview.now(), number=number, check=shown.check))

    def know(self, text: str, *, turn: int | None = None) -> None:
        """Record a statement, which is undone like an answer; raise a TurnError if the turn is over.

        A statement that stands already is not recorded again. More than ``MOST_STATEMENTS`` are refused.
        """
        known = parse_statement(self.interview.problem, text)
        new = Stated.of(known, number=self.state.answered + 1, at=self.interview.now())
        standing = [given.shown for given in self.state.standing if isinstance(given.shown, Stated)]
        if any((one.differences, one.outcomes) == (new.differences, new.outcomes) for one in standing):
            return
        self._check_turn(turn)
        if len(standing) >= MOST_STATEMENTS:
            raise ArgumentError(f"an interview takes at most {MOST_STATEMENTS} statements; undo one of them first")
        self.interview.know(known)

    def shown(self, turn: int) -> Asked:
        """Return what was shown in a turn; raise a TurnError if the turn is over or was not asked."""
        if turn != self.turn:
            raise TurnError(
                "this question has already been answered" if turn < self.turn else "this question was not asked"
            )
        # A question that waits from an earlier turn may not be the next one: an attention check can come before it.
        if self.state.shown is None and self.ask() is None:
            raise TurnError("this question was not asked")
        shown = self.state.shown
        assert shown is not None
        return shown

    def undo(self, number: int | None = None, *, turn: int | None = None) -> None:
        """Undo the last answer, or the one with this number; raise a TurnError if the turn is over."""
        self._check_turn(turn)
        standing = self.state.standing
        if number is None and not standing:
            raise ArgumentError("there is no answer to undo")
        check = standing[-1].check if number is None else None
        if check is not None:
            self.interview.record(Undone(check=check, at=self.interview.now()))
        else:
            self.interview.undo(standing[-1].number if number is None else number)

    def _check_turn(self, turn: int | None) -> None:
        if turn is not None and turn != self.turn:
            raise TurnError("something was answered, stated or undone since this question was shown")

    def _end(self, final: Recommendation) -> None:
        """Log the end and the recommendation, once."""
        if self.state.ended is None:
            self.interview.record(
                Ended(
                    reason=str(final.reason),
                    complete=final.complete,
                    value=tuple(final.option.value.tolist()),
                    weights=tuple(final.weights.tolist()),
                    regret_bound=final.regret_bound,
                    likely_regret=final.likely_regret,
                    at=self.interview.now(),
                )
            )

    # --- looking ------------------------------------------------------------------------------------------------------

    @property
    def problem(self) -> AnyProblem:
        """What the interview is about."""
        return cast("AnyProblem", self.interview.problem)

    @property
    def events(self) -> list[Event]:
        """The log."""
        return list(self.interview.log)

    @property
    def state(self) -> LogState:
        """The state of the log."""
        return self.interview.state

    @property
    def turn(self) -> int:
        """The turn of the current question, or of the one to come."""
        return self.state.turn

    @property
    def begun(self) -> bool:
        """Whether anything was asked or stated."""
        return self.state.length > 1

    @property
    def answered(self) -> int:
        """How many answers can be undone."""
        return len(self.state.standing)


def _own_view(interview: Interview) -> View:
    """Return the view of an interview without checks."""
    # What ranks all options takes much memory, and is computed again where it is needed.
    recommendation = replace(interview.recommendation, criterion=None)
    return View(interview.position.question, recommendation, interview.at_most)


class _Checks:
    """Puts attention checks between the questions of an interview: one after a few answers, one at the end."""

    def __init__(self, session: Session) -> None:
        self.interview = session.interview
        self.done = {given.check for given in session.state.standing if given.check is not None}

    def view(self) -> View:
        """Return the next question or check."""
        plain = _own_view(self.interview)
        at_most = None if plain.at_most is None else plain.at_most + 2 - len(self.done)
        check = self._due(finished=plain.question is None)
        if check is None:
            return replace(plain, at_most=0 if plain.question is None else at_most)
        view = replace(plain, check=check, at_most=at_most)
        if check == "dominated":
            return replace(view, question=dominated_pair(self.interview.problem), expected=FIRST)
        answer, ends = self._repeated
        if ends is not None:
            return replace(view, question=ends, expected=FIRST)
        return replace(view, question=answer.asked, expected=answer.reply, repeats=answer.number)

    def _due(self, *, finished: bool) -> CheckKind | None:
        answered = sum(answer.statement is None for answer in self.interview.answers)
        if not answered:
            return None
        if "dominated" not in self.done and (answered >= DOMINATED_AFTER or finished):
            return "dominated"
        if "repeat" in self.done or not finished or answered < 2 or not self._repeatable:
            return None
        return "repeat"

    @cached_property
    def _repeatable(self) -> list[Answer]:
        """The answers that can be checked: pairs that can be shown again, and larger questions whose ends were named."""
        orders = self.interview.display_orders()
        return [
            answer
            for answer in self.interview.answers
            if answer.asked is not None
            and answer.number in orders
            and UNKNOWN not in (option.plan for option in answer.asked.options)
            and (answer.asked.is_pair or _ends(answer) is not None)
        ]

    @cached_property
    def _repeated(self) -> tuple[Answer, Question | None]:
        """The answer that is checked: the first that preferred something; of a larger question, its best and its worst.

        Between those a participant has noticed a difference.
        """
        given = [answer for answer in self._repeatable if answer.reply != SKIP] or self._repeatable
        answer = next((answer for answer in given if answer.reply != EQUAL), given[0])
        return answer, _ends(answer)


def _ends(answer: Answer) -> Question | None:
    """Return the best and the worst option of a larger question as a pair, if both were named."""
    question, reply = answer.asked, answer.reply
    if question is None or question.is_pair or reply.best is None or reply.worst is None:
        return None
    return Question((question.options[reply.best], question.options[reply.worst]))
