"""A Markov decision process with k-dimensional rewards and a finite horizon, solved exactly for any weights."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tradeoff.errors import ArgumentError, ProblemError, ProblemWarning
from tradeoff.kernels import bellman
from tradeoff.model import (
    NOTHING,
    Alternative,
    Lottery,
    Matrix,
    Mixture,
    Nothing,
    Objective,
    OptimalPolicy,
    Plan,
    Policy,
    Reference,
    Vector,
    frozen_array,
    objectives_from,
)
from tradeoff.problem import Frame, Framed, fingerprint_of, weight_rows
from tradeoff.problems import building, policies, solving
from tradeoff.problems.layer import Layer, build_layer
from tradeoff.problems.learned import Evidence, learn
from tradeoff.problems.memory import check_fits, memory_limit
from tradeoff.problems.rollouts import Rollouts, roll
from tradeoff.representation import Method, Order, represent


class MDP(Framed):
    """A finite-horizon Markov decision process with vector rewards.

    Make one with ``from_arrays``, ``from_sparse`` or ``from_rows``. Rewards are in the person's units; gains over the
    reference are worked out inside.

    >>> trip = MDP.from_rows([("home", "drive", 0.9, "work", (40, 5)), ("home", "drive", 0.1, "work", (180, 5)),
    ...                       ("home", "subway", 1.0, "work", (60, 2))], ends=["work"], horizon=1, start="home",
    ...                      objectives=[Objective("time", "min", "min"), Objective("price", "EUR", "min")])
    >>> fast, cheap = trip.best([[1, 0], [0, 1]])
    >>> trip.outcome(fast.value).round(6).tolist(), trip.outcome(cheap.value).round(6).tolist()
    ([54.0, 5.0], [60.0, 2.0])
    """

    def __init__(
        self,
        layers: Sequence[Layer],
        *,
        horizon: int,
        start: object,
        states: Sequence[str],
        actions: Sequence[str],
        objectives: Sequence[Objective],
        reference: Reference | None = None,
        nothing_action: str | None = None,
        places: Mapping[str, tuple[float, float]] | None = None,
        pictures: Mapping[str, bytes] | None = None,
        prune: bool = True,
        name: str = "mdp",
        title: str = "",
        about: str = "",
    ) -> None:
        """``layers``: one for all steps, or one per step. The constructors ``from_...`` are what most people want."""
        self.horizon = building.horizon_from(horizon)
        if len(layers) not in (1, self.horizon):
            raise ProblemError(f"{len(layers)} steps are described, but the horizon is {self.horizon}; describe each")
        for step, layer in enumerate(layers):
            changed = np.flatnonzero(layer.ends != layers[0].ends)
            if len(changed):
                raise ProblemError(
                    f"state {states[changed[0]]!r} has actions at some steps but none at others (compare steps 0 and "
                    f"{step}); give it an action at every step, or at none, which makes it an end"
                )
        self.objectives = tuple(objectives)
        self.notes: list[str] = []
        chances = building.start_from(start, states)
        self.places = building.places_from(places or {}, states)
        self.pictures: Mapping[str, bytes] = (
            {} if pictures is None else pictures
        )  # PNG by state; may be drawn on demand
        if prune:
            layers, chances, states, lost = building.without_unreachable(layers, chances, states)
            if lost:
                self.notes.append(lost)
                warnings.warn(lost, ProblemWarning, stacklevel=3)
            if self.places:
                left = set(states)
                self.places = {state: place for state, place in self.places.items() if state in left}
        self.layers = tuple(layers)
        self.start = frozen_array(chances)
        self.states, self.actions = states, tuple(actions)
        self.reference = reference or Reference()
        self.reference.check(self.objectives)
        self.nothing_action = None if nothing_action is None else building.index_of("action", nothing_action, actions)
        self.name, self.title, self.about = name, title or name, about
        self.threads = os.cpu_count() or 1  # weight vectors are spread over so many threads
        self.evidence: Evidence | None = None  # what a model learned from data rests on

    # --- constructors -------------------------------------------------------------------------------------------------

    @classmethod
    def from_arrays(
        cls,
        transitions: ArrayLike,
        rewards: ArrayLike,
        *,
        horizon: int | None = None,
        start: object = 0,
        available: ArrayLike | None = None,
        objectives: Sequence[Objective | str] | None = None,
        states: Sequence[str] | None = None,
        actions: Sequence[str] | None = None,
        rewards_on: str | None = None,
        renormalise: bool = False,
        **details: Any,
    ) -> MDP:
        """Return the MDP of dense arrays.

        ``transitions[S, A, S]`` or ``[H, S, A, S]``; ``rewards[S, A, k]``, by next state ``[S, A, S, k]``, by step
        ``[H, S, A, k]`` or both. An action whose probabilities are all 0 in a state is not available there
        (``available[S, A]`` says so explicitly); a state with no available action is an end.
        """
        dense = building.array_of(transitions, "the transitions")
        if dense.ndim not in (3, 4) or dense.shape[-3] != dense.shape[-1] or 0 in dense.shape:
            raise ProblemError(
                f"the transitions have shape {dense.shape}; expected is [states, actions, states] "
                "or [steps, states, actions, states]"
            )
        if dense.ndim == 4:
            if horizon is not None and horizon != len(dense):
                raise ProblemError(f"the transitions are for {len(dense)} steps, but the horizon is {horizon}")
            horizon = len(dense)
        allowed = None if available is None else np.asarray(available, dtype=bool)
        if allowed is not None and allowed.shape not in (dense.shape[-3:-1], dense.shape[:-1]):
            raise ProblemError(f"available has shape {allowed.shape}; expected is {dense.shape[-3:-1]}")
        return cls._from_matrices(
            building.dense_steps(dense), rewards, horizon, start, allowed, objectives, states, actions, rewards_on,
            renormalise, details,
        )  # fmt: skip

    @classmethod
    def from_sparse(
        cls,
        transitions: Sequence[Any],
        rewards: ArrayLike,
        *,
        horizon: int | None = None,
        start: object = 0,
        available: ArrayLike | None = None,
        objectives: Sequence[Objective | str] | None = None,
        states: Sequence[str] | None = None,
        actions: Sequence[str] | None = None,
        rewards_on: str | None = None,
        renormalise: bool = False,
        **details: Any,
    ) -> MDP:
        """Return the MDP of SciPy sparse matrices: one [S, S] per action, or a list of such lists, one per step."""
        from scipy import sparse

        if not len(transitions):
            raise ProblemError("the list of transition matrices is empty; give one matrix [states, states] per action")
        steps = [transitions] if sparse.issparse(transitions[0]) else list(transitions)
        if len(steps) > 1:
            if horizon is not None and horizon != len(steps):
                raise ProblemError(f"the transitions are for {len(steps)} steps, but the horizon is {horizon}")
            horizon = len(steps)
        shape = steps[0][0].shape
        for step, matrices in enumerate(steps):
            if len(matrices) != len(steps[0]):
                raise ProblemError(f"step {step} has {len(matrices)} matrices, but step 0 has {len(steps[0])}")
            for action, matrix in enumerate(matrices):
                if matrix.shape != (shape[0], shape[0]):
                    raise ProblemError(
                        f"the matrix of action {action} has shape {matrix.shape}; expected is {(shape[0], shape[0])}"
                    )
        allowed = None if available is None else np.asarray(available, dtype=bool)
        table = (shape[0], len(steps[0]))
        if allowed is not None and allowed.shape not in (table, (len(steps), *table)):
            raise ProblemError(f"available has shape {allowed.shape}; expected is {table}")
        return cls._from_matrices(
            steps, rewards, horizon, start, allowed, objectives, states, actions, rewards_on, renormalise, details
        )

    @classmethod
    def _from_matrices(
        cls,
        steps: list[Any],
        rewards: ArrayLike,
        horizon: int | None,
        start: object,
        available: NDArray[np.bool_] | None,
        objectives: Sequence[Objective | str] | None,
        states: Sequence[str] | None,
        actions: Sequence[str] | None,
        rewards_on: str | None,
        renormalise: bool,
        details: dict[str, Any],
    ) -> MDP:
        horizon = building.horizon_from(horizon)
        state_count, action_count = steps[0][0].shape[0], len(steps[0])
        table = building.array_of(rewards, "the rewards")
        kind = building.check_rewards_shape(table.shape, horizon, state_count, action_count, rewards_on)
        named = objectives_from(objectives, table.shape[-1])
        state_names = building.names_from("state", states, state_count)
        action_names = building.names_from("action", actions, action_count)
        layers = building.layers_from_matrices(
            steps, table, kind, horizon=horizon, available=available, renormalise=renormalise, states=state_names,
            actions=action_names, objective_names=[o.name for o in named],
        )  # fmt: skip
        return cls(
            layers, horizon=horizon, start=start, states=state_names,
            actions=action_names, objectives=named, **details,
        )  # fmt: skip

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[Sequence[Any]],
        *,
        horizon: int,
        start: object,
        ends: Iterable[str] = (),
        objectives: Sequence[Objective | str] | None = None,
        states: Sequence[str] | None = None,
        actions: Sequence[str] | None = None,
        renormalise: bool = False,
        **details: Any,
    ) -> MDP:
        """Return the MDP of rows (state, action, probability, next state, rewards).

        Rewards may differ between the rows of one action: they are then earned with that branch. States without rows
        of their own must be named in ``ends``: nothing more happens there.
        """
        state, action, probability, target, rewards = building.columns_from_rows(rows)
        return cls.from_columns(
            state, action, probability, target, rewards, horizon=horizon, start=start, ends=ends,
            objectives=objectives, states=states, actions=actions, renormalise=renormalise, **details,
        )  # fmt: skip

    @classmethod
    def from_columns(
        cls,
        state: Sequence[str],
        action: Sequence[str],
        probability: Vector,
        target: Sequence[str],
        rewards: Matrix,
        step: Sequence[int] | None = None,
        *,
        horizon: int,
        start: object,
        ends: Iterable[str] = (),
        objectives: Sequence[Objective | str] | None = None,
        states: Sequence[str] | None = None,
        actions: Sequence[str] | None = None,
        renormalise: bool = False,
        **details: Any,
    ) -> MDP:
        """Return the MDP of the columns of such rows; with ``step``, each row holds for one step only."""
        named = objectives_from(objectives, rewards.shape[1])
        horizon = building.horizon_from(horizon)
        layers, state_names, action_names = building.layers_from_columns(
            state, action, probability, target, rewards, step, horizon=horizon, states=states, actions=actions,
            ends=ends, renormalise=renormalise, objective_names=[o.name for o in named],
        )  # fmt: skip
        if isinstance(start, int | np.integer) and not isinstance(start, bool):
            start = str(start)  # rows name their states, so a number is a name here
        return cls(
            layers, horizon=horizon, start=start, states=state_names,
            actions=action_names, objectives=named, **details,
        )  # fmt: skip

    @classmethod
    def from_log(cls, log: Iterable[Sequence[Any]], *, horizon: int | None = None, **details: Any) -> MDP:
        """Return the MDP that logged steps show (the paper's discussion: the model is learned first).

        ``log`` has rows (episode, step, state, action, rewards, next state). Transitions and mean rewards are those that
        were seen; the start is where episodes began, the horizon the longest of them. What was never seen is not
        invented: ``evidence`` on the result counts visits and lists the untried (state, action) pairs.
        """
        learned = learn(log)
        details.setdefault("start", learned.start)
        mdp = cls.from_rows(
            learned.rows,
            horizon=learned.horizon if horizon is None else horizon,
            ends=learned.evidence.only_last,
            **details,
        )
        mdp.evidence = learned.evidence
        mdp.notes += learned.evidence.notes()
        return mdp

    def with_nothing(self, name: str = "do nothing") -> MDP:
        """Return the MDP with the paper's action a_0: available only in the start state, zero reward, stays put."""
        if self.nothing_action is not None:
            raise ProblemError(f"there is a do-nothing action already: {self.actions[self.nothing_action]!r}")
        if name in self.actions:
            raise ProblemError(f"there is an action {name!r} already; give the do-nothing action another name")
        new = len(self.actions)
        actions = (*self.actions, name)
        at = np.flatnonzero(self.start > 0)
        layers = []
        for layer in self.layers:
            state, action, prob, target, reward = solving.branches(layer)
            zero = np.zeros((len(at), len(self.objectives)))
            layers.append(
                build_layer(
                    np.concatenate([state, at]),
                    np.concatenate([action, np.full(len(at), new)]),
                    np.concatenate([prob, np.ones(len(at))]),
                    np.concatenate([target, at]),
                    np.concatenate([reward, zero]),
                    states=len(self.states),
                    renormalise=False,
                    where=building.place_of(self.states, actions),
                    objective_names=[o.name for o in self.objectives],
                )
            )
        made = MDP(
            layers, horizon=self.horizon, start=self.start, states=self.states, actions=actions,
            objectives=self.objectives, reference=self.reference, nothing_action=name, places=self.places,
            pictures=self.pictures, prune=False, name=self.name, title=self.title, about=self.about,
        )  # fmt: skip
        made.notes, made.evidence, made.threads = list(self.notes), self.evidence, self.threads
        return made

    def __repr__(self) -> str:
        return (
            f"<MDP {self.name!r}: {len(self.states)} states, {len(self.actions)} actions, "
            f"{len(self.objectives)} objectives, {self.horizon} steps>"
        )

    # --- solving ------------------------------------------------------------------------------------------------------

    def layer(self, step: int) -> Layer:
        """Return the layer of one step."""
        return self.layers[step if len(self.layers) > 1 else 0]

    @cached_property
    def largest_total(self) -> Vector:
        """No plan can earn or cost more than this of each objective; the scale that rounding is measured by."""
        largest = [np.abs(layer.reward).max(axis=0, initial=0.0) for layer in self.layers]
        with np.errstate(over="ignore"):
            total: Vector = self.horizon * np.max(largest, axis=0)
        broken = np.flatnonzero(~np.isfinite(total))
        if len(broken):
            raise ProblemError(
                f"{self.horizon} steps of the largest amount of {self.objectives[broken[0]].name!r} are too large to be "
                "added up; use a larger unit"
            )
        return total

    @cached_property
    def frame(self) -> Frame:
        """The reference and the scale of each gain, from the best and the worst expectation of each objective."""
        k = len(self.objectives)
        directions = np.concatenate([np.eye(k), -np.eye(k)])
        noise = 1e-15 * self.largest_total
        optima = solving.optimal_scores(self, directions)
        return Frame(self.objectives, -optima[k:], optima[:k], noise, self.reference)

    @property
    def nothing_is_reference(self) -> bool:
        """Whether the do-nothing action exists and is the reference, as in the paper."""
        return self.nothing_action is not None and not np.any(self.origin)

    @cached_property
    def fingerprint(self) -> str:
        """What tells this model from others: everything that decides what is optimal, and the names people read."""
        outcome = self.reference.outcome and sorted(self.reference.outcome.items())
        arrays = [
            array
            for layer in self.layers
            for array in (*layer.arrays, layer.action, layer.branch_reward)
            if array is not None
        ]
        return fingerprint_of(
            "mdp",
            self.objectives,
            "\n".join(self.states),
            self.actions,
            self.horizon,
            self.start,
            self.nothing_action,
            outcome,
            *arrays,
        )

    @property
    def reference_name(self) -> str:
        """What the reference is called: the do-nothing action where it is the reference."""
        if self.nothing_action is not None and self.nothing_is_reference:
            return self.actions[self.nothing_action]
        return self.reference.name

    def best(self, weights: ArrayLike) -> list[Alternative]:
        """Return an optimal policy for each row of weights (any sign); ties never leave a dominated one."""
        rows = weight_rows(weights, self.objectives)
        values = self.frame.gains(solving.optimal_outcomes(self, rows))
        return [Alternative(value, OptimalPolicy(row)) for value, row in zip(values, rows, strict=True)]

    def solve(self, weights: ArrayLike) -> list[Policy]:
        """Return the optimal policy tables themselves, one per row of weights."""
        rows = weight_rows(weights, self.objectives)
        return [policies.Deterministic(self, local).actions() for local in solving.optimal_choices(self, rows)]

    # --- policies -----------------------------------------------------------------------------------------------------

    def plan(self, policy: object) -> Plan:
        """Return a policy given in any accepted form as a checked plan.

        Integer arrays [H, S] are actions per step and state, float arrays [H, S, A] probabilities.
        """
        return policies.as_plan(self, policy)

    def can_follow(self, plan: Plan) -> bool:
        """Return whether a single plan is a policy; the reference is one only where doing nothing is the reference."""
        return plan is not NOTHING or self.nothing_is_reference

    def follow(self, plan: Plan) -> policies.Deterministic | policies.Stochastic:
        """Return a single policy, checked and ready to be followed step by step."""
        return policies.follow(self, plan)

    def show(self, alternative: Alternative, *, method: Method = "faithful", order: Order = "likely") -> Lottery:
        """Return an alternative as a person can read it: at most k+1 weighted trajectories with exactly its value."""
        plan = self.plan(alternative.plan)
        lottery = represent(self, plan, method=method, order=order, fits=lambda size: size <= memory_limit() // 2)
        gap = np.abs(self.frame.gains(lottery.average) - alternative.value).max()
        if not gap <= 1e-9:
            raise ArgumentError(
                f"the alternative says its value is {alternative.value.tolist()}, but its plan is worth "
                f"{self.frame.gains(lottery.average).tolist()}; was it made for another problem?"
            )
        return lottery

    def alternative(self, policy: object) -> Alternative:
        """Return a policy, given in any accepted form, as an alternative."""
        plan = self.plan(policy)
        return Alternative(self.evaluate(plan), plan)

    def evaluate(self, policy: object) -> Vector:
        """Return the expected gains of a policy, a mixture, or the reference."""
        plan = self.plan(policy)
        match plan:
            case Nothing():
                return np.zeros(len(self.objectives))
            case Mixture():
                mean: Vector = np.array(plan.probabilities) @ np.array([self.evaluate(part) for part in plan.plans])
                return mean
            case OptimalPolicy():
                return self.best([plan.weights])[0].value
            case _:
                return self.frame.gains(self._expected(plan))

    def _expected(self, plan: Plan) -> Vector:
        """Return the expected outcome of a policy in the person's units, by pushing probability forward."""
        following = self.follow(plan)
        now = self.start.copy()
        total = np.zeros(len(self.objectives))
        for step in range(self.horizon):
            layer, chance = self.layer(step), following.chance(step)
            total += (now[layer.state_of_choice] * chance) @ layer.reward
            after = np.zeros_like(now)
            bellman.occupancy_step(*layer.moves, chance, now, after)
            now = after
        return total

    def occupancy(self, policy: object) -> Matrix:
        """Return how likely each state is before each step and at the end, [H + 1, S]."""
        plan = self.plan(policy)
        check_fits(8 * (self.horizon + 1) * len(self.states), "the occupancy of every state at every step")
        if isinstance(plan, Mixture):
            return np.tensordot(plan.probabilities, [self.occupancy(part) for part in plan.plans], axes=1)
        following = self.follow(plan)
        result = np.zeros((self.horizon + 1, len(self.states)))
        result[0] = self.start
        for step in range(self.horizon):
            bellman.occupancy_step(*self.layer(step).moves, following.chance(step), result[step], result[step + 1])
        return result

    def values(self, policy: object) -> NDArray[np.float64]:
        """Return V^pi(s) in the person's units from every step on, [H + 1, S, k] (the paper's V^pi(s, H - t))."""
        shape = (self.horizon + 1, len(self.states), len(self.objectives))
        check_fits(8 * int(np.prod(shape)), "the values of every state at every step")
        following = self.follow(self.plan(policy))
        result = np.zeros(shape)
        for step in reversed(range(self.horizon)):
            layer = self.layer(step)
            bellman.evaluate_step(*layer.arrays, following.chance(step), result[step + 1], result[step])
        return result

    def rollout(self, policy: object, rng: np.random.Generator | int | None = None, n: int = 1) -> Rollouts:
        """Return ``n`` independent trajectories of a policy, drawn with ``rng`` (a generator or a seed)."""
        return roll(self, self.plan(policy), np.random.default_rng(rng), n)

    def choice_count(self) -> int:
        """Return how many (state, action) pairs there are at most at one step."""
        return max(len(layer.action) for layer in self.layers)
