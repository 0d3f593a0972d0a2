"""``tradeoff serve``: the interview as a page in the browser.

Nothing heavy is imported before the command runs, so that ``tradeoff --help`` answers at once.
"""

from __future__ import annotations

import functools
import ipaddress
import logging
import os
import re
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tradeoff.apps.cli.source import KINDS, PROBLEM_HELP, QUESTIONS_HELP, Source, problem_argument

if TYPE_CHECKING:
    from tradeoff.sources import AnyProblem
    from tradeoff.stores import Store
    from tradeoff.studies import Study

STORE = "sqlite:///tradeoff.db"
STORE_VARIABLE = "TRADEOFF_STORE"  # instead of --store: a password on the command line can be seen by everybody
HOST_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]+\]", re.IGNORECASE)
HEADER_NAME = re.compile(r"[A-Za-z0-9-]{1,64}")

Command = TypeVar("Command", bound=Callable[..., Any])

store_option = click.option(
    "--store",
    default=STORE,
    show_default=True,
    envvar=STORE_VARIABLE,
    show_envvar=True,
    metavar="ADDRESS",
    help="Where answers are kept: sqlite:///FILE, or postgresql://USER@HOST/DATABASE for several servers.",
)


@dataclass(frozen=True)
class ListenOptions:
    """Where the page is served, and to whom."""

    host: str
    port: int
    workers: int | None  # None: as many as there are cores for
    hosts: tuple[str, ...]
    browser: bool
    limits: tuple[str, ...] = ()
    visitor_header: str | None = None
    drain: float = 0.0  # seconds for which it goes on after SIGTERM

    def check(self) -> None:
        """Raise an ArgumentError unless it is safe to listen there."""
        from tradeoff.apps.web.server import Limits
        from tradeoff.errors import ArgumentError

        for name in self.hosts:
            if name == "*":
                raise ArgumentError(
                    "--allowed-host '*' would let any web site talk to this server through a visitor's browser; "
                    "give each name that people use, such as --allowed-host study.example.org"
                )
            if not HOST_NAME.fullmatch(name):
                raise ArgumentError(f"--allowed-host {name} is not a name; give it without http:// and without a port")
        local = all(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in self.addresses())
        if not local and not self.hosts:
            raise ArgumentError(
                f"--host {self.host} lets other machines in; give the name by which they know this one with "
                "--allowed-host NAME, such as --allowed-host study.example.org"
            )
        if self.visitor_header is not None and not HEADER_NAME.fullmatch(self.visitor_header):
            raise ArgumentError(f"--visitor-header {self.visitor_header} is not a header's name, such as X-Real-IP")
        Limits.parse(self.limits)

    def addresses(self) -> tuple[str, ...]:
        """Return the numeric addresses to listen at; localhost has two."""
        from tradeoff.apps.web.server import resolve

        return resolve(self.host)

    def address(self, port: int) -> str:
        """Return the address to open."""
        name = self.hosts[0] if self.hosts else f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{name}:{port}"


def listen_options(command: Command) -> Command:
    """Add the options of where to listen and whom to serve to a command, which receives them as ``listen``."""

    @click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS",
                  help="The address to listen at; 0.0.0.0 lets other machines in.")  # fmt: skip
    @click.option("--port", default=8321, show_default=True, type=click.IntRange(0, 65535), metavar="N",
                  help="The port; 0 picks a free one.")  # fmt: skip
    @click.option("--allowed-host", "hosts", multiple=True, metavar="NAME",
                  help="A name by which other machines know this one; can be repeated.")  # fmt: skip
    @click.option("--workers", type=click.IntRange(1, 64), metavar="N",
                  help="How many processes compute questions (default: one for each core but one, at most 4).")  # fmt: skip
    @click.option("--visitor-limit", "visitor_limits", multiple=True, metavar="NAME=N",
                  help="A limit on what visitors may do: begins=120 (interviews begun by an address in ten minutes), "
                       "begins-total=12000, requests=16 (by an address at once) or requests-total=1000.")  # fmt: skip
    @click.option("--visitor-header", metavar="NAME",
                  help="Behind a proxy: the header in which it gives the visitor's address, such as X-Real-IP.")  # fmt: skip
    @click.option("--drain", default=0.0, show_default=True, type=click.FloatRange(0, 3600), metavar="SECONDS",
                  help="How long to go on after SIGTERM, while /healthz says that it shuts down.")  # fmt: skip
    @click.option(
        "--browser/--no-browser", default=None, help="Open the page in a browser (the default on a terminal)."
    )
    @functools.wraps(command)
    def run(
        host: str, port: int, hosts: tuple[str, ...], workers: int | None, visitor_limits: tuple[str, ...],
        visitor_header: str | None, drain: float, browser: bool | None, **arguments: Any,
    ) -> Any:  # fmt: skip
        opens = sys.stdout.isatty() if browser is None else browser
        return command(
            listen=ListenOptions(host, port, workers, hosts, opens, visitor_limits, visitor_header, drain),
            **arguments,
        )

    return run  # type: ignore[return-value]


@dataclass(frozen=True)
class StrategyOptions:
    """How the questions are chosen."""

    strategy: str
    settings: dict[str, Any]
    seed: int
    questions: str | None = None  # what they are about, where that was said


def strategy_options(command: Command) -> Command:
    """Add the options of the strategy to a command, which receives them as ``chosen``."""

    @click.option("--strategy", default="careful", show_default=True, metavar="NAME",
                  help="How the questions are chosen.")  # fmt: skip
    @click.option("-o", "--option", "options", multiple=True, metavar="NAME=VALUE",
                  help="A strategy's own option, such as target=0.05; can be repeated.")  # fmt: skip
    @click.option("--prior", type=click.Path(path_type=Path), metavar="FILE",
                  help="What to suppose of people before they answer: JSON, as tradeoff.learn_prior makes it.")  # fmt: skip
    @click.option("--questions", type=click.Choice(KINDS), metavar="KIND", help=QUESTIONS_HELP)
    @click.option(
        "--max-questions",
        type=click.IntRange(min=0),
        metavar="N",
        help="Ask each participant at most this many questions.",
    )
    @click.option("--seed", default=0, type=click.IntRange(min=0), show_default=True, metavar="N",
                  help="Random seed.")  # fmt: skip
    @functools.wraps(command)
    def run(
        strategy: str, options: tuple[str, ...], questions: str | None, prior: Path | None, max_questions: int | None,
        seed: int, **arguments: Any,
    ) -> Any:  # fmt: skip
        one_thread_each()
        from tradeoff.apps.cli.arguments import prior_from, settings_from

        settings = settings_from(options, "ask")
        settings |= {} if prior is None else {"prior": prior_from(prior)}
        settings |= {} if max_questions is None else {"max_questions": max_questions}
        return command(chosen=StrategyOptions(strategy, settings, seed, questions), **arguments)

    return run  # type: ignore[return-value]


@click.command(epilog=PROBLEM_HELP)
@problem_argument
@strategy_options
@store_option
@listen_options
def serve(source: Source, chosen: StrategyOptions, store: str, listen: ListenOptions) -> None:
    """Ask people in the browser: a page with a few options at a time, and the result at the end.

    Every answer is in the store before the next question is shown. Stop with Ctrl-C; the same command continues where
    everyone was. It needs no network.
    """
    from tradeoff.apps.cli.arguments import questions_for
    from tradeoff.stores import open_store
    from tradeoff.studies.study import Study, common_name

    listen.check()
    problem = source.read_with_notes()
    settings = chosen.settings | questions_for(problem, chosen.strategy, chosen.settings, chosen.questions)
    fixed = {"strategy": chosen.strategy, "seed": chosen.seed}
    name, earlier = (common_name(problem, {**fixed, **one}) for one in (settings, chosen.settings))
    with open_store(store) as opened:
        new, names = False, Study.names(opened)
        if name not in names and chosen.questions is None and earlier in names:
            name = earlier  # began when pairs were the default: people go on where they were
        if name in names:
            study = Study.read(opened, name)
        else:
            study = Study.of(
                problem, name, strategy=chosen.strategy, settings=settings, seed=chosen.seed, checks=False,
                source=source.data(),
            )  # fmt: skip
            study.save(opened, problem)
            new = True
        run(opened, store, study, problem, listen, source, show_secret=new)


def one_thread_each() -> None:
    """Keep the linear algebra of each request in its own thread; call this before NumPy is loaded."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def run(
    store: Store,
    address: str,
    study: Study,
    problem: AnyProblem,
    listen: ListenOptions,
    source: Source | None,
    *,
    show_secret: bool = False,
) -> None:
    """Serve a study until interrupted, and print where; ``show_secret`` prints the address of its admin page as well."""
    from tradeoff.apps.web.server import Limits, ServerOptions, run_server
    from tradeoff.errors import StoreError

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    options = ServerOptions(
        listen.addresses(), listen.port, listen.hosts, Limits.parse(listen.limits), listen.visitor_header, listen.drain,
        listen.workers,
    )  # fmt: skip
    click.echo("Getting ready ...", err=True)
    run_server(
        study, problem, store, options, store_address=address, load=None if source is None else source.read,
        ready=lambda port: announce(listen, port, study, address, show_secret),
    )  # fmt: skip
    store.close()
    if store.lost:
        raise StoreError(store.lost)
    click.echo("\nStopped. Everything is saved; the same command continues.", err=True)


def announce(listen: ListenOptions, port: int, study: Study, store: str, show_secret: bool) -> None:
    """Print where the page is, and open it. The admin page's secret is printed once, because output is often kept."""
    import webbrowser

    address = listen.address(port)
    click.echo(f"Answer questions at  {address}/")
    if show_secret:
        click.echo(f"Watch the answers at {address}/admin/{study.admin}")
    else:
        click.echo(f"For the address of the admin page: {admin_command(study.name, store)}")
    click.echo("Stop with Ctrl-C.")
    sys.stdout.flush()
    if listen.browser:
        webbrowser.open(f"{address}/")


def admin_command(name: str, store: str) -> str:
    """Return the command that prints the secret address of a study's admin page."""
    return shlex.join(["tradeoff", "study", "list", "--admin", name, *store_words(store)])


def store_words(store: str) -> list[str]:
    """Return the option that names a store in a command; none for the store that the command uses anyway."""
    return [] if store == (os.environ.get(STORE_VARIABLE) or STORE) else ["--store", without_password(store)]


def without_password(store: str) -> str:
    """Return the address of a store without its password.

    >>> without_password("postgresql://ann:secret@example.org/study")
    'postgresql://ann:***@example.org/study'
    """
    return re.sub(r"(password=)[^&]*", r"\1***", re.sub(r"(://[^:/@]+):.*@", r"\1:***@", store))
