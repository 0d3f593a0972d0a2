"""A problem as people read it: how large it is, what an item is labelled with, what to do where."""

from __future__ import annotations

from typing import Any

import numpy as np

from tradeoff.model import Alternative, Item, Objective
from tradeoff.presentation.text import one_line
from tradeoff.problems.catalogue import Catalogue
from tradeoff.problems.mdp import MDP
from tradeoff.problems.pointset import PointSet
from tradeoff.sources import AnyProblem

LISTED = 12  # of a plan's most likely situations


def sizes(problem: AnyProblem) -> dict[str, Any]:
    """Return a problem's name, kind and sizes."""
    base: dict[str, Any] = {"name": problem.name, "title": problem.title, "objectives": len(problem.objectives)}
    if isinstance(problem, Catalogue):
        return base | {"kind": "catalogue", "items": len(problem.names)}
    if isinstance(problem, PointSet):
        return base | {"kind": "points"}
    return base | {
        "kind": "mdp",
        "states": len(problem.states),
        "actions": len(problem.actions),
        "horizon": problem.horizon,
        "choices": problem.choice_count(),
        "branches": max(len(layer.target) for layer in problem.layers),
    }


def extent(problem: AnyProblem) -> str:
    """Return how large a problem is."""
    size = sizes(problem)
    if isinstance(problem, Catalogue):
        return f"a catalogue of {size['items']:,} items"
    if isinstance(problem, PointSet):
        return "solutions that an optimiser finds"
    return (
        f"{size['states']:,} states, {size['actions']:,} actions, {size['horizon']} steps "
        f"({size['choices']:,} choices with {size['branches']:,} branches)"
    )


def notes(problem: AnyProblem) -> list[str]:
    """Return what is worth knowing about a valid problem."""
    found = list(getattr(problem, "notes", ()))
    for objective in problem.irrelevant:
        found.append(f"{objective.name} comes out the same whatever is done; it is kept, but its weight cannot matter")
    return [one_line(note) for note in found]


def goal(objective: Objective) -> str:
    """Return which direction is better."""
    return "more is better" if objective.goal == "max" else "less is better"


def has_paths(problem: AnyProblem) -> bool:
    """Return whether a plan leads along paths, so that telling its stories takes work."""
    return isinstance(problem, MDP)


def labels(problem: AnyProblem, name: str) -> tuple[tuple[str, str], ...]:
    """Return what else is known of the item with this name, as pairs of a label and its text."""
    if not isinstance(problem, Catalogue) or not problem.labels or name not in problem.names:
        return ()
    item = problem.names.index(name)
    return tuple((one_line(key), one_line(texts[item])) for key, texts in problem.labels.items())


def instructions(problem: AnyProblem, best: Alternative) -> dict[str, Any]:
    """Return what to do under a plan: the item to choose, the solution's lines, or actions in the likeliest situations."""
    if isinstance(problem, Catalogue):
        assert isinstance(best.plan, Item)
        return {"item": best.plan.name, "labels": dict(labels(problem, best.plan.name))}
    if isinstance(problem, PointSet):
        return {"solution": problem.lines(best.plan)}
    return {"plan": likely_situations(problem, best)}


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


def about(problem: AnyProblem) -> list[tuple[str, str]]:
    """Return what a problem says about itself: paragraphs ("text"), and drawings made of letters ("drawn")."""
    found = []
    for part in problem.about.replace("\r\n", "\n").split("\n\n"):
        lines = [line for line in part.splitlines() if line.strip()]
        if lines:
            drawn = all(line.startswith("   ") for line in lines)
            found.append(("drawn", "\n".join(map(one_line, lines))) if drawn else ("text", one_line(part.strip())))
    return found
