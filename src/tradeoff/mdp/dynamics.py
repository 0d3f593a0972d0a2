"""The dynamics of a Markov decision process as plain data: everything that a solver sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tradeoff.errors import ProblemError
from tradeoff.mdp.layer import Layer
from tradeoff.model import Vector


@dataclass(frozen=True, eq=False)
class Dynamics:
    """The layers of a process (one for all steps, or one per step), its horizon, its start, and its names."""

    layers: tuple[Layer, ...]
    horizon: int
    start: Vector
    states: Sequence[str]
    actions: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.layers) not in (1, self.horizon):
            raise ProblemError(
                f"{len(self.layers)} steps are described, but the horizon is {self.horizon}; describe each step"
            )
        for step, layer in enumerate(self.layers):
            changed = np.flatnonzero(layer.ends != self.layers[0].ends)
            if len(changed):
                raise ProblemError(
                    f"state {self.states[changed[0]]!r} has actions at some steps but none at others (compare steps 0 and "
                    f"{step}); give it an action at every step, or at none, which makes it an end"
                )

    def layer(self, step: int) -> Layer:
        """Return the layer of one step."""
        return self.layers[step if len(self.layers) > 1 else 0]

    @property
    def stationary(self) -> bool:
        """Whether one layer serves all steps."""
        return len(self.layers) == 1

    @property
    def objectives(self) -> int:
        """The number of objectives, k."""
        return int(self.layers[0].reward.shape[1])

    @cached_property
    def most_choices(self) -> int:
        """The largest number of choices that a state has."""
        return max(int(np.diff(layer.state_ptr).max(initial=0)) for layer in self.layers)

    @cached_property
    def largest_total(self) -> Vector:
        """A bound on the total of each objective under any plan, by which rounding is measured. It may be infinite."""
        largest = [np.abs(layer.reward).max(axis=0, initial=0.0) for layer in self.layers]
        with np.errstate(over="ignore"):
            total: Vector = self.horizon * np.max(largest, axis=0)
        return total
