"""Library values as what the templates of the page need: plain values, in the person's words and units."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from tradeoff.apps.cli.ask import SAID
from tradeoff.apps.cli.cards import ask_words, certificate_line
from tradeoff.apps.cli.pages import notes
from tradeoff.apps.web import drawings
from tradeoff.apps.web.cards import (
    SHORT,
    Sketches,
    amount_words,
    amounts_words,
    both_certain,
    goal_words,
    shown,
    sketches,
)
from tradeoff.apps.web.overview import admin_view
from tradeoff.apps.web.sentences import (
    answered_words,
    because_words,
    certainty_words,
    changes_between,
    outlook,
    plan_words,
    range_words,
    runner_up_words,
)
from tradeoff.model import Alternative, Answer, Question, Recommendation
from tradeoff.problems.mdp import MDP
from tradeoff.representation.picture import inert
from tradeoff.representation.words import CANNOT_ALL_BE_MEANT, CANNOT_BE_MEANT, heading_words, progress_words
from tradeoff.sensitivity import shares_of
from tradeoff.sources import AnyProblem

__all__ = [
    "Links", "admin_view", "environment", "message_view", "question_view", "render", "result_view", "start_view",
]  # fmt: skip

STATIC = Path(__file__).resolve().parent / "static"

Given = tuple[int, Question, Answer | None, str]  # number, question, answer (None: skipped), which side was A

DEFAULTS = {
    "welcome": "You are shown two alternatives at a time. Say which you would rather have.\n\nThere are no wrong answers.",
    "question": "Which would you rather have?",
    "thanks": "Thank you for your answers.",
}


@dataclass(frozen=True)
class Links:
    """Where the forms and links of a page lead; ``picture`` gives the address of a state's own picture."""

    answer: str
    undo: str
    result: str
    log: str
    question: str
    picture: Callable[[str], str] | None = None


# --- rendering -------------------------------------------------------------------------------------------------------


@cache
def environment() -> jinja2.Environment:
    """Return the one environment of the templates: everything is escaped, and what is missing is an error."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("tradeoff.apps.web"), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, auto_reload=False,
    )  # fmt: skip
    made.globals["asset"] = asset
    return made


def render(template: str, **values: Any) -> str:
    """Return the page that a template makes of these values."""
    return environment().get_template(template).render(values)


@cache
def asset(name: str) -> str:
    """Return the address of a static file; it changes with the file, so that browsers may keep it for long."""
    digest = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]
    return f"/static/{name}?v={digest}"


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text, which are parted by empty lines."""
    return [inert(part.strip()) for part in text.replace("\r\n", "\n").split("\n\n") if part.strip()]


def _text(texts: Mapping[str, str], name: str) -> str:
    return texts.get(name) or DEFAULTS[name]


def _title(problem: AnyProblem, texts: Mapping[str, str]) -> str:
    return shown(texts.get("title") or problem.title)


# --- the question ----------------------------------------------------------------------------------------------------


def question_view(
    problem: AnyProblem,
    question: Question,
    *,
    left: str,
    turn: int,
    at_most: int | None,
    recommendation: Recommendation | None,
    links: Links,
    answered: int,
    texts: Mapping[str, str],
    notice: str = "",
) -> dict[str, Any]:
    """Return the values of question.html; ``left`` says which alternative is A, on the left: "first" or "second"."""
    proved = recommendation is not None and recommendation.regret_bound is not None
    return {
        "title": _title(problem, texts),
        "notice": inert(notice),
        "heading": inert(_text(texts, "question")),
        "progress": progress_words(answered + 1, at_most),
        "done": answered,
        "most": None if at_most is None else answered + max(at_most, 1),
        "turn": turn,
        "pair": _pair(sketches(problem), question, left, links.picture),
        "certificate": certificate_line(recommendation) if proved and recommendation is not None else None,
        "links": links,
        "answered": answered,
    }


def _pair(drawn: Sketches, question: Question, left: str, picture: Callable[[str], str] | None) -> Markup:
    """Return the two alternatives side by side; many people see the same two, so the page of them is kept."""
    sides = (question.first, question.second) if left == "first" else (question.second, question.first)

    def make() -> Markup:
        lotteries = [drawn.lottery(side) for side in sides]
        rows = drawn.rows(*sides)
        values = {
            "lead": ask_words(*lotteries).partition("? ")[2],
            "average": "" if both_certain(*lotteries) else "On average",
            "cards": [("A", drawn.card(sides[0], sides[1])), ("B", drawn.card(sides[1], sides[0]))],
            "differing": [row for row in rows if row.better],
            "same": [row for row in rows if not row.better],
            "ground": drawn.definition,
            "picture": picture,
        }
        return Markup(render("pair.html", **values))  # made by a template, which has escaped everything

    return drawn.once(_pair_key(question, left, picture), make)


def _pair_key(question: Question, left: str, picture: Callable[[str], str] | None) -> Hashable:
    return question.key, left, question.first.plan, question.second.plan, picture is not None


def drawn_before(problem: AnyProblem, question: Question, left: str, picture: Callable[[str], str] | None) -> bool:
    """Return whether a question can be shown without drawing anything."""
    return sketches(problem).has(_pair_key(question, left, picture))


# --- the result ------------------------------------------------------------------------------------------------------


def result_view(
    problem: AnyProblem,
    recommendation: Recommendation,
    *,
    finished: bool,
    links: Links,
    answers: Sequence[Given],
    conflicts: Sequence[int],
    texts: Mapping[str, str],
    notice: str = "",
) -> dict[str, Any]:
    """Return the values of result.html; ``conflicts`` are the numbers of answers that cannot all hold."""
    drawn = sketches(problem)
    found = recommendation.alternative
    lottery = drawn.lottery(found)
    so_far = not (finished and recommendation.complete)
    certain = both_certain(lottery, lottery)
    because, counted = because_words(problem, recommendation)
    return {
        "title": _title(problem, texts),
        "notice": inert(notice),
        "heading": f"The best plan for you{', so far' if so_far else ''}",
        "sentence": f"We would recommend {plan_words(lottery)}{f', because to you, {because}' if because else ''}.",
        "counted": counted,
        "lead": heading_words(lottery) if len(lottery.trajectories) > 1 or lottery.trajectories[0].actions else "",
        "card": drawn.card(found),
        "average": "What it comes to" if certain else "On average",
        "amounts": _amounts(drawn, found),
        "importance": _importance(problem, recommendation),
        "changes": _changes(drawn, recommendation) if recommendation.questions else [],
        "certainty": certainty_words(problem, recommendation),
        "reason": _reason(recommendation, finished),
        "runner_up": runner_up_words(problem, recommendation),
        "answers": _answers(drawn, answers, recommendation.doubtful, conflicts),
        "conflict_words": CANNOT_BE_MEANT if len(conflicts) == 1 else CANNOT_ALL_BE_MEANT,
        "finished": finished,
        "thanks": paragraphs(_text(texts, "thanks")) if finished else [],
        "notes": [inert(note) for note in notes(problem)],
        "ground": drawn.definition,
        "links": links,
    }


def _amounts(drawn: Sketches, alternative: Alternative) -> list[dict[str, Any]]:
    """Return what an alternative comes to on average, one row for each objective."""
    amounts = drawn.problem.outcome(alternative.value).tolist()
    return [
        {
            "name": shown(o.name, SHORT),
            "goal": goal_words(o),
            "amount": amount_words(o, amount),
            "bar": drawn.bar(j, amount),
        }
        for j, (o, amount) in enumerate(zip(drawn.problem.objectives, amounts, strict=True))
    ]


def _importance(problem: AnyProblem, recommendation: Recommendation) -> list[dict[str, Any]]:
    """Return how much each objective matters, with what is still possible; the most important first."""
    shares, frame, ranges = shares_of(recommendation.weights), problem.frame, recommendation.importance
    rows = []
    for j in sorted(range(len(shares)), key=lambda j: (not frame.matters[j], -shares[j])):
        o, share = problem.objectives[j], float(shares[j])
        low, high = (None, None) if ranges is None else (max(float(ranges[j, 0]), 0.0), min(float(ranges[j, 1]), 1.0))
        worst, best = amounts_words(o, float(frame.origin[j]), float(frame.ideal[j]))
        words = range_words(low, high)
        if o.name in recommendation.unidentified:
            words = "left open, because it makes no difference here"
        rows.append(
            {
                "name": shown(o.name, SHORT),
                "matters": bool(frame.matters[j]),
                "way": f"from {worst} to {best}",
                "share": f"{100 * share:.0f}%",
                "range": words,
                "bar": drawings.range_bar(share, low, high),
            }
        )
    return rows


def _changes(drawn: Sketches, recommendation: Recommendation) -> list[dict[str, Any]]:
    """Return what would be recommended instead if one objective mattered more, stop by stop."""
    found = recommendation.alternative
    made = []
    for j, change in enumerate(drawn.changes(recommendation)):
        if not drawn.problem.frame.matters[j]:
            continue
        stops = []
        for stop in change.stops:
            low, high = f"{100 * stop.low:.0f}%", f"{100 * stop.high:.0f}%"
            rows = _amounts(drawn, stop.alternative)
            for row, words in zip(rows, changes_between(drawn.problem, found, stop.alternative), strict=True):
                row["change"] = words
            stops.append(
                {
                    "share": low if low == high else f"{low} to {high}",
                    "plan": _plan(drawn, stop.alternative, recommended=stop is change.stops[0]),
                    "rows": rows,
                }
            )
        made.append({"name": shown(change.objective.name, SHORT), "stops": stops})
    return made


def _plan(drawn: Sketches, alternative: Alternative, *, recommended: bool) -> str:
    """Return what a plan is called; telling a policy's stories takes long, and its averages say enough here."""
    if isinstance(drawn.problem, MDP) and not recommended:
        return "a plan with these averages"
    return plan_words(drawn.lottery(alternative))


def _reason(recommendation: Recommendation, finished: bool) -> str:
    count = recommendation.questions
    asked = f"{count:,} {'question' if count == 1 else 'questions'}"
    return f"{asked}: {shown(recommendation.reason)}." if finished else f"{asked} so far."


def _answers(
    drawn: Sketches, answers: Sequence[Given], doubtful: Sequence[int], conflicts: Sequence[int]
) -> list[dict[str, Any]]:
    """Return the answers as the person saw the questions, with the questionable ones marked."""
    told = []
    for place, (number, question, answer, side) in enumerate(answers, start=1):
        first, second = question.first, question.second
        left, right = (first, second) if side == "first" else (second, first)
        given = answer if answer is None or side == "first" else answer.swapped
        told.append(
            {
                "number": number,
                "place": place,
                "said": "Skipped." if given is None else SAID[given.value].replace("prefer", "preferred"),
                "differences": answered_words(drawn.differences(left, right)),
                "conflict": number in conflicts,
                "doubtful": number in doubtful,
            }
        )
    return told


# --- other pages -----------------------------------------------------------------------------------------------------


def start_view(problem: AnyProblem, *, texts: Mapping[str, str], action: str) -> dict[str, Any]:
    """Return the values of start.html: what it is about, how it works, and a button that begins it."""
    return {
        "title": _title(problem, texts),
        "welcome": paragraphs(_text(texts, "welcome")),
        "about": _about(problem),
        "what": outlook(problem),
        "objectives": [
            {"name": shown(o.name, SHORT), "unit": shown(o.unit, SHORT), "goal": goal_words(o)}
            for o in problem.objectives
        ],
        "notes": [inert(note) for note in notes(problem)],
        "action": action,
    }


def _about(problem: AnyProblem) -> list[tuple[str, str]]:
    """Return what a problem says about itself: paragraphs, and drawings made of letters, which keep their lines."""
    found = []
    for part in problem.about.replace("\r\n", "\n").split("\n\n"):
        lines = [line for line in part.splitlines() if line.strip()]
        if lines:
            drawn = all(line.startswith("   ") for line in lines)
            found.append(("drawn", "\n".join(map(inert, lines))) if drawn else ("text", inert(part.strip())))
    return found


def message_view(title: str, sentence: str, *, action: tuple[str, str] | None = None) -> dict[str, Any]:
    """Return the values of message.html: what happened, and a link (its words and address) to go on by."""
    return {
        "title": shown(title),
        "sentences": paragraphs(sentence),
        "action": None if action is None else (shown(action[0]), action[1]),
    }
