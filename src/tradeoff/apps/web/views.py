"""The values of each template: what ``presentation`` returns, with the texts of the study and the links of the page."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from tradeoff.apps.web.decision import Decision
from tradeoff.apps.web.overview import admin_view
from tradeoff.apps.web.rendering import RenderCache, environment, render, render_cache
from tradeoff.log import Shown, ShownMenu
from tradeoff.menus import STRENGTHS, Asks
from tradeoff.model import Alternative, Recommendation
from tradeoff.presentation import sentences
from tradeoff.presentation.cards import pair
from tradeoff.presentation.menus import how_it_works, menu_table, question_words, welcome
from tradeoff.presentation.plans import names_beside
from tradeoff.presentation.problems import about, description, goal, notes, scenario
from tradeoff.presentation.result import (
    AnyGiven,
    answer_lines,
    certificate_while_asking,
    result,
    what_ifs,
)
from tradeoff.presentation.text import clipped, one_line, paragraphs
from tradeoff.problem import Presentable

__all__ = [
    "Links", "admin_view", "environment", "menu_view", "message_view", "question_view", "render", "result_body", "result_view",
    "start_view",
]  # fmt: skip

Picture = Callable[[str], str]

# The texts of a study that does not have its own.
DEFAULTS = {
    "question": "Which would you rather have?",
    "thanks": sentences.THANKS,
}


@dataclass(frozen=True)
class Links:
    """Where the forms and links of a page lead; ``picture`` gives the address of a state's own picture."""

    answer: str
    undo: str
    result: str
    log: str
    question: str
    picture: Picture | None = None
    report: str = ""  # "" where there is none
    share: str = ""  # where a link to share is made; "" where that is not allowed


def _text(texts: Mapping[str, str], name: str) -> str:
    return texts.get(name) or DEFAULTS[name]


def _title(problem: Presentable, texts: Mapping[str, str]) -> str:
    return clipped(texts.get("title") or problem.title)


# --- the question ----------------------------------------------------------------------------------------------------


def question_view(
    problem: Presentable,
    left: Alternative,
    right: Alternative,
    *,
    again: bool = False,
    turn: int,
    at_most: int | None,
    recommendation: Recommendation | None,
    links: Links,
    answered: int,
    texts: Mapping[str, str],
    notice: str = "",
    strengths: bool = False,
) -> dict[str, Any]:
    """Return the values of question.html: A is ``left``, B is ``right``."""
    expected = None if recommendation is None else recommendation.expected_left
    return {
        "title": _title(problem, texts),
        "notice": one_line(notice),
        "heading": one_line(_text(texts, "question")),
        "again": sentences.ASKED_AGAIN if again else "",
        "progress": sentences.progress(answered + 1, at_most, expected),
        "done": answered,
        "most": sentences.bar_length(answered, at_most, expected),
        "turn": turn,
        "pair": _pair(render_cache(problem), left, right, links.picture),
        "certificate": "" if recommendation is None else certificate_while_asking(recommendation),
        "links": links,
        "answered": answered,
        "strengths": STRENGTHS if strengths else (),
    }


def menu_view(
    problem: Presentable,
    shown: ShownMenu,
    *,
    turn: int,
    at_most: int | None,
    recommendation: Recommendation,
    links: Links,
    answered: int,
    texts: Mapping[str, str],
    notice: str = "",
    strengths: bool = False,
) -> dict[str, Any]:
    """Return the values of menu.html."""
    alternatives, asks = shown.alternatives, shown.question.asks
    return {
        "title": _title(problem, texts),
        "notice": one_line(notice),
        "heading": question_words(len(alternatives), asks),
        "progress": sentences.progress(answered + 1, at_most, recommendation.expected_left),
        "done": answered,
        "most": sentences.bar_length(answered, at_most, recommendation.expected_left),
        "turn": turn,
        "both": asks == "best-worst",
        "count": len(alternatives),
        "names": [clipped(name) for name in names_beside(problem, alternatives)],
        "table": _menu(render_cache(problem), alternatives, asks, links.picture),
        "certificate": certificate_while_asking(recommendation),
        "links": links,
        "answered": answered,
        "strengths": STRENGTHS if strengths and asks == "best-worst" else (),
    }


def _menu(cache: RenderCache, alternatives: Sequence[Alternative], asks: Asks, picture: Picture | None) -> Markup:
    """Return the alternatives of a menu side by side, from before where somebody saw the same."""

    def make() -> Markup:
        found = menu_table(cache.problem, alternatives, asks, [cache.lottery(one) for one in alternatives])
        drawings = [cache.drawings(card) for card in found.cards]
        return Markup(render("menu_table.html", menu=found, drawings=drawings, picture=picture))

    return cache.parts.once(_menu_key(alternatives, asks, picture), make)


def _menu_key(alternatives: Sequence[Alternative], asks: Asks, picture: Picture | None) -> Hashable:
    return tuple((one.value.tobytes(), one.plan) for one in alternatives), asks, picture is not None


def _pair(cache: RenderCache, left: Alternative, right: Alternative, picture: Picture | None) -> Markup:
    """Return the two alternatives side by side; many people see the same two, so this part of the page is kept."""

    def make() -> Markup:
        found = pair(cache.problem, left, right, (cache.lottery(left), cache.lottery(right)))
        values = {
            "pair": found,
            "drawings": [cache.drawings(card) | {"map": None} for card in found.cards],
            "both": cache.compared(*found.cards),
            "map_defs": cache.map_defs,
            "picture": picture,
        }
        return Markup(render("pair.html", **values))  # made by a template, which has escaped everything

    return cache.parts.once(_pair_key(left, right, picture), make)


def _pair_key(left: Alternative, right: Alternative, picture: Picture | None) -> Hashable:
    return left.value.tobytes(), left.plan, right.value.tobytes(), right.plan, picture is not None


def draw(problem: Presentable, shown: Shown | ShownMenu, picture: Picture | None) -> None:
    """Draw a question, so that it can be shown without drawing anything."""
    if isinstance(shown, ShownMenu):
        names_beside(problem, shown.alternatives)
        _menu(render_cache(problem), shown.alternatives, shown.question.asks, picture)
    else:
        _pair(render_cache(problem), shown.a, shown.b, picture)


def drawn_before(problem: Presentable, shown: Shown | ShownMenu, picture: Picture | None) -> bool:
    """Return whether a question can be shown without drawing anything."""
    if isinstance(shown, ShownMenu):
        return _menu_key(shown.alternatives, shown.question.asks, picture) in render_cache(problem).parts
    return _pair_key(shown.a, shown.b, picture) in render_cache(problem).parts


# --- the result ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ResultBody:
    """The part of a result page that is the same for everybody with the same answers."""

    heading: str
    sentence: str
    counted: str
    sections: Markup

    def __len__(self) -> int:
        return len(self.sections)


def result_body(
    problem: Presentable,
    recommendation: Recommendation,
    *,
    finished: bool,
    picture: Picture | None = None,
    decision: Decision | None = None,
) -> ResultBody:
    """Return the plan, what matters, the ranking, what would change, and how sure all this is."""
    cache = render_cache(problem)
    found = result(problem, recommendation, cache.lottery(recommendation.alternative), finished)
    changes = cache.changes(recommendation) if recommendation.questions else ()
    sections = render(
        "result_body.html",
        result=found,
        drawings=cache.drawings(found.card),
        importance=sorted(found.importance, key=lambda row: (not row.matters, -row.share)),
        what_ifs=what_ifs(problem, recommendation, changes) if changes else [],
        map_defs=cache.map_defs,
        picture=picture,
        decision=decision,
    )
    return ResultBody(found.heading, found.sentence, found.counted, Markup(sections))  # the template escapes everything


def result_view(
    problem: Presentable,
    recommendation: Recommendation,
    body: ResultBody,
    *,
    finished: bool,
    links: Links,
    answers: Sequence[AnyGiven],
    conflicts: Sequence[int],
    texts: Mapping[str, str],
    notice: str = "",
    shared: str = "",
) -> dict[str, Any]:
    """Return the values of result.html.

    ``conflicts`` are the numbers of answers that contradict each other; ``shared`` is the address where others see the result.
    """
    return {
        "title": _title(problem, texts),
        "notice": one_line(notice),
        "body": body,
        "answers": answer_lines(problem, answers, conflicts=conflicts, doubtful=recommendation.doubtful),
        "contradiction": sentences.contradiction(len(conflicts)),
        "doubtful": sentences.DOUBTFUL,
        "finished": finished,
        "thanks": paragraphs(_text(texts, "thanks")) if finished else [],
        "notes": notes(problem),
        "links": links,
        "shared": shared,
    }


# --- other pages -----------------------------------------------------------------------------------------------------


def start_view(
    problem: Presentable, *, texts: Mapping[str, str], action: str, questions: str | None = None
) -> dict[str, Any]:
    """Return the values of start.html: what it is about, how it works, and a button that begins it."""
    return {
        "title": _title(problem, texts),
        "welcome": paragraphs(texts.get("welcome") or f"{welcome(questions)}\n\n{sentences.NO_WRONG_ANSWERS}"),
        "scenario": scenario(problem),
        "about": [part for part in about(problem) if part != ("text", scenario(problem))],
        "how": how_it_works(questions, "plans" if problem.has_paths else "alternatives"),
        "objectives": [
            {"name": o.name, "unit": o.unit, "goal": goal(o), "description": description(o)} for o in problem.objectives
        ],
        "notes": notes(problem),
        "action": action,
    }


def message_view(title: str, sentence: str, *, action: tuple[str, str] | None = None) -> dict[str, Any]:
    """Return the values of message.html: what happened, and a link (its words and address) to continue with."""
    return {
        "title": clipped(title),
        "sentences": paragraphs(sentence),
        "action": None if action is None else (clipped(action[0]), action[1]),
    }
