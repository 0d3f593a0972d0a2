"""Law 7 on what people get: units, goals and the order of objectives decide neither questions nor advice."""

from __future__ import annotations

import numpy as np
import pytest

from tests.laws.asking import ASKING, PROBLEMS
from tests.strategies.people import random_catalogue
from tradeoff import LinearRespondent
from tradeoff.testing.strategies import InAnotherOrder, check_units, interview, simulated_person


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("asking", ASKING)
def test_units_and_order(asking: str, problem: str) -> None:
    strategy, options = ASKING[asking]
    for seed in range(3):
        check_units(strategy, PROBLEMS[problem], seed, **options)


@pytest.mark.parametrize("asking", ASKING)
def test_the_order_of_objectives_does_not_decide_how_much_is_asked(asking: str) -> None:
    """Question by question ties and random draws fall otherwise; over many people it comes to the same."""
    strategy, options = ASKING[asking]
    plain, turned = 0, 0
    for seed in range(16):
        rng = np.random.default_rng([3, seed])
        problem = random_catalogue(rng, 3, items=40, kind="sphere")
        person, order = simulated_person(problem, seed), rng.permutation(3)
        plain += len(interview(strategy, problem, person, **options)) - 1
        permuted = LinearRespondent(person.weights[order], person.precision)
        turned += len(interview(strategy, InAnotherOrder(problem, order), permuted, **options)) - 1
    assert abs(plain - turned) <= 0.2 * plain, (plain, turned)
