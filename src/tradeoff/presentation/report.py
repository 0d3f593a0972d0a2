"""A result to keep: one HTML file that needs nothing else, with the decision, what it rests on, and how to repeat it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from tradeoff.decisions import Ranking
from tradeoff.interview import VERSION, Interview
from tradeoff.presentation import svg
from tradeoff.presentation.answers import AnswerLine, lines_of, pair_names
from tradeoff.presentation.cards import AmountRow
from tradeoff.presentation.pareto import Picture, pareto_picture
from tradeoff.presentation.problems import extent, notes
from tradeoff.presentation.ranking import LINEAR, RankingTable, ordinals, ranking_table
from tradeoff.presentation.result import Importance, Result, result
from tradeoff.presentation.stories import heaviest_first
from tradeoff.presentation.text import clipped, one_line
from tradeoff.problem import Presentable

if TYPE_CHECKING:
    import jinja2

TEMPLATES = "tradeoff.presentation"


@dataclass(frozen=True)
class ReportAnswer:
    """A question with the names of its two sides, and what was answered."""

    names: tuple[str, ...]  # of A and B; none of a larger question, which lists its own, and of a statement
    line: AnswerLine


@dataclass(frozen=True)
class Report:
    """Everything that a report says."""

    title: str
    result: Result
    rows: tuple[tuple[AmountRow, Importance], ...]
    labels: tuple[tuple[str, str], ...]
    ranking: RankingTable
    picture: Picture | None
    answers: tuple[ReportAnswer, ...]
    facts: tuple[tuple[str, str], ...]  # what it takes to repeat it
    notes: tuple[str, ...]
    linear: str = LINEAR

    @property
    def style(self) -> str:
        """The style sheets, to be put into the file."""
        return "\n".join((svg.STATIC / name).read_text(encoding="utf-8") for name in ("drawing.css", "report.css"))


def report(problem: Presentable, interview: Interview, ranked: Ranking, *, title: str = "", repeat: str = "") -> Report:
    """Return what a report says of an interview; ``repeat`` is the command or address that it came from."""
    recommendation = interview.recommendation
    found = result(problem, recommendation, heaviest_first(problem.show(recommendation.option)), interview.finished)
    story = found.card.stories[0] if found.card.title else None
    return Report(
        title=clipped(title or problem.title),
        result=found,
        rows=tuple(zip(found.amounts, found.importance, strict=True)),
        labels=story.labels if story is not None else (),
        ranking=ranking_table(problem, ranked, ordinals(interview)),
        picture=pareto_picture(problem, recommendation),
        answers=tuple(
            ReportAnswer(pair_names(problem, interview, line.number), line) for line in lines_of(problem, interview)
        ),
        facts=_facts(problem, interview, repeat),
        notes=tuple(notes(problem)),
    )


def _facts(problem: Presentable, interview: Interview, repeat: str) -> tuple[tuple[str, str], ...]:
    header = interview.state.header
    settings = ", ".join(f"{key}={value}" for key, value in sorted(header.settings.items()) if value is not None)
    last: datetime = interview.state.last or header.at
    found = [
        ("problem", f"{one_line(problem.name)}: {extent(problem)}"),
        ("fingerprint", problem.fingerprint),
        ("begun", f"{header.at:%Y-%m-%d %H:%M} UTC, last answer {last:%Y-%m-%d %H:%M} UTC"),
        ("asked by", f"tradeoff {header.version or 'of unknown version'}, strategy {header.strategy}"),
        ("settings", settings or "none"),
        ("this report by", f"tradeoff {VERSION}"),
    ]
    return tuple((name, one_line(words)) for name, words in [*found, *([("again", repeat)] if repeat else [])])


@cache
def environment() -> jinja2.Environment:
    """Return the environment of the templates: everything is escaped, and a missing value is an error."""
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.PackageLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, auto_reload=False,
    )  # fmt: skip
    made.globals |= drawing_globals()
    return made


def drawing_globals() -> dict[str, Any]:
    """Return the drawings that the templates of this room ask for."""
    return {"share_bar": svg.share_bar, "quantile_dots": svg.quantile_dots}


def report_html(made: Report) -> str:
    """Return a report as one HTML file: everything in it, nothing loaded, no scripts."""
    from markupsafe import Markup

    values = {"report": made, "style": Markup(made.style)}
    return environment().get_template("report.html").render(values)
