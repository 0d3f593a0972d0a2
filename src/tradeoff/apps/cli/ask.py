"""``tradeoff ask``: an interview in the terminal, by single keys, kept in a file if wished.

Nothing heavy is imported before the command runs, so that ``tradeoff --help`` answers at once.
"""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradeoff.apps.cli.source import PROBLEM_HELP, Source, takes_problem

if TYPE_CHECKING:
    from rich.console import Console

    from tradeoff.apps.cli.keys import NextKey
    from tradeoff.interview import Interview
    from tradeoff.model import Question
    from tradeoff.sources import AnyProblem
    from tradeoff.stores import JsonLines
    from tradeoff.users import LinearUser

BUDGET_USED_UP = 5  # the exit code

FILE = click.Path(path_type=Path)

# What each key means; "answers" are the library's words for them.
ANSWERS = {"a": "first", "b": "second", "=": "same", "e": "same"}
SAID = {"first": "You prefer A.", "second": "You prefer B.", "same": "About equal to you."}
PROMPT = "a prefer A   b prefer B   = about equal   s skip   u undo   ? help   q quit"
POSSIBLE = "press a, b, = (about equal), s (skip), u (undo), ? (help) or q (quit and keep)"

MANY = 4  # objectives; with more, the paper's own way asks more than people like
PATIENCE = 30  # questions; fewer are not warned of


@click.command(
    epilog=f"{PROBLEM_HELP} The exit code is 5 "
    "if --max-questions ran out before everything was asked, or if answers that contradict each other were left so; the "
    "best plan so far is printed all the same."
)
@takes_problem
@click.option("--strategy", metavar="NAME", help="How the questions are chosen, such as paper.")
@click.option(
    "-o",
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="A strategy's own option, such as basis=spanner.",
)
@click.option("--max-questions", type=click.IntRange(min=0), metavar="N", help="Stop after this many questions.")
@click.option(
    "--seed",
    default=0,
    type=click.IntRange(min=0),
    show_default=True,
    metavar="N",
    help="Decides what is left to chance.",
)
@click.option("--log", type=FILE, metavar="FILE", help="Keep every answer in this new file, at once.")
@click.option("--resume", type=FILE, metavar="FILE", help="Go on with the interview kept in this file.")
@click.option(
    "--simulate",
    metavar="NAME=NUMBER,...",
    help="Let a simulated person answer, to whom the objectives matter this much. Example: time=3,comfort=1",
)
@click.option(
    "--precision",
    type=click.FloatRange(min=0),
    metavar="NUMBER",
    help="What the simulated person does not notice, as a share of what the best plan is worth to them (default 0.01).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document at the end, and questions on stderr.")
def ask(
    source: Source,
    strategy: str | None,
    options: tuple[str, ...],
    max_questions: int | None,
    seed: int,
    log: Path | None,
    resume: Path | None,
    simulate: str | None,
    precision: float | None,
    as_json: bool,
) -> None:
    """Find the plan that is best for you: say of two alternatives which you prefer, a few times.

    \b
    a, b        A or B is better for you
    = (or e)    they are about equal to you
    s           skip: nothing is concluded, and something else is asked
    u           undo: take the last answer back
    ?           help
    q           quit, with the best plan so far; with --log or --resume everything is kept

    On a terminal a single key is enough, without Enter. Otherwise one answer per line is read from stdin; when they
    end, the interview ends as with q.
    """
    from tradeoff.apps.cli.arguments import settings_from, weights_from
    from tradeoff.apps.cli.cards import document
    from tradeoff.apps.cli.main import emit
    from tradeoff.apps.cli.pages import cell, notes
    from tradeoff.errors import ArgumentError
    from tradeoff.strategies import spec_of
    from tradeoff.users import LinearUser

    settings = settings_from(options, "ask")
    settings |= {} if strategy is None else {"strategy": strategy}
    settings |= {} if max_questions is None else {"max_questions": max_questions}
    if resume is not None and (settings or log is not None):
        raise ArgumentError(
            "--resume goes on with an interview as it was begun, in its own file; leave out --log, --strategy, "
            "--option and --max-questions"
        )
    if precision is not None and simulate is None:
        raise ArgumentError("--precision is about a simulated person; give --simulate too, or leave it out")
    loaded = source.read()
    person = None
    if simulate is not None:
        weights = weights_from(simulate, loaded.objectives)
        person = LinearUser.scaled(loaded, weights, 0.01 if precision is None else precision)
    out = console(on_stderr=as_json)
    call = shlex.join(["tradeoff", "ask", *source.words()])
    if spec_of(settings.get("strategy", "careful")).seeded:
        settings.setdefault("seed", seed)
    for note in notes(loaded):
        out.print(cell(f"note: {note}"), style="yellow")
    with begun(loaded, settings | {"sides": seed}, log, resume, out) as (interview, store):
        if resume is None:
            warn_of_many_questions(interview)
        keeper = Keeper(interview, store)
        if person is None:
            converse(keeper, loaded, out, call)
        else:
            answer_all(keeper, loaded, person, None if as_json else out)
        if as_json:
            emit(document(loaded, interview, person))
        else:
            end(loaded, interview, person, out)
        if not interview.finished:
            part(keeper, out, call)
        elif not interview.recommendation.complete:
            raise SystemExit(BUDGET_USED_UP)


# --- beginning -------------------------------------------------------------------------------------------------------


def console(on_stderr: bool) -> Console:
    """Return the console for people: stdout, or stderr where stdout is for programs."""
    from rich.console import Console

    return Console(highlight=False, stderr=on_stderr)


@contextlib.contextmanager
def begun(
    problem: AnyProblem, settings: dict[str, Any], log: Path | None, resume: Path | None, out: Console
) -> Iterator[tuple[Interview, JsonLines | None]]:
    """Give the interview, new or gone on with, and the open file it is kept in."""
    from tradeoff.errors import LogError
    from tradeoff.interview import Interview
    from tradeoff.stores import JsonLines

    busy = out.status("Working out what to ask ...") if out.is_terminal else contextlib.nullcontext()
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
    if log is None:
        yield interview, None
        return
    with JsonLines.create(log) as store:
        yield interview, store


def warn_of_many_questions(interview: Interview) -> None:
    """Say once, on stderr, that this way of asking takes long."""
    settings = interview.log[0]["settings"]
    objectives, most = len(interview.problem.objectives), interview.at_most
    slow = interview.strategy == "paper" and settings.get("basis", "paper") == "paper" and objectives > MANY
    if slow and most is not None and most > PATIENCE:
        note = (
            f"note: with {objectives} objectives this strategy asks many questions (at most {most}); -o basis=spanner "
            "asks fewer, and q ends it at any time with the best plan so far"
        )
        console(on_stderr=True).print(note, style="yellow")


class Keeper:
    """An interview whose events are on the disk before anybody is shown what follows from them."""

    def __init__(self, interview: Interview, store: JsonLines | None) -> None:
        self.interview, self.store = interview, store
        # The file may hold more: what a page has noted between the interview's own events.
        self._kept = len(interview.log) if store is not None and store.read() else 0

    def keep(self) -> None:
        """Write the events that are not written yet."""
        if self.store is not None:
            events = self.interview.log
            self.store.append(events[self._kept :])
            self._kept = len(events)

    def ask(self) -> Question | None:
        """Return the question to be answered now, kept, or None when nothing is left to ask."""
        question = self.interview.ask()
        self.keep()
        return question

    @property
    def swapped(self) -> bool:
        """Whether the second alternative is shown as A."""
        return self.interview.left == "second"

    @property
    def number(self) -> int:
        """The number of the question that is being asked."""
        return len(self.interview.answers) + 1


# --- people ----------------------------------------------------------------------------------------------------------


def converse(keeper: Keeper, problem: AnyProblem, out: Console, call: str) -> None:
    """Ask a person until nothing is left to ask or they quit; on Ctrl-C say how to go on, and pass it on."""
    from tradeoff.apps.cli.conflicts import settle
    from tradeoff.apps.cli.keys import answers_from
    from tradeoff.apps.cli.pages import cell

    out.print(cell(f"{problem.title}: you are shown two alternatives at a time. Say which you would rather have."))
    out.print("There are no wrong answers. Press ? for help.")
    try:
        with answers_from(sys.stdin) as next_key:
            while True:
                while (question := keeper.ask()) is not None:
                    show(keeper, problem, question, out)
                    if not hear(keeper, problem, out, next_key):
                        return
                if not settle(keeper, problem, out, next_key):
                    return
    except KeyboardInterrupt:
        part(keeper, out, call)
        raise


def show(keeper: Keeper, problem: AnyProblem, question: Question, out: Console) -> None:
    """Print a question, how many more can come, and how good the recommendation is already."""
    from tradeoff.apps.cli.cards import certificate_line, print_question
    from tradeoff.model import Question

    left = keeper.interview.at_most
    more = "" if left is None else ", the last one" if left <= 1 else f", at most {left - 1} more"
    shown = Question(question.second, question.first) if keeper.swapped else question
    print_question(out, problem, shown, f"Question {keeper.number}{more}")
    certificate = certificate_line(keeper.interview.recommendation)
    if certificate:
        out.print(certificate, style="dim")


def hear(keeper: Keeper, problem: AnyProblem, out: Console, next_key: NextKey) -> bool:
    """Take keys until one moves the interview on; return False when it is to end here."""
    from tradeoff.apps.cli import keys
    from tradeoff.apps.cli.pages import cell
    from tradeoff.errors import ArgumentError
    from tradeoff.model import Answer

    asked = False

    while True:
        key = next_key(None if asked else lambda: out.print(PROMPT, style="bold"))
        asked = True
        match key.lower():
            case "a" | "b" | "=" | "e" as meant:
                said = Answer(ANSWERS[meant])
                keeper.interview.tell(said.swapped if keeper.swapped else said)
                keeper.keep()
                out.print(SAID[said.value])
                return True
            case "s":
                keeper.interview.skip()
                keeper.keep()
                out.print("Skipped.")
                return True
            case "u":
                try:
                    keeper.interview.undo()
                except ArgumentError as error:
                    out.print(cell(f"{error}; {POSSIBLE}"))
                    continue
                keeper.keep()
                out.print("The last answer is taken back.")
                return True
            case "?":
                out.print(cell(help_text(problem)))
                asked = False
            case "q" | keys.END:
                return False
            case _:
                named = repr(key) if key.isprintable() else "that key"
                out.print(cell(f"{named} is not an answer; {POSSIBLE}"))


def help_text(problem: AnyProblem) -> str:
    """Return what the keys mean, what is shown, and why it is asked."""
    keys = """
  a or b   the one you would rather have
  = or e   they are about equal to you
  s        skip: nothing is concluded from it, and something else is asked
  u        undo: take the last answer back
  q        quit, with the best plan so far
"""
    why = [
        "A and B are two ways of deciding in advance; chance does the rest. A few ways it can go are told, with how "
        'often: "30% (30 of 100)". They sum it up, so that the averages below them, in units, are exact.',
        "Why such questions? What you would give up for what says how much each objective matters to you. At the end "
        "you see that in per cent, counted for the whole way from its worst to its best attainable amount.",
        f'Gains are counted from "{problem.reference_name}", which is only there to compare with. "Within 4% of the '
        'best plan for you" says: of the gain of your best plan at most 4% are lost.',
    ]
    return keys + "\n" + "\n\n".join(why) + "\n"


def part(keeper: Keeper, out: Console, call: str) -> None:
    """Print where the answers are and how to go on."""
    from tradeoff.apps.cli.pages import cell

    words, option = "The answers were not kept. To keep them next time, begin with:", "--log answers.jsonl"
    if keeper.store is not None:
        words, option = "Everything is kept. To go on:", f"--resume {shlex.quote(str(keeper.store.path))}"
    out.print(cell(f"\n{words}"))
    out.print(cell(f"  {call} {option}"), soft_wrap=True)


def end(problem: AnyProblem, interview: Interview, person: LinearUser | None, out: Console) -> None:
    """Print what came of it."""
    from tradeoff.apps.cli.cards import print_recommendation
    from tradeoff.users import relative_regret

    print_recommendation(out, problem, interview.recommendation, interview.finished)
    if person is not None:
        lost = 100 * relative_regret(problem, person, interview.recommendation.alternative)
        out.print(f"The simulated person loses {lost:.2g}% of what their best plan would gain them.")


# --- simulated people ------------------------------------------------------------------------------------------------


def answer_all(keeper: Keeper, problem: AnyProblem, person: LinearUser, out: Console | None) -> None:
    """Let a simulated person answer everything, and print each answer in a line or two."""
    from tradeoff.apps.cli.cards import SAYS, print_answered

    while (question := keeper.ask()) is not None:
        number, answer = keeper.number, person(question)
        keeper.interview.tell(answer)
        keeper.keep()
        if out is not None:
            print_answered(out, problem, question, number, SAYS[answer.value])
