from __future__ import annotations

import json
import pickle
import random
import struct
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose

import tradeoff
from tests.messages import refused
from tradeoff.apps.cli.ask import ask
from tradeoff.apps.cli.main import Commands
from tradeoff.errors import ArgumentError, ProblemError
from tradeoff_gym.branching import BranchingRandom, NotExactError
from tradeoff_gym.environment_state import frozen
from tradeoff_gym.exploration import enumerate_states
from tradeoff_gym.vocabulary import vocabulary_of

gymnasium = pytest.importorskip("gymnasium")
pytest.importorskip("mo_gymnasium")

MAZE = np.array([list("_1 2 "), list("  X 3"), list(" 2X1G")])
FINITE: list[tuple[str, dict[str, Any], int]] = [  # every environment with finite states and actions; its states
    ("mo-gym:deep-sea-treasure-v0", {}, 72),
    ("mo-gym:deep-sea-treasure-concave-v0", {}, 72),
    ("mo-gym:deep-sea-treasure-mirrored-v0", {}, 122),
    ("mo-gym:resource-gathering-v0", {}, 105),
    ("mo-gym:breakable-bottles-v0", {}, 181),
    ("mo-gym:fishwood-v0", {}, 2),
    ("mo-gym:fruit-tree-v0", {"kwargs": "depth=5"}, 63),
    ("mo-gym:fruit-tree-v0", {}, 127),
    ("mo-gym:fruit-tree-v0", {"kwargs": {"depth": 7}}, 255),
    ("mo-gym:four-room-v0", {"kwargs": {"maze": MAZE}}, -1),
    ("gym:FrozenLake-v1", {}, 16),
    ("gym:CliffWalking-v1", {"horizon": 40}, 38),
    ("gym:CliffWalkingSlippery-v1", {"horizon": 40}, 38),
    ("gym:Taxi-v4", {}, 404),
    ("gym:Taxi-v4", {"kwargs": "is_rainy=true", "horizon": 30}, 404),
]
IDS = [f"{name}{i}" for i, (name, _, _) in enumerate(FINITE)]


def real(name: str, options: dict[str, Any]) -> Any:
    """Return the environment itself."""
    given = options.get("kwargs", {})
    if isinstance(given, str):
        values = {"true": True, "5": 5}
        given = {part.split("=")[0]: values[part.split("=")[1]] for part in given.split(",")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gymnasium.make(name.partition(":")[2], disable_env_checker=True, **given).unwrapped


def fronted(name: str) -> bool:
    return any(part in name for part in ("deep-sea", "fruit-tree", "resource"))


@pytest.mark.parametrize(("name", "options", "states"), FINITE, ids=IDS)
def test_every_finite_environment_is_read_exactly(name: str, options: dict[str, Any], states: int) -> None:
    mdp = tradeoff.load(name, **options)
    assert isinstance(mdp, tradeoff.MDP)
    assert "The exact model" in mdp.about and not any("estimate" in note for note in mdp.notes)
    assert states in (-1, len(mdp.states))
    assert len(set(mdp.states)) == len(mdp.states) and not any(state.startswith("state ") for state in mdp.states)


@pytest.mark.parametrize("discount", [1.0, 0.9])
@pytest.mark.parametrize(
    ("name", "options"), [(n, o) for n, o, _ in FINITE if fronted(n)], ids=[i for i in IDS if fronted(i)]
)
def test_the_best_plan_reaches_the_published_front(name: str, options: dict[str, Any], discount: float) -> None:
    mdp = tradeoff.load(name, **options, discount=discount)
    published = real(name, options).pareto_front(discount)
    front = np.array(published) * [o.sign for o in mdp.objectives]  # penalties are shown as costs
    weights = np.random.default_rng(1).dirichlet(np.ones(len(mdp.objectives)), 200)
    best = np.array([a.value @ w for a, w in zip(mdp.best(weights), weights, strict=True)])
    expected = ((front - mdp.origin) / mdp.scale @ weights.T).max(axis=0)
    if "resource" in name:  # its list lacks a point that can be reached
        assert np.all(best >= expected - 1e-9)
    else:
        assert_allclose(best, expected, atol=1e-6)


def play(env: Any, mdp: tradeoff.MDP, policy: Any, episodes: int, seed: int) -> Any:
    """Return the total rewards of episodes of a policy in the real environment."""
    words, number, names = vocabulary_of(env), {s: i for i, s in enumerate(mdp.states)}, {}
    totals = np.zeros((episodes, len(mdp.objectives)))
    for episode in range(episodes):
        observation, _ = env.reset(seed=seed if episode == 0 else None)
        for step in range(mdp.horizon):
            key = frozen(observation)
            if key not in names:
                names[key] = number[words.describe(env, observation)[0]]
            observation, reward, terminated, truncated, _ = env.step(int(policy[step, names[key]]))
            totals[episode] += reward
            if terminated or truncated:
                break
    return totals * np.array([o.sign for o in mdp.objectives])


DETERMINISTIC = ("deep-sea", "fruit", "four-room", "CliffWalking-v1")


@pytest.mark.parametrize(("name", "options", "states"), FINITE, ids=IDS)
def test_the_real_environment_pays_what_the_model_promises(name: str, options: dict[str, Any], states: int) -> None:
    if not any(part in name for part in DETERMINISTIC):
        options = options | {"horizon": 10 if "fish" in name else 25}  # 10,000 episodes stay short
    mdp = tradeoff.load(name, **options)
    weights = np.random.default_rng(2).dirichlet(np.ones(len(mdp.objectives)))
    (policy,), (best,) = mdp.solve([weights]), mdp.best([weights])
    episodes = 5 if any(part in name for part in DETERMINISTIC) else 10_000 if "Taxi" not in name else 3_000
    totals = play(real(name, options), mdp, policy.actions, episodes, seed=7)
    error = totals.std(axis=0) / np.sqrt(episodes)
    assert np.all(np.abs(totals.mean(axis=0) - mdp.outcome(best.value)) <= 4 * error + 1e-5)


@pytest.mark.parametrize("name", ["FrozenLake-v1", "CliffWalkingSlippery-v1"])
def test_the_table_and_trying_everything_give_the_same_model(name: str) -> None:
    env = gymnasium.make(name).unwrapped
    table = tradeoff.load(env, horizon=30)
    tried = enumerate_states(env, range(4), None)
    del env.initial_state_distrib  # without it, the table is not read
    env.__class__ = type("Other", (type(env),), {"reset": lambda self, **_: _start(self)})
    other = tradeoff.load(env, horizon=30, objectives="reward")
    assert "trying every action" in other.about and "transition table" in table.about
    assert len(tried.ended) == len(table.states) == len(other.states)
    assert_allclose(other.best([[1.0]])[0].value, table.best([[1.0]])[0].value)
    assert_allclose([other.origin, other.scale], [table.origin, table.scale])


def _start(env: Any) -> tuple[int, dict[str, Any]]:
    env.s, env.lastaction = (36 if hasattr(env, "_cliff") else 0), None
    return env.s, {}


def test_a_passenger_who_changes_their_mind_is_not_in_the_table() -> None:
    env = gymnasium.make("Taxi-v4", fickle_passenger=True)
    mdp = tradeoff.load(env, horizon=1)
    assert "trying every action" in mdp.about
    assert sum("fickle" in state for state in mdp.states) > 0
    assert any("the same observation" in note for note in mdp.notes)


def test_an_index_that_is_too_coarse_is_not_believed() -> None:
    mdp = tradeoff.load("mo-gym:breakable-bottles-v0", kwargs="unbreakable_bottles=true,size=4", horizon=16)
    assert not any("get_obs_idx" in note for note in mdp.notes)  # two bottles in a place are not one
    assert any("bottles dropped" in state for state in mdp.states)
    assert not any("the same observation" in note for note in mdp.notes)  # the observation does show how many
    assert "The exact model" in mdp.about


# --- environments made for these tests -------------------------------------------------------------------------------


class Walk(gymnasium.Env):  # type: ignore[misc]
    """A walk on 0 to 4 with slips, which ends at 4; it counts its steps, and keeps a total, to no purpose."""

    observation_space = gymnasium.spaces.Discrete(5)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, draw: Callable[[Any], bool], clock: int | None = None) -> None:
        self.draw, self.clock = draw, clock

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.at, self.steps, self.total, self.last = 0, 0, 0.0, None
        return self.at, {}

    def step(self, action: int) -> tuple[int, Any, bool, bool, dict[str, Any]]:
        self.steps += 1
        self.last = action
        if not self.draw(self):
            self.at = max(0, self.at - 1) if action == 0 else self.at + 1
        reward = np.array([float(self.at), -1.0])
        self.total += float(reward[0])
        over = self.clock is not None and self.steps == self.clock
        return self.at, reward, self.at == 4, over, {}


DRAWS = {
    "random": lambda env: env.np_random.random() < 0.25,
    "uniform": lambda env: env.np_random.uniform(-1, 3) < 0,
    "integers": lambda env: env.np_random.integers(4) == 0,
    "choice": lambda env: bool(env.np_random.choice([True, False], p=[0.25, 0.75])),
    "python": lambda env: random.random() < 0.25,
    "randint": lambda env: random.randint(1, 4) == 2,
    "numpy": lambda env: np.random.rand() < 0.25,  # noqa: NPY002
    "global choice": lambda env: np.random.choice(4) == 3,  # noqa: NPY002
}


def slips(horizon: int, gamma: float = 1.0) -> Any:
    """Return the expected total by brute force, for always going right, over everything that can happen."""
    total = np.zeros(2)
    for ways in product([True, False], repeat=horizon):
        at, chance = 0, 1.0
        for step, slip in enumerate(ways):
            chance *= 0.25 if slip else 0.75
            if at < 4:
                at += not slip
                total += gamma**step * np.array([at, -1.0]) * np.prod([0.25 if s else 0.75 for s in ways])
    return total


@pytest.mark.parametrize("draw", list(DRAWS))
def test_randomness_is_forked_with_its_exact_probabilities(draw: str) -> None:
    mdp = tradeoff.load(Walk(DRAWS[draw]), horizon=6)
    assert mdp.states == ("state 0", "state 1", "state 2", "state 3", "state 4")  # nothing that is only counted
    right = mdp.option(np.where(np.arange(5) < 4, 1, -1) * np.ones((6, 1), dtype=int))
    assert_allclose(mdp.outcome(right.value), slips(6), rtol=1e-12)


@pytest.mark.parametrize("gamma", [0.5, 0.95])
def test_a_discount_is_the_discounted_sum(gamma: float) -> None:
    mdp = tradeoff.load(Walk(DRAWS["random"]), horizon=6, discount=gamma)
    right = mdp.option(np.where(np.arange(5) < 4, 1, -1) * np.ones((6, 1), dtype=int))
    assert_allclose(mdp.outcome(right.value), slips(6, gamma), rtol=1e-12)
    (missing,) = [note for note in mdp.notes if "left out" in note]
    assert f"{gamma**6 / (1 - gamma) * 4:.4g} of reward 1" in missing


def test_a_clock_that_only_ends_the_episode_is_the_horizon() -> None:
    mdp = tradeoff.load(Walk(DRAWS["random"], clock=6))
    assert mdp.horizon == 6 and len(mdp.states) == 5
    assert any("6 steps, not 9" in note for note in tradeoff.load(Walk(DRAWS["random"], clock=6), horizon=9).notes)
    weights = [[1.0, 0.3], [0.2, 1.0]]
    longer = tradeoff.load(Walk(DRAWS["random"]), horizon=6).best(weights)
    assert_allclose([a.value for a in mdp.best(weights)], [a.value for a in longer])


class Moody(Walk):
    """Has a hidden mood, which changes what is earned; and, as ``clock``, time that changes it too."""

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        found = super().reset(seed=seed)
        self.mood = int(self.np_random.integers(2))
        return found

    def step(self, action: int) -> tuple[int, Any, bool, bool, dict[str, Any]]:
        at, reward, end, over, info = super().step(action)
        return at, reward * (1 + self.mood) + (self.steps == 2), end, over, info


def test_hidden_memory_tells_states_apart_and_is_said() -> None:
    mdp = tradeoff.load(Moody(DRAWS["random"]), horizon=4)
    assert any("the same observation" in note for note in mdp.notes)
    assert {"state 0, mood 0, steps 0", "state 0, mood 1, steps 0"} <= set(mdp.states)
    assert mdp.start[:2].tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("draw", "reason"),
    [
        (lambda env: env.np_random.normal() < 0, "normal()"),
        (lambda env: env.np_random.random(3)[0] < 0.25, "an array"),
        (lambda env: 2 * env.np_random.random() < 0.5, "computes with"),
        (lambda env: random.gauss(0, 1) < 0, "global random numbers"),
    ],
)
def test_what_cannot_be_forked_is_estimated_and_said_so(draw: Any, reason: str) -> None:
    mdp = tradeoff.load(Walk(draw), horizon=5, episodes=300, seed=4)
    assert "this model is an estimate, from 300 episodes" in mdp.notes[0] and reason in mdp.notes[0]
    assert mdp.fingerprint == tradeoff.load(Walk(draw), horizon=5, episodes=300, seed=4).fingerprint
    with refused(ProblemError, "method=rollouts"):
        tradeoff.load(Walk(draw), horizon=5, method="exact")


def test_an_estimate_comes_near_the_exact_model() -> None:
    exact = tradeoff.load(Walk(DRAWS["random"]), horizon=5)
    near = tradeoff.load(Walk(DRAWS["random"]), horizon=5, method="rollouts", episodes=4000)
    for weights in ([1.0, 0.0], [1.0, 1.0]):
        plans = [mdp.outcome(mdp.best([weights])[0].value) for mdp in (exact, near)]
        assert_allclose(*plans, rtol=0.15)


def test_blackjack_is_estimated() -> None:
    mdp = tradeoff.load("gym:Blackjack-v1", episodes=2000)
    assert "estimate" in mdp.notes[0] and any("dealer shows" in state for state in mdp.states)


def test_a_wrapper_that_may_change_rewards_is_not_ignored() -> None:
    wrapped = gymnasium.wrappers.TransformReward(Walk(DRAWS["random"]), lambda reward: 10 * reward)
    mdp = tradeoff.load(wrapped, horizon=3, episodes=200)
    assert "TransformReward" in mdp.notes[0] and mdp.outcome(mdp.best([[1.0, 0.0]])[0].value)[0] > 10


class Unkept(Walk):
    """Keeps its place where saving cannot find it."""

    places: list[int] = [0]  # noqa: RUF012

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        Unkept.places[0] = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, Any, bool, bool, dict[str, Any]]:
        Unkept.places[0] = min(4, Unkept.places[0] + action)
        return Unkept.places[0], np.array([1.0, 2.0]), Unkept.places[0] == 4, False, {}


def test_what_saving_cannot_find_is_noticed() -> None:
    with pytest.raises(NotExactError, match="exploration"):
        enumerate_states(Unkept(DRAWS["random"]), range(2), 6)
    assert "estimate" in tradeoff.load(Unkept(DRAWS["random"]), horizon=6, episodes=50).notes[0]


def test_the_environment_is_left_as_it_was_found() -> None:
    env = real("mo-gym:deep-sea-treasure-v0", {})
    env.reset(seed=3)
    env.step(3)
    before, kind, generator = dict(vars(env)), type(env), env.np_random
    draws = generator.bit_generator.state
    tradeoff.load(env, horizon=20)
    assert type(env) is kind and env.np_random is generator and generator.bit_generator.state == draws
    assert env.current_state.tolist() == [0, 1] and set(vars(env)) == set(before)


# --- names, objectives, pictures -------------------------------------------------------------------------------------


def test_objectives_can_be_named_and_turned() -> None:
    env = Walk(DRAWS["random"])
    plain = tradeoff.load(env, horizon=4)
    assert [(o.name, o.goal) for o in plain.objectives] == [("reward 1", "max"), ("reward 2", "max")]
    for given in ("way:max, effort:min", {"way": "max", "effort": "min"}, [tradeoff.Objective("way"), "effort:min"]):
        named = tradeoff.load(env, horizon=4, objectives=given)
        assert [(o.name, o.goal) for o in named.objectives] == [("way", "max"), ("effort", "min")]
        assert named.origin[1] > 0 and any("'effort'" in note for note in named.notes)
        assert_allclose(named.best([[1.0, 2.0]])[0].value, plain.best([[1.0, 2.0]])[0].value)
    assert [o.goal for o in tradeoff.load(env, horizon=4, objectives="max,min").objectives] == ["max", "min"]
    with refused(ArgumentError, "3 objectives", "2"):
        tradeoff.load(env, horizon=4, objectives="a,b,c")


def pixels(picture: bytes) -> Any:
    """Return the pixels of a PNG file, read independently."""
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(picture):
        (length,) = struct.unpack(">I", picture[at : at + 4])
        kind, data = picture[at + 4 : at + 8], picture[at + 8 : at + 8 + length]
        assert struct.unpack(">I", picture[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + data)
        chunks[kind] = data
        at += 12 + length
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), dtype=np.uint8).reshape(height, 1 + 3 * width)
    return lines[:, 1:].reshape(height, width, 3)


@pytest.mark.parametrize("name", ["mo-gym:deep-sea-treasure-v0", "gym:FrozenLake-v1", "mo-gym:resource-gathering-v0"])
def test_pictures_are_the_environments_own(name: str) -> None:
    mdp = tradeoff.load(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env = gymnasium.make(name.partition(":")[2], render_mode="rgb_array", disable_env_checker=True).unwrapped
        observation, _ = env.reset(seed=0)
        for action in (0, 3, 1, 2, 1):
            state = vocabulary_of(env).describe(env, observation)[0]
            shown = env.render()
            if action in (0, 3) or "deep" in name:  # later, the figure may look the other way
                assert np.array_equal(pixels(mdp.pictures[state]), shown)
            assert mdp.pictures[state] is mdp.pictures[state]
            observation, _, ended, _, _ = env.step(action)
            if ended:
                break
    assert set(mdp.pictures) == set(mdp.states) == set(mdp.places)
    assert mdp.pictures.get("no such state") is None and "no such state" not in mdp.pictures
    copy = pickle.loads(pickle.dumps(mdp))
    assert copy.fingerprint == mdp.fingerprint and not copy.pictures
    assert mdp.with_nothing().pictures is mdp.pictures


def test_a_grid_has_places() -> None:
    mdp = tradeoff.load("mo-gym:deep-sea-treasure-v0")
    assert mdp.places["row 3, column 2"] == (2.0, -3.0) and mdp.actions == ("up", "down", "left", "right")


def test_a_whole_interview_from_the_command_line() -> None:
    app = Commands("tradeoff", commands={"ask": ask})
    call = ["ask", "mo-gym:deep-sea-treasure-v0", "--with", "horizon=20", "--simulate", "treasure=3,time=1", "--json"]
    done = CliRunner(env={"COLUMNS": "100"}).invoke(app, call)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["recommendation"]["finished"] and found["relative_regret"] <= 0.02
    average = {one["objective"]: one["amount"] for one in found["recommendation"]["option"]["average"]}
    assert average == {"treasure": pytest.approx(23.7), "time": pytest.approx(19)}
    page = CliRunner(env={"COLUMNS": "100"}).invoke(app, call[:-1])
    assert "The best plan for you" in page.stdout and "row" in page.stdout


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "error", "facts"),
    [
        ("gym:NoSuchThing-v0", {}, ProblemError, "NoSuchThing-v0"),
        ("gym:Taxi-v3", {}, ProblemError, "Taxi-v4"),
        ("gym:", {}, ProblemError, "made"),
        ("gym:CartPole-v1", {}, ProblemError, "continuous"),
        ("mo-gym:mo-mountaincar-v0", {}, ProblemError, "continuous"),
        ("mo-gym:mo-mountaincarcontinuous-v0", {}, ProblemError, "actions"),
        ("gym:CliffWalking-v1", {}, ProblemError, "horizon=50"),
        ("gym:FrozenLake-v1", {"horizon": "0"}, ArgumentError, "horizon | 0"),
        ("gym:FrozenLake-v1", {"horizon": "soon"}, ArgumentError, "whole number"),
        ("gym:FrozenLake-v1", {"horizon": 10**12}, ProblemError, "steps"),
        ("gym:FrozenLake-v1", {"discount": "1.5"}, ArgumentError, "discount | 0 | 1"),
        ("gym:FrozenLake-v1", {"discount": 0}, ArgumentError, "discount | 0 | 1"),
        ("gym:FrozenLake-v1", {"discount": "nan"}, ArgumentError, "discount | nan"),
        ("gym:FrozenLake-v1", {"method": "guess"}, ArgumentError, "auto | exact | rollouts"),
        ("gym:FrozenLake-v1", {"kwargs": "slippery"}, ArgumentError, "is_slippery=false"),
        ("gym:FrozenLake-v1", {"kwargs": "no_such=1"}, ProblemError, "no_such"),
        ("gym:FrozenLake-v1", {"kwargs": "map_name=9x9"}, ProblemError, "'9x9' | kwargs"),
        ("gym:CartPole-v1", {"method": "exact"}, ProblemError, "estimated"),
        ("gym:CartPole-v1", {"method": "rollouts"}, ProblemError, "CartPole-v1 | estimated"),
        ("gym:FrozenLake-v1", {"episodes": "few"}, ArgumentError, "episodes"),
        ("gym:FrozenLake-v1", {"colour": "red"}, ArgumentError, "colour"),
    ],
)
def test_rubbish_is_refused_with_the_reason(name: str, options: dict[str, Any], error: type, facts: str) -> None:
    with refused(error, *facts.split(" | ")):
        tradeoff.load(name, **options)


@pytest.mark.parametrize("method", ["auto", "exact"])
def test_exploring_what_is_continuous_is_given_up(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRADEOFF_SECONDS", "1")
    began = time.process_time()
    with pytest.raises(ProblemError, match=r"[0-9] states") as caught:
        tradeoff.load("mo-gym:minecart-deterministic-v0", method=method)
    assert time.process_time() - began < 10
    assert "1 seconds" in str(caught.value) and "method=rollouts" not in str(
        caught.value
    )  # that is not possible either


def test_generators_are_compared_by_all_of_their_numbers() -> None:
    one, other = np.random.RandomState(3), np.random.RandomState(3)
    kind, numbers, *rest = one.get_state()  # type: ignore[misc]
    changed = np.array(numbers)
    changed[300] += 1
    with np.printoptions(threshold=5):  # what is printed may leave out the middle
        assert frozen(one) == frozen(other) and hash(frozen(one)) == hash(frozen(other))
        other.set_state((kind, changed, *rest))
        assert frozen(one) != frozen(other)
    assert frozen(np.zeros(2)) != frozen(np.zeros(2, dtype=np.int64))


def test_a_package_that_an_environment_misses_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lacking_env.py").write_text("import no_such_package.physics\n")
    monkeypatch.syspath_prepend(tmp_path)
    gymnasium.register("Lacking-v0", entry_point="lacking_env:Lacking")
    try:
        with refused(ProblemError, "'no_such_package'", "install"):
            tradeoff.load("gym:Lacking-v0")
    finally:
        del gymnasium.registry["Lacking-v0"]
        sys.modules.pop("lacking_env", None)


@pytest.mark.parametrize("seed", range(20))
def test_forks_have_the_probabilities_of_real_draws(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bounds, chances = np.sort(rng.random(3)), rng.dirichlet(np.ones(4))

    def game(source: Any) -> tuple[Any, ...]:
        first = source.random()
        low = int(np.argmax(np.append(bounds, 1.0) > first))
        second = source.choice(["a", "b", "a", "c"], p=chances)
        return low, str(second), bool(first >= bounds[1]), int(source.integers(1, 3, endpoint=True))

    fork, found = BranchingRandom(), dict[Any, float]()
    for chance, result in fork.outcomes(lambda: game(fork)):
        found[result] = found.get(result, 0.0) + chance
    assert sum(found.values()) == pytest.approx(1)
    draws = [game(rng) for _ in range(4000)]
    assert set(draws) <= set(found)
    for result, chance in found.items():
        assert abs(draws.count(result) / 4000 - chance) <= 5 * np.sqrt(chance / 4000) + 1e-3


@pytest.fixture(autouse=True)
def _same_draws() -> Iterator[None]:
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002
    yield
