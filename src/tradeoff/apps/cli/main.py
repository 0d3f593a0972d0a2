"""The ``tradeoff`` command: reads arguments, calls the library, prints. Nothing is computed here.

Everything heavy is imported inside the commands, so that ``tradeoff --help`` answers at once.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn

import click

from tradeoff.apps.cli.ask import ask
from tradeoff.apps.cli.explain import explain
from tradeoff.apps.cli.serve import serve
from tradeoff.apps.cli.simulate import simulate
from tradeoff.apps.cli.source import PROBLEM_HELP, Source, takes_problem
from tradeoff.apps.cli.study import study

# 0 fine, 1 internal error, 2 usage, 3 invalid model, 4 storage, 5 budget exhausted, 130 interrupted
USAGE, INVALID, STORAGE, INTERRUPTED = 2, 3, 4, 130


class Commands(click.Group):
    """The command group; turns the library's errors into a line on stderr and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        from tradeoff.errors import LogError, ProblemError, StoreError, TradeoffError

        try:
            return super().invoke(ctx)
        except ProblemError as error:
            fail(str(error), INVALID)
        except (LogError, StoreError) as error:
            fail(str(error), STORAGE)
        except TradeoffError as error:
            fail(str(error), USAGE)
        except KeyboardInterrupt:
            fail("interrupted", INTERRUPTED)


def fail(message: str, code: int) -> NoReturn:
    """Print an error for people on stderr and end with this exit code."""
    click.echo(f"error: {plain(message)}", err=True)
    raise SystemExit(code)


def plain(text: str) -> str:
    """Return a text without the control characters that could steer a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="tradeoff")
def main() -> None:
    """Find the plan that is best for you, by answering a few easy questions.

    A decision problem has several objectives (time, cost, comfort, ...) and no single best plan: it depends on what
    matters to you.

    \b
    tradeoff ask commute                              answer a few questions, get your plan
    tradeoff serve commute                            the same in the browser
    tradeoff study create mine commute                a study with many participants
    tradeoff problems                                 what is bundled
    tradeoff show commute                             objectives, sizes, the best and worst of each
    tradeoff solve commute --weights time=3,comfort=1 the best plan for stated weights
    tradeoff explain commute --weights time=3         what it leads to, as a few stories
    tradeoff check my-problem.toml                    find mistakes in a problem file
    tradeoff simulate commute --users 1000 ...        ask many simulated people
    """


main.add_command(ask)
main.add_command(explain)
main.add_command(serve)
main.add_command(simulate)
main.add_command(study)


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def problems(as_json: bool) -> None:
    """List the bundled problems with their sizes."""
    from tradeoff.apps.cli import pages
    from tradeoff.sources import examples, load

    found = [load(name) for name in examples()]
    if as_json:
        emit([pages.sizes(problem) for problem in found])
    else:
        pages.print_problems(found)


@main.command(epilog=PROBLEM_HELP)
@takes_problem
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def show(source: Source, as_json: bool) -> None:
    """Show a problem: its objectives, its size, and the best and worst of each objective."""
    from tradeoff.apps.cli import pages

    loaded = source.read()
    if as_json:
        emit(pages.description(loaded))
    else:
        pages.print_description(loaded)


@main.command(epilog=PROBLEM_HELP)
@takes_problem
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def check(source: Source, as_json: bool) -> None:
    """Check a problem file and say what is wrong, where, and what to do.

    The exit code is 0 if the problem is valid and 3 if it is not.
    """
    from tradeoff.apps.cli import pages

    loaded = source.read()
    if as_json:
        emit({"valid": True, **pages.sizes(loaded), "notes": pages.notes(loaded)})
    else:
        pages.print_check(loaded)


@main.command(epilog=PROBLEM_HELP)
@takes_problem
@click.option(
    "--weights",
    required=True,
    metavar="NAME=NUMBER,...",
    help="How much each objective matters, relative to its attainable range; those left out count 0. "
    "Example: time=3,comfort=1",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def solve(source: Source, weights: str, as_json: bool) -> None:
    """Find the best plan for stated weights.

    Weights are on gains: 1 is the whole way from the worst to the best that can be expected of an objective, so that
    minutes and euros can be compared. A negative weight asks for less of the gain.
    """
    from tradeoff.apps.cli import pages
    from tradeoff.apps.cli.arguments import weights_from

    loaded = source.read()
    vector = weights_from(weights, loaded.objectives)
    with working("Solving ..."):
        (best,) = loaded.best([vector])
        solution = pages.solution(loaded, vector, best)
    if as_json:
        emit(solution)
    else:
        pages.print_solution(loaded, vector, best)


def working(message: str) -> AbstractContextManager[object]:
    """Return a context in which a terminal shows that something is being done; elsewhere it shows nothing."""
    if not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(message)


def emit(data: object) -> None:
    """Print data as JSON on stdout."""
    try:
        click.echo(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))
    except BrokenPipeError:
        # The reader went away (`| head`); Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
