"""The PROBLEM of a command: a name with the options of its source, read when the command runs."""

from __future__ import annotations

import functools
import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tradeoff.apps.cli.missing import ProblemName

if TYPE_CHECKING:
    from tradeoff.sources import AnyProblem

Command = TypeVar("Command", bound=Callable[..., Any])

PROBLEM_HELP = (
    "PROBLEM is a bundled problem (see `tradeoff problems`), a file (.toml, .json, .npz, a table of items as .csv, .xlsx or "
    ".parquet, .graphml, .umb, .prism, .jani, ...) or SCHEME:NAME, such as gym:FrozenLake-v1. See docs/sources.md."
)

# The kinds of question, as ``tradeoff.evidence`` has them: not imported, so that --help answers at once.
KINDS = ("pairs", "best-worst-4")
QUESTIONS_HELP = (
    f"What a question is about: {', '.join(KINDS)}. Without this, best-worst-4 for items and routes, pairs for plans of many "
    "steps."
)

KNOW_HELP = (
    'Something you know already, by the names of objectives or items: "price > speed" (matters more), "price >= 20%", '
    '"price 20% to 40%" (of all that matters), "Alto > Brio" (preferred), "price 9, size 2 > price 7, size 1" (amounts). '
    "Can be repeated."
)
FLAGS, NAMED = (
    ("keep_dominated", "renormalise"),
    ("objectives", "curves"),
)  # options of sources that have a name of their own

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
weights_option = click.option(
    "--weights",
    required=True,
    metavar="NAME=NUMBER,...",
    help="How much each objective matters, relative to its attainable range; 0 for those left out. "
    "Example: time=3,comfort=1",
)


@dataclass(frozen=True)
class Source:
    """A problem as it was named on the command line."""

    name: str
    options: dict[str, str | bool]

    def read(self, log: Path | None = None) -> AnyProblem:
        """Return the problem; corrections are noted on the problem instead of warned about.

        What a table leaves open is asked for on a terminal, or known from the ``log`` of an interview about it; it becomes
        part of the options, so that whatever names this source later says it too.
        """
        import warnings

        from tradeoff.apps.cli.deciding import settle
        from tradeoff.apps.cli.reading import reading_bar
        from tradeoff.errors import ProblemWarning, UndecidedError
        from tradeoff.sources import load
        from tradeoff.sources.messages import options_written

        def once(options: dict[str, str | bool]) -> AnyProblem:
            with warnings.catch_warnings(), reading_bar(), options_written(written):
                warnings.simplefilter("ignore", ProblemWarning)
                return load(self.name, **options)

        try:
            return once(self.options)
        except UndecidedError as error:
            problem, decided = settle(error, once, self, log)
            self.options.update(decided)
            return problem

    def read_with_notes(self) -> AnyProblem:
        """Return the problem, and print on stderr what is worth knowing about it, such as columns that are not weighed."""
        from tradeoff.apps.cli.pages import print_notes

        problem = self.read()
        print_notes(problem, on_stderr=True)
        return problem

    def data(self) -> dict[str, Any]:
        """Return the name and options as data, to read the problem again later."""
        return {"name": self.name, "options": dict(self.options)}

    def arguments(self) -> list[str]:
        """Return the command-line arguments that name this problem."""
        return [self.name, *(word for name, value in self.options.items() for word in words(name, value))]


def words(name: str, value: str | bool) -> list[str]:
    """Return an option of a source as words of the command line.

    >>> words("decimal", ","), words("keep_dominated", True), words("objectives", "price:min")
    (['--with', 'decimal=,'], ['--keep-dominated'], ['--objectives', 'price:min'])
    """
    if name == "limit":
        return [word for part in str(value).split(";") for word in ("--limit", part.strip())]
    if name in FLAGS and str(value).lower() == "true":
        return [f"--{name.replace('_', '-')}"]
    return [f"--{name}", str(value)] if name in NAMED else ["--with", f"{name}={value}"]


def written(name: str, value: str) -> str:
    """Return an option of a source as a message writes it for people at a command line."""
    return shlex.join(words(name, value))


def problem_argument(command: Command) -> Command:
    """Add the argument PROBLEM and the options of its source to a command, which receives them as ``source``."""

    @click.argument("problem", type=ProblemName())
    @click.option(
        "--objectives",
        metavar="NAME:min,NAME:max",
        help="The columns or attributes to use as objectives, and whether less or more is better.",
    )
    @click.option(
        "--limit",
        "limits",
        multiple=True,
        metavar="LIMIT",
        help='What a plan must keep, such as "price <= 500" or "balcony = yes". Can be repeated.',
    )
    @click.option(
        "--curves",
        metavar="SHAPE",
        help="Learn curves instead of fixed weights, of items in a table: concave (the first bit counts most) or monotone "
        "(thresholds too); concave:4 has four pieces.",
    )
    @click.option("--keep-dominated", is_flag=True, help="Keep items that another item beats on every objective.")
    @click.option(
        "--renormalise", is_flag=True, help="Scale probabilities that do not sum to 1 instead of refusing them."
    )
    @click.option(
        "-w",
        "--with",
        "others",
        multiple=True,
        metavar="NAME=VALUE",
        help="Another option of the source, such as horizon=20. Can be repeated.",
    )
    @click.option(
        "--device",
        type=click.Choice(["auto", "cpu", "gpu"]),
        help="Where a model is solved; auto, the default, is a graphics card if there is one and the model is large.",
    )
    @functools.wraps(command)
    def run(
        problem: str,
        objectives: str | None,
        limits: tuple[str, ...],
        curves: str | None,
        keep_dominated: bool,
        renormalise: bool,
        others: tuple[str, ...],
        device: str | None,
        **arguments: Any,
    ) -> Any:
        if device is not None:
            os.environ["TRADEOFF_DEVICE"] = device  # which other processes of this command inherit
        flags: dict[str, str | bool] = {"keep_dominated": True} if keep_dominated else {}
        flags |= {"renormalise": True} if renormalise else {}
        flags |= {"objectives": objectives} if objectives is not None else {}
        flags |= {"curves": curves} if curves is not None else {}
        flags |= {"limit": "; ".join(limits)} if limits else {}
        return command(source=Source(problem, options_from(others) | flags), **arguments)

    return run  # type: ignore[return-value]


def options_from(texts: tuple[str, ...]) -> dict[str, str | bool]:
    """Return the options written as ``horizon=20``, as texts; each source interprets its own."""
    from tradeoff.errors import ArgumentError

    found: dict[str, str | bool] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name.isidentifier():
            raise ArgumentError(f"--with {text!r} is not of the form NAME=VALUE, such as horizon=20")
        if name in found:
            raise ArgumentError(f"the option {name!r} is given twice; keep one of them")
        found[name] = value.strip()
    return found
