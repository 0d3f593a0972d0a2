"""The best of a list of values for each row of weights."""

from __future__ import annotations

import numpy as np

from tradeoff.model import Indices, Matrix, Vector
from tradeoff.problem import SAME

# Scores of this many items x weights are formed at a time: 32 MB.
SCORES_AT_ONCE = 1 << 22


def winners(rows: Matrix, gains: Matrix, totals: Vector) -> Indices:
    """Return which of the ``gains`` [n, k] is worth most to each row of weights; among ties that of the largest total."""
    chunk = max(1, SCORES_AT_ONCE // len(gains))
    parts = [_winners(rows[i : i + chunk], gains, totals) for i in range(0, len(rows), chunk)]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _winners(rows: Matrix, gains: Matrix, totals: Vector) -> Indices:
    # Gains lie in [0, 1], so |w| bounds every score: what differs by less than rounding is a tie.
    tolerance = SAME * np.abs(rows).sum(axis=1)
    rough = rows @ gains.T
    row, item = np.nonzero(rough >= (rough.max(axis=1) - 4 * tolerance)[:, None])
    # The last digit of the product above may depend on the size of the batch, so it only narrows the choice down. The
    # scores that decide are added up in one fixed order: a row's winner does not depend on the batch it is in.
    scores = np.zeros(len(row))
    for j in range(rows.shape[1]):
        scores += gains[item, j] * rows[row, j]
    best = np.maximum.reduceat(scores, np.searchsorted(row, np.arange(len(rows))))
    tied = scores >= (best - tolerance)[row]
    row, item = row[tied], item[tied]
    order = np.lexsort((item, -totals[item], row))
    found: Indices = item[order][np.searchsorted(row[order], np.arange(len(rows)))]
    return found
