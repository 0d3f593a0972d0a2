"""Check a certificate with linear programs over the answers of a log, read here from its JSON and by the definitions alone.

A respondent has weights w >= 0 and a precision e >= 0, the largest difference that goes unnoticed.

- A pair: "first" means w @ (first - second) >= e, "same" that the difference is at most e in either direction.
- A menu: nothing in a lower tier is better by more than e than anything in a higher one; one tier means that no two differ
  by more than e.
- A statement lists its comparisons: of weights without e (3), of options as above (1, 0, 2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.optimize import linprog

TOLERANCE = 1e-6


def standing(log: Sequence[Mapping[str, Any]]) -> dict[int, tuple[Mapping[str, Any], Any]]:
    """Return what was asked and replied under each number that was not undone; skips are left out.

    A reply is a list of tiers of options, the best first. Format 2 had other events for pairs and for menus.
    """
    asked: Mapping[str, Any] = {}
    found: dict[int, tuple[Mapping[str, Any], Any]] = {}
    for event in log[1:]:
        match event["event"]:
            case "question" | "menu":
                asked = event
            case "answer" if "answer" in event:
                found[event["number"]] = (
                    asked,
                    {"first": [[0], [1]], "second": [[1], [0]], "same": [[0, 1]]}[event["answer"]],
                )
            case "answer" if event.get("reply") != "skip":
                found[event["number"]] = asked, tiers_of(event, len(asked["options"]))
            case "choice":
                found[event["number"]] = asked, event["tiers"]
            case "statement":
                found[event["number"]] = event, None
            case "retraction" | "undo":
                found.pop(event["number"], None)
    return found


def tiers_of(event: Mapping[str, Any], count: int) -> list[list[int]]:
    """Return the tiers of a reply in format 3."""
    if event.get("reply") == "equal":
        return [list(range(count))]
    ends = [event["best"], event.get("worst")]
    between = [i for i in range(count) if i not in ends]
    return [tier for tier in ([ends[0]], between, [ends[1]]) if tier and tier != [None]]


def rows_of(asked: Mapping[str, Any], tiers: Any) -> list[np.ndarray]:
    """Return rows a with ``a @ (w, e) >= 0`` for everybody who gives this reply."""

    def row(difference: np.ndarray, times: float) -> np.ndarray:
        return np.append(difference, times)

    rows = []
    if asked["event"] == "statement":
        for difference, outcome in zip(np.array(asked["differences"]), asked["outcomes"], strict=True):
            match outcome:
                case 3:
                    rows.append(row(difference, 0.0))
                case 0:
                    rows += [row(difference, 1.0), row(-difference, 1.0)]
                case _:
                    rows.append(row(difference, {1: -1.0, 2: 1.0}[outcome]))
        return rows
    options = asked.get("options") or asked.get("alternatives") or [asked["first"], asked["second"]]
    values = np.array(options)
    place = {i: tier for tier, members in enumerate(tiers) for i in members}
    for i in range(len(values)):
        for j in range(len(values)):
            if i != j and (len(tiers) == 1 or place[i] < place[j]):
                noticed = len(values) == 2 and len(tiers) == 2
                rows.append(row(values[i] - values[j], -1.0 if noticed else 1.0))
    return rows


def worst_regret(problem: Any, rows: Sequence[np.ndarray], value: np.ndarray) -> float:
    """Return the largest relative regret of an option over everybody who fits: one program per rival, rivals as needed."""
    k = len(value)
    matters = np.asarray(problem.matters, dtype=bool)
    bounds = [(0, None) if one else (0, 0) for one in matters] + [(0, None)]
    at_most = np.append(np.ones(k), -1.0)  # nobody's precision is more than everything is worth
    constraints = -np.array([*rows, at_most])
    starts = np.vstack([np.eye(k)[matters], np.ones((1, k))])
    rivals = {one.value.tobytes(): one.value for one in problem.best(starts)}
    if problem.items is not None and len(problem.items.gains) < 200:
        rivals |= {row.tobytes(): row for row in problem.items.gains}
    worst, waiting = 0.0, list(rivals.values())
    while waiting:
        rival = waiting.pop()
        if rival[matters].max() <= 1e-9:
            continue
        # Weights are scaled so that the rival is worth 1; its regret is then 1 - w @ value.
        done = linprog(
            np.append(value, 0.0), A_ub=constraints, b_ub=np.zeros(len(constraints)),
            A_eq=[np.append(rival, 0.0)], b_eq=[1.0], bounds=bounds,
        )  # fmt: skip
        if done.status == 2:  # nobody who fits gains anything from it
            continue
        assert done.status == 0, done.message
        worst = max(worst, 1 - done.fun)
        if done.fun < 1:
            (better,) = problem.best([done.x[:-1]])
            if better.value.tobytes() not in rivals:
                rivals[better.value.tobytes()] = better.value
                waiting.append(better.value)
    return worst


def check_certificate(problem: Any, log: Sequence[Mapping[str, Any]], came_to: Mapping[str, Any]) -> None:
    """Raise an AssertionError if somebody who fits the trusted answers loses more than the certificate says."""
    bound = came_to["regret_bound"]
    if bound is None:
        return
    answers = standing(log)
    trusted = [rows_of(*answers[number]) for number in answers if number not in came_to["set_aside"]]
    found = worst_regret(problem, [row for rows in trusted for row in rows], np.array(came_to["value"]))
    assert found <= bound + TOLERANCE, f"the certificate says {bound:.6f}, but {found:.6f} can be lost"
