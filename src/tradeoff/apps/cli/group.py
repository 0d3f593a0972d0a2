"""``tradeoff group``: several people's interviews about one problem give one choice."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tradeoff.apps.cli.output import cell, console, emit, table, working
from tradeoff.apps.cli.rank import LOG, LOG_HELP, interview_of, note_unfinished
from tradeoff.apps.cli.source import PROBLEM_HELP, Source, json_option, problem_argument

if TYPE_CHECKING:
    from tradeoff.decisions.group import Group
    from tradeoff.problem import Presentable

menu_option = click.option(
    "--menu",
    default=2,
    show_default=True,
    type=click.IntRange(1, 100),
    metavar="N",
    help="How many plans the menu has.",
)
within_option = click.option(
    "--within",
    type=click.FloatRange(0, 1, max_open=True),
    metavar="SHARE",
    help="Instead, the fewest plans with which nobody loses more than this share, such as 0.05.",
)


@click.command(epilog=LOG_HELP + PROBLEM_HELP)
@problem_argument
@click.argument("logs", type=LOG, nargs=-1, required=True, metavar="LOG...")
@menu_option
@within_option
@json_option
def group(source: Source, logs: tuple[Path, ...], menu: int, within: float | None, as_json: bool) -> None:
    """Choose together: one plan for several people, or a small menu.

    The plan with the most for all on average, the fairest (with which the person who keeps least keeps most), and a menu in
    which everybody finds something. For each person it says what choosing together costs.
    """
    from tradeoff.decisions.group import group as people_of

    loaded = source.read_with_notes()
    interviews = [interview_of(loaded, path) for path in logs]
    for interview, path in zip(interviews, logs, strict=True):
        note_unfinished(interview, path)
    names = [path.stem for path in logs]
    names = names if len(set(names)) == len(names) else [str(path) for path in logs]
    tell_group(loaded, people_of(interviews, names), menu, within, as_json)


def tell_group(problem: Presentable, people: Group, menu: int, within: float | None, as_json: bool) -> None:
    """Print the choices of a group."""
    from tradeoff.presentation.groups import choices_of, group_data, group_words

    with working("Comparing ..."):
        choices = choices_of(people, problem, menu, within)
    if as_json:
        emit(group_data(problem, people, choices))
        return
    out, told = console(), group_words(problem, people, choices)
    for one in told.choices:
        out.print(cell(f"{one.title[0].upper()}{one.title[1:]}", "bold"))
        out.print(cell(one.sentence))
    made = table("who", "best alone", *(f">{one.title.split(' with ')[0]}" for one in told.choices))
    for i, name in enumerate(told.people):
        made.add_row(*map(cell, (name, told.own[i], *(one.shares[i] for one in told.choices))))
    out.print(made)
    out.print(cell(told.basis))
