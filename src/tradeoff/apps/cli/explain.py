"""``tradeoff explain``: the best plan for stated weights as a few stories.

Nothing heavy is imported before the command runs, so that ``tradeoff --help`` answers at once.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import click

from tradeoff.apps.cli.output import cell, console, emit, table
from tradeoff.apps.cli.source import PROBLEM_HELP, Source, problem_argument, weights_option

if TYPE_CHECKING:
    from tradeoff.model import Lottery, Option
    from tradeoff.problem import Presentable

JOINED = "\N{NO-BREAK SPACE}"


@click.command(epilog=PROBLEM_HELP)
@problem_argument
@weights_option
@click.option(
    "--method",
    type=click.Choice(["faithful", "expand", "flow"]),
    help="How the stories are found: so that their outcomes are spread like those of the plan itself (faithful, the "
    "default), step by step from the start (expand), or by decomposing the plan's flow (flow).",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def explain(source: Source, weights: str, method: str | None, as_json: bool) -> None:
    """Explain the best plan for stated weights by a few stories.

    Each story is one way things can go, with its weight in the average. There are at most one more of them than
    objectives, and by their weights they come to exactly the plan's average. Below it is said how much the amounts really
    vary.
    """
    from tradeoff.apps.cli.arguments import weights_from
    from tradeoff.presentation.data import explanation_data

    loaded = source.read_with_notes()
    vector = weights_from(weights, loaded)
    (best,) = loaded.best([vector])
    lottery = lottery_of(loaded, best, method)
    if as_json:
        emit(explanation_data(loaded, vector, best, lottery))
    else:
        print_explanation(loaded, best, lottery)


def lottery_of(problem: Presentable, best: Option, method: str | None) -> Lottery:
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


def print_explanation(problem: Presentable, best: Option, lottery: Lottery) -> None:
    """Print what to do when and each story, then the average and how the amounts really vary."""
    from tradeoff.apps.cli.cards import print_guide
    from tradeoff.presentation.plans import guide
    from tradeoff.presentation.risk import basis, risks, strip_key
    from tradeoff.presentation.sentences import plan_lead
    from tradeoff.presentation.stories import (
        average,
        chance_words,
        common_total,
        is_certain,
        outcomes,
        path_words,
        share_words,
    )

    out = console()
    total = common_total(lottery)
    said = zip(share_words(lottery, total), chance_words(lottery), strict=True)
    out.print(cell(f"The best plan: {problem.title}", "bold"))
    followed = guide(problem, best)
    if followed is not None:
        print_guide(out, followed)
        out.print()
    out.print(cell(plan_lead(lottery)))
    for (share, chance), trajectory, amounts in zip(said, lottery.trajectories, outcomes(lottery), strict=True):
        out.print()
        if share:
            out.print(cell(share, "bold"))
        for step in path_words(trajectory, problem.wording):
            out.print(cell(indented(step, "  - ", out.width)))
        if share:
            items = ", ".join(f"{name} {amount}".replace(" ", JOINED) for name, amount in amounts)
            out.print(cell(indented(f"comes to: {items}", "  ", out.width)))
        if chance:
            out.print(cell(f"  {chance}", "dim"))
    spread = risks(lottery)
    made = table("", ">comes to" if is_certain(lottery) else ">on average", *(["how it varies"] if spread else []))
    for j, (name, amount) in enumerate(average(lottery)):
        made.add_row(cell(name), cell(amount, "bold"), *([cell(spread[j].words)] if spread else []))
    out.print()
    out.print(made)
    if spread:
        drawn = table("", "20 times")
        for risk in spread:
            drawn.add_row(cell(risk.name), cell(risk.strip()))
        out.print(drawn)
        out.print(cell(f"{strip_key()} {basis(lottery)}", "dim"))


def indented(text: str, mark: str, width: int) -> str:
    """Return a text behind a mark, wrapped so that it continues below its own first word."""
    below = " " * len(mark)
    lines = textwrap.wrap(text, max(width, 20), initial_indent=mark, subsequent_indent=below, break_on_hyphens=False)
    return "\n".join(lines).replace(JOINED, " ")
