"""Models estimated from episodes of random actions, for environments that cannot be read exactly."""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from tradeoff.errors import ProblemError
from tradeoff.mdp.model import MDP
from tradeoff.sources.limits import seconds_limit
from tradeoff.sources.progress import report
from tradeoff_gym.environment_state import frozen
from tradeoff_gym.exploration import reward_row
from tradeoff_gym.rewards import objectives_of
from tradeoff_gym.vocabulary import Place, Vocabulary

MOST_STEPS = 1_000_000
MOST_STATES = 100_000
LONGEST_EPISODE = 10_000
PLAYING = 300.0  # seconds of processor time

Step = tuple[int, int, str, str, tuple[float, ...], str, bool]  # episode, step, state, action, rewards, next, ended


def estimate(
    env: Any,
    actions: Sequence[Any],
    words: Vocabulary,
    objectives: object,
    horizon: int | None,
    why: str,
    plays: tuple[int, int],
) -> MDP:
    """Return the model estimated from episodes of random actions; ``plays`` is the number of episodes and the seed.

    Its states are observations. Its notes say that it is an estimate, why, and from how many steps.
    """
    places: dict[str, Place] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log = _played(env, actions, words, horizon, plays, places)
    named, rewards, turned = objectives_of(np.array([step[4] for step in log]), words, objectives)
    acted = {step[2] for step in log}
    rows = [
        (episode, number, state, action, reward, f"{after} (end)" if ended and after in acted else after)
        for (episode, number, state, action, _, after, ended), reward in zip(log, rewards.tolist(), strict=True)
    ]
    mdp = MDP.from_log(
        rows, horizon=horizon, objectives=named, actions=words.actions, name=name_of(env),
        about="A model estimated from random actions.",
    )  # fmt: skip
    mdp.places = {s: places[s.removesuffix(" (end)")] for s in mdp.states if s.removesuffix(" (end)") in places}
    mdp.notes[:0] = [
        f"this model is an estimate, from {rows[-1][0] + 1:,} episodes ({len(rows):,} steps) of random actions; its states "
        "are what is observed" + (f"; it cannot be read exactly: {why}" if why else "")
    ]
    mdp.notes += turned
    return mdp


def _played(
    env: Any,
    actions: Sequence[Any],
    words: Vocabulary,
    horizon: int | None,
    plays: tuple[int, int],
    places: dict[str, Place],
) -> list[Step]:
    """Return the steps of episodes of random actions; the locations of states are added to ``places``."""
    (episodes, seed), names, taken = plays, dict[Any, str](), set[str]()
    rng = np.random.default_rng(seed)
    before = random.getstate()
    random.seed(seed)  # some environments draw from Python's global generator

    def name(observation: Any) -> str:
        key = frozen(observation)
        if key not in names:
            if len(names) >= MOST_STATES:
                raise ProblemError(
                    f"{name_of(env)} showed more than {MOST_STATES:,} states; that is too many to estimate"
                )
            text, place = words.describe(env.unwrapped, observation)
            names[key] = text if text and text not in taken else f"state {len(names)}"
            taken.add(names[key])
            if place is not None:
                places[names[key]] = place
        return names[key]

    log: list[Step] = []
    seconds, began = seconds_limit(PLAYING), time.process_time()
    try:
        for episode in range(episodes):
            report(f"Playing {name_of(env)}: episodes", episode, episodes)
            if time.process_time() - began > seconds:
                raise ProblemError(
                    f"{name_of(env)}: only {episode:,} of {episodes:,} episodes were played in {seconds:g} seconds of "
                    "processor time; set a smaller number with episodes=..., or allow more with the environment variable "
                    "TRADEOFF_SECONDS"
                )
            state = name(env.reset(seed=seed if episode == 0 else None)[0])
            for number in range(horizon or LONGEST_EPISODE):
                action = int(rng.integers(len(actions)))
                observation, reward, terminated, truncated, _ = env.step(actions[action])
                after = name(observation)
                log.append((episode, number, state, words.actions[action], reward_row(reward), after, bool(terminated)))
                state = after
                if terminated or truncated:
                    break
            else:
                _check_ends(env, horizon)
            if len(log) >= MOST_STEPS:
                break
    except ProblemError:
        raise
    except Exception as error:
        raise ProblemError(
            f"{name_of(env)} failed while random actions were played: {type(error).__name__}: {error}"
        ) from None
    finally:
        random.setstate(before)
    return log


def _check_ends(env: Any, horizon: int | None) -> None:
    if horizon is None:
        raise ProblemError(
            f"{name_of(env)} went on for more than {LONGEST_EPISODE:,} steps; give the number of steps, such as horizon=50"
        )


def name_of(env: Any) -> str:
    """Return the name of an environment."""
    spec = getattr(env.unwrapped, "spec", None)
    return str(spec.id) if spec is not None else type(env.unwrapped).__name__
