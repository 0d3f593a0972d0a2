"""A session: one person's interview, with the attention checks of a study in between.

Like an interview, a session is its log; the checks and the end are events in the same log. Every question shown has a
*turn*, a number unique within the session. An answer names its turn, so that a request sent twice, or from an old page,
can be told from a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

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
    MenuAsked,
    PairReply,
    Reply,
    Shown,
    ShownMenu,
    Side,
    side_of,
)
from tradeoff.menus import Choice, Menu, Occasion, Statement, plain
from tradeoff.model import Answer, Question, Recommendation
from tradeoff.problem import Problem
from tradeoff.studies.checks import dominated_pair

if TYPE_CHECKING:
    from tradeoff.sources import AnyProblem

DOMINATED_AFTER = 3  # answers


class TurnError(TradeoffError):
    """The answer is not to the current question: that question is already answered, or was taken back."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Prompt(Shown):
    """A question put to a person: its turn, and which attention check it is, if it is one."""

    turn: int
    check: CheckKind | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class MenuPrompt(ShownMenu):
    """A menu put to a person, and its turn; attention checks are pairs."""

    turn: int


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

    def ask(self) -> Prompt | MenuPrompt | None:
        """Return the question to be answered now and log that it was shown; None when nothing is left to ask."""
        prompt = self.next()
        if prompt is None:
            self._end()
        elif isinstance(prompt, MenuPrompt) or prompt.check is None:
            self.interview.ask()
        elif not isinstance(self.state.shown, CheckShown):
            question = prompt.question
            expected = Answer.FIRST if prompt.check == "dominated" else self._repeated()[1]
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

    def next(self) -> Prompt | MenuPrompt | None:
        """Return the question to be answered now without logging anything."""
        check = self._due()
        if check is not None:
            return Prompt(self._check_question(check), self._check_side(check), turn=self.turn, check=check)
        found = self.interview.next()
        if isinstance(found, ShownMenu):
            return MenuPrompt(found.question, found.order, turn=self.turn)
        return None if found is None else Prompt(found.question, found.left, found.again, turn=self.turn)

    def work_out(self) -> Prompt | MenuPrompt | None:
        """Return the question to be answered now, once it and the recommendation are computed; nothing is logged."""
        found = self.next()
        _ = self.recommendation
        return found

    def _due(self) -> CheckKind | None:
        """Return the check that is due now, if any."""
        if not self.checks:
            return None
        answered = sum(not isinstance(question, Statement) for _, question, _ in self.interview.answers)
        done = {one.check for one in self.state.standing}
        if not answered:
            return None
        if "dominated" not in done and (answered >= DOMINATED_AFTER or self.interview.finished):
            return "dominated"
        if "repeat" in done or not self.interview.finished or answered < 2 or not self._repeatable():
            return None
        return "repeat"

    def _check_question(self, check: CheckKind) -> Question:
        if check == "repeat":
            return self._repeated()[0]
        if self._pair is None:
            with self.interview.thinking():
                self._pair = dominated_pair(self.interview.problem)
        return self._pair

    def _repeatable(self) -> list[Record]:
        """Return the answers that can be checked: a pair that can be shown again, or a menu whose two ends were named."""
        shown = [record for record in self.interview.answers if self.interview.can_show(record[0])]
        return [record for record in shown if isinstance(record[1], Question) or _ends(record) is not None]

    def _repeated(self) -> tuple[Question, PairReply, Side]:
        """Return the pair that is repeated, the answer that was given, and which is A now: the first that preferred something.

        Of a menu, its best and its worst are compared: between those a person has noticed a difference.
        """
        shown = self._repeatable()
        given = [record for record in shown if record[2] is not None] or shown
        record = next((record for record in given if record[2] is not Answer.SAME), given[0])
        number, question, reply = record[0], record[1], plain(record[2])  # a strength may well differ the second time
        ends = _ends(record)
        if ends is not None:
            return ends, Answer.FIRST, side_of(self.interview.sides, ends)
        assert isinstance(question, Question) and (reply is None or isinstance(reply, Answer))
        return question, reply, "second" if self.interview.sides_shown()[number] == "first" else "first"

    def _check_side(self, check: CheckKind) -> Side:
        return self._repeated()[2] if check == "repeat" else side_of(self.interview.sides, self._check_question(check))

    # --- answering ----------------------------------------------------------------------------------------------------

    def tell(self, turn: int, reply: Reply) -> None:
        """Record the answer to this turn's question (None: skipped); raise a TurnError if the turn is over.

        The strategy runs only if no question has been shown in this turn.
        """
        shown = self.shown(turn)
        if isinstance(shown, CheckShown):
            side = plain(reply)
            if isinstance(side, Choice):
                raise ArgumentError(
                    "two alternatives are being compared; answer with one of them, or that they are about equal"
                )
            self.interview.record(CheckAnswered(check=shown.check, answer=side, at=self.interview.now()))
        elif reply is None:
            self.interview.skip()
        else:
            self.interview.tell(reply)
        self.keep()

    def know(self, said: str) -> None:
        """Record what the person says without being asked; it is undone like an answer."""
        self.interview.know(said)
        self.keep()

    def shown(self, turn: int) -> Asked | MenuAsked | CheckShown:
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
    def problem(self) -> AnyProblem:
        """What the interview is about: the study's problem, or a coverage of it."""
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

    def history(self) -> list[tuple[int, Occasion, Reply, Side | tuple[int, ...]]]:
        """Return the answers that stand, without checks, in the order they were given, with what was shown where."""
        sides = self.interview.sides_shown()
        standing = sorted(self.interview.answers, key=lambda record: record[0])
        return [(number, question, reply, sides.get(number, "first")) for number, question, reply in standing]

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


def _ends(record: Record) -> Question | None:
    """Return the best and the worst of a menu as a pair, if both were named."""
    _, question, reply = record[0], record[1], plain(record[2])
    if not isinstance(question, Menu) or not isinstance(reply, Choice) or reply.best is None or reply.worst is None:
        return None
    return Question(question.alternatives[reply.best], question.alternatives[reply.worst])
