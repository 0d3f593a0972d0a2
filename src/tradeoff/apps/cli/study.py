"""``tradeoff study``: create a study, serve it, watch it, take its data away."""

from __future__ import annotations

import functools
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradeoff.apps.cli.group import menu_option, within_option
from tradeoff.apps.cli.serve import (
    ListenOptions,
    StrategyOptions,
    admin_command,
    listen_options,
    store_option,
    store_words,
    strategy_options,
)
from tradeoff.apps.cli.source import PROBLEM_HELP, Source, options_from, problem_argument

if TYPE_CHECKING:
    from tradeoff.stores import Log, Store
    from tradeoff.studies import Study

PROBLEM_OPTION_HELP = (
    "The study's problem, where it is made by a program, such as python:MODULE:NAME or gym:NAME. A program is run only if you "
    "name it here, never because a store says so."
)
TEXT_HELP = "A text of the page: title, welcome, question or thanks; NAME=@FILE reads it from a file. Can be repeated."


@click.group()
def study() -> None:
    """Ask many people the same way, lose nothing, and take the data away in one file.

    \b
    tradeoff study create mine commute --text welcome=@welcome.txt
    tradeoff study serve mine
    tradeoff study list
    tradeoff study export mine --out mine.zip
    tradeoff study group mine
    tradeoff study backup backup.db
    """


def names_program(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the option --problem; it receives the named problem, or None, as ``source``."""

    @click.option("--problem", metavar="PROBLEM", help=PROBLEM_OPTION_HELP)
    @click.option("-w", "--with", "others", multiple=True, metavar="NAME=VALUE",
                  help="An option of that problem's source; can be repeated.")  # fmt: skip
    @functools.wraps(command)
    def run(problem: str | None, others: tuple[str, ...], **arguments: Any) -> Any:
        from tradeoff.errors import ArgumentError

        if problem is None and others:
            raise ArgumentError("--with is an option of the problem's source; name the problem with --problem too")
        return command(source=None if problem is None else Source(problem, options_from(others)), **arguments)

    return run


@study.command(epilog=PROBLEM_HELP)
@click.argument("name")
@problem_argument
@strategy_options
@click.option("--checks/--no-checks", default=True, show_default=True,
              help="Add two questions that show whether people pay attention; nobody is excluded.")  # fmt: skip
@click.option("--open/--closed", "is_open", default=True, show_default=True,
              help="Whether anyone can begin, or only people who were given a link.")  # fmt: skip
@click.option("--sharing/--no-sharing", default=True, show_default=True,
              help="Whether people can make a link to their result, for others to see.")  # fmt: skip
@click.option("--participants", default=0, type=click.IntRange(0, 100_000), metavar="N",
              help="Make this many links to give to people.")  # fmt: skip
@click.option("--text", "texts", multiple=True, metavar="NAME=TEXT", help=TEXT_HELP)
@store_option
def create(
    name: str,
    source: Source,
    chosen: StrategyOptions,
    checks: bool,
    is_open: bool,
    sharing: bool,
    participants: int,
    texts: tuple[str, ...],
    store: str,
) -> None:
    """Create a study: everything is fixed, and the problem is kept with it."""
    from tradeoff.apps.cli.arguments import questions_for
    from tradeoff.apps.cli.output import working
    from tradeoff.errors import ArgumentError
    from tradeoff.sources import runs_code
    from tradeoff.stores import open_store
    from tradeoff.studies import Study
    from tradeoff.studies.compute import Compute
    from tradeoff.studies.service import Context, StudyService

    if store == "memory:":
        raise ArgumentError("a study in memory: is gone when this command ends; name a store that lasts")
    problem = source.read_with_notes()
    settings = chosen.settings | questions_for(problem, chosen.strategy, chosen.settings, chosen.questions)
    with working("Checking the study ..."):
        made = Study.of(
            problem, name, strategy=chosen.strategy, settings=settings, texts=texts_from(texts),
            seed=chosen.seed, checks=checks, open=is_open, sharing=sharing, source=source.data(),
        )  # fmt: skip
    with open_store(store) as opened:
        made.save(opened, problem)
        service = StudyService(made, problem, opened, Compute(Context.of, (opened, made, problem)))
        tokens = [service.invite() for _ in range(participants)]
    click.echo(f"The study {name!r} is created.", err=True)
    for token in tokens:
        click.echo(f"/i/{token}")
    call = ["tradeoff", "study", "serve", name, *store_words(store)]
    if runs_code(source.name):
        call += ["--problem", source.name]
        call += [word for key, value in source.options.items() for word in ("--with", f"{key}={value}")]
    click.echo(f"Serve it with: {shlex.join(call)}", err=True)
    click.echo(f"Its admin page is /admin/{made.admin} on your server; keep this secret.", err=True)
    click.echo(f"To see that again: {admin_command(name, store)}", err=True)


@study.command("list")
@store_option
@click.option("--links", metavar="NAME", help="Print the links of this study's people instead.")
@click.option("--admin", metavar="NAME", help="Print the secret address of this study's admin page instead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def list_studies(store: str, links: str | None, admin: str | None, as_json: bool) -> None:
    """List the studies, how many people take part, and how many have finished."""
    from tradeoff.apps.cli.output import cell, console, emit, table
    from tradeoff.stores import open_store
    from tradeoff.studies import Study

    with open_store(store, write=False) as opened:
        if links is not None or admin is not None:
            made = Study.read(opened, links or admin or "")
            paths = [f"/admin/{made.admin}"] if links is None else [f"/i/{token}" for token in opened.names(links)]
            if as_json:
                emit(paths)
            for path in () if as_json else paths:
                click.echo(path)
            return
        found, damaged = progress_of_all(opened)
    if as_json:
        emit(found)
        report(damaged, "everything else is listed")
        return
    shown = table("study", "problem", "strategy", ">people", ">answers", ">finished", ">flagged", "created")
    shown.columns[0].no_wrap, shown.columns[0].overflow = True, "fold"  # export needs the whole name
    shown.columns[0].min_width = max((len(row["name"]) for row in found), default=0)
    for row in found:
        shown.add_row(*map(cell, (row["name"], row["problem"], row["strategy"], row["people"], row["answers"],
                                 row["finished"], row["flagged"], row["created"][:16])))  # fmt: skip
    console().print(shown)
    report(damaged, "everything else is listed")


def progress_of_all(store: Store) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the progress of every study that can be read, and what cannot be read."""
    from tradeoff.errors import StoreError
    from tradeoff.studies import Study

    found: list[dict[str, Any]] = []
    damaged: list[str] = []
    for name in Study.names(store):
        try:
            made = Study.read(store, name)
        except StoreError as error:
            damaged.append(f"the study {name!r} cannot be read: {error}")
            continue
        row, unreadable = progress(made, store.logs(name))
        found.append(row)
        damaged += damage_lines(name, unreadable)
    return found, damaged


def progress(made: Study, logs: Mapping[str, Log]) -> tuple[dict[str, Any], dict[int, str]]:
    """Return how far a study is, and why some participants' logs cannot be read, by their number."""
    from tradeoff.errors import LogError
    from tradeoff.log import fold
    from tradeoff.model import SKIP
    from tradeoff.stores import DamagedError

    unreadable: dict[int, str] = {}
    total: Counter[str] = Counter()
    for number, log in enumerate(logs.values(), start=1):
        try:
            if isinstance(log, DamagedError):
                raise log
            state = fold(log)
        except (DamagedError, LogError) as error:
            unreadable[number] = str(error)
            continue
        answers = sum(given.reply != SKIP and given.check is None for given in state.given)
        finished, flagged = state.ended is not None, "failed" in state.flags.values()
        total.update(answers=answers, finished=finished, flagged=flagged)
    row = {
        "name": made.name,
        "problem": made.problem,
        "strategy": made.strategy,
        "people": len(logs),
        "answers": total["answers"],
        "finished": total["finished"],
        "flagged": total["flagged"],
        "damaged": len(unreadable),
        "created": made.created,
    }
    return row, unreadable


def damage_lines(name: str, unreadable: Mapping[int, str]) -> list[str]:
    """Return a line for each participant whose log cannot be read; the number stands for the secret link."""
    return [f"participant {number} of the study {name!r} cannot be read: {why}" for number, why in unreadable.items()]


def report(damaged: Sequence[str], rest: str) -> None:
    """Raise a StoreError if something could not be read, after the rest is done."""
    from tradeoff.errors import StoreError

    if damaged:
        raise StoreError("\n".join([*damaged, f"{rest}; restore what is damaged from a backup"]))


@study.command()
@click.argument("name")
@store_option
@click.option("--out", type=click.Path(path_type=Path), metavar="PATH",
              help="A .zip file or a folder; NAME.zip if left out. Nothing is overwritten.")  # fmt: skip
@click.option("--format", "kind", type=click.Choice(["csv", "jsonl", "parquet"]), default="csv", show_default=True,
              help="How the tables are written.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@names_program
def export(name: str, store: str, out: Path | None, kind: Any, as_json: bool, source: Source | None) -> None:
    """Take the data away: a row per answer, a row per person, every event, and the problem itself.

    A server may be running; what it has acknowledged is in the export.
    """
    from tradeoff.apps.cli.output import emit, working
    from tradeoff.stores import open_store
    from tradeoff.studies import Study
    from tradeoff.studies.coverage import stored_coverage
    from tradeoff.studies.export import export as write
    from tradeoff.studies.export import unreadable

    named = None if source is None else source.read()
    with open_store(store, write=False) as opened, working("Reading the answers ..."):
        made = Study.read(opened, name)
        problem = Study.problem_of(opened, name, named)
        logs = opened.logs(name)
        written = write(made, problem, logs, out or Path(f"{name}.zip"), kind, stored_coverage(opened, made, problem))
        damaged = damage_lines(name, unreadable(problem, logs))
        unchecked = opened.unchecked(name)
    if as_json:
        emit({"people": len(logs) - len(damaged), "unchecked": unchecked, "written": [str(path) for path in written]})
    else:
        for path in written:
            click.echo(f"written: {path}")
    if unchecked:
        click.echo(
            f"note: the last answers of {unchecked:,} of {len(logs):,} participants were stored by an earlier version, "
            "without checksums; changes to them in the store cannot be noticed",
            err=True,
        )
    report(damaged, "everything else is exported")


@study.command()
@click.argument("name")
@store_option
@menu_option
@within_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@names_program
def group(name: str, store: str, menu: int, within: float | None, as_json: bool, source: Source | None) -> None:
    """Choose together: one plan, or a small menu, for everybody who has finished.

    People are called by their numbers, in the order in which they began.
    """
    from tradeoff.apps.cli.group import tell_group
    from tradeoff.stores import open_store
    from tradeoff.studies import Study
    from tradeoff.studies.together import finished_people

    named = None if source is None else source.read()
    with open_store(store, write=False) as opened:
        problem = Study.problem_of(opened, Study.read(opened, name).name, named)
        logs = opened.logs(name)
    people = finished_people(problem, logs)
    left_out = len(logs) - len(people.names)
    if left_out:
        click.echo(f"note: {left_out:,} of {len(logs):,} have not finished, and are left out", err=True)
    tell_group(problem, people, menu, within, as_json)


@study.command()
@click.argument("file", type=click.Path(path_type=Path))
@store_option
def backup(file: Path, store: str) -> None:
    """Copy the whole database to FILE, while it is served or not.

    The copy is a private file of its own with everything acknowledged so far, and is checked after writing. Nothing is
    overwritten. Copying a served database by other means misses the answers in its write-ahead log.
    """
    from tradeoff.stores.backup import backup as copy

    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("Copying ...")
            copy(store, file, lambda done, total: bar.update(task, completed=done, total=total))
    else:
        copy(store, file)
    click.echo(f"written: {file}")


@study.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@store_option
def import_folder(folder: Path, store: str) -> None:
    """Copy the studies of a store folder:FOLDER, as versions up to 0.3 could write it, into a database."""
    from tradeoff.stores import open_store
    from tradeoff.stores.folder import import_folder as copy

    with open_store(store) as opened:
        copied = copy(folder, opened)
    click.echo(f"copied: {copied:,} logs")


@study.command()
@click.argument("name")
@store_option
@names_program
@listen_options
def serve(name: str, store: str, listen: ListenOptions, source: Source | None) -> None:
    """Serve a study in the browser, with its own page for each person and one for you."""
    from tradeoff.apps.cli.serve import one_thread_each, run

    one_thread_each()
    from tradeoff.stores import open_store
    from tradeoff.studies import Study

    listen.check()
    named = None if source is None else source.read()
    with open_store(store) as opened:
        made = Study.read(opened, name)
        run(opened, store, made, Study.problem_of(opened, name, named), listen, source)


def texts_from(given: tuple[str, ...]) -> dict[str, str]:
    """Return the texts written as NAME=TEXT or NAME=@FILE."""
    from tradeoff.errors import ArgumentError

    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise ArgumentError(f"--text {text[:60]!r} is not of the form NAME=TEXT, such as title='My study'")
        if value.startswith("@"):
            try:
                value = Path(value[1:]).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise ArgumentError(f"the text {name!r} cannot be read from {value[1:]!r}: {error}") from None
        found[name.strip()] = value.strip()
    return found
