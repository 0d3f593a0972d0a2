"""A problem as people read it: how large it is, what an item is labelled with, what to do where."""

from __future__ import annotations

from typing import Any

from tradeoff.model import Item, Objective, Option
from tradeoff.objective import YES_NO
from tradeoff.presentation.numbers import counted
from tradeoff.presentation.text import one_line
from tradeoff.problem import Presentable

SITUATIONS = 12  # of a policy that programs are told


def sizes(problem: Presentable) -> dict[str, Any]:
    """Return a problem's name, kind and sizes."""
    base = {"name": problem.name, "title": problem.title, "objectives": len(problem.original.objectives)}
    return base | {"kind": problem.kind, **problem.extent}


def extent(problem: Presentable) -> str:
    """Return how large a problem is."""
    match problem.extent:
        case {"items": items}:
            return f"a catalogue of {counted(items, 'item')}"
        case {"states": states, "actions": actions, "horizon": steps, "choices": choices, "branches": branches}:
            return f"{states:,} states, {actions:,} actions, {steps} steps ({choices:,} choices with {branches:,} branches)"
        case others:
            return ", ".join(f"{size:,} {name}" for name, size in others.items()) or "solutions that an optimiser finds"


def notes(problem: Presentable) -> list[str]:
    """Return what is worth knowing about a valid problem."""
    found = list(problem.notes)
    for objective in problem.original.irrelevant:
        found.append(f"{objective.name} comes out the same whatever is done; it is kept, but its weight cannot matter")
    return [one_line(note) for note in found]


def noun(problem: Presentable, number: int = 1) -> str:
    """Return what one option or several are called: the problem's own noun, "option", or "plan" for a policy.

    >>> from tradeoff import Catalogue
    >>> flats = Catalogue([[1.0]], noun="flat")
    >>> noun(flats), noun(flats, 40), noun(Catalogue([[1.0]]), 2)
    ('flat', 'flats', 'options')
    """
    one = one_line(problem.noun) or ("plan" if problem.has_paths else "option")
    if number == 1:
        return one
    if one.endswith(("s", "x", "ch", "sh")):
        return f"{one}es"
    return f"{one[:-1]}ies" if one.endswith("y") and one[-2:-1] not in "aeiou" else f"{one}s"


def goal(objective: Objective) -> str:
    """Return which direction is better."""
    return "more is better" if objective.goal == "max" else "less is better"


def description(objective: Objective) -> str:
    """Return what an objective is, in a sentence or less; "" where the problem does not say."""
    return one_line(objective.description)


def objective_words(objective: Objective) -> str:
    """Return an objective in a line: its name, its unit, which direction is better, and what it is.

    >>> objective_words(Objective("time", "min", "min"))
    'time in min (less is better)'
    """
    unit = f" in {one_line(objective.unit)}" if objective.unit else ""
    if objective.unit == YES_NO or objective.unit.startswith("of "):  # there or not; of 5 stars
        unit = ", yes or no" if objective.unit == YES_NO else f", {one_line(objective.unit)}"
    told = f": {words}" if (words := description(objective)) else ""
    return f"{one_line(objective.name)}{unit} ({goal(objective)}){told}"


def labels(problem: Presentable, name: str) -> tuple[tuple[str, str], ...]:
    """Return what else is known of the item with this name, as pairs of a label and its text."""
    return tuple((one_line(key), one_line(text)) for key, text in problem.labels_of(name).items())


def instructions(problem: Presentable, best: Option) -> dict[str, Any]:
    """Return what to do under a plan: the item to choose, the solution's lines, or actions in the likeliest situations."""
    details = problem.details(best.plan)
    if details.situations:
        likeliest = sorted(details.situations, key=lambda one: -one.probability)[:SITUATIONS]
        names = ("step", "state", "action", "probability")
        return {"plan": [dict(zip(names, one[:4], strict=True)) for one in sorted(likeliest, key=lambda one: one.step)]}
    if details.lines:
        return {"solution": list(details.lines)}
    return {"item": best.plan.name, "labels": dict(details.labels)} if isinstance(best.plan, Item) else {}


def about(problem: Presentable) -> list[tuple[str, str]]:
    """Return what a problem says about itself: paragraphs ("text"), and drawings made of letters ("drawn").

    The first paragraph is the scenario, which a person reads before the first question.
    """
    found = []
    for part in problem.about.replace("\r\n", "\n").split("\n\n"):
        lines = [line for line in part.splitlines() if line.strip()]
        if lines:
            drawn = all(line.startswith("   ") for line in lines)
            found.append(("drawn", "\n".join(map(one_line, lines))) if drawn else ("text", _prose(part)))
    return found


def _prose(text: str) -> str:
    """Return a paragraph without the marks that names of objectives have in the files of problems."""
    return " ".join(one_line(text).replace("`", "").split())


def scenario(problem: Presentable) -> str:
    """Return what the questions are about, in a paragraph; "" where the problem does not say."""
    return next((part for kind, part in about(problem) if kind == "text"), "")
