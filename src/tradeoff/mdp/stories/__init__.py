"""Policies in readable form: at most k+1 weighted trajectories with exactly the policy's value (the paper's section 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from tradeoff.errors import ArgumentError
from tradeoff.mdp.stories.compress import compress
from tradeoff.mdp.stories.process import Following, Paths, Process, path_probability, trajectories
from tradeoff.model import Lottery, Mixture, Objective, Outcomes, Plan, Trajectory, Vector

__all__ = ["Method", "compress", "distribution", "mix", "parts_of", "represent"]

Method: TypeAlias = Literal["faithful", "expand", "flow"]


def represent(
    process: Process,
    policy: object,
    *,
    method: Method = "faithful",
    fits: Callable[[int], bool] = lambda size: True,
) -> Lottery:
    """Return a policy or mixture as at most k+1 weighted trajectories whose mean is exactly its expected outcome.

    Every trajectory can happen under the plan, and has its true probability in addition to its weight. ``"expand"`` and
    ``"flow"`` are the paper's Algorithms 4 and 5; ``"faithful"`` searches the many sets of trajectories with the plan's
    mean for one whose outcomes are distributed like the plan's own, and returns that distribution too (``truth``).
    ``fits(size)`` says whether this many bytes may be used to store the values of all steps.

    >>> import tradeoff
    >>> trip = tradeoff.load("commute")
    >>> best, = trip.best([[3, 0, 1, 0, 0]])
    >>> lottery = represent(trip, best.plan)
    >>> len(lottery.trajectories) <= 6 and bool(abs(lottery.average - trip.outcome(best.value)).max() < 1e-12)
    True
    """
    parts = parts_of(process.plan(policy))
    followings = [(share, process.follow(part)) for share, part in parts if process.can_follow(part)]
    weights: list[float] = []
    found: list[Trajectory] = []
    value = np.zeros(len(process.objectives))
    for share, following in followings:
        paths, expected = paths_of(process, following, "expand" if method == "faithful" else method, fits)
        value += share * expected
        chances = {
            row: sum(p * path_probability(process, other, paths, row) for p, other in followings)
            for row in range(len(paths.weights))
        }
        weights += [share * float(weight) for weight in paths.weights]
        found += trajectories(process, paths, chances)
    hypothetical = sum(share for share, part in parts if not process.can_follow(part))
    if hypothetical > 0:
        value += hypothetical * process.origin
        weights.append(hypothetical)
        found.append(Trajectory((process.reference_name,), (), hypothetical, process.origin))
    lottery = mix(process.objectives, weights, found, value, size=process.largest_total)
    if method != "faithful":
        return lottery
    from tradeoff.mdp.stories.faithful import most_faithful

    return most_faithful(process, followings, hypothetical, lottery, value)


def distribution(process: Process, policy: object) -> Outcomes:
    """Return the distribution of the outcomes of a policy or mixture: exact, or estimated from rollouts."""
    from tradeoff.mdp.stories.outcomes import outcomes_of

    parts = parts_of(process.plan(policy))
    return outcomes_of(process, [(p, process.follow(part) if process.can_follow(part) else None) for p, part in parts])


def paths_of(
    process: Process, following: Following, method: Method, fits: Callable[[int], bool]
) -> tuple[Paths, Vector]:
    """Return the weighted paths of a policy, found by this method, and V^pi."""
    # Imported here because a catalogue needs neither these modules nor the compiler.
    match method:
        case "expand":
            from tradeoff.mdp.stories.expand import expand

            return expand(process, following, fits)
        case "flow":
            from tradeoff.mdp.stories.flow import decompose

            return decompose(process, following)
        case _:
            raise ArgumentError(
                f"the method is {method!r}; it must be 'expand' (Algorithm 4), 'flow' (Algorithm 5) or 'faithful'"
            )


def parts_of(plan: Plan) -> list[tuple[float, Plan]]:
    """Return the single plans in a (possibly nested) mixture with their probabilities, leaving out those of 0."""
    if not isinstance(plan, Mixture):
        return [(1.0, plan)]
    return [
        (share * inner, part)
        for share, outer in zip(plan.probabilities, plan.plans, strict=True)
        if share > 0
        for inner, part in parts_of(outer)
    ]


def mix(
    objectives: Sequence[Objective],
    weights: Sequence[float],
    found: Sequence[Trajectory],
    value: Vector,
    *,
    size: ArrayLike = 0.0,
) -> Lottery:
    """Return weighted trajectories as a lottery of at most k+1 with the mean ``value``; equal ones are merged.

    ``size`` is the size of the amounts that the outcomes are sums of; see ``compress``.
    """
    merged: list[Trajectory] = []
    totals: list[float] = []
    for weight, trajectory in zip(weights, found, strict=True):
        same = next((i for i, other in enumerate(merged) if other.same_as(trajectory)), None)
        if same is None:
            merged.append(trajectory)
            totals.append(weight)
        else:
            totals[same] += weight
    shares = np.array(totals)
    outcomes = np.array([t.outcome for t in merged])
    kept, shares = compress(outcomes, shares / shares.sum(), target=value, size=size)
    return Lottery(tuple(objectives), shares, tuple(merged[i] for i in kept))
