"""What a table leaves open is asked for on the terminal, one line per column, and repeated as a command."""

from __future__ import annotations

import itertools
import json
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradeoff.presentation.text import without_controls

if TYPE_CHECKING:
    from tradeoff.apps.cli.source import Source
    from tradeoff.errors import UndecidedError
    from tradeoff.sources import AnyProblem
    from tradeoff.sources.tables.deciding import Undecided

MOST_GUESSES = 256  # directions that are compared with the fingerprint in a log
GOALS = {"l": "min", "less": "min", "min": "min", "m": "max", "more": "max", "max": "max", "n": "", "no": ""}
GAPS = {"d": "drop", "drop": "drop", "s": "label", "show": "label", "label": "label"}
LABELS = {"min": "less", "max": "more"}

Read = Callable[[dict[str, Any]], "AnyProblem"]


def settle(error: UndecidedError, read: Read, source: Source, log: Path | None) -> tuple[AnyProblem, dict[str, Any]]:
    """Return the problem and the options that settle what was open, from the log or by asking; raise the error if neither."""
    options: dict[str, Any] = dict(source.options)
    if log is not None and (known := _known_from(log, error, read, options)) is not None:
        return known
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or error.others:
        raise error
    options = _asked(error, options)
    from tradeoff.errors import UndecidedError

    try:
        problem = read(options)
    except UndecidedError as another:  # with commas read as they are meant, a column may turn out to be one of numbers
        problem, options = settle(another, read, replace(source, options=options), None)
        return problem, options
    made = replace(source, options=options)
    context = click.get_current_context(silent=True)
    command = context.command_path.split() if context is not None else ["tradeoff", "ask"]
    click.echo(f"\nTo repeat this: {shlex.join([*command, *made.arguments()])}\n", err=True)
    return problem, options


def _asked(error: UndecidedError, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with a person's answers."""
    from tradeoff.sources.tables.deciding import Undecided, decided

    undecided = [one for one in error.undecided if isinstance(one, Undecided)]
    directions = [one for one in undecided if one.topic == "direction"]
    if error.unused:
        click.echo("Not weighed:", err=True)
        for head, reason in error.unused.items():
            click.echo(f"  {without_controls(head)}: {without_controls(reason)}", err=True)
    if directions:
        click.echo("The table does not say what is better. For each column, type:", err=True)
        click.echo("  l  less is better     m  more is better     n  it does not count", err=True)
    width = max((len(one.column) for one in directions), default=0)
    answers: list[str] = []
    out: set[str] = set()  # columns that do not count, whose gaps do not matter either
    for one in undecided:
        answers.append("label" if one.topic == "gaps" and one.column in out else _answer(one, width))
        if one.topic == "direction" and not answers[-1]:
            out.add(one.column)
    if len(out) == len(error.objectives):
        raise click.UsageError("nothing counts, so that nothing can be chosen; let at least one column count")
    return decided(undecided, answers, options, error.objectives)


def _answer(one: Undecided, width: int) -> str:
    """Return what a person says about one thing."""
    match one.topic:
        case "direction":
            asked = f"{one.column:<{width}}  {one.found}" + (f"  ({one.why})" if one.why else "")
            default = LABELS.get(one.proposed or "")
            return _choice(asked, GOALS, default, "l, m or n")
        case "gaps":
            click.echo(f"{one.column} has no number in {one.found}.", err=True)
            return _choice("  d  leave those rows out     s  only show the column", GAPS, None, "d or s")
    click.echo(f"{one.found}, in {one.column}: which mark is the decimal one?", err=True)
    return _choice("  .  a point     ,  a comma", {".": ".", ",": ","}, None, "a point or a comma")


def _choice(asked: str, words: dict[str, str], default: str | None, possible: str) -> str:
    while True:
        text = without_controls(asked) + (f"  [{default}]" if default else "")
        said = click.prompt(text, default=default or "", show_default=False, prompt_suffix=" ? ", err=True)
        if said.strip().lower() in words:
            return words[said.strip().lower()]
        click.echo(f"  type {possible}", err=True)


# --- the log knows -----------------------------------------------------------------------------------------------------


def _known_from(
    log: Path, error: UndecidedError, read: Read, options: dict[str, Any]
) -> tuple[AnyProblem, dict[str, Any]] | None:
    """Return the problem that a log was made with: its fingerprint tells which directions were meant."""
    header = _header(log)
    named = header.get("objectives")
    if not isinstance(named, list) or any(getattr(one, "topic", "") != "direction" for one in error.undecided):
        return None
    from tradeoff.sources.tables.deciding import objectives_text

    chosen = [(name, goal) for name, goal in error.objectives if name in named or len(named) == len(error.objectives)]
    open_ = [name for name, goal in chosen if goal is None]
    if 2 ** len(open_) > MOST_GUESSES:
        return None
    for goals in itertools.product(("max", "min"), repeat=len(open_)):
        meant = dict(zip(open_, goals, strict=True))
        tried = {**options, "objectives": objectives_text((name, goal or meant[name]) for name, goal in chosen)}
        problem = _same_fingerprint(read(tried), header.get("problem"))
        if problem is not None:
            return problem, tried
    return None


def _same_fingerprint(problem: AnyProblem, fingerprint: object) -> AnyProblem | None:
    """Return the problem if it has this fingerprint, or would have had it when "(min)" was never taken for minutes."""
    from tradeoff.problems.catalogue import Catalogue

    if problem.fingerprint == fingerprint:
        return problem
    if not isinstance(problem, Catalogue):
        return None
    aims: Sequence[Any] = [replace(o, unit="") if o.unit == "min" else o for o in problem.objectives]
    older = Catalogue(
        problem.values,
        aims,
        problem.names,
        labels=problem.labels,
        name=problem.name,
        title=problem.title,
        notes=problem.notes,
    )
    return older if older.fingerprint == fingerprint else None


def _header(log: Path) -> dict[str, Any]:
    try:
        with log.open(encoding="utf-8") as file:
            found = json.loads(file.readline(1 << 20))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
