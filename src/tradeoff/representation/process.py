"""What the representation of policies needs to know of a decision process, and the paths it finds there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tradeoff.model import Matrix, Objective, Plan, Trajectory, Vector

Int = NDArray[np.int64]


class Step(Protocol):
    """One step of a process: ragged arrays of choices and branches, as ``problems.layer.Layer`` has them."""

    @property
    def state_ptr(self) -> NDArray[np.int32]:
        """Where each state's choices begin."""

    @property
    def choice_ptr(self) -> NDArray[np.int64]:
        """Where each choice's branches begin."""

    @property
    def state_of_choice(self) -> NDArray[np.int32]:
        """The state of each choice."""

    @property
    def action(self) -> NDArray[np.int32]:
        """The action of each choice."""

    @property
    def target(self) -> NDArray[np.int32]:
        """Where each branch leads."""

    @property
    def prob(self) -> Vector:
        """How likely each branch is."""

    @property
    def reward(self) -> Matrix:
        """What each choice earns on average."""

    @property
    def branch_reward(self) -> Matrix | None:
        """What each branch earns, where it depends on it."""


class Following(Protocol):
    """One policy being followed."""

    def chance(self, step: int) -> Vector:
        """Return the chance of each choice given its state."""

    def at(self, step: int, state: int) -> tuple[Int, Vector]:
        """Return the choices that are possible in a state, and their chances."""

    def options(self, step: int, states: Int) -> tuple[Int, Int, Vector]:
        """Return the possible choices of many states: (row of the state, choice, chance), rows increasing."""


class Process(Protocol):
    """A finite-horizon process with vector rewards."""

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """The objectives."""

    @property
    def horizon(self) -> int:
        """The number of steps."""

    @property
    def start(self) -> Vector:
        """The start distribution."""

    @property
    def states(self) -> Sequence[str]:
        """The names of the states."""

    @property
    def actions(self) -> Sequence[str]:
        """The names of the actions."""

    @property
    def largest_total(self) -> Vector:
        """No plan earns or costs more than this of each objective: what rounding is relative to."""

    def layer(self, step: int) -> Step:
        """Return one step."""

    @property
    def origin(self) -> Vector:
        """The reference's outcome, in the person's units."""

    @property
    def reference_name(self) -> str:
        """What the reference is called."""

    def plan(self, policy: object) -> Plan:
        """Return a policy in any accepted form as a checked plan."""

    def can_follow(self, plan: Plan) -> bool:
        """Return whether the plan is a policy, and not a hypothetical reference."""

    def follow(self, plan: Plan) -> Following:
        """Return a single policy, ready to be followed."""

    def policy_values(self, step: int, chance: Vector, after: Matrix) -> Matrix:
        """Return the expected outcome from each state on [S, k] before a step, given that after it (Eq. 2)."""

    def next_distribution(self, step: int, chance: Vector, now: Vector) -> Vector:
        """Return how likely each state is after a step, given how likely it is before."""


@dataclass(frozen=True, eq=False)
class Paths:
    """Weighted complete paths: states [m, H+1], choices and branches [m, H] (-1 once nothing more happens)."""

    states: Int
    choices: Int
    branches: Int
    weights: Vector
    returns: Matrix


def branch_rewards(layer: Step, choices: Int, branches: Int) -> Matrix:
    """Return what is earned by taking these choices and ending up in these branches."""
    return layer.reward[choices] if layer.branch_reward is None else layer.branch_reward[branches]


def path_probability(process: Process, following: Following, paths: Paths, row: int) -> float:
    """Return how likely exactly this path is when the policy is followed."""
    probability = float(process.start[paths.states[row, 0]])
    for step in range(process.horizon):
        choice, branch = paths.choices[row, step], paths.branches[row, step]
        if choice < 0 or probability == 0.0:
            break
        choices, chances = following.at(step, int(paths.states[row, step]))
        probability *= float(chances[choices == choice].sum()) * float(process.layer(step).prob[branch])
    return probability


def trajectories(process: Process, paths: Paths, chances: Mapping[int, float]) -> tuple[Trajectory, ...]:
    """Return the paths of some rows with the names of their states and actions; they stop where nothing more happens."""
    made = []
    for row, chance in chances.items():
        steps = int(np.count_nonzero(paths.choices[row] >= 0))
        states = tuple(process.states[s] for s in paths.states[row, : steps + 1])
        actions = tuple(process.actions[process.layer(t).action[paths.choices[row, t]]] for t in range(steps))
        made.append(Trajectory(states, actions, chance, paths.returns[row]))
    return tuple(made)
