"""Comparing the results of simulated respondents."""

from __future__ import annotations

import numpy as np

from tradeoff.simulation import Results


def assert_same_rows(found: Results, expected: Results) -> None:
    """Fail unless all columns are the same to the last digit, except the seconds, which no two runs share."""
    assert found.dtype == expected.dtype
    for name in found.dtype.names or ():
        if name != "seconds":
            np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
