"""The laws that every problem keeps, as a check for those who write one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tradeoff.errors import ArgumentError
from tradeoff.model import Lottery, Matrix, Option, Vector
from tradeoff.problem import ROUNDING, Problem, dilute, slack_of


def check_problem(
    problem: Problem, *, attainable: ArrayLike = (), rows: int = 60, threads: int = 4, seed: int = 0
) -> None:
    """Raise an AssertionError that names the first law that a problem breaks.

    ``attainable`` lists outcomes [n, k], in the person's units, that some plan attains: what brute force finds on a small
    problem. ``best`` must not be beaten by them, nor by what it returns for other weights. ``rows`` weight vectors are
    drawn with ``seed``, and ``threads`` threads ask for them at once. Pass a fresh problem: one that has remembered its
    answers hides what threads do to it.

    >>> from tradeoff import Catalogue
    >>> table = [[9.0, 1.0], [6.0, 6.0], [1.0, 9.0]]
    >>> check_problem(Catalogue(table), attainable=table)
    """
    k = len(problem.objectives)
    _require(k > 0, "a problem needs at least one objective")
    drawn = _rows(k, rows, np.random.default_rng(seed))
    threaded = _from_threads(problem, drawn, threads, seed)
    found = problem.best(drawn)
    _require(len(found) == len(drawn), f"best returned {len(found)} options for {len(drawn)} rows of weights")
    _check_units(problem)
    values = _checked_values(problem, found)
    known = np.concatenate([values, _gains(problem, attainable)])
    _check_best(problem, drawn, values, known)
    _check_repeats(problem, drawn, values, threaded)
    _check_refusals(problem, k)
    if callable(getattr(problem, "show", None)):
        _check_show(problem, found[:: max(1, len(found) // 8)])


def _require(holds: object, message: str) -> None:
    if not holds:
        raise AssertionError(message)


def _rows(k: int, count: int, rng: np.random.Generator) -> Matrix:
    """Return weights of any sign, non-negative ones, some with zeros, each objective alone, and all zeros."""
    mixed, likely = rng.normal(size=(count // 3, k)), rng.dirichlet(np.ones(k), count // 3)
    holes = rng.dirichlet(np.ones(k), count // 3) * rng.integers(0, 2, size=(count // 3, k))
    return np.concatenate([mixed, likely, holes, np.eye(k), -np.eye(k), np.zeros((1, k))])


def _check_units(problem: Problem) -> None:
    k, sign = len(problem.objectives), np.array([o.sign for o in problem.objectives])
    for name, vector in (("origin", problem.origin), ("scale", problem.scale)):
        _require(
            np.shape(vector) == (k,) and np.all(np.isfinite(vector)), f"{name} must be {k} finite numbers: {vector}"
        )
    _require(
        np.all(problem.scale * sign > 0),
        f"scale must be positive for objectives to be maximised and negative for the others; it is {problem.scale}",
    )
    _require(0 <= slack_of(problem) < np.inf, f"slack must be a number >= 0; it is {slack_of(problem)}")
    _require(
        isinstance(problem.fingerprint, str) and problem.fingerprint == problem.fingerprint,
        "fingerprint must be a text that stays the same",
    )
    if problem.nothing is not None:
        _require(not np.any(problem.nothing.value), f"nothing must be worth exactly 0; it is {problem.nothing.value}")


def _checked_values(problem: Problem, found: Sequence[Option]) -> Matrix:
    values = np.array([option.value for option in found])
    most = 1 + slack_of(problem) + ROUNDING
    _require(
        values.shape == (len(found), len(problem.objectives)),
        f"values must have one gain per objective: {values.shape}",
    )
    _require(
        np.all((values >= 0) & (values <= most)),
        f"gains must lie between 0 and 1; found {values.min()}..{values.max()}",
    )
    return values


def _gains(problem: Problem, attainable: ArrayLike) -> Matrix:
    outcomes = np.asarray(attainable, dtype=float).reshape(-1, len(problem.objectives))
    gains: Matrix = (outcomes - problem.origin) / problem.scale
    return gains


def _check_best(problem: Problem, rows: Matrix, values: Matrix, known: Matrix) -> None:
    """Nothing known is better than what ``best`` returns, and nothing dominates it where all weights are >= 0."""
    allowed = slack_of(problem) + ROUNDING
    for row, value in zip(rows, values, strict=True):
        missing = float((known @ row).max() - value @ row)
        _require(
            missing <= allowed * np.abs(row).sum(),
            f"best({row.tolist()}) is worth {value @ row:.12g}, but {missing:.3g} more is attainable, and slack is "
            f"{slack_of(problem):.3g}",
        )
        if np.all(row >= 0):
            better = np.all(known >= value - ROUNDING, axis=1) & np.any(known > value + 10 * allowed, axis=1)
            _require(
                not better.any(), f"best({row.tolist()}) returned {value.tolist()}, which {known[better][:1]} dominates"
            )


def _from_threads(problem: Problem, rows: Matrix, threads: int, seed: int) -> list[dict[int, Vector]]:
    """Return what each thread got for each row, with threads that are switched as often as possible."""

    def ask(thread: int) -> dict[int, Vector]:
        order = np.random.default_rng((seed, thread)).permutation(len(rows))
        return {int(i): _one(problem.best(rows[[i]])).value for i in order}

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(ask, range(threads)))
    finally:
        sys.setswitchinterval(interval)


def _one(found: Sequence[Option]) -> Option:
    _require(len(found) == 1, f"best returned {len(found)} options for 1 row of weights")
    return found[0]


def _check_repeats(problem: Problem, rows: Matrix, values: Matrix, threaded: Sequence[dict[int, Vector]]) -> None:
    """A row's result does not depend on its batch, its size, or on other threads."""
    order = np.random.default_rng(0).permutation(len(rows))
    for i, option in zip(order, problem.best(rows[order]), strict=True):
        _require(
            np.array_equal(option.value, values[i]),
            f"best({rows[i].tolist()}) depends on the other rows of the batch",
        )
    for option, value, row in zip(problem.best(rows * 2.0**600), values, rows, strict=True):
        _require(np.array_equal(option.value, value), f"best({row.tolist()}) changes when the weights are multiplied")
    for results in threaded:
        for i, value in results.items():
            _require(np.array_equal(value, values[i]), f"best({rows[i].tolist()}) is another when several threads ask")


def _check_refusals(problem: Problem, k: int) -> None:
    for weights in ([[0.0] * (k + 1)], [0.0] * k, [[np.nan] * k], [[np.inf] * k]):
        try:
            problem.best(weights)
        except ArgumentError:
            continue
        raise AssertionError(f"best must refuse the weights {weights} with an ArgumentError")


def _check_show(problem: Any, found: Sequence[Option]) -> None:
    """A lottery has at most k+1 trajectories, and their mean is the option's value in the person's units."""
    k = len(problem.objectives)
    shown = [*found, *(dilute(option, 0.3) for option in found)]
    for option in [*shown, *([] if problem.nothing is None else [problem.nothing])]:
        lottery = problem.show(option)
        _require(isinstance(lottery, Lottery), f"show must return a Lottery, not {type(lottery).__name__}")
        _require(
            len(lottery.trajectories) <= k + 1, f"show returned {len(lottery.trajectories)} trajectories for k = {k}"
        )
        expected = problem.origin + problem.scale * option.value
        size = np.maximum(np.abs(lottery.outcomes).max(axis=0), getattr(problem, "largest_total", 0.0))
        gap = np.abs(lottery.average - expected)
        _require(
            np.all(gap <= ROUNDING * (np.abs(problem.scale) + size)),
            f"show's average is {lottery.average.tolist()}, but the option's outcome is {expected.tolist()}",
        )
        if callable(getattr(problem, "outcome", None)):
            _require(np.allclose(problem.outcome(option.value), expected), "outcome(v) must be origin + scale * v")
