"""``tradeoff compile``: solve a problem once, so that interviews on it solve nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tradeoff.apps.cli.output import INCOMPLETE, console, emit
from tradeoff.apps.cli.source import PROBLEM_HELP, Source, json_option, problem_argument

if TYPE_CHECKING:
    from tradeoff.problems.coverage import Coverage
    from tradeoff.sources import AnyProblem

SAVE_AFTER = 30.0  # seconds between saves, or SAVE_SHARE times what a save takes
SAVE_SHARE = 20.0


@click.command("compile", epilog=PROBLEM_HELP)
@problem_argument
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), metavar="FILE",
              help="The .npz file to write. If it exists and was made from the same problem, the work goes on from "
              "it.")  # fmt: skip
@click.option("--tolerance", default=0.001, show_default=True, metavar="X",
              help="The share of the best possible gain that the plans may miss, whatever the weights.")  # fmt: skip
@click.option(
    "--seconds", type=float, metavar="N", help="Stop after about this long, with the guarantee reached by then."
)
@json_option
def compile_(source: Source, out: Path, tolerance: float, seconds: float | None, as_json: bool) -> None:
    """Solve a problem once for everybody.

    Finds plans such that for all weights the best of them is proved to be within the tolerance, and writes them to a file
    together with the problem. `tradeoff ask FILE`, `serve FILE` and `simulate FILE` then solve nothing, and every bound they
    state includes the tolerance. Ctrl-C keeps what was found; the same command goes on from there. The exit code is 5 if the
    tolerance was not reached.
    """
    from tradeoff.covering import better_coverages, prepared
    from tradeoff.errors import ProblemError
    from tradeoff.sources import load

    if out.suffix.lower() != ".npz":
        raise ProblemError(f"{out}: a compiled problem is written to .npz, not to {out.suffix!r}")
    problem = begun(source.read_with_notes(), load(out) if out.exists() else None, out)
    begin, saved, took, found = time.monotonic(), time.monotonic(), 0.0, None
    interrupted = False
    try:
        with guarantee_bar(tolerance) as show:
            for found in better_coverages(problem, tolerance):
                show(found)
                now = time.monotonic()
                if seconds is not None and now - begin >= seconds:
                    break
                if now - saved > max(SAVE_AFTER, SAVE_SHARE * took):
                    write(found, out)
                    saved = time.monotonic()
                    took = saved - now
    except KeyboardInterrupt:
        if found is None:
            raise
        interrupted = True
    assert found is not None  # there is always one
    found = prepared(found)
    write(found, out)
    report(found, out, tolerance, time.monotonic() - begin, as_json)
    if interrupted:
        raise KeyboardInterrupt
    if found.guarantee > tolerance:
        raise SystemExit(INCOMPLETE)


def begun(problem: AnyProblem, earlier: AnyProblem | None, out: Path) -> AnyProblem:
    """Return what to go on with: the coverage in the file, if it is one of this problem."""
    from tradeoff.errors import ProblemError
    from tradeoff.problems.coverage import Coverage

    if not problem.storable:
        raise ProblemError(f"{problem.name!r} cannot be compiled to a file: {problem.why_not_storable}")
    if earlier is None:
        return problem
    model = problem.model if isinstance(problem, Coverage) else problem
    if not isinstance(earlier, Coverage) or earlier.model.fingerprint != model.fingerprint:
        raise ProblemError(f"{out} exists and is not a compiled form of this problem; name another file, or delete it")
    return earlier


def write(coverage: Coverage, out: Path) -> None:
    """Write the file so that an interruption leaves the earlier one as it was."""
    from tradeoff.sources import save

    fresh = out.with_name(f".{out.stem}.new.npz")
    try:
        save(coverage, fresh)
        fresh.replace(out)
    finally:
        fresh.unlink(missing_ok=True)


def report(found: Coverage, out: Path, tolerance: float, seconds: float, as_json: bool) -> None:
    """Print how many plans there are and what is proved about them."""
    data = {
        "file": str(out),
        "plans": len(found.plans.values),
        "solved": len(found.proof.most),
        "tolerance": tolerance,
        "guarantee": found.guarantee,
        "slack": found.slack,
        "seconds": seconds,
    }
    if as_json:
        emit(data)
        return
    count = len(found.plans.values)
    click.echo(
        f"{count:,} plan{'s' * (count != 1)}: whatever the weights, the best of them is proved to miss at most "
        f"{found.guarantee_text} of the best possible gain."
    )
    if found.guarantee > tolerance:
        click.echo(f"The tolerance of {100 * tolerance:.3g}% was not reached; the same command goes on from here.")
    click.echo(f"written: {out}")


@contextmanager
def guarantee_bar(tolerance: float) -> Iterator[Callable[[Coverage], None]]:
    """Yield a function that shows the current guarantee on a terminal's stderr."""
    err = console(on_stderr=True)
    if not err.is_terminal:
        yield lambda found: None
        return
    import math

    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=err, transient=True
    ) as bar:
        task = bar.add_task("solving", total=1.0)

        def show(found: Coverage) -> None:
            # The guarantee falls by about the same factor in the same time, so the bar is logarithmic.
            share = math.log(max(found.guarantee, tolerance)) / math.log(tolerance)
            words = f"{len(found.plans.values):,} plans, within {found.guarantee_text} (wanted: {100 * tolerance:.3g}%)"
            bar.update(task, completed=min(1.0, max(0.0, share)), description=words)

        yield show
