"""Law 3: the same replies give the same questions and recommendation, bit for bit, also on a fresh problem."""

from __future__ import annotations

import pytest

from tests.laws.asking import ASKING, PROBLEMS
from tradeoff.testing.strategies import check_replay


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("asking", ASKING)
def test_replay(asking: str, problem: str) -> None:
    strategy, options = ASKING[asking]
    for seed in range(3):
        check_replay(strategy, PROBLEMS[problem], seed, **options)


@pytest.mark.parametrize("asking", ["certified", "careful"])
def test_replay_of_deep_interviews(asking: str) -> None:
    strategy, options = ASKING[asking]
    check_replay(strategy, PROBLEMS["catalogue"], 7, **options | {"target": 1e-5})
