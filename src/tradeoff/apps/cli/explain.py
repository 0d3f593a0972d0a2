"""``tradeoff explain``: the best plan for stated weights as a few stories, printed and drawn.

Nothing heavy is imported before the command runs, so that ``tradeoff --help`` answers at once.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradeoff.apps.cli.output import cell, console, emit, table
from tradeoff.apps.cli.source import PROBLEM_HELP, Source, problem_argument, weights_option

if TYPE_CHECKING:
    from tradeoff.model import Alternative, Lottery
    from tradeoff.problem import Presentable

JOINED = "\N{NO-BREAK SPACE}"


@click.command(epilog=PROBLEM_HELP)
@problem_argument
@weights_option
@click.option(
    "--method",
    type=click.Choice(["expand", "flow", "faithful"]),
    help="How the stories are found: step by step from the start (expand, the default), by decomposing the plan's "
    "flow (flow), or so that their outcomes are spread like those of the plan itself (faithful).",
)
@click.option("--svg", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Draw it as an SVG file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def explain(source: Source, weights: str, method: str | None, svg: Path | None, as_json: bool) -> None:
    """Explain the best plan for stated weights by a few stories.

    Each story is one way things can go, with its share. There are at most one more of them than objectives, and their
    average is exactly that of the plan.
    """
    from tradeoff.apps.cli.arguments import weights_from
    from tradeoff.presentation.data import explanation_data

    loaded = source.read()
    vector = weights_from(weights, loaded.objectives)
    (best,) = loaded.best([vector])
    lottery = lottery_of(loaded, best, method)
    if svg is not None:
        draw(loaded, best, lottery, svg)
    if as_json:
        emit(explanation_data(loaded, vector, best, lottery))
    else:
        print_explanation(loaded, lottery)


def lottery_of(problem: Presentable, best: Alternative, method: str | None) -> Lottery:
    """Return the plan as a lottery, heaviest first; only plans with paths can be told in several ways."""
    from tradeoff.errors import ArgumentError
    from tradeoff.presentation.stories import heaviest_first

    if method is None:
        return heaviest_first(problem.show(best))
    if not problem.has_paths:
        raise ArgumentError(
            f"--method {method} is about the paths of a plan, but {problem.name!r} has no paths; leave out --method"
        )
    show: Any = problem.show  # a problem with paths takes more than the protocol says
    return heaviest_first(show(best, method=method))


def draw(problem: Presentable, best: Alternative, lottery: Lottery, path: Path) -> None:
    """Write the plan as an SVG file, and say so on stderr."""
    from tradeoff.errors import ArgumentError
    from tradeoff.presentation.sheet import plan_svg
    from tradeoff.presentation.text import without_controls

    try:
        path.write_text(plan_svg(problem, best, lottery), encoding="utf-8")
    except OSError as error:
        raise ArgumentError(f"cannot write {error.filename}: {error.strerror}; choose another file") from error
    click.echo(f"written: {without_controls(str(path))}", err=True)


def print_explanation(problem: Presentable, lottery: Lottery) -> None:
    """Print each story with its share, then the average."""
    from tradeoff.presentation.numbers import chance, share_words
    from tradeoff.presentation.sentences import plan_lead
    from tradeoff.presentation.stories import average, common_total, is_certain, outcomes, path_words, worst_and_best

    out = console()
    total, certain = common_total(lottery), is_certain(lottery)
    shares = [""] if total is None else share_words(lottery.weights, total)
    out.print(cell(f"The best plan: {problem.title}", "bold"))
    out.print(cell(plan_lead(lottery)))
    for share, trajectory, amounts in zip(shares, lottery.trajectories, outcomes(lottery), strict=True):
        out.print()
        if share:
            out.print(cell(share, "bold"))
        for step in path_words(trajectory):
            out.print(cell(indented(step, "  - ", out.width)))
        if share:
            items = ", ".join(f"{name} {amount}".replace(" ", JOINED) for name, amount in amounts)
            out.print(cell(indented(f"comes to: {items}", "  ", out.width)))
        if not certain:
            out.print(cell(f"  exactly this happens {chance(trajectory.probability)} of the time", "dim"))
    made = table("", ">comes to" if certain else ">on average", *([">at worst", ">at best"] if total else []))
    ends = worst_and_best(lottery) if total else [()] * len(lottery.objectives)
    for (name, amount), both in zip(average(lottery), ends, strict=True):
        made.add_row(cell(name), cell(amount, "bold"), *map(cell, both))
    out.print()
    out.print(made)


def indented(text: str, mark: str, width: int) -> str:
    """Return a text behind a mark, wrapped so that it continues below its own first word."""
    below = " " * len(mark)
    lines = textwrap.wrap(text, max(width, 20), initial_indent=mark, subsequent_indent=below, break_on_hyphens=False)
    return "\n".join(lines).replace(JOINED, " ")
