"""``tradeoff simulate``: many simulated respondents, a summary, a folder with a row for each, a picture."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradeoff.apps.cli.output import STORAGE, cell, console, emit, fail, table
from tradeoff.apps.cli.source import PROBLEM_HELP, Source, json_option, problem_argument

if TYPE_CHECKING:
    from collections.abc import Callable

    from tradeoff.simulation import Population

PROGRESS_AFTER = 2.0  # seconds until a progress bar is shown


@click.command(epilog=PROBLEM_HELP)
@problem_argument
@click.option("--respondents", default=1000, show_default=True, metavar="N", help="How many simulated respondents.")
@click.option("--precision", default=0.01, show_default=True, metavar="X",
              help="The smallest difference that a respondent notices, as a share of the best they can get.")  # fmt: skip
@click.option("--strategy", default="careful", show_default=True, metavar="NAME", help="How the questions are chosen.")
@click.option("-o", "--option", "options", multiple=True, metavar="NAME=VALUE",
              help="An option of the strategy, such as basis=spanner. Can be repeated.")  # fmt: skip
@click.option("--error-rate", default=0.0, show_default=True, metavar="P", help="The share of wrong answers.")
@click.option("--kind", default="exact", show_default=True, metavar="KIND",
              help="How they answer: slips-10, logistic-10, tired, changing-5, ...; a wrong one lists all.")  # fmt: skip
@click.option("--prior", type=click.Path(path_type=Path), metavar="FILE",
              help="What to suppose of them before they answer: JSON, as tradeoff.learn_prior makes it.")  # fmt: skip
@click.option("--max-questions", type=int, metavar="N", help="Ask each respondent at most this many questions.")
@click.option("--seed", default=0, show_default=True, metavar="N",
              help="Random seed; respondent i depends only on the seed and i.")  # fmt: skip
@click.option("--jobs", type=int, metavar="N",
              help="The number of processes; by default one per core, or one where that is faster.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Write a row per respondent to a folder of Parquet files. After an interruption, the same command "
              "continues with the parts that are not finished.")  # fmt: skip
@click.option("--plot", type=click.Path(path_type=Path), metavar="FILE", help="Plot the results as .svg, .png or .pdf.")
@json_option
def simulate(
    source: Source,
    respondents: int,
    precision: float,
    strategy: str,
    options: tuple[str, ...],
    error_rate: float,
    kind: str,
    prior: Path | None,
    max_questions: int | None,
    seed: int,
    jobs: int | None,
    out: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Ask many simulated respondents.

    Shows how many questions they needed and how good their plans are. Their weights are drawn uniformly at random; with
    --kind they err near ties, tire, favour a side, change their minds or want nothing linear.
    Regret is relative: the share of the best possible gain that the recommended plan misses. For comparison, the regret
    without any questions, with equal weights, is shown as well.
    """
    from tradeoff import simulation
    from tradeoff.apps.cli.arguments import prior_from, settings_from
    from tradeoff.simulation.results import check_picture, plot_results

    given = settings_from(options, "simulate")
    if prior is not None:
        given["prior"] = prior_from(prior)
    if plot is not None:
        check_picture(plot)
    loaded = source.read_with_notes()
    begin = time.monotonic()
    try:
        with progress_bar() as progress:
            run = simulation.simulate(
                loaded, respondents, precision=precision, strategy=strategy, error_rate=error_rate, seed=seed,
                max_questions=max_questions, kind=kind, jobs=jobs, out=out, progress=progress, **given,
            )  # fmt: skip
        if plot is not None:
            plot_results(run.results, plot, heading(run, loaded.title))
    except KeyboardInterrupt:
        if out is not None:
            click.echo(f"finished parts are saved in {out}; the same command continues from there", err=True)
        raise
    except OSError as error:
        fail(f"cannot write the results: {error}", STORAGE)
    seconds = time.monotonic() - begin
    if as_json:
        emit(summary_data(run, loaded.name, seconds))
    else:
        print_summary(run, loaded.title, seconds)
        for path in filter(None, (out, plot)):
            click.echo(f"written: {path}")


@contextmanager
def progress_bar() -> Iterator[Callable[[int, int], None]]:
    """Yield a function that shows the progress of a long run on a terminal's stderr."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    err = console(on_stderr=True)
    bar = Progress(
        TextColumn("respondents"), BarColumn(), MofNCompleteColumn(), TextColumn("left:"), TimeRemainingColumn(),
        console=err, transient=True,
    )  # fmt: skip
    task = bar.add_task("respondents", total=None)
    # A timer, because the first part may take long.
    late = threading.Timer(PROGRESS_AFTER, bar.start)
    late.daemon = True
    if err.is_terminal:
        late.start()
    try:
        yield lambda done, total: bar.update(task, completed=done, total=total)
    finally:
        late.cancel()
        if late.is_alive():
            late.join()
        if bar.live.is_started:
            bar.stop()


def summary_data(run: Population, name: str, seconds: float) -> dict[str, Any]:
    """Return the summary for programs."""
    from dataclasses import asdict

    settings = {key: value for key, value in asdict(run.settings).items() if key != "options"}
    return {
        "problem": name,
        "settings": {**settings, "options": dict(run.settings.options)},
        **asdict(run.summary()),
        "seconds": seconds,
    }


def heading(run: Population, title: str) -> str:
    """Return what was simulated, in a line."""
    used = run.settings
    options = "".join(f", {name} {value}" for name, value in used.options.items() if name != "prior")
    options += ", with a prior" if used.options.get("prior") else ""
    slips = f", {100 * used.error_rate:g}% wrong answers" if used.error_rate else ""
    slips += f", respondents of the kind {used.kind}" if used.kind != "exact" else ""
    precision = f"{100 * used.precision:g}%"
    return f"{title}: {len(run):,} respondents, strategy {used.strategy}{options}, precision {precision}{slips}"


def print_summary(run: Population, title: str, seconds: float) -> None:
    """Print the summary for people."""
    from tradeoff.presentation.certainty import exceeded_words

    found, settings = run.summary(), run.settings
    made = table("", ">mean", ">p50", ">p95", ">worst")
    asked = found.questions
    made.add_row(*map(cell, ("questions", f"{asked.mean:.1f}", f"{asked.p50:g}", f"{asked.p95:g}", f"{asked.worst:g}")))
    lines = {"regret, %": found.regret, "regret without asking, %": found.baseline}
    if found.bound is not None:
        lines["certificate, %"] = found.bound
    for label, spread in lines.items():
        amounts = (spread.mean, spread.p50, spread.p95, spread.worst)
        made.add_row(*map(cell, (label, *(f"{100 * amount:.3g}" for amount in amounts))))
    out = console()
    out.print(cell(heading(run, title)), style="bold")
    out.print(made)
    notes = [f"{100 * found.complete:.4g}% of the interviews were completed."]
    for kind, count in found.exceeded.items():
        notes.append(exceeded_words(kind, count.stated, count.exceeded))
    if settings.error_rate:
        notes.append(f"{run.results.errors.sum():,} of {run.results.questions.sum():,} answers were wrong.")
    prepared, each = 1000 * found.precomputation, 1000 * found.seconds_per_respondent
    notes.append(
        f"{each:,.3g} ms per respondent, after {prepared:,.0f} ms of shared preparation; {seconds:.1f} s in all."
    )
    out.print(cell(" ".join(notes)))
