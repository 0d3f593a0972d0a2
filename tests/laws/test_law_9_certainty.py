"""Law: "sure" and "fairly sure" are what the posterior says of large losses, and nothing is sure against the answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tradeoff
from tradeoff.model import CERTAINTY, Certainty


def interviewed(seed: int, strategy: str) -> tuple[tradeoff.Catalogue, tradeoff.Interview]:
    """Return an interview with a respondent without noise, about a random table."""
    rng = np.random.default_rng(seed)
    table = tradeoff.Catalogue(rng.random((12, 3)), ["a", "b", "c"])
    interview = tradeoff.Interview(table, strategy)
    weights = rng.dirichlet(np.ones(3))
    for _ in range(int(rng.integers(0, 6))):
        question = interview.ask()
        if question is None:
            break
        interview.tell(int(np.argmax([option.value @ weights for option in question.options])))
    return table, interview


@pytest.mark.parametrize("strategy", ["careful", "certified"])
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_probabilities_count_the_samples_that_lose_more(strategy: str, seed: int) -> None:
    table, interview = interviewed(seed, strategy)
    found = interview.recommendation
    likely, unlikely = found.loss_probabilities or (1.0, 1.0)
    assert 0 <= unlikely <= likely <= 1
    if strategy == "careful" and not interview.finished:  # a finished one also allows for another kind of respondent
        weights = found.criterion.weights
        regrets = 1 - weights @ found.option.value / (weights @ table.gains.T).max(axis=1)
        counted = [(regrets > loss).mean() for loss in CERTAINTY.losses]
        assert np.allclose((likely, unlikely), counted, atol=0.01)
    if found.regret_bound is not None and found.regret_bound <= CERTAINTY.sure_loss and strategy == "certified":
        assert found.certainty is Certainty.SURE


def test_what_the_answers_speak_against_is_not_sure() -> None:
    _, interview = interviewed(3, "careful")
    found = replace(interview.recommendation, loss_probabilities=(0.0, 0.0))
    assert found.certainty is Certainty.SURE
    for changed in ({"fits": False}, {"model_choice": found.option}, {"contested_by": found.option}):
        assert replace(found, **changed).certainty is Certainty.NOT_SURE
    proved = replace(found, loss_probabilities=None, regret_bound=0.04)
    assert proved.certainty is Certainty.FAIRLY_SURE
    assert replace(proved, regret_bound=None).certainty is Certainty.NOT_SURE
