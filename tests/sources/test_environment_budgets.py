"""Environments are explored and played within limits of memory and time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tradeoff
from tests.messages import refused
from tradeoff.errors import ProblemError
from tradeoff.sources.progress import reported_to

# --- environments ----------------------------------------------------------------------------------------------------

gymnasium = pytest.importorskip("gymnasium")


class Pictures(gymnasium.Env):  # type: ignore[misc]
    """A walk along a line of cells, or without end, that shows a picture of where one is."""

    def __init__(self, cells: int | None = 4) -> None:
        self.observation_space = gymnasium.spaces.Box(0, 255, (200, 200, 3), np.uint8)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.cells, self.at = cells, 0

    def _picture(self) -> Any:
        self.pixels = np.full((200, 200, 3), self.at % 251, dtype=np.uint8)
        self.pixels[0, 0, :] = np.array([self.at >> 16, self.at >> 8, self.at]) % 256
        return self.pixels

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.at = 0
        return self._picture(), {}

    def step(self, action: int) -> Any:
        self.at = self.at + 1 + action if self.cells is None else min(self.at + 1, self.cells)
        return self._picture(), float(action), self.at == self.cells, False, {}


def test_pictures_of_few_states_are_read_exactly_without_being_kept() -> None:
    from tradeoff_gym.exploration import enumerate_states

    problem = tradeoff.load(Pictures())
    assert problem.horizon == 4 and len(problem.states) == 5 and "exact" in problem.about
    assert problem.outcome(problem.best([[1.0]])[0].value) == 4
    space = enumerate_states(Pictures(), [0, 1], None)
    arrays = [
        part
        for part in [*space.observations, *(v for s in space.saved for v in s.values())]
        if isinstance(part, np.ndarray)
    ]
    assert len(space.observations) == 5 and not arrays and not space.drawable


def test_an_exploration_of_pictures_that_does_not_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRADEOFF_SECONDS", "0.5")
    said: list[tuple[str, int, int | None]] = []
    expected = refused(ProblemError, "0.5 seconds", "TRADEOFF_SECONDS", "pictures")
    with reported_to(lambda *what: said.append(what)), expected:
        tradeoff.load(Pictures(None), horizon=100_000)
    assert said and said[0][0].startswith("Exploring")


class Numbers(Pictures):
    """The same walk with numbers for observations."""

    def __init__(self, cells: int | None = None) -> None:
        super().__init__(cells)
        self.observation_space = gymnasium.spaces.Box(0, 2**30, (1,), np.int64)

    def _picture(self) -> Any:
        return np.array([self.at])


def test_a_model_never_depends_on_the_speed_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the time does not suffice for the exact model, an estimate does not take its place unasked."""
    monkeypatch.setenv("TRADEOFF_SECONDS", "0.3")
    for method in ("auto", "exact"):
        with refused(ProblemError, "TRADEOFF_SECONDS", "method=rollouts"):
            tradeoff.load(Numbers(), horizon=1_000_000, method=method)


def test_an_exploration_that_takes_too_much_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRADEOFF_MEMORY", "0.02")
    with refused(ProblemError, "0.02 GiB", "TRADEOFF_MEMORY"):
        tradeoff.load(Numbers(), horizon=1_000_000)


def test_episodes_are_played_for_a_limited_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRADEOFF_SECONDS", "0.2")
    with refused(ProblemError, "0.2 seconds", "episodes=", "TRADEOFF_SECONDS"):
        tradeoff.load(Pictures(), method="rollouts", horizon=4, episodes=100_000_000)


def test_the_environment_of_mo_gymnasium_that_shows_pictures_is_refused() -> None:
    pytest.importorskip("mo_gymnasium")
    with refused(ProblemError, "pictures"):
        tradeoff.load("mo-gym:minecart-rgb-v0", horizon=20)
