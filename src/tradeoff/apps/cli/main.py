"""The ``tradeoff`` command: reads arguments, calls the library, prints. Nothing is computed here.

Everything heavy is imported inside the commands, so that ``tradeoff --help`` answers at once.
"""

from __future__ import annotations

from typing import Any

import click

from tradeoff.apps.cli.ask import ask
from tradeoff.apps.cli.compile import compile_
from tradeoff.apps.cli.explain import explain
from tradeoff.apps.cli.group import group
from tradeoff.apps.cli.output import INTERRUPTED, INVALID, STORAGE, USAGE, emit, fail, working
from tradeoff.apps.cli.rank import plot, rank
from tradeoff.apps.cli.report import report
from tradeoff.apps.cli.serve import serve
from tradeoff.apps.cli.simulate import simulate
from tradeoff.apps.cli.source import PROBLEM_HELP, Source, json_option, problem_argument, weights_option
from tradeoff.apps.cli.study import study


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


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="tradeoff")
def main() -> None:
    """Find the plan that is best for you, by answering a few easy questions.

    A decision problem has several objectives (time, cost, comfort, ...) and no single best plan: it depends on what
    matters to you.

    \b
    tradeoff ask commute                              answer a few questions, get your plan
    tradeoff serve commute                            the same in the browser
    tradeoff rank commute answers.jsonl               the best few for you, and why not another one
    tradeoff plot commute answers.jsonl -o plot.svg   all options in a picture
    tradeoff report commute answers.jsonl -o my.html  the result as one file to keep
    tradeoff group commute ann.jsonl bo.jsonl         one choice for several people
    tradeoff study create mine commute                a study with many participants
    tradeoff problems                                 the bundled problems
    tradeoff show commute                             its objectives, and the best and worst of each
    tradeoff solve commute --weights time=3,comfort=1 the best plan for stated weights
    tradeoff explain commute --weights time=3         the same plan as a few stories
    tradeoff check my-problem.toml                    find mistakes in a problem file
    tradeoff simulate commute --respondents 1000      ask many simulated respondents
    tradeoff compile commute -o compiled.npz          solve once, so that asking solves nothing
    """


for command in (ask, compile_, explain, group, plot, rank, report, serve, simulate, study):
    main.add_command(command)


@main.command()
@json_option
def problems(as_json: bool) -> None:
    """List the bundled problems with their sizes."""
    from tradeoff.apps.cli.pages import print_problems
    from tradeoff.presentation.problems import sizes
    from tradeoff.sources import examples, load

    found = [load(name) for name in examples()]
    if as_json:
        emit([sizes(problem) for problem in found])
    else:
        print_problems(found)


@main.command(epilog=PROBLEM_HELP)
@problem_argument
@json_option
def show(source: Source, as_json: bool) -> None:
    """Show a problem's size and objectives, with the best and worst of each."""
    from tradeoff.apps.cli.pages import print_problem
    from tradeoff.presentation.data import problem_data

    loaded = source.read()
    if as_json:
        emit(problem_data(loaded))
    else:
        print_problem(loaded)


@main.command(epilog=PROBLEM_HELP)
@problem_argument
@json_option
def check(source: Source, as_json: bool) -> None:
    """Check a problem: what is wrong, where, and what to do.

    The exit code is 0 if the problem is valid and 3 if it is not.
    """
    from tradeoff.apps.cli.pages import print_check, too_many_objectives
    from tradeoff.errors import ProblemError
    from tradeoff.presentation.problems import notes, sizes

    try:
        loaded = source.read()
    except ProblemError as error:
        if as_json:
            emit({"valid": False, "error": str(error)})
        raise
    found = [*notes(loaded), *too_many_objectives(loaded)]
    if as_json:
        emit({"valid": True, **sizes(loaded), "notes": found})
    else:
        print_check(loaded, found)


@main.command(epilog=PROBLEM_HELP)
@problem_argument
@weights_option
@json_option
def solve(source: Source, weights: str, as_json: bool) -> None:
    """Find the best plan for stated weights.

    Weights are on gains: 1 is the whole way from the worst to the best that can be expected of an objective, so that
    minutes and euros can be compared. A negative weight asks for less of the gain.
    """
    from tradeoff.apps.cli.arguments import weights_from
    from tradeoff.apps.cli.pages import print_solution
    from tradeoff.presentation.data import solution_data

    loaded = source.read_with_notes()
    vector = weights_from(weights, loaded)
    with working("Solving ..."):
        (best,) = loaded.best([vector])
    if as_json:
        emit(solution_data(loaded, vector, best))
    else:
        print_solution(loaded, vector, best)
