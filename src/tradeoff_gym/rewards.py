"""The names of an environment's rewards, and which of them are costs."""

from __future__ import annotations

from collections.abc import Sequence

from tradeoff.errors import ArgumentError
from tradeoff.model import Matrix, Objective
from tradeoff.sources.options import listed, parse_objectives
from tradeoff_gym.vocabulary import Vocabulary


def objectives_of(rewards: Matrix, words: Vocabulary, given: object) -> tuple[list[Objective], Matrix, list[str]]:
    """Return the objectives, the rewards [N, k] in their units, and notes about them.

    A reward that is to be minimised and is never positive is a penalty: its sign is turned to make it a cost.
    """
    count = rewards.shape[1]
    plain = [Objective("reward" if count == 1 else f"reward {j}") for j in range(1, count + 1)]
    known = list(words.objectives) if len(words.objectives) == count else plain
    named = known if given is None else _named(known, given)
    turned = rewards.copy()
    notes = []
    for j, objective in enumerate(named):
        if objective.goal == "min" and not (rewards[:, j] > 0).any():
            turned[:, j] = 0.0 - rewards[:, j]
            notes.append(
                f"the reward for {objective.name!r} is never positive; it is shown as a cost, without its sign"
            )
    return named, turned, notes


def _named(known: Sequence[Objective], given: object) -> list[Objective]:
    """Return the objectives with the names and directions that were given."""
    if isinstance(given, Sequence) and given and all(isinstance(o, Objective) for o in given):
        found = list(given)
    elif not isinstance(given, dict) and all(part in ("min", "max") for part in listed("objectives", given)):
        goals = listed("objectives", given)
        found = [Objective(o.name, o.unit, goal) for o, goal in zip(known, goals, strict=False)]  # type: ignore[arg-type]
        found += [Objective(goal) for goal in goals[len(known) :]]
    else:
        goals_of = {o.name: o for o in known}
        found = [
            Objective(name, goals_of[name].unit if name in goals_of else "",
                      goal or (goals_of[name].goal if name in goals_of else "max"))
            for name, goal in parse_objectives(given).items()
        ]  # fmt: skip
    if len(found) != len(known):
        raise ArgumentError(
            f"{len(found)} objectives are named, but the environment has {len(known)} rewards; name each of them in its "
            "order, such as treasure:max,time:min"
        )
    return found
