"""The least ratios over rays are those that NumPy finds, to the last digit."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tradeoff.kernels.ratios import least_against, least_shares


@given(seed=st.integers(0, 1000), rays=st.integers(1, 40), count=st.integers(1, 20))
def test_least_ratios(seed: int, rays: int, count: int) -> None:
    random = np.random.default_rng(seed)
    worth = random.random((rays, count)) * (random.random((rays, count)) < 0.9)
    most = worth.max(axis=1) + 1e-9
    assert least_shares(worth, most).tolist() == (worth / most[:, None]).min(axis=0).tolist()
    chosen = random.integers(count, size=min(4, count))
    expected = [(worth[:, [c]] / np.maximum(worth, 1e-12)).min(axis=0).tolist() for c in chosen]
    assert least_against(worth, chosen, 1e-12).tolist() == expected
