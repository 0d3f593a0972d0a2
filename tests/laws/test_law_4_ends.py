"""Law 4: every strategy ends within the number of questions it announces, whatever is skipped."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies.people import KINDS, person, random_catalogue
from tradeoff import Interview

seeds = st.integers(0, 2**32 - 1)

ASKING = [
    {"strategy": "paper"},
    {"strategy": "paper", "theorem": 2},
    {"strategy": "paper", "theorem": 2, "literal": True},
    {"strategy": "paper", "basis": "spanner"},
    {"strategy": "paper", "max_questions": 9},
]
SLOW_ASKING = [{"strategy": "certified"}, {"strategy": "careful"}, {"strategy": "careful", "max_questions": 5}]


def check_announcements(interview: Interview, user, skips: float, rng: np.random.Generator) -> None:
    """The announced number falls by at least one with every question, answered or skipped."""
    while (question := interview.ask()) is not None:
        left = interview.at_most
        assert left is not None and left >= 1
        interview.skip() if rng.random() < skips else interview.tell(user(question))
        assert interview.at_most is not None and interview.at_most <= left - 1
    assert interview.recommendation.questions == len(interview.answers)


@given(
    seeds,
    st.integers(2, 6),
    st.sampled_from(KINDS),
    st.sampled_from([0.5, 0.1, 0.01, 1e-4, 0.0]),
    st.sampled_from(ASKING),
    st.sampled_from([0.0, 0.2, 0.5]),
)
def test_the_paper_ends_within_what_it_announces(
    seed: int, k: int, kind: str, precision: float, options: dict, skips: float
) -> None:
    rng = np.random.default_rng(seed)
    problem = random_catalogue(rng, k, kind=kind)
    user = person(rng, problem, precision, sparse=seed % 3 == 0)
    interview = Interview(problem, **options)
    check_announcements(interview, user, skips, rng)
    if skips == 0 and "max_questions" not in options:
        assert interview.recommendation.complete


@pytest.mark.parametrize("options", SLOW_ASKING)
@settings(max_examples=8)
@given(seeds, st.integers(2, 4), st.sampled_from([0.1, 0.001]), st.sampled_from([0.0, 0.2]))
def test_the_others_end_within_what_they_announce(
    options: dict, seed: int, k: int, precision: float, skips: float
) -> None:
    rng = np.random.default_rng(seed)
    problem = random_catalogue(rng, k, items=40)
    check_announcements(Interview(problem, **options), person(rng, problem, precision), skips, rng)
