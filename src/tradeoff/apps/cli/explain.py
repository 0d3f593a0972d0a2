"""``tradeoff explain``: the best plan for stated weights as a person reads it, printed and drawn.

Nothing heavy is imported before the command runs, so that ``tradeoff --help`` answers at once.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradeoff.apps.cli.source import PROBLEM_HELP, Source, takes_problem

if TYPE_CHECKING:
    from tradeoff.model import Alternative, Lottery, Vector
    from tradeoff.sources import AnyProblem

FILE = click.Path(dir_okay=False, path_type=Path)
TOGETHER = "\N{NO-BREAK SPACE}"


@click.command(epilog=PROBLEM_HELP)
@takes_problem
@click.option(
    "--weights",
    required=True,
    metavar="NAME=NUMBER,...",
    help="How much each objective matters, relative to its attainable range; those left out count 0. "
    "Example: time=3,comfort=1",
)
@click.option(
    "--method",
    type=click.Choice(["expand", "flow"]),
    help="How the stories are found: step by step from the start (expand, the default), or by taking the policy's "
    "flow apart (flow).",
)
@click.option("--svg", type=FILE, metavar="FILE", help="Draw it into an SVG file.")
@click.option("--png", type=FILE, metavar="FILE", help="Draw it into a PNG file (this needs matplotlib).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def explain(
    source: Source,
    weights: str,
    method: str | None,
    svg: Path | None,
    png: Path | None,
    as_json: bool,
) -> None:
    """Tell what the best plan for stated weights leads to, as a few stories.

    Each story is one way things can go, with its share. There are few of them (at most one more than objectives), yet
    their average is exactly that of the plan.
    """
    from tradeoff.apps.cli.arguments import weights_from
    from tradeoff.apps.cli.main import emit

    loaded = source.read()
    vector = weights_from(weights, loaded.objectives)
    (best,) = loaded.best([vector])
    lottery = told(loaded, best, method)
    draw(loaded, lottery, svg, png)
    if as_json:
        emit(explanation(loaded, vector, best, lottery))
    else:
        print_explanation(loaded, lottery)


def told(problem: AnyProblem, best: Alternative, method: str | None) -> Lottery:
    """Return the plan as a lottery, the largest share first; only the plans of MDPs can be told in several ways."""
    from tradeoff.errors import ArgumentError
    from tradeoff.representation.words import heaviest_first

    if method is None:
        return heaviest_first(problem.show(best))
    from tradeoff.problems.mdp import MDP

    if not isinstance(problem, MDP):
        raise ArgumentError(
            f"--method {method} is about the paths of a plan, but {problem.name!r} has no paths: "
            "something is chosen once; leave out --method"
        )
    return heaviest_first(problem.show(best, method=method))  # type: ignore[arg-type]


def draw(problem: AnyProblem, lottery: Lottery, svg: Path | None, png: Path | None) -> None:
    """Write the pictures that were asked for, and say so on stderr."""
    if svg is None and png is None:
        return
    from tradeoff.apps.cli.main import plain
    from tradeoff.errors import ArgumentError
    from tradeoff.representation.drawing import lottery_picture

    picture = lottery_picture(lottery, problem.title, getattr(problem, "places", None))
    try:
        if svg is not None:
            svg.write_text(picture.svg(), encoding="utf-8")
            click.echo(f"wrote {plain(str(svg))}", err=True)
        if png is not None:
            picture.png(png)
            click.echo(f"wrote {plain(str(png))}", err=True)
    except OSError as error:
        raise ArgumentError(f"cannot write {error.filename}: {error.strerror}; choose another file") from error


def explanation(problem: AnyProblem, weights: Vector, best: Alternative, lottery: Lottery) -> dict[str, Any]:
    """Return the lottery as plain data."""
    from tradeoff.representation.words import path_words, share_counts

    names = [o.name for o in problem.objectives]
    counts, total = share_counts(lottery.weights)
    return {
        "problem": problem.name,
        "weights": dict(zip(names, weights.tolist(), strict=True)),
        "score": float(weights @ best.value),
        "units": {o.name: o.unit for o in problem.objectives},
        "trajectories": [
            {
                "share": float(share),
                "count": count,
                "of": total,
                "probability": float(trajectory.probability),
                "words": path_words(trajectory),
                "states": list(trajectory.states),
                "actions": list(trajectory.actions),
                "outcome": dict(zip(names, trajectory.outcome.tolist(), strict=True)),
            }
            for share, count, trajectory in zip(lottery.weights, counts, lottery.trajectories, strict=True)
        ],
        "average": dict(zip(names, lottery.average.tolist(), strict=True)),
    }


def print_explanation(problem: AnyProblem, lottery: Lottery) -> None:
    """Print the lottery for people: each story with its share, then the average."""
    from rich.text import Text

    from tradeoff.apps.cli.main import plain
    from tradeoff.apps.cli.pages import cell, console, table
    from tradeoff.representation.words import (
        chance_words,
        heading_words,
        is_certain,
        outcome_words,
        path_words,
        share_words,
    )

    out = console()
    names = [o.name for o in lottery.objectives]
    outcomes, average = outcome_words(lottery)
    several, certain = len(outcomes) > 1, is_certain(lottery)
    out.print(Text(plain(f"The best plan: {problem.title}"), style="bold"))
    out.print(cell(heading_words(lottery)))
    for share, trajectory, amounts in zip(share_words(lottery.weights), lottery.trajectories, outcomes, strict=True):
        out.print()
        out.print(Text(share, style="bold"))
        for step in path_words(trajectory):
            out.print(cell(indented(step, "  - ", out.width)))
        if several:
            out.print(cell(indented(f"comes to: {kept_together(names, amounts)}", "  ", out.width)))
        if not certain:
            often = chance_words(trajectory.probability)
            out.print(Text(f"  exactly this happens {often} of the time", style="dim"))
    gains = lottery.outcomes * [o.sign for o in lottery.objectives]
    made = table("", ">comes to" if certain else ">on average", *([">at worst", ">at best"] if several else []))
    for j, name in enumerate(names):
        ends = (outcomes[int(gains[:, j].argmin())][j], outcomes[int(gains[:, j].argmax())][j]) if several else ()
        made.add_row(cell(name), Text(plain(average[j]), style="bold"), *map(cell, ends))
    out.print()
    out.print(made)


def kept_together(names: Sequence[str], amounts: Sequence[str]) -> str:
    """Return names with their amounts as a list whose items no line break parts."""
    items = (f"{name} {amount}".replace(" ", TOGETHER) for name, amount in zip(names, amounts, strict=True))
    return ", ".join(items)


def indented(text: str, mark: str, width: int) -> str:
    """Return a text behind a mark, wrapped so that it goes on below its own first word."""
    below = " " * len(mark)
    lines = textwrap.wrap(text, max(width, 20), initial_indent=mark, subsequent_indent=below, break_on_hyphens=False)
    return "\n".join(lines).replace(TOGETHER, " ")
