"""The answers of an interview as they are listed: what was said, and about what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tradeoff.evidence import Answer
from tradeoff.interview import Interview
from tradeoff.log import ShownQuestion
from tradeoff.model import Recommendation
from tradeoff.presentation.plans import names_beside
from tradeoff.presentation.question import advantages, objective_rows, option_lines, reply_sentence, reply_words
from tradeoff.problem import Presentable


@dataclass(frozen=True)
class AnswerLine:
    """An answer as it is listed: the reply, and how A and B differed, or which options there were."""

    number: int
    ordinal: int
    reply: str  # "A", "2 best, 4 worst", "about equal" or "skipped"
    sentence: str
    differences: list[str]
    conflict: bool
    doubtful: bool
    unexplained: bool


def answer_lines(
    problem: Presentable,
    answers: Sequence[Answer],
    orders: Mapping[int, tuple[int, ...]],
    *,
    conflicts: Sequence[int] = (),
    recommendation: Recommendation | None = None,
) -> list[AnswerLine]:
    """Return answers in their order; ``orders`` says in which order the options of each were shown.

    Those are marked that contradict each other, that are probably slips, and that were confirmed but do not fit the others.
    """
    doubtful = () if recommendation is None else recommendation.doubtful
    unexplained = () if recommendation is None else recommendation.unexplained
    return [
        AnswerLine(
            answer.number,
            ordinal,
            *_words(problem, answer, orders.get(answer.number)),
            conflict=answer.number in conflicts,
            doubtful=answer.number in doubtful,
            unexplained=answer.number in unexplained,
        )
        for ordinal, answer in enumerate(answers, start=1)
    ]


def lines_of(problem: Presentable, interview: Interview) -> list[AnswerLine]:
    """Return all answers of an interview that stand, in the order they were given."""
    conflicts = [answer.number for answer in interview.conflicts()]
    answers = sorted(interview.answers, key=lambda answer: answer.number)
    recommendation = interview.recommendation
    orders = interview.display_orders()
    return answer_lines(problem, answers, orders, conflicts=conflicts, recommendation=recommendation)


def pair_names(problem: Presentable, interview: Interview, number: int) -> tuple[str, ...]:
    """Return what A and B were called in the pair of this number; none if it was no pair."""
    answer = next(answer for answer in interview.answers if answer.number == number)
    if answer.asked is None or not answer.asked.is_pair:
        return ()
    order = interview.display_orders().get(number, (0, 1))
    return names_beside(problem, ShownQuestion(answer.asked, order).options)


def _words(problem: Presentable, answer: Answer, order: tuple[int, ...] | None) -> tuple[str, str, list[str]]:
    """Return the reply in a few words and as a sentence, and what was compared."""
    if answer.statement is not None:
        return "you said", f"You said: {answer.statement.text}.", [answer.statement.text]
    question = answer.asked
    assert question is not None
    shown = ShownQuestion(question, order or tuple(range(len(question.options))))
    placed, count = shown.by_place(answer.reply), len(shown.options)
    if question.is_pair:
        differences = advantages(objective_rows(problem, shown.options))
    else:
        differences = option_lines(problem, shown.options, placed)
    return reply_words(placed, count), reply_sentence(placed, count), differences
