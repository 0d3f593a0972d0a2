"""Problems and people for the tests of strategies."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.models import random_arrays
from tradeoff import MDP, Catalogue, Interview, LinearRespondent, Question, Recommendation, Reference, Reply
from tradeoff.evidence import possible_replies
from tradeoff.model import EQUAL, FIRST, SECOND
from tradeoff.problem import Problem


def random_catalogue(rng: np.random.Generator, k: int, items: int = 60, kind: str = "random") -> Catalogue:
    """Return a catalogue of random points: in a cube, on a sphere, of low rank, with ties, or with a dead objective."""
    values = rng.random((items, k))
    if kind == "sphere" and k > 1:
        values = np.abs(rng.normal(size=(items, k)))
        values /= np.linalg.norm(values, axis=1, keepdims=True)
    elif kind == "low rank":
        values = rng.random((items, max(1, k - 2))) @ rng.random((max(1, k - 2), k))
    elif kind == "ties":
        values = rng.integers(0, 3, size=(items, k)).astype(float)
        values = np.concatenate([values, values[: items // 3]])
    elif kind == "dead" and k > 1:
        values[:, rng.integers(0, k)] = 0.25
    elif kind == "ill-conditioned":
        values = 0.5 + 1e-4 * rng.random((items, k)) * (rng.random(k) < 0.7) + 0.3 * rng.random((items, 1))
    low = Reference("nothing", {f"objective {j + 1}": 0.0 for j in range(k)})
    return Catalogue(values, reference=low)


KINDS = ["random", "sphere", "low rank", "ties", "dead", "ill-conditioned"]


def random_mdp(rng: np.random.Generator, k: int, states: int = 8, horizon: int = 4) -> MDP:
    arrays = random_arrays(rng, states=states, actions=3, objectives=k, horizon=horizon, goals=False)
    transitions = arrays.transitions[0]
    transitions[0] = rng.dirichlet(np.ones(states), size=3)  # the start always has choices
    return MDP.from_arrays(transitions, np.abs(arrays.rewards[0]), horizon=horizon, rewards_on="next", prune=False)


def person(
    rng: np.random.Generator, problem: Problem, precision: float = 0.01, sparse: bool = False
) -> LinearRespondent:
    """Return a person to whom their best option is worth 1, so that the precision is relative to it."""
    k = len(problem.objectives)
    weights = rng.dirichlet(np.ones(k))
    if sparse:
        weights *= rng.random(k) < 0.5
    worth = max(float(weights @ a.value) for a in problem.best([weights]))
    if worth <= 1e-9:
        weights, worth = np.ones(k), max(1e-9, float(sum(problem.best([np.ones(k)])[0].value)))
    return LinearRespondent(weights / worth, precision)


def regret(problem: Problem, respondent: LinearRespondent, recommendation: Recommendation) -> float:
    """Return the share of the best possible worth that the recommendation loses."""
    best = respondent.worth(problem.best([respondent.weights])[0].value)
    return (best - respondent.worth(recommendation.option.value)) / best if best > 0 else 0.0


def run(interview: Interview, respondent, limit: int = 2000) -> Recommendation:
    """Answer everything and return the recommendation."""
    for _ in range(limit):
        question = interview.ask()
        if question is None:
            return interview.recommendation
        interview.tell(respondent(question))
    raise AssertionError(f"the interview did not end within {limit} questions")


class Replier:
    """Somebody who replies to pairs by a rule, for tests of respondents who break the assumptions."""

    def __init__(self, name: str, rule: Callable[[Question, int], Reply]) -> None:
        self.name, self.rule, self.asked = name, rule, 0

    def __call__(self, question: Question) -> Reply:
        self.asked += 1
        return self.rule(question, self.asked)


def at_random(seed: int) -> Replier:
    """Return somebody who replies at random."""
    rng = np.random.default_rng(seed)
    return Replier("random", lambda question, asked: question.replies[rng.integers(len(question.replies))])


def always(reply: Reply) -> Replier:
    """Return somebody who always gives the same reply."""
    return Replier(f"always {reply}", lambda question, asked: reply)


def rule_breakers() -> list[Replier]:
    """Return new respondents for a problem of five objectives, each of whom breaks an assumption or is at its edge."""
    liked, later = LinearRespondent([3, 1, 1, 2, 1]), LinearRespondent([0, 0, 1, 1, 0])
    before, unsure = LinearRespondent([1, 0, 0, 0, 0]), LinearRespondent([1, 0, 0, 0, 0], precision=5.0)
    never_equal, weights = LinearRespondent([0, 0, 1, 0, 0], precision=0.0), np.array([1, 2, 1, 1, 1])

    def opposite(question: Question, asked: int) -> Reply:
        return {FIRST: SECOND, SECOND: FIRST, EQUAL: EQUAL}[liked(question)]

    def concave(question: Question, asked: int) -> Reply:
        return possible_replies(np.sqrt(np.maximum(question.values, 0.0)) @ weights, 0.0, question.asks)[0]

    return [
        at_random(0),
        *(always(reply) for reply in (FIRST, SECOND, EQUAL)),
        Replier("contrary", opposite),
        Replier("changes their mind", lambda question, asked: (before if asked <= 10 else later)(question)),
        Replier("concave", concave),
        Replier("notices nothing", lambda question, asked: unsure(question)),
        Replier("is never undecided", lambda question, asked: never_equal(question)),
    ]
