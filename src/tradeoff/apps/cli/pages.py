"""The layout of problems and solutions in a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from tradeoff.apps.cli.cards import print_guide
from tradeoff.apps.cli.output import cell, console, table
from tradeoff.model import Option, Vector
from tradeoff.presentation.cards import amounts
from tradeoff.presentation.numbers import amounts_together, percent
from tradeoff.presentation.plans import guide
from tradeoff.presentation.problems import about, extent, instructions, notes, objective_words, scenario, sizes
from tradeoff.presentation.question import welcome
from tradeoff.presentation.sentences import CANNOT_CHANGE, NO_WRONG_ANSWERS
from tradeoff.problem import Presentable, pieces_of
from tradeoff.sources.tables.deciding import objectives_text
from tradeoff.strategies.elicitation import MAX_OBJECTIVES


def print_problems(problems: Sequence[Presentable]) -> None:
    """Print problems with S, A, k, H."""
    made = table("name", "what", "kind", ">S", ">A", ">k", ">H")
    for problem in problems:
        size = sizes(problem)
        columns = (size.get("states", ""), size.get("actions", size.get("items", "")), size["objectives"])
        made.add_row(*map(cell, (problem.name, problem.title, size["kind"], *columns, size.get("horizon", ""))))
    console().print(made)
    console().print("S states, A actions (or items), k objectives, H steps. Try: tradeoff show commute")


def print_problem(problem: Presentable) -> None:
    """Print a problem's objectives with the best and worst that can be expected of each."""
    out, read = console(), problem.original
    _print_heading(problem)
    for _, paragraph in about(problem):
        out.print(cell(paragraph), style="dim")
    made = table("objective", "better is", ">best", ">worst", ">counted from")
    for j, o in enumerate(read.objectives):
        ends = amounts_together(o, [float(end[j]) for end in (read.ideal, read.nadir, read.origin)])
        made.add_row(*map(cell, (o.name, "more" if o.goal == "max" else "less", *ends)))
    out.print(made)
    out.print(cell(f"Best and worst are expectations, one objective at a time. Reference: {problem.reference_name}."))
    print_notes(problem)


def print_first_page(problem: Presentable, out: Console, questions: str | None = None) -> None:
    """Print what a person reads before the first question: the scenario, what counts in it, and what is asked."""
    out.print(cell(problem.title, "bold"))
    if words := scenario(problem):
        out.print(cell(words))
    for objective in problem.original.objectives:
        out.print(cell(f"- {objective_words(objective)}"))
    out.print(f"{welcome(questions)} {NO_WRONG_ANSWERS} Press ? for help.")


def too_many_objectives(problem: Presentable) -> list[str]:
    """Return that nobody can be asked about so many objectives, and how to choose some; nothing if they are few enough."""
    relevant = [o for o, matters in zip(problem.objectives, problem.matters, strict=True) if matters]
    if len(relevant) <= MAX_OBJECTIVES:
        return []
    some = objectives_text((o.name, o.goal) for o in relevant[:MAX_OBJECTIVES])
    return [
        f"there are {len(relevant)} objectives, and people are asked about at most {MAX_OBJECTIVES}; choose those that matter "
        f"most, such as {shlex.join(['--objectives', some])}"
    ]


def print_check(problem: Presentable, notes: Sequence[str]) -> None:
    """Print that a problem is valid, and what is worth knowing."""
    _print_heading(problem)
    _print_notes(notes)
    console().print("valid", style="green")


def print_notes(problem: Presentable, on_stderr: bool = False) -> None:
    """Print what is worth knowing about a problem."""
    _print_notes(notes(problem), on_stderr)


def _print_notes(said: Sequence[str], on_stderr: bool = False) -> None:
    for note in said:
        console(on_stderr).print(cell(f"note: {note}"), style="yellow")


def _print_heading(problem: Presentable) -> None:
    console().print(Text.assemble(cell(problem.title, "bold"), f"  {extent(problem)}"))


def print_solution(problem: Presentable, weights: Vector, best: Option) -> None:
    """Print the best plan for stated weights, and what to do."""
    out = console()
    made = table(
        "objective", ">weight", ">on average", ">of the possible gain", title=f"The best plan: {problem.title}"
    )
    shares, gains = weights @ pieces_of(problem), problem.as_read(best).value
    for j, row in enumerate(amounts(problem, best)):
        gained = percent(gains[j]) if problem.original.matters[j] else CANNOT_CHANGE
        made.add_row(*map(cell, (row.name, f"{shares[j]:g}", row.amount, gained)))
    out.print(made)
    match instructions(problem, best):
        case {"item": item, "labels": labels}:
            known = f" ({', '.join(f'{key}: {text}' for key, text in labels.items())})" if labels else ""
            out.print(Text.assemble("Choose ", cell(item, "bold"), cell(known)))
        case {"solution": lines}:
            for line in lines:
                out.print(cell(line))
        case _:
            followed = guide(problem, best)
            if followed is not None:
                print_guide(out, followed)
