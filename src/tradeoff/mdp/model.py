"""A Markov decision process with k-dimensional rewards and a finite horizon, solved exactly for any weights."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tradeoff.errors import ArgumentError, ProblemError, ProblemWarning
from tradeoff.mdp import inputs, policies
from tradeoff.mdp.builder import Builder, Options, Texts, check_texts, columns_from_rows
from tradeoff.mdp.dynamics import Dynamics
from tradeoff.mdp.layer import Layer
from tradeoff.mdp.learned import Evidence, learn
from tradeoff.mdp.policies import Deterministic, Following, Stochastic
from tradeoff.mdp.registry import solver_for
from tradeoff.mdp.rollouts import Rollouts, roll
from tradeoff.mdp.solver import Solver, Weights
from tradeoff.mdp.stories import Method, distribution, represent
from tradeoff.memory import check_fits, memory_limit
from tradeoff.model import (
    NOTHING,
    Details,
    Item,
    Lottery,
    Matrix,
    Mixture,
    Nothing,
    Objective,
    OptimalPolicy,
    Option,
    Plan,
    Policy,
    Reference,
    StochasticPolicy,
    Vector,
    frozen_array,
)
from tradeoff.problem import ROUNDING, SAME, GainScale, ScaledProblem, fingerprint_of, weight_rows
from tradeoff.wording import Wording

RECENT, RECENT_BYTES = 4, 32 << 20  # number of solved policies that are kept, and the size of the largest


class MDP(ScaledProblem):
    """A finite-horizon Markov decision process with vector rewards.

    Create one with ``from_arrays``, ``from_sparse``, ``from_rows``, ``from_columns`` or ``from_log``. Rewards are in the
    person's units; gains over the reference are computed internally.

    >>> trip = MDP.from_rows([("home", "drive", 0.9, "work", (40, 5)), ("home", "drive", 0.1, "work", (180, 5)),
    ...                       ("home", "subway", 1.0, "work", (60, 2))], ends=["work"], horizon=1, start="home",
    ...                      objectives=[Objective("time", "min", "min"), Objective("price", "EUR", "min")])
    >>> fast, cheap = trip.best([[1, 0], [0, 1]])
    >>> trip.outcome(fast.value).round(6).tolist(), trip.outcome(cheap.value).round(6).tolist()
    ([54.0, 5.0], [60.0, 2.0])
    """

    kind, limiter = "mdp", "tradeoff.mdp.limited.limited"
    has_paths = True
    storable = True

    def __init__(
        self,
        layers: Sequence[Layer],
        *,
        horizon: int,
        start: object,
        states: Sequence[str],
        actions: Sequence[str],
        objectives: Sequence[Objective],
        **texts: Unpack[Texts],
    ) -> None:
        """``layers``: one for all steps, or one per step. Most callers want one of the ``from_...`` constructors."""
        check_texts(texts)
        given = Dynamics(
            tuple(layers), inputs.horizon_from(horizon), inputs.start_from(start, states), states, tuple(actions)
        )
        self.objectives = tuple(objectives)
        self.notes: list[str] = []
        self.places = inputs.places_from(texts.get("places") or {}, states)
        pictures = texts.get("pictures")
        self.pictures: Mapping[str, bytes] = {} if pictures is None else pictures
        if texts.get("prune", True):
            given, lost = inputs.without_unreachable(given)
            if lost:
                self.notes.append(lost)
                warnings.warn(lost, ProblemWarning, stacklevel=3)
                left = set(given.states) if self.places else set()
                self.places = {state: place for state, place in self.places.items() if state in left}
        self.dynamics = given
        self.layers, self.horizon, self.start = given.layers, given.horizon, frozen_array(given.start)
        self.states, self.actions = given.states, given.actions
        self.reference = texts.get("reference") or Reference()
        self.reference.check(self.objectives)
        nothing = texts.get("nothing_action")
        self.nothing_action = None if nothing is None else inputs.index_of("action", nothing, self.actions)
        self.name = texts.get("name", "mdp")
        self.title, self.about = texts.get("title") or self.name, texts.get("about", "")
        self.noun = texts.get("noun", "")
        self.wording = Wording(texts.get("describe"))
        self.solver: Solver = texts.get("solver") or solver_for(given)
        self._recent: dict[tuple[int, OptimalPolicy], Deterministic] = {}
        self.evidence: Evidence | None = None  # set if the model was learned from data
        self.stated_slack = 0.0  # the known error of an estimated model, in gains

    # --- constructors -------------------------------------------------------------------------------------------------

    @classmethod
    def from_arrays(
        cls,
        transitions: ArrayLike,
        rewards: ArrayLike,
        *,
        available: ArrayLike | None = None,
        rewards_on: str | None = None,
        **options: Unpack[Options],
    ) -> MDP:
        """Return an MDP given as dense arrays.

        ``transitions[S, A, S]`` or ``[H, S, A, S]``; ``rewards[S, A, k]``, by next state ``[S, A, S, k]``, by step
        ``[H, S, A, k]`` or both. An action whose probabilities are all 0 in a state is not available there
        (``available[S, A]`` says so explicitly); a state with no available action is an end.
        """
        texts: dict[str, Any] = dict(options)
        return cls(**Builder.taken_from(texts).arrays(transitions, rewards, available, rewards_on), **texts)

    @classmethod
    def from_sparse(
        cls,
        transitions: Sequence[Any],
        rewards: ArrayLike,
        *,
        available: ArrayLike | None = None,
        rewards_on: str | None = None,
        **options: Unpack[Options],
    ) -> MDP:
        """Return an MDP given as SciPy matrices: one [S, S] per action, or a list of such lists, one per step."""
        texts: dict[str, Any] = dict(options)
        return cls(**Builder.taken_from(texts).sparse(transitions, rewards, available, rewards_on), **texts)

    @classmethod
    def from_rows(cls, rows: Iterable[Sequence[Any]], *, ends: Iterable[str] = (), **options: Unpack[Options]) -> MDP:
        """Return an MDP given as rows (state, action, probability, next state, rewards).

        Rewards may differ between the rows of one action; each is then earned with its branch. States without rows
        of their own must be named in ``ends``: nothing more happens there.
        """
        return cls.from_columns(*columns_from_rows(rows), ends=ends, **options)

    @classmethod
    def from_columns(
        cls,
        state: Sequence[str],
        action: Sequence[str],
        probability: ArrayLike,
        target: Sequence[str],
        rewards: ArrayLike,
        step: Sequence[int] | None = None,
        *,
        ends: Iterable[str] = (),
        **options: Unpack[Options],
    ) -> MDP:
        """Return an MDP given as the columns of such rows; with ``step``, each row applies to one step only."""
        texts: dict[str, Any] = dict(options)
        numbers = np.asarray(probability, dtype=float), np.asarray(rewards, dtype=float)
        parts = Builder.taken_from(texts).columns(state, action, numbers[0], target, numbers[1], step, ends)
        return cls(**parts, **texts)

    @classmethod
    def from_log(cls, log: Iterable[Sequence[Any]], **options: Unpack[Options]) -> MDP:
        """Return an MDP estimated from logged steps (as in the paper's discussion: the model is learned first).

        ``log`` has rows (episode, step, state, action, rewards, next state). Transitions and mean rewards are as logged;
        the start is where episodes began, the horizon the longest of them. Nothing is assumed about what was never
        tried: ``evidence`` on the result counts visits and lists the untried (state, action) pairs.
        """
        learned = learn(log)
        options.setdefault("start", learned.start)
        if options.get("horizon") is None:
            options["horizon"] = learned.horizon
        mdp = cls.from_rows(learned.rows, ends=learned.evidence.only_last, **options)
        mdp.evidence = learned.evidence
        mdp.notes += learned.evidence.notes()
        return mdp

    def replace(self, **changes: Any) -> MDP:
        """Return a copy with some constructor arguments replaced; notes, evidence and slack are kept."""
        nothing = None if self.nothing_action is None else self.actions[self.nothing_action]
        kept: dict[str, Any] = {
            "layers": self.layers, "horizon": self.horizon, "start": self.start, "states": self.states,
            "actions": self.actions, "objectives": self.objectives, "reference": self.reference,
            "nothing_action": nothing, "places": self.places, "pictures": self.pictures, "prune": False,
            "name": self.name, "title": self.title, "about": self.about, "noun": self.noun,
            "solver": copy.copy(self.solver), "describe": self.wording.description,
        }  # fmt: skip
        made = MDP(**kept | changes)
        made.notes, made.evidence, made.stated_slack = [*self.notes, *made.notes], self.evidence, self.stated_slack
        return made

    def with_nothing(self, name: str = "do nothing") -> MDP:
        """Return the MDP with the paper's action a_0: available only in the start state, no reward, stays there."""
        if self.nothing_action is not None:
            raise ProblemError(f"the model already has a do-nothing action: {self.actions[self.nothing_action]!r}")
        if name in self.actions:
            raise ProblemError(f"the model already has an action {name!r}; give the do-nothing action another name")
        names = [o.name for o in self.objectives]
        layers, actions = inputs.with_action_at_start(self.dynamics, names, name)
        return self.replace(layers=layers, actions=actions, nothing_action=name)

    def __repr__(self) -> str:
        return (
            f"<MDP {self.name!r}: {len(self.states)} states, {len(self.actions)} actions, "
            f"{len(self.objectives)} objectives, {self.horizon} steps>"
        )

    # --- solving ------------------------------------------------------------------------------------------------------

    @property
    def threads(self) -> int:
        """How many threads the solver may use."""
        return self.solver.threads

    @threads.setter
    def threads(self, count: int) -> None:
        self.solver.threads = count

    def layer(self, step: int) -> Layer:
        """Return the layer of one step."""
        return self.dynamics.layer(step)

    @cached_property
    def largest_total(self) -> Vector:
        """A bound on the total of each objective under any plan, by which rounding is measured."""
        total = self.dynamics.largest_total
        broken = np.flatnonzero(~np.isfinite(total))
        if len(broken):
            raise ProblemError(
                f"{self.horizon} steps of the largest amount of {self.objectives[broken[0]].name!r} are too large to add "
                "up; use a larger unit"
            )
        return total

    @cached_property
    def gain_scale(self) -> GainScale:
        """The reference and the scale of each gain, from the best and worst expected value of each objective."""
        k = len(self.objectives)
        directions = np.concatenate([np.eye(k), -np.eye(k)])
        noise = 1e-15 * self.largest_total
        optima = self.solver.optimal_values(self.dynamics, directions)
        return GainScale(self.objectives, -optima[k:], optima[:k], self.reference, noise)

    @property
    def slack(self) -> float:
        """The stated error of an estimated model, plus what the solver may lose if that is above rounding."""
        lost = self._solver_loss()
        return self.stated_slack + (lost if lost > ROUNDING else 0.0)

    @slack.setter
    def slack(self, stated: float) -> None:
        self.stated_slack = float(stated)

    def _solver_loss(self, wider: float = 1.0) -> float:
        """Return what breaking ties may lose over all steps; gains are ``wider`` than those of the solver."""
        matters = self.gain_scale.matters
        per_step = SAME * wider + 1e-15 * np.max(self.largest_total[matters] / np.abs(self.scale[matters]), initial=0.0)
        return self.horizon * float(per_step)

    def _on_outcomes(self, rows: Matrix) -> Weights:
        return Weights.on_gains(rows, self.gain_scale, self.largest_total)

    @property
    def nothing_is_reference(self) -> bool:
        """Whether the do-nothing action exists and is the reference, as in the paper."""
        return self.nothing_action is not None and not np.any(self.origin)

    @cached_property
    def fingerprint(self) -> str:
        """A string that identifies this model: everything that determines what is optimal, and its names."""
        outcome = self.reference.outcome and sorted(self.reference.outcome.items())
        arrays = [array for layer in self.layers for array in layer.arrays if array is not None]
        names = (self.objectives, "\n".join(self.states), self.actions)
        return fingerprint_of("mdp", *names, self.horizon, self.start, self.nothing_action, outcome, *arrays)

    @property
    def reference_name(self) -> str:
        """The name of the reference, or of the do-nothing action if that is the reference."""
        if self.nothing_action is not None and self.nothing_is_reference:
            return self.actions[self.nothing_action]
        return self.reference.name

    def best(self, weights: ArrayLike) -> list[Option]:
        """Return an optimal policy for each row of weights (of any sign); ties are broken so that none is dominated."""
        rows = weight_rows(weights, self.objectives)
        values = self.gain_scale.gains(self.solver.optimal_outcomes(self.dynamics, self._on_outcomes(rows)))
        return [Option(value, OptimalPolicy(row)) for value, row in zip(values, rows, strict=True)]

    def solve(self, weights: ArrayLike) -> list[Policy]:
        """Return the tables of optimal policies, one per row of weights."""
        rows = weight_rows(weights, self.objectives)
        found = self.solver.optimal_choices(self.dynamics, self._on_outcomes(rows))
        return [Deterministic(self.dynamics, local).actions() for local in found]

    # --- policies -----------------------------------------------------------------------------------------------------

    def plan(self, policy: object) -> Plan:
        """Check a policy, given in any accepted form, and return it as a plan.

        Integer arrays [H, S] are actions per step and state, float arrays [H, S, A] probabilities.
        """
        return policies.as_plan(self.dynamics, policy)

    def can_follow(self, plan: Plan) -> bool:
        """Return whether a single plan is a policy; the reference is one only if it is doing nothing."""
        return plan is not NOTHING or self.nothing_is_reference

    def follow(self, plan: Plan) -> Following:
        """Check a single policy and return it in a form that can be followed step by step."""
        match plan:
            case OptimalPolicy():
                return self._solved(plan)
            case Policy():
                return Deterministic.of_table(self.dynamics, plan)
            case StochasticPolicy():
                return Stochastic.of_table(self.dynamics, plan)
            case Nothing() if self.nothing_action is not None and self.nothing_is_reference:
                return Deterministic.of_action(self.dynamics, self.nothing_action)
            case Nothing():
                raise ArgumentError(
                    f"{self.reference.name!r} is a hypothetical outcome that no policy leads to; "
                    "it is for comparison and cannot be followed"
                )
            case _:
                raise ArgumentError(f"{type(plan).__name__} is not a single policy")

    def _solved(self, plan: OptimalPolicy) -> Deterministic:
        """Solve for an optimal policy; the last few are kept, because a plan is shown, named and explained in turn."""
        key = (id(self.solver), plan)
        if key not in self._recent:
            (local,) = self.solver.optimal_choices(self.dynamics, self._on_outcomes(plan.weights[None, :]))
            found = Deterministic(self.dynamics, local)
            if local.nbytes > RECENT_BYTES:
                return found
            # Replaced, never modified, so that several threads may use it.
            self._recent = dict([*self._recent.items(), (key, found)][-RECENT:])
            return found
        return self._recent.get(key) or self._solved(plan)

    def policy_values(self, step: int, chance: Vector, after: Matrix) -> Matrix:
        """Return the expected outcome from each state on, given that after this step and the chances of choices."""
        return self.solver.policy_values(self.layer(step), chance, after)

    def next_distribution(self, step: int, chance: Vector, now: Vector) -> Vector:
        """Return how likely each state is after a step, given how likely it is before and the chances of choices."""
        return self.solver.next_distribution(self.layer(step), chance, now)

    def show(self, option: Option, *, method: Method = "faithful") -> Lottery:
        """Return an option in readable form: at most k+1 weighted trajectories with exactly its value.

        Of the many choices of trajectories, ``"faithful"`` takes one whose outcomes are spread like the plan's own, and
        ``"expand"`` and ``"flow"`` take those of the paper's Algorithms 4 and 5.
        """
        plan = self.plan(option.plan)
        lottery = represent(self, plan, method=method, fits=lambda size: size <= memory_limit() // 2)
        gap = np.abs(self.gain_scale.gains(lottery.average) - option.value)
        # The rounding error of a sum of H rewards depends on their size, even if most of it cancels.
        rounding = (self.horizon + 8) * np.finfo(float).eps * self.largest_total / np.abs(self.scale)
        if not np.all(gap <= 1e-9 + rounding):
            raise ArgumentError(
                f"the option's stated value is {option.value.tolist()}, but its plan is worth "
                f"{self.gain_scale.gains(lottery.average).tolist()}; was it made for another problem?"
            )
        return lottery if lottery.truth is not None else replace(lottery, truth=distribution(self, plan))

    def option(self, policy: object) -> Option:
        """Return a policy, given in any accepted form, as an option."""
        plan = self.plan(policy)
        return Option(self.evaluate(plan), plan)

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
                return self.gain_scale.gains(self._expected(plan))

    def _expected(self, plan: Plan) -> Vector:
        """Return the expected outcome of a policy in the person's units, by pushing probability forward."""
        following = self.follow(plan)
        now = self.start
        total = np.zeros(len(self.objectives))
        for step in range(self.horizon):
            layer, chance = self.layer(step), following.chance(step)
            total += (now[layer.state_of_choice] * chance) @ layer.reward
            now = self.next_distribution(step, chance, now)
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
            result[step + 1] = self.next_distribution(step, following.chance(step), result[step])
        return result

    def values(self, policy: object) -> NDArray[np.float64]:
        """Return V^pi(s) in the person's units from every step on, [H + 1, S, k] (the paper's V^pi(s, H - t))."""
        shape = (self.horizon + 1, len(self.states), len(self.objectives))
        check_fits(8 * int(np.prod(shape)), "the values of every state at every step")
        following = self.follow(self.plan(policy))
        result = np.zeros(shape)
        for step in reversed(range(self.horizon)):
            result[step] = self.policy_values(step, following.chance(step), result[step + 1])
        return result

    def rollout(self, policy: object, rng: np.random.Generator | int | None = None, n: int = 1) -> Rollouts:
        """Return ``n`` independent trajectories of a policy, drawn with ``rng`` (a generator or a seed)."""
        return roll(self.dynamics, self.solver, self.follow, self.plan(policy), np.random.default_rng(rng), n)

    @property
    def extent(self) -> Mapping[str, int]:
        """The numbers of states, actions and steps, and the largest numbers of choices and branches in a step."""
        return {
            "states": len(self.states),
            "actions": len(self.actions),
            "horizon": self.horizon,
            "choices": max(len(layer.action) for layer in self.layers),
            "branches": max(len(layer.target) for layer in self.layers),
        }

    def details(self, plan: Plan) -> Details:
        """Return what a policy does in the situations it gets into."""
        if isinstance(plan, Mixture | Nothing | Item):
            return Details()
        found, complete = policies.situations(self.follow(self.plan(plan)), self.occupancy(plan))
        return Details(situations=found, complete=complete)
