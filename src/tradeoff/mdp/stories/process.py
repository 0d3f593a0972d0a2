"""The protocol of decision processes whose policies can be represented, and the paths found in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tradeoff.model import Matrix, Objective, Plan, Trajectory, Vector

Int = NDArray[np.int64]


class Step(Protocol):
    """One step of a process: ragged arrays of choices and branches, as in ``problems.layer.Layer``."""

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
        """What each branch earns; None if rewards do not depend on the branch."""


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
        """A bound on the total of each objective under any plan, by which rounding is measured."""

    def layer(self, step: int) -> Step:
        """Return one step."""

    @property
    def origin(self) -> Vector:
        """The reference's outcome, in the person's units."""

    @property
    def reference_name(self) -> str:
        """The name of the reference."""

    def plan(self, policy: object) -> Plan:
        """Check a policy, given in any accepted form, and return it as a plan."""

    def can_follow(self, plan: Plan) -> bool:
        """Return whether the plan is a policy rather than a hypothetical reference."""

    def follow(self, plan: Plan) -> Following:
        """Return a single policy in a form that can be followed step by step."""

    def policy_values(self, step: int, chance: Vector, after: Matrix) -> Matrix:
        """Return the expected outcome from each state on [S, k], given that after this step (Eq. 2)."""

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
    """Return the rewards of these choices with these branches."""
    return layer.reward[choices] if layer.branch_reward is None else layer.branch_reward[branches]


def path_probability(process: Process, following: Following, paths: Paths, row: int) -> float:
    """Return the probability of exactly this path under the policy."""
    probability = float(process.start[paths.states[row, 0]])
    for step in range(process.horizon):
        choice, branch = paths.choices[row, step], paths.branches[row, step]
        if choice < 0 or probability == 0.0:
            break
        choices, chances = following.at(step, int(paths.states[row, step]))
        probability *= float(chances[choices == choice].sum()) * float(process.layer(step).prob[branch])
    return probability


def trajectories(process: Process, paths: Paths, chances: Mapping[int, float]) -> tuple[Trajectory, ...]:
    """Return some of the paths as trajectories, with names; they stop where nothing more happens."""
    made = []
    for row, chance in chances.items():
        steps = int(np.count_nonzero(paths.choices[row] >= 0))
        states = tuple(process.states[s] for s in paths.states[row, : steps + 1])
        actions = tuple(process.actions[process.layer(t).action[paths.choices[row, t]]] for t in range(steps))
        made.append(Trajectory(states, actions, chance, paths.returns[row]))
    return tuple(made)
