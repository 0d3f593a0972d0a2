"""How the commands print: tables for people, JSON for programs, errors on stderr."""

from __future__ import annotations

import json
import os
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, NoReturn

import click

from tradeoff.presentation.text import without_controls

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

# Exit codes: 0 fine, 1 internal error, 130 interrupted, and these.
USAGE, INVALID, STORAGE, INCOMPLETE, INTERRUPTED = 2, 3, 4, 5, 130


def fail(message: str, code: int) -> NoReturn:
    """Print an error on stderr and exit with this code."""
    click.echo(f"error: {without_controls(message)}", err=True)
    raise SystemExit(code)


def emit(data: object) -> None:
    """Print data as JSON on stdout."""
    try:
        click.echo(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))
    except BrokenPipeError:
        # The reader went away (`| head`); Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def working(message: str) -> AbstractContextManager[object]:
    """Return a context in which a terminal shows that the program is busy."""
    if not sys.stderr.isatty():
        return nullcontext()
    return console(on_stderr=True).status(message)


def console(on_stderr: bool = False) -> Console:
    """Return the console for people; it honours NO_COLOR and the terminal's width."""
    from rich.console import Console

    return Console(highlight=False, stderr=on_stderr)


def cell(text: object, style: str = "") -> Text:
    """Return a text without markup: names may hold brackets or control characters."""
    from rich.text import Text

    return Text(without_controls(str(text)), style=style)


def table(*headers: str, title: str | None = None) -> Table:
    """Return an empty table; headers that begin with ">" are for numbers."""
    from rich import box
    from rich.table import Table

    made = Table(
        box=box.SIMPLE_HEAD, title=None if title is None else cell(title), title_justify="left", pad_edge=False
    )
    for header in headers:
        made.add_column(cell(header.lstrip(">")), justify="right" if header.startswith(">") else "left")
    return made
