"""What the commands print: tables for people, plain data for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tradeoff.apps.cli.main import plain
from tradeoff.model import Alternative, Item, Vector
from tradeoff.problems.catalogue import Catalogue
from tradeoff.problems.mdp import MDP
from tradeoff.problems.pointset import PointSet
from tradeoff.sources import AnyProblem

# How many of a plan's most likely situations are listed.
LISTED = 12


def console() -> Console:
    """Return the console for people; it honours NO_COLOR and the terminal's width."""
    return Console(highlight=False)


def cell(text: object) -> Text:
    """Return a text as it is: names may hold brackets or control characters, which must stay inert."""
    return Text(plain(str(text)))


def table(*headers: str, title: str | None = None) -> Table:
    """Return an empty table in the house style; headers that begin with ">" are for numbers."""
    made = Table(
        box=box.SIMPLE_HEAD, title=None if title is None else cell(title), title_justify="left", pad_edge=False
    )
    for header in headers:
        made.add_column(cell(header.lstrip(">")), justify="right" if header.startswith(">") else "left")
    return made


# --- data ------------------------------------------------------------------------------------------------------------


def sizes(problem: AnyProblem) -> dict[str, Any]:
    """Return a problem's name, kind and sizes."""
    base: dict[str, Any] = {"name": problem.name, "title": problem.title, "objectives": len(problem.objectives)}
    return base | {"kind": problem.kind, **problem.extent}


def notes(problem: AnyProblem) -> list[str]:
    """Return what is worth knowing about a valid problem."""
    found = list(getattr(problem, "notes", ()))
    for objective in problem.irrelevant:
        found.append(f"{objective.name} comes out the same whatever is done; it is kept, but its weight cannot matter")
    return found


def description(problem: AnyProblem) -> dict[str, Any]:
    """Return a problem's objectives with the best and worst that can be expected of each, in units."""
    frame = problem.frame
    return sizes(problem) | {
        "about": problem.about,
        "objectives": [
            {
                "name": o.name,
                "unit": o.unit,
                "goal": o.goal,
                "best": float(frame.ideal[j]),
                "worst": float(frame.nadir[j]),
                "reference": float(frame.origin[j]),
                "matters": bool(frame.matters[j]),
            }
            for j, o in enumerate(problem.objectives)
        ],
        "reference": problem.reference_name,
        "notes": notes(problem),
    }


def solution(problem: AnyProblem, weights: Vector, best: Alternative) -> dict[str, Any]:
    """Return the best plan: what it leads to on average, and what to do."""
    names = [o.name for o in problem.objectives]
    result: dict[str, Any] = {
        "problem": problem.name,
        "weights": dict(zip(names, weights.tolist(), strict=True)),
        "outcome": dict(zip(names, problem.outcome(best.value).tolist(), strict=True)),
        "gain": dict(zip(names, best.value.tolist(), strict=True)),
        "score": float(weights @ best.value),
    }
    if isinstance(problem, Catalogue):
        assert isinstance(best.plan, Item)
        index = best.plan.index
        labels = {key: texts[index] for key, texts in problem.labels.items()}
        return result | {"item": best.plan.name, "labels": labels}
    if isinstance(problem, PointSet):
        return result | {"solution": problem.lines(best.plan)}
    return result | {"plan": likely_situations(problem, best)}


def likely_situations(mdp: MDP, best: Alternative) -> list[dict[str, Any]]:
    """Return the plan's most likely (step, state) pairs, in order of time, with the action taken there."""
    occupancy = mdp.occupancy(best.plan)[:-1]
    (policy,) = mdp.solve([best.plan.weights])  # type: ignore[union-attr]
    likely = np.argsort(-occupancy, axis=None, kind="stable")[: 4 * LISTED]
    pairs = [(int(i) // len(mdp.states), int(i) % len(mdp.states)) for i in likely]
    visited = [(t, s) for t, s in pairs if occupancy[t, s] > 0 and policy.actions[t, s] >= 0][:LISTED]
    return [
        {
            "step": t,
            "state": mdp.states[s],
            "action": mdp.actions[policy.actions[t, s]],
            "probability": float(occupancy[t, s]),
        }
        for t, s in sorted(visited, key=lambda pair: (pair[0], -occupancy[pair]))
    ]


# --- tables ----------------------------------------------------------------------------------------------------------


def print_problems(problems: Sequence[AnyProblem]) -> None:
    """Print the bundled problems with S, A, k, H."""
    made = table("name", "what", "kind", ">S", ">A", ">k", ">H")
    for problem in problems:
        size = sizes(problem)
        states, actions, horizon = (size.get(key, "") for key in ("states", "actions", "horizon"))
        if isinstance(problem, Catalogue):
            actions = size["items"]
        made.add_row(
            *map(cell, (problem.name, problem.title, size["kind"], states, actions, size["objectives"], horizon))
        )
    console().print(made)
    console().print("S states, A actions (or items), k objectives, H steps. Try: tradeoff show commute")


def _heading(problem: AnyProblem) -> None:
    size = sizes(problem)
    if isinstance(problem, Catalogue):
        extent = f"a catalogue of {size['items']:,} items"
    elif isinstance(problem, PointSet):
        extent = "solutions that an optimiser finds"
    else:
        extent = (
            f"{size['states']:,} states, {size['actions']:,} actions, {size['horizon']} steps "
            f"({size['choices']:,} choices with {size['branches']:,} branches)"
        )
    out = console()
    out.print(Text.assemble((plain(problem.title), "bold"), f"  {extent}"))


def print_description(problem: AnyProblem) -> None:
    """Print what ``description`` returns."""
    out, frame = console(), problem.frame
    _heading(problem)
    for paragraph in problem.about.split("\n\n"):
        if paragraph.strip():
            out.print(cell(" ".join(paragraph.split())), style="dim")
    made = table("objective", "better is", ">best", ">worst", ">counted from")
    for j, o in enumerate(problem.objectives):
        amounts = (o.text(float(frame.ideal[j])), o.text(float(frame.nadir[j])), o.text(float(frame.origin[j])))
        made.add_row(*map(cell, (o.name, "more" if o.goal == "max" else "less", *amounts)))
    out.print(made)
    out.print(cell(f"Best and worst are expectations, one objective at a time. Reference: {problem.reference_name}."))
    _print_notes(problem)


def print_check(problem: AnyProblem) -> None:
    """Print that a problem is valid, and what is worth knowing."""
    _heading(problem)
    _print_notes(problem)
    console().print("valid", style="green")


def _print_notes(problem: AnyProblem) -> None:
    for note in notes(problem):
        console().print(cell(f"note: {note}"), style="yellow")


def print_solution(problem: AnyProblem, weights: Vector, best: Alternative) -> None:
    """Print what ``solution`` returns."""
    out = console()
    outcome = problem.outcome(best.value)
    made = table(
        "objective", ">weight", ">on average", ">of the possible gain", title=f"The best plan: {problem.title}"
    )
    for j, o in enumerate(problem.objectives):
        share = f"{100 * best.value[j]:.0f}%" if problem.frame.matters[j] else "cannot be changed"
        made.add_row(*map(cell, (o.name, f"{weights[j]:g}", o.text(float(outcome[j])), share)))
    out.print(made)
    if isinstance(problem, Catalogue):
        assert isinstance(best.plan, Item)
        labels = [f"{key}: {texts[best.plan.index]}" for key, texts in problem.labels.items()]
        out.print(
            Text.assemble(
                "Choose ", (plain(best.plan.name), "bold"), plain(f" ({', '.join(labels)})" if labels else "")
            )
        )
        return
    if isinstance(problem, PointSet):
        for line in problem.lines(best.plan):
            out.print(cell(line))
        return
    steps = table(">step", "where", "what to do", ">how likely", title="What to do where (the likeliest situations)")
    for row in likely_situations(problem, best):
        steps.add_row(*map(cell, (row["step"] + 1, row["state"], row["action"], f"{100 * row['probability']:.3g}%")))
    out.print(steps)
