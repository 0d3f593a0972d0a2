"""One person's way through the questions: an interview, with the checks of a study in between.

A session is its log, as an interview is; it adds the checks' events and an ``end`` to it. Every question that is shown has
a *turn*, a number that no other question of the session has: an answer names the turn it belongs to, so that what is sent
twice, or from an old page, is told from what is meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tradeoff.errors import ArgumentError, TradeoffError
from tradeoff.interview import NOTES, Event, Interview, Record, Side, side_of
from tradeoff.model import Answer, Question, Recommendation
from tradeoff.problem import Problem
from tradeoff.studies.checks import Kind, dominated_pair, word

DOMINATED_AFTER = 3  # answers
ACTIONS = frozenset({"answer", "skip", "retraction", "check-answer", "check-retraction"})


class TurnError(TradeoffError):
    """The question that was answered is not the one being asked: it is answered already, or was taken back."""


@dataclass(frozen=True, eq=False)
class Asked:
    """A question that is shown: ``left`` is the alternative shown first, ``check`` what it is for if it is a check."""

    turn: int
    question: Question
    left: Side
    check: Kind | None = None


class Session:
    """An interview as one person goes through it."""

    def __init__(self, interview: Interview, *, checks: bool, clock: Callable[[], datetime] | None = None) -> None:
        """Use ``begin`` for a new session and ``resume`` for one that was kept."""
        self.interview, self.checks = interview, checks
        self._clock = clock or (lambda: datetime.now(UTC))
        self.events: list[Event] = list(interview.log)
        self._taken = len(interview.log)  # of the interview's events, how many are in the log
        self._turn = 1
        self._order: list[int | Kind] = []  # what was answered, in order: numbers of answers, and checks
        self._checked: set[Kind] = set()
        self._pending: Kind | None = None  # the check that is being shown
        self._pair: Question | None = None

    @classmethod
    def begin(
        cls, problem: Problem, *, checks: bool, clock: Callable[[], datetime] | None = None, **settings: Any
    ) -> Session:
        """Return a new session, not asked anything yet; ``settings`` are those of an ``Interview``."""
        now = clock or (lambda: datetime.now(UTC))
        return cls(Interview(problem, clock=now, **settings), checks=checks, clock=clock)

    @classmethod
    def resume(
        cls,
        problem: Problem,
        events: Sequence[Mapping[str, Any]],
        *,
        checks: bool,
        clock: Callable[[], datetime] | None = None,
    ) -> Session:
        """Return the session that wrote these events, at the same question."""
        now = clock or (lambda: datetime.now(UTC))
        session = cls(Interview.resume(problem, events[:1], clock=now), checks=checks, clock=clock)
        session.catch_up(events[1:])
        return session

    def catch_up(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Go on with events that followed those of this log, such as another process has written."""
        for event in map(dict, events):
            kind = event.get("event")
            if kind not in NOTES:
                self.interview.replay([event])
                self._taken = len(self.interview.log)
            self.events.append(event)
            match kind:
                case "answer" | "skip":
                    self._order.append(event["number"])
                case "retraction":
                    self._order = [done for done in self._order if done != event["number"]]
                    self._pending = None
                case "check":
                    self._pending = event["kind"]
                case "check-answer":
                    self._order.append(event["kind"])
                    self._checked.add(event["kind"])
                    self._pending = None
                case "check-retraction":
                    self._order = [done for done in self._order if done != event["kind"]]
                    self._checked.discard(event["kind"])
                    self._pending = None
            self._turn += kind in ACTIONS

    # --- asking -------------------------------------------------------------------------------------------------------

    def ask(self) -> Asked | None:
        """Return the question to be answered now, or None when nothing is left to ask."""
        check = self._due()
        if check is not None:
            question = self._check_question(check)
            left = self._check_side(check)
            if self._pending != check:
                self._pending = check
                expected = "first" if check == "dominated" else word(self._repeated()[2])
                self._note(
                    {
                        "event": "check",
                        "kind": check,
                        "first": question.first.value.tolist(),
                        "second": question.second.value.tolist(),
                        "left": left,
                        "expected": expected,
                    }
                )
            return Asked(self._turn, question, left, check)
        found = self.interview.ask()
        self._take()
        if found is None:
            self._end()
            return None
        return Asked(self._turn, found, self.interview.left)

    def _due(self) -> Kind | None:
        """Return the check that is to be asked now, if any."""
        answered = len(self.interview.answers)
        if not self.checks or not answered:
            return None
        if "dominated" not in self._checked and (answered >= DOMINATED_AFTER or self.interview.finished):
            return "dominated"
        if "repeat" in self._checked or not self.interview.finished or answered < 2 or not self._repeatable():
            return None
        return "repeat"

    def _check_question(self, check: Kind) -> Question:
        if check == "repeat":
            return self._repeated()[1]
        if self._pair is None:
            self._pair = dominated_pair(self.interview.problem)
        return self._pair

    def _repeatable(self) -> list[Record]:
        """Return the answers whose questions can be shown again."""
        return [record for record in self.interview.answers if self.interview.can_show(record[0])]

    def _repeated(self) -> Record:
        """Return the answer whose question is repeated: the first that preferred something, or else the first."""
        shown = self._repeatable()
        given = [record for record in shown if record[2] is not None] or shown
        return next((record for record in given if record[2] is not Answer.SAME), given[0])

    def _check_side(self, check: Kind) -> Side:
        if check == "repeat":
            return "second" if self.interview.sides_shown()[self._repeated()[0]] == "first" else "first"
        return side_of(self.interview.sides, self._check_question(check))

    # --- answering ----------------------------------------------------------------------------------------------------

    def tell(self, turn: int, reply: Answer | None) -> None:
        """Take the answer to the question of this turn (None: skipped) and ask the next; raise a TurnError if it is over."""
        asked = self.ask()
        if asked is None or turn != asked.turn:
            raise TurnError("this question was answered already" if turn < self._turn else "this was not asked")
        if asked.check is not None:
            self._note({"event": "check-answer", "kind": asked.check, "answer": word(reply)})
            self._checked.add(asked.check)
            self._order.append(asked.check)
            self._pending = None
        else:
            self.interview.skip() if reply is None else self.interview.tell(reply)
            self._order.append(self.interview.log[-1]["number"])
            self._take()
        self._turn += 1
        self.ask()

    def undo(self, number: int | None = None, *, turn: int | None = None) -> None:
        """Take back the last answer, or the one with this number; a turn that is over is refused."""
        if turn is not None and turn != self._turn:
            raise TurnError("something was answered or taken back since this page was shown")
        if number is None:
            if not self._order:
                raise ArgumentError("there is no answer to take back")
            last = self._order[-1]
        else:
            last = number
        if isinstance(last, str):
            self._note({"event": "check-retraction", "kind": last})
            self._checked.discard(last)
        else:
            self.interview.undo(last)
            self._take()
        self._order = [done for done in self._order if done != last]
        self._pending = None
        self._turn += 1
        self.ask()

    def knows(self, reply: Answer | None) -> bool:
        """Return whether an answer can be taken in without working anything out."""
        return self._due() is None and self.interview.knows(reply)

    # --- looking ------------------------------------------------------------------------------------------------------

    @property
    def settled(self) -> bool:
        """Whether everything that has happened is in the log; it is not after something has broken off half-way."""
        return self._taken == len(self.interview.log)

    @property
    def turn(self) -> int:
        """The turn of the question that is shown, or of what would come next."""
        return self._turn

    @property
    def finished(self) -> bool:
        """Whether nothing is left to ask."""
        return self.interview.finished and self._due() is None

    @property
    def answered(self) -> int:
        """How many answers can be taken back."""
        return len(self._order)

    @property
    def at_most(self) -> int | None:
        """The most questions that can still come, this one included; None if the strategy cannot tell."""
        left = self.interview.at_most
        if left is None:
            return None
        if self.finished:
            return 0
        return left + (2 - len(self._checked) if self.checks else 0)

    @property
    def recommendation(self) -> Recommendation:
        """What is recommended now."""
        return self.interview.recommendation

    def history(self) -> list[tuple[int, Question, Answer | None, Side]]:
        """Return the answers that stand, without checks, in the order they were given, with the side shown first."""
        sides = self.interview.sides_shown()
        standing = sorted(self.interview.answers, key=lambda record: record[0])
        return [(number, question, reply, sides[number]) for number, question, reply in standing]

    # --- the log ------------------------------------------------------------------------------------------------------

    def _take(self) -> None:
        """Put the interview's new events into the log."""
        log = self.interview.log
        self.events += log[self._taken :]
        self._taken = len(log)

    def _note(self, event: Event) -> None:
        self.events.append({**event, "time": self._clock().isoformat()})

    def _end(self) -> None:
        """Note, once, that nothing is left to ask, and what came of it."""
        if self.events[-1]["event"] == "end":
            return
        found = self.recommendation
        self._note(
            {
                "event": "end",
                "reason": found.reason,
                "complete": found.complete,
                "value": found.alternative.value.tolist(),
                "weights": found.weights.tolist(),
                "regret_bound": found.regret_bound,
                "likely_regret": found.likely_regret,
            }
        )
