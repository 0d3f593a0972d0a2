"""Algorithm 3 of the paper ("C4") as it is printed: the slow yardstick for ``compress``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def naive_c4(
    points: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the rows of at most k+1 points and weights with the same mean, one null vector per eliminated point."""
    size = points.shape[1]
    remaining = [int(i) for i in np.flatnonzero(weights > 0)]  # M, a list; p(mu) beside it
    p = {i: float(weights[i]) for i in remaining}
    while len(remaining) > size + 1:
        picked = remaining[: size + 2]  # line 3: "arbitrarily pick k+2 vectors"
        lifted = np.vstack([points[picked].T, np.ones(size + 2)])
        x = np.linalg.svd(lifted)[2][-1]  # line 4: sum of x_i (mu_i append 1) = 0
        ratios = np.abs(x) / np.array([p[i] for i in picked])
        i0 = int(np.argmax(ratios))  # line 5
        if x[i0] < 0:  # line 6
            x = -x
        gamma = p[picked[i0]] / x[i0]  # line 7
        for place, i in enumerate(picked):
            p[i] -= gamma * float(x[place])
        p[picked[i0]] = 0.0  # exact by definition of gamma; rounding may say otherwise
        remaining = [i for i in remaining if p[i] > 0]  # line 8
    return np.array(sorted(remaining), np.int64), np.array([p[i] for i in sorted(remaining)])
