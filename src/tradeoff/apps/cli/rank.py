"""``tradeoff rank`` and ``tradeoff plot``: what a saved interview says of the options.

Nothing heavy is imported before a command runs, so that ``tradeoff --help`` answers at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tradeoff.apps.cli.output import cell, console, emit, working
from tradeoff.apps.cli.source import PROBLEM_HELP, Source, json_option, problem_argument

if TYPE_CHECKING:
    from tradeoff.interview import Interview
    from tradeoff.problem import Presentable

LOG = click.Path(path_type=Path)
LOG_HELP = "LOG is the file of an interview, as --log of `tradeoff ask` saves it or the page offers it for download. "


def interview_of(problem: Presentable, path: Path) -> Interview:
    """Return the interview of a log."""
    from tradeoff.interview import Interview

    with working("Reading the answers ..."):
        return Interview.resume(problem, path)


def note_unfinished(interview: Interview, path: Path) -> None:
    """Say on stderr that an interview is not finished."""
    from tradeoff.presentation.text import without_controls

    if not interview.finished:
        click.echo(
            f"note: {without_controls(str(path))} is not finished; this is what its answers say so far", err=True
        )


def write(path: Path, text: str) -> None:
    """Write a file, and say so on stderr."""
    from tradeoff.errors import ArgumentError
    from tradeoff.presentation.text import without_controls

    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ArgumentError(f"cannot write {path}: {error.strerror}; choose another file") from error
    click.echo(f"written: {without_controls(str(path))}", err=True)


@click.command(epilog=LOG_HELP + PROBLEM_HELP)
@problem_argument
@click.argument("log", type=LOG)
@click.option(
    "--places", default=5, show_default=True, type=click.IntRange(1, 1000), metavar="N", help="How many to list."
)
@click.option(
    "--why-not",
    "rivals",
    multiple=True,
    metavar="NAME",
    help="Say why this one is not what is recommended: an item by its name, or a place of the ranking. Can be repeated.",
)
@click.option("--what-if", "if_more", is_flag=True, help="Say what would be recommended if something mattered more.")
@json_option
def rank(source: Source, log: Path, places: int, rivals: tuple[str, ...], if_more: bool, as_json: bool) -> None:
    """Rank the options by the answers of an interview.

    The best few by name, what each wins and loses against the first, and for which share of all preferences that fit the
    answers it is the best. Preferences are weights of the objectives; every weight vector that fits counts the same.
    """
    from tradeoff.apps.cli.afterwards import ranking_block, what_if_block, why_not_block
    from tradeoff.decisions import ranking, why_not
    from tradeoff.presentation.decision_data import change_data, ranking_data, rival_data

    loaded = source.read_with_notes()
    interview = interview_of(loaded, log)
    note_unfinished(interview, log)
    with working("Comparing ..."):
        found = ranking(interview, places=places)
    if as_json:
        data = ranking_data(loaded, interview, found)
        data["why_not"] = [rival_data(loaded, interview, why_not(interview, name, found), found) for name in rivals]
        emit(data | ({"what_if": change_data(loaded, interview)} if if_more else {}))
        return
    out = console()
    blocks = [] if rivals or if_more else [ranking_block(loaded, interview, found, out.width)]
    blocks += [why_not_block(loaded, interview, name, found, out.width) for name in rivals]
    blocks += [what_if_block(loaded, interview, out.width)] if if_more else []
    for block in blocks:
        out.print(block)


@click.command(epilog=LOG_HELP + PROBLEM_HELP)
@problem_argument
@click.argument("log", type=LOG, required=False)
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.svg",
              help="The SVG file to write.")  # fmt: skip
@click.option("--axes", metavar="NAME,NAME", help="The two objectives to draw; by default those that matter most.")
def plot(source: Source, log: Path | None, output: Path, axes: str | None) -> None:
    """Draw all options over two objectives as an SVG file.

    Options that another one beats in everything are drawn faintly. With the log of an interview, what is recommended
    and its runner-up are marked. Of a model, the plans that are best for some weights are drawn.
    """
    from tradeoff.errors import ArgumentError
    from tradeoff.presentation.pareto import pareto_picture, pareto_svg

    loaded = source.read_with_notes()
    found = None if log is None else interview_of(loaded, log).recommendation
    chosen = () if axes is None else tuple(name.strip() for name in axes.split(","))
    with working("Drawing ..."):
        picture = pareto_picture(loaded, found, chosen)
    if picture is None:
        raise ArgumentError("fewer than two objectives can be changed by what is chosen; there is nothing to draw")
    write(output, pareto_svg(loaded, picture))
    console().print(cell(picture.words))
