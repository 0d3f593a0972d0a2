"""A session: one person's interview, with the attention checks of a study in between.

Like an interview, a session is its log; the checks and the end are events in the same log. Every question shown has a
*turn*, a number unique within the session. An answer names its turn, so that a request sent twice, or from an old page,
can be told from a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tradeoff.errors import ArgumentError, TradeoffError
from tradeoff.interview import Clock, Interview, Record, wall_clock
from tradeoff.log import (
    Asked,
    CheckAnswered,
    CheckKind,
    CheckRetracted,
    CheckShown,
    Ended,
    Event,
    LogState,
    Reply,
    Shown,
    Side,
    side_of,
)
from tradeoff.model import Answer, Question, Recommendation
from tradeoff.problem import Problem
from tradeoff.studies.checks import dominated_pair

DOMINATED_AFTER = 3  # answers


class TurnError(TradeoffError):
    """The answer is not to the current question: that question is already answered, or was taken back."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Prompt(Shown):
    """A question put to a person: its turn, and which attention check it is, if it is one."""

    turn: int
    check: CheckKind | None = None


def nowhere() -> None:
    """Keep nothing."""


class Session:
    """One person's interview in a study."""

    def __init__(self, interview: Interview, *, checks: bool) -> None:
        """Use ``begin`` for a new session and ``resume`` for one in a store."""
        self.interview, self.checks = interview, checks
        self.keep: Callable[[], None] = nowhere  # called after events are recorded, before they are acknowledged
        self._pair: Question | None = None

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

    def ask(self) -> Prompt | None:
        """Return the current question and log that it was shown; None if nothing is left to ask."""
        prompt = self.next()
        if prompt is None:
            self._end()
        elif prompt.check is None:
            self.interview.ask()
        elif not isinstance(self.state.shown, CheckShown):
            question = prompt.question
            expected = Answer.FIRST if prompt.check == "dominated" else self._repeated()[2]
            self.interview.record(
                CheckShown(
                    check=prompt.check,
                    first=tuple(question.first.value.tolist()),
                    second=tuple(question.second.value.tolist()),
                    left=prompt.left,
                    expected=expected,
                    at=self.interview.now(),
                )
            )
        self.keep()
        return prompt

    def next(self) -> Prompt | None:
        """Return the current question without logging anything."""
        check = self._due()
        if check is not None:
            return Prompt(self._check_question(check), self._check_side(check), turn=self.turn, check=check)
        found = self.interview.next()
        return None if found is None else Prompt(found.question, found.left, found.again, turn=self.turn)

    def _due(self) -> CheckKind | None:
        """Return the check that is due now, if any."""
        if not self.checks:
            return None
        answered, done = len(self.interview.answers), {one.check for one in self.state.standing}
        if not answered:
            return None
        if "dominated" not in done and (answered >= DOMINATED_AFTER or self.interview.finished):
            return "dominated"
        if "repeat" in done or not self.interview.finished or answered < 2 or not self._repeatable():
            return None
        return "repeat"

    def _check_question(self, check: CheckKind) -> Question:
        if check == "repeat":
            return self._repeated()[1]
        if self._pair is None:
            with self.interview.thinking():
                self._pair = dominated_pair(self.interview.problem)
        return self._pair

    def _repeatable(self) -> list[Record]:
        """Return the answers whose questions can be shown again."""
        return [record for record in self.interview.answers if self.interview.can_show(record[0])]

    def _repeated(self) -> Record:
        """Return the answer whose question is repeated: the first with a preference, or else the first."""
        shown = self._repeatable()
        given = [record for record in shown if record[2] is not None] or shown
        return next((record for record in given if record[2] is not Answer.SAME), given[0])

    def _check_side(self, check: CheckKind) -> Side:
        if check == "repeat":
            return "second" if self.interview.sides_shown()[self._repeated()[0]] == "first" else "first"
        return side_of(self.interview.sides, self._check_question(check))

    # --- answering ----------------------------------------------------------------------------------------------------

    def tell(self, turn: int, reply: Reply) -> None:
        """Record the answer to this turn's question (None: skipped); raise a TurnError if the turn is over.

        The strategy runs only if no question has been shown in this turn.
        """
        shown = self.shown(turn)
        if isinstance(shown, CheckShown):
            self.interview.record(CheckAnswered(check=shown.check, answer=reply, at=self.interview.now()))
        elif reply is None:
            self.interview.skip()
        else:
            self.interview.tell(reply)
        self.keep()

    def shown(self, turn: int) -> Asked | CheckShown:
        """Return what was shown in a turn; raise a TurnError if the turn is over or was not asked."""
        if turn != self.turn:
            raise TurnError(
                "this question has already been answered" if turn < self.turn else "this question was not asked"
            )
        if self.state.shown is None and self.ask() is None:
            raise TurnError("this question was not asked")
        shown = self.state.shown or self.state.question  # a question is not logged again after a check
        assert shown is not None
        return shown

    def undo(self, number: int | None = None, *, turn: int | None = None) -> None:
        """Take back the last answer, or the one with this number; raise a TurnError if the turn is over."""
        if turn is not None and turn != self.turn:
            raise TurnError("something was answered or taken back since this page was shown")
        standing = self.state.standing
        if number is None and not standing:
            raise ArgumentError("there is no answer to take back")
        check = standing[-1].check if number is None else None
        if check is not None:
            self.interview.record(CheckRetracted(check=check, at=self.interview.now()))
        else:
            self.interview.undo(standing[-1].number if number is None else number)
        self.keep()

    # --- looking ------------------------------------------------------------------------------------------------------

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

    def ask_if_known(self) -> None:
        """Ask the next question if it is already known, so that it is stored together with the last answer."""
        if self.ready:
            self.ask()

    @property
    def ready(self) -> bool:
        """Whether the next question and the recommendation need no computation."""
        if not self.interview.known:
            return False
        self.interview.next()  # from the cache
        return self.interview.ready and (self._pair is not None or self._due() != "dominated")

    @property
    def finished(self) -> bool:
        """Whether nothing is left to ask."""
        return self.interview.finished and self._due() is None

    @property
    def answered(self) -> int:
        """How many answers can be taken back."""
        return len(self.state.standing)

    @property
    def at_most(self) -> int | None:
        """The most questions that can still come, this one included; None if the strategy cannot tell."""
        left = self.interview.at_most
        if left is None:
            return None
        if self.finished:
            return 0
        done = sum(one.check is not None for one in self.state.standing)
        return left + (2 - done if self.checks else 0)

    @property
    def recommendation(self) -> Recommendation:
        """What is recommended now."""
        return self.interview.recommendation

    def history(self) -> list[tuple[int, Question, Reply, Side]]:
        """Return the answers not taken back, without checks, in the order given, each with the side shown first."""
        sides = self.interview.sides_shown()
        standing = sorted(self.interview.answers, key=lambda record: record[0])
        return [(number, question, reply, sides[number]) for number, question, reply in standing]

    def _end(self) -> None:
        """Log the end and the recommendation, once."""
        if self.state.ended is not None:
            return
        found = self.recommendation
        self.interview.record(
            Ended(
                reason=str(found.reason),
                complete=found.complete,
                value=tuple(found.alternative.value.tolist()),
                weights=tuple(found.weights.tolist()),
                regret_bound=found.regret_bound,
                likely_regret=found.likely_regret,
                at=self.interview.now(),
            )
        )
