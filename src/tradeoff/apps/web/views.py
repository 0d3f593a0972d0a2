"""The values of each template: what ``presentation`` returns, with the texts of the study and the links of the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tradeoff.apps.web.jobs import DrawnQuestion, ResultParts
from tradeoff.apps.web.rendering import environment, render
from tradeoff.presentation import sentences
from tradeoff.presentation.problems import about, description, goal, notes, scenario
from tradeoff.presentation.question import how_it_works, welcome
from tradeoff.presentation.text import clipped, one_line, paragraphs
from tradeoff.problem import Presentable
from tradeoff.studies.service import ParticipantState

__all__ = [
    "Links", "environment", "message_view", "question_view", "render", "result_view", "start_view",
]  # fmt: skip

# The texts of a study that does not have its own.
DEFAULTS = {
    "question": "Which would you rather have?",
    "thanks": sentences.THANKS,
}


@dataclass(frozen=True)
class Links:
    """Where the forms and links of a participant's pages lead."""

    question: str
    share: str = ""  # where a link to share is made; "" where that is not allowed

    @property
    def answer(self) -> str:
        """Where an answer is sent."""
        return f"{self.question}/answer"

    @property
    def undo(self) -> str:
        """Where an answer is undone."""
        return f"{self.question}/undo"

    @property
    def result(self) -> str:
        """The result so far."""
        return f"{self.question}/result"

    @property
    def log(self) -> str:
        """The participant's own log."""
        return f"{self.question}/log"

    @property
    def report(self) -> str:
        """The result as a file."""
        return f"{self.question}/report"


def _text(texts: Mapping[str, str], name: str) -> str:
    return texts.get(name) or DEFAULTS[name]


def _title(problem: Presentable, texts: Mapping[str, str]) -> str:
    return clipped(texts.get("title") or problem.title)


def question_view(
    problem: Presentable,
    position: ParticipantState,
    drawn: DrawnQuestion,
    *,
    links: Links,
    texts: Mapping[str, str],
    notice: str = "",
) -> dict[str, Any]:
    """Return the values of question.html."""
    prompt, view = position.prompt, position.view
    assert prompt is not None and view is not None
    recommendation, is_pair = view.recommendation, prompt.question.is_pair
    expected = None if prompt.check else recommendation.expected_left
    return {
        "title": _title(problem, texts),
        "notice": one_line(notice),
        "heading": one_line(_text(texts, "question")) if is_pair else drawn.words,
        "again": sentences.ASKED_AGAIN if prompt.again else "",
        "progress": sentences.progress(position.answered + 1, view.at_most, expected),
        "done": position.answered,
        "most": sentences.bar_length(position.answered, view.at_most, expected),
        "turn": position.turn,
        "is_pair": is_pair,
        "asks_worst": prompt.question.asks == "best-worst",
        "names": drawn.names,
        "definitions": drawn.definitions,
        "table": drawn.table,
        "links": links,
        "answered": position.answered,
    }


def result_view(
    problem: Presentable,
    parts: ResultParts,
    *,
    finished: bool,
    links: Links,
    texts: Mapping[str, str],
    notice: str = "",
    shared: str = "",
) -> dict[str, Any]:
    """Return the values of result.html; ``shared`` is the address where others see the result."""
    return {
        "title": _title(problem, texts),
        "notice": one_line(notice),
        "body": parts.body,
        "answers": parts.answers,
        "contradiction": parts.contradiction,
        "doubtful": sentences.DOUBTFUL,
        "unexplained": sentences.UNEXPLAINED,
        "finished": finished,
        "thanks": paragraphs(_text(texts, "thanks")) if finished else [],
        "notes": parts.notes,
        "links": links,
        "shared": shared,
    }


def start_view(
    problem: Presentable, *, texts: Mapping[str, str], action: str, questions: str | None = None, key: str = ""
) -> dict[str, Any]:
    """Return the values of start.html: what it is about, how it works, and a button that begins it.

    ``key`` names the request that the button sends, so that sending it twice begins one interview.
    """
    return {
        "title": _title(problem, texts),
        "welcome": paragraphs(texts.get("welcome") or f"{welcome(questions)}\n\n{sentences.NO_WRONG_ANSWERS}"),
        "scenario": scenario(problem),
        "about": [part for part in about(problem) if part != ("text", scenario(problem))],
        "how": how_it_works(questions, "plans" if problem.has_paths else "options"),
        "objectives": [
            {"name": o.name, "unit": o.unit, "goal": goal(o), "description": description(o)}
            for o in problem.original.objectives
        ],
        "notes": notes(problem),
        "action": action,
        "key": key,
    }


def message_view(title: str, sentence: str, *, action: tuple[str, str] | None = None) -> dict[str, Any]:
    """Return the values of message.html: what happened, and a link (its words and address) to continue with."""
    return {
        "title": clipped(title),
        "sentences": paragraphs(sentence),
        "action": None if action is None else (clipped(action[0]), action[1]),
    }
