"""Law 2: a shown plan has at most k+1 possible trajectories, with positive weights summing to 1 and exactly its value."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from tests.mdp.test_mdp import random_stochastic
from tests.models import Arrays, random_arrays
from tradeoff import MDP, NOTHING, ArgumentError, Catalogue, Lottery, Mixture, Option, dilute, load, represent
from tradeoff.mdp.stories import parts_of
from tradeoff.model import Plan, Policy

METHODS = ["faithful", "expand", "flow"]
seeds = st.integers(0, 2**32 - 1)


@dataclass(frozen=True)
class Story:
    probability: float
    outcome: np.ndarray


def all_trajectories(mdp: MDP, plan: Plan) -> dict[tuple[tuple[str, ...], tuple[str, ...]], Story]:
    """Return every trajectory of a plan, followed branch by branch: (states, actions) -> probability and outcome."""
    found: dict[tuple[tuple[str, ...], tuple[str, ...]], Story] = {}

    def walk(following, step, state, states, actions, probability, outcome) -> None:
        choices, chances = following.at(step, state) if step < mdp.horizon else ([], [])
        if not len(choices):
            key = (states, actions)
            before = found.get(key, Story(0.0, outcome)).probability
            found[key] = Story(before + probability, outcome)
            return
        layer = mdp.layer(step)
        for choice, chance in zip(choices, chances, strict=True):
            for branch in range(layer.choice_ptr[choice], layer.choice_ptr[choice + 1]):
                reward = layer.reward[choice] if layer.branch_reward is None else layer.branch_reward[branch]
                after = layer.target[branch]
                walk(
                    following, step + 1, after, (*states, mdp.states[after]),
                    (*actions, mdp.actions[layer.action[choice]]), probability * chance * layer.prob[branch],
                    outcome + reward,
                )  # fmt: skip

    for share, part in parts_of(plan):
        if not mdp.can_follow(part):
            found[((mdp.reference_name,), ())] = Story(share, mdp.origin)
            continue
        following = mdp.follow(part)
        for state in np.flatnonzero(mdp.start > 0):
            name = mdp.states[state]
            walk(following, 0, state, (name,), (), share * mdp.start[state], np.zeros(len(mdp.objectives)))
    return found


def check(lottery: Lottery, mdp: MDP, plan: Plan, *, method: str = "faithful") -> None:
    stories = all_trajectories(mdp, plan)
    k = len(mdp.objectives)
    outcomes = np.array([story.outcome for story in stories.values()])
    scale = np.abs(outcomes).max(axis=0)
    rank = np.linalg.matrix_rank((outcomes - outcomes[0]) / np.where(scale > 0, scale, 1), tol=1e-13)
    # The paper's algorithms leave a vertex; the most faithful choice may use all k+1 where outcomes span less.
    assert len(lottery.trajectories) <= (k if method == "faithful" else min(k, rank)) + 1
    assert np.all(lottery.weights > 0)
    assert abs(math.fsum(lottery.weights) - 1) <= 1e-14
    for trajectory in lottery.trajectories:
        story = stories[trajectory.states, trajectory.actions]
        assert story.probability > 0
        assert trajectory.probability == pytest.approx(story.probability, rel=1e-9)
        assert_allclose(trajectory.outcome, story.outcome, rtol=1e-12, atol=1e-15)
        assert len(trajectory.states) == len(trajectory.actions) + 1 <= mdp.horizon + 1
    expected = [math.fsum(s.probability * s.outcome[j] for s in stories.values()) for j in range(k)]
    assert np.all(np.abs(lottery.average - expected) <= 1e-12 * scale + 1e-300)


@st.composite
def models(draw: st.DrawFn) -> tuple[MDP, np.random.Generator]:
    """Draw a model from the list of awkward ones, small enough to enumerate its trajectories."""
    rng = np.random.default_rng(draw(seeds))
    k = draw(st.sampled_from([1, 2, 3, 5, 12]))
    horizon = draw(st.sampled_from([1, 2, 4, 6]))
    arrays = random_arrays(
        rng, states=draw(st.integers(1, 5)), actions=3, objectives=k, horizon=horizon, integers=draw(st.booleans()),
        stationary=draw(st.booleans()),
    )  # fmt: skip
    kind = draw(st.sampled_from(["plain", "scales", "identical", "rare", "zero"]))
    if kind == "scales":  # 1e6 beside 1e-6
        arrays = replace(arrays, rewards=arrays.rewards * 10.0 ** rng.choice([-6, 6], size=k))
    elif kind == "identical":  # rank < k
        arrays = replace(arrays, rewards=np.repeat(arrays.rewards[..., :1], k, axis=-1))
    elif kind == "zero":
        arrays = replace(arrays, rewards=np.zeros_like(arrays.rewards))
    elif kind == "rare":
        arrays = replace(arrays, transitions=with_rare_branches(arrays))
    return arrays.mdp(), rng


def with_rare_branches(arrays: Arrays) -> np.ndarray:
    """Return the transitions with a branch of probability 1e-12 (and others of 0) in every action."""
    transitions = arrays.transitions.copy()
    states = transitions.shape[1]
    for h, s, a in np.ndindex(transitions.shape[:3]):
        row = transitions[h, s, a]
        if row.any():
            row[row.argmax()] -= 1e-12
            row[(row.argmax() + 1) % states] += 1e-12
    return transitions


@given(models(), st.sampled_from(METHODS), seeds)
def test_optimal_policies(drawn: tuple[MDP, np.random.Generator], method: str, seed: int) -> None:
    mdp, rng = drawn
    (best,) = mdp.best([rng.normal(size=len(mdp.objectives))])
    check(mdp.show(best, method=method), mdp, best.plan, method=method)


@settings(max_examples=90)  # each lists every trajectory
@given(models(), st.sampled_from(METHODS))
def test_stochastic_policies(drawn: tuple[MDP, np.random.Generator], method: str) -> None:
    mdp, rng = drawn
    plan = mdp.plan(random_stochastic(mdp, rng))
    check(represent(mdp, plan, method=method), mdp, plan, method=method)


@settings(max_examples=90)  # each lists every trajectory
@given(models(), st.sampled_from(METHODS))
def test_mixtures_with_nothing_and_of_several_policies(drawn: tuple[MDP, np.random.Generator], method: str) -> None:
    mdp, rng = drawn
    first, second = mdp.best(rng.normal(size=(2, len(mdp.objectives))))
    stochastic = mdp.plan(random_stochastic(mdp, rng))
    inner = Mixture((0.25, 0.75), (second.plan, stochastic))
    for plan in (
        dilute(first, 0.3).plan,
        dilute(first, 1.0).plan,
        Mixture((0.5, 0.5), (first.plan, second.plan)),
        Mixture((0.2, 0.3, 0.5), (first.plan, NOTHING, inner)),
        NOTHING,
    ):
        lottery = mdp.show(mdp.option(plan), method=method)
        check(lottery, mdp, plan, method=method)
        rounding = 1e-15 * (mdp.horizon + 8) * mdp.largest_total / np.abs(mdp.scale)  # where a range is next to nothing
        gap = np.abs(mdp.gain_scale.gains(lottery.average) - mdp.evaluate(plan))
        assert np.all(gap <= 1e-9 + rounding)


@given(models())
def test_the_do_nothing_action_is_shown_as_a_trajectory(drawn: tuple[MDP, np.random.Generator]) -> None:
    mdp, rng = drawn
    rewards = [np.abs(layer.reward) for layer in mdp.layers]
    layers = [replace(layer, reward=r, branch_reward=None) for layer, r in zip(mdp.layers, rewards, strict=True)]
    objectives = [replace(o, goal="max") for o in mdp.objectives]
    if mdp.layers[0].ends[mdp.start > 0].any():
        return  # the paper's start state has actions
    plain = MDP(
        layers, horizon=mdp.horizon, start=mdp.start, states=mdp.states, actions=mdp.actions, objectives=objectives,
        prune=False,
    )  # fmt: skip
    paper = plain.with_nothing("stay")
    assert paper.nothing_is_reference
    (best,) = paper.best(rng.random((1, len(objectives))))
    for plan in (NOTHING, dilute(best, 0.4).plan):
        check(represent(paper, plan), paper, plan)
    assert set(represent(paper, NOTHING).trajectories[0].actions) == {"stay"}


@pytest.mark.parametrize("method", METHODS)
def test_error_does_not_grow_with_the_horizon(method: str) -> None:
    rng = np.random.default_rng(7)
    arrays = random_arrays(rng, states=6, actions=2, objectives=4, horizon=2, goals=False)
    for horizon in (10, 100, 1000):
        mdp = MDP.from_arrays(arrays.transitions[0], arrays.rewards[0], horizon=horizon, rewards_on="next", prune=False)
        plan = mdp.plan(random_stochastic(mdp, rng))
        lottery = represent(mdp, plan, method=method)
        assert len(lottery.trajectories) <= 5
        gap = np.abs(lottery.average - mdp.start @ mdp.values(plan)[0])
        assert np.all(gap <= 1e-14 * np.abs(lottery.outcomes).max(axis=0))


def test_values_are_worked_out_again_where_they_do_not_fit() -> None:
    rng = np.random.default_rng(1)
    mdp = random_arrays(rng, states=5, actions=2, objectives=3, horizon=7).mdp()
    plan = mdp.plan(random_stochastic(mdp, rng))
    kept, again = represent(mdp, plan), represent(mdp, plan, fits=lambda size: False)
    assert kept.weights.tobytes() == again.weights.tobytes()
    assert [t.states for t in kept.trajectories] == [t.states for t in again.trajectories]


def test_many_paths_are_compressed_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    from tradeoff.mdp.stories import flow

    rng = np.random.default_rng(2)
    mdp = random_arrays(rng, states=5, actions=3, objectives=2, horizon=6).mdp()
    plan = mdp.plan(random_stochastic(mdp, rng))
    monkeypatch.setattr(flow, "PATHS_AT_ONCE", 4)
    check(represent(mdp, plan, method="flow"), mdp, plan, method="flow")


@pytest.mark.parametrize("method", METHODS)
def test_branches_that_say_the_same_are_one(method: str) -> None:
    """Two rows of the same thing are one story with the sum of their chances; other amounts are another story."""
    rows = [
        ("home", "drive", 0.25, "work", [40.0, 1.0]),
        ("home", "drive", 0.25, "work", [40.0, 1.0]),
        ("home", "drive", 0.5, "work", [90.0, 1.0]),
    ]
    mdp = MDP.from_rows(rows, horizon=1, start="home", ends=["work"])
    lottery = represent(mdp, np.array([[0, -1]]), method=method)
    assert sorted(t.probability for t in lottery.trajectories) == [0.5, 0.5]
    assert_allclose(sorted(t.outcome[0] for t in lottery.trajectories), [40, 90])
    assert len(MDP.from_rows(rows[:2] + rows[:2], horizon=1, start="home", ends=["work"]).layers[0].prob) == 1


def test_likely_trajectories_are_shown() -> None:
    """The bundled commute: nine times out of ten the highway is free, and that is what is shown first."""
    mdp = load("commute")
    (best,) = mdp.best([[3, 0, 1, 0, 0]])
    lottery = mdp.show(best)
    assert lottery.weights.max() == pytest.approx(0.9)
    assert sum(t.probability for t in lottery.trajectories) > 0.9


@given(seeds, st.integers(1, 5), st.integers(1, 8))
def test_catalogues(seed: int, k: int, items: int) -> None:
    rng = np.random.default_rng(seed)
    catalogue = Catalogue(rng.normal(size=(items, k)))
    (best,) = catalogue.best(rng.normal(size=(1, k)))
    lottery = catalogue.show(best)
    assert lottery.weights.tolist() == [1.0] and lottery.trajectories[0].states == (best.plan.name,)
    half = catalogue.show(dilute(best, 0.5))
    assert_allclose(half.average, catalogue.outcome(0.5 * best.value), atol=1e-12)
    assert len(half.trajectories) <= 2
    several = Mixture((0.1, 0.2, 0.7), (best.plan, NOTHING, Mixture((0.5, 0.5), (best.plan, NOTHING))))
    shown = catalogue.show(Option(catalogue.evaluate(several), several))
    assert len(shown.trajectories) <= 2
    assert_allclose(shown.average, catalogue.outcome(catalogue.evaluate(several)), atol=1e-12)
    if len(shown.trajectories) == 2:
        assert sorted(t.probability for t in shown.trajectories) == pytest.approx([0.45, 0.55])


def test_what_cannot_be_shown_is_named() -> None:
    mdp = load("commute")
    (best,) = mdp.best([[1, 1, 1, 1, 1]])
    with pytest.raises(ArgumentError, match=r"value is .* but its plan is worth"):
        mdp.show(Option(best.value + 0.1, best.plan))
    with pytest.raises(ArgumentError, match="it must be 'expand'"):
        mdp.show(best, method="magic")
    with pytest.raises(ArgumentError, match="positive and sum to 1"):
        Lottery(mdp.objectives, np.array([0.5, 0.4]), mdp.show(best).trajectories[:1] * 2)
    teleport = np.zeros((mdp.horizon, len(mdp.states)), dtype=int)
    with pytest.raises(ArgumentError, match=r"in state 'home' at step|in state '.*' at step 0"):
        represent(mdp, Policy(teleport + 35))
