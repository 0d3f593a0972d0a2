from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.mdp.test_mdp import random_stochastic
from tests.messages import refused
from tests.models import random_arrays
from tradeoff import MDP, ProblemError, load


def episodes(mdp: MDP, policy: object, n: int, seed: int) -> list[tuple]:
    """Return rollouts as a log: (episode, step, state, action, rewards, next state)."""
    drawn = mdp.rollout(policy, rng=seed, n=n)
    rows = []
    for i in range(n):
        for t in range(mdp.horizon):
            s, a, after = drawn.states[i, t], drawn.actions[i, t], drawn.states[i, t + 1]
            if a < 0:
                break
            layer = mdp.layer(t)
            choice = next(c for c in range(layer.state_ptr[s], layer.state_ptr[s + 1]) if layer.action[c] == a)
            branch = next(
                b for b in range(layer.choice_ptr[choice], layer.choice_ptr[choice + 1]) if layer.target[b] == after
            )
            reward = layer.reward[choice] if layer.branch_reward is None else layer.branch_reward[branch]
            rows.append((i, t, mdp.states[s], mdp.actions[a], reward, mdp.states[after]))
    return rows


def test_a_learned_model_comes_close_to_the_true_one() -> None:
    rng = np.random.default_rng(0)
    mdp = random_arrays(rng, states=5, actions=2, objectives=2, horizon=4, goals=False).mdp()
    rows = episodes(mdp, random_stochastic(mdp, rng), 6000, seed=1)
    learned = MDP.from_log(rows, objectives=[o.name for o in mdp.objectives])
    weights = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    true = mdp.outcome(np.array([a.value for a in mdp.best(weights)]))
    found = learned.outcome(np.array([a.value for a in learned.best(weights)]))
    assert_allclose(found, true, rtol=0.08, atol=0.05)  # sampling noise
    assert sum(learned.evidence.visits.values()) == len(rows)


def test_what_was_not_seen_is_said_and_not_invented() -> None:
    log = [
        ("monday", 0, "home", "drive", [40, 5], "work"),
        ("tuesday", 0, "home", "drive", [60, 5], "work"),
        ("wednesday", 0, "home", "walk", [10, 0], "station"),
        ("wednesday", 1, "station", "ride", [30, 2], "work"),
    ]
    mdp = MDP.from_log(log, objectives=["time", "money"])
    assert mdp.horizon == 2 and list(mdp.states) == ["home", "station", "work"]
    assert mdp.evidence.visits == {("home", "drive"): 2, ("home", "walk"): 1, ("station", "ride"): 1}
    assert set(mdp.evidence.unseen) == {("home", "ride"), ("station", "drive"), ("station", "walk")}
    assert mdp.evidence.only_last == ("work",)
    assert any("never seen" in note for note in mdp.notes) and any("only seen last" in note for note in mdp.notes)
    assert_allclose(mdp.outcome(mdp.best([[1, 0]])[0].value), [50, 5])  # the mean of what driving took


@pytest.mark.parametrize(
    ("log", "facts"),
    [
        ([], ("no rows",)),
        ([("e", 0, "a", "go", [1])], ("row 1", "(episode, step, state, action, rewards, next state)")),
        ([("e", 0, "a", "go", [1], "b"), ("e", 0, "a", "go", [1], "b")], ("row 2", "step 0", "'e'", "twice")),
        ([("e", 0, "a", "go", [1], "b"), ("e", 2, "b", "go", [1], "a")], ("step 1", "'e'", "missing")),
        ([("e", 0, "a", "go", [1], "b"), ("e", 1, "c", "go", [1], "a")], ("step 0", "'b'", "step 1", "'c'")),
        ([("e", 0, "a", "go", [1], "b" * 9_999), ("e", 1, "c", "go", [1], "a")], ("'" + "b" * 59 + ",", "step 1")),
        ([("e", 0, "a", "go", [1], "b"), ("f", 0, "b", "go", [1, 2], "a")], ("'f'", "2 rewards", "others have 1")),
        ([("e", 0.5, "a", "go", [1], "b")], ("row 1", "0.5")),
        ([("e", 0, "a", "go", ["x"], "b")], ("reward in row 1", "'x'")),
    ],
)
def test_bad_logs_are_named(log: list, facts: tuple[str, ...]) -> None:
    with refused(ProblemError, *facts):
        MDP.from_log(log)


def test_a_bundled_problem_can_be_learned_from_its_own_rollouts() -> None:
    mdp = load("commute")
    (best,) = mdp.best([[1, 1, 1, 1, 1]])
    learned = MDP.from_log(episodes(mdp, best.plan, 500, seed=0), objectives=mdp.objectives)
    assert set(learned.states) <= set(mdp.states)
    assert learned.evidence.episodes == 500
