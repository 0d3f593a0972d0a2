"""Law: particles that compare densities roughly, where that decides, go where those go that compare every last digit."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tradeoff.kernels.density import GRADED
from tradeoff.kernels.walk import mover
from tradeoff.strategies.sampling import PEOPLE, SLIPS, WITH_STRENGTHS, Answering, Dirichlets

EXACT = Answering(lapse=(1e-6, 1e-6))
CHANGING = Answering(noise=(1e-4, 0.3), lapse=(1e-4, 0.3), change=0.2)


def moved(
    seed: int, d: int, count: int, answering: Answering, asked: str, prior: Dirichlets, quick: bool
) -> list[bytes]:
    """Return the bits of 30 particles after two rounds of moves; everything but ``quick`` decides where they begin."""
    random, n = np.random.default_rng(seed), 30
    low, high = (np.append(end, np.log(much)) for end, much in zip(answering.ranges, answering.much, strict=True))
    traits = random.uniform(low, high, (n, 4))
    weights = prior.draw(n, random)
    differences = random.normal(size=(count, d)) * random.choice([1e-3, 0.3, 1.0])
    if asked == "menus":
        kinds, shares = random.choice([-1, 0, 1, 2], count), np.where(random.random(count) < 0.6, -0.3, 0.3)
        shares[-1:] = 0.3
    else:
        kinds, shares = random.choice([-1, 0, 1, 1, -1, 2], count), np.ones(count)
        if asked == "strengths":
            kinds = kinds * np.where(np.abs(kinds) == 1, 1 + GRADED * random.integers(3, size=count), 1)
    coefficients, powers = prior.terms()
    since = random.integers(max(count, 1), size=n) if answering.change else np.zeros(n, dtype=np.int64)
    change = float(np.log(answering.change)) if answering.change else -np.inf
    mover()(
        weights, traits, since, weights.copy(), traits.copy(), differences, kinds.astype(np.int64), shares, low, high,
        coefficients, powers, change, 2, np.uint64(seed), quick,
    )  # fmt: skip
    return [weights.tobytes(), traits.tobytes(), since.tobytes()]


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 2**32), st.integers(1, 6), st.integers(0, 14),
    st.sampled_from([PEOPLE, EXACT, SLIPS, CHANGING, WITH_STRENGTHS]),
    st.sampled_from(["pairs", "pairs", "menus", "strengths"]), st.booleans(),
)  # fmt: skip
def test_rough_densities_move_particles_to_the_same_bits(
    seed: int, d: int, count: int, answering: Answering, asked: str, learned: bool
) -> None:
    prior = (
        Dirichlets((0.3, 0.7), ((2.0,) * d, tuple(1.0 + 0.5 * j for j in range(d)))) if learned else Dirichlets.usual(d)
    )
    assert moved(seed, d, count, answering, asked, prior, True) == moved(seed, d, count, answering, asked, prior, False)


def test_particles_on_the_floor_and_impossible_answers_move_to_the_same_bits() -> None:
    answering = Answering(lapse=(1e-12, 1e-12))  # so sure that only the last digits could decide
    for given_answering in (answering, EXACT):
        found = [moved(7, 3, 40, given_answering, "pairs", Dirichlets.usual(3), quick) for quick in (True, False)]
        assert found[0] == found[1]
