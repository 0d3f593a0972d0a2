"""Our own problems keep the laws that implementers are given, and a problem that breaks one is caught."""

from __future__ import annotations

import time
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models import Arrays, all_policies, small_arrays
from tradeoff import Catalogue, Objective, PointSet, load
from tradeoff.model import Lottery, Option
from tradeoff.sources import examples
from tradeoff.testing.problems import check_problem

seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=60)  # each tries every policy
@given(small_arrays())
def test_mdps_keep_the_laws(arrays: Arrays) -> None:
    _, outcomes = all_policies(arrays)
    check_problem(arrays.mdp(), attainable=outcomes, rows=12, threads=2)


def random_points(seed: int) -> tuple[np.ndarray, list[Objective]]:
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 5))
    points = rng.normal(size=(rng.integers(1, 40), k)) * 10.0 ** rng.integers(-4, 5, k)
    points = points if seed % 2 else rng.integers(-2, 3, points.shape).astype(float)
    return points, [Objective(f"o{j}", "u", "min" if rng.random() < 0.5 else "max") for j in range(k)]


@given(seeds)
def test_catalogues_keep_the_laws(seed: int) -> None:
    points, objectives = random_points(seed)
    check_problem(Catalogue(points, objectives), attainable=points)


@settings(max_examples=60)
@given(seeds, st.sampled_from([0, 7, 1000]))
def test_point_sets_keep_the_laws(seed: int, most: int) -> None:
    points, objectives = random_points(seed)
    check_problem(
        PointSet(lambda w: points[(points @ w).argmax()], objectives, gap=0, most_asked=most),
        attainable=points,
        rows=30,
    )


@pytest.mark.parametrize("name", examples())
def test_bundled_problems_keep_the_laws(name: str) -> None:
    check_problem(load(name), rows=18, threads=2)


class Broken(Catalogue):
    """A catalogue with one thing wrong with it."""

    def __init__(self, wrong: str) -> None:
        angles = np.linspace(0, np.pi / 2, 30)
        table = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        super().__init__(np.concatenate([table, [[1.0, -0.3]]]), ["a", "b"])
        self.wrong, self.asked, self.batch = wrong, 0, 0

    @property
    def scale(self) -> np.ndarray:
        return -super().scale if self.wrong == "scale" else super().scale

    @cached_property
    def fingerprint(self) -> str:
        return 7 if self.wrong == "fingerprint" else "x"  # type: ignore[return-value]

    def best(self, weights: Any) -> list[Option]:
        rows = np.asarray(weights, dtype=float)
        if self.wrong == "refuses nothing":
            rows = np.nan_to_num(np.resize(rows, (len(rows), 2)))
        found = super().best(rows)
        self.asked += 1
        match self.wrong:
            case "missing":
                return found[:-1]
            case "suboptimal":
                return [self.option(3) for _ in found]
            case "batch" if len(rows) > 1 and self.asked % 2:
                return [self.option(min(29, a.plan.index + 1)) for a in found]  # type: ignore[union-attr]
            case "gains":
                return [Option(a.value - 0.5, a.plan) for a in found]
            case "dominated":
                return [
                    self.option(30) if np.array_equal(row, [1, 0]) else a for a, row in zip(found, rows, strict=True)
                ]
            case "overflow" if np.abs(rows).max() > 1e100:
                return [self.option(3) for _ in found]
        return found

    def show(self, option: Option) -> Lottery:
        lottery = super().show(option)
        return super().show(self.option(5)) if self.wrong == "show" else lottery


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("missing", "options for"),
        ("suboptimal", "more is attainable"),
        ("batch", "more is attainable|depends on the other rows"),
        ("gains", "gains must lie between 0 and 1"),
        ("scale", "scale must be positive"),
        ("fingerprint", "fingerprint must be a text"),
        ("dominated", "dominates"),
        ("overflow", "changes when the weights are multiplied"),
        ("refuses nothing", "must refuse the weights"),
        ("show", "show's average"),
    ],
)
def test_what_is_wrong_with_a_problem_is_named(wrong: str, words: str) -> None:
    sound = Broken("nothing")
    check_problem(sound, attainable=sound.values)
    with pytest.raises(AssertionError, match=words):
        check_problem(Broken(wrong), attainable=sound.values)


class Racing(Catalogue):
    """Numbers what it finds without a lock."""

    def __init__(self) -> None:
        angles = np.linspace(0, np.pi / 2, 500)
        super().__init__(np.stack([np.cos(angles), np.sin(angles)], axis=1))
        self.numbers: dict[bytes, int] = {}
        self.found: list[Option] = []

    def best(self, weights: Any) -> list[Option]:
        answers = []
        for row, best in zip(np.asarray(weights), super().best(weights), strict=True):
            key = row.tobytes()
            if key not in self.numbers:
                self.numbers[key] = len(self.found)
                time.sleep(1e-6)  # another thread runs here
                self.found.append(best)
            answers.append(self.found[min(self.numbers[key], len(self.found) - 1)])
        return answers


def test_a_race_between_threads_is_noticed() -> None:
    with pytest.raises(AssertionError):
        check_problem(Racing(), rows=600, threads=8)


def test_an_understated_slack_is_noticed() -> None:
    rng = np.random.default_rng(3)
    points = rng.random((300, 3))

    def nearly(weights: np.ndarray) -> np.ndarray:
        worth = points @ weights
        allowed = worth >= worth.max() - 8e-4 * np.abs(weights).sum()
        return points[np.flatnonzero(allowed)[worth[allowed].argmin()]]

    problem = PointSet(nearly, ["a", "b", "c"], most_asked=0)
    inside = points[np.all((points >= problem.nadir) & (points <= problem.ideal), axis=1)]
    check_problem(problem, attainable=inside, rows=300)
    problem.slack = 0.0  # type: ignore[misc]
    with pytest.raises(AssertionError, match="more is attainable, and slack is 0"):
        check_problem(problem, attainable=inside, rows=300)
