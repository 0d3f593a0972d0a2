"""``tradeoff report``: a saved interview as one HTML file to keep."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from tradeoff.apps.cli.output import working
from tradeoff.apps.cli.rank import LOG, LOG_HELP, interview_of, write
from tradeoff.apps.cli.source import PROBLEM_HELP, Source, problem_argument


@click.command(epilog=LOG_HELP + PROBLEM_HELP)
@problem_argument
@click.argument("log", type=LOG)
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.html",
              help="The file to write.")  # fmt: skip
@click.option(
    "--title", default="", metavar="TEXT", help="What the decision is called; by default the problem's title."
)
def report(source: Source, log: Path, output: Path, title: str) -> None:
    """Write the result of an interview as one HTML file.

    The file holds the decision, the best few, a picture of all options, the risk, how sure it is, the questions and
    answers, and how to repeat it. It loads nothing, runs nothing, and prints well.
    """
    from tradeoff.decisions import ranking
    from tradeoff.presentation.report import report as report_of
    from tradeoff.presentation.report import report_html

    loaded = source.read()
    interview = interview_of(loaded, log)
    again = shlex.join(["tradeoff", "report", *source.arguments(), str(log), "-o", str(output)])
    with working("Writing the report ..."):
        text = report_html(report_of(loaded, interview, ranking(interview), title=title, repeat=again))
    write(output, text)
