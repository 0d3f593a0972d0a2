"""``tradeoff ask``: an interview in the terminal, by single keys, kept in a file if wished.

Nothing heavy is imported before the command runs, so that ``tradeoff --help`` answers at once.
"""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradeoff.apps.cli.output import INCOMPLETE, cell, console, emit
from tradeoff.apps.cli.source import (
    KINDS,
    KNOW_HELP,
    PROBLEM_HELP,
    QUESTIONS_HELP,
    Source,
    problem_argument,
)

if TYPE_CHECKING:
    from rich.console import Console

    from tradeoff.interview import Interview
    from tradeoff.log import ShownQuestion
    from tradeoff.model import Reply
    from tradeoff.problem import Presentable
    from tradeoff.simulation.respondents import LinearRespondent
    from tradeoff.stores import JsonLines

FILE = click.Path(path_type=Path)

BEGIN = "Press any key to begin."

PREPARING = "Preparing the first question. The very first time, that takes a while: code is compiled and kept ..."

MANY_OBJECTIVES, MANY_QUESTIONS = 4, 30  # beyond both, people are warned of how long the paper's own basis takes


@click.command(
    epilog=f"{PROBLEM_HELP} The exit code is 5 "
    "if --max-questions ran out before everything was asked, or if contradictory answers were left as they are; the "
    "best plan so far is printed in any case."
)
@problem_argument
@click.option("--strategy", metavar="NAME", help="How the questions are chosen, such as paper.")
@click.option(
    "-o",
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="A strategy's own option, such as basis=spanner.",
)
@click.option("--questions", type=click.Choice(KINDS), metavar="KIND", help=QUESTIONS_HELP)
@click.option("--know", "known", multiple=True, metavar="TEXT", help=KNOW_HELP)
@click.option("--max-questions", type=click.IntRange(min=0), metavar="N", help="Stop after this many questions.")
@click.option(
    "--seed",
    default=0,
    type=click.IntRange(min=0),
    show_default=True,
    metavar="N",
    help="Random seed.",
)
@click.option("--log", type=FILE, metavar="FILE", help="Save every answer to this new file immediately.")
@click.option("--resume", type=FILE, metavar="FILE", help="Continue the interview saved in this file.")
@click.option(
    "--simulate",
    metavar="NAME=NUMBER,...",
    help="Let a simulated person answer, with these weights on the objectives. Example: time=3,comfort=1",
)
@click.option(
    "--precision",
    type=click.FloatRange(min=0),
    metavar="NUMBER",
    help="The smallest difference that the simulated person notices, as a share of their best plan's worth (default 0.01).",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON at the end, and the questions on stderr.")
def ask(
    source: Source,
    strategy: str | None,
    options: tuple[str, ...],
    questions: str | None,
    known: tuple[str, ...],
    max_questions: int | None,
    seed: int,
    log: Path | None,
    resume: Path | None,
    simulate: str | None,
    precision: float | None,
    as_json: bool,
) -> None:
    """Find the plan that is best for you.

    You are asked a few times which of two options you would rather have, or which of a few is best and which worst.

    \b
    a, b        A or B is better for you
    1 to 4      of a few: first the best of them, then the worst
    = (or e)    they are about equal to you
    s           skip: draw no conclusion, and ask something else
    u           undo the last answer
    d           details: all options in full
    ?           help
    q           quit, with the best plan so far; --log and --resume keep every answer
    r, w, i     at the end: the ranking, why not another one, what if something mattered more

    On a terminal, press a single key without Enter. Otherwise one answer per line is read from stdin, such as a, or
    "2 4" for the best and the worst; the end of the input is the same as q.
    """
    from tradeoff.apps.cli.arguments import questions_for, settings_from, weights_from
    from tradeoff.apps.cli.pages import print_first_page, print_notes
    from tradeoff.errors import ArgumentError
    from tradeoff.presentation.data import interview_data
    from tradeoff.simulation.respondents import LinearRespondent, relative_regret
    from tradeoff.strategies import spec_of

    settings = settings_from(options, "ask")
    settings |= {} if strategy is None else {"strategy": strategy}
    settings |= {} if max_questions is None else {"max_questions": max_questions}
    if resume is not None and (settings or questions or log is not None):
        raise ArgumentError(
            "--resume continues an interview with the settings and the file it was begun with; leave out --log, "
            "--strategy, --option, --questions and --max-questions"
        )
    if precision is not None and simulate is None:
        raise ArgumentError("--precision is about a simulated person; add --simulate, or leave it out")
    loaded = source.read(resume)
    person: LinearRespondent | None = None
    if simulate is not None:
        person = LinearRespondent.scaled(
            loaded, weights_from(simulate, loaded), 0.01 if precision is None else precision
        )
    out = console(on_stderr=as_json)
    call = shlex.join(["tradeoff", "ask", *source.arguments()])
    named = settings.get("strategy", "careful")
    if spec_of(named).seeded:
        settings.setdefault("seed", seed)
    settings |= questions_for(loaded, named, settings, questions)
    print_notes(loaded, on_stderr=as_json)
    early = person is None and resume is None and out.is_terminal  # to read while the first question is prepared
    if early:
        print_first_page(loaded, out, settings.get("questions"))
    with begun(loaded, settings | {"order_seed": seed}, log, resume, out) as (interview, store):
        if resume is None:
            warn_of_many_questions(interview)
        logged = LoggedInterview(interview, store)
        for statement in known:
            logged.know(statement)

        def result() -> None:
            if not as_json:
                end(loaded, interview, person, out)

        if person is None:
            if not early:
                print_first_page(loaded, out, interview.log[0]["settings"].get("questions"))
            converse(logged, loaded, out, call, result)
        else:
            answer_all(logged, loaded, person, None if as_json else out)
            result()
        if as_json:
            found = interview_data(loaded, interview)
            if person is not None:
                lost = relative_regret(loaded, person, interview.recommendation.option)
                found["relative_regret"] = max(0.0, lost)
            emit(found)
        if not interview.finished:
            part(logged, out, call)
        elif not interview.recommendation.complete:
            raise SystemExit(INCOMPLETE)


# --- beginning -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def begun(
    problem: Presentable, settings: dict[str, Any], log: Path | None, resume: Path | None, out: Console
) -> Iterator[tuple[Interview, JsonLines | None]]:
    """Yield the interview, new or resumed, and the open file that it is saved to."""
    from tradeoff.errors import LogError
    from tradeoff.interview import Interview
    from tradeoff.stores import JsonLines

    busy = out.status(PREPARING) if out.is_terminal else contextlib.nullcontext()
    if resume is not None:
        with JsonLines.open(resume) as store:
            try:
                with busy:
                    interview = Interview.resume(problem, store.read())
            except LogError as error:
                raise LogError(f"{resume}: {error}") from None
            yield interview, store
        return
    with busy:
        interview = Interview(problem, **settings)
        if out.is_terminal:
            prepare_first(problem, interview)
    if log is None:
        yield interview, None
        return
    with JsonLines.create(log) as store:
        yield interview, store


def prepare_first(problem: Presentable, interview: Interview) -> None:
    """Do what the first question needs while something moves."""
    first = interview.next()
    if first is not None:
        for option in first.options:
            problem.show(option)


def warn_of_many_questions(interview: Interview) -> None:
    """Say on stderr that this strategy asks many questions."""
    from tradeoff.strategies import spec_of

    settings = interview.log[0]["settings"]
    objectives, most = len(interview.problem.objectives), interview.at_most
    fewer = spec_of(interview.strategy).fewer(settings)
    if fewer and objectives > MANY_OBJECTIVES and most is not None and most > MANY_QUESTIONS:
        note = (
            f"note: with {objectives} objectives this strategy asks many questions (at most {most}); -o {fewer} "
            "asks fewer, and q ends it at any time with the best plan so far"
        )
        console(on_stderr=True).print(note, style="yellow")


class LoggedInterview:
    """An interview whose events are in its file before anything follows from them."""

    def __init__(self, interview: Interview, store: JsonLines | None) -> None:
        self.interview, self.store = interview, store
        self._stored = len(interview.log) if store is not None and store.read() else 0

    def _store(self) -> None:
        """Write the events that are not written yet."""
        if self.store is not None:
            events = self.interview.log
            self.store.append(events[self._stored :])
            self._stored = len(events)

    def ask(self) -> ShownQuestion | None:
        """Return the question to be answered now, or None when nothing is left to ask."""
        shown = self.interview.next()
        self.interview.ask()
        self._store()
        return shown

    def tell(self, reply: Reply) -> None:
        """Save the reply to the question that was asked; what follows from it is computed by the next ``ask``."""
        self.interview.tell(reply)
        self._store()

    def know(self, statement: str) -> None:
        """Save what the respondent said without being asked."""
        self.interview.know(statement)
        self._store()

    def undo(self, number: int | None = None) -> None:
        """Undo the last answer, or the one with this number."""
        self.interview.undo(number)
        self._store()

    @property
    def number(self) -> int:
        """The number of the question that is being asked."""
        return self.interview.questions_answered + 1


# --- people ----------------------------------------------------------------------------------------------------------


def converse(
    logged: LoggedInterview, problem: Presentable, out: Console, call: str, result: Callable[[], None]
) -> None:
    """Ask a person until nothing is left to ask or they quit, and print the result; after Ctrl-C, say how to continue.

    On a terminal the last answer can be undone even then.
    """
    from tradeoff.apps.cli import keys
    from tradeoff.apps.cli.afterwards import look_around
    from tradeoff.apps.cli.conflicts import answer_to_undo
    from tradeoff.apps.cli.questions import ask_question

    try:
        with keys.answers_from(sys.stdin) as next_key:
            first = sys.stdin.isatty() and not logged.interview.state.given
            if first and next_key(partial(out.print, BEGIN, style="bold")).lower() in ("q", keys.END):
                result()
                return
            while True:
                while (shown := logged.ask()) is not None:
                    if not ask_question(logged, shown, problem, out, next_key):
                        result()
                        return
                number = answer_to_undo(logged.interview, problem, out, next_key)
                if number is not None:
                    logged.undo(number)
                    out.print("Undid that answer.")
                    continue
                result()
                if not (sys.stdin.isatty() and look_around(logged.interview, problem, out, next_key)):
                    return
                logged.undo()
                out.print("Undid the last answer.")
    except KeyboardInterrupt:
        part(logged, out, call)
        raise


def part(logged: LoggedInterview, out: Console, call: str) -> None:
    """Print whether the answers are saved, and how to continue."""
    words, option = "Your answers were not saved. To save them next time, start with:", "--log answers.jsonl"
    if logged.store is not None:
        words, option = "Your answers are saved. To continue:", f"--resume {shlex.quote(str(logged.store.path))}"
    out.print(cell(f"\n{words}"))
    out.print(cell(f"  {call} {option}"), soft_wrap=True)


def end(problem: Presentable, interview: Interview, person: LinearRespondent | None, out: Console) -> None:
    """Print what came of it."""
    from tradeoff.apps.cli.cards import print_recommendation
    from tradeoff.simulation.respondents import relative_regret

    print_recommendation(out, problem, interview)
    if person is not None:
        lost = 100 * max(0.0, relative_regret(problem, person, interview.recommendation.option))
        out.print(f"The simulated person loses {lost:.2g}% of what their best plan would gain them.")


# --- simulated people ------------------------------------------------------------------------------------------------


def answer_all(logged: LoggedInterview, problem: Presentable, person: LinearRespondent, out: Console | None) -> None:
    """Let a simulated respondent answer everything, and print each answer in a few lines."""
    from tradeoff.apps.cli.cards import print_answer
    from tradeoff.evidence import Answer
    from tradeoff.presentation.answers import answer_lines

    while (shown := logged.ask()) is not None:
        number, reply = logged.number, person(shown.question)
        logged.tell(reply)
        if out is not None:
            (line,) = answer_lines(problem, [Answer(shown.question, reply, number)], {number: shown.order})
            print_answer(out, replace(line, ordinal=number))
